/* What the Metropolis-adjusted kernels share: evaluate a proposal, accept or
 * reject it, count. The current state's gradient and log posterior are kept in
 * the chain, so that an iteration costs one new evaluation.
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
 * an estimator without a memory of its own.
 *
 * A proposal outside the support of the prior, or whose density or gradient is
 * not finite, is rejected and counted. */
#ifndef TB_KERNELS_METROPOLIS_H
#define TB_KERNELS_METROPOLIS_H

#include "kernels/kernel.h"

enum tb_ratio {
  TB_RATIO_full = 0,     /* log posterior of all rows: exact */
  TB_RATIO_minibatch = 1 /* of the proposal's minibatch: approximate */
};

struct tb_proposal {
  double* v_theta;    /* n_dim */
  double* v_gradient; /* n_dim, there */
  double log_posterior;
  bool is_possible;   /* inside the support, all of it finite */
};

/* Flags of a Metropolis kernel with the parameter "ratio" (enum tb_ratio). */
unsigned tb_metropolis_flags(const struct tb_params* p_params);

/* Gradient and log posterior where the chain starts. */
enum tb_status tb_metropolis_start(struct tb_chain* p_chain);

/* Before a proposal is drawn. With a ratio of minibatches: gradient and loss
 * here on a new one, which the estimator will draw again for the proposal. */
enum tb_status tb_metropolis_begin(struct tb_chain* p_chain);

/* Gradient and log posterior at v_theta. */
enum tb_status tb_metropolis_evaluate(struct tb_chain* p_chain,
                                      struct tb_proposal* p_proposal);

/* Accept with probability min(1, pi(tau) / pi(theta) exp(log_ratio)), log_ratio
 * that of the proposal densities, back over forth. Returns the probability. */
double tb_metropolis_decide(struct tb_chain* p_chain,
                            const struct tb_proposal* p_proposal,
                            double log_ratio);

#endif
