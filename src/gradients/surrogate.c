/* The surrogate of control variates of order 2; see gradients/surrogate.h.
 *
 *   gradient = g_0(theta) + s [G - H delta + sum_{i in S} a_i],
 *
 * a_i = g_i(theta) - g_i(ref) - H_i delta, minus the gradient of e_i. A prior
 * that is quadratic has its part in g_0(ref) + s G - A delta.
 *
 * With hyperparameters phi (models/scaled.h) everything that looks at rows or
 * at tb_prior, the priors of fixed scale, is asked of the model of the rows
 * alone, whose coordinates are the leading ones (tb_cv2_rows()), and phi comes
 * in here only. What that became where the prior was read before:
 *
 *   cv2.c         v_P, is_quadratic, log_prior and g_0 at the reference: of the
 *                 fixed priors, P = 0 where a mixture covers a coefficient, so
 *                 constants of a run as before; its estimate, which would need
 *                 phi's, is refused
 *   cv2.c         A = P + s H need not have a factor: the law is one given phi
 *   factors.c     the law's frame and mean: of the metric, and unused
 *   factors.c     has_prior: bounds and kinks of the fixed priors
 *   factorised.c  e_0 in the test: never, the surrogate has all priors
 *   surrogate.c   e_0 in tb_surrogate_beyond(): of the fixed priors
 *   surrogate.c   the gradient: less P(phi) (beta - mu), with the phi of now
 *   surrogate.c   the law's density, slopes and draws: with the phi of now
 *   shells.c      R and phi-bar of psi: given, not from d
 *   full.c, accept.c  the prior of all of theta, mixtures included, as before
 *
 * s scales rows and H, never p(phi).
 *
 *   symbol   variable    shape          owner
 *   S        v_awkward   n_awkward      surrogate
 *   A        v_bend      n_dim x n_dim  cv2
 */
#include "gradients/surrogate.h"

#include "base/norm.h"
#include "base/products.h"
#include "gradients/cv2-inside.h"
#include "gradients/factors-scratch.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------- with phi, or not */

static struct tb_mixture_given given_of(const struct tb_chain* p_chain,
                                        const struct tb_surrogate* p) {
  return tb_mixture_given_at(p->scales.p_mixtures,
                             tb_surrogate_n_coef(p),
                             tb_factors_law_at(p_chain));
}

static size_t n_hyper(const struct tb_surrogate* p) {
  return tb_surrogate_has_scales(p) ? p->scales.p_mixtures->n_hyper : 0;
}

static void
copy_phi(const struct tb_surrogate* p, const double* v_from, double* v_to) {
  const size_t n_coef = tb_surrogate_n_coef(p);
  memcpy(v_to + n_coef, v_from + n_coef, n_hyper(p) * sizeof(double));
}

