/* Matrix factorisation of ratings, two models.
 *
 *   R_ij ~ N(m + U_i^T V_j [+ a_i + b_j], 1 / alpha),  m the mean of the
 * ratings
 *
 *   bpmf  U_i ~ N(mu_U, diag(lambda_U)^-1), mu_U ~ N(mu_0, diag(lambda_U)^-1),
 *         and V_j likewise (Mauri & Zanella 2024, section 4.3; after
 *         Salakhutdinov & Mnih 2008, with diagonal precisions)
 *   pmf   (U_i, a_i) ~ N(0, diag(lambda_U)^-1), (V_j, b_j) likewise (Baker,
 *         Fearnhead, Fox & Nemeth 2019, section 5.2)
 *   both  lambda_k ~ Gamma(a_0, rate b_0), sampled as l = log lambda
 *
 * With W numbers in a row (K; K + 1 with a bias, the last), the rating of (i,
 * j) touches the two rows alone, with r = alpha (R_ij - its mean):
 *
 *   d log p / d (U_i, a_i) = r (V_j, 1),   d log p / d (V_j, b_j) = r (U_i, 1)
 *
 * These 2 W numbers are its "scalars": a table of them is what SAGA keeps. The
 * prior, of S_1k = sum_i (U_ik - mu_k), S_2k = sum_i (U_ik - mu_k)^2 over n
 * rows (mu = 0 and no terms in brackets for pmf):
 *
 *   d / d U_ik  = -lambda_k (U_ik - mu_k)
 *   d / d mu_k  = lambda_k [S_1k - (mu_k - mu_0)]
 *   d / d l_k   = (n [+ 1]) / 2 + a_0
 *                 - lambda_k (b_0 + S_2k / 2 [+ (mu_k - mu_0)^2 / 2])
 *
 *   symbol     variable   shape, place in theta         owner
 *   U, a       user       n_user x W, row by row        theta
 *   V, b       item       n_item x W, after it          theta
 *   mu_U, mu_V mean       2 x W, bpmf only              theta
 *   l_U, l_V   log lambda 2 x W, last                   theta
 *   (i, j, R)  v_rating   n_data                        factors
 *              or store   n_data x 3, rows of a file: i and j from 0, R - m
 */
#include "models/factors.h"
#include "base/clip.h"
#include "base/clones.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/vector.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/blocks.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* log(2 pi) / 2 */
#define HALF_LOG_2PI 0.91893853320467274178

/* ratings ahead whose rows are fetched; twice as far ahead, the ratings, which
 * say what rows they are */
#define FACTORS_AHEAD 8

struct rating {
  uint32_t user;
  uint32_t item;
  double value; /* R_ij - m */
};

struct factors {
  struct tb_factors_shape shape;
  size_t n_row[2];                            /* users, items */
  size_t at_row[2], at_mean[2], at_lambda[2]; /* in theta */
  bool has_mean;
  double alpha;
  double mu_0, a_0, b_0;
  struct rating* v_rating; /* NULL: they are in a file */
  struct tb_store store;
};

enum factors_side { SIDE_user = 0, SIDE_item = 1 };

/* ------------------------------------------------------------ short vectors */

TB_INLINE double dot(const double* v_x, const double* v_y, size_t n) {
  double sum = 0;
  size_t k = 0;
#ifdef TB_VECTOR
  tb_v4d s = {0, 0, 0, 0};
  for (; k + 4 <= n; k += 4) {
    s += *(const tb_v4d*)(v_x + k) * *(const tb_v4d*)(v_y + k);
  }
  sum = (s[0] + s[1]) + (s[2] + s[3]);
#endif
  for (; k < n; ++k) {
    sum += v_x[k] * v_y[k];
  }
  return sum;
}

/* y += c x */
TB_INLINE void add_scaled(double c, const double* v_x, size_t n, double* v_y) {
  size_t k = 0;
#ifdef TB_VECTOR
  for (; k + 4 <= n; k += 4) {
    *(tb_v4d*)(v_y + k) += c * *(const tb_v4d*)(v_x + k);
  }
#endif
  for (; k < n; ++k) {
    v_y[k] += c * v_x[k];
  }
}

