/* Log likelihood of a generalised linear model at many points: what the
 * reference posteriors of accuracy.R and classes.R are computed with. It shares
 * no code with the package. */
#define USE_FC_LEN_T
#include <R.h>
#include <R_ext/BLAS.h>
#include <Rinternals.h>
#include <math.h>
#ifndef FCONE
#define FCONE
#endif

enum { ROWS = 1024, TERMS = 32 };

/* sum of log(1 + exp(eta)); a logarithm for every 32 terms */
static double sum_softplus(const double* v_eta, int n) {
  double sum = 0;
  int i = 0;
  for (; i < n; i += TERMS) {
    const int end = i + TERMS < n ? i + TERMS : n;
    double v_term[TERMS], positive = 0, product = 1;
    for (int k = 0; k < end - i; ++k) {
      v_term[k] = exp(-fabs(v_eta[i + k]));
      positive += v_eta[i + k] > 0 ? v_eta[i + k] : 0;
    }
    for (int k = 0; k < end - i; ++k) {
      product *= 1 + v_term[k];
    }
    sum += positive + log(product);
  }
  return sum;
}

static double sum_exp(const double* v_eta, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += exp(v_eta[i]);
  }
  return sum;
}

/* x: n x d, y: n, theta: d x K; family "bernoulli" or "poisson".
 * K values of sum_i y_i eta_i - b(eta_i). */
SEXP log_lik_many(SEXP x, SEXP y, SEXP theta, SEXP family) {
  const int n = Rf_nrows(x), d = Rf_ncols(x), n_point = Rf_ncols(theta);
  const int is_poisson = CHAR(STRING_ELT(family, 0))[0] == 'p';
  const double one = 1, zero = 0;
  SEXP out = PROTECT(Rf_allocVector(REALSXP, n_point));
  double* v_eta = (double*)R_alloc((size_t)ROWS * n_point, sizeof(double));
  double* v_out = REAL(out);
  const double* v_y = REAL(y);
  for (int p = 0; p < n_point; ++p) {
    v_out[p] = 0;
  }
  for (int start = 0; start < n; start += ROWS) {
    const int n_row = n - start < ROWS ? n - start : ROWS;
    F77_CALL(dgemm)
    ("N",
     "N",
     &n_row,
     &n_point,
     &d,
     &one,
     REAL(x) + start,
     &n,
     REAL(theta),
     &d,
     &zero,
     v_eta,
     &n_row FCONE FCONE);
    for (int p = 0; p < n_point; ++p) {
      const double* v = v_eta + (size_t)p * n_row;
      double linear = 0;
      for (int i = 0; i < n_row; ++i) {
        linear += v_y[start + i] * v[i];
      }
      v_out[p] +=
          linear - (is_poisson ? sum_exp(v, n_row) : sum_softplus(v, n_row));
    }
  }
  UNPROTECT(1);
  return out;
}

/* x: n x d, class: n, from 0, theta: d (C - 1) x K, those of the classes but
 * the first one after the other. K values of sum_i eta_{i, y_i} - log sum_c
 * e^eta_ic.
 */
SEXP softmax_many(SEXP x, SEXP class, SEXP theta) {
  const int n = Rf_nrows(x), d = Rf_ncols(x), n_point = Rf_ncols(theta);
  const int n_class = Rf_nrows(theta) / d;
  const double one = 1, zero = 0;
  SEXP out = PROTECT(Rf_allocVector(REALSXP, n_point));
  double* v_eta = (double*)R_alloc((size_t)ROWS * n_class, sizeof(double));
  double v_total[ROWS], *v_out = REAL(out);
  const int* v_class = INTEGER(class);
  for (int p = 0; p < n_point; ++p) {
    v_out[p] = 0;
  }
  for (int start = 0; start < n; start += ROWS) {
    const int n_row = n - start < ROWS ? n - start : ROWS;
    for (int p = 0; p < n_point; ++p) {
      F77_CALL(dgemm)
      ("N",
       "N",
       &n_row,
       &n_class,
       &d,
       &one,
       REAL(x) + start,
       &n,
       REAL(theta) + (size_t)p * d * n_class,
       &d,
       &zero,
       v_eta,
       &n_row FCONE FCONE);
      double sum = 0;
      for (int i = 0; i < n_row; ++i) {
        const int c = v_class[start + i];
        v_total[i] = 1;
        sum += c > 0 ? v_eta[(size_t)(c - 1) * n_row + i] : 0;
      }
      for (int c = 0; c < n_class; ++c) {
        for (int i = 0; i < n_row; ++i) {
          v_total[i] += exp(v_eta[(size_t)c * n_row + i]);
        }
      }
      for (int i = 0; i < n_row; ++i) {
        sum -= log(v_total[i]);
      }
      v_out[p] += sum;
    }
  }
  UNPROTECT(1);
  return out;
}
