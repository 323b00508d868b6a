/* Scalable Metropolis-Hastings (Cornish, Vanetti, Bouchard-Cote, Deligiannidis
 * & Doucet 2019, ICML): proposals from the normal law N(m, Sigma) that the
 * estimator's expansions add up to, accepted by its factorised test
 * (gradients/factorised.c) from a few rows.
 *
 *   theta' = m + alpha (theta - m) + sqrt(1 - alpha^2) Sigma^{1/2} xi
 *
 * with alpha = 0 mostly, and near 1 sometimes: independent proposals leave a
 * tail that is heavier than the law's too seldom. Both are reversible for the
 * law, and so is the mixture.
 *
 *   symbol   variable   shape   owner
 *   alpha    near       1       smh, with its probability
 *   theta'   v_theta    n_dim   chain's kernel state (scratch)
 *   xi, z    v_xi, v_z  n_dim   chain's kernel state (scratch)
 */
#include "kernels/metropolis.h"

#include <math.h>

struct smh {
  double near;  /* alpha of the proposals that stay near */
  double share; /* how many of them there are */
};

/* arrays of a chain: its proposal, and scratch */
enum { AT_theta, AT_gradient, AT_xi, AT_z, N_ARRAY };

/* Parameters: "near" (0 to 1), "share" (0 to 1). */
static enum tb_status smh_init(struct tb_kernel* p_kernel,
                               const struct tb_params* p_params) {
  struct smh* p_smh = p_kernel->p_self;
  *p_smh = (struct smh){.near = tb_params_number(p_params, "near", 0.9),
                        .share = tb_params_number(p_params, "share", 0.1)};
  return p_smh->near >= 0 && p_smh->near < 1 && p_smh->share >= 0 &&
                 p_smh->share <= 1
             ? TB_STATUS_ok
             : TB_STATUS_argument;
}

static enum tb_status smh_step(struct tb_chain* p_chain) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct smh* p_smh = tb_kernel_self(p_chain);
  const struct tb_law* p_law =
      p_target->p_estimator->type->law(p_target->p_estimator);
  const size_t n_dim = p_chain->n_dim;
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  double* v_theta = tb_kernel_array(p_chain, AT_theta);
  double* v_xi = tb_kernel_array(p_chain, AT_xi);
  double* v_z = tb_kernel_array(p_chain, AT_z);
  struct tb_proposal proposal = {.v_theta = v_theta,
                                 .v_gradient =
                                     tb_kernel_array(p_chain, AT_gradient)};
  const bool is_near = tb_rng_unif(p_rng) < p_smh->share;
  tb_rng_fill_norm(p_rng, v_xi, n_dim);
  if (is_near) {
    const double rest = sqrt(1 - p_smh->near * p_smh->near);
    tb_frame_to_sampler(&p_law->frame, p_chain->v_theta, v_z);
    for (size_t j = 0; j < n_dim; ++j) {
      v_xi[j] = p_smh->near * (v_z[j] - p_law->v_mean[j]) + rest * v_xi[j];
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_xi[j] += p_law->v_mean[j];
  }
  tb_frame_to_parameter(&p_law->frame, v_xi, v_theta);
  const enum tb_status status = tb_test_look(p_chain, &proposal);
  if (status != TB_STATUS_ok) {
    return status;
  }
  tb_metropolis_decide(p_chain, &proposal, 0);
  return proposal.fault;
}

const struct tb_kernel_type tb_kernel_smh = {
    .name = "smh",
    .citation = "Cornish et al. (2019), ICML",
    .flags =
        TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP | TB_KERNEL_FACTORISED,
    .n_self = sizeof(struct smh),
    .init = smh_init,
    .n_array = N_ARRAY,
    .step = smh_step,
};
