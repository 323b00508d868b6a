/* Log likelihood of a logistic regression on cells (rows that repeat), and its
 * gradient; rows are sparse. Shares no code with the package. Used by
 * reference-cells.R. */
#include <R.h>
#include <Rinternals.h>
#include <math.h>

/* start: n_cell + 1; column, value: their entries, columns from 0. count,
 * event: rows of a cell, and how many are 1. list(log likelihood, gradient,
 * predictor) */
SEXP cells_gradient(SEXP start,
                    SEXP column,
                    SEXP value,
                    SEXP count,
                    SEXP event,
                    SEXP theta) {
  const int n_cell = length(count), n_dim = length(theta);
  const int *v_start = INTEGER(start), *v_column = INTEGER(column);
  const double *v_value = REAL(value), *v_count = REAL(count);
  const double *v_event = REAL(event), *v_theta = REAL(theta);
  const char* names[] = {"value", "gradient", "eta", ""};
  SEXP out = PROTECT(mkNamed(VECSXP, names));
  SEXP gradient = allocVector(REALSXP, n_dim);
  SET_VECTOR_ELT(out, 1, gradient);
  SEXP eta = allocVector(REALSXP, n_cell);
  SET_VECTOR_ELT(out, 2, eta);
  double* v_gradient = REAL(gradient);
  for (int j = 0; j < n_dim; ++j) {
    v_gradient[j] = 0;
  }
  double sum = 0;
  for (int i = 0; i < n_cell; ++i) {
    double at = 0;
    for (int k = v_start[i]; k < v_start[i + 1]; ++k) {
      at += v_value[k] * v_theta[v_column[k]];
    }
    REAL(eta)[i] = at;
    const double e = exp(-fabs(at));
    sum += v_event[i] * at - v_count[i] * ((at > 0 ? at : 0) + log1p(e));
    const double p = at > 0 ? 1 / (1 + e) : e / (1 + e);
    const double r = v_event[i] - v_count[i] * p;
    for (int k = v_start[i]; k < v_start[i + 1]; ++k) {
      v_gradient[v_column[k]] += v_value[k] * r;
    }
  }
  SET_VECTOR_ELT(out, 0, ScalarReal(sum));
  UNPROTECT(1);
  return out;
}
