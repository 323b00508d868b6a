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
 *      e_0 = -log p, less its linear part and delta^T P delta / 2.
 *
 * Each factor by itself has the ratio that leaves its part of pi invariant.
 *
 * psi depends on R: there are shells of R_k = sqrt(d) + 2.5, sqrt(d) + 7, then
 * twice as much each, made when first needed, and a step uses the smallest that
 * holds both of its ends, with that shell's choice of the rows of factor 2.
 * Both are symmetric in theta and theta', so nothing is cut off.
 *
 *   symbol     variable   shape   owner
 *   L, m       law        n_dim^2 factors
 *   ||x~_i||   v_norm     n_data  factors
 *   psi_i/Psi  v_alias    n_data  shell
 */
#include "gradients/factorised.h"

#include "base/chol.h"
#include "base/clip.h"
#include "base/clones.h"
#include "base/memory.h"
#include "base/norm.h"
#include "base/variates.h"
#include "passes/ahead.h"
#include "subsampling/weighted.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Further out every row is looked at. */
enum { N_SHELL = 24, N_AHEAD = 64 };

/* rounding of a probability; what is beyond it is a mistake of the bounds */
#define SLACK 1e-5

struct shell {
  double radius;
  double total;             /* Psi of the rows that are thinned */
  size_t n_always;          /* the others */
  size_t* v_always;         /* NULL: all, in order */
  struct tb_alias* v_alias; /* NULL: none is thinned */
  size_t n_byte;
};

struct tb_factors {
  const struct tb_cv2* p_cv2;
  struct tb_law law;
  double* v_norm;
  size_t n_byte;                           /* of v_norm and law.v_mean */
  struct shell everything;                 /* beyond the last */
  _Atomic(struct shell*) v_shell[N_SHELL]; /* NULL: not made yet */
};

/* ------------------------------------------------------------------ shells */

static double shell_radius(const struct tb_factors* p, size_t k) {
  const double root = sqrt((double)p->law.frame.n_dim);
  return k == 0 ? root + 2.5 : ldexp(root + 7, (int)k - 1);
}

/* phi above which a row is looked at always: that of two draws of the law in
 * the first two, of an end that the shell before did not hold further out */
static double shell_phi(const struct tb_factors* p, size_t k) {
  const double usual = pow((double)p->law.frame.n_dim + 1, 1.5);
  const double inner = k < 2 ? 0 : shell_radius(p, k - 1);
  return usual + fmax(usual, inner * inner * inner);
}

static void shell_destroy(struct shell* p_shell) {
  if (p_shell != NULL) {
    tb_big_free(p_shell, p_shell->n_byte);
  }
}

/* v_psi := psi_i; those that are not thinned become 0 and are counted. The sum
 * of the others goes to *p_total. */
static size_t shell_bounds(const struct tb_factors* p,
                           size_t k,
                           double* v_psi,
                           bool* v_is_always,
                           double* p_total) {
  const struct tb_cv2* p_cv2 = p->p_cv2;
  const size_t n_data = p_cv2->expansion.p_model->n_data;
  const struct tb_row_bounds bounds = {.p_model = p_cv2->expansion.p_model,
                                       .radius = shell_radius(p, k),
                                       .phi = shell_phi(p, k),
                                       .scale = p_cv2->scale};
  double largest = 0, total = 0;
  size_t n_always = 0;
  tb_row_bounds_at(&bounds,
                   p_cv2->expansion.v_record,
                   p->v_norm,
                   n_data,
                   v_psi,
                   v_is_always);
  for (size_t i = 0; i < n_data; ++i) {
    n_always += v_is_always[i];
    v_psi[i] = v_is_always[i] ? 0 : v_psi[i];
    largest = fmax(largest, v_psi[i]);
  }
  for (size_t i = 0; i < n_data; ++i) {
    if (v_psi[i] > 0) {
      /* tables know nothing smaller; a larger bound is a bound */
      v_psi[i] = fmax(v_psi[i], 1e-200 * largest);
      total += v_psi[i];
    }
  }
  *p_total = total;
  return n_always;
}

