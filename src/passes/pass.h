/* Passes in threads: the rows of a batch in parts of a fixed size, with sums of
 * each part of its own, which are added in the order of the parts. So results
 * depend on the size of parts, and never on the number of threads.
 *
 *   symbol              variable   shape               owner
 *   total               v_total    n_sum               the caller, ADDED to
 *   sums of a part      v_sum      n_sum x n_flight    the pass
 *   scratch of models                a thread          the pass
 */
#ifndef TB_PASSES_PASS_H
#define TB_PASSES_PASS_H

#include "models/model.h"

/* What one call sees. */
struct tb_part {
  struct tb_batch batch; /* its rows */
  size_t first;          /* where the first of them is in the batch */
  struct tb_workspace work;
  double* v_own; /* n_own numbers of scratch besides */
  double* v_sum; /* n_sum, 0 at first */
};

struct tb_pass {
  const struct tb_model* p_model;
  enum tb_status (*part)(void* p_what, const struct tb_part* p_part);
  void* p_what;
  size_t n_part_row; /* rows of a part */
  size_t n_point;    /* points seen at once, for pass_size() */
  size_t n_sum;      /* numbers that a part adds up */
  size_t n_own;
  int n_threads; /* models that call R: 1, whatever this says */
  /* tb_pass_begin() sets */
  size_t n_flight; /* parts whose sums are there at a time */
  size_t n_work;   /* bytes of scratch of a thread */
  char* p_memory;
};

/* Memory for the pass, kept until tb_pass_end(). */
enum tb_status tb_pass_begin(struct tb_pass* p_pass);

/* The parts of a batch, at least one, which may be empty. What is not ok in a
 * part is what the first such part says: those before it have been added to
 * v_total, others have not. v_total: NULL where n_sum is 0. */
enum tb_status tb_pass_over(const struct tb_pass* p_pass,
                            const struct tb_batch* p_batch,
                            double* v_total);

void tb_pass_end(struct tb_pass* p_pass);

#endif
