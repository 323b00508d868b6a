/* Binomial responses with mu = Phi(eta), the normal distribution function:
 *
 *   l = w (y log Phi(eta) + (1 - y) log Phi(-eta)) + log choose(w, w y)
 *
 * A success contributes, with x = eta and lambda = phi(x) / Phi(x), a failure
 * with x = -eta,
 *
 *   dl/dx = lambda,  -d2l/dx2 = lambda (x + lambda), which falls from 1 to 0
 *   |d3l/dx3| = lambda ((x + lambda)(x + 2 lambda) - 1), largest at x = 1.00237
 *
 * so that the curvature is positive everywhere (Sampford 1953, Annals of
 * Mathematical Statistics 24:130). Both are evaluated from the tails at t =
 * |eta|, see responses/normal-tails.h. */
#include "base/clones.h"
#include "responses/binomial.h"
#include "responses/normal-tails.h"
#include "responses/remainder.h"

#include <math.h>

static TB_CLONES void probit_values(const struct tb_response_rows* p_rows,
                                    const struct tb_response_out* p_out) {
  const size_t n = p_rows->n_row;
  const bool wants_log = p_out->v_log_density != NULL;
  for (size_t k = 0; k < n; k += TB_LANE) {
    tb_lane eta, y, w = TB_LANE_ALL(1.0);
    tb_lane_load(p_rows->v_eta, k, n, &eta);
    tb_lane_load(p_rows->v_y, k, n, &y);
    if (p_rows->v_weight != NULL) {
      tb_lane_load(p_rows->v_weight, k, n, &w);
    }
    tb_lane t = eta;
    tb_lane_abs(&t);
    /* t^2 stays finite */
    t = TB_LANE_SELECT(t > 1e150, TB_LANE_ALL(1e150), t);
    /* shares of the outcomes on the side of eta and on the other */
    const tb_lane here = TB_LANE_SELECT(eta >= 0.0, y, 1.0 - y);
    const tb_lane there = TB_LANE_SELECT(eta >= 0.0, 1.0 - y, y);
    struct tb_normal_tails tails;
    tb_lane_normal_tails(&t, &tails);
    const tb_lane slope = here * tails.near - there * tails.hazard;
    const tb_lane score = w * TB_LANE_SELECT(eta >= 0.0, slope, -slope);
    const tb_lane curvature = w * (here * tails.near * (t + tails.near) +
                                   there * tails.hazard * tails.excess);
    tb_lane_store(&score, k, n, p_out->v_score);
    tb_lane_store(&curvature, k, n, p_out->v_curvature);
    if (wants_log) {
      tb_lane far, near;
      tb_lane_normal_logs(&t, &tails, &far, &near);
      const tb_lane log_density = w * (here * near + there * far);
      tb_lane_store(&log_density, k, n, p_out->v_log_density);
    }
  }
}

static void probit_evaluate(const struct tb_response_rows* p_rows,
                            const struct tb_response_out* p_out) {
  probit_values(p_rows, p_out);
  tb_binomial_complete(p_rows, p_out);
}

static TB_CLONES void probit_cdf(const double* v_eta, size_t n, double* v_out) {
  for (size_t k = 0; k < n; k += TB_LANE) {
    tb_lane eta;
    tb_lane_load(v_eta, k, n, &eta);
    tb_lane t = eta;
    tb_lane_abs(&t);
    t = TB_LANE_SELECT(t > 1e150, TB_LANE_ALL(1e150), t);
    struct tb_normal_tails tails;
    tb_lane_normal_tails(&t, &tails);
    const tb_lane mean = TB_LANE_SELECT(eta >= 0.0, 1.0 - tails.far, tails.far);
    tb_lane_store(&mean, k, n, v_out);
  }
}

static void probit_mean(const double* v_eta,
                        size_t n_row,
                        size_t n_predictor,
                        double* v_out) {
  probit_cdf(v_eta, n_row * n_predictor, v_out);
}

