/* A sweep of crossed effects: coefficients, effects, covariances, each given
 * all else, and the moves between them. What is tuned is tuned in warmup. */
#include "models/crossed-inside.h"

#include <math.h>
#include <string.h>

enum { N_COUNT = 8, N_CLIMB = 8 };

/* ---- layout ---- */

static void lay_out_state(struct crossed_chain* c, struct tb_arena* p_arena) {
  const struct crossed* p = c->p;
  const size_t d = p->n_coef;
  c->v_count = tb_arena_doubles(p_arena, N_COUNT);
  c->v_u = tb_arena_doubles(p_arena, p->n_effect);
  c->v_place = tb_arena_doubles(p_arena, p->n_effect);
  c->v_moment = tb_arena_doubles(p_arena, 1 + 4 * p->n_effect);
  c->v_center = tb_arena_doubles(p_arena, d);
  c->v_cross = tb_arena_doubles(p_arena, d * d);
  c->v_step = tb_arena_doubles(p_arena, p->n_lambda + p->n_aux);
}

static void lay_out_scratch(struct crossed_chain* c, struct tb_arena* p_arena) {
  const struct crossed* p = c->p;
  const size_t d = p->n_coef, n_dim = p->prior.n_dim;
  size_t n_most = 0, n_square = 0; /* of a factor at most */
  for (size_t k = 0; k < p->n_factor; ++k) {
    const size_t q = p->v_factor[k].n_effect;
    const size_t n_level = p->v_factor[k].n_level;
    n_most = tb_max(n_most, n_level * q);
    n_square = tb_max(n_square, n_level * q * (q + 1) / 2);
  }
  c->v_eta = tb_arena_doubles(p_arena, p->n_row);
  c->v_mode = tb_arena_doubles(p_arena, n_most);
  c->v_next = tb_arena_doubles(p_arena, n_most);
  c->v_shift = tb_arena_doubles(p_arena, n_most);
  c->v_score = tb_arena_doubles(p_arena, n_most);
  c->v_square = tb_arena_doubles(p_arena, n_square);
  c->v_log = tb_arena_doubles(p_arena, p->n_level_most);
  c->v_part = tb_arena_doubles(p_arena, p->n_part_most);
  c->v_beta = tb_arena_doubles(p_arena, n_dim);
  c->v_slope = tb_arena_doubles(p_arena, n_dim);
  c->v_other = tb_arena_doubles(p_arena, n_dim);
  c->v_draw = tb_arena_doubles(p_arena, n_dim);
  c->v_move = tb_arena_doubles(p_arena, n_dim);
  c->v_hessian = tb_arena_doubles(p_arena, n_dim * n_dim);
  c->v_chol = tb_arena_doubles(p_arena, d * d);
  c->v_tile = tb_arena_doubles(p_arena, CROSSED_TILE * d);
  const size_t n_tile =
      tb_min(CROSSED_STRETCH, (p->n_row + CROSSED_TILE - 1) / CROSSED_TILE);
  c->v_row = tb_arena_doubles(p_arena, n_tile * CROSSED_VALUE * CROSSED_TILE);
  c->v_sum = tb_arena_doubles(p_arena, n_tile * crossed_n_sum(p));
  if (p->is_quadratic && p->n_factor > 1) {
    c->v_block = tb_arena_doubles(p_arena, crossed_n_block(p));
    c->v_solution = tb_arena_doubles(p_arena, p->n_effect);
    c->v_residual = tb_arena_doubles(p_arena, p->n_effect);
    c->v_direction = tb_arena_doubles(p_arena, p->n_effect);
    c->v_image = tb_arena_doubles(p_arena, p->n_effect);
  }
}

size_t crossed_workspace_size(const struct tb_model* p_model, size_t n_batch) {
  struct crossed_chain c = {.p = p_model->p_self};
  struct tb_arena arena = {NULL, 0};
  (void)n_batch;
  lay_out_scratch(&c, &arena);
  return arena.n_used;
}

static size_t state_size(const struct tb_model* p_model) {
  struct crossed_chain c = {.p = p_model->p_self};
  struct tb_arena arena = {NULL, 0};
  lay_out_state(&c, &arena);
  return arena.n_used;
}

static struct crossed_chain chain_of(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     struct tb_sweep* p_sweep) {
  const struct crossed* p = p_model->p_self;
  struct crossed_chain c = {.p = p,
                            .v_theta = p_sweep->v_theta,
                            .p_rng = p_sweep->p_rng,
                            .p_sweep = p_sweep,
                            .n_thread = tb_max(1, p_work->n_thread)};
  struct tb_arena state = {p_sweep->p_state, 0};
  struct tb_arena scratch = {p_work->p_scratch, 0};
  lay_out_state(&c, &state);
  lay_out_scratch(&c, &scratch);
  c.point = tb_response_at(&p->response, c.v_theta + p->prior.n_dim - p->n_aux);
  return c;
}

static struct crossed_chain chain_at(const struct tb_model* p_model,
                                     const void* p_state) {
  struct crossed_chain c = {.p = p_model->p_self};
  struct tb_arena state = {(char*)p_state, 0};
  lay_out_state(&c, &state);
  return c;
}

/* ---- sweeps ---- */

