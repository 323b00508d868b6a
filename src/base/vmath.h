/* exp, log(1 + exp), the logistic function and tanh of arrays. The reductions
 * are those of W. J. Cody and W. Waite (1980), Software manual for the
 * elementary functions.
 *
 *   exp(x)        x = k log 2 + r, |r| <= log(2) / 2; a minimax polynomial of
 *                 degree 11 (relative error below 2^-56, from Remez's algorithm
 *                 on 1 + r + r^2 q(r)), then 2^k in two factors, so that
 *                 subnormal results are rounded once
 *   log1p(a)      0 <= a <= 1: 2 atanh(s), s = a / (2 + a), from sqrt(2) - 1
 *                 on log(2) + 2 atanh((a - 1) / (a + 3)); |s| < 0.172, series
 *                 to s^21
 *   logistic(x)   with a = exp(-|x|): 1 / (1 + a) or a / (1 + a), so that
 *                 small results keep their relative accuracy
 *   softplus(x)   max(x, 0) + log1p(a)
 *   log(x)        x = 2^k (1 + a), 0 <= a < 1: k log 2 + log1p(a), for normal
 *                 positive numbers only
 *   tanh(x)       |u| / (2 + u), u = exp(-2|x|) - 1 = 2^k p(r) + (2^k - 1),
 *                 p(r) = exp(r) - 1, so that small results keep their relative
 *                 accuracy, and the sign of x
 *
 * Errors are below 2 ulp for exp and 4 ulp for the others, with or without
 * fused multiply-adds (core-check: at most 1.0, 2.3, 2.6 and 2.5 against long
 * double); those of log are absolute, 4 ulp of max(1, |log x|). +-Inf and
 * overflow give the limits, NaN stays NaN. v_out may be v_x.
 *
 * Meant to be called from TB_CLONES functions; see base/vector.h. */
#ifndef TB_BASE_VMATH_H
#define TB_BASE_VMATH_H

#include "base/vector.h"

#include <math.h>
#include <string.h>

#ifdef TB_VECTOR

/* mask ? a : b, lane by lane (C has no ?: for vectors) */
#define TB_V_SELECT(mask, a, b)                                                \
  ((tb_v4d)(((mask) & (tb_v4i)(a)) | (~(mask) & (tb_v4i)(b))))
#define TB_V_ALL(x) ((tb_v4d){(x), (x), (x), (x)})
/* adding it rounds to an integer, which is then in the low bits */
#define TB_V_ROUND 0x1.8p52

/* x -> exp(r) - 1, with x = k log 2 + r; *p_bits = k + TB_V_ROUND, which has k
 * in its low bits */
TB_INLINE void tb_v4_expm1_reduced(tb_v4d* p_x, tb_v4d* p_bits) {
  const tb_v4d x = *p_x;
  *p_bits = x * 0x1.71547652b82fep0 + TB_V_ROUND;
  const tb_v4d k = *p_bits - TB_V_ROUND;
  /* log 2 in two parts; the first has 32 bits, so that k times it is exact */
  const tb_v4d r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;

  /* pairs first: a Horner chain would wait for its own results */
  const tb_v4d r2 = r * r, r4 = r2 * r2;
  const tb_v4d c2 = r * 0x1.55555555554f9p-3 + 0x1.000000000000ap-1;
  const tb_v4d c4 = r * 0x1.1111111127d6bp-7 + 0x1.555555555089dp-5;
  const tb_v4d c6 = r * 0x1.a01a0129d2d28p-13 + 0x1.6c16c184239eep-10;
  const tb_v4d c8 = r * 0x1.71df2678bed42p-19 + 0x1.a0199a1ca46bcp-16;
  const tb_v4d c10 = r * 0x1.ad7da0b40fd0fp-26 + 0x1.28ad6489f02f5p-22;
  const tb_v4d low = r2 * c4 + c2;
  const tb_v4d high = r2 * c8 + c6;
  *p_x = r + r2 * (low + r4 * (high + r4 * c10));
}

