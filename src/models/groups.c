/* Multilevel regressions with one grouping factor, each group's effects
 * integrated out; groups-inside.h has the model and the symbols, groups-look.c
 * the integral. Normal responses are kept as few rows: the triangular factor of
 * (x, z, y) of a group has the same sums of squares as its rows, and rows
 * without residual stand for those that are left. */
#include "models/groups-inside.h"

#include "base/clip.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"
#include "models/blocks.h"
#include "models/groups-rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of steps: those that are moves of the model's own */
#define MOVES 0.2

/* -------------------------------------------------------------------- slots */

static enum tb_status groups_prior(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_prior) {
  const struct groups* p = p_model->p_self;
  (void)p_work;
  double log_prior = tb_prior_gradient(&p->prior, v_theta, v_gradient);
  log_prior += groups_covariance_prior(p, v_theta, v_gradient, NULL, 0);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

static bool groups_is_outside(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta) {
  const struct groups* p = p_model->p_self;
  (void)p_work;
  return p->prior.is_bounded && tb_prior_is_outside(&p->prior, v_theta);
}

/* ------------------------------------------------------------------- blocks */

/* a chain's scratch, its arrays behind it; a group is a block */
struct groups_pass {
  struct groups_point v_point[TB_PLACE_count];
  struct groups_scratch scratch;
};

static struct tb_block_shape groups_shape(const struct tb_model* p_model) {
  return (struct tb_block_shape){.n_row = 1,
                                 .n_score = p_model->n_dim,
                                 .n_own = tb_align(sizeof(struct groups_pass)) +
                                          groups_scratch_size(p_model, false)};
}

static void groups_begin(const struct tb_model* p_model,
                         const struct tb_block* p_block) {
  struct groups_pass* p = p_block->p_own;
  char* p_scratch = (char*)p + tb_align(sizeof(*p));
  p->scratch = groups_scratch_at(p_model, p_scratch, false);
}

static void groups_go(const struct tb_model* p_model,
                      const struct tb_block* p_block,
                      enum tb_block_place place) {
  struct groups_pass* p = p_block->p_own;
  p->v_point[place] = groups_point_at(p_model->p_self,
                                      p_block->v_theta[place],
                                      p_block->is_complete);
}

/* the score of a group is its gradient */
static void groups_see(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       enum tb_block_place place,
                       const struct tb_block_look* p_look) {
  const struct groups_pass* p = p_block->p_own;
  const struct groups_look look = {.is_complete = p_block->is_complete,
                                   .p_log_lik = p_look->v_log_lik,
                                   .v_gradient = p_look->v_score};
  groups_look(p_model,
              &p->v_point[place],
              &p->scratch,
              tb_block_row(p_block, 0),
              &look);
}

static void groups_square(const struct tb_model* p_model,
                          const struct tb_block* p_block,
                          double* v_square) {
  *v_square = 0;
  for (size_t j = 0; j < p_model->n_dim; ++j) {
    *v_square += p_block->v_score[j] * p_block->v_score[j];
  }
}

static void groups_add(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       const struct tb_sums* p_sums) {
  tb_sums_add(p_sums, p_model->n_dim, 1, p_block->v_score);
}

static const struct tb_model_blocks groups_blocks = {
    .shape = groups_shape,
    .begin = groups_begin,
    .go = groups_go,
    .look = groups_see,
    .square = groups_square,
    .add = groups_add,
};

/* --------------------------------------------------------------- variables */

/* lambda -> standard deviations, then correlations in the places of what is
 * below the diagonal; s -> its natural scale */
static void groups_constrain(const struct tb_model* p_model,
                             const double* v_theta,
                             double* v_natural) {
  const struct groups* p = p_model->p_self;
  const struct groups_point point = groups_point_at(p, v_theta, false);
  double v_sd[GROUPS_EFFECT], factor[GROUPS_EFFECT][GROUPS_EFFECT];
  groups_whole_factor(p, &point, factor);
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  for (size_t a = 0; a < p->n_effect; ++a) {
    double square = 0;
    for (size_t c = 0; c < p->n_effect; ++c) {
      square += factor[a][c] * factor[a][c];
    }
    v_sd[a] = v_natural[p->n_coef + a] = sqrt(square);
  }
  for (size_t l = p->n_effect; l < p->n_lambda; ++l) {
    const size_t a = p->v_a[l], b = p->v_b[l];
    double product = 0;
    for (size_t c = 0; c < p->n_effect; ++c) {
      product += factor[a][c] * factor[b][c];
    }
    v_natural[p->n_coef + l] = product / (v_sd[a] * v_sd[b]);
  }
  if (p->has_aux) {
    tb_response_natural(&p->response,
                        v_theta + p_model->n_dim - 1,
                        v_natural + p_model->n_dim - 1);
  }
}

static size_t groups_memory(const struct tb_model* p_model) {
  const struct groups* p = p_model->p_self;
  return p->store.type->memory(&p->store) + p->n_byte +
         (p_model->n_data + 1) * sizeof(size_t);
}

/* --------------------------------------------------------------------- life */

static void groups_destroy(struct tb_model* p_model) {
  struct groups* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  struct groups_rows rows = {.store = p->store,
                             .region = p->region,
                             .v_first = p->v_first,
                             .v_number = p->v_number,
                             .n_byte = p->n_byte,
                             .v_constant = p->v_constant,
                             .v_spare = p->v_spare};
  groups_rows_destroy(&rows);
  tb_prior_destroy(&p->prior);
  free(p->v_node);
  free(p);
  p_model->p_self = NULL;
}

/* v_a, v_b: the diagonal first */
static void number_lambda(struct groups* p, bool is_correlated) {
  size_t l = 0;
  for (size_t a = 0; a < p->n_effect; ++a) {
    p->v_a[l] = p->v_b[l] = a;
    p->at[a][a] = l++;
  }
  for (size_t a = 1; is_correlated && a < p->n_effect; ++a) {
    for (size_t b = 0; b < a; ++b) {
      p->v_a[l] = a;
      p->v_b[l] = b;
      p->at[a][b] = l++;
    }
  }
  p->n_lambda = l;
  p->is_correlated = l > p->n_effect;
}

/* T, and A = T^-T; false: T is not regular */
static bool set_span(struct groups* p, const struct tb_param* p_span) {
  const size_t q = p->n_effect;
  if (p_span != NULL && p_span->n_value != q * q) {
    return false;
  }
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      p->span[a][b] = p_span == NULL ? a == b : p_span->v_value[a + b * q];
    }
    if (!(p->span[a][a] > 0)) {
      return false;
    }
  }
  /* the rows of A^T = T^-1 by forward substitution */
  for (size_t c = 0; c < q; ++c) {
    for (size_t a = c; a < q; ++a) {
      double sum = a == c;
      for (size_t b = c; b < a; ++b) {
        sum -= p->span[a][b] * p->back[c][b];
      }
      p->back[c][a] = sum / p->span[a][a];
    }
  }
  return true;
}

