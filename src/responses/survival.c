/* Times to an event that may be seen, or known to lie beyond, before or between
 * times, of rows that are seen from the start or later on: see limits.h. With
 * u = e^eta and shape k:
 *
 *   weibull, log       cumulative hazard u (t / b)^k  (k = 1: exponential),
 *                      b a unit of time, known: eta and k would go together
 *                      where log t is far from 0
 *   weibull-aft, log   S(t) = exp(-(t / u)^k)
 *   loglogistic, log   S(t) = 1 / (1 + (t / u)^k)
 *   lognormal, log     log t ~ N(eta, sigma^2)
 *
 * `mean` gives u: what it multiplies the hazard by, or the time.
 *
 * With a known shape those of Weibull are of complementary log-log type, whose
 * bounds and remainders they have: with v = eta + k log(t / b) of proportional
 * hazards, or k (log t - eta), what is seen or goes on says -e^v less that of
 * its entry, a failure; what was before t a success at v; and an interval
 * both. */
#include "responses/limits.h"
#include "responses/shared.h"

#include <math.h>

extern const struct tb_response_type tb_response_binomial_cloglog;

static const struct tb_limits hazards = {.law = &tb_limits_extreme,
                                         .is_time = true,
                                         .is_hazard = true};
static const struct tb_limits weibull = {.law = &tb_limits_extreme,
                                         .is_time = true};
static const struct tb_limits loglogistic = {.law = &tb_limits_logistic,
                                             .is_time = true};
static const struct tb_limits lognormal = {.law = &tb_limits_normal,
                                           .is_time = true,
                                           .is_sd = true};

static const struct tb_response_aux shape_aux = {.name = "shape",
                                                 .coordinate = "log_shape"};
/* of proportional hazards */
static const struct tb_response_aux hazard_aux[] = {
    {.name = "shape", .coordinate = "log_shape"},
    {.name = "unit", .coordinate = "log_unit"}};
static const struct tb_response_aux sigma_aux = {.name = "sigma",
                                                 .coordinate = "log_sigma"};

static void hazards_prepare(const double* v_aux,
                            struct tb_response_point* p_point) {
  tb_response_prepare_log(v_aux, p_point);
  p_point->v_own[TB_LIMITS_unit] =
      p_point->v_is_sampled[1] ? v_aux[1] : log(v_aux[1]);
}

/* one for every table */
static size_t survival_outside(const double* v_y, size_t n, double size) {
  (void)size;
  return tb_limits_outside(&hazards, v_y, n);
}

#define TABLE_FUNCTIONS(own)                                                   \
  static void own##_evaluate(const struct tb_response_rows* p_rows,            \
                             const struct tb_response_out* p_out) {            \
    tb_limits_evaluate(&own, p_rows, p_out);                                   \
  }                                                                            \
  static void own##_deviance(const double* v_y,                                \
                             const double* v_mean,                             \
                             size_t n_row,                                     \
                             const double* v_weight,                           \
                             const struct tb_response_point* p_point,          \
                             double* v_out) {                                  \
    deviance_of(&own, v_y, v_mean, n_row, v_weight, p_point, v_out);           \
  }

static void deviance_of(const struct tb_limits* p,
                        const double* v_y,
                        const double* v_mean,
                        size_t n_row,
                        const double* v_weight,
                        const struct tb_response_point* p_point,
                        double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const double eta = log(v_mean[k]);
    const double v_own[] = {v_y[k], v_y[n_row + k], v_y[2 * n_row + k]};
    const struct tb_response_rows row = {
        .n_row = 1,
        .n_predictor = 1,
        .v_eta = &eta,
        .v_y = v_own,
        .v_weight = v_weight == NULL ? NULL : v_weight + k,
        .p_point = p_point};
    tb_limits_deviance(p, &row, v_out + k);
  }
}

TABLE_FUNCTIONS(hazards)
TABLE_FUNCTIONS(weibull)
TABLE_FUNCTIONS(loglogistic)
TABLE_FUNCTIONS(lognormal)

/* -- variances of times, given what `mean` says of them ---------------------
 */

