/* Times to an event with a hazard that is constant in pieces of time, and
 * multiplied by e^eta.
 *
 *   h_i(t)   = e^{alpha_k + eta_i} in piece k, eta_i = x_i^T beta + offset_i
 *   alpha    = Z u,  theta = (beta, u)
 *   l_i      = w_i [d_i (alpha_k(i) + eta_i) - e^eta_i sum_k D_ik e^alpha_k]
 *   g_i      = (r_i x_i, Z^T s_i),  r_i = d_i - Lambda_i,
 *              s_ik = d_i 1[k = k(i)] - D_ik e^{alpha_k + eta_i}
 *
 * with D_ik how long row i is at risk in piece k, k(i) that of its end, d_i
 * whether it ends with the event, and Lambda_i = e^eta_i sum_k D_ik e^alpha_k
 * its cumulative hazard. Rows are not split by piece: sums of D_ik e^alpha_k
 * are differences of the hazard's integral, which is tabulated once a place.
 *
 * Strata have pieces of their own, one stratum's after the other's, and each
 * begins at time 0: a row is at risk in those of its stratum alone, which a
 * column of x says, 1 in its rows and 0 in others. Integrals of different
 * strata are never compared, so that what is before the first piece of one is
 * left in.
 *
 * Friedman (1982), Piecewise exponential models for survival data with
 * covariates, Annals of Statistics 10, 101.
 *
 *   symbol            variable  shape              owner
 *   x_i               store     n_data x n_padded  pieces
 *   D_i., d_i, w_i    v_row     n_data             pieces
 *   beginnings        v_begin   n_piece            pieces
 *   strata of pieces  v_first   n_stratum + 1      pieces
 *   Z                 v_basis   n_piece x n_step   pieces
 */
#include "models/pieces-inside.h"

#include "base/blas.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- slots */

static enum tb_status pieces_prior(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_prior) {
  const struct pieces* p = p_model->p_self;
  (void)p_work;
  const double log_prior = tb_prior_gradient(&p->prior, v_theta, v_gradient);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

static bool pieces_prior_quadratic(const struct tb_model* p_model,
                                   const double* v_theta,
                                   double* v_hessian) {
  const struct pieces* p = p_model->p_self;
  return tb_prior_quadratic(&p->prior, v_theta, v_hessian);
}

static bool pieces_is_outside(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta) {
  const struct pieces* p = p_model->p_self;
  (void)p_work;
  return p->prior.is_bounded && tb_prior_is_outside(&p->prior, v_theta);
}

static double pieces_lipschitz_prior(const struct tb_model* p_model) {
  const struct pieces* p = p_model->p_self;
  return tb_prior_lipschitz(&p->prior, NULL);
}

/* ------------------------------------------------------------------- blocks */

/* the model's own scratch of a chain */
struct own {
  double* v_x;     /* n_coef x PIECES_BLOCK */
  double* v_eta;   /* PIECES_BLOCK */
  double* v_table; /* TB_PLACE_count tables */
  double* v_sum;   /* n_piece: of scores, over the pass */
  double* v_step;  /* n_step */
};

static size_t own_size(const struct pieces* p) {
  return (p->n_coef + 1) * PIECES_BLOCK +
         TB_PLACE_count * pieces_table_size(p) + p->n_piece + p->n_step;
}

static struct own own_at(const struct pieces* p, void* p_own) {
  struct own own = {.v_x = p_own};
  own.v_eta = own.v_x + p->n_coef * PIECES_BLOCK;
  own.v_table = own.v_eta + PIECES_BLOCK;
  own.v_sum = own.v_table + TB_PLACE_count * pieces_table_size(p);
  own.v_step = own.v_sum + p->n_piece;
  return own;
}

static struct tb_block_shape pieces_shape(const struct tb_model* p_model) {
  const struct pieces* p = p_model->p_self;
  return (struct tb_block_shape){.n_row = PIECES_BLOCK,
                                 .n_score = 1 + p->n_piece,
                                 .n_own = own_size(p) * sizeof(double)};
}

static void pieces_begin(const struct tb_model* p_model,
                         const struct tb_block* p_block) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  memset(own.v_sum, 0, p->n_piece * sizeof(double));
}

