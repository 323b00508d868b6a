/* Arithmetic on lanes: four doubles where the compiler has vectors, one where
 * it has none, so that a formula is written once. Made for loops over arrays in
 * functions with TB_CLONES; see base/vector.h and base/vmath.h. */
#ifndef TB_RESPONSES_LANE_H
#define TB_RESPONSES_LANE_H

#include "base/vmath.h"

#include <math.h>
#include <stddef.h>

#ifdef TB_VECTOR

enum { TB_LANE = 4 };
typedef tb_v4d tb_lane;

/* mask ? a : b; masks are comparisons of lanes */
#define TB_LANE_SELECT(mask, a, b) TB_V_SELECT((mask), (a), (b))
#define TB_LANE_ALL(x)             TB_V_ALL(x)

/* x -> |x| */
TB_INLINE void tb_lane_abs(tb_lane* p_x) {
  *p_x = (tb_v4d)((tb_v4u)*p_x & UINT64_C(0x7fffffffffffffff));
}

/* x -> 1 - e^-x, 0 <= x <= 700, and e^-x */
TB_INLINE void tb_lane_one_minus_exp(tb_lane* p_x, tb_lane* p_exp) {
  tb_v4d p = -*p_x, bits;
  tb_v4_expm1_reduced(&p, &bits);
  const tb_v4d scale = (tb_v4d)(((tb_v4u)bits + 1023u) << 52);
  *p_x = -(scale * p + (scale - 1.0));
  *p_exp = scale * (1.0 + p);
}

#else

enum { TB_LANE = 1 };
typedef double tb_lane;

#define TB_LANE_SELECT(mask, a, b) ((mask) ? (a) : (b))
#define TB_LANE_ALL(x)             (x)

TB_INLINE void tb_lane_abs(tb_lane* p_x) {
  *p_x = fabs(*p_x);
}

TB_INLINE void tb_lane_one_minus_exp(tb_lane* p_x, tb_lane* p_exp) {
  const double x = *p_x;
  *p_x = -expm1(-x);
  *p_exp = exp(-x);
}

TB_INLINE void tb_scalar_log1p_unit(double* p_x) {
  *p_x = log1p(*p_x);
}
#define tb_v4_log1p_unit           tb_scalar_log1p_unit

#endif

/* Numbers k, k + 1, .. of n; zeros beyond the last. A number's result does not
 * depend on its place in the array. */
TB_INLINE void tb_lane_load(const double* v, size_t k, size_t n, tb_lane* p_x) {
  const size_t n_here = n - k < TB_LANE ? n - k : TB_LANE;
  *p_x = TB_LANE_ALL(0.0);
  memcpy(p_x, v + k, n_here * sizeof(double));
}

/* the same into an array; NULL: not wanted */
TB_INLINE void
tb_lane_store(const tb_lane* p_x, size_t k, size_t n, double* v) {
  const size_t n_here = n - k < TB_LANE ? n - k : TB_LANE;
  if (v != NULL) {
    memcpy(v + k, p_x, n_here * sizeof(double));
  }
}

#endif