/* of a Weibull time of scale 1: Gamma(1 + 2/k) - Gamma(1 + 1/k)^2 */
static double weibull_unit(double shape) {
  const double mean = lgamma(1 + 1 / shape);
  return exp(lgamma(1 + 2 / shape)) - exp(2 * mean);
}

static void hazards_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  const double unit = weibull_unit(p_point->aux);
  (void)v_weight;
  for (size_t k = 0; k < n_row; ++k) {
    const double scale =
        exp(p_point->v_own[TB_LIMITS_unit]) * pow(v_mean[k], -1 / p_point->aux);
    v_out[k] = unit * scale * scale;
  }
}

static void scaled_variance(const double* v_mean,
                            size_t n_row,
                            double unit,
                            double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = unit * v_mean[k] * v_mean[k];
  }
}

static void weibull_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  (void)v_weight;
  scaled_variance(v_mean, n_row, weibull_unit(p_point->aux), v_out);
}

/* E T^m = (m pi / k) / sin(m pi / k), m < k */
static void loglogistic_variance(const double* v_mean,
                                 size_t n_row,
                                 const double* v_weight,
                                 const struct tb_response_point* p_point,
                                 double* v_out) {
  const double b = 3.14159265358979323846 / p_point->aux;
  const double mean = b / sin(b), square = 2 * b / sin(2 * b);
  (void)v_weight;
  scaled_variance(v_mean,
                  n_row,
                  p_point->aux > 2 ? square - mean * mean : INFINITY,
                  v_out);
}

static void lognormal_variance(const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  const double square = p_point->aux * p_point->aux;
  (void)v_weight;
  scaled_variance(v_mean, n_row, expm1(square) * exp(square), v_out);
}

/* -- bounds and remainders of a known shape ---------------------------------
 */

/* The predictors of the failure and of the success that row k stands for; -Inf:
 * there is none. *p_slope: by what eta moves them. */
static void cloglog_of(const struct tb_limits* p,
                       const struct tb_response_rows* p_rows,
                       size_t k,
                       double v_eta[2],
                       double* p_slope) {
  const double shape = p_rows->p_point->aux;
  const double y = p_rows->v_y[k], other = p_rows->v_y[p_rows->n_row + k];
  const double origin =
      p->is_hazard ? p_rows->p_point->v_own[TB_LIMITS_unit] : 0;
  const double at = shape * (log(y) - origin);
  const enum tb_limits_status status =
      (enum tb_limits_status)(int)p_rows->v_y[2 * p_rows->n_row + k];
  *p_slope = p->is_hazard ? 1 : -shape;
  const double eta = *p_slope * p_rows->v_eta[k];
  v_eta[0] = v_eta[1] = -INFINITY;
  if (status == TB_LIMITS_left) {
    v_eta[1] = eta + at;
    return;
  }
  v_eta[0] = eta + at;
  if (other > 0) {
    const double ratio = shape * (log(other) - log(y));
    if (status == TB_LIMITS_interval) {
      v_eta[1] = v_eta[0] + log(expm1(ratio));
    } else {
      v_eta[0] += log(-expm1(ratio)); /* t^k - t0^k */
    }
  }
}

enum what { BOUND, THIRD, REMAINDER };

/* v_of: reaches, or steps */
static void cloglog_sum(const struct tb_limits* p,
                        enum what what,
                        const struct tb_response_rows* p_rows,
                        const double* v_of,
                        double* v_out) {
  const struct tb_response_type* type = &tb_response_binomial_cloglog;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    double v_eta[2], v_y[2] = {0, 1}, v_at[2], v[2] = {0, 0}, slope;
    cloglog_of(p, p_rows, k, v_eta, &slope);
    const double times = fabs(slope);
    v_at[0] = v_at[1] = what == REMAINDER ? slope * v_of[k] : times * v_of[k];
    const size_t first = v_eta[0] == -INFINITY;
    const size_t n = (v_eta[1] == -INFINITY ? 1 : 2) - first;
    const struct tb_response_rows rows = {.n_row = n,
                                          .n_predictor = 1,
                                          .v_eta = v_eta + first,
                                          .v_y = v_y + first,
                                          .p_point = p_rows->p_point};
    const struct tb_response_out out = {.v_curvature = v + first};
    if (what == BOUND) {
      type->bound(&rows, v_at, &out);
    } else if (what == THIRD) {
      type->third_bound(&rows, v_at, v + first);
    } else {
      type->remainder(&rows, v_at, v + first);
    }
    const double scale = what == BOUND   ? times * times
                         : what == THIRD ? times * times * times
                                         : 1;
    v_out[k] = tb_response_weight(p_rows, k) * scale * (v[0] + v[1]);
  }
}

