/* Dual averaging of a kernel's scale in warmup (Hoffman & Gelman 2014, JMLR 15,
 * section 3.2.1): log f follows the running mean of (target - acceptance) and
 * is then frozen at its average. f multiplies what the user gave: a state of
 * zeros is f = 1, and a kernel that does not adapt uses exactly that. */
#ifndef TB_KERNELS_ADAPT_H
#define TB_KERNELS_ADAPT_H

#include "kernels/kernel.h"

#include <math.h>

/* Roberts & Rosenthal (1998), JRSS B 60:255 */
#define TB_TARGET_LANGEVIN 0.574
/* Hoffman & Gelman (2014) */
#define TB_TARGET_HMC 0.8

/* What the state of a kernel with a target begins with. */
struct tb_adapt {
  double log_factor;  /* in use */
  double log_average; /* the average to freeze at */
  double error;       /* running mean of (target - acceptance) */
  double n_adapted;
};

static inline double tb_adapt_factor(const struct tb_chain* p_chain) {
  const struct tb_adapt* p_adapt = p_chain->p_kernel_state;
  return exp(p_adapt->log_factor);
}

/* After a proposal that was accepted with this probability. */
static inline void tb_adapt_add(const struct tb_chain* p_chain,
                                double acceptance) {
  const struct tb_kernel* p_kernel = p_chain->p_target->p_kernel;
  struct tb_adapt* p_adapt = p_chain->p_kernel_state;
  const double gamma = 0.05, t0 = 10, kappa = 0.75;
  const double target = p_kernel->type->target;
  if (!p_kernel->adapts) {
    return;
  }
  if (!p_chain->is_warmup) {
    p_adapt->log_factor = p_adapt->log_average;
    return;
  }
  const double t = p_adapt->n_adapted += 1;
  p_adapt->error += ((target - acceptance) - p_adapt->error) / (t + t0);
  /* shrinks towards f = 2, as Hoffman & Gelman's mu = log(10 eps) does: their
   * factor is for a step found by doubling, ours starts near the optimum */
  p_adapt->log_factor = log(2) - sqrt(t) / gamma * p_adapt->error;
  const double weight = pow(t, -kappa);
  p_adapt->log_average =
      weight * p_adapt->log_factor + (1 - weight) * p_adapt->log_average;
}

#endif