static void draw_normal(const struct tb_surrogate* p,
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

/* Given phi and, where the law holds some, its functionals. */
static void draw_given_scales(struct tb_chain* p_chain,
                              const struct tb_surrogate* p,
                              double stay,
                              const double* v_from,
                              double* v_xi,
                              double* v_theta) {
  struct tb_mixture_given given = given_of(p_chain, p);
  const size_t n_coef = tb_surrogate_n_coef(p);
  bool is_drawn = tb_mixture_law_set(&p->scales, v_from + n_coef, &given);
  copy_phi(p, v_from, v_theta);
  if (is_drawn && p->scales.base.n_held > 0) {
    is_drawn = tb_mixture_law_draw_held(&p->scales,
                                        &given,
                                        stay,
                                        v_from,
                                        v_xi,
                                        v_theta);
  } else if (is_drawn) {
    tb_mixture_law_draw(&p->scales,
                        &given,
                        stay,
                        stay == 0 ? NULL : v_from,
                        v_xi,
                        v_theta);
  }
  if (!is_drawn) {
    memcpy(v_theta, v_from, n_coef * sizeof(double));
  }
}

void tb_surrogate_draw(struct tb_chain* p_chain,
                       const struct tb_surrogate* p,
                       double stay,
                       const double* v_from,
                       double* v_xi,
                       double* v_z,
                       double* v_theta) {
  if (tb_surrogate_has_scales(p)) {
    draw_given_scales(p_chain, p, stay, v_from, v_xi, v_theta);
  } else {
    draw_normal(p, stay, v_from, v_xi, v_z, v_theta);
  }
}

void tb_surrogate_draw_scales(struct tb_chain* p_chain,
                              const struct tb_surrogate* p,
                              double* v_theta) {
  tb_mixtures_draw(p->scales.p_mixtures,
                   v_theta,
                   v_theta + tb_surrogate_n_coef(p),
                   given_of(p_chain, p).v_work,
                   &p_chain->v_rng[TB_STREAM_noise]);
}

void tb_surrogate_slice_scale(struct tb_chain* p_chain,
                              const struct tb_surrogate* p,
                              size_t k,
                              double width,
                              double* v_theta) {
  struct tb_mixture_given given = given_of(p_chain, p);
  tb_mixture_law_slice(&p->scales,
                       k,
                       width,
                       v_theta,
                       v_theta + tb_surrogate_n_coef(p),
                       &given,
                       &p_chain->v_rng[TB_STREAM_noise]);
}

double tb_surrogate_marginal(struct tb_chain* p_chain,
                             const struct tb_surrogate* p,
                             const double* v_theta) {
  struct tb_mixture_given given = given_of(p_chain, p);
  const double* v_phi = v_theta + tb_surrogate_n_coef(p);
  if (!tb_mixture_law_set(&p->scales, v_phi, &given)) {
    return -INFINITY;
  }
  const double log = tb_mixture_law_marginal(&p->scales, v_phi, &given);
  return isnan(log) ? -INFINITY : log;
}

bool tb_surrogate_draw_given(struct tb_chain* p_chain,
                             const struct tb_surrogate* p,
                             double* v_xi,
                             double* v_theta) {
  const struct tb_mixture_given given = given_of(p_chain, p);
  if (p->scales.base.n_held == 0) {
    tb_mixture_law_draw(&p->scales, &given, 0, NULL, v_xi, v_theta);
    return true;
  }
  return tb_mixture_law_draw_held(&p->scales,
                                  &given,
                                  0,
                                  v_theta,
                                  v_xi,
                                  v_theta);
}

static double law_with_scales(struct tb_chain* p_chain,
                              const struct tb_surrogate* p,
                              const double* v_theta) {
  struct tb_mixture_given given = given_of(p_chain, p);
  const struct tb_mixture_law* p_law = &p->scales;
  const size_t n = p_law->n_coef;
  const double* v_phi = v_theta + n;
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    given.v_z[j] = v_theta[j] - p_law->v_center[j];
  }
  for (size_t j = 0; j < n; ++j) {
    const double* v_bend = p_law->v_bend + j * n;
    double bent = 0;
    for (size_t i = 0; i < n; ++i) {
      bent += v_bend[i] * given.v_z[i];
    }
    sum += given.v_z[j] * (p_law->v_slope[j] - 0.5 * bent);
  }
  tb_mixture_law_scales(p_law, v_phi, &given);
  return sum + tb_mixture_law_prior(p_law, v_theta, v_phi, &given);
}

double tb_surrogate_law(struct tb_chain* p_chain,
                        const struct tb_surrogate* p,
                        const double* v_theta,
                        double* v_z) {
  const size_t n_dim = p->law.frame.n_dim;
  if (tb_surrogate_has_scales(p)) {
    return law_with_scales(p_chain, p, v_theta);
  }
  tb_frame_to_sampler(&p->law.frame, v_theta, v_z);
  for (size_t j = 0; j < n_dim; ++j) {
    v_z[j] -= p->law.v_mean[j];
  }
  return -0.5 * tb_square_norm(v_z, n_dim);
}

/* ------------------------------------------------------- beyond the law */

