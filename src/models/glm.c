/* Generalised linear models: a response (responses/response.h) over a design
 * and a prior. An auxiliary parameter of the response, such as sigma, is known,
 * or sampled as the last coordinate s.
 *
 *   y_i | theta ~ response with eta_i = x_i^T theta + offset_i
 *   l_i         = log p(y_i | eta_i, s)
 *   g_i(theta)  = (r_i x_i, t_i),   r_i = dl_i / deta, t_i = dl_i / ds
 *   -H_i        = [ c_i x_i x_i^T   a_i x_i ; a_i x_i^T   b_i ],
 *                 the second derivatives of -l_i in eta and s
 *
 * McCullagh & Nelder (1989), Generalized Linear Models. The stored scalars
 * r_i (and t_i) of control variates: Baker, Fearnhead, Fox & Nemeth (2019),
 * section 3.
 *
 *   symbol     variable          shape              owner
 *   x_i        store             n_data x n_padded  glm
 *   y_i, r_i   v_obs[i*k], +1    n_data x k         glm; k = 2 + the columns
 *   t_i        .. + 2                               that are there
 *   w_i, o_i   .. + k_weight,
 *              .. + k_offset
 *   phi        v_theta           n_dim              caller; phi = theta without
 *                                                   a frame
 *
 * y, the stored scalar, weight and offset of a row lie side by side, so that a
 * minibatch pays one cache line for them. */
#include "base/blas.h"
#include "base/clip.h"
#include "base/clones.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/norm.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/model.h"
#include "models/prior.h"
#include "responses/response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* columns of v_obs that are always there; t_i follows r_i */
enum { OBS_y = 0, OBS_scalar = 1, OBS_fixed = 2 };

#define BLOCK TB_STORE_BLOCK

struct glm {
  struct tb_response response;
  bool has_aux;    /* sampled: the last coordinate */
  size_t n_coef;   /* columns of x */
  size_t n_scalar; /* stored for each row: r_i, and t_i with has_aux */
  struct tb_store store;
  double* v_obs;
  size_t n_obs_col;
  size_t k_weight; /* 0: no such column */
  size_t k_offset;
  struct tb_prior prior;
  struct tb_frame frame;
};

/* a chain's scratch */
struct glm_scratch {
  double* v_theta;     /* glm_width(), zero beyond the coefficients */
  double* v_reference; /* glm_width(), and so below */
  double* v_sum;
  double* v_square;
};

/* where a pass takes place */
struct glm_point {
  const double* v_coef; /* n_padded, zero beyond n_coef */
  struct tb_response_point response;
  double slope; /* ds / d its coordinate: 1 without a frame */
};

/* the scalar side of a block of rows */
struct glm_block {
  size_t n_row;
  double v_eta[BLOCK];
  double v_y[BLOCK];
  double v_weight[BLOCK];
};

/* what a response reads of a block */
static struct tb_response_rows glm_rows(const struct glm_point* p_point,
                                        const struct glm_block* p_block) {
  return (struct tb_response_rows){.n_row = p_block->n_row,
                                   .n_predictor = 1,
                                   .v_eta = p_block->v_eta,
                                   .v_y = p_block->v_y,
                                   .v_weight = p_block->v_weight,
                                   .p_point = &p_point->response};
}

static void glm_evaluate(const struct glm* p_glm,
                         const struct glm_point* p_point,
                         const struct glm_block* p_block,
                         const struct tb_response_out* p_out) {
  const struct tb_response_rows rows = glm_rows(p_point, p_block);
  p_glm->response.type->evaluate(&rows, p_out);
}

/* r_i of a block, and t_i (v_t: NULL unless s is sampled) */
static void glm_residual(const struct glm* p_glm,
                         const struct glm_point* p_point,
                         const struct glm_block* p_block,
                         double* v_r,
                         double* v_t) {
  const struct tb_response_out out = {.v_score = v_r, .v_aux_score = v_t};
  glm_evaluate(p_glm, p_point, p_block, &out);
}

/* ------------------------------------------------------------------- rows */

static inline const double* glm_obs(const struct glm* p_glm, size_t row) {
  return p_glm->v_obs + row * p_glm->n_obs_col;
}

