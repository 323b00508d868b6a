/* See responses/binomial.h. */
#include "responses/binomial.h"

#include <math.h>

/* size 0: any proportion */
size_t tb_binomial_outside(const double* v_y, size_t n, double size) {
  size_t i = 0;
  while (i < n && v_y[i] >= 0 && v_y[i] <= 1 &&
         v_y[i] * size == floor(v_y[i] * size)) {
    ++i;
  }
  return i;
}

void tb_binomial_complete(const struct tb_response_rows* p_rows,
                          const struct tb_response_out* p_out) {
  if (p_out->v_log_density == NULL || !p_out->is_complete) {
    return;
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double w = tb_response_weight(p_rows, k), y = p_rows->v_y[k];
    if (w != 1) {
      p_out->v_log_density[k] +=
          lgamma(w + 1) - lgamma(w * y + 1) - lgamma(w * (1 - y) + 1);
    }
  }
}

void tb_binomial_variance(const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    const double m = v_mean[k];
    v_out[k] = m * (1 - m) / (v_weight == NULL ? 1 : v_weight[k]);
  }
}

/* y log(y / mu), and its limit 0 at y = 0 */
static double gain(double y, double mu) {
  return y == 0 ? 0 : y * log(y / mu);
}

void tb_binomial_deviance(const double* v_y,
                          const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  (void)p_point;
  for (size_t k = 0; k < n_row; ++k) {
    const double y = v_y[k], mu = v_mean[k];
    v_out[k] = 2 * (v_weight == NULL ? 1 : v_weight[k]) *
               (gain(y, mu) + gain(1 - y, 1 - mu));
  }
}
