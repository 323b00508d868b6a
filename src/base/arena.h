/* Pieces of one allocation. */
#ifndef TB_BASE_ARENA_H
#define TB_BASE_ARENA_H

#include "base/clip.h"

#include <stddef.h>

/* Hands out aligned pieces; with a NULL base it only counts. */
struct tb_arena {
  char* p_base;
  size_t n_used;
};

static inline void* tb_arena_take(struct tb_arena* p_arena, size_t n_byte) {
  void* p = p_arena->p_base == NULL ? NULL : p_arena->p_base + p_arena->n_used;
  p_arena->n_used += tb_align(n_byte);
  return p;
}

static inline double* tb_arena_doubles(struct tb_arena* p_arena, size_t n) {
  return n == 0 ? NULL : tb_arena_take(p_arena, n * sizeof(double));
}

#endif