/* y := c x */
TB_INLINE void set_scaled(double c, const double* v_x, size_t n, double* v_y) {
  size_t k = 0;
#ifdef TB_VECTOR
  for (; k + 4 <= n; k += 4) {
    *(tb_v4d*)(v_y + k) = c * *(const tb_v4d*)(v_x + k);
  }
#endif
  for (; k < n; ++k) {
    v_y[k] = c * v_x[k];
  }
}

TB_INLINE void prefetch_row(const double* v_row, size_t n) {
  for (size_t k = 0; k < n; k += 8) {
    TB_PREFETCH(v_row + k);
  }
}

/* U^T V [+ a + b] */
TB_INLINE double mean_of(const struct tb_factors_shape* p_shape,
                         const double* v_user,
                         const double* v_item) {
  const size_t n = p_shape->n_rank;
  const double product = dot(v_user, v_item, n);
  return p_shape->has_bias ? product + v_user[n] + v_item[n] : product;
}

/* y += c (x, 1), the gradient that the other side's row x brings */
TB_INLINE void add_row(const struct tb_factors_shape* p_shape,
                       double c,
                       const double* v_other,
                       double* v_y) {
  add_scaled(c, v_other, p_shape->n_rank, v_y);
  if (p_shape->has_bias) {
    v_y[p_shape->n_rank] += c;
  }
}

TB_CLONES
void tb_factors_map(const struct tb_factors_shape* p_shape,
                    const double* v_theta,
                    const double* v_user,
                    const double* v_item,
                    size_t n_pair,
                    double* v_out) {
  const double* v_items = v_theta + p_shape->n_user * p_shape->n_width;
  for (size_t k = 0; k < n_pair; ++k) {
    const size_t i = (size_t)v_user[k] - 1, j = (size_t)v_item[k] - 1;
    v_out[k] = mean_of(p_shape,
                       v_theta + i * p_shape->n_width,
                       v_items + j * p_shape->n_width);
  }
}

/* ------------------------------------------------------------------ ratings */

/* a rating, and where its two rows stand in theta */
struct pair {
  size_t v_at[2];
  double value;
};

TB_INLINE const double* stored_at(const struct factors* p, size_t row) {
  return p->store.v_data + row * p->store.n_padded;
}

TB_INLINE struct rating rating_at(const struct factors* p, size_t row) {
  if (p->v_rating != NULL) {
    return p->v_rating[row];
  }
  const double* v = stored_at(p, row);
  return (struct rating){.user = (uint32_t)v[SIDE_user],
                         .item = (uint32_t)v[SIDE_item],
                         .value = v[2]};
}

TB_INLINE struct pair pair_at(const struct factors* p, size_t row) {
  const struct rating rating = rating_at(p, row);
  const size_t n = p->shape.n_width;
  return (struct pair){
      .v_at = {rating.user * n, p->at_row[SIDE_item] + rating.item * n},
      .value = rating.value};
}

TB_INLINE void pair_prefetch(const struct factors* p,
                             const double* v_theta,
                             const double* v_gradient,
                             const struct tb_batch* p_batch,
                             size_t k) {
  if (k + FACTORS_AHEAD < p_batch->n_batch) {
    const size_t row = tb_batch_row(p_batch, k + FACTORS_AHEAD);
    if (p->v_rating != NULL) {
      TB_PREFETCH(&p->v_rating[row]);
    } else {
      TB_PREFETCH(stored_at(p, row));
    }
  }
  if (k >= p_batch->n_batch) {
    return;
  }
  const size_t n = p->shape.n_width;
  const struct pair next = pair_at(p, tb_batch_row(p_batch, k));
  for (size_t side = 0; side < 2; ++side) {
    prefetch_row(v_theta + next.v_at[side], n);
    prefetch_row(v_gradient + next.v_at[side], n);
  }
}

