/* The prior family: one coordinate.
 *
 *   kind             log p(t) + const          slope
 *   flat             0                         0
 *   normal(m, s)     -(t - m)^2 / (2 s^2)      -(t - m) / s^2
 *   laplace(m, s)    -|t - m| / s              -sign(t - m) / s, sign(0) = 0
 *   student(m, s)    -(n + 1)/2 log(1 + u^2/n)  -(n + 1) u / (n + u^2) / s
 *                    u = (t - m)/s, n degrees of freedom: its shape
 *   uniform(m, s)    0 between m - s, m + s    0
 *
 * of a coordinate t = log u of a positive u, Jacobian included:
 *
 *   log_flat         t                         1                 (u flat)
 *   log_exponential  t - e^t / s               1 - e^t / s       (E u = s)
 *   log_gamma(m, s)  t + (a - 1) log u - u/s   1 + [(a - 1)/u - 1/s] e^t
 *                    u = m + e^t, a its shape
 *
 * A new prior: its .c with a table at the end, one line in registry.c, one in
 * Makevars, and its entry and constructor in R/prior.R.
 */
#ifndef TB_PRIORS_TYPE_H
#define TB_PRIORS_TYPE_H

#include <stdbool.h>
#include <stddef.h>

/* curvature: minus the second derivative of the log density */
struct tb_prior_value {
  double log_density, slope, curvature;
};

struct tb_prior_type {
  const char* name;
  bool has_shape; /* above 0 */

  /* required: at x, with |x - m| rounded to sqrt((x - m)^2 + round^2) where
   * there is a kink, whose curvature counts only where it is rounded. A search
   * for the mode goes past bounds: the formula goes on beyond them. */
  struct tb_prior_value (
      *at)(double x, double location, double scale, double shape, double round);

  /* v, where the log density is -(x - m)^2 / (2 v) + const within the bounds,
   * INFINITY where it is flat there; NULL: it is neither */
  double (*variance)(double scale);

  /* where variance is NULL: P >= 0, some curvature for an expansion at x of
   * what is not quadratic; NULL: 0, the log density is linear */
  double (*quadratic)(double x, double location, double scale, double shape);

  /* Is the density 0 at x? NULL: nowhere. */
  bool (*is_outside)(double x, double location, double scale);
};

/* registry.c: every prior of the library, NULL-terminated. Models know theirs
 * by its place, the `code` in R/prior.R: new ones go to the end. */
extern const struct tb_prior_type* const tb_prior_registry[];
size_t tb_prior_count(void);

/* by its place, which may be any number: NULL where it is none */
const struct tb_prior_type* tb_prior_at_place(double place);

#endif
