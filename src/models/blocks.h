/* The skeleton of a model over rows: what samplers ask of a minibatch, block
 * after block. A model that has it says what is done with one block, in a const
 * table; the loop, the multipliers, the reference and the chain's scratch are
 * written here, once.
 *
 *   g_i(theta) = A_i s_i(theta)   s_i: the scores of row i, n_score numbers;
 *                                 A_i does not depend on theta
 *   a_i        = A_i (s_i(theta) - s_i(reference))
 *
 * Scores are what TB_MODEL_SCALAR stores of a row. A model without them
 * (n_score is 0) compares with the reference by itself, in settle() or add().
 *
 * The order of a pass: begin; go to theta, and to the reference if its scores
 * are not stored; of each block load, look here, look at the reference, settle,
 * add; end. */
#ifndef TB_MODELS_BLOCKS_H
#define TB_MODELS_BLOCKS_H

#include "models/model.h"

enum tb_block_place {
  TB_PLACE_here = 0,
  TB_PLACE_reference = 1,
  TB_PLACE_count = 2
};

/*   variable   shape            what
 *   v_theta    TB_PLACE_count   where the pass takes place; NULL: not there
 *   v_weight   n_row            multipliers c_i; load() may make more of them
 *   v_log_lik  n_row
 *   v_score    n_score x n_row  row after row, or number after number where the
 *                               table is_by_number
 *   v_before   likewise         those of the reference
 *   p_own      n_own bytes      the model's; holds anything before begin() */
struct tb_block {
  const struct tb_batch* p_batch;
  size_t first; /* row of the batch */
  size_t n_row;
  size_t n_score;
  const double* v_theta[TB_PLACE_count];
  bool is_complete; /* are log likelihoods wanted with every constant? */
  double* v_weight;
  double* v_log_lik;
  double* v_score;
  double* v_before;
  void* p_own;
};

struct tb_block_shape {
  size_t n_row; /* of a block at most */
  size_t n_score;
  size_t n_own; /* bytes of the model's own scratch */
};

/* What is wanted of a look. NULL: not. */
struct tb_block_look {
  double* v_log_lik;
  double* v_score;
};

/* Slots but shape, look, square and add are NULL where there is nothing to do.
 */
struct tb_model_blocks {
  bool is_by_number;
  bool weighs; /* add() multiplies by v_weight: scores are settled without */

  struct tb_block_shape (*shape)(const struct tb_model* p_model);

  /* The model's own scratch, and sums of its own, before the first block. */
  void (*begin)(const struct tb_model* p_model, const struct tb_block* p_block);

  /* What all rows share at a place. */
  void (*go)(const struct tb_model* p_model,
             const struct tb_block* p_block,
             enum tb_block_place place);

  /* The rows of the block, and v_weight times weights of the data. */
  void (*load)(const struct tb_model* p_model, const struct tb_block* p_block);

  /* Log likelihoods and scores of the block. */
  void (*look)(const struct tb_model* p_model,
               const struct tb_block* p_block,
               enum tb_block_place place,
               const struct tb_block_look* p_look);

  /* Without scores: what square() and add() start from. With them, NULL:
   * v_score less v_before, times v_weight. */
  void (*settle)(const struct tb_model* p_model,
                 const struct tb_block* p_block);

  /* ||a_i||^2 of the rows that are settled into v_square (n_row) */
  void (*square)(const struct tb_model* p_model,
                 const struct tb_block* p_block,
                 double* v_square);

  /* The rows that are settled ADDED to v_gradient and v_square; v_score may be
   * written on. */
  void (*add)(const struct tb_model* p_model,
              const struct tb_block* p_block,
              const struct tb_sums* p_sums);

  /* Sums of the model's own ADDED, after the last block. */
  void (*end)(const struct tb_model* p_model,
              const struct tb_block* p_block,
              const struct tb_sums* p_sums);

  /* The scores, into the model. */
  void (*keep)(struct tb_model* p_model, const struct tb_block* p_block);
};

/* the i-th row of the block */
static inline size_t tb_block_row(const struct tb_block* p_block, size_t i) {
  return tb_batch_row(p_block->p_batch, p_block->first + i);
}

/* Those rows of a store into v_out, a row of n_col numbers each. */
void tb_block_gather(const struct tb_block* p_block,
                     const struct tb_store* p_store,
                     size_t n_col,
                     double* v_out);

/* ---- of models that take products of rows where they lie in a store ---- */

enum { TB_BLOCK_ROWS = 64 };

/* Rows of a block at most: their sums are made when all have been seen, from
 * the first cache. */
size_t tb_block_most(const struct tb_store* p_store);

/* TB_STORE_BLOCK rows of the block at most, from `at` on; as many of the next
 * block are fetched from memory meanwhile. */
struct tb_rows tb_block_part(const struct tb_block* p_block, size_t at);

/* Has nobody fetched its rows? */
static inline bool tb_block_is_cold(const struct tb_block* p_block) {
  return p_block->first == 0 && p_block->p_batch->v_index != NULL;
}

/* Those of a block that is cold. */
void tb_block_fetch(const struct tb_block* p_block,
                    const struct tb_store* p_store);

/* ---- slots of struct tb_model_type, of models that have blocks ---- */

size_t tb_blocks_workspace_size(const struct tb_model* p_model, size_t n_batch);
enum tb_status tb_blocks_gradient(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  const double* v_theta,
                                  const struct tb_batch* p_batch,
                                  const struct tb_reference* p_reference,
                                  const struct tb_sums* p_sums);
enum tb_status tb_blocks_square_norms(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      double* v_square,
                                      double* v_sum);
enum tb_status tb_blocks_add_scalar(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const struct tb_batch* p_batch,
                                    const double* v_scalar,
                                    double* v_sum);
enum tb_status tb_blocks_log_lik(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 double* v_out);
enum tb_status tb_blocks_store_scalar(struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      double* v_sum);

#endif
