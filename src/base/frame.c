/* The products of base/frame.h. Rows are contiguous, so M phi and L g are dot
 * products of rows, M^T g and L^T x sums of rows. */
#include "base/frame.h"

#include "base/blas.h"
#include "base/clones.h"
#include "base/products.h"

#include <stdlib.h>
#include <string.h>

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
    v_theta[i] = p_frame->v_center[i] + tb_row_dot(v_row + i, v_phi + i, n - i);
  }
}

TB_CLONES
void tb_frame_map(const struct tb_frame* p_frame,
                  const double* v_phi,
                  double* v_theta) {
  const size_t n = p_frame->n_dim;
  for (size_t i = 0; i < n; ++i) {
    v_theta[i] = p_frame->is_diagonal
                     ? p_frame->v_map[i] * v_phi[i]
                     : tb_row_dot(p_frame->v_map + i * n + i, v_phi + i, n - i);
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
    tb_row_add(v_row, v_theta[i] - p_frame->v_center[i], v_phi, i + 1);
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
    tb_row_add(v_row + i, v_theta_gradient[i], v_phi_gradient + i, n - i);
  }
}

/* To BLAS, v_map by rows is M^T. */
void tb_frame_pull_hessian(const struct tb_frame* p_frame,
                           double* v_hessian,
                           double* v_work) {
  const size_t n = p_frame->n_dim;
  const double* v_map = p_frame->v_map;
  if (p_frame->is_diagonal) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = 0; i < n; ++i) {
        v_hessian[j * n + i] *= v_map[i] * v_map[j];
      }
    }
    return;
  }
  tb_gemm_op('N', 'N', n, n, n, v_map, n, v_hessian, n, 0, v_work, n);
  tb_gemm_op('N', 'T', n, n, n, v_work, n, v_map, n, 0, v_hessian, n);
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
    v_theta_gradient[i] = tb_row_dot(v_row, v_phi_gradient, i + 1);
  }
}

/* ------------------------------------------------------------------ making */

/* M = L^{-T}, row-major upper, from L, row-major lower: row i of M is column i
 * of L^{-1}, solved forward. */
static void invert_lower(size_t n, const double* v_chol, double* v_map) {
  memset(v_map, 0, n * n * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    double* v_row = v_map + i * n;
    v_row[i] = 1 / v_chol[i * n + i];
    for (size_t k = i + 1; k < n; ++k) {
      double sum = 0;
      for (size_t j = i; j < k; ++j) {
        sum += v_chol[k * n + j] * v_row[j];
      }
      v_row[k] = -sum / v_chol[k * n + k];
    }
  }
}

static size_t frame_size(const struct tb_frame* p_frame) {
  const size_t n = p_frame->n_dim;
  return n + 2 * (p_frame->is_diagonal ? n : n * n);
}

enum tb_status tb_frame_create(struct tb_frame* p_frame,
                               size_t n_dim,
                               const double* v_center,
                               const double* v_chol,
                               bool is_diagonal) {
  const size_t n_map = is_diagonal ? n_dim : n_dim * n_dim;
  struct tb_frame frame = {.n_dim = n_dim, .is_diagonal = is_diagonal};
  double* v = malloc(frame_size(&frame) * sizeof(double));
  if (v == NULL) {
    return TB_STATUS_memory;
  }
  double* v_map = v + n_dim;
  double* v_lower = v_map + n_map;
  memcpy(v, v_center, n_dim * sizeof(double));
  if (is_diagonal) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_lower[j] = v_chol[j];
      v_map[j] = 1 / v_chol[j];
    }
  } else {
    for (size_t i = 0; i < n_dim; ++i) {
      for (size_t j = 0; j < n_dim; ++j) {
        v_lower[i * n_dim + j] = j <= i ? v_chol[j * n_dim + i] : 0;
      }
    }
    invert_lower(n_dim, v_lower, v_map);
  }
  frame.v_center = v;
  frame.v_map = v_map;
  frame.v_chol = v_lower;
  *p_frame = frame;
  return TB_STATUS_ok;
}

void tb_frame_destroy(struct tb_frame* p_frame) {
  free((void*)p_frame->v_center);
  *p_frame = (struct tb_frame){0};
}

size_t tb_frame_memory(const struct tb_frame* p_frame) {
  return p_frame->v_center == NULL ? 0 : frame_size(p_frame) * sizeof(double);
}