/* Effects at the mode given theta, and the places that searches begin at near
 * the mode of all; theta stays. */
static enum tb_status start(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            struct tb_sweep* p_sweep) {
  struct crossed_chain c = chain_of(p_model, p_work, p_sweep);
  const struct crossed* p = c.p;
  const size_t n_own = p->n_coef * sizeof(double);
  memset(p_sweep->p_state, 0, state_size(p_model));
  for (size_t l = 0; l < p->n_lambda + p->n_aux; ++l) {
    c.v_step[l] = log(0.2);
  }
  memcpy(c.v_draw, c.v_theta, n_own);
  for (size_t k = 0; k < N_CLIMB; ++k) {
    crossed_refresh(&c);
    const enum tb_status status = crossed_climb_coef(&c);
    if (status != TB_STATUS_ok) {
      return status;
    }
    for (size_t f = 0; f < p->n_factor; ++f) {
      crossed_climb_effects(&c, f);
    }
  }
  memcpy(c.v_theta, c.v_draw, n_own);
  return TB_STATUS_ok;
}

/* In warmup, places follow the chain: the mean so far, and of the last fifty
 * sweeps at most. */
static void follow(struct crossed_chain* c) {
  const double share = fmax(1 / (2 + c->v_count[0]), 0.02);
  for (size_t j = 0; j < c->p->n_effect; ++j) {
    c->v_place[j] += share * (c->v_u[j] - c->v_place[j]);
  }
  for (size_t j = 0; j < c->p->n_coef; ++j) {
    c->v_center[j] += share * (c->v_theta[j] - c->v_center[j]);
  }
  c->v_count[0] += 1;
}

/* Where u is below the quantile that share p of the law is below, and where it
 * is above: a step of Robbins & Monro's (1951, Ann. Math. Statist. 22:400), of
 * 1.5 sd over n times the density that a normal law has there. The first few
 * sweeps are a normal law's. */
static double
next_quantile(double q, double u, double n, double mean, double sd, double p) {
  const double density = 0.10313564037537139;
  const double far = 1.6448536269514722;
  if (n <= 20) {
    return mean + (p < 0.5 ? -far : far) * sd;
  }
  return q + 1.5 * sd / (density * n) * (p - (u <= q ? 1 : 0));
}

/* Welford (1962), Technometrics 4:419; and quantiles. */
static void add_moments(struct crossed_chain* c) {
  const size_t n_effect = c->p->n_effect;
  const double n = c->v_moment[0] += 1;
  double* v_mean = c->v_moment + 1;
  double* v_square = v_mean + n_effect;
  double* v_low = v_square + n_effect;
  double* v_high = v_low + n_effect;
  for (size_t j = 0; j < n_effect; ++j) {
    const double u = c->v_u[j], before = u - v_mean[j];
    v_mean[j] += before / n;
    v_square[j] += before * (u - v_mean[j]);
    const double sd = n < 2 ? 0 : sqrt(v_square[j] / (n - 1));
    v_low[j] = next_quantile(v_low[j], u, n, v_mean[j], sd, 0.05);
    v_high[j] = next_quantile(v_high[j], u, n, v_mean[j], sd, 0.95);
  }
}

static enum tb_status sweep(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            struct tb_sweep* p_sweep) {
  struct crossed_chain c = chain_of(p_model, p_work, p_sweep);
  const struct crossed* p = c.p;
  crossed_refresh(&c);
  const enum tb_status status = crossed_draw_coef(&c);
  if (status != TB_STATUS_ok) {
    return status;
  }
  for (size_t k = 0; k < p->n_factor; ++k) {
    crossed_draw_effects(&c, k);
    crossed_draw_covariance(&c, k);
    for (size_t a = 0; a < p->v_factor[k].n_effect; ++a) {
      crossed_scale(&c, k, a);
    }
  }
  for (size_t t = 0; t < p->n_tie; ++t) {
    crossed_shift_tie(&c, &p->v_tie[t]);
  }
  for (size_t t = 0; t < p->n_link; ++t) {
    crossed_shift_link(&c, &p->v_link[t]);
    for (size_t side = 0; side < 2; ++side) {
      if (p->v_link[t].v_is_outer[side]) {
        crossed_scale_link(&c, &p->v_link[t], side);
      }
    }
  }
  if (p_sweep->is_joint && p->is_quadratic && p->n_factor > 1) {
    crossed_draw_jointly(&c);
  }
  crossed_draw_aux(&c);
  if (p_sweep->is_warmup) {
    follow(&c);
  } else {
    add_moments(&c);
  }
  return TB_STATUS_ok;
}

/* ---- what there is besides theta ---- */

static size_t n_effect(const struct tb_model* p_model) {
  const struct crossed* p = p_model->p_self;
  return p->n_effect;
}

static const double* effects(const struct tb_model* p_model,
                             const void* p_state) {
  return chain_at(p_model, p_state).v_u;
}

static const double* moments(const struct tb_model* p_model,
                             const void* p_state) {
  return chain_at(p_model, p_state).v_moment;
}

const struct tb_model_sweeps crossed_sweeps = {
    .state_size = state_size,
    .start = start,
    .sweep = sweep,
    .n_effect = n_effect,
    .effects = effects,
    .moments = moments,
};
