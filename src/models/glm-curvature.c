/* Generalised linear models, second derivatives and sums at many points; see
 * glm.c. */
#include "models/glm-inside.h"

#include "base/blas.h"
#include "models/rows.h"

#include <math.h>

size_t
glm_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_seen = p_glm->is_sparse ? 0 : p_glm->store.n_padded;
  const size_t n_each = n_seen + n_point + GLM_N_COLUMN;
  return tb_blocks_workspace_size(p_model, n_row) +
         n_row * n_each * sizeof(double);
}

struct glm_pass_scratch glm_pass_scratch_at(const struct glm* p_glm,
                                            const struct tb_workspace* p_work,
                                            size_t n_row) {
  struct glm_pass_scratch out = {.of_point =
                                     glm_scratch_at(p_glm, p_work->p_scratch)};
  double* v = (double*)p_work->p_scratch + 4 * glm_width(p_glm);
  for (size_t k = 0; k < GLM_N_COLUMN; ++k) {
    out.v_column[k] = v + k * n_row;
  }
  out.v_rows = v + GLM_N_COLUMN * n_row;
  out.v_eta =
      out.v_rows + (p_glm->is_sparse ? 0 : n_row * p_glm->store.n_padded);
  return out;
}

/* Rows S with S^T S the products of rows of a block, w their weights, and the
 * signs of these. */
static void add_roots(const struct glm* p_glm,
                      const struct tb_rows* p_rows,
                      const double* v_w,
                      double* v_scratch,
                      double* v_root,
                      double* v_sign,
                      size_t n_lead) {
  const struct tb_store* p_store = &p_glm->store;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double root = sqrt(fabs(v_w[k]));
    v_sign[k] = v_w[k] < 0 ? -1 : 1;
    const double* v_row =
        p_store->type->block(p_store, tb_rows_at(p_rows, k), 1, v_scratch);
    for (size_t j = 0; j < p_glm->n_coef; ++j) {
      v_root[k * n_lead + j] = root * v_row[j];
    }
  }
}

/* Both triangles, of which the upper is there. */
static void mirror(double* v_hessian, size_t n_dim) {
  for (size_t j = 0; j < n_dim; ++j) {
    for (size_t i = 0; i < j; ++i) {
      v_hessian[i * n_dim + j] = v_hessian[j * n_dim + i];
    }
  }
}

/* Rows S such that S^T S is the coefficients' part of -Hessian, or where rows
 * are sparse the products themselves; what a sampled s has with them and with
 * itself is summed. */
