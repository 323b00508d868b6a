/* One hyperparameter given the others, with the coefficients integrated out.
 * Coefficients of its block b last, what does not change along a slice is
 * factored once,
 *
 *   A = [A_cc A_cb; A_bc H_bb + P_b],  S = H_bb - A_bc A_cc^-1 A_cb,
 *   q = r_b - A_bc A_cc^-1 r_c,
 *
 * and the density is, up to a constant,
 *
 *   log p(phi_b) + (sum log P_b - log|S + P_b| + q^T (S + P_b)^-1 q) / 2,
 *
 * which costs n_b^3 / 3 operations a place, not n_coef^3 / 3.
 *
 * where a base has eliminated the coefficients of no block, H and r are what it
 * left of them, and n_coef the number of the others.
 *
 * Given C^T beta = c (mixture-law.h), with Z of the columns of C as q is of r,
 * its rows of the block G, and V_c, t_c what those of the others add to Z^T Z
 * and Z^T q, there is beside it
 *
 *   log N(c - C^T mu; t, V),  V = V_c + G^T (S + P_b)^-1 G,
 *                             t = t_c + G^T (S + P_b)^-1 q.
 *
 *   symbol  variable  shape        where
 *   S       v_upper   n x n        its last n_b columns and rows, upper
 *   q       v_mean    n            its last n_b
 *   S + P   v_part    n_b x n_b
 *   Z       v_Z       n x n_held
 *   V_c     v_V       n_held x n_held  upper
 *   c - C^T mu - t_c  v_away  n_held
 *   order   v_order   n            places in the base's order, the block's last
 */
#include "base/chol.h"
#include "base/norm.h"
#include "base/products.h"
#include "base/slice.h"
#include "priors/mixture-law.h"

#include <math.h>
#include <string.h>

struct part {
  const struct tb_mixture* p_mixture;
  size_t n_coef; /* of all blocks, and of none that is not in the base */
  const struct tb_mixture_given* p_given;
  double* v_phi; /* of the block */
  size_t k;      /* which of them moves */
  size_t n_held; /* the others in v_hold of the scratch */
  double *v_Z, *v_V, *v_away;
  double *v_Z_now, *v_V_now, *v_away_now; /* at a place */
};

/* Places of what the base has left, those of the block last, as its precisions
 * have them. */
static void order_set(const struct tb_mixture_law* p_law,
                      const struct part* p,
                      const size_t* v_at) {
  const size_t n_bare = p_law->base.n_bare;
  double *v_order = p->p_given->v_order, *v_own = p->p_given->v_z;
  memset(v_own, 0, p_law->n_coef * sizeof(double));
  for (size_t j = 0; j < p->p_mixture->n_coef; ++j) {
    v_own[v_at[j]] = 1 + (double)j;
  }
  double* v_last = v_order + p->n_coef - p->p_mixture->n_coef;
  for (size_t j = n_bare; j < p_law->n_coef; ++j) {
    const double own = v_own[tb_mixture_at(p_law, j)];
    *(own > 0 ? v_last + (size_t)own - 1 : v_order++) = (double)j;
  }
}

/* r in the base's order, the bare ones eliminated; takes v_z */
static void rest_set(const struct tb_mixture_law* p_law,
                     const struct tb_mixture_given* p_given,
                     double* v_r) {
  const size_t n = p_law->n_coef, n_bare = p_law->base.n_bare;
  double* v_plain = p_given->v_mean; /* free until then */
  tb_mixture_law_gradient(p_law, p_given, v_plain);
  for (size_t j = 0; j < n; ++j) {
    const double* v_column = n_bare > 0 ? p_law->base.v_upper + j * n : NULL;
    v_r[j] = v_plain[tb_mixture_at(p_law, j)];
    for (size_t i = 0; i < j && i < n_bare; ++i) {
      v_r[j] -= v_column[i] * v_r[i];
    }
    v_r[j] /= j < n_bare ? v_column[j] : 1;
  }
}

