/* Binomial responses with mu = 1 - exp(-u), u = e^eta, the complementary
 * log-log link:
 *
 *   l = w (y log mu - (1 - y) u) + log choose(w, w y)
 *
 *             success, with b = u / (e^u - 1),       failure
 *             v = u / (1 - e^-u)
 *   dl/deta   b                                      -u
 *   -d2l/deta2  b (v - 1)                            u
 *   d3l/deta3 b ((1 - v)^2 - v (1 - b))              -u
 *
 * v - 1 would cancel where u is small: there it is its series u/2 + u^2/12 -
 * u^4/720 + ..., with Bernoulli's numbers. */
#include "base/clones.h"
#include "responses/binomial.h"
#include "responses/lane.h"
#include "responses/remainder.h"

#include <math.h>

/* e^-LEAST is near the smallest number, where log mu is eta; at u = 700 a
 * success says nothing more */
#define LEAST  -700.0
#define U_MOST 700.0

/* what a success says */
struct cloglog {
  tb_lane mu;
  tb_lane rest;  /* 1 - mu */
  tb_lane slope; /* b */
  tb_lane ahead; /* v - 1 */
};

/* u and eta -> ... */
TB_INLINE void cloglog_at(const tb_lane* p_eta, struct cloglog* p) {
  const tb_lane eta = *p_eta;
  tb_lane u = TB_LANE_SELECT(eta < LEAST, TB_LANE_ALL(LEAST), eta);
  tb_v4_exp(&u);
  u = TB_LANE_SELECT(u > U_MOST, TB_LANE_ALL(U_MOST), u);
  p->mu = u;
  tb_lane_one_minus_exp(&p->mu, &p->rest);
  p->slope = u * p->rest / p->mu;
  const tb_lane u2 = u * u;
  tb_lane series = u2 * (1.0 / 74724249600.0) - 691.0 / 1307674368000.0;
  series = u2 * series + 1.0 / 47900160.0;
  series = u2 * series - 1.0 / 1209600.0;
  series = u2 * series + 1.0 / 30240.0;
  series = u2 * series - 1.0 / 720.0;
  series = u2 * series + 1.0 / 12.0;
  series = u2 * series + 0.5 * u;
  p->ahead = TB_LANE_SELECT(u < 0.5, series, (u - p->mu) / p->mu);
}

/* log mu; the true eta, which may be below LEAST */
TB_INLINE void
cloglog_log(const tb_lane* p_eta, const struct cloglog* p, tb_lane* p_out) {
  const tb_lane eta = *p_eta;
  tb_lane near_zero = p->mu;
  tb_v4_log(&near_zero);
  near_zero = TB_LANE_SELECT(eta < LEAST, eta, near_zero);
  tb_lane near_one = p->rest / p->mu; /* of which the log1p is -log mu */
  near_one = TB_LANE_SELECT(near_one > 1.0, TB_LANE_ALL(1.0), near_one);
  tb_v4_log1p_unit(&near_one);
  *p_out = TB_LANE_SELECT(p->mu < 0.5, near_zero, -near_one);
}

static TB_CLONES void cloglog_values(const struct tb_response_rows* p_rows,
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
    struct cloglog at;
    tb_lane u = eta;
    tb_v4_exp(&u);
    /* 0 * Inf: without a failure there is no term */
    const tb_lane failed =
        TB_LANE_SELECT(y < 1.0, (1.0 - y) * u, TB_LANE_ALL(0.0));
    cloglog_at(&eta, &at);
    const tb_lane score = w * (y * at.slope - failed);
    const tb_lane curvature = w * (y * at.slope * at.ahead + failed);
    tb_lane_store(&score, k, n, p_out->v_score);
    tb_lane_store(&curvature, k, n, p_out->v_curvature);
    if (wants_log) {
      tb_lane success;
      cloglog_log(&eta, &at, &success);
      const tb_lane log_density = w * (y * success - failed);
      tb_lane_store(&log_density, k, n, p_out->v_log_density);
    }
  }
}

static void cloglog_evaluate(const struct tb_response_rows* p_rows,
                             const struct tb_response_out* p_out) {
  cloglog_values(p_rows, p_out);
  tb_binomial_complete(p_rows, p_out);
}

static TB_CLONES void
cloglog_cdf(const double* v_eta, size_t n, double* v_out) {
  for (size_t k = 0; k < n; k += TB_LANE) {
    tb_lane eta;
    struct cloglog at;
    tb_lane_load(v_eta, k, n, &eta);
    cloglog_at(&eta, &at);
    tb_lane_store(&at.mu, k, n, v_out);
  }
}

static void cloglog_mean(const double* v_eta,
                         size_t n_row,
                         size_t n_predictor,
                         double* v_out) {
  cloglog_cdf(v_eta, n_row * n_predictor, v_out);
}

/* of a success: b and v - 1 */
static void success_at(double eta, double* p_slope, double* p_ahead) {
  double v_eta[TB_LANE] = {eta};
  tb_lane lane;
  struct cloglog at;
  tb_lane_load(v_eta, 0, TB_LANE, &lane);
  cloglog_at(&lane, &at);
  tb_lane_store(&at.slope, 0, 1, p_slope);
  tb_lane_store(&at.ahead, 0, 1, p_ahead);
}

static double success_curvature(double eta) {
  double slope, ahead;
  success_at(eta, &slope, &ahead);
  return slope * ahead;
}

