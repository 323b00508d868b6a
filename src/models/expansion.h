/* Models whose rows act through one linear predictor each, and perhaps through
 * auxiliary parameters s: their expansions about a point, at the price of a
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

struct tb_curvature;
struct tb_model;
struct tb_workspace;

struct tb_model_expansion {
  /* bytes of the record of one row, a multiple of 64 or a divisor of it */
  size_t (*record_size)(const struct tb_model* p_model);

  /* The rows of the batch, which follow each other, with multipliers of 1, at
   * v_at: their records (64-byte aligned), and log lik (NULL: not wanted),
   * gradient and -Hessian (both triangles) ADDED to the sums, v_root none. */
  enum tb_status (*expand)(const struct tb_model* p_model,
                           const double* v_at,
                           const struct tb_batch* p_batch,
                           void* v_record,
                           const struct tb_curvature* p_sums,
                           int n_threads);

  /* largest |eta_i| of n_row records */
  double (*largest_predictor)(const struct tb_model* p_model,
                              const void* v_record,
                              size_t n_row);

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

  /* e_i of each row of the batch at two places, v_from and v_to away from v_at
   * (deltas, n_dim each), whatever its multiplier. v_from, v_e_from NULL: at
   * one. */
  void (*remainders)(const struct tb_model* p_model,
                     const struct tb_workspace* p_work,
                     const void* v_record,
                     const double* v_at,
                     const double* v_from,
                     const double* v_to,
                     const struct tb_batch* p_batch,
                     double* v_e_from,
                     double* v_e_to);

  /* The same at one place, of which t_i is known: v_t[i] of row i. NULL, and
   * steps() as well: a row has several predictors. */
  void (*remainders_of)(const struct tb_model* p_model,
                        const void* v_record,
                        const struct tb_batch* p_batch,
                        const double* v_t,
                        double* v_e);

  /* t_i = x_i^T delta of each row of the batch into v_t */
  void (*steps)(const struct tb_model* p_model,
                const struct tb_workspace* p_work,
                const double* v_delta,
                const struct tb_batch* p_batch,
                double* v_t);

  /* Have the rows fetched that remainders() will be asked for. */
  void (*prefetch)(const struct tb_model* p_model,
                   const void* v_record,
                   size_t row);

  /* n_i of the rows of the batch, which follow each other: e_i is bounded by
   * K_i (n_i r)^3 / 6 where theta is r away, r = ||L^T delta|| or reach(), K_i
   * of third_bounds(). n_i = ||L^{-1} x_i|| of a row with one predictor.
   * v_chol: L, column-major lower, n_dim x n_dim */
  enum tb_status (*norms)(const struct tb_model* p_model,
                          const double* v_chol,
                          const struct tb_batch* p_batch,
                          double* v_out);

  /* How far delta is, by a table of reach_size() numbers that set_reach() makes
   * of L. NULL: ||L^T delta||. */
  size_t (*reach_size)(const struct tb_model* p_model);
  enum tb_status (*set_reach)(const struct tb_model* p_model,
                              const double* v_chol,
                              double* v_table);
  double (*reach)(const struct tb_model* p_model,
                  const double* v_table,
                  const double* v_delta);

  /* K_i, sup of |l_i'''| within radius v_norm[i] of eta_i, of n_row records */
  void (*third_bounds)(const struct tb_model* p_model,
                       const void* v_record,
                       const double* v_norm,
                       size_t n_row,
                       double radius,
                       double* v_out);
};

#endif
