/* Gradients of functions of R by tapes of the package RTMB (ffi/tape.c). All of
 * these call R, so they run under R_UnwindProtect(). */
#ifndef TB_FFI_TAPE_H
#define TB_FFI_TAPE_H

#include "ffi/batch.h"

/* The tapes of one function, one for each number of rows. */
struct tapes;

/* spec: list(make, inputs), as autodiff_engine() makes it; data, and its pack
 * or NULL: as rows are taken from it, NULL for a function without rows;
 * v_weight (n_data): w_k of its rows, or NULL. NULL: out of memory. */
struct tapes* tapes_new(SEXP spec,
                        SEXP data,
                        const struct ffi_pack* p_pack,
                        const double* v_weight,
                        size_t n_data,
                        size_t n_natural);
void tapes_free(struct tapes* p);

/* v_out (n_natural), SET: sum_k c_k w_k dl_k / dx at v_x. */
void tapes_sum(struct tapes* p,
               const struct tb_batch* p_batch,
               const double* v_x,
               double* v_out);

/* The same at two points, for the price of one walk through the data. */
void tapes_sum_two(struct tapes* p,
                   const struct tb_batch* p_batch,
                   const double* v_x,
                   double* v_out,
                   const double* v_other,
                   double* v_out_other);

/* v_out (n_natural), SET: dl_k / dx at v_x of row k of the batch, without its
 * weight. */
void tapes_row(struct tapes* p,
               const struct tb_batch* p_batch,
               size_t k,
               const double* v_x,
               double* v_out);

#endif
