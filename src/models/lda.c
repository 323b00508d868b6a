/* Latent Dirichlet allocation (Patterson & Teh 2013, section 4, without their
 * Riemannian metric: Baker, Fearnhead, Fox & Nemeth 2019, section 5.3):
 *
 *   theta_kw ~ Gamma(beta, 1),  topic k = theta_k. / sum_w theta_kw
 *   eta_d ~ Dirichlet(alpha),  z ~ eta_d,  word ~ topic z   for every token
 *
 * with eta_d summed out. A row is a document. The coordinates x are one of
 *
 *   natural   theta = exp(x)   g_0 = beta - theta
 *   mean      theta = |x|      g_0 = sign(x) [(beta - 1) / theta - 1]
 *   both      g_d = d theta / dx . E_z[n_dkw / theta_kw - n_dk / sum_v
 * theta_kv]
 *
 * (their expanded natural and expanded mean). E_z has no closed form: it is the
 * mean over a few sweeps of a Gibbs sampler,
 *
 *   P(z_i = k | the other z) = theta_kw a_k / sum_j theta_jw a_j,
 *   a_k = (n_dk without token i + alpha) / sum_v theta_kv,
 *
 * after a burn-in that each visit begins anew: the estimate of g_d is biased,
 * by what the burn-in has not forgotten. It starts from draws given counts n_dk
 * that are not whole, the fixed point of n_dk = sum_i theta_kw a_k / sum_j
 * theta_jw a_j from equal ones (to put the tokens in one after the other lets
 * the first ones decide). What is averaged is not the z drawn but their
 * conditional probabilities: the same mean with less variance, and n_dkw /
 * theta_kw becomes a sum of a_k / sum_j theta_jw a_j, which stays finite where
 * theta_kw goes to 0.
 *
 * Reflection. theta must stay positive, and Patterson & Teh replace it by its
 * absolute value after every step. In mean coordinates a chain runs on the even
 * extension pi(|x|) instead: g(-x) = -g(x), constrain() gives |x|. For a kernel
 * that treats x and -x alike the two chains are one in law: a step from -x is
 * minus the step from x. So no kernel needs to know, momentum or not, and one
 * with a Metropolis correction would be exact. What estimators remember from
 * other orthants they fold (tb_chain_gradient()).
 *
 * The reference of control variates: a document's Gibbs samplers at theta and
 * at the reference use the same random numbers, so that the difference has less
 * noise, and none at the reference itself. They go token by token side by side:
 * a draw is a long chain of additions, and a processor works on both at once.
 * The sum over all documents at the reference (a workspace without a stream)
 * takes LONG_RUN times as many sweeps, from a stream that belongs to the
 * document.
 *
 *   symbol        variable   shape                owner
 *   n_dw          v_count    n_cell               lda
 *   w of a cell   v_word     n_cell               lda
 *   cells of d    v_start    n_data + 1           lda
 *   x             v_x        n_topic x n_word     caller; a word's topics side
 *                                                 by side
 *   theta         v_theta    n_topic x n_word     scratch, of a point
 *   d theta / dx  v_slope    n_topic x n_word     v_theta or v_sign, scratch
 *   1/sum theta_k v_inverse  n_topic              scratch, of a point
 *   z             v_z        n_token_max          scratch, of a point
 *   n_dk, a_k     v_tally, v_a   n_topic          scratch, of a point
 *   E n_dkw / theta_kw   v_cell   n_topic x n_cell_max   scratch, of a point
 *   E n_dk        v_topic    n_topic              scratch, of a point
 */
#include "models/lda.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/hash.h"
#include "base/poll.h"
#include "base/vector.h"
#include "base/vmath.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum coordinates { COORDINATES_natural, COORDINATES_mean, COORDINATES_count };

