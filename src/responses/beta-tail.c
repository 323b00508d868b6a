/* See beta-tail.h. */
#include "responses/beta-tail.h"

/* Beside the middle of a law it takes some multiple of the root of a; this many
 * are those of billions. */
enum { MOST_TERM = 200000 };

/* alpha_n and beta_n */
struct term {
  struct tb_dual alpha, beta;
};

static struct term
term_above(const struct tb_beta* p, struct tb_dual v, double n) {
  const double a = p->a, width = a + 2 * n - 1;
  const struct tb_dual far = tb_dual_sum(p->g, tb_dual_scaled(p->q, a + n - 1));
  const struct tb_dual near = tb_dual_sum(p->g, tb_dual_scaled(p->q, -n));
  struct term term = {
      .beta = tb_dual_plus(tb_dual_scaled(v, (a + n) / (a + 2 * n + 1)), n)};
  if (n > 0) {
    term.alpha = tb_dual_scaled(tb_dual_product(far, near),
                                n * (a + n - 1) / (width * width));
    term.beta = tb_dual_sum(term.beta, tb_dual_scaled(near, n / width));
  }
  return term;
}

/* 1 + m r */
static struct tb_dual one_and(const struct tb_beta* p, double m) {
  return tb_dual_plus(tb_dual_scaled(p->r, m), 1);
}

static struct term
term_below(const struct tb_beta* p, struct tb_dual v, double n) {
  const double a = p->a;
  const struct tb_dual share =
      tb_dual_product(one_and(p, n), tb_dual_inverse(one_and(p, 2 * n + 1)));
  struct term term = {.beta = tb_dual_plus(tb_dual_product(share, v), n)};
  if (n > 0) {
    const struct tb_dual part =
        tb_dual_product(p->p, tb_dual_inverse(one_and(p, 2 * n - 1)));
    const struct tb_dual rise =
        tb_dual_product(one_and(p, n - 1), one_and(p, a + n - 1));
    term.alpha =
        tb_dual_scaled(tb_dual_product(rise, tb_dual_product(part, part)),
                       n * (a - n));
    term.beta =
        tb_dual_sum(term.beta,
                    tb_dual_scaled(tb_dual_product(part, p->r), n * (a - n)));
  }
  return term;
}

static struct term
term_of(const struct tb_beta* p, bool is_below, struct tb_dual l, double n) {
  const struct tb_dual other = is_below ? p->q : p->p;
  const struct tb_dual v =
      tb_dual_plus(tb_dual_sum(l, tb_dual_scaled(other, n)), 1 + n);
  return is_below ? term_below(p, v, n) : term_above(p, v, n);
}

bool tb_beta_is_below(const struct tb_beta* p) {
  return p->g.value + p->q.value * (p->a + 2) > p->a + 1;
}

static bool is_small(struct tb_dual d, struct tb_dual sum) {
  const double eps = 4e-16;
  return fabs(d.value) <= eps * (1 + fabs(sum.value)) &&
         fabs(d.x) <= eps * (1 + fabs(sum.x)) &&
         fabs(d.y) <= eps * (1 + fabs(sum.y)) &&
         fabs(d.xx) <= eps * (1 + fabs(sum.xx)) &&
         fabs(d.xy) <= eps * (1 + fabs(sum.xy)) &&
         fabs(d.yy) <= eps * (1 + fabs(sum.yy));
}

/* By Lentz's method: the fraction is the product of the ratios of its
 * numerators times that of its denominators. */
struct tb_dual tb_beta_log_fraction(const struct tb_beta* p, bool is_below) {
  const struct tb_dual above =
      tb_dual_sum(tb_dual_scaled(p->p, p->a), tb_dual_scaled(p->g, -1));
  const struct tb_dual l = tb_dual_scaled(above, is_below ? -1 : 1);
  struct tb_dual top = term_of(p, is_below, l, 0).beta;
  struct tb_dual bottom = tb_dual_number(0), sum = tb_dual_log(top);
  for (int n = 1; n < MOST_TERM; ++n) {
    const struct term term = term_of(p, is_below, l, n);
    bottom = tb_dual_inverse(
        tb_dual_sum(term.beta, tb_dual_product(term.alpha, bottom)));
    top = tb_dual_sum(term.beta,
                      tb_dual_product(term.alpha, tb_dual_inverse(top)));
    const struct tb_dual d = tb_dual_log(tb_dual_product(top, bottom));
    sum = tb_dual_sum(sum, d);
    if (is_small(d, sum) || isnan(d.value)) {
      break;
    }
  }
  return tb_dual_scaled(sum, -1);
}