static enum tb_status set_shape(struct groups* p,
                                const struct tb_params* p_params) {
  const struct tb_param* p_z = tb_params_find(p_params, "z");
  const struct tb_param* p_scale = tb_params_find(p_params, "sd_scale");
  const double kind = tb_params_number(p_params, "sd_kind", 0);
  if (!tb_response_read(&p->response, p_params) ||
      tb_response_n_sampled(&p->response) > 1 ||
      tb_response_n_predictor(p->response.type, 0) != 1) {
    return TB_STATUS_argument;
  }
  p->has_aux = tb_response_n_sampled(&p->response) == 1;
  p->covariance.df = tb_params_number(p_params, "sd_df", 3);
  p->covariance.eta = tb_params_number(p_params, "lkj", 1);
  if (p_z == NULL || p_z->n_value == 0 || p_z->n_value > GROUPS_EFFECT ||
      p_scale == NULL || p_scale->n_value != p_z->n_value ||
      !(p->covariance.df > 0) || !(p->covariance.eta > 0) ||
      !(kind >= 0 && kind <= 3)) {
    return TB_STATUS_argument;
  }
  p->covariance.kind = (enum groups_sd_kind)kind;
  p->n_effect = p_z->n_value;
  for (size_t a = 0; a < p->n_effect; ++a) {
    p->v_z[a] = (size_t)p_z->v_value[a];
    p->covariance.v_scale[a] = p_scale->v_value[a];
    if (!(p->covariance.v_scale[a] > 0)) {
      return TB_STATUS_argument;
    }
  }
  number_lambda(p, tb_params_number(p_params, "correlated", 1) != 0);
  return set_span(p, tb_params_find(p_params, "span")) ? TB_STATUS_ok
                                                       : TB_STATUS_argument;
}

