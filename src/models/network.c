/* Fully connected neural networks: a response (responses/response.h) whose
 * predictors are the outputs of a network.
 *
 *   f_i = f(x_i; W_1, b_1, .., W_L, b_L)       (models/layers.h)
 *   y_i ~ response with predictors f_i
 *
 * An auxiliary parameter of the response, such as sigma, is known, or sampled
 * as the last coordinate s. Rows are taken in blocks whose outputs and errors
 * d log p / d f stay in the cache: scratch does not grow with the data.
 *
 * Neal (1996), Bayesian Learning for Neural Networks; the posteriors that
 * Bieringer, Kasieczka, Steffen & Trabs (2023), AdamMCMC, sample.
 *
 *   symbol    variable   shape                owner
 *   (x_i, 1)  store      n_data x (n_0 + 1)   network
 *   y_i       v_y        n_data x n_y         network
 *   s         v_theta    the last of n_dim    caller; where it is sampled
 */
#include "base/clip.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/layers.h"
#include "models/model.h"
#include "priors/prior.h"
#include "responses/response.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct network {
  struct tb_layers layers;
  struct tb_response response;
  bool has_aux;    /* sampled: the last coordinate */
  double aux_unit; /* that its natural value is multiplied by for the user */
  struct tb_store store;
  size_t n_y; /* columns of y */
  double* v_y;
  struct tb_prior prior;
};

/* where a pass takes place */
struct network_point {
  const double* v_theta;
  struct tb_response_point response;
};

/* a block of rows in a chain's scratch */
struct network_block {
  struct tb_tape tape;
  struct tb_tape other;   /* at the reference */
  double* v_tape_scratch; /* tb_tape_scratch() */
  double* v_input;        /* n_block x n_padded, rows gathered */
  double* v_y;            /* n_block x n_y, in columns of the rows there are */
  double* v_weight;       /* n_block, and so below */
  double* v_log_lik;
  double* v_slope; /* d log p / d s */
  double* v_other_slope;
};

/* ------------------------------------------------------------------ blocks */

enum { BLOCK_ARRAYS = 4 };

static size_t network_workspace_size(const struct tb_model* p_model,
                                     size_t n_batch) {
  const struct network* p = p_model->p_self;
  (void)n_batch;
  const size_t n_row = p->store.n_padded + p->n_y + BLOCK_ARRAYS;
  return (2 * tb_tape_size(&p->layers) + tb_tape_scratch(&p->layers) +
          n_row * p->layers.n_block) *
         sizeof(double);
}

static struct network_block network_block_at(const struct network* p,
                                             double* v) {
  const size_t n_tape = tb_tape_size(&p->layers), n = p->layers.n_block;
  struct network_block block = {.tape = tb_tape_at(&p->layers, v),
                                .other = tb_tape_at(&p->layers, v + n_tape),
                                .v_tape_scratch = v + 2 * n_tape};
  block.v_input = block.v_tape_scratch + tb_tape_scratch(&p->layers);
  block.v_y = block.v_input + n * p->store.n_padded;
  block.v_weight = block.v_y + p->n_y * n;
  block.v_log_lik = block.v_weight + n;
  block.v_slope = block.v_log_lik + n;
  block.v_other_slope = block.v_slope + n;
  return block;
}

/* The rows of a part of a batch, n_block at most. */
static void network_load(const struct network* p,
                         const struct tb_batch* p_part,
                         struct network_block* p_block) {
  const struct tb_store* p_store = &p->store;
  const size_t n_row = p_part->n_batch, n_padded = p_store->n_padded;
  const double* v_input = p_block->v_input;
  if (p_part->v_index == NULL) {
    v_input =
        p_store->type->block(p_store, p_part->start, n_row, p_block->v_input);
  }
  for (size_t k = 0; k < n_row; ++k) {
    const size_t i = tb_batch_row(p_part, k);
    if (p_part->v_index != NULL) {
      double* v_to = p_block->v_input + k * n_padded;
      const double* v_row = p_store->type->block(p_store, i, 1, v_to);
      memmove(v_to, v_row, n_padded * sizeof(double));
    }
    for (size_t j = 0; j < p->n_y; ++j) {
      p_block->v_y[j * n_row + k] = p->v_y[j * p_store->n_row + i];
    }
    p_block->v_weight[k] = tb_batch_weight(p_part, k);
  }
  for (int k = 0; k < 2; ++k) {
    struct tb_tape* p_tape = k == 0 ? &p_block->tape : &p_block->other;
    p_tape->v_input = v_input;
    p_tape->n_row = n_row;
    p_tape->n_lead = n_padded;
  }
}

