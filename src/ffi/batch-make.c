/* Minibatches as R objects.
 *
 * What is slow about a batch is memory: its rows are in random places, and a
 * new matrix of a few 100 kB is in none of the caches. So the rows of the next
 * block are fetched while this one is turned into columns, and the objects of
 * the last batch are written over. That is seen by nobody: R counts
 * references, and an object that a user's function has kept, in a variable or
 * an environment, has more than the one of its place here.
 *
 *   symbol   variable   shape                        owner
 *   data     v_x        n_column x n_row, by rows    the model
 *            v_number   the same                     the pack
 *   batch    v_out      n x n_column, by columns     R, kept by `cache`
 */
#include "ffi/batch.h"

/* Bytes of a batch that is kept: passes over all the data may have larger
 * ones. */
#define MAX_KEPT ((size_t)8 << 20)

/* Dimensions and their names, the rows first. */
static void turn_attributes(SEXP x, size_t n, SEXP out) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  if (dim == R_NilValue) {
    SHALLOW_DUPLICATE_ATTRIB(out, x); /* levels and class */
    return;
  }
  const R_xlen_t n_dim = Rf_xlength(dim);
  SEXP shape = PROTECT(Rf_allocVector(INTSXP, n_dim));
  INTEGER(shape)[0] = (int)n;
  for (R_xlen_t k = 1; k < n_dim; ++k) {
    INTEGER(shape)[k] = INTEGER(dim)[k - 1];
  }
  Rf_setAttrib(out, R_DimSymbol, shape);
  SEXP names = Rf_getAttrib(x, R_DimNamesSymbol);
  if (names != R_NilValue) {
    SEXP turned = PROTECT(Rf_allocVector(VECSXP, n_dim));
    for (R_xlen_t k = 1; k < n_dim; ++k) {
      SET_VECTOR_ELT(turned, k, VECTOR_ELT(names, k - 1));
    }
    Rf_setAttrib(out, R_DimNamesSymbol, turned);
    UNPROTECT(1);
  }
  UNPROTECT(1);
}

/* Room for n rows of x: `before` where that is possible. */
static SEXP room_for(SEXP x, size_t n_row, size_t n, SEXP before) {
  if (before != R_NilValue && !MAYBE_SHARED(before)) {
    return before;
  }
  const size_t n_column = (size_t)Rf_xlength(x) / n_row;
  SEXP out = PROTECT(Rf_allocVector(TYPEOF(x), (R_xlen_t)(n * n_column)));
  turn_attributes(x, n, out);
  UNPROTECT(1);
  return out;
}

/* Rows of x, in `before` where that is possible. */
static SEXP
take_part(SEXP x, size_t n_row, const struct tb_batch* p_batch, SEXP before) {
  SEXP out = PROTECT(room_for(x, n_row, p_batch->n_batch, before));
  ffi_batch_gather(x, (size_t)Rf_xlength(x) / n_row, p_batch, out);
  UNPROTECT(1);
  return out;
}

/* A list, perhaps a data frame, with no parts yet. */
static SEXP new_list(SEXP data, size_t n) {
  SEXP out = PROTECT(Rf_allocVector(VECSXP, Rf_xlength(data)));
  SHALLOW_DUPLICATE_ATTRIB(out, data);
  if (Rf_inherits(out, "data.frame")) {
    SEXP names = PROTECT(Rf_allocVector(INTSXP, 2));
    INTEGER(names)[0] = NA_INTEGER;
    INTEGER(names)[1] = -(int)n;
    Rf_setAttrib(out, R_RowNamesSymbol, names);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return out;
}

/* Rows of the parts, in the list `before` unless that is NULL. */
static SEXP take_list(SEXP data,
                      size_t n_row,
                      const struct ffi_pack* p_pack,
                      const struct tb_batch* p_batch,
                      SEXP before) {
  const bool fits = before != R_NilValue && !MAYBE_SHARED(before);
  const size_t n_packed = ffi_pack_n_column(p_pack), n = p_batch->n_batch;
  double** v_packed = (double**)R_alloc(n_packed + 1, sizeof(double*));
  SEXP out = PROTECT(fits ? before : new_list(data, n));
  for (R_xlen_t k = 0; k < Rf_xlength(data); ++k) {
    SEXP x = VECTOR_ELT(data, k), old = VECTOR_ELT(out, k);
    const size_t column = ffi_pack_column(p_pack, (size_t)k);
    SEXP part = column < n_packed ? room_for(x, n_row, n, old)
                                  : take_part(x, n_row, p_batch, old);
    if (part != old) {
      SET_VECTOR_ELT(out, k, part);
    }
    if (column < n_packed) {
      v_packed[column] = REAL(part);
    }
  }
  if (p_pack != NULL) {
    ffi_pack_take(p_pack, p_batch, v_packed);
  }
  UNPROTECT(1);
  return out;
}

static size_t n_byte_of(SEXP data, size_t n_row, size_t n) {
  size_t n_number = 0;
  if (TYPEOF(data) != VECSXP) {
    n_number = (size_t)Rf_xlength(data);
  } else {
    for (R_xlen_t k = 0; k < Rf_xlength(data); ++k) {
      n_number += (size_t)Rf_xlength(VECTOR_ELT(data, k));
    }
  }
  return n_number / n_row * n * sizeof(double);
}

SEXP ffi_batch(SEXP data,
               size_t n_row,
               const struct ffi_pack* p_pack,
               SEXP cache,
               const struct tb_batch* p_batch) {
  const size_t n = p_batch->n_batch;
  const bool keeps = n_byte_of(data, n_row, n) <= MAX_KEPT;
  SEXP last = VECTOR_ELT(cache, 1);
  const bool fits = keeps && last != R_NilValue && Rf_asReal(last) == (double)n;
  SEXP before = fits ? VECTOR_ELT(cache, 0) : R_NilValue;
  SEXP out = TYPEOF(data) == VECSXP
                 ? take_list(data, n_row, p_pack, p_batch, before)
                 : take_part(data, n_row, p_batch, before);
  if (keeps && out != before) {
    PROTECT(out);
    SET_VECTOR_ELT(cache, 0, out);
    SET_VECTOR_ELT(cache, 1, Rf_ScalarReal((double)n));
    UNPROTECT(1);
  }
  return out;
}

/* Can x be data of n_row rows, as ffi_batch_turn() has left them? */
static void check_part(SEXP x, size_t n_row) {
  if (!ffi_batch_is_data(x) || n_row == 0 ||
      (size_t)Rf_xlength(x) % n_row != 0) {
    ffi_fault("data");
  }
}

void ffi_batch_check(SEXP data, size_t n_row) {
  if (TYPEOF(data) != VECSXP) {
    check_part(data, n_row);
    return;
  }
  for (R_xlen_t k = 0; k < Rf_xlength(data); ++k) {
    check_part(VECTOR_ELT(data, k), n_row);
  }
}

/* Rows numbered from 1 in `index` of data of n_row. */
SEXP ffi_batch_rows(SEXP data, SEXP n_row, SEXP index) {
  const size_t n_most = ffi_as_count(n_row, "n_row");
  ffi_batch_check(data, n_most);
  const struct tb_batch batch = {.n_batch = (size_t)Rf_xlength(index),
                                 .v_index = ffi_rows(index, n_most, "index")};
  SEXP cache = PROTECT(Rf_allocVector(VECSXP, 2));
  SEXP out = ffi_batch(data, n_most, NULL, cache, &batch);
  UNPROTECT(1);
  return out;
}