struct lda {
  enum coordinates coordinates;
  size_t n_topic;
  size_t n_word;
  size_t n_burn;  /* sweeps that a visit discards */
  size_t n_sweep; /* and those it averages over */
  double alpha;
  double beta;
  size_t n_cell_max;  /* of a document: different words */
  size_t n_token_max; /* and words */
  size_t* v_start;
  uint32_t* v_word;
  uint32_t* v_count;
};

#define LONG_RUN 10

/* ------------------------------------------------------------------ scratch */

/* theta, and the Gibbs sampler of a document there */
struct point {
  double* v_theta;
  double* v_sign;
  const double* v_slope; /* one of these: d theta / dx */
  double* v_inverse;
  double* v_cell;
  double* v_topic;
  double* v_a;     /* n_topic */
  double* v_tally; /* n_topic */
  double* v_p;     /* n_topic, up to a whole block: theta_kw a_k, then zeros */
  double* v_sum;   /* a block more: sums of the blocks before */
  uint32_t* v_z;
};

struct scratch {
  struct point here;
  struct point there; /* the reference */
  double* v_total;    /* 5 x n_topic: sums over the documents of a batch */
};

/* topics whose probabilities are added together */
#define N_BLOCK 4

static size_t n_block(const struct lda* p) {
  return (p->n_topic + N_BLOCK - 1) / N_BLOCK;
}

/* doubles of a point */
static size_t point_length(const struct lda* p) {
  const size_t n_z = (p->n_token_max + 1) / 2; /* two to a double */
  return p->n_topic * (2 * p->n_word + p->n_cell_max + 4) +
         (N_BLOCK + 1) * n_block(p) + 1 + n_z;
}

static struct point point_at(const struct lda* p, double* v) {
  const size_t n = p->n_topic, n_dim = n * p->n_word;
  struct point point = {.v_theta = v, .v_sign = v + n_dim};
  point.v_inverse = v + 2 * n_dim;
  point.v_topic = point.v_inverse + n;
  point.v_a = point.v_topic + n;
  point.v_tally = point.v_a + n;
  point.v_p = point.v_tally + n;
  point.v_sum = point.v_p + N_BLOCK * n_block(p);
  point.v_cell = point.v_sum + n_block(p) + 1;
  point.v_z = (uint32_t*)(void*)(point.v_cell + n * p->n_cell_max);
  for (size_t k = n; k < N_BLOCK * n_block(p); ++k) {
    point.v_p[k] = 0;
  }
  return point;
}

static size_t lda_workspace_size(const struct tb_model* p_model,
                                 size_t n_batch) {
  const struct lda* p = p_model->p_self;
  (void)n_batch;
  return (2 * point_length(p) + 5 * p->n_topic) * sizeof(double);
}

static struct scratch scratch_at(const struct lda* p, void* p_scratch) {
  double* v = p_scratch;
  return (struct scratch){.here = point_at(p, v),
                          .there = point_at(p, v + point_length(p)),
                          .v_total = v + 2 * point_length(p)};
}

/* ------------------------------------------------------------ one document */

static TB_CLONES void to_theta(const struct lda* p,
                               const double* restrict v_x,
                               double* restrict v_theta) {
  const size_t n_dim = p->n_topic * p->n_word;
  if (p->coordinates == COORDINATES_natural) {
    tb_vexp(v_x, v_theta, n_dim);
    return;
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_theta[j] = fabs(v_x[j]);
  }
}

/* theta and d theta / dx at x */
static void
load_theta(const struct lda* p, const double* v_x, struct point* p_point) {
  to_theta(p, v_x, p_point->v_theta);
  p_point->v_slope = p_point->v_theta;
  if (p->coordinates == COORDINATES_mean) {
    p_point->v_slope = p_point->v_sign;
    for (size_t j = 0; j < p->n_topic * p->n_word; ++j) {
      p_point->v_sign[j] = copysign(1, v_x[j]);
    }
  }
}

