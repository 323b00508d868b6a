/* Regressions with classes for a response: of each row which of K it is.
 *
 *   unordered  P(y = k) ~ e^eta_k, eta_0 = 0, eta_k = (x - c)^T b_k: b_1, b_2,
 *              ..., b_(K-1) one after the other are theta
 *   ordered    P(y <= k) = F(c_(k+1) - eta), eta = (x - c)^T b + offset:
 *              theta is b, then the thresholds' coordinates
 *
 *   g_i = (u_ik (x_i - c), d_i),  u and d the slopes of l_i in its predictors
 *                                 and in what all rows share
 *
 * McCullagh (1980), Regression models for ordinal data, JRSS B 42; Agresti
 * (2013), Categorical Data Analysis, chapter 8. c centres the columns but that
 * of ones, so that priors are on predictors at the means, wherever the store
 * has the rows; constrain() says what the intercepts and thresholds are where x
 * is 0.
 *
 *   symbol    variable   shape              owner
 *   x_i       store      n_data x n_padded  classes
 *   y_i       v_class    n_data             classes
 *   w_i       v_weight   n_data             classes, NULL: all 1
 *   offset    v_offset   n_data             classes, NULL: none
 *   c         v_center   n_coef             classes
 */
#include "models/classes-inside.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- slots */

