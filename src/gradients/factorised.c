/* Scalable Metropolis-Hastings, second order (Cornish, Vanetti, Bouchard-Cote,
 * Deligiannidis & Doucet 2019, ICML), with bounds that are sharper than theirs
 * because a row acts through eta_i alone. With U_i = -s l_i and L L^T = A,
 *
 *   z = L^T delta,  x~_i = L^{-1} x_i:  |t_i| <= ||x~_i|| ||z||
 *   e_i(theta) = U_i less its second-order expansion at the reference
 *   |e_i| <= psi_i ||z||^3,  psi_i = K_i ||x~_i||^3 / 6,  K_i = sup |U_i'''|
 *
 * the latter within ||x~_i|| R of eta_i, where ||z|| <= R. All the expansions
 * add up to one normal law N(m, Sigma), and pi is that times exp(-sum e_i). Of
 * a proposal that is reversible for the law, from theta to theta', accept if
 *
 *   1. none of M ~ Poisson(phi Psi) rows, drawn with probabilities psi_i / Psi,
 *      kills it, which a row does with probability
 *      max(0, e_i(theta') - e_i(theta)) / (phi psi_i),
 *      phi = ||z||^3 + ||z'||^3: accepted with probability
 *      prod min(1, exp(-[e_i(theta') - e_i(theta)])) whatever the psi_i;
 *   2. the prior and the rows that would be drawn more often than not, in one
 *      factor min(1, exp(-sum [e_i(theta') - e_i(theta)])),
 *      e_0 = -log p, less its linear part and delta^T P delta / 2,
 *
 * but for what the surrogate has as it is (gradients/surrogate.h): its rows are
 * in neither, and with them the prior is not.
 *
 * Each factor by itself has the ratio that leaves its part of pi invariant.
 *
 * Hyperparameters are in neither: a place is one of beta alone.
 *
 * psi depends on R, of which there are several with tables of their own
 * (shells.c). Or one R, its psi and the rows that they draw come from a pass
 * that was made before (drawn.c): what is further out is not possible then.
 *
 *   symbol     variable   shape   owner
 *   L, m       surrogate.law n_dim^2 factors
 */
#include "gradients/factors-inside.h"
#include "gradients/factors.h"

#include "base/clip.h"
#include "base/norm.h"
#include "base/variates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* rounding of a probability; what is beyond it is a mistake of the bounds */
#define SLACK 1e-5

/* The same for any number of rows: a run is refilled with models of more. */
size_t tb_factors_scratch_size(const struct tb_model* p_model) {
  const size_t n_number = TB_FACTORS_N_ARRAY * p_model->n_dim +
                          tb_factors_law_size(p_model) + TB_AWKWARD_MOST;
  return tb_align(sizeof(struct tb_factors_scratch)) +
         n_number * sizeof(double);
}

static struct tb_factors_scratch* scratch_of(const struct tb_chain* p_chain) {
  const size_t n_dim = p_chain->n_dim;
  char* p = tb_factors_scratch_at(p_chain);
  struct tb_factors_scratch* p_scratch = (struct tb_factors_scratch*)(void*)p;
  double* v = (double*)(void*)(p + tb_align(sizeof(struct tb_factors_scratch)));
  p_scratch->here.v_theta = v;
  p_scratch->here.v_delta = v + n_dim;
  p_scratch->there.v_theta = v + 2 * n_dim;
  p_scratch->there.v_delta = v + 3 * n_dim;
  p_scratch->v_z = v + 4 * n_dim;
  return p_scratch;
}

