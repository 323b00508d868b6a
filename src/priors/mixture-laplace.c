/* Laplace's density as a scale mixture (Andrews & Mallows 1974, JRSS B 36:99):
 * 1 / P_j = s_j^2 u_j^2, u_j^2 ~ exponential(1/2). */
#include "priors/mixture-inside.h"

static double laplace_log_prior(const struct tb_mixture* p_mixture,
                                const double* v_phi) {
  double sum = 0;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    sum += 2 * v_phi[j] - 0.5 * exp(2 * v_phi[j]);
  }
  return sum;
}

static void laplace_gradient(const struct tb_mixture* p_mixture,
                             const double* v_beta,
                             const double* v_phi,
                             double* v_gradient_phi) {
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    v_gradient_phi[j] = 1 - exp(2 * v_phi[j]) + z * z * exp(-2 * v_phi[j]);
  }
}

/* 1/u^2 | z ~ inverse Gaussian(1/|z|, 1), by Michael, Schucany & Haas (1976),
 * American Statistician 30:88, written for w = u^2 without differences: the
 * roots are w and z^2 / w. */
static double laplace_square(double z, struct tb_rng* p_rng) {
  const double size = fabs(z), normal = tb_rng_norm(p_rng);
  const double y = fmax(normal * normal, 1e-300);
  const double w = size + 0.5 * y + sqrt(y * (0.25 * y + size));
  return tb_rng_unif(p_rng) * (w + size) < w ? w : size * (size / w);
}

static void laplace_draw(const struct tb_mixture* p_mixture,
                         const double* v_beta,
                         double* v_phi,
                         double* v_work,
                         struct tb_rng* p_rng) {
  (void)v_work;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    v_phi[j] = 0.5 * log(laplace_square(z, p_rng));
  }
}

static void laplace_simulate(const struct tb_mixture* p_mixture,
                             double* v_phi,
                             struct tb_rng* p_rng) {
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_phi[j] = 0.5 * log(-2 * log(tb_rng_unif(p_rng)));
  }
}

const struct tb_mixture_type tb_mixture_laplace = {
    .name = "laplace",
    .has_locals = true,
    .is_valid = has_no_argument,
    .log_prior = laplace_log_prior,
    .precision = precision_of_locals,
    .gradient = laplace_gradient,
    .draw = laplace_draw,
    .simulate = laplace_simulate,
    .natural = natural_of_logarithms,
};
