/* log_flat, of t = log u with u flat: t */
#include "priors/type.h"

static struct tb_prior_value log_flat_at(double x,
                                         double location,
                                         double scale,
                                         double shape,
                                         double round) {
  (void)shape;
  (void)location;
  (void)scale;
  (void)round;
  return (struct tb_prior_value){x, 1, 0};
}

const struct tb_prior_type tb_prior_log_flat = {
    .name = "log_flat",
    .at = log_flat_at,
};
