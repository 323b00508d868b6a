/* Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014, ICML,
 * eq. 15):
 *
 *   v <- (1 - a) v + eta g + N(0, 2 eta (a - b)),   theta <- theta + v
 *
 * b = eta tau^2 / 2 is what gradient noise of variance tau^2 adds already, or 0
 * where it is not estimated; at most a is taken out.
 *
 * With `leapfrog` an iteration is that many steps after a fresh v ~ N(0, eta),
 * and the first kick of it is halved: with a whole one (the paper's Algorithm
 * 2) the drift of L steps is L (L + 1) / 2 instead of L^2 / 2 eta g, and the
 * stationary variance tends to L / (L + 1) of the true one as eta, a -> 0.
 *
 *   symbol  variable    shape        owner
 *   eta     step        1 or n_dim   sghmc
 *   a       friction                 sghmc
 *   L       n_leapfrog               sghmc
 *   v       v_momentum  n_dim        chain's kernel state
 *   tau^2   v_average   n_dim        chain's kernel state
 */
#include "kernels/kernel.h"
#include "kernels/noise.h"

#include <math.h>

struct sghmc {
  double friction;
  size_t n_leapfrog; /* 0: the momentum is never drawn afresh */
  bool estimates_noise;
  double smoothing;
};

/* arrays after the struct tb_noise of a chain */
enum { AT_momentum, AT_average, AT_xi, N_ARRAY };

/* Parameters: "step_size" (1 or n_dim), "friction", "leapfrog" (0: none),
 * "noise_estimate" (0/1), "noise_smoothing". */
static enum tb_status sghmc_init(struct tb_kernel* p_kernel,
                                 const struct tb_params* p_params) {
  struct sghmc* p_self = p_kernel->p_self;
  p_self->friction = tb_params_number(p_params, "friction", -1);
  p_self->estimates_noise =
      tb_params_number(p_params, "noise_estimate", 0) != 0;
  p_self->smoothing = tb_params_number(p_params, "noise_smoothing", 0.1);
  p_kernel->flags = p_self->estimates_noise ? TB_KERNEL_VARIANCE : 0;
  if (!(p_self->friction > 0 && p_self->friction <= 1) ||
      !tb_params_count(p_params,
                       "leapfrog",
                       TB_STEPS_MOST,
                       0,
                       &p_self->n_leapfrog)) {
    return TB_STATUS_argument;
  }
  return TB_STATUS_ok;
}

/* v ~ N(0, eta): its law where the dynamics are stationary */
static void sghmc_refresh(struct tb_chain* p_chain) {
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise],
                   v_momentum,
                   p_chain->n_dim);
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_momentum[j] *= sqrt(tb_kernel_step(p_chain, j));
  }
}

static enum tb_status sghmc_start(struct tb_chain* p_chain) {
  sghmc_refresh(p_chain);
  return TB_STATUS_ok;
}

/* One update of v and theta with `kick` of the gradient. */
static enum tb_status sghmc_move(struct tb_chain* p_chain, double kick) {
  const struct sghmc* p_self = tb_kernel_self(p_chain);
  struct tb_noise* p_noise = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_momentum = tb_kernel_array(p_chain, AT_momentum);
  double* v_average = tb_kernel_array(p_chain, AT_average);
  double* v_xi = tb_kernel_array(p_chain, AT_xi);
  const double a = p_self->friction;

  if (p_self->estimates_noise) {
    tb_noise_add(p_noise, p_self->smoothing, p_chain, v_average);
  }
  const double unbias = tb_noise_now(p_noise, p_chain);
  const double temperature = p_chain->is_exploring ? 0 : 1;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_xi, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    const double eta = tb_kernel_step(p_chain, j);
    const double b =
        p_self->estimates_noise ? 0.5 * eta * unbias * v_average[j] : 0;
    const double sd = temperature * sqrt(2 * eta * fmax(0, a - b));
    v_momentum[j] = (1 - a) * v_momentum[j] +
                    kick * eta * p_chain->v_gradient[j] + sd * v_xi[j];
    p_chain->v_theta[j] += v_momentum[j];
  }
  return tb_chain_gradient(p_chain,
                           p_chain->v_theta,
                           p_chain->v_gradient,
                           NULL);
}

static enum tb_status sghmc_step(struct tb_chain* p_chain) {
  const struct sghmc* p_self = tb_kernel_self(p_chain);
  if (p_self->n_leapfrog == 0) {
    return sghmc_move(p_chain, 1);
  }
  sghmc_refresh(p_chain);
  enum tb_status status = sghmc_move(p_chain, 0.5);
  for (size_t l = 1; status == TB_STATUS_ok && l < p_self->n_leapfrog; ++l) {
    status = sghmc_move(p_chain, 1);
  }
  return status;
}

/* b > a: the gradient's noise is more than the friction takes up */
static double
sghmc_beyond(const struct tb_chain* p_chain, size_t j, double variance) {
  const struct sghmc* p_self = tb_kernel_self(p_chain);
  const double eta = tb_kernel_step(p_chain, j);
  return 0.5 * eta * variance > p_self->friction;
}

extern const struct tb_kernel_type tb_kernel_sghmc;
const struct tb_kernel_type tb_kernel_sghmc = {
    .name = "sghmc",
    .citation = "Chen, Fox & Guestrin (2014), ICML",
    .n_self = sizeof(struct sghmc),
    .step_sizes = "step_size",
    .init = sghmc_init,
    .n_state = sizeof(struct tb_noise),
    .n_array = N_ARRAY,
    .start = sghmc_start,
    .step = sghmc_step,
    .beyond = sghmc_beyond,
    .info = tb_kernel_step_info,
};
