/* Hamiltonian Monte Carlo with a trajectory of fixed length (Duane, Kennedy,
 * Pendleton & Roweth 1987, Phys. Lett. B 195:216; Neal 2011, sections 5.2.3 and
 * 5.3): momenta p ~ N(0, I), then L leapfrog steps of size e,
 *
 *   p <- p + (e/2) g(theta);  theta <- theta + e p;  p <- p + (e/2) g(theta)
 *
 * accepted with probability min(1, pi(theta') / pi(theta)
 *                                 exp((|p|^2 - |p'|^2) / 2)).
 *
 * The trajectory may pass outside the support of the prior, where the formulas
 * of its density go on; its end may not lie there. One that stops being finite
 * is a rejection. With adaptation e is tuned in warmup; see kernels/adapt.h.
 *
 * A trajectory whose length is near a period of the motion ends where it began,
 * every time. With a jitter each has a step of its own, e (1 + jitter u), u ~
 * U(-1, 1), whatever the state, so the law stays exact (Neal 2011,
 * section 5.4).
 *
 *   symbol        variable     shape   owner
 *   theta', g'    proposal     n_dim   chain's kernel state (scratch)
 *   p             v_momentum   n_dim   chain's kernel state (scratch)
 *   e             step_size            hmc, times adapt's factor
 *   L             n_steps              hmc
 *   jitter        jitter               hmc
 */
#include "kernels/adapt.h"
#include "kernels/metropolis.h"

#include <string.h>

struct hmc {
  double step_size;
  double jitter;
  size_t n_steps;
};

/* arrays of a chain, its proposal first */
enum { AT_theta, AT_gradient, AT_momentum, N_ARRAY };

/* Parameters: "step_size" (1), "steps" (1), "adapt" (0/1), "jitter" (1; none:
 * 0). */
static enum tb_status hmc_init(struct tb_kernel* p_kernel,
                               const struct tb_params* p_params) {
  struct hmc* p_hmc = p_kernel->p_self;
  p_hmc->step_size = tb_params_number(p_params, "step_size", -1);
  p_hmc->jitter = tb_params_number(p_params, "jitter", 0);
  return p_hmc->step_size >= 0 && p_hmc->jitter >= 0 && p_hmc->jitter < 1 &&
                 tb_params_count(p_params,
                                 "steps",
                                 TB_STEPS_MOST,
                                 1,
                                 &p_hmc->n_steps) &&
                 p_hmc->n_steps >= 1
             ? TB_STATUS_ok
             : TB_STATUS_argument;
}

static double hmc_step_size(const struct tb_chain* p_chain) {
  const struct hmc* p_hmc = tb_kernel_self(p_chain);
  return p_hmc->step_size * tb_adapt_factor(p_chain);
}

static double kinetic_energy(const double* v_momentum, size_t n_dim) {
  double sum = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    sum += v_momentum[j] * v_momentum[j];
  }
  return 0.5 * sum;
}

static void add_scaled(double* v_to, double factor, const double* v, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    v_to[j] += factor * v[j];
  }
}

/* L leapfrog steps; the last one's gradient comes with the log posterior. */
static enum tb_status hmc_trajectory(struct tb_chain* p_chain,
                                     double* v_momentum,
                                     struct tb_proposal* p_proposal) {
  const struct hmc* p_hmc = tb_kernel_self(p_chain);
  const size_t n_dim = p_chain->n_dim;
  double e = hmc_step_size(p_chain);
  if (p_hmc->jitter > 0) {
    const double u = tb_rng_unif(&p_chain->v_rng[TB_STREAM_noise]);
    e *= 1 + p_hmc->jitter * (2 * u - 1);
  }
  add_scaled(v_momentum, 0.5 * e, p_proposal->v_gradient, n_dim);
  for (size_t k = 1; k < p_hmc->n_steps; ++k) {
    add_scaled(p_proposal->v_theta, e, v_momentum, n_dim);
    const enum tb_status status = tb_chain_gradient(p_chain,
                                                    p_proposal->v_theta,
                                                    p_proposal->v_gradient,
                                                    NULL);
    if (status != TB_STATUS_ok) {
      return status;
    }
    add_scaled(v_momentum, e, p_proposal->v_gradient, n_dim);
  }
  add_scaled(p_proposal->v_theta, e, v_momentum, n_dim);
  const enum tb_status status = tb_test_look(p_chain, p_proposal);
  if (status == TB_STATUS_ok && p_proposal->is_possible) {
    add_scaled(v_momentum, 0.5 * e, p_proposal->v_gradient, n_dim);
  }
  return status;
}

static enum tb_status hmc_step(struct tb_chain* p_chain) {
  const size_t n_dim = p_chain->n_dim;
  double* v_theta = tb_kernel_array(p_chain, AT_theta);
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  struct tb_proposal proposal = {.v_theta = v_theta,
                                 .v_gradient =
                                     tb_kernel_array(p_chain, AT_gradient)};

  bool is_done;
  enum tb_status status = tb_metropolis_move(p_chain, &proposal, &is_done);
  if (is_done || status != TB_STATUS_ok) {
    return status;
  }
  memcpy(v_theta, p_chain->v_theta, n_dim * sizeof(double));
  memcpy(proposal.v_gradient, p_chain->v_gradient, n_dim * sizeof(double));
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_momentum, n_dim);
  const double before = kinetic_energy(v_momentum, n_dim);
  status = hmc_trajectory(p_chain, v_momentum, &proposal);
  if (status != TB_STATUS_ok) {
    return status;
  }
  const double acceptance =
      tb_metropolis_decide(p_chain,
                           &proposal,
                           before - kinetic_energy(v_momentum, n_dim));
  tb_adapt_add(p_chain, acceptance);
  return TB_STATUS_ok;
}

static void hmc_info(const struct tb_chain* p_chain,
                     struct tb_kernel_info* p_info) {
  p_info->step_size = hmc_step_size(p_chain);
}

const struct tb_kernel_type tb_kernel_hmc = {
    .name = "hmc",
    .citation =
        "Duane, Kennedy, Pendleton & Roweth (1987), Phys. Lett. B 195:216",
    .flags = TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP |
             TB_KERNEL_FULL_GRADIENT,
    .n_self = sizeof(struct hmc),
    .init = hmc_init,
    .n_state = sizeof(struct tb_adapt),
    .n_array = N_ARRAY,
    .target = TB_TARGET_HMC,
    .step = hmc_step,
    .info = hmc_info,
};
