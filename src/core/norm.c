#include "core/norm.h"

#include "core/clones.h"

TB_CLONES
double tb_square_norm(const double* v, size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    s0 += v[j] * v[j];
    s1 += v[j + 1] * v[j + 1];
    s2 += v[j + 2] * v[j + 2];
    s3 += v[j + 3] * v[j + 3];
  }
  for (; j < n; ++j) {
    s0 += v[j] * v[j];
  }
  return (s0 + s1) + (s2 + s3);
}

TB_CLONES
void tb_column_sums(const double* v,
                    size_t n,
                    size_t n_column,
                    const double* v_weight,
                    double* v_out) {
  for (size_t j = 0; j < n_column; ++j, v += n) {
    /* enough sums in flight to hide the latency of an addition */
    double v_part[16] = { 0 };
    double rest = 0;
    size_t k = 0;
    for (; k + 16 <= n; k += 16) {
      for (size_t m = 0; m < 16; ++m) {
        v_part[m] += v_weight[k + m] * v[k + m];
      }
    }
    for (; k < n; ++k) {
      rest += v_weight[k] * v[k];
    }
    for (size_t m = 0; m < 16; ++m) {
      rest += v_part[m];
    }
    v_out[j] = rest;
  }
}
