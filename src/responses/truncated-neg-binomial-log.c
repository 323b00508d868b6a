/* Counts of which none is 0 that vary more than Poisson ones: negative binomial
 * ones, of rate mu = e^eta and size k, given that they are positive (see
 * neg-binomial-log.c, whose l, u, q and s these are):
 *
 *   l = l of the negative binomial - w log(1 - e^-A)
 *   A = k log(1 + mu / k) = k L,   P(0) = e^-A
 *   A_eta = k q, A_eta,eta = k q (1 - q), A_s = k L - k q,
 *   A_eta,s = k q^2, A_s,s = k L - 2 k q + k q (1 - q)
 *
 * and with n = 1 / (e^A - 1) the slope of -log(1 - e^-A) in A is -n, its second
 * derivative n (1 + n).
 *
 * `mean` gives mu, the rate: the mean is mu (1 + n), which hangs on the size.
 *
 *   symbol  variable
 *   k, s    p_point->aux, p_point->log_aux */
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

extern const struct tb_response_type tb_response_neg_binomial_log;

/* A and its derivatives */
struct none {
  double a, eta, s, eta_eta, eta_s, s_s;
  double n;   /* 1 / (e^A - 1) */
  double log; /* -log(1 - e^-A) */
};

/* mu / k is small: k (log(1 + z) - z / (1 + z)), z = e^u, to z^3 */
#define SMALL 1e-3

static struct none none_at(double eta, double size, double log_size) {
  const double u = eta - log_size, far = exp(-fabs(u));
  const double q = (u < 0 ? far : 1) / (1 + far);
  const double rest = (u < 0 ? 1 : far) / (1 + far); /* 1 - q */
  const double whole = fmax(u, 0) + log1p(far);      /* L */
  const double z = u < 0 ? far : INFINITY;
  const double gap = z < SMALL ? z * z * (0.5 - z * (2.0 / 3 - 0.75 * z))
                               : whole - q; /* L - q */
  const double a = size * whole;
  /* of a huge A nothing is left, of a tiny one log A */
  const double n = a > 700 ? 0 : 1 / expm1(a);
  const double log_a = u < -30 ? eta : log(a);
  return (struct none){.a = a,
                       .eta = size * q,
                       .s = size * gap,
                       .eta_eta = size * q * rest,
                       .eta_s = size * q * q,
                       .s_s = size * (gap - q * q),
                       .n = n,
                       .log = a < 1e-8 ? 0.5 * a - log_a : -log(-expm1(-a))};
}

static void add(double* v, size_t k, double x) {
  if (v != NULL) {
    v[k] += x;
  }
}

static void truncated_evaluate(const struct tb_response_rows* p_rows,
                               const struct tb_response_out* p_out) {
  const struct tb_response_point* p_at = p_rows->p_point;
  tb_response_neg_binomial_log.evaluate(p_rows, p_out);
  for (size_t i = 0; i < p_rows->n_row; ++i) {
    const double w = tb_response_weight(p_rows, i);
    const struct none at = none_at(p_rows->v_eta[i], p_at->aux, p_at->log_aux);
    /* n may be infinite where A_eta is 0: n A_eta -> 1, and so on */
    const double slope = at.eta > 1e-290 ? at.n * at.eta : 1;
    const double bend = at.n * at.eta_eta;
    add(p_out->v_log_density, i, w * at.log);
    add(p_out->v_score, i, -w * slope);
    if (p_out->v_curvature != NULL) {
      const double square = slope * (slope + at.eta);
      p_out->v_curvature[i] += at.eta > 1e-290 ? -w * (square - bend) : 0;
    }
    add(p_out->v_aux_score, i, -w * at.n * at.s);
    add(p_out->v_cross,
        i,
        -w * (at.n * at.s * (slope + at.eta) - at.n * at.eta_s));
    add(p_out->v_aux_curvature,
        i,
        -w * (at.n * at.s * (at.n * at.s + at.s) - at.n * at.s_s));
  }
}

/* -- of counts, given what `mean` says of them ------------------------------
 */

/* E y = mu (1 + n); E y^2 = (mu + mu^2 (1 + 1 / k)) (1 + n) */
static void truncated_variance(const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  (void)v_weight;
  for (size_t i = 0; i < n_row; ++i) {
    const double mu = v_mean[i];
    const struct none at = none_at(log(mu), p_point->aux, p_point->log_aux);
    const double mean = mu * (1 + at.n);
    v_out[i] = mean * (1 + mu * (1 + 1 / p_point->aux) - mean);
  }
}

static double
density_at(double y, double eta, const struct tb_response_point* p) {
  const struct tb_response_rows row = {.n_row = 1,
                                       .n_predictor = 1,
                                       .v_eta = &eta,
                                       .v_y = &y,
                                       .p_point = p};
  double l;
  const struct tb_response_out out = {.v_log_density = &l};
  truncated_evaluate(&row, &out);
  return l;
}

/* the largest density: it rises to one maximum, of y = 1 far out */
static void truncated_deviance(const double* v_y,
                               const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  for (size_t i = 0; i < n_row; ++i) {
    double low = -60, high = log(v_y[i]) + 1;
    for (int k = 0; k < 200 && high - low > 1e-10; ++k) {
      const double a = low + (high - low) / 3, b = high - (high - low) / 3;
      if (density_at(v_y[i], a, p_point) < density_at(v_y[i], b, p_point)) {
        low = a;
      } else {
        high = b;
      }
    }
    const double gain = density_at(v_y[i], 0.5 * (low + high), p_point) -
                        density_at(v_y[i], log(v_mean[i]), p_point);
    v_out[i] = 2 * (v_weight == NULL ? 1 : v_weight[i]) * fmax(gain, 0);
  }
}

const struct tb_response_type tb_response_truncated_neg_binomial_log = {
    .name = "truncated_neg_binomial",
    .link = "log",
    .citation = "Sampford (1955), Biometrika 42:58",
    .v_aux = &tb_response_size,
    .n_aux = 1,
    .outside = tb_response_outside_above,
    .evaluate = truncated_evaluate,
    .mean = tb_response_exp_mean,
    .variance = truncated_variance,
    .deviance = truncated_deviance,
    .prepare = tb_response_prepare_log,
};
