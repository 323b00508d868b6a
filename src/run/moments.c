/* An observer: running moments of the kept draws, on the natural scale. */
#include "run/inside.h"

size_t tb_moments_size(const struct tb_run_spec* p_spec, size_t n) {
  return !p_spec->keeps_moments     ? 0
         : p_spec->keeps_covariance ? 1 + 2 * n + n * n
                                    : 1 + 2 * n;
}

/* Welford (1962), Technometrics 4:419. */
void tb_slot_add_moments(double* v_moments,
                         const double* v_natural,
                         size_t n_natural,
                         bool keeps_covariance,
                         double* v_shift) {
  const double n = v_moments[0] += 1;
  double* v_mean = v_moments + 1;
  double* v_square = v_mean + n_natural;
  double* v_product = v_square + n_natural;
  for (size_t j = 0; j < n_natural; ++j) {
    v_shift[j] = v_natural[j] - v_mean[j];
    v_mean[j] += v_shift[j] / n;
    v_square[j] += v_shift[j] * (v_natural[j] - v_mean[j]);
  }
  for (size_t j = 0; keeps_covariance && j < n_natural; ++j) {
    const double after = v_natural[j] - v_mean[j];
    for (size_t k = 0; k < n_natural; ++k) {
      v_product[j * n_natural + k] += v_shift[k] * after;
    }
  }
}
