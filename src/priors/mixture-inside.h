/* What members of mixtures share. Densities are of x, the logarithm of a
 * positive u, Jacobian included, without their constants. */
#ifndef TB_PRIORS_MIXTURE_INSIDE_H
#define TB_PRIORS_MIXTURE_INSIDE_H

#include "base/rng.h"
#include "priors/mixture-type.h"

#include <math.h>

/* z_j = (beta_j - m_j) / s_j */
static inline double standardised(const struct tb_mixture* p_mixture,
                                  const double* v_beta,
                                  size_t j) {
  return (v_beta[j] - p_mixture->v_location[j]) / p_mixture->v_scale[j];
}

/* Is e^x so far out that its powers are no numbers? Slices end there: of a
 * coefficient that is exactly 0 a scale has no law. */
static inline bool is_beyond(double x) {
  return !(fabs(x) < 150);
}

/* log(1 + e^x) and log(e^x + e^y) */
static inline double log_one_plus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static inline double log_sum(double x, double y) {
  const double high = x > y ? x : y, low = x > y ? y : x;
  return low == -INFINITY ? high : high + log1p(exp(low - high));
}

/* u ~ half Student(df, 0, 1), half normal where df is infinite */
static inline double log_half_student(double x, double df) {
  return isinf(df) ? x - 0.5 * exp(2 * x)
                   : x - 0.5 * (df + 1) * log_one_plus(2 * x - log(df));
}
static inline double slope_half_student(double x, double df) {
  return isinf(df) ? 1 - exp(2 * x) : 1 - (df + 1) / (1 + df * exp(-2 * x));
}

/* u^2 ~ inverse gamma(df / 2, df / 2) */
static inline double log_inverse_chi(double x, double df) {
  return -df * x - 0.5 * df * exp(-2 * x);
}
static inline double slope_inverse_chi(double x, double df) {
  return -df + df * exp(-2 * x);
}

/* the logarithm of a gamma(shape, 1), which may itself be too small */
static inline double simulate_log_gamma(double shape, struct tb_rng* p_rng) {
  return shape < 1 ? log(tb_rng_gamma(p_rng, shape + 1)) +
                         log(tb_rng_unif(p_rng)) / shape
                   : log(tb_rng_gamma(p_rng, shape));
}

static inline double simulate_inverse_chi(double df, struct tb_rng* p_rng) {
  return -0.5 * (simulate_log_gamma(0.5 * df, p_rng) - log(0.5 * df));
}

static inline double simulate_half_student(double df, struct tb_rng* p_rng) {
  const double x = log(fabs(tb_rng_norm(p_rng)));
  return isinf(df) ? x : x + simulate_inverse_chi(df, p_rng);
}

/* `is_valid` of a member without arguments */
static inline bool has_no_argument(const struct tb_mixture* p_mixture) {
  (void)p_mixture;
  return true;
}

/* P where 1 / P_j = s_j^2 u_j^2 and phi is log u */
static inline void precision_of_locals(const struct tb_mixture* p_mixture,
                                       const double* v_phi,
                                       double* v_precision) {
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double s = p_mixture->v_scale[j];
    v_precision[j] = exp(-2 * v_phi[j]) / (s * s);
  }
}

/* x of phi where each is a logarithm */
static inline void natural_of_logarithms(const struct tb_mixture* p_mixture,
                                         const double* v_phi,
                                         double* v_natural) {
  for (size_t k = 0; k < p_mixture->n_hyper; ++k) {
    v_natural[k] = exp(v_phi[k]);
  }
}

#endif
