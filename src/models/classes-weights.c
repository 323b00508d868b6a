/* Regressions with classes: unnormalised subsampling weights of rows; see
 * classes.c. A row acts through some numbers z, each with log odds o and a
 * posterior sd: the predictors of unordered classes, with the odds of their
 * class, and the distances of eta from the thresholds about an ordered one,
 * with those of lying beyond (1.7 times a distance, for a normal law). With
 * b(o) = p (1 - p), p = 1 / (1 + e^-o), their curvature up to what is between
 * them,
 *
 *   robust  sum sup b sd^2, or the leverage where that is more,
 *   cubic   sum sup b sd^3,
 *
 * the supremum over z within TB_WEIGHT_REACH sds. None of these is a bound: the
 * estimates are unbiased with any weights, and a pilot says how large they must
 * be.
 *
 *   symbol    variable   shape          owner
 *   Sigma     v_sigma    n_dim x n_dim  caller
 *   dz/dtheta v_along    n_dim          scratch
 */
#include "models/classes-inside.h"

#include <math.h>
#include <string.h>

#define NORMAL_SCALE 1.7

/* the largest p (1 - p) within `reach` of log odds o */
static double curvature_near(double o, double reach) {
  const double nearest = fmax(fabs(o) - reach, 0), e = exp(-nearest);
  return e / ((1 + e) * (1 + e));
}

static double term(enum tb_weight_type type, double o, double sd) {
  const double b = curvature_near(o, TB_WEIGHT_REACH * sd);
  return b * sd * sd * (type == TB_WEIGHT_cubic ? sd : 1);
}

/* v' Sigma v of n numbers, rows and columns n_lead apart */
static double
quadratic(const double* v_sigma, size_t n_lead, const double* v, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    double own = 0;
    for (size_t i = 0; i < n; ++i) {
      own += v_sigma[j * n_lead + i] * v[i];
    }
    sum += own * v[j];
  }
  return sum;
}

static double softmax_weight(const struct classes* p,
                             enum tb_weight_type type,
                             const double* v_sigma,
                             size_t n_dim,
                             const double* v_x,
                             const double* v_eta) {
  const size_t n = p->n_coef;
  double largest = 0, norm, sum = 0;
  for (size_t k = 0; k < p->n_eta; ++k) {
    largest = fmax(largest, v_eta[k]);
  }
  norm = exp(-largest);
  for (size_t k = 0; k < p->n_eta; ++k) {
    norm += exp(v_eta[k] - largest);
  }
  for (size_t k = 0; k < p->n_eta; ++k) {
    const double own = exp(v_eta[k] - largest);
    const double o = v_eta[k] - largest - log(fmax(norm - own, 1e-300));
    const double q = quadratic(v_sigma + k * n * (n_dim + 1), n_dim, v_x, n);
    sum += term(type, o, sqrt(fmax(q, 0)));
  }
  return sum;
}

/* v_along: n_dim; the predictor's part is there. v_cut, v_shared: K - 1. */
static double ordered_weight(const struct classes* p,
                             enum tb_weight_type type,
                             const double* v_sigma,
                             size_t y,
                             double eta,
                             const double* v_cut,
                             const double* v_shared,
                             double* v_along) {
  const size_t n_cut = p->n_class - 1, n_dim = p->n_coef + n_cut;
  const double scale = p->head == &classes_cumulative_logit ? 1 : NORMAL_SCALE;
  double sum = 0;
  for (size_t end = 0; end < 2; ++end) {
    /* thresholds below and above, from 0 */
    if (end == 0 ? y == 0 : y >= n_cut) {
      continue;
    }
    const size_t cut = y - 1 + end;
    for (size_t k = 0; k < n_cut; ++k) {
      const double step = k == 0 ? 1 : exp(v_shared[k]);
      v_along[p->n_coef + k] = k <= cut ? step : 0;
    }
    const double q = quadratic(v_sigma, n_dim, v_along, n_dim);
    sum += term(type, scale * (v_cut[cut] - eta), scale * sqrt(fmax(q, 0)));
  }
  return sum;
}

/* z' Sigma z' of inner coordinates k and m of a row: blocks of Sigma in what
 * they act through */