/* 1 / sum_w theta_kw of every topic */
static TB_CLONES void load_totals(const struct lda* p,
                                  const struct point* p_point) {
  const size_t n = p->n_topic;
  double* restrict v = p_point->v_inverse;
  memset(v, 0, n * sizeof(double));
  for (size_t w = 0; w < p->n_word; ++w) {
    for (size_t k = 0; k < n; ++k) {
      v[k] += p_point->v_theta[w * n + k];
    }
  }
  for (size_t k = 0; k < n; ++k) {
    v[k] = 1 / v[k];
  }
}

/* A topic with probability proportional to theta_kw a_k, from a uniform number;
 * *p_scale: the inverse of the sum of these. By blocks, to add less in a row.
 */
TB_INLINE size_t draw_topic(size_t n,
                            const double* v_theta,
                            const struct point* p_point,
                            double uniform,
                            double* p_scale) {
  const size_t n_blocks = (n + N_BLOCK - 1) / N_BLOCK;
  const double* restrict v_a = p_point->v_a;
  double* restrict v_p = p_point->v_p;
  double* restrict v_sum = p_point->v_sum;
  for (size_t k = 0; k < n; ++k) {
    v_p[k] = v_theta[k] * v_a[k];
  }
  v_sum[0] = 0;
  for (size_t b = 0; b < n_blocks; ++b) {
    const double* v = v_p + b * N_BLOCK;
    v_sum[b + 1] = v_sum[b] + ((v[0] + v[1]) + (v[2] + v[3]));
  }
  *p_scale = 1 / v_sum[n_blocks];
  const double u = v_sum[n_blocks] * uniform;
  size_t block = 0;
  for (size_t b = 1; b < n_blocks; ++b) {
    block += v_sum[b] <= u;
  }
  size_t z = block * N_BLOCK;
  double sum = v_sum[block];
  for (size_t k = block * N_BLOCK; k + 1 < (block + 1) * N_BLOCK; ++k) {
    sum += v_p[k];
    z += sum <= u;
  }
  return z < n ? z : n - 1;
}

/* What was done since it was last asked whether it is time to stop. */
struct meter {
  size_t n_work;          /* multiplications */
  struct tb_poll* p_poll; /* of whom; NULL: nobody */
};

/* Of n tokens more: is it time to stop? */
static bool is_stopped(const struct lda* p, size_t n, struct meter* p_meter) {
  enum { BETWEEN = 1 << 24 };
  p_meter->n_work += n * p->n_topic;
  if (p_meter->n_work < BETWEEN) {
    return false;
  }
  p_meter->n_work = 0;
  return tb_poll(p_meter->p_poll);
}

/* Draw the topic of token i, of cell c. What `weight` > 0 adds to v_cell:
 * weight / theta_kw times the conditional probabilities. */
TB_INLINE void visit_token(const struct lda* p,
                           const struct point* p_point,
                           size_t i,
                           const double* v_theta,
                           double* restrict v_cell,
                           bool is_first,
                           double weight,
                           double uniform) {
  double* restrict v_a = p_point->v_a;
  double* restrict v_tally = p_point->v_tally;
  uint32_t* p_z = p_point->v_z + i;
  double scale;
  if (!is_first) {
    v_tally[*p_z] -= 1;
    v_a[*p_z] = (v_tally[*p_z] + p->alpha) * p_point->v_inverse[*p_z];
  }
  const size_t z = draw_topic(p->n_topic, v_theta, p_point, uniform, &scale);
  if (weight > 0) {
    const double share = weight * scale;
    for (size_t k = 0; k < p->n_topic; ++k) {
      v_cell[k] += share * v_a[k];
    }
  }
  v_tally[z] += 1;
  if (!is_first) {
    v_a[z] = (v_tally[z] + p->alpha) * p_point->v_inverse[z];
  }
  *p_z = (uint32_t)z;
}

/* Sweep over the tokens of document d at one point or at two with the same
 * random numbers (p_there may be NULL); the first draws them all given the same
 * a_k. false: it was stopped. */
