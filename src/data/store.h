/* How rows are stored and fetched. A store knows nothing of likelihoods: it
 * offers the linear algebra of a block of rows, and models do the scalar work
 * in between, block by block, while the rows are still in the first cache.
 *
 * One member so far, `dense` (row-major doubles); float32, sparse CSR and
 * memory-mapped files are further tables. */
#ifndef TB_DATA_STORE_H
#define TB_DATA_STORE_H

#include "base/status.h"

#include <stddef.h>

/* Rows a model asks for at a time. */
#define TB_STORE_BLOCK 8

struct tb_store;

/* The rows of one block, and those of the next one to be fetched early. */
struct tb_rows {
  size_t n_row;         /* 1..TB_STORE_BLOCK */
  const size_t* v_index;/* n_row row numbers; NULL: start, start + 1, ... */
  size_t start;
  size_t n_next;        /* 0..TB_STORE_BLOCK rows to prefetch */
  const size_t* v_next; /* their numbers; ignored when v_index is NULL */
};

static inline size_t tb_rows_at(const struct tb_rows* p_rows, size_t k) {
  return p_rows->v_index == NULL ? p_rows->start + k : p_rows->v_index[k];
}

struct tb_store_type {
  const char* name;

  /* v_out[k] = x_k^T v for the rows of the block; v has n_padded doubles,
   * zero beyond n_col. dot and add share the prefetching of the next block:
   * give both the same tb_rows. */
  void (*dot)(const struct tb_store* p_store,
              const struct tb_rows* p_rows,
              const double* v,
              double* v_out);

  /* v_sum += sum_k u_k x_k; both have n_padded doubles */
  void (*add)(const struct tb_store* p_store,
              const struct tb_rows* p_rows,
              const double* v_u,
              double* v_sum);

  /* the same, and v_square += sum_k (u_k x_k)^2 by coordinate */
  void (*add_square)(const struct tb_store* p_store,
                     const struct tb_rows* p_rows,
                     const double* v_u,
                     double* v_sum,
                     double* v_square);

  /* Rows start..start+n-1 as a row-major block: a pointer into the store where
   * they are laid out so, else into v_scratch (n x n_padded). Leading
   * dimension n_padded. */
  const double* (*block)(const struct tb_store* p_store,
                         size_t start,
                         size_t n_row,
                         double* v_scratch);

  /* write rows start..start+n-1 from a row-major block; NULL: read-only */
  void (*write)(struct tb_store* p_store,
                size_t start,
                size_t n_row,
                const double* v_block);

  size_t (*memory)(const struct tb_store* p_store);
  void (*destroy)(struct tb_store* p_store);
};

struct tb_store {
  const struct tb_store_type* type;
  size_t n_row;
  size_t n_col;
  size_t n_padded; /* doubles a row takes: n_col, or a little more */
  double* v_data;  /* n_row x n_padded, 64-byte aligned; the store owns it */
  size_t n_byte;   /* allocated */
};

/* A store that was never created has no type, and nothing to free. */
static inline void tb_store_destroy(struct tb_store* p_store) {
  if (p_store->type != NULL) {
    p_store->type->destroy(p_store);
  }
}

/* Zero-filled dense store. Rows are padded to 64 bytes where that costs at
 * most 3 % of memory. */
enum tb_status tb_store_dense_create(struct tb_store* p_store,
                                     size_t n_row,
                                     size_t n_col);

/* registry.c */
extern const struct tb_store_type* const tb_store_registry[];

#endif
