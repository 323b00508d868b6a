/* Step sizes of a kernel: one for all coordinates, or one each. */
#ifndef TB_KERNELS_STEP_H
#define TB_KERNELS_STEP_H

#include "base/param.h"
#include "base/status.h"

#include <stddef.h>
#include <string.h>

struct tb_step {
  const double* v_size;
  size_t n_size; /* 1 or n_dim */
};

static inline double tb_step_at(const struct tb_step* p_step, size_t j) {
  return p_step->v_size[p_step->n_size == 1 ? 0 : j];
}

/* The step sizes of that name, copied to v_size (room for n_dim). */
static inline enum tb_status tb_step_read(struct tb_step* p_step,
                                          const struct tb_params* p_params,
                                          const char* name,
                                          size_t n_dim,
                                          double* v_size) {
  const struct tb_param* p_param = tb_params_find(p_params, name);
  if (p_param == NULL || (p_param->n_value != 1 && p_param->n_value != n_dim)) {
    return TB_STATUS_argument;
  }
  for (size_t j = 0; j < p_param->n_value; ++j) {
    if (!(p_param->v_value[j] >= 0)) {
      return TB_STATUS_argument;
    }
  }
  memcpy(v_size, p_param->v_value, p_param->n_value * sizeof(double));
  *p_step = (struct tb_step){v_size, p_param->n_value};
  return TB_STATUS_ok;
}

#endif
