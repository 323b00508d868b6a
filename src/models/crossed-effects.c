/* The effects of all levels of a factor given all else, each level's jointly.
 *
 * Levels are independent, with log densities l_g(u) - u^T Sigma^-1 u / 2. Each
 * has an independence proposal of its own, Student's t with 5 degrees of
 * freedom about where N_NEWTON steps of Newton's method lead, with the
 * curvature where the last of them began. The search begins at v_place, which
 * warmup makes the mean of the chain's effects and which stays after that: so
 * neither centre nor scale depends on the effects that are to be replaced, and
 * the test
 *
 *   min(1, p(u') q(u) / (p(u) q(u')))
 *
 * is exact wherever the search got to. A normal response is quadratic: one step
 * is all, what is proposed is the exact conditional law, and nothing is tested.
 */
#include "models/crossed-inside.h"

#include <math.h>
#include <string.h>

enum {
  Q = CROSSED_EFFECT,
  N_NEWTON = 2,
  LEVELS_EACH = 512 /* of a thread at least */
};

#define DF       5.0
#define MOST_ETA 2.0 /* how far a step of the search moves a predictor */

/* numbers of a level's curvature */
static size_t n_square(const struct crossed_factor* f) {
  return f->n_effect * (f->n_effect + 1) / 2;
}

/* z score and z z^T curvature of rows: to their levels */
static void add_scores(const struct crossed_pass* pass,
                       size_t factor,
                       size_t first,
                       const uint16_t* v_place,
                       size_t n,
                       const double* v_row) {
  struct crossed_chain* c = pass->c;
  const struct crossed_factor* f = &c->p->v_factor[factor];
  const int32_t* v_g = f->v_level + first;
  const double* v_curvature = v_row + CROSSED_TILE;
  const size_t q = f->n_effect, m = n_square(f);
  double *v_sum = c->v_score, *v_square = c->v_square;
  if (q == 1 && f->v_column[0] == NULL) {
    for (size_t k = 0; k < n; ++k) {
      const size_t i = v_place[k];
      v_sum[v_g[i]] += v_row[i];
      v_square[v_g[i]] += v_curvature[i];
    }
    return;
  }
  for (size_t k = 0; k < n; ++k) {
    const size_t i = v_place[k];
    double z[Q];
    double* v_s = v_sum + (size_t)v_g[i] * q;
    double* v_c = v_square + (size_t)v_g[i] * m;
    for (size_t a = 0; a < q; ++a) {
      z[a] = f->v_column[a] == NULL ? 1 : f->v_column[a][first + i];
      v_s[a] += z[a] * v_row[i];
      for (size_t b = 0; b <= a; ++b) {
        *v_c++ += z[a] * z[b] * v_curvature[i];
      }
    }
  }
}

static void look_at_scores(const struct crossed_pass* pass,
                           size_t first,
                           size_t n,
                           double* v_sum,
                           double* v_row) {
  const struct crossed_chain* c = pass->c;
  const struct crossed_factor* f = &c->p->v_factor[pass->from];
  double v_eta[CROSSED_TILE];
  (void)v_sum;
  crossed_spread(f, c->v_shift, first, n, c->v_eta + first, v_eta);
  crossed_look(c, first, n, v_eta, NULL, v_row, v_row + CROSSED_TILE);
}

/* v_score, v_square: sums of the rows of each level, at v_mode in the place of
 * u */
static void look_at_levels(struct crossed_chain* c, size_t factor) {
  const struct crossed_factor* f = &c->p->v_factor[factor];
  const size_t n_all = f->n_level * f->n_effect;
  const double* v_u = c->v_u + f->at_effect;
  for (size_t j = 0; j < n_all; ++j) {
    c->v_shift[j] = c->v_mode[j] - v_u[j];
  }
  memset(c->v_score, 0, n_all * sizeof(double));
  memset(c->v_square, 0, f->n_level * n_square(f) * sizeof(double));
  const struct crossed_pass pass = {.c = c,
                                    .from = factor,
                                    .to = factor + 1,
                                    .n_look = 1,
                                    .look = look_at_scores,
                                    .add = add_scores};
  crossed_go(&pass);
}

/* L L^T = sum z z^T w + Sigma^-1 of level g; false: there is none */
static bool level_chol(const struct crossed_chain* c,
                       const struct crossed_factor* f,
                       const double (*precision)[Q],
                       size_t g,
                       crossed_square L) {
  crossed_square A;
  const double* v = c->v_square + g * n_square(f);
  for (size_t a = 0; a < f->n_effect; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      A[a][b] = *v++ + precision[a][b];
    }
  }
  return crossed_chol(f->n_effect, (const double(*)[Q])A, L);
}

/* v_step: one of Newton's for the level, at v_mode; no row's predictor moves by
 * more than MOST_ETA in one effect */
