/* Generalised linear models to second order; see models/expansion.h, glm.c.
 *
 *   a_i = (u_i x_i, v_i),  with r = dl/deta, q = dl/ds, d = s - s(at) and the
 *   negative second derivatives c, a, b of l in eta and s
 *   u_i = r_i(eta_i, s) - r_i + c_i t_i + a_i d
 *   v_i = q_i(eta_i, s) - q_i + a_i t_i + b_i d
 *
 *   symbol                       variable   shape   owner
 *   eta_i, y_i, w_i,             v_record   n_data  caller
 *   r_i, c_i; q_i, a_i, b_i
 */
#include "models/glm-record.h"

#include "base/blas.h"

#include <math.h>
#include <stdlib.h>

static size_t second_record_size(const struct tb_model* p_model) {
  (void)p_model;
  return sizeof(struct glm_record);
}

/* v_log_lik: n_row, or NULL */
static void load_record(const struct glm* p_glm,
                        const struct glm_point* p_point,
                        const struct tb_rows* p_rows,
                        struct glm_record* v_to,
                        double* v_log_lik) {
  struct glm_block block;
  double v_r[BLOCK], v_c[BLOCK];
  double v_q[BLOCK] = {0}, v_a[BLOCK] = {0}, v_b[BLOCK] = {0};
  const bool has_aux = p_glm->has_aux;
  const struct tb_response_out out = {.v_log_density = v_log_lik,
                                      .v_score = v_r,
                                      .v_curvature = v_c,
                                      .v_aux_score = has_aux ? v_q : NULL,
                                      .v_cross = has_aux ? v_a : NULL,
                                      .v_aux_curvature = has_aux ? v_b : NULL};
  glm_load(p_glm, p_rows, p_point, &block);
  glm_evaluate(p_glm, p_point, &block, &out);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    if (has_aux) {
      v_b[k] = tb_response_aux_curvature(p_glm->response.type, v_b[k]);
    }
    v_to[k] = (struct glm_record){block.v_eta[k],
                                  block.v_y[k],
                                  block.v_weight[k],
                                  v_r[k],
                                  v_c[k],
                                  v_q[k],
                                  v_a[k],
                                  v_b[k]};
  }
}

/* v_scaled := v_c[k] times row k, of n_row rows */
static void scale_rows(const double* v_block,
                       const struct glm_record* v_record,
                       size_t n_row,
                       size_t n_padded,
                       double* v_scaled) {
  for (size_t k = 0; k < n_row; ++k) {
    for (size_t j = 0; j < n_padded; ++j) {
      v_scaled[k * n_padded + j] =
          v_record[k].curvature * v_block[k * n_padded + j];
    }
  }
}

/* Rows start.. of n_row, seen whole, into the sums: H of the coefficients, its
 * column of s (v_last, where s is sampled), G. v_scratch: n_row x (2 n_padded +
 * 2) */
static void expand_block(const struct tb_model* p_model,
                         double slope,
                         const struct glm_record* v,
                         size_t start,
                         size_t n_row,
                         double* v_scratch,
                         double* v_sum,
                         double* v_hessian,
                         double* v_last) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_dim = p_model->n_dim, n_coef = p_glm->n_coef;
  const size_t n_padded = p_store->n_padded;
  double* v_scaled = v_scratch + n_row * n_padded;
  double* v_r = v_scaled + n_row * n_padded;
  double* v_a = v_r + n_row;
  const double* v_block =
      p_store->type->block(p_store, start, n_row, v_scratch);
  scale_rows(v_block, v, n_row, n_padded, v_scaled);
  tb_gemm_op('N',
             'T',
             n_coef,
             n_coef,
             n_row,
             v_block,
             n_padded,
             v_scaled,
             n_padded,
             1,
             v_hessian,
             n_dim);
  for (size_t k = 0; k < n_row; ++k) {
    v_r[k] = v[k].score;
    v_a[k] = slope * v[k].cross;
  }
  tb_gemm_op('N',
             'N',
             n_coef,
             1,
             n_row,
             v_block,
             n_padded,
             v_r,
             n_row,
             1,
             v_sum,
             n_dim);
  if (v_last != NULL) {
    tb_gemm_op('N',
               'N',
               n_coef,
               1,
               n_row,
               v_block,
               n_padded,
               v_a,
               n_row,
               1,
               v_last,
               n_dim);
  }
}

