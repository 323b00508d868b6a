/* log_exponential(s), of t = log u with u exponential, E u = s: t - e^t / s */
#include "priors/type.h"

#include <math.h>

static struct tb_prior_value log_exponential_at(double x,
                                                double location,
                                                double scale,
                                                double shape,
                                                double round) {
  (void)shape;
  const double u = exp(x) / scale;
  (void)location;
  (void)round;
  return (struct tb_prior_value){x - u, 1 - u, u};
}

static double log_exponential_quadratic(double x,
                                        double location,
                                        double scale,
                                        double shape) {
  (void)location;
  (void)shape;
  return exp(x) / scale;
}

const struct tb_prior_type tb_prior_log_exponential = {
    .name = "log_exponential",
    .at = log_exponential_at,
    .quadratic = log_exponential_quadratic,
};