static enum tb_status
shell_make(const struct tb_factors* p, size_t k, struct shell** pp_shell) {
  const size_t n_data = p->p_cv2->expansion.p_model->n_data;
  double* v_psi = malloc(n_data * (sizeof(double) + sizeof(bool)));
  if (v_psi == NULL) {
    return TB_STATUS_memory;
  }
  bool* v_is_always = (bool*)(v_psi + n_data);
  struct shell shell = {.radius = shell_radius(p, k)};
  shell.n_always = shell_bounds(p, k, v_psi, v_is_always, &shell.total);
  const size_t n_alias =
      shell.total > 0 ? (n_data + 1) * sizeof(struct tb_alias) : 0;
  const size_t n_self = tb_align(sizeof(shell));
  shell.n_byte = n_self + tb_align(n_alias) + shell.n_always * sizeof(size_t);
  char* p_memory = tb_big_alloc(shell.n_byte);
  enum tb_status status = p_memory == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  if (status == TB_STATUS_ok) {
    shell.v_alias = n_alias == 0 ? NULL : (void*)(p_memory + n_self);
    shell.v_always = (void*)(p_memory + n_self + tb_align(n_alias));
    size_t n = 0;
    for (size_t i = 0; i < n_data; ++i) {
      if (v_is_always[i]) {
        shell.v_always[n++] = i;
      }
    }
    if (shell.v_alias != NULL) {
      status = tb_alias_build(v_psi, n_data, 1, shell.v_alias);
    }
    *pp_shell = (struct shell*)(void*)p_memory;
    **pp_shell = shell;
  }
  if (status != TB_STATUS_ok && p_memory != NULL) {
    tb_big_free(p_memory, shell.n_byte);
  }
  free(v_psi);
  return status;
}

/* The smallest that holds `norm`. Chains in threads may make the same one at
 * the same time: the first to be there is kept, and they are all alike. */
static enum tb_status
shell_for(struct tb_factors* p, double norm, const struct shell** pp_shell) {
  size_t k = 0;
  while (k < N_SHELL && !(norm <= shell_radius(p, k))) {
    ++k;
  }
  if (k == N_SHELL) {
    *pp_shell = &p->everything;
    return TB_STATUS_ok;
  }
  struct shell* p_shell =
      atomic_load_explicit(&p->v_shell[k], memory_order_acquire);
  if (p_shell == NULL) {
    struct shell* p_new = NULL;
    const enum tb_status status = shell_make(p, k, &p_new);
    if (status != TB_STATUS_ok) {
      return status;
    }
    if (atomic_compare_exchange_strong(&p->v_shell[k], &p_shell, p_new)) {
      p_shell = p_new;
    } else {
      shell_destroy(p_new);
    }
  }
  *pp_shell = p_shell;
  return TB_STATUS_ok;
}

/* -------------------------------------------------------------------- life */

/* L, and the mean L^{-1} (g_0(ref) + s G) of z */
static enum tb_status factors_set_law(struct tb_factors* p) {
  const struct tb_cv2* p_cv2 = p->p_cv2;
  const size_t n_dim = p_cv2->expansion.p_model->n_dim;
  double* v_chol = malloc(n_dim * n_dim * sizeof(double));
  if (v_chol == NULL) {
    return TB_STATUS_memory;
  }
  enum tb_status status =
      tb_chol(n_dim, p_cv2->v_bend, v_chol) ? TB_STATUS_ok : TB_STATUS_singular;
  if (status == TB_STATUS_ok) {
    status = tb_frame_create(&p->law.frame,
                             n_dim,
                             p_cv2->expansion.v_at,
                             v_chol,
                             false);
  }
  if (status == TB_STATUS_ok) {
    const struct tb_model* p_model = p_cv2->expansion.p_model;
    tb_frame_pull_gradient(&p->law.frame, p_cv2->v_sum, p->law.v_mean);
    const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
    status = p_model->type->expansion->norms(p_model, v_chol, &all, p->v_norm);
  }
  free(v_chol);
  return status;
}

