#include "base/norm.h"

#include "base/clones.h"
#include "base/vector.h"

#include <math.h>

/* Four vectors at once: a sum waits for the one before it. */
TB_CLONES
double tb_square_norm(const double* v, size_t n) {
  double sum = 0;
  size_t j = 0;
#ifdef TB_VECTOR
  tb_v4d v_sum[4] = {{0}, {0}, {0}, {0}};
  for (; j + 16 <= n; j += 16) {
    const tb_v4d* v_x = (const tb_v4d*)(v + j);
    v_sum[0] += v_x[0] * v_x[0];
    v_sum[1] += v_x[1] * v_x[1];
    v_sum[2] += v_x[2] * v_x[2];
    v_sum[3] += v_x[3] * v_x[3];
  }
  for (; j + 4 <= n; j += 4) {
    v_sum[0] += *(const tb_v4d*)(v + j) * *(const tb_v4d*)(v + j);
  }
  const tb_v4d s = (v_sum[0] + v_sum[1]) + (v_sum[2] + v_sum[3]);
  sum = (s[0] + s[1]) + (s[2] + s[3]);
#endif
  for (; j < n; ++j) {
    sum += v[j] * v[j];
  }
  return sum;
}

TB_CLONES
void tb_column_sums(const double* v,
                    size_t n,
                    size_t n_column,
                    const double* v_weight,
                    double* v_out) {
  for (size_t j = 0; j < n_column; ++j, v += n) {
    /* enough sums in flight to hide the latency of an addition */
    double v_part[16] = {0};
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

double tb_add_sum(double sum, const double* v, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    sum += v[i];
  }
  return sum;
}

double tb_add_squares(double sum, const double* v, size_t n, double mean) {
  for (size_t i = 0; i < n; ++i) {
    sum += (v[i] - mean) * (v[i] - mean);
  }
  return sum;
}

double tb_sd(const double* v, size_t n) {
  const double mean = tb_add_sum(0, v, n) / (double)n;
  const double square = tb_add_squares(0, v, n, mean);
  return n > 1 ? sqrt(square / (double)(n - 1)) : 0;
}
