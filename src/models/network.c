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
#include "base/arena.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/blocks.h"
#include "models/layers.h"
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

/* a block of rows in a chain's scratch, its arrays behind it */
struct network_block {
  struct network_point v_point[TB_PLACE_count];
  struct tb_tape v_tape[TB_PLACE_count];
  double* v_slope[TB_PLACE_count]; /* n_row: d log p / d s */
  double* v_tape_scratch;          /* tb_tape_scratch() */
  double* v_input;                 /* n_row x n_padded, rows gathered */
  double* v_y; /* n_row x n_y, in columns of the rows there are */
};

/* ------------------------------------------------------------------ blocks */

static void network_lay_out(const struct network* p,
                            struct tb_arena* p_arena,
                            struct network_block* p_block) {
  const size_t n_row = p->layers.n_block;
  for (size_t k = 0; k < TB_PLACE_count; ++k) {
    double* v = tb_arena_doubles(p_arena, tb_tape_size(&p->layers));
    if (v != NULL) {
      p_block->v_tape[k] = tb_tape_at(&p->layers, v);
    }
    p_block->v_slope[k] = tb_arena_doubles(p_arena, n_row);
  }
  p_block->v_tape_scratch =
      tb_arena_doubles(p_arena, tb_tape_scratch(&p->layers));
  p_block->v_input = tb_arena_doubles(p_arena, n_row * p->store.n_padded);
  p_block->v_y = tb_arena_doubles(p_arena, n_row * p->n_y);
}

static struct tb_block_shape network_shape(const struct tb_model* p_model) {
  const struct network* p = p_model->p_self;
  struct network_block block;
  struct tb_arena arena = {NULL, tb_align(sizeof(block))};
  network_lay_out(p, &arena, &block);
  return (struct tb_block_shape){.n_row = p->layers.n_block,
                                 .n_own = arena.n_used};
}

static void network_begin(const struct tb_model* p_model,
                          const struct tb_block* p_block) {
  struct network_block* p_own = p_block->p_own;
  struct tb_arena arena = {(char*)p_own, tb_align(sizeof(*p_own))};
  network_lay_out(p_model->p_self, &arena, p_own);
}

static void network_go(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       enum tb_block_place place) {
  const struct network* p = p_model->p_self;
  struct network_block* p_own = p_block->p_own;
  const double* v_theta = p_block->v_theta[place];
  const double* v_aux = v_theta + p_model->n_dim - p->has_aux;
  p_own->v_point[place] =
      (struct network_point){v_theta, tb_response_at(&p->response, v_aux)};
}

static void network_load(const struct tb_model* p_model,
                         const struct tb_block* p_block) {
  const struct network* p = p_model->p_self;
  const struct tb_store* p_store = &p->store;
  const struct tb_batch* p_batch = p_block->p_batch;
  struct network_block* p_own = p_block->p_own;
  const size_t n_row = p_block->n_row, n_padded = p_store->n_padded;
  const double* v_input = p_own->v_input;
  if (p_batch->v_index == NULL) {
    const size_t first = tb_block_row(p_block, 0);
    v_input = p_store->type->block(p_store, first, n_row, p_own->v_input);
  }
  for (size_t k = 0; k < n_row; ++k) {
    const size_t i = tb_block_row(p_block, k);
    if (p_batch->v_index != NULL) {
      double* v_to = p_own->v_input + k * n_padded;
      const double* v_row = p_store->type->block(p_store, i, 1, v_to);
      memmove(v_to, v_row, n_padded * sizeof(double));
    }
    for (size_t j = 0; j < p->n_y; ++j) {
      p_own->v_y[j * n_row + k] = p->v_y[j * p_store->n_row + i];
    }
  }
  for (size_t k = 0; k < TB_PLACE_count; ++k) {
    p_own->v_tape[k].v_input = v_input;
    p_own->v_tape[k].n_row = n_row;
    p_own->v_tape[k].n_lead = n_padded;
  }
}

/* Outputs of a block at a place, what they say of the responses, the errors at
 * the outputs and v_slope. */
static void network_look(const struct tb_model* p_model,
                         const struct tb_block* p_block,
                         enum tb_block_place place,
                         const struct tb_block_look* p_look) {
  const struct network* p = p_model->p_self;
  struct network_block* p_own = p_block->p_own;
  const struct network_point* p_point = &p_own->v_point[place];
  struct tb_tape* p_tape = &p_own->v_tape[place];
  tb_layers_forward(&p->layers, p_point->v_theta, p_tape);
  const struct tb_response_rows rows = {
      .n_row = p_tape->n_row,
      .n_predictor = p->layers.v_width[p->layers.n_layer],
      .v_eta = tb_tape_output(&p->layers, p_tape),
      .v_y = p_own->v_y,
      .p_point = &p_point->response};
  const struct tb_response_out out = {
      .v_log_density = p_look->v_log_lik,
      .is_complete = true,
      .v_score = tb_tape_error(&p->layers, p_tape),
      .v_aux_score = p->has_aux ? p_own->v_slope[place] : NULL};
  p->response.type->evaluate(&rows, &out);
}

static const struct tb_tape* other_of(const struct tb_block* p_block) {
  const struct network_block* p_own = p_block->p_own;
  return p_block->v_theta[TB_PLACE_reference] == NULL
             ? NULL
             : &p_own->v_tape[TB_PLACE_reference];
}

