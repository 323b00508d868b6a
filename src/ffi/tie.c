/* Door to rows that are alike. */
#include "ffi/model.h"

#include "passes/tie.h"

#include <limits.h>

/* Columns of a list of matrices and vectors of doubles, the first n_row rows of
 * which are looked at. */
static const double** columns_of(SEXP x, size_t n_row, size_t* p_n) {
  if (TYPEOF(x) != VECSXP) {
    ffi_fault("columns");
  }
  const R_xlen_t n_part = Rf_xlength(x);
  size_t n = 0;
  for (R_xlen_t k = 0; k < n_part; ++k) {
    SEXP part = VECTOR_ELT(x, k);
    n += Rf_isMatrix(part) ? (size_t)Rf_ncols(part) : 1;
  }
  const double** v_column =
      (const double**)R_alloc(n + 1, sizeof(const double*));
  size_t at = 0;
  for (R_xlen_t k = 0; k < n_part; ++k) {
    SEXP part = VECTOR_ELT(x, k);
    size_t n_have = (size_t)Rf_xlength(part), n_col = 1;
    if (Rf_isMatrix(part)) {
      ffi_shape(part, &n_have, &n_col, "columns");
    }
    if (TYPEOF(part) != REALSXP || n_have < n_row) {
      ffi_fault("columns");
    }
    for (size_t j = 0; j < n_col; ++j) {
      v_column[at++] = REAL(part) + j * n_have;
    }
  }
  *p_n = at;
  return v_column;
}

/* Of the first n rows: list(first, count, group), the first row, from 1, of
 * each group of alike rows, and how many they are; a row counts as many as
 * count says (NULL: one). group: the group of each row, from 1, where `groups`
 * is TRUE. Or a status. */
SEXP ffi_tie_rows(SEXP columns, SEXP n, SEXP count, SEXP groups) {
  const size_t n_row = ffi_as_count(n, "n");
  if (n_row >= INT_MAX) {
    ffi_fault("n");
  }
  size_t n_column, n_group = 0;
  const double** v_column = columns_of(columns, n_row, &n_column);
  const double* v_own =
      count == R_NilValue ? NULL : ffi_doubles(count, n_row, "count");
  uint32_t* v_group = (uint32_t*)R_alloc(n_row + 1, sizeof(uint32_t));
  uint32_t* v_first = (uint32_t*)R_alloc(n_row + 1, sizeof(uint32_t));
  const enum tb_status status =
      tb_tie_rows(v_column, n_column, n_row, v_group, v_first, &n_group);
  if (status != TB_STATUS_ok) {
    return ffi_status(status);
  }
  const bool has_groups = Rf_asLogical(groups) == TRUE;
  SEXP out = PROTECT(ffi_list(has_groups ? 3 : 2));
  double* v_row = ffi_add_vector(out, "first", n_group);
  double* v_count = ffi_add_vector(out, "count", n_group);
  for (size_t g = 0; g < n_group; ++g) {
    v_row[g] = (double)v_first[g] + 1;
    v_count[g] = 0;
  }
  for (size_t i = 0; i < n_row; ++i) {
    v_count[v_group[i]] += v_own == NULL ? 1 : v_own[i];
  }
  if (has_groups) {
    SEXP group = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t)n_row));
    for (size_t i = 0; i < n_row; ++i) {
      INTEGER(group)[i] = (int)v_group[i] + 1;
    }
    ffi_add(out, "group", group);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return out;
}