/* R_ij - its mean */
TB_INLINE double pair_error(const struct factors* p,
                            const struct pair* p_pair,
                            const double* v_theta) {
  return p_pair->value - mean_of(&p->shape,
                                 v_theta + p_pair->v_at[SIDE_user],
                                 v_theta + p_pair->v_at[SIDE_item]);
}

/* log p(R_ij | theta), from the error */
static double error_log_lik(const struct factors* p, double error) {
  return 0.5 * (log(p->alpha) - p->alpha * error * error) - HALF_LOG_2PI;
}

/* ------------------------------------------------------------------- blocks */

/* The scores of a block are its 2 W numbers a rating: v_before of them stay in
 * the first cache, too. */
enum { FACTORS_BLOCK = 8 };

static struct tb_block_shape factors_shape(const struct tb_model* p_model) {
  return (struct tb_block_shape){.n_row = FACTORS_BLOCK,
                                 .n_score = p_model->n_scalar,
                                 .n_own = FACTORS_BLOCK * sizeof(struct pair)};
}

static void factors_load(const struct tb_model* p_model,
                         const struct tb_block* p_block) {
  const struct factors* p = p_model->p_self;
  struct pair* v_pair = p_block->p_own;
  for (size_t i = 0; i < p_block->n_row; ++i) {
    v_pair[i] = pair_at(p, tb_block_row(p_block, i));
  }
}

/* r (x, 1) of the other side's row x */
TB_INLINE void set_score(const struct tb_factors_shape* p_shape,
                         double r,
                         const double* v_other,
                         double* v_score) {
  set_scaled(r, v_other, p_shape->n_rank, v_score);
  if (p_shape->has_bias) {
    v_score[p_shape->n_rank] = r;
  }
}

TB_CLONES
static void factors_look(const struct tb_model* p_model,
                         const struct tb_block* p_block,
                         enum tb_block_place place,
                         const struct tb_block_look* p_look) {
  const struct factors* p = p_model->p_self;
  const size_t n = p->shape.n_width;
  const double* v_theta = p_block->v_theta[place];
  const struct pair* v_pair = p_block->p_own;
  for (size_t i = 0; i < p_block->n_row; ++i) {
    const struct pair* p_pair = &v_pair[i];
    const double error = pair_error(p, p_pair, v_theta);
    if (p_look->v_log_lik != NULL) {
      p_look->v_log_lik[i] = error_log_lik(p, error);
    }
    for (size_t side = 0; p_look->v_score != NULL && side < 2; ++side) {
      const double* v_other = v_theta + p_pair->v_at[1 - side];
      set_score(&p->shape,
                p->alpha * error,
                v_other,
                p_look->v_score + (2 * i + side) * n);
    }
  }
}

TB_CLONES
static void factors_square(const struct tb_model* p_model,
                           const struct tb_block* p_block,
                           double* v_square) {
  const size_t n = p_model->n_scalar;
  for (size_t i = 0; i < p_block->n_row; ++i) {
    const double* v_score = p_block->v_score + i * n;
    v_square[i] = dot(v_score, v_score, n);
  }
}

TB_CLONES
static void factors_add(const struct tb_model* p_model,
                        const struct tb_block* p_block,
                        const struct tb_sums* p_sums) {
  const struct factors* p = p_model->p_self;
  const size_t n = p->shape.n_width;
  const struct pair* v_pair = p_block->p_own;
  double *v_gradient = p_sums->v_gradient, *v_square = p_sums->v_square;
  for (size_t i = 0; i < p_block->n_row; ++i) {
    const double c = p_block->v_weight[i];
    for (size_t side = 0; side < 2; ++side) {
      const double* v_half = p_block->v_score + (2 * i + side) * n;
      const size_t at = v_pair[i].v_at[side];
      if (v_gradient != NULL) {
        add_scaled(c, v_half, n, v_gradient + at);
      }
      for (size_t j = 0; v_square != NULL && j < n; ++j) {
        v_square[at + j] += c * c * v_half[j] * v_half[j];
      }
    }
  }
}

static const struct tb_model_blocks factors_blocks = {
    .weighs = true,
    .shape = factors_shape,
    .load = factors_load,
    .look = factors_look,
    .square = factors_square,
    .add = factors_add,
};

