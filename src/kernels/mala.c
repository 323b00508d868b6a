/* Metropolis-adjusted Langevin (Roberts & Tweedie 1996, Bernoulli 2:341), with
 * the directional noise of Bieringer, Kasieczka, Steffen & Trabs (2023, section
 * 4.1):
 *
 *   theta' ~ N(theta + (h/2) g, h I + s_d^2 u u^T),  u = -g / lambda at theta
 *   accepted with probability min(1, pi(theta') q(theta | theta') /
 *                                   (pi(theta) q(theta' | theta)))
 *
 * g is the gradient of the log (Gibbs) posterior, so u that of the paper's mean
 * loss (with the prior's part), and (h/2) g its drift -gamma u, gamma =
 * lambda h / 2. The paper prints the noise as Sigma W; see kernels/prolate.h.
 * With adaptation h is tuned in warmup; see kernels/adapt.h.
 *
 *   symbol        variable        shape   owner
 *   theta', g'    proposal        n_dim   chain's kernel state (scratch)
 *   z             v_z             n_dim   chain's kernel state (scratch)
 *   h             step_size               mala, times adapt's factor
 *   s_d           sd_direction            mala
 */
#include "kernels/adapt.h"
#include "kernels/metropolis.h"
#include "kernels/prolate.h"

#include <string.h>

struct mala {
  double step_size;
  double sd_direction;
};

/* arrays of a chain: its proposal, and scratch */
enum { AT_theta, AT_gradient, AT_z, N_ARRAY };

/* Parameters: "step_size", "sigma_direction", "adapt" (0/1), "ratio". */
static enum tb_status mala_init(struct tb_kernel* p_kernel,
                                const struct tb_params* p_params) {
  struct mala* p_mala = p_kernel->p_self;
  p_mala->step_size = tb_params_number(p_params, "step_size", -1);
  p_mala->sd_direction = tb_params_number(p_params, "sigma_direction", 0);
  p_kernel->flags = tb_metropolis_flags(p_params);
  return p_mala->step_size >= 0 && p_mala->sd_direction >= 0
             ? TB_STATUS_ok
             : TB_STATUS_argument;
}

static double mala_step_size(const struct tb_chain* p_chain) {
  const struct mala* p_mala = tb_kernel_self(p_chain);
  return p_mala->step_size * tb_adapt_factor(p_chain);
}

/* log q(to | from), v_gradient that at from */
static double mala_log_proposal(const struct tb_prolate* p_shape,
                                const double* v_from,
                                const double* v_gradient,
                                const double* v_to,
                                double* v_z) {
  struct tb_prolate law = *p_shape;
  const double h = law.sd * law.sd;
  for (size_t j = 0; j < law.n_dim; ++j) {
    v_z[j] = v_to[j] - v_from[j] - 0.5 * h * v_gradient[j];
  }
  law.v_axis = v_gradient;
  return tb_prolate_log_density(&law, v_z);
}

static enum tb_status mala_step(struct tb_chain* p_chain) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct mala* p_mala = tb_kernel_self(p_chain);
  const size_t n_dim = p_chain->n_dim;
  double* v_theta = tb_kernel_array(p_chain, AT_theta);
  double* v_z = tb_kernel_array(p_chain, AT_z);
  struct tb_proposal proposal = {.v_theta = v_theta,
                                 .v_gradient =
                                     tb_kernel_array(p_chain, AT_gradient)};
  const double h = mala_step_size(p_chain);
  const struct tb_prolate law = {.sd = sqrt(h),
                                 .sd_axis = p_mala->sd_direction /
                                            tb_target_lambda(p_target),
                                 .v_axis = p_chain->v_gradient,
                                 .n_dim = n_dim};

  bool is_done;
  enum tb_status status = tb_metropolis_move(p_chain, &proposal, &is_done);
  if (is_done || status != TB_STATUS_ok) {
    return status;
  }
  status = tb_test_begin(p_chain);
  if (status != TB_STATUS_ok) {
    return status;
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_theta[j] = p_chain->v_theta[j] + 0.5 * h * p_chain->v_gradient[j];
  }
  tb_prolate_draw(&law, &p_chain->v_rng[TB_STREAM_noise], v_z, v_theta);
  status = tb_test_look(p_chain, &proposal);
  if (status != TB_STATUS_ok) {
    return status;
  }

  double log_ratio = 0;
  if (proposal.is_possible) {
    log_ratio = mala_log_proposal(&law,
                                  v_theta,
                                  proposal.v_gradient,
                                  p_chain->v_theta,
                                  v_z) -
                mala_log_proposal(&law,
                                  p_chain->v_theta,
                                  p_chain->v_gradient,
                                  v_theta,
                                  v_z);
  }
  const double acceptance = tb_metropolis_decide(p_chain, &proposal, log_ratio);
  tb_adapt_add(p_chain, acceptance);
  return TB_STATUS_ok;
}

static void mala_info(const struct tb_chain* p_chain,
                      struct tb_kernel_info* p_info) {
  p_info->step_size = mala_step_size(p_chain);
}

const struct tb_kernel_type tb_kernel_mala = {
    .name = "mala",
    .citation = "Roberts & Tweedie (1996), Bernoulli 2:341",
    .flags = TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP,
    .n_self = sizeof(struct mala),
    .init = mala_init,
    .n_state = sizeof(struct tb_adapt),
    .n_array = N_ARRAY,
    .target = TB_TARGET_LANGEVIN,
    .step = mala_step,
    .info = mala_info,
};
