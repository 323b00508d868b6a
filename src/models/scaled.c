/* Any model under normal scale mixtures (priors/mixture-type.h):
 *
 *   log pi(theta, phi) = log p_0(theta) + sum_i log p(y_i | theta)
 *                        + log p(phi) + log p(theta | phi),
 *
 * p_0 and the rows those of the base. Rows act through theta, the leading
 * coordinates, so that what the base adds to sums of n_dim numbers is in its
 * place. gibbs() moves phi given theta by the draws of the mixtures, which look
 * at no row.
 *
 * move() proposes, given phi, from the normal law N(m, A^-1) that theta would
 * have if the log likelihood were quadratic, with Hessian -H and gradient g at
 * c (priors/mixture-law.h): anew, or near by,
 *
 *   theta' = m + a (theta - m) + sqrt(1 - a^2) A^-1/2 xi;
 *
 * or phi by slices of its density under that law with theta integrated out,
 * picked at random, and then theta anew; or theta + t u, t symmetric, along a
 * line of a parameter of the response. Each is reversible, the last for the
 * Lebesgue measure and the others for that law.
 *
 *   symbol  variable  shape    owner
 *   theta   v_theta   n_base   caller
 *   phi     .. after  n_hyper  caller, or held: scaled, at v_held
 *           v_work    as tb_mixtures_n_work() says  scratch
 *   P       v_all     n_base   scratch, 0 where no mixture covers
 *   c, g, H v_center, v_slope, v_hessian  n_base, n_base, n_base^2  scaled
 *   u       v_line    n_base x n_line  scaled
 *
 * Where sigma alone, if it is no known number, stands between the sums of a
 * Gaussian model and a normal law of beta (given_sigma), gibbs() moves phi by
 * slices of its density with beta integrated out, one hyperparameter after the
 * other, then log sigma, and then draws beta. Mixtures with one for each
 * coefficient draw all of theirs given beta first; slices are of those that
 * coefficients share. Fixed priors with heavy tails (priors/tails.h) are normal
 * given scales, which are drawn given beta before all, and of which one, picked
 * at random, moves by a slice before beta is drawn; none is kept.
 */
#include "models/scaled.h"

#include "base/chol.h"
#include "base/clip.h"
#include "base/hash.h"
#include "base/norm.h"
#include "base/slice.h"
#include "priors/mixture-law.h"
#include "priors/tails.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of a Gaussian model that knows its sums, theta = (beta, log sigma): given
 * sigma the log density of beta, but for the mixtures, is quadratic about c,
 * with gradient e^{-2 log sigma} a + b and Hessian -(e^{-2 log sigma} G + Q).
 * Where sigma is known theta = beta, and a and G are in its unit.
 */
struct given_sigma {
  double* v_memory;      /* all of them */
  size_t n_coef;         /* n_base - 1; n_base where sigma is known */
  double* v_center;      /* c */
  double* v_pull;        /* a */
  double* v_prior;       /* b */
  double* v_gram;        /* G, square */
  double* v_bend;        /* Q, square */
  double n_row;          /* by which s has its spread */
  struct tb_tails tails; /* which b and Q leave out */
};

struct scaled {
  struct tb_model_type type; /* the base's slots where it has them */
  struct tb_model* p_base;
  struct tb_mixtures mixtures;
  double* v_held;   /* n_hyper, or NULL */
  double* v_center; /* n_base, and what follows it; NULL: no moves */
  double* v_slope;
  double* v_hessian;
  double* v_line; /* n_base x n_line; NULL: none */
  size_t n_line;
  struct given_sigma exact; /* v_memory is NULL: it has none */
};

struct scratch {
  double* v_all;
  double* v_hyper;
  double* v_work;
  double* v_move;           /* of a move, where it has them */
  struct tb_workspace work; /* the base's */
};

static size_t n_plain(const struct scaled* p) {
  return p->p_base->n_dim + p->mixtures.n_hyper +
         tb_mixtures_n_work(&p->mixtures);
}

static size_t own_size(const struct scaled* p) {
  const size_t n = p->p_base->n_dim;
  size_t n_move =
      p->v_center == NULL ? 0 : n + tb_mixture_given_size(&p->mixtures, n);
  if (p->exact.v_memory != NULL) {
    n_move += n * (2 * n + 4) + tb_tails_size(&p->exact.tails);
  }
  return tb_align((n_plain(p) + n_move) * sizeof(double));
}