static bool is_outside(struct tb_chain* p_chain, const double* v_theta) {
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
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

/* x_i^T delta of rows along a line: v_here + s v_step. */
struct tb_moved {
  const double* v_here;
  const double* v_step;
  double s;
};

/* The sum of e_i over rows of S, at delta or, where that is not NULL, moved
 * along a line. */
static double sum_of_rows(struct tb_chain* p_chain,
                          const struct tb_batch* p_rows,
                          const double* v_delta,
                          const struct tb_moved* p_moved) {
  const struct tb_expansion* p_expansion = &tb_cv2_of(p_chain)->expansion;
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
  const struct tb_model_expansion* type = p_model->type->expansion;
  const void* v_record = p_expansion->v_record;
  double sum = 0;
  for (size_t first = 0; first < p_rows->n_batch; first += TB_N_AHEAD) {
    const struct tb_batch part = tb_batch_part(p_rows, first, TB_N_AHEAD);
    double v_e[TB_N_AHEAD], v_t[TB_N_AHEAD];
    if (p_moved == NULL) {
      type->remainders(p_model,
                       &p_chain->work,
                       v_record,
                       p_expansion->v_at,
                       NULL,
                       v_delta,
                       &part,
                       NULL,
                       v_e);
    } else {
      for (size_t k = 0; k < part.n_batch; ++k) {
        v_t[k] = p_moved->v_here[first + k] +
                 p_moved->s * p_moved->v_step[first + k];
      }
      type->remainders_of(p_model, v_record, &part, v_t, v_e);
    }
    for (size_t k = 0; k < part.n_batch; ++k) {
      sum += v_e[k];
    }
  }
  count_rows(p_chain, p_rows->n_batch);
  return sum;
}

/* *p_log := -[e_0 + the sum of e_i over some rows] at v_theta; p_moved: where
 * that is on a line, as the rows see it, v_theta then being for the prior
 * alone; NULL: it has none. */
static enum tb_status beyond_of(struct tb_chain* p_chain,
                                const struct tb_surrogate* p,
                                const struct tb_batch* p_rows,
                                const double* v_theta,
                                const struct tb_moved* p_moved,
                                double* p_log) {
  struct tb_expansion_view view = {0};
  double left = 0;
  *p_log = -INFINITY;
  if (p->has_prior && is_outside(p_chain, v_theta)) {
    return TB_STATUS_ok;
  }
  if (v_theta != NULL) {
    view = look(p_chain, v_theta);
  }
  const double beyond = sum_of_rows(p_chain, p_rows, view.v_delta, p_moved);
  if (p->has_prior) {
    const enum tb_status status =
        tb_cv2_prior_remainder(p_chain, v_theta, view.v_delta, &left);
    if (status != TB_STATUS_ok) {
      return status;
    }
  }
  const double sum = tb_cv2_of(p_chain)->scale * beyond + left;
  *p_log = isnan(sum) ? -INFINITY : -sum;
  return TB_STATUS_ok;
}

enum tb_status tb_surrogate_look(struct tb_chain* p_chain,
                                 const struct tb_surrogate* p,
                                 const double* v_theta,
                                 double* p_log) {
  const struct tb_batch all = awkward_rows(p);
  return beyond_of(p_chain, p, &all, v_theta, NULL, p_log);
}

void tb_surrogate_pull_law(const struct tb_surrogate* p,
                           const double* v_theta,
                           double* v_delta,
                           double* v_pulled) {
  const size_t n_dim = p->law.frame.n_dim;
  const double* v_center = p->law.frame.v_center;
  for (size_t j = 0; j < n_dim; ++j) {
    v_delta[j] = v_theta[j] - v_center[j];
  }
  tb_columns_dot(p->v_free_pull, n_dim, p->n_free, v_delta, v_pulled);
  for (size_t k = 0; k < p->n_free; ++k) {
    v_pulled[k] = p->v_free_slope[k] - v_pulled[k];
  }
}

/* the rows that a line moves */
static struct tb_batch rows_of_line(const struct tb_lines* p, size_t k) {
  const size_t first = p->v_first[k];
  return (struct tb_batch){.n_batch = p->v_first[k + 1] - first,
                           .v_index = p->v_row + first,
                           .weight = 1};
}

void tb_surrogate_walk(struct tb_chain* p_chain,
                       const struct tb_surrogate* p,
                       size_t k,
                       const double* v_theta,
                       struct tb_walk* p_walk) {
  const struct tb_lines* p_lines = &p->lines;
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
  const struct tb_batch rows = rows_of_line(p_lines, k);
  const size_t n_dim = p->law.frame.n_dim;
  const double* v_line = p_lines->v_line + k * n_dim;
  const struct tb_expansion_view view = look(p_chain, v_theta);
  double pull;
  *p_walk =
      (struct tb_walk){.k = k, .v_theta = v_theta, .bend = p_lines->v_curve[k]};
  if (p_model->type->expansion->steps != NULL) {
    p_model->type->expansion->steps(p_model,
                                    &p_chain->work,
                                    view.v_delta,
                                    &rows,
                                    tb_factors_line_at(p_chain));
  }
  tb_columns_dot(p_lines->v_pull + k * n_dim, n_dim, 1, view.v_delta, &pull);
  p_walk->slope = p_lines->v_slope[k] - pull;
  if (tb_surrogate_has_scales(p)) {
    struct tb_mixture_given given = given_of(p_chain, p);
    tb_mixture_law_scales(&p->scales, v_theta + n_dim, &given);
    for (size_t j = 0; j < n_dim; ++j) {
      const double along = v_line[j] * given.v_precision[j];
      p_walk->slope -= along * (v_theta[j] - given.v_location[j]);
      p_walk->bend += along * v_line[j];
    }
  }
}

void tb_surrogate_walk_to(const struct tb_surrogate* p,
                          const struct tb_walk* p_walk,
                          double s,
                          double* v_to) {
  const size_t n_dim = p->law.frame.n_dim;
  const double* v_line = p->lines.v_line + p_walk->k * n_dim;
  for (size_t j = 0; j < n_dim; ++j) {
    v_to[j] = p_walk->v_theta[j] + s * v_line[j];
  }
}

enum tb_status tb_surrogate_walk_beyond(struct tb_chain* p_chain,
                                        const struct tb_surrogate* p,
                                        const struct tb_walk* p_walk,
                                        double s,
                                        double* v_to,
                                        double* p_log) {
  const struct tb_batch rows = rows_of_line(&p->lines, p_walk->k);
  const struct tb_moved moved = {.v_here = tb_factors_line_at(p_chain),
                                 .v_step = p->lines.v_step +
                                           p->lines.v_first[p_walk->k],
                                 .s = s};
  const bool has_steps = tb_cv2_rows(p_chain)->type->expansion->steps != NULL;
  const bool needs_place = p->has_prior || !has_steps;
  if (needs_place) {
    tb_surrogate_walk_to(p, p_walk, s, v_to);
  }
  return beyond_of(p_chain,
                   p,
                   &rows,
                   needs_place ? v_to : NULL,
                   has_steps ? &moved : NULL,
                   p_log);
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
    tb_columns_add(p->v_free, n_dim, p->n_free, v_w, v_to);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_to[j] += v_from[j];
  }
  copy_phi(p, v_from, v_to);
}