enum tb_status tb_factors_make(const struct tb_cv2* p_cv2,
                               struct tb_factors** pp_factors) {
  const struct tb_model* p_model = p_cv2->expansion.p_model;
  const struct tb_model_expansion* type = p_model->type->expansion;
  *pp_factors = NULL;
  if (type == NULL || !type->has_remainders(p_model)) {
    return TB_STATUS_unsupported;
  }
  struct tb_factors* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p->p_cv2 = p_cv2;
  p->n_byte = (p_model->n_data + p_model->n_dim) * sizeof(double);
  p->everything =
      (struct shell){.radius = INFINITY, .n_always = p_model->n_data};
  for (size_t k = 0; k < N_SHELL; ++k) {
    atomic_init(&p->v_shell[k], NULL);
  }
  p->v_norm = tb_big_alloc(p->n_byte);
  enum tb_status status = p->v_norm == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  if (status == TB_STATUS_ok) {
    p->law.v_mean = p->v_norm + p_model->n_data;
    status = factors_set_law(p);
  }
  if (status == TB_STATUS_ok) {
    const struct shell* p_first;
    status = shell_for(p, 0, &p_first);
  }
  if (status != TB_STATUS_ok) {
    tb_factors_destroy(p);
    return status;
  }
  *pp_factors = p;
  return TB_STATUS_ok;
}

void tb_factors_destroy(struct tb_factors* p) {
  if (p == NULL) {
    return;
  }
  for (size_t k = 0; k < N_SHELL; ++k) {
    shell_destroy(atomic_load(&p->v_shell[k]));
  }
  tb_frame_destroy(&p->law.frame);
  tb_big_free(p->v_norm, p->n_byte);
  free(p);
}

const struct tb_law* tb_factors_law(const struct tb_factors* p) {
  return p == NULL ? NULL : &p->law;
}

enum tb_status tb_factors_shell(struct tb_factors* p,
                                double norm,
                                struct tb_shell_info* p_info) {
  const struct shell* p_shell;
  const enum tb_status status = shell_for(p, norm, &p_shell);
  if (status == TB_STATUS_ok) {
    *p_info = (struct tb_shell_info){p_shell->radius,
                                     p_shell->total,
                                     p_shell->n_always};
  }
  return status;
}

/* -------------------------------------------------------------------- test */

/* A place, as the test sees it. */
struct place {
  double* v_theta; /* n_dim, of which the rest is known */
  double* v_delta; /* n_dim */
  double norm;     /* ||z|| */
};

/* A chain's scratch; followed by three arrays of n_dim for each place. */
struct scratch {
  bool is_known; /* here: v_theta is that of the last step */
  struct place here, there;
  double* v_z;
  size_t v_row[N_AHEAD];
  double v_inverse[N_AHEAD]; /* Psi / psi_i */
  double v_before[N_AHEAD];
  double v_after[N_AHEAD];
};

size_t tb_factors_scratch_size(const struct tb_model* p_model) {
  return tb_align(sizeof(struct scratch)) + 5 * p_model->n_dim * sizeof(double);
}

static struct scratch* scratch_of(const struct tb_chain* p_chain) {
  const size_t n_dim = p_chain->n_dim;
  char* p = (char*)p_chain->p_estimator_extra +
            tb_align(tb_expansion_scratch_size(p_chain->p_target->p_model));
  struct scratch* p_scratch = (struct scratch*)(void*)p;
  double* v = (double*)(void*)(p + tb_align(sizeof(struct scratch)));
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
                      struct place* p_place) {
  const struct tb_frame* p_frame = &p->law.frame;
  const size_t n_dim = p_frame->n_dim;
  memcpy(p_place->v_theta, v_theta, n_dim * sizeof(double));
  for (size_t j = 0; j < n_dim; ++j) {
    p_place->v_delta[j] = v_theta[j] - p_frame->v_center[j];
  }
  tb_frame_to_sampler(p_frame, v_theta, v_z);
  p_place->norm = sqrt(tb_square_norm(v_z, n_dim));
}

