/* Tails of the standard normal distribution, to full relative accuracy however
 * far out. With t >= 0,
 *
 *   h(t) = phi(t) / Phi(-t) = t + u(t)            the hazard, 1 / Mills' ratio
 *   u(t) = P((t - 4) / (t + 4)) / (t + 3/2)
 *
 * P is a polynomial of degree 28, the Chebyshev series of u(t)(t + 3/2) in
 * (t - 4)/(t + 4) on 0 <= t < infinity, cut where its terms fall below 1e-17:
 * the mapping that M. M. Shepherd and J. G. Laframboise (1981), Chebyshev
 * approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity, Mathematics
 * of Computation 36:249, take for the same function. It is u that is expanded,
 * not h: in the curvature h(t) u(t) of log Phi(-t) nothing cancels, and all
 * terms are positive. Coefficients from 60 digits (the hazard by its continued
 * fraction beyond 60); u is within 3 ulp.
 *
 * A lane is four doubles, or one where there are no vectors: see base/vmath.h.
 */
#ifndef TB_RESPONSES_NORMAL_TAILS_H
#define TB_RESPONSES_NORMAL_TAILS_H

#include "responses/lane.h"

/* t -> u(t), t >= 0 */
TB_INLINE void tb_lane_hazard_excess(tb_lane* p_t) {
  const tb_lane t = *p_t;
  const tb_lane q = (t - 4.0) / (t + 4.0);
  const tb_lane q2 = q * q, q4 = q2 * q2;
  /* pairs first: a Horner chain would wait for its own results */
#define PAIR(a, b)       (q * (b) + (a))
#define QUAD(a, b, c, d) (q2 * PAIR(c, d) + PAIR(a, b))
  tb_lane p = q4 * 0x1.8e902899e2171p-28 + QUAD(0x1.946b3a4e11e9bp-22,
                                                -0x1.eb8b50f39fc44p-27,
                                                -0x1.1606f24ea8215p-24,
                                                0x1.0acfa74952babp-28);
  p = q4 * p + QUAD(0x1.5ba28237e1b9ep-18,
                    0x1.d7090bf5a9e19p-20,
                    -0x1.a330c9d893f40p-20,
                    -0x1.2b2a8ff338256p-23);
  p = q4 * p + QUAD(0x1.a618855f947dfp-16,
                    0x1.a68a365602de2p-15,
                    -0x1.d0a1b37167c84p-17,
                    -0x1.6dd8f6c367b99p-17);
  p = q4 * p + QUAD(-0x1.81b6379143e76p-12,
                    0x1.51565533ef17dp-11,
                    0x1.30475b631047ap-17,
                    -0x1.965495761fa90p-13);
  p = q4 * p + QUAD(-0x1.3a1d9823a2ef9p-7,
                    0x1.0ac873c69446fp-8,
                    0x1.246f4b3f83d64p-9,
                    -0x1.de9a7f7a0ece9p-10);
  p = q4 * p + QUAD(-0x1.2ed13558e041cp-4,
                    -0x1.48123fa9e07dfp-6,
                    0x1.089229e8812bcp-5,
                    -0x1.20dc0dd631176p-8);
  p = q4 * p + QUAD(0x1.3da7a4de4b532p+0,
                    -0x1.fd6f73a52067bp-3,
                    -0x1.7d4fca863bc92p-4,
                    0x1.605149d6e9146p-3);
#undef QUAD
#undef PAIR
  *p_t = p / (t + 1.5);
}

/* What of both tails at distance t from the centre the functions of a probit
 * are made of. Where t^2 / 2 is large, far is as accurate as e^(-t^2/2) of a
 * rounded exponent: to t^2 / 2 ulp. */
struct tb_normal_tails {
  tb_lane excess; /* u(t) */
  tb_lane hazard; /* h(t) = phi(t) / Phi(-t) */
  tb_lane far;    /* Phi(-t) */
  tb_lane near;   /* phi(t) / Phi(t) */
};

TB_INLINE void tb_lane_normal_tails(const tb_lane* p_t,
                                    struct tb_normal_tails* p) {
  const tb_lane t = *p_t;
  tb_lane density = t * t * -0.5;
  tb_v4_exp(&density);
  density = density * 0.3989422804014326779; /* 1 / sqrt(2 pi) */
  p->excess = t;
  tb_lane_hazard_excess(&p->excess);
  p->hazard = t + p->excess;
  p->far = density / p->hazard;
  p->near = density / (1.0 - p->far);
}

/* log Phi(-t) and log Phi(t) */
TB_INLINE void tb_lane_normal_logs(const tb_lane* p_t,
                                   const struct tb_normal_tails* p,
                                   tb_lane* p_far,
                                   tb_lane* p_near) {
  tb_lane log_hazard = p->hazard, log_near = p->far / (1.0 - p->far);
  tb_v4_log(&log_hazard);
  tb_v4_log1p_unit(&log_near);
  *p_far = *p_t * *p_t * -0.5 - 0.91893853320467274178 - log_hazard;
  *p_near = -log_near;
}

#endif
