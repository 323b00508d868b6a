/* The surrogate of control variates of order 2; see gradients/surrogate.h.
 *
 *   gradient = g_0(theta) + s [G - H delta + sum_{i in S} a_i],
 *
 * a_i = g_i(theta) - g_i(ref) - H_i delta, minus the gradient of e_i. A prior
 * that is quadratic has its part in g_0(ref) + s G - A delta.
 *
 *   symbol   variable    shape          owner
 *   S        v_awkward   n_awkward      surrogate
 *   A        v_bend      n_dim x n_dim  cv2
 */
#include "gradients/surrogate.h"

#include "base/norm.h"
#include "gradients/cv2-inside.h"

#include <math.h>
#include <string.h>

void tb_surrogate_draw(const struct tb_surrogate* p,
                       double stay,
                       const double* v_from,
                       double* v_xi,
                       double* v_z,
                       double* v_theta) {
  const size_t n_dim = p->law.frame.n_dim;
  const double* v_mean = p->law.v_mean;
  if (stay != 0) {
    const double rest = sqrt(1 - stay * stay);
    tb_frame_to_sampler(&p->law.frame, v_from, v_z);
    for (size_t j = 0; j < n_dim; ++j) {
      v_xi[j] = stay * (v_z[j] - v_mean[j]) + rest * v_xi[j];
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_xi[j] += v_mean[j];
  }
  tb_frame_to_parameter(&p->law.frame, v_xi, v_theta);
}

double tb_surrogate_law(const struct tb_surrogate* p,
                        const double* v_theta,
                        double* v_z) {
  const size_t n_dim = p->law.frame.n_dim;
  tb_frame_to_sampler(&p->law.frame, v_theta, v_z);
  for (size_t j = 0; j < n_dim; ++j) {
    v_z[j] -= p->law.v_mean[j];
  }
  return -0.5 * tb_square_norm(v_z, n_dim);
}

static bool is_outside(struct tb_chain* p_chain, const double* v_theta) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  return p_model->type->is_outside != NULL &&
         p_model->type->is_outside(p_model, &p_chain->work, v_theta);
}

/* A place as seen from the reference, in the chain's scratch. */
static struct tb_expansion_view look(const struct tb_chain* p_chain,
                                     const double* v_theta) {
  return tb_expansion_look(&tb_cv2_of(p_chain)->expansion,
                           v_theta,
                           false,
                           p_chain->p_estimator_extra);
}

static struct tb_batch awkward_rows(const struct tb_surrogate* p) {
  return (struct tb_batch){.n_batch = p->n_awkward,
                           .v_index = p->v_awkward,
                           .weight = 1};
}

/* what the report says of rows */
static void count_rows(struct tb_chain* p_chain, size_t n) {
  p_chain->counts.n_row += (double)n;
  p_chain->counts.n_always += (double)n;
}

/* *p_log := -[e_0 + the sum of e_i over some rows] */
static enum tb_status beyond_of(struct tb_chain* p_chain,
                                const struct tb_surrogate* p,
                                const struct tb_batch* p_rows,
                                const double* v_theta,
                                double* p_log) {
  const struct tb_cv2* p_cv2 = tb_cv2_of(p_chain);
  const struct tb_model* p_model = p_chain->p_target->p_model;
  *p_log = -INFINITY;
  if (p->has_prior && is_outside(p_chain, v_theta)) {
    return TB_STATUS_ok;
  }
  const struct tb_expansion_view view = look(p_chain, v_theta);
  double beyond = 0, left = 0;
  for (size_t first = 0; first < p_rows->n_batch; first += TB_N_AHEAD) {
    const struct tb_batch part = tb_batch_part(p_rows, first, TB_N_AHEAD);
    double v_e[TB_N_AHEAD];
    p_model->type->expansion->remainders(p_model,
                                         &p_chain->work,
                                         p_cv2->expansion.v_record,
                                         NULL,
                                         view.v_delta,
                                         &part,
                                         NULL,
                                         v_e);
    for (size_t k = 0; k < part.n_batch; ++k) {
      beyond += v_e[k];
    }
  }
  count_rows(p_chain, p_rows->n_batch);
  if (p->has_prior) {
    const enum tb_status status =
        tb_cv2_prior_remainder(p_chain, v_theta, view.v_delta, &left);
    if (status != TB_STATUS_ok) {
      return status;
    }
  }
  const double sum = p_cv2->scale * beyond + left;
  *p_log = isnan(sum) ? -INFINITY : -sum;
  return TB_STATUS_ok;
}

