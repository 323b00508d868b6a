/* How slowly sweeps of two grouping factors mix, before any is made.
 *
 * Of rows y_i = u_g(i) + v_h(i) + e_i a sweep, which draws u given v and then v
 * given u, has the mean
 *
 *   v' = D^-1 N^T C^-1 N v + const,
 *
 * N_gh the precisions of the rows of levels g and h, C and D diagonal, those of
 * the rows of a level and of the prior. What it leaves of v is the largest
 * eigenvalue of that matrix, the squared singular value of C^-1/2 N D^-1/2. The
 * shifts of crossed-shift.c draw a constant in each part of the graph of the
 * levels: without these, by the power method. (Papaspiliopoulos, Roberts &
 * Zanella 2020, Biometrika 107:25.) Where rows of a slope count, N has their
 * z^2. Precisions of rows are curvatures at given effects, and those of priors
 * are at given standard deviations; where none are given, rows count, and a
 * prior is worth some rows: none, and the rate is the largest that any standard
 * deviations have.
 *
 *   symbol   variable     shape              owner
 *   C, D     v_size[s]    levels of factor   here
 *   N^T C^-1 N v   v_sum  levels of factor   here
 *   v        v_at         levels of second   here
 *   rows     v_row        n_row              caller
 */
#include "models/crossed-mixing.h"
#include "base/memory.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t tb_crossed_n_row(const struct tb_model* p_model) {
  const struct crossed* p = p_model->p_self;
  return p->n_row;
}

size_t tb_crossed_n_effect(const struct tb_model* p_model) {
  const struct crossed* p = p_model->p_self;
  return p->n_effect;
}

size_t tb_crossed_chain_size(const struct tb_model* p_model) {
  return crossed_sweeps.state_size(p_model) +
         crossed_workspace_size(p_model, 0);
}

size_t tb_crossed_n_pair(const struct tb_model* p_model) {
  const struct crossed* p = p_model->p_self;
  return p->n_link;
}

/* tile by tile, so that eta is never that of all rows */
void tb_crossed_weigh(const struct tb_model* p_model,
                      const struct tb_crossed_place* place,
                      double* v_row) {
  const struct crossed* p = p_model->p_self;
  const double* v_aux = place->v_theta + p->prior.n_dim - p->n_aux;
  const struct crossed_chain c = {.p = p,
                                  .point = tb_response_at(&p->response, v_aux)};
  for (size_t first = 0; first < p->n_row; first += CROSSED_TILE) {
    const size_t n = tb_min(CROSSED_TILE, p->n_row - first);
    double v_eta[CROSSED_TILE] = {0};
    if (p->v_offset != NULL) {
      memcpy(v_eta, p->v_offset + first, n * sizeof(double));
    }
    crossed_add_design(p, place->v_theta, first, n, v_eta, v_eta);
    for (size_t k = 0; k < p->n_factor; ++k) {
      const struct crossed_factor* f = &p->v_factor[k];
      const double* v_own = place->v_effect + f->at_effect;
      crossed_spread(f, v_own, first, n, v_eta, v_eta);
    }
    crossed_look(&c, first, n, v_eta, NULL, NULL, v_row + first);
    for (size_t i = first; i < first + n; ++i) {
      v_row[i] = fmax(v_row[i], 0);
    }
  }
}

struct pair {
  const struct crossed* p;
  const struct crossed_link* link;
  const struct crossed_factor* f[2];
  const double* v_z;   /* NULL: of ones */
  const double* v_row; /* NULL: 1 each */
  double v_prior[2];   /* what the priors are worth */
  double* v_size[2];
  double* v_sum[2];
  double* v_at;
  double* v_part; /* n_part x 2 */
};

static double weight_of(const struct pair* pair, size_t i) {
  const double z = pair->v_z == NULL ? 1 : pair->v_z[i];
  return z * z * (pair->v_row == NULL ? 1 : pair->v_row[i]);
}

/* a level whose rows tell nothing of a slope is not moved by the other */
static void set_sizes(struct pair* pair) {
  for (size_t i = 0; i < pair->p->n_row; ++i) {
    const double w = weight_of(pair, i);
    for (size_t s = 0; s < 2; ++s) {
      pair->v_size[s][pair->f[s]->v_level[i]] += w;
    }
  }
  for (size_t s = 0; s < 2; ++s) {
    for (size_t g = 0; g < pair->f[s]->n_level; ++g) {
      pair->v_size[s][g] = fmax(pair->v_size[s][g] + pair->v_prior[s], 1e-100);
    }
  }
}

/* v_at less its mean in each part, by D: what shifts draw. They are orthogonal
 * to the rest but for the prior's share. */
