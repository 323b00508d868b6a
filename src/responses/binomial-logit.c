/* Binomial responses with the canonical link, mu = 1 / (1 + e^-eta):
 *
 *   l = w (y eta - log(1 + e^eta)) + log choose(w, w y)
 *   dl/deta = w (y - mu),  -d2l/deta2 = w mu (1 - mu)
 *   |d3l/deta3| = w mu (1 - mu) |1 - 2 mu| */
#include "base/clones.h"
#include "base/vmath.h"
#include "responses/binomial.h"

#include <math.h>

static TB_CLONES void logit_log_density(const struct tb_response_rows* p_rows,
                                        double* v_out) {
  const size_t n = p_rows->n_row;
  tb_vsoftplus(p_rows->v_eta, v_out, n);
  for (size_t k = 0; k < n; ++k) {
    /* 0 * Inf: an impossible y = 0 term is 0 */
    const double linear =
        p_rows->v_y[k] == 0 ? 0 : p_rows->v_y[k] * p_rows->v_eta[k];
    v_out[k] = tb_response_weight(p_rows, k) * (linear - v_out[k]);
  }
}

static TB_CLONES void logistic(const double* v_eta, size_t n, double* v_out) {
  tb_vlogistic(v_eta, v_out, n);
}

static void logit_evaluate(const struct tb_response_rows* p_rows,
                           const struct tb_response_out* p_out) {
  double* v_score = p_out->v_score;
  double* v_curvature = p_out->v_curvature;
  double* v_mean = v_score == NULL ? v_curvature : v_score;
  if (p_out->v_log_density != NULL) {
    logit_log_density(p_rows, p_out->v_log_density);
    tb_binomial_complete(p_rows, p_out);
  }
  if (v_mean == NULL) {
    return;
  }
  logistic(p_rows->v_eta, p_rows->n_row, v_mean);
  for (size_t k = 0; v_curvature != NULL && k < p_rows->n_row; ++k) {
    const double m = v_mean[k];
    v_curvature[k] = tb_response_weight(p_rows, k) * (m * (1 - m));
  }
  for (size_t k = 0; v_score != NULL && k < p_rows->n_row; ++k) {
    v_score[k] = tb_response_weight(p_rows, k) * (p_rows->v_y[k] - v_mean[k]);
  }
}

/* sup of mu (1 - mu) over |eta - centre| <= reach */
static double curvature_bound(double centre, double reach) {
  if (fabs(centre) <= reach) {
    return 0.25;
  }
  const double p =
      1 / (1 + exp(fmin(fabs(centre) - reach, TB_RESPONSE_LARGEST_ETA)));
  return p * (1 - p);
}

/* sup of mu (1 - mu)|1 - 2 mu|: it rises up to |eta| = log(2 + sqrt(3)), where
 * it is 1 / (6 sqrt(3)), and falls from there */
static double third_bound(double centre, double reach) {
  const double at = 1.3169578969248166, most = 0.09622504486493763;
  const double low = fmax(fabs(centre) - reach, 0);
  const double high = fabs(centre) + reach;
  if (low <= at && at <= high) {
    return most;
  }
  const double nearest = low > at ? low : high;
  const double p = 1 / (1 + exp(fmin(nearest, TB_RESPONSE_LARGEST_ETA)));
  return p * (1 - p) * (1 - 2 * p);
}

static void logit_bound(const struct tb_response_rows* p_rows,
                        const double* v_reach,
                        const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    p_out->v_curvature[k] = tb_response_weight(p_rows, k) *
                            curvature_bound(p_rows->v_eta[k], v_reach[k]);
  }
}

static void logit_third_bound(const struct tb_response_rows* p_rows,
                              const double* v_reach,
                              double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_out[k] = tb_response_weight(p_rows, k) *
               third_bound(p_rows->v_eta[k], v_reach[k]);
  }
}

static void logit_mean(const double* v_eta,
                       size_t n_row,
                       size_t n_predictor,
                       double* v_out) {
  logistic(v_eta, n_row * n_predictor, v_out);
}

const struct tb_response_type tb_response_binomial_logit = {
    .name = "binomial",
    .link = "logit",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .outside = tb_binomial_outside,
    .evaluate = logit_evaluate,
    .mean = logit_mean,
    .simulate = tb_binomial_simulate,
    .variance = tb_binomial_variance,
    .deviance = tb_binomial_deviance,
    .bound = logit_bound,
    .third_bound = logit_third_bound,
};
