/* What the Metropolis-adjusted kernels share: propose, ask the estimator
 * whether the test accepts (gradients/test.h: begin, look, accepts), move,
 * count.
 *
 * With a minibatch estimator the chain's gradient belongs to the minibatch S it
 * was estimated from, and (theta, S) is what moves: a proposal tau is drawn
 * with S, the way back is judged with the fresh minibatch S' that the estimator
 * drew at tau, and both move together. That is a Metropolis step for
 *
 *   pi(theta) P(S | theta),  proposal q_S(tau | theta) P(S' | tau),
 *
 * in which P cancels, whatever the scheme: with the full log posterior in the
 * ratio it is exact and costs one minibatch gradient and a pass for the loss.
 * (One minibatch for both ways is exact too, costs a second gradient, and
 * doubles the variance that the gradient noise gives the log ratio.) It needs
 * an estimator without a memory of its own. */
#ifndef TB_KERNELS_METROPOLIS_H
#define TB_KERNELS_METROPOLIS_H

#include "kernels/kernel.h"

/* Flags of a Metropolis kernel with the parameter "ratio" (enum tb_test). */
unsigned tb_metropolis_flags(const struct tb_params* p_params);

/* Move to the proposal if the test accepts: with probability min(1, pi(tau) /
 * pi(theta) exp(log_ratio)), log_ratio that of the proposal densities, back
 * over forth. Returns the probability. */
double tb_metropolis_decide(struct tb_chain* p_chain,
                            struct tb_proposal* p_proposal,
                            double log_ratio);

/* A move of the model's own, in a share of the steps of models that have them:
 * *p_is_done. It is no step of the kernel's, and is not counted as one. */
enum tb_status tb_metropolis_move(struct tb_chain* p_chain,
                                  struct tb_proposal* p_proposal,
                                  bool* p_is_done);

#endif
