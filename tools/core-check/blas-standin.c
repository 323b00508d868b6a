/* The few BLAS and LAPACK routines the core calls, by their definitions and
 * in all their variants: a standalone build needs no library. Column-major,
 * Fortran names; not for speed. */
#include <math.h>
#include <stddef.h>

#define AT(v, lead, i, j) (v)[(size_t)(i) + (size_t)(j) * (size_t)(lead)]

static double
element(const char* trans, const double* v, int lead, int i, int j) {
  return *trans == 'N' ? AT(v, lead, i, j) : AT(v, lead, j, i);
}

void dgemm_(const char* transa,
            const char* transb,
            const int* m,
            const int* n,
            const int* k,
            const double* alpha,
            const double* a,
            const int* lda,
            const double* b,
            const int* ldb,
            const double* beta,
            double* c,
            const int* ldc);
void dgemm_(const char* transa,
            const char* transb,
            const int* m,
            const int* n,
            const int* k,
            const double* alpha,
            const double* a,
            const int* lda,
            const double* b,
            const int* ldb,
            const double* beta,
            double* c,
            const int* ldc) {
  for (int j = 0; j < *n; ++j) {
    for (int i = 0; i < *m; ++i) {
      double sum = 0;
      for (int l = 0; l < *k; ++l) {
        sum += element(transa, a, *lda, i, l) * element(transb, b, *ldb, l, j);
      }
      double* p = &AT(c, *ldc, i, j);
      /* beta = 0 overwrites, whatever was there */
      *p = *alpha * sum + (*beta == 0 ? 0 : *beta * *p);
    }
  }
}

void dsyrk_(const char* uplo,
            const char* trans,
            const int* n,
            const int* k,
            const double* alpha,
            const double* a,
            const int* lda,
            const double* beta,
            double* c,
            const int* ldc);
void dsyrk_(const char* uplo,
            const char* trans,
            const int* n,
            const int* k,
            const double* alpha,
            const double* a,
            const int* lda,
            const double* beta,
            double* c,
            const int* ldc) {
  for (int j = 0; j < *n; ++j) {
    const int from = *uplo == 'U' ? 0 : j, to = *uplo == 'U' ? j + 1 : *n;
    for (int i = from; i < to; ++i) {
      double sum = 0;
      for (int l = 0; l < *k; ++l) {
        sum += element(trans, a, *lda, i, l) * element(trans, a, *lda, j, l);
      }
      double* p = &AT(c, *ldc, i, j);
      *p = *alpha * sum + (*beta == 0 ? 0 : *beta * *p);
    }
  }
}

void dtrsm_(const char* side,
            const char* uplo,
            const char* transa,
            const char* diag,
            const int* m,
            const int* n,
            const double* alpha,
            const double* a,
            const int* lda,
            double* b,
            const int* ldb);
void dtrsm_(const char* side,
            const char* uplo,
            const char* transa,
            const char* diag,
            const int* m,
            const int* n,
            const double* alpha,
            const double* a,
            const int* lda,
            double* b,
            const int* ldb) {
  const int is_left = *side == 'L';
  const int n_order = is_left ? *m : *n, n_system = is_left ? *n : *m;
  /* X op(A) = B is op(A)^T X^T = B^T: solve T x = b with T = op(A) on the
   * left, op(A)^T on the right */
  const char* trans = (*transa == 'N') == is_left ? "N" : "T";
  const int is_lower = (*uplo == 'L') == (*trans == 'N');
  for (int s = 0; s < n_system; ++s) {
    for (int step = 0; step < n_order; ++step) {
      const int i = is_lower ? step : n_order - 1 - step;
      double* p = is_left ? &AT(b, *ldb, i, s) : &AT(b, *ldb, s, i);
      double sum = *alpha * *p;
      for (int before = 0; before < step; ++before) {
        const int j = is_lower ? before : n_order - 1 - before;
        const double x = is_left ? AT(b, *ldb, j, s) : AT(b, *ldb, s, j);
        sum -= element(trans, a, *lda, i, j) * x;
      }
      *p = *diag == 'U' ? sum : sum / AT(a, *lda, i, i);
    }
  }
}

