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

/* of n_block columns from `first` on, what is above them done */
static bool upper_block(size_t n, size_t first, size_t n_block, double* v_a) {
  for (size_t j = first; j < first + n_block; ++j) {
    double* v_column = v_a + j * n;
    for (size_t i = first; i < j; ++i) {
      const double* v_before = v_a + i * n;
      double sum = v_column[i];
      for (size_t k = first; k < i; ++k) {
        sum -= v_before[k] * v_column[k];
      }
      v_column[i] = sum / v_before[i];
    }
    double pivot = v_column[j];
    for (size_t k = first; k < j; ++k) {
      pivot -= v_column[k] * v_column[k];
    }
    if (!(pivot > 0) || !isfinite(pivot)) {
      return false;
    }
    v_column[j] = sqrt(pivot);
  }
  return true;
}

bool tb_chol_upper(size_t n, double* v_a) {
  return tb_chol_upper_part(n, 0, n, v_a);
}

bool tb_chol_upper_part(size_t n, size_t n_had, size_t n_done, double* v_a) {
  enum { N_BLOCK = 48 };
  for (size_t first = n_had; first < n_done; first += N_BLOCK) {
    const size_t n_block = n_done - first < N_BLOCK ? n_done - first : N_BLOCK;
    const size_t next = first + n_block, n_rest = n - next;
    if (!upper_block(n, first, n_block, v_a)) {
      return false;
    }
    if (n_rest > 0) {
      double* v_right = v_a + next * n + first;
      tb_trsm('U',
              'T',
              n_block,
              n_rest,
              v_a + first * n + first,
              n,
              v_right,
              n);
      tb_syrk('T', n_rest, n_block, -1, v_right, n, v_a + next * n + next, n);
    }
  }
  return true;
}

void tb_upper_solve_transposed(size_t n, const double* v_upper, double* v) {
  for (size_t j = 0; j < n; ++j) {
    const double* v_column = v_upper + j * n;
    double sum = v[j];
    for (size_t i = 0; i < j; ++i) {
      sum -= v_column[i] * v[i];
    }
    v[j] = sum / v_column[j];
  }
}

void tb_upper_solve(size_t n, const double* v_upper, double* v) {
  for (size_t j = n; j-- > 0;) {
    const double* v_column = v_upper + j * n;
    v[j] /= v_column[j];
    for (size_t i = 0; i < j; ++i) {
      v[i] -= v_column[i] * v[j];
    }
  }
}

void tb_chol_inverse(size_t n,
                     const double* v_lower,
                     double* v_work,
                     double* v_out) {
  memset(v_work, 0, n * n * sizeof(double));
  for (size_t j = 0; j < n; ++j) {
    v_work[j * n + j] = 1;
  }
  tb_trsm('L', 'N', n, n, v_lower, n, v_work, n);
  tb_gemm('T', n, n, n, v_work, n, v_work, n, v_out, n);
}
