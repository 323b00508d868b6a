/* Scalable Metropolis-Hastings (Cornish, Vanetti, Bouchard-Cote, Deligiannidis
 * & Doucet 2019, ICML) as surrogate transitions (Liu 2001): K steps of a chain
 * that is reversible for the estimator's surrogate propose, and the factorised
 * test accepts from a few rows (gradients/surrogate.h,
 * gradients/factorised.c).
 *
 * Each of the K steps takes one of the proposals (proposals/) with its share,
 * and accepts what it draws with a coin of the surrogate: where that is the
 * normal law, of those that leave it invariant, there is no coin. By default
 * K = 1, with independent draws from the law and, in a share of the steps,
 * autoregressive ones. Hyperparameters are drawn given the coefficients after a
 * step whose proposals leave them where they are.
 *
 *   symbol   variable      shape   owner
 *   theta'   v_theta       n_dim   chain's kernel state (scratch)
 *   of the K steps, v_other n_dim  chain's kernel state (scratch)
 */
#include "kernels/metropolis.h"
#include "proposals/proposal.h"

#include <math.h>
#include <string.h>

enum { N_PROPOSAL = 8, N_INNER = 1000 };

struct smh_proposal {
  const struct tb_proposal_type* type;
  double until; /* the sum of the shares up to its own */
  double v_option[TB_PROPOSAL_N_OPTION];
};

struct smh {
  size_t n_inner;    /* K */
  bool moves_scales; /* does one of the proposals? */
  size_t n_proposal;
  struct smh_proposal v_proposal[N_PROPOSAL];
};

/* arrays of a chain: its proposal, and scratch */
enum { AT_theta, AT_gradient, AT_other, AT_scratch };

/* The default: two proposals, by two numbers. */
static void set_default(struct smh* p_smh, const struct tb_params* p_params) {
  const double near = tb_params_number(p_params, "near", 0.9);
  const double share = tb_params_number(p_params, "share", 0.1);
  p_smh->n_proposal = 2;
  p_smh->v_proposal[0] = (struct smh_proposal){tb_proposal_at_place(1),
                                               .until = share,
                                               .v_option = {near}};
  p_smh->v_proposal[1] =
      (struct smh_proposal){tb_proposal_at_place(0), .until = 1};
}

static bool set_proposals(struct smh* p_smh, const struct tb_params* p_params) {
  const struct tb_param* p_which = tb_params_find(p_params, "proposals");
  const struct tb_param* p_shares = tb_params_find(p_params, "shares");
  const struct tb_param* p_options = tb_params_find(p_params, "options");
  const size_t n = p_which->n_value;
  if (n == 0 || n > N_PROPOSAL || p_shares == NULL || p_shares->n_value != n ||
      p_options == NULL || p_options->n_value != n * TB_PROPOSAL_N_OPTION) {
    return false;
  }
  double until = 0;
  p_smh->n_proposal = n;
  for (size_t k = 0; k < n; ++k) {
    struct smh_proposal* p = &p_smh->v_proposal[k];
    if (!(p_shares->v_value[k] > 0)) {
      return false;
    }
    until += p_shares->v_value[k];
    *p = (struct smh_proposal){tb_proposal_at_place(p_which->v_value[k]),
                               .until = until};
    memcpy(p->v_option,
           p_options->v_value + k * TB_PROPOSAL_N_OPTION,
           sizeof p->v_option);
  }
  return fabs(until - 1) < 1e-9;
}

/* Parameters: "near" (0 to 1), "share" (0 to 1); or "proposals" (their places),
 * "shares" and "options" of each; "inner" (K). */
static enum tb_status smh_init(struct tb_kernel* p_kernel,
                               const struct tb_params* p_params) {
  struct smh* p_smh = p_kernel->p_self;
  const double n_inner = tb_params_number(p_params, "inner", 1);
  if (!(n_inner >= 1 && n_inner <= N_INNER)) {
    return TB_STATUS_argument;
  }
  *p_smh = (struct smh){.n_inner = (size_t)n_inner};
  if (tb_params_find(p_params, "proposals") == NULL) {
    set_default(p_smh, p_params);
  } else if (!set_proposals(p_smh, p_params)) {
    return TB_STATUS_argument;
  }
  size_t n_array = 0;
  for (size_t k = 0; k < p_smh->n_proposal; ++k) {
    const struct smh_proposal* p = &p_smh->v_proposal[k];
    if (p->type == NULL || !(p->until >= 0 && p->until <= 1 + 1e-9) ||
        (p->type->is_possible != NULL && !p->type->is_possible(p->v_option))) {
      return TB_STATUS_argument;
    }
    n_array = p->type->n_array > n_array ? p->type->n_array : n_array;
    p_smh->moves_scales = p_smh->moves_scales || p->type->moves_scales;
  }
  p_kernel->n_array = AT_scratch + n_array;
  return TB_STATUS_ok;
}

