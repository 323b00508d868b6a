/* normal(m, s): -(t - m)^2 / (2 s^2) */
#include "priors/type.h"

static struct tb_prior_value
normal_at(double x, double location, double scale, double shape, double round) {
  (void)shape;
  const double t = x - location;
  (void)round;
  return (struct tb_prior_value){-0.5 * (t / scale) * (t / scale),
                                 -t / (scale * scale),
                                 1 / (scale * scale)};
}

static double normal_variance(double scale) {
  return scale * scale;
}

const struct tb_prior_type tb_prior_normal = {
    .name = "normal",
    .at = normal_at,
    .variance = normal_variance,
};
