/* Moves along which a covariance takes its effects with it, and the response's
 * own parameters.
 *
 * With u_kg = F v_g, F F^T = Sigma_k (crossed-covariance.c), a move of lambda
 * at given v leaves the law of v as it is. What is left is
 *
 *   L(eta') / L(eta) p(lambda') / p(lambda),   u'_g = F' F^-1 u_g:
 *
 * of a logarithm of a standard deviation, u_a and sd_a are scaled alike, and of
 * a partial correlation of row a, u_a moves with F_a. Where the response is
 * normal, log L is quadratic in a row of F, and all of lambda of a row are
 * sliced from the sums of one pass; otherwise each makes a normal step, whose
 * size warmup adapts. (The ancillary half of an interweaving: Yu & Meng 2011,
 * J. Computational and Graphical Statistics 20:531.)
 *
 *   symbol    variable    shape          owner
 *   v         v_next      n_level x q    scratch
 *   F'_a v    v_mode      n_level        scratch: what u_a gains
 */
#include "base/slice.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <string.h>

enum { Q = CROSSED_EFFECT };

#define TARGET 0.44

/* A row of F, and what log L is along it. */
struct along {
  const struct crossed_factor* f;
  size_t effect; /* a */
  size_t at;     /* which of lambda is at x */
  double v_lambda[CROSSED_LAMBDA];
  double v_row[Q]; /* F_a where the pass was */
  double v_slope[Q];
  crossed_square curvature;
};

/* v_row: F_a */
static void
row_of_root(const struct along* p, const double* v_lambda, double* v_row) {
  crossed_square root;
  crossed_root(p->f, v_lambda, root);
  memcpy(v_row, root[p->effect], sizeof(p->v_row));
}

static double log_along(const void* p_context, double x) {
  const struct along* p = p_context;
  double v_lambda[CROSSED_LAMBDA], v_row[Q], sum = 0;
  memcpy(v_lambda, p->v_lambda, sizeof(v_lambda));
  v_lambda[p->at] = x;
  row_of_root(p, v_lambda, v_row);
  for (size_t b = 0; b <= p->effect; ++b) {
    const double by = v_row[b] - p->v_row[b];
    sum += by * p->v_slope[b];
    for (size_t c = 0; c <= p->effect; ++c) {
      sum -= 0.5 * by * (v_row[c] - p->v_row[c]) * p->curvature[b][c];
    }
  }
  return sum + crossed_covariance_prior(p->f, v_lambda, NULL);
}

static struct along along_of(const struct crossed_chain* c,
                             const struct crossed_factor* f,
                             size_t a) {
  struct along along = {.f = f, .effect = a};
  memcpy(along.v_lambda,
         c->v_theta + f->at_lambda,
         f->n_lambda * sizeof(double));
  row_of_root(&along, along.v_lambda, along.v_row);
  return along;
}

/* v_next := F^-1 u of each level */
static void set_white(struct crossed_chain* c, const struct crossed_factor* f) {
  const size_t q = f->n_effect;
  crossed_square root;
  crossed_root(f, c->v_theta + f->at_lambda, root);
  memcpy(c->v_next, c->v_u + f->at_effect, f->n_level * q * sizeof(double));
  for (size_t g = 0; g < f->n_level; ++g) {
    crossed_solve(q, (const double(*)[Q])root, c->v_next + g * q);
  }
}

/* v_mode: what u_a of each level gains where F_a becomes v_row */
static void set_gain(struct crossed_chain* c,
                     const struct along* along,
                     const double* v_row) {
  const size_t q = along->f->n_effect;
  for (size_t g = 0; g < along->f->n_level; ++g) {
    double sum = 0;
    for (size_t b = 0; b <= along->effect; ++b) {
      sum += (v_row[b] - along->v_row[b]) * c->v_next[g * q + b];
    }
    c->v_mode[g] = sum;
  }
}

