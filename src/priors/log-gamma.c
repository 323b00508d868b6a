/* log_gamma(m, s, a), of u = m + e^t with u gamma of shape a and scale s, cut
 * off at m >= 0: (a - 1) log u - u / s + t */
#include "priors/type.h"

#include <math.h>

static struct tb_prior_value log_gamma_at(double x,
                                          double location,
                                          double scale,
                                          double shape,
                                          double round) {
  const double above = exp(x), u = location + above;
  /* e^t / u, also where both are 0 or infinite */
  const double share = 1 / (1 + location * exp(-x));
  (void)round;
  return (struct tb_prior_value){
      (shape - 1) * (location > 0 ? log(u) : x) - u / scale + x,
      (shape - 1) * share - above / scale + 1,
      above / scale - (shape - 1) * share * (1 - share)};
}

static double
log_gamma_quadratic(double x, double location, double scale, double shape) {
  const double share = 1 / (1 + location * exp(-x));
  return exp(x) / scale + fmax(0, 1 - shape) * share * (1 - share);
}

const struct tb_prior_type tb_prior_log_gamma = {
    .name = "log_gamma",
    .has_shape = true,
    .at = log_gamma_at,
    .quadratic = log_gamma_quadratic,
};