static void center(struct pair* pair) {
  const int32_t* v_part = pair->link->v_part[1];
  memset(pair->v_part, 0, 2 * pair->link->n_part * sizeof(double));
  for (size_t h = 0; h < pair->f[1]->n_level; ++h) {
    pair->v_part[2 * v_part[h]] += pair->v_size[1][h] * pair->v_at[h];
    pair->v_part[2 * v_part[h] + 1] += pair->v_size[1][h];
  }
  for (size_t h = 0; h < pair->f[1]->n_level; ++h) {
    const double* v = pair->v_part + 2 * v_part[h];
    pair->v_at[h] -= v[0] / v[1];
  }
}

/* v^T D v */
static double square_norm(const struct pair* pair) {
  double sum = 0;
  for (size_t h = 0; h < pair->f[1]->n_level; ++h) {
    sum += pair->v_size[1][h] * pair->v_at[h] * pair->v_at[h];
  }
  return sum;
}

static void scale_to_one(struct pair* pair) {
  const double norm = sqrt(square_norm(pair));
  for (size_t h = 0; h < pair->f[1]->n_level; ++h) {
    pair->v_at[h] = norm > 0 ? pair->v_at[h] / norm : 0;
  }
}

/* v_sum[to][level] := sum over the rows of each level of w times v_from */
static void
spread(const struct pair* pair, size_t to, const double* v_from, double* v_to) {
  const int32_t* v_out = pair->f[to]->v_level;
  const int32_t* v_in = pair->f[1 - to]->v_level;
  memset(v_to, 0, pair->f[to]->n_level * sizeof(double));
  for (size_t i = 0; i < pair->p->n_row; ++i) {
    v_to[v_out[i]] += weight_of(pair, i) * v_from[v_in[i]];
  }
}

static void step(struct pair* pair) {
  for (size_t s = 0; s < 2; ++s) {
    spread(pair, s, s == 0 ? pair->v_at : pair->v_sum[0], pair->v_sum[s]);
    for (size_t g = 0; g < pair->f[s]->n_level; ++g) {
      pair->v_sum[s][g] /= pair->v_size[s][g];
    }
  }
  memcpy(pair->v_at, pair->v_sum[1], pair->f[1]->n_level * sizeof(double));
}

/* Of an effect given the others of its level. */
static double prior_precision(const struct crossed_factor* f,
                              size_t effect,
                              const double* v_theta) {
  crossed_square precision;
  crossed_precision(f, v_theta + f->at_lambda, precision);
  return precision[effect][effect];
}

static void set_priors(struct pair* pair,
                       const struct tb_crossed_place* place) {
  double sum = 0;
  for (size_t i = 0; i < pair->p->n_row; ++i) {
    sum += weight_of(pair, i);
  }
  for (size_t s = 0; s < 2; ++s) {
    pair->v_prior[s] = place->v_theta == NULL
                           ? place->n_worth * sum / (double)pair->p->n_datum
                           : prior_precision(pair->f[s],
                                             pair->link->v_effect[s],
                                             place->v_theta);
  }
}

static void find_rate(struct pair* pair, size_t n_step, double* p_rate) {
  struct tb_rng rng;
  tb_rng_init(&rng, 1, 0, TB_STREAM_model);
  set_sizes(pair);
  tb_rng_fill_norm(&rng, pair->v_at, pair->f[1]->n_level);
  *p_rate = 0;
  for (size_t k = 0; k < n_step; ++k) {
    center(pair);
    scale_to_one(pair);
    step(pair);
    /* of a matrix without negative eigenvalues: from below */
    *p_rate = sqrt(square_norm(pair));
  }
}

enum tb_status tb_crossed_pair_at(const struct tb_model* p_model,
                                  size_t i,
                                  size_t n_step,
                                  const struct tb_crossed_place* place,
                                  const double* v_row,
                                  struct tb_crossed_pair* p_pair) {
  const struct crossed* p = p_model->p_self;
  struct pair pair = {.p = p, .link = &p->v_link[i], .v_row = v_row};
  if (v_row == NULL) {
    pair.v_row = p->v_weight;
  }
  size_t n = 2 * pair.link->n_part;
  for (size_t s = 0; s < 2; ++s) {
    p_pair->v_factor[s] = pair.link->v_factor[s];
    pair.f[s] = &p->v_factor[p_pair->v_factor[s]];
    n += 2 * pair.f[s]->n_level;
  }
  n += pair.f[1]->n_level;
  p_pair->n_part = pair.link->n_part;
  pair.v_z = pair.f[0]->v_column[pair.link->v_effect[0]];
  double* v_all = calloc(n, sizeof(double));
  if (v_all == NULL) {
    return TB_STATUS_memory;
  }
  double* v_next = v_all;
  for (size_t s = 0; s < 2; ++s) {
    pair.v_size[s] = v_next;
    pair.v_sum[s] = v_next + pair.f[s]->n_level;
    v_next += 2 * pair.f[s]->n_level;
  }
  pair.v_at = v_next;
  pair.v_part = v_next + pair.f[1]->n_level;
  set_priors(&pair, place);
  find_rate(&pair, n_step, &p_pair->rate);
  free(v_all);
  return TB_STATUS_ok;
}
