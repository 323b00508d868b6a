/* One group: its effects integrated out by adaptive Gauss-Hermite quadrature
 * (Naylor & Smith 1982, Applied Statistics 31:214; Pinheiro & Bates 1995, JCGS
 * 4:12), or whatever rule the nodes given are of, in v, whose prior depends on
 * no parameter.
 *
 *   v^     mode of log f(v) = sum_i l_i(v) + log N(v; 0, I), by Newton's method
 *   C      lower triangle, C C^T = [-Hessian of log f at v^]^-1
 *   v_k    v^ + sqrt(2) C t_k, t_k on the grid of nodes
 *   L      log sum_k W_k e^|t_k|^2 f(v_k) + q/2 log 2 + log |C|
 *   pi_k   the share of node k in that sum
 *
 * Derivatives by the identities of Fisher and of Louis (1982, JRSS B 44:226):
 *
 *   grad L  = sum_k pi_k G_k,  G_k = sum_i of that of l_i(v_k)
 *   -Hess L = sum_k pi_k sum_i -Hess l_i(v_k) - Cov_pi(G_k)
 *
 * which are those of the sum itself up to the error of the quadrature. Normal
 * responses have none: three nodes are exact. */
#include "models/groups-one.h"

#include "base/clip.h"
#include "base/clones.h"

#include <math.h>
#include <string.h>

#define ROOT_2 1.41421356237309504880

#define LOG_PI 1.14472988584940017414

enum { Q = GROUPS_EFFECT };

/* -------------------------------------------------------------------- nodes */

/* Places of the nodes, and into v_pi what each has of the sum beside its
 * rows. Returns what all have in common. */
static double set_nodes(const struct groups* p,
                        const struct groups_point* p_point,
                        const struct groups_mode* p_mode,
                        const struct groups_scratch* p_s) {
  const size_t q = p->n_effect;
  size_t v_digit[Q] = {0};
  for (size_t k = 0; k < p->n_point; ++k) {
    double* v = p_s->v_v + k * q;
    double log_weight = 0;
    for (size_t a = 0; a < q; ++a) {
      v[a] = ROOT_2 * p->v_node[v_digit[a]];
      log_weight += p->v_log_weight[v_digit[a]];
    }
    groups_solve_upper(q, p_mode->chol, v);
    for (size_t a = 0; a < q; ++a) {
      v[a] += p_mode->v_at[a];
    }
    groups_effects_of(p, p_point, v, p_s->v_u + k * q);
    p_s->v_pi[k] = log_weight - 0.5 * groups_square(v, q);
    for (size_t a = 0; a < q && ++v_digit[a] == p->n_node; ++a) {
      v_digit[a] = 0;
    }
  }
  double common = -0.5 * (double)q * LOG_PI;
  for (size_t a = 0; a < q; ++a) {
    common -= log(p_mode->chol[a][a]);
  }
  return common;
}

/* v_pi: logarithms of terms -> their shares; returns the log of their sum */
static double settle(double* v_pi, size_t n) {
  double most = -INFINITY, sum = 0;
  for (size_t k = 0; k < n; ++k) {
    most = fmax(most, v_pi[k]);
  }
  for (size_t k = 0; k < n; ++k) {
    v_pi[k] = exp(v_pi[k] - most);
    sum += v_pi[k];
  }
  for (size_t k = 0; k < n; ++k) {
    v_pi[k] /= sum;
  }
  return most + log(sum);
}

static void
add_densities(const struct groups_scratch* p_s, size_t n, size_t n_node) {
  for (size_t k = 0; k < n_node; ++k) {
    const double* v = p_s->v_density + k * n;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += v[i];
    }
    p_s->v_pi[k] += sum;
  }
}

/* Weights of the nodes in sums: pi, pi v_b, and pi v_b v_c, b >= c. */
static void set_coefficients(const struct groups* p,
                             const struct groups_scratch* p_s) {
  const size_t q = p->n_effect, n = p->n_point;
  for (size_t k = 0; k < n; ++k) {
    const double* v = p_s->v_v + k * q;
    const double share = p_s->v_pi[k];
    p_s->v_coef[k] = share;
    size_t at = 1 + GROUPS_EFFECT;
    for (size_t b = 0; b < q; ++b) {
      p_s->v_coef[(1 + b) * n + k] = share * v[b];
      for (size_t c = 0; c <= b; ++c) {
        p_s->v_coef[at++ * n + k] = share * v[b] * v[c];
      }
    }
  }
}

