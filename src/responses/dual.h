/* Functions of two variables x and y, carried along with their first and second
 * derivatives: what is computed of numbers is computed of these by the rules of
 * differentiation, to the same digits. Inverses and logarithms go by relative
 * derivatives, which neither overflow nor vanish where squares would.
 *
 * Griewank & Walther (2008), Evaluating Derivatives, chapters 2 and 3. */
#ifndef TB_RESPONSES_DUAL_H
#define TB_RESPONSES_DUAL_H

#include <math.h>

struct tb_dual {
  double value, x, y, xx, xy, yy;
};

static inline struct tb_dual tb_dual_number(double value) {
  return (struct tb_dual){.value = value};
}

/* a + c */
static inline struct tb_dual tb_dual_plus(struct tb_dual a, double c) {
  a.value += c;
  return a;
}

/* c a */
static inline struct tb_dual tb_dual_scaled(struct tb_dual a, double c) {
  return (struct tb_dual){c * a.value,
                          c * a.x,
                          c * a.y,
                          c * a.xx,
                          c * a.xy,
                          c * a.yy};
}

static inline struct tb_dual tb_dual_sum(struct tb_dual a, struct tb_dual b) {
  return (struct tb_dual){a.value + b.value,
                          a.x + b.x,
                          a.y + b.y,
                          a.xx + b.xx,
                          a.xy + b.xy,
                          a.yy + b.yy};
}

static inline struct tb_dual tb_dual_product(struct tb_dual a,
                                             struct tb_dual b) {
  return (struct tb_dual){a.value * b.value,
                          a.x * b.value + a.value * b.x,
                          a.y * b.value + a.value * b.y,
                          a.xx * b.value + 2 * a.x * b.x + a.value * b.xx,
                          a.xy * b.value + a.x * b.y + a.y * b.x +
                              a.value * b.xy,
                          a.yy * b.value + 2 * a.y * b.y + a.value * b.yy};
}

static inline struct tb_dual tb_dual_inverse(struct tb_dual a) {
  const double c = 1 / a.value, x = c * a.x, y = c * a.y;
  return (struct tb_dual){c,
                          -c * x,
                          -c * y,
                          c * (2 * x * x - c * a.xx),
                          c * (2 * x * y - c * a.xy),
                          c * (2 * y * y - c * a.yy)};
}

/* of what is above 0 */
static inline struct tb_dual tb_dual_log(struct tb_dual a) {
  const double c = 1 / a.value, x = c * a.x, y = c * a.y;
  return (struct tb_dual){log(a.value),
                          x,
                          y,
                          c * a.xx - x * x,
                          c * a.xy - x * y,
                          c * a.yy - y * y};
}

static inline struct tb_dual tb_dual_exp(struct tb_dual a) {
  const double c = exp(a.value);
  return (struct tb_dual){c,
                          c * a.x,
                          c * a.y,
                          c * (a.xx + a.x * a.x),
                          c * (a.xy + a.x * a.y),
                          c * (a.yy + a.y * a.y)};
}

/* log(1 + a) of a > -1, also where a is small */
static inline struct tb_dual tb_dual_log1p(struct tb_dual a) {
  struct tb_dual out = tb_dual_log(tb_dual_plus(a, 1));
  out.value = log1p(a.value);
  return out;
}

/* log(e^a - e^b), a > b. Of a b that is far below no more than a; likewise
 * where both are so large that rounding took what they are apart. */
static inline struct tb_dual tb_dual_log_less(struct tb_dual a,
                                              struct tb_dual b) {
  const double gap = a.value - b.value, w = 1 / expm1(gap);
  if (!(w > 0) || !(gap > 1e-15 * fabs(a.value))) {
    return a;
  }
  const double x = a.x - b.x, y = a.y - b.y, bend = w * (1 + w);
  const double rest = gap < 0.7 ? log(-expm1(-gap)) : log1p(-exp(-gap));
  return (struct tb_dual){a.value + rest,
                          a.x + w * x,
                          a.y + w * y,
                          a.xx + w * (a.xx - b.xx) - bend * x * x,
                          a.xy + w * (a.xy - b.xy) - bend * x * y,
                          a.yy + w * (a.yy - b.yy) - bend * y * y};
}

#endif