/* S and q */
static bool part_set(const struct tb_mixture_law* p_law, const struct part* p) {
  const struct tb_mixture_given* p_given = p->p_given;
  const bool has_base = p_law->base.n_bare > 0;
  const size_t n = p->n_coef, n_other = n - p->p_mixture->n_coef;
  const double* v_order = p_given->v_order;
  const double* v_bend = has_base ? p_law->base.v_upper : p_law->v_bend;
  double *v_upper = p_given->v_upper, *v_q = p_given->v_mean;
  double* v_r = p_given->v_part; /* free until then */
  rest_set(p_law, p_given, v_r);
  for (size_t j = 0; j < n; ++j) {
    const size_t at = (size_t)v_order[j];
    for (size_t i = 0; i <= j; ++i) {
      /* of the base there is the upper triangle */
      const size_t other = (size_t)v_order[i];
      const size_t column = at > other ? at : other;
      v_upper[j * n + i] = v_bend[column * p_law->n_coef + at + other - column];
    }
    if (j < n_other) {
      v_upper[j * n + j] += p_given->v_precision[tb_mixture_at(p_law, at)];
    }
    v_q[j] = v_r[at];
  }
  if (!tb_chol_upper_part(n, 0, n_other, v_upper)) {
    return false;
  }
  for (size_t j = 0; j < n; ++j) {
    const double* v_column = v_upper + j * n;
    for (size_t i = 0; i < j && i < n_other; ++i) {
      v_q[j] -= v_column[i] * v_q[i];
    }
    v_q[j] /= j < n_other ? v_column[j] : 1;
  }
  return true;
}

/* Z, V_c and the rest, where S and q are set, of which v_part has what the base
 * eliminated of r; v_beta: has c. */
static void part_hold(const struct tb_mixture_law* p_law,
                      const struct tb_mixture_given* p_given,
                      const double* v_beta,
                      struct part* p) {
  const struct tb_mixture_base* p_base = &p_law->base;
  const size_t n_coef = p_law->n_coef, n_bare = p_base->n_bare;
  const size_t n = p->n_coef, n_other = n - p->p_mixture->n_coef;
  const size_t h = p->n_held = p_base->n_held;
  p->v_Z = p_given->v_hold;
  p->v_V = p->v_Z + n * h;
  p->v_away = p->v_V + h * h;
  p->v_Z_now = p->v_away + h;
  p->v_V_now = p->v_Z_now + n * h;
  p->v_away_now = p->v_V_now + h * h;
  for (size_t k = 0; k < h; ++k) {
    const double* v_rest = p_base->v_rest + k * n_coef;
    const double* v_held = p_base->v_held + k * n_coef;
    double *v_Z = p->v_Z + k * n, away = 0;
    for (size_t j = 0; j < n; ++j) {
      const double* v_column = p_given->v_upper + j * n;
      v_Z[j] = v_rest[(size_t)p_given->v_order[j]];
      for (size_t i = 0; i < j && i < n_other; ++i) {
        v_Z[j] -= v_column[i] * v_Z[i];
      }
      v_Z[j] /= j < n_other ? v_column[j] : 1;
    }
    for (size_t j = 0; j < n_coef; ++j) {
      away += v_held[j] * (v_beta[j] - p_given->v_location[j]);
    }
    p->v_away[k] = away - tb_row_dot(v_rest, p_given->v_part, n_bare) -
                   tb_row_dot(v_Z, p_given->v_mean, n_other);
    for (size_t l = 0; l <= k; ++l) {
      p->v_V[k * h + l] =
          tb_row_dot(v_rest, p_base->v_rest + l * n_coef, n_bare) +
          tb_row_dot(v_Z, p->v_Z + l * n, n_other);
    }
  }
}

/* Twice that log density but for a constant, where v_part has the factor of S +
 * P_b, v_q what that has left of q. */
