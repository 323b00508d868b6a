/* tau^2, the variance of the gradient noise, as kernels see it: an exponential
 * average of the minibatch variances s^2 with the bias correction of ADAM,
 *
 *   t2 <- (1 - beta) t2 + beta s^2,   tau^2 = t2 / (1 - (1 - beta)^m)
 *
 * (Mauri & Zanella 2024, Algorithm 3; variances are averaged and then rooted,
 * where the authors' program averages roots). A minibatch of one row gives no
 * s^2: the average is carried forward.
 *
 * An estimate from all rows (SVRG where its reference moves, an adaptive
 * minibatch at its cap) has no noise: its own step is corrected for none, and
 * the average, which is about minibatches, is carried forward past it.
 *
 * With adaptive sizes it is s^2 that is averaged and not n s^2, to be divided
 * by the next n. The size grows as ||theta - mode||^2 does, and so does the
 * variance of the rows of the control variates it goes with: s^2 is level
 * where n s^2 is not, and E[n s^2] E[1/n] > E[s^2] takes out too much. (A
 * normal posterior, h = 0.5 / 0.3, d = 1 / 5: the stationary variance is 0.67 /
 * 0.91 of the noise-free one with n s^2, 0.99 / 1.00 with s^2.) */
#ifndef TB_KERNELS_NOISE_H
#define TB_KERNELS_NOISE_H

#include "chains/chain.h"

/* Part of a kernel's state; v_average is n_dim doubles behind it. */
struct tb_noise {
  double is_started;
  double remaining; /* (1 - beta)^m */
};

static inline void tb_noise_add(struct tb_noise* p_noise,
                                double beta,
                                const struct tb_chain* p_chain,
                                double* v_average) {
  if (!p_chain->has_variance || p_chain->is_exact) {
    return;
  }
  p_noise->remaining = p_noise->is_started ? p_noise->remaining : 1;
  p_noise->is_started = 1;
  p_noise->remaining *= 1 - beta;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_average[j] = (1 - beta) * v_average[j] + beta * p_chain->v_variance[j];
  }
}

/* tau_j^2 of minibatches = tb_noise_unbias() v_average[j]; 0 before the first
 */
static inline double tb_noise_unbias(const struct tb_noise* p_noise) {
  return p_noise->is_started ? 1 / (1 - p_noise->remaining) : 0;
}

/* The same for tau_j^2 of the gradient that the chain has now. */
static inline double tb_noise_now(const struct tb_noise* p_noise,
                                  const struct tb_chain* p_chain) {
  return p_chain->is_exact ? 0 : tb_noise_unbias(p_noise);
}

#endif
