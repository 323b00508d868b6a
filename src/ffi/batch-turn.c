/* Door to data as batches want them. */
#include "ffi/batch.h"

#include "base/clip.h"
#include "base/memory.h"

/* blocks that fit in the cache both ways */
#define TURN(type, access)                                                     \
  {                                                                            \
    const type* v_x = access(x);                                               \
    type* v_out = access(out);                                                 \
    tb_big_advise(v_out, n_row* n_column * sizeof(type));                      \
    for (size_t first = 0; first < n_row; first += 256) {                      \
      const size_t end = tb_min(first + 256, n_row);                           \
      for (size_t m = 0; m < n_column; ++m) {                                  \
        for (size_t i = first; i < end; ++i) {                                 \
          v_out[i * n_column + m] = v_x[m * n_row + i];                        \
        }                                                                      \
      }                                                                        \
    }                                                                          \
  }

/* An array with its first dimension last, without names. */
SEXP ffi_batch_turn(SEXP x) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  const R_xlen_t n_dim = Rf_xlength(dim), n = Rf_xlength(x);
  if (TYPEOF(dim) != INTSXP || !ffi_batch_is_data(x)) {
    ffi_fault("data");
  }
  const size_t n_row = (size_t)INTEGER(dim)[0];
  const size_t n_column = n_row == 0 ? 0 : (size_t)n / n_row;
  SEXP out = PROTECT(Rf_allocVector(TYPEOF(x), n));
  switch (TYPEOF(x)) {
  case REALSXP:
    TURN(double, REAL)
    break;
  case INTSXP:
    TURN(int, INTEGER)
    break;
  case LGLSXP:
    TURN(int, LOGICAL)
    break;
  default:
    for (size_t i = 0; i < n_row; ++i) {
      for (size_t m = 0; m < n_column; ++m) {
        SET_STRING_ELT(out,
                       (R_xlen_t)(i * n_column + m),
                       STRING_ELT(x, (R_xlen_t)(m * n_row + i)));
      }
    }
  }
  SEXP shape = PROTECT(Rf_allocVector(INTSXP, n_dim));
  for (R_xlen_t k = 1; k < n_dim; ++k) {
    INTEGER(shape)[k - 1] = INTEGER(dim)[k];
  }
  INTEGER(shape)[n_dim - 1] = (int)n_row;
  Rf_setAttrib(out, R_DimSymbol, shape);
  UNPROTECT(2);
  return out;
}