static double inner_product(const struct classes* p,
                            const double* v_sigma,
                            const double* v_x,
                            size_t k,
                            size_t m) {
  const size_t n = p->n_coef, n_dim = p->n_eta * n + p->n_shared;
  const bool is_k = k < p->n_eta, is_m = m < p->n_eta;
  const size_t first_k = is_k ? k * n : p->n_eta * (n - 1) + k;
  const size_t first_m = is_m ? m * n : p->n_eta * (n - 1) + m;
  double sum = 0;
  for (size_t j = 0; j < (is_m ? n : 1); ++j) {
    double own = 0;
    for (size_t i = 0; i < (is_k ? n : 1); ++i) {
      own += v_sigma[(first_m + j) * n_dim + first_k + i] * (is_k ? v_x[i] : 1);
    }
    sum += own * (is_m ? v_x[j] : 1);
  }
  return sum;
}

/* ||L^{-1} H_i L^{-T}||_F, the root of tr(h M h M), M = z' Sigma z'; v_m, v_hm:
 * n_inner x n_inner each */
static double leverage(const struct classes* p,
                       const double* v_sigma,
                       const double* v_x,
                       const double* v_bend,
                       double* v_m,
                       double* v_hm) {
  const size_t n = p->n_inner;
  for (size_t k = 0; k < n; ++k) {
    for (size_t m = 0; m <= k; ++m) {
      v_m[k * n + m] = v_m[m * n + k] = inner_product(p, v_sigma, v_x, k, m);
    }
  }
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    for (size_t m = 0; m < n; ++m) {
      v_hm[k * n + m] = 0;
      for (size_t l = 0; l < n; ++l) {
        v_hm[k * n + m] += v_bend[k * n + l] * v_m[l * n + m];
      }
    }
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t m = 0; m < n; ++m) {
      sum += v_hm[k * n + m] * v_hm[m * n + k];
    }
  }
  return sqrt(fmax(sum, 0));
}

enum tb_status classes_weights(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               enum tb_weight_type type,
                               const double* v_theta,
                               const double* v_sigma,
                               const struct tb_batch* p_batch,
                               double* v_out) {
  const struct classes* p = p_model->p_self;
  const size_t n = p->n_coef, n_dim = p_model->n_dim, n_inner = p->n_inner;
  if (type != TB_WEIGHT_robust && type != TB_WEIGHT_cubic) {
    return TB_STATUS_unsupported;
  }
  const struct classes_scratch s =
      classes_scratch_at(p, p_work->p_scratch, false);
  const double* v_shared = classes_shared(p, v_theta);
  double v_cut[CLASSES_MOST];
  if (p->head->is_ordered) {
    classes_thresholds(p->n_class, v_shared, v_cut);
  }
  for (size_t b = 0; b < p_batch->n_batch; b += CLASSES_BLOCK) {
    const size_t n_row = classes_gather(p, p_batch, b, &s);
    const bool is_robust = type == TB_WEIGHT_robust;
    const struct classes_out out = {.v_bend = is_robust ? s.v_bend : NULL};
    classes_look(p, v_theta, p_batch, b, n_row, &s, &out);
    for (size_t i = 0; i < n_row; ++i) {
      const size_t row = tb_batch_row(p_batch, b + i);
      const double* v_x = s.v_x + i * n;
      for (size_t j = 0; p->head->is_ordered && j < n; ++j) {
        s.v_along[j] = -v_x[j];
      }
      double weight = p->head->is_ordered
                          ? ordered_weight(p,
                                           type,
                                           v_sigma,
                                           (size_t)p->v_class[row],
                                           s.v_eta[i],
                                           v_cut,
                                           v_shared,
                                           s.v_along)
                          : softmax_weight(p,
                                           type,
                                           v_sigma,
                                           n_dim,
                                           v_x,
                                           s.v_eta + i * p->n_eta);
      if (is_robust) {
        const double own = leverage(p,
                                    v_sigma,
                                    v_x,
                                    s.v_bend + i * n_inner * n_inner,
                                    s.v_work,
                                    s.v_work + n_inner * n_inner);
        weight = fmax(weight, own);
      }
      v_out[b + i] = weight * (p->v_weight == NULL ? 1 : p->v_weight[row]);
    }
  }
  return TB_STATUS_ok;
}