static void place_set(const struct tb_factors* p,
                      const double* v_theta,
                      double* v_z,
                      struct tb_place* p_place) {
  const struct tb_frame* p_frame = p->p_ball;
  const size_t n_dim = p_frame->n_dim;
  memcpy(p_place->v_theta, v_theta, n_dim * sizeof(double));
  for (size_t j = 0; j < n_dim; ++j) {
    p_place->v_delta[j] = v_theta[j] - p_frame->v_center[j];
  }
  if (p->v_reach != NULL) {
    const struct tb_model* p_model = p->p_cv2->expansion.p_model;
    p_place->norm =
        p_model->type->expansion->reach(p_model, p->v_reach, p_place->v_delta);
    return;
  }
  tb_frame_to_sampler(p_frame, v_theta, v_z);
  p_place->norm = sqrt(tb_square_norm(v_z, n_dim));
}

/* the two e_i of a batch of TB_N_AHEAD rows at most */
static void evaluate_rows(const struct tb_chain* p_chain,
                          struct tb_factors_scratch* p_scratch,
                          const struct tb_batch* p_batch) {
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
  const struct tb_expansion* p_expansion = &tb_cv2_of(p_chain)->expansion;
  p_model->type->expansion->remainders(p_model,
                                       &p_chain->work,
                                       p_expansion->v_record,
                                       p_expansion->v_at,
                                       p_scratch->here.v_delta,
                                       p_scratch->there.v_delta,
                                       p_batch,
                                       p_scratch->v_before,
                                       p_scratch->v_after);
}

/* Is there anything of the prior that the surrogate does not have? */
static bool tests_prior(const struct tb_cv2* p) {
  return !p->is_quadratic && !p->p_factors->surrogate.has_prior;
}

static enum tb_status prior_remainder(struct tb_chain* p_chain,
                                      const struct tb_place* p_place,
                                      double* p_e) {
  return tb_cv2_prior_remainder(p_chain,
                                p_place->v_theta,
                                p_place->v_delta,
                                p_e);
}

/* -sum [e(theta') - e(theta)] of the prior and the rows that are not thinned */
static enum tb_status log_factor(struct tb_chain* p_chain,
                                 struct tb_factors_scratch* p_scratch,
                                 const struct tb_shell* p_shell,
                                 double* p_log) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_batch always = {.n_batch = p_shell->n_always,
                                  .v_index = p_shell->v_always,
                                  .weight = 1};
  double before = 0, after = 0;
  enum tb_status status = TB_STATUS_ok;
  if (tests_prior(p)) {
    status = prior_remainder(p_chain, &p_scratch->here, &before);
    if (status == TB_STATUS_ok) {
      status = prior_remainder(p_chain, &p_scratch->there, &after);
    }
  }
  for (size_t first = 0; first < always.n_batch; first += TB_N_AHEAD) {
    const struct tb_batch part = tb_batch_part(&always, first, TB_N_AHEAD);
    evaluate_rows(p_chain, p_scratch, &part);
    for (size_t k = 0; k < part.n_batch; ++k) {
      before += p->scale * p_scratch->v_before[k];
      after += p->scale * p_scratch->v_after[k];
    }
  }
  p_chain->counts.n_row += (double)always.n_batch;
  p_chain->counts.n_always += (double)always.n_batch;
  *p_log = before - after;
  return status;
}

/* The probabilities with which the rows of evaluate_rows() kill, into v_after;
 * v_inverse: Psi / psi_i. */
static void kill_probabilities(const struct tb_chain* p_chain,
                               struct tb_factors_scratch* p_scratch,
                               double rate,
                               size_t n) {
  const double scale = tb_cv2_of(p_chain)->scale / rate;
  for (size_t k = 0; k < n; ++k) {
    p_scratch->v_after[k] = scale * p_scratch->v_inverse[k] *
                            (p_scratch->v_after[k] - p_scratch->v_before[k]);
  }
}

/* phi Psi: how many rows are drawn, on average */
static double kill_rate(const struct tb_factors_scratch* p_scratch,
                        const struct tb_shell* p_shell) {
  const double here = p_scratch->here.norm, there = p_scratch->there.norm;
  return (here * here * here + there * there * there) * p_shell->total;
}

