/* Passes over all the rows that a model has, in chunks of fixed size and order.
 */
#ifndef TB_PASSES_ROWS_H
#define TB_PASSES_ROWS_H

#include "models/model.h"

/* The sums of p_sums over all rows, each with multiplier 1, chunk by chunk in
 * order; its v_scalar is of all rows. */
enum tb_status tb_model_all_gradient(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_sums* p_sums);

/* tb_model_square_norms() of all rows, v_square: n_data. */
enum tb_status tb_model_all_square_norms(const struct tb_model* p_model,
                                         const struct tb_workspace* p_work,
                                         const double* v_theta,
                                         const struct tb_reference* p_reference,
                                         double* v_square,
                                         double* v_sum,
                                         double* v_row);

/* ---- those below in threads ---- */

/* r_i(theta) of every row stored inside the model, and sum_i g_i(theta) ADDED
 * to v_sum, where it has the slot store_scalar. */
enum tb_status tb_model_store_scalar(struct tb_model* p_model,
                                     const double* v_theta,
                                     double* v_sum,
                                     int n_threads);

/* largest |x_i^T theta|; NaN where the model has no linear predictor */
double tb_model_largest_predictor(struct tb_model* p_model,
                                  const double* v_theta,
                                  int n_threads);

/* log likelihood at each of n_point columns of v_theta (n_dim x n_point) into
 * v_out; unsupported where the model cannot */
enum tb_status tb_model_log_lik_many(struct tb_model* p_model,
                                     const double* v_theta,
                                     size_t n_point,
                                     double* v_out,
                                     int n_threads);

#endif