enum tb_status glm_curvature(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const struct tb_curvature* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_coef = p_glm->n_coef, n_padded = p_store->n_padded;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_theta);
  const size_t n_aux = p_glm->n_aux;
  double* v_cross = scratch.v_square; /* sum of a_i x_i, of one s */
  double* v_last = p_sums->v_hessian; /* columns of s */
  double log_lik = 0, v_aux_score[AUX] = {0}, v_aux_curvature[PAIR] = {0};

  if (p_model->p_frame != NULL) {
    /* modes are sought before the rows are whitened */
    return TB_STATUS_unsupported;
  }
  if (p_glm->is_sparse) {
    v_last += n_coef * p_model->n_dim;
  }
  memset(scratch.v_sum, 0, n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_r[BLOCK], v_log_lik[BLOCK], v_w[BLOCK];
    double v_t[AUX * BLOCK], v_a[AUX * BLOCK], v_b[PAIR * BLOCK];
    struct tb_response_out out = {.v_log_density = v_log_lik,
                                  .v_score = v_r,
                                  .v_curvature = v_w};
    if (n_aux > 0) {
      out.v_aux_score = v_t;
      out.v_cross = v_a;
      out.v_aux_curvature = v_b;
    }
    glm_load(p_glm, &rows, &point, &block);
    glm_evaluate(p_glm, &point, &block, &out);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      log_lik += c * v_log_lik[k];
      for (size_t j = 0; j < n_aux; ++j) {
        v_aux_score[j] += c * v_t[j * rows.n_row + k];
      }
      for (size_t j = 0; j < n_aux * (n_aux + 1) / 2; ++j) {
        v_aux_curvature[j] += c * v_b[j * rows.n_row + k];
      }
      v_r[k] *= c;
      v_w[k] *= c;
    }
    p_store->type->add(p_store, &rows, v_r, scratch.v_sum);
    for (size_t l = 0; l < n_aux; ++l) {
      double* v_own = v_a + l * rows.n_row;
      for (size_t k = 0; k < rows.n_row; ++k) {
        v_own[k] *= tb_batch_weight(p_batch, b + k);
      }
      memset(v_cross, 0, n_padded * sizeof(double));
      p_store->type->add(p_store, &rows, v_own, v_cross);
      for (size_t j = 0; j < n_coef; ++j) {
        v_last[l * p_model->n_dim + j] += v_cross[j];
      }
    }
    if (p_glm->is_sparse) {
      p_store->type->add_products(p_store,
                                  &rows,
                                  v_w,
                                  p_sums->v_hessian,
                                  p_model->n_dim);
    } else {
      add_roots(p_glm,
                &rows,
                v_w,
                scratch.v_reference,
                p_sums->v_root + b * p_sums->n_lead,
                p_sums->v_sign + b,
                p_sums->n_lead);
    }
  }
  *p_sums->p_log_lik += log_lik;
  for (size_t j = 0; j < n_coef; ++j) {
    p_sums->v_gradient[j] += scratch.v_sum[j];
  }
  for (size_t l = 0; l < n_aux; ++l) {
    p_sums->v_gradient[n_coef + l] += v_aux_score[l];
    for (size_t m = 0; m < n_aux; ++m) {
      v_last[l * p_model->n_dim + n_coef + m] +=
          v_aux_curvature[m < l ? tb_response_pair(l, m)
                                : tb_response_pair(m, l)];
    }
  }
  if (p_glm->is_sparse) {
    mirror(p_sums->v_hessian, p_model->n_dim);
  }
  return TB_STATUS_ok;
}

/* One pass over what is in the rows: of |c_i| x_i^2 the root goes through
 * add_square(), rows that bend the other way by themselves. */
enum tb_status glm_diagonal(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const struct tb_batch* p_batch,
                            bool with_prior,
                            double* v_diagonal) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_coef = p_glm->n_coef, n_padded = p_store->n_padded;
  const size_t n_aux = p_glm->n_aux;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_theta);
  if (p_model->p_frame != NULL) {
    return TB_STATUS_unsupported;
  }
  double* v_minus = scratch.v_reference;
  memset(scratch.v_sum, 0, n_padded * sizeof(double));
  memset(scratch.v_square, 0, n_padded * sizeof(double));
  memset(v_minus, 0, n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_root[BLOCK], v_other[BLOCK], v_b[PAIR * BLOCK], v_rest[AUX];
    bool has_other = false;
    const struct tb_response_out out = {.v_curvature = v_root,
                                        .v_aux_curvature =
                                            n_aux > 0 ? v_b : NULL};
    glm_load(p_glm, &rows, &point, &block);
    glm_evaluate(p_glm, &point, &block, &out);
    (void)tb_response_informations(p_glm->response.type,
                                   &point.response,
                                   v_rest);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      v_other[k] = v_root[k] < 0 ? sqrt(-c * v_root[k]) : 0;
      has_other |= v_root[k] < 0;
      v_root[k] = v_root[k] < 0 ? 0 : sqrt(c * v_root[k]);
      for (size_t j = 0; j < n_aux; ++j) {
        v_diagonal[n_coef + j] +=
            c * (v_b[tb_response_pair(j, j) * rows.n_row + k] + v_rest[j]);
      }
    }
    p_store->type->add_square(p_store,
                              &rows,
                              v_root,
                              scratch.v_sum,
                              scratch.v_square);
    if (has_other) {
      p_store->type->add_square(p_store,
                                &rows,
                                v_other,
                                scratch.v_sum,
                                v_minus);
    }
  }
  for (size_t j = 0; j < n_coef; ++j) {
    v_diagonal[j] += scratch.v_square[j] - v_minus[j];
  }
  if (with_prior) {
    tb_prior_diagonal(&p_glm->prior, v_theta, v_diagonal);
  }
  return TB_STATUS_ok;
}

