/* Counts that vary more than Poisson ones, mu = e^eta, variance mu + mu^2 / k,
 * with the size k (the reciprocal of the dispersion) known or sampled as
 * s = log k. In u = eta - s and q = 1 / (1 + e^-u) = mu / (k + mu) they are
 * logistic, with y successes among y + k trials:
 *
 *   l = w [y u - (y + k) log(1 + e^u) + A] - w log y!
 *   A = log Gamma(y + k) - log Gamma(k)
 *   dl/deta = w [y - (y + k) q],  c = -d2l/deta2 = w (y + k) q (1 - q)
 *   |d3l/deta3| = w (y + k) q (1 - q) |1 - 2q|
 *   dl/ds = -dl/deta + w k [A' - log(1 + e^u)]
 *   -d2l/deta ds = w k q - c
 *   -d2l/ds2 = c - w k [2q + A' - log(1 + e^u) + k A'']
 *
 * with A' and A'' the derivatives in k.
 *
 *   symbol  variable
 *   k, s    p_point->aux, p_point->log_aux */
#include "base/clip.h"
#include "base/gamma.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

enum { TILE = 64 };

extern const struct tb_response_type tb_response_binomial_logit;
extern const struct tb_response_type tb_response_neg_binomial_log;

/* The rows as those of a logistic response, from `first` on, TILE at most */
struct logistic {
  double v_eta[TILE], v_y[TILE], v_weight[TILE];
  struct tb_response_rows rows;
};

static void logistic_rows(const struct tb_response_rows* p_rows,
                          size_t first,
                          struct logistic* p) {
  const double size = p_rows->p_point->aux, log_size = p_rows->p_point->log_aux;
  const size_t n = tb_min(TILE, p_rows->n_row - first);
  for (size_t k = 0; k < n; ++k) {
    const double y = p_rows->v_y[first + k], trials = y + size;
    p->v_eta[k] = p_rows->v_eta[first + k] - log_size;
    p->v_y[k] = y / trials;
    p->v_weight[k] = tb_response_weight(p_rows, first + k) * trials;
  }
  p->rows = (struct tb_response_rows){.n_row = n,
                                      .n_predictor = 1,
                                      .v_eta = p->v_eta,
                                      .v_y = p->v_y,
                                      .v_weight = p->v_weight,
                                      .p_point = p_rows->p_point};
}

static double* from(double* v, size_t first) {
  return v == NULL ? NULL : v + first;
}

/* of row `k`, whatever eta has to do with it */
static double neg_binomial_constant(const struct tb_response_rows* p_rows,
                                    size_t k,
                                    bool is_complete) {
  const double y = p_rows->v_y[k];
  double sum = 0;
  if (is_complete || p_rows->p_point->v_is_sampled[0]) {
    sum += tb_log_rising(p_rows->p_point->aux, y);
  }
  if (is_complete) {
    sum -= tb_log_gamma(y + 1);
  }
  return tb_response_weight(p_rows, k) * sum;
}

static void neg_binomial_aux_columns(const struct tb_response_rows* p_rows,
                                     const struct tb_response_out* p_out) {
  const double size = p_rows->p_point->aux, s = p_rows->p_point->log_aux;
  for (size_t i = 0; i < p_rows->n_row; ++i) {
    const double y = p_rows->v_y[i], u = p_rows->v_eta[i] - s;
    const double w = tb_response_weight(p_rows, i);
    const double far = exp(-fabs(u));
    const double q = (u < 0 ? far : 1) / (1 + far);
    const double rest = (u < 0 ? 1 : far) / (1 + far); /* 1 - q */
    const double c = (y + size) * q * rest;
    double first, second;
    tb_rising_slopes(size, y, &first, &second);
    const double gain = size * (first - fmax(u, 0) - log1p(far));
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[i] = w * (size * q - y * rest + gain);
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[i] = w * (size * q - c);
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[i] =
          w * (c - 2 * size * q - gain - size * size * second);
    }
  }
}

static void neg_binomial_evaluate(const struct tb_response_rows* p_rows,
                                  const struct tb_response_out* p_out) {
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    struct logistic tile;
    const struct tb_response_out out = {
        .v_log_density = from(p_out->v_log_density, first),
        .v_score = from(p_out->v_score, first),
        .v_curvature = from(p_out->v_curvature, first)};
    logistic_rows(p_rows, first, &tile);
    tb_response_binomial_logit.evaluate(&tile.rows, &out);
    for (size_t k = 0; out.v_log_density != NULL && k < tile.rows.n_row; ++k) {
      out.v_log_density[k] +=
          neg_binomial_constant(p_rows, first + k, p_out->is_complete);
    }
  }
  if (p_out->v_aux_score != NULL || p_out->v_cross != NULL ||
      p_out->v_aux_curvature != NULL) {
    neg_binomial_aux_columns(p_rows, p_out);
  }
}

static void neg_binomial_bound(const struct tb_response_rows* p_rows,
                               const double* v_reach,
                               const struct tb_response_out* p_out) {
  tb_response_widest(&tb_response_neg_binomial_log, p_rows, v_reach, p_out);
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    struct logistic tile;
    const struct tb_response_out out = {.v_curvature =
                                            p_out->v_curvature + first};
    logistic_rows(p_rows, first, &tile);
    tb_response_binomial_logit.bound(&tile.rows, v_reach + first, &out);
  }
}

static void neg_binomial_third_bound(const struct tb_response_rows* p_rows,
                                     const double* v_reach,
                                     double* v_out) {
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    struct logistic tile;
    logistic_rows(p_rows, first, &tile);
    tb_response_binomial_logit.third_bound(&tile.rows,
                                           v_reach + first,
                                           v_out + first);
  }
}

static void neg_binomial_remainder(const struct tb_response_rows* p_rows,
                                   const double* v_t,
                                   double* v_out) {
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    struct logistic tile;
    logistic_rows(p_rows, first, &tile);
    tb_response_binomial_logit.remainder(&tile.rows,
                                         v_t + first,
                                         v_out + first);
  }
}

/* weights are equal rows: each of them has this variance */
static void neg_binomial_variance(const double* v_mean,
                                  size_t n_row,
                                  const double* v_weight,
                                  const struct tb_response_point* p_point,
                                  double* v_out) {
  (void)v_weight;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = v_mean[k] + v_mean[k] * v_mean[k] / p_point->aux;
  }
}

static void neg_binomial_deviance(const double* v_y,
                                  const double* v_mean,
                                  size_t n_row,
                                  const double* v_weight,
                                  const struct tb_response_point* p_point,
                                  double* v_out) {
  const double size = p_point->aux;
  for (size_t k = 0; k < n_row; ++k) {
    const double y = v_y[k], mu = v_mean[k];
    const double gain = y == 0 ? 0 : y * log(y / mu);
    const double loss = (y + size) * log1p((y - mu) / (mu + size));
    v_out[k] = 2 * (v_weight == NULL ? 1 : v_weight[k]) * (gain - loss);
  }
}

const struct tb_response_type tb_response_neg_binomial_log = {
    .name = "neg_binomial_2",
    .link = "log",
    .citation = "Lawless (1987), Canadian Journal of Statistics 15:209",
    .v_aux = &tb_response_size,
    .n_aux = 1,
    .outside = tb_response_outside_counts,
    .evaluate = neg_binomial_evaluate,
    .mean = tb_response_exp_mean,
    .variance = neg_binomial_variance,
    .deviance = neg_binomial_deviance,
    .prepare = tb_response_prepare_log,
    .bound = neg_binomial_bound,
    .third_bound = neg_binomial_third_bound,
    .remainder = neg_binomial_remainder,
};