/* lambda(x) and x + lambda(x) */
static void probit_lambda(double x, double* p_lambda, double* p_sum) {
  double v_t[TB_LANE] = {fmin(fabs(x), 1e150)};
  tb_lane t;
  struct tb_normal_tails tails;
  tb_lane_load(v_t, 0, TB_LANE, &t);
  tb_lane_normal_tails(&t, &tails);
  const tb_lane ahead = t + tails.near;
  tb_lane_store(x >= 0 ? &tails.near : &tails.hazard, 0, 1, p_lambda);
  tb_lane_store(x >= 0 ? &ahead : &tails.excess, 0, 1, p_sum);
}

static double probit_curvature(double x) {
  double lambda, sum;
  probit_lambda(x, &lambda, &sum);
  return lambda * sum;
}

/* of what falls, over x from low on */
static double curvature_bound(double low) {
  return low == -INFINITY ? 1 : probit_curvature(low);
}

static double third(double x) {
  double lambda, sum;
  probit_lambda(x, &lambda, &sum);
  return fmax(lambda * (sum * (sum + lambda) - 1), 0);
}

static double third_bound(double low, double high) {
  const double at = 1.002369342268370633, most = 0.29571881919312310;
  return low <= at && at <= high ? most : third(low > at ? low : high);
}

static void probit_bound(const struct tb_response_rows* p_rows,
                         const double* v_reach,
                         const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double y = p_rows->v_y[k], eta = p_rows->v_eta[k];
    p_out->v_curvature[k] = tb_response_weight(p_rows, k) *
                            (y * curvature_bound(eta - v_reach[k]) +
                             (1 - y) * curvature_bound(-eta - v_reach[k]));
  }
}

static void probit_third_bound(const struct tb_response_rows* p_rows,
                               const double* v_reach,
                               double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double y = p_rows->v_y[k], eta = p_rows->v_eta[k], r = v_reach[k];
    v_out[k] = tb_response_weight(p_rows, k) *
               (y * third_bound(eta - r, eta + r) +
                (1 - y) * third_bound(-eta - r, -eta + r));
  }
}

/* log Phi(x) */
static double probit_log(double x) {
  double v_t[TB_LANE] = {fmin(fabs(x), 1e150)}, value;
  tb_lane t, far, near;
  struct tb_normal_tails tails;
  tb_lane_load(v_t, 0, TB_LANE, &t);
  tb_lane_normal_tails(&t, &tails);
  tb_lane_normal_logs(&t, &tails, &far, &near);
  tb_lane_store(x >= 0 ? &near : &far, 0, 1, &value);
  return value;
}

/* -log Phi less its expansion at x. The Taylor coefficients follow from
 * lambda' = -lambda a, a' = 1 - lambda a, a = x + lambda. How far they reach
 * is what -log Phi changes over: |x| below 0, 1 / x above. */
static double probit_beyond(double x, double t) {
  double v_lambda[TB_JET], v_a[TB_JET];
  probit_lambda(x, &v_lambda[0], &v_a[0]);
  const double reach = 0.1 * (x < 0 ? fmax(1, -x) : 1 / fmax(1, x));
  if (fabs(t) >= reach) {
    return probit_log(x) - probit_log(x + t) +
           v_lambda[0] * t * (1 - 0.5 * v_a[0] * t);
  }
  for (int n = 0; n + 1 < TB_JET; ++n) {
    double product = 0;
    for (int k = 0; k <= n; ++k) {
      product += v_lambda[k] * v_a[n - k];
    }
    v_lambda[n + 1] = -product / (n + 1);
    v_a[n + 1] = ((n == 0) - product) / (n + 1);
  }
  return tb_jet_remainder(v_lambda, t);
}

static void probit_remainder(const struct tb_response_rows* p_rows,
                             const double* v_t,
                             double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double y = p_rows->v_y[k], eta = p_rows->v_eta[k], t = v_t[k];
    v_out[k] = tb_response_weight(p_rows, k) *
               ((y > 0 ? y * probit_beyond(eta, t) : 0) +
                (y < 1 ? (1 - y) * probit_beyond(-eta, -t) : 0));
  }
}

const struct tb_response_type tb_response_binomial_probit = {
    .name = "binomial",
    .link = "probit",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .outside = tb_binomial_outside,
    .evaluate = probit_evaluate,
    .mean = probit_mean,
    .variance = tb_binomial_variance,
    .deviance = tb_binomial_deviance,
    .bound = probit_bound,
    .third_bound = probit_third_bound,
    .remainder = probit_remainder,
};
