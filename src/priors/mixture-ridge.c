/* One scale t for all coefficients: 1 / P_j = s_j^2 t^2, t ~ half Student(n, 0,
 * a) (Gelman 2006, Bayesian Analysis 1:515), half normal where n is infinite,
 * or exponential with mean a (Simpson et al. 2017, Statistical Science 32:1).
 * phi is log t. */
#include "base/slice.h"
#include "priors/mixture-inside.h"

enum { DF, SCALE, LAW, N_ARGUMENT };
enum { LAW_half_student = 1, LAW_exponential = 2 };

static bool ridge_is_valid(const struct tb_mixture* p_mixture) {
  const double* v = p_mixture->v_argument;
  return v[DF] > 0 && v[SCALE] > 0 && isfinite(v[SCALE]) &&
         (v[LAW] == LAW_half_student || v[LAW] == LAW_exponential);
}

static bool is_exponential(const struct tb_mixture* p_mixture) {
  return p_mixture->v_argument[LAW] == LAW_exponential;
}

/* log(t / a) */
static double ridge_log_ratio(const struct tb_mixture* p_mixture, double phi) {
  return phi - log(p_mixture->v_argument[SCALE]);
}

static double ridge_log_prior(const struct tb_mixture* p_mixture,
                              const double* v_phi) {
  const double x = ridge_log_ratio(p_mixture, *v_phi);
  return is_exponential(p_mixture)
             ? x - exp(x)
             : log_half_student(x, p_mixture->v_argument[DF]);
}

static void ridge_precision(const struct tb_mixture* p_mixture,
                            const double* v_phi,
                            double* v_precision) {
  const double shared = exp(-2 * *v_phi);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double s = p_mixture->v_scale[j];
    v_precision[j] = shared / (s * s);
  }
}

static double ridge_sum_of_squares(const struct tb_mixture* p_mixture,
                                   const double* v_beta) {
  double sum = 0;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    sum += z * z;
  }
  return sum;
}

static void ridge_gradient(const struct tb_mixture* p_mixture,
                           const double* v_beta,
                           const double* v_phi,
                           double* v_gradient_phi) {
  const double x = ridge_log_ratio(p_mixture, *v_phi);
  const double slope = is_exponential(p_mixture)
                           ? 1 - exp(x)
                           : slope_half_student(x, p_mixture->v_argument[DF]);
  *v_gradient_phi = slope - (double)p_mixture->n_coef +
                    exp(-2 * *v_phi) * ridge_sum_of_squares(p_mixture, v_beta);
}

struct ridge_given {
  const struct tb_mixture* p_mixture;
  double sum; /* of the z_j^2 */
};

static double ridge_conditional(const void* p_context, double phi) {
  const struct ridge_given* p = p_context;
  if (is_beyond(phi)) {
    return -INFINITY;
  }
  return ridge_log_prior(p->p_mixture, &phi) -
         (double)p->p_mixture->n_coef * phi - 0.5 * p->sum * exp(-2 * phi);
}

static void ridge_draw(const struct tb_mixture* p_mixture,
                       const double* v_beta,
                       double* v_phi,
                       double* v_work,
                       struct tb_rng* p_rng) {
  (void)v_work;
  const struct ridge_given given = {p_mixture,
                                    ridge_sum_of_squares(p_mixture, v_beta)};
  /* some standard deviations of log t given n_coef squares, or of its prior */
  const double width = 3 / sqrt(1 + (double)p_mixture->n_coef);
  *v_phi = tb_slice_step(ridge_conditional, &given, *v_phi, width, p_rng);
}

static void ridge_simulate(const struct tb_mixture* p_mixture,
                           double* v_phi,
                           struct tb_rng* p_rng) {
  *v_phi = log(p_mixture->v_argument[SCALE]) +
           (is_exponential(p_mixture)
                ? simulate_log_gamma(1, p_rng)
                : simulate_half_student(p_mixture->v_argument[DF], p_rng));
}

const struct tb_mixture_type tb_mixture_ridge = {
    .name = "ridge",
    .n_shared = 1,
    .n_argument = N_ARGUMENT,
    .is_valid = ridge_is_valid,
    .log_prior = ridge_log_prior,
    .precision = ridge_precision,
    .gradient = ridge_gradient,
    .draw = ridge_draw,
    .simulate = ridge_simulate,
    .natural = natural_of_logarithms,
};
