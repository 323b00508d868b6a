/* Stochastic gradient Langevin dynamics (spec 5).
 *
 *   euler                theta + (h/2) g + sqrt(h) xi
 *                        Welling & Teh (2011), ICML
 *   leimkuhler-matthews  theta + (h/2) g + (sqrt(h)/2) (xi_t + xi_{t+1})
 *                        Leimkuhler & Matthews (2013), AMRX 2013:34, eq. 1.5
 *
 * h is the variance of the injected noise; g estimates the gradient of the log
 * posterior, summed over the data. The corrected variants take the minibatch
 * noise tau^2 out of the injected noise (Mauri & Zanella 2024, section 2.3):
 *
 *   euler                xi scaled by sqrt(max(0, 1 - h tau^2 / 4))
 *   leimkuhler-matthews  xi scaled by sqrt(max(0, 1 - h tau^2 / (4 - h k)))
 *
 * where k is the precision of the coordinate: 1 after whitening, otherwise
 * taken as 0, its value for small steps. tau^2 is an exponential average of
 * the minibatch variances,
 *
 *   t2 <- (1 - beta) t2 + beta s^2,   tau^2 = t2 / (1 - (1 - beta)^m).
 *
 *   symbol   variable     shape        owner
 *   h        step         1 or n_dim   sgld
 *   xi_t     v_noise      n_dim        chain's kernel state
 *   t2       v_average    n_dim        chain's kernel state (corrected)
 */
#include "kernels/kernel.h"
#include "kernels/step.h"

#include <math.h>
#include <string.h>

enum sgld_integrator { SGLD_euler = 0, SGLD_leimkuhler_matthews = 1 };
enum sgld_variant { SGLD_vanilla = 0, SGLD_corrected = 1 };

struct sgld {
  struct tb_step step;
  enum sgld_integrator integrator;
  enum sgld_variant variant;
  double smoothing; /* beta */
  double precision; /* k */
};

/* Followed by v_noise[n_dim], v_next[n_dim] and v_average[n_dim]. */
struct sgld_state {
  double remaining; /* (1 - beta)^m */
};

static double* state_noise(struct sgld_state* p_state) {
  return (double*) (p_state + 1);
}

static size_t sgld_self_size(const struct tb_params* p_params, size_t n_dim) {
  (void) p_params;
  return sizeof(struct sgld) + n_dim * sizeof(double);
}

/* Parameters: "step_size" (1 or n_dim), "integrator", "variant" (enums above),
 * "noise_smoothing", "precision". */
static enum tb_status sgld_init(struct tb_kernel* p_kernel,
                                size_t n_dim,
                                const struct tb_params* p_params) {
  struct sgld* p_sgld = p_kernel->p_self;
  const struct tb_param* p_step = tb_params_find(p_params, "step_size");
  if (p_step == NULL || (p_step->n_value != 1 && p_step->n_value != n_dim)) {
    return TB_STATUS_argument;
  }
  double* v_size = (double*) (p_sgld + 1);
  memcpy(v_size, p_step->v_value, p_step->n_value * sizeof(double));
  p_sgld->step = (struct tb_step){ v_size, p_step->n_value };
  p_sgld->integrator =
    (enum sgld_integrator) tb_params_number(p_params, "integrator", 0);
  p_sgld->variant = (enum sgld_variant) tb_params_number(p_params, "variant", 0);
  p_sgld->smoothing = tb_params_number(p_params, "noise_smoothing", 0.1);
  p_sgld->precision = tb_params_number(p_params, "precision", 0);
  p_kernel->flags =
    p_sgld->variant == SGLD_corrected ? TB_KERNEL_VARIANCE : 0;
  return TB_STATUS_ok;
}

static size_t sgld_state_size(const struct tb_kernel* p_kernel, size_t n_dim) {
  (void) p_kernel;
  return sizeof(struct sgld_state) + 3 * n_dim * sizeof(double);
}

static enum tb_status sgld_start(struct tb_chain* p_chain) {
  struct sgld_state* p_state = p_chain->p_kernel_state;
  p_state->remaining = 1;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise],
                   state_noise(p_state),
                   p_chain->n_dim);
  return TB_STATUS_ok;
}

/* Average the minibatch variance; a minibatch of one row carries it forward. */
static void sgld_average(const struct sgld* p_sgld,
                         struct sgld_state* p_state,
                         const struct tb_chain* p_chain,
                         double* v_average) {
  const double beta = p_sgld->smoothing;
  if (!p_chain->has_variance) {
    return;
  }
  p_state->remaining *= 1 - beta;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_average[j] = (1 - beta) * v_average[j] + beta * p_chain->v_variance[j];
  }
}

static enum tb_status sgld_step(struct tb_chain* p_chain) {
  const struct sgld* p_sgld = p_chain->p_target->p_kernel->p_self;
  struct sgld_state* p_state = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_noise = state_noise(p_state);
  double* v_next = v_noise + n_dim;
  double* v_average = v_next + n_dim;
  const double* v_gradient = p_chain->v_gradient;
  double* v_theta = p_chain->v_theta;
  const bool is_lm = p_sgld->integrator == SGLD_leimkuhler_matthews;
  const bool is_corrected = p_sgld->variant == SGLD_corrected;

  if (is_corrected) {
    sgld_average(p_sgld, p_state, p_chain, v_average);
  }
  const double unbias =
    p_state->remaining < 1 ? 1 / (1 - p_state->remaining) : 0;

  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_next, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    const double h = p_chain->step_scale * tb_step_at(&p_sgld->step, j);
    const double noise = is_lm ? 0.5 * (v_noise[j] + v_next[j]) : v_next[j];
    double variance = h;
    if (is_corrected) {
      const double tau2 = v_average[j] * unbias;
      const double share =
        h * tau2 / (is_lm ? 4 - h * p_sgld->precision : 4);
      variance = share < 1 ? h * (1 - share) : 0;
      p_chain->counts.n_beyond += share > 1;
    }
    v_theta[j] += 0.5 * h * v_gradient[j] + sqrt(variance) * noise;
  }
  if (is_corrected) {
    p_chain->counts.n_compared += (double) n_dim;
  }
  memcpy(v_noise, v_next, n_dim * sizeof(double));
  return tb_chain_gradient(p_chain, v_theta, p_chain->v_gradient, NULL);
}

static void sgld_info(const struct tb_chain* p_chain,
                      struct tb_kernel_info* p_info) {
  const struct sgld* p_sgld = p_chain->p_target->p_kernel->p_self;
  p_info->step_size = p_chain->step_scale * p_sgld->step.v_size[0];
}

const struct tb_kernel_type tb_kernel_sgld = {
  .name = "sgld",
  .citation = "Welling & Teh (2011), ICML; Leimkuhler & Matthews (2013), AMRX",
  .flags = 0,
  .self_size = sgld_self_size,
  .init = sgld_init,
  .state_size = sgld_state_size,
  .start = sgld_start,
  .step = sgld_step,
  .info = sgld_info,
};
