#include "kernels/metropolis.h"

#include <string.h>

unsigned tb_metropolis_flags(const struct tb_params* p_params) {
  const double ratio = tb_params_number(p_params, "ratio", TB_TEST_full);
  return TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP |
         (ratio == TB_TEST_minibatch ? TB_KERNEL_LOSS : 0);
}

double tb_metropolis_decide(struct tb_chain* p_chain,
                            struct tb_proposal* p_proposal,
                            double log_ratio) {
  const size_t n_byte = p_chain->n_dim * sizeof(double);
  double probability = 0;
  p_chain->counts.n_propose += 1;
  if (tb_test_accepts(p_chain, p_proposal, log_ratio, &probability)) {
    memcpy(p_chain->v_theta, p_proposal->v_theta, n_byte);
    if (p_chain->p_target->p_test->look != NULL) {
      memcpy(p_chain->v_gradient, p_proposal->v_gradient, n_byte);
      p_chain->log_posterior = p_proposal->log_posterior;
    }
    p_chain->counts.n_accept += 1;
  }
  return probability;
}