/* Linear predictors, responses and weights of a block. */
static void glm_load(const struct glm* p_glm,
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

/* room for a padded row, or for all coordinates */
static size_t glm_width(const struct glm* p_glm) {
  return tb_max(p_glm->store.n_padded, p_glm->n_coef + 1);
}

static struct glm_scratch glm_scratch_at(const struct glm* p_glm, void* p) {
  const size_t n = glm_width(p_glm);
  double* v = p;
  return (struct glm_scratch){v, v + n, v + 2 * n, v + 3 * n};
}

static size_t glm_workspace_size(const struct tb_model* p_model,
                                 size_t n_batch) {
  const struct glm* p_glm = p_model->p_self;
  (void)n_batch;
  return 4 * glm_width(p_glm) * sizeof(double);
}

static void pad(double* v_to, const double* v_from, size_t n, size_t n_padded) {
  memcpy(v_to, v_from, n * sizeof(double));
  for (size_t j = n; j < n_padded; ++j) {
    v_to[j] = 0;
  }
}

/* ds / d its coordinate: the frame does not mix s with the coefficients */
static double glm_slope(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_frame* p_frame = p_model->p_frame;
  const size_t j = p_glm->n_coef;
  return p_frame == NULL        ? 1
         : p_frame->is_diagonal ? p_frame->v_map[j]
                                : p_frame->v_map[j * p_frame->n_dim + j];
}

/* Coefficients into v_padded, s from the last coordinate. */
static struct glm_point glm_point_at(const struct tb_model* p_model,
                                     const double* v_theta,
                                     double* v_padded) {
  const struct glm* p_glm = p_model->p_self;
  struct glm_point point = {.v_coef = v_padded, .slope = 1};
  double aux = 0;
  pad(v_padded, v_theta, p_glm->n_coef, p_glm->store.n_padded);
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

static enum tb_status glm_gradient(const struct tb_model* p_model,
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
static enum tb_status glm_square_norms(const struct tb_model* p_model,
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
    double v_u[BLOCK], v_t[BLOCK] = {0};
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
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double* v_row = p_store->type->block(p_store,
                                                 tb_batch_row(p_batch, b + k),
                                                 1,
                                                 scratch.v_square);
      const double t = point.slope * v_t[k];
      v_square[b + k] =
          v_u[k] * v_u[k] * tb_square_norm(v_row, p_glm->n_coef) + t * t;
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

static enum tb_status glm_add_scalar(const struct tb_model* p_model,
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

static enum tb_status glm_log_lik(const struct tb_model* p_model,
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

/* ------------------------------------------------------------------ prior */

static enum tb_status glm_prior(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                double* v_gradient,
                                double* p_log_prior) {
  const struct glm* p_glm = p_model->p_self;
  double log_prior;
  if (p_model->p_frame == NULL) {
    log_prior = tb_prior_gradient(&p_glm->prior, v_theta, v_gradient);
  } else {
    const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
    tb_frame_to_parameter(p_model->p_frame, v_theta, scratch.v_theta);
    log_prior =
        tb_prior_gradient(&p_glm->prior, scratch.v_theta, scratch.v_sum);
    tb_frame_pull_gradient(p_model->p_frame, scratch.v_sum, v_gradient);
  }
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

static bool glm_is_outside(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           const double* v_theta) {
  const struct glm* p_glm = p_model->p_self;
  if (!p_glm->prior.is_bounded) {
    return false;
  }
  if (p_model->p_frame != NULL) {
    const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
    tb_frame_to_parameter(p_model->p_frame, v_theta, scratch.v_theta);
    v_theta = scratch.v_theta;
  }
  return tb_prior_is_outside(&p_glm->prior, v_theta);
}

static double glm_lipschitz_prior(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_frame* p_frame = p_model->p_frame;
  return p_frame == NULL ? tb_prior_lipschitz(&p_glm->prior, NULL)
         : p_frame->is_diagonal
             ? tb_prior_lipschitz(&p_glm->prior, p_frame->v_map)
             : NAN;
}

/* ------------------------------------------------------------ full passes */

static enum tb_status glm_store_scalar(struct tb_model* p_model,
                                       const double* v_theta,
                                       double* v_sum,
                                       int n_threads) {
  struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  const size_t n_chunk = tb_n_chunk(p_model->n_data);
  double* v_theta_padded =
      calloc(n_padded + n_chunk * (n_padded + 1), sizeof(double));
  if (v_theta_padded == NULL) {
    return TB_STATUS_memory;
  }
  double* v_part = v_theta_padded + n_padded;
  double* v_part_t = v_part + n_chunk * n_padded;
  const struct glm_point point = glm_point_at(p_model, v_theta, v_theta_padded);
  (void)n_threads;

#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(static)
#endif
  for (size_t c = 0; c < n_chunk; ++c) {
    const size_t start = c * TB_CHUNK;
    const struct tb_batch batch = {
        .n_batch = tb_min(TB_CHUNK, p_model->n_data - start),
        .start = start};
    for (size_t b = 0; b < batch.n_batch; b += BLOCK) {
      const struct tb_rows rows = tb_batch_block(&batch, b);
      struct glm_block block;
      double v_r[BLOCK], v_t[BLOCK];
      glm_load(p_glm, &rows, &point, &block);
      glm_residual(p_glm, &point, &block, v_r, p_glm->has_aux ? v_t : NULL);
      for (size_t k = 0; k < rows.n_row; ++k) {
        double* v_row = p_glm->v_obs + (start + b + k) * p_glm->n_obs_col;
        v_row[OBS_scalar] = v_r[k];
        if (p_glm->has_aux) {
          v_row[OBS_scalar + 1] = v_t[k];
          v_part_t[c] += v_t[k];
        }
      }
      p_store->type->add(p_store, &rows, v_r, v_part + c * n_padded);
    }
  }
  for (size_t c = 0; c < n_chunk; ++c) {
    for (size_t j = 0; j < p_glm->n_coef; ++j) {
      v_sum[j] += v_part[c * n_padded + j];
    }
    if (p_glm->has_aux) {
      v_sum[p_glm->n_coef] += point.slope * v_part_t[c];
    }
  }
  free(v_theta_padded);
  return TB_STATUS_ok;
}

static struct tb_reference glm_stored_scalar(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return (struct tb_reference){.v_scalar = p_glm->v_obs + OBS_scalar,
                               .stride = p_glm->n_obs_col};
}

/* sums of a chunk of the curvature pass, with c_i */
struct glm_part {
  double log_lik;
  double weight;        /* sum of c_i */
  double aux_score;     /* sum of t_i */
  double aux_curvature; /* sum of b_i, less the information */
  double* v_gradient;   /* n_padded: sum of r_i x_i */
  double* v_cross;      /* n_padded: sum of a_i x_i */
  double* v_scaled;     /* the rows times sqrt(c_i w_i), see below */
};

/* One chunk of the curvature pass, which leaves rows S such that S^T S is
 * -Hessian. */
static void glm_curvature_rows(const struct glm* p_glm,
                               const struct glm_point* p_point,
                               const struct tb_batch* p_batch,
                               struct glm_part* p_part) {
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_r[BLOCK], v_log_lik[BLOCK], v_w[BLOCK];
    double v_t[BLOCK] = {0}, v_a[BLOCK], v_b[BLOCK] = {0};
    struct tb_response_out out = {.v_log_density = v_log_lik,
                                  .v_score = v_r,
                                  .v_curvature = v_w};
    if (p_glm->has_aux) {
      out.v_aux_score = v_t;
      out.v_cross = v_a;
      out.v_aux_curvature = v_b;
    }
    glm_load(p_glm, &rows, p_point, &block);
    glm_evaluate(p_glm, p_point, &block, &out);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      p_part->log_lik += c * v_log_lik[k];
      p_part->aux_score += c * v_t[k];
      p_part->aux_curvature += c * v_b[k];
      p_part->weight += c;
      v_r[k] *= c;
      v_w[k] = sqrt(c * v_w[k]);
    }
    p_store->type->add(p_store, &rows, v_r, p_part->v_gradient);
    if (p_glm->has_aux) {
      for (size_t k = 0; k < rows.n_row; ++k) {
        v_a[k] *= tb_batch_weight(p_batch, b + k);
      }
      p_store->type->add(p_store, &rows, v_a, p_part->v_cross);
    }
    for (size_t k = 0; k < rows.n_row; ++k) {
      double* v_to = p_part->v_scaled + (b + k) * n_padded;
      const double* v_row =
          p_store->type->block(p_store, tb_batch_row(p_batch, b + k), 1, v_to);
      for (size_t j = 0; j < n_padded; ++j) {
        v_to[j] = v_w[k] * v_row[j];
      }
    }
  }
}

static enum tb_status glm_curvature(const struct tb_model* p_model,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const double* v_round,
                                    double* p_log_posterior,
                                    double* v_gradient,
                                    double* v_hessian,
                                    int n_threads) {
  enum { ROWS = 512, PARTS = 16 }; /* ROWS * PARTS rows per product */
  const struct glm* p_glm = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n_coef = p_glm->n_coef;
  const size_t n_padded = p_glm->store.n_padded;
  const size_t n_group = (size_t)ROWS * PARTS;
  struct glm_part v_sums[PARTS];
  double v_total[4] = {0}; /* log lik, weight, aux score and curvature */
  (void)n_threads;

  if (p_model->p_frame != NULL) {
    /* modes are sought before the rows are whitened */
    return TB_STATUS_unsupported;
  }
  double* v_scratch =
      calloc(n_padded * (2 + 2 * PARTS) + n_dim + n_group * n_padded,
             sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_cross = v_scratch + n_padded;
  double* v_part = v_cross + n_padded; /* of each part two sums */
  double* v_prior = v_part + (size_t)2 * PARTS * n_padded;
  double* v_scaled = v_prior + n_dim;
  const struct glm_point point = glm_point_at(p_model, v_theta, v_scratch);

  memset(v_gradient, 0, n_dim * sizeof(double));
  memset(v_hessian, 0, n_dim * n_dim * sizeof(double));

  for (size_t first = 0; first < p_batch->n_batch; first += n_group) {
    const struct tb_batch group = tb_batch_part(p_batch, first, n_group);
    const size_t n_part = (group.n_batch + ROWS - 1) / ROWS;
    memset(v_part, 0, (size_t)2 * PARTS * n_padded * sizeof(double));
    for (size_t p = 0; p < n_part; ++p) {
      v_sums[p] = (struct glm_part){.v_gradient = v_part + 2 * p * n_padded,
                                    .v_cross = v_part + (2 * p + 1) * n_padded,
                                    .v_scaled = v_scaled + p * ROWS * n_padded};
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(static)
#endif
    for (size_t p = 0; p < n_part; ++p) {
      const struct tb_batch part = tb_batch_part(&group, p * ROWS, ROWS);
      glm_curvature_rows(p_glm, &point, &part, &v_sums[p]);
    }
    for (size_t p = 0; p < n_part; ++p) {
      v_total[0] += v_sums[p].log_lik;
      v_total[1] += v_sums[p].weight;
      v_total[2] += v_sums[p].aux_score;
      v_total[3] += v_sums[p].aux_curvature;
      for (size_t j = 0; j < n_coef; ++j) {
        v_gradient[j] += v_sums[p].v_gradient[j];
        v_cross[j] += v_sums[p].v_cross[j];
      }
    }
    tb_syrk(n_coef, group.n_batch, v_scaled, n_padded, v_hessian, n_dim);
  }
  if (p_glm->has_aux) {
    const struct tb_response_aux* p_aux = p_glm->response.type->p_aux;
    double* v_last = v_hessian + n_coef * n_dim;
    memcpy(v_last, v_cross, n_coef * sizeof(double));
    v_last[n_coef] = v_total[3] + p_aux->information * v_total[1];
    v_gradient[n_coef] = v_total[2];
  }
  for (size_t j = 0; j < n_dim; ++j) {
    for (size_t i = 0; i < j; ++i) {
      v_hessian[i * n_dim + j] = v_hessian[j * n_dim + i];
    }
  }
  *p_log_posterior = v_total[0] + tb_prior_curvature(&p_glm->prior,
                                                     v_theta,
                                                     v_round,
                                                     v_prior,
                                                     v_hessian,
                                                     n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    v_gradient[j] += v_prior[j];
  }
  free(v_scratch);
  return TB_STATUS_ok;
}

/* Euclidean norms of n rows of a row-major block */
static void row_norms(const double* v_block,
                      size_t n_row,
                      size_t n_col,
                      size_t n_lead,
                      double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = sqrt(tb_square_norm(v_block + k * n_lead, n_col));
  }
}

/* Unnormalised weights (preferential subsampling, section 4; leverage: the
 * same argument in whitened coordinates):
 *   gradient  ||g_i||                  hessian  sqrt(tr(H_i Sigma H_i^T))
 *   leverage  ||L^{-1} H_i L^{-T}||_F  lipschitz  max c ||x_i||^2
 * where H_i = -c_i x_i x_i^T these are |r_i| ||x_i||, c_i ||x_i|| sqrt(q_i) and
 * c_i q_i, q_i = x_i^T Sigma x_i. With L L^T = Sigma^{-1}, q_i = ||L^{-1}
 * x_i||^2: one triangular solve of the rows, O(N d^2), where the paper pays
 * O(N d^3). A sampled s adds its own row and column of H_i (variance v,
 * uncorrelated with the coefficients).
 *
 * At the mode a row can weigh next to nothing and, an sd away, more than all
 * the others: an outlier whose fitted probability is 0 or 1. So
 *   robust     K_i q_i             K_i = sup |c(eta)|
 *   cubic      K'_i q_i^(3/2)      K'_i = sup |c'(eta)|
 * over the eta within TB_WEIGHT_REACH sqrt(q_i) of eta_i. The sum of the cubic
 * ones bounds how far log pi is from quadratic: by sum K'_i q_i^(3/2) r^3 / 6
 * at the distance r, in posterior sds. */
struct glm_weight {
  double norm;       /* ||x_i|| */
  double sigma_norm; /* sqrt(q_i) */
  double r, t;
  double c, a, b; /* -H_i in eta and s, or their bounds; see above */
  double third;   /* K'_i */
  double v;       /* variance of s; 0 when it is known */
};

/* ||H_i|| in whitened coordinates. A bound of it for robust weights: how a
 * change of s changes all rows alike is left out. */
static double glm_leverage(const struct glm_weight* p) {
  const double q = p->sigma_norm * p->sigma_norm;
  if (p->v == 0) {
    return p->c * q;
  }
  return sqrt(p->c * p->c * q * q + 2 * p->a * p->a * q * p->v +
              p->b * p->b * p->v * p->v);
}

static double glm_hessian_weight(const struct glm_weight* p) {
  const double norm2 = p->norm * p->norm, q = p->sigma_norm * p->sigma_norm;
  if (p->v == 0) {
    return p->c * p->norm * p->sigma_norm;
  }
  return sqrt(p->c * p->c * norm2 * q + p->a * p->a * (norm2 * p->v + q) +
              p->b * p->b * p->v);
}

/* NaN for a type that there is not */
static double glm_weight_of(enum tb_weight_type type,
                            const struct glm_weight* p) {
  const double norm2 = p->norm * p->norm;
  switch (type) {
  case TB_WEIGHT_robust:
  case TB_WEIGHT_leverage:
    return glm_leverage(p);
  case TB_WEIGHT_cubic:
    return p->third * (p->sigma_norm * p->sigma_norm) * p->sigma_norm;
  case TB_WEIGHT_gradient:
    return sqrt(p->r * p->r * norm2 + p->t * p->t);
  case TB_WEIGHT_hessian:
    return glm_hessian_weight(p);
  case TB_WEIGHT_lipschitz:
    return p->c * norm2;
  case TB_WEIGHT_count:
    break;
  }
  return NAN;
}

/* Are there weights of this type for the response? */
static bool glm_has_weights(const struct glm* p_glm, enum tb_weight_type type) {
  const struct tb_response_type* p_type = p_glm->response.type;
  switch (type) {
  case TB_WEIGHT_robust:
    return p_type->bound != NULL;
  case TB_WEIGHT_lipschitz:
    return p_type->bound != NULL && !p_glm->has_aux;
  case TB_WEIGHT_cubic:
    return p_type->third_bound != NULL && !p_glm->has_aux;
  case TB_WEIGHT_gradient:
  case TB_WEIGHT_hessian:
  case TB_WEIGHT_leverage:
    return true;
  case TB_WEIGHT_count:
    break;
  }
  return false;
}

/* what the weights of a block need of its rows */
struct glm_terms {
  double v_r[BLOCK], v_t[BLOCK];
  double v_c[BLOCK], v_a[BLOCK], v_b[BLOCK];
  double v_third[BLOCK];
};

static void glm_terms_of(const struct glm* p_glm,
                         enum tb_weight_type type,
                         const struct glm_point* p_point,
                         const struct glm_block* p_block,
                         const double* v_reach,
                         struct glm_terms* p) {
  const struct tb_response_type* p_type = p_glm->response.type;
  const struct tb_response_rows rows = glm_rows(p_point, p_block);
  const bool has_aux = p_glm->has_aux;
  struct tb_response_out out = {.v_curvature = p->v_c,
                                .v_cross = has_aux ? p->v_a : NULL,
                                .v_aux_curvature = has_aux ? p->v_b : NULL};
  memset(p, 0, sizeof(*p));
  if (type == TB_WEIGHT_cubic) {
    p_type->third_bound(&rows, v_reach, p->v_third);
  } else if (type == TB_WEIGHT_robust || type == TB_WEIGHT_lipschitz) {
    p_type->bound(&rows, v_reach, &out);
  } else {
    out.v_score = p->v_r;
    out.v_aux_score = has_aux ? p->v_t : NULL;
    p_type->evaluate(&rows, &out);
    for (size_t k = 0; has_aux && k < rows.n_row; ++k) {
      p->v_b[k] = tb_response_aux_curvature(p_type, p->v_b[k]);
    }
  }
}

static enum tb_status glm_weights(const struct tb_model* p_model,
                                  enum tb_weight_type type,
                                  const double* v_theta,
                                  const double* v_chol,
                                  double* v_out,
                                  int n_threads) {
  enum { ROWS = 4096 };
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_dim = p_model->n_dim, n_coef = p_glm->n_coef;
  const size_t n_padded = p_store->n_padded;
  const bool wants_sigma = type == TB_WEIGHT_hessian ||
                           type == TB_WEIGHT_leverage ||
                           type == TB_WEIGHT_robust || type == TB_WEIGHT_cubic;
  (void)n_threads;

  if (!glm_has_weights(p_glm, type)) {
    return TB_STATUS_unsupported;
  }
  double* v_scratch =
      calloc(n_padded + n_dim + (size_t)ROWS * (n_padded + 2), sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_origin = v_scratch + n_padded;
  double* v_norm = v_origin + n_dim;
  double* v_sigma_norm = v_norm + ROWS;
  double* v_rows = v_sigma_norm + ROWS;
  const struct glm_point point =
      glm_point_at(p_model, v_theta == NULL ? v_origin : v_theta, v_scratch);
  /* of the coordinate of s */
  const double root = v_chol == NULL ? 1 : v_chol[n_dim * n_dim - 1];
  const double v =
      p_glm->has_aux ? point.slope * point.slope / (root * root) : 0;

  for (size_t start = 0; start < p_model->n_data; start += ROWS) {
    const size_t n_row = tb_min(ROWS, p_model->n_data - start);
    const struct tb_batch batch = {.n_batch = n_row, .start = start};
    const double* v_block = p_store->type->block(p_store, start, n_row, v_rows);
    row_norms(v_block, n_row, n_coef, n_padded, v_norm);
    if (wants_sigma && v_chol != NULL) {
      memmove(v_rows, v_block, n_row * n_padded * sizeof(double));
      tb_trsm_lower(n_coef, n_row, v_chol, n_dim, v_rows, n_padded);
      row_norms(v_rows, n_row, n_coef, n_padded, v_sigma_norm);
    } else {
      memcpy(v_sigma_norm, v_norm, n_row * sizeof(double));
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(static)
#endif
    for (size_t b = 0; b < n_row; b += BLOCK) {
      const struct tb_rows rows = tb_batch_block(&batch, b);
      struct glm_block block;
      struct glm_terms terms;
      double v_reach[BLOCK];
      glm_load(p_glm, &rows, &point, &block);
      for (size_t k = 0; k < rows.n_row; ++k) {
        v_reach[k] = type == TB_WEIGHT_lipschitz
                         ? INFINITY
                         : TB_WEIGHT_REACH * v_sigma_norm[b + k];
      }
      glm_terms_of(p_glm, type, &point, &block, v_reach, &terms);
      for (size_t k = 0; k < rows.n_row; ++k) {
        const struct glm_weight one = {.norm = v_norm[b + k],
                                       .sigma_norm = v_sigma_norm[b + k],
                                       .r = terms.v_r[k],
                                       .t = terms.v_t[k],
                                       .c = terms.v_c[k],
                                       .a = terms.v_a[k],
                                       .b = terms.v_b[k],
                                       .third = terms.v_third[k],
                                       .v = v};
        v_out[start + b + k] = glm_weight_of(type, &one);
      }
    }
    for (size_t k = 0; k < n_row; ++k) {
      /* a curvature without bounds */
      if (type == TB_WEIGHT_lipschitz && v_out[start + k] == INFINITY) {
        free(v_scratch);
        return TB_STATUS_unsupported;
      }
    }
  }
  free(v_scratch);
  return TB_STATUS_ok;
}

/* Many points at once: the predictors of a block of rows are one matrix
 * product, and responses, weights and offsets are read once a block. */
static enum tb_status glm_log_lik_many(const struct tb_model* p_model,
                                       const double* v_theta,
                                       size_t n_point,
                                       double* v_out) {
  enum { ROWS = 1024 };
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  double* v_scratch = malloc(
      ((size_t)ROWS * (n_padded + n_point + 4) + n_padded) * sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_rows = v_scratch;
  double* v_eta = v_rows + (size_t)ROWS * n_padded; /* ROWS x n_point */
  double* v_y = v_eta + (size_t)ROWS * n_point;
  double* v_weight = v_y + ROWS;
  double* v_offset = v_weight + ROWS;
  double* v_log_lik = v_offset + ROWS;
  double* v_padded = v_log_lik + ROWS;
  memset(v_out, 0, n_point * sizeof(double));

  for (size_t start = 0; start < p_model->n_data; start += ROWS) {
    const size_t n_row = tb_min(ROWS, p_model->n_data - start);
    const double* v_block = p_store->type->block(p_store, start, n_row, v_rows);
    tb_gemm('T',
            n_row,
            n_point,
            p_glm->n_coef,
            v_block,
            n_padded,
            v_theta,
            p_model->n_dim,
            v_eta,
            ROWS);
    for (size_t k = 0; k < n_row; ++k) {
      const double* v_obs = glm_obs(p_glm, start + k);
      v_y[k] = v_obs[OBS_y];
      v_weight[k] = p_glm->k_weight ? v_obs[p_glm->k_weight] : 1;
      v_offset[k] = p_glm->k_offset ? v_obs[p_glm->k_offset] : 0;
    }
    for (size_t p = 0; p < n_point; ++p) {
      const struct glm_point point =
          glm_point_at(p_model, v_theta + p * p_model->n_dim, v_padded);
      double* v = v_eta + p * ROWS;
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
      v_out[p] += sum;
    }
  }
  free(v_scratch);
  return TB_STATUS_ok;
}

static double glm_largest_predictor(const struct tb_model* p_model,
                                    const double* v_theta) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  double* v_padded = calloc(p_store->n_padded, sizeof(double));
  double largest = 0;
  if (v_padded == NULL) {
    return NAN;
  }
  memcpy(v_padded, v_theta, p_glm->n_coef * sizeof(double));
  for (size_t start = 0; start < p_model->n_data; start += BLOCK) {
    const struct tb_rows rows = {.n_row =
                                     tb_min(BLOCK, p_model->n_data - start),
                                 .start = start};
    double v_eta[BLOCK];
    p_store->type->dot(p_store, &rows, v_padded, v_eta);
    for (size_t k = 0; k < rows.n_row; ++k) {
      largest = fmax(largest, fabs(v_eta[k]));
    }
  }
  free(v_padded);
  return largest;
}

/* -------------------------------------------------------------- whitening */

static enum tb_status glm_reserve_offset(struct glm* p_glm, size_t n_data) {
  if (p_glm->k_offset) {
    return TB_STATUS_ok;
  }
  const size_t n_old = p_glm->n_obs_col;
  const size_t n_new = n_old + 1;
  double* v_obs = tb_big_alloc(n_data * n_new * sizeof(double));
  if (v_obs == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t i = 0; i < n_data; ++i) {
    memcpy(v_obs + i * n_new, p_glm->v_obs + i * n_old, n_old * sizeof(double));
    v_obs[i * n_new + n_old] = 0;
  }
  tb_big_free(p_glm->v_obs, n_data * n_old * sizeof(double));
  p_glm->v_obs = v_obs;
  p_glm->n_obs_col = n_new;
  p_glm->k_offset = n_old;
  return TB_STATUS_ok;
}

static bool glm_can_whiten(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return p_glm->store.is_writable;
}

static enum tb_status glm_whiten(struct tb_model* p_model,
                                 const double* v_center,
                                 const double* v_chol,
                                 bool is_diagonal) {
  enum { ROWS = 1024 };
  struct glm* p_glm = p_model->p_self;
  struct tb_store* p_store = &p_glm->store;
  const size_t n_dim = p_model->n_dim;
  const size_t n_padded = p_store->n_padded;
  enum tb_status status;

  if (p_model->p_frame != NULL || !p_store->is_writable) {
    return TB_STATUS_unsupported;
  }
  double* v_rows =
      malloc(((size_t)ROWS * n_padded + n_padded) * sizeof(double));
  if (v_rows == NULL) {
    return TB_STATUS_memory;
  }
  double* v_padded = v_rows + (size_t)ROWS * n_padded;
  status = glm_reserve_offset(p_glm, p_model->n_data);
  if (status == TB_STATUS_ok) {
    status =
        tb_frame_create(&p_glm->frame, n_dim, v_center, v_chol, is_diagonal);
  }
  if (status != TB_STATUS_ok) {
    free(v_rows);
    return status;
  }

  pad(v_padded, v_center, p_glm->n_coef, n_padded);
  for (size_t start = 0; start < p_model->n_data; start += ROWS) {
    const size_t n_row = tb_min(ROWS, p_model->n_data - start);
    for (size_t b = 0; b < n_row; b += BLOCK) {
      const struct tb_rows rows = {.n_row = tb_min(BLOCK, n_row - b),
                                   .start = start + b};
      double v_eta[BLOCK];
      p_store->type->dot(p_store, &rows, v_padded, v_eta);
      for (size_t k = 0; k < rows.n_row; ++k) {
        p_glm->v_obs[(start + b + k) * p_glm->n_obs_col + p_glm->k_offset] +=
            v_eta[k];
      }
    }
    const double* v_block = p_store->type->block(p_store, start, n_row, v_rows);
    memmove(v_rows, v_block, n_row * n_padded * sizeof(double));
    if (is_diagonal) {
      for (size_t k = 0; k < n_row; ++k) {
        for (size_t j = 0; j < p_glm->n_coef; ++j) {
          v_rows[k * n_padded + j] *= p_glm->frame.v_map[j];
        }
      }
    } else {
      tb_trsm_lower(p_glm->n_coef, n_row, v_chol, n_dim, v_rows, n_padded);
    }
    p_store->type->write(p_store, start, n_row, v_rows);
  }
  free(v_rows);
  p_model->p_frame = &p_glm->frame;
  return TB_STATUS_ok;
}

/* ------------------------------------------------------------------- life */

static void glm_destroy(struct tb_model* p_model) {
  struct glm* p_glm = p_model->p_self;
  if (p_glm == NULL) {
    return;
  }
  tb_store_destroy(&p_glm->store);
  tb_big_free(p_glm->v_obs,
              p_model->n_data * p_glm->n_obs_col * sizeof(double));
  tb_prior_destroy(&p_glm->prior);
  tb_frame_destroy(&p_glm->frame);
  free(p_glm);
  p_model->p_self = NULL;
  p_model->p_frame = NULL;
}

/* what is kept of every row besides its covariates */
static void glm_fill_obs(struct glm* p_glm,
                         const struct tb_param* p_y,
                         const struct tb_param* p_weights,
                         const struct tb_param* p_offset) {
  for (size_t i = 0; i < p_y->n_value; ++i) {
    double* v_row = p_glm->v_obs + i * p_glm->n_obs_col;
    v_row[OBS_y] = p_y->v_value[i];
    for (size_t k = 0; k < p_glm->n_scalar; ++k) {
      v_row[OBS_scalar + k] = 0;
    }
    if (p_weights != NULL) {
      v_row[p_glm->k_weight] = p_weights->v_value[i];
    }
    if (p_offset != NULL) {
      v_row[p_glm->k_offset] = p_offset->v_value[i];
    }
  }
}

static enum tb_status glm_create(struct tb_model* p_model,
                                 const struct tb_params* p_params,
                                 const struct tb_shelf* p_shelf) {
  const struct tb_param* p_x = tb_params_find(p_params, "x");
  const struct tb_param* p_y = tb_params_find(p_params, "y");
  const struct tb_param* p_weights = tb_params_find(p_params, "weights");
  const struct tb_param* p_offset = tb_params_find(p_params, "offset");
  const double place = tb_params_number(p_params, "response", -1);
  const double aux = tb_params_number(p_params, "aux", 1);
  const struct tb_response response = {
      .type = tb_response_at_place(place),
      .samples_aux = tb_params_number(p_params, "sample_aux", 0) != 0,
      .aux = aux};

  if (p_x == NULL || p_y == NULL || p_x->n_row == 0 ||
      p_x->n_row != p_y->n_value || response.type == NULL ||
      (response.type->flags & TB_RESPONSE_MULTIPLE) || !(aux > 0) ||
      (response.samples_aux && response.type->p_aux == NULL) ||
      (p_weights != NULL && p_weights->n_value != p_x->n_row) ||
      (p_offset != NULL && p_offset->n_value != p_x->n_row)) {
    return TB_STATUS_argument;
  }
  const size_t n_data = p_x->n_row;
  const bool has_aux = response.samples_aux;
  const size_t n_coef = p_x->n_value / n_data;
  const size_t n_dim = n_coef + has_aux;
  struct glm* p_glm = calloc(1, sizeof(*p_glm));
  if (p_glm == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p_glm;
  p_model->n_data = n_data;
  p_model->n_dim = n_dim;
  p_model->n_natural = n_dim;
  p_model->p_frame = NULL;
  p_glm->response = response;
  p_glm->has_aux = has_aux;
  p_glm->n_coef = n_coef;
  p_glm->n_scalar = 1 + has_aux;
  p_model->n_scalar = p_glm->n_scalar;

  p_glm->n_obs_col = OBS_fixed + has_aux;
  if (p_weights != NULL) {
    p_glm->k_weight = p_glm->n_obs_col++;
  }
  if (p_offset != NULL) {
    p_glm->k_offset = p_glm->n_obs_col++;
  }
  enum tb_status status = tb_prior_create(&p_glm->prior, p_params, n_dim);
  if (status == TB_STATUS_ok) {
    status = tb_shelf_take(p_shelf, p_x, 0, &p_glm->store);
  }
  if (status == TB_STATUS_ok) {
    p_glm->v_obs = tb_big_alloc(n_data * p_glm->n_obs_col * sizeof(double));
    if (p_glm->v_obs == NULL) {
      status = TB_STATUS_memory;
    }
  }
  if (status != TB_STATUS_ok) {
    glm_destroy(p_model);
    return status;
  }

  glm_fill_obs(p_glm, p_y, p_weights, p_offset);
  uint64_t hash = tb_hash_doubles((uint64_t)n_data, &place, 1);
  hash = tb_hash_doubles(hash, &aux, 1);
  hash = tb_hash_doubles(hash, p_glm->prior.v_kind, 4 * n_dim);
  hash = tb_hash_param(hash, p_x);
  hash = tb_hash_param(hash, p_y);
  hash = tb_hash_param(hash, p_weights);
  p_model->fingerprint = tb_hash_param(hash, p_offset);
  return TB_STATUS_ok;
}

static enum tb_status glm_copy(const struct tb_model* p_model,
                               struct tb_model* p_out) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_obs = p_model->n_data * p_glm->n_obs_col;
  if (p_model->p_frame != NULL) {
    return TB_STATUS_unsupported;
  }
  *p_out = *p_model;
  struct glm* p_copy = calloc(1, sizeof(*p_copy));
  p_out->p_self = p_copy;
  if (p_copy == NULL) {
    return TB_STATUS_memory;
  }
  p_copy->response = p_glm->response;
  p_copy->has_aux = p_glm->has_aux;
  p_copy->n_coef = p_glm->n_coef;
  p_copy->n_scalar = p_glm->n_scalar;
  p_copy->n_obs_col = p_glm->n_obs_col;
  p_copy->k_weight = p_glm->k_weight;
  p_copy->k_offset = p_glm->k_offset;
  enum tb_status status = tb_prior_copy(&p_glm->prior, &p_copy->prior);
  if (status == TB_STATUS_ok) {
    status = tb_store_copy(&p_glm->store, &p_copy->store);
  }
  if (status == TB_STATUS_ok) {
    p_copy->v_obs = tb_big_alloc(n_obs * sizeof(double));
    status = p_copy->v_obs == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  }
  if (status != TB_STATUS_ok) {
    glm_destroy(p_out);
    return status;
  }
  memcpy(p_copy->v_obs, p_glm->v_obs, n_obs * sizeof(double));
  return TB_STATUS_ok;
}

/* s -> its natural scale */
static void glm_constrain(const struct tb_model* p_model,
                          const double* v_theta,
                          double* v_natural) {
  const struct glm* p_glm = p_model->p_self;
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  if (p_glm->has_aux) {
    v_natural[p_glm->n_coef] =
        tb_response_natural_aux(p_glm->response.type, v_theta[p_glm->n_coef]);
  }
}

static size_t glm_memory(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return p_glm->store.type->memory(&p_glm->store) +
         p_model->n_data * p_glm->n_obs_col * sizeof(double) +
         tb_frame_memory(&p_glm->frame);
}

const struct tb_model_type tb_model_glm = {
    .name = "glm",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .flags = TB_MODEL_SCALAR,
    .create = glm_create,
    .destroy = glm_destroy,
    .prior = glm_prior,
    .gradient = glm_gradient,
    .workspace_size = glm_workspace_size,
    .is_outside = glm_is_outside,
    .log_lik = glm_log_lik,
    .store_scalar = glm_store_scalar,
    .stored_scalar = glm_stored_scalar,
    .square_norms = glm_square_norms,
    .add_scalar = glm_add_scalar,
    .curvature = glm_curvature,
    .weights = glm_weights,
    .lipschitz_prior = glm_lipschitz_prior,
    .largest_predictor = glm_largest_predictor,
    .log_lik_many = glm_log_lik_many,
    .constrain = glm_constrain,
    .memory = glm_memory,
    .can_whiten = glm_can_whiten,
    .whiten = glm_whiten,
    .copy = glm_copy,
};
