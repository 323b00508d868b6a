/* What the Stein discrepancies (ksd.h, fssd.h) share: the inverse
 * multiquadric kernel, and products of blocks of draws. */
#ifndef TB_DIAGNOSTICS_STEIN_H
#define TB_DIAGNOSTICS_STEIN_H

#include "base/blas.h"
#include "base/clip.h"
#include "base/clones.h"
#include "base/vmath.h"

#include <math.h>

/* Draws of a block, and the coordinates multiplied at a time. Three products of
 * blocks stay in a core's cache, and 64^3 multiplications are few enough for
 * OpenBLAS not to split them among threads of its own, for which the threads
 * here would wait. */
#define TB_STEIN_BLOCK 64

static inline double
tb_stein_inner(const double* v_a, const double* v_b, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    sum += v_a[j] * v_b[j];
  }
  return sum;
}

/* q -> q^beta, 1 / q. For beta = -1/2 by Newton's iteration for q^(-1/2) from
 * the exponent (relative error 0.034, squared four times, to rounding). */
TB_INLINE void tb_stein_powers(const double* v_q,
                               double beta,
                               double* v_kernel,
                               double* v_inverse,
                               size_t n) {
  if (beta != -0.5) {
    tb_vlog(v_q, v_kernel, n);
    for (size_t k = 0; k < n; ++k) {
      v_kernel[k] *= beta;
    }
    tb_vexp(v_kernel, v_kernel, n);
    for (size_t k = 0; k < n; ++k) {
      v_inverse[k] = 1 / v_q[k];
    }
    return;
  }
#ifdef TB_VECTOR
  /* arrays are as long as a block, so the last vector may be filled up */
  for (size_t k = 0; k < n; k += 4) {
    const tb_v4d half = 0.5 * *(const tb_v4d*)(v_q + k);
    tb_v4u bits = *(const tb_v4u*)(v_q + k);
    bits = UINT64_C(0x5fe6eb50c7b537a9) - (bits >> 1);
    tb_v4d y = (tb_v4d)bits;
    for (int step = 0; step < 4; ++step) {
      y *= 1.5 - half * y * y;
    }
    *(tb_v4d*)(v_kernel + k) = y;
    *(tb_v4d*)(v_inverse + k) = y * y;
  }
#else
  for (size_t k = 0; k < n; ++k) {
    v_inverse[k] = 1 / v_q[k];
    v_kernel[k] = sqrt(v_inverse[k]);
  }
#endif
}

/* The kernel of a block's draws x_k and one place v. */
struct tb_stein_column {
  double v_r2[TB_STEIN_BLOCK];      /* r^2 = ||x_k - v||^2 */
  double v_kernel[TB_STEIN_BLOCK];  /* q^beta, q = c^2 + r^2 */
  double v_inverse[TB_STEIN_BLOCK]; /* 1 / q */
};

/* v_size: n, ||x_k||^2; size: ||v||^2; v_inner: n, x_k.v */
TB_INLINE void tb_stein_kernel(const double* v_size,
                               double size,
                               const double* v_inner,
                               double c,
                               double beta,
                               size_t n,
                               struct tb_stein_column* p) {
  double v_q[TB_STEIN_BLOCK];
  const double c2 = c * c;
  size_t k = 0;
  /* rounding may make r^2 negative where v is a draw */
#ifdef TB_VECTOR
  for (; k + 4 <= n; k += 4) {
    const tb_v4d r2 = *(const tb_v4d*)(v_size + k) + size -
                      2.0 * *(const tb_v4d*)(v_inner + k);
    *(tb_v4d*)(p->v_r2 + k) = TB_V_SELECT(r2 > 0.0, r2, TB_V_ALL(0.0));
    *(tb_v4d*)(v_q + k) = c2 + *(const tb_v4d*)(p->v_r2 + k);
  }
#endif
  for (; k < n; ++k) {
    const double r2 = v_size[k] + size - 2 * v_inner[k];
    p->v_r2[k] = r2 > 0 ? r2 : 0;
    v_q[k] = c2 + p->v_r2[k];
  }
  for (; k % 4 != 0; ++k) { /* the last vector is filled up */
    v_q[k] = c2;
  }
  tb_stein_powers(v_q, beta, p->v_kernel, p->v_inverse, k);
}

/* C = A'B, n_row x n_column with leading dimension TB_STEIN_BLOCK, of two
 * blocks with n_dim rows */
static inline void tb_stein_product(size_t n_dim,
                                    const double* v_a,
                                    size_t n_row,
                                    const double* v_b,
                                    size_t n_column,
                                    double* v_out) {
  for (size_t j = 0; j < n_dim; j += TB_STEIN_BLOCK) {
    tb_gemm_scale('T',
                  n_row,
                  n_column,
                  tb_min(TB_STEIN_BLOCK, n_dim - j),
                  v_a + j,
                  n_dim,
                  v_b + j,
                  n_dim,
                  j > 0,
                  v_out,
                  TB_STEIN_BLOCK);
  }
}

/* Y (n_dim x n_column) = A C + scale Y, A: a block n_dim x n_row, C: leading
 * dimension TB_STEIN_BLOCK */
static inline void tb_stein_map(size_t n_dim,
                                const double* v_a,
                                size_t n_row,
                                const double* v_c,
                                size_t n_column,
                                double scale,
                                double* v_y) {
  for (size_t j = 0; j < n_dim; j += TB_STEIN_BLOCK) {
    tb_gemm_scale('N',
                  tb_min(TB_STEIN_BLOCK, n_dim - j),
                  n_column,
                  n_row,
                  v_a + j,
                  n_dim,
                  v_c,
                  TB_STEIN_BLOCK,
                  scale,
                  v_y + j,
                  n_dim);
  }
}

#endif
