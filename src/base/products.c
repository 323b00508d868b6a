#include "base/products.h"

#include "base/clones.h"

TB_CLONES
void tb_columns_dot(const double* v_a,
                    size_t n,
                    size_t m,
                    const double* v_x,
                    double* v_out) {
  for (size_t k = 0; k < m; ++k) {
    v_out[k] = tb_row_dot(v_a + k * n, v_x, n);
  }
}

TB_CLONES
void tb_columns_add(const double* v_a,
                    size_t n,
                    size_t m,
                    const double* v_w,
                    double* v_out) {
  for (size_t k = 0; k < m; ++k) {
    tb_row_add(v_a + k * n, v_w[k], v_out, n);
  }
}
