/* uniform(m, s), of the interval [m - s, m + s]: 0. The density is 0 beyond it,
 * which only is_outside() says: neither slope nor curvature see the ends. */
#include "priors/type.h"

#include <math.h>

static struct tb_prior_value uniform_at(double x,
                                        double location,
                                        double scale,
                                        double shape,
                                        double round) {
  (void)shape;
  (void)x;
  (void)location;
  (void)scale;
  (void)round;
  return (struct tb_prior_value){0, 0, 0};
}

static double uniform_variance(double scale) {
  (void)scale;
  return INFINITY;
}

static bool uniform_is_outside(double x, double location, double scale) {
  return fabs(x - location) > scale;
}

const struct tb_prior_type tb_prior_uniform = {
    .name = "uniform",
    .at = uniform_at,
    .variance = uniform_variance,
    .is_outside = uniform_is_outside,
};