/* e_0 of a prior that is not quadratic */
static enum tb_status prior_remainder(struct tb_chain* p_chain,
                                      const struct place* p_place,
                                      double* p_e) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const size_t n_dim = p_chain->n_dim;
  double log_prior = 0, linear = 0, bent = 0;
  const enum tb_status status =
      p_model->type->prior(p_model,
                           &p_chain->work,
                           p_place->v_theta,
                           p_chain->p_estimator_scratch,
                           &log_prior);
  for (size_t j = 0; j < n_dim; ++j) {
    double sum = 0;
    for (size_t i = 0; i < n_dim; ++i) {
      sum += p->v_P[j * n_dim + i] * p_place->v_delta[i];
    }
    bent += sum * p_place->v_delta[j];
    linear += p->v_prior[j] * p_place->v_delta[j];
  }
  *p_e = p->log_prior - log_prior + linear - 0.5 * bent;
  return status;
}

/* the two e_i of a batch of N_AHEAD rows at most */
static void evaluate_rows(const struct tb_chain* p_chain,
                          struct scratch* p_scratch,
                          const struct tb_batch* p_batch) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  p_model->type->expansion->remainders(p_model,
                                       &p_chain->work,
                                       tb_cv2_of(p_chain)->expansion.v_record,
                                       p_scratch->here.v_delta,
                                       p_scratch->there.v_delta,
                                       p_batch,
                                       p_scratch->v_before,
                                       p_scratch->v_after);
}

/* -sum [e(theta') - e(theta)] of the prior and the rows that are not thinned */
static enum tb_status log_factor(struct tb_chain* p_chain,
                                 struct scratch* p_scratch,
                                 const struct shell* p_shell,
                                 double* p_log) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_batch always = {.n_batch = p_shell->n_always,
                                  .v_index = p_shell->v_always,
                                  .weight = 1};
  double before = 0, after = 0;
  enum tb_status status = TB_STATUS_ok;
  if (!p->is_quadratic) {
    status = prior_remainder(p_chain, &p_scratch->here, &before);
    if (status == TB_STATUS_ok) {
      status = prior_remainder(p_chain, &p_scratch->there, &after);
    }
  }
  for (size_t first = 0; first < always.n_batch; first += N_AHEAD) {
    const struct tb_batch part = tb_batch_part(&always, first, N_AHEAD);
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
                               struct scratch* p_scratch,
                               double rate,
                               size_t n) {
  const double scale = tb_cv2_of(p_chain)->scale / rate;
  for (size_t k = 0; k < n; ++k) {
    p_scratch->v_after[k] = scale * p_scratch->v_inverse[k] *
                            (p_scratch->v_after[k] - p_scratch->v_before[k]);
  }
}

/* phi Psi: how many rows are drawn, on average */
static double kill_rate(const struct scratch* p_scratch,
                        const struct shell* p_shell) {
  const double here = p_scratch->here.norm, there = p_scratch->there.norm;
  return (here * here * here + there * there * there) * p_shell->total;
}

