/* Products of dense matrices with vectors, four numbers at a time. Columns are
 * contiguous, n numbers each, m of them. */
#ifndef TB_BASE_PRODUCTS_H
#define TB_BASE_PRODUCTS_H

#include "base/vector.h"

#include <stddef.h>

/* a^T b */
TB_INLINE double tb_row_dot(const double* v_a, const double* v_b, size_t n) {
  double sum = 0;
  size_t j = 0;
#ifdef TB_VECTOR
  tb_v4d even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
  for (; j + 8 <= n; j += 8) {
    even += *(const tb_v4d*)(v_a + j) * *(const tb_v4d*)(v_b + j);
    odd += *(const tb_v4d*)(v_a + j + 4) * *(const tb_v4d*)(v_b + j + 4);
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
TB_INLINE void
tb_row_add(const double* v_row, double scale, double* v_out, size_t n) {
  size_t j = 0;
#ifdef TB_VECTOR
  for (; j + 4 <= n; j += 4) {
    *(tb_v4d*)(v_out + j) += *(const tb_v4d*)(v_row + j) * scale;
  }
#endif
  for (; j < n; ++j) {
    v_out[j] += v_row[j] * scale;
  }
}

/* v_out (m) := A^T x; v_out must not overlap the others, likewise below */
void tb_columns_dot(const double* v_a,
                    size_t n,
                    size_t m,
                    const double* v_x,
                    double* v_out);
/* v_out (n) += A w */
void tb_columns_add(const double* v_a,
                    size_t n,
                    size_t m,
                    const double* v_w,
                    double* v_out);

#endif
