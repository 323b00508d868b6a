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
#include "kernels/step.h"

#include <math.h>

struct baoab {
  struct tb_step step;
  double kept;
};

static size_t baoab_self_size(const struct tb_params* p_params, size_t n_dim) {
  (void)p_params;
  return sizeof(struct baoab) + n_dim * sizeof(double);
}

/* Parameters: "step_size" (1 or n_dim), "friction" (Inf: c = 0). */
static enum tb_status baoab_init(struct tb_kernel* p_kernel,
                                 size_t n_dim,
                                 const struct tb_params* p_params) {
  struct baoab* p_self = p_kernel->p_self;
  const double friction = tb_params_number(p_params, "friction", -1);
  p_self->kept = exp(-friction);
  if (!(friction > 0)) {
    return TB_STATUS_argument;
  }
  return tb_step_read(&p_self->step,
                      p_params,
                      "step_size",
                      n_dim,
                      (double*)(p_self + 1));
}

/* v_momentum[n_dim] and v_xi[n_dim] */
static size_t baoab_state_size(const struct tb_kernel* p_kernel, size_t n_dim) {
  (void)p_kernel;
  return 2 * n_dim * sizeof(double);
}

static double baoab_half(const struct tb_chain* p_chain, size_t j) {
  const struct baoab* p_self = p_chain->p_target->p_kernel->p_self;
  return 0.5 * sqrt(p_chain->step_scale * tb_step_at(&p_self->step, j));
}

/* B */
static void baoab_kick(struct tb_chain* p_chain) {
  double* v_momentum = p_chain->p_kernel_state;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_momentum[j] += baoab_half(p_chain, j) * p_chain->v_gradient[j];
  }
}

/* as if a step had just ended here */
static enum tb_status baoab_start(struct tb_chain* p_chain) {
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise],
                   p_chain->p_kernel_state,
                   p_chain->n_dim);
  baoab_kick(p_chain);
  return TB_STATUS_ok;
}

static enum tb_status baoab_step(struct tb_chain* p_chain) {
  const struct baoab* p_self = p_chain->p_target->p_kernel->p_self;
  const size_t n_dim = p_chain->n_dim;
  double* v_momentum = p_chain->p_kernel_state;
  double* v_xi = v_momentum + n_dim;
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

static void baoab_info(const struct tb_chain* p_chain,
                       struct tb_kernel_info* p_info) {
  const struct baoab* p_self = p_chain->p_target->p_kernel->p_self;
  p_info->step_size = p_chain->step_scale * p_self->step.v_size[0];
}

extern const struct tb_kernel_type tb_kernel_baoab;
const struct tb_kernel_type tb_kernel_baoab = {
    .name = "baoab",
    .citation = "Leimkuhler & Matthews (2013), AMRX",
    .flags = 0,
    .self_size = baoab_self_size,
    .init = baoab_init,
    .state_size = baoab_state_size,
    .start = baoab_start,
    .step = baoab_step,
    .info = baoab_info,
};
