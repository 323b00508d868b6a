#include "models/blocks.h"

#include "base/arena.h"
#include "base/clones.h"
#include "base/vector.h"

#include <string.h>

/* ---------------------------------------------------------------- one block */

/* The scratch of a chain; what it takes is counted where the arena has none. */
TB_INLINE struct tb_block lay_out(const struct tb_model* p_model,
                                  struct tb_arena* p_arena,
                                  struct tb_block_shape* p_shape) {
  const struct tb_block_shape shape = p_model->type->blocks->shape(p_model);
  struct tb_block block = {.n_score = shape.n_score};
  block.v_weight = tb_arena_doubles(p_arena, shape.n_row);
  block.v_log_lik = tb_arena_doubles(p_arena, shape.n_row);
  block.v_score = tb_arena_doubles(p_arena, shape.n_row * shape.n_score);
  block.v_before = tb_arena_doubles(p_arena, shape.n_row * shape.n_score);
  block.p_own = tb_arena_take(p_arena, shape.n_own);
  *p_shape = shape;
  return block;
}

size_t tb_blocks_workspace_size(const struct tb_model* p_model,
                                size_t n_batch) {
  struct tb_arena arena = {NULL, 0};
  struct tb_block_shape shape;
  (void)n_batch;
  (void)lay_out(p_model, &arena, &shape);
  return arena.n_used;
}

void tb_block_gather(const struct tb_block* p_block,
                     const struct tb_store* p_store,
                     size_t n_col,
                     double* v_out) {
  const struct tb_batch* p_batch = p_block->p_batch;
  const size_t* v_index = p_batch->v_index;
  p_store->type->gather(p_store,
                        v_index == NULL ? NULL : v_index + p_block->first,
                        p_batch->start + p_block->first,
                        p_block->n_row,
                        n_col,
                        v_out);
}

/* bytes of rows that stay in the first cache */
enum { CACHE = 16384 };

size_t tb_block_most(const struct tb_store* p_store) {
  const size_t n_byte = tb_max(1, p_store->n_padded) * sizeof(double);
  const size_t n_most = tb_min(TB_BLOCK_ROWS, CACHE / n_byte);
  return tb_max(1, n_most / TB_STORE_BLOCK) * TB_STORE_BLOCK;
}

struct tb_rows tb_block_part(const struct tb_block* p_block, size_t at) {
  const struct tb_batch* p_batch = p_block->p_batch;
  const size_t first = p_block->first + at, next = first + p_block->n_row;
  struct tb_rows rows = tb_batch_block(p_batch, first);
  rows.n_next = 0;
  if (p_batch->v_index != NULL && next < p_batch->n_batch) {
    rows.v_next = p_batch->v_index + next;
    rows.n_next = tb_min(TB_STORE_BLOCK, p_batch->n_batch - next);
  }
  return rows;
}

void tb_block_fetch(const struct tb_block* p_block,
                    const struct tb_store* p_store) {
  const size_t* v_index = p_block->p_batch->v_index;
  if (p_store->type->prefetch == NULL || !tb_block_is_cold(p_block)) {
    return;
  }
  for (size_t i = 0; i < p_block->n_row; ++i) {
    p_store->type->prefetch(p_store, v_index[i]);
  }
}

/* ------------------------------------------------------------------- a pass */

/* A pass over a batch. */
struct pass {
  const struct tb_model* p_model;
  const struct tb_model_blocks* slots;
  struct tb_block_shape shape;
  struct tb_block block;
  const struct tb_reference* p_reference; /* NULL: none */
  bool is_weighted; /* by the multipliers of the batch, or by 1 */
  bool is_beside;   /* are stored scores fetched with the rows? */
};

TB_INLINE struct pass begin(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const struct tb_batch* p_batch,
                            const struct tb_reference* p_reference,
                            bool is_weighted) {
  struct pass pass = {.p_model = p_model,
                      .slots = p_model->type->blocks,
                      .p_reference = p_reference,
                      .is_weighted = is_weighted};
  struct tb_arena arena = {p_work->p_scratch, 0};
  pass.block = lay_out(p_model, &arena, &pass.shape);
  pass.block.p_batch = p_batch;
  pass.is_beside =
      p_reference != NULL && p_model->type->stored_scalar != NULL &&
      p_model->type->stored_scalar(p_model).v_scalar == p_reference->v_scalar;
  if (pass.slots->begin != NULL) {
    pass.slots->begin(p_model, &pass.block);
  }
  return pass;
}

static void
go(struct pass* p, enum tb_block_place place, const double* v_theta) {
  p->block.v_theta[place] = v_theta;
  if (p->slots->go != NULL) {
    p->slots->go(p->p_model, &p->block, place);
  }
}