/* Nothing is subtracted, and nothing but the gradient wanted: scores are not
 * put down. */
TB_CLONES
static void factors_gradient_plain(const struct factors* p,
                                   const double* v_theta,
                                   const struct tb_batch* p_batch,
                                   double* v_gradient) {
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const struct pair pair = pair_at(p, tb_batch_row(p_batch, k));
    pair_prefetch(p, v_theta, v_gradient, p_batch, k + FACTORS_AHEAD);
    const double c =
        tb_batch_weight(p_batch, k) * p->alpha * pair_error(p, &pair, v_theta);
    for (size_t side = 0; side < 2; ++side) {
      add_row(&p->shape,
              c,
              v_theta + pair.v_at[1 - side],
              v_gradient + pair.v_at[side]);
    }
  }
}

static enum tb_status factors_gradient(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       const struct tb_reference* p_reference,
                                       const struct tb_sums* p_sums) {
  if (p_reference == NULL && p_sums->v_square == NULL &&
      p_sums->v_scalar == NULL && p_sums->p_log_lik == NULL) {
    factors_gradient_plain(p_model->p_self,
                           v_theta,
                           p_batch,
                           p_sums->v_gradient);
    return TB_STATUS_ok;
  }
  return tb_blocks_gradient(p_model,
                            p_work,
                            v_theta,
                            p_batch,
                            p_reference,
                            p_sums);
}

/* -------------------------------------------------------------------- prior */

/* Sums over the rows of a side: S_1 and S_2, one after the other in v_sum (2
 * W); with v_gradient, that of the rows, -lambda (U - mu). */
TB_CLONES
static void side_sums(const double* v_rows,
                      size_t n_row,
                      size_t n_width,
                      const double* v_mean,
                      const double* v_lambda,
                      double* v_gradient,
                      double* v_sum) {
  double* v_square = v_sum + n_width;
  memset(v_sum, 0, 2 * n_width * sizeof(double));
  for (size_t i = 0; i < n_row; ++i) {
    const double* v_row = v_rows + i * n_width;
    double* v_out = v_gradient == NULL ? NULL : v_gradient + i * n_width;
    size_t k = 0;
#ifdef TB_VECTOR
    for (; k + 4 <= n_width; k += 4) {
      const tb_v4d d =
          *(const tb_v4d*)(v_row + k) - *(const tb_v4d*)(v_mean + k);
      *(tb_v4d*)(v_sum + k) += d;
      *(tb_v4d*)(v_square + k) += d * d;
      if (v_out != NULL) {
        *(tb_v4d*)(v_out + k) = -*(const tb_v4d*)(v_lambda + k) * d;
      }
    }
#endif
    for (; k < n_width; ++k) {
      const double d = v_row[k] - v_mean[k];
      v_sum[k] += d;
      v_square[k] += d * d;
      if (v_out != NULL) {
        v_out[k] = -v_lambda[k] * d;
      }
    }
  }
}

/* What the prior says of lambda_k on one side: lambda_k^shape exp(-lambda_k
 * rate), Jacobian of log lambda included. */
struct gamma_law {
  double shape, rate;
};

static struct gamma_law side_law(const struct factors* p,
                                 enum factors_side side,
                                 double mean,
                                 double square) {
  const double d = mean - p->mu_0;
  return (struct gamma_law){
      .shape = p->a_0 + 0.5 * (double)(p->n_row[side] + p->has_mean),
      .rate = p->b_0 + 0.5 * square + (p->has_mean ? 0.5 * d * d : 0)};
}

/* log p of a side, without its constant; SETS its part of v_gradient.
 * v_scratch: 4 W, of the scores of a block, of which there is none now. */
