/* Binomial responses with the canonical link, mu = 1 / (1 + e^-eta):
 *
 *   l = w (y eta - log(1 + e^eta)) + log choose(w, w y)
 *   dl/deta = w (y - mu),  -d2l/deta2 = w mu (1 - mu)
 *   |d3l/deta3| = w mu (1 - mu) |1 - 2 mu| */
#include "base/clones.h"
#include "base/vmath.h"
#include "responses/binomial.h"
#include "responses/lane.h"
#include "responses/remainder.h"

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

/* log(1 + e^(eta + t)) less its expansion, whatever y:
 *
 *   log(1 + p (e^t - 1)) - p t - p (1 - p) t^2 / 2,   p = 1 / (1 + e^-eta)
 *
 * For eta > 0 that of (-eta, -t), the same number, in which p is at most 1/2
 * and nothing cancels. Where |t| is small all of it cancels: there it is its
 * series to t^9, with the derivatives in v = p (1 - p) and s = 1 - 2 p. */
TB_INLINE void logit_beyond(const tb_lane* p_eta, tb_lane* p_t) {
  tb_lane p = *p_eta, t = *p_t;
  t = TB_LANE_SELECT(p > 0.0, -t, t);
  tb_lane_abs(&p);
  p = -p;
  tb_v4_exp(&p);
  p = p / (1.0 + p);
  const tb_lane v = p * (1.0 - p), s = 1.0 - 2.0 * p;

  tb_lane a = t;
  tb_lane_expm1(&a);
  a = p * a; /* above -1/2 */
  tb_lane low = TB_LANE_SELECT(a < 0.0, -a / (1.0 + a), a);
  low = TB_LANE_SELECT(low > 1.0, TB_LANE_ALL(1.0), low);
  tb_v4_log1p_unit(&low);
  tb_lane high = 1.0 + TB_LANE_SELECT(a > 1.0, a, TB_LANE_ALL(1.0));
  tb_v4_log(&high);
  const tb_lane log_ratio =
      TB_LANE_SELECT(a < 0.0, -low, TB_LANE_SELECT(a > 1.0, high, low));
  const tb_lane direct = log_ratio - t * (p + 0.5 * v * t);

  tb_lane series = t * (1.0 / 362880) * s *
                   (1.0 + v * (-252.0 + v * (5040.0 - v * 20160.0)));
  series = t * (series + (1.0 / 40320) *
                             (1.0 + v * (-126.0 + v * (1680.0 - v * 5040.0))));
  series = t * (series + (1.0 / 5040) * s * (1.0 + v * (-60.0 + v * 360.0)));
  series = t * (series + (1.0 / 720) * (1.0 + v * (-30.0 + v * 120.0)));
  series = t * (series + (1.0 / 120) * s * (1.0 - 12.0 * v));
  series = t * (series + (1.0 / 24) * (1.0 - 6.0 * v));
  series = t * t * t * v * (series + (1.0 / 6) * s);

  tb_lane size = t;
  tb_lane_abs(&size);
  *p_t = TB_LANE_SELECT(size < 0.1, series, direct);
}

static TB_CLONES void logit_remainder(const struct tb_response_rows* p_rows,
                                      const double* v_t,
                                      double* v_out) {
  const size_t n = p_rows->n_row;
  for (size_t k = 0; k < n; k += TB_LANE) {
    tb_lane eta, t, w = TB_LANE_ALL(1.0);
    tb_lane_load(p_rows->v_eta, k, n, &eta);
    tb_lane_load(v_t, k, n, &t);
    if (p_rows->v_weight != NULL) {
      tb_lane_load(p_rows->v_weight, k, n, &w);
    }
    logit_beyond(&eta, &t);
    t = w * t;
    tb_lane_store(&t, k, n, v_out);
  }
  for (size_t k = 0; k < n; ++k) {
    /* where e^t is not a number any more; both ends have their asymptotes */
    if (fabs(v_t[k]) > TB_REMAINDER_FAR) {
      const double eta = p_rows->v_eta[k], p = 1 / (1 + exp(-eta));
      const double softplus = fmax(eta, 0) + log1p(exp(-fabs(eta)));
      const double t = v_t[k];
      v_out[k] = tb_response_weight(p_rows, k) *
                 (fmax(eta + t, 0) + log1p(exp(-fabs(eta + t))) - softplus -
                  t * p - 0.5 * p * (1 - p) * t * t);
    }
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
    .variance = tb_binomial_variance,
    .deviance = tb_binomial_deviance,
    .bound = logit_bound,
    .third_bound = logit_third_bound,
    .remainder = logit_remainder,
};
