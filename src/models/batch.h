/* Rows of a minibatch and their multipliers, as schemes hand them out and
 * models go through them. */
#ifndef TB_MODELS_BATCH_H
#define TB_MODELS_BATCH_H

#include "core/clip.h"
#include "data/store.h"

#include <stddef.h>

/* Rows and their multipliers c_i. */
struct tb_batch {
  size_t n_batch;
  const size_t* v_index;  /* n_batch row numbers; NULL: start, start + 1, ... */
  size_t start;           /* used when v_index is NULL */
  const double* v_weight; /* n_batch multipliers; NULL: all equal `weight` */
  double weight;
  double finite;          /* factor of the noise variance: 1 with replacement,
                             1 - n/N without, 0 for all rows */
};

static inline size_t tb_batch_row(const struct tb_batch* p_batch, size_t k) {
  return p_batch->v_index == NULL ? p_batch->start + k : p_batch->v_index[k];
}

static inline double tb_batch_weight(const struct tb_batch* p_batch, size_t k) {
  return p_batch->v_weight == NULL ? p_batch->weight : p_batch->v_weight[k];
}

/* At most n_most of its rows, from `first` on. */
static inline struct tb_batch tb_batch_part(const struct tb_batch* p_batch,
                                            size_t first,
                                            size_t n_most) {
  struct tb_batch part = *p_batch;
  part.n_batch = tb_min(n_most, p_batch->n_batch - first);
  part.start += first;
  if (part.v_index != NULL) {
    part.v_index += first;
  }
  if (part.v_weight != NULL) {
    part.v_weight += first;
  }
  return part;
}

/* The block of rows from `first` on for the store, and those to prefetch. */
static inline struct tb_rows tb_batch_block(const struct tb_batch* p_batch,
                                            size_t first) {
  const size_t n_left = p_batch->n_batch - first;
  struct tb_rows rows = { .n_row = tb_min(TB_STORE_BLOCK, n_left) };
  rows.n_next = tb_min(TB_STORE_BLOCK, n_left - rows.n_row);
  if (p_batch->v_index == NULL) {
    rows.start = p_batch->start + first;
  } else {
    rows.v_index = p_batch->v_index + first;
    rows.v_next = rows.v_index + rows.n_row;
  }
  return rows;
}

#endif