static struct network_point network_point_at(const struct tb_model* p_model,
                                             const double* v_theta) {
  const struct network* p = p_model->p_self;
  const double* v_aux = v_theta + p_model->n_dim - p->has_aux;
  return (struct network_point){v_theta, tb_response_at(&p->response, v_aux)};
}

/* Outputs of a block at a point, what they say of the responses, the errors at
 * the outputs and v_slope; p_tape is one of the block's. */
static void network_evaluate(const struct network* p,
                             const struct network_point* p_point,
                             struct network_block* p_block,
                             struct tb_tape* p_tape,
                             double* v_slope) {
  tb_layers_forward(&p->layers, p_point->v_theta, p_tape);
  const struct tb_response_rows rows = {
      .n_row = p_tape->n_row,
      .n_predictor = p->layers.v_width[p->layers.n_layer],
      .v_eta = tb_tape_output(&p->layers, p_tape),
      .v_y = p_block->v_y,
      .p_point = &p_point->response};
  const struct tb_response_out out = {
      .v_log_density = p_block->v_log_lik,
      .is_complete = true,
      .v_score = tb_tape_error(&p->layers, p_tape),
      .v_aux_score = p->has_aux ? v_slope : NULL};
  p->response.type->evaluate(&rows, &out);
}

/* -------------------------------------------------------------- gradients */

/* The errors of a block run back, at theta and at the reference (NULL: none),
 * with the multiplier of each row, or 1 */
static void network_backward(const struct network* p,
                             const struct network_point* p_point,
                             const struct network_point* p_at,
                             bool is_weighted,
                             struct network_block* p_block) {
  const size_t n = p_block->tape.n_row;
  const size_t n_out = p->layers.v_width[p->layers.n_layer];
  double* v_error = tb_tape_error(&p->layers, &p_block->tape);
  double* v_other = NULL;
  if (p_at != NULL) {
    network_evaluate(p, p_at, p_block, &p_block->other, p_block->v_other_slope);
    v_other = tb_tape_error(&p->layers, &p_block->other);
  }
  for (size_t i = 0; p->has_aux && i < n; ++i) {
    p_block->v_slope[i] -= p_at == NULL ? 0 : p_block->v_other_slope[i];
    p_block->v_slope[i] *= is_weighted ? p_block->v_weight[i] : 1;
  }
  for (size_t k = 0; is_weighted && k < n_out; ++k) {
    for (size_t i = 0; i < n; ++i) {
      v_error[k * n + i] *= p_block->v_weight[i];
      if (v_other != NULL) {
        v_other[k * n + i] *= p_block->v_weight[i];
      }
    }
  }
  tb_layers_backward(&p->layers, p_point->v_theta, &p_block->tape);
  if (p_at != NULL) {
    tb_layers_backward(&p->layers, p_at->v_theta, &p_block->other);
    tb_tape_subtract(&p->layers, &p_block->tape, &p_block->other);
  }
}

/* sums of a block into v_gradient and v_square, either may be NULL */
static void network_add(const struct tb_model* p_model,
                        struct network_block* p_block,
                        bool has_other,
                        double* v_gradient,
                        double* v_square) {
  const struct network* p = p_model->p_self;
  const struct tb_tape* p_other = has_other ? &p_block->other : NULL;
  const size_t at = p_model->n_dim - 1;
  if (v_gradient != NULL) {
    tb_tape_add(&p->layers, &p_block->tape, p_other, v_gradient);
  }
  if (v_square != NULL) {
    tb_tape_add_square(&p->layers,
                       &p_block->tape,
                       p_other,
                       p_block->v_tape_scratch,
                       v_square);
  }
  for (size_t i = 0; p->has_aux && i < p_block->tape.n_row; ++i) {
    const double t = p_block->v_slope[i];
    if (v_gradient != NULL) {
      v_gradient[at] += t;
    }
    if (v_square != NULL) {
      v_square[at] += t * t;
    }
  }
}

