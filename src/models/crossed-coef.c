/* The coefficients given all else, jointly.
 *
 * An independence proposal as that of the effects: where N_NEWTON steps lead
 * from v_center, by the gradients of all rows and one Hessian, X^T W X of
 * v_cross and the prior's P; centre and Hessian are warmup's, and stay after
 * it. So a step costs a pass of gradients, not one of products of columns. What
 * is drawn about it is normal where response and prior are, and then needs no
 * test; otherwise Student's t, whose degrees of freedom grow with the number
 * of coefficients, as a t of 5 is all tail where these are many. */
#include "base/blas.h"
#include "base/chol.h"
#include "base/clip.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <string.h>

enum { N_NEWTON = 3 };

static double degrees(const struct crossed* p) {
  return 5 * (1 + (double)p->n_coef);
}

/* v_cross += X^T W X of n rows, upper */
static void add_products(struct crossed_chain* c,
                         size_t first,
                         size_t n,
                         const double* v_curvature) {
  const struct crossed* p = c->p;
  double v_root[CROSSED_TILE];
  for (size_t i = 0; i < n; ++i) {
    v_root[i] = sqrt(fmax(v_curvature[i], 0));
  }
  for (size_t j = 0; j < p->n_coef; ++j) {
    double* v_out = c->v_tile + j * CROSSED_TILE;
    const double* v_x = p->v_column[j];
    for (size_t i = 0; i < n; ++i) {
      v_out[i] = v_x == NULL ? v_root[i] : v_root[i] * v_x[first + i];
    }
  }
  tb_syrk('T', p->n_coef, n, 1, c->v_tile, CROSSED_TILE, c->v_cross, p->n_coef);
}

/* alone: with products, which all tiles add to */
static void look_at_slopes(const struct crossed_pass* pass,
                           size_t first,
                           size_t n,
                           double* v_sum,
                           double* v_row) {
  struct crossed_chain* c = pass->c;
  const struct crossed* p = c->p;
  double* v_curvature = pass->is_alone ? v_row + CROSSED_TILE : NULL;
  double v_eta[CROSSED_TILE];
  crossed_add_design(p, c->v_other, first, n, c->v_eta + first, v_eta);
  crossed_look(c, first, n, v_eta, NULL, v_row, v_curvature);
  for (size_t j = 0; j < p->n_coef; ++j) {
    const double* v_x = p->v_column[j];
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += v_x == NULL ? v_row[i] : v_row[i] * v_x[first + i];
    }
    v_sum[j] = sum;
  }
  if (pass->is_alone) {
    add_products(c, first, n, v_curvature);
  }
}

/* v_slope (n_coef) := X^T score at beta = v_beta; with products, v_cross there
 */
static void look_at_coef(struct crossed_chain* c, bool with_products) {
  const struct crossed* p = c->p;
  const size_t d = p->n_coef;
  for (size_t j = 0; j < d; ++j) {
    c->v_other[j] = c->v_beta[j] - c->v_theta[j];
  }
  if (with_products) {
    memset(c->v_cross, 0, d * d * sizeof(double));
  }
  const struct crossed_pass pass = {.c = c,
                                    .n_sum = d,
                                    .v_total = c->v_slope,
                                    .n_look = 1,
                                    .is_alone = with_products,
                                    .look = look_at_slopes};
  crossed_go(&pass);
  if (with_products && p->is_quadratic) {
    /* of a unit of precision, which the chain's sigma is another of each time
     */
    for (size_t j = 0; j < d * d; ++j) {
      c->v_cross[j] /= c->point.scale;
    }
  }
}

/* v_chol (upper, R^T R) of the Hessian; false: it has none */
static bool set_chol(struct crossed_chain* c) {
  const struct crossed* p = c->p;
  const size_t d = p->n_coef, n_dim = p->prior.n_dim;
  const double unit = p->is_quadratic ? c->point.scale : 1;
  memcpy(c->v_other, c->v_theta, n_dim * sizeof(double));
  memcpy(c->v_other, c->v_center, d * sizeof(double));
  tb_prior_quadratic(&p->prior, c->v_other, c->v_hessian);
  for (size_t j = 0; j < d; ++j) {
    for (size_t i = 0; i <= j; ++i) {
      c->v_chol[j * d + i] =
          unit * c->v_cross[j * d + i] + c->v_hessian[j * n_dim + i];
    }
  }
  return tb_chol_upper(d, c->v_chol);
}

/* One step of Newton's method from v_beta. */
static void climb(struct crossed_chain* c, double* v_step) {
  const struct crossed* p = c->p;
  memcpy(c->v_other, c->v_theta, p->prior.n_dim * sizeof(double));
  memcpy(c->v_other, c->v_beta, p->n_coef * sizeof(double));
  tb_prior_gradient(&p->prior, c->v_other, v_step);
  for (size_t j = 0; j < p->n_coef; ++j) {
    v_step[j] += c->v_slope[j];
  }
  tb_upper_solve_transposed(p->n_coef, c->v_chol, v_step);
  tb_upper_solve(p->n_coef, c->v_chol, v_step);
}

static double square_norm(size_t n, const double* v) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    sum += v[j] * v[j];
  }
  return sum;
}

/* |R (v - v_beta)|^2 */
static double
distance(const struct crossed_chain* c, const double* v, double* v_scratch) {
  const size_t d = c->p->n_coef;
  for (size_t i = 0; i < d; ++i) {
    v_scratch[i] = 0;
    for (size_t j = i; j < d; ++j) {
      v_scratch[i] += c->v_chol[j * d + i] * (v[j] - c->v_beta[j]);
    }
  }
  return square_norm(d, v_scratch);
}

