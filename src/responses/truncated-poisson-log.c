/* Counts of which none is 0: Poisson ones, mu = e^eta, given that they are
 * positive. With A = log(e^mu - 1) and b = mu / (e^mu - 1):
 *
 *   l = w (y eta - A - log y!)
 *   dl/deta = w (y - m),  m = A' = mu + b = E(y)
 *   -d2l/deta2 = w m (1 - b),  -d3l/deta3 = w (mu + b''),
 *   b' = b (1 - mu - b)
 *
 * Second and third derivative rise with eta, so that their bounds are those at
 * the upper end. Where mu is small 1 - b and A - eta are their series in mu,
 *
 *   1 - b = mu / 2 - mu^2 / 12 + mu^4 / 720 - ..,
 *   A = eta + mu / 2 + mu^2 / 24 - mu^4 / 2880 + ..,
 *
 * (Bernoulli's numbers: Abramowitz & Stegun 1964, 23.1), and the remainder of A
 * is that of exponentials, one a term. */
#include "responses/remainder.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

static double mean_at(double eta) {
  const double mu = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  return mu + (1 - tb_response_less_share(mu));
}

static double curvature_at(double eta) {
  const double mu = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  const double rest = tb_response_less_share(mu);
  return (mu + (1 - rest)) * rest;
}

/* b'' + mu, without what cancels where mu is small: with c = 1 - b it is
 * m (mu - A'') + A'' c, A'' = m c */
static double third_at(double eta) {
  const double mu = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  const double rest = tb_response_less_share(mu), m = mu + (1 - rest),
               bend = m * rest;
  return bend * rest + m * (mu - bend);
}

/* A - eta */
static double excess(double eta) {
  const double mu = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  return mu < 1e-8 ? mu / 2 : mu + log(-expm1(-mu)) - eta;
}

/* -- the remainder of A -- */

/* both ends of t have mu below 1 */
static double remainder_of_series(double eta, double t) {
  return tb_exp_remainder(0.5, eta, t) +
         tb_exp_remainder(1.0 / 24, 2 * eta, 2 * t) -
         tb_exp_remainder(1.0 / 2880, 4 * eta, 4 * t) +
         tb_exp_remainder(1.0 / 181440, 6 * eta, 6 * t) -
         tb_exp_remainder(1.0 / 9676800, 8 * eta, 8 * t) +
         tb_exp_remainder(1.0 / 479001600, 10 * eta, 10 * t);
}

/* of h = log(1 - e^-mu) */
static double remainder_of_tail(double eta, double t) {
  const double mu = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  const double b = 1 - tb_response_less_share(mu),
               s = tb_response_less_share(mu) - mu;
  const double first = b * s;
  if (fabs(t) >= 0.02) {
    const double end = exp(fmin(eta + t, TB_RESPONSE_LARGEST_ETA));
    const double to = end < 1e-8 ? eta + t - end / 2 : log(-expm1(-end));
    const double from = mu < 1e-8 ? eta - mu / 2 : log(-expm1(-mu));
    return to - from - b * t - first * t * t / 2;
  }
  const double second = first * s - b * (mu + first);
  const double third =
      second * s - 2 * first * (mu + first) - b * (mu + second);
  const double fourth = third * s - 3 * second * (mu + first) -
                        3 * first * (mu + second) - b * (mu + third);
  return t * t * t / 6 * (second + t / 4 * (third + t / 5 * fourth));
}

static double remainder_at(double eta, double t) {
  if (fmax(eta, eta + t) < 0) {
    return remainder_of_series(eta, t);
  }
  return tb_exp_remainder(1, eta, t) + remainder_of_tail(eta, t);
}

/* -- the table -- */

static void truncated_evaluate(const struct tb_response_rows* p_rows,
                               const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double w = tb_response_weight(p_rows, k);
    const double eta = p_rows->v_eta[k], y = p_rows->v_y[k];
    if (p_out->v_log_density != NULL) {
      const double constant = p_out->is_complete ? lgamma(y + 1) : 0;
      p_out->v_log_density[k] = w * ((y - 1) * eta - excess(eta) - constant);
    }
    if (p_out->v_score != NULL) {
      p_out->v_score[k] = w * (y - mean_at(eta));
    }
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = w * curvature_at(eta);
    }
  }
}

/* of what rises with eta: where the interval ends */
static void at_upper_end(const struct tb_response_rows* p_rows,
                         const double* v_reach,
                         double (*derivative)(double eta),
                         double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double end = p_rows->v_eta[k] + v_reach[k];
    v_out[k] = end == INFINITY
                   ? INFINITY
                   : tb_response_weight(p_rows, k) * derivative(end);
  }
}

static void truncated_bound(const struct tb_response_rows* p_rows,
                            const double* v_reach,
                            const struct tb_response_out* p_out) {
  at_upper_end(p_rows, v_reach, curvature_at, p_out->v_curvature);
}

static void truncated_third_bound(const struct tb_response_rows* p_rows,
                                  const double* v_reach,
                                  double* v_out) {
  at_upper_end(p_rows, v_reach, third_at, v_out);
}

static void truncated_remainder(const struct tb_response_rows* p_rows,
                                const double* v_t,
                                double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_out[k] =
        tb_response_weight(p_rows, k) * remainder_at(p_rows->v_eta[k], v_t[k]);
  }
}

static void truncated_mean(const double* v_eta,
                           size_t n_row,
                           size_t n_predictor,
                           double* v_out) {
  for (size_t k = 0; k < n_row * n_predictor; ++k) {
    v_out[k] = mean_at(v_eta[k]);
  }
}

/* mu of a mean: by Newton's method from above, as m is convex in mu and rises
 */
static double rate_of_mean(double mean) {
  double mu = mean - 1 > 1e-8 ? fmin(mean, 2 * (mean - 1)) : 2 * (mean - 1);
  for (int k = 0; k < 50 && mean - 1 > 1e-8; ++k) {
    const double rest = tb_response_less_share(mu), m = mu + (1 - rest);
    const double step = (m - mean) / (m * rest / mu);
    mu -= step;
    if (fabs(step) <= 1e-14 * mu) {
      break;
    }
  }
  return fmax(mu, 0);
}

static void truncated_variance(const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  (void)v_weight;
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = v_mean[k] * tb_response_less_share(rate_of_mean(v_mean[k]));
  }
}

/* l, without log y!, where the mean is */
static double log_density_at_mean(double y, double mean) {
  const double mu = rate_of_mean(mean), eta = log(mu);
  return mu > 0 ? (y - 1) * eta - excess(eta) : y == 1 ? 0 : -INFINITY;
}

static void truncated_deviance(const double* v_y,
                               const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    const double y = v_y[k];
    const double gain =
        log_density_at_mean(y, y) - log_density_at_mean(y, v_mean[k]);
    v_out[k] = 2 * (v_weight == NULL ? 1 : v_weight[k]) * gain;
  }
}

const struct tb_response_type tb_response_truncated_poisson_log = {
    .name = "truncated_poisson",
    .link = "log",
    .citation = "Cohen (1960), Biometrics 16:203",
    .outside = tb_response_outside_above,
    .evaluate = truncated_evaluate,
    .mean = truncated_mean,
    .variance = truncated_variance,
    .deviance = truncated_deviance,
    .bound = truncated_bound,
    .third_bound = truncated_third_bound,
    .remainder = truncated_remainder,
};