static void level_step(const struct crossed_chain* c,
                       const struct crossed_factor* f,
                       const double (*precision)[Q],
                       size_t g,
                       const double (*L)[Q],
                       double* v_step) {
  const size_t q = f->n_effect;
  const double* v_mode = c->v_mode + g * q;
  double most = 0;
  for (size_t a = 0; a < q; ++a) {
    v_step[a] = c->v_score[g * q + a];
    for (size_t b = 0; b < q; ++b) {
      v_step[a] -= precision[a][b] * v_mode[b];
    }
  }
  crossed_solve(q, L, v_step);
  crossed_solve_transposed(q, L, v_step);
  for (size_t a = 0; a < q; ++a) {
    most = fmax(most, fabs(v_step[a]) * f->v_most[a]);
  }
  if (!c->p->is_quadratic && most > MOST_ETA) {
    for (size_t a = 0; a < q; ++a) {
      v_step[a] *= MOST_ETA / most;
    }
  }
}

/* -u^T P u / 2 */
static double
log_normal(size_t q, const double (*precision)[Q], const double* v_u) {
  double sum = 0;
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b < q; ++b) {
      sum += v_u[a] * precision[a][b] * v_u[b];
    }
  }
  return -0.5 * sum;
}

/* log q(u) about v_mode, up to a constant */
static double log_proposal(size_t q,
                           const double (*L)[Q],
                           const double* v_mode,
                           const double* v_u) {
  double square = 0;
  for (size_t a = 0; a < q; ++a) {
    double sum = 0;
    for (size_t b = a; b < q; ++b) {
      sum += L[b][a] * (v_u[b] - v_mode[b]);
    }
    square += sum * sum;
  }
  return -0.5 * (DF + (double)q) * log1p(square / DF);
}

/* What proposals are made of, level after level: normal numbers into v_next,
 * how wide those of a level are into v_log. */
static void draw_noise(struct crossed_chain* c,
                       const struct crossed_factor* f) {
  for (size_t g = 0; g < f->n_level; ++g) {
    tb_rng_fill_norm(c->p_rng, c->v_next + g * f->n_effect, f->n_effect);
    c->v_log[g] = c->p->is_quadratic
                      ? 1
                      : sqrt(DF / (2 * tb_rng_gamma(c->p_rng, DF / 2)));
  }
}

/* v_next of a level, from noise; returns the log of what it has to be accepted
 * by, less the rows' part */
static double propose(struct crossed_chain* c,
                      const struct crossed_factor* f,
                      const double (*precision)[Q],
                      size_t g) {
  const size_t q = f->n_effect;
  double* v_mode = c->v_mode + g * q;
  double* v_next = c->v_next + g * q;
  const double* v_u = c->v_u + f->at_effect + g * q;
  crossed_square L;
  double v_step[Q];
  const double wide = c->v_log[g];
  if (!level_chol(c, f, precision, g, L)) {
    memcpy(v_next, v_u, q * sizeof(double));
    return -INFINITY;
  }
  level_step(c, f, precision, g, (const double(*)[Q])L, v_step);
  for (size_t a = 0; a < q; ++a) {
    v_mode[a] += v_step[a];
  }
  crossed_solve_transposed(q, (const double(*)[Q])L, v_next);
  for (size_t a = 0; a < q; ++a) {
    v_next[a] = v_mode[a] + wide * v_next[a];
  }
  if (c->p->is_quadratic) {
    return 0;
  }
  return log_normal(q, precision, v_next) - log_normal(q, precision, v_u) +
         log_proposal(q, (const double(*)[Q])L, v_mode, v_u) -
         log_proposal(q, (const double(*)[Q])L, v_mode, v_next);
}

/* One step of Newton's method for every level; v_square stays that of before.
 */
static void
climb(struct crossed_chain* c, size_t factor, const double (*precision)[Q]) {
  const struct crossed_factor* f = &c->p->v_factor[factor];
  const size_t q = f->n_effect;
  look_at_levels(c, factor);
#ifdef _OPENMP
  const int n_thread = (int)crossed_n_thread(c, f->n_level, LEVELS_EACH);
#pragma omp parallel for num_threads(n_thread) if (n_thread > 1)
#endif
  for (size_t g = 0; g < f->n_level; ++g) {
    crossed_square L;
    double v_step[Q];
    if (!level_chol(c, f, precision, g, L)) {
      continue;
    }
    level_step(c, f, precision, g, (const double(*)[Q])L, v_step);
    for (size_t a = 0; a < q; ++a) {
      c->v_mode[g * q + a] += v_step[a];
    }
  }
}

/* v_next of all levels; v_score: see propose(), the scores are lost */
static void propose_all(struct crossed_chain* c,
                        const struct crossed_factor* f,
                        const double (*precision)[Q]) {
  /* a level's place is where its first score was, which it alone reads */
  draw_noise(c, f);
#ifdef _OPENMP
  const int n_thread = (int)crossed_n_thread(c, f->n_level, LEVELS_EACH);
#pragma omp parallel for num_threads(n_thread) if (n_thread > 1)
#endif
  for (size_t g = 0; g < f->n_level; ++g) {
    const double log_ratio = propose(c, f, precision, g);
    c->v_score[g * f->n_effect] = log_ratio;
  }
}

