/* A pass: log posterior, gradient and -Hessian at a point. */
#ifndef TB_PASSES_CURVATURE_H
#define TB_PASSES_CURVATURE_H

#include "models/model.h"

/* Over the rows of the batch, each with its multiplier, and the prior, whose
 * kinks v_round (n_dim, or NULL) rounds off. v_hessian: n_dim x n_dim, full.
 * All are SET; where the status is not ok they hold anything. */
enum tb_status tb_model_curvature(const struct tb_model* p_model,
                                  const double* v_theta,
                                  const struct tb_batch* p_batch,
                                  const double* v_round,
                                  double* p_log_posterior,
                                  double* v_gradient,
                                  double* v_hessian,
                                  int n_threads);

/* The diagonal of -Hessian, where all of it is not to be had, SET. */
enum tb_status tb_model_diagonal(const struct tb_model* p_model,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 double* v_diagonal,
                                 int n_threads);

#endif
