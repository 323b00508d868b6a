/* Responses with outliers: y = eta + sigma / sqrt(w) times a Student t of n
 * degrees of freedom, which are known, and sigma known or sampled as
 * s = log sigma. With e = y - eta, p = w / sigma^2, u = e sqrt(p / n) and
 * g = 1 / (1 + u^2),
 *
 *   l = -(n + 1)/2 log(1 + u^2) + log(p)/2 + log Gamma((n + 1)/2)
 *       - log Gamma(n / 2) - log(n pi)/2
 *   dl/deta = (n + 1)/n p e g        -d2l/deta2 = (n + 1)/n p (1 - u^2) g^2
 *   |d3l/deta3| = (n + 1)/n p sqrt(p / n) f(u), f(u) = |2u (u^2 - 3)| g^3
 *   dl/ds = (n + 1) u^2 g - 1        -d2l/deta ds = 2 (n + 1)/n p e g^2
 *                                    -d2l/ds2 = 2 (n + 1) u^2 g^2
 *
 * The density is not log-concave: a row far out bends the other way. It rises
 * from there to f's two maxima, (3 + 2 sqrt 2)/4 at u = sqrt 2 - 1 and
 * (3 - 2 sqrt 2)/4 at sqrt 2 + 1.
 *
 *   symbol      variable
 *   n, sigma    p_point->fixed, p_point->aux
 *   1/sigma^2   p_point->scale */
#include "base/gamma.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

#define LOG_PI 1.14472988584940017414

extern const struct tb_response_type tb_response_student;

static const struct tb_response_aux student_aux = {
    .name = "sigma",
    .coordinate = "log_sigma",
    .transform = TB_TRANSFORM_positive,
    .information = 0,
};

static size_t student_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

static void student_prepare(double aux,
                            bool is_sampled,
                            struct tb_response_point* p_point) {
  const double n = p_point->fixed;
  tb_response_prepare_log(aux, is_sampled, p_point);
  p_point->scale = exp(-2 * p_point->log_aux);
  p_point->log_base = is_sampled ? -p_point->log_aux : 0;
  p_point->log_norm = tb_log_gamma((n + 1) / 2) - tb_log_gamma(n / 2) -
                      (log(n) + LOG_PI) / 2 - p_point->log_aux;
}

static void student_evaluate(const struct tb_response_rows* p_rows,
                             const struct tb_response_out* p_out) {
  const struct tb_response_point* p_at = p_rows->p_point;
  const double n = p_at->fixed;
  const double base = p_out->is_complete ? p_at->log_norm : p_at->log_base;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double w = tb_response_weight(p_rows, k), p = w * p_at->scale;
    const double e = p_rows->v_y[k] - p_rows->v_eta[k];
    const double square = e * e * (p / n), g = 1 / (1 + square);
    const double share = isinf(square) ? 1 : square * g; /* 1 - g */
    const double lead = (n + 1) / n * p;
    if (p_out->v_log_density != NULL) {
      p_out->v_log_density[k] = base - (n + 1) / 2 * log1p(square) +
                                (p_out->is_complete ? 0.5 * log(w) : 0);
    }
    if (p_out->v_score != NULL) {
      p_out->v_score[k] = lead * e * g;
    }
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = lead * ((2 * g - 1) * g);
    }
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[k] = (n + 1) * share - 1;
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[k] = 2 * lead * e * g * g;
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[k] = 2 * (n + 1) * share * g;
    }
  }
}

/* u of row k, and its reach */
static void student_interval(const struct tb_response_rows* p_rows,
                             const double* v_reach,
                             size_t k,
                             double* p_low,
                             double* p_high,
                             double* p_root) {
  const double p = tb_response_weight(p_rows, k) * p_rows->p_point->scale;
  const double root = sqrt(p / p_rows->p_point->fixed);
  const double u = fabs(p_rows->v_y[k] - p_rows->v_eta[k]) * root;
  *p_low = fmax(u - v_reach[k] * root, 0);
  *p_high = u + v_reach[k] * root;
  *p_root = root;
}

/* |1 - u^2| g^2: it falls from 1 to 0 at 1, and has one more maximum, 1/8 at
 * sqrt 3 */
static double bend(double u) {
  const double g = 1 / (1 + u * u);
  return fabs(g * (2 * g - 1));
}

static double bend_bound(double low, double high) {
  const double at = 1.7320508075688773;
  const double ends = fmax(bend(low), high == INFINITY ? 0 : bend(high));
  return low <= at && at <= high ? fmax(ends, 0.125) : ends;
}

static double third(double u) {
  const double g = 1 / (1 + u * u);
  return fabs(2 * u * (u * u - 3)) * g * g * g;
}