static struct scratch scratch_at(const struct scaled* p,
                                 const struct tb_workspace* p_work) {
  double* v = p_work->p_scratch;
  return (struct scratch){
      .v_all = v,
      .v_hyper = v + p->p_base->n_dim,
      .v_work = v + p->p_base->n_dim + p->mixtures.n_hyper,
      .v_move = v + n_plain(p),
      .work = {.p_scratch = (char*)p_work->p_scratch + own_size(p),
               .p_rng = p_work->p_rng}};
}

static size_t scaled_workspace_size(const struct tb_model* p_model,
                                    size_t n_batch) {
  const struct scaled* p = p_model->p_self;
  return own_size(p) + tb_model_work_size(p->p_base, n_batch);
}

static size_t
scaled_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point) {
  const struct scaled* p = p_model->p_self;
  const struct tb_model* p_base = p->p_base;
  return own_size(p) + (p_base->type->pass_size == NULL
                            ? tb_model_work_size(p_base, n_row)
                            : p_base->type->pass_size(p_base, n_row, n_point));
}

/* ------------------------------------------------------------------ prior */

static const double* hyper_of(const struct scaled* p, const double* v_theta) {
  return p->v_held == NULL ? v_theta + p->p_base->n_dim : p->v_held;
}

static enum tb_status scaled_prior(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_prior) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  const enum tb_status status = p->p_base->type->prior(p->p_base,
                                                       &s.work,
                                                       v_theta,
                                                       v_gradient,
                                                       p_log_prior);
  double* v_hyper =
      p->v_held == NULL ? v_gradient + p->p_base->n_dim : s.v_hyper;
  const double log_prior = tb_mixtures_gradient(&p->mixtures,
                                                v_theta,
                                                hyper_of(p, v_theta),
                                                v_gradient,
                                                v_hyper,
                                                s.v_work);
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return status;
}

static bool scaled_is_outside(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->is_outside(p->p_base, &s.work, v_theta);
}

/* The density of (phi, s) with beta integrated out, along one coordinate. */
struct one_scale {
  const struct scaled* p;
  const struct tb_workspace* p_base_work;
  struct tb_mixture_law* p_law;
  struct tb_mixture_given* p_given;
  double* v_theta;
  const double* v_own_bend; /* Q and b with the tails */
  const double* v_own_slope;
  double* v_bend;
  double* v_slope;
  double* v_gradient;
  size_t at;
  double gap; /* sum of squares at the coefficients less that at c */
};

static void set_sigma(const struct one_scale* p, double s) {
  const struct given_sigma* e = &p->p->exact;
  const size_t n = p->p_law->n_coef;
  const double unit = exp(-2 * s);
  for (size_t i = 0; i < n * n; ++i) {
    p->v_bend[i] = unit * e->v_gram[i] + p->v_own_bend[i];
  }
  for (size_t j = 0; j < n; ++j) {
    p->v_slope[j] = unit * e->v_pull[j] + p->v_own_slope[j];
  }
}

/* but for a constant */
static double marginal_density(const struct one_scale* p) {
  const double* v_phi = p->v_theta + p->p->p_base->n_dim;
  return tb_mixture_law_set(p->p_law, v_phi, p->p_given)
             ? tb_mixture_law_marginal(p->p_law, v_phi, p->p_given)
             : -INFINITY;
}

static double one_scale_density(const void* p_context, double x) {
  const struct one_scale* p = p_context;
  p->v_theta[p->at] = x;
  return marginal_density(p);
}

static double sigma_density(const void* p_context, double s) {
  const struct one_scale* p = p_context;
  const struct tb_model* p_base = p->p->p_base;
  double log_prior = 0;
  p->v_theta[p->at] = s;
  set_sigma(p, s);
  /* of priors and of the sums, which are this model's prior, at coefficients
   * that stay */
  if (p_base->type->prior(p_base,
                          p->p_base_work,
                          p->v_theta,
                          p->v_gradient,
                          &log_prior) != TB_STATUS_ok) {
    return -INFINITY;
  }
  return marginal_density(p) + log_prior + 0.5 * p->gap * exp(-2 * s);
}

