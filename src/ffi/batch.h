/* Minibatches as R objects, for models whose functions are R's (ffi/batch*.c).
 */
#ifndef TB_FFI_BATCH_H
#define TB_FFI_BATCH_H

#include "ffi/args.h"

/* A copy of those parts of the data that are vectors of doubles, such as
 * columns of a data frame, side by side: a row of all of them is one stretch of
 * memory. */
struct ffi_pack;

/* *pp_pack: NULL where fewer than two parts are vectors of doubles. False: out
 * of memory. */
bool ffi_pack_create(SEXP data, size_t n_row, struct ffi_pack** pp_pack);
void ffi_pack_destroy(struct ffi_pack* p_pack);

/* bytes, and columns; of a part of the data the number of its column, n_column:
 * it is not packed. All of no pack are 0. */
size_t ffi_pack_memory(const struct ffi_pack* p_pack);
size_t ffi_pack_n_column(const struct ffi_pack* p_pack);
size_t ffi_pack_column(const struct ffi_pack* p_pack, size_t part);

/* Rows of column j to v_out[j]; NULL: not wanted. */
void ffi_pack_take(const struct ffi_pack* p_pack,
                   const struct tb_batch* p_batch,
                   double* const* v_out);

/* Rows of `data`, whose n_row rows are the last dimension of each part, in its
 * form with rows first; the caller protects it. `cache`, a list of two, keeps
 * it for the next of as many rows: it is written over where nobody else refers
 * to it. p_pack may be NULL. */
SEXP ffi_batch(SEXP data,
               size_t n_row,
               const struct ffi_pack* p_pack,
               SEXP cache,
               const struct tb_batch* p_batch);

/* A fault where `data` cannot be that of n_row rows. */
void ffi_batch_check(SEXP data, size_t n_row);

/* Is x of a type that R/model-custom-engine.R lets through? */
bool ffi_batch_is_data(SEXP x);

/* Rows of x into `out`, which has room for them, with rows first. */
void ffi_batch_gather(SEXP x,
                      size_t n_column,
                      const struct tb_batch* p_batch,
                      SEXP out);

/* v_out, columns n_stride apart: rows of v_x, which stand one after the other.
 */
void ffi_batch_doubles(const double* v_x,
                       size_t n_column,
                       const struct tb_batch* p_batch,
                       size_t n_stride,
                       double* v_out);

#endif