static struct pieces_table table_of(const struct pieces* p,
                                    const struct own* p_own,
                                    enum tb_block_place place) {
  return pieces_table_at(p,
                         p_own->v_table + (size_t)place * pieces_table_size(p));
}

static void pieces_go(const struct tb_model* p_model,
                      const struct tb_block* p_block,
                      enum tb_block_place place) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  const struct pieces_table table = table_of(p, &own, place);
  pieces_set_table(p, p_block->v_theta[place] + p->n_coef, &table);
}

static void pieces_load(const struct tb_model* p_model,
                        const struct tb_block* p_block) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  tb_block_gather(p_block, &p->store, p->n_coef, own.v_x);
  for (size_t i = 0; i < p_block->n_row; ++i) {
    p_block->v_weight[i] *= p->v_row[tb_block_row(p_block, i)].weight;
  }
}

/* scores without weights: (r, s) */
static void set_scores(const struct pieces* p,
                       const struct pieces_table* p_table,
                       const struct pieces_row* p_row,
                       double eta,
                       double* v_score) {
  const double mass = exp(eta);
  memset(v_score, 0, (1 + p->n_piece) * sizeof(double));
  v_score[0] = p_row->event - mass * pieces_exposure(p_table, p_row);
  v_score[1 + p_row->last] = p_row->event;
  for (size_t k = p_row->first; k <= p_row->last; ++k) {
    v_score[1 + k] -= mass * p_table->v_rate[k] * pieces_stay(p, p_row, k);
  }
}

static void pieces_look(const struct tb_model* p_model,
                        const struct tb_block* p_block,
                        enum tb_block_place place,
                        const struct tb_block_look* p_look) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  const struct pieces_table table = table_of(p, &own, place);
  pieces_predict(p,
                 p_block->v_theta[place],
                 own.v_x,
                 p->n_coef,
                 p_block->n_row,
                 own.v_eta);
  for (size_t i = 0; i < p_block->n_row; ++i) {
    const struct pieces_row* p_row = &p->v_row[tb_block_row(p_block, i)];
    const double eta = own.v_eta[i] + p_row->offset;
    if (p_look->v_log_lik != NULL) {
      p_look->v_log_lik[i] = p_row->event * (table.v_alpha[p_row->last] + eta) -
                             exp(eta) * pieces_exposure(&table, p_row);
    }
    if (p_look->v_score != NULL) {
      set_scores(p, &table, p_row, eta, p_look->v_score + i * (1 + p->n_piece));
    }
  }
}

/* ||a_i||^2 = r^2 ||x_i||^2 + ||Z^T s||^2 */
static void pieces_square(const struct tb_model* p_model,
                          const struct tb_block* p_block,
                          double* v_square) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  for (size_t i = 0; i < p_block->n_row; ++i) {
    const double* v_score = p_block->v_score + i * (1 + p->n_piece);
    double x2 = 0, s2 = 0;
    for (size_t j = 0; j < p->n_coef; ++j) {
      x2 += own.v_x[i * p->n_coef + j] * own.v_x[i * p->n_coef + j];
    }
    memset(own.v_step, 0, p->n_step * sizeof(double));
    pieces_pull(p, v_score + 1, own.v_step);
    for (size_t j = 0; j < p->n_step; ++j) {
      s2 += own.v_step[j] * own.v_step[j];
    }
    v_square[i] = v_score[0] * v_score[0] * x2 + s2;
  }
}

static void pieces_add(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       const struct tb_sums* p_sums) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  const size_t n = p->n_coef, n_score = 1 + p->n_piece;
  if (p_sums->v_gradient != NULL) {
    tb_gemm_op('N',
               'T',
               n,
               1,
               p_block->n_row,
               own.v_x,
               n,
               p_block->v_score,
               n_score,
               1,
               p_sums->v_gradient,
               n);
  }
  for (size_t i = 0; i < p_block->n_row; ++i) {
    const double* v_score = p_block->v_score + i * n_score;
    for (size_t k = 0; k < p->n_piece; ++k) {
      own.v_sum[k] += v_score[1 + k];
    }
    if (p_sums->v_square != NULL) {
      for (size_t j = 0; j < n; ++j) {
        const double g = v_score[0] * own.v_x[i * n + j];
        p_sums->v_square[j] += g * g;
      }
      memset(own.v_step, 0, p->n_step * sizeof(double));
      pieces_pull(p, v_score + 1, own.v_step);
      for (size_t j = 0; j < p->n_step; ++j) {
        p_sums->v_square[n + j] += own.v_step[j] * own.v_step[j];
      }
    }
  }
}

