/* Generalised linear models, what samplers ask of a minibatch; see glm.c. */
#include "models/glm.h"

#include "base/clones.h"

void glm_load_more_y(const struct glm* p_glm,
                     const struct tb_rows* p_rows,
                     struct glm_block* p_block) {
  for (size_t k = 0; p_glm->n_more_y > 0 && k < p_rows->n_row; ++k) {
    const double* v_more =
        glm_obs(p_glm, tb_rows_at(p_rows, k)) + p_glm->k_more_y;
    for (size_t j = 0; j < p_glm->n_more_y; ++j) {
      p_block->v_y[(j + 1) * p_rows->n_row + k] = v_more[j];
    }
  }
}

/* Linear predictors, responses and weights of a block. */
void glm_load(const struct glm* p_glm,
              const struct tb_rows* p_rows,
              const struct glm_point* p_point,
              struct glm_block* p_block) {
  p_block->n_row = p_rows->n_row;
  p_glm->store.type->dot(&p_glm->store,
                         p_rows,
                         p_point->v_coef,
                         p_block->v_eta);
  if (p_rows->v_index != NULL) {
    for (size_t k = 0; k < p_rows->n_next; ++k) {
      TB_PREFETCH(glm_obs(p_glm, p_rows->v_next[k]));
    }
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double* v_row = glm_obs(p_glm, tb_rows_at(p_rows, k));
    p_block->v_y[k] = v_row[OBS_y];
    p_block->v_weight[k] = p_glm->k_weight ? v_row[p_glm->k_weight] : 1;
    if (p_glm->k_offset) {
      p_block->v_eta[k] += v_row[p_glm->k_offset];
    }
  }
  glm_load_more_y(p_glm, p_rows, p_block);
}

size_t glm_workspace_size(const struct tb_model* p_model, size_t n_batch) {
  const struct glm* p_glm = p_model->p_self;
  (void)n_batch;
  return 4 * glm_width(p_glm) * sizeof(double);
}

/* ds / d its coordinate: the frame does not mix s with the coefficients */
void glm_slope(const struct tb_model* p_model, double* v_slope) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_frame* p_frame = p_model->p_frame;
  const size_t j = p_glm->n_coef;
  for (size_t k = 0; k < AUX; ++k) {
    for (size_t l = 0; l < AUX; ++l) {
      double slope = k == l;
      if (p_frame != NULL && k <= l && l < p_glm->n_aux) {
        slope = !p_frame->is_diagonal
                    ? p_frame->v_map[(j + k) * p_frame->n_dim + j + l]
                : k == l ? p_frame->v_map[j + k]
                         : 0;
      }
      v_slope[k * AUX + l] = slope;
    }
  }
}

void glm_pull_pairs(const double* v_slope,
                    size_t n_aux,
                    const double* v_pair,
                    double* v_out) {
  for (size_t l = 0; l < n_aux; ++l) {
    for (size_t m = 0; m <= l; ++m) {
      double sum = 0;
      for (size_t k = 0; k <= l; ++k) {
        for (size_t h = 0; h <= m; ++h) {
          const size_t pair =
              k < h ? tb_response_pair(h, k) : tb_response_pair(k, h);
          sum += v_slope[k * AUX + l] * v_slope[h * AUX + m] * v_pair[pair];
        }
      }
      v_out[tb_response_pair(l, m)] = sum;
    }
  }
}

void glm_aux_finish(const struct glm* p_glm,
                    const double* v_slope,
                    const struct glm_aux_sums* p_from,
                    const struct tb_sums* p_sums) {
  const size_t n_coef = p_glm->n_coef, n_aux = p_glm->n_aux;
  double v_sum[AUX], v_pair[PAIR];
  glm_pull_aux(v_slope, n_aux, p_from->v_sum, v_sum);
  for (size_t l = 0; p_sums->v_gradient != NULL && l < n_aux; ++l) {
    p_sums->v_gradient[n_coef + l] += v_sum[l];
  }
  if (p_sums->v_square != NULL) {
    glm_pull_pairs(v_slope, n_aux, p_from->v_pair, v_pair);
    for (size_t l = 0; l < n_aux; ++l) {
      p_sums->v_square[n_coef + l] += v_pair[tb_response_pair(l, l)];
    }
  }
}

