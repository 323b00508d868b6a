/* Moves along which a standard deviation takes its effects with it, and the
 * response's own parameters.
 *
 *   (u_kga, sd_a) -> (e^c u_kga, e^c sd_a) for all levels g
 *
 * leaves the law of u given Sigma as it is but for e^(-c n_level), which the
 * Jacobian takes back: what is left is
 *
 *   L(eta') / L(eta) e^c p(e^c sd_a) / p(sd_a),
 *
 * with eta' = eta + (e^c - 1) z_a u_a. Where the response is normal, L is
 * quadratic in e^c - 1, and c is sliced from two sums of one pass; otherwise it
 * is a normal step, whose size warmup adapts. (The ancillary half of an
 * interweaving: Yu & Meng 2011, J. Computational and Graphical Statistics
 * 20:531.) */
#include "base/clip.h"
#include "base/slice.h"
#include "models/crossed-inside.h"

#include <math.h>

#define TARGET 0.44

/* v_part := z_a u_a of n rows */
static void part_of_eta(const struct crossed_chain* c,
                        const struct crossed_factor* f,
                        size_t a,
                        size_t first,
                        size_t n,
                        double* v_part) {
  const double* v_u = c->v_u + f->at_effect + a;
  const int32_t* v_g = f->v_level + first;
  const double* v_z = f->v_column[a];
  for (size_t i = 0; i < n; ++i) {
    const double u = v_u[(size_t)v_g[i] * f->n_effect];
    v_part[i] = v_z == NULL ? u : v_z[first + i] * u;
  }
}

/* eta += more z_a u_a; u_a and sd_a are scaled */
static void accept(struct crossed_chain* c,
                   const struct crossed_factor* f,
                   size_t a,
                   double log_c) {
  double v_part[CROSSED_TILE];
  const double scale = exp(log_c), more = expm1(log_c);
  for (size_t first = 0; first < c->p->n_row; first += CROSSED_TILE) {
    const size_t n = tb_min(CROSSED_TILE, c->p->n_row - first);
    part_of_eta(c, f, a, first, n, v_part);
    for (size_t i = 0; i < n; ++i) {
      c->v_eta[first + i] += more * v_part[i];
    }
  }
  for (size_t g = 0; g < f->n_level; ++g) {
    c->v_u[f->at_effect + g * f->n_effect + a] *= scale;
  }
  c->v_theta[f->at_lambda + a] += log_c;
}

struct along {
  const struct crossed_factor* f;
  size_t effect;
  double log_sd, slope, curvature;
};

static double log_along(const void* p_context, double x) {
  const struct along* p = p_context;
  const double more = expm1(x);
  return more * p->slope - 0.5 * more * more * p->curvature +
         crossed_sd_prior(p->f, p->effect, p->log_sd + x);
}

static void
slice_scale(struct crossed_chain* c, const struct crossed_factor* f, size_t a) {
  double v_part[CROSSED_TILE], v_score[CROSSED_TILE], v_curvature[CROSSED_TILE];
  struct along along = {.f = f,
                        .effect = a,
                        .log_sd = c->v_theta[f->at_lambda + a]};
  for (size_t first = 0; first < c->p->n_row; first += CROSSED_TILE) {
    const size_t n = tb_min(CROSSED_TILE, c->p->n_row - first);
    part_of_eta(c, f, a, first, n, v_part);
    crossed_look(c, first, n, c->v_eta + first, NULL, v_score, v_curvature);
    for (size_t i = 0; i < n; ++i) {
      along.slope += v_score[i] * v_part[i];
      along.curvature += v_curvature[i] * v_part[i] * v_part[i];
    }
  }
  c->p_sweep->n_row += (double)c->p->n_row;
  /* one width wherever the chain is on the line: the curvature is not */
  accept(c, f, a, tb_slice_step(log_along, &along, 0, 0.5, c->p_rng));
}

