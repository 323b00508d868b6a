/* Positive responses, such as durations: gamma with mean mu = e^eta and shape
 * a, variance mu^2 / a, the shape known or sampled as s = log a. With
 * z = log y - eta and m = e^z = y / mu,
 *
 *   l = w [a (1 + z - m) + a s - a - log Gamma(a) - log y]
 *   dl/deta = w a (m - 1)      -d2l/deta2 = |d3l/deta3| = w a m
 *   dl/ds   = w a [z - (m - 1) + s - digamma(a)]
 *   -d2l/deta ds = -dl/deta    -d2l/ds2 = -dl/ds + w a (a trigamma(a) - 1)
 *
 *   symbol                         variable
 *   a                              p_point->aux
 *   a s - a - log Gamma(a)         v_own[OWN_norm]
 *   s - digamma(a)                 v_own[OWN_gap]
 *   a (a trigamma(a) - 1)          v_own[OWN_bend] */
#include "base/gamma.h"
#include "responses/remainder.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

enum { OWN_norm = 0, OWN_gap = 1, OWN_bend = 2 };

extern const struct tb_response_type tb_response_gamma_log;

static const struct tb_response_aux gamma_aux = {
    .name = "shape",
    .coordinate = "log_shape",
    .lower = 0,
    .information = 0,
};

static void gamma_prepare(const double* v_aux,
                          struct tb_response_point* p_point) {
  tb_response_prepare_log(v_aux, p_point);
  const double shape = p_point->aux;
  p_point->v_own[OWN_norm] = tb_log_less_gamma(shape);
  p_point->v_own[OWN_gap] = tb_log_less_digamma(shape);
  p_point->v_own[OWN_bend] = shape * (shape * tb_trigamma(shape) - 1);
}

static double gamma_constant(const struct tb_response_rows* p_rows,
                             size_t k,
                             bool is_complete) {
  const struct tb_response_point* p = p_rows->p_point;
  const double norm =
      is_complete || p->v_is_sampled[0] ? p->v_own[OWN_norm] : 0;
  return norm - (is_complete ? log(p_rows->v_y[k]) : 0);
}

static void gamma_evaluate(const struct tb_response_rows* p_rows,
                           const struct tb_response_out* p_out) {
  const struct tb_response_point* p = p_rows->p_point;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double w = tb_response_weight(p_rows, k), wa = w * p->aux;
    const double z = log(p_rows->v_y[k]) - p_rows->v_eta[k];
    const double rise = expm1(z); /* m - 1 */
    const double aux_score = wa * (z - rise + p->v_own[OWN_gap]);
    if (p_out->v_log_density != NULL) {
      p_out->v_log_density[k] =
          wa * (z - rise) + w * gamma_constant(p_rows, k, p_out->is_complete);
    }
    if (p_out->v_score != NULL) {
      p_out->v_score[k] = wa * rise;
    }
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = wa * exp(z);
    }
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[k] = aux_score;
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[k] = -wa * rise;
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[k] = w * p->v_own[OWN_bend] - aux_score;
    }
  }
}

/* the larger the further left eta is */
static void gamma_third_bound(const struct tb_response_rows* p_rows,
                              const double* v_reach,
                              double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double end = log(p_rows->v_y[k]) - p_rows->v_eta[k] + v_reach[k];
    v_out[k] = end == INFINITY
                   ? INFINITY
                   : tb_response_weight(p_rows, k) * p_rows->p_point->aux *
                         exp(fmin(end, TB_RESPONSE_LARGEST_ETA));
  }
}

static void gamma_bound(const struct tb_response_rows* p_rows,
                        const double* v_reach,
                        const struct tb_response_out* p_out) {
  if (p_out->v_cross != NULL || p_out->v_aux_curvature != NULL) {
    tb_response_widest(&tb_response_gamma_log, p_rows, v_reach, p_out);
  }
  gamma_third_bound(p_rows, v_reach, p_out->v_curvature);
}

/* w a m (e^-t - 1 + t - t^2 / 2) */
static void gamma_remainder(const struct tb_response_rows* p_rows,
                            const double* v_t,
                            double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_out[k] =
        tb_exp_remainder(tb_response_weight(p_rows, k) * p_rows->p_point->aux,
                         log(p_rows->v_y[k]) - p_rows->v_eta[k],
                         -v_t[k]);
  }
}

/* weights are equal rows: each of them has this variance */
static void gamma_variance(const double* v_mean,
                           size_t n_row,
                           const double* v_weight,
                           const struct tb_response_point* p_point,
                           double* v_out) {
  (void)v_weight;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = v_mean[k] * v_mean[k] / p_point->aux;
  }
}

static void gamma_deviance(const double* v_y,
                           const double* v_mean,
                           size_t n_row,
                           const double* v_weight,
                           const struct tb_response_point* p_point,
                           double* v_out) {
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    const double z = log(v_y[k] / v_mean[k]);
    v_out[k] = 2 * (v_weight == NULL ? 1 : v_weight[k]) * (expm1(z) - z);
  }
}

const struct tb_response_type tb_response_gamma_log = {
    .name = "Gamma",
    .link = "log",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .flags = TB_RESPONSE_DISPERSION,
    .v_aux = &gamma_aux,
    .n_aux = 1,
    .outside = tb_response_outside_positive,
    .evaluate = gamma_evaluate,
    .mean = tb_response_exp_mean,
    .variance = gamma_variance,
    .deviance = gamma_deviance,
    .prepare = gamma_prepare,
    .bound = gamma_bound,
    .third_bound = gamma_third_bound,
    .remainder = gamma_remainder,
};