/* To theta, and to the reference unless it is stored. */
static void go_to(struct pass* p, const double* v_theta) {
  go(p, TB_PLACE_here, v_theta);
  if (p->p_reference != NULL && p->p_reference->v_scalar == NULL) {
    go(p, TB_PLACE_reference, p->p_reference->v_theta);
  }
}

static void load(struct pass* p, size_t first) {
  const struct tb_batch* p_batch = p->block.p_batch;
  p->block.first = first;
  p->block.n_row = tb_min(p->shape.n_row, p_batch->n_batch - first);
  const size_t n_row = p->block.n_row;
  if (p->is_weighted && p_batch->v_weight != NULL) {
    memcpy(p->block.v_weight,
           p_batch->v_weight + first,
           n_row * sizeof(double));
  } else {
    const double all = p->is_weighted ? p_batch->weight : 1;
    for (size_t i = 0; i < n_row; ++i) {
      p->block.v_weight[i] = all;
    }
  }
  if (p->slots->load != NULL) {
    p->slots->load(p->p_model, &p->block);
  }
}

static void look(const struct pass* p,
                 enum tb_block_place place,
                 double* v_log_lik,
                 double* v_score) {
  const struct tb_block_look wanted = {v_log_lik, v_score};
  p->slots->look(p->p_model, &p->block, place, &wanted);
}

static void end(const struct pass* p, const struct tb_sums* p_sums) {
  if (p->slots->end != NULL) {
    p->slots->end(p->p_model, &p->block, p_sums);
  }
}

/* ------------------------------------------------------------------- scores */

/* Score k of row i lies at i row + k score. */
struct steps {
  size_t row;
  size_t score;
};

static struct steps steps_of(const struct pass* p) {
  return p->slots->is_by_number
             ? (struct steps){.row = 1, .score = p->block.n_row}
             : (struct steps){.row = p->block.n_score, .score = 1};
}

/* of row i, from where they follow each other */
static void
put_scores(const struct pass* p, size_t i, const double* v_from, double* v_to) {
  const struct steps step = steps_of(p);
  for (size_t k = 0; k < p->block.n_score; ++k) {
    v_to[i * step.row + k * step.score] = v_from[k];
  }
}

static void hand_out_scores(const struct pass* p, double* v_scalar) {
  const size_t n = p->block.n_score, n_row = p->block.n_row;
  if (!p->slots->is_by_number) {
    memcpy(v_scalar, p->block.v_score, n * n_row * sizeof(double));
    return;
  }
  for (size_t i = 0; i < n_row; ++i) {
    for (size_t k = 0; k < n; ++k) {
      v_scalar[i * n + k] = p->block.v_score[k * n_row + i];
    }
  }
}

/* The stored scores of the next block: a miss of their own. */
static void prefetch(const struct pass* p) {
  const struct tb_reference* p_reference = p->p_reference;
  const struct tb_batch* p_batch = p->block.p_batch;
  const size_t next = p->block.first + p->block.n_row;
  const size_t n_next = tb_min(p->block.n_row, p_batch->n_batch - next);
  for (size_t i = 0; p_batch->v_index != NULL && i < n_next; ++i) {
    TB_PREFETCH(p_reference->v_scalar +
                p_batch->v_index[next + i] * p_reference->stride);
  }
}

static void subtract_stored(const struct pass* p) {
  const struct tb_reference* p_reference = p->p_reference;
  const struct tb_block* p_block = &p->block;
  const struct steps step = steps_of(p);
  const size_t n = p_block->n_score, n_row = p_block->n_row;
  for (size_t i = 0; i < n_row; ++i) {
    const double* v_stored =
        p_reference->v_scalar + tb_block_row(p_block, i) * p_reference->stride;
    double* v = p_block->v_score + i * step.row;
    v[0] -= v_stored[0];
    for (size_t k = 1; k < n; ++k) {
      v[k * step.score] -= v_stored[k];
    }
  }
}

/* v_score less that of the reference, as it is stored or looked up */
static void subtract(const struct pass* p) {
  const struct tb_block* p_block = &p->block;
  if (p->p_reference->v_scalar != NULL) {
    if (!p->is_beside) {
      prefetch(p);
    }
    subtract_stored(p);
    return;
  }
  look(p, TB_PLACE_reference, NULL, p_block->v_before);
  for (size_t k = 0; k < p_block->n_score * p_block->n_row; ++k) {
    p_block->v_score[k] -= p_block->v_before[k];
  }
}

static void weigh(const struct pass* p) {
  const struct tb_block* p_block = &p->block;
  const struct steps step = steps_of(p);
  const size_t n = p_block->n_score, n_row = p_block->n_row;
  for (size_t k = 0; !p->slots->weighs && k < n; ++k) {
    double* v = p_block->v_score + k * step.score;
    for (size_t i = 0; i < n_row; ++i) {
      v[i * step.row] *= p_block->v_weight[i];
    }
  }
}

