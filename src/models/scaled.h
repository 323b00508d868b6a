/* A model whose coefficients have priors with hyperparameters. */
#ifndef TB_MODELS_SCALED_H
#define TB_MODELS_SCALED_H

#include "models/model.h"

/* Fill p_out with the model of (theta, phi): the rows and the prior of p_base,
 * which must outlive it and whose own prior is flat in the coefficients that
 * the mixtures cover, and the priors of priors/mixture.h, whose parameters
 * p_params has. v_held (n_held, or NULL): with phi held there, a model of
 * theta alone, which has a Hessian where p_base has one.
 *
 * "move_center", "move_slope", "move_hessian" (n, n, n x n, n of p_base), where
 * p_params has them: a point, and the gradient and minus the Hessian there of
 * all but the mixtures, for moves of the model's own. "given_center",
 * "given_pull", "given_prior", "given_gram", "given_bend", "given_rows", where
 * they are there too: see given_sigma in scaled.c; beside them what
 * tb_tails_create() takes. */
enum tb_status tb_model_scale(struct tb_model* p_base,
                              const struct tb_params* p_params,
                              const double* v_held,
                              size_t n_held,
                              struct tb_model* p_out);

#endif
