/* Generalised linear models to second order; see models/expansion.h, glm.c.
 *
 *   a_i = (u_i x_i, v_i),  with r = dl/deta, q = dl/ds, d = s - s(at) and the
 *   negative second derivatives c, a, b of l in eta and s
 *   u_i = r_i(eta_i, s) - r_i + c_i t_i + a_i d
 *   v_i = q_i(eta_i, s) - q_i + a_i t_i + b_i d
 * where s, and so q, a, d, may be vectors and b a matrix.
 *
 *   symbol                       variable   shape   owner
 *   eta_i, y_i, w_i,             p_record   n_data  caller
 *   r_i, c_i; q_i, a_i, b_i
 */
#include "models/glm-record.h"

#include "base/blas.h"

#include <math.h>
#include <stdlib.h>

static size_t second_record_size(const struct tb_model* p_model) {
  return glm_record_size(p_model->p_self);
}

/* Records of rows, `first` and those behind it. v_log_lik: n_row, or NULL */
static void load_record(const struct glm* p_glm,
                        const struct glm_point* p_point,
                        const struct tb_rows* p_rows,
                        void* p_record,
                        size_t first,
                        double* v_log_lik) {
  struct glm_block block;
  double v_r[BLOCK], v_c[BLOCK];
  double v_q[AUX * BLOCK], v_a[AUX * BLOCK], v_b[PAIR * BLOCK];
  double v_rest[AUX];
  const size_t n_aux = p_glm->n_aux, n_row = p_rows->n_row;
  const struct tb_response_out out = {.v_log_density = v_log_lik,
                                      .v_score = v_r,
                                      .v_curvature = v_c,
                                      .v_aux_score = n_aux > 0 ? v_q : NULL,
                                      .v_cross = n_aux > 0 ? v_a : NULL,
                                      .v_aux_curvature =
                                          n_aux > 0 ? v_b : NULL};
  glm_load(p_glm, p_rows, p_point, &block);
  glm_evaluate(p_glm, p_point, &block, &out);
  (void)tb_response_informations(p_glm->response.type,
                                 &p_point->response,
                                 v_rest);
  for (size_t k = 0; k < n_row; ++k) {
    struct glm_record* p = glm_record_put(p_glm, p_record, first + k);
    double* v_aux = p->v_aux;
    p->eta = block.v_eta[k];
    p->y = block.v_y[k];
    p->weight = block.v_weight[k];
    p->score = v_r[k];
    p->curvature = v_c[k];
    for (size_t j = 0; j < n_aux; ++j) {
      v_aux[j] = v_q[j * n_row + k];
      v_aux[n_aux + j] = v_a[j * n_row + k];
      for (size_t l = 0; l <= j; ++l) {
        const size_t pair = tb_response_pair(j, l);
        v_aux[2 * n_aux + pair] =
            v_b[pair * n_row + k] + (j == l ? v_rest[j] : 0);
      }
    }
  }
}

/* v_scaled := v_c[k] times row k, of n_row rows */
static void scale_rows(const struct glm* p_glm,
                       const double* v_block,
                       const void* p_record,
                       size_t n_row,
                       size_t n_padded,
                       double* v_scaled) {
  for (size_t k = 0; k < n_row; ++k) {
    const double c = glm_record_at(p_glm, p_record, k)->curvature;
    for (size_t j = 0; j < n_padded; ++j) {
      v_scaled[k * n_padded + j] = c * v_block[k * n_padded + j];
    }
  }
}

/* phi_l's part of the crosses of a record */
static double pulled_cross(const struct glm* p_glm,
                           const double* v_slope,
                           const void* p_record,
                           size_t row,
                           size_t l) {
  const double* v_cross =
      glm_record_at(p_glm, p_record, row)->v_aux + p_glm->n_aux;
  double v_out[AUX];
  glm_pull_aux(v_slope, p_glm->n_aux, v_cross, v_out);
  return v_out[l];
}

/* v_out += sum of v_scalar[k] times row k */
static void add_rows(const struct glm* p_glm,
                     size_t n_dim,
                     const double* v_block,
                     const double* v_scalar,
                     size_t n_row,
                     double* v_out) {
  tb_gemm_op('N',
             'N',
             p_glm->n_coef,
             1,
             n_row,
             v_block,
             p_glm->store.n_padded,
             v_scalar,
             n_row,
             1,
             v_out,
             n_dim);
}

/* Rows start.. of n_row, seen whole, into the sums: H of the coefficients, its
 * columns of s, G. p_record: of the first of them. v_scratch: n_row x (2
 * n_padded + 1) */