/* Coefficients into v_padded, s from the last coordinates. */
struct glm_point glm_point_at(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_padded) {
  const struct glm* p_glm = p_model->p_self;
  struct glm_point point = {.v_coef = v_padded};
  double* v_aux = point.v_aux;
  const struct tb_frame* p_frame = p_model->p_frame;
  const double* v_own = v_theta + p_glm->n_coef;
  glm_pad(v_padded, v_theta, p_glm->n_coef, p_glm->store.n_padded);
  glm_slope(p_model, point.v_slope);
  for (size_t k = 0; k < p_glm->n_aux; ++k) {
    if (p_frame == NULL) {
      v_aux[k] = v_own[k];
      continue;
    }
    v_aux[k] = p_frame->v_center[p_glm->n_coef + k];
    for (size_t l = k; l < p_glm->n_aux; ++l) {
      v_aux[k] += point.v_slope[k * AUX + l] * v_own[l];
    }
  }
  point.response = tb_response_at(&p_glm->response, v_aux);
  return point;
}

/* Scalars of the next block: a miss of their own where they do not stand
 * beside the responses. */
static inline void
glm_prefetch_reference(const struct glm* p_glm,
                       const struct tb_rows* p_rows,
                       const struct tb_reference* p_reference) {
  if (p_reference->v_scalar != NULL && p_rows->v_index != NULL &&
      p_reference->v_scalar != p_glm->v_obs + OBS_scalar) {
    for (size_t k = 0; k < p_rows->n_next; ++k) {
      TB_PREFETCH(p_reference->v_scalar +
                  p_rows->v_next[k] * p_reference->stride);
    }
  }
}

/* r_i and t_i of the reference for a block of rows, from where they are */
static void glm_reference(const struct glm* p_glm,
                          const struct tb_rows* p_rows,
                          const struct tb_reference* p_reference,
                          const struct glm_point* p_point,
                          double* v_r,
                          double* v_t) {
  if (p_reference->v_scalar == NULL) {
    struct glm_block block;
    glm_load(p_glm, p_rows, p_point, &block);
    glm_residual(p_glm, p_point, &block, v_r, v_t);
    return;
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double* v_scalar =
        p_reference->v_scalar + tb_rows_at(p_rows, k) * p_reference->stride;
    v_r[k] = v_scalar[0];
    for (size_t j = 0; v_t != NULL && j < p_glm->n_aux; ++j) {
      v_t[j * p_rows->n_row + k] = v_scalar[1 + j];
    }
  }
}

/* v_u, and v_t where s is sampled, less what they are at the reference */
static void glm_subtract(const struct glm* p_glm,
                         const struct tb_rows* p_rows,
                         const struct tb_reference* p_reference,
                         const struct glm_point* p_point,
                         double* v_u,
                         double* v_t) {
  double v_r[BLOCK], v_s[AUX * BLOCK];
  glm_prefetch_reference(p_glm, p_rows, p_reference);
  glm_reference(p_glm,
                p_rows,
                p_reference,
                p_point,
                v_r,
                v_t == NULL ? NULL : v_s);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_u[k] -= v_r[k];
  }
  for (size_t k = 0; v_t != NULL && k < p_glm->n_aux * p_rows->n_row; ++k) {
    v_t[k] -= v_s[k];
  }
}

/* what the pass has summed, into what is asked for */
static void glm_add_sums(const struct glm* p_glm,
                         const struct glm_scratch* p_scratch,
                         const double* v_slope,
                         const struct glm_aux_sums* p_aux,
                         const struct tb_sums* p_sums) {
  const size_t n_coef = p_glm->n_coef;
  for (size_t j = 0; p_sums->v_gradient != NULL && j < n_coef; ++j) {
    p_sums->v_gradient[j] += p_scratch->v_sum[j];
  }
  for (size_t j = 0; p_sums->v_square != NULL && j < n_coef; ++j) {
    p_sums->v_square[j] += p_scratch->v_square[j];
  }
  glm_aux_finish(p_glm, v_slope, p_aux, p_sums);
}

