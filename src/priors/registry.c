#include "priors/type.h"

#include <math.h>

extern const struct tb_prior_type tb_prior_flat;
extern const struct tb_prior_type tb_prior_laplace;
extern const struct tb_prior_type tb_prior_log_exponential;
extern const struct tb_prior_type tb_prior_log_flat;
extern const struct tb_prior_type tb_prior_normal;
extern const struct tb_prior_type tb_prior_student;
extern const struct tb_prior_type tb_prior_uniform;
extern const struct tb_prior_type tb_prior_log_gamma;

const struct tb_prior_type* const tb_prior_registry[] = {
    &tb_prior_flat,
    &tb_prior_normal,
    &tb_prior_laplace,
    &tb_prior_log_flat,
    &tb_prior_log_exponential,
    &tb_prior_uniform,
    &tb_prior_student,
    &tb_prior_log_gamma,
    NULL,
};

size_t tb_prior_count(void) {
  return sizeof tb_prior_registry / sizeof tb_prior_registry[0] - 1;
}

const struct tb_prior_type* tb_prior_at_place(double place) {
  const bool is_one =
      place >= 0 && place < (double)tb_prior_count() && place == floor(place);
  return is_one ? tb_prior_registry[(size_t)place] : NULL;
}