/* The next n rows, and what they are drawn with. */
static void draw_rows(struct tb_chain* p_chain,
                      struct tb_factors_scratch* p_scratch,
                      const struct tb_shell* p_shell,
                      size_t n) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
  if (p->p_factors->p_drawn != NULL) {
    tb_drawn_look(p_chain, p->p_factors->p_drawn, n, p_scratch);
  } else {
    tb_alias_draw(p_shell->v_alias,
                  p_model->n_data,
                  &p_chain->v_rng[TB_STREAM_batch],
                  n,
                  p_scratch->v_row,
                  p_scratch->v_inverse);
  }
  for (size_t k = 0; k < n && k < TB_STORE_BLOCK; ++k) {
    p_model->type->expansion->prefetch(p_model,
                                       p->expansion.v_record,
                                       p_scratch->v_row[k]);
  }
}

/* M: how many rows are drawn */
static double draw_number(struct tb_chain* p_chain,
                          const struct tb_factors_scratch* p_scratch,
                          const struct tb_shell* p_shell) {
  return tb_rng_poisson(&p_chain->v_rng[TB_STREAM_batch],
                        kill_rate(p_scratch, p_shell));
}

/* Does one of `left` rows that are drawn kill the proposal? Those after it have
 * not been used. */
static enum tb_status is_killed(struct tb_chain* p_chain,
                                struct tb_factors_scratch* p_scratch,
                                const struct tb_shell* p_shell,
                                double left,
                                bool* p_killed) {
  const double rate = kill_rate(p_scratch, p_shell);
  struct tb_rng* p_coins = &p_chain->v_rng[TB_STREAM_accept];
  *p_killed = false;
  while (left > 0) {
    const size_t n = left < TB_N_AHEAD ? (size_t)left : TB_N_AHEAD;
    const struct tb_batch batch = {.n_batch = n,
                                   .v_index = p_scratch->v_row,
                                   .weight = 1};
    draw_rows(p_chain, p_scratch, p_shell, n);
    evaluate_rows(p_chain, p_scratch, &batch);
    p_chain->counts.n_row += (double)n;
    p_chain->n_batch += n;
    kill_probabilities(p_chain, p_scratch, rate, n);
    for (size_t k = 0; k < n; ++k) {
      const double probability = p_scratch->v_after[k];
      p_scratch->n_used += 1;
      if (probability > 1 + SLACK) {
        return TB_STATUS_bound;
      }
      if (!(tb_rng_unif(p_coins) >= probability)) {
        *p_killed = true;
        return TB_STATUS_ok;
      }
    }
    left -= (double)n;
  }
  return TB_STATUS_ok;
}

/* What of pi the law does not say; one uniform number where there is any. */
static bool factor_accepts(struct tb_chain* p_chain,
                           double log_ratio,
                           double* p_probability) {
  const double uniform = tb_rng_unif(&p_chain->v_rng[TB_STREAM_accept]);
  *p_probability = isnan(log_ratio) ? 0 : fmin(1, exp(log_ratio));
  return log(uniform) < log_ratio;
}

/* Both places, and the shell that holds them; NULL: there is none. */
static enum tb_status set_places(struct tb_chain* p_chain,
                                 struct tb_factors_scratch* p_scratch,
                                 const double* v_theta,
                                 const struct tb_shell** pp_shell) {
  struct tb_factors* p = tb_cv2_of(p_chain)->p_factors;
  const size_t n_byte = p->p_ball->n_dim * sizeof(double);
  if (!p_scratch->is_known ||
      memcmp(p_scratch->here.v_theta, p_chain->v_theta, n_byte) != 0) {
    place_set(p, p_chain->v_theta, p_scratch->v_z, &p_scratch->here);
    p_scratch->is_known = true;
  }
  place_set(p, v_theta, p_scratch->v_z, &p_scratch->there);
  const double norm = fmax(p_scratch->here.norm, p_scratch->there.norm);
  if (p->p_drawn == NULL) {
    const enum tb_status status = tb_shell_for(p, norm, pp_shell);
    /* beyond the last all rows are looked at, and its own are not left out */
    if (*pp_shell == &p->everything && p->surrogate.n_awkward > 0) {
      *pp_shell = NULL;
    }
    return status;
  }
  *pp_shell = norm <= p->p_drawn->shell.radius ? &p->p_drawn->shell : NULL;
  return TB_STATUS_ok;
}

