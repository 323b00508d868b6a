/* Step sizes of a kernel: one for all coordinates, or one each. */
#ifndef TB_KERNELS_STEP_H
#define TB_KERNELS_STEP_H

#include "core/param.h"

#include <stddef.h>

struct tb_step {
  const double* v_size;
  size_t n_size; /* 1 or n_dim */
};

static inline double tb_step_at(const struct tb_step* p_step, size_t j) {
  return p_step->v_size[p_step->n_size == 1 ? 0 : j];
}

#endif
