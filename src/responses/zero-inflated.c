/* Counts of which some are 0 whatever their law says: with probability pi, the
 * logistic function of a second predictor. With f the Poisson or negative
 * binomial probability at eta_1, l' its logarithm,
 *
 *   l = log(pi 1[y = 0] + (1 - pi) f(y))
 *   q = pi / (pi + (1 - pi) f(0)) where y = 0, r = 1 - q
 *
 *                      y > 0             y = 0
 *   dl/deta_1          a                 r a            a = dl'/deta_1
 *   dl/deta_2          -pi               q - pi
 *   -d2l/deta_1^2      c                 r c - q r a^2  c = -d2l'/deta_1^2
 *   -d2l/deta_1 deta_2 0                 q r a
 *   -d2l/deta_2^2      pi (1 - pi)       pi (1 - pi) - q r
 *
 * and those of a parameter s of f as those of eta_1. E(y) = (1 - pi) e^eta_1.
 *
 * Lambert (1992), Zero-inflated Poisson regression, Technometrics 34:1.
 *
 *   symbol   variable
 *   a, c     p->score, p->curvature */
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

extern const struct tb_response_type tb_response_poisson_log;
extern const struct tb_response_type tb_response_neg_binomial_log;

/* f at one row, of weight 1: its logarithm and derivatives in eta_1 and s */
struct count_row {
  double l, score, curvature;
  double aux_score, cross, bend;
};

/* 1 / (1 + e^-x) */
static double logistic(double x) {
  const double far = exp(-fabs(x));
  return (x < 0 ? far : 1) / (1 + far);
}

static double log1p_exp(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* log(e^a + e^b) */
static double log_sum(double a, double b) {
  return fmax(a, b) + log1p(exp(-fabs(a - b)));
}

static void look_at_count(const struct tb_response_type* base,
                          const struct tb_response_rows* p_rows,
                          size_t k,
                          bool is_complete,
                          struct count_row* p) {
  const bool samples = base->n_aux > 0 && p_rows->p_point->v_is_sampled[0];
  const struct tb_response_rows row = {.n_row = 1,
                                       .n_predictor = 1,
                                       .v_eta = p_rows->v_eta + k,
                                       .v_y = p_rows->v_y + k,
                                       .p_point = p_rows->p_point};
  const struct tb_response_out out = {
      .v_log_density = &p->l,
      .is_complete = is_complete,
      .v_score = &p->score,
      .v_curvature = &p->curvature,
      .v_aux_score = samples ? &p->aux_score : NULL,
      .v_cross = samples ? &p->cross : NULL,
      .v_aux_curvature = samples ? &p->bend : NULL};
  base->evaluate(&row, &out);
}

static void inflated_evaluate(const struct tb_response_type* base,
                              const struct tb_response_rows* p_rows,
                              const struct tb_response_out* p_out) {
  const size_t n = p_rows->n_row;
  for (size_t k = 0; k < n; ++k) {
    const double eta = p_rows->v_eta[n + k], pi = logistic(eta);
    const double w = tb_response_weight(p_rows, k);
    const bool is_zero = p_rows->v_y[k] == 0;
    const double spread = pi * logistic(-eta);
    struct count_row row = {0};
    look_at_count(base, p_rows, k, p_out->is_complete, &row);
    const double q = is_zero ? logistic(eta - row.l) : 0;
    const double r = is_zero ? logistic(row.l - eta) : 1;
    const double a = row.score, b = row.aux_score;
    if (p_out->v_log_density != NULL) {
      const double l = is_zero ? log_sum(eta, row.l) : row.l;
      p_out->v_log_density[k] = w * (l - log1p_exp(eta));
    }
    if (p_out->v_score != NULL) {
      p_out->v_score[k] = w * r * a;
      p_out->v_score[n + k] = w * (q - pi);
    }
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = w * (r * row.curvature - q * r * a * a);
      p_out->v_curvature[n + k] = w * q * r * a;
      p_out->v_curvature[2 * n + k] = w * (spread - q * r);
    }
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[k] = w * r * b;
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[k] = w * (r * row.cross - q * r * a * b);
      p_out->v_cross[n + k] = w * q * r * b;
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[k] = w * (r * row.bend - q * r * b * b);
    }
  }
}

