/* Proportions that are no shares of trials: beta with mean
 * mu = 1 / (1 + e^-eta) and precision f, variance mu (1 - mu) / (1 + f), the
 * precision known or sampled as s = log f. With a = mu f, b = (1 - mu) f,
 * v = mu (1 - mu), and z = log(y / (1 - y)) - digamma(a) + digamma(b),
 *
 *   l = w [log Gamma(f) - log Gamma(a) - log Gamma(b)
 *          + (a - 1) log y + (b - 1) log(1 - y)]
 *   dl/deta = w f v z
 *   -d2l/deta2 = w f v [f v (trigamma(a) + trigamma(b)) - (1 - 2 mu) z]
 *   dl/ds = w f D, D = digamma(f) - mu digamma(a) - (1 - mu) digamma(b)
 *                      + mu log y + (1 - mu) log(1 - y)
 *   -d2l/deta ds = -w f v [z - f (mu trigamma(a) - (1 - mu) trigamma(b))]
 *   -d2l/ds2 = -w f [D + f (trigamma(f) - mu^2 trigamma(a)
 *                           - (1 - mu)^2 trigamma(b))]
 *
 * The curvature in eta may be negative. z is not made where a or b is next to
 * 0: its poles are taken off by hand.
 *
 *   symbol                              variable
 *   f                                   p_point->aux
 *   r(f), see below, digamma(f), trigamma(f)  v_own */
#include "base/clones.h"
#include "base/gamma.h"
#include "base/vmath.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

enum { OWN_rest = 0, OWN_first = 1, OWN_second = 2 };

static const struct tb_response_aux beta_aux = {
    .name = "phi",
    .coordinate = "log_phi",
    .lower = 0,
    .information = 0,
};

static size_t beta_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && v_y[i] > 0 && v_y[i] < 1) {
    ++i;
  }
  return i;
}

/* r(x) = x log x - x - log Gamma(x), given log x, however small x is */
static double log_less_gamma(double x, double log_x) {
  return x > 1 ? tb_log_less_gamma(x)
               : (x + 1) * log_x - x - tb_log_gamma(x + 1);
}

static void beta_prepare(const double* v_aux,
                         struct tb_response_point* p_point) {
  tb_response_prepare_log(v_aux, p_point);
  p_point->v_own[OWN_rest] = log_less_gamma(p_point->aux, p_point->log_aux);
  p_point->v_own[OWN_first] = tb_digamma(p_point->aux);
  p_point->v_own[OWN_second] = tb_trigamma(p_point->aux);
}

/* mu and 1 - mu, of which neither is made of the other */
static void split(double eta, double* p_mu, double* p_rest) {
  const double far = exp(-fabs(eta)), small = far / (1 + far);
  const double large = 1 / (1 + far);
  *p_mu = eta < 0 ? small : large;
  *p_rest = eta < 0 ? large : small;
}

/* With log Gamma(x) = x log x - x - r(x), of which the large parts cancel by
 * hand: a log(y / mu) + b log((1 - y) / (1 - mu)) + r(a) + r(b) - r(f) */
static double beta_log_density(const struct tb_response_point* p,
                               double y,
                               double eta,
                               bool is_complete) {
  double mu, rest;
  split(eta, &mu, &rest);
  const double far = log1p(exp(-fabs(eta)));
  const double log_mu = fmin(eta, 0) - far, log_other = fmin(-eta, 0) - far;
  const double log_y = log(y), log_rest = log1p(-y);
  const double a = mu * p->aux, b = rest * p->aux;
  const double norm =
      is_complete || p->v_is_sampled[0] ? p->v_own[OWN_rest] : 0;
  return a * (log_y - log_mu) + b * (log_rest - log_other) +
         log_less_gamma(a, log_mu + p->log_aux) +
         log_less_gamma(b, log_other + p->log_aux) - norm -
         (is_complete ? log_y + log_rest : 0);
}

/* of the derivatives of one row, in the order of struct tb_response_out */
struct slopes {
  double score, curvature, aux_score, cross, aux_curvature;
};

/* With digamma(a) = digamma(a + 1) - 1 / a and so on, whose poles cancel: a or
 * b may be 0 for doubles. */
