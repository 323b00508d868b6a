/* Doors to what a look wants of a column: whether values are missing, and where
 * those that are finite are least and most. */
#include "ffi/args.h"

/* Ends of values that are finite; rows from 0, n where there is none. */
struct ends {
  double least, most;
  size_t least_row, most_row, bad_row;
  size_t n_missing;
};

static void meet(struct ends* p, double x, size_t row, size_t n) {
  if (ISNAN(x)) {
    ++p->n_missing;
  } else if (!R_FINITE(x)) {
    p->bad_row = p->bad_row == n ? row : p->bad_row;
  } else {
    if (p->least_row == n || x < p->least) {
      p->least = x;
      p->least_row = row;
    }
    if (p->most_row == n || x > p->most) {
      p->most = x;
      p->most_row = row;
    }
  }
}

static double row_number(size_t row, size_t n) {
  return row == n ? NA_REAL : 1 + (double)row;
}

/* Of n values after `first`, without those whose keep (NULL, or logical of n)
 * is not TRUE: list(min, max, min_row, max_row, n_missing, bad_row), rows from
 * 1, NA where there is none; bad_row: the first that is infinite. */
SEXP ffi_column_ranges(SEXP values, SEXP first, SEXP n, SEXP keep) {
  const size_t from = ffi_as_count(first, "first"), size = ffi_as_count(n, "n");
  const int type = TYPEOF(values);
  if ((type != REALSXP && type != INTSXP && type != LGLSXP) ||
      (size_t)Rf_xlength(values) < from + size) {
    ffi_fault("values");
  }
  if (keep != R_NilValue &&
      (TYPEOF(keep) != LGLSXP || (size_t)Rf_xlength(keep) != size)) {
    ffi_fault("keep");
  }
  const int* v_keep = keep == R_NilValue ? NULL : LOGICAL(keep);
  const double* v_double = type == REALSXP ? REAL(values) + from : NULL;
  const int* v_int = type == INTSXP   ? INTEGER(values) + from
                     : type == LGLSXP ? LOGICAL(values) + from
                                      : NULL;
  struct ends ends = {.least = NA_REAL,
                      .most = NA_REAL,
                      .least_row = size,
                      .most_row = size,
                      .bad_row = size};
  for (size_t i = 0; i < size; ++i) {
    if (v_keep == NULL || v_keep[i] == 1) {
      const double x = v_double != NULL         ? v_double[i]
                       : v_int[i] == NA_INTEGER ? NA_REAL
                                                : v_int[i];
      meet(&ends, x, i, size);
    }
  }
  SEXP out = PROTECT(ffi_list(6));
  ffi_add_number(out, "min", ends.least);
  ffi_add_number(out, "max", ends.most);
  ffi_add_number(out, "min_row", row_number(ends.least_row, size));
  ffi_add_number(out, "max_row", row_number(ends.most_row, size));
  ffi_add_number(out, "n_missing", (double)ends.n_missing);
  ffi_add_number(out, "bad_row", row_number(ends.bad_row, size));
  UNPROTECT(1);
  return out;
}

/* Is one of the n values after `first` missing, or not a number? */
SEXP ffi_column_missing(SEXP values, SEXP first, SEXP n) {
  const size_t from = ffi_as_count(first, "first"), size = ffi_as_count(n, "n");
  const int type = TYPEOF(values);
  if ((type != REALSXP && type != INTSXP && type != LGLSXP) ||
      (size_t)Rf_xlength(values) < from + size) {
    ffi_fault("values");
  }
  bool is_missing = false;
  if (type == REALSXP) {
    const double* v = REAL(values) + from;
    for (size_t i = 0; i < size; ++i) {
      is_missing |= v[i] != v[i];
    }
  } else {
    const int* v = (type == INTSXP ? INTEGER(values) : LOGICAL(values)) + from;
    for (size_t i = 0; i < size; ++i) {
      is_missing |= v[i] == NA_INTEGER;
    }
  }
  return Rf_ScalarLogical(is_missing);
}