/* The number of rows where they were drawn ahead: it is known before any row is
 * looked at, so that a chain that has too few left waits whatever they say. */
static enum tb_status draw_ahead(struct tb_chain* p_chain,
                                 const struct tb_factors_scratch* p_scratch,
                                 const struct tb_shell* p_shell,
                                 double* p_number) {
  const struct tb_drawn* p_drawn = tb_cv2_of(p_chain)->p_factors->p_drawn;
  *p_number = draw_number(p_chain, p_scratch, p_shell);
  const size_t n_left = tb_drawn_left(p_chain, p_drawn, p_scratch);
  return *p_number > (double)n_left ? TB_STATUS_exhausted : TB_STATUS_ok;
}

static bool factorised_accepts(struct tb_chain* p_chain,
                               struct tb_proposal* p_proposal,
                               double log_ratio,
                               double* p_probability) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  struct tb_factors_scratch* p_scratch = scratch_of(p_chain);
  const size_t n_byte = p->p_factors->p_ball->n_dim * sizeof(double);
  const struct tb_shell* p_shell = NULL;
  p_chain->n_batch = 0;
  *p_probability = 0;
  if (!p_proposal->is_possible) {
    return false;
  }
  if (p->p_factors->is_untested) {
    *p_probability = 1;
    return true;
  }
  p_proposal->fault =
      set_places(p_chain, p_scratch, p_proposal->v_theta, &p_shell);
  double more = 0, number = 0;
  if (p_proposal->fault == TB_STATUS_ok && p_shell == NULL) {
    p_chain->counts.n_outside += 1;
    return false;
  }
  const bool is_ahead = p->p_factors->p_drawn != NULL;
  if (p_proposal->fault == TB_STATUS_ok && is_ahead) {
    p_proposal->fault = draw_ahead(p_chain, p_scratch, p_shell, &number);
  }
  if (p_proposal->fault == TB_STATUS_ok) {
    p_chain->n_batch = p_shell->n_always;
    p_proposal->fault = log_factor(p_chain, p_scratch, p_shell, &more);
  }
  bool accepts = p_proposal->fault == TB_STATUS_ok;
  *p_probability = accepts;
  if (accepts && (tests_prior(p) || p_shell->n_always > 0 || log_ratio != 0)) {
    accepts = factor_accepts(p_chain, log_ratio + more, p_probability);
  }
  if (accepts) {
    bool killed;
    if (p_shell->v_alias != NULL) {
      number = draw_number(p_chain, p_scratch, p_shell);
    }
    p_proposal->fault = is_killed(p_chain, p_scratch, p_shell, number, &killed);
    accepts = p_proposal->fault == TB_STATUS_ok && !killed;
  }
  if (!accepts) {
    *p_probability = 0;
    return false;
  }
  /* where the chain goes is where it is next time */
  memcpy(p_scratch->here.v_theta, p_scratch->there.v_theta, n_byte);
  memcpy(p_scratch->here.v_delta, p_scratch->there.v_delta, n_byte);
  p_scratch->here.norm = p_scratch->there.norm;
  return true;
}

