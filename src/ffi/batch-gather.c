/* Rows of data as columns of R's objects. */
#include "ffi/batch.h"

#include "ffi/turn-rows.h"

#define ALL(m) true
#define NTH(m) (v_out + (m)*n_stride)

#define GATHER(name, type)                                                     \
  static void name(const type* v_x,                                            \
                   size_t n_column,                                            \
                   const struct tb_batch* p_batch,                             \
                   size_t n_stride,                                            \
                   type* v_out) {                                              \
    for (size_t k = 0; n_column == 1 && k < p_batch->n_batch; ++k) {           \
      v_out[k] = v_x[tb_batch_row(p_batch, k)];                                \
    }                                                                          \
    if (n_column != 1) {                                                       \
      TURN_ROWS(type, ALL, NTH)                                                \
    }                                                                          \
  }

GATHER(gather_doubles, double)
GATHER(gather_integers, int)

void ffi_batch_doubles(const double* v_x,
                       size_t n_column,
                       const struct tb_batch* p_batch,
                       size_t n_stride,
                       double* v_out) {
  gather_doubles(v_x, n_column, p_batch, n_stride, v_out);
}

static void gather_strings(SEXP x,
                           size_t n_column,
                           const struct tb_batch* p_batch,
                           SEXP out) {
  const size_t n = p_batch->n_batch;
  for (size_t k = 0; k < n; ++k) {
    const size_t from = tb_batch_row(p_batch, k) * n_column;
    for (size_t m = 0; m < n_column; ++m) {
      SET_STRING_ELT(out,
                     (R_xlen_t)(m * n + k),
                     STRING_ELT(x, (R_xlen_t)(from + m)));
    }
  }
}

bool ffi_batch_is_data(SEXP x) {
  const int type = TYPEOF(x);
  return type == REALSXP || type == INTSXP || type == LGLSXP || type == STRSXP;
}

void ffi_batch_gather(SEXP x,
                      size_t n_column,
                      const struct tb_batch* p_batch,
                      SEXP out) {
  const size_t n = p_batch->n_batch;
  switch (TYPEOF(x)) {
  case REALSXP:
    gather_doubles(REAL(x), n_column, p_batch, n, REAL(out));
    break;
  case INTSXP:
    gather_integers(INTEGER(x), n_column, p_batch, n, INTEGER(out));
    break;
  case LGLSXP:
    gather_integers(LOGICAL(x), n_column, p_batch, n, LOGICAL(out));
    break;
  default:
    gather_strings(x, n_column, p_batch, out);
  }
}