static enum tb_status classes_prior(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_prior) {
  const struct classes* p = p_model->p_self;
  const size_t n_all = p->n_eta * p->n_coef;
  (void)p_work;
  double log_prior = tb_prior_gradient(&p->prior, v_theta, v_gradient);
  log_prior += classes_prior_of_thresholds(p,
                                           v_theta + n_all,
                                           v_gradient + n_all,
                                           NULL,
                                           0);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

static bool classes_is_outside(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               const double* v_theta) {
  const struct classes* p = p_model->p_self;
  (void)p_work;
  return p->prior.is_bounded && tb_prior_is_outside(&p->prior, v_theta);
}

/* ------------------------------------------------------------------- blocks */

static struct tb_block_shape classes_shape(const struct tb_model* p_model) {
  const struct classes* p = p_model->p_self;
  return (struct tb_block_shape){.n_row = CLASSES_BLOCK,
                                 .n_score = p->n_inner,
                                 .n_own = classes_scratch_size(p, false)};
}

static void classes_load(const struct tb_model* p_model,
                         const struct tb_block* p_block) {
  const struct classes* p = p_model->p_self;
  const struct classes_scratch s = classes_scratch_at(p, p_block->p_own, false);
  (void)classes_gather(p, p_block->p_batch, p_block->first, &s);
  for (size_t i = 0; p->v_weight != NULL && i < p_block->n_row; ++i) {
    p_block->v_weight[i] *= p->v_weight[tb_block_row(p_block, i)];
  }
}

/* slopes in the inner coordinates, without weights */
static void classes_see(const struct tb_model* p_model,
                        const struct tb_block* p_block,
                        enum tb_block_place place,
                        const struct tb_block_look* p_look) {
  const struct classes* p = p_model->p_self;
  const struct classes_scratch s = classes_scratch_at(p, p_block->p_own, false);
  const struct classes_out out = {.v_log_lik = p_look->v_log_lik,
                                  .v_score = p_look->v_score};
  classes_look(p,
               p_block->v_theta[place],
               p_block->p_batch,
               p_block->first,
               p_block->n_row,
               &s,
               &out);
}

/* ||a_i||^2 = ||u_i||^2 ||x_i - c||^2 + ||d_i||^2 */
static void classes_square(const struct tb_model* p_model,
                           const struct tb_block* p_block,
                           double* v_square) {
  const struct classes* p = p_model->p_self;
  const struct classes_scratch s = classes_scratch_at(p, p_block->p_own, false);
  for (size_t i = 0; i < p_block->n_row; ++i) {
    double u2 = 0, d2 = 0, x2 = 0;
    for (size_t k = 0; k < p->n_inner; ++k) {
      const double u = p_block->v_score[i * p->n_inner + k];
      *(k < p->n_eta ? &u2 : &d2) += u * u;
    }
    for (size_t j = 0; j < p->n_coef; ++j) {
      x2 += s.v_x[i * p->n_coef + j] * s.v_x[i * p->n_coef + j];
    }
    v_square[i] = u2 * x2 + d2;
  }
}

static void classes_sum(const struct tb_model* p_model,
                        const struct tb_block* p_block,
                        const struct tb_sums* p_sums) {
  const struct classes* p = p_model->p_self;
  const struct classes_scratch s = classes_scratch_at(p, p_block->p_own, false);
  classes_add(p,
              p_block->n_row,
              &s,
              p_block->v_score,
              p_sums->v_gradient,
              p_sums->v_square);
}

static const struct tb_model_blocks classes_blocks = {
    .shape = classes_shape,
    .load = classes_load,
    .look = classes_see,
    .square = classes_square,
    .add = classes_sum,
};

/* --------------------------------------------------------------- variables */

/* b^T c of one predictor */
static double shift_of(const struct classes* p, const double* v_b) {
  double sum = 0;
  for (size_t j = 0; j < p->n_coef; ++j) {
    sum += v_b[j] * p->v_center[j];
  }
  return sum;
}

static void classes_constrain(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_natural) {
  const struct classes* p = p_model->p_self;
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  for (size_t k = 0; k < p->n_eta && p->intercept < p->n_coef; ++k) {
    v_natural[k * p->n_coef + p->intercept] -=
        shift_of(p, v_theta + k * p->n_coef);
  }
  if (p->head->is_ordered) {
    double* v_cut = v_natural + p->n_coef;
    const double shift = shift_of(p, v_theta);
    classes_thresholds(p->n_class, classes_shared(p, v_theta), v_cut);
    for (size_t k = 0; k < p->n_shared; ++k) {
      v_cut[k] += shift;
    }
  }
}

/* Is the predictor at the means that at x = 0, and no threshold a sum of
 * exponentials? */
static bool has_own_variables(const struct classes* p) {
  bool is_centred = true;
  for (size_t j = 0; j < p->n_coef; ++j) {
    is_centred = is_centred && p->v_center[j] == 0;
  }
  return p->head->is_ordered ? is_centred && p->n_shared == 1
                             : is_centred || p->intercept == p->n_coef;
}

static size_t classes_memory(const struct tb_model* p_model) {
  const struct classes* p = p_model->p_self;
  return p->store.type->memory(&p->store) + p->n_byte;
}

/* -------------------------------------------------------------------- life */

static const struct classes_head* const v_head[] = {&classes_softmax,
                                                    &classes_cumulative_logit,
                                                    &classes_cumulative_probit};

static bool set_shape(struct tb_model* p_model,
                      const struct tb_params* p_params,
                      const struct tb_shelf* p_shelf) {
  struct classes* p = p_model->p_self;
  const size_t n_head = sizeof(v_head) / sizeof(*v_head);
  size_t head;
  if (!tb_shelf_shape(p_shelf,
                      tb_params_find(p_params, "x"),
                      &p_model->n_data,
                      &p->n_coef) ||
      p_model->n_data == 0 || p->n_coef == 0 ||
      !tb_params_count(p_params, "head", n_head, 0, &head) || head >= n_head ||
      !tb_params_count(p_params, "n_class", CLASSES_MOST, 0, &p->n_class) ||
      p->n_class < 2 ||
      !tb_params_count(p_params,
                       "intercept",
                       p->n_coef,
                       p->n_coef,
                       &p->intercept)) {
    return false;
  }
  p->head = v_head[head];
  p->n_eta = p->head->is_ordered ? 1 : p->n_class - 1;
  p->n_shared = p->head->is_ordered ? p->n_class - 1 : 0;
  p->n_inner = p->n_eta + p->n_shared;
  p_model->n_dim = p_model->n_natural = classes_theta_size(p);
  p_model->n_scalar = p->n_inner;
  p_model->takes_covariance = true;
  return true;
}

/* Room for what a parameter holds, of n numbers; false: it has another
 * number. *p_place stays NULL where there is none. */
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

static bool has_classes(const struct classes* p, size_t n_data) {
  for (size_t i = 0; i < n_data; ++i) {
    const double y = p->v_class[i];
    if (!(y >= 0 && y < (double)p->n_class && y == floor(y))) {
      return false;
    }
  }
  return true;
}

static enum tb_status take_rows(struct tb_model* p_model,
                                const struct tb_params* p_params) {
  struct classes* p = p_model->p_self;
  const size_t n = p_model->n_data;
  p->n_byte = (3 * n + p->n_coef + p->n_class) * sizeof(double);
  p->p_memory = tb_big_alloc(p->n_byte);
  if (p->p_memory == NULL) {
    return TB_STATUS_memory;
  }
  double* v_at = (double*)(void*)p->p_memory;
  const bool is_whole =
      take_numbers(p_params, "center", p->n_coef, &v_at, &p->v_center) &&
      take_numbers(p_params, "count", p->n_class, &v_at, &p->v_count) &&
      take_numbers(p_params, "class", n, &v_at, &p->v_class) &&
      take_numbers(p_params, "weights", n, &v_at, &p->v_weight) &&
      take_numbers(p_params, "offset", n, &v_at, &p->v_offset);
  return is_whole && p->v_center != NULL && p->v_class != NULL &&
                 (p->v_offset == NULL || p->n_eta == 1) && has_classes(p, n)
             ? TB_STATUS_ok
             : TB_STATUS_argument;
}

/* Parameters: "x" (n_data x n_coef), "class" (n_data, from 0), "n_class",
 * "head" (place in v_head), "intercept" (its column, from 0; none: there is
 * none), "center" (n_coef), "weights", "offset" (n_data), "count" (n_class, of
 * thresholds), and those of tb_prior. */
static enum tb_status classes_create(struct tb_model* p_model,
                                     const struct tb_params* p_params,
                                     const struct tb_shelf* p_shelf) {
  struct classes* p = calloc(1, sizeof(*p));
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
    classes_destroy(p_model);
    return status;
  }
  p_model->is_natural = has_own_variables(p);
  uint64_t hash = tb_hash_word((uint64_t)p_model->n_data, p->store.hash);
  hash = tb_hash_doubles(hash, p->prior.v_kind, 4 * p_model->n_dim);
  const char* const v_name[] =
      {"head", "class", "weights", "offset", "count", "center", "prior_shape"};
  for (size_t k = 0; k < sizeof(v_name) / sizeof(*v_name); ++k) {
    hash = tb_hash_param(hash, tb_params_find(p_params, v_name[k]));
  }
  p_model->fingerprint = hash;
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_classes = {
    .name = "classes",
    .citation = "McCullagh (1980), JRSS B 42; Agresti (2013), chapter 8",
    .flags = TB_MODEL_SCALAR,
    .create = classes_create,
    .destroy = classes_destroy,
    .prior = classes_prior,
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .is_outside = classes_is_outside,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .add_scalar = tb_blocks_add_scalar,
    .blocks = &classes_blocks,
    .pass_size = classes_pass_size,
    .curvature = classes_curvature,
    .curvature_prior = classes_curvature_prior,
    .weights = classes_weights,
    .largest_predictor = classes_largest_predictor,
    .log_lik_many = classes_log_lik_many,
    .constrain = classes_constrain,
    .expansion = &classes_expansion,
    .memory = classes_memory,
    .merge = classes_merge,
};
