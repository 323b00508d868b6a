/* Regressions whose rows have several linear predictors, each of columns of its
 * own: of a mean and of a standard deviation, or of counts and of the
 * probability that there are none.
 *
 *   y_i ~ response with predictors eta_ik = (x_ik - c_k)^T b_k, k = 1, .., K
 *                               (+ offset_i of the first), and parameters s
 *   theta = (b_1, .., b_K, s)
 *   g_i   = (u_i1 (x_i1 - c_1), .., u_iK (x_iK - c_K), d_i),
 *           u and d the slopes of l_i in the predictors and in s
 *
 * Rigby & Stasinopoulos (2005), Generalized additive models for location, scale
 * and shape, JRSS C 54:507. c centres the columns of predictors that have an
 * intercept, so that priors are on predictors at the means; constrain() says
 * what the intercepts are where x is 0, and the parameters on their natural
 * scale.
 *
 *   symbol    variable   shape              owner
 *   x_i       store      n_data x n_padded  predictors: x_i1, x_i2, ..
 *   y_i       v_y        n_data x n_y       predictors
 *   w_i       v_weight   n_data             predictors, NULL: all 1
 *   offset    v_offset   n_data             predictors, NULL: none
 *   c         v_center   n_coef             predictors
 */
#include "models/predictors-inside.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- slots */

static enum tb_status predictors_prior(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       double* v_gradient,
                                       double* p_log_prior) {
  const struct predictors* p = p_model->p_self;
  (void)p_work;
  const double log_prior = tb_prior_gradient(&p->prior, v_theta, v_gradient);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

static bool predictors_is_outside(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  const double* v_theta) {
  const struct predictors* p = p_model->p_self;
  (void)p_work;
  return p->prior.is_bounded && tb_prior_is_outside(&p->prior, v_theta);
}

static double predictors_lipschitz_prior(const struct tb_model* p_model) {
  const struct predictors* p = p_model->p_self;
  return tb_prior_lipschitz(&p->prior, NULL);
}

static void predictors_constrain(const struct tb_model* p_model,
                                 const double* v_theta,
                                 double* v_natural) {
  const struct predictors* p = p_model->p_self;
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  for (size_t k = 0; k < p->n_eta; ++k) {
    const size_t at = p->v_intercept[k];
    for (size_t j = p->v_first[k]; at < p->n_coef && j < p->v_first[k + 1];
         ++j) {
      v_natural[at] -= v_theta[j] * p->v_center[j];
    }
  }
  tb_response_natural(&p->response, v_theta + p->n_coef, v_natural + p->n_coef);
}

static size_t predictors_memory(const struct tb_model* p_model) {
  const struct predictors* p = p_model->p_self;
  return p->store.type->memory(&p->store) + p->n_byte;
}

/* ------------------------------------------------------------------- blocks */

static struct tb_block_shape predictors_shape(const struct tb_model* p_model) {
  const struct predictors* p = p_model->p_self;
  return (struct tb_block_shape){.n_row = PREDICTORS_BLOCK,
                                 .n_score = p->n_inner,
                                 .n_own = predictors_scratch_size(p, false)};
}

static void predictors_load(const struct tb_model* p_model,
                            const struct tb_block* p_block) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_block->p_own, false);
  (void)predictors_gather(p, p_block->p_batch, p_block->first, &s);
}

static void predictors_see(const struct tb_model* p_model,
                           const struct tb_block* p_block,
                           enum tb_block_place place,
                           const struct tb_block_look* p_look) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_block->p_own, false);
  const struct predictors_out out = {.is_complete = p_block->is_complete,
                                     .v_log_lik = p_look->v_log_lik,
                                     .v_score = p_look->v_score};
  predictors_look(p,
                  p_block->v_theta[place],
                  p_block->p_batch,
                  p_block->first,
                  p_block->n_row,
                  &s,
                  &out);
}

