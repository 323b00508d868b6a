/* Normal responses: y ~ N(eta, sigma^2 / w), sigma known or sampled as
 * s = log sigma. With e = y - eta and p = w / sigma^2,
 *
 *   l = -p e^2 / 2 - s + log(w) / 2 - log(2 pi) / 2
 *   dl/deta = p e               -d2l/deta2  = p
 *   dl/ds   = p e^2 - 1         -d2l/deta ds = 2 p e
 *                               -d2l/ds2     = 2 p e^2 = 2 (dl/ds + 1)
 *
 * of which the last is 2 on average, the information of log sigma.
 *
 *   symbol   variable
 *   1/sigma^2  p_point->scale */
#include "base/clip.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>
#include <string.h>

enum { TILE = 64 };

#define HALF_LOG_TAU 0.91893853320467274178

static const struct tb_response_aux gaussian_aux = {
    .name = "sigma",
    .coordinate = "log_sigma",
    .lower = 0,
    .information = 2,
};

static size_t gaussian_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

static void gaussian_prepare(const double* v_aux,
                             struct tb_response_point* p_point) {
  const bool is_sampled = p_point->v_is_sampled[0];
  const double aux = v_aux[0];
  const double log_sigma = is_sampled ? aux : log(aux);
  p_point->aux = is_sampled ? exp(aux) : aux;
  p_point->log_aux = log_sigma;
  p_point->scale = is_sampled ? exp(-2 * aux) : 1 / (aux * aux);
  p_point->log_base = is_sampled ? -log_sigma : 0;
  p_point->log_norm = -HALF_LOG_TAU - log_sigma;
}

/* w / sigma^2 and dl/deta of n rows, TILE at most */
static void gaussian_scores(const struct tb_response_rows* p_rows,
                            size_t first,
                            size_t n,
                            double* v_precision,
                            double* v_score) {
  const double scale = p_rows->p_point->scale;
  const double* v_y = p_rows->v_y + first;
  const double* v_eta = p_rows->v_eta + first;
  for (size_t k = 0; k < n; ++k) {
    v_precision[k] = scale * tb_response_weight(p_rows, first + k);
    v_score[k] = v_precision[k] * (v_y[k] - v_eta[k]);
  }
}

/* No clones: fused multiply-adds would round otherwise on other processors,
 * and nothing here is slow. */
static void gaussian_evaluate(const struct tb_response_rows* p_rows,
                              const struct tb_response_out* p_out) {
  const struct tb_response_point* p = p_rows->p_point;
  const double base = p_out->is_complete ? p->log_norm : p->log_base;
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    const size_t n = tb_min(TILE, p_rows->n_row - first);
    const double* v_y = p_rows->v_y + first;
    const double* v_eta = p_rows->v_eta + first;
    double v_precision[TILE], v_r[TILE];
    gaussian_scores(p_rows, first, n, v_precision, v_r);
    if (p_out->v_score != NULL) {
      memcpy(p_out->v_score + first, v_r, n * sizeof(double));
    }
    if (p_out->v_curvature != NULL) {
      memcpy(p_out->v_curvature + first, v_precision, n * sizeof(double));
    }
    for (size_t k = 0; p_out->v_log_density != NULL && k < n; ++k) {
      const double e = v_y[k] - v_eta[k];
      const double w = tb_response_weight(p_rows, first + k);
      p_out->v_log_density[first + k] = -0.5 * v_precision[k] * e * e + base;
      if (p_out->is_complete && w != 1) {
        p_out->v_log_density[first + k] += 0.5 * log(w);
      }
    }
    for (size_t k = 0; p_out->v_aux_score != NULL && k < n; ++k) {
      p_out->v_aux_score[first + k] = v_r[k] * (v_y[k] - v_eta[k]) - 1;
    }
    for (size_t k = 0; p_out->v_cross != NULL && k < n; ++k) {
      p_out->v_cross[first + k] = 2 * v_r[k];
    }
    for (size_t k = 0; p_out->v_aux_curvature != NULL && k < n; ++k) {
      const double t = v_r[k] * (v_y[k] - v_eta[k]) - 1;
      p_out->v_aux_curvature[first + k] = 2 * t;
    }
  }
}

/* How e^{-2s}, which all rows have in common, changes with s is left out. */
static void gaussian_bound(const struct tb_response_rows* p_rows,
                           const double* v_reach,
                           const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double precision =
        p_rows->p_point->scale * tb_response_weight(p_rows, k);
    const double e = p_rows->v_y[k] - p_rows->v_eta[k];
    const double r = fabs(precision * e) + precision * v_reach[k];
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = precision;
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[k] = 2 * r;
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[k] = precision > 0 ? 2 * r * r / precision : 0;
    }
  }
}

static void gaussian_third_bound(const struct tb_response_rows* p_rows,
                                 const double* v_reach,
                                 double* v_out) {
  (void)v_reach;
  memset(v_out, 0, p_rows->n_row * sizeof(double));
}

/* quadratic */
static void gaussian_remainder(const struct tb_response_rows* p_rows,
                               const double* v_t,
                               double* v_out) {
  (void)v_t;
  memset(v_out, 0, p_rows->n_row * sizeof(double));
}

static void gaussian_variance(const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  (void)v_mean;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = 1 / (p_point->scale * (v_weight == NULL ? 1 : v_weight[k]));
  }
}

static void gaussian_deviance(const double* v_y,
                              const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    const double e = v_y[k] - v_mean[k];
    v_out[k] = (v_weight == NULL ? 1 : v_weight[k]) * e * e;
  }
}

const struct tb_response_type tb_response_gaussian = {
    .name = "gaussian",
    .link = "identity",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .flags = TB_RESPONSE_PRECISION | TB_RESPONSE_DISPERSION,
    .v_aux = &gaussian_aux,
    .n_aux = 1,
    .outside = gaussian_outside,
    .evaluate = gaussian_evaluate,
    .mean = tb_response_same_mean,
    .variance = gaussian_variance,
    .deviance = gaussian_deviance,
    .prepare = gaussian_prepare,
    .bound = gaussian_bound,
    .third_bound = gaussian_third_bound,
    .remainder = gaussian_remainder,
};
