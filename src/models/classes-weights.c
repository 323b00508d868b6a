/* Regressions with classes: unnormalised subsampling weights of rows; see
 * classes.c. A row acts through some numbers z, each with log odds o and a
 * posterior sd: the predictors of unordered classes, with the odds of their
 * class, and the distances of eta from the thresholds about an ordered one,
 * with those of lying beyond (1.7 times a distance, for a normal law). With
 * b(o) = p (1 - p), p = 1 / (1 + e^-o), their curvature up to what is between
 * them,
 *
 *   leverage  sum b(o) sd^2,  robust  sum sup b sd^2,  cubic  sum sup b sd^3,
 *
 * the supremum over z within TB_WEIGHT_REACH sds. None of these is a bound: the
 * estimates are unbiased with any weights, and a pilot says how large they must
 * be.
 *
 *   symbol    variable   shape          owner
 *   Sigma     v_sigma    n_dim x n_dim  caller
 *   dz/dtheta v_along    n_dim          scratch
 */
#include "models/classes.h"

#include <math.h>
#include <string.h>

#define NORMAL_SCALE 1.7

/* the largest p (1 - p) within `reach` of log odds o */
static double curvature_near(double o, double reach) {
  const double nearest = fmax(fabs(o) - reach, 0), e = exp(-nearest);
  return e / ((1 + e) * (1 + e));
}

static double term(enum tb_weight_type type, double o, double sd) {
  const double reach = type == TB_WEIGHT_leverage ? 0 : TB_WEIGHT_REACH * sd;
  const double b = curvature_near(o, reach);
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

static enum tb_status gradient_norms(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     double* v_out) {
  const enum tb_status status =
      p_model->type
          ->square_norms(p_model, p_work, v_theta, p_batch, NULL, v_out, NULL);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    v_out[k] = sqrt(v_out[k]);
  }
  return status;
}

enum tb_status classes_weights(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               enum tb_weight_type type,
                               const double* v_theta,
                               const double* v_sigma,
                               const struct tb_batch* p_batch,
                               double* v_out) {
  const struct classes* p = p_model->p_self;
  const size_t n = p->n_coef, n_dim = p_model->n_dim;
  if (type == TB_WEIGHT_gradient) {
    return gradient_norms(p_model, p_work, v_theta, p_batch, v_out);
  }
  if (type == TB_WEIGHT_hessian || type == TB_WEIGHT_lipschitz) {
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
    const struct classes_out out = {0};
    classes_look(p, v_theta, p_batch, b, n_row, &s, &out);
    for (size_t i = 0; i < n_row; ++i) {
      const size_t row = classes_row(p_batch, b + i);
      const double* v_x = s.v_x + i * n;
      for (size_t j = 0; p->head->is_ordered && j < n; ++j) {
        s.v_along[j] = -v_x[j];
      }
      const double weight = p->head->is_ordered
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
      v_out[b + i] = weight * (p->v_weight == NULL ? 1 : p->v_weight[row]);
    }
  }
  return TB_STATUS_ok;
}
