/* What works on a tile of rows shares: how many they are, loops over them, and
 * codes as they should be. */
#ifndef TB_DATA_TILE_H
#define TB_DATA_TILE_H

#include "base/vector.h"
#include "data/column.h"

#include <stddef.h>

#define N_TILE 512
/* values that are worked on together: a loop of a constant length is what
 * compilers make wide */
#define N_WIDE 8

/* `expression` of k for each of n values */
#define EACH(n, k, expression)                                                 \
  {                                                                            \
    size_t first_ = 0;                                                         \
    for (; first_ + N_WIDE <= (n); first_ += N_WIDE) {                         \
      for (size_t lane_ = 0; lane_ < N_WIDE; ++lane_) {                        \
        const size_t k = first_ + lane_;                                       \
        expression;                                                            \
      }                                                                        \
    }                                                                          \
    for (size_t k = first_; k < (n); ++k) {                                    \
      expression;                                                              \
    }                                                                          \
  }

/* The code as it should be: NA stays, what stands for no level is -1. */
TB_INLINE int tb_code_of(const struct tb_column* p, size_t at) {
  const int code = p->v_int[at];
  if (p->v_map == NULL || code == TB_NA_INT) {
    return code;
  }
  return code >= 1 && (size_t)code <= p->n_map ? p->v_map[code - 1] : -1;
}

#endif