/* (E(y), pi) */
static void inflated_mean(const double* v_eta,
                          size_t n_row,
                          size_t n_predictor,
                          double* v_out) {
  (void)n_predictor;
  for (size_t k = 0; k < n_row; ++k) {
    const double eta = v_eta[n_row + k];
    v_out[k] = exp(v_eta[k]) * logistic(-eta);
    v_out[n_row + k] = logistic(eta);
  }
}

/* 1 / size of counts whose variance is mu + mu^2 / size; 0 of Poisson ones */
static void inflated_variance(const double* v_mean,
                              size_t n_row,
                              double spread,
                              double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const double pi = v_mean[n_row + k], mu = v_mean[k] / (1 - pi);
    v_out[k] = v_mean[k] * (1 + mu * (spread + pi));
  }
}

/* l is at most 0 where y = 0, and log f of a mean y elsewhere */
static void inflated_deviance(const struct tb_response_type* base,
                              const double* v_y,
                              const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const double pi = v_mean[n_row + k], mu = v_mean[k] / (1 - pi);
    base->deviance(v_y + k, &mu, 1, NULL, p_point, v_out + k);
    const double l = v_y[k] == 0 ? log(pi + (1 - pi) * exp(-0.5 * v_out[k]))
                                 : log1p(-pi) - 0.5 * v_out[k];
    v_out[k] = -2 * l * (v_weight == NULL ? 1 : v_weight[k]);
  }
}

/* ------------------------------------------------------------------ members */

static void poisson_evaluate(const struct tb_response_rows* p_rows,
                             const struct tb_response_out* p_out) {
  inflated_evaluate(&tb_response_poisson_log, p_rows, p_out);
}

static void poisson_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  (void)v_weight;
  (void)p_point;
  inflated_variance(v_mean, n_row, 0, v_out);
}

static void poisson_deviance(const double* v_y,
                             const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  inflated_deviance(&tb_response_poisson_log,
                    v_y,
                    v_mean,
                    n_row,
                    v_weight,
                    p_point,
                    v_out);
}

extern const struct tb_response_type tb_response_zero_inflated_poisson;
const struct tb_response_type tb_response_zero_inflated_poisson = {
    .name = "zero_inflated_poisson",
    .link = "log",
    .citation = "Lambert (1992), Technometrics 34:1",
    .n_predictor = 2,
    .outside = tb_response_outside_counts,
    .evaluate = poisson_evaluate,
    .mean = inflated_mean,
    .variance = poisson_variance,
    .deviance = poisson_deviance,
};

static void size_evaluate(const struct tb_response_rows* p_rows,
                          const struct tb_response_out* p_out) {
  inflated_evaluate(&tb_response_neg_binomial_log, p_rows, p_out);
}

static void size_variance(const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  (void)v_weight;
  inflated_variance(v_mean, n_row, 1 / p_point->aux, v_out);
}

static void size_deviance(const double* v_y,
                          const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  inflated_deviance(&tb_response_neg_binomial_log,
                    v_y,
                    v_mean,
                    n_row,
                    v_weight,
                    p_point,
                    v_out);
}

extern const struct tb_response_type tb_response_zero_inflated_negbinomial;
const struct tb_response_type tb_response_zero_inflated_negbinomial = {
    .name = "zero_inflated_negbinomial",
    .link = "log",
    .citation = "Greene (1994), NYU working paper EC-94-10",
    .v_aux = &tb_response_size,
    .n_aux = 1,
    .n_predictor = 2,
    .outside = tb_response_outside_counts,
    .evaluate = size_evaluate,
    .mean = inflated_mean,
    .variance = size_variance,
    .deviance = size_deviance,
    .prepare = tb_response_prepare_log,
};
