/* Generalised linear models, what samplers ask of a minibatch; see glm.c. */
#include "models/glm.h"

#include "base/clones.h"

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
}

size_t glm_workspace_size(const struct tb_model* p_model, size_t n_batch) {
  const struct glm* p_glm = p_model->p_self;
  (void)n_batch;
  return 4 * glm_width(p_glm) * sizeof(double);
}

/* ds / d its coordinate: the frame does not mix s with the coefficients */
double glm_slope(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_frame* p_frame = p_model->p_frame;
  const size_t j = p_glm->n_coef;
  return p_frame == NULL        ? 1
         : p_frame->is_diagonal ? p_frame->v_map[j]
                                : p_frame->v_map[j * p_frame->n_dim + j];
}

/* Coefficients into v_padded, s from the last coordinate. */
struct glm_point glm_point_at(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_padded) {
  const struct glm* p_glm = p_model->p_self;
  struct glm_point point = {.v_coef = v_padded, .slope = 1};
  double aux = 0;
  glm_pad(v_padded, v_theta, p_glm->n_coef, p_glm->store.n_padded);
  if (p_glm->has_aux) {
    const struct tb_frame* p_frame = p_model->p_frame;
    const size_t j = p_glm->n_coef;
    aux = v_theta[j];
    if (p_frame != NULL) {
      point.slope = glm_slope(p_model);
      aux = p_frame->v_center[j] + point.slope * v_theta[j];
    }
  }
  point.response = tb_response_at(&p_glm->response, aux);
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
    if (v_t != NULL) {
      v_t[k] = v_scalar[1];
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
  double v_r[BLOCK], v_s[BLOCK];
  glm_prefetch_reference(p_glm, p_rows, p_reference);
  glm_reference(p_glm,
                p_rows,
                p_reference,
                p_point,
                v_r,
                v_t == NULL ? NULL : v_s);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_u[k] -= v_r[k];
    if (v_t != NULL) {
      v_t[k] -= v_s[k];
    }
  }
}

/* what the pass has summed, into what is asked for */
static void glm_add_sums(const struct glm* p_glm,
                         const struct glm_scratch* p_scratch,
                         double slope,
                         double sum_t,
                         double square_t,
                         const struct tb_sums* p_sums) {
  const size_t n_coef = p_glm->n_coef;
  for (size_t j = 0; p_sums->v_gradient != NULL && j < n_coef; ++j) {
    p_sums->v_gradient[j] += p_scratch->v_sum[j];
  }
  for (size_t j = 0; p_sums->v_square != NULL && j < n_coef; ++j) {
    p_sums->v_square[j] += p_scratch->v_square[j];
  }
  if (p_glm->has_aux && p_sums->v_gradient != NULL) {
    p_sums->v_gradient[n_coef] += slope * sum_t;
  }
  if (p_glm->has_aux && p_sums->v_square != NULL) {
    p_sums->v_square[n_coef] += slope * slope * square_t;
  }
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
  double log_lik = 0, sum_t = 0, square_t = 0;

  if (p_reference != NULL && p_reference->v_scalar == NULL) {
    reference =
        glm_point_at(p_model, p_reference->v_theta, scratch.v_reference);
  }
  memset(scratch.v_sum, 0, n_padded * sizeof(double));
  memset(scratch.v_square, 0, n_padded * sizeof(double));

  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_u[BLOCK], v_t_buffer[BLOCK], v_log_lik[BLOCK];
    double* v_t = p_glm->has_aux ? v_t_buffer : NULL;
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
      if (v_t != NULL) {
        v_scalar[1] = v_t[k];
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
      const double t = tb_batch_weight(p_batch, b + k) * v_t[k];
      sum_t += t;
      square_t += t * t;
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

  glm_add_sums(p_glm, &scratch, point.slope, sum_t, square_t, p_sums);
  if (p_sums->p_log_lik != NULL) {
    *p_sums->p_log_lik += log_lik;
  }
  return TB_STATUS_ok;
}

/* ||g_i - reference||^2 = u_i^2 ||x_i||^2 (+ t_i^2, with s sampled) */
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
  double sum_t = 0;

  if (p_reference != NULL && p_reference->v_scalar == NULL) {
    reference =
        glm_point_at(p_model, p_reference->v_theta, scratch.v_reference);
  }
  memset(scratch.v_sum, 0, n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_u[BLOCK], v_t[BLOCK] = {0}, v_norm[BLOCK];
    glm_load(p_glm, &rows, &point, &block);
    glm_residual(p_glm, &point, &block, v_u, p_glm->has_aux ? v_t : NULL);
    if (p_reference != NULL) {
      double v_r[BLOCK], v_s[BLOCK] = {0};
      glm_reference(p_glm,
                    &rows,
                    p_reference,
                    &reference,
                    v_r,
                    p_glm->has_aux ? v_s : NULL);
      for (size_t k = 0; k < rows.n_row; ++k) {
        v_u[k] -= v_r[k];
        v_t[k] -= v_s[k];
      }
    }
    tb_store_square_norms(p_store, &rows, scratch.v_square, v_norm);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double t = point.slope * v_t[k];
      v_square[b + k] = v_u[k] * v_u[k] * v_norm[k] + t * t;
      sum_t += t;
    }
    if (v_sum != NULL) {
      p_store->type->add(p_store, &rows, v_u, scratch.v_sum);
    }
  }
  for (size_t j = 0; v_sum != NULL && j < p_glm->n_coef; ++j) {
    v_sum[j] += scratch.v_sum[j];
  }
  if (v_sum != NULL && p_glm->has_aux) {
    v_sum[p_glm->n_coef] += sum_t;
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
  double sum_t = 0;
  memset(scratch.v_sum, 0, p_store->n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_u[BLOCK];
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double* v = v_scalar + (b + k) * p_glm->n_scalar;
      v_u[k] = v[0];
      sum_t += p_glm->has_aux ? v[1] : 0;
    }
    p_store->type->add(p_store, &rows, v_u, scratch.v_sum);
  }
  for (size_t j = 0; j < p_glm->n_coef; ++j) {
    v_sum[j] += scratch.v_sum[j];
  }
  if (p_glm->has_aux) {
    v_sum[p_glm->n_coef] += glm_slope(p_model) * sum_t;
  }
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
  double sum_t = 0;
  memset(scratch.v_sum, 0, p_store->n_padded * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_r[BLOCK], v_t[BLOCK];
    glm_load(p_glm, &rows, &point, &block);
    glm_residual(p_glm, &point, &block, v_r, p_glm->has_aux ? v_t : NULL);
    for (size_t k = 0; k < rows.n_row; ++k) {
      double* v_row =
          p_glm->v_obs + tb_batch_row(p_batch, b + k) * p_glm->n_obs_col;
      v_row[OBS_scalar] = v_r[k];
      if (p_glm->has_aux) {
        v_row[OBS_scalar + 1] = v_t[k];
        sum_t += v_t[k];
      }
    }
    p_store->type->add(p_store, &rows, v_r, scratch.v_sum);
  }
  for (size_t j = 0; j < p_glm->n_coef; ++j) {
    v_sum[j] += scratch.v_sum[j];
  }
  if (p_glm->has_aux) {
    v_sum[p_glm->n_coef] += point.slope * sum_t;
  }
  return TB_STATUS_ok;
}

struct tb_reference glm_stored_scalar(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return (struct tb_reference){.v_scalar = p_glm->v_obs + OBS_scalar,
                               .stride = p_glm->n_obs_col};
}
