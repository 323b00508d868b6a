/* Regressions with several grouping factors, from inside: what crossed*.c
 * share.
 *
 *   eta_i = x_i^T beta + offset_i + sum_k z_ik^T u_k,g_k(i)
 *   u_kg ~ N(0, Sigma_k),  Sigma_k = D R D,  g = 1 .. n_level of factor k
 *
 * theta = (beta, lambda_1, .., lambda_K, s): lambda_k are the logarithms of the
 * standard deviations D, then Fisher's z (atanh) of the canonical partial
 * correlations of R, row by row; s are those of the response's own that are
 * sampled. All effects u, factor after factor and level after level, are
 * numbers of a chain besides theta: the posterior is that of theta and u.
 *
 * Rows are kept once, sorted by the levels of the first factor, as columns; a
 * chain keeps eta. Whatever looks at rows goes over all of them, tile by tile,
 * and adds up by level: levels of one factor are independent given all else,
 * so one pass does for all of them.
 *
 *   symbol     variable      shape             owner
 *   x, z       v_column      n_column columns  crossed; NULL: of ones
 *   y, w, o    v_y, ..       n_row             crossed
 *   g_k(i)     v_level       n_row             factor, from 0
 *   u          v_u           n_effect          chain's state
 *   eta        v_eta         n_row             chain's scratch
 */
#ifndef TB_MODELS_CROSSED_INSIDE_H
#define TB_MODELS_CROSSED_INSIDE_H

#include "base/arena.h"
#include "base/clip.h"
#include "models/model.h"
#include "models/sweeps.h"
#include "priors/prior.h"
#include "responses/response.h"

enum {
  CROSSED_FACTOR = 8,  /* factors at most */
  CROSSED_EFFECT = 3,  /* effects of a level at most, q */
  CROSSED_LAMBDA = 6,  /* q (q + 1) / 2 */
  CROSSED_TILE = 512,  /* rows */
  CROSSED_VALUE = 2,   /* numbers of a row that its levels add up, at most */
  CROSSED_STRETCH = 64 /* tiles that threads share out at a time */
};

/* priors of standard deviations: numbers of R/prior-lkj.R */
enum crossed_sd_kind {
  CROSSED_SD_flat = 0,
  CROSSED_SD_normal = 1,
  CROSSED_SD_student = 2,
  CROSSED_SD_exponential = 3
};

typedef double crossed_square[CROSSED_EFFECT][CROSSED_EFFECT];

struct crossed_factor {
  size_t n_level;
  size_t n_effect; /* q, of a level */
  size_t n_lambda;
  size_t at[CROSSED_EFFECT][CROSSED_EFFECT]; /* the lambda of row a, column b */
  bool is_correlated;
  size_t at_lambda; /* the first of them in theta */
  size_t at_effect; /* the first of its effects in u */
  size_t v_z[CROSSED_EFFECT];
  const double* v_column[CROSSED_EFFECT]; /* NULL: of ones */
  double v_most[CROSSED_EFFECT];          /* largest |z| */
  int32_t* v_level;
  enum crossed_sd_kind kind; /* the prior of standard deviations */
  double df, v_scale[CROSSED_EFFECT];
  double eta; /* of the LKJ prior */
};

/* A column of X that is, in the rows of each level, a multiple of a column of
 * z: beta + c and u_g - c v_level[g] leave every eta_i where it is. */
struct crossed_tie {
  size_t coef, factor, effect;
  double* v_level; /* n_level; NULL: 1 each */
};

/* Two factors that have an effect of the same column: u + c in one and u - c in
 * the other leave every eta_i where it is, for each part of the graph of their
 * levels by itself, parts that no row connects. */
struct crossed_link {
  size_t v_factor[2], v_effect[2];
  size_t n_part;
  int32_t* v_part[2]; /* n_level each: the part of a level */
  double* v_size;     /* n_part x 2: levels of each factor in a part */
  bool v_is_outer[2]; /* has each part one level of the factor, in which those
                         of the other are nested? */
};

struct crossed {
  struct tb_response response;
  struct tb_prior prior; /* of beta and s; flat in lambda */
  bool is_quadratic;     /* is the response normal? */
  bool is_normal;        /* is the prior of beta, or flat? */
  size_t n_datum; /* rows that were given; n_row: those that are kept, fewer
                     where they are cells, see crossed-cells.c */
  double square_within; /* of cells */
  size_t n_row, n_coef, n_aux, n_factor, n_effect, n_lambda, n_column;
  size_t n_level_most, n_part_most;
  double** v_column; /* n_column */
  double* v_y;
  double* v_weight; /* NULL: 1 each */
  double* v_offset; /* NULL: 0 each */
  void* p_rows;     /* one block of memory: all of these, and levels */
  size_t n_byte;
  struct crossed_factor v_factor[CROSSED_FACTOR];
  struct crossed_tie* v_tie;
  size_t n_tie;
  struct crossed_link* v_link;
  size_t n_link;
};

