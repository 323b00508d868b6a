/* M. Welling and Y. W. Teh (2011), Bayesian learning via stochastic gradient
 * Langevin dynamics, ICML 28, section 4:  h_t = h a (b + t)^(-gamma).
 *
 *   symbol  variable  range      meaning
 *   a       a         > 0        factor of the kernel's step size h
 *   b       b         > 0        delay: large b holds the first step size
 *   gamma   gamma     (0, 1]     1/2 < gamma: sum h_t^2 is finite
 *   t       iteration 0, 1, ...
 */
#include "schedules/schedule.h"

#include <math.h>

struct decay {
  double a;
  double b;
  double gamma;
};

static size_t decay_self_size(const struct tb_params* p_params) {
  (void)p_params;
  return sizeof(struct decay);
}

static enum tb_status decay_init(struct tb_schedule* p_schedule,
                                 const struct tb_params* p_params) {
  const struct decay decay = {.a = tb_params_number(p_params, "a", NAN),
                              .b = tb_params_number(p_params, "b", NAN),
                              .gamma =
                                  tb_params_number(p_params, "gamma", NAN)};
  /* written so that NaN fails */
  if (!(decay.a > 0 && isfinite(decay.a) && decay.b > 0 && isfinite(decay.b) &&
        decay.gamma > 0 && decay.gamma <= 1)) {
    return TB_STATUS_argument;
  }
  *(struct decay*)p_schedule->p_self = decay;
  return TB_STATUS_ok;
}

static double decay_scale(const struct tb_schedule* p_schedule,
                          size_t iteration) {
  const struct decay* p_decay = p_schedule->p_self;
  return p_decay->a * pow(p_decay->b + (double)iteration, -p_decay->gamma);
}

extern const struct tb_schedule_type tb_schedule_decay;
const struct tb_schedule_type tb_schedule_decay = {.name = "decay",
                                                   .citation =
                                                       "Welling & Teh (2011)",
                                                   .self_size = decay_self_size,
                                                   .init = decay_init,
                                                   .scale = decay_scale};
