#include "responses/response.h"

#include <math.h>
#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(gaussian)                                                             \
  MEMBER(binomial_logit)                                                       \
  MEMBER(poisson_log)                                                          \
  MEMBER(categorical)                                                          \
  MEMBER(binomial_probit)                                                      \
  MEMBER(binomial_cloglog)                                                     \
  MEMBER(neg_binomial_log)                                                     \
  MEMBER(gamma_log)                                                            \
  MEMBER(student)                                                              \
  MEMBER(beta_logit)

#define MEMBER(name) extern const struct tb_response_type tb_response_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_response_##name,
const struct tb_response_type* const tb_response_registry[] = {MEMBERS NULL};
#undef MEMBER

size_t tb_response_count(void) {
  return sizeof tb_response_registry / sizeof tb_response_registry[0] - 1;
}

const struct tb_response_type* tb_response_find(const char* name,
                                                const char* link) {
  for (size_t k = 0; name != NULL && k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    if (strcmp(type->name, name) == 0 &&
        (link == NULL || strcmp(type->link, link) == 0)) {
      return type;
    }
  }
  return NULL;
}

const struct tb_response_type* tb_response_at_place(double place) {
  const bool is_one = place >= 0 && place < (double)tb_response_count() &&
                      place == floor(place);
  return is_one ? tb_response_registry[(size_t)place] : NULL;
}

struct tb_response_point tb_response_at(const struct tb_response* p_response,
                                        const double* v_coordinate) {
  const struct tb_response_type* type = p_response->type;
  struct tb_response_point point = {.scale = 1};
  double v_aux[TB_RESPONSE_MOST_AUX] = {0};
  size_t n_sampled = 0;
  for (size_t k = 0; k < type->n_aux; ++k) {
    point.v_is_sampled[k] = isnan(p_response->v_known[k]);
    v_aux[k] = point.v_is_sampled[k] ? v_coordinate[n_sampled++]
                                     : p_response->v_known[k];
  }
  if (type->prepare != NULL) {
    type->prepare(v_aux, &point);
  }
  return point;
}

size_t tb_response_n_sampled(const struct tb_response* p_response) {
  size_t n_sampled = 0;
  for (size_t k = 0; k < p_response->type->n_aux; ++k) {
    n_sampled += isnan(p_response->v_known[k]) != 0;
  }
  return n_sampled;
}

const struct tb_response_aux*
tb_response_sampled(const struct tb_response* p_response, size_t k) {
  const struct tb_response_type* type = p_response->type;
  for (size_t j = 0; j < type->n_aux; ++j) {
    if (isnan(p_response->v_known[j]) && k-- == 0) {
      return &type->v_aux[j];
    }
  }
  return NULL;
}

void tb_response_natural(const struct tb_response* p_response,
                         const double* v_coordinate,
                         double* v_natural) {
  const size_t n_sampled = tb_response_n_sampled(p_response);
  for (size_t k = 0; k < n_sampled; ++k) {
    v_natural[k] =
        tb_response_sampled(p_response, k)->lower + exp(v_coordinate[k]);
  }
}

bool tb_response_read(struct tb_response* p_response,
                      const struct tb_params* p_params) {
  const double place = tb_params_number(p_params, "response", -1);
  const struct tb_param* p_aux = tb_params_find(p_params, "aux");
  *p_response = (struct tb_response){.type = tb_response_at_place(place)};
  return tb_response_know(p_response,
                          p_aux == NULL ? NULL : p_aux->v_value,
                          p_aux == NULL ? 0 : p_aux->n_value);
}

bool tb_response_know(struct tb_response* p_response,
                      const double* v_value,
                      size_t n_value) {
  const struct tb_response_type* type = p_response->type;
  if (type == NULL || n_value != type->n_aux) {
    return false;
  }
  for (size_t k = 0; k < n_value; ++k) {
    if (!isnan(v_value[k]) && !(v_value[k] > 0 && isfinite(v_value[k]))) {
      return false;
    }
    p_response->v_known[k] = v_value[k];
  }
  return true;
}
