/* Tails of beta distributions by a continued fraction. With q = 1 - p, a number
 * a > 0 and k > 0,
 *
 *   I_q(a, k) = c K_above,  I_p(k, a) = 1 - I_q(a, k) = c K_below
 *   c = q^a p^k / B(a, k)
 *
 * and the fraction K = 1 / (beta_0 + alpha_1 / (beta_1 + alpha_2 / ...)) of
 * DiDonato & Morris (1992), Significant digit computation of the incomplete
 * beta function ratios, ACM Transactions on Mathematical Software 18:360, of
 * which no term is a difference that cancels. In g = k q and r = 1 / k it has a
 * limit where k is infinite, q = r = 0, p = 1 and g = mu: incomplete gamma
 * functions, P(a, mu) above and, by Legendre's fraction, Q(a, mu) below, with
 * c = mu^a e^-mu / Gamma(a). Above, with l = a p - g and f_m = g + m q,
 *
 *   alpha_n = n (a + n - 1) / (a + 2n - 1)^2 f_{a + n - 1} f_{-n}
 *   beta_n = n + n / (a + 2n - 1) f_{-n} + (a + n) / (a + 2n + 1) v
 *   v = l + 1 + n + n p
 *
 * and below, with l = g - a p and s_m = 1 + m r,
 *
 *   alpha_n = n (a - n) s_{n - 1} s_{a + n - 1} p^2 / s_{2n - 1}^2
 *   beta_n = n + n (a - n) p r / s_{2n - 1} + s_n / s_{2n + 1} v
 *   v = l + 1 + n + n q
 *
 *   symbol       variable
 *   q, p, g, r   q, p, g, r of struct tb_beta, with their derivatives in two
 *                variables, of which a has none */
#ifndef TB_RESPONSES_BETA_TAIL_H
#define TB_RESPONSES_BETA_TAIL_H

#include "responses/dual.h"

#include <stdbool.h>

struct tb_beta {
  double a;
  struct tb_dual q, p, g, r;
};

/* Is the tail below the one that is not near 1? It is of this that the fraction
 * converges fast. */
bool tb_beta_is_below(const struct tb_beta* p);

/* log K of that tail */
struct tb_dual tb_beta_log_fraction(const struct tb_beta* p, bool is_below);

#endif
