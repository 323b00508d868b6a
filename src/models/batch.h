/* Rows of a minibatch and their multipliers, struct tb_batch of tallbayes.h, as
 * schemes hand them out and models go through them. */
#ifndef TB_MODELS_BATCH_H
#define TB_MODELS_BATCH_H

#include "base/clip.h"
#include "data/store.h"

#include <stddef.h>
#include <tallbayes.h>

/* At most n_most of its rows, from `first` on. */
static inline struct tb_batch
tb_batch_part(const struct tb_batch* p_batch, size_t first, size_t n_most) {
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
  struct tb_rows rows = {.n_row = tb_min(TB_STORE_BLOCK, n_left)};
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
