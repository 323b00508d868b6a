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
  MEMBER(beta_logit)                                                           \
  MEMBER(truncated_poisson_log)                                                \
  MEMBER(weibull_log)                                                          \
  MEMBER(weibull_aft_log)                                                      \
  MEMBER(lognormal_log)                                                        \
  MEMBER(loglogistic_log)                                                      \
  MEMBER(censored_gaussian)                                                    \
  MEMBER(truncated_neg_binomial_log)                                           \
  MEMBER(gaussian_sigma)                                                       \
  MEMBER(student_sigma)                                                        \
  MEMBER(neg_binomial_shape)                                                   \
  MEMBER(gamma_shape)                                                          \
  MEMBER(beta_phi)                                                             \
  MEMBER(zero_inflated_poisson)                                                \
  MEMBER(zero_inflated_negbinomial)                                            \
  MEMBER(censored_gaussian_sigma)                                              \
  MEMBER(censored_poisson)                                                     \
  MEMBER(censored_neg_binomial)                                                \
  MEMBER(censored_neg_binomial_shape)                                          \
  MEMBER(censored_student)                                                     \
  MEMBER(censored_student_sigma)

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

bool tb_response_read(struct tb_response* p_response,
                      const struct tb_params* p_params) {
  const double place = tb_params_number(p_params, "response", -1);
  const struct tb_param* p_aux = tb_params_find(p_params, "aux");
  *p_response = (struct tb_response){.type = tb_response_at_place(place)};
  return tb_response_know(p_response,
                          p_aux == NULL ? NULL : p_aux->v_value,
                          p_aux == NULL ? 0 : p_aux->n_value);
}
