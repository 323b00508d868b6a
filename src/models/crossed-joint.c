/* All effects of a normal response given all else, jointly: what sweeps of
 * factors whose rows connect their levels poorly need, as workers who seldom
 * change firms.
 *
 * With C the rows' precisions, P the block-diagonal one of the effects and
 * A = Z^T C Z + P, effects u become u + d,
 *
 *   A d = Z^T [C (y - eta) + C^1/2 xi] - P u + P^1/2 zeta,
 *
 * xi and zeta normal: an independent draw of their law (Papandreou & Yuille
 * 2010, NIPS 23; Pandolfi, Papaspiliopoulos & Zanella 2024). Effects of the
 * first factor are eliminated, in which A_00 has a block for each level; what
 * is left of the others, S = A_11 - A_10 A_00^-1 A_01, is solved by conjugate
 * gradients with the blocks of A_11 as preconditioner. S has the condition of
 * about 1 / (1 - rho), rho what a sweep leaves (crossed-mixing.c), so that the
 * number of iterations is the root of the number of sweeps. They end where what
 * is left is 10^-8 of the right side, in the preconditioner's norm: far below
 * what any number of draws could tell from an exact one.
 *
 *   symbol   variable       shape       owner
 *   d        v_solution     n_effect    chain's scratch, and so below
 *   r        v_residual     n_effect
 *   p        v_direction    n_effect
 *   A p      v_image        n_effect
 *   blocks   v_block        q (q + 1) / 2 for each level: L of L L^T
 */
#include "models/crossed-inside.h"

#include <math.h>
#include <string.h>

enum { Q = CROSSED_EFFECT, N_MOST = 5000 };

#define LEFT 1e-8 /* of the right side */

/* Sigma^-1 of each factor */
struct precisions {
  crossed_square v[CROSSED_FACTOR];
};

/* numbers of a block of the factor */
static size_t n_square(const struct crossed_factor* f) {
  return f->n_effect * (f->n_effect + 1) / 2;
}

size_t crossed_n_block(const struct crossed* p) {
  size_t n = 0;
  for (size_t k = 0; k < p->n_factor; ++k) {
    n += p->v_factor[k].n_level * n_square(&p->v_factor[k]);
  }
  return n;
}

/* ---- rows ---- */

/* What a pass adds up by level: C Z (v_effect - v_less), of the factors in
 * [from, from_end); v_less (NULL: none) is of the first. */
struct cross {
  size_t from, from_end;
  const double* v_effect;
  const double* v_less;
  double* v_sum; /* n_effect, ADDED to */
};

/* ADDS z v_row of rows to their levels' effects, those of p_context */
static void add_rows(const struct crossed_pass* pass,
                     size_t factor,
                     size_t first,
                     const uint16_t* v_place,
                     size_t n,
                     const double* v_row) {
  const struct crossed_factor* f = &pass->c->p->v_factor[factor];
  const struct cross* cross = pass->p_context;
  const int32_t* v_g = f->v_level + first;
  const size_t q = f->n_effect;
  double* v_sum = cross->v_sum + f->at_effect;
  for (size_t a = 0; a < q; ++a) {
    const double* v_z = f->v_column[a] == NULL ? NULL : f->v_column[a] + first;
    for (size_t k = 0; k < n; ++k) {
      const size_t i = v_place[k];
      v_sum[(size_t)v_g[i] * q + a] +=
          v_z == NULL ? v_row[i] : v_z[i] * v_row[i];
    }
  }
}

/* v_row (n) := Z v_effect, of the factors from `from` on */
static void spread(const struct crossed* p,
                   size_t from,
                   size_t to,
                   const double* v_effect,
                   size_t first,
                   size_t n,
                   double* v_row) {
  memset(v_row, 0, n * sizeof(double));
  for (size_t k = from; k < to; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    crossed_spread(f, v_effect + f->at_effect, first, n, v_row, v_row);
  }
}

/* v_row := C v_row */
static void
weigh(const struct crossed_chain* c, size_t first, size_t n, double* v_row) {
  const double* v_w = c->p->v_weight;
  for (size_t i = 0; i < n; ++i) {
    v_row[i] *= c->point.scale * (v_w == NULL ? 1 : v_w[first + i]);
  }
}

static void look_across(const struct crossed_pass* pass,
                        size_t first,
                        size_t n,
                        double* v_sum,
                        double* v_row) {
  const struct crossed_chain* c = pass->c;
  const struct cross* cross = pass->p_context;
  double* v_less = v_row + CROSSED_TILE;
  (void)v_sum;
  spread(c->p, cross->from, cross->from_end, cross->v_effect, first, n, v_row);
  if (cross->v_less != NULL) {
    spread(c->p, 0, 1, cross->v_less, first, n, v_less);
    for (size_t i = 0; i < n; ++i) {
      v_row[i] -= v_less[i];
    }
  }
  weigh(c, first, n, v_row);
}

static void add_across(struct crossed_chain* c,
                       const struct cross* cross,
                       size_t to,
                       size_t to_end) {
  const struct crossed_pass pass = {.c = c,
                                    .from = to,
                                    .to = to_end,
                                    .n_look = 1,
                                    .p_context = cross,
                                    .look = look_across,
                                    .add = add_rows};
  crossed_go(&pass);
}