/* Does one of the rows that are drawn kill the proposal? */
static enum tb_status is_killed(struct tb_chain* p_chain,
                                struct scratch* p_scratch,
                                const struct shell* p_shell,
                                bool* p_killed) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const double rate = kill_rate(p_scratch, p_shell);
  struct tb_rng* p_rows = &p_chain->v_rng[TB_STREAM_batch];
  struct tb_rng* p_coins = &p_chain->v_rng[TB_STREAM_accept];
  double left = p_shell->v_alias == NULL ? 0 : tb_rng_poisson(p_rows, rate);
  *p_killed = false;
  while (left > 0) {
    const size_t n = left < N_AHEAD ? (size_t)left : N_AHEAD;
    const struct tb_batch batch = {.n_batch = n,
                                   .v_index = p_scratch->v_row,
                                   .weight = 1};
    tb_alias_draw(p_shell->v_alias,
                  p_model->n_data,
                  p_rows,
                  n,
                  p_scratch->v_row,
                  p_scratch->v_inverse);
    for (size_t k = 0; k < n && k < TB_STORE_BLOCK; ++k) {
      p_model->type->expansion->prefetch(p_model,
                                         p->expansion.v_record,
                                         p_scratch->v_row[k]);
    }
    evaluate_rows(p_chain, p_scratch, &batch);
    p_chain->counts.n_row += (double)n;
    p_chain->n_batch += n;
    kill_probabilities(p_chain, p_scratch, rate, n);
    for (size_t k = 0; k < n; ++k) {
      const double probability = p_scratch->v_after[k];
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

/* Both places, and the shell that holds them. */
static enum tb_status set_places(struct tb_chain* p_chain,
                                 struct scratch* p_scratch,
                                 const double* v_theta,
                                 const struct shell** pp_shell) {
  struct tb_factors* p = tb_cv2_of(p_chain)->p_factors;
  const size_t n_byte = p_chain->n_dim * sizeof(double);
  if (!p_scratch->is_known ||
      memcmp(p_scratch->here.v_theta, p_chain->v_theta, n_byte) != 0) {
    place_set(p, p_chain->v_theta, p_scratch->v_z, &p_scratch->here);
    p_scratch->is_known = true;
  }
  place_set(p, v_theta, p_scratch->v_z, &p_scratch->there);
  return shell_for(p,
                   fmax(p_scratch->here.norm, p_scratch->there.norm),
                   pp_shell);
}

static bool factorised_accepts(struct tb_chain* p_chain,
                               struct tb_proposal* p_proposal,
                               double log_ratio,
                               double* p_probability) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  struct scratch* p_scratch = scratch_of(p_chain);
  const size_t n_byte = p_chain->n_dim * sizeof(double);
  const struct shell* p_shell;
  p_chain->n_batch = 0;
  *p_probability = 0;
  if (!p_proposal->is_possible) {
    return false;
  }
  p_proposal->fault =
      set_places(p_chain, p_scratch, p_proposal->v_theta, &p_shell);
  double more = 0;
  if (p_proposal->fault == TB_STATUS_ok) {
    p_chain->n_batch = p_shell->n_always;
    p_proposal->fault = log_factor(p_chain, p_scratch, p_shell, &more);
  }
  bool accepts = p_proposal->fault == TB_STATUS_ok;
  *p_probability = accepts;
  if (accepts &&
      (!p->is_quadratic || p_shell->n_always > 0 || log_ratio != 0)) {
    accepts = factor_accepts(p_chain, log_ratio + more, p_probability);
  }
  if (accepts) {
    bool killed;
    p_proposal->fault = is_killed(p_chain, p_scratch, p_shell, &killed);
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
  struct scratch* p_scratch = scratch_of(p_chain);
  const size_t n_data = p_chain->p_target->p_model->n_data;
  const struct shell* p_shell;
  double more = 0, killed = 0;
  enum tb_status status = set_places(p_chain, p_scratch, v_theta, &p_shell);
  if (status == TB_STATUS_ok) {
    status = log_factor(p_chain, p_scratch, p_shell, &more);
  }
  *p_largest = 0;
  const double rate =
      status == TB_STATUS_ok ? kill_rate(p_scratch, p_shell) : 0;
  for (size_t i = 0; rate > 0 && i < n_data; ++i) {
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

static enum tb_status factorised_start(struct tb_chain* p_chain) {
  return tb_estimator_full.estimate(p_chain,
                                    p_chain->v_theta,
                                    p_chain->v_gradient,
                                    &p_chain->log_posterior);
}

static enum tb_status factorised_gradient(struct tb_chain* p_chain,
                                          double* v_gradient) {
  const size_t n_batch = p_chain->n_batch;
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