enum tb_status tb_factors_acceptance(struct tb_chain* p_chain,
                                     const double* v_theta,
                                     double* p_acceptance,
                                     double* p_largest) {
  struct tb_factors_scratch* p_scratch = scratch_of(p_chain);
  const size_t n_data = p_chain->p_target->p_model->n_data;
  const struct tb_shell* p_shell = NULL;
  double more = 0, killed = 0;
  enum tb_status status = set_places(p_chain, p_scratch, v_theta, &p_shell);
  if (status == TB_STATUS_ok && p_shell == NULL) {
    return TB_STATUS_unsupported;
  }
  if (status == TB_STATUS_ok) {
    status = log_factor(p_chain, p_scratch, p_shell, &more);
  }
  *p_largest = 0;
  const double rate =
      status == TB_STATUS_ok ? kill_rate(p_scratch, p_shell) : 0;
  for (size_t i = 0; rate > 0 && p_shell->v_alias != NULL && i < n_data; ++i) {
    const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
    const double inverse = p_shell->v_alias[i].weight;
    if (inverse == 0) {
      continue; /* never drawn */
    }
    p_scratch->v_inverse[0] = inverse;
    evaluate_rows(p_chain, p_scratch, &one);
    kill_probabilities(p_chain, p_scratch, rate, 1);
    *p_largest = fmax(*p_largest, p_scratch->v_after[0]);
    killed += rate / inverse * fmax(0, p_scratch->v_after[0]);
  }
  *p_acceptance = fmin(1, exp(more)) * exp(-killed);
  return status;
}

/* ---- where a chain starts, and draws that are kept with their gradients ----
 */

extern const struct tb_estimator_type tb_estimator_full;

/* Of rows drawn ahead the law's gradient: there are no others to look at, and
 * the test does not ask for it. */
static enum tb_status start_ahead(struct tb_chain* p_chain) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_factors* p_factors = p->p_factors;
  struct tb_factors_scratch* p_scratch = scratch_of(p_chain);
  const size_t n_dim = p_factors->p_ball->n_dim;
  memset(p_chain->v_gradient, 0, p_chain->n_dim * sizeof(double));
  place_set(p_factors, p_chain->v_theta, p_scratch->v_z, &p_scratch->here);
  for (size_t j = 0; j < n_dim; ++j) {
    p_chain->v_gradient[j] = p->v_sum[j];
    for (size_t i = 0; i < n_dim; ++i) {
      p_chain->v_gradient[j] -=
          p->v_bend[j * n_dim + i] * p_scratch->here.v_delta[i];
    }
  }
  const bool is_inside =
      p_scratch->here.norm <= p_factors->p_drawn->shell.radius;
  p_chain->log_posterior = is_inside ? 0 : -INFINITY;
  return TB_STATUS_ok;
}

static enum tb_status factorised_start(struct tb_chain* p_chain) {
  const struct tb_factors* p_factors = tb_cv2_of(p_chain)->p_factors;
  if (p_factors->is_untested) {
    p_chain->log_posterior = 0;
    memset(p_chain->v_gradient, 0, p_chain->n_dim * sizeof(double));
    return tb_surrogate_gradient(p_chain,
                                 &p_factors->surrogate,
                                 p_chain->v_theta,
                                 p_chain->v_gradient);
  }
  if (p_factors->p_drawn != NULL) {
    return start_ahead(p_chain);
  }
  return tb_estimator_full.estimate(p_chain,
                                    p_chain->v_theta,
                                    p_chain->v_gradient,
                                    &p_chain->log_posterior);
}

static enum tb_status factorised_gradient(struct tb_chain* p_chain,
                                          double* v_gradient) {
  const size_t n_batch = p_chain->n_batch;
  if (tb_cv2_of(p_chain)->p_factors->p_drawn != NULL) {
    return TB_STATUS_unsupported; /* refused before the run */
  }
  const enum tb_status status =
      tb_estimator_full.estimate(p_chain, p_chain->v_theta, v_gradient, NULL);
  p_chain->n_batch = n_batch;
  return status;
}

const struct tb_test_type tb_test_factorised = {
    .name = "factorised",
    .start = factorised_start,
    .accepts = factorised_accepts,
    .gradient = factorised_gradient,
};
