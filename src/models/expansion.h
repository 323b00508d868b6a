/* Models whose rows act through one linear predictor each, and perhaps through
 * an auxiliary parameter s: their expansions about a point, at the price of a
 * few numbers a row.
 *
 *   eta_i = x_i^T theta + offset_i,   t_i = x_i^T delta,   delta = theta - at
 *   a_i   = g_i(theta) - g_i(at) - (Hessian of l_i at `at`) delta
 *   e_i   = -[l_i(theta) - l_i(at) - l_i'(eta_i) t_i - l_i''(eta_i) t_i^2 / 2]
 *
 * The numbers stand in a table of records, which is the caller's. */
#ifndef TB_MODELS_EXPANSION_H
#define TB_MODELS_EXPANSION_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <tallbayes.h>

struct tb_model;
struct tb_workspace;

struct tb_model_expansion {
  /* bytes of the record of one row, a multiple of 64 or a divisor of it */
  size_t (*record_size)(const struct tb_model* p_model);

  /* Every row at v_at: its record (v_record is 64-byte aligned), sum_i g_i
   * ADDED to v_sum and -sum_i Hessian ADDED to v_hessian (n_dim x n_dim, both
   * triangles). */
  enum tb_status (*expand)(const struct tb_model* p_model,
                           const double* v_at,
                           void* v_record,
                           double* v_sum,
                           double* v_hessian,
                           int n_threads);

  /* As tb_model_type.gradient, with the a_i above. */
  enum tb_status (*beyond)(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           const void* v_record,
                           const double* v_at,
                           const double* v_theta,
                           const struct tb_batch* p_batch,
                           const struct tb_sums* p_sums);

  /* ---- of responses with a bound of the third derivative, s known ---- */

  /* Is it one? */
  bool (*has_remainders)(const struct tb_model* p_model);

  /* e_i of each row of the batch at two places, v_from and v_to away (deltas,
   * n_dim each), whatever its multiplier. */
  void (*remainders)(const struct tb_model* p_model,
                     const struct tb_workspace* p_work,
                     const void* v_record,
                     const double* v_from,
                     const double* v_to,
                     const struct tb_batch* p_batch,
                     double* v_e_from,
                     double* v_e_to);

  /* Have the rows fetched that remainders() will be asked for. */
  void (*prefetch)(const struct tb_model* p_model,
                   const void* v_record,
                   size_t row);

  /* ||L^{-1} x_i|| of every row; v_chol: L, column-major lower, n_dim x n_dim
   */
  enum tb_status (*norms)(const struct tb_model* p_model,
                          const double* v_chol,
                          double* v_out);

  /* K_i, sup of |l_i'''| within radius v_norm[i] of eta_i, of every row */
  void (*third_bounds)(const struct tb_model* p_model,
                       const void* v_record,
                       const double* v_norm,
                       double radius,
                       double* v_out);
};

#endif
