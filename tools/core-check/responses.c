/* Responses that the library does not have, so that all that one may have is
 * tried: the registry of the tests ends with them.
 *
 *   interval   two columns of y, limits a <= b that a number of logistic law
 *              lies between: with L(x) = 1 / (1 + e^-x)
 *                l = w log(L(b - eta) - L(a - eta))
 *                  = w [log L(b - eta) + log L(eta - a) + log(1 - e^(a - b))]
 *              which is what a failure at eta - b and a success at eta - a say,
 *              and a constant; a = b: the density, the constant left out.
 *   spread     two predictors, of a mean and of a scale: y ~ N(m, (sigma
 * e^r)^2) with sigma an auxiliary parameter, s = log sigma. With e = y - m and
 * p = e^-2(r + s), l = w [-(r + s) - p e^2 / 2 - log(2 pi) / 2] and all of s is
 * as of r. */
#include "base/clip.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

enum { TILE = 64 };

/* ---------------------------------------------------------------- interval */

extern const struct tb_response_type tb_response_binomial_logit;

static size_t interval_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && v_y[i] <= v_y[n + i] &&
         (isfinite(v_y[i]) || isfinite(v_y[n + i]))) {
    ++i;
  }
  return i;
}

/* rows of the two events that a tile of rows stands for */
struct interval_tile {
  double v_eta[TILE], v_y[TILE];
  struct tb_response_rows rows;
};

static void interval_event(const struct tb_response_rows* p_rows,
                           size_t first,
                           size_t n,
                           bool is_upper,
                           struct interval_tile* p) {
  const double* v_end = p_rows->v_y + first + (is_upper ? p_rows->n_row : 0);
  for (size_t k = 0; k < n; ++k) {
    const double eta = p_rows->v_eta[first + k] - v_end[k];
    p->v_eta[k] = fmax(-1e300, fmin(eta, 1e300));
    p->v_y[k] = !is_upper;
  }
  p->rows = (struct tb_response_rows){
      .n_row = n,
      .n_predictor = 1,
      .v_eta = p->v_eta,
      .v_y = p->v_y,
      .v_weight = p_rows->v_weight == NULL ? NULL : p_rows->v_weight + first,
      .p_point = p_rows->p_point};
}

/* log(1 - e^(a - b)), 0 of a number that is known */
static double interval_constant(double a, double b) {
  return a < b ? log1p(-exp(a - b)) : 0;
}

enum interval_what { LOG_DENSITY, SCORE, CURVATURE, BOUND, THIRD, REMAINDER };

/* v_out := the sum of what both events give; v_of: their reach, or steps */
static void interval_sum(const struct tb_response_rows* p_rows,
                         enum interval_what what,
                         const double* v_of,
                         double* v_out) {
  const struct tb_response_type* type = &tb_response_binomial_logit;
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    const size_t n = tb_min(TILE, p_rows->n_row - first);
    const double* v_at = v_of == NULL ? NULL : v_of + first;
    for (int event = 0; event < 2; ++event) {
      struct interval_tile tile;
      double v[TILE];
      interval_event(p_rows, first, n, event == 1, &tile);
      const bool bends = what == CURVATURE || what == BOUND;
      const struct tb_response_out out = {.v_log_density =
                                              what == LOG_DENSITY ? v : NULL,
                                          .v_score = what == SCORE ? v : NULL,
                                          .v_curvature = bends ? v : NULL};
      if (what == BOUND) {
        type->bound(&tile.rows, v_at, &out);
      } else if (what == THIRD) {
        type->third_bound(&tile.rows, v_at, v);
      } else if (what == REMAINDER) {
        type->remainder(&tile.rows, v_at, v);
      } else {
        type->evaluate(&tile.rows, &out);
      }
      for (size_t k = 0; k < n; ++k) {
        v_out[first + k] = event == 0 ? v[k] : v_out[first + k] + v[k];
      }
    }
  }
}

static void interval_evaluate(const struct tb_response_rows* p_rows,
                              const struct tb_response_out* p_out) {
  const size_t n_row = p_rows->n_row;
  if (p_out->v_score != NULL) {
    interval_sum(p_rows, SCORE, NULL, p_out->v_score);
  }
  if (p_out->v_curvature != NULL) {
    interval_sum(p_rows, CURVATURE, NULL, p_out->v_curvature);
  }
  if (p_out->v_log_density == NULL) {
    return;
  }
  interval_sum(p_rows, LOG_DENSITY, NULL, p_out->v_log_density);
  for (size_t k = 0; p_out->is_complete && k < n_row; ++k) {
    p_out->v_log_density[k] +=
        tb_response_weight(p_rows, k) *
        interval_constant(p_rows->v_y[k], p_rows->v_y[n_row + k]);
  }
}

static void interval_bound(const struct tb_response_rows* p_rows,
                           const double* v_reach,
                           const struct tb_response_out* p_out) {
  interval_sum(p_rows, BOUND, v_reach, p_out->v_curvature);
}

static void interval_third_bound(const struct tb_response_rows* p_rows,
                                 const double* v_reach,
                                 double* v_out) {
  interval_sum(p_rows, THIRD, v_reach, v_out);
}

