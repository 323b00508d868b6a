/* The prior of the standard deviations and correlations of groups' effects.
 *
 * It is one of the covariance of u, Sigma = F F^T, F = A Lambda:
 *
 *   p(Sigma) = prod_a p(sigma_a) sigma_a^-q LKJ(eta) of the correlations,
 *
 * LKJ(eta) = |R|^(eta - 1) (Lewandowski, Kurowicka & Joe 2009, J. Multivariate
 * Analysis 100:1989), sigma_a^2 = s_a = sum_c F_ac^2. A is constant, so that
 * the volume of Sigma in lambda is that of Lambda Lambda^T,
 *
 *   prod_a e^((q + 1) tau_a) prod_ab sech(zeta_ab)^(q - b + 1), b = 1, 2, ...
 *
 * and, |Sigma| being |A|^2 prod e^(2 tau_a) prod sech(zeta_ab)^2,
 *
 *   log p(lambda) = sum_a log p(sigma_a) - (q + 2 (eta - 1)) log sigma_a
 *                   + (q + 1 + 2 (eta - 1)) tau_a
 *                   + sum_ab (q - b + 1 + 2 (eta - 1)) log sech(zeta_ab) +
 * const.
 *
 * Effects that are not correlated are q times q = 1. An effect after which no
 * other has a share in A has s_a = A_aa^2 e^(2 tau_a), whatever zeta. */
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

/* what log sigma_a and tau_a are times */
static double on_log(const struct groups* p) {
  return p->is_correlated ? (double)p->n_effect + 2 * (p->covariance.eta - 1)
                          : 1;
}

/* log p(sigma_a) - on_log log sigma_a in s; log_sigma: of s */
static struct of_square
of_sd(const struct groups* p, size_t a, double s, double log_sigma) {
  struct of_square f =
      log_prior_of(&p->covariance, p->covariance.v_scale[a], s);
  const double on = on_log(p);
  f.value -= on * log_sigma;
  f.first -= 0.5 * on / s;
  f.second += 0.5 * on / (s * s);
  return f;
}

/* Is s_a a function of tau_a alone? */
static bool is_alone(const struct groups* p, size_t a) {
  bool is = true;
  for (size_t b = a + 1; b < p->n_effect; ++b) {
    is = is && p->back[a][b] == 0;
  }
  return is;
}

static double alone_prior(const struct groups* p,
                          const double* v_theta,
                          size_t a,
                          double* v_gradient,
                          double* v_hessian,
                          size_t n_dim) {
  const size_t at = p->n_coef + p->at[a][a];
  const double tau = v_theta[at], unit = p->back[a][a];
  const double s = unit * unit * exp(2 * tau);
  const struct of_square f = of_sd(p, a, s, log(unit) + tau);
  v_gradient[at] += on_log(p) + 1 + 2 * s * f.first;
  if (v_hessian != NULL) {
    v_hessian[at * n_dim + at] -= 2 * s * (2 * s) * f.second + 4 * s * f.first;
  }
  return (on_log(p) + 1) * tau + f.value;
}

/* Of the effects that are not alone: the gradient in Lambda, v_slope
 * (n_lambda), and the Hessian there, v_bend (n_lambda x n_lambda). */
static double mixed_prior(const struct groups* p,
                          const struct groups_point* p_point,
                          double* v_slope,
                          double* v_bend) {
  const size_t m = p->n_lambda;
  double factor[GROUPS_EFFECT][GROUPS_EFFECT], sum = 0;
  groups_whole_factor(p, p_point, factor);
  for (size_t a = 0; a < p->n_effect; ++a) {
    if (is_alone(p, a)) {
      continue;
    }
    double s = 0, v_first[GROUPS_LAMBDA];
    for (size_t c = 0; c < p->n_effect; ++c) {
      s += factor[a][c] * factor[a][c];
    }
    const struct of_square f = of_sd(p, a, s, 0.5 * log(s));
    for (size_t l = 0; l < m; ++l) {
      v_first[l] = 2 * p->back[a][p->v_a[l]] * factor[a][p->v_b[l]];
      v_slope[l] += f.first * v_first[l];
    }
    for (size_t l = 0; l < m; ++l) {
      for (size_t k = 0; k < m; ++k) {
        const double second =
            p->v_b[l] == p->v_b[k]
                ? 2 * p->back[a][p->v_a[l]] * p->back[a][p->v_a[k]]
                : 0;
        v_bend[l * m + k] +=
            f.second * v_first[l] * v_first[k] + f.first * second;
      }
    }
    sum +=
        f.value + (on_log(p) + 1) * p_point->v_theta[p->n_coef + p->at[a][a]];
  }
  return sum;
}

/* The same in lambda, ADDED. */
static void pull_mixed(const struct groups* p,
                       const struct groups_point* p_point,
                       double* v_slope,
                       double* v_bend,
                       double* v_gradient,
                       double* v_hessian,
                       size_t n_dim) {
  const size_t m = p->n_lambda, first = p->n_coef;
  for (size_t l = 0; l < m; ++l) {
    groups_pull(p, p_point, v_bend + l * m, 1);
  }
  for (size_t l = 0; l < m; ++l) {
    groups_pull(p, p_point, v_bend + l, m);
  }
  if (v_hessian != NULL) {
    double* v_here = v_hessian + first * n_dim + first;
    groups_bend(p, p_point, v_slope, v_here, n_dim);
    for (size_t l = 0; l < m; ++l) {
      for (size_t k = 0; k < m; ++k) {
        v_here[l * n_dim + k] -= v_bend[l * m + k];
      }
    }
  }
  groups_pull(p, p_point, v_slope, 1);
  for (size_t l = 0; l < m; ++l) {
    v_gradient[first + l] += v_slope[l];
  }
  for (size_t a = 0; a < p->n_effect; ++a) {
    if (!is_alone(p, a)) {
      v_gradient[first + p->at[a][a]] += on_log(p) + 1;
    }
  }
}

/* n log sech(zeta) */
static double
zeta_prior(double n, double zeta, double* p_gradient, double* p_hessian) {
  const double size = fabs(zeta), along = tanh(zeta);
  *p_gradient -= n * along;
  if (p_hessian != NULL) {
    *p_hessian += n * (1 - along * along);
  }
  return n * (0.69314718055994530942 - size - log1p(exp(-2 * size)));
}

double groups_covariance_prior(const struct groups* p,
                               const double* v_theta,
                               double* v_gradient,
                               double* v_hessian,
                               size_t n_dim) {
  const double more = 2 * (p->covariance.eta - 1);
  bool is_mixed = false;
  double sum = 0;
  for (size_t a = 0; a < p->n_effect; ++a) {
    if (is_alone(p, a)) {
      sum += alone_prior(p, v_theta, a, v_gradient, v_hessian, n_dim);
    } else {
      is_mixed = true;
    }
  }
  for (size_t l = p->n_effect; l < p->n_lambda; ++l) {
    const size_t at = p->n_coef + l;
    sum += zeta_prior((double)(p->n_effect - p->v_b[l]) + more,
                      v_theta[at],
                      v_gradient + at,
                      v_hessian == NULL ? NULL : v_hessian + at * n_dim + at);
  }
  if (is_mixed) {
    double v_slope[GROUPS_LAMBDA] = {0};
    double v_bend[GROUPS_LAMBDA * GROUPS_LAMBDA] = {0};
    struct groups_point point = {.v_theta = v_theta};
    groups_set_factor(p, &point);
    sum += mixed_prior(p, &point, v_slope, v_bend);
    pull_mixed(p, &point, v_slope, v_bend, v_gradient, v_hessian, n_dim);
  }
  return sum;
}
