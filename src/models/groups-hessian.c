/* -Hessian of one group by Louis' identity, see groups-look.c. A row acts
 * through eta_i = x_i^T beta + z_i^T Lambda v alone, whose derivative in
 * Lambda_ab is z_ia v_b:
 *
 *   -E_pi Hess = sum_i sum_k pi_k c_ik J_ik J_ik^T,  J_ik = (x_i, z_ia v_kb),
 *
 * so that a row's c is summed over the nodes first, with 1, v_b and v_b v_c.
 * The gradients at a node, G_k, are those in beta, in u (z_i) and in s; the one
 * in Lambda_ab is that in u_a times v_kb. */
#include "models/groups-one.h"

#include "base/clones.h"

#include <string.h>

/* the place of v_b v_c among the coefficients */
static size_t pair_at(size_t b, size_t c) {
  const size_t high = b > c ? b : c, low = b > c ? c : b;
  return 1 + GROUPS_EFFECT + high * (high + 1) / 2 + low;
}

/* v_to[k * n_lead] += sum_i v_entry[k][i] v_row[i * stride] */
static TB_CLONES void add_each(const double* v_entry,
                               const double* v_row,
                               size_t stride,
                               size_t n,
                               size_t n_node,
                               double* v_to,
                               size_t n_lead) {
  for (size_t k = 0; k < n_node; ++k) {
    const double* v = v_entry + k * n;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum += v[i] * v_row[i * stride];
    }
    v_to[k * n_lead] += sum;
  }
}

static void add_each_gradient(const struct groups* p,
                              const struct groups_scratch* p_s,
                              const double* v_block,
                              size_t at,
                              size_t n) {
  const size_t n_each = groups_each(p), n_node = p->n_point;
  const size_t n_padded = p->store.n_padded;
  static const double one = 1;
  for (size_t j = 0; j < p->n_coef; ++j) {
    add_each(p_s->v_score,
             v_block + j,
             n_padded,
             n,
             n_node,
             p_s->v_each + j,
             n_each);
  }
  for (size_t a = 0; a < p->n_effect; ++a) {
    add_each(p_s->v_score,
             p_s->v_z + a * p->n_most + at,
             1,
             n,
             n_node,
             p_s->v_each + p->n_coef + a,
             n_each);
  }
  if (p->has_aux) {
    add_each(p_s->v_aux_score,
             &one,
             0,
             n,
             n_node,
             p_s->v_each + p->n_coef + p->n_effect,
             n_each);
  }
}

/* the sums of an entry over the nodes, with the coefficients first..last - 1 */
static TB_CLONES void sum_entries(const struct groups* p,
                                  const struct groups_scratch* p_s,
                                  const double* v_entry,
                                  size_t first,
                                  size_t last,
                                  size_t n) {
  for (size_t s = first; s < last; ++s) {
    double* v_out = p_s->v_sum + s * n;
    const double* v_coef = p_s->v_coef + s * p->n_point;
    memset(v_out, 0, n * sizeof(double));
    for (size_t k = 0; k < p->n_point; ++k) {
      for (size_t i = 0; i < n; ++i) {
        v_out[i] += v_coef[k] * v_entry[k * n + i];
      }
    }
  }
}

static TB_CLONES void add_rows(const struct groups* p,
                               const struct groups_scratch* p_s,
                               const double* v_block,
                               size_t at,
                               size_t n,
                               size_t n_dim,
                               double* v_hessian) {
  const size_t n_padded = p->store.n_padded, n_coef = p->n_coef;
  for (size_t i = 0; i < n; ++i) {
    const double* v_x = v_block + i * n_padded;
    const double c = p_s->v_sum[i];
    for (size_t j = 0; j < n_coef; ++j) {
      for (size_t k = 0; k <= j; ++k) {
        v_hessian[j * n_dim + k] += c * v_x[j] * v_x[k];
      }
    }
    for (size_t l = 0; l < p->n_lambda; ++l) {
      const double z = p_s->v_z[p->v_a[l] * p->n_most + at + i];
      const double first = z * p_s->v_sum[(1 + p->v_b[l]) * n + i];
      double* v_row = v_hessian + (n_coef + l) * n_dim;
      for (size_t j = 0; j < n_coef; ++j) {
        v_row[j] += first * v_x[j];
      }
      for (size_t m = 0; m <= l; ++m) {
        const double other = p_s->v_z[p->v_a[m] * p->n_most + at + i];
        v_row[n_coef + m] +=
            z * other * p_s->v_sum[pair_at(p->v_b[l], p->v_b[m]) * n + i];
      }
    }
  }
}