#define SLICE_WIDTH 1.5 /* of log scales */

/* -2 (beta - c)^T a + (beta - c)^T G (beta - c) */
static double
square_gap(const struct given_sigma* p, size_t n, const double* v_beta) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double away = v_beta[i] - p->v_center[i];
    double half = -p->v_pull[i];
    for (size_t j = 0; j < n; ++j) {
      half += 0.5 * p->v_gram[i * n + j] * (v_beta[j] - p->v_center[j]);
    }
    sum += 2 * away * half;
  }
  return sum;
}

static bool has_locals(const struct tb_mixtures* p) {
  for (size_t k = 0; k < p->n_mixture; ++k) {
    if (p->v_block[k].type->has_locals) {
      return true;
    }
  }
  return false;
}

/* all that coefficients share */
static void slice_shared(struct one_scale* p, struct tb_rng* p_rng) {
  const struct tb_mixtures* p_mixtures = &p->p->mixtures;
  size_t first = p->p->p_base->n_dim;
  for (size_t b = 0; b < p_mixtures->n_mixture; ++b) {
    const struct tb_mixture* p_block = &p_mixtures->v_block[b];
    for (size_t k = 0; k < p_block->type->n_shared; ++k) {
      p->at = first + k;
      p->v_theta[p->at] = tb_slice_step(one_scale_density,
                                        p,
                                        p->v_theta[p->at],
                                        SLICE_WIDTH,
                                        p_rng);
    }
    first += p_block->n_hyper;
  }
}

/* What priors say of beta but for the mixtures, tail `without` left out;
 * v_own_bend and v_own_slope lie one after the other */
static void set_own(const struct given_sigma* p,
                    const struct tb_tail_scales* p_tails,
                    size_t without,
                    double* v_own) {
  const size_t n = p->n_coef;
  memcpy(v_own, p->v_bend, n * n * sizeof(double));
  memcpy(v_own + n * n, p->v_prior, n * sizeof(double));
  tb_tails_add(&p->tails, p_tails, without, p->v_center, v_own + n * n, v_own);
}

/* Of one tail, picked at random, given all else but beta; nothing moves where
 * beta would have no law without it. v_own: as set_own() has it */
static void slice_tail(const struct one_scale* p,
                       const struct tb_tail_scales* p_tails,
                       double s,
                       double* v_own,
                       struct tb_rng* p_rng) {
  const struct given_sigma* e = &p->p->exact;
  const size_t n = e->n_coef, k = tb_rng_index(p_rng, e->tails.n_tail);
  struct tb_mixture_given* p_given = p->p_given;
  set_own(e, p_tails, k, v_own);
  set_sigma(p, s);
  if (tb_mixture_law_set(p->p_law, p->v_theta + p->p->p_base->n_dim, p_given)) {
    const double* v_of = e->tails.v_of + k * n;
    double mean = 0;
    for (size_t j = 0; j < n; ++j) {
      mean += v_of[j] * p_given->v_mean[j];
      p_given->v_z[j] = v_of[j];
    }
    tb_upper_solve_transposed(n, p_given->v_upper, p_given->v_z);
    const double variance = tb_square_norm(p_given->v_z, n);
    tb_tails_slice(&e->tails, p_tails, k, mean, variance, p_rng);
  }
  set_own(e, p_tails, SIZE_MAX, v_own);
  set_sigma(p, s);
}