static void expand_block(const struct tb_model* p_model,
                         const double* v_slope,
                         const void* p_record,
                         size_t start,
                         size_t n_row,
                         double* v_scratch,
                         const struct tb_curvature* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_dim = p_model->n_dim, n_coef = p_glm->n_coef;
  const size_t n_padded = p_store->n_padded;
  double* v_scaled = v_scratch + n_row * n_padded;
  double* v_r = v_scaled + n_row * n_padded;
  const double* v_block =
      p_store->type->block(p_store, start, n_row, v_scratch);
  scale_rows(p_glm, v_block, p_record, n_row, n_padded, v_scaled);
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
             p_sums->v_hessian,
             n_dim);
  for (size_t k = 0; k < n_row; ++k) {
    v_r[k] = glm_record_at(p_glm, p_record, k)->score;
  }
  add_rows(p_glm, n_dim, v_block, v_r, n_row, p_sums->v_gradient);
  for (size_t l = 0; l < p_glm->n_aux; ++l) {
    for (size_t k = 0; k < n_row; ++k) {
      v_r[k] = pulled_cross(p_glm, v_slope, p_record, k, l);
    }
    double* v_column = p_sums->v_hessian + (n_coef + l) * n_dim;
    add_rows(p_glm, n_dim, v_block, v_r, n_row, v_column);
  }
}

/* The same of sparse rows, H above its diagonal alone. */
static void expand_sparse(const struct tb_model* p_model,
                          const double* v_slope,
                          const void* p_record,
                          size_t start,
                          size_t n_row,
                          const struct tb_curvature* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_dim = p_model->n_dim;
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = {.n_row = tb_min(BLOCK, n_row - b),
                                 .start = start + b};
    double v_r[BLOCK], v_c[BLOCK];
    for (size_t k = 0; k < rows.n_row; ++k) {
      const struct glm_record* p = glm_record_at(p_glm, p_record, b + k);
      v_r[k] = p->score;
      v_c[k] = p->curvature;
    }
    p_store->type->add_products(p_store, &rows, v_c, p_sums->v_hessian, n_dim);
    p_store->type->add(p_store, &rows, v_r, p_sums->v_gradient);
    for (size_t l = 0; l < p_glm->n_aux; ++l) {
      for (size_t k = 0; k < rows.n_row; ++k) {
        v_r[k] = pulled_cross(p_glm, v_slope, p_record, b + k, l);
      }
      double* v_column = p_sums->v_hessian + (p_glm->n_coef + l) * n_dim;
      p_store->type->add(p_store, &rows, v_r, v_column);
    }
  }
}

/* What a record has of s alone, into the sums. */
static void expand_aux(const struct tb_model* p_model,
                       const double* v_slope,
                       const struct glm_record* p_record,
                       const struct tb_curvature* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_aux = p_glm->n_aux, n_coef = p_glm->n_coef;
  double v_score[AUX], v_pair[PAIR];
  glm_pull_aux(v_slope, n_aux, p_record->v_aux, v_score);
  glm_pull_pairs(v_slope, n_aux, p_record->v_aux + 2 * n_aux, v_pair);
  for (size_t l = 0; l < n_aux; ++l) {
    p_sums->v_gradient[n_coef + l] += v_score[l];
    for (size_t m = 0; m <= l; ++m) {
      p_sums->v_hessian[(n_coef + l) * p_model->n_dim + n_coef + m] +=
          v_pair[tb_response_pair(l, m)];
    }
  }
}

/* Records of the rows of a batch, and the sum of their log likelihoods where it
 * is wanted: in order, so that it depends on no threads. */