/* ||a_i||^2 = sum_k u_ik^2 ||x_ik - c_k||^2 + ||d_i||^2 */
static void predictors_square(const struct tb_model* p_model,
                              const struct tb_block* p_block,
                              double* v_square) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_block->p_own, false);
  for (size_t i = 0; i < p_block->n_row; ++i) {
    double sum = 0;
    for (size_t k = 0; k < p->n_inner; ++k) {
      const double u = p_block->v_score[i * p->n_inner + k];
      double x2 = k < p->n_eta ? 0 : 1;
      for (size_t j = k < p->n_eta ? p->v_first[k] : 0;
           k < p->n_eta && j < p->v_first[k + 1];
           ++j) {
        const double x = s.v_x[i * p->n_coef + j];
        x2 += x * x;
      }
      sum += u * u * x2;
    }
    v_square[i] = sum;
  }
}

static void predictors_sum(const struct tb_model* p_model,
                           const struct tb_block* p_block,
                           const struct tb_sums* p_sums) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_block->p_own, false);
  predictors_add(p,
                 p_block->n_row,
                 &s,
                 p_block->v_score,
                 p_sums->v_gradient,
                 p_sums->v_square);
}

static const struct tb_model_blocks predictors_blocks = {
    .shape = predictors_shape,
    .load = predictors_load,
    .look = predictors_see,
    .square = predictors_square,
    .add = predictors_sum,
};

/* -------------------------------------------------------------------- life */

static void predictors_destroy(struct tb_model* p_model) {
  struct predictors* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_store_destroy(&p->store);
  tb_prior_destroy(&p->prior);
  tb_big_free(p->p_memory, p->n_byte);
  free(p);
  p_model->p_self = NULL;
}

/* "width": columns of each predictor; "intercept": the place of each one's
 * intercept among these, from 0, NaN: none. */
static bool set_widths(struct predictors* p, const struct tb_params* p_params) {
  const struct tb_param* p_width = tb_params_find(p_params, "width");
  const struct tb_param* p_at = tb_params_find(p_params, "intercept");
  if (p_width == NULL || p_at == NULL || p_width->n_value != p->n_eta ||
      p_at->n_value != p->n_eta) {
    return false;
  }
  for (size_t k = 0; k < p->n_eta; ++k) {
    const double width = tb_param_at(p_width, k), at = tb_param_at(p_at, k);
    const size_t left = p->n_coef - p->v_first[k];
    if (!(width >= 1 && width <= (double)left && width == floor(width)) ||
        !(isnan(at) || (at >= 0 && at < width && at == floor(at)))) {
      return false;
    }
    p->v_first[k + 1] = p->v_first[k] + (size_t)width;
    p->v_intercept[k] = isnan(at) ? p->n_coef : p->v_first[k] + (size_t)at;
  }
  return p->v_first[p->n_eta] == p->n_coef;
}

static bool set_shape(struct tb_model* p_model,
                      const struct tb_params* p_params,
                      const struct tb_shelf* p_shelf) {
  struct predictors* p = p_model->p_self;
  if (!tb_response_read(&p->response, p_params) ||
      (p->response.type->flags & TB_RESPONSE_CLASSES)) {
    return false;
  }
  p->n_eta = tb_response_n_predictor(p->response.type, 0);
  p->n_aux = tb_response_n_sampled(&p->response);
  p->n_inner = p->n_eta + p->n_aux;
  if (p->n_eta > PREDICTORS_MOST_ETA || p->n_inner > PREDICTORS_MOST_INNER ||
      !tb_shelf_shape(p_shelf,
                      tb_params_find(p_params, "x"),
                      &p_model->n_data,
                      &p->n_coef) ||
      p_model->n_data == 0 || !set_widths(p, p_params)) {
    return false;
  }
  p_model->n_dim = p_model->n_natural = p->n_coef + p->n_aux;
  p_model->n_scalar = p->n_inner;
  p_model->takes_covariance = true;
  return true;
}

/* The numbers that a parameter holds, n of them; false: it has another number.
 * *p_place stays NULL where there is none. */
static bool take_numbers(const struct tb_params* p_params,
                         const char* name,
                         size_t n,
                         double** p_at,
                         double** p_place) {
  const struct tb_param* p_from = tb_params_find(p_params, name);
  if (p_from == NULL) {
    return true;
  }
  if (p_from->n_value != n) {
    return false;
  }
  *p_place = *p_at;
  *p_at += n;
  for (size_t i = 0; i < n; ++i) {
    (*p_place)[i] = tb_param_at(p_from, i);
  }
  return true;
}