static enum tb_status network_gradient(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       const struct tb_reference* p_reference,
                                       const struct tb_sums* p_sums) {
  const struct network* p = p_model->p_self;
  const bool has_other = p_reference != NULL;
  const bool wants_gradient =
      p_sums->v_gradient != NULL || p_sums->v_square != NULL;
  const struct network_point point = network_point_at(p_model, v_theta);
  const struct network_point at =
      has_other ? network_point_at(p_model, p_reference->v_theta) : point;
  struct network_block block = network_block_at(p, p_work->p_scratch);
  double log_lik = 0;

  for (size_t b = 0; b < p_batch->n_batch; b += p->layers.n_block) {
    const struct tb_batch part = tb_batch_part(p_batch, b, p->layers.n_block);
    network_load(p, &part, &block);
    network_evaluate(p, &point, &block, &block.tape, block.v_slope);
    for (size_t i = 0; i < block.tape.n_row; ++i) {
      log_lik += block.v_weight[i] * block.v_log_lik[i];
    }
    if (wants_gradient) {
      network_backward(p, &point, has_other ? &at : NULL, true, &block);
      network_add(p_model,
                  &block,
                  has_other,
                  p_sums->v_gradient,
                  p_sums->v_square);
    }
  }
  if (p_sums->p_log_lik != NULL) {
    *p_sums->p_log_lik += log_lik;
  }
  return TB_STATUS_ok;
}

static enum tb_status
network_square_norms(const struct tb_model* p_model,
                     const struct tb_workspace* p_work,
                     const double* v_theta,
                     const struct tb_batch* p_batch,
                     const struct tb_reference* p_reference,
                     double* v_square,
                     double* v_sum) {
  const struct network* p = p_model->p_self;
  const bool has_other = p_reference != NULL;
  const struct network_point point = network_point_at(p_model, v_theta);
  const struct network_point at =
      has_other ? network_point_at(p_model, p_reference->v_theta) : point;
  struct network_block block = network_block_at(p, p_work->p_scratch);

  for (size_t b = 0; b < p_batch->n_batch; b += p->layers.n_block) {
    const struct tb_batch part = tb_batch_part(p_batch, b, p->layers.n_block);
    network_load(p, &part, &block);
    network_evaluate(p, &point, &block, &block.tape, block.v_slope);
    network_backward(p, &point, has_other ? &at : NULL, false, &block);
    tb_tape_square_norms(&p->layers,
                         &block.tape,
                         has_other ? &block.other : NULL,
                         block.v_tape_scratch,
                         v_square + b);
    for (size_t i = 0; p->has_aux && i < block.tape.n_row; ++i) {
      v_square[b + i] += block.v_slope[i] * block.v_slope[i];
    }
    if (v_sum != NULL) {
      network_add(p_model, &block, has_other, v_sum, NULL);
    }
  }
  return TB_STATUS_ok;
}

static enum tb_status network_log_lik(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      double* v_out) {
  const struct network* p = p_model->p_self;
  const struct network_point point = network_point_at(p_model, v_theta);
  struct network_block block = network_block_at(p, p_work->p_scratch);
  for (size_t b = 0; b < p_batch->n_batch; b += p->layers.n_block) {
    const struct tb_batch part = tb_batch_part(p_batch, b, p->layers.n_block);
    network_load(p, &part, &block);
    network_evaluate(p, &point, &block, &block.tape, block.v_slope);
    memcpy(v_out + b, block.v_log_lik, block.tape.n_row * sizeof(double));
  }
  return TB_STATUS_ok;
}

