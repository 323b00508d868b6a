#include "passes/rows.h"

#include "base/blas.h"
#include "base/clip.h"
#include "models/rows.h"

#include <math.h>
#include <stdlib.h>

/* Every row with multiplier 1. */
static struct tb_batch all_rows(const struct tb_model* p_model) {
  return (struct tb_batch){.n_batch = p_model->n_data, .weight = 1};
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
    status =
        p_model->type->gradient(p_model, p_work, v_theta, &part, NULL, &sums);
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
    status = tb_model_square_norms(p_model,
                                   p_work,
                                   v_theta,
                                   &part,
                                   p_reference,
                                   v_square + start,
                                   v_sum,
                                   v_row);
  }
  return status;
}

/* ----------------------------------------------------------------- weights */

static enum tb_status weights_by_gradients(const struct tb_model* p_model,
                                           const double* v_theta,
                                           double* v_out) {
  const size_t n_work = p_model->type->workspace_size == NULL
                            ? 0
                            : p_model->type->workspace_size(p_model, TB_CHUNK);
  char* p_scratch =
      calloc(1, tb_align(n_work) + p_model->n_dim * sizeof(double));
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  const struct tb_workspace work = {.p_scratch = p_scratch};
  const enum tb_status status =
      tb_model_all_square_norms(p_model,
                                &work,
                                v_theta,
                                NULL,
                                v_out,
                                NULL,
                                (double*)(void*)(p_scratch + tb_align(n_work)));
  for (size_t i = 0; i < p_model->n_data; ++i) {
    v_out[i] = sqrt(v_out[i]);
  }
  free(p_scratch);
  return status;
}

/* v_block (n x n) := its transpose */
static void transpose(size_t n, double* v_block) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double swap = v_block[i * n + j];
      v_block[i * n + j] = v_block[j * n + i];
      v_block[j * n + i] = swap;
    }
  }
}

/* -H_i is the curvature of one row less that of none */
static enum tb_status weights_by_hessians(const struct tb_model* p_model,
                                          bool both_sides,
                                          const double* v_theta,
                                          const double* v_chol,
                                          double* v_out) {
  const size_t n = p_model->n_dim, n_square = n * n;
  const struct tb_batch none = {.n_batch = 0, .weight = 1};
  double* v_none = calloc(2 * n_square + n, sizeof(double));
  if (v_none == NULL) {
    return TB_STATUS_memory;
  }
  double *v_row = v_none + n_square, *v_gradient = v_row + n_square;
  double log_posterior;
  enum tb_status status = p_model->type->curvature(p_model,
                                                   v_theta,
                                                   &none,
                                                   NULL,
                                                   &log_posterior,
                                                   v_gradient,
                                                   v_none,
                                                   1);
  for (size_t i = 0; i < p_model->n_data && status == TB_STATUS_ok; ++i) {
    const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
    status = p_model->type->curvature(p_model,
                                      v_theta,
                                      &one,
                                      NULL,
                                      &log_posterior,
                                      v_gradient,
                                      v_row,
                                      1);
    for (size_t k = 0; k < n_square; ++k) {
      v_row[k] -= v_none[k];
    }
    tb_trsm_lower(n, n, v_chol, n, v_row, n);
    if (both_sides) {
      transpose(n, v_row);
      tb_trsm_lower(n, n, v_chol, n, v_row, n);
    }
    double sum = 0;
    for (size_t k = 0; k < n_square; ++k) {
      sum += v_row[k] * v_row[k];
    }
    v_out[i] = sqrt(sum);
  }
  free(v_none);
  return status;
}

enum tb_status tb_model_weights(const struct tb_model* p_model,
                                enum tb_weight_type type,
                                const double* v_theta,
                                const double* v_chol,
                                double* v_out,
                                int n_threads) {
  if (p_model->type->weights != NULL) {
    return p_model->type
        ->weights(p_model, type, v_theta, v_chol, v_out, n_threads);
  }
  if (type == TB_WEIGHT_gradient) {
    return weights_by_gradients(p_model, v_theta, v_out);
  }
  const bool by_hessian =
      type == TB_WEIGHT_hessian || type == TB_WEIGHT_leverage;
  if (!by_hessian || p_model->type->curvature == NULL) {
    return TB_STATUS_unsupported; /* no bounds are known */
  }
  return weights_by_hessians(p_model,
                             type == TB_WEIGHT_leverage,
                             v_theta,
                             v_chol,
                             v_out);
}