static size_t pick(const struct smh* p_smh, double uniform) {
  size_t k = 0;
  while (k + 1 < p_smh->n_proposal && !(uniform < p_smh->v_proposal[k].until)) {
    ++k;
  }
  return k;
}

/* SETS v_which, n_inner members: each as often as its share says, to less than
 * one, in an order drawn at random. Backwards it is as likely, so that the
 * chain of K steps is reversible, and with fewer repeats than of K independent
 * picks.
 */
static void pick_all(const struct smh* p_smh,
                     struct tb_rng* p_rng,
                     unsigned char* v_which) {
  const size_t n = p_smh->n_inner;
  const double uniform = tb_rng_unif(p_rng);
  for (size_t k = 0; k < n; ++k) {
    v_which[k] = (unsigned char)pick(p_smh, ((double)k + uniform) / (double)n);
  }
  for (size_t k = n; p_smh->n_proposal > 1 && k > 1; --k) {
    const size_t other = tb_rng_index(p_rng, k);
    const unsigned char own = v_which[k - 1];
    v_which[k - 1] = v_which[other];
    v_which[other] = own;
  }
}

/* v_theta := where K steps of the surrogate's chain lead. Places change hands
 * where a step is accepted: of one step nothing is copied. */
static enum tb_status surrogate_steps(struct tb_chain* p_chain,
                                      const struct tb_surrogate* p_surrogate,
                                      double* v_theta) {
  const struct smh* p_smh = tb_kernel_self(p_chain);
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  double* v_other = tb_kernel_array(p_chain, AT_other);
  struct tb_spot from = {.v_theta = p_chain->v_theta}; /* which stays */
  struct tb_spot to = {.v_theta = v_theta};
  unsigned char v_which[N_INNER];
  enum tb_status status =
      tb_surrogate_beyond(p_chain, p_surrogate, from.v_theta, &from.beyond);
  pick_all(p_smh, p_rng, v_which);
  for (size_t k = 0; k < p_smh->n_inner && status == TB_STATUS_ok; ++k) {
    const struct smh_proposal* p = &p_smh->v_proposal[v_which[k]];
    double log_ratio;
    status = p->type->draw(p_chain,
                           p_surrogate,
                           p->v_option,
                           &from,
                           &to,
                           tb_kernel_array(p_chain, AT_scratch),
                           &log_ratio);
    /* no coin where it would not be looked at */
    if (log_ratio >= 0 || log(tb_rng_unif(p_rng)) < log_ratio) {
      from = to;
      to.v_theta = from.v_theta == v_theta ? v_other : v_theta;
    }
  }
  if (from.v_theta != v_theta) {
    memcpy(v_theta, from.v_theta, p_chain->n_dim * sizeof(double));
  }
  return status;
}

/* theta' where it was proposed, and the test */
static enum tb_status decide(struct tb_chain* p_chain,
                             const struct tb_surrogate* p_surrogate) {
  double* v_theta = tb_kernel_array(p_chain, AT_theta);
  struct tb_proposal proposal = {.v_theta = v_theta,
                                 .v_gradient =
                                     tb_kernel_array(p_chain, AT_gradient)};
  const size_t n_seen = tb_surrogate_n_coef(p_surrogate) * sizeof(double);
  if (memcmp(v_theta, p_chain->v_theta, n_seen) == 0) {
    /* nothing to test: no row sees hyperparameters */
    memcpy(p_chain->v_theta, v_theta, p_chain->n_dim * sizeof(double));
    p_chain->counts.n_propose += 1;
    p_chain->n_batch = 0;
    return TB_STATUS_ok;
  }
  const enum tb_status status = tb_test_look(p_chain, &proposal);
  if (status != TB_STATUS_ok) {
    return status;
  }
  tb_metropolis_decide(p_chain, &proposal, 0);
  return proposal.fault;
}

static enum tb_status smh_step(struct tb_chain* p_chain) {
  const struct tb_estimator* p_estimator = p_chain->p_target->p_estimator;
  const struct smh* p_smh = tb_kernel_self(p_chain);
  const struct tb_surrogate* p_surrogate =
      p_estimator->type->surrogate(p_estimator);
  enum tb_status status =
      surrogate_steps(p_chain, p_surrogate, tb_kernel_array(p_chain, AT_theta));
  if (status == TB_STATUS_ok) {
    status = decide(p_chain, p_surrogate);
  }
  if (status == TB_STATUS_ok && tb_surrogate_has_scales(p_surrogate) &&
      !p_smh->moves_scales) {
    /* whatever the test said */
    tb_surrogate_draw_scales(p_chain, p_surrogate, p_chain->v_theta);
  }
  return status;
}

const struct tb_kernel_type tb_kernel_smh = {
    .name = "smh",
    .citation = "Cornish et al. (2019), ICML; Liu (2001)",
    .flags =
        TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP | TB_KERNEL_FACTORISED,
    .n_self = sizeof(struct smh),
    .init = smh_init,
    .n_array = AT_scratch,
    .step = smh_step,
};