/* 1 - b = u - (v - 1), which does not cancel where u is small */
static double success_third(double eta) {
  double slope, ahead;
  success_at(eta, &slope, &ahead);
  const double rest = eta < 0 ? exp(fmax(eta, LEAST)) - ahead : 1 - slope;
  return fabs(slope * (ahead * ahead - (1 + ahead) * rest));
}

/* it rises to one maximum and falls from there */
static double curvature_bound(double low, double high) {
  const double at = 0.62082965456557216, most = 0.41253161891311415;
  return low <= at && at <= high ? most
                                 : success_curvature(low > at ? low : high);
}

/* two maxima with a zero between them */
static double third_bound(double low, double high) {
  const double v_at[] = {-0.19894156695829578, 1.4266906535862953};
  const double v_most[] = {0.19556248033726988, 0.42605476914548282};
  double bound = fmax(success_third(low), success_third(high));
  for (int k = 0; k < 2; ++k) {
    bound = low <= v_at[k] && v_at[k] <= high ? fmax(bound, v_most[k]) : bound;
  }
  return bound;
}

/* of a failure, e^eta at the right end; no failure, no bound */
static double failure_bound(double share, double high) {
  return share == 0         ? 0
         : high == INFINITY ? INFINITY
                            : share * exp(fmin(high, TB_RESPONSE_LARGEST_ETA));
}

static void cloglog_bound(const struct tb_response_rows* p_rows,
                          const double* v_reach,
                          const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double y = p_rows->v_y[k];
    const double low = p_rows->v_eta[k] - v_reach[k];
    const double high = p_rows->v_eta[k] + v_reach[k];
    p_out->v_curvature[k] =
        tb_response_weight(p_rows, k) *
        (y * curvature_bound(low, high) + failure_bound(1 - y, high));
  }
}

static void cloglog_third_bound(const struct tb_response_rows* p_rows,
                                const double* v_reach,
                                double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double y = p_rows->v_y[k];
    const double low = p_rows->v_eta[k] - v_reach[k];
    const double high = p_rows->v_eta[k] + v_reach[k];
    v_out[k] = tb_response_weight(p_rows, k) *
               (y * third_bound(low, high) + failure_bound(1 - y, high));
  }
}

/* log mu */
static double success_log(double eta) {
  double v_eta[TB_LANE] = {eta}, value;
  tb_lane lane, out;
  struct cloglog at;
  tb_lane_load(v_eta, 0, TB_LANE, &lane);
  cloglog_at(&lane, &at);
  cloglog_log(&lane, &at, &out);
  tb_lane_store(&out, 0, 1, &value);
  return value;
}

/* -log mu less its expansion. With u = e^eta it is -eta, which has none, and
 *   k(u) = -log((1 - e^-u) / u) = u/2 - u^2/24 + u^4/2880 - ..., |u| < 2 pi,
 * of which each power is an exponential. Where u is larger: the Taylor
 * coefficients from b' = b w, w' = -b w - u, w = 1 - b - u, as far as 1 / u. */
static double success_beyond(double eta, double t) {
  static const double v_k[] = {-1.0 / 24,
                               1.0 / 2880,
                               -1.0 / 181440,
                               1.0 / 9676800,
                               -1.0 / 479001600,
                               691.0 / 15692092416000.0};
  const double u = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  if (fmax(eta, eta + t) <= -0.7) { /* u < 1/2 */
    double sum = tb_exp_remainder(0.5, eta, t);
    for (int m = 0; m < 6; ++m) {
      const double power = 2 * (m + 1);
      sum += tb_exp_remainder(v_k[m], power * eta, power * t);
    }
    return sum;
  }
  double v_b[TB_JET], v_w[TB_JET], v_u[TB_JET];
  success_at(eta, &v_b[0], &v_w[0]);
  v_w[0] = -v_w[0];
  if (!(fabs(t) < 0.1 / fmax(1, u))) {
    return success_log(eta) - success_log(eta + t) +
           v_b[0] * t * (1 + 0.5 * v_w[0] * t);
  }
  v_u[0] = u;
  for (int n = 0; n + 1 < TB_JET; ++n) {
    double product = 0;
    for (int k = 0; k <= n; ++k) {
      product += v_b[k] * v_w[n - k];
    }
    v_u[n + 1] = v_u[n] / (n + 1);
    v_b[n + 1] = product / (n + 1);
    v_w[n + 1] = -(product + v_u[n]) / (n + 1);
  }
  return tb_jet_remainder(v_b, t);
}

static void cloglog_remainder(const struct tb_response_rows* p_rows,
                              const double* v_t,
                              double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double y = p_rows->v_y[k], eta = p_rows->v_eta[k], t = v_t[k];
    v_out[k] = tb_response_weight(p_rows, k) *
               ((y > 0 ? y * success_beyond(eta, t) : 0) +
                tb_exp_remainder(1 - y, eta, t));
  }
}

const struct tb_response_type tb_response_binomial_cloglog = {
    .name = "binomial",
    .link = "cloglog",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .outside = tb_binomial_outside,
    .evaluate = cloglog_evaluate,
    .mean = cloglog_mean,
    .variance = tb_binomial_variance,
    .deviance = tb_binomial_deviance,
    .bound = cloglog_bound,
    .third_bound = cloglog_third_bound,
    .remainder = cloglog_remainder,
};
