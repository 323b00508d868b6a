/* The products of core/frame.h. Rows are contiguous, so M phi and L g are dot
 * products of rows, M^T g and L^T x sums of rows. */
#include "core/frame.h"

#include "core/clones.h"
#include "core/vector.h"

#include <string.h>

TB_INLINE double row_dot(const double* v_a, const double* v_b, size_t n) {
  double sum = 0;
  size_t j = 0;
#ifdef TB_VECTOR
  tb_v4d even = { 0, 0, 0, 0 }, odd = { 0, 0, 0, 0 };
  for (; j + 8 <= n; j += 8) {
    even += *(const tb_v4d*) (v_a + j) * *(const tb_v4d*) (v_b + j);
    odd += *(const tb_v4d*) (v_a + j + 4) * *(const tb_v4d*) (v_b + j + 4);
  }
  even += odd;
  sum = (even[0] + even[1]) + (even[2] + even[3]);
#endif
  for (; j < n; ++j) {
    sum += v_a[j] * v_b[j];
  }
  return sum;
}

/* v_out += scale v_row */
TB_INLINE void row_add(const double* v_row,
                       double scale,
                       double* v_out,
                       size_t n) {
  size_t j = 0;
#ifdef TB_VECTOR
  for (; j + 4 <= n; j += 4) {
    *(tb_v4d*) (v_out + j) += *(const tb_v4d*) (v_row + j) * scale;
  }
#endif
  for (; j < n; ++j) {
    v_out[j] += v_row[j] * scale;
  }
}

/* Row i of M starts at its diagonal, row i of L ends there. */

TB_CLONES
void tb_frame_to_parameter(const struct tb_frame* p_frame,
                           const double* v_phi,
                           double* v_theta) {
  const size_t n = p_frame->n_dim;
  if (p_frame->is_diagonal) {
    for (size_t i = 0; i < n; ++i) {
      v_theta[i] = p_frame->v_center[i] + p_frame->v_map[i] * v_phi[i];
    }
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    const double* v_row = p_frame->v_map + i * n;
    v_theta[i] = p_frame->v_center[i] + row_dot(v_row + i, v_phi + i, n - i);
  }
}

TB_CLONES
void tb_frame_map(const struct tb_frame* p_frame,
                  const double* v_phi,
                  double* v_theta) {
  const size_t n = p_frame->n_dim;
  for (size_t i = 0; i < n; ++i) {
    v_theta[i] =
      p_frame->is_diagonal
        ? p_frame->v_map[i] * v_phi[i]
        : row_dot(p_frame->v_map + i * n + i, v_phi + i, n - i);
  }
}

TB_CLONES
void tb_frame_to_sampler(const struct tb_frame* p_frame,
                         const double* v_theta,
                         double* v_phi) {
  const size_t n = p_frame->n_dim;
  if (p_frame->is_diagonal) {
    for (size_t i = 0; i < n; ++i) {
      v_phi[i] = p_frame->v_chol[i] * (v_theta[i] - p_frame->v_center[i]);
    }
    return;
  }
  memset(v_phi, 0, n * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    const double* v_row = p_frame->v_chol + i * n;
    row_add(v_row, v_theta[i] - p_frame->v_center[i], v_phi, i + 1);
  }
}

TB_CLONES
void tb_frame_pull_gradient(const struct tb_frame* p_frame,
                            const double* v_theta_gradient,
                            double* v_phi_gradient) {
  const size_t n = p_frame->n_dim;
  if (p_frame->is_diagonal) {
    for (size_t i = 0; i < n; ++i) {
      v_phi_gradient[i] = p_frame->v_map[i] * v_theta_gradient[i];
    }
    return;
  }
  memset(v_phi_gradient, 0, n * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    const double* v_row = p_frame->v_map + i * n;
    row_add(v_row + i, v_theta_gradient[i], v_phi_gradient + i, n - i);
  }
}

TB_CLONES
void tb_frame_push_gradient(const struct tb_frame* p_frame,
                            const double* v_phi_gradient,
                            double* v_theta_gradient) {
  const size_t n = p_frame->n_dim;
  if (p_frame->is_diagonal) {
    for (size_t i = 0; i < n; ++i) {
      v_theta_gradient[i] = p_frame->v_chol[i] * v_phi_gradient[i];
    }
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    const double* v_row = p_frame->v_chol + i * n;
    v_theta_gradient[i] = row_dot(v_row, v_phi_gradient, i + 1);
  }
}