/* v_sum of the factors in [to, to_end) := sum of C Z v_effect, that of the
 * factors in [from, from_end), by level */
static void cross(struct crossed_chain* c,
                  size_t from,
                  size_t from_end,
                  const double* v_effect,
                  size_t to,
                  size_t to_end,
                  double* v_sum) {
  const struct cross cross = {from, from_end, v_effect, NULL, v_sum};
  for (size_t k = to; k < to_end; ++k) {
    const struct crossed_factor* f = &c->p->v_factor[k];
    memset(v_sum + f->at_effect, 0, f->n_level * f->n_effect * sizeof(double));
  }
  add_across(c, &cross, to, to_end);
}

/* ---- blocks ---- */

static void read_block(size_t q, const double* v, crossed_square L) {
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      L[a][b] = *v++;
    }
  }
}

/* z z^T of rows: to the blocks of their levels */
static void add_blocks(const struct crossed_pass* pass,
                       size_t factor,
                       size_t first,
                       const uint16_t* v_place,
                       size_t n,
                       const double* v_row) {
  const struct crossed* p = pass->c->p;
  const struct crossed_factor* f = &p->v_factor[factor];
  double* v_block = *(double* const*)pass->p_context;
  (void)v_row;
  for (size_t k = 0; k < n; ++k) {
    const size_t i = first + v_place[k];
    const double w = p->v_weight == NULL ? 1 : p->v_weight[i];
    double* v = v_block + (size_t)f->v_level[i] * n_square(f);
    double z[Q];
    for (size_t a = 0; a < f->n_effect; ++a) {
      z[a] = f->v_column[a] == NULL ? 1 : f->v_column[a][i];
      for (size_t b = 0; b <= a; ++b) {
        *v++ += w * z[a] * z[b];
      }
    }
  }
}

/* The blocks of Z^T C Z + P, and their factors; false: one has none. */
static bool set_blocks(struct crossed_chain* c, const struct precisions* P) {
  const struct crossed* p = c->p;
  double* v_block = c->v_block;
  memset(v_block, 0, crossed_n_block(p) * sizeof(double));
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    const size_t q = f->n_effect, m = n_square(f);
    const struct crossed_pass pass = {.c = c,
                                      .from = k,
                                      .to = k + 1,
                                      .p_context = &v_block,
                                      .add = add_blocks};
    crossed_go(&pass);
    for (size_t g = 0; g < f->n_level; ++g) {
      crossed_square A, L;
      double* v = v_block + g * m;
      read_block(q, v, A);
      for (size_t a = 0; a < q; ++a) {
        for (size_t b = 0; b <= a; ++b) {
          A[a][b] = c->point.scale * A[a][b] + P->v[k][a][b];
        }
      }
      if (!crossed_chol(q, (const double(*)[Q])A, L)) {
        return false;
      }
      for (size_t a = 0; a < q; ++a) {
        for (size_t b = 0; b <= a; ++b) {
          *v++ = L[a][b];
        }
      }
    }
    v_block += f->n_level * m;
  }
  c->p_sweep->n_row += (double)p->n_row;
  return true;
}

/* v_out := blocks^-1 v_in, of the factors in [from, to) */
static void solve_blocks(const struct crossed_chain* c,
                         size_t from,
                         size_t to,
                         const double* v_in,
                         double* v_out) {
  const double* v_block = c->v_block;
  for (size_t k = 0; k < to; ++k) {
    const struct crossed_factor* f = &c->p->v_factor[k];
    const size_t q = f->n_effect;
    for (size_t g = 0; g < f->n_level && k >= from; ++g) {
      const size_t at = f->at_effect + g * q;
      crossed_square L;
      read_block(q, v_block + g * n_square(f), L);
      memmove(v_out + at, v_in + at, q * sizeof(double));
      crossed_solve(q, (const double(*)[Q])L, v_out + at);
      crossed_solve_transposed(q, (const double(*)[Q])L, v_out + at);
    }
    v_block += f->n_level * n_square(f);
  }
}

/* ---- the system ---- */

/* v_out of the other factors := S v_at; that of the first is scratch */
static void apply(struct crossed_chain* c,
                  const struct precisions* P,
                  const double* v_at,
                  double* v_out) {
  const struct crossed* p = c->p;
  cross(c, 1, p->n_factor, v_at, 0, 1, v_out);
  solve_blocks(c, 0, 1, v_out, v_out);
  for (size_t k = 1; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    const size_t q = f->n_effect;
    for (size_t g = 0; g < f->n_level; ++g) {
      for (size_t a = 0; a < q; ++a) {
        double sum = 0;
        for (size_t b = 0; b < q; ++b) {
          sum += P->v[k][a][b] * v_at[f->at_effect + g * q + b];
        }
        v_out[f->at_effect + g * q + a] = sum;
      }
    }
  }
  const struct cross cross = {1, p->n_factor, v_at, v_out, v_out};
  add_across(c, &cross, 1, p->n_factor);
}