static TB_CLONES bool sweep(const struct lda* p,
                            size_t d,
                            bool is_first,
                            double weight,
                            struct tb_rng* p_rng,
                            const struct point* p_here,
                            const struct point* p_there,
                            struct meter* p_meter) {
  const size_t n = p->n_topic, first = p->v_start[d];
  size_t token = 0;
  for (size_t c = first; c < p->v_start[d + 1]; ++c) {
    const size_t at = p->v_word[c] * n, cell = (c - first) * n;
    for (uint32_t i = 0; i < p->v_count[c]; ++i, ++token) {
      if (is_stopped(p, 1, p_meter)) {
        return false;
      }
      const double u = tb_rng_unif(p_rng);
      visit_token(p,
                  p_here,
                  token,
                  p_here->v_theta + at,
                  p_here->v_cell + cell,
                  is_first,
                  weight,
                  u);
      if (p_there != NULL) {
        visit_token(p,
                    p_there,
                    token,
                    p_there->v_theta + at,
                    p_there->v_cell + cell,
                    is_first,
                    weight,
                    u);
      }
    }
  }
  return true;
}

/* Iterations towards the fixed point where a document's sampler starts. */
#define N_SOFT 8

/* a_k there, for the first draws; counts are 0. false: it was stopped. */
static TB_CLONES bool start_document(const struct lda* p,
                                     size_t d,
                                     const struct point* p_point,
                                     struct meter* p_meter) {
  const size_t n = p->n_topic, first = p->v_start[d], end = p->v_start[d + 1];
  double* restrict v_a = p_point->v_a;
  double* restrict v_tally = p_point->v_tally;
  double* restrict v_p = p_point->v_p;
  memset(p_point->v_cell, 0, n * (end - first) * sizeof(double));
  memset(p_point->v_topic, 0, n * sizeof(double));
  for (size_t k = 0; k < n; ++k) {
    v_a[k] = p_point->v_inverse[k];
  }
  for (int t = 0; t < N_SOFT; ++t) {
    memset(v_tally, 0, n * sizeof(double));
    for (size_t c = first; c < end; ++c) {
      if (is_stopped(p, 1, p_meter)) {
        return false;
      }
      const double* v_theta = p_point->v_theta + p->v_word[c] * n;
      double sum = 0;
      for (size_t k = 0; k < n; ++k) {
        v_p[k] = v_theta[k] * v_a[k];
      }
      for (size_t k = 0; k < n; ++k) {
        sum += v_p[k];
      }
      const double share = p->v_count[c] / sum;
      for (size_t k = 0; k < n; ++k) {
        v_tally[k] += share * v_p[k];
      }
    }
    for (size_t k = 0; k < n; ++k) {
      v_a[k] = (v_tally[k] + p->alpha) * p_point->v_inverse[k];
    }
  }
  memset(v_tally, 0, n * sizeof(double));
  return true;
}

/* a_k of the topics drawn first */
static void count_topics(const struct lda* p, const struct point* p_point) {
  for (size_t k = 0; k < p->n_topic; ++k) {
    p_point->v_a[k] = (p_point->v_tally[k] + p->alpha) * p_point->v_inverse[k];
  }
}

/* v_topic from v_cell */
static void
finish_document(const struct lda* p, size_t d, const struct point* p_point) {
  const size_t n = p->n_topic, first = p->v_start[d];
  for (size_t c = first; c < p->v_start[d + 1]; ++c) {
    const double* v_theta = p_point->v_theta + p->v_word[c] * n;
    const double* v_cell = p_point->v_cell + (c - first) * n;
    for (size_t k = 0; k < n; ++k) {
      p_point->v_topic[k] += v_theta[k] * v_cell[k];
    }
  }
}

/* E_z of document d at a point, or at two: their v_cell and v_topic are set.
 * TB_STATUS_interrupted: they are not. */
