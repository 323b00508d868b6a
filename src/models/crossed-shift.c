/* Moves that leave every predictor where it is, and so cost no data: how the
 * constant is shared out between coefficients and effects, and between the
 * effects of two factors (Papaspiliopoulos, Roberts & Zanella 2020, Biometrika
 * 107:25).
 *
 * All draw c from its law given where the chain is, along a line of which the
 * chain's place is a point: the law of c is a normal one times, for a
 * coefficient, its prior. Let P_k = Sigma_k^-1.
 *
 *   A column j of X with x_ij = w_g z_ia:  beta_j + c, u_ga - c w_g,
 *     log p(c) = log p(beta + c e_j) + c sum_g w_g (P u_g)_a
 *                - c^2 P_aa sum_g w_g^2 / 2.
 *   Factors k, l with an effect of the same column, a part of the graph of
 *   their levels:  u_k + c, u_l - c,
 *     log p(c) = c [sum_l (P_l u)_b - sum_k (P_k u)_a]
 *                - c^2 [n_k (P_k)_aa + n_l (P_l)_bb] / 2.
 *
 * Where l is coarser than k (classes in schools), each level of l with its own
 * levels of k is a part, and the standard deviation sd_b of l moves with its
 * effects as in crossed-scale.c, while u_k make up for it, m = e^c - 1:
 *   (sd_b, u_lb) e^c, u_ka - m u_lb,
 *     log p(c) = log p(e^c sd_b) + c + m sum_k u_lb (P_k u)_a
 *                - m^2 (P_k)_aa sum_k u_lb^2 / 2,
 *   sums over the levels of k, of each with u_lb of its own level of l. */
#include "base/slice.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <string.h>

/* (P u)_a */
static double row_times(size_t q,
                        const double (*precision)[CROSSED_EFFECT],
                        size_t a,
                        const double* v_u) {
  double sum = 0;
  for (size_t b = 0; b < q; ++b) {
    sum += precision[a][b] * v_u[b];
  }
  return sum;
}

struct line {
  struct crossed_chain* c;
  size_t coef;
  double slope, curvature, beta;
};

static double log_line(const void* p_context, double x) {
  const struct line* p = p_context;
  struct crossed_chain* c = p->c;
  const struct tb_prior* prior = &c->p->prior;
  c->v_theta[p->coef] = p->beta + x;
  double sum = -INFINITY;
  if (!prior->is_bounded || !tb_prior_is_outside(prior, c->v_theta)) {
    sum = tb_prior_gradient(prior, c->v_theta, c->v_slope);
  }
  c->v_theta[p->coef] = p->beta;
  return sum + x * p->slope - 0.5 * x * x * p->curvature;
}

void crossed_shift_tie(struct crossed_chain* c, const struct crossed_tie* tie) {
  const struct crossed* p = c->p;
  const struct crossed_factor* f = &p->v_factor[tie->factor];
  const size_t q = f->n_effect, n_dim = p->prior.n_dim;
  double* v_u = c->v_u + f->at_effect;
  crossed_square precision;
  double sum = 0, square = 0;
  crossed_precision(f, c->v_theta + f->at_lambda, precision);
  const double(*P)[CROSSED_EFFECT] = (const double(*)[CROSSED_EFFECT])precision;
  for (size_t g = 0; g < f->n_level; ++g) {
    const double w = tie->v_level == NULL ? 1 : tie->v_level[g];
    sum += w * row_times(q, P, tie->effect, v_u + g * q);
    square += w * w;
  }
  struct line line = {.c = c,
                      .coef = tie->coef,
                      .slope = sum,
                      .curvature = square * precision[tie->effect][tie->effect],
                      .beta = c->v_theta[tie->coef]};
  double by;
  if (p->is_normal) {
    const size_t j = tie->coef;
    tb_prior_quadratic(&p->prior, c->v_theta, c->v_hessian);
    tb_prior_gradient(&p->prior, c->v_theta, c->v_slope);
    const double Q = line.curvature + c->v_hessian[j * n_dim + j];
    by = (line.slope + c->v_slope[j]) / Q + tb_rng_norm(c->p_rng) / sqrt(Q);
  } else {
    const double width = 3 / sqrt(line.curvature);
    by = tb_slice_step(log_line, &line, 0, width, c->p_rng);
  }
  if (!isfinite(by)) {
    return;
  }
  c->v_theta[tie->coef] += by;
  for (size_t g = 0; g < f->n_level; ++g) {
    const double w = tie->v_level == NULL ? 1 : tie->v_level[g];
    v_u[g * q + tie->effect] -= by * w;
  }
}