enum tb_status glm_gradient(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const struct tb_batch* p_batch,
                            const struct tb_reference* p_reference,
                            const struct tb_sums* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const bool wants_square = p_sums->v_square != NULL;
  const bool wants_gradient = p_sums->v_gradient != NULL || wants_square;
  const bool needs_residual = wants_gradient || p_sums->v_scalar != NULL;
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_theta);
  struct glm_point reference = point;
  struct glm_aux_sums aux = {0};
  double log_lik = 0;

  if (p_reference != NULL && p_reference->v_scalar == NULL) {
    reference =
        glm_point_at(p_model, p_reference->v_theta, scratch.v_reference);
  }
  memset(scratch.v_sum, 0, n_padded * sizeof(double));
  memset(scratch.v_square, 0, n_padded * sizeof(double));

  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_u[BLOCK], v_t_buffer[AUX * BLOCK], v_log_lik[BLOCK];
    double* v_t = p_glm->n_aux > 0 ? v_t_buffer : NULL;
    const struct tb_response_out out = {
        .v_log_density = p_sums->p_log_lik == NULL ? NULL : v_log_lik,
        .v_score = needs_residual ? v_u : NULL,
        .v_aux_score = needs_residual ? v_t : NULL};

    glm_load(p_glm, &rows, &point, &block);
    glm_evaluate(p_glm, &point, &block, &out);
    for (size_t k = 0; p_sums->p_log_lik != NULL && k < rows.n_row; ++k) {
      log_lik += tb_batch_weight(p_batch, b + k) * v_log_lik[k];
    }
    if (!needs_residual) {
      continue;
    }
    for (size_t k = 0; p_sums->v_scalar != NULL && k < rows.n_row; ++k) {
      double* v_scalar = p_sums->v_scalar + (b + k) * p_glm->n_scalar;
      v_scalar[0] = v_u[k];
      for (size_t j = 0; j < p_glm->n_aux; ++j) {
        v_scalar[1 + j] = v_t[j * rows.n_row + k];
      }
    }
    if (!wants_gradient) {
      continue;
    }
    if (p_reference != NULL) {
      glm_subtract(p_glm, &rows, p_reference, &reference, v_u, v_t);
    }
    for (size_t k = 0; k < rows.n_row; ++k) {
      v_u[k] *= tb_batch_weight(p_batch, b + k);
    }
    for (size_t k = 0; v_t != NULL && k < rows.n_row; ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      glm_aux_add(&aux, p_glm->n_aux, c, v_t + k, rows.n_row);
    }
    if (wants_square) {
      p_store->type->add_square(p_store,
                                &rows,
                                v_u,
                                scratch.v_sum,
                                scratch.v_square);
    } else {
      p_store->type->add(p_store, &rows, v_u, scratch.v_sum);
    }
  }

  glm_add_sums(p_glm, &scratch, point.v_slope, &aux, p_sums);
  if (p_sums->p_log_lik != NULL) {
    *p_sums->p_log_lik += log_lik;
  }
  return TB_STATUS_ok;
}

