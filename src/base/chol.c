#include "base/chol.h"

#include "base/blas.h"

#include <math.h>
#include <string.h>

/* Column by column. A pivot below this share of its diagonal is rounding. */
#define LEAST 1e-13

bool tb_chol(size_t n, const double* v_a, double* v_lower) {
  if (v_lower != v_a) {
    memcpy(v_lower, v_a, n * n * sizeof(double));
  }
  for (size_t j = 0; j < n; ++j) {
    double* v_column = v_lower + j * n;
    const double diagonal = v_column[j];
    for (size_t k = 0; k < j; ++k) {
      const double* v_before = v_lower + k * n;
      const double factor = v_before[j];
      for (size_t i = j; i < n; ++i) {
        v_column[i] -= factor * v_before[i];
      }
    }
    if (!(v_column[j] > LEAST * diagonal) || !isfinite(v_column[j])) {
      return false;
    }
    const double root = sqrt(v_column[j]);
    for (size_t i = j; i < n; ++i) {
      v_column[i] /= root;
    }
    memset(v_column, 0, j * sizeof(double));
  }
  return true;
}

void tb_chol_inverse(size_t n,
                     const double* v_lower,
                     double* v_work,
                     double* v_out) {
  memset(v_work, 0, n * n * sizeof(double));
  for (size_t j = 0; j < n; ++j) {
    v_work[j * n + j] = 1;
  }
  tb_trsm_lower(n, n, v_lower, n, v_work, n);
  tb_gemm('T', n, n, n, v_work, n, v_work, n, v_out, n);
}
