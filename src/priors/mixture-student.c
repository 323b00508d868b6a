/* Student's t as a scale mixture: 1 / P_j = s_j^2 u_j^2, u_j^2 ~ inverse
 * gamma(n_j / 2, n_j / 2), n_j the degrees of freedom. */
#include "priors/mixture-inside.h"

static double student_log_prior(const struct tb_mixture* p_mixture,
                                const double* v_phi) {
  double sum = 0;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    sum += log_inverse_chi(v_phi[j], p_mixture->v_shape[j]);
  }
  return sum;
}

static void student_gradient(const struct tb_mixture* p_mixture,
                             const double* v_beta,
                             const double* v_phi,
                             double* v_gradient_phi) {
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    v_gradient_phi[j] = slope_inverse_chi(v_phi[j], p_mixture->v_shape[j]) - 1 +
                        z * z * exp(-2 * v_phi[j]);
  }
}

/* u^2 | z ~ inverse gamma((n + 1) / 2, (n + z^2) / 2) */
static void student_draw(const struct tb_mixture* p_mixture,
                         const double* v_beta,
                         double* v_phi,
                         double* v_work,
                         struct tb_rng* p_rng) {
  (void)v_work;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    const double df = p_mixture->v_shape[j];
    v_phi[j] = -0.5 * (simulate_log_gamma(0.5 * (df + 1), p_rng) -
                       log(0.5 * (df + z * z)));
  }
}

static void student_simulate(const struct tb_mixture* p_mixture,
                             double* v_phi,
                             struct tb_rng* p_rng) {
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_phi[j] = simulate_inverse_chi(p_mixture->v_shape[j], p_rng);
  }
}

const struct tb_mixture_type tb_mixture_student = {
    .name = "student",
    .has_locals = true,
    .has_shape = true,
    .is_valid = has_no_argument,
    .log_prior = student_log_prior,
    .precision = precision_of_locals,
    .gradient = student_gradient,
    .draw = student_draw,
    .simulate = student_simulate,
    .natural = natural_of_logarithms,
};
