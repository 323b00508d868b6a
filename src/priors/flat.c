/* flat: 0, whatever t */
#include "priors/type.h"

#include <math.h>

static struct tb_prior_value
flat_at(double x, double location, double scale, double shape, double round) {
  (void)shape;
  (void)x;
  (void)location;
  (void)scale;
  (void)round;
  return (struct tb_prior_value){0, 0, 0};
}

static double flat_variance(double scale) {
  (void)scale;
  return INFINITY;
}

const struct tb_prior_type tb_prior_flat = {
    .name = "flat",
    .at = flat_at,
    .variance = flat_variance,
};