static void load_records(const struct glm* p_glm,
                         const struct glm_point* p_point,
                         const struct tb_batch* p_batch,
                         void* p_record,
                         double* p_log_lik,
                         int n_threads) {
  const size_t n_row = p_batch->n_batch;
  if (p_log_lik != NULL) {
    for (size_t b = 0; b < n_row; b += BLOCK) {
      const struct tb_rows rows = tb_batch_block(p_batch, b);
      double v_log_lik[BLOCK];
      load_record(p_glm, p_point, &rows, p_record, b, v_log_lik);
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
    load_record(p_glm, p_point, &rows, p_record, b, NULL);
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
  const size_t n_dim = p_model->n_dim;
  const size_t n_padded = p_glm->store.n_padded;
  const size_t n_seen = p_glm->is_sparse ? 0 : (size_t)2 * ROWS * n_padded;
  double* v_hessian = p_sums->v_hessian;
  double* v_scratch = malloc((n_padded + n_seen + ROWS) * sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_block = v_scratch + n_padded;
  const struct glm_point point = glm_point_at(p_model, v_at, v_scratch);
  load_records(p_glm, &point, p_batch, p_record, p_sums->p_log_lik, n_threads);
  for (size_t first = 0; first < p_batch->n_batch; first += ROWS) {
    const size_t n_row = tb_min(ROWS, p_batch->n_batch - first);
    const size_t start = p_batch->start + first;
    const void* p_here = glm_record_at(p_glm, p_record, first);
    if (p_glm->is_sparse) {
      expand_sparse(p_model, point.v_slope, p_here, start, n_row, p_sums);
    } else {
      expand_block(p_model,
                   point.v_slope,
                   p_here,
                   start,
                   n_row,
                   v_block,
                   p_sums);
    }
    for (size_t k = 0; p_glm->n_aux > 0 && k < n_row; ++k) {
      expand_aux(p_model,
                 point.v_slope,
                 glm_record_at(p_glm, p_here, k),
                 p_sums);
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

static double second_largest_predictor(const struct tb_model* p_model,
                                       const void* p_record,
                                       size_t n_row) {
  const struct glm* p_glm = p_model->p_self;
  double largest = 0;
  for (size_t k = 0; k < n_row; ++k) {
    largest = fmax(largest, fabs(glm_record_at(p_glm, p_record, k)->eta));
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

/* What s adds to u of a row, and v of it from the scores: v_v[j * n_row] */
static inline void beyond_aux(size_t n_aux,
                              const struct glm_record* p,
                              double t,
                              const double* v_d,
                              size_t n_row,
                              double* p_u,
                              double* v_v) {
  const double *v_score = p->v_aux, *v_cross = v_score + n_aux;
  const double* v_pair = v_cross + n_aux;
  for (size_t j = 0; j < n_aux; ++j) {
    double v = v_v[j * n_row] + v_cross[j] * t;
    *p_u += v_cross[j] * v_d[j];
    for (size_t l = 0; l < n_aux; ++l) {
      const size_t pair =
          j < l ? tb_response_pair(l, j) : tb_response_pair(j, l);
      v += v_pair[pair] * v_d[l];
    }
    v_v[j * n_row] = v - v_score[j];
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
  const size_t n_aux = p_glm->n_aux;
  const bool wants_square = p_sums->v_square != NULL;
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_reference);
  double v_d[AUX] = {0};
  struct glm_aux_sums aux = {0};

  memset(scratch.v_theta, 0, p_glm->store.n_padded * sizeof(double));
  for (size_t j = 0; j < n_coef; ++j) {
    scratch.v_theta[j] = v_theta[j] - v_at[j];
  }
  for (size_t k = 0; k < n_aux; ++k) {
    for (size_t l = k; l < n_aux; ++l) {
      v_d[k] +=
          point.v_slope[k * AUX + l] * (v_theta[n_coef + l] - v_at[n_coef + l]);
    }
  }
  memset(scratch.v_sum, 0, p_glm->store.n_padded * sizeof(double));
  memset(scratch.v_square, 0, p_glm->store.n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block = {.n_row = rows.n_row};
    double v_t[BLOCK], v_u[BLOCK], v_v[AUX * BLOCK];
    const struct tb_response_out out = {.v_score = v_u,
                                        .v_aux_score = n_aux > 0 ? v_v : NULL};
    glm_load_steps(p_glm, &rows, p_record, scratch.v_theta, v_t);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const struct glm_record* p =
          glm_record_at(p_glm, p_record, tb_rows_at(&rows, k));
      block.v_eta[k] = p->eta + v_t[k];
      block.v_y[k] = p->y;
      block.v_weight[k] = p->weight;
    }
    glm_load_more_y(p_glm, &rows, &block);
    glm_evaluate(p_glm, &point, &block, &out);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const struct glm_record* p =
          glm_record_at(p_glm, p_record, tb_rows_at(&rows, k));
      v_u[k] += p->curvature * v_t[k] - p->score;
      if (n_aux > 0) {
        beyond_aux(n_aux, p, v_t[k], v_d, rows.n_row, &v_u[k], v_v + k);
        glm_aux_add(&aux,
                    n_aux,
                    tb_batch_weight(p_batch, b + k),
                    v_v + k,
                    rows.n_row);
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
  glm_aux_finish(p_glm, point.v_slope, &aux, p_sums);
  return TB_STATUS_ok;
}

const struct tb_model_expansion tb_glm_expansion = {
    .record_size = second_record_size,
    .expand = second_expand,
    .largest_predictor = second_largest_predictor,
    .beyond = second_beyond,
    .has_remainders = glm_has_remainders,
    .remainders = glm_remainders,
    .remainders_of = glm_remainders_of,
    .steps = glm_steps,
    .prefetch = glm_prefetch,
    .norms = glm_norms,
    .third_bounds = glm_third_bounds,
};