void dpotrf_(const char* uplo,
             const int* n,
             double* a,
             const int* lda,
             int* info);
void dpotrf_(const char* uplo,
             const int* n,
             double* a,
             const int* lda,
             int* info) {
  const int is_lower = *uplo == 'L';
#define FACTOR(i, j)                                                           \
  (*(is_lower ? &AT(a, *lda, (i), (j)) : &AT(a, *lda, (j), (i))))
  *info = 0;
  for (int j = 0; j < *n; ++j) {
    for (int i = j; i < *n; ++i) {
      double sum = FACTOR(i, j);
      for (int k = 0; k < j; ++k) {
        sum -= FACTOR(i, k) * FACTOR(j, k);
      }
      if (i == j) {
        if (!(sum > 0)) {
          *info = j + 1;
          return;
        }
        sum = sqrt(sum);
      } else {
        sum /= FACTOR(j, j);
      }
      FACTOR(i, j) = sum;
    }
  }
#undef FACTOR
}

/* P A = L U by columns, with partial pivoting; pivots count from 1 */
void dgetrf_(const int* m,
             const int* n,
             double* a,
             const int* lda,
             int* pivot,
             int* info);
void dgetrf_(const int* m,
             const int* n,
             double* a,
             const int* lda,
             int* pivot,
             int* info) {
  *info = 0;
  for (int k = 0; k < *n && k < *m; ++k) {
    int p = k;
    for (int i = k + 1; i < *m; ++i) {
      p = fabs(AT(a, *lda, i, k)) > fabs(AT(a, *lda, p, k)) ? i : p;
    }
    pivot[k] = p + 1;
    if (AT(a, *lda, p, k) == 0) {
      *info = *info == 0 ? k + 1 : *info;
      continue;
    }
    for (int j = 0; j < *n; ++j) {
      const double swap = AT(a, *lda, k, j);
      AT(a, *lda, k, j) = AT(a, *lda, p, j);
      AT(a, *lda, p, j) = swap;
    }
    for (int i = k + 1; i < *m; ++i) {
      AT(a, *lda, i, k) /= AT(a, *lda, k, k);
      for (int j = k + 1; j < *n; ++j) {
        AT(a, *lda, i, j) -= AT(a, *lda, i, k) * AT(a, *lda, k, j);
      }
    }
  }
}

/* the inverse of the matrix that dgetrf_ has factored, one column at a time;
 * work: n */
void dgetri_(const int* n,
             double* a,
             const int* lda,
             const int* pivot,
             double* work,
             const int* lwork,
             int* info);
void dgetri_(const int* n,
             double* a,
             const int* lda,
             const int* pivot,
             double* work,
             const int* lwork,
             int* info) {
  const int n_ = *n;
  *info = *lwork < n_ ? -6 : 0;
  /* U^{-1} in the upper triangle, column by column */
  for (int j = 0; j < n_; ++j) {
    AT(a, *lda, j, j) = 1 / AT(a, *lda, j, j);
    for (int i = 0; i < j; ++i) {
      double sum = 0;
      for (int k = i; k < j; ++k) {
        sum += AT(a, *lda, i, k) * AT(a, *lda, k, j);
      }
      AT(a, *lda, i, j) = -sum * AT(a, *lda, j, j);
    }
  }
  /* X L = U^{-1}: columns from the last */
  for (int j = n_ - 2; j >= 0; --j) {
    for (int i = j + 1; i < n_; ++i) {
      work[i] = AT(a, *lda, i, j);
      AT(a, *lda, i, j) = 0;
    }
    for (int k = j + 1; k < n_; ++k) {
      for (int i = 0; i < n_; ++i) {
        AT(a, *lda, i, j) -= work[k] * AT(a, *lda, i, k);
      }
    }
  }
  for (int j = n_ - 1; j >= 0; --j) {
    const int p = pivot[j] - 1;
    for (int i = 0; p != j && i < n_; ++i) {
      const double swap = AT(a, *lda, i, j);
      AT(a, *lda, i, j) = AT(a, *lda, i, p);
      AT(a, *lda, i, p) = swap;
    }
  }
}