static void pieces_end(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       const struct tb_sums* p_sums) {
  const struct pieces* p = p_model->p_self;
  const struct own own = own_at(p, p_block->p_own);
  if (p_sums->v_gradient != NULL) {
    pieces_pull(p, own.v_sum, p_sums->v_gradient + p->n_coef);
  }
}

static const struct tb_model_blocks pieces_blocks = {
    .shape = pieces_shape,
    .begin = pieces_begin,
    .go = pieces_go,
    .load = pieces_load,
    .look = pieces_look,
    .square = pieces_square,
    .add = pieces_add,
    .end = pieces_end,
};

/* -------------------------------------------------------------------- life */

static void pieces_destroy(struct tb_model* p_model) {
  struct pieces* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_store_destroy(&p->store);
  tb_prior_destroy(&p->prior);
  tb_big_free(p->v_begin, p->n_byte);
  free(p);
  p_model->p_self = NULL;
}

static size_t pieces_memory(const struct tb_model* p_model) {
  const struct pieces* p = p_model->p_self;
  return p->store.type->memory(&p->store) + p->n_byte;
}

/* Parameters: "x" (n_data x n_coef), those of take_rows(), "cuts" (n_piece - S:
 * where a piece ends and the next begins, a stratum's after the other's),
 * "basis" (n_piece x n_step), those of tb_prior, and of S > 1 strata "n_cut"
 * (S: how many of the cuts each has) and "stratum" (n_coef: whose rows, counted
 * from 0, have a 1 in a column; 0: it tells of none; rows without are those of
 * the first). */
static enum tb_status pieces_create(struct tb_model* p_model,
                                    const struct tb_params* p_params,
                                    const struct tb_shelf* p_shelf) {
  struct pieces* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->p_frame = NULL;
  const enum tb_status status = pieces_take(p_model, p_params, p_shelf);
  if (status != TB_STATUS_ok) {
    pieces_destroy(p_model);
    return status;
  }
  uint64_t hash = tb_hash_word((uint64_t)p_model->n_data, p->store.hash);
  hash = tb_hash_doubles(hash, p->prior.v_kind, 4 * p_model->n_dim);
  const char* const v_name[] = {"y",
                                "weights",
                                "offset",
                                "cuts",
                                "basis",
                                "n_cut",
                                "stratum",
                                "prior_shape"};
  for (size_t k = 0; k < sizeof(v_name) / sizeof(*v_name); ++k) {
    hash = tb_hash_param(hash, tb_params_find(p_params, v_name[k]));
  }
  p_model->fingerprint = hash;
  return TB_STATUS_ok;
}

static size_t pieces_workspace_size(const struct tb_model* p_model,
                                    size_t n_batch) {
  const struct pieces* p = p_model->p_self;
  return tb_max(tb_blocks_workspace_size(p_model, n_batch),
                pieces_remainder_size(p) * sizeof(double));
}

const struct tb_model_type tb_model_pieces = {
    .name = "pieces",
    .citation = "Friedman (1982), Annals of Statistics 10, 101",
    .flags = TB_MODEL_SCALAR,
    .create = pieces_create,
    .destroy = pieces_destroy,
    .prior = pieces_prior,
    .gradient = tb_blocks_gradient,
    .workspace_size = pieces_workspace_size,
    .is_outside = pieces_is_outside,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .add_scalar = tb_blocks_add_scalar,
    .blocks = &pieces_blocks,
    .pass_size = pieces_pass_size,
    .curvature = pieces_curvature,
    .curvature_prior = pieces_curvature_prior,
    .largest_predictor = pieces_largest_predictor,
    .log_lik_many = pieces_log_lik_many,
    .lipschitz_prior = pieces_lipschitz_prior,
    .expansion = &tb_pieces_expansion,
    .prior_quadratic = pieces_prior_quadratic,
    .memory = pieces_memory,
};
