#include "responses/response.h"

#include <math.h>
#include <string.h>

extern const struct tb_response_type tb_response_gaussian;
extern const struct tb_response_type tb_response_binomial_logit;
extern const struct tb_response_type tb_response_poisson_log;
extern const struct tb_response_type tb_response_categorical;
extern const struct tb_response_type tb_response_binomial_probit;
extern const struct tb_response_type tb_response_binomial_cloglog;
extern const struct tb_response_type tb_response_neg_binomial_log;
extern const struct tb_response_type tb_response_gamma_log;
extern const struct tb_response_type tb_response_student;
extern const struct tb_response_type tb_response_beta_logit;

const struct tb_response_type* const tb_response_registry[] = {
    &tb_response_gaussian,
    &tb_response_binomial_logit,
    &tb_response_poisson_log,
    &tb_response_categorical,
    &tb_response_binomial_probit,
    &tb_response_binomial_cloglog,
    &tb_response_neg_binomial_log,
    &tb_response_gamma_log,
    &tb_response_student,
    &tb_response_beta_logit,
    NULL,
};

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
