/* Minibatches as R objects, for models whose functions are R's (ffi-batch.c). */
#ifndef TB_FFI_BATCH_H
#define TB_FFI_BATCH_H

#include "ffi-args.h"

/* Rows of `data`, whose n_row rows are the last dimension of each part, in its form
 * with rows first; the caller protects it. `cache`, a list of two, keeps it for
 * the next of as many rows: it is written over where nobody else refers to it. */
SEXP ffi_batch(SEXP data,
               size_t n_row,
               SEXP cache,
               const struct tb_batch* p_batch);

/* v_out, columns n_stride apart: rows of v_x, which stand one after the other. */
void ffi_batch_doubles(const double* v_x,
                       size_t n_column,
                       const struct tb_batch* p_batch,
                       size_t n_stride,
                       double* v_out);

#endif