static double log_held(const struct part* p, const double* v_q) {
  const size_t h = p->n_held, n_own = p->p_mixture->n_coef;
  const size_t n_other = p->n_coef - n_own;
  double sum = 0;
  for (size_t k = 0; k < h; ++k) {
    double* v_now = p->v_Z_now + k * n_own;
    memcpy(v_now, p->v_Z + k * p->n_coef + n_other, n_own * sizeof(double));
    tb_upper_solve_transposed(n_own, p->p_given->v_part, v_now);
    p->v_away_now[k] = p->v_away[k] - tb_row_dot(v_now, v_q, n_own);
    for (size_t l = 0; l <= k; ++l) {
      p->v_V_now[k * h + l] =
          p->v_V[k * h + l] + tb_row_dot(v_now, p->v_Z_now + l * n_own, n_own);
    }
  }
  if (!tb_chol_upper(h, p->v_V_now)) {
    return -INFINITY;
  }
  tb_upper_solve_transposed(h, p->v_V_now, p->v_away_now);
  for (size_t k = 0; k < h; ++k) {
    sum -= 2 * log(p->v_V_now[k * h + k]);
  }
  return sum - tb_square_norm(p->v_away_now, h);
}

static double log_density(const void* p_context, double x) {
  const struct part* p = p_context;
  const struct tb_mixture* p_mixture = p->p_mixture;
  const struct tb_mixture_given* p_given = p->p_given;
  const size_t n = p_mixture->n_coef, n_other = p->n_coef - n;
  double *v_part = p_given->v_part, *v_q = p_given->v_z;
  double* v_precision = p_given->v_work;
  double sum = 0;
  p->v_phi[p->k] = x;
  p_mixture->type->precision(p_mixture, p->v_phi, v_precision);
  for (size_t j = 0; j < n; ++j) {
    const double* v_column =
        p_given->v_upper + (n_other + j) * p->n_coef + n_other;
    memcpy(v_part + j * n, v_column, (j + 1) * sizeof(double));
    v_part[j * n + j] += v_precision[j];
    sum += log(v_precision[j]);
  }
  if (!isfinite(sum) || !tb_chol_upper(n, v_part)) {
    return -INFINITY;
  }
  for (size_t j = 0; j < n; ++j) {
    sum -= 2 * log(v_part[j * n + j]);
  }
  memcpy(v_q, p_given->v_mean + n_other, n * sizeof(double));
  tb_upper_solve_transposed(n, v_part, v_q);
  sum += p->n_held == 0 ? 0 : log_held(p, v_q);
  return p_mixture->type->log_prior(p_mixture, p->v_phi) +
         0.5 * (sum + tb_square_norm(v_q, n));
}

void tb_mixture_law_slice(const struct tb_mixture_law* p_law,
                          size_t k,
                          double width,
                          const double* v_beta,
                          double* v_phi,
                          struct tb_mixture_given* p_given,
                          struct tb_rng* p_rng) {
  const struct tb_mixtures* p_mixtures = p_law->p_mixtures;
  const size_t* v_at = p_mixtures->v_at;
  struct part part = {.p_mixture = p_mixtures->v_block,
                      .n_coef = p_law->n_coef - p_law->base.n_bare,
                      .p_given = p_given,
                      .v_phi = v_phi,
                      .k = k};
  while (part.k >= part.p_mixture->n_hyper) {
    part.k -= part.p_mixture->n_hyper;
    part.v_phi += part.p_mixture->n_hyper;
    v_at += part.p_mixture->n_coef;
    part.p_mixture += 1;
  }
  tb_mixture_law_scales(p_law, v_phi, p_given);
  order_set(p_law, &part, v_at);
  if (!part_set(p_law, &part)) {
    return;
  }
  if (p_law->base.n_held > 0) {
    part_hold(p_law, p_given, v_beta, &part);
  }
  const double x = v_phi[k];
  v_phi[k] = tb_slice_step(log_density, &part, x, width, p_rng);
}
