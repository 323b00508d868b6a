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

/* Every row with multiplier 1. */
static struct tb_batch all_rows(const struct tb_model* p_model) {
  return (struct tb_batch){ .n_batch = p_model->n_data, .weight = 1 };
}

enum tb_status tb_model_all_gradient(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_sums* p_sums) {
  const struct tb_batch all = all_rows(p_model);
  struct tb_sums sums = *p_sums;
  enum tb_status status = TB_STATUS_ok;
  for (size_t start = 0; start < all.n_batch && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&all, start, TB_CHUNK);
    if (p_sums->v_scalar != NULL) {
      sums.v_scalar = p_sums->v_scalar + start * p_model->n_scalar;
    }
    status = p_model->type->gradient(
      p_model, p_work, v_theta, &part, NULL, &sums);
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
    return p_model->type->square_norms(
      p_model, p_work, v_theta, p_batch, p_reference, v_square, v_sum);
  }
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    status = tb_model_row_gradient(
      p_model, p_work, v_theta, tb_batch_row(p_batch, k), p_reference, v_row);
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
  const struct tb_batch all = all_rows(p_model);
  enum tb_status status = TB_STATUS_ok;
  for (size_t start = 0; start < all.n_batch && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&all, start, TB_CHUNK);
    status = tb_model_square_norms(p_model, p_work, v_theta, &part,
                                   p_reference, v_square + start, v_sum, v_row);
  }
  return status;
}