static struct slopes
beta_slopes(const struct tb_response_point* p, double y, double eta) {
  const double f = p->aux;
  double mu, rest;
  split(eta, &mu, &rest);
  const double a = mu * f, b = rest * f, v = mu * rest;
  const double log_y = log(y), log_rest = log1p(-y);
  const double a1 = tb_digamma(a + 1), b1 = tb_digamma(b + 1);
  const double a2 = tb_trigamma(a + 1), b2 = tb_trigamma(b + 1);
  const double score = f * v * (log_y - log_rest - a1 + b1) + rest - mu;
  const double aux_score = 2 + f * (p->v_own[OWN_first] - mu * (a1 - log_y) -
                                    rest * (b1 - log_rest));
  const double bend =
      f * f * (p->v_own[OWN_second] - mu * mu * a2 - rest * rest * b2);
  return (struct slopes){.score = score,
                         .curvature = f * v * (f * v) * (a2 + b2) +
                                      rest * rest + mu * mu -
                                      (rest - mu) * score,
                         .aux_score = aux_score,
                         .cross = rest - mu - score + f * v * (a * a2 - b * b2),
                         .aux_curvature = 2 - aux_score - bend};
}

static void beta_evaluate(const struct tb_response_rows* p_rows,
                          const struct tb_response_out* p_out) {
  const struct tb_response_point* p = p_rows->p_point;
  const bool wants_slopes =
      p_out->v_score != NULL || p_out->v_curvature != NULL ||
      p_out->v_aux_score != NULL || p_out->v_cross != NULL ||
      p_out->v_aux_curvature != NULL;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double w = tb_response_weight(p_rows, k);
    const double y = p_rows->v_y[k], eta = p_rows->v_eta[k];
    if (p_out->v_log_density != NULL) {
      p_out->v_log_density[k] =
          w * beta_log_density(p, y, eta, p_out->is_complete);
    }
    if (!wants_slopes) {
      continue;
    }
    const struct slopes at = beta_slopes(p, y, eta);
    double* const v_to[] = {p_out->v_score,
                            p_out->v_curvature,
                            p_out->v_aux_score,
                            p_out->v_cross,
                            p_out->v_aux_curvature};
    const double v_from[] = {at.score,
                             at.curvature,
                             at.aux_score,
                             at.cross,
                             at.aux_curvature};
    for (size_t j = 0; j < sizeof v_from / sizeof v_from[0]; ++j) {
      if (v_to[j] != NULL) {
        v_to[j][k] = w * v_from[j];
      }
    }
  }
}

static TB_CLONES void beta_mean(const double* v_eta,
                                size_t n_row,
                                size_t n_predictor,
                                double* v_out) {
  tb_vlogistic(v_eta, v_out, n_row * n_predictor);
}

/* weights are equal rows: each of them has this variance */
static void beta_variance(const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  (void)v_weight;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = v_mean[k] * (1 - v_mean[k]) / (1 + p_point->aux);
  }
}

/* Where the density of y is largest: z = 0. z falls with eta; Newton's method,
 * halving a bracket where it leaves it. */
static double
beta_best(const struct tb_response_point* p, double y, double start) {
  double low = -700, high = 700, eta = start;
  for (int k = 0; k < 100; ++k) {
    double mu, rest;
    split(eta, &mu, &rest);
    const double a = mu * p->aux, b = rest * p->aux;
    const double z = log(y) - log1p(-y) - tb_digamma(a) + tb_digamma(b);
    const double fall = p->aux * mu * rest * (tb_trigamma(a) + tb_trigamma(b));
    if (z > 0) {
      low = eta;
    } else {
      high = eta;
    }
    const double next = eta + z / fall;
    if (fabs(z) < 1e-13 * fall * (1 + fabs(eta))) {
      break;
    }
    eta = next > low && next < high ? next : (low + high) / 2;
  }
  return eta;
}

static void beta_deviance(const double* v_y,
                          const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const double y = v_y[k], mu = v_mean[k];
    const double best = beta_best(p_point, y, log(y) - log1p(-y));
    const double gain =
        beta_log_density(p_point, y, best, false) -
        beta_log_density(p_point, y, log(mu) - log1p(-mu), false);
    v_out[k] = 2 * (v_weight == NULL ? 1 : v_weight[k]) * fmax(gain, 0);
  }
}

const struct tb_response_type tb_response_beta_logit = {
    .name = "beta",
    .link = "logit",
    .citation = "Ferrari & Cribari-Neto (2004), J. Applied Statistics 31:799",
    .v_aux = &beta_aux,
    .n_aux = 1,
    .outside = beta_outside,
    .evaluate = beta_evaluate,
    .mean = beta_mean,
    .variance = beta_variance,
    .deviance = beta_deviance,
    .prepare = beta_prepare,
};
