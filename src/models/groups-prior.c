/* The prior of the standard deviations and correlations of groups' effects.
 *
 * With sigma_a^2 = sum_b Lambda_ab^2 and L the Cholesky factor of the
 * correlations, Lambda = diag(sigma) L, LKJ(eta) is prod_a L_aa^(q - a + 2 (eta
 * - 1)), a = 2 .. q (Lewandowski, Kurowicka & Joe 2009, J. Multivariate
 * Analysis 100:1989), and the volume of (sigma_a, L_a.) in (lambda_aa,
 * Lambda_ab) is L_aa Lambda_aa / sigma_a^(a - 1), so that
 *
 *   log p(lambda) = sum_a (q - a + 2 eta) lambda_aa
 *                   - (q + 2 (eta - 1)) log sigma_a + log p(sigma_a) + const
 *
 * where eta - 1 is 0 for a = 1, whose two terms in it cancel. Effects that are
 * not correlated are q times q = 1: lambda_aa + log p(sigma_a).
 *
 * All but the first term depends on s = sigma_a^2 alone, with F(s) and its two
 * derivatives: that of Lambda_ab is 2 Lambda_ab F'. */
#include "models/groups.h"

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

/* The row a of Lambda: its entries and their numbers among lambda. */
static size_t row_of(const struct groups* p,
                     const double* v_theta,
                     size_t a,
                     size_t* v_at,
                     double* v_entry) {
  size_t n = 0;
  for (size_t l = 0; l < p->n_lambda; ++l) {
    if (p->v_a[l] == a) {
      const double value = v_theta[p->n_coef + l];
      v_at[n] = p->n_coef + l;
      v_entry[n++] = p->v_b[l] == a ? exp(value) : value;
    }
  }
  return n;
}

/* the first of a row is the diagonal's */
static double row_prior(const struct groups* p,
                        const double* v_theta,
                        size_t a,
                        double* v_gradient,
                        double* v_hessian,
                        size_t n_dim) {
  const struct groups_covariance* p_prior = &p->covariance;
  const bool is_correlated = p->n_lambda > p->n_effect;
  const double q = is_correlated ? (double)p->n_effect : 1;
  const double more = is_correlated ? 2 * (p_prior->eta - 1) : 0;
  const double on_diagonal = is_correlated ? q - (double)(a + 1) + 2 + more : 2;
  const double on_log = q + more;
  size_t v_at[GROUPS_EFFECT];
  double v_entry[GROUPS_EFFECT], s = 0;
  const size_t n = row_of(p, v_theta, a, v_at, v_entry);
  for (size_t k = 0; k < n; ++k) {
    s += v_entry[k] * v_entry[k];
  }
  struct of_square f = log_prior_of(p_prior, p_prior->v_scale[a], s);
  f.value -= 0.5 * on_log * log(s);
  f.first -= 0.5 * on_log / s;
  f.second += 0.5 * on_log / (s * s);
  v_gradient[v_at[0]] += on_diagonal;
  for (size_t k = 0; k < n; ++k) {
    const double slope_k = k == 0 ? v_entry[0] : 1;
    const double g = 2 * v_entry[k] * f.first * slope_k;
    v_gradient[v_at[k]] += g;
    for (size_t i = 0; v_hessian != NULL && i < n; ++i) {
      const double slope_i = i == 0 ? v_entry[0] : 1;
      double second = 4 * v_entry[k] * v_entry[i] * f.second;
      second += k == i ? 2 * f.first : 0;
      v_hessian[v_at[k] * n_dim + v_at[i]] -= second * slope_k * slope_i;
    }
    if (v_hessian != NULL && k == 0) {
      v_hessian[v_at[0] * n_dim + v_at[0]] -= g;
    }
  }
  return on_diagonal * v_theta[v_at[0]] + f.value;
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
