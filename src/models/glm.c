/* Generalised linear models: a response (responses/response.h) over a design
 * and a prior. Auxiliary parameters of the response, such as sigma, are known,
 * or sampled as the last coordinates s.
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
#include "models/glm-inside.h"

#include "base/blas.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"

#include <math.h>
#include <stdlib.h>

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

static bool glm_prior_quadratic(const struct tb_model* p_model,
                                const double* v_theta,
                                double* v_hessian) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  if (p_model->p_frame == NULL) {
    return tb_prior_quadratic(&p_glm->prior, v_theta, v_hessian);
  }
  double* v_work = malloc((n_dim + n_dim * n_dim) * sizeof(double));
  if (v_work == NULL) {
    /* nothing is wrong with it but its price */
    memset(v_hessian, 0, n_dim * n_dim * sizeof(double));
    return false;
  }
  tb_frame_to_parameter(p_model->p_frame, v_theta, v_work);
  const bool is_quadratic =
      tb_prior_quadratic(&p_glm->prior, v_work, v_hessian);
  tb_frame_pull_hessian(p_model->p_frame, v_hessian, v_work + n_dim);
  free(v_work);
  return is_quadratic;
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

  glm_pad(v_padded, v_center, p_glm->n_coef, n_padded);
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
      tb_trsm('L', 'N', p_glm->n_coef, n_row, v_chol, n_dim, v_rows, n_padded);
    }
    (void)tb_store_write(p_store, start, n_row, v_rows); /* it is writable */
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
  const size_t n_data = p_y->n_value / (1 + p_glm->n_more_y);
  for (size_t i = 0; i < n_data; ++i) {
    double* v_row = p_glm->v_obs + i * p_glm->n_obs_col;
    v_row[OBS_y] = tb_param_at(p_y, i);
    for (size_t j = 0; j < p_glm->n_more_y; ++j) {
      v_row[p_glm->k_more_y + j] = tb_param_at(p_y, (j + 1) * n_data + i);
    }
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
  const struct tb_columns* p_columns = tb_params_columns(p_params);
  const struct tb_param* p_y = tb_params_find(p_params, "y");
  const struct tb_param* p_weights = tb_params_find(p_params, "weights");
  const struct tb_param* p_offset = tb_params_find(p_params, "offset");
  const double place = tb_params_number(p_params, "response", -1);
  struct tb_response response;

  size_t n_data, n_coef;
  if (p_columns != NULL) {
    n_data = p_columns->n_row;
    n_coef = p_columns->n_col;
  } else if (!tb_shelf_shape(p_shelf, p_x, &n_data, &n_coef)) {
    return TB_STATUS_argument;
  }
  if (n_data == 0 || (p_x != NULL && p_columns != NULL) || p_y == NULL ||
      !tb_response_read(&response, p_params) ||
      tb_response_n_predictor(response.type, 0) != 1 ||
      p_y->n_value != tb_response_n_y(response.type) * n_data ||
      (p_weights != NULL && p_weights->n_value != n_data) ||
      (p_offset != NULL && p_offset->n_value != n_data)) {
    return TB_STATUS_argument;
  }
  const size_t n_aux = tb_response_n_sampled(&response);
  const size_t n_dim = n_coef + n_aux;
  struct glm* p_glm = calloc(1, sizeof(*p_glm));
  if (p_glm == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p_glm;
  p_model->n_data = n_data;
  p_model->n_dim = n_dim;
  p_model->n_natural = n_dim;
  p_model->is_natural = n_aux == 0;
  p_model->p_frame = NULL;
  p_glm->response = response;
  p_glm->n_aux = n_aux;
  p_glm->n_coef = n_coef;
  p_glm->n_scalar = 1 + n_aux;
  p_model->n_scalar = p_glm->n_scalar;

  p_glm->n_obs_col = OBS_fixed + n_aux;
  p_glm->n_more_y = tb_response_n_y(response.type) - 1;
  p_glm->k_more_y = p_glm->n_obs_col;
  p_glm->n_obs_col += p_glm->n_more_y;
  if (p_weights != NULL) {
    p_glm->k_weight = p_glm->n_obs_col++;
  }
  if (p_offset != NULL) {
    p_glm->k_offset = p_glm->n_obs_col++;
  }
  enum tb_status status = tb_prior_create(&p_glm->prior, p_params, n_dim);
  if (status == TB_STATUS_ok) {
    status = p_columns == NULL
                 ? tb_shelf_take(p_shelf, p_x, 0, &p_glm->store)
                 : tb_shelf_turn(p_shelf, p_columns, &p_glm->store);
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
  p_glm->is_sparse = tb_store_is_sparse(&p_glm->store);
  p_model->n_root = p_glm->is_sparse ? 0 : n_coef;
  p_model->takes_covariance = p_glm->is_sparse;
  p_model->is_wide = p_glm->is_sparse && n_coef > GLM_MOST_PRODUCTS;

  glm_fill_obs(p_glm, p_y, p_weights, p_offset);
  uint64_t hash = tb_hash_doubles((uint64_t)n_data, &place, 1);
  hash = tb_hash_doubles(hash, response.v_known, response.type->n_aux);
  hash = tb_hash_doubles(hash, p_glm->prior.v_kind, 4 * n_dim);
  hash = tb_hash_param(hash, tb_params_find(p_params, "prior_shape"));
  hash = tb_hash_word(hash, p_glm->store.hash);
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
  p_copy->n_aux = p_glm->n_aux;
  p_copy->is_sparse = p_glm->is_sparse;
  p_copy->n_coef = p_glm->n_coef;
  p_copy->n_scalar = p_glm->n_scalar;
  p_copy->n_obs_col = p_glm->n_obs_col;
  p_copy->k_weight = p_glm->k_weight;
  p_copy->k_offset = p_glm->k_offset;
  p_copy->k_more_y = p_glm->k_more_y;
  p_copy->n_more_y = p_glm->n_more_y;
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
  tb_response_natural(&p_glm->response,
                      v_theta + p_glm->n_coef,
                      v_natural + p_glm->n_coef);
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
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .is_outside = glm_is_outside,
    .log_lik = tb_blocks_log_lik,
    .store_scalar = tb_blocks_store_scalar,
    .stored_scalar = glm_stored_scalar,
    .square_norms = tb_blocks_square_norms,
    .add_scalar = tb_blocks_add_scalar,
    .blocks = &tb_glm_blocks,
    .pass_size = glm_pass_size,
    .curvature = glm_curvature,
    .curvature_prior = glm_curvature_prior,
    .diagonal = glm_diagonal,
    .weights = glm_weights,
    .lipschitz_prior = glm_lipschitz_prior,
    .largest_predictor = glm_largest_predictor,
    .expansion = &tb_glm_expansion,
    .prior_quadratic = glm_prior_quadratic,
    .log_lik_many = glm_log_lik_many,
    .design = glm_design,
    .constrain = glm_constrain,
    .memory = glm_memory,
    .can_whiten = glm_can_whiten,
    .whiten = glm_whiten,
    .copy = glm_copy,
};