/* By slices phi and s, then beta. s.v_move: what own_size() has for it */
static void gibbs_given_sigma(const struct scaled* p,
                              const struct scratch* p_scratch,
                              struct tb_rng* p_rng,
                              double* v_theta) {
  const size_t n = p->exact.n_coef, n_base = p->p_base->n_dim;
  const bool is_known = n == n_base;
  double *v_bend = p_scratch->v_move, *v_slope = v_bend + n * n;
  double *v_gradient = v_slope + n, *v_xi = v_gradient + n_base;
  double* v_own = v_xi + n;
  double* v_tails = v_own + n * (n + 1);
  const struct tb_tails* p_tails = &p->exact.tails;
  const struct tb_tail_scales tails = tb_tails_at(p_tails, v_tails);
  struct tb_mixture_given given =
      tb_mixture_given_at(&p->mixtures, n, v_tails + tb_tails_size(p_tails));
  struct tb_mixture_law law = {.n_coef = n,
                               .v_center = p->exact.v_center,
                               .v_slope = v_slope,
                               .v_bend = v_bend,
                               .p_mixtures = &p->mixtures};
  struct one_scale one = {.p = p,
                          .p_base_work = &p_scratch->work,
                          .p_law = &law,
                          .p_given = &given,
                          .v_theta = v_theta,
                          .v_own_bend = v_own,
                          .v_own_slope = v_own + n * n,
                          .v_bend = v_bend,
                          .v_slope = v_slope,
                          .v_gradient = v_gradient};
  tb_tails_draw(p_tails, v_theta, &tails, p_rng);
  set_own(&p->exact, &tails, SIZE_MAX, v_own);
  set_sigma(&one, is_known ? 0 : v_theta[n]);
  if (has_locals(&p->mixtures)) {
    tb_mixtures_draw(&p->mixtures,
                     v_theta,
                     v_theta + n_base,
                     p_scratch->v_work,
                     p_rng);
  }
  slice_shared(&one, p_rng);
  if (!is_known) {
    one.at = n;
    one.gap = square_gap(&p->exact, n, v_theta);
    const double width = 3 / sqrt(1 + 2 * p->exact.n_row);
    v_theta[n] = tb_slice_step(sigma_density, &one, v_theta[n], width, p_rng);
    set_sigma(&one, v_theta[n]);
  }
  if (p_tails->n_tail > 0) {
    slice_tail(&one, &tails, is_known ? 0 : v_theta[n], v_own, p_rng);
  }
  if (tb_mixture_law_set(&law, v_theta + n_base, &given)) {
    tb_rng_fill_norm(p_rng, v_xi, n);
    tb_mixture_law_draw(&law, &given, 0, NULL, v_xi, v_theta);
  }
}

static enum tb_status scaled_gibbs(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   double* v_theta) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  if (p->exact.v_memory != NULL) {
    gibbs_given_sigma(p, &s, p_work->p_rng, v_theta);
    return TB_STATUS_ok;
  }
  tb_mixtures_draw(&p->mixtures,
                   v_theta,
                   v_theta + p->p_base->n_dim,
                   s.v_work,
                   p_work->p_rng);
  return TB_STATUS_ok;
}

/* Steps that are moves; of these, how many move phi with theta integrated out
 * and, where there are lines, along one of them; of the others how many are
 * near by, and a. */
#define MOVES     0.4
#define MARGINAL  0.4
#define ALONG     0.3
#define NEAR      0.3
#define NEAR_KEEP 0.9

static struct tb_mixture_law move_law(const struct scaled* p) {
  return (struct tb_mixture_law){.n_coef = p->p_base->n_dim,
                                 .v_center = p->v_center,
                                 .v_slope = p->v_slope,
                                 .v_bend = p->v_hessian,
                                 .p_mixtures = &p->mixtures};
}

/* log of the law's density of theta and phi; P and mu of *p_given are those of
 * phi */
static double move_density(const struct tb_mixture_law* p_law,
                           const struct tb_mixture_given* p_given,
                           const double* v_theta) {
  const size_t n = p_law->n_coef;
  double sum = tb_mixture_law_prior(p_law, v_theta, v_theta + n, p_given);
  for (size_t i = 0; i < n; ++i) {
    const double* v_column = p_law->v_bend + i * n;
    double slope = p_law->v_slope[i];
    for (size_t j = 0; j < n; ++j) {
      slope -= 0.5 * v_column[j] * (v_theta[j] - p_law->v_center[j]);
    }
    sum += slope * (v_theta[i] - p_law->v_center[i]);
  }
  return sum;
}

/* Hyperparameters of v_to, each drawn at random as often as there are some, but
 * no more than so many; then theta. Slices in a fixed order would not be
 * reversible. */
#define ROUNDS_MOST 20

