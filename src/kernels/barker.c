/* The Barker proposal, Metropolis-adjusted (Livingstone & Zanella 2022, JRSS B
 * 84:496, Algorithms 1 and 2), coordinate by coordinate:
 *
 *   w ~ N(0, sigma^2)  (normal)  or  N(sigma, (0.1 sigma)^2)  (bimodal)
 *   b = +1 with probability 1 / (1 + exp(-w g_j(theta))), else -1
 *   theta'_j = theta_j + b w
 *
 * accepted with probability min(1, ratio),
 *
 *   ratio = pi(theta') / pi(theta)
 *           prod_j [1 + exp(-z_j g_j(theta))] / [1 + exp(z_j g_j(theta'))],
 *
 * z = theta' - theta: the density of z_j is that of |w| times the probability
 * of the sign. A large gradient decides signs, not sizes, so the proposal
 * suffers less than Langevin's from a step that is too large. With adaptation
 * sigma is tuned in warmup; see kernels/adapt.h.
 *
 *   symbol        variable   shape        owner
 *   theta', g'    proposal   n_dim        chain's kernel state (scratch)
 *   sigma         step       1 or n_dim   barker, times adapt's factor
 */
#include "kernels/adapt.h"
#include "kernels/metropolis.h"

#include <string.h>

enum barker_noise { BARKER_normal = 0, BARKER_bimodal = 1 };

/* spread of the bimodal increments around sigma */
#define BARKER_SPREAD 0.1

struct barker {
  enum barker_noise noise;
};

/* arrays of a chain: its proposal */
enum { AT_theta, AT_gradient, N_ARRAY };

/* Parameters: "sigma" (1 or n_dim), "noise" (enum above), "adapt" (0/1),
 * "ratio". */
static enum tb_status barker_init(struct tb_kernel* p_kernel,
                                  const struct tb_params* p_params) {
  struct barker* p_barker = p_kernel->p_self;
  size_t noise;
  if (!tb_params_count(p_params, "noise", 1, BARKER_normal, &noise)) {
    return TB_STATUS_argument;
  }
  p_barker->noise = (enum barker_noise)noise;
  p_kernel->flags = tb_metropolis_flags(p_params);
  return TB_STATUS_ok;
}

/* log(1 + exp(x)) */
static double log1p_exp(double x) {
  return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void barker_propose(struct tb_chain* p_chain, double* v_proposal) {
  const struct barker* p_barker = tb_kernel_self(p_chain);
  const double factor = tb_adapt_factor(p_chain);
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  tb_rng_fill_norm(p_rng, v_proposal, p_chain->n_dim);
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    const double sigma =
        factor * tb_step_at(&p_chain->p_target->p_kernel->step, j);
    const double w = p_barker->noise == BARKER_normal
                         ? sigma * v_proposal[j]
                         : sigma * (1 + BARKER_SPREAD * v_proposal[j]);
    const bool is_up =
        tb_rng_unif(p_rng) < 1 / (1 + exp(-w * p_chain->v_gradient[j]));
    v_proposal[j] = p_chain->v_theta[j] + (is_up ? w : -w);
  }
}

static enum tb_status barker_step(struct tb_chain* p_chain) {
  const size_t n_dim = p_chain->n_dim;
  double* v_theta = tb_kernel_array(p_chain, AT_theta);
  struct tb_proposal proposal = {.v_theta = v_theta,
                                 .v_gradient =
                                     tb_kernel_array(p_chain, AT_gradient)};

  bool is_done;
  enum tb_status status = tb_metropolis_move(p_chain, &proposal, &is_done);
  if (is_done || status != TB_STATUS_ok) {
    return status;
  }
  status = tb_test_begin(p_chain);
  if (status != TB_STATUS_ok) {
    return status;
  }
  barker_propose(p_chain, v_theta);
  status = tb_test_look(p_chain, &proposal);
  if (status != TB_STATUS_ok) {
    return status;
  }

  double log_ratio = 0;
  for (size_t j = 0; proposal.is_possible && j < n_dim; ++j) {
    const double z = v_theta[j] - p_chain->v_theta[j];
    log_ratio += log1p_exp(-z * p_chain->v_gradient[j]) -
                 log1p_exp(z * proposal.v_gradient[j]);
  }
  const double acceptance = tb_metropolis_decide(p_chain, &proposal, log_ratio);
  tb_adapt_add(p_chain, acceptance);
  return TB_STATUS_ok;
}

static void barker_info(const struct tb_chain* p_chain,
                        struct tb_kernel_info* p_info) {
  const struct tb_step* p_step = &p_chain->p_target->p_kernel->step;
  p_info->step_size = tb_step_at(p_step, 0) * tb_adapt_factor(p_chain);
}

const struct tb_kernel_type tb_kernel_barker = {
    .name = "barker",
    .citation = "Livingstone & Zanella (2022), JRSS B 84:496",
    .flags = TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP,
    .n_self = sizeof(struct barker),
    .step_sizes = "sigma",
    .init = barker_init,
    .n_state = sizeof(struct tb_adapt),
    .n_array = N_ARRAY,
    .target = TB_TARGET_LANGEVIN,
    .step = barker_step,
    .info = barker_info,
};
