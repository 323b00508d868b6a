/* Preconditioned SGLD (Li, Chen, Carlson & Carin 2016, AAAI, Algorithm 1):
 *
 *   V     <- alpha V + (1 - alpha) (g / N)^2
 *   G     =  1 / (epsilon + sqrt(V))
 *   theta <- theta + (h/2) G g + N(0, h G)
 *
 * coordinate by coordinate, V = 0 at the start. The paper averages the squares
 * of the mean gradient of the likelihood; g / N has the prior in it too. The
 * drift term Gamma of the paper, from the derivative of G, is left out, as in
 * the paper's own experiments: its size is of order 1 - alpha.
 *
 *   symbol   variable   shape        owner
 *   h        step       1 or n_dim   psgld
 *   alpha    decay                   psgld
 *   V        v_square   n_dim        chain's kernel state
 */
#include "kernels/kernel.h"

#include "base/clip.h"

#include <math.h>

struct psgld {
  double decay;
  double epsilon;
};

/* Parameters: "step_size" (1 or n_dim), "decay", "epsilon". */
static enum tb_status psgld_init(struct tb_kernel* p_kernel,
                                 const struct tb_params* p_params) {
  struct psgld* p_self = p_kernel->p_self;
  p_self->decay = tb_params_number(p_params, "decay", -1);
  p_self->epsilon = tb_params_number(p_params, "epsilon", -1);
  if (!(p_self->decay >= 0 && p_self->decay < 1 && p_self->epsilon > 0)) {
    return TB_STATUS_argument;
  }
  return TB_STATUS_ok;
}

/* zero when a run begins */
enum { AT_square, AT_xi, N_ARRAY };

static enum tb_status psgld_step(struct tb_chain* p_chain) {
  const struct psgld* p_self = tb_kernel_self(p_chain);
  const size_t n_dim = p_chain->n_dim;
  double* v_square = tb_kernel_array(p_chain, AT_square);
  double* v_xi = tb_kernel_array(p_chain, AT_xi);
  const double n_data = (double)tb_max(1, p_chain->p_target->p_model->n_data);
  const double temperature = p_chain->is_exploring ? 0 : 1;

  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_xi, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    const double g = p_chain->v_gradient[j];
    const double mean = g / n_data;
    v_square[j] =
        p_self->decay * v_square[j] + (1 - p_self->decay) * mean * mean;
    const double h =
        tb_kernel_step(p_chain, j) / (p_self->epsilon + sqrt(v_square[j]));
    p_chain->v_theta[j] += 0.5 * h * g + temperature * sqrt(h) * v_xi[j];
  }
  return tb_chain_gradient(p_chain,
                           p_chain->v_theta,
                           p_chain->v_gradient,
                           NULL);
}

extern const struct tb_kernel_type tb_kernel_psgld;
const struct tb_kernel_type tb_kernel_psgld = {
    .name = "psgld",
    .citation = "Li, Chen, Carlson & Carin (2016), AAAI",
    .n_self = sizeof(struct psgld),
    .step_sizes = "step_size",
    .init = psgld_init,
    .n_array = N_ARRAY,
    .step = psgld_step,
    .info = tb_kernel_step_info,
};