static double move_marginal(const struct scaled* p,
                            const struct tb_mixture_law* p_law,
                            struct tb_mixture_given* p_given,
                            double* v_xi,
                            const double* v_theta,
                            struct tb_rng* p_rng,
                            double* v_to) {
  const size_t n = p_law->n_coef, n_hyper = p->mixtures.n_hyper;
  const size_t n_round = n_hyper < ROUNDS_MOST ? n_hyper : ROUNDS_MOST;
  /* from where there is no law slices lead to where there is, but not back */
  if (!tb_mixture_law_set(p_law, v_theta + n, p_given)) {
    return -INFINITY;
  }
  tb_mixture_law_scales(p_law, v_theta + n, p_given);
  const double before = move_density(p_law, p_given, v_theta);
  for (size_t k = 0; k < n_round; ++k) {
    tb_mixture_law_slice(p_law,
                         tb_rng_index(p_rng, n_hyper),
                         SLICE_WIDTH,
                         v_to,
                         v_to + n,
                         p_given,
                         p_rng);
  }
  tb_rng_fill_norm(p_rng, v_xi, n);
  if (!tb_mixture_law_set(p_law, v_to + n, p_given)) {
    return -INFINITY;
  }
  tb_mixture_law_draw(p_law, p_given, 0, NULL, v_xi, v_to);
  return before - move_density(p_law, p_given, v_to);
}

/* v_to += t u, t normal times a factor from 1/2 to 4: tails may be longer than
 * curvatures say */
static void
move_along(const struct scaled* p, struct tb_rng* p_rng, double* v_to) {
  const size_t n = p->p_base->n_dim;
  const double* v_line = p->v_line + n * tb_rng_index(p_rng, p->n_line);
  const double factor = exp2(3 * tb_rng_unif(p_rng) - 1);
  const double t = factor * tb_rng_norm(p_rng);
  for (size_t j = 0; j < n; ++j) {
    v_to[j] += t * v_line[j];
  }
}

static double scaled_move(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          const double* v_theta,
                          struct tb_rng* p_rng,
                          double* v_to) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  const size_t n = p->p_base->n_dim;
  const struct tb_mixture_law law = move_law(p);
  double* v_xi = s.v_move;
  struct tb_mixture_given given =
      tb_mixture_given_at(&p->mixtures, n, v_xi + n);
  memcpy(v_to, v_theta, p_model->n_dim * sizeof(double));
  const double kind = tb_rng_unif(p_rng);
  if (kind < MARGINAL) {
    return move_marginal(p, &law, &given, v_xi, v_theta, p_rng, v_to);
  }
  if (p->n_line > 0 && kind < MARGINAL + ALONG) {
    move_along(p, p_rng, v_to);
    return 0;
  }
  const double keep = tb_rng_unif(p_rng) < NEAR ? NEAR_KEEP : 0;
  if (!tb_mixture_law_set(&law, v_theta + n, &given)) {
    return 0;
  }
  tb_rng_fill_norm(p_rng, v_xi, n);
  return tb_mixture_law_draw(&law, &given, keep, v_theta, v_xi, v_to);
}

/* ------------------------------------------------------------------- rows */

static enum tb_status scaled_gradient(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      const struct tb_sums* p_sums) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type
      ->gradient(p->p_base, &s.work, v_theta, p_batch, p_reference, p_sums);
}

static enum tb_status scaled_log_lik(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     double* v_out) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->log_lik(p->p_base, &s.work, v_theta, p_batch, v_out);
}

static enum tb_status scaled_store_scalar(struct tb_model* p_model,
                                          const struct tb_workspace* p_work,
                                          const double* v_theta,
                                          const struct tb_batch* p_batch,
                                          double* v_sum) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->store_scalar(p->p_base,
                                       &s.work,
                                       v_theta,
                                       p_batch,
                                       v_sum);
}

static struct tb_reference
scaled_stored_scalar(const struct tb_model* p_model) {
  const struct scaled* p = p_model->p_self;
  return p->p_base->type->stored_scalar(p->p_base);
}

static enum tb_status scaled_add_scalar(const struct tb_model* p_model,
                                        const struct tb_workspace* p_work,
                                        const struct tb_batch* p_batch,
                                        const double* v_scalar,
                                        double* v_sum) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->add_scalar(p->p_base,
                                     &s.work,
                                     p_batch,
                                     v_scalar,
                                     v_sum);
}

static enum tb_status scaled_square_norms(const struct tb_model* p_model,
                                          const struct tb_workspace* p_work,
                                          const double* v_theta,
                                          const struct tb_batch* p_batch,
                                          const struct tb_reference* p_ref,
                                          double* v_square,
                                          double* v_sum) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->square_norms(p->p_base,
                                       &s.work,
                                       v_theta,
                                       p_batch,
                                       p_ref,
                                       v_square,
                                       v_sum);
}