static void
step_scale(struct crossed_chain* c, const struct crossed_factor* f, size_t a) {
  double* p_step = &c->v_step[f->at_lambda - c->p->n_coef + a];
  const double x = exp(*p_step) * tb_rng_norm(c->p_rng), more = expm1(x);
  const double log_sd = c->v_theta[f->at_lambda + a];
  double v_eta[CROSSED_TILE], v_density[CROSSED_TILE], log_lik = 0;
  for (size_t first = 0; first < c->p->n_row; first += CROSSED_TILE) {
    const size_t n = tb_min(CROSSED_TILE, c->p->n_row - first);
    double part = 0;
    part_of_eta(c, f, a, first, n, v_eta);
    for (size_t i = 0; i < n; ++i) {
      v_eta[i] = c->v_eta[first + i] + more * v_eta[i];
    }
    crossed_look(c, first, n, v_eta, v_density, NULL, NULL);
    for (size_t i = 0; i < n; ++i) {
      part += v_density[i];
    }
    log_lik += part;
  }
  c->p_sweep->n_row += (double)c->p->n_row;
  const double log_ratio = log_lik - c->log_lik +
                           crossed_sd_prior(f, a, log_sd + x) -
                           crossed_sd_prior(f, a, log_sd);
  if (log(tb_rng_unif(c->p_rng)) < log_ratio) {
    accept(c, f, a, x);
    c->log_lik = log_lik;
  }
  if (c->p_sweep->is_warmup) {
    const double rate = log_ratio >= 0     ? 1
                        : log_ratio > -700 ? exp(log_ratio)
                                           : 0;
    *p_step += (rate - TARGET) / pow(1 + c->v_count[0], 0.6);
    *p_step = fmax(-12, fmin(*p_step, 1));
  }
}

void crossed_scale(struct crossed_chain* c, size_t factor, size_t effect) {
  const struct crossed_factor* f = &c->p->v_factor[factor];
  if (c->p->is_quadratic) {
    slice_scale(c, f, effect);
  } else {
    step_scale(c, f, effect);
  }
}

/* ---- s ---- */

struct aux_given {
  struct crossed_chain* c;
  size_t at;  /* of theta */
  double rss; /* normal responses: sum w (y - eta)^2 */
};

static double log_aux(const void* p_context, double x) {
  const struct aux_given* p = p_context;
  struct crossed_chain* c = p->c;
  const struct crossed* model = c->p;
  const double before = c->v_theta[p->at];
  c->v_theta[p->at] = x;
  double sum = tb_prior_gradient(&model->prior, c->v_theta, c->v_slope);
  if (model->prior.is_bounded &&
      tb_prior_is_outside(&model->prior, c->v_theta)) {
    sum = -INFINITY;
  } else if (model->is_quadratic) {
    sum -= (double)model->n_row * x + 0.5 * p->rss * exp(-2 * x);
  } else {
    const double* v_aux = c->v_theta + model->prior.n_dim - model->n_aux;
    c->point = tb_response_at(&model->response, v_aux);
    sum += crossed_log_lik(c, c->v_eta);
  }
  c->v_theta[p->at] = before;
  return sum;
}

static double residual_squares(const struct crossed_chain* c) {
  const struct crossed* p = c->p;
  double sum = 0;
  for (size_t first = 0; first < p->n_row; first += CROSSED_TILE) {
    const size_t n = tb_min(CROSSED_TILE, p->n_row - first);
    double part = 0;
    for (size_t i = first; i < first + n; ++i) {
      const double e = p->v_y[i] - c->v_eta[i];
      part += (p->v_weight == NULL ? 1 : p->v_weight[i]) * e * e;
    }
    sum += part;
  }
  return sum;
}

void crossed_draw_aux(struct crossed_chain* c) {
  const struct crossed* p = c->p;
  const size_t first = p->prior.n_dim - p->n_aux;
  for (size_t k = 0; k < p->n_aux; ++k) {
    struct aux_given given = {.c = c, .at = first + k};
    double* p_width = &c->v_step[p->n_lambda + k];
    const double before = c->v_theta[first + k];
    double width = exp(*p_width);
    if (p->is_quadratic) {
      given.rss = residual_squares(c);
      width = fmin(1.5, 3 / sqrt(2 * (double)p->n_row));
    }
    const double x = tb_slice_step(log_aux, &given, before, width, c->p_rng);
    c->v_theta[first + k] = x;
    c->point = tb_response_at(&p->response, c->v_theta + first);
    if (!p->is_quadratic) {
      c->log_lik = crossed_log_lik(c, c->v_eta);
      if (c->p_sweep->is_warmup) {
        /* toward three times its moves, which are about half an sd's */
        const double far = log(fmax(3 * fabs(x - before), 1e-6));
        *p_width += (fmin(far, 1) - *p_width) / (5 + c->v_count[0]);
      }
    }
  }
}
