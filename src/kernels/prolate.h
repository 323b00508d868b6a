/* A normal law with one long axis, N(mean, Sigma), Sigma = s^2 I + t^2 a a^T:
 * the directional noise of Bieringer, Kasieczka, Steffen & Trabs (2023, section
 * 4.1). A draw is mean + s W + t w_0 a, W ~ N(0, I), w_0 ~ N(0, 1) (the paper
 * prints Sigma W; the covariance must be Sigma). In O(P), by Sylvester's
 * determinant identity (their eq. 4) and Sherman & Morrison's inverse (eq. 5):
 *
 *   log det Sigma   = 2 P log s + log(1 + t^2 |a|^2 / s^2)
 *   z^T Sigma^-1 z  = |z - z_a|^2 / s^2 + |z_a|^2 / (s^2 + t^2 |a|^2),
 *   z_a = (z^T a / |a|^2) a
 *
 * which is (5) with the part along a split off first: nothing cancels where
 * t |a| is much larger than s. */
#ifndef TB_KERNELS_PROLATE_H
#define TB_KERNELS_PROLATE_H

#include "base/rng.h"

#include <math.h>
#include <stddef.h>

struct tb_prolate {
  double sd;            /* s */
  double sd_axis;       /* t; 0: isotropic, a is not read */
  const double* v_axis; /* n_dim: a */
  size_t n_dim;
};

/* v_out += s W + t w_0 a, v_noise (n_dim) scratch */
static inline void tb_prolate_draw(const struct tb_prolate* p_law,
                                   struct tb_rng* p_rng,
                                   double* v_noise,
                                   double* v_out) {
  tb_rng_fill_norm(p_rng, v_noise, p_law->n_dim);
  for (size_t j = 0; j < p_law->n_dim; ++j) {
    v_out[j] += p_law->sd * v_noise[j];
  }
  if (p_law->sd_axis > 0) {
    const double along = p_law->sd_axis * tb_rng_norm(p_rng);
    for (size_t j = 0; j < p_law->n_dim; ++j) {
      v_out[j] += along * p_law->v_axis[j];
    }
  }
}

/* Log density at mean + z, less -P (log s + log(2 pi) / 2), which cancels where
 * laws of the same s are compared. */
static inline double tb_prolate_log_density(const struct tb_prolate* p_law,
                                            const double* v_z) {
  const double variance = p_law->sd * p_law->sd;
  const double* v_axis = p_law->v_axis;
  double square = 0, axis2 = 0, product = 0;
  for (size_t j = 0; j < p_law->n_dim; ++j) {
    square += v_z[j] * v_z[j];
  }
  if (!(p_law->sd_axis > 0)) {
    return -0.5 * square / variance;
  }
  for (size_t j = 0; j < p_law->n_dim; ++j) {
    axis2 += v_axis[j] * v_axis[j];
    product += v_z[j] * v_axis[j];
  }
  if (!(axis2 > 0)) {
    return -0.5 * square / variance;
  }
  const double along = product / axis2;
  double across2 = 0;
  for (size_t j = 0; j < p_law->n_dim; ++j) {
    const double across = v_z[j] - along * v_axis[j];
    across2 += across * across;
  }
  const double extra = p_law->sd_axis * p_law->sd_axis * axis2;
  return -0.5 * (across2 / variance + along * product / (variance + extra) +
                 log1p(extra / variance));
}

#endif