static enum tb_status expect_topics(const struct lda* p,
                                    size_t d,
                                    size_t n_burn,
                                    size_t n_sweep,
                                    struct tb_rng* p_rng,
                                    const struct point* p_here,
                                    const struct point* p_there,
                                    struct meter* p_meter) {
  const double weight = 1 / (double)n_sweep;
  if (!start_document(p, d, p_here, p_meter) ||
      (p_there != NULL && !start_document(p, d, p_there, p_meter))) {
    return TB_STATUS_interrupted;
  }
  for (size_t t = 0; t <= n_burn + n_sweep; ++t) {
    const double counts = t > n_burn ? weight : 0;
    if (!sweep(p, d, t == 0, counts, p_rng, p_here, p_there, p_meter)) {
      return TB_STATUS_interrupted;
    }
    if (t == 0) {
      count_topics(p, p_here);
      if (p_there != NULL) {
        count_topics(p, p_there);
      }
    }
  }
  finish_document(p, d, p_here);
  if (p_there != NULL) {
    finish_document(p, d, p_there);
  }
  return TB_STATUS_ok;
}

/* The same at theta and perhaps at the reference. No stream: a long run from
 * the document's own. */
static enum tb_status visit(const struct tb_model* p_model,
                            size_t d,
                            struct tb_rng* p_rng,
                            bool has_reference,
                            const struct scratch* p_s,
                            struct meter* p_meter) {
  const struct lda* p = p_model->p_self;
  struct tb_rng own;
  size_t n_sweep = p->n_sweep;
  if (p_rng == NULL) {
    tb_rng_init(&own, p_model->fingerprint + d, 0, TB_STREAM_model);
    p_rng = &own;
    n_sweep *= LONG_RUN;
  }
  return expect_topics(p,
                       d,
                       p->n_burn,
                       n_sweep,
                       p_rng,
                       &p_s->here,
                       has_reference ? &p_s->there : NULL,
                       p_meter);
}

/* ------------------------------------------------------------------- passes */

static inline double square(double x) {
  return x * x;
}

/* What a document adds for its own words; its topics' totals, which go to all
 * words, are left to add_totals(). */
static void add_cells(const struct lda* p,
                      size_t d,
                      double c,
                      bool has_reference,
                      const struct scratch* p_s,
                      const struct tb_sums* p_sums) {
  const size_t n = p->n_topic;
  for (size_t i = p->v_start[d]; i < p->v_start[d + 1]; ++i) {
    const size_t at = p->v_word[i] * n, cell = (i - p->v_start[d]) * n;
    for (size_t k = 0; k < n; ++k) {
      const double side = c * p_s->here.v_slope[at + k];
      const double total = side * p_s->here.v_topic[k] * p_s->here.v_inverse[k];
      double own = side * p_s->here.v_cell[cell + k], all = total;
      if (has_reference) {
        const double other = c * p_s->there.v_slope[at + k];
        own -= other * p_s->there.v_cell[cell + k];
        all -= other * p_s->there.v_topic[k] * p_s->there.v_inverse[k];
      }
      if (p_sums->v_gradient != NULL) {
        p_sums->v_gradient[at + k] += own;
      }
      if (p_sums->v_square != NULL) {
        p_sums->v_square[at + k] += square(own - all) - square(all);
      }
    }
  }
}

/* u_k = c E n_dk / sum_w theta_kw at theta and t_k at the reference, over the
 * documents: sum u, sum t, sum u^2, sum u t, sum t^2 */
static void collect_totals(const struct lda* p,
                           double c,
                           bool has_reference,
                           const struct scratch* p_s) {
  const size_t n = p->n_topic;
  double* v = p_s->v_total;
  for (size_t k = 0; k < n; ++k) {
    const double u = c * p_s->here.v_topic[k] * p_s->here.v_inverse[k];
    const double t =
        has_reference ? c * p_s->there.v_topic[k] * p_s->there.v_inverse[k] : 0;
    v[k] += u;
    v[n + k] += t;
    v[2 * n + k] += u * u;
    v[3 * n + k] += u * t;
    v[4 * n + k] += t * t;
  }
}