/* what the density of each row gains by v_shift */
static void look_at_gain(const struct crossed_pass* pass,
                         size_t first,
                         size_t n,
                         double* v_sum,
                         double* v_row) {
  const struct crossed_chain* c = pass->c;
  const struct crossed_factor* f = &c->p->v_factor[pass->from];
  double v_eta[CROSSED_TILE], v_old[CROSSED_TILE];
  (void)v_sum;
  crossed_look(c, first, n, c->v_eta + first, v_old, NULL, NULL);
  crossed_spread(f, c->v_shift, first, n, c->v_eta + first, v_eta);
  crossed_look(c, first, n, v_eta, v_row, NULL, NULL);
  for (size_t i = 0; i < n; ++i) {
    v_row[i] -= v_old[i];
  }
}

static void add_gain(const struct crossed_pass* pass,
                     size_t factor,
                     size_t first,
                     const uint16_t* v_place,
                     size_t n,
                     const double* v_row) {
  const struct crossed_chain* c = pass->c;
  const int32_t* v_g = c->p->v_factor[factor].v_level + first;
  for (size_t k = 0; k < n; ++k) {
    c->v_log[v_g[v_place[k]]] += v_row[v_place[k]];
  }
}

/* v_log: what the log density of each level's rows gains by v_shift */
static void gain(struct crossed_chain* c, size_t factor) {
  memset(c->v_log, 0, c->p->v_factor[factor].n_level * sizeof(double));
  const struct crossed_pass pass = {.c = c,
                                    .from = factor,
                                    .to = factor + 1,
                                    .n_look = 2,
                                    .look = look_at_gain,
                                    .add = add_gain};
  crossed_go(&pass);
}

/* v_shift := v_next - u; where a level stays, 0 */
static void set_shift(struct crossed_chain* c, const struct crossed_factor* f) {
  const double* v_u = c->v_u + f->at_effect;
  for (size_t j = 0; j < f->n_level * f->n_effect; ++j) {
    c->v_shift[j] = c->v_next[j] - v_u[j];
  }
}

void crossed_draw_effects(struct crossed_chain* c, size_t factor) {
  const struct crossed_factor* f = &c->p->v_factor[factor];
  const size_t q = f->n_effect;
  double* v_u = c->v_u + f->at_effect;
  crossed_square precision;
  crossed_precision(f, c->v_theta + f->at_lambda, precision);
  const double(*P)[Q] = (const double(*)[Q])precision;
  memcpy(c->v_mode, c->v_place + f->at_effect, f->n_level * q * sizeof(double));
  for (size_t k = 1; k < N_NEWTON && !c->p->is_quadratic; ++k) {
    climb(c, factor, P);
  }
  look_at_levels(c, factor);
  propose_all(c, f, P);
  set_shift(c, f);
  if (!c->p->is_quadratic) {
    gain(c, factor);
    for (size_t g = 0; g < f->n_level; ++g) {
      const double log_ratio = c->v_score[g * q] + c->v_log[g];
      const double coin = log(tb_rng_unif(c->p_rng));
      c->p_sweep->n_propose += 1;
      if (coin < log_ratio) {
        c->p_sweep->n_accept += 1;
        c->log_lik += c->v_log[g];
      } else {
        memcpy(c->v_next + g * q, v_u + g * q, q * sizeof(double));
        memset(c->v_shift + g * q, 0, q * sizeof(double));
      }
    }
  }
  memcpy(v_u, c->v_next, f->n_level * q * sizeof(double));
  crossed_shift_eta(c, f, c->v_shift);
}

/* Levels that a step makes worse go half of it, and again half. */
void crossed_climb_effects(struct crossed_chain* c, size_t factor) {
  enum { N_HALF = 6 };
  const struct crossed_factor* f = &c->p->v_factor[factor];
  const size_t q = f->n_effect;
  double* v_u = c->v_u + f->at_effect;
  crossed_square precision;
  crossed_precision(f, c->v_theta + f->at_lambda, precision);
  const double(*P)[Q] = (const double(*)[Q])precision;
  memcpy(c->v_mode, v_u, f->n_level * q * sizeof(double));
  climb(c, factor, P);
  memcpy(c->v_next, c->v_mode, f->n_level * q * sizeof(double));
  for (size_t k = 0; k < N_HALF; ++k) {
    set_shift(c, f);
    gain(c, factor);
    bool is_done = true;
    for (size_t g = 0; g < f->n_level; ++g) {
      const double more = c->v_log[g] + log_normal(q, P, c->v_next + g * q) -
                          log_normal(q, P, v_u + g * q);
      if (more >= -1e-9) {
        continue;
      }
      is_done = false;
      for (size_t a = 0; a < q; ++a) {
        const double part = k + 1 < N_HALF ? 0.5 : 0;
        c->v_next[g * q + a] =
            v_u[g * q + a] + part * (c->v_next[g * q + a] - v_u[g * q + a]);
      }
    }
    if (is_done) {
      break;
    }
  }
  set_shift(c, f);
  memcpy(v_u, c->v_next, f->n_level * q * sizeof(double));
  memcpy(c->v_place + f->at_effect, v_u, f->n_level * q * sizeof(double));
  crossed_shift_eta(c, f, c->v_shift);
}
