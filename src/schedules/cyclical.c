/* R. Zhang, C. Li, J. Zhang, C. Chen and A. G. Wilson (2020), Cyclical
 * stochastic gradient MCMC for Bayesian deep learning, ICLR, eq. 1: with r the
 * part of the cycle that has passed, 0 <= r < 1,
 *
 *   h_t = (h / 2) (cos(pi r) + 1)
 *
 * While r < beta the chain looks for a mode, without injected noise; the rest
 * of the cycle samples.
 *
 *   symbol    variable    range             meaning
 *   K/M       length      1, 2, ...         steps in a cycle
 *   beta K/M  n_explore   0, ..., length-1  of them, the first ones, explore
 */
#include "schedules/schedule.h"

#include <math.h>

struct cyclical {
  size_t length;
  size_t n_explore;
};

static size_t cyclical_self_size(const struct tb_params* p_params) {
  (void)p_params;
  return sizeof(struct cyclical);
}

static enum tb_status cyclical_init(struct tb_schedule* p_schedule,
                                    const struct tb_params* p_params) {
  const double length = tb_params_number(p_params, "length", NAN);
  const double n_explore = tb_params_number(p_params, "n_explore", NAN);
  /* written so that NaN fails; 2^53 steps are never made */
  if (!(length >= 1 && length < 0x1p53 && n_explore >= 0 &&
        n_explore < length)) {
    return TB_STATUS_argument;
  }
  *(struct cyclical*)p_schedule->p_self =
      (struct cyclical){(size_t)length, (size_t)n_explore};
  return TB_STATUS_ok;
}

static double cyclical_scale(const struct tb_schedule* p_schedule,
                             size_t iteration) {
  const struct cyclical* p_cyclical = p_schedule->p_self;
  const double pi = 3.14159265358979323846;
  const double r =
      (double)(iteration % p_cyclical->length) / (double)p_cyclical->length;
  return 0.5 * (cos(pi * r) + 1);
}

static bool cyclical_explores(const struct tb_schedule* p_schedule,
                              size_t iteration) {
  const struct cyclical* p_cyclical = p_schedule->p_self;
  return iteration % p_cyclical->length < p_cyclical->n_explore;
}

extern const struct tb_schedule_type tb_schedule_cyclical;
const struct tb_schedule_type tb_schedule_cyclical = {
    .name = "cyclical",
    .citation = "Zhang, Li, Zhang, Chen & Wilson (2020), ICLR",
    .self_size = cyclical_self_size,
    .init = cyclical_init,
    .scale = cyclical_scale,
    .explores = cyclical_explores};