/* the row of s: that of a row's cross derivative, and its own */
static void add_aux(const struct groups* p,
                    const struct groups_scratch* p_s,
                    const double* v_block,
                    size_t at,
                    size_t n,
                    double* v_row) {
  const size_t n_coef = p->n_coef;
  sum_entries(p, p_s, p_s->v_cross, 0, 1 + p->n_effect, n);
  for (size_t i = 0; i < n; ++i) {
    const double* v_x = v_block + i * p->store.n_padded;
    for (size_t j = 0; j < n_coef; ++j) {
      v_row[j] += p_s->v_sum[i] * v_x[j];
    }
    for (size_t l = 0; l < p->n_lambda; ++l) {
      v_row[n_coef + l] += p_s->v_z[p->v_a[l] * p->n_most + at + i] *
                           p_s->v_sum[(1 + p->v_b[l]) * n + i];
    }
  }
  sum_entries(p, p_s, p_s->v_aux_curvature, 0, 1, n);
  for (size_t i = 0; i < n; ++i) {
    v_row[n_coef + p->n_lambda] +=
        p_s->v_sum[i] + tb_response_sampled(&p->response, 0)->information;
  }
}

void groups_add_hessian(const struct groups* p,
                        const struct groups_scratch* p_s,
                        const double* v_block,
                        size_t at,
                        size_t n,
                        double* v_hessian) {
  const size_t q = p->n_effect;
  const size_t n_dim = p->n_coef + p->n_lambda + p->has_aux;
  add_each_gradient(p, p_s, v_block, at, n);
  const size_t n_pair = q * (q + 1) / 2, pairs = 1 + GROUPS_EFFECT;
  sum_entries(p, p_s, p_s->v_curvature, 0, 1 + q, n);
  sum_entries(p, p_s, p_s->v_curvature, pairs, pairs + n_pair, n);
  add_rows(p, p_s, v_block, at, n, n_dim, v_hessian);
  if (p->has_aux) {
    add_aux(p, p_s, v_block, at, n, v_hessian + (n_dim - 1) * n_dim);
  }
}

/* v_out (n_dim) := gradient at node k, less the mean */
static void gradient_at(const struct groups* p,
                        const struct groups_scratch* p_s,
                        size_t k,
                        const double* v_mean,
                        double* v_out) {
  const double* v_each = p_s->v_each + k * groups_each(p);
  const double* v = p_s->v_v + k * p->n_effect;
  const size_t n_coef = p->n_coef;
  for (size_t j = 0; j < n_coef; ++j) {
    v_out[j] = v_each[j] - v_mean[j];
  }
  for (size_t l = 0; l < p->n_lambda; ++l) {
    v_out[n_coef + l] =
        v_each[n_coef + p->v_a[l]] * v[p->v_b[l]] - v_mean[n_coef + l];
  }
  if (p->has_aux) {
    /* what is the same at all nodes is not in v_each */
    v_out[n_coef + p->n_lambda] = v_each[n_coef + p->n_effect];
  }
}

static void mirror(size_t n_dim, double* v_hessian) {
  for (size_t i = 0; i < n_dim; ++i) {
    for (size_t j = 0; j < i; ++j) {
      v_hessian[j * n_dim + i] = v_hessian[i * n_dim + j];
    }
  }
}

/* From Lambda to lambda: both sides, and what lambda bends Lambda by. */
static void to_lambda(const struct groups* p,
                      const struct groups_point* p_point,
                      const double* v_gradient,
                      size_t n_dim,
                      double* v_hessian) {
  const size_t n_coef = p->n_coef;
  for (size_t j = 0; j < n_dim; ++j) {
    groups_pull(p, p_point, v_hessian + j * n_dim + n_coef, 1);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    groups_pull(p, p_point, v_hessian + n_coef * n_dim + j, n_dim);
  }
  groups_bend(p,
              p_point,
              v_gradient + n_coef,
              v_hessian + n_coef * n_dim + n_coef,
              n_dim);
  mirror(n_dim, v_hessian); /* to the last bit */
}

void groups_finish_hessian(const struct groups* p,
                           const struct groups_point* p_point,
                           const struct groups_scratch* p_s,
                           const double* v_gradient,
                           double* v_hessian) {
  const size_t n_coef = p->n_coef, n_aux = n_coef + p->n_lambda;
  const size_t n_dim = n_aux + p->has_aux;
  double* v_here = p_s->v_before;
  double mean = 0;
  for (size_t k = 0; p->has_aux && k < p->n_point; ++k) {
    mean +=
        p_s->v_pi[k] * p_s->v_each[k * groups_each(p) + n_coef + p->n_effect];
  }
  for (size_t k = 0; k < p->n_point; ++k) {
    gradient_at(p, p_s, k, v_gradient, v_here);
    if (p->has_aux) {
      v_here[n_aux] -= mean;
    }
    for (size_t i = 0; i < n_dim; ++i) {
      const double share = p_s->v_pi[k] * v_here[i];
      for (size_t j = 0; j <= i; ++j) {
        v_hessian[i * n_dim + j] -= share * v_here[j];
      }
    }
  }
  mirror(n_dim, v_hessian);
  to_lambda(p, p_point, v_gradient, n_dim, v_hessian);
}