static double scaled_largest_predictor(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->largest_predictor(p->p_base,
                                            &s.work,
                                            v_theta,
                                            p_batch);
}

/* points are n_dim apart, which the base does not know */
static enum tb_status scaled_log_lik_many(const struct tb_model* p_model,
                                          const struct tb_workspace* p_work,
                                          const double* v_theta,
                                          size_t n_point,
                                          const struct tb_batch* p_batch,
                                          double* v_sum) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  enum tb_status status = TB_STATUS_ok;
  for (size_t k = 0; k < n_point && status == TB_STATUS_ok; ++k) {
    status = p->p_base->type->log_lik_many(p->p_base,
                                           &s.work,
                                           v_theta + k * p_model->n_dim,
                                           1,
                                           p_batch,
                                           v_sum + k);
  }
  return status;
}

/* -------------------------------------------- where phi is held: Hessians,
 * sums */

static void held_add_diagonal(const struct scaled* p,
                              const struct scratch* p_s,
                              double* v_out,
                              size_t step) {
  const struct tb_mixtures* p_mixtures = &p->mixtures;
  tb_mixtures_normal(p_mixtures, p->v_held, NULL, p_s->v_all, p_s->v_work);
  for (size_t k = 0; k < p_mixtures->n_covered; ++k) {
    const size_t j = p_mixtures->v_at[k];
    v_out[j * step] += p_s->v_all[j];
  }
}

static enum tb_status held_curvature(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     const struct tb_curvature* p_sums) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type->curvature(p->p_base,
                                    &s.work,
                                    v_theta,
                                    p_batch,
                                    p_sums);
}

static void held_curvature_prior(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const double* v_round,
                                 double weight,
                                 const struct tb_curvature* p_sums) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  const size_t n_dim = p_model->n_dim;
  p->p_base->type
      ->curvature_prior(p->p_base, &s.work, v_theta, v_round, weight, p_sums);
  *p_sums->p_log_lik += tb_mixtures_gradient(&p->mixtures,
                                             v_theta,
                                             p->v_held,
                                             p_sums->v_gradient,
                                             s.v_hyper,
                                             s.v_work);
  if (p_sums->v_hessian != NULL) {
    held_add_diagonal(p, &s, p_sums->v_hessian, n_dim + 1);
  }
}

static enum tb_status held_diagonal(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    bool with_prior,
                                    double* v_diagonal) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  if (with_prior) {
    held_add_diagonal(p, &s, v_diagonal, 1);
  }
  return p->p_base->type
      ->diagonal(p->p_base, &s.work, v_theta, p_batch, with_prior, v_diagonal);
}

static enum tb_status held_design(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  const struct tb_batch* p_batch,
                                  const double* v_center,
                                  double* v_root,
                                  size_t n_lead) {
  const struct scaled* p = p_model->p_self;
  const struct scratch s = scratch_at(p, p_work);
  return p->p_base->type
      ->design(p->p_base, &s.work, p_batch, v_center, v_root, n_lead);
}

/* -------------------------------------------------------------------- life */

static void scaled_constrain(const struct tb_model* p_model,
                             const double* v_theta,
                             double* v_natural) {
  const struct scaled* p = p_model->p_self;
  const struct tb_model* p_base = p->p_base;
  if (tb_model_has_map(p_base)) {
    p_base->type->constrain(p_base, v_theta, v_natural);
  } else {
    memcpy(v_natural, v_theta, p_base->n_dim * sizeof(double));
  }
  if (p->v_held == NULL) {
    tb_mixtures_natural(&p->mixtures,
                        v_theta + p_base->n_dim,
                        v_natural + p_base->n_natural);
  }
}

static size_t scaled_memory(const struct tb_model* p_model) {
  const struct scaled* p = p_model->p_self;
  return p->p_base->type->memory(p->p_base);
}

static bool scaled_is_usable(const struct tb_model* p_model) {
  const struct scaled* p = p_model->p_self;
  return p->p_base->type->is_usable(p->p_base);
}

