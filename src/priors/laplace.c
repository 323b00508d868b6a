/* laplace(m, s): -|t - m| / s, whose slope at m is taken as 0 */
#include "priors/type.h"

#include <math.h>

static double sign_of(double x) {
  return (double)(x > 0) - (double)(x < 0);
}

static struct tb_prior_value laplace_at(double x,
                                        double location,
                                        double scale,
                                        double shape,
                                        double round) {
  (void)shape;
  const double t = x - location;
  if (!(round > 0)) {
    return (struct tb_prior_value){-fabs(t) / scale, -sign_of(t) / scale, 0};
  }
  const double length = sqrt(t * t + round * round);
  return (struct tb_prior_value){-length / scale,
                                 -t / (length * scale),
                                 round * round /
                                     (length * length * length * scale)};
}

/* of the parabola that meets it four scales away */
static double
laplace_quadratic(double x, double location, double scale, double shape) {
  (void)location;
  (void)shape;
  (void)x;
  return 1 / (2 * scale * scale);
}

const struct tb_prior_type tb_prior_laplace = {
    .name = "laplace",
    .at = laplace_at,
    .quadratic = laplace_quadratic,
};
