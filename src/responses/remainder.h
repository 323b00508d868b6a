/* What the remainders of responses share: what is left of a function beyond its
 * second-order expansion, of which nothing is left when it is computed as it is
 * written. */
#ifndef TB_RESPONSES_REMAINDER_H
#define TB_RESPONSES_REMAINDER_H

#include "responses/lane.h"

#include <math.h>
#include <stddef.h>

/* beyond it, no e^|t| */
#define TB_REMAINDER_FAR 600.0

/* t -> e^t - 1, with |t| cut at TB_REMAINDER_FAR */
TB_INLINE void tb_lane_expm1(tb_lane* p_t) {
  const tb_lane t = *p_t;
  tb_lane rest = t, power;
  tb_lane_abs(&rest);
  rest = TB_LANE_SELECT(rest > TB_REMAINDER_FAR,
                        TB_LANE_ALL(TB_REMAINDER_FAR),
                        rest);
  tb_lane_one_minus_exp(&rest, &power);
  *p_t = TB_LANE_SELECT(t < 0.0, -rest, rest / power);
}

/* t -> e^t - 1 - t - t^2 / 2, likewise; where |t| is small its series to t^12
 */
TB_INLINE void tb_lane_exp_remainder(tb_lane* p_t) {
  const tb_lane t = *p_t;
  tb_lane direct = t, size = t;
  tb_lane_expm1(&direct);
  direct = direct - t * (1.0 + 0.5 * t);
  tb_lane series = 1.0 + t * (1.0 / 12);
  series = 1.0 + t * (1.0 / 11) * series;
  series = 1.0 + t * (1.0 / 10) * series;
  series = 1.0 + t * (1.0 / 9) * series;
  series = 1.0 + t * (1.0 / 8) * series;
  series = 1.0 + t * (1.0 / 7) * series;
  series = 1.0 + t * (1.0 / 6) * series;
  series = 1.0 + t * (1.0 / 5) * series;
  series = 1.0 + t * (1.0 / 4) * series;
  series = t * t * t * (1.0 / 6) * series;
  tb_lane_abs(&size);
  *p_t = TB_LANE_SELECT(size < 0.5, series, direct);
}

/* w e^eta (e^t - 1 - t - t^2 / 2), which may be infinite */
static inline double tb_exp_remainder(double w, double eta, double t) {
  if (w == 0) {
    return 0;
  }
  if (t > TB_REMAINDER_FAR) {
    return w * (exp(eta + t) - exp(eta) * (1 + t * (1 + 0.5 * t)));
  }
  if (fabs(t) >= 0.5) {
    return w * exp(eta) * (expm1(t) - t * (1 + 0.5 * t));
  }
  double series = 1;
  for (int k = 12; k > 3; --k) {
    series = 1 + t / k * series;
  }
  return w * exp(eta) * (t * t * t / 6 * series);
}

enum { TB_JET = 10 };

/* sum_{n >= 3} f_n t^n of f' = -slope, given the Taylor coefficients of the
 * slope, TB_JET of them */
static inline double tb_jet_remainder(const double* v_slope, double t) {
  double sum = 0;
  for (int n = TB_JET; n >= 3; --n) {
    sum = t * sum - v_slope[n - 1] / n;
  }
  return t * t * t * sum;
}

#endif