static TB_CLONES void add_totals(const struct lda* p,
                                 bool has_reference,
                                 const struct scratch* p_s,
                                 const struct tb_sums* p_sums) {
  const size_t n = p->n_topic;
  const double* v = p_s->v_total;
  for (size_t w = 0; w < p->n_word; ++w) {
    for (size_t k = 0; k < n; ++k) {
      const size_t at = w * n + k;
      const double side = p_s->here.v_slope[at];
      const double other = has_reference ? p_s->there.v_slope[at] : 0;
      if (p_sums->v_gradient != NULL) {
        p_sums->v_gradient[at] -= side * v[k] - other * v[n + k];
      }
      if (p_sums->v_square != NULL) {
        p_sums->v_square[at] += side * side * v[2 * n + k] -
                                2 * side * other * v[3 * n + k] +
                                other * other * v[4 * n + k];
      }
    }
  }
}

static enum tb_status lda_gradient(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_x,
                                   const struct tb_batch* p_batch,
                                   const struct tb_reference* p_reference,
                                   const struct tb_sums* p_sums) {
  const struct lda* p = p_model->p_self;
  const bool has_reference = p_reference != NULL;
  enum { MANY = 256 }; /* documents: of a pass, in which nobody else asks */
  if (p_batch->n_batch >= MANY && tb_poll(p_model->p_poll)) {
    return TB_STATUS_interrupted;
  }
  struct scratch s = scratch_at(p, p_work->p_scratch);
  load_theta(p, v_x, &s.here);
  load_totals(p, &s.here);
  if (has_reference) {
    load_theta(p, p_reference->v_theta, &s.there);
    load_totals(p, &s.there);
  }
  memset(s.v_total, 0, 5 * p->n_topic * sizeof(double));
  struct meter meter = {.p_poll = p_model->p_poll};
  for (size_t b = 0; b < p_batch->n_batch; ++b) {
    const size_t d = tb_batch_row(p_batch, b);
    const double c = tb_batch_weight(p_batch, b);
    const enum tb_status status =
        visit(p_model, d, p_work->p_rng, has_reference, &s, &meter);
    if (status != TB_STATUS_ok) {
      return status;
    }
    add_cells(p, d, c, has_reference, &s, p_sums);
    collect_totals(p, c, has_reference, &s);
  }
  add_totals(p, has_reference, &s, p_sums);
  return TB_STATUS_ok;
}

/* Gamma(beta, 1), with the Jacobian, without the constant */
static enum tb_status lda_prior(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_x,
                                double* v_gradient,
                                double* p_log_prior) {
  const struct lda* p = p_model->p_self;
  const bool is_natural = p->coordinates == COORDINATES_natural;
  const double shape = p->beta - 1;
  double* v_theta = v_gradient; /* what is there is used up in place */
  (void)p_work;
  to_theta(p, v_x, v_theta);
  if (p_log_prior != NULL) {
    for (size_t j = 0; j < p_model->n_dim; ++j) {
      const double log_power = is_natural   ? p->beta * v_x[j]
                               : shape == 0 ? 0
                                            : shape * log(v_theta[j]);
      *p_log_prior += log_power - v_theta[j];
    }
  }
  for (size_t j = 0; j < p_model->n_dim; ++j) {
    if (is_natural) {
      v_gradient[j] = p->beta - v_theta[j];
    } else {
      const double slope = shape == 0 ? -1 : shape / v_theta[j] - 1;
      v_gradient[j] = copysign(1, v_x[j]) * slope;
    }
  }
  return TB_STATUS_ok;
}

static void lda_constrain(const struct tb_model* p_model,
                          const double* v_x,
                          double* v_natural) {
  to_theta(p_model->p_self, v_x, v_natural);
}

