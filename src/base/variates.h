/* Exact counts. */
#ifndef TB_BASE_VARIATES_H
#define TB_BASE_VARIATES_H

#include "base/rng.h"

/* Binomial(n, p) and Poisson(mean), whole numbers as doubles. Large ones are
 * brought down by order statistics, O(log n) gamma variates: Ahrens & Dieter
 * (1974), Computing 12:223; Devroye (1986), Non-Uniform Random Variate
 * Generation, sections X.3.4 and X.4.3. */
double tb_rng_binomial(struct tb_rng* p_rng, double n, double p);
double tb_rng_poisson(struct tb_rng* p_rng, double mean);

#endif
