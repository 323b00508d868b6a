/* A pass: a subsampling weight of every row. */
#ifndef TB_PASSES_WEIGHTS_H
#define TB_PASSES_WEIGHTS_H

#include "models/model.h"

/* Unnormalised, into v_out (n_data): the model's own slot, or from its rows'
 * gradients (type gradient) and Hessians (hessian, leverage),
 *
 *   ||g_i||,  ||L^{-1} H_i||_F,  ||L^{-1} H_i L^{-T}||_F,
 *
 * the latter two at a cost of n_dim^3 a row. Unsupported where neither can.
 * Where the status is not ok v_out holds anything. */
enum tb_status tb_model_weights(const struct tb_model* p_model,
                                enum tb_weight_type type,
                                const double* v_theta,
                                const double* v_chol,
                                double* v_out,
                                int n_threads);

/* Has it weights of some type without a cost of n_dim^3 a row? */
bool tb_model_has_weights(const struct tb_model* p_model);

#endif
