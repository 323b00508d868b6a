/* Counts, mu = e^eta:
 *
 *   l = w (y eta - e^eta - log y!)
 *   dl/deta = w (y - mu),  -d2l/deta2 = |d3l/deta3| = w mu */
#include "base/clones.h"
#include "base/vmath.h"
#include "responses/remainder.h"
#include "responses/response.h"

#include <math.h>

static size_t poisson_outside(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && v_y[i] >= 0 && v_y[i] == floor(v_y[i])) {
    ++i;
  }
  return i;
}

static TB_CLONES void poisson_log_density(const struct tb_response_rows* p_rows,
                                          double* v_out) {
  const size_t n = p_rows->n_row;
  tb_vexp(p_rows->v_eta, v_out, n);
  for (size_t k = 0; k < n; ++k) {
    /* 0 * Inf: an impossible y = 0 term is 0 */
    const double linear =
        p_rows->v_y[k] == 0 ? 0 : p_rows->v_y[k] * p_rows->v_eta[k];
    v_out[k] = tb_response_weight(p_rows, k) * (linear - v_out[k]);
  }
}

static TB_CLONES void
exponential(const double* v_eta, size_t n, double* v_out) {
  tb_vexp(v_eta, v_out, n);
}

static void poisson_evaluate(const struct tb_response_rows* p_rows,
                             const struct tb_response_out* p_out) {
  double* v_log_density = p_out->v_log_density;
  double* v_score = p_out->v_score;
  double* v_curvature = p_out->v_curvature;
  double* v_mean = v_score == NULL ? v_curvature : v_score;
  if (v_log_density != NULL) {
    poisson_log_density(p_rows, v_log_density);
    for (size_t k = 0; p_out->is_complete && k < p_rows->n_row; ++k) {
      v_log_density[k] -=
          tb_response_weight(p_rows, k) * lgamma(p_rows->v_y[k] + 1);
    }
  }
  if (v_mean == NULL) {
    return;
  }
  exponential(p_rows->v_eta, p_rows->n_row, v_mean);
  for (size_t k = 0; v_curvature != NULL && k < p_rows->n_row; ++k) {
    v_curvature[k] = tb_response_weight(p_rows, k) * v_mean[k];
  }
  for (size_t k = 0; v_score != NULL && k < p_rows->n_row; ++k) {
    v_score[k] = tb_response_weight(p_rows, k) * (p_rows->v_y[k] - v_mean[k]);
  }
}

static void poisson_third_bound(const struct tb_response_rows* p_rows,
                                const double* v_reach,
                                double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double end = p_rows->v_eta[k] + v_reach[k];
    v_out[k] = end == INFINITY ? INFINITY
                               : tb_response_weight(p_rows, k) *
                                     exp(fmin(end, TB_RESPONSE_LARGEST_ETA));
  }
}

static void poisson_bound(const struct tb_response_rows* p_rows,
                          const double* v_reach,
                          const struct tb_response_out* p_out) {
  poisson_third_bound(p_rows, v_reach, p_out->v_curvature);
}

/* w e^eta (e^t - 1 - t - t^2 / 2) */
static TB_CLONES void poisson_remainder(const struct tb_response_rows* p_rows,
                                        const double* v_t,
                                        double* v_out) {
  const size_t n = p_rows->n_row;
  for (size_t k = 0; k < n; k += TB_LANE) {
    tb_lane mean, t, w = TB_LANE_ALL(1.0);
    tb_lane_load(p_rows->v_eta, k, n, &mean);
    tb_lane_load(v_t, k, n, &t);
    if (p_rows->v_weight != NULL) {
      tb_lane_load(p_rows->v_weight, k, n, &w);
    }
    tb_v4_exp(&mean);
    tb_lane_exp_remainder(&t);
    t = w * mean * t;
    tb_lane_store(&t, k, n, v_out);
  }
  for (size_t k = 0; k < n; ++k) {
    if (fabs(v_t[k]) > TB_REMAINDER_FAR) {
      v_out[k] = tb_exp_remainder(tb_response_weight(p_rows, k),
                                  p_rows->v_eta[k],
                                  v_t[k]);
    }
  }
}

static void poisson_mean(const double* v_eta,
                         size_t n_row,
                         size_t n_predictor,
                         double* v_out) {
  exponential(v_eta, n_row * n_predictor, v_out);
}

/* weights are equal rows: each of them has this variance */
static void poisson_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  (void)v_weight;
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = v_mean[k];
  }
}

static void poisson_deviance(const double* v_y,
                             const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    const double y = v_y[k], mu = v_mean[k];
    const double gain = y == 0 ? 0 : y * log(y / mu);
    v_out[k] = 2 * (v_weight == NULL ? 1 : v_weight[k]) * (gain - (y - mu));
  }
}

const struct tb_response_type tb_response_poisson_log = {
    .name = "poisson",
    .link = "log",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .outside = poisson_outside,
    .evaluate = poisson_evaluate,
    .mean = poisson_mean,
    .variance = poisson_variance,
    .deviance = poisson_deviance,
    .bound = poisson_bound,
    .third_bound = poisson_third_bound,
    .remainder = poisson_remainder,
};