/* v_out[i] := sum_k v_coef[k] v_entry[k][i] */
static TB_CLONES void over_nodes(const double* v_entry,
                                 const double* v_coef,
                                 size_t n,
                                 size_t n_node,
                                 double* v_out) {
  memset(v_out, 0, n * sizeof(double));
  for (size_t k = 0; k < n_node; ++k) {
    const double coef = v_coef[k];
    const double* v = v_entry + k * n;
    for (size_t i = 0; i < n; ++i) {
      v_out[i] += coef * v[i];
    }
  }
}

/* ---------------------------------------------------------------- gradients */

/* the rows' share of the gradient in beta and Lambda */
static TB_CLONES void add_gradient(const struct groups* p,
                                   const struct groups_scratch* p_s,
                                   const double* v_block,
                                   size_t at,
                                   size_t n,
                                   double* v_gradient) {
  const size_t n_padded = p->store.n_padded, n_coef = p->n_coef;
  const size_t n_lead = n;
  for (size_t b = 0; b <= p->n_effect; ++b) {
    over_nodes(p_s->v_score,
               p_s->v_coef + b * p->n_point,
               n,
               p->n_point,
               p_s->v_sum + b * n_lead);
  }
  for (size_t i = 0; i < n; ++i) {
    const double* v_row = v_block + i * n_padded;
    for (size_t j = 0; j < n_coef; ++j) {
      v_gradient[j] += p_s->v_sum[i] * v_row[j];
    }
  }
  for (size_t l = 0; l < p->n_lambda; ++l) {
    const double* v_z = p_s->v_z + p->v_a[l] * p->n_most + at;
    const double* v = p_s->v_sum + (1 + p->v_b[l]) * n_lead;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += v_z[i] * v[i];
    }
    v_gradient[n_coef + l] += sum;
  }
}

static double
sum_over(const double* v_entry, const double* v_coef, size_t n, size_t n_node) {
  double total = 0;
  for (size_t k = 0; k < n_node; ++k) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += v_entry[k * n + i];
    }
    total += v_coef[k] * sum;
  }
  return total;
}

/* --------------------------------------------------------------- the group */

/* Gradient, and -Hessian where it is wanted, of rows that have been evaluated
 */
static void add_part(const struct groups* p,
                     const struct groups_scratch* p_s,
                     size_t first,
                     size_t at,
                     size_t n,
                     const struct groups_look* p_look) {
  const double* v_block = groups_block(p, first + at, n, p_s->v_block);
  double* v_gradient = p_look->v_gradient;
  add_gradient(p, p_s, v_block, at, n, v_gradient);
  if (p->has_aux) {
    v_gradient[p->n_coef + p->n_lambda] +=
        sum_over(p_s->v_aux_score, p_s->v_coef, n, p->n_point);
  }
  if (p_look->v_hessian != NULL) {
    groups_add_hessian(p, p_s, v_block, at, n, p_look->v_hessian);
  }
}

static struct tb_response_out wanted_of(const struct groups* p,
                                        const struct groups_scratch* p_s,
                                        const struct groups_look* p_look) {
  const bool wants_slope = p_look->v_gradient != NULL;
  const bool wants_bend = p_look->v_hessian != NULL;
  return (struct tb_response_out){
      .is_complete = p_look->is_complete,
      .v_log_density = p_s->v_density,
      .v_score = wants_slope ? p_s->v_score : NULL,
      .v_curvature = wants_bend ? p_s->v_curvature : NULL,
      .v_aux_score = wants_slope && p->has_aux ? p_s->v_aux_score : NULL,
      .v_cross = wants_bend && p->has_aux ? p_s->v_cross : NULL,
      .v_aux_curvature =
          wants_bend && p->has_aux ? p_s->v_aux_curvature : NULL};
}

/* The rows a part at a time: once where they are one part, otherwise for the
 * shares of the nodes first, and then for what they weigh. */