/* v_out (n) := v_eta (n) + z_a v_mode */
static void add_gain(const struct crossed_chain* c,
                     const struct along* along,
                     size_t first,
                     size_t n,
                     const double* v_eta,
                     double* v_out) {
  const int32_t* v_g = along->f->v_level + first;
  const double* v_z = along->f->v_column[along->effect];
  for (size_t i = 0; i < n; ++i) {
    const double by = c->v_mode[v_g[i]];
    v_out[i] = v_eta[i] + (v_z == NULL ? by : v_z[first + i] * by);
  }
}

static void take_gain(const struct crossed_pass* pass,
                      size_t first,
                      size_t n,
                      double* v_sum,
                      double* v_row) {
  double* v_eta = pass->c->v_eta + first;
  (void)v_sum;
  (void)v_row;
  add_gain(pass->c, pass->p_context, first, n, v_eta, v_eta);
}

/* eta and u_a, with what v_mode has; lambda of the row. */
static void accept(struct crossed_chain* c, const struct along* along) {
  const struct crossed_factor* f = along->f;
  const struct crossed_pass pass = {.c = c,
                                    .p_context = along,
                                    .look = take_gain};
  crossed_go(&pass);
  for (size_t g = 0; g < f->n_level; ++g) {
    c->v_u[f->at_effect + g * f->n_effect + along->effect] += c->v_mode[g];
  }
  memcpy(c->v_theta + f->at_lambda,
         along->v_lambda,
         f->n_lambda * sizeof(double));
}

/* v_sum: slopes, then curvatures */
static void look_along(const struct crossed_pass* pass,
                       size_t first,
                       size_t n,
                       double* v_sum,
                       double* v_row) {
  const struct crossed_chain* c = pass->c;
  const struct along* along = pass->p_context;
  const size_t a = along->effect, q = along->f->n_effect;
  const int32_t* v_g = along->f->v_level + first;
  const double* v_z = along->f->v_column[a];
  const double* v_curvature = v_row + CROSSED_TILE;
  crossed_look(c,
               first,
               n,
               c->v_eta + first,
               NULL,
               v_row,
               v_row + CROSSED_TILE);
  memset(v_sum, 0, pass->n_sum * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    const double z = v_z == NULL ? 1 : v_z[first + i];
    const double* v = c->v_next + (size_t)v_g[i] * q;
    for (size_t b = 0; b <= a; ++b) {
      v_sum[b] += v_row[i] * z * v[b];
      for (size_t d = 0; d <= b; ++d) {
        v_sum[Q * (1 + b) + d] += v_curvature[i] * z * z * v[b] * v[d];
      }
    }
  }
}

/* v_slope and curvature, of all rows */
static void set_sums(struct crossed_chain* c, struct along* along) {
  double v_total[Q * (1 + Q)];
  const struct crossed_pass pass = {.c = c,
                                    .n_sum = Q * (1 + Q),
                                    .v_total = v_total,
                                    .n_look = 1,
                                    .p_context = along,
                                    .look = look_along};
  crossed_go(&pass);
  for (size_t b = 0; b <= along->effect; ++b) {
    along->v_slope[b] = v_total[b];
    for (size_t d = 0; d <= b; ++d) {
      along->curvature[b][d] = along->curvature[d][b] =
          v_total[Q * (1 + b) + d];
    }
  }
}

static void
slice_row(struct crossed_chain* c, const struct crossed_factor* f, size_t a) {
  struct along along = along_of(c, f, a);
  double v_row[Q];
  set_sums(c, &along);
  for (size_t b = 0; b <= a; ++b) {
    if (b == a || f->is_correlated) {
      /* one width wherever the chain is on the line: the curvature is not */
      const size_t l = along.at = f->at[a][b];
      const double now = along.v_lambda[l];
      along.v_lambda[l] = tb_slice_step(log_along, &along, now, 0.5, c->p_rng);
    }
  }
  row_of_root(&along, along.v_lambda, v_row);
  set_gain(c, &along, v_row);
  accept(c, &along);
}

/* log density, with what v_mode has */
static void look_at_gain(const struct crossed_pass* pass,
                         size_t first,
                         size_t n,
                         double* v_sum,
                         double* v_row) {
  const struct crossed_chain* c = pass->c;
  double v_eta[CROSSED_TILE];
  add_gain(c, pass->p_context, first, n, c->v_eta + first, v_eta);
  crossed_look(c, first, n, v_eta, v_row, NULL, NULL);
  v_sum[0] = crossed_sum(n, v_row);
}