/* v_other (n_dim): theta, with beta of v */
static double log_prior(struct crossed_chain* c, const double* v_beta) {
  const struct crossed* p = c->p;
  memcpy(c->v_other, c->v_theta, p->prior.n_dim * sizeof(double));
  memcpy(c->v_other, v_beta, p->n_coef * sizeof(double));
  if (p->prior.is_bounded && tb_prior_is_outside(&p->prior, c->v_other)) {
    return -INFINITY;
  }
  return tb_prior_gradient(&p->prior, c->v_other, c->v_slope);
}

/* log density, with v_move in the coefficients */
static void look_at_step(const struct crossed_pass* pass,
                         size_t first,
                         size_t n,
                         double* v_sum,
                         double* v_row) {
  const struct crossed_chain* c = pass->c;
  double v_eta[CROSSED_TILE];
  crossed_add_design(c->p, c->v_move, first, n, c->v_eta + first, v_eta);
  crossed_look(c, first, n, v_eta, v_row, NULL, NULL);
  v_sum[0] = crossed_sum(n, v_row);
}

static void add_step(const struct crossed_pass* pass,
                     size_t first,
                     size_t n,
                     double* v_sum,
                     double* v_row) {
  const struct crossed_chain* c = pass->c;
  double* v_eta = c->v_eta + first;
  (void)v_sum;
  (void)v_row;
  crossed_add_design(c->p, c->v_move, first, n, v_eta, v_eta);
}

enum tb_status crossed_draw_coef(struct crossed_chain* c) {
  const struct crossed* p = c->p;
  const size_t d = p->n_coef;
  const bool is_exact = p->is_quadratic && p->is_normal;
  const double df = degrees(p);
  double* v_new = c->v_draw;
  double* v_step = c->v_move;
  if (d == 0) {
    return TB_STATUS_ok;
  }
  memcpy(c->v_beta, c->v_center, d * sizeof(double));
  const size_t n_sweep = (size_t)c->v_count[0];
  const bool renews = !p->is_quadratic && c->p_sweep->is_warmup &&
                      (n_sweep < 8 || n_sweep % 8 == 0);
  for (size_t k = 0; k < (p->is_quadratic ? 1 : N_NEWTON); ++k) {
    look_at_coef(c, renews && k == 0);
    if (k == 0 && !set_chol(c)) {
      return TB_STATUS_nonfinite;
    }
    climb(c, v_step);
    for (size_t j = 0; j < d; ++j) {
      c->v_beta[j] += v_step[j];
    }
  }
  const double wide =
      is_exact ? 1 : sqrt(df / (2 * tb_rng_gamma(c->p_rng, df / 2)));
  tb_rng_fill_norm(c->p_rng, v_new, d);
  tb_upper_solve(d, c->v_chol, v_new);
  for (size_t j = 0; j < d; ++j) {
    v_new[j] = c->v_beta[j] + wide * v_new[j];
  }
  double log_lik = 0;
  if (!is_exact) {
    const double n = -0.5 * (df + (double)d);
    double log_ratio = log_prior(c, v_new) - log_prior(c, c->v_theta) +
                       n * log1p(distance(c, c->v_theta, v_step) / df) -
                       n * log1p(distance(c, v_new, v_step) / df);
    if (p->is_quadratic) {
      c->log_lik = crossed_log_lik(c);
    }
    for (size_t j = 0; j < d; ++j) {
      v_step[j] = v_new[j] - c->v_theta[j];
    }
    log_lik = crossed_total(c, look_at_step, NULL);
    log_ratio += log_lik - c->log_lik;
    c->p_sweep->n_propose += 1;
    if (!(log(tb_rng_unif(c->p_rng)) < log_ratio)) {
      return TB_STATUS_ok;
    }
    c->p_sweep->n_accept += 1;
  }
  for (size_t j = 0; j < d; ++j) {
    v_step[j] = v_new[j] - c->v_theta[j];
    c->v_theta[j] = v_new[j];
  }
  const struct crossed_pass pass = {.c = c, .look = add_step};
  crossed_go(&pass);
  c->log_lik = log_lik;
  return TB_STATUS_ok;
}

/* Newton's method by halves; beta stays where no part of a step is better. */
enum tb_status crossed_climb_coef(struct crossed_chain* c) {
  enum { N_HALF = 12 };
  const struct crossed* p = c->p;
  const size_t d = p->n_coef;
  double* v_step = c->v_move;
  if (d == 0) {
    return TB_STATUS_ok;
  }
  memcpy(c->v_beta, c->v_theta, d * sizeof(double));
  memcpy(c->v_center, c->v_theta, d * sizeof(double));
  look_at_coef(c, true);
  if (!set_chol(c)) {
    return TB_STATUS_nonfinite;
  }
  climb(c, v_step);
  const double before = crossed_log_lik(c) + log_prior(c, c->v_theta);
  for (size_t k = 0; k < N_HALF; ++k) {
    for (size_t j = 0; j < d; ++j) {
      c->v_beta[j] = c->v_theta[j];
      c->v_theta[j] += v_step[j];
      v_step[j] = 0.5 * v_step[j];
    }
    crossed_refresh(c);
    const double after = crossed_log_lik(c) + log_prior(c, c->v_theta);
    if (after >= before - 1e-9 * (1 + fabs(before))) {
      break;
    }
    memcpy(c->v_theta, c->v_beta, d * sizeof(double));
    crossed_refresh(c);
  }
  memcpy(c->v_center, c->v_theta, d * sizeof(double));
  return TB_STATUS_ok;
}