/* The prior, and the information that every row has of s. */
void glm_curvature_prior(const struct tb_model* p_model,
                         const struct tb_workspace* p_work,
                         const double* v_theta,
                         const double* v_round,
                         double weight,
                         const struct tb_curvature* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  double* v_prior = glm_scratch_at(p_glm, p_work->p_scratch).v_sum;
  for (size_t k = 0; k < p_glm->n_aux; ++k) {
    p_sums->v_hessian[(p_glm->n_coef + k) * (n_dim + 1)] +=
        tb_response_sampled(&p_glm->response, k)->information * weight;
  }
  tb_curvature_add_prior(&p_glm->prior, v_theta, v_round, v_prior, p_sums);
}

/* v_eta := the predictors of a block of rows at many points: one matrix
 * product, where rows are not sparse */
static void predict_many(const struct tb_model* p_model,
                         const struct glm_pass_scratch* p_scratch,
                         const double* v_theta,
                         size_t n_point,
                         const struct tb_batch* p_batch) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_row = p_batch->n_batch;
  if (!p_glm->is_sparse) {
    tb_gemm(
        'T',
        n_row,
        n_point,
        p_glm->n_coef,
        p_store->type->block(p_store, p_batch->start, n_row, p_scratch->v_rows),
        p_store->n_padded,
        v_theta,
        p_model->n_dim,
        p_scratch->v_eta,
        n_row);
    return;
  }
  for (size_t p = 0; p < n_point; ++p) {
    for (size_t b = 0; b < n_row; b += BLOCK) {
      const struct tb_rows rows = tb_batch_block(p_batch, b);
      p_store->type->dot(p_store,
                         &rows,
                         v_theta + p * p_model->n_dim,
                         p_scratch->v_eta + p * n_row + b);
    }
  }
}

/* Many points at once: responses, weights and offsets are read once a block. */
enum tb_status glm_log_lik_many(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                size_t n_point,
                                const struct tb_batch* p_batch,
                                double* v_sum) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_row = p_batch->n_batch, start = p_batch->start;
  const struct glm_pass_scratch scratch =
      glm_pass_scratch_at(p_glm, p_work, n_row);
  double *v_weight = scratch.v_column[0], *v_offset = scratch.v_column[1];
  double *v_log_lik = scratch.v_column[2], *v_y = scratch.v_column[3];
  predict_many(p_model, &scratch, v_theta, n_point, p_batch);
  for (size_t k = 0; k < n_row; ++k) {
    const double* v_obs = glm_obs(p_glm, start + k);
    v_y[k] = v_obs[OBS_y];
    v_weight[k] = p_glm->k_weight ? v_obs[p_glm->k_weight] : 1;
    v_offset[k] = p_glm->k_offset ? v_obs[p_glm->k_offset] : 0;
    for (size_t j = 0; j < p_glm->n_more_y; ++j) {
      v_y[(j + 1) * n_row + k] = v_obs[p_glm->k_more_y + j];
    }
  }
  for (size_t p = 0; p < n_point; ++p) {
    const struct glm_point point = glm_point_at(p_model,
                                                v_theta + p * p_model->n_dim,
                                                scratch.of_point.v_theta);
    double* v = scratch.v_eta + p * n_row;
    for (size_t k = 0; k < n_row; ++k) {
      v[k] += v_offset[k];
    }
    const struct tb_response_rows rows = {.n_row = n_row,
                                          .n_predictor = 1,
                                          .v_eta = v,
                                          .v_y = v_y,
                                          .v_weight = v_weight,
                                          .p_point = &point.response};
    const struct tb_response_out out = {.v_log_density = v_log_lik};
    p_glm->response.type->evaluate(&rows, &out);
    double sum = 0;
    for (size_t k = 0; k < n_row; ++k) {
      sum += v_log_lik[k];
    }
    v_sum[p] += sum;
  }
  return TB_STATUS_ok;
}

double glm_largest_predictor(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const struct tb_batch* p_batch) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  double largest = 0;
  glm_pad(scratch.v_theta, v_theta, p_glm->n_coef, p_store->n_padded);
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_eta[BLOCK];
    p_store->type->dot(p_store, &rows, scratch.v_theta, v_eta);
    for (size_t k = 0; k < rows.n_row; ++k) {
      largest = fmax(largest, fabs(v_eta[k]));
    }
  }
  return largest;
}