static double sum_parts(const struct groups* p,
                        const struct groups_point* p_point,
                        const struct groups_scratch* p_s,
                        size_t group,
                        const struct groups_look* p_look) {
  const size_t first = p->v_first[group];
  const size_t n_row = p->v_first[group + 1] - first;
  const size_t n_most = tb_max(1, GROUPS_ENTRY / p->n_point);
  const bool wants_more = p_look->v_gradient != NULL;
  struct tb_response_out out = wanted_of(p, p_s, p_look);
  struct tb_response_out density = {.is_complete = p_look->is_complete,
                                    .v_log_density = p_s->v_density};
  const bool is_one = n_row <= n_most;
  for (size_t at = 0; at < n_row; at += n_most) {
    const size_t n = tb_min(n_most, n_row - at);
    groups_evaluate(p,
                    p_point,
                    p_s,
                    first,
                    at,
                    n,
                    p_s->v_u,
                    p->n_point,
                    is_one ? &out : &density);
    add_densities(p_s, n, p->n_point);
  }
  const double log_sum = settle(p_s->v_pi, p->n_point);
  set_coefficients(p, p_s);
  out.v_log_density = NULL;
  for (size_t at = 0; wants_more && at < n_row; at += n_most) {
    const size_t n = tb_min(n_most, n_row - at);
    if (!is_one) {
      groups_evaluate(p,
                      p_point,
                      p_s,
                      first,
                      at,
                      n,
                      p_s->v_u,
                      p->n_point,
                      &out);
    }
    add_part(p, p_s, first, at, n, p_look);
  }
  return log_sum;
}

/* moments of v given the rows */
static void set_moments(const struct groups* p,
                        const struct groups_scratch* p_s,
                        const struct groups_look* p_look) {
  const size_t q = p->n_effect;
  for (size_t a = 0; a < q; ++a) {
    const double* v_first = p_s->v_coef + (1 + a) * p->n_point;
    double mean = 0;
    for (size_t k = 0; k < p->n_point; ++k) {
      mean += v_first[k];
    }
    p_look->v_mean[a] = mean;
    for (size_t b = 0; b < q; ++b) {
      double square = 0;
      for (size_t k = 0; k < p->n_point; ++k) {
        square += v_first[k] * p_s->v_v[k * q + b];
      }
      p_look->v_square[a * q + b] = square;
    }
  }
}

void groups_look(const struct tb_model* p_model,
                 const struct groups_point* p_point,
                 const struct groups_scratch* p_s,
                 size_t group,
                 const struct groups_look* p_look) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  struct groups_mode mode;
  groups_load(p, p_point->v_theta, group, p_s);
  groups_find_mode(p, p_point, p_s, group, p_look->v_start, &mode);
  if (p_look->v_mode != NULL) {
    memcpy(p_look->v_mode, mode.v_at, p->n_effect * sizeof(double));
  }
  if (p_look->v_gradient != NULL) {
    memset(p_look->v_gradient, 0, n_dim * sizeof(double));
  }
  if (p_look->v_hessian != NULL) {
    memset(p_look->v_hessian, 0, n_dim * n_dim * sizeof(double));
    memset(p_s->v_each, 0, p->n_point * groups_each(p) * sizeof(double));
  }
  double log_lik = set_nodes(p, p_point, &mode, p_s);
  log_lik += sum_parts(p, p_point, p_s, group, p_look);
  if (p->v_spare != NULL) {
    log_lik += p->v_spare[group] * p_point->spare_density;
  }
  if (p_look->is_complete && p->v_constant != NULL) {
    log_lik += p->v_constant[group];
  }
  if (p_look->p_log_lik != NULL) {
    *p_look->p_log_lik = log_lik;
  }
  if (p_look->v_gradient != NULL && p->has_aux && p->v_spare != NULL) {
    p_look->v_gradient[n_dim - 1] += p->v_spare[group] * p_point->spare_score;
  }
  if (p_look->v_hessian != NULL) {
    groups_finish_hessian(p,
                          p_point,
                          p_s,
                          p_look->v_gradient,
                          p_look->v_hessian);
  }
  if (p_look->v_gradient != NULL) {
    groups_pull(p, p_point, p_look->v_gradient + p->n_coef, 1);
  }
  if (p_look->v_mean != NULL) {
    set_moments(p, p_s, p_look);
  }
}
