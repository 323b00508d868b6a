/* The schedule family: h_t, as a factor of the kernel's own step size. */
#ifndef TB_SCHEDULES_SCHEDULE_H
#define TB_SCHEDULES_SCHEDULE_H

#include "base/param.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct tb_schedule;

struct tb_schedule_type {
  const char* name;
  const char* citation;

  /* bytes of the parsed parameters, and their making */
  size_t (*self_size)(const struct tb_params* p_params);
  enum tb_status (*init)(struct tb_schedule* p_schedule,
                         const struct tb_params* p_params);

  /* factor at step `iteration` = 0, 1, ... */
  double (*scale)(const struct tb_schedule* p_schedule, size_t iteration);

  /* Is this step for finding modes only? Kernels then inject no noise, and
   * nothing of it is kept. NULL: no step is. */
  bool (*explores)(const struct tb_schedule* p_schedule, size_t iteration);
};

struct tb_schedule {
  const struct tb_schedule_type* type;
  void* p_self;
};

/* registry.c */
extern const struct tb_schedule_type* const tb_schedule_registry[];
const struct tb_schedule_type* tb_schedule_find(const char* name);

#endif
