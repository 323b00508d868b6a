#include "models/rows.h"

#include "core/clip.h"

#include <string.h>

enum tb_status tb_model_row_gradient(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     size_t i,
                                     const struct tb_reference* p_reference,
                                     double* v_row) {
  const struct tb_batch one = { .n_batch = 1, .start = i, .weight = 1 };
  const struct tb_sums sums = { .v_gradient = v_row };
  memset(v_row, 0, p_model->n_dim * sizeof(double));
  return p_model->type->gradient(
    p_model, p_work, v_theta, &one, p_reference, &sums);
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
    return p_model->type->square_norms(
      p_model, p_work, v_theta, p_batch, p_reference, v_square, v_sum);
  }
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    const size_t i =
      p_batch->v_index == NULL ? p_batch->start + k : p_batch->v_index[k];
    status =
      tb_model_row_gradient(p_model, p_work, v_theta, i, p_reference, v_row);
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

enum tb_status tb_model_all_square_norms(const struct tb_model* p_model,
                                         const struct tb_workspace* p_work,
                                         const double* v_theta,
                                         const struct tb_reference* p_reference,
                                         double* v_square,
                                         double* v_sum,
                                         double* v_row) {
  enum tb_status status = TB_STATUS_ok;
  for (size_t start = 0; start < p_model->n_data && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch batch = {
      .n_batch = tb_min(TB_CHUNK, p_model->n_data - start),
      .start = start,
      .weight = 1
    };
    status = tb_model_square_norms(p_model, p_work, v_theta, &batch,
                                   p_reference, v_square + start, v_sum, v_row);
  }
  return status;
}