static enum tb_status set_parts(struct tb_model* p_model,
                                const struct tb_params* p_params,
                                const struct tb_shelf* p_shelf) {
  struct groups* p = p_model->p_self;
  const struct tb_param* p_nodes = tb_params_find(p_params, "nodes");
  size_t n_coef;
  enum tb_status status = set_shape(p, p_params);
  if (status != TB_STATUS_ok) {
    return status;
  }
  if (p_nodes == NULL || p_nodes->n_value < 2 || p_nodes->n_value % 2 != 0 ||
      !tb_params_count(p_params, "n_coef", 1u << 20, 0, &n_coef)) {
    return TB_STATUS_argument;
  }
  p->n_coef = n_coef;
  p_model->n_dim = p_model->n_natural = n_coef + p->n_lambda + p->has_aux;
  status = tb_prior_create(&p->prior, p_params, p_model->n_dim);
  if (status == TB_STATUS_ok) {
    status = groups_set_nodes(p_model, p_nodes->v_value, p_nodes->n_value / 2);
  }
  if (status == TB_STATUS_ok) {
    status = groups_take_rows(p_model, p_params, p_shelf);
  }
  return status;
}

/* of all that the density is made of, the nodes left out */
static uint64_t fingerprint(const struct tb_model* p_model,
                            const struct tb_params* p_params) {
  const struct groups* p = p_model->p_self;
  uint64_t hash = tb_hash_word((uint64_t)p_model->n_data, p->store.hash);
  hash = tb_hash_doubles(hash, p->prior.v_kind, 4 * p_model->n_dim);
  hash = tb_hash_doubles(hash, p->covariance.v_scale, p->n_effect);
  const char* const v_name[] = {"response",
                                "aux",
                                "z",
                                "span",
                                "lkj",
                                "correlated",
                                "sd_kind",
                                "sd_df",
                                "prior_shape"};
  for (size_t k = 0; k < sizeof(v_name) / sizeof(*v_name); ++k) {
    hash = tb_hash_param(hash, tb_params_find(p_params, v_name[k]));
  }
  for (size_t g = 0; g <= p_model->n_data; ++g) {
    hash = tb_hash_word(hash, p->v_first[g]);
  }
  const size_t n_spare = p->v_spare == NULL ? 0 : p_model->n_data;
  hash = tb_hash_doubles(hash, p->v_spare, n_spare);
  hash = tb_hash_doubles(hash,
                         p->v_constant,
                         p->v_constant == NULL ? 0 : p_model->n_data);
  hash = tb_hash_word(hash, p->v_offset != NULL);
  return tb_hash_doubles(hash, p->v_number, p->n_byte / sizeof(double));
}

/* Parameters: "x" (n_row x n_col, groups' rows after each other: the columns of
 * beta first), "n_coef", "z" (numbers of the columns of z, from 0), "span" (T,
 * q x q; not there: I), "first" (n_group + 1: where groups begin), "y",
 * "weights", "offset", or "rows", the address of struct groups_rows, in the
 * place of five of these; "nodes" (K x 2),
 * "response", "aux", "correlated", "lkj", "sd_kind",
 * "sd_df", "sd_scale" (q), and those of tb_prior, flat in lambda. */
static enum tb_status groups_create(struct tb_model* p_model,
                                    const struct tb_params* p_params,
                                    const struct tb_shelf* p_shelf) {
  struct groups* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->p_frame = NULL;
  const enum tb_status status = set_parts(p_model, p_params, p_shelf);
  if (status != TB_STATUS_ok) {
    groups_destroy(p_model);
    return status;
  }
  p_model->fingerprint = fingerprint(p_model, p_params);
  for (size_t a = 0; p->is_correlated && a < p->n_effect; ++a) {
    for (size_t b = a + 1; b < p->n_effect; ++b) {
      if (p->back[a][b] != 0) {
        p_model->move_share = MOVES;
      }
    }
  }
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_groups = {
    .name = "groups",
    .citation = "Pinheiro & Bates (1995), JCGS 4:12",
    .create = groups_create,
    .destroy = groups_destroy,
    .prior = groups_prior,
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .is_outside = groups_is_outside,
    .move = groups_move,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .blocks = &groups_blocks,
    .pass_size = groups_pass_size,
    .curvature = groups_curvature,
    .curvature_prior = groups_curvature_prior,
    .weights = groups_weights,
    .constrain = groups_constrain,
    .expansion = &groups_expansion,
    .memory = groups_memory,
};
