/* How rows are stored and fetched. A store knows nothing of likelihoods: it
 * offers the linear algebra of a block of rows, and models do the scalar work
 * in between, block by block, while the rows are still in the first cache.
 *
 * Whether rows can be rewritten is a property of each store: of a type that
 * can, one may still be read-only. */
#ifndef TB_DATA_STORE_H
#define TB_DATA_STORE_H

#include "base/param.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows a model asks for at a time. */
#define TB_STORE_BLOCK 8

struct tb_store;

/* The rows of one block, and those of the next one to be fetched early. */
struct tb_rows {
  size_t n_row;          /* 1..TB_STORE_BLOCK */
  const size_t* v_index; /* n_row row numbers; NULL: start, start + 1, ... */
  size_t start;
  size_t n_next;        /* 0..TB_STORE_BLOCK rows to prefetch */
  const size_t* v_next; /* their numbers; ignored when v_index is NULL */
};

static inline size_t tb_rows_at(const struct tb_rows* p_rows, size_t k) {
  return p_rows->v_index == NULL ? p_rows->start + k : p_rows->v_index[k];
}

struct tb_store_type {
  const char* name;

  /* Numbers are rounded where they are appended or written, by at most this
   * share of themselves; 0: they stay as they are. */
  double rounding;

  /* Room for p_store->n_row rows of n_col numbers, none of them there yet; sets
   * n_padded, n_byte and v_data or p_self. On failure nothing is kept. */
  enum tb_status (*create)(struct tb_store* p_store);

  /* The next n_row rows, for which there is room, from a row-major block with
   * leading dimension n_padded; what is beyond n_col is zero. */
  enum tb_status (*append)(struct tb_store* p_store,
                           size_t n_row,
                           const double* v_block);

  /* v_out[k] = x_k^T v for the rows of the block, the same bits for a row and
   * v wherever the row stands; v has n_padded doubles, zero beyond n_col. dot
   * and add share the prefetching of the next block: give both the same
   * tb_rows. */
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
   * dimension n_padded; zeros beyond n_col. */
  const double* (*block)(const struct tb_store* p_store,
                         size_t start,
                         size_t n_row,
                         double* v_scratch);

  /* The n_col numbers of each of n_row rows into v_out, n_lead apart: rows
   * v_index[k] or, where that is NULL, start + k. */
  void (*gather)(const struct tb_store* p_store,
                 const size_t* v_index,
                 size_t start,
                 size_t n_row,
                 size_t n_lead,
                 double* v_out);

  /* Rows start..start+n-1 anew from a row-major block as append takes it;
   * called of writable stores alone, by tb_store_write(). NULL: none of this
   * type is. */
  void (*write)(struct tb_store* p_store,
                size_t start,
                size_t n_row,
                const double* v_block);

  /* Asks memory for a row that is wanted soon; NULL: it cannot be asked. */
  void (*prefetch)(const struct tb_store* p_store, size_t row);

  /* ---- of types that keep the numbers of a row that are not zero alone, all
   * of them or none: each costs what is in its rows, where block() and gather()
   * cost n_col a row ---- */

  /* All rows at once, from their columns; there are none yet. */
  enum tb_status (*turn)(struct tb_store* p_store,
                         const struct tb_columns* p_columns);

  /* v_out[k] = ||x_k||^2 of the rows of the block */
  void (*square_norms)(const struct tb_store* p_store,
                       const struct tb_rows* p_rows,
                       double* v_out);

  /* v_out[k] = x_k^T A x_k; A: n_col x n_col, symmetric, of which the upper
   * triangle is read, column-major */
  void (*forms)(const struct tb_store* p_store,
                const struct tb_rows* p_rows,
                const double* v_a,
                size_t n_lead,
                double* v_out);

  /* A += sum_k w_k x_k x_k^T, the upper triangle of it */
  void (*add_products)(const struct tb_store* p_store,
                       const struct tb_rows* p_rows,
                       const double* v_w,
                       double* v_a,
                       size_t n_lead);

  /* ---- */

  /* bytes */
  size_t (*memory)(const struct tb_store* p_store);
  /* Frees what create got, and forgets it. */
  void (*destroy)(struct tb_store* p_store);
};

struct tb_store {
  const struct tb_store_type* type;
  size_t n_row;
  size_t n_col;
  size_t n_padded; /* numbers a row takes: n_col, or a little more */
  size_t n_filled; /* rows that are there */
  bool is_writable;
  double* v_data; /* n_row x n_padded, 64-byte aligned; the store owns it. NULL:
                     rows do not lie so */
  void* p_self;   /* where rows lie otherwise: the type's own */
  size_t n_byte;  /* allocated */
  uint64_t hash;  /* of the rows as they were taken, see tb_rows_hash() */
};

/* A store that was never created has no type, and nothing to free. */
static inline void tb_store_destroy(struct tb_store* p_store) {
  if (p_store->type != NULL) {
    p_store->type->destroy(p_store);
  }
}

/* Are its rows kept without their zeros? */
static inline bool tb_store_is_sparse(const struct tb_store* p_store) {
  return p_store->type->turn != NULL;
}

/* A store without rows yet, writable where its type is. Where it fails there is
 * nothing to destroy. */
enum tb_status tb_store_create(struct tb_store* p_store,
                               const struct tb_store_type* p_type,
                               size_t n_row,
                               size_t n_col);
/* The next rows; TB_STATUS_argument where there is no room for them. */
enum tb_status
tb_store_append(struct tb_store* p_store, size_t n_row, const double* v_block);
/* Counts all rows as there, so that tb_store_write() can put them down in any
 * order: each is written before it is read. TB_STATUS_unsupported where rows
 * cannot be written. */
enum tb_status tb_store_open(struct tb_store* p_store);
/* All rows, from their columns; TB_STATUS_unsupported where the type keeps
 * zeros, TB_STATUS_argument where the store has another shape, or rows. */
enum tb_status tb_store_turn(struct tb_store* p_store,
                             const struct tb_columns* p_columns);
/* v_out[k] = ||x_k||^2; v_scratch: n_padded */
void tb_store_square_norms(const struct tb_store* p_store,
                           const struct tb_rows* p_rows,
                           double* v_scratch,
                           double* v_out);
/* Rows start..start+n-1 anew; TB_STATUS_unsupported, and nothing is written,
 * where they must stay as they are, TB_STATUS_argument where they are not there
 * yet. */
enum tb_status tb_store_write(struct tb_store* p_store,
                              size_t start,
                              size_t n_row,
                              const double* v_block);
/* A store of the same type and rows, writable where its type is. */
enum tb_status tb_store_copy(const struct tb_store* p_from,
                             struct tb_store* p_store);

/* For types whose rows take n_padded numbers of n_each bytes: n_padded, which
 * fills up 8 numbers where that costs at most 3 %, and the bytes of all rows.
 * false: there is no such memory. */
bool tb_store_size(struct tb_store* p_store, size_t n_each, size_t* p_byte);

/* `hash` and rows start, start + 1, ... of a row-major block with leading
 * dimension n_lead. A sum over the numbers that are not zero: rows may come in
 * any order, and a type that does not keep zeros has the same one. */
uint64_t tb_rows_hash(uint64_t hash,
                      const double* v_block,
                      size_t start,
                      size_t n_row,
                      size_t n_col,
                      size_t n_lead);

/* The same of all rows, from their columns, after a hash of 0. */
uint64_t tb_columns_hash(const struct tb_columns* p_columns);

/* registry.c */
extern const struct tb_store_type* const tb_store_registry[];
const struct tb_store_type* tb_store_find(const char* name);

#endif
