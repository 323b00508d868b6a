/* Responses with outliers: y = eta + sigma / sqrt(w) times a Student t of n
 * degrees of freedom, sigma and n known or sampled as s = log sigma and
 * z = log(n - 1). With e = y - eta, p = w / sigma^2, u = e sqrt(p / n),
 * g = 1 / (1 + u^2) and A(n) = log Gamma((n + 1)/2) - log Gamma(n / 2)
 * - log(n pi)/2,
 *
 *   l = -(n + 1)/2 log(1 + u^2) + log(p)/2 + A(n)
 *   dl/deta = (n + 1)/n p e g        -d2l/deta2 = (n + 1)/n p (1 - u^2) g^2
 *   |d3l/deta3| = (n + 1)/n p sqrt(p / n) f(u), f(u) = |2u (u^2 - 3)| g^3
 *   dl/ds = (n + 1) q - 1            -d2l/deta ds = 2 (n + 1)/n p e g^2
 *                                    -d2l/ds2 = 2 (n + 1) q g, q = u^2 g
 *   dl/dn = A' - log(1 + u^2)/2 + (n + 1)/(2n) q
 *   d2l/dn2 = A'' + q [n - 1 - (n + 1) g] / (2 n^2)
 *   d2l/deta dn = p e g (q - g / n) / n    d2l/ds dn = q [1 - (n + 1) g / n]
 *   d/dz = (n - 1) d/dn              d2/dz2 = (n - 1)^2 d2/dn2 + d/dz
 *
 * The density is not log-concave: a row far out bends the other way. It rises
 * from there to f's two maxima, (3 + 2 sqrt 2)/4 at u = sqrt 2 - 1 and
 * (3 - 2 sqrt 2)/4 at sqrt 2 + 1.
 *
 * Juarez & Steel (2010), Journal of Applied Econometrics 25, have priors of n:
 * the likelihood alone does not hold it back where tails are normal.
 *
 *   symbol      variable
 *   sigma       p_point->aux
 *   1/sigma^2   p_point->scale
 *   n, A', A''  v_own[OWN_df], [OWN_first], [OWN_second] */
#include "base/gamma.h"
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

#define HALF_LOG_TAU 0.91893853320467274178

enum { OWN_df = 0, OWN_first = 1, OWN_second = 2 };

extern const struct tb_response_type tb_response_student;

static const struct tb_response_aux student_aux[] = {
    {.name = "sigma", .coordinate = "log_sigma", .lower = 0, .information = 0},
    {.name = "nu", .coordinate = "log_nu_minus_1", .lower = 1},
};

static size_t student_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

/* A, A' and A''. Beyond 100 all but their series in 1 / n cancels. */
static double constant_of(double n, double* p_first, double* p_second) {
  if (n > 100) {
    const double z = 1 / n, z2 = z * z;
    *p_first = z2 * (1.0 / 4 - z2 * (1.0 / 8 - z2 / 4));
    *p_second = -z2 * z * (1.0 / 2 - z2 * (1.0 / 2 - z2 * 3 / 2));
    return -HALF_LOG_TAU - z * (1.0 / 4 - z2 * (1.0 / 24 - z2 / 20));
  }
  const double a = (n + 1) / 2, b = n / 2;
  *p_first = (tb_digamma(a) - tb_digamma(b)) / 2 - 1 / (2 * n);
  *p_second = (tb_trigamma(a) - tb_trigamma(b)) / 4 + 1 / (2 * n * n);
  return tb_log_gamma(a) - tb_log_gamma(b) - log(b) / 2 - HALF_LOG_TAU;
}

static void student_prepare(const double* v_aux,
                            struct tb_response_point* p_point) {
  const double most = TB_RESPONSE_LARGEST_ETA;
  const bool samples_df = p_point->v_is_sampled[1];
  const double n = samples_df ? 1 + exp(fmin(v_aux[1], most)) : v_aux[1];
  double* v_own = p_point->v_own;
  tb_response_prepare_log(v_aux, p_point);
  const double constant = constant_of(n, &v_own[OWN_first], &v_own[OWN_second]);
  v_own[OWN_df] = n;
  p_point->scale = exp(-2 * p_point->log_aux);
  p_point->log_base = (p_point->v_is_sampled[0] ? -p_point->log_aux : 0) +
                      (samples_df ? constant : 0);
  p_point->log_norm = constant - p_point->log_aux;
}

/* what all results of a row are made of */
struct student_row {
  double n, lead, pull; /* (n + 1)/n p, p e */
  double square, g, share;
};

static inline struct student_row
student_row_at(const struct tb_response_rows* p_rows, size_t k) {
  const struct tb_response_point* p_at = p_rows->p_point;
  const double n = p_at->v_own[OWN_df];
  const double p = tb_response_weight(p_rows, k) * p_at->scale;
  const double e = p_rows->v_y[k] - p_rows->v_eta[k];
  const double square = e * e * (p / n), g = 1 / (1 + square);
  return (struct student_row){.n = n,
                              .lead = (n + 1) / n * p,
                              .pull = p * e,
                              .square = square,
                              .g = g,
                              .share = isinf(square) ? 1 : square * g};
}