/* a normal step of lambda l, of row a; times: of the size that warmup finds */
static void step_row(struct crossed_chain* c,
                     const struct crossed_factor* f,
                     size_t a,
                     size_t l,
                     double times) {
  struct along along = along_of(c, f, a);
  double* p_step = &c->v_step[f->at_lambda - c->p->n_coef + l];
  double v_row[Q];
  const double before = crossed_covariance_prior(f, along.v_lambda, NULL);
  along.v_lambda[l] += times * exp(*p_step) * tb_rng_norm(c->p_rng);
  row_of_root(&along, along.v_lambda, v_row);
  set_gain(c, &along, v_row);
  const double log_lik = crossed_total(c, look_at_gain, &along);
  const double log_ratio = log_lik - c->log_lik +
                           crossed_covariance_prior(f, along.v_lambda, NULL) -
                           before;
  if (log(tb_rng_unif(c->p_rng)) < log_ratio) {
    accept(c, &along);
    c->log_lik = log_lik;
  }
  if (c->p_sweep->is_warmup && times == 1) {
    const double rate = log_ratio >= 0     ? 1
                        : log_ratio > -700 ? exp(log_ratio)
                                           : 0;
    *p_step += (rate - TARGET) / pow(1 + c->v_count[0], 0.6);
    *p_step = fmax(-12, fmin(*p_step, 1));
  }
}

void crossed_scale(struct crossed_chain* c, size_t factor, size_t effect) {
  const struct crossed_factor* f = &c->p->v_factor[factor];
  set_white(c, f);
  if (c->p->is_quadratic) {
    slice_row(c, f, effect);
    return;
  }
  for (size_t b = 0; b <= effect; ++b) {
    if (b == effect || f->is_correlated) {
      /* where sd_a is small, lambda has long tails */
      step_row(c, f, effect, f->at[effect][b], 4);
      step_row(c, f, effect, f->at[effect][b], 1);
    }
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
    sum -= (double)model->n_datum * x + 0.5 * p->rss * exp(-2 * x);
  } else {
    const double* v_aux = c->v_theta + model->prior.n_dim - model->n_aux;
    c->point = tb_response_at(&model->response, v_aux);
    sum += crossed_log_lik(c);
  }
  c->v_theta[p->at] = before;
  return sum;
}

static void look_at_residuals(const struct crossed_pass* pass,
                              size_t first,
                              size_t n,
                              double* v_sum,
                              double* v_row) {
  const struct crossed_chain* c = pass->c;
  const struct crossed* p = c->p;
  (void)v_row;
  v_sum[0] = 0;
  for (size_t i = first; i < first + n; ++i) {
    const double e = p->v_y[i] - c->v_eta[i];
    v_sum[0] += (p->v_weight == NULL ? 1 : p->v_weight[i]) * e * e;
  }
}

/* no look at a likelihood, and not counted as one */
static double residual_squares(struct crossed_chain* c) {
  double sum;
  const struct crossed_pass pass = {.c = c,
                                    .n_sum = 1,
                                    .v_total = &sum,
                                    .look = look_at_residuals};
  crossed_go(&pass);
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
      given.rss = residual_squares(c) + p->square_within;
      width = fmin(1.5, 3 / sqrt(2 * (double)p->n_datum));
    }
    const double x = tb_slice_step(log_aux, &given, before, width, c->p_rng);
    c->v_theta[first + k] = x;
    c->point = tb_response_at(&p->response, c->v_theta + first);
    if (!p->is_quadratic) {
      c->log_lik = crossed_log_lik(c);
      if (c->p_sweep->is_warmup) {
        /* toward three times its moves, which are about half an sd's */
        const double far = log(fmax(3 * fabs(x - before), 1e-6));
        *p_width += (fmin(far, 1) - *p_width) / (5 + c->v_count[0]);
      }
    }
  }
}