enum tb_status tb_cv2_prior_remainder(struct tb_chain* p_chain,
                                      const double* v_theta,
                                      const double* v_delta,
                                      double* p_e) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const size_t n_dim = p_chain->n_dim;
  double log_prior = 0, linear = 0, bent = 0;
  *p_e = 0;
  if (p->is_quadratic) {
    return TB_STATUS_ok;
  }
  const enum tb_status status =
      p_model->type->prior(p_model,
                           &p_chain->work,
                           v_theta,
                           p_chain->p_estimator_scratch,
                           &log_prior);
  for (size_t j = 0; j < n_dim; ++j) {
    double sum = 0;
    for (size_t i = 0; i < n_dim; ++i) {
      sum += p->v_P[j * n_dim + i] * v_delta[i];
    }
    bent += sum * v_delta[j];
    linear += p->v_prior[j] * v_delta[j];
  }
  *p_e = p->log_prior - log_prior + linear - 0.5 * bent;
  return status;
}

enum tb_status tb_surrogate_beyond(struct tb_chain* p_chain,
                                   const struct tb_surrogate* p,
                                   const double* v_theta,
                                   double* p_log) {
  const struct tb_batch all = awkward_rows(p);
  *p_log = 0;
  return tb_surrogate_is_normal(p)
             ? TB_STATUS_ok
             : beyond_of(p_chain, p, &all, v_theta, p_log);
}

enum tb_status tb_surrogate_beyond_line(struct tb_chain* p_chain,
                                        const struct tb_surrogate* p,
                                        size_t k,
                                        const double* v_theta,
                                        double* p_log) {
  const struct tb_lines* p_lines = &p->lines;
  const size_t first = p_lines->v_first[k];
  const struct tb_batch some = {.n_batch = p_lines->v_first[k + 1] - first,
                                .v_index = p_lines->v_row + first,
                                .weight = 1};
  return beyond_of(p_chain, p, &some, v_theta, p_log);
}

void tb_surrogate_law_gradient(const struct tb_chain* p_chain,
                               const struct tb_surrogate* p,
                               const double* v_theta,
                               double* v_gradient) {
  const struct tb_cv2* p_cv2 = tb_cv2_of(p_chain);
  const size_t n_dim = p_chain->n_dim;
  const double* v_center = p->law.frame.v_center;
  for (size_t j = 0; j < n_dim; ++j) {
    const double* v_row = p_cv2->v_bend + j * n_dim; /* symmetric */
    double sum = p->v_slope[j];
    for (size_t i = 0; i < n_dim; ++i) {
      sum -= v_row[i] * (v_theta[i] - v_center[i]);
    }
    v_gradient[j] = sum;
  }
}

double tb_surrogate_slope(const struct tb_surrogate* p,
                          size_t k,
                          const double* v_theta) {
  const size_t n_dim = p->law.frame.n_dim;
  const double* v_bent = p->lines.v_bent + k * n_dim;
  const double* v_line = p->lines.v_line + k * n_dim;
  const double* v_center = p->law.frame.v_center;
  double sum = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    sum += v_line[j] * p->v_slope[j] - v_bent[j] * (v_theta[j] - v_center[j]);
  }
  return sum;
}