enum tb_status tb_lda_proportions(const struct tb_model* p_model,
                                  const double* v_topics,
                                  size_t n_burn,
                                  size_t n_sweep,
                                  uint64_t seed,
                                  double* v_out) {
  const struct lda* p = p_model->p_self;
  const size_t n = p->n_topic;
  void* p_scratch = malloc(lda_workspace_size(p_model, 0));
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  struct scratch s = scratch_at(p, p_scratch);
  memcpy(s.here.v_theta, v_topics, n * p->n_word * sizeof(double));
  load_totals(p, &s.here);
  enum tb_status status = TB_STATUS_ok;
  struct meter meter = {.p_poll = p_model->p_poll};
  for (size_t d = 0; d < p_model->n_data && status == TB_STATUS_ok; ++d) {
    struct tb_rng rng;
    tb_rng_init(&rng, seed + d, 0, TB_STREAM_model);
    status = expect_topics(p, d, n_burn, n_sweep, &rng, &s.here, NULL, &meter);
    double total = (double)n * p->alpha;
    for (size_t k = 0; k < n; ++k) {
      total += s.here.v_topic[k];
    }
    for (size_t k = 0; k < n; ++k) {
      v_out[d * n + k] = (s.here.v_topic[k] + p->alpha) / total;
    }
  }
  free(p_scratch);
  return status;
}

size_t tb_lda_n_topic(const struct tb_model* p_model) {
  const struct lda* p = p_model->p_self;
  return p->n_topic;
}

/* --------------------------------------------------------------------- life */

static size_t lda_memory(const struct tb_model* p_model) {
  const struct lda* p = p_model->p_self;
  return (p_model->n_data + 1) * sizeof(size_t) +
         2 * p->v_start[p_model->n_data] * sizeof(uint32_t);
}

static void lda_destroy(struct tb_model* p_model) {
  struct lda* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  free(p->v_start);
  free(p->v_word);
  free(p->v_count);
  free(p);
  p_model->p_self = NULL;
}

static bool is_whole(double x, double min, double below) {
  return x >= min && x < below && x == floor(x);
}

/* Documents one after the other, words and counts whole numbers in range. */
static bool are_cells(const struct tb_param* p_start,
                      const struct tb_param* p_word,
                      const struct tb_param* p_count,
                      double n_word) {
  const size_t n_data = p_start->n_value - 1;
  if (p_word->n_value != p_count->n_value || p_start->v_value[0] != 0 ||
      p_start->v_value[n_data] != (double)p_word->n_value) {
    return false;
  }
  for (size_t d = 0; d < n_data; ++d) {
    if (!is_whole(p_start->v_value[d + 1], p_start->v_value[d] + 1, 0x1p53)) {
      return false; /* a document without words among them */
    }
  }
  for (size_t c = 0; c < p_word->n_value; ++c) {
    if (!is_whole(p_word->v_value[c], 0, n_word) ||
        !is_whole(p_count->v_value[c], 1, 0x1p31)) {
      return false;
    }
  }
  return true;
}

/* the arrays, and the largest document */
static enum tb_status lda_fill(struct lda* p,
                               size_t n_data,
                               const double* v_start,
                               const double* v_word,
                               const double* v_count) {
  const size_t n_cell = (size_t)v_start[n_data];
  p->v_start = malloc((n_data + 1) * sizeof(size_t));
  p->v_word = malloc(n_cell * sizeof(uint32_t));
  p->v_count = malloc(n_cell * sizeof(uint32_t));
  if (p->v_start == NULL || p->v_word == NULL || p->v_count == NULL) {
    return TB_STATUS_memory;
  }
  p->v_start[0] = 0;
  for (size_t d = 0; d < n_data; ++d) {
    size_t n_token = 0;
    p->v_start[d + 1] = (size_t)v_start[d + 1];
    for (size_t c = p->v_start[d]; c < p->v_start[d + 1]; ++c) {
      p->v_word[c] = (uint32_t)v_word[c];
      p->v_count[c] = (uint32_t)v_count[c];
      n_token += p->v_count[c];
    }
    p->n_cell_max = tb_max(p->n_cell_max, p->v_start[d + 1] - p->v_start[d]);
    p->n_token_max = tb_max(p->n_token_max, n_token);
  }
  return TB_STATUS_ok;
}