static void scaled_destroy(struct tb_model* p_model) {
  struct scaled* p = p_model->p_self;
  if (p != NULL) {
    tb_mixtures_destroy(&p->mixtures);
    free(p->v_held);
    free(p->v_center);
    free(p->v_line);
    free(p->exact.v_memory);
    tb_tails_destroy(&p->exact.tails);
    free(p);
  }
  p_model->p_self = NULL;
}

static uint64_t fingerprint_of(const struct scaled* p) {
  const struct tb_mixtures* m = &p->mixtures;
  uint64_t hash = tb_hash_word(p->p_base->fingerprint, m->n_covered);
  for (size_t k = 0; k < m->n_mixture; ++k) {
    const struct tb_mixture* p_block = &m->v_block[k];
    for (size_t i = 0; p_block->type->name[i] != '\0'; ++i) {
      hash = tb_hash_word(hash, (uint64_t)p_block->type->name[i]);
    }
    hash = tb_hash_doubles(hash, p_block->v_argument, TB_MIXTURE_n_argument);
    hash = tb_hash_doubles(hash, p_block->v_location, p_block->n_coef);
    hash = tb_hash_doubles(hash, p_block->v_scale, p_block->n_coef);
    hash = tb_hash_doubles(hash, p_block->v_shape, p_block->n_coef);
  }
  for (size_t k = 0; k < m->n_covered; ++k) {
    hash = tb_hash_word(hash, m->v_at[k]);
  }
  return hash;
}

static void set_type(struct scaled* p) {
  const struct tb_model_type* base = p->p_base->type;
#define SLOT(name) .name = base->name == NULL ? NULL : scaled_##name
  p->type = (struct tb_model_type){.name = base->name,
                                   .citation = base->citation,
                                   .flags = base->flags | TB_MODEL_RANDOM,
                                   .destroy = scaled_destroy,
                                   .prior = scaled_prior,
                                   .gradient = scaled_gradient,
                                   .workspace_size = scaled_workspace_size,
                                   .pass_size = scaled_pass_size,
                                   .constrain = scaled_constrain,
                                   SLOT(is_outside),
                                   SLOT(log_lik),
                                   SLOT(store_scalar),
                                   SLOT(stored_scalar),
                                   SLOT(add_scalar),
                                   SLOT(square_norms),
                                   SLOT(largest_predictor),
                                   SLOT(log_lik_many),
                                   SLOT(memory),
                                   SLOT(is_usable)};
#undef SLOT
  if (p->v_held == NULL) {
    p->type.gibbs = scaled_gibbs;
    p->type.move = p->v_center == NULL ? NULL : scaled_move;
    return;
  }
  if (base->curvature != NULL && base->curvature_prior != NULL) {
    p->type.curvature = held_curvature;
    p->type.curvature_prior = held_curvature_prior;
  }
  p->type.design = base->design == NULL ? NULL : held_design;
  p->type.diagonal = base->diagonal == NULL ? NULL : held_diagonal;
}

/* "move_center", "move_slope", "move_hessian" */
static enum tb_status read_move(struct scaled* p,
                                const struct tb_params* p_params) {
  static const char* const v_name[] = {"move_center",
                                       "move_slope",
                                       "move_hessian"};
  const size_t n = p->p_base->n_dim;
  const size_t v_size[] = {n, n, n * n};
  if (tb_params_find(p_params, v_name[0]) == NULL) {
    return TB_STATUS_ok;
  }
  double* v = malloc(n * (n + 2) * sizeof(double));
  if (v == NULL) {
    return TB_STATUS_memory;
  }
  p->v_center = v;
  p->v_slope = v + n;
  p->v_hessian = v + 2 * n;
  for (size_t k = 0; k < 3; ++k) {
    const struct tb_param* p_param = tb_params_find(p_params, v_name[k]);
    if (p_param == NULL || p_param->n_value != v_size[k]) {
      return TB_STATUS_argument;
    }
    memcpy(v, p_param->v_value, v_size[k] * sizeof(double));
    v += v_size[k];
  }
  return TB_STATUS_ok;
}

