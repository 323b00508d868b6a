/* Langevin dynamics by the splitting BAOAB (Leimkuhler & Matthews 2013, AMRX
 * 2013:34), with unit masses and time step sqrt(h):
 *
 *   B  p     <- p + (sqrt(h)/2) g
 *   A  theta <- theta + (sqrt(h)/2) p
 *   O  p     <- c p + sqrt(1 - c^2) xi,   c = exp(-friction)
 *   A  theta <- theta + (sqrt(h)/2) p
 *   B  p     <- p + (sqrt(h)/2) g         at the new theta
 *
 * On a Gaussian with precision l and exact gradients the variance of theta is
 * exactly 1/l for h l < 4. With c = 0 the positions are those of the
 * Leimkuhler-Matthews integrator of kernels/sgld.c with the same h.
 *
 *   symbol  variable    shape        owner
 *   h       step        1 or n_dim   baoab
 *   c       kept                     baoab
 *   p       v_momentum  n_dim        chain's kernel state
 */
#include "kernels/kernel.h"

#include <math.h>

struct baoab {
  double kept;
};

/* Parameters: "step_size" (1 or n_dim), "friction" (Inf: c = 0). */
static enum tb_status baoab_init(struct tb_kernel* p_kernel,
                                 const struct tb_params* p_params) {
  struct baoab* p_self = p_kernel->p_self;
  const double friction = tb_params_number(p_params, "friction", -1);
  p_self->kept = exp(-friction);
  if (!(friction > 0)) {
    return TB_STATUS_argument;
  }
  return TB_STATUS_ok;
}

enum { AT_momentum, AT_xi, N_ARRAY };

static double baoab_half(const struct tb_chain* p_chain, size_t j) {
  return 0.5 * sqrt(tb_kernel_step(p_chain, j));
}

/* B */
static void baoab_kick(struct tb_chain* p_chain) {
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_momentum[j] += baoab_half(p_chain, j) * p_chain->v_gradient[j];
  }
}

/* as if a step had just ended here */
static enum tb_status baoab_start(struct tb_chain* p_chain) {
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise],
                   tb_kernel_array(p_chain, AT_momentum),
                   p_chain->n_dim);
  baoab_kick(p_chain);
  return TB_STATUS_ok;
}

static enum tb_status baoab_step(struct tb_chain* p_chain) {
  const struct baoab* p_self = tb_kernel_self(p_chain);
  const size_t n_dim = p_chain->n_dim;
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  double* v_xi = tb_kernel_array(p_chain, AT_xi);
  const double c = p_self->kept;
  const double sd = p_chain->is_exploring ? 0 : sqrt(1 - c * c);

  baoab_kick(p_chain);
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_xi, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    const double after = c * v_momentum[j] + sd * v_xi[j];
    p_chain->v_theta[j] += baoab_half(p_chain, j) * (v_momentum[j] + after);
    v_momentum[j] = after;
  }
  const enum tb_status status =
      tb_chain_gradient(p_chain, p_chain->v_theta, p_chain->v_gradient, NULL);
  baoab_kick(p_chain);
  return status;
}

extern const struct tb_kernel_type tb_kernel_baoab;
const struct tb_kernel_type tb_kernel_baoab = {
    .name = "baoab",
    .citation = "Leimkuhler & Matthews (2013), AMRX",
    .n_self = sizeof(struct baoab),
    .step_sizes = "step_size",
    .init = baoab_init,
    .n_array = N_ARRAY,
    .start = baoab_start,
    .step = baoab_step,
    .info = tb_kernel_step_info,
};