/* Parameters: "start" (n_data + 1), "word" and "count" (n_cell): the words of
 * document d, numbered from 0, are start[d], .., start[d + 1] - 1; "shape"
 * (n_topic, n_word), "alpha", "beta", "burn", "sweeps". */
static enum tb_status lda_create(struct tb_model* p_model,
                                 const struct tb_params* p_params,
                                 const struct tb_shelf* p_shelf) {
  (void)p_shelf;
  const struct tb_param* p_start = tb_params_find(p_params, "start");
  const struct tb_param* p_word = tb_params_find(p_params, "word");
  const struct tb_param* p_count = tb_params_find(p_params, "count");
  const struct tb_param* p_shape = tb_params_find(p_params, "shape");
  const double alpha = tb_params_number(p_params, "alpha", NAN);
  const double beta = tb_params_number(p_params, "beta", NAN);
  const double n_burn = tb_params_number(p_params, "burn", NAN);
  const double n_sweep = tb_params_number(p_params, "sweeps", NAN);
  const double coordinates = tb_params_number(p_params, "coordinates", NAN);
  if (p_start == NULL || p_word == NULL || p_count == NULL || p_shape == NULL ||
      p_start->n_value < 2 || p_shape->n_value != 2 ||
      !is_whole(p_shape->v_value[0], 2, 0x1p31) ||
      !is_whole(p_shape->v_value[1], 1, 0x1p31) || !(alpha > 0) ||
      !(beta > 0) || !is_whole(n_burn, 0, 0x1p31) ||
      !is_whole(n_sweep, 1, 0x1p31) ||
      !is_whole(coordinates, 0, COORDINATES_count) ||
      !are_cells(p_start, p_word, p_count, p_shape->v_value[1])) {
    return TB_STATUS_argument;
  }
  struct lda* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->n_data = p_start->n_value - 1;
  p->coordinates = (enum coordinates)coordinates;
  p_model->is_even = p->coordinates != COORDINATES_natural;
  p->n_topic = (size_t)p_shape->v_value[0];
  p->n_word = (size_t)p_shape->v_value[1];
  p->n_burn = (size_t)n_burn;
  p->n_sweep = (size_t)n_sweep;
  p->alpha = alpha;
  p->beta = beta;
  p_model->n_dim = p_model->n_natural = p->n_topic * p->n_word;
  p_model->n_scalar = 0;
  p_model->p_frame = NULL;
  const enum tb_status status = lda_fill(p,
                                         p_model->n_data,
                                         p_start->v_value,
                                         p_word->v_value,
                                         p_count->v_value);
  if (status != TB_STATUS_ok) {
    lda_destroy(p_model);
    return status;
  }
  const double v_option[] = {alpha, beta, n_burn, n_sweep, coordinates};
  uint64_t hash = tb_hash_doubles((uint64_t)p->n_topic, v_option, 5);
  hash = tb_hash_doubles(hash, p_start->v_value, p_start->n_value);
  hash = tb_hash_doubles(hash, p_word->v_value, p_word->n_value);
  p_model->fingerprint =
      tb_hash_doubles(hash, p_count->v_value, p_count->n_value);
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_lda = {
    .name = "lda",
    .citation =
        "Patterson & Teh (2013), NIPS 26; Baker, Fearnhead, Fox & Nemeth "
        "(2019), section 5.3",
    .flags = TB_MODEL_RANDOM | TB_MODEL_NO_DENSITY | TB_MODEL_POLLS,
    .create = lda_create,
    .destroy = lda_destroy,
    .prior = lda_prior,
    .gradient = lda_gradient,
    .workspace_size = lda_workspace_size,
    .constrain = lda_constrain,
    .memory = lda_memory,
};
