#include "kernels/metropolis.h"

#include <string.h>

unsigned tb_metropolis_flags(const struct tb_params* p_params) {
  const double ratio = tb_params_number(p_params, "ratio", TB_TEST_full);
  return TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP |
         (ratio == TB_TEST_minibatch ? TB_KERNEL_LOSS : 0);
}

/* Does the chain move? */
static bool decide(struct tb_chain* p_chain,
                   struct tb_proposal* p_proposal,
                   double log_ratio,
                   double* p_probability) {
  const size_t n_byte = p_chain->n_dim * sizeof(double);
  if (!tb_test_accepts(p_chain, p_proposal, log_ratio, p_probability)) {
    return false;
  }
  memcpy(p_chain->v_theta, p_proposal->v_theta, n_byte);
  if (p_chain->p_target->p_test->look != NULL) {
    memcpy(p_chain->v_gradient, p_proposal->v_gradient, n_byte);
    p_chain->log_posterior = p_proposal->log_posterior;
  }
  return true;
}

double tb_metropolis_decide(struct tb_chain* p_chain,
                            struct tb_proposal* p_proposal,
                            double log_ratio) {
  double probability = 0;
  p_chain->counts.n_propose += 1;
  if (decide(p_chain, p_proposal, log_ratio, &probability)) {
    p_chain->counts.n_accept += 1;
  }
  return probability;
}

enum tb_status tb_metropolis_move(struct tb_chain* p_chain,
                                  struct tb_proposal* p_proposal,
                                  bool* p_is_done) {
  *p_is_done = tb_test_has_moves(p_chain) &&
               tb_rng_unif(&p_chain->v_rng[TB_STREAM_noise]) <
                   p_chain->p_target->p_model->move_share;
  if (!*p_is_done) {
    return TB_STATUS_ok;
  }
  const double log_ratio = tb_test_move(p_chain, p_proposal->v_theta);
  double probability;
  const enum tb_status status = tb_test_look(p_chain, p_proposal);
  if (status == TB_STATUS_ok) {
    (void)decide(p_chain, p_proposal, log_ratio, &probability);
  }
  return status;
}