/* dl/dn */
static inline double df_score(const struct tb_response_point* p_at,
                              const struct student_row* p) {
  return p_at->v_own[OWN_first] - log1p(p->square) / 2 +
         (p->n + 1) / (2 * p->n) * p->share;
}

/* the columns of a sampled sigma */
static void student_scale(const struct tb_response_rows* p_rows,
                          const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct student_row row = student_row_at(p_rows, k);
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[k] = (row.n + 1) * row.share - 1;
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[k] = 2 * ((row.n + 1) / row.n * row.pull * row.g * row.g);
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[k] = 2 * (row.n + 1) * row.share * row.g;
    }
  }
}

/* and of sampled degrees of freedom, behind those of sigma where it is */
static void student_df(const struct tb_response_rows* p_rows,
                       const struct tb_response_out* p_out) {
  const struct tb_response_point* p_at = p_rows->p_point;
  const size_t n_row = p_rows->n_row, at = p_at->v_is_sampled[0];
  for (size_t k = 0; k < n_row; ++k) {
    const struct student_row row = student_row_at(p_rows, k);
    const double n = row.n, g = row.g, share = row.share;
    const double score = (n - 1) * df_score(p_at, &row);
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[at * n_row + k] = score;
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[at * n_row + k] =
          -(n - 1) / n * row.pull * g * (share - g / n);
    }
    if (p_out->v_aux_curvature != NULL) {
      double* v_own = p_out->v_aux_curvature + tb_response_pair(at, at) * n_row;
      const double bend = share * ((n - 1 - (n + 1) * g) / (2 * n)) / n;
      v_own[k] = -(n - 1) * (n - 1) * (p_at->v_own[OWN_second] + bend) - score;
      if (at == 1) {
        p_out->v_aux_curvature[tb_response_pair(1, 0) * n_row + k] =
            -(n - 1) * share * (1 - (n + 1) * g / n);
      }
    }
  }
}

static void student_evaluate(const struct tb_response_rows* p_rows,
                             const struct tb_response_out* p_out) {
  const struct tb_response_point* p_at = p_rows->p_point;
  const double base = p_out->is_complete ? p_at->log_norm : p_at->log_base;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct student_row row = student_row_at(p_rows, k);
    if (p_out->v_log_density != NULL) {
      const double w = tb_response_weight(p_rows, k);
      p_out->v_log_density[k] = base - (row.n + 1) / 2 * log1p(row.square) +
                                (p_out->is_complete ? 0.5 * log(w) : 0);
    }
    if (p_out->v_score != NULL) {
      p_out->v_score[k] = (row.n + 1) / row.n * row.pull * row.g;
    }
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = row.lead * ((2 * row.g - 1) * row.g);
    }
  }
  if (p_at->v_is_sampled[0]) {
    student_scale(p_rows, p_out);
  }
  if (p_at->v_is_sampled[1]) {
    student_df(p_rows, p_out);
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
  const double root = sqrt(p / p_rows->p_point->v_own[OWN_df]);
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
  const double n = p_rows->p_point->v_own[OWN_df];
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
  const double n = p_rows->p_point->v_own[OWN_df];
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
  const double n = p_rows->p_point->v_own[OWN_df];
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double p = tb_response_weight(p_rows, k) * p_rows->p_point->scale;
    const double root = sqrt(p / n);
    v_out[k] = (n + 1) / 2 *
               student_beyond((p_rows->v_y[k] - p_rows->v_eta[k]) * root,
                              -v_t[k] * root);
  }
}

/* infinite with two degrees of freedom or fewer */
static void student_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  const double n = p_point->v_own[OWN_df];
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
  const double n = p_point->v_own[OWN_df];
  for (size_t k = 0; k < n_row; ++k) {
    const double p = p_point->scale * (v_weight == NULL ? 1 : v_weight[k]);
    const double e = v_y[k] - v_mean[k];
    v_out[k] = (n + 1) * log1p(e * e * (p / n));
  }
}

const struct tb_response_type tb_response_student = {
    .name = "student",
    .link = "identity",
    .citation = "Lange, Little & Taylor (1989), JASA 84:881",
    .flags = TB_RESPONSE_PRECISION,
    .v_aux = student_aux,
    .n_aux = 2,
    .outside = student_outside,
    .evaluate = student_evaluate,
    .mean = tb_response_same_mean,
    .variance = student_variance,
    .deviance = student_deviance,
    .prepare = student_prepare,
    .bound = student_bound,
    .third_bound = student_third_bound,
    .remainder = student_remainder,
};