/* C (y - eta) + C^1/2 xi; one tile after the other, as the stream of the chain
 * is drawn from */
static void look_at_right(const struct crossed_pass* pass,
                          size_t first,
                          size_t n,
                          double* v_sum,
                          double* v_row) {
  const struct crossed_chain* c = pass->c;
  double* v_curvature = v_row + CROSSED_TILE;
  double v_xi[CROSSED_TILE];
  (void)v_sum;
  crossed_look(c, first, n, c->v_eta + first, NULL, v_row, v_curvature);
  tb_rng_fill_norm(c->p_rng, v_xi, n);
  for (size_t i = 0; i < n; ++i) {
    v_row[i] += sqrt(v_curvature[i]) * v_xi[i];
  }
}

/* v_residual := Z^T [C (y - eta) + C^1/2 xi] - P u + P^1/2 zeta */
static bool set_right(struct crossed_chain* c, const struct precisions* P) {
  const struct crossed* p = c->p;
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    const size_t q = f->n_effect;
    crossed_square L;
    if (!crossed_chol(q, (const double(*)[Q])P->v[k], L)) {
      return false;
    }
    for (size_t g = 0; g < f->n_level; ++g) {
      const double* v_u = c->v_u + f->at_effect + g * q;
      double* v = c->v_residual + f->at_effect + g * q;
      double v_zeta[Q];
      tb_rng_fill_norm(c->p_rng, v_zeta, q);
      for (size_t a = 0; a < q; ++a) {
        v[a] = 0;
        for (size_t b = 0; b <= a; ++b) {
          v[a] += L[a][b] * v_zeta[b];
        }
        for (size_t b = 0; b < q; ++b) {
          v[a] -= P->v[k][a][b] * v_u[b];
        }
      }
    }
  }
  const struct cross cross = {.v_sum = c->v_residual};
  const struct crossed_pass pass = {.c = c,
                                    .to = p->n_factor,
                                    .n_look = 1,
                                    .is_alone = true,
                                    .p_context = &cross,
                                    .look = look_at_right,
                                    .add = add_rows};
  crossed_go(&pass);
  return true;
}

/* v_solution of the other factors, S of it being v_residual, which is lost;
 * false where that is not to be had */
static bool solve(struct crossed_chain* c, const struct precisions* P) {
  const struct crossed* p = c->p;
  const size_t first = p->v_factor[1].at_effect;
  double *v_d = c->v_solution, *v_r = c->v_residual, *v_p = c->v_direction;
  double *v_image = c->v_image, before = 0, start = 0;
  memset(v_d + first, 0, (p->n_effect - first) * sizeof(double));
  for (size_t t = 0; t < N_MOST; ++t) {
    double now = 0, bend = 0;
    solve_blocks(c, 1, p->n_factor, v_r, v_image);
    for (size_t j = first; j < p->n_effect; ++j) {
      now += v_r[j] * v_image[j];
    }
    start = t == 0 ? now : start;
    if (now <= LEFT * LEFT * start) {
      return true;
    }
    for (size_t j = first; j < p->n_effect; ++j) {
      v_p[j] = v_image[j] + (t == 0 ? 0 : now / before * v_p[j]);
    }
    apply(c, P, v_p, v_image);
    for (size_t j = first; j < p->n_effect; ++j) {
      bend += v_p[j] * v_image[j];
    }
    if (!(bend > 0 && isfinite(now / bend))) {
      return false;
    }
    for (size_t j = first; j < p->n_effect; ++j) {
      v_d[j] += now / bend * v_p[j];
      v_r[j] -= now / bend * v_image[j];
    }
    before = now;
  }
  return false;
}

void crossed_draw_jointly(struct crossed_chain* c) {
  const struct crossed* p = c->p;
  const struct crossed_factor* f = &p->v_factor[0];
  const size_t n_first = f->n_level * f->n_effect;
  struct precisions P;
  double* v_first = c->v_image; /* the first factor's part of it */
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* own = &p->v_factor[k];
    crossed_precision(own, c->v_theta + own->at_lambda, P.v[k]);
  }
  if (!set_blocks(c, &P) || !set_right(c, &P)) {
    return;
  }
  /* r_1 - A_10 A_00^-1 r_0 */
  solve_blocks(c, 0, 1, c->v_residual, v_first);
  cross(c, 0, 1, v_first, 1, p->n_factor, c->v_direction);
  for (size_t j = n_first; j < p->n_effect; ++j) {
    c->v_residual[j] -= c->v_direction[j];
  }
  if (!solve(c, &P)) {
    return;
  }
  /* d_0 = A_00^-1 (r_0 - A_01 d_1) */
  cross(c, 1, p->n_factor, c->v_solution, 0, 1, v_first);
  for (size_t j = 0; j < n_first; ++j) {
    v_first[j] = c->v_residual[j] - v_first[j];
  }
  solve_blocks(c, 0, 1, v_first, c->v_solution);
  for (size_t j = 0; j < p->n_effect; ++j) {
    c->v_u[j] += c->v_solution[j];
  }
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* own = &p->v_factor[k];
    crossed_shift_eta(c, own, c->v_solution + own->at_effect);
  }
}
