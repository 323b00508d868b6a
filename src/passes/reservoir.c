#include "passes/reservoir.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- one stratum ---- */

static void sift_up(double* v, size_t at, double u) {
  while (at > 0 && v[(at - 1) / 2] < u) {
    v[at] = v[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  v[at] = u;
}

static void sift_down(double* v, size_t n, double u) {
  size_t at = 0;
  for (size_t child = 1; child < n; child = 2 * at + 1) {
    if (child + 1 < n && v[child + 1] > v[child]) {
      ++child;
    }
    if (v[child] <= u) {
      break;
    }
    v[at] = v[child];
    at = child;
  }
  v[at] = u;
}

static bool heap_grow(struct tb_heap* p, size_t n_most) {
  if (p->n < p->n_room) {
    return true;
  }
  size_t n_room = 2 * p->n_room + 16;
  if (n_room > n_most) {
    n_room = n_most;
  }
  double* v_u = realloc(p->v_u, n_room * sizeof(double));
  if (v_u == NULL) {
    return false;
  }
  p->v_u = v_u;
  p->n_room = n_room;
  return true;
}

/* u is below the threshold of the level: it is among the smallest k + 1. */
static bool strata_push(struct tb_strata* p, size_t level, double u) {
  struct tb_heap* p_heap = &p->v_heap[level];
  const size_t n_heap = p->n_most + 1;
  if (p_heap->n == n_heap) {
    sift_down(p_heap->v_u, n_heap, u);
  } else {
    if (!heap_grow(p_heap, n_heap)) {
      return false;
    }
    sift_up(p_heap->v_u, p_heap->n++, u);
  }
  if (p_heap->n == n_heap) {
    p->v_threshold[level] = p_heap->v_u[0];
  }
  return true;
}

static bool grow(void** pp, size_t n_old, size_t n_new, size_t n_byte) {
  if (n_new > SIZE_MAX / n_byte) {
    return false;
  }
  char* p = realloc(*pp, n_new * n_byte);
  if (p == NULL) {
    return false;
  }
  memset(p + n_old * n_byte, 0, (n_new - n_old) * n_byte);
  *pp = p;
  return true;
}

/* Room for one more level, and for those before it. */
static bool strata_reach(struct tb_strata* p, size_t level) {
  if (level >= p->n_room) {
    const size_t n_old = p->n_room, n_new = level + level / 2 + 8;
    if (!grow((void**)&p->v_threshold, n_old, n_new, sizeof(double)) ||
        !grow((void**)&p->v_count, n_old, n_new, sizeof(double)) ||
        !grow((void**)&p->v_heap, n_old, n_new, sizeof(struct tb_heap))) {
      return false;
    }
    p->n_room = n_new;
    for (size_t k = n_old; k < n_new; ++k) {
      p->v_threshold[k] = 1;
    }
  }
  if (level >= p->n_level) {
    p->n_level = level + 1;
  }
  return true;
}

/* ---- the reservoir ---- */

enum tb_status tb_reservoir_create(struct tb_reservoir* p,
                                   uint64_t key,
                                   size_t n_all,
                                   size_t n_stratum,
                                   size_t n_set) {
  p->key = key;
  p->v_set = calloc(n_set + 1, sizeof(*p->v_set));
  if (p->v_set == NULL) {
    return TB_STATUS_memory;
  }
  p->n_set = n_set;
  for (size_t c = 0; c <= n_set; ++c) {
    p->v_set[c].n_most = c == 0 ? n_all : n_stratum;
  }
  return strata_reach(&p->v_set[0], 0) ? TB_STATUS_ok : TB_STATUS_memory;
}

void tb_reservoir_destroy(struct tb_reservoir* p) {
  for (size_t c = 0; p->v_set != NULL && c <= p->n_set; ++c) {
    struct tb_strata* p_set = &p->v_set[c];
    for (size_t k = 0; k < p_set->n_room && p_set->v_heap != NULL; ++k) {
      free(p_set->v_heap[k].v_u);
    }
    free(p_set->v_threshold);
    free(p_set->v_count);
    free(p_set->v_heap);
  }
  free(p->v_set);
  memset(p, 0, sizeof(*p));
}

/* Meet a row of a stratum. Does it stay for that? */
static inline bool
meet(struct tb_strata* p, size_t level, double u, bool* p_stays) {
  if (level >= p->n_level && !strata_reach(p, level)) {
    return false;
  }
  ++p->v_count[level];
  if (u < p->v_threshold[level]) {
    if (!strata_push(p, level, u)) {
      return false;
    }
    *p_stays |= u < p->v_threshold[level];
  }
  return true;
}

enum tb_status tb_reservoir_add(struct tb_reservoir* p,
                                uint64_t first,
                                size_t n,
                                const struct tb_codes* v_codes,
                                const int* v_keep,
                                size_t* v_row,
                                size_t* p_row) {
  size_t n_row = 0;
  for (size_t i = 0; i < n; ++i) {
    if (v_keep != NULL && v_keep[i] != 1) {
      continue;
    }
    const double u = tb_hash_unif(tb_hash_at(p->key, first + i));
    bool stays = false;
    bool is_ok = meet(&p->v_set[0], 0, u, &stays);
    for (size_t c = 0; c < p->n_set; ++c) {
      const int code = v_codes[c].v_code[i];
      if (code > 0) {
        is_ok &= meet(&p->v_set[c + 1], (size_t)code - 1, u, &stays);
      }
    }
    if (!is_ok) {
      return TB_STATUS_memory;
    }
    v_row[n_row] = i;
    n_row += stays;
  }
  *p_row = n_row;
  return TB_STATUS_ok;
}

enum tb_status tb_reservoir_merge(struct tb_reservoir* p,
                                  size_t set,
                                  size_t level,
                                  const double* v_u,
                                  size_t n_u,
                                  double count) {
  struct tb_strata* p_set = &p->v_set[set];
  if (level >= p_set->n_level && !strata_reach(p_set, level)) {
    return TB_STATUS_memory;
  }
  p_set->v_count[level] += count;
  for (size_t k = 0; k < n_u; ++k) {
    if (v_u[k] < p_set->v_threshold[level] &&
        !strata_push(p_set, level, v_u[k])) {
      return TB_STATUS_memory;
    }
  }
  return TB_STATUS_ok;
}

double tb_reservoir_weight(const struct tb_reservoir* p,
                           uint64_t row,
                           const struct tb_codes* v_codes,
                           size_t at) {
  double most = p->v_set[0].v_threshold[0];
  for (size_t c = 0; c < p->n_set; ++c) {
    const struct tb_strata* p_set = &p->v_set[c + 1];
    const int code = v_codes[c].v_code[at];
    if (code > 0 && (size_t)code <= p_set->n_level) {
      const double threshold = p_set->v_threshold[code - 1];
      most = threshold > most ? threshold : most;
    }
  }
  return tb_hash_unif(tb_hash_at(p->key, row)) < most ? 1 / most : 0;
}