void tb_surrogate_pull(const struct tb_surrogate* p,
                       const double* v_gradient,
                       double* v_pulled) {
  const size_t n_dim = p->law.frame.n_dim;
  if (p->n_free == 0) {
    tb_frame_pull_gradient(tb_surrogate_frame(p), v_gradient, v_pulled);
  } else {
    tb_columns_dot(p->v_free, n_dim, p->n_free, v_gradient, v_pulled);
  }
}

/* v_gradient := g_0(ref) + s G - A delta, with the prior as it is: g_0(theta)
 * in place of g_0(ref) - P delta */
static enum tb_status add_quadratic(struct tb_chain* p_chain,
                                    const struct tb_surrogate* p,
                                    const struct tb_expansion_view* p_view,
                                    double* v_gradient) {
  const struct tb_cv2* p_cv2 = tb_cv2_of(p_chain);
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
  const size_t n_dim = p_model->n_dim;
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
  /* A and P are symmetric */
  tb_columns_dot(p_cv2->v_bend, n_dim, n_dim, p_view->v_delta, p_view->v_bent);
  for (size_t j = 0; j < n_dim; ++j) {
    v_gradient[j] =
        v_gradient[j] * p_cv2->scale + p_cv2->v_sum[j] - p_view->v_bent[j];
  }
  if (is_bent) {
    tb_columns_add(p_cv2->v_P, n_dim, n_dim, p_view->v_delta, v_gradient);
    for (size_t j = 0; j < n_dim; ++j) {
      v_gradient[j] += v_prior[j] - p_cv2->v_prior[j];
    }
  }
  if (tb_surrogate_has_scales(p)) {
    struct tb_mixture_given given = given_of(p_chain, p);
    tb_mixture_law_scales(&p->scales, p_view->v_theta + n_dim, &given);
    for (size_t j = 0; j < n_dim; ++j) {
      v_gradient[j] -=
          given.v_precision[j] * (p_view->v_theta[j] - given.v_location[j]);
    }
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
