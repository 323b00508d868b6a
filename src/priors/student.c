/* student(m, s), n degrees of freedom, its shape:
 * -(n + 1)/2 log(1 + u^2/n), u = (t - m)/s */
#include "priors/type.h"

#include <math.h>

static struct tb_prior_value student_at(double x,
                                        double location,
                                        double scale,
                                        double shape,
                                        double round) {
  const double u = (x - location) / scale, below = shape + u * u;
  (void)round;
  return (struct tb_prior_value){-0.5 * (shape + 1) * log1p(u * u / shape),
                                 -(shape + 1) * u / below / scale,
                                 (shape + 1) * (shape - u * u) /
                                     (below * below * scale * scale)};
}

/* of the normal that has the same slope there */
static double
student_quadratic(double x, double location, double scale, double shape) {
  const double u = (x - location) / scale;
  return (shape + 1) / ((shape + u * u) * scale * scale);
}

const struct tb_prior_type tb_prior_student = {
    .name = "student",
    .has_shape = true,
    .at = student_at,
    .quadratic = student_quadratic,
};