TB_INLINE void tb_v4_exp(tb_v4d* p_x) {
  tb_v4d x = *p_x, bits;
  /* beyond these the result is Inf and 0; NaN fails both comparisons */
  x = TB_V_SELECT(x > 711.0, TB_V_ALL(711.0), x);
  x = TB_V_SELECT(x < -747.0, TB_V_ALL(-747.0), x);
  tb_v4_expm1_reduced(&x, &bits);

  const tb_v4d k = bits - TB_V_ROUND;
  const tb_v4d half = k * 0.5 + TB_V_ROUND;
  const tb_v4d rest = (k - (half - TB_V_ROUND)) + TB_V_ROUND;
  const tb_v4d scale_half = (tb_v4d)(((tb_v4u)half + 1023u) << 52);
  const tb_v4d scale_rest = (tb_v4d)(((tb_v4u)rest + 1023u) << 52);
  *p_x = (1.0 + x) * scale_half * scale_rest;
}

/* x -> exp(x), kept within exp(-708) and exp(708): for comparisons that nothing
 * beyond these can change */
TB_INLINE void tb_v4_exp_bounded(tb_v4d* p_x) {
  tb_v4d x = *p_x, bits;
  x = TB_V_SELECT(x > 708.0, TB_V_ALL(708.0), x);
  x = TB_V_SELECT(x < -708.0, TB_V_ALL(-708.0), x);
  tb_v4_expm1_reduced(&x, &bits);
  *p_x = (1.0 + x) * (tb_v4d)(((tb_v4u)bits + 1023u) << 52);
}

/* x -> exp(-|x|), which cannot overflow: 2^k is 2^(k + 64) 2^-64 */
TB_INLINE void tb_v4_exp_negative(tb_v4d* p_x) {
  tb_v4d x = (tb_v4d)((tb_v4u)*p_x | UINT64_C(0x8000000000000000)), bits;
  x = TB_V_SELECT(x < -747.0, TB_V_ALL(-747.0), x);
  tb_v4_expm1_reduced(&x, &bits);
  const tb_v4d scale = (tb_v4d)(((tb_v4u)bits + (1023u + 64)) << 52);
  *p_x = (1.0 + x) * scale * 0x1p-64;
}

TB_INLINE void tb_v4_tanh(tb_v4d* p_x) {
  const uint64_t magnitude = UINT64_C(0x7fffffffffffffff);
  const tb_v4u sign = (tb_v4u)*p_x & ~magnitude;
  tb_v4d x = (tb_v4d)((tb_v4u)*p_x & magnitude), bits;
  /* beyond it the result is 1, and 2^k stays a normal number */
  x = TB_V_SELECT(x > 20.0, TB_V_ALL(20.0), x) * -2.0;
  tb_v4_expm1_reduced(&x, &bits);
  const tb_v4d scale = (tb_v4d)(((tb_v4u)bits + 1023u) << 52);
  const tb_v4d u = scale * x + (scale - 1.0);
  const tb_v4d size = u / (2.0 + u); /* its sign is not used */
  *p_x = (tb_v4d)(((tb_v4u)size & magnitude) | sign);
}

/* x -> log1p(x), 0 <= x <= 1 */
TB_INLINE void tb_v4_log1p_unit(tb_v4d* p_x) {
  const tb_v4d a = *p_x;
  const tb_v4i large = a > 0.41421356237309503;
  /* twice the numerator: 2 a is exact where a / 2 would be subnormal */
  const tb_v4d top = TB_V_SELECT(large, (a - 1.0) + (a - 1.0), a + a);
  const tb_v4d bottom = TB_V_SELECT(large, a + 3.0, a + 2.0);
  const tb_v4d s2 = top / bottom; /* 2 s */
  const tb_v4d z = 0.25 * s2 * s2, z2 = z * z, z4 = z2 * z2;

  /* z (1/3 + z/5 + ... + z^9/21) */
  const tb_v4d c0 = z * (1.0 / 5) + 1.0 / 3;
  const tb_v4d c2 = z * (1.0 / 9) + 1.0 / 7;
  const tb_v4d c4 = z * (1.0 / 13) + 1.0 / 11;
  const tb_v4d c6 = z * (1.0 / 17) + 1.0 / 15;
  const tb_v4d c8 = z * (1.0 / 21) + 1.0 / 19;
  const tb_v4d series = z * ((z2 * c2 + c0) + z4 * ((z2 * c6 + c4) + z4 * c8));

  const tb_v4d shift =
      TB_V_SELECT(large, TB_V_ALL(0x1.62e42fefa39efp-1), TB_V_ALL(0.0));
  *p_x = shift + (s2 + s2 * series);
}

TB_INLINE void tb_v4_logistic(tb_v4d* p_x) {
  const tb_v4d x = *p_x;
  const tb_v4i positive = x >= 0.0;
  tb_v4d a = x;
  tb_v4_exp_negative(&a);
  *p_x = TB_V_SELECT(positive, TB_V_ALL(1.0), a) / (1.0 + a);
}

