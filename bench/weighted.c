/* A plain loop over the rows of a matrix for X^T W X, W = p (1 - p) of a
 * logistic regression at 0: what any pass has to do at the least. Rows are made
 * from the columns of a data frame as they are needed: six numbers, seven
 * indicators of a factor of eight levels, and 1. */
#include <R.h>
#include <Rinternals.h>

enum { N_NUMBER = 6, N_COLUMN = 14 };

/* numbers: a list of six double vectors; level: integers 1 to 8; out: 14 x 14 */
SEXP weighted_factor(SEXP numbers, SEXP level, SEXP out) {
  const R_xlen_t n = Rf_xlength(level);
  const int* v_level = INTEGER(level);
  const double* v_number[N_NUMBER];
  double* v_out = REAL(out);
  for (int k = 0; k < N_NUMBER; ++k) {
    v_number[k] = REAL(VECTOR_ELT(numbers, k));
  }
  for (R_xlen_t i = 0; i < n; ++i) {
    double v_row[N_COLUMN] = {1};
    for (int k = 0; k < N_NUMBER; ++k) {
      v_row[1 + k] = v_number[k][i];
    }
    if (v_level[i] > 1) {
      v_row[N_NUMBER + v_level[i] - 1] = 1;
    }
    for (int j = 0; j < N_COLUMN; ++j) {
      const double w = 0.25 * v_row[j];
      for (int k = 0; k <= j; ++k) {
        v_out[j * N_COLUMN + k] += w * v_row[k];
      }
    }
  }
  return R_NilValue;
}

/* x: a list of double vectors; out: a square of their number */
SEXP weighted_columns(SEXP x, SEXP out) {
  enum { MOST = 64 };
  const int d = (int) Rf_xlength(x);
  const R_xlen_t n = Rf_xlength(VECTOR_ELT(x, 0));
  const double* v_x[MOST];
  double v_row[MOST];
  double* v_out = REAL(out);
  if (d > MOST) {
    Rf_error("too many columns");
  }
  for (int k = 0; k < d; ++k) {
    v_x[k] = REAL(VECTOR_ELT(x, k));
  }
  for (R_xlen_t i = 0; i < n; ++i) {
    for (int k = 0; k < d; ++k) {
      v_row[k] = v_x[k][i];
    }
    for (int j = 0; j < d; ++j) {
      const double w = 0.25 * v_row[j];
      for (int k = 0; k <= j; ++k) {
        v_out[j * d + k] += w * v_row[k];
      }
    }
  }
  return R_NilValue;
}