void crossed_shift_link(struct crossed_chain* c,
                        const struct crossed_link* link) {
  double v_own[2];
  double* v_sum = c->v_part;
  memset(v_sum, 0, link->n_part * sizeof(double));
  for (size_t s = 0; s < 2; ++s) {
    const struct crossed_factor* f = &c->p->v_factor[link->v_factor[s]];
    const size_t q = f->n_effect, a = link->v_effect[s];
    const double* v_u = c->v_u + f->at_effect;
    const double sign = s == 0 ? -1 : 1;
    crossed_square precision;
    crossed_precision(f, c->v_theta + f->at_lambda, precision);
    v_own[s] = precision[a][a];
    for (size_t g = 0; g < f->n_level; ++g) {
      v_sum[link->v_part[s][g]] +=
          sign * row_times(q,
                           (const double(*)[CROSSED_EFFECT])precision,
                           a,
                           v_u + g * q);
    }
  }
  for (size_t m = 0; m < link->n_part; ++m) {
    const double Q =
        link->v_size[2 * m] * v_own[0] + link->v_size[2 * m + 1] * v_own[1];
    v_sum[m] = v_sum[m] / Q + tb_rng_norm(c->p_rng) / sqrt(Q);
    if (!isfinite(v_sum[m])) {
      v_sum[m] = 0;
    }
  }
  for (size_t s = 0; s < 2; ++s) {
    const struct crossed_factor* f = &c->p->v_factor[link->v_factor[s]];
    double* v_u = c->v_u + f->at_effect + link->v_effect[s];
    for (size_t g = 0; g < f->n_level; ++g) {
      const double by = v_sum[link->v_part[s][g]];
      v_u[g * f->n_effect] += s == 0 ? by : -by;
    }
  }
}

struct outer {
  const struct crossed_factor* f;
  size_t effect;
  double log_sd, slope, curvature;
};

static double log_outer(const void* p_context, double x) {
  const struct outer* p = p_context;
  const double more = expm1(x);
  return more * p->slope - 0.5 * more * more * p->curvature +
         crossed_sd_prior(p->f, p->effect, p->log_sd + x);
}

void crossed_scale_link(struct crossed_chain* c,
                        const struct crossed_link* link,
                        size_t side) {
  const struct crossed_factor* l = &c->p->v_factor[link->v_factor[side]];
  const struct crossed_factor* k = &c->p->v_factor[link->v_factor[1 - side]];
  const size_t b = link->v_effect[side], a = link->v_effect[1 - side];
  double* v_outer = c->v_part; /* u_lb of each part */
  double* v_u = c->v_u + k->at_effect;
  double* v_l = c->v_u + l->at_effect + b;
  double* p_log_sd = &c->v_theta[l->at_lambda + b];
  struct outer outer = {.f = l, .effect = b, .log_sd = *p_log_sd};
  crossed_square precision;
  crossed_precision(k, c->v_theta + k->at_lambda, precision);
  for (size_t g = 0; g < l->n_level; ++g) {
    v_outer[link->v_part[side][g]] = v_l[g * l->n_effect];
  }
  for (size_t g = 0; g < k->n_level; ++g) {
    const double u = v_outer[link->v_part[1 - side][g]];
    outer.slope += u * row_times(k->n_effect,
                                 (const double(*)[CROSSED_EFFECT])precision,
                                 a,
                                 v_u + g * k->n_effect);
    outer.curvature += u * u * precision[a][a];
  }
  const double x = tb_slice_step(log_outer, &outer, 0, 0.5, c->p_rng);
  const double more = expm1(x);
  if (!isfinite(more)) {
    return;
  }
  for (size_t g = 0; g < k->n_level; ++g) {
    v_u[g * k->n_effect + a] -= more * v_outer[link->v_part[1 - side][g]];
  }
  for (size_t g = 0; g < l->n_level; ++g) {
    v_l[g * l->n_effect] *= 1 + more;
  }
  *p_log_sd += x;
}