TB_INLINE void tb_v4_softplus(tb_v4d* p_x) {
  const tb_v4d x = *p_x;
  const tb_v4i positive = x > 0.0;
  tb_v4d a = x;
  tb_v4_exp_negative(&a);
  tb_v4_log1p_unit(&a);
  *p_x = TB_V_SELECT(positive, x, TB_V_ALL(0.0)) + a;
}

/* finite x >= DBL_MIN */
TB_INLINE void tb_v4_log(tb_v4d* p_x) {
  const tb_v4u bits = (tb_v4u)*p_x;
  /* the exponent as a number: its bits below those of 2^52 */
  const tb_v4u biased = (bits >> 52) | UINT64_C(0x4330000000000000);
  const tb_v4d k = (tb_v4d)biased - (0x1p52 + 1023.0);
  const tb_v4u mantissa =
      (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
  tb_v4d a = (tb_v4d)mantissa - 1.0;
  tb_v4_log1p_unit(&a);
  *p_x = k * 0x1.62e42fefa39efp-1 + a;
}

/* The last n % 4 numbers go through a padded vector, so that a number's result
 * does not depend on its place in the array. */
#define TB_V_OVER_ARRAY(map)                                                   \
  size_t k = 0;                                                                \
  for (; k + 4 <= n; k += 4) {                                                 \
    tb_v4d x = *(const tb_v4d*)(v_x + k);                                      \
    map(&x);                                                                   \
    *(tb_v4d*)(v_out + k) = x;                                                 \
  }                                                                            \
  if (k < n) {                                                                 \
    tb_v4d x = TB_V_ALL(0.0);                                                  \
    memcpy(&x, v_x + k, (n - k) * sizeof(double));                             \
    map(&x);                                                                   \
    memcpy(v_out + k, &x, (n - k) * sizeof(double));                           \
  }

#else /* no vector extensions: the C library's */

TB_INLINE void tb_scalar_exp(double* p_x) {
  *p_x = exp(*p_x);
}

TB_INLINE void tb_scalar_exp_bounded(double* p_x) {
  const double x = *p_x;
  *p_x = exp(x > 708 ? 708 : x < -708 ? -708 : x);
}

TB_INLINE void tb_scalar_logistic(double* p_x) {
  const double x = *p_x, a = exp(-fabs(x));
  *p_x = (x >= 0 ? 1 : a) / (1 + a);
}

TB_INLINE void tb_scalar_softplus(double* p_x) {
  const double x = *p_x;
  *p_x = (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

TB_INLINE void tb_scalar_log(double* p_x) {
  *p_x = log(*p_x);
}

TB_INLINE void tb_scalar_tanh(double* p_x) {
  *p_x = tanh(*p_x);
}

#define tb_v4_exp         tb_scalar_exp
#define tb_v4_exp_bounded tb_scalar_exp_bounded
#define tb_v4_log         tb_scalar_log
#define tb_v4_logistic    tb_scalar_logistic
#define tb_v4_softplus    tb_scalar_softplus
#define tb_v4_tanh        tb_scalar_tanh

#define TB_V_OVER_ARRAY(map)                                                   \
  for (size_t k = 0; k < n; ++k) {                                             \
    double x = v_x[k];                                                         \
    map(&x);                                                                   \
    v_out[k] = x;                                                              \
  }

#endif

TB_INLINE void tb_vexp(const double* v_x, double* v_out, size_t n){
    TB_V_OVER_ARRAY(tb_v4_exp)}

/* log(x), finite x >= DBL_MIN */
TB_INLINE void tb_vlog(const double* v_x, double* v_out, size_t n){
    TB_V_OVER_ARRAY(tb_v4_log)}

/* 1 / (1 + exp(-x)) */
TB_INLINE void tb_vlogistic(const double* v_x, double* v_out, size_t n){
    TB_V_OVER_ARRAY(tb_v4_logistic)}

TB_INLINE void tb_vtanh(const double* v_x, double* v_out, size_t n){
    TB_V_OVER_ARRAY(tb_v4_tanh)}

/* log(1 + exp(x)) */
TB_INLINE void tb_vsoftplus(const double* v_x, double* v_out, size_t n) {
  TB_V_OVER_ARRAY(tb_v4_softplus)
}

#endif
