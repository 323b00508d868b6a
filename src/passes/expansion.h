/* The rows' terms of log pi, expanded to second order about a point:
 *
 *   G = sum_i g_i(at),  H = -sum_i H_i,  H_i the Hessian of l_i at `at`
 *   a_i(theta) = g_i(theta) - g_i(at) - H_i delta,  delta = theta - at
 *
 * so that sum_i g_i(theta) = G - H delta + sum_i a_i(theta) whatever the point.
 * Where rows act through a predictor the model keeps what it needs of each
 * (models/expansion.h). Of other models H comes from central differences of
 * passes over all rows, and
 *
 *   H_i delta = [g_i(at + epsilon delta) - g_i(at - epsilon delta)] / (2
 *   epsilon),
 *
 * epsilon sqrt(delta^T H delta) = 10^-3: the sum is then right to some 10^-6 of
 * H delta. */
#ifndef TB_PASSES_EXPANSION_H
#define TB_PASSES_EXPANSION_H

#include "models/expansion.h"
#include "models/model.h"

/* More parameters: H does not fit. */
#define TB_EXPANSION_MOST 4000

struct tb_expansion {
  const struct tb_model* p_model;
  double* v_at;      /* n_dim */
  double* v_total;   /* n_dim: G */
  double* v_hessian; /* n_dim x n_dim, both triangles: H */
  void* v_record;    /* n_data records of the model; NULL: it has none */
  char* p_memory;    /* of all these */
  size_t n_byte;
};

/* Unsupported: a gradient that is drawn, or more parameters than
 * TB_EXPANSION_MOST. *p_n_row: rows that were looked at, ADDED. Nothing is left
 * to destroy where it fails. */
enum tb_status tb_expansion_make(const struct tb_model* p_model,
                                 const double* v_at,
                                 int n_threads,
                                 struct tb_expansion* p_expansion,
                                 double* p_n_row);
/* One of zeros has nothing to free. */
void tb_expansion_destroy(struct tb_expansion* p_expansion);

/* A theta, seen from there; the arrays lie in the caller's scratch. */
struct tb_expansion_view {
  const double* v_theta;
  double* v_delta; /* n_dim */
  double* v_bent;  /* n_dim: H delta; not there where it was not wanted */
  double* v_free;  /* 4 n_dim */
  double epsilon;  /* 0: of a model with records, or delta is 0 */
};

/* bytes of that scratch */
size_t tb_expansion_scratch_size(const struct tb_model* p_model);
struct tb_expansion_view
tb_expansion_look(const struct tb_expansion* p_expansion,
                  const double* v_theta,
                  bool wants_bent,
                  void* p_scratch);

/* The sums of struct tb_sums with these a_i; v_gradient must be there, and no
 * other but v_square may be. */
enum tb_status tb_expansion_add(const struct tb_expansion* p_expansion,
                                const struct tb_workspace* p_work,
                                const struct tb_expansion_view* p_view,
                                const struct tb_batch* p_batch,
                                const struct tb_sums* p_sums);

/* ||a_k||^2 of each row of the batch, whatever its multiplier, into v_square,
 * and sum_k a_k ADDED to v_sum (NULL: not wanted); v_row: n_dim. */
enum tb_status tb_expansion_square_norms(const struct tb_expansion* p_expansion,
                                         const struct tb_workspace* p_work,
                                         const struct tb_expansion_view* p_view,
                                         const struct tb_batch* p_batch,
                                         double* v_square,
                                         double* v_sum,
                                         double* v_row);

#endif