/* A chain in a sweep: its state, and what the workspace lends. */
struct crossed_chain {
  const struct crossed* p;
  double* v_theta;
  struct tb_rng* p_rng;
  struct tb_sweep* p_sweep;
  struct tb_response_point point;
  double log_lik;  /* at eta; not kept where the response is normal */
  size_t n_thread; /* that passes may use, at least 1 */
  /* state */
  double* v_count;  /* sweeps of warmup; sweeps after it, in the moments */
  double* v_u;      /* n_effect */
  double* v_place;  /* n_effect: where searches for modes begin */
  double* v_moment; /* 1 + 4 n_effect: see struct tb_model_sweeps */
  double* v_center; /* n_coef: where the search for beta's mode begins */
  double* v_cross;  /* n_coef x n_coef: X^T W X, W the curvature there */
  double* v_step;   /* n_lambda: log sizes of the scaling moves; + n_aux */
  /* scratch */
  double* v_eta;  /* n_row */
  double* v_mode; /* n_level_most x q, and so below */
  double* v_next;
  double* v_shift;
  double* v_score;
  double* v_square; /* n_level_most x q (q + 1) / 2 */
  double* v_log;    /* n_level_most */
  double* v_part;   /* n_part_most */
  double* v_beta;   /* n_dim, and so below */
  double* v_slope;
  double* v_other;
  double* v_draw;
  double* v_move;
  double* v_hessian;  /* n_dim x n_dim */
  double* v_chol;     /* n_coef x n_coef */
  double* v_tile;     /* CROSSED_TILE x n_coef */
  double* v_row;      /* see crossed-pass.c; at most CROSSED_STRETCH tiles */
  double* v_sum;      /* likewise */
  double* v_block;    /* of joint draws, normal responses alone: see
                         crossed_n_block() */
  double* v_solution; /* n_effect, and so below */
  double* v_residual;
  double* v_direction;
  double* v_image;
};

/* ---- crossed-cells.c: rows that are equal but for y ---- */

/* Rows as they come in. */
struct crossed_input {
  size_t n_row, n_column, n_factor;
  const struct tb_param *p_x, *p_y, *p_level; /* n_row each: columns, one, */
  const struct tb_param *p_weight, *p_offset; /* factors; NULL: none */
};

/* v_order (n_row): rows by the levels of the first factor, and then by cells;
 * v_begin (n_row + 1) gets where each cell begins in it. p_n_cell 0: there are
 * hardly fewer cells than rows. */
enum tb_status crossed_find_cells(const struct crossed_input* in,
                                  uint32_t* v_order,
                                  uint32_t* v_begin,
                                  size_t* p_n_cell);
/* v_y, v_weight (n_row: cells) and square_within */
void crossed_fill_cells(struct crossed* p,
                        const struct crossed_input* in,
                        const uint32_t* v_order,
                        const uint32_t* v_begin);

/* ---- crossed-rows.c: rows on their way in ---- */

enum tb_status crossed_take_rows(struct crossed* p,
                                 const struct tb_params* p_params);
enum tb_status crossed_find_ties(struct crossed* p);
enum tb_status crossed_find_links(struct crossed* p);
void crossed_release(struct crossed* p);

/* ---- crossed-pass.c: passes over all rows, in threads ---- */

struct crossed_pass;

/* Of n rows, in threads, so that nothing but theirs may be written: SETS v_sum
 * (n_sum) and v_row (CROSSED_VALUE columns of CROSSED_TILE). */
typedef void crossed_look_at(const struct crossed_pass* pass,
                             size_t first,
                             size_t n,
                             double* v_sum,
                             double* v_row);

struct crossed_pass {
  struct crossed_chain* c;
  size_t n_sum;    /* of a tile, at most crossed_n_sum() */
  double* v_total; /* n_sum, SET: over all tiles */
  size_t from, to; /* the factors whose levels rows add to; none: 0, 0 */
  double n_look;   /* how often it looks at a row, for counts */
  bool is_alone;   /* must tiles come one after the other? */
  const void* p_context;
  crossed_look_at* look; /* NULL: nothing to do */
  /* ADDS v_row to the levels of the factor, of the n rows first + v_place */
  void (*add)(const struct crossed_pass* pass,
              size_t factor,
              size_t first,
              const uint16_t* v_place,
              size_t n,
              const double* v_row);
};

void crossed_go(const struct crossed_pass* pass);
/* the sum over all rows of the one number that tiles sum up to */
double crossed_total(struct crossed_chain* c,
                     crossed_look_at* look,
                     const void* p_context);
/* threads for n pieces of work, none of which has less than `each` */
size_t crossed_n_thread(const struct crossed_chain* c, size_t n, size_t each);
/* numbers that tiles sum up, at most */
static inline size_t crossed_n_sum(const struct crossed* p) {
  return tb_max(p->n_coef, CROSSED_EFFECT * (1 + CROSSED_EFFECT));
}

