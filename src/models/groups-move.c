/* Moves of the covariance of groups' effects in the coordinates of its prior.
 *
 * The prior is one of the covariance of u, S = A Lambda Lambda^T A^T. Where an
 * sd of u is small, as that of the intercepts where all lines cross there, the
 * posterior is a spike in lambda, the narrower the smaller the sd. In mu, the
 * same functions of S as lambda is of Lambda Lambda^T, it is wide:
 *
 *   mu'_l = mu_l(lambda) + r_l N(0, 1),  log r_l uniform,
 *   q(lambda | lambda') / q(lambda' | lambda) = |dmu/dlambda| /
 * |dmu'/dlambda'|,
 *
 * and |dmu/dlambda| = V(lambda) / V(mu) up to a constant, V the volume of a
 * covariance in such coordinates, see groups-prior.c. */
#include "base/rng.h"
#include "models/groups-inside.h"

#include <math.h>
#include <string.h>

enum { Q = GROUPS_EFFECT };

/* r_l is from one to the other */
#define LEAST 0.01
#define MOST  3.0

/* log V, v_lambda (n_lambda) */
static double log_volume(const struct groups* p, const double* v_lambda) {
  double sum = 0;
  for (size_t a = 0; a < p->n_effect; ++a) {
    sum += (double)(p->n_effect + 1) * v_lambda[p->at[a][a]];
    for (size_t b = 0; b < a; ++b) {
      const double size = fabs(v_lambda[p->at[a][b]]);
      sum -= (double)(p->n_effect - b) * (size + log1p(exp(-2 * size)));
    }
  }
  return sum;
}

/* v_lambda (n_lambda) of the covariance F F^T, by Gram and Schmidt's method;
 * false: it is singular for all that doubles tell */
static bool
lambda_of(const struct groups* p, const double (*F)[Q], double* v_lambda) {
  const size_t q = p->n_effect;
  double axis[Q][Q];
  for (size_t a = 0; a < q; ++a) {
    double square = 0, left;
    for (size_t c = 0; c < q; ++c) {
      axis[a][c] = F[a][c];
      square += F[a][c] * F[a][c];
    }
    v_lambda[p->at[a][a]] = 0.5 * log(square);
    left = square;
    for (size_t b = 0; b < a; ++b) {
      double along = 0;
      for (size_t c = 0; c < q; ++c) {
        along += axis[a][c] * axis[b][c];
      }
      left = 0;
      for (size_t c = 0; c < q; ++c) {
        axis[a][c] -= along * axis[b][c];
        left += axis[a][c] * axis[a][c];
      }
      /* tan of the angle that tanh zeta is the sine of */
      v_lambda[p->at[a][b]] = asinh(along / sqrt(left));
    }
    for (size_t c = 0; c < q; ++c) {
      axis[a][c] /= sqrt(left);
    }
    if (!(left > 0) || !isfinite(square)) {
      return false;
    }
  }
  return true;
}

double groups_move(const struct tb_model* p_model,
                   const struct tb_workspace* p_work,
                   const double* v_theta,
                   struct tb_rng* p_rng,
                   double* v_to) {
  const struct groups* p = p_model->p_self;
  const size_t q = p->n_effect, m = p->n_lambda;
  double* v_lambda = v_to + p->n_coef;
  double factor[Q][Q], own[Q][Q], v_mu[GROUPS_LAMBDA];
  struct groups_point point = {.v_theta = v_theta};
  (void)p_work;
  memcpy(v_to, v_theta, p_model->n_dim * sizeof(double));
  groups_set_factor(p, &point);
  groups_whole_factor(p, &point, factor);
  double v_step[GROUPS_LAMBDA];
  for (size_t l = 0; l < m; ++l) {
    const double r = LEAST * exp(log(MOST / LEAST) * tb_rng_unif(p_rng));
    v_step[l] = r * tb_rng_norm(p_rng);
  }
  if (!lambda_of(p, (const double(*)[Q])factor, v_mu)) {
    return -INFINITY;
  }
  double log_ratio = log_volume(p, v_lambda) - log_volume(p, v_mu);
  for (size_t l = 0; l < m; ++l) {
    v_lambda[l] = v_mu[l] += v_step[l];
  }
  /* back to T^T times the factor there */
  point.v_theta = v_to;
  groups_set_factor(p, &point);
  for (size_t a = 0; a < q; ++a) {
    for (size_t c = 0; c < q; ++c) {
      own[a][c] = 0;
      for (size_t b = a > c ? a : c; b < q; ++b) {
        own[a][c] += p->span[b][a] * point.v_factor[b][c];
      }
    }
  }
  if (!lambda_of(p, (const double(*)[Q])own, v_lambda)) {
    memcpy(v_to, v_theta, p_model->n_dim * sizeof(double));
    return -INFINITY;
  }
  return log_ratio + log_volume(p, v_mu) - log_volume(p, v_lambda);
}