/* The same of sparse rows, H above its diagonal alone. */
static void expand_sparse(const struct tb_model* p_model,
                          double slope,
                          const struct glm_record* v,
                          size_t start,
                          size_t n_row,
                          double* v_sum,
                          double* v_hessian,
                          double* v_last) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = {.n_row = tb_min(BLOCK, n_row - b),
                                 .start = start + b};
    double v_r[BLOCK], v_c[BLOCK], v_a[BLOCK];
    for (size_t k = 0; k < rows.n_row; ++k) {
      v_r[k] = v[b + k].score;
      v_c[k] = v[b + k].curvature;
      v_a[k] = slope * v[b + k].cross;
    }
    p_store->type->add_products(p_store, &rows, v_c, v_hessian, p_model->n_dim);
    p_store->type->add(p_store, &rows, v_r, v_sum);
    if (v_last != NULL) {
      p_store->type->add(p_store, &rows, v_a, v_last);
    }
  }
}

/* Records of the rows of a batch, and the sum of their log likelihoods where it
 * is wanted: in order, so that it depends on no threads. */
static void load_records(const struct glm* p_glm,
                         const struct glm_point* p_point,
                         const struct tb_batch* p_batch,
                         struct glm_record* v_record,
                         double* p_log_lik,
                         int n_threads) {
  const size_t n_row = p_batch->n_batch;
  if (p_log_lik != NULL) {
    for (size_t b = 0; b < n_row; b += BLOCK) {
      const struct tb_rows rows = tb_batch_block(p_batch, b);
      double v_log_lik[BLOCK];
      load_record(p_glm, p_point, &rows, v_record + b, v_log_lik);
      for (size_t k = 0; k < rows.n_row; ++k) {
        *p_log_lik += v_log_lik[k];
      }
    }
    return;
  }
  (void)n_threads;
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads)                                \
    schedule(static) if (n_threads > 1)
#endif
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    load_record(p_glm, p_point, &rows, v_record + b, NULL);
  }
}