/* ||g_i - reference||^2 = u_i^2 ||x_i||^2 (+ ||t_i||^2, with s sampled) */
enum tb_status glm_square_norms(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_reference* p_reference,
                                double* v_square,
                                double* v_sum) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_theta);
  struct glm_point reference = point;
  const size_t n_aux = p_glm->n_aux;
  double v_sum_t[AUX] = {0};

  if (p_reference != NULL && p_reference->v_scalar == NULL) {
    reference =
        glm_point_at(p_model, p_reference->v_theta, scratch.v_reference);
  }
  memset(scratch.v_sum, 0, n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_u[BLOCK], v_t_buffer[AUX * BLOCK], v_norm[BLOCK];
    double* v_t = n_aux > 0 ? v_t_buffer : NULL;
    glm_load(p_glm, &rows, &point, &block);
    glm_residual(p_glm, &point, &block, v_u, v_t);
    if (p_reference != NULL) {
      glm_subtract(p_glm, &rows, p_reference, &reference, v_u, v_t);
    }
    tb_store_square_norms(p_store, &rows, scratch.v_square, v_norm);
    for (size_t k = 0; k < rows.n_row; ++k) {
      double v_own[AUX], v_pulled[AUX];
      v_square[b + k] = v_u[k] * v_u[k] * v_norm[k];
      for (size_t j = 0; j < n_aux; ++j) {
        v_own[j] = v_t[j * rows.n_row + k];
      }
      glm_pull_aux(point.v_slope, n_aux, v_own, v_pulled);
      for (size_t j = 0; j < n_aux; ++j) {
        v_square[b + k] += v_pulled[j] * v_pulled[j];
        v_sum_t[j] += v_pulled[j];
      }
    }
    if (v_sum != NULL) {
      p_store->type->add(p_store, &rows, v_u, scratch.v_sum);
    }
  }
  for (size_t j = 0; v_sum != NULL && j < p_glm->n_coef; ++j) {
    v_sum[j] += scratch.v_sum[j];
  }
  for (size_t j = 0; v_sum != NULL && j < n_aux; ++j) {
    v_sum[p_glm->n_coef + j] += v_sum_t[j];
  }
  return TB_STATUS_ok;
}

enum tb_status glm_add_scalar(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const struct tb_batch* p_batch,
                              const double* v_scalar,
                              double* v_sum) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  struct glm_aux_sums aux = {0};
  double v_slope[AUX * AUX];
  glm_slope(p_model, v_slope);
  memset(scratch.v_sum, 0, p_store->n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_u[BLOCK];
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double* v = v_scalar + (b + k) * p_glm->n_scalar;
      v_u[k] = v[0];
      glm_aux_add(&aux, p_glm->n_aux, 1, v + 1, 1);
    }
    p_store->type->add(p_store, &rows, v_u, scratch.v_sum);
  }
  for (size_t j = 0; j < p_glm->n_coef; ++j) {
    v_sum[j] += scratch.v_sum[j];
  }
  glm_aux_finish(p_glm,
                 v_slope,
                 &aux,
                 &(const struct tb_sums){.v_gradient = v_sum});
  return TB_STATUS_ok;
}

enum tb_status glm_log_lik(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           const double* v_theta,
                           const struct tb_batch* p_batch,
                           double* v_out) {
  const struct glm* p_glm = p_model->p_self;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_theta);
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    const struct tb_response_out out = {.v_log_density = v_out + b,
                                        .is_complete = true};
    glm_load(p_glm, &rows, &point, &block);
    glm_evaluate(p_glm, &point, &block, &out);
  }
  return TB_STATUS_ok;
}

enum tb_status glm_store_scalar(struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                double* v_sum) {
  struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_point point =
      glm_point_at(p_model, v_theta, scratch.v_theta);
  const size_t n_aux = p_glm->n_aux;
  struct glm_aux_sums aux = {0};
  memset(scratch.v_sum, 0, p_store->n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_r[BLOCK], v_t[AUX * BLOCK];
    glm_load(p_glm, &rows, &point, &block);
    glm_residual(p_glm, &point, &block, v_r, n_aux > 0 ? v_t : NULL);
    for (size_t k = 0; k < rows.n_row; ++k) {
      double* v_row =
          p_glm->v_obs + tb_batch_row(p_batch, b + k) * p_glm->n_obs_col;
      v_row[OBS_scalar] = v_r[k];
      for (size_t j = 0; j < n_aux; ++j) {
        v_row[OBS_scalar + 1 + j] = v_t[j * rows.n_row + k];
      }
      glm_aux_add(&aux, n_aux, 1, v_t + k, rows.n_row);
    }
    p_store->type->add(p_store, &rows, v_r, scratch.v_sum);
  }
  for (size_t j = 0; j < p_glm->n_coef; ++j) {
    v_sum[j] += scratch.v_sum[j];
  }
  glm_aux_finish(p_glm,
                 point.v_slope,
                 &aux,
                 &(const struct tb_sums){.v_gradient = v_sum});
  return TB_STATUS_ok;
}

struct tb_reference glm_stored_scalar(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return (struct tb_reference){.v_scalar = p_glm->v_obs + OBS_scalar,
                               .stride = p_glm->n_obs_col};
}
