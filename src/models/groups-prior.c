/* The prior of the standard deviations and correlations of groups' effects.
 *
 * With sigma_a^2 = sum_b Lambda_ab^2 and L the Cholesky factor of the
 * correlations, Lambda = diag(sigma) L, LKJ(eta) is prod_a L_aa^(q - a + 2 (eta
 * - 1)), a = 2 .. q (Lewandowski, Kurowicka & Joe 2009, J. Multivariate
 * Analysis 100:1989). The volume of (sigma_a, L_a.) in (lambda_aa, Lambda_ab)
 * is L_aa Lambda_aa / sigma_a^(a - 1), and that of Lambda_ab = lambda_ab
 * Lambda_aa in lambda_ab is Lambda_aa, so that
 *
 *   log p(lambda) = sum_a (q + 1 + 2 (eta - 1)) lambda_aa
 *                   - (q + 2 (eta - 1)) log sigma_a + log p(sigma_a) + const,
 *
 * whose terms in eta - 1 cancel for a = 1. Effects that are not correlated are
 * q times q = 1. All but the first term depends on
 *
 *   s = sigma_a^2 = E (1 + sum_b w_b^2),  E = Lambda_aa^2,  w_b = lambda_ab
 *
 * alone, with F(s) and its two derivatives. */
#include "models/groups-inside.h"

#include <math.h>

struct of_square {
  double value, first, second;
};

/* log p(sigma), s = sigma^2, in s */
static struct of_square
log_prior_of(const struct groups_covariance* p, double scale, double s) {
  switch (p->kind) {
  case GROUPS_SD_normal:
    return (struct of_square){-0.5 * s / (scale * scale),
                              -0.5 / (scale * scale),
                              0};
  case GROUPS_SD_student: {
    const double wide = p->df * scale * scale, n = 0.5 * (p->df + 1);
    return (struct of_square){-n * log1p(s / wide),
                              -n / (wide + s),
                              n / ((wide + s) * (wide + s))};
  }
  case GROUPS_SD_exponential: {
    const double sigma = sqrt(s);
    return (struct of_square){-sigma / scale,
                              -0.5 / (scale * sigma),
                              0.25 / (scale * sigma * s)};
  }
  case GROUPS_SD_flat:
    break;
  }
  return (struct of_square){0, 0, 0};
}

/* Where the row a of lambda is, the diagonal first, and its w with 1 before. */
static size_t row_of(const struct groups* p,
                     const double* v_theta,
                     size_t a,
                     size_t* v_at,
                     double* v_w) {
  size_t n = 0;
  for (size_t l = 0; l < p->n_lambda; ++l) {
    if (p->v_a[l] == a) {
      v_at[n] = p->n_coef + l;
      v_w[n] = n == 0 ? 1 : v_theta[p->n_coef + l];
      ++n;
    }
  }
  return n;
}

static void add_bends(const struct of_square* p_f,
                      double s,
                      double E,
                      const double* v_w,
                      const size_t* v_at,
                      size_t n,
                      double* v_hessian,
                      size_t n_dim) {
  for (size_t k = 0; k < n; ++k) {
    /* ds/dlambda = 2 s, ds/dw = 2 E w */
    const double first = k == 0 ? 2 * s : 2 * E * v_w[k];
    for (size_t i = 0; i < n; ++i) {
      const double other = i == 0 ? 2 * s : 2 * E * v_w[i];
      double second = k == i ? 2 * E : 0; /* d2s of two w */
      if (k == 0 || i == 0) {
        second = 2 * (k == 0 ? other : first);
      }
      v_hessian[v_at[k] * n_dim + v_at[i]] -=
          first * other * p_f->second + second * p_f->first;
    }
  }
}

static double row_prior(const struct groups* p,
                        const double* v_theta,
                        size_t a,
                        double* v_gradient,
                        double* v_hessian,
                        size_t n_dim) {
  const struct groups_covariance* p_prior = &p->covariance;
  const bool is_correlated = p->n_lambda > p->n_effect;
  const double more = is_correlated ? 2 * (p_prior->eta - 1) : 0;
  const double on_log = (is_correlated ? (double)p->n_effect : 1) + more;
  size_t v_at[GROUPS_EFFECT];
  double v_w[GROUPS_EFFECT], wide = 0;
  const size_t n = row_of(p, v_theta, a, v_at, v_w);
  for (size_t k = 0; k < n; ++k) {
    wide += v_w[k] * v_w[k];
  }
  const double lambda = v_theta[v_at[0]], E = exp(2 * lambda), s = E * wide;
  struct of_square f = log_prior_of(p_prior, p_prior->v_scale[a], s);
  f.value -= on_log * (lambda + 0.5 * log(wide));
  f.first -= 0.5 * on_log / s;
  f.second += 0.5 * on_log / (s * s);
  v_gradient[v_at[0]] += on_log + 1 + 2 * s * f.first;
  for (size_t k = 1; k < n; ++k) {
    v_gradient[v_at[k]] += 2 * E * v_w[k] * f.first;
  }
  if (v_hessian != NULL) {
    add_bends(&f, s, E, v_w, v_at, n, v_hessian, n_dim);
  }
  return (on_log + 1) * lambda + f.value;
}

double groups_covariance_prior(const struct groups* p,
                               const double* v_theta,
                               double* v_gradient,
                               double* v_hessian,
                               size_t n_dim) {
  double sum = 0;
  for (size_t a = 0; a < p->n_effect; ++a) {
    sum += row_prior(p, v_theta, a, v_gradient, v_hessian, n_dim);
  }
  return sum;
}
