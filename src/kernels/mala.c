/* Metropolis-adjusted Langevin (Roberts & Tweedie 1996, Bernoulli 2:341):
 *
 *   theta' ~ N(theta + (h/2) g(theta), h I)
 *   accepted with probability min(1, pi(theta') q(theta | theta') /
 *                                   (pi(theta) q(theta' | theta)))
 *
 * A proposal whose log posterior is not finite is a rejection. With
 * adaptation, log h follows dual averaging (Hoffman & Gelman 2014, JMLR 15,
 * section 3.2.1) towards an acceptance rate of 0.574 during warmup and is
 * then frozen at its average.
 *
 *   symbol        variable     shape   owner
 *   theta', g'    v_proposal,  n_dim   chain's kernel state (scratch)
 *                 v_gradient
 *   h             log_step             chain's kernel state
 */
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>

/* Roberts & Rosenthal (1998), JRSS B 60:255 */
#define MALA_TARGET 0.574

struct mala {
  double step_size;
  bool adapts;
};

/* Followed by v_proposal[n_dim] and v_gradient[n_dim]. */
struct mala_state {
  double log_step;      /* in use */
  double log_average;   /* dual averaging: the average to freeze at */
  double error;         /* running mean of (target - acceptance) */
  double n_adapted;
};

static size_t mala_self_size(const struct tb_params* p_params, size_t n_dim) {
  (void) p_params;
  (void) n_dim;
  return sizeof(struct mala);
}

/* Parameters: "step_size" (1), "adapt" (0/1). */
static enum tb_status mala_init(struct tb_kernel* p_kernel,
                                size_t n_dim,
                                const struct tb_params* p_params) {
  struct mala* p_mala = p_kernel->p_self;
  (void) n_dim;
  p_mala->step_size = tb_params_number(p_params, "step_size", -1);
  p_mala->adapts = tb_params_number(p_params, "adapt", 0) != 0;
  p_kernel->flags = TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP;
  return p_mala->step_size >= 0 ? TB_STATUS_ok : TB_STATUS_argument;
}

static size_t mala_state_size(const struct tb_kernel* p_kernel, size_t n_dim) {
  (void) p_kernel;
  return sizeof(struct mala_state) + 2 * n_dim * sizeof(double);
}

static enum tb_status mala_start(struct tb_chain* p_chain) {
  const struct mala* p_mala = p_chain->p_target->p_kernel->p_self;
  struct mala_state* p_state = p_chain->p_kernel_state;
  p_state->log_step = log(p_mala->step_size);
  p_state->log_average = p_state->log_step;
  return TB_STATUS_ok;
}

static void mala_adapt(const struct mala* p_mala,
                       struct mala_state* p_state,
                       double acceptance) {
  const double gamma = 0.05, t0 = 10, kappa = 0.75;
  const double t = p_state->n_adapted += 1;
  p_state->error +=
    ((MALA_TARGET - acceptance) - p_state->error) / (t + t0);
  /* shrinks towards 2 h_0, as Hoffman & Gelman's mu = log(10 eps) does: their
   * factor is for a step found by doubling, ours starts near the optimum */
  p_state->log_step =
    log(2 * p_mala->step_size) - sqrt(t) / gamma * p_state->error;
  const double weight = pow(t, -kappa);
  p_state->log_average =
    weight * p_state->log_step + (1 - weight) * p_state->log_average;
}

/* -||to - from - (h/2) g||^2 / (2 h) */
static double mala_log_proposal(size_t n_dim,
                                const double* v_from,
                                const double* v_gradient,
                                const double* v_to,
                                double h) {
  double sum = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    const double z = v_to[j] - v_from[j] - 0.5 * h * v_gradient[j];
    sum += z * z;
  }
  return -sum / (2 * h);
}

static enum tb_status mala_step(struct tb_chain* p_chain) {
  const struct mala* p_mala = p_chain->p_target->p_kernel->p_self;
  struct mala_state* p_state = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_proposal = (double*) (p_state + 1);
  double* v_gradient = v_proposal + n_dim;
  const double h = exp(p_state->log_step);
  const double root = sqrt(h);
  double log_posterior = NAN;

  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_proposal, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    v_proposal[j] = p_chain->v_theta[j] + 0.5 * h * p_chain->v_gradient[j] +
                    root * v_proposal[j];
  }
  const double uniform = tb_rng_unif(&p_chain->v_rng[TB_STREAM_accept]);
  enum tb_status status =
    tb_chain_gradient(p_chain, v_proposal, v_gradient, &log_posterior);
  if (status != TB_STATUS_ok) {
    return status;
  }

  /* h = 0 stays where it is */
  double log_ratio = h > 0 ? -INFINITY : 0;
  if (h > 0 && isfinite(log_posterior)) {
    log_ratio =
      log_posterior - p_chain->log_posterior +
      mala_log_proposal(n_dim, v_proposal, v_gradient, p_chain->v_theta, h) -
      mala_log_proposal(
        n_dim, p_chain->v_theta, p_chain->v_gradient, v_proposal, h);
  }
  const bool accepts = log(uniform) < log_ratio;
  p_chain->counts.n_propose += 1;
  if (accepts) {
    memcpy(p_chain->v_theta, v_proposal, n_dim * sizeof(double));
    memcpy(p_chain->v_gradient, v_gradient, n_dim * sizeof(double));
    p_chain->log_posterior = log_posterior;
    p_chain->counts.n_accept += 1;
  }
  if (p_mala->adapts) {
    if (p_chain->is_warmup) {
      mala_adapt(p_mala,
                 p_state,
                 isnan(log_ratio) ? 0 : fmin(1, exp(log_ratio)));
    } else {
      p_state->log_step = p_state->log_average;
    }
  }
  return TB_STATUS_ok;
}

static void mala_info(const struct tb_chain* p_chain,
                      struct tb_kernel_info* p_info) {
  const struct mala_state* p_state = p_chain->p_kernel_state;
  p_info->step_size = exp(p_state->log_step);
}

const struct tb_kernel_type tb_kernel_mala = {
  .name = "mala",
  .citation = "Roberts & Tweedie (1996), Bernoulli 2:341",
  .flags = TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP,
  .self_size = mala_self_size,
  .init = mala_init,
  .state_size = mala_state_size,
  .start = mala_start,
  .step = mala_step,
  .info = mala_info,
};
