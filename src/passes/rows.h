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

/* Unnormalised subsampling weights of every row: the model's own slot, or from
 * its rows' gradients (type gradient) and Hessians (hessian, leverage),
 *
 *   ||g_i||,  ||L^{-1} H_i||_F,  ||L^{-1} H_i L^{-T}||_F,
 *
 * the latter two at a cost of n_dim^3 a row. Unsupported where neither can. */
enum tb_status tb_model_weights(const struct tb_model* p_model,
                                enum tb_weight_type type,
                                const double* v_theta,
                                const double* v_chol,
                                double* v_out,
                                int n_threads);

#endif