static void interval_remainder(const struct tb_response_rows* p_rows,
                               const double* v_t,
                               double* v_out) {
  interval_sum(p_rows, REMAINDER, v_t, v_out);
}

static void interval_mean(const double* v_eta,
                          size_t n_row,
                          size_t n_predictor,
                          double* v_out) {
  for (size_t k = 0; k < n_row * n_predictor; ++k) {
    v_out[k] = v_eta[k];
  }
}

static void interval_variance(const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  const double half_pi = acos(0);
  (void)v_mean;
  (void)v_weight;
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = half_pi * half_pi * 4 / 3;
  }
}

/* The likelihood is largest in the middle, and 1 where an end is open. */
static void interval_deviance(const double* v_y,
                              const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  const struct tb_response_rows rows = {.n_row = n_row,
                                        .n_predictor = 1,
                                        .v_eta = v_mean,
                                        .v_y = v_y,
                                        .v_weight = v_weight,
                                        .p_point = p_point};
  interval_sum(&rows, LOG_DENSITY, NULL, v_out);
  for (size_t k = 0; k < n_row; ++k) {
    const double half = (v_y[n_row + k] - v_y[k]) / 2;
    const double most = -2 * log1p(exp(-half));
    v_out[k] = 2 * (tb_response_weight(&rows, k) * most - v_out[k]);
  }
}

extern const struct tb_response_type tb_response_interval;
const struct tb_response_type tb_response_interval = {
    .name = "interval",
    .link = "identity",
    .citation = "made up",
    .n_y = 2,
    .outside = interval_outside,
    .evaluate = interval_evaluate,
    .mean = interval_mean,
    .variance = interval_variance,
    .deviance = interval_deviance,
    .bound = interval_bound,
    .third_bound = interval_third_bound,
    .remainder = interval_remainder,
};

/* ------------------------------------------------------------------ spread */

static const struct tb_response_aux spread_aux = {.name = "sigma",
                                                  .coordinate = "log_sigma",
                                                  .lower = 0,
                                                  .information = 0};

static size_t spread_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

static void put(double* v, size_t at, double value) {
  if (v != NULL) {
    v[at] = value;
  }
}

static void spread_evaluate(const struct tb_response_rows* p_rows,
                            const struct tb_response_out* p_out) {
  const size_t n = p_rows->n_row;
  for (size_t k = 0; k < n; ++k) {
    const double w = tb_response_weight(p_rows, k);
    const double log_sd = p_rows->v_eta[n + k] + p_rows->p_point->log_aux;
    const double e = p_rows->v_y[k] - p_rows->v_eta[k], p = exp(-2 * log_sd);
    const double score[] = {w * e * p, w * (e * e * p - 1)};
    const double bend[] = {w * p, w * 2 * e * p, w * 2 * e * e * p};
    const double constant = p_out->is_complete ? log(4 * acos(0)) / 2 : 0;
    put(p_out->v_log_density, k, w * (-log_sd - p * e * e / 2 - constant));
    put(p_out->v_aux_score, k, score[1]);
    put(p_out->v_aux_curvature, k, bend[2]);
    for (size_t j = 0; j < 2; ++j) {
      put(p_out->v_score, j * n + k, score[j]);
      put(p_out->v_cross, j * n + k, bend[tb_response_pair(1, j)]);
      for (size_t l = 0; l <= j; ++l) {
        const size_t pair = tb_response_pair(j, l);
        put(p_out->v_curvature, pair * n + k, bend[pair]);
      }
    }
  }
}

static void spread_mean(const double* v_eta,
                        size_t n_row,
                        size_t n_predictor,
                        double* v_out) {
  for (size_t k = 0; k < n_row * n_predictor; ++k) {
    v_out[k] = k < n_row ? v_eta[k] : exp(v_eta[k]);
  }
}

static void spread_variance(const double* v_mean,
                            size_t n_row,
                            const double* v_weight,
                            const struct tb_response_point* p_point,
                            double* v_out) {
  (void)v_weight;
  for (size_t k = 0; k < n_row; ++k) {
    const double sd = v_mean[n_row + k] * p_point->aux;
    v_out[k] = sd * sd;
  }
}

static void spread_deviance(const double* v_y,
                            const double* v_mean,
                            size_t n_row,
                            const double* v_weight,
                            const struct tb_response_point* p_point,
                            double* v_out) {
  spread_variance(v_mean, n_row, v_weight, p_point, v_out);
  for (size_t k = 0; k < n_row; ++k) {
    const double e = v_y[k] - v_mean[k];
    v_out[k] = (v_weight == NULL ? 1 : v_weight[k]) * e * e / v_out[k];
  }
}

extern const struct tb_response_type tb_response_spread;
const struct tb_response_type tb_response_spread = {
    .name = "spread",
    .link = "log",
    .citation = "made up",
    .v_aux = &spread_aux,
    .n_aux = 1,
    .n_predictor = 2,
    .outside = spread_outside,
    .evaluate = spread_evaluate,
    .mean = spread_mean,
    .variance = spread_variance,
    .deviance = spread_deviance,
    .prepare = tb_response_prepare_log,
};
