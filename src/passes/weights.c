#include "passes/weights.h"

#include "base/blas.h"
#include "base/chol.h"
#include "models/rows.h"
#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* rows of a part: a triangular solve has as many right-hand sides */
enum { ROWS = 4096 };

struct weights {
  const struct tb_model* p_model;
  enum tb_weight_type type;
  const double* v_theta;
  const double* v_chol;
  const double* v_none; /* -Hessian of no rows */
  double* v_out;
};

static enum tb_status own_part(void* p_what, const struct tb_part* p_part) {
  const struct weights* p = p_what;
  return p->p_model->type->weights(p->p_model,
                                   &p_part->work,
                                   p->type,
                                   p->v_theta,
                                   p->v_chol,
                                   &p_part->batch,
                                   p->v_out + p_part->first);
}

static enum tb_status gradient_part(void* p_what,
                                    const struct tb_part* p_part) {
  const struct weights* p = p_what;
  double* v_out = p->v_out + p_part->first;
  const enum tb_status status = tb_model_square_norms(p->p_model,
                                                      &p_part->work,
                                                      p->v_theta,
                                                      &p_part->batch,
                                                      NULL,
                                                      v_out,
                                                      NULL,
                                                      p_part->v_own);
  for (size_t k = 0; k < p_part->batch.n_batch; ++k) {
    v_out[k] = sqrt(v_out[k]);
  }
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

/* v_hessian (n_dim x n_dim), SET: -Hessian of the rows of the batch, and of the
 * prior; v_gradient: scratch */
static enum tb_status hessian_of(const struct weights* p,
                                 const struct tb_workspace* p_work,
                                 const struct tb_batch* p_batch,
                                 double* v_gradient,
                                 double* v_hessian) {
  const size_t n = p->p_model->n_dim;
  double log_posterior = 0;
  const struct tb_curvature sums = {.p_log_lik = &log_posterior,
                                    .v_gradient = v_gradient,
                                    .v_hessian = v_hessian,
                                    .with_prior = true};
  memset(v_gradient, 0, n * sizeof(double));
  memset(v_hessian, 0, n * n * sizeof(double));
  return p->p_model->type->curvature(p->p_model,
                                     p_work,
                                     p->v_theta,
                                     p_batch,
                                     &sums);
}

/* -H_i is that of one row less that of none */
static enum tb_status hessian_part(void* p_what, const struct tb_part* p_part) {
  const struct weights* p = p_what;
  const size_t n = p->p_model->n_dim, n_square = n * n;
  double *v_row = p_part->v_own, *v_gradient = v_row + n_square;
  enum tb_status status = TB_STATUS_ok;
  for (size_t i = 0; i < p_part->batch.n_batch && status == TB_STATUS_ok; ++i) {
    const struct tb_batch one = tb_batch_part(&p_part->batch, i, 1);
    status = hessian_of(p, &p_part->work, &one, v_gradient, v_row);
    for (size_t k = 0; k < n_square; ++k) {
      v_row[k] -= p->v_none[k];
    }
    tb_trsm('L', 'N', n, n, p->v_chol, n, v_row, n);
    if (p->type == TB_WEIGHT_leverage) {
      transpose(n, v_row);
      tb_trsm('L', 'N', n, n, p->v_chol, n, v_row, n);
    }
    double sum = 0;
    for (size_t k = 0; k < n_square; ++k) {
      sum += v_row[k] * v_row[k];
    }
    p->v_out[p_part->first + i] = sqrt(sum);
  }
  return status;
}

static enum tb_status none_part(void* p_what, const struct tb_part* p_part) {
  const struct weights* p = p_what;
  return hessian_of(p,
                    &p_part->work,
                    &p_part->batch,
                    p_part->v_own,
                    p_part->v_sum);
}

/* One pass with a function for its parts. */
static enum tb_status go_over(struct weights* p,
                              enum tb_status (*part)(void*,
                                                     const struct tb_part*),
                              size_t n_own,
                              size_t n_row,
                              size_t n_sum,
                              double* v_total,
                              int n_threads) {
  const struct tb_batch batch = {.n_batch = n_row, .weight = 1};
  struct tb_pass pass = {.p_model = p->p_model,
                         .part = part,
                         .p_what = p,
                         .n_part_row = ROWS,
                         .n_point = 1,
                         .n_sum = n_sum,
                         .n_own = n_own,
                         .n_threads = n_threads};
  enum tb_status status = tb_pass_begin(&pass);
  if (status == TB_STATUS_ok) {
    status = tb_pass_over(&pass, &batch, v_total);
  }
  tb_pass_end(&pass);
  return status;
}

static enum tb_status weights_by_hessians(struct weights* p, int n_threads) {
  const size_t n = p->p_model->n_dim, n_square = n * n;
  double* v_none = calloc(n_square, sizeof(double));
  if (v_none == NULL) {
    return TB_STATUS_memory;
  }
  p->v_none = v_none;
  enum tb_status status = go_over(p, none_part, n, 0, n_square, v_none, 1);
  if (status == TB_STATUS_ok) {
    status = go_over(p,
                     hessian_part,
                     n_square + n,
                     p->p_model->n_data,
                     0,
                     NULL,
                     n_threads);
  }
  free(v_none);
  return status;
}

/* The model's own, which may take Sigma in place of its factor. */
static enum tb_status own_weights(struct weights* p, int n_threads) {
  const size_t n = p->p_model->n_dim, n_square = n * n;
  const bool inverts = p->p_model->takes_covariance && p->v_chol != NULL;
  double* v_sigma = inverts ? malloc(2 * n_square * sizeof(double)) : NULL;
  if (inverts && v_sigma == NULL) {
    return TB_STATUS_memory;
  }
  if (inverts) {
    tb_chol_inverse(n, p->v_chol, v_sigma + n_square, v_sigma);
    p->v_chol = v_sigma;
  }
  const enum tb_status status =
      go_over(p, own_part, 0, p->p_model->n_data, 0, NULL, n_threads);
  free(v_sigma);
  return status;
}

/* The model's own, else row by row by what it has. */
static enum tb_status weights_of(struct weights* p, int n_threads) {
  const struct tb_model* p_model = p->p_model;
  const double* v_chol = p->v_chol;
  const bool by_hessian =
      p->type == TB_WEIGHT_hessian || p->type == TB_WEIGHT_leverage;
  if (p_model->type->weights != NULL) {
    const enum tb_status status = own_weights(p, n_threads);
    p->v_chol = v_chol;
    if (status != TB_STATUS_unsupported) {
      return status;
    }
  }
  if (p->type == TB_WEIGHT_gradient) {
    return go_over(p,
                   gradient_part,
                   p_model->n_dim,
                   p_model->n_data,
                   0,
                   NULL,
                   n_threads);
  }
  if (!by_hessian || !tb_model_has_curvature(p_model) || p_model->n_root > 0) {
    return TB_STATUS_unsupported; /* no bounds are known */
  }
  return weights_by_hessians(p, n_threads);
}

bool tb_model_has_weights(const struct tb_model* p_model) {
  const struct tb_model* p_base = p_model->p_base;
  return p_base == NULL
             ? p_model->type->weights != NULL
             : p_base->type->weights != NULL && !p_model->p_frame->is_diagonal;
}

/* What whitened coordinates do not change, they need not be gone to for: there
 * Sigma is the identity, and L L^T = Sigma^{-1} the frame's. */
static enum tb_status weights_in_frame(struct weights* p, int n_threads) {
  const struct tb_model* p_model = p->p_model;
  const size_t n = p_model->n_dim;
  const bool is_invariant = p->type == TB_WEIGHT_leverage ||
                            p->type == TB_WEIGHT_robust ||
                            p->type == TB_WEIGHT_cubic;
  if (!is_invariant || !tb_model_has_weights(p_model)) {
    return TB_STATUS_unsupported;
  }
  double* v_theta = malloc((n + n * n) * sizeof(double));
  if (v_theta == NULL) {
    return TB_STATUS_memory;
  }
  double* v_chol = v_theta + n;
  tb_frame_to_parameter(p_model->p_frame, p->v_theta, v_theta);
  memcpy(v_chol, p_model->p_frame->v_chol, n * n * sizeof(double));
  transpose(n, v_chol); /* the frame has it by rows */
  struct weights of_base = *p;
  of_base.p_model = p_model->p_base;
  of_base.v_theta = v_theta;
  of_base.v_chol = v_chol;
  const enum tb_status status = weights_of(&of_base, n_threads);
  free(v_theta);
  return status;
}

enum tb_status tb_model_weights(const struct tb_model* p_model,
                                enum tb_weight_type type,
                                const double* v_theta,
                                const double* v_chol,
                                double* v_out,
                                int n_threads) {
  struct weights what = {.p_model = p_model,
                         .type = type,
                         .v_theta = v_theta,
                         .v_chol = v_chol,
                         .v_out = v_out};
  if (p_model->p_base != NULL) {
    return v_chol == NULL ? weights_in_frame(&what, n_threads)
                          : TB_STATUS_unsupported;
  }
  return weights_of(&what, n_threads);
}
