/* The factor Lambda of the covariance of groups' effects as a function of
 * lambda, its derivatives, and what leads back to the effects that are read.
 *
 *   symbol   variable                       shape
 *   tau_a    lambda of Lambda_aa            q, logarithms of sds
 *   zeta_ab  lambda of Lambda_ab, b < a     Fisher's z of partial correlations
 *
 *   Lambda_ab = e^tau_a tanh(zeta_ab) prod_{k < b} sech(zeta_ak),  b < a
 *   Lambda_aa = e^tau_a prod_{k < a} sech(zeta_ak)
 *
 * (canonical partial correlations: Lewandowski, Kurowicka & Joe 2009, J.
 * Multivariate Analysis 100:1989). Where an sd goes to 0 and where a
 * correlation goes to 1 the density falls like an exponential of one
 * coordinate, and of no other. */
#include "models/groups-inside.h"

#include <math.h>

enum { Q = GROUPS_EFFECT };

void groups_set_factor(const struct groups* p, struct groups_point* p_point) {
  const double* v_lambda = p_point->v_theta + p->n_coef;
  for (size_t a = 0; a < p->n_effect; ++a) {
    const size_t first = p->is_correlated ? 0 : a;
    double* v = p_point->v_factor[a];
    double(*slope)[Q] = p_point->slope[a];
    double rest = exp(v_lambda[p->at[a][a]]);
    double v_tanh[Q];
    for (size_t b = first; b < a; ++b) {
      const double zeta = v_lambda[p->at[a][b]];
      const double sech = 1 / cosh(zeta);
      v_tanh[b] = tanh(zeta);
      v[b] = rest * v_tanh[b];
      slope[b][b] = rest * sech * sech;
      rest *= sech;
    }
    v[a] = rest;
    for (size_t b = first; b <= a; ++b) {
      slope[b][a] = v[b];
      for (size_t c = first; c < b; ++c) {
        slope[b][c] = -v_tanh[c] * v[b];
      }
    }
  }
}

void groups_pull(const struct groups* p,
                 const struct groups_point* p_point,
                 double* v,
                 size_t stride) {
  for (size_t a = 0; a < p->n_effect; ++a) {
    const size_t first = p->is_correlated ? 0 : a;
    double v_out[Q];
    for (size_t c = first; c <= a; ++c) {
      v_out[c] = 0;
      for (size_t b = c < a ? c : first; b <= a; ++b) {
        v_out[c] += p_point->slope[a][b][c] * v[p->at[a][b] * stride];
      }
    }
    for (size_t c = first; c <= a; ++c) {
      v[p->at[a][c] * stride] = v_out[c];
    }
  }
}

/* second derivative of Lambda_ab in the lambda of Lambda_ac and Lambda_ad, c <=
 * d */
static double bend_of(const struct groups* p,
                      const struct groups_point* p_point,
                      size_t a,
                      size_t b,
                      size_t c,
                      size_t d) {
  if (d == a) {
    return p_point->slope[a][b][c];
  }
  if (d > b) {
    return 0;
  }
  const double* v_lambda = p_point->v_theta + p->n_coef;
  const double along = tanh(v_lambda[p->at[a][c]]);
  if (c < d) {
    return -along * p_point->slope[a][b][d];
  }
  return d == b ? -2 * along * p_point->slope[a][b][b]
                : p_point->v_factor[a][b] * (2 * along * along - 1);
}

void groups_bend(const struct groups* p,
                 const struct groups_point* p_point,
                 const double* v_gradient,
                 double* v_hessian,
                 size_t n_lead) {
  for (size_t a = 0; a < p->n_effect; ++a) {
    const size_t first = p->is_correlated ? 0 : a;
    for (size_t c = first; c <= a; ++c) {
      for (size_t d = c; d <= a; ++d) {
        const size_t i = p->at[a][c], j = p->at[a][d];
        double sum = 0;
        for (size_t b = first; b <= a; ++b) {
          sum += v_gradient[p->at[a][b]] * bend_of(p, p_point, a, b, c, d);
        }
        v_hessian[i * n_lead + j] -= sum;
        if (i != j) {
          v_hessian[j * n_lead + i] -= sum;
        }
      }
    }
  }
}

void groups_whole_factor(const struct groups* p,
                         const struct groups_point* p_point,
                         double (*factor)[GROUPS_EFFECT]) {
  for (size_t a = 0; a < p->n_effect; ++a) {
    for (size_t c = 0; c < p->n_effect; ++c) {
      factor[a][c] = 0;
      for (size_t b = a > c ? a : c; b < p->n_effect; ++b) {
        factor[a][c] += p->back[a][b] * p_point->v_factor[b][c];
      }
    }
  }
}