/* The errors of a block run back with the multiplier of each row, at theta and
 * at the reference. */
static void network_settle(const struct tb_model* p_model,
                           const struct tb_block* p_block) {
  const struct network* p = p_model->p_self;
  struct network_block* p_own = p_block->p_own;
  struct tb_tape* v_tape = p_own->v_tape;
  const bool has_other = other_of(p_block) != NULL;
  const size_t n = p_block->n_row;
  const size_t n_out = p->layers.v_width[p->layers.n_layer];
  double* v_slope = p_own->v_slope[TB_PLACE_here];
  for (size_t i = 0; p->has_aux && i < n; ++i) {
    v_slope[i] -= has_other ? p_own->v_slope[TB_PLACE_reference][i] : 0;
    v_slope[i] *= p_block->v_weight[i];
  }
  for (size_t place = 0; place < 1 + (size_t)has_other; ++place) {
    double* v_error = tb_tape_error(&p->layers, &v_tape[place]);
    for (size_t k = 0; k < n_out; ++k) {
      for (size_t i = 0; i < n; ++i) {
        v_error[k * n + i] *= p_block->v_weight[i];
      }
    }
    tb_layers_backward(&p->layers,
                       p_own->v_point[place].v_theta,
                       &v_tape[place]);
  }
  if (has_other) {
    tb_tape_subtract(&p->layers,
                     &v_tape[TB_PLACE_here],
                     &v_tape[TB_PLACE_reference]);
  }
}

static void network_square(const struct tb_model* p_model,
                           const struct tb_block* p_block,
                           double* v_square) {
  const struct network* p = p_model->p_self;
  const struct network_block* p_own = p_block->p_own;
  const double* v_slope = p_own->v_slope[TB_PLACE_here];
  tb_tape_square_norms(&p->layers,
                       &p_own->v_tape[TB_PLACE_here],
                       other_of(p_block),
                       p_own->v_tape_scratch,
                       v_square);
  for (size_t i = 0; p->has_aux && i < p_block->n_row; ++i) {
    v_square[i] += v_slope[i] * v_slope[i];
  }
}

static void network_add(const struct tb_model* p_model,
                        const struct tb_block* p_block,
                        const struct tb_sums* p_sums) {
  const struct network* p = p_model->p_self;
  const struct network_block* p_own = p_block->p_own;
  const struct tb_tape* p_tape = &p_own->v_tape[TB_PLACE_here];
  const struct tb_tape* p_other = other_of(p_block);
  const double* v_slope = p_own->v_slope[TB_PLACE_here];
  double *v_gradient = p_sums->v_gradient, *v_square = p_sums->v_square;
  const size_t at = p_model->n_dim - 1;
  if (v_gradient != NULL) {
    tb_tape_add(&p->layers, p_tape, p_other, v_gradient);
  }
  if (v_square != NULL) {
    tb_tape_add_square(&p->layers,
                       p_tape,
                       p_other,
                       p_own->v_tape_scratch,
                       v_square);
  }
  for (size_t i = 0; p->has_aux && i < p_block->n_row; ++i) {
    if (v_gradient != NULL) {
      v_gradient[at] += v_slope[i];
    }
    if (v_square != NULL) {
      v_square[at] += v_slope[i] * v_slope[i];
    }
  }
}

static const struct tb_model_blocks network_blocks = {
    .shape = network_shape,
    .begin = network_begin,
    .go = network_go,
    .load = network_load,
    .look = network_look,
    .settle = network_settle,
    .square = network_square,
    .add = network_add,
};

/* ------------------------------------------------------------------- prior */

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

/* Parameters: "x" (n_data x n_0; without it rows come from the file on the
 * shelf, which has a column of ones after the inputs), "y" (n_data x n_y),
 * "widths" (n_0, .., n_L), "activation" (number of the enum), "response" (its
 * place in the registry), "aux", "aux_unit", and those of the prior. */
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
  const size_t n_ones = p_x != NULL; /* that the store has yet to get */
  size_t n_data, n_col;

  if (!tb_shelf_shape(p_shelf, p_x, &n_data, &n_col) || p_y == NULL ||
      p_y->v_value == NULL || p_widths == NULL || !(activation >= 0) ||
      activation >= TB_ACTIVATION_count || !(unit > 0) ||
      !tb_response_read(&response, p_params) || response.type->n_aux > 1 ||
      !tb_layers_create(&layers,
                        (enum tb_activation)activation,
                        p_widths->v_value,
                        p_widths->n_value)) {
    return TB_STATUS_argument;
  }
  const bool has_aux = tb_response_n_sampled(&response) > 0;
  const size_t n_out = layers.v_width[layers.n_layer];
  const size_t n_y = tb_response_n_y(response.type);
  if (n_col + n_ones != layers.v_width[0] + 1 || p_y->n_value != n_data * n_y ||
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
    status = tb_shelf_take(p_shelf, p_x, n_ones, &p->store);
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
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .blocks = &network_blocks,
    .is_outside = network_is_outside,
    .lipschitz_prior = network_lipschitz_prior,
    .constrain = network_constrain,
    .memory = network_memory,
};