static enum tb_status take_rows(struct tb_model* p_model,
                                const struct tb_params* p_params) {
  struct predictors* p = p_model->p_self;
  const struct tb_response_type* type = p->response.type;
  const size_t n = p_model->n_data, n_y = tb_response_n_y(type) * n;
  p->n_byte = (n_y + 2 * n + p->n_coef) * sizeof(double);
  p->p_memory = tb_big_alloc(p->n_byte);
  if (p->p_memory == NULL) {
    return TB_STATUS_memory;
  }
  double* v_at = (double*)(void*)p->p_memory;
  const bool is_whole =
      take_numbers(p_params, "center", p->n_coef, &v_at, &p->v_center) &&
      take_numbers(p_params, "y", n_y, &v_at, &p->v_y) &&
      take_numbers(p_params, "weights", n, &v_at, &p->v_weight) &&
      take_numbers(p_params, "offset", n, &v_at, &p->v_offset);
  return is_whole && p->v_center != NULL && p->v_y != NULL &&
                 type->outside(p->v_y, n, 0) == n
             ? TB_STATUS_ok
             : TB_STATUS_argument;
}

/* Is the predictor at the means that at x = 0, and nothing else a parameter? */
static bool has_own_variables(const struct predictors* p) {
  bool is_centred = true;
  for (size_t j = 0; j < p->n_coef; ++j) {
    is_centred = is_centred && p->v_center[j] == 0;
  }
  return is_centred && p->n_aux == 0;
}

/* Parameters: "x" (n_data x n_coef), "y" (n_data x n_y), "response", "aux",
 * those of set_widths(), "center" (n_coef; 0 of predictors without an
 * intercept), "weights", "offset" (n_data), and those of tb_prior. */
static enum tb_status predictors_create(struct tb_model* p_model,
                                        const struct tb_params* p_params,
                                        const struct tb_shelf* p_shelf) {
  struct predictors* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->p_frame = NULL;
  enum tb_status status =
      set_shape(p_model, p_params, p_shelf) ? TB_STATUS_ok : TB_STATUS_argument;
  if (status == TB_STATUS_ok) {
    status = tb_prior_create(&p->prior, p_params, p_model->n_dim);
  }
  if (status == TB_STATUS_ok) {
    status =
        tb_shelf_take(p_shelf, tb_params_find(p_params, "x"), 0, &p->store);
  }
  if (status == TB_STATUS_ok) {
    status = take_rows(p_model, p_params);
  }
  if (status != TB_STATUS_ok) {
    predictors_destroy(p_model);
    return status;
  }
  p_model->is_natural = has_own_variables(p);
  uint64_t hash = tb_hash_word((uint64_t)p_model->n_data, p->store.hash);
  hash = tb_hash_doubles(hash, p->prior.v_kind, 4 * p_model->n_dim);
  const char* const v_name[] = {"response",
                                "aux",
                                "y",
                                "weights",
                                "offset",
                                "width",
                                "center",
                                "prior_shape"};
  for (size_t k = 0; k < sizeof(v_name) / sizeof(*v_name); ++k) {
    hash = tb_hash_param(hash, tb_params_find(p_params, v_name[k]));
  }
  p_model->fingerprint = hash;
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_predictors = {
    .name = "predictors",
    .citation = "Rigby & Stasinopoulos (2005), JRSS C 54:507",
    .flags = TB_MODEL_SCALAR,
    .create = predictors_create,
    .destroy = predictors_destroy,
    .prior = predictors_prior,
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .is_outside = predictors_is_outside,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .add_scalar = tb_blocks_add_scalar,
    .blocks = &predictors_blocks,
    .pass_size = predictors_pass_size,
    .curvature = predictors_curvature,
    .curvature_prior = predictors_curvature_prior,
    .weights = predictors_weights,
    .largest_predictor = predictors_largest_predictor,
    .log_lik_many = predictors_log_lik_many,
    .lipschitz_prior = predictors_lipschitz_prior,
    .constrain = predictors_constrain,
    .expansion = &tb_predictors_expansion,
    .memory = predictors_memory,
};
