#include "models/rows.h"

#include <string.h>

/* v_row = g_i(theta) of row i, less that of the reference */
static enum tb_status row_gradient(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   size_t i,
                                   const struct tb_reference* p_reference,
                                   double* v_row) {
  const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
  const struct tb_sums sums = {.v_gradient = v_row};
  memset(v_row, 0, p_model->n_dim * sizeof(double));
  return p_model->type
      ->gradient(p_model, p_work, v_theta, &one, p_reference, &sums);
}

enum tb_status tb_model_row_gradients(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      double* v_row) {
  enum tb_status status = TB_STATUS_ok;
  if (p_model->type->row_gradients != NULL) {
    return p_model->type->row_gradients(p_model,
                                        p_work,
                                        v_theta,
                                        p_batch,
                                        v_row);
  }
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    status = row_gradient(p_model,
                          p_work,
                          v_theta,
                          tb_batch_row(p_batch, k),
                          NULL,
                          v_row + k * p_model->n_dim);
  }
  return status;
}

enum tb_status tb_model_square_norms(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     const struct tb_reference* p_reference,
                                     double* v_square,
                                     double* v_sum,
                                     double* v_row) {
  enum tb_status status = TB_STATUS_ok;
  if (p_model->type->square_norms != NULL) {
    return p_model->type->square_norms(p_model,
                                       p_work,
                                       v_theta,
                                       p_batch,
                                       p_reference,
                                       v_square,
                                       v_sum);
  }
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    status = row_gradient(p_model,
                          p_work,
                          v_theta,
                          tb_batch_row(p_batch, k),
                          p_reference,
                          v_row);
    v_square[k] = 0;
    for (size_t j = 0; j < p_model->n_dim; ++j) {
      v_square[k] += v_row[j] * v_row[j];
      if (v_sum != NULL) {
        v_sum[j] += v_row[j];
      }
    }
  }
  return status;
}

void tb_curvature_add_prior(const struct tb_prior* p_prior,
                            const double* v_theta,
                            const double* v_round,
                            double* v_own,
                            const struct tb_curvature* p_sums) {
  const size_t n_dim = p_prior->n_dim;
  *p_sums->p_log_lik += tb_prior_curvature(p_prior,
                                           v_theta,
                                           v_round,
                                           v_own,
                                           p_sums->v_hessian,
                                           n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    p_sums->v_gradient[j] += v_own[j];
  }
}

enum tb_status tb_model_no_rows(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_reference* p_reference,
                                const struct tb_sums* p_sums) {
  (void)p_model;
  (void)p_work;
  (void)v_theta;
  (void)p_reference;
  (void)p_sums;
  return p_batch->n_batch == 0 ? TB_STATUS_ok : TB_STATUS_argument;
}
