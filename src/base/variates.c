#include "base/variates.h"

#include <math.h>

enum { N_FEW = 16 };

/* The i-th smallest of n uniforms is beta(i, n + 1 - i); the others are uniform
 * on either side of it. */
double tb_rng_binomial(struct tb_rng* p_rng, double n, double p) {
  double count = 0;
  while (n > N_FEW) {
    const double i = floor((n + 1) / 2);
    const double below = tb_rng_gamma(p_rng, i);
    const double split = below / (below + tb_rng_gamma(p_rng, n + 1 - i));
    if (split <= p) {
      count += i;
      p = (p - split) / (1 - split);
      n -= i;
    } else {
      p /= split;
      n = i - 1;
    }
  }
  for (; n > 0; --n) {
    count += tb_rng_unif(p_rng) < p;
  }
  return count;
}

/* Events of a process of rate 1 before `mean`: the m-th is at a gamma(m), those
 * before it are uniform. */
double tb_rng_poisson(struct tb_rng* p_rng, double mean) {
  double count = 0;
  while (mean > N_FEW) {
    const double m = floor(0.875 * mean);
    const double at = tb_rng_gamma(p_rng, m);
    if (at > mean) {
      return count + tb_rng_binomial(p_rng, m - 1, mean / at);
    }
    count += m;
    mean -= at;
  }
  const double limit = exp(-mean);
  for (double product = tb_rng_unif(p_rng); product > limit;
       product *= tb_rng_unif(p_rng)) {
    ++count;
  }
  return count;
}