/* "move_lines" */
static enum tb_status read_lines(struct scaled* p,
                                 const struct tb_params* p_params) {
  const struct tb_param* p_param = tb_params_find(p_params, "move_lines");
  const size_t n = p->p_base->n_dim;
  if (p_param == NULL || p_param->n_value == 0) {
    return TB_STATUS_ok;
  }
  if (p->v_center == NULL || p_param->n_value % n != 0) {
    return TB_STATUS_argument;
  }
  p->v_line = malloc(p_param->n_value * sizeof(double));
  if (p->v_line == NULL) {
    return TB_STATUS_memory;
  }
  memcpy(p->v_line, p_param->v_value, p_param->n_value * sizeof(double));
  p->n_line = p_param->n_value / n;
  return TB_STATUS_ok;
}

/* "given_center", "given_pull", "given_prior", "given_gram", "given_bend",
 * "given_rows", and what tb_tails_create() takes */
static enum tb_status read_given_sigma(struct scaled* p,
                                       const struct tb_params* p_params) {
  static const char* const v_name[] = {"given_center",
                                       "given_pull",
                                       "given_prior",
                                       "given_gram",
                                       "given_bend",
                                       "given_rows"};
  if (tb_params_find(p_params, v_name[0]) == NULL) {
    return TB_STATUS_ok;
  }
  const size_t n_base = p->p_base->n_dim;
  const size_t n = tb_params_find(p_params, v_name[0])->n_value;
  if (p->v_center == NULL || n == 0 || (n != n_base && n + 1 != n_base)) {
    return TB_STATUS_argument;
  }
  double* v = malloc(n * (2 * n + 3) * sizeof(double));
  double n_row = 0;
  if (v == NULL) {
    return TB_STATUS_memory;
  }
  p->exact = (struct given_sigma){.v_memory = v,
                                  .n_coef = n,
                                  .v_center = v,
                                  .v_pull = v + n,
                                  .v_prior = v + 2 * n,
                                  .v_gram = v + 3 * n,
                                  .v_bend = v + 3 * n + n * n};
  for (size_t k = 0; k < 6; ++k) {
    const size_t size = k < 3 ? n : k < 5 ? n * n : 1;
    const struct tb_param* p_param = tb_params_find(p_params, v_name[k]);
    if (p_param == NULL || p_param->n_value != size) {
      return TB_STATUS_argument;
    }
    memcpy(k < 5 ? v : &n_row, p_param->v_value, size * sizeof(double));
    v += size;
  }
  p->exact.n_row = n_row;
  return tb_tails_create(&p->exact.tails, p_params, n);
}

enum tb_status tb_model_scale(struct tb_model* p_base,
                              const struct tb_params* p_params,
                              const double* v_held,
                              size_t n_held,
                              struct tb_model* p_out) {
  if (p_base->p_frame != NULL || p_base->type->gibbs != NULL ||
      p_base->type->move != NULL || p_base->is_even ||
      (p_base->type->flags & TB_MODEL_NOISY)) {
    return TB_STATUS_unsupported;
  }
  struct scaled* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p->p_base = p_base;
  enum tb_status status =
      tb_mixtures_create(&p->mixtures, p_params, p_base->n_dim);
  const size_t n_hyper = p->mixtures.n_hyper;
  if (status == TB_STATUS_ok && v_held != NULL && n_held != n_hyper) {
    status = TB_STATUS_argument;
  }
  if (status == TB_STATUS_ok && v_held != NULL) {
    p->v_held = malloc((n_hyper + 1) * sizeof(double));
    status = p->v_held == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  }
  if (status == TB_STATUS_ok && v_held == NULL) {
    status = read_move(p, p_params);
    status = status == TB_STATUS_ok ? read_lines(p, p_params) : status;
    status = status == TB_STATUS_ok ? read_given_sigma(p, p_params) : status;
  }
  *p_out = *p_base;
  p_out->p_self = p;
  if (status != TB_STATUS_ok) {
    scaled_destroy(p_out);
    return status;
  }
  if (v_held != NULL) {
    memcpy(p->v_held, v_held, n_hyper * sizeof(double));
  } else {
    p_out->n_dim += n_hyper;
    p_out->n_natural += n_hyper;
    p_out->is_natural = false;
    p_out->n_gibbs_every = 1;
    p_out->move_share = p->v_center == NULL ? 0 : MOVES;
    p_out->p_rows = p_base;
    p_out->p_mixtures = &p->mixtures;
    p_out->n_root = 0;
  }
  set_type(p);
  p_out->type = &p->type;
  p_out->fingerprint = fingerprint_of(p);
  return TB_STATUS_ok;
}