/* ---- crossed-look.c: rows, tile by tile ---- */

/* Of n rows at v_eta (n); NULL: not wanted. */
void crossed_look(const struct crossed_chain* c,
                  size_t first,
                  size_t n,
                  const double* v_eta,
                  double* v_density,
                  double* v_score,
                  double* v_curvature);
/* v_out (n) := v_eta (n) + z^T v_level, effects of each level */
void crossed_spread(const struct crossed_factor* f,
                    const double* v_level,
                    size_t first,
                    size_t n,
                    const double* v_eta,
                    double* v_out);
/* v_out (n) := v_eta (n) + X v_beta */
void crossed_add_design(const struct crossed* p,
                        const double* v_beta,
                        size_t first,
                        size_t n,
                        const double* v_eta,
                        double* v_out);
static inline double crossed_sum(size_t n, const double* v) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += v[i];
  }
  return sum;
}
/* eta += z^T v_level of all rows */
void crossed_shift_eta(struct crossed_chain* c,
                       const struct crossed_factor* f,
                       const double* v_level);
/* eta and log_lik of the chain, from theta and u */
void crossed_refresh(struct crossed_chain* c);
/* log density of all rows at eta */
double crossed_log_lik(struct crossed_chain* c);

/* ---- crossed-covariance.c ---- */

/* F F^T = Sigma, lower, and Sigma^-1; the logarithm of |F| */
double crossed_root(const struct crossed_factor* f,
                    const double* v_lambda,
                    crossed_square root);
double crossed_precision(const struct crossed_factor* f,
                         const double* v_lambda,
                         crossed_square precision);
/* log p(lambda), up to a constant; ADDS to v_gradient (n_lambda) unless NULL */
double crossed_covariance_prior(const struct crossed_factor* f,
                                const double* v_lambda,
                                double* v_gradient);
/* log p(sd_a) + log sd_a alone, at log sd_a */
double
crossed_sd_prior(const struct crossed_factor* f, size_t effect, double log_sd);
/* lambda given u */
void crossed_draw_covariance(struct crossed_chain* c, size_t factor);

/* ---- crossed-effects.c ---- */

void crossed_draw_effects(struct crossed_chain* c, size_t factor);
/* u of a factor, and v_place, at the mode given all else, or nearer to it */
void crossed_climb_effects(struct crossed_chain* c, size_t factor);

/* ---- crossed-joint.c: effects of all factors, of a normal response ---- */

/* numbers of the blocks of all levels */
size_t crossed_n_block(const struct crossed* p);
void crossed_draw_jointly(struct crossed_chain* c);

/* ---- crossed-coef.c ---- */

enum tb_status crossed_draw_coef(struct crossed_chain* c);
/* beta and v_center, likewise */
enum tb_status crossed_climb_coef(struct crossed_chain* c);

/* ---- crossed-scale.c: a covariance with its effects; s ---- */

/* lambda of row `effect` */
void crossed_scale(struct crossed_chain* c, size_t factor, size_t effect);
void crossed_draw_aux(struct crossed_chain* c);

/* ---- crossed-shift.c: moves that leave eta where it is ---- */

void crossed_shift_tie(struct crossed_chain* c, const struct crossed_tie* tie);
void crossed_shift_link(struct crossed_chain* c,
                        const struct crossed_link* link);
/* where the other factor is nested in that of `side`, with its standard
 * deviation */
void crossed_scale_link(struct crossed_chain* c,
                        const struct crossed_link* link,
                        size_t side);

/* ---- crossed-sweep.c ---- */

extern const struct tb_model_sweeps crossed_sweeps;
size_t crossed_workspace_size(const struct tb_model* p_model, size_t n_batch);

/* ---- small triangles ---- */

/* L L^T = A (q x q), lower; false: it is not positive definite */
static inline bool
crossed_chol(size_t q, const double (*A)[CROSSED_EFFECT], crossed_square L) {
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      double sum = A[a][b];
      for (size_t c = 0; c < b; ++c) {
        sum -= L[a][c] * L[b][c];
      }
      if (a != b) {
        L[a][b] = sum / L[b][b];
      } else if (sum > 1e-13 * A[a][a] && isfinite(sum)) {
        L[a][a] = sqrt(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

/* v := L^-1 v, and v := L^-T v */
static inline void
crossed_solve(size_t q, const double (*L)[CROSSED_EFFECT], double* v) {
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b < a; ++b) {
      v[a] -= L[a][b] * v[b];
    }
    v[a] /= L[a][a];
  }
}
static inline void crossed_solve_transposed(size_t q,
                                            const double (*L)[CROSSED_EFFECT],
                                            double* v) {
  for (size_t a = q; a-- > 0;) {
    for (size_t b = a + 1; b < q; ++b) {
      v[a] -= L[b][a] * v[b];
    }
    v[a] /= L[a][a];
  }
}

#endif