static double third_bound(double low, double high) {
  const double v_at[] = {0.41421356237309515, 2.414213562373095};
  const double v_most[] = {1.4571067811865475, 0.04289321881345245};
  double most = fmax(third(low), high == INFINITY ? 0 : third(high));
  for (int k = 0; k < 2; ++k) {
    if (low <= v_at[k] && v_at[k] <= high) {
      most = fmax(most, v_most[k]);
    }
  }
  return most;
}

static void student_bound(const struct tb_response_rows* p_rows,
                          const double* v_reach,
                          const struct tb_response_out* p_out) {
  const double n = p_rows->p_point->fixed;
  if (p_out->v_cross != NULL || p_out->v_aux_curvature != NULL) {
    tb_response_widest(&tb_response_student, p_rows, v_reach, p_out);
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    double low, high, root;
    student_interval(p_rows, v_reach, k, &low, &high, &root);
    p_out->v_curvature[k] = (n + 1) * root * root * bend_bound(low, high);
  }
}

static void student_third_bound(const struct tb_response_rows* p_rows,
                                const double* v_reach,
                                double* v_out) {
  const double n = p_rows->p_point->fixed;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    double low, high, root;
    student_interval(p_rows, v_reach, k, &low, &high, &root);
    v_out[k] = (n + 1) * root * root * root * third_bound(low, high);
  }
}

/* log(1 + (u + t)^2) less its expansion. It is 2 Re log(1 + i(u + t)), and so
 * what is left is 2 Re [log(1 + z) - z + z^2/2], z = t (u + i) g: its series
 * where |z| is small, and all else cancels. */
static double student_beyond(double u, double t) {
  const double g = 1 / (1 + u * u);
  const double a = t * u * g, b = t * g;
  if (a * a + b * b > 0.0225) {
    return log1p(2 * a + t * b) - 2 * a - (1 - u * u) * b * b;
  }
  enum { N_TERM = 16 };
  double x = 0, y = 0; /* of sum_k (-z)^(k - 3) / k, by Horner's rule */
  for (int k = N_TERM; k >= 3; --k) {
    const double next = 1.0 / k - (a * x - b * y);
    y = -(a * y + b * x);
    x = next;
  }
  /* times z^3 */
  const double square_x = a * a - b * b, square_y = 2 * a * b;
  const double cube_x = a * square_x - b * square_y;
  const double cube_y = a * square_y + b * square_x;
  return 2 * (cube_x * x - cube_y * y);
}

static void student_remainder(const struct tb_response_rows* p_rows,
                              const double* v_t,
                              double* v_out) {
  const double n = p_rows->p_point->fixed;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double p = tb_response_weight(p_rows, k) * p_rows->p_point->scale;
    const double root = sqrt(p / n);
    v_out[k] = (n + 1) / 2 *
               student_beyond((p_rows->v_y[k] - p_rows->v_eta[k]) * root,
                              -v_t[k] * root);
  }
}

static void student_mean(const double* v_eta,
                         size_t n_row,
                         size_t n_predictor,
                         double* v_out) {
  for (size_t k = 0; k < n_row * n_predictor; ++k) {
    v_out[k] = v_eta[k];
  }
}

/* infinite with two degrees of freedom or fewer */
static void student_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  const double n = p_point->fixed;
  (void)v_mean;
  for (size_t k = 0; k < n_row; ++k) {
    const double p = p_point->scale * (v_weight == NULL ? 1 : v_weight[k]);
    v_out[k] = n > 2 ? n / (n - 2) / p : INFINITY;
  }
}

static void student_deviance(const double* v_y,
                             const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  const double n = p_point->fixed;
  for (size_t k = 0; k < n_row; ++k) {
    const double p = p_point->scale * (v_weight == NULL ? 1 : v_weight[k]);
    const double e = v_y[k] - v_mean[k];
    v_out[k] = (n + 1) * log1p(e * e * (p / n));
  }
}

static void student_simulate(const double* v_mean,
                             size_t n_row,
                             size_t n_predictor,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             struct tb_rng* p_rng,
                             double* v_out) {
  const double n = p_point->fixed;
  (void)n_predictor;
  for (size_t k = 0; k < n_row; ++k) {
    const double p = p_point->scale * (v_weight == NULL ? 1 : v_weight[k]);
    const double share = tb_rng_gamma(p_rng, n / 2) / (n / 2);
    v_out[k] = v_mean[k] + tb_rng_norm(p_rng) / sqrt(p * share);
  }
}

const struct tb_response_type tb_response_student = {
    .name = "student",
    .link = "identity",
    .citation = "Lange, Little & Taylor (1989), JASA 84:881",
    .flags = TB_RESPONSE_PRECISION,
    .p_aux = &student_aux,
    .outside = student_outside,
    .evaluate = student_evaluate,
    .mean = student_mean,
    .simulate = student_simulate,
    .variance = student_variance,
    .deviance = student_deviance,
    .prepare = student_prepare,
    .bound = student_bound,
    .third_bound = student_third_bound,
    .remainder = student_remainder,
};