static double side_prior(const struct factors* p,
                         enum factors_side side,
                         const double* v_theta,
                         double* v_scratch,
                         double* v_gradient) {
  const size_t n = p->shape.n_width;
  const double* v_log = v_theta + p->at_lambda[side];
  const double* v_mean = v_theta + p->at_mean[side];
  double* v_lambda = v_scratch;
  double* v_sum = v_scratch + n;
  double* v_zero = v_scratch + 3 * n;
  double log_prior = 0;

  if (!p->has_mean) {
    memset(v_zero, 0, n * sizeof(double));
    v_mean = v_zero;
  }
  for (size_t k = 0; k < n; ++k) {
    v_lambda[k] = exp(v_log[k]);
  }
  side_sums(v_theta + p->at_row[side],
            p->n_row[side],
            n,
            v_mean,
            v_lambda,
            v_gradient + p->at_row[side],
            v_sum);
  for (size_t k = 0; k < n; ++k) {
    const struct gamma_law law = side_law(p, side, v_mean[k], v_sum[n + k]);
    if (p->has_mean) {
      v_gradient[p->at_mean[side] + k] =
          v_lambda[k] * (v_sum[k] - (v_mean[k] - p->mu_0));
    }
    v_gradient[p->at_lambda[side] + k] = law.shape - law.rate * v_lambda[k];
    log_prior += law.shape * v_log[k] - law.rate * v_lambda[k];
  }
  return log_prior;
}

