/* h_t = h: the kernel's own step size throughout. */
#include "schedules/schedule.h"

static size_t constant_self_size(const struct tb_params* p_params) {
  (void)p_params;
  return 0;
}

static enum tb_status constant_init(struct tb_schedule* p_schedule,
                                    const struct tb_params* p_params) {
  (void)p_schedule;
  (void)p_params;
  return TB_STATUS_ok;
}

static double constant_scale(const struct tb_schedule* p_schedule,
                             size_t iteration) {
  (void)p_schedule;
  (void)iteration;
  return 1;
}

extern const struct tb_schedule_type tb_schedule_constant;
const struct tb_schedule_type tb_schedule_constant = {.name = "constant",
                                                      .citation = "",
                                                      .self_size =
                                                          constant_self_size,
                                                      .init = constant_init,
                                                      .scale = constant_scale};