static enum tb_status second_expand(const struct tb_model* p_model,
                                    const double* v_at,
                                    const struct tb_batch* p_batch,
                                    void* p_record,
                                    const struct tb_curvature* p_sums,
                                    int n_threads) {
  enum { ROWS = 1024 };
  const struct glm* p_glm = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n_coef = p_glm->n_coef;
  const size_t n_padded = p_glm->store.n_padded;
  const size_t n_seen = p_glm->is_sparse ? 0 : (size_t)2 * ROWS * n_padded;
  struct glm_record* v_record = p_record;
  double* v_sum = p_sums->v_gradient;
  double* v_hessian = p_sums->v_hessian;
  double* v_scratch = malloc((n_padded + n_seen + 2 * ROWS) * sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_block = v_scratch + n_padded;
  const struct glm_point point = glm_point_at(p_model, v_at, v_scratch);
  double* v_last = p_glm->has_aux ? v_hessian + n_coef * n_dim : NULL;
  load_records(p_glm, &point, p_batch, v_record, p_sums->p_log_lik, n_threads);
  for (size_t first = 0; first < p_batch->n_batch; first += ROWS) {
    const size_t n_row = tb_min(ROWS, p_batch->n_batch - first);
    const size_t start = p_batch->start + first;
    const struct glm_record* v = v_record + first;
    if (p_glm->is_sparse) {
      expand_sparse(p_model,
                    point.slope,
                    v,
                    start,
                    n_row,
                    v_sum,
                    v_hessian,
                    v_last);
    } else {
      expand_block(p_model,
                   point.slope,
                   v,
                   start,
                   n_row,
                   v_block,
                   v_sum,
                   v_hessian,
                   v_last);
    }
    for (size_t k = 0; v_last != NULL && k < n_row; ++k) {
      v_sum[n_coef] += point.slope * v[k].aux_score;
      v_last[n_coef] += point.slope * point.slope * v[k].aux_curvature;
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    for (size_t i = 0; i < j; ++i) {
      /* of the coefficients both triangles are there, up to rounding, or the
       * upper one */
      v_hessian[i * n_dim + j] = v_hessian[j * n_dim + i];
    }
  }
  free(v_scratch);
  return TB_STATUS_ok;
}

static double second_largest_predictor(const void* p_record, size_t n_row) {
  const struct glm_record* v_record = p_record;
  double largest = 0;
  for (size_t k = 0; k < n_row; ++k) {
    largest = fmax(largest, fabs(v_record[k].eta));
  }
  return largest;
}

/* Add a block's a_i, of which u and v are known, to the sums. */
static void add_block(const struct glm* p_glm,
                      const struct tb_rows* p_rows,
                      const struct tb_batch* p_batch,
                      size_t first,
                      double* v_u,
                      const struct glm_scratch* p_scratch,
                      bool wants_square) {
  const struct tb_store* p_store = &p_glm->store;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_u[k] *= tb_batch_weight(p_batch, first + k);
  }
  if (wants_square) {
    p_store->type->add_square(p_store,
                              p_rows,
                              v_u,
                              p_scratch->v_sum,
                              p_scratch->v_square);
  } else {
    p_store->type->add(p_store, p_rows, v_u, p_scratch->v_sum);
  }
}

static enum tb_status second_beyond(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const void* p_record,
                                    const double* v_at,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const struct tb_sums* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_coef = p_glm->n_coef;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_record* v_record = p_record;
  const bool wants_square = p_sums->v_square != NULL, has_aux = p_glm->has_aux;
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_reference);
  const double d = has_aux ? point.slope * (v_theta[n_coef] - v_at[n_coef]) : 0;
  double sum_v = 0, square_v = 0;

  memset(scratch.v_theta, 0, p_glm->store.n_padded * sizeof(double));
  for (size_t j = 0; j < n_coef; ++j) {
    scratch.v_theta[j] = v_theta[j] - v_at[j];
  }
  memset(scratch.v_sum, 0, p_glm->store.n_padded * sizeof(double));
  memset(scratch.v_square, 0, p_glm->store.n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block = {.n_row = rows.n_row};
    double v_t[BLOCK], v_u[BLOCK], v_v[BLOCK];
    const struct tb_response_out out = {.v_score = v_u,
                                        .v_aux_score = has_aux ? v_v : NULL};
    glm_load_steps(p_glm, &rows, v_record, scratch.v_theta, v_t);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const struct glm_record* p = &v_record[tb_rows_at(&rows, k)];
      block.v_eta[k] = p->eta + v_t[k];
      block.v_y[k] = p->y;
      block.v_weight[k] = p->weight;
    }
    glm_evaluate(p_glm, &point, &block, &out);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const struct glm_record* p = &v_record[tb_rows_at(&rows, k)];
      v_u[k] += p->curvature * v_t[k] + p->cross * d - p->score;
      if (has_aux) {
        const double v =
            tb_batch_weight(p_batch, b + k) *
            (v_v[k] + p->cross * v_t[k] + p->aux_curvature * d - p->aux_score);
        sum_v += v;
        square_v += v * v;
      }
    }
    add_block(p_glm, &rows, p_batch, b, v_u, &scratch, wants_square);
  }

  for (size_t j = 0; j < n_coef; ++j) {
    p_sums->v_gradient[j] += scratch.v_sum[j];
    if (wants_square) {
      p_sums->v_square[j] += scratch.v_square[j];
    }
  }
  if (has_aux) {
    p_sums->v_gradient[n_coef] += point.slope * sum_v;
    if (wants_square) {
      p_sums->v_square[n_coef] += point.slope * point.slope * square_v;
    }
  }
  return TB_STATUS_ok;
}

const struct tb_model_expansion tb_glm_expansion = {
    .record_size = second_record_size,
    .expand = second_expand,
    .largest_predictor = second_largest_predictor,
    .beyond = second_beyond,
    .has_remainders = glm_has_remainders,
    .remainders = glm_remainders,
    .prefetch = glm_prefetch,
    .norms = glm_norms,
    .third_bounds = glm_third_bounds,
};
