/* What rows say one by one, for any model, and what none says. */
#ifndef TB_MODELS_ROWS_H
#define TB_MODELS_ROWS_H

#include "models/model.h"
#include "priors/prior.h"

/* The slot square_norms of the model; without one, its gradient at one row
 * after the other. v_row: n_dim numbers of scratch. */
enum tb_status tb_model_square_norms(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     const struct tb_reference* p_reference,
                                     double* v_square,
                                     double* v_sum,
                                     double* v_row);

/* The slot row_gradients of the model; without one, its gradient at one row
 * after the other. */
enum tb_status tb_model_row_gradients(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      double* v_row);

/* A slot curvature_prior of a model without anything else there; v_own: n_dim
 * numbers of scratch. */
void tb_curvature_add_prior(const struct tb_prior* p_prior,
                            const double* v_theta,
                            const double* v_round,
                            double* v_own,
                            const struct tb_curvature* p_sums);

/* The slot gradient of a model that has no rows. */
enum tb_status tb_model_no_rows(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_reference* p_reference,
                                const struct tb_sums* p_sums);

#endif