#define CLOGLOG_FUNCTIONS(own, table)                                          \
  static void own##_bound(const struct tb_response_rows* p_rows,               \
                          const double* v_reach,                               \
                          const struct tb_response_out* p_out) {               \
    if (p_out->v_cross != NULL || p_out->v_aux_curvature != NULL) {            \
      tb_response_widest(&table, p_rows, v_reach, p_out);                      \
    }                                                                          \
    cloglog_sum(&own, BOUND, p_rows, v_reach, p_out->v_curvature);             \
  }                                                                            \
  static void own##_third_bound(const struct tb_response_rows* p_rows,         \
                                const double* v_reach,                         \
                                double* v_out) {                               \
    cloglog_sum(&own, THIRD, p_rows, v_reach, v_out);                          \
  }                                                                            \
  static void own##_remainder(const struct tb_response_rows* p_rows,           \
                              const double* v_t,                               \
                              double* v_out) {                                 \
    cloglog_sum(&own, REMAINDER, p_rows, v_t, v_out);                          \
  }

extern const struct tb_response_type tb_response_weibull_log;
extern const struct tb_response_type tb_response_weibull_aft_log;

CLOGLOG_FUNCTIONS(hazards, tb_response_weibull_log)
CLOGLOG_FUNCTIONS(weibull, tb_response_weibull_aft_log)

/* -- tables -----------------------------------------------------------------
 */

const struct tb_response_type tb_response_weibull_log = {
    .name = "weibull",
    .link = "log",
    .citation = "Kalbfleisch & Prentice (2002), The Statistical Analysis of "
                "Failure Time Data",
    .v_aux = hazard_aux,
    .n_aux = 2,
    .n_y = 3,
    .outside = survival_outside,
    .evaluate = hazards_evaluate,
    .mean = tb_response_exp_mean,
    .variance = hazards_variance,
    .deviance = hazards_deviance,
    .prepare = hazards_prepare,
    .bound = hazards_bound,
    .third_bound = hazards_third_bound,
    .remainder = hazards_remainder,
};

const struct tb_response_type tb_response_weibull_aft_log = {
    .name = "weibull_aft",
    .link = "log",
    .citation = "Kalbfleisch & Prentice (2002), The Statistical Analysis of "
                "Failure Time Data",
    .v_aux = &shape_aux,
    .n_aux = 1,
    .n_y = 3,
    .outside = survival_outside,
    .evaluate = weibull_evaluate,
    .mean = tb_response_exp_mean,
    .variance = weibull_variance,
    .deviance = weibull_deviance,
    .prepare = tb_response_prepare_log,
    .bound = weibull_bound,
    .third_bound = weibull_third_bound,
    .remainder = weibull_remainder,
};

const struct tb_response_type tb_response_lognormal_log = {
    .name = "lognormal",
    .link = "log",
    .citation = "Kalbfleisch & Prentice (2002), The Statistical Analysis of "
                "Failure Time Data",
    .v_aux = &sigma_aux,
    .n_aux = 1,
    .n_y = 3,
    .outside = survival_outside,
    .evaluate = lognormal_evaluate,
    .mean = tb_response_exp_mean,
    .variance = lognormal_variance,
    .deviance = lognormal_deviance,
    .prepare = tb_response_prepare_log,
};

const struct tb_response_type tb_response_loglogistic_log = {
    .name = "loglogistic",
    .link = "log",
    .citation = "Bennett (1983), Applied Statistics 32:165",
    .v_aux = &shape_aux,
    .n_aux = 1,
    .n_y = 3,
    .outside = survival_outside,
    .evaluate = loglogistic_evaluate,
    .mean = tb_response_exp_mean,
    .variance = loglogistic_variance,
    .deviance = loglogistic_deviance,
    .prepare = tb_response_prepare_log,
};
