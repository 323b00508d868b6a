/* LAPACK through R's own; see base/blas.h. */
#ifndef TB_BASE_LAPACK_H
#define TB_BASE_LAPACK_H

#include "base/blas.h"

#include <math.h>
#include <stdbool.h>

#ifdef TB_STANDALONE
void dgetrf_(const int*, const int*, double*, const int*, int*, int*);
void dgetri_(const int*,
             double*,
             const int*,
             const int*,
             double*,
             const int*,
             int*);
#else
#include <R_ext/Lapack.h>
#endif

/* v_a (n x n, column-major) := its inverse; *p_log_det = log |det|. v_work: n
 * doubles, v_pivot: n. FALSE if the matrix is singular: v_a is then of no use
 * and *p_log_det is -Inf. */
static inline bool tb_invert(size_t n,
                             double* v_a,
                             double* v_work,
                             int* v_pivot,
                             double* p_log_det) {
  const int n_ = (int)n;
  int info = 0;
  *p_log_det = -INFINITY;
  TB_FORTRAN(dgetrf)(&n_, &n_, v_a, &n_, v_pivot, &info);
  if (info != 0) {
    return false;
  }
  double log_det = 0;
  for (size_t k = 0; k < n; ++k) {
    log_det += log(fabs(v_a[k * n + k]));
  }
  TB_FORTRAN(dgetri)(&n_, v_a, &n_, v_pivot, v_work, &n_, &info);
  *p_log_det = info == 0 ? log_det : -INFINITY;
  return info == 0;
}

#endif