void tb_surrogate_move(const struct tb_surrogate* p,
                       const double* v_from,
                       const double* v_w,
                       double* v_to) {
  const size_t n_dim = p->law.frame.n_dim;
  if (p->n_free == 0) {
    tb_frame_map(tb_surrogate_frame(p), v_w, v_to);
  } else {
    memset(v_to, 0, n_dim * sizeof(double));
    for (size_t k = 0; k < p->n_free; ++k) {
      const double* v_column = p->v_free + k * n_dim;
      for (size_t j = 0; j < n_dim; ++j) {
        v_to[j] += v_column[j] * v_w[k];
      }
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_to[j] += v_from[j];
  }
}

void tb_surrogate_pull(const struct tb_surrogate* p,
                       const double* v_gradient,
                       double* v_pulled) {
  const size_t n_dim = p->law.frame.n_dim;
  if (p->n_free == 0) {
    tb_frame_pull_gradient(tb_surrogate_frame(p), v_gradient, v_pulled);
    return;
  }
  for (size_t k = 0; k < p->n_free; ++k) {
    const double* v_column = p->v_free + k * n_dim;
    double sum = 0;
    for (size_t j = 0; j < n_dim; ++j) {
      sum += v_column[j] * v_gradient[j];
    }
    v_pulled[k] = sum;
  }
}

/* v_gradient := g_0(ref) + s G - A delta, with the prior as it is: g_0(theta)
 * in place of g_0(ref) - P delta */
static enum tb_status add_quadratic(struct tb_chain* p_chain,
                                    const struct tb_surrogate* p,
                                    const struct tb_expansion_view* p_view,
                                    double* v_gradient) {
  const struct tb_cv2* p_cv2 = tb_cv2_of(p_chain);
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const size_t n_dim = p_chain->n_dim;
  const bool is_bent = p->has_prior && !p_cv2->is_quadratic;
  double* v_prior = p_chain->p_estimator_scratch;
  if (is_bent) {
    const enum tb_status status = p_model->type->prior(p_model,
                                                       &p_chain->work,
                                                       p_view->v_theta,
                                                       v_prior,
                                                       NULL);
    if (status != TB_STATUS_ok) {
      return status;
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    const double* v_A = p_cv2->v_bend + j * n_dim;
    const double* v_P = p_cv2->v_P + j * n_dim;
    double sum = v_gradient[j] * p_cv2->scale + p_cv2->v_sum[j];
    for (size_t i = 0; i < n_dim; ++i) {
      sum -= (v_A[i] - (is_bent ? v_P[i] : 0)) * p_view->v_delta[i];
    }
    v_gradient[j] = sum + (is_bent ? v_prior[j] - p_cv2->v_prior[j] : 0);
  }
  return TB_STATUS_ok;
}

enum tb_status tb_surrogate_gradient(struct tb_chain* p_chain,
                                     const struct tb_surrogate* p,
                                     const double* v_theta,
                                     double* v_gradient) {
  const struct tb_cv2* p_cv2 = tb_cv2_of(p_chain);
  const struct tb_expansion_view view = look(p_chain, v_theta);
  const struct tb_batch all = awkward_rows(p);
  const struct tb_sums sums = {.v_gradient = v_gradient};
  enum tb_status status = TB_STATUS_ok;
  memset(v_gradient, 0, p_chain->n_dim * sizeof(double));
  for (size_t first = 0; first < all.n_batch && status == TB_STATUS_ok;
       first += TB_N_AHEAD) {
    const struct tb_batch part = tb_batch_part(&all, first, TB_N_AHEAD);
    status = tb_expansion_add(&p_cv2->expansion,
                              &p_chain->work,
                              &view,
                              &part,
                              &sums);
  }
  count_rows(p_chain, p->n_awkward);
  return status == TB_STATUS_ok ? add_quadratic(p_chain, p, &view, v_gradient)
                                : status;
}