/* From what was seen here to what is added up. */
static void settle(const struct pass* p) {
  if (p->block.n_score > 0) {
    if (p->p_reference != NULL) {
      subtract(p);
    }
    weigh(p);
    return;
  }
  if (p->p_reference != NULL) {
    look(p, TB_PLACE_reference, NULL, NULL);
  }
  if (p->slots->settle != NULL) {
    p->slots->settle(p->p_model, &p->block);
  }
}

/* -------------------------------------------------------------------- slots */

enum tb_status tb_blocks_gradient(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  const double* v_theta,
                                  const struct tb_batch* p_batch,
                                  const struct tb_reference* p_reference,
                                  const struct tb_sums* p_sums) {
  const bool wants_gradient =
      p_sums->v_gradient != NULL || p_sums->v_square != NULL;
  const bool wants_score = wants_gradient || p_sums->v_scalar != NULL;
  struct pass pass = begin(p_model, p_work, p_batch, p_reference, true);
  const struct tb_block* p_block = &pass.block;
  double* v_log_lik = p_sums->p_log_lik == NULL ? NULL : p_block->v_log_lik;
  double log_lik = 0;
  go_to(&pass, v_theta);
  for (size_t b = 0; b < p_batch->n_batch; b += pass.shape.n_row) {
    load(&pass, b);
    look(&pass,
         TB_PLACE_here,
         v_log_lik,
         wants_score ? p_block->v_score : NULL);
    for (size_t i = 0; v_log_lik != NULL && i < p_block->n_row; ++i) {
      log_lik += p_block->v_weight[i] * v_log_lik[i];
    }
    if (p_sums->v_scalar != NULL) {
      hand_out_scores(&pass, p_sums->v_scalar + b * p_block->n_score);
    }
    if (wants_gradient) {
      settle(&pass);
      pass.slots->add(p_model, p_block, p_sums);
    }
  }
  if (wants_gradient) {
    end(&pass, p_sums);
  }
  if (p_sums->p_log_lik != NULL) {
    *p_sums->p_log_lik += log_lik;
  }
  return TB_STATUS_ok;
}

enum tb_status tb_blocks_square_norms(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      double* v_square,
                                      double* v_sum) {
  const struct tb_sums sums = {.v_gradient = v_sum};
  struct pass pass = begin(p_model, p_work, p_batch, p_reference, false);
  go_to(&pass, v_theta);
  for (size_t b = 0; b < p_batch->n_batch; b += pass.shape.n_row) {
    load(&pass, b);
    look(&pass, TB_PLACE_here, NULL, pass.block.v_score);
    settle(&pass);
    pass.slots->square(p_model, &pass.block, v_square + b);
    if (v_sum != NULL) {
      pass.slots->add(p_model, &pass.block, &sums);
    }
  }
  if (v_sum != NULL) {
    end(&pass, &sums);
  }
  return TB_STATUS_ok;
}

enum tb_status tb_blocks_add_scalar(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const struct tb_batch* p_batch,
                                    const double* v_scalar,
                                    double* v_sum) {
  const struct tb_sums sums = {.v_gradient = v_sum};
  struct pass pass = begin(p_model, p_work, p_batch, NULL, false);
  const size_t n = pass.block.n_score;
  for (size_t b = 0; b < p_batch->n_batch; b += pass.shape.n_row) {
    load(&pass, b);
    for (size_t i = 0; i < pass.block.n_row; ++i) {
      put_scores(&pass, i, v_scalar + (b + i) * n, pass.block.v_score);
    }
    weigh(&pass);
    pass.slots->add(p_model, &pass.block, &sums);
  }
  end(&pass, &sums);
  return TB_STATUS_ok;
}

enum tb_status tb_blocks_log_lik(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 double* v_out) {
  struct pass pass = begin(p_model, p_work, p_batch, NULL, false);
  pass.block.is_complete = true;
  go_to(&pass, v_theta);
  for (size_t b = 0; b < p_batch->n_batch; b += pass.shape.n_row) {
    load(&pass, b);
    look(&pass, TB_PLACE_here, v_out + b, NULL);
    for (size_t i = 0; i < pass.block.n_row; ++i) {
      v_out[b + i] *= pass.block.v_weight[i];
    }
  }
  return TB_STATUS_ok;
}

enum tb_status tb_blocks_store_scalar(struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      double* v_sum) {
  const struct tb_sums sums = {.v_gradient = v_sum};
  struct pass pass = begin(p_model, p_work, p_batch, NULL, false);
  go_to(&pass, v_theta);
  for (size_t b = 0; b < p_batch->n_batch; b += pass.shape.n_row) {
    load(&pass, b);
    look(&pass, TB_PLACE_here, NULL, pass.block.v_score);
    pass.slots->keep(p_model, &pass.block);
    weigh(&pass);
    pass.slots->add(p_model, &pass.block, &sums);
  }
  end(&pass, &sums);
  return TB_STATUS_ok;
}