static enum tb_status network_prior(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_prior) {
  const struct network* p = p_model->p_self;
  (void)p_work;
  const double log_prior = tb_prior_gradient(&p->prior, v_theta, v_gradient);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

static bool network_is_outside(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               const double* v_theta) {
  const struct network* p = p_model->p_self;
  (void)p_work;
  return tb_prior_is_outside(&p->prior, v_theta);
}

static double network_lipschitz_prior(const struct tb_model* p_model) {
  const struct network* p = p_model->p_self;
  return tb_prior_lipschitz(&p->prior, NULL);
}

/* s -> its natural scale */
static void network_constrain(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_natural) {
  const struct network* p = p_model->p_self;
  const size_t at = p_model->n_dim - 1;
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  if (p->has_aux) {
    tb_response_natural(&p->response, v_theta + at, v_natural + at);
    v_natural[at] *= p->aux_unit;
  }
}

/* ------------------------------------------------------------------- life */

static size_t network_memory(const struct tb_model* p_model) {
  const struct network* p = p_model->p_self;
  return p->store.type->memory(&p->store) +
         p->n_y * p_model->n_data * sizeof(double);
}

static void network_destroy(struct tb_model* p_model) {
  struct network* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_store_destroy(&p->store);
  tb_big_free(p->v_y, p->n_y * p_model->n_data * sizeof(double));
  tb_prior_destroy(&p->prior);
  free(p);
  p_model->p_self = NULL;
}

/* Parameters: "x" (n_data x n_0), "y" (n_data x n_y), "widths" (n_0, .., n_L),
 * "activation" (number of the enum), "response" (its place in the registry),
 * "aux", "aux_unit", and those of the prior. */
static enum tb_status network_create(struct tb_model* p_model,
                                     const struct tb_params* p_params,
                                     const struct tb_shelf* p_shelf) {
  const struct tb_param* p_x = tb_params_find(p_params, "x");
  const struct tb_param* p_y = tb_params_find(p_params, "y");
  const struct tb_param* p_widths = tb_params_find(p_params, "widths");
  const double activation = tb_params_number(p_params, "activation", -1);
  const double place = tb_params_number(p_params, "response", -1);
  const double unit = tb_params_number(p_params, "aux_unit", 1);
  struct tb_response response;
  struct tb_layers layers;

  if (p_x == NULL || p_y == NULL || p_y->v_value == NULL || p_widths == NULL ||
      p_x->n_row == 0 || !(activation >= 0) ||
      activation >= TB_ACTIVATION_count || !(unit > 0) ||
      !tb_response_read(&response, p_params) || response.type->n_aux > 1 ||
      !tb_layers_create(&layers,
                        (enum tb_activation)activation,
                        p_widths->v_value,
                        p_widths->n_value)) {
    return TB_STATUS_argument;
  }
  const bool has_aux = tb_response_n_sampled(&response) > 0;
  const size_t n_data = p_x->n_row, n_in = layers.v_width[0];
  const size_t n_out = layers.v_width[layers.n_layer];
  const size_t n_y = tb_response_n_y(response.type);
  if (p_x->n_value != n_data * n_in || p_y->n_value != n_data * n_y ||
      n_out != tb_response_n_predictor(response.type, n_out) ||
      response.type->outside(p_y->v_value, n_data, (double)n_out) < n_data) {
    return TB_STATUS_argument;
  }
  struct network* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->n_data = n_data;
  p_model->n_dim = tb_layers_n_weight(&layers) + has_aux;
  p_model->n_natural = p_model->n_dim;
  p_model->is_natural = !has_aux;
  p_model->p_frame = NULL;
  p->layers = layers;
  p->response = response;
  p->n_y = n_y;
  p->has_aux = has_aux;
  p->aux_unit = unit;

  enum tb_status status = tb_prior_create(&p->prior, p_params, p_model->n_dim);
  if (status == TB_STATUS_ok) {
    status = tb_shelf_take(p_shelf, p_x, 1, &p->store);
  }
  if (status == TB_STATUS_ok) {
    p->v_y = tb_big_alloc(n_y * n_data * sizeof(double));
    status = p->v_y == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  }
  if (status != TB_STATUS_ok) {
    network_destroy(p_model);
    return status;
  }
  memcpy(p->v_y, p_y->v_value, n_y * n_data * sizeof(double));

  const double v_option[] = {activation, place, response.v_known[0], unit};
  uint64_t hash = tb_hash_doubles((uint64_t)n_data, v_option, 4);
  hash = tb_hash_param(hash, p_widths);
  hash = tb_hash_doubles(hash, p->prior.v_kind, 3 * p_model->n_dim);
  hash = tb_hash_param(hash, tb_params_find(p_params, "prior_shape"));
  p_model->fingerprint = tb_hash_param(tb_hash_word(hash, p->store.hash), p_y);
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_network = {
    .name = "network",
    .citation = "Neal (1996), Bayesian Learning for Neural Networks",
    .create = network_create,
    .destroy = network_destroy,
    .prior = network_prior,
    .gradient = network_gradient,
    .workspace_size = network_workspace_size,
    .log_lik = network_log_lik,
    .square_norms = network_square_norms,
    .is_outside = network_is_outside,
    .lipschitz_prior = network_lipschitz_prior,
    .constrain = network_constrain,
    .memory = network_memory,
};
