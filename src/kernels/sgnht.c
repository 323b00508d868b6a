/* Stochastic gradient Nose-Hoover thermostat (Ding, Fang, Babbush, Chen, Skeel
 * & Neven 2014, NIPS, Algorithm 1, in v = p h, eta = h^2, a = A h, xi <- xi h):
 *
 *   v     <- v - xi v + eta g + N(0, 2 a eta)
 *   theta <- theta + v
 *   xi    <- xi + v'v / d - eta
 *
 * The thermostat xi settles near a + eta tau^2 / 2, so that gradient noise of
 * one variance tau^2 in every coordinate is taken up without being estimated.
 *
 *   symbol  variable    shape   owner
 *   eta     step_size           sgnht
 *   a       diffusion           sgnht
 *   xi      thermostat          chain's kernel state
 *   v       v_momentum  n_dim   chain's kernel state
 */
#include "kernels/kernel.h"

#include <math.h>

struct sgnht {
  double step_size;
  double diffusion;
};

struct sgnht_state {
  double thermostat;
};

enum { AT_momentum, AT_xi, N_ARRAY };

/* Parameters: "step_size" (1), "diffusion". */
static enum tb_status sgnht_init(struct tb_kernel* p_kernel,
                                 const struct tb_params* p_params) {
  struct sgnht* p_self = p_kernel->p_self;
  p_self->step_size = tb_params_number(p_params, "step_size", -1);
  p_self->diffusion = tb_params_number(p_params, "diffusion", -1);
  return p_self->step_size >= 0 && p_self->diffusion > 0 ? TB_STATUS_ok
                                                         : TB_STATUS_argument;
}

static enum tb_status sgnht_start(struct tb_chain* p_chain) {
  const struct sgnht* p_self = tb_kernel_self(p_chain);
  struct sgnht_state* p_state = p_chain->p_kernel_state;
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  p_state->thermostat = p_self->diffusion;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise],
                   v_momentum,
                   p_chain->n_dim);
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_momentum[j] *= sqrt(p_self->step_size);
  }
  return TB_STATUS_ok;
}

static enum tb_status sgnht_step(struct tb_chain* p_chain) {
  const struct sgnht* p_self = tb_kernel_self(p_chain);
  struct sgnht_state* p_state = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  double* v_xi = tb_kernel_array(p_chain, AT_xi);
  const double eta = p_chain->step_scale * p_self->step_size;
  const double sd =
      p_chain->is_exploring ? 0 : sqrt(2 * p_self->diffusion * eta);
  const double kept = 1 - p_state->thermostat;
  double energy = 0;

  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_xi, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    const double v =
        kept * v_momentum[j] + eta * p_chain->v_gradient[j] + sd * v_xi[j];
    p_chain->v_theta[j] += v;
    v_momentum[j] = v;
    energy += v * v;
  }
  p_state->thermostat += energy / (double)n_dim - eta;
  return tb_chain_gradient(p_chain,
                           p_chain->v_theta,
                           p_chain->v_gradient,
                           NULL);
}

static void sgnht_info(const struct tb_chain* p_chain,
                       struct tb_kernel_info* p_info) {
  const struct sgnht* p_self = tb_kernel_self(p_chain);
  p_info->step_size = p_chain->step_scale * p_self->step_size;
}

extern const struct tb_kernel_type tb_kernel_sgnht;
const struct tb_kernel_type tb_kernel_sgnht = {
    .name = "sgnht",
    .citation = "Ding, Fang, Babbush, Chen, Skeel & Neven (2014), NIPS",
    .n_self = sizeof(struct sgnht),
    .init = sgnht_init,
    .n_state = sizeof(struct sgnht_state),
    .n_array = N_ARRAY,
    .start = sgnht_start,
    .step = sgnht_step,
    .info = sgnht_info,
};