static enum tb_status factors_prior(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_prior) {
  const struct factors* p = p_model->p_self;
  const double log_prior =
      side_prior(p, SIDE_user, v_theta, p_work->p_scratch, v_gradient) +
      side_prior(p, SIDE_item, v_theta, p_work->p_scratch, v_gradient);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

/* log lambda from its full conditional: lambda_k ~ Gamma(shape, rate) */
static enum tb_status factors_gibbs(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    double* v_theta) {
  const struct factors* p = p_model->p_self;
  const size_t n = p->shape.n_width;
  double* v_sum = p_work->p_scratch;
  double* v_mean = v_sum + 2 * n;
  for (size_t side = 0; side < 2; ++side) {
    memset(v_mean, 0, n * sizeof(double));
    if (p->has_mean) {
      memcpy(v_mean, v_theta + p->at_mean[side], n * sizeof(double));
    }
    side_sums(v_theta + p->at_row[side],
              p->n_row[side],
              n,
              v_mean,
              v_mean,
              NULL,
              v_sum);
    for (size_t k = 0; k < n; ++k) {
      const struct gamma_law law =
          side_law(p, (enum factors_side)side, v_mean[k], v_sum[n + k]);
      v_theta[p->at_lambda[side] + k] =
          log(tb_rng_gamma(p_work->p_rng, law.shape) / law.rate);
    }
  }
  return TB_STATUS_ok;
}

/* --------------------------------------------------------------------- rest */

static double factors_lipschitz_prior(const struct tb_model* p_model) {
  (void)p_model;
  return NAN; /* log lambda is sampled */
}

/* log lambda -> lambda, the last coordinates */
static void factors_constrain(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_natural) {
  const struct factors* p = p_model->p_self;
  const size_t at = p->at_lambda[SIDE_user];
  memcpy(v_natural, v_theta, at * sizeof(double));
  for (size_t j = at; j < p_model->n_dim; ++j) {
    v_natural[j] = exp(v_theta[j]);
  }
}

/* --------------------------------------------------------------------- life */

static size_t factors_memory(const struct tb_model* p_model) {
  const struct factors* p = p_model->p_self;
  return p->v_rating != NULL ? p_model->n_data * sizeof(struct rating)
                             : p->store.type->memory(&p->store);
}

static void factors_destroy(struct tb_model* p_model) {
  struct factors* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_big_free(p->v_rating, p_model->n_data * sizeof(struct rating));
  tb_store_destroy(&p->store);
  free(p);
  p_model->p_self = NULL;
}

/* numbers from 1 to n_most */
static bool are_numbers(const struct tb_param* p_param, double n_most) {
  for (size_t i = 0; i < p_param->n_value; ++i) {
    const double x = p_param->v_value[i];
    if (!(x >= 1) || x > n_most || x != floor(x)) {
      return false;
    }
  }
  return true;
}

static void factors_lay_out(struct factors* p, struct tb_model* p_model) {
  const size_t n = p->shape.n_width;
  size_t at = 0;
  for (size_t side = 0; side < 2; ++side) {
    p->at_row[side] = at;
    at += p->n_row[side] * n;
  }
  for (size_t side = 0; side < 2; ++side) {
    p->at_mean[side] = at;
    at += p->has_mean ? n : 0;
  }
  for (size_t side = 0; side < 2; ++side) {
    p->at_lambda[side] = at;
    at += n;
  }
  p_model->n_dim = p_model->n_natural = at;
  p_model->n_scalar = 2 * n;
}

/* Rows of a file that are ratings of these users and items. */
static bool
are_ratings(const struct tb_store* p_store, double n_user, double n_item) {
  if (p_store->v_data == NULL || p_store->n_col != 3) {
    return false;
  }
  const double v_most[] = {n_user, n_item};
  for (size_t i = 0; i < p_store->n_row; ++i) {
    const double* v = p_store->v_data + i * p_store->n_padded;
    for (size_t side = 0; side < 2; ++side) {
      const double x = v[side];
      if (!(x >= 0) || x >= v_most[side] || x != floor(x)) {
        return false;
      }
    }
    if (!isfinite(v[2])) {
      return false;
    }
  }
  return true;
}

/* The ratings of the parameters, copied; sets the hash. */
static enum tb_status take_params(struct factors* p,
                                  const struct tb_params* p_params,
                                  double center,
                                  size_t* p_row,
                                  uint64_t* p_hash) {
  const struct tb_param* p_user = tb_params_find(p_params, "user");
  const struct tb_param* p_item = tb_params_find(p_params, "item");
  const struct tb_param* p_value = tb_params_find(p_params, "rating");
  if (p_user == NULL || p_item == NULL || p_value == NULL ||
      p_value->n_value == 0 || p_user->n_value != p_value->n_value ||
      p_item->n_value != p_value->n_value ||
      !are_numbers(p_user, (double)p->n_row[SIDE_user]) ||
      !are_numbers(p_item, (double)p->n_row[SIDE_item])) {
    return TB_STATUS_argument;
  }
  const size_t n_data = p_value->n_value;
  struct rating* v_rating = tb_big_alloc(n_data * sizeof(*v_rating));
  if (v_rating == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t i = 0; i < n_data; ++i) {
    v_rating[i] = (struct rating){.user = (uint32_t)(p_user->v_value[i] - 1),
                                  .item = (uint32_t)(p_item->v_value[i] - 1),
                                  .value = p_value->v_value[i] - center};
  }
  p->v_rating = v_rating;
  *p_row = n_data;
  *p_hash = tb_hash_doubles(*p_hash, p_user->v_value, n_data);
  *p_hash = tb_hash_doubles(*p_hash, p_item->v_value, n_data);
  *p_hash = tb_hash_doubles(*p_hash, p_value->v_value, n_data);
  return TB_STATUS_ok;
}

/* The same of a file on the shelf, where they stay. */
static enum tb_status take_file(struct factors* p,
                                const struct tb_shelf* p_shelf,
                                size_t* p_row,
                                uint64_t* p_hash) {
  const enum tb_status status = tb_shelf_take(p_shelf, NULL, 0, &p->store);
  if (status != TB_STATUS_ok) {
    return status;
  }
  if (!are_ratings(&p->store,
                   (double)p->n_row[SIDE_user],
                   (double)p->n_row[SIDE_item])) {
    tb_store_destroy(&p->store);
    return TB_STATUS_argument;
  }
  *p_row = p->store.n_row;
  *p_hash = tb_hash_word(*p_hash, p->store.hash);
  return TB_STATUS_ok;
}

/* Parameters: "user", "item" (numbers from 1), "rating" (n_data each; without
 * them they come from the file on the shelf), "n_user", "n_item", "rank",
 * "center" (m), "alpha", "mu0", "a0", "b0", "gibbs_every". */
static enum tb_status factors_create(struct tb_model* p_model,
                                     const struct tb_params* p_params,
                                     const struct tb_shelf* p_shelf,
                                     bool has_mean) {
  const double n_user = tb_params_number(p_params, "n_user", 0);
  const double n_item = tb_params_number(p_params, "n_item", 0);
  const double rank = tb_params_number(p_params, "rank", 0);
  const double alpha = tb_params_number(p_params, "alpha", 0);
  const double a_0 = tb_params_number(p_params, "a0", 0);
  const double b_0 = tb_params_number(p_params, "b0", 0);
  const double center = tb_params_number(p_params, "center", 0);
  const double gibbs_every = tb_params_number(p_params, "gibbs_every", 0);

  if (!(rank >= 1) || !(rank <= UINT32_MAX) || !(alpha > 0) ||
      !(gibbs_every >= 0) || !(gibbs_every <= 0x1p53) || !(a_0 > 0) ||
      !(b_0 > 0) || !(n_user >= 1) || !(n_item >= 1) || n_user > UINT32_MAX ||
      n_item > UINT32_MAX) {
    return TB_STATUS_argument;
  }
  struct factors* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p->shape = (struct tb_factors_shape){.n_user = (size_t)n_user,
                                       .n_item = (size_t)n_item,
                                       .n_rank = (size_t)rank,
                                       .n_width = (size_t)rank + !has_mean,
                                       .has_bias = !has_mean};
  p->n_row[SIDE_user] = (size_t)n_user;
  p->n_row[SIDE_item] = (size_t)n_item;
  p->has_mean = has_mean;
  p->alpha = alpha;
  p->mu_0 = tb_params_number(p_params, "mu0", 0);
  p->a_0 = a_0;
  p->b_0 = b_0;

  const double v_option[] =
      {n_user, n_item, rank, alpha, center, p->mu_0, a_0, b_0};
  uint64_t hash = tb_hash_doubles(has_mean, v_option, 8);
  size_t n_data = 0;
  const bool is_given = tb_params_find(p_params, "rating") != NULL;
  const enum tb_status status =
      is_given ? take_params(p, p_params, center, &n_data, &hash)
               : take_file(p, p_shelf, &n_data, &hash);
  if (status != TB_STATUS_ok) {
    free(p);
    return status;
  }
  p_model->p_self = p;
  p_model->n_data = n_data;
  p_model->p_frame = NULL;
  p_model->n_gibbs_every = (size_t)gibbs_every;
  p_model->fingerprint = hash;
  factors_lay_out(p, p_model);
  return TB_STATUS_ok;
}

static enum tb_status bpmf_create(struct tb_model* p_model,
                                  const struct tb_params* p_params,
                                  const struct tb_shelf* p_shelf) {
  return factors_create(p_model, p_params, p_shelf, true);
}

static enum tb_status pmf_create(struct tb_model* p_model,
                                 const struct tb_params* p_params,
                                 const struct tb_shelf* p_shelf) {
  return factors_create(p_model, p_params, p_shelf, false);
}

/* one table but for three entries */
#define FACTORS_TYPE(name_, citation_, create_)                                \
  {                                                                            \
    .name = name_, .citation = citation_, .flags = TB_MODEL_SCALAR,            \
    .create = create_, .destroy = factors_destroy, .prior = factors_prior,     \
    .gradient = factors_gradient, .workspace_size = tb_blocks_workspace_size,  \
    .log_lik = tb_blocks_log_lik, .square_norms = tb_blocks_square_norms,      \
    .add_scalar = tb_blocks_add_scalar, .blocks = &factors_blocks,             \
    .gibbs = factors_gibbs, .lipschitz_prior = factors_lipschitz_prior,        \
    .constrain = factors_constrain, .memory = factors_memory                   \
  }

const struct tb_model_type tb_model_bpmf =
    FACTORS_TYPE("bpmf", "Mauri & Zanella (2024), AISTATS", bpmf_create);

const struct tb_model_type tb_model_pmf =
    FACTORS_TYPE("pmf",
                 "Baker, Fearnhead, Fox & Nemeth (2019), Stat. Comput. 29:599",
                 pmf_create);
