/* Rows of crossed effects: sorted as they come in, and what their columns and
 * levels have in common. */
#include "base/clip.h"
#include "base/memory.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double level_at(const struct crossed_input* in, size_t k, size_t i) {
  return tb_param_at(in->p_level, k * in->n_row + i);
}

/* Are the levels of every factor some of theirs? */
static bool has_levels(const struct crossed* p,
                       const struct crossed_input* in) {
  for (size_t k = 0; k < p->n_factor; ++k) {
    const double most = (double)p->v_factor[k].n_level;
    for (size_t i = 0; i < in->n_row; ++i) {
      const double level = level_at(in, k, i);
      if (!(level >= 1 && level <= most) || level != floor(level)) {
        return false;
      }
    }
  }
  return true;
}

/* v_order (n_row): rows by the levels of the first factor, those of a level as
 * they came */
static enum tb_status sort_rows(const struct crossed* p,
                                const struct crossed_input* in,
                                uint32_t* v_order) {
  const size_t n_level = p->v_factor[0].n_level;
  uint32_t* v_next = calloc(n_level + 1, sizeof(*v_next));
  if (v_next == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t i = 0; i < in->n_row; ++i) {
    v_next[(size_t)level_at(in, 0, i)] += 1;
  }
  for (size_t g = 0; g < n_level; ++g) {
    v_next[g + 1] += v_next[g];
  }
  for (size_t i = 0; i < in->n_row; ++i) {
    v_order[v_next[(size_t)level_at(in, 0, i) - 1]++] = (uint32_t)i;
  }
  free(v_next);
  return TB_STATUS_ok;
}

static bool is_ones(const double* v, size_t n) {
  size_t i = 0;
  while (i < n && v[i] == 1) {
    ++i;
  }
  return i == n;
}

/* Where they lie; with a NULL base it only counts. */
static void lay_out(struct crossed* p,
                    const struct crossed_input* in,
                    bool has_weight,
                    struct tb_arena* p_arena) {
  const size_t n = p->n_row;
  for (size_t j = 0; j < p->n_column; ++j) {
    const bool is_one = is_ones(in->p_x->v_value + j * in->n_row, in->n_row);
    p->v_column[j] = is_one ? NULL : tb_arena_doubles(p_arena, n);
  }
  p->v_y = tb_arena_doubles(p_arena, n);
  p->v_weight = has_weight ? tb_arena_doubles(p_arena, n) : NULL;
  p->v_offset = in->p_offset == NULL ? NULL : tb_arena_doubles(p_arena, n);
  for (size_t k = 0; k < p->n_factor; ++k) {
    p->v_factor[k].v_level = tb_arena_take(p_arena, n * sizeof(int32_t));
  }
}

static void put(const struct tb_param* p_from,
                size_t first,
                const uint32_t* v_order,
                size_t n,
                double* v_to) {
  for (size_t i = 0; v_to != NULL && i < n; ++i) {
    v_to[i] = tb_param_at(p_from, first + v_order[i]);
  }
}

static void set_effect_columns(struct crossed_factor* f,
                               const struct crossed* p) {
  for (size_t a = 0; a < f->n_effect; ++a) {
    const double* v = f->v_column[a] = p->v_column[f->v_z[a]];
    f->v_most[a] = v == NULL ? 1 : 0;
    for (size_t i = 0; v != NULL && i < p->n_row; ++i) {
      f->v_most[a] = fmax(f->v_most[a], fabs(v[i]));
    }
  }
}

/* Cells where rows repeat and the response is normal: v_begin NULL where not.
 */
static enum tb_status order_rows(struct crossed* p,
                                 const struct crossed_input* in,
                                 uint32_t* v_order,
                                 uint32_t** v_begin) {
  size_t n_cell = 0;
  enum tb_status status = sort_rows(p, in, v_order);
  *v_begin = NULL;
  if (status != TB_STATUS_ok || !p->is_quadratic) {
    return status;
  }
  *v_begin = malloc((in->n_row + 1) * sizeof(**v_begin));
  if (*v_begin == NULL) {
    return TB_STATUS_memory;
  }
  status = crossed_find_cells(in, v_order, *v_begin, &n_cell);
  if (status == TB_STATUS_ok && n_cell > 0) {
    p->n_row = n_cell;
    return status;
  }
  free(*v_begin);
  *v_begin = NULL;
  return status == TB_STATUS_ok ? sort_rows(p, in, v_order) : status;
}

/* v_begin: of cells, or NULL; v_order is lost */
static void fill_rows(struct crossed* p,
                      const struct crossed_input* in,
                      uint32_t* v_order,
                      const uint32_t* v_begin) {
  const size_t n = p->n_row;
  if (v_begin == NULL) {
    put(in->p_y, 0, v_order, n, p->v_y);
    put(in->p_weight, 0, v_order, n, p->v_weight);
  } else {
    crossed_fill_cells(p, in, v_order, v_begin);
    for (size_t k = 0; k < n; ++k) {
      v_order[k] = v_order[v_begin[k]];
    }
  }
  for (size_t j = 0; j < p->n_column; ++j) {
    put(in->p_x, j * in->n_row, v_order, n, p->v_column[j]);
  }
  put(in->p_offset, 0, v_order, n, p->v_offset);
  for (size_t k = 0; k < p->n_factor; ++k) {
    struct crossed_factor* f = &p->v_factor[k];
    for (size_t i = 0; i < n; ++i) {
      f->v_level[i] = (int32_t)level_at(in, k, v_order[i]) - 1;
    }
    set_effect_columns(f, p);
  }
}

enum tb_status crossed_take_rows(struct crossed* p,
                                 const struct tb_params* p_params) {
  struct crossed_input in = {.n_column = p->n_column,
                             .n_factor = p->n_factor,
                             .p_x = tb_params_find(p_params, "x"),
                             .p_y = tb_params_find(p_params, "y"),
                             .p_weight = tb_params_find(p_params, "weights"),
                             .p_offset = tb_params_find(p_params, "offset"),
                             .p_level = tb_params_find(p_params, "level")};
  if (in.p_y == NULL || in.p_y->n_value == 0 || in.p_y->n_value > UINT32_MAX) {
    return TB_STATUS_argument;
  }
  const size_t n = in.n_row = p->n_row = p->n_datum = in.p_y->n_value;
  if (in.p_x == NULL || in.p_x->n_value != n * p->n_column ||
      in.p_level == NULL || in.p_level->n_value != n * p->n_factor ||
      (in.p_weight != NULL && in.p_weight->n_value != n) ||
      (in.p_offset != NULL && in.p_offset->n_value != n) ||
      !has_levels(p, &in)) {
    return TB_STATUS_argument;
  }
  uint32_t* v_begin = NULL;
  uint32_t* v_order = malloc(n * sizeof(*v_order));
  enum tb_status status = v_order == NULL
                              ? TB_STATUS_memory
                              : order_rows(p, &in, v_order, &v_begin);
  if (status == TB_STATUS_ok) {
    const bool has_weight = in.p_weight != NULL || v_begin != NULL;
    struct tb_arena arena = {NULL, 0};
    lay_out(p, &in, has_weight, &arena);
    p->n_byte = arena.n_used + 64;
    p->p_rows = tb_big_alloc(p->n_byte);
    if (p->p_rows == NULL) {
      status = TB_STATUS_memory;
    } else {
      arena =
          (struct tb_arena){(char*)tb_align((size_t)(uintptr_t)p->p_rows), 0};
      lay_out(p, &in, has_weight, &arena);
      fill_rows(p, &in, v_order, v_begin);
    }
  }
  free(v_begin);
  free(v_order);
  return status;
}

/* ---- ties ---- */

/* v_level (n_level): w_g with x_i = w_g z_i in all rows of g, to rounding;
 * false: there are none such */
static bool multiples(const struct crossed* p,
                      const struct crossed_factor* f,
                      const double* v_x,
                      const double* v_z,
                      double* v_level) {
  for (size_t g = 0; g < f->n_level; ++g) {
    v_level[g] = NAN;
  }
  for (size_t i = 0; i < p->n_row; ++i) {
    const double x = v_x == NULL ? 1 : v_x[i], z = v_z == NULL ? 1 : v_z[i];
    double* w = &v_level[f->v_level[i]];
    if (isnan(*w) && z != 0) {
      *w = x / z;
    }
  }
  for (size_t i = 0; i < p->n_row; ++i) {
    const double x = v_x == NULL ? 1 : v_x[i], z = v_z == NULL ? 1 : v_z[i];
    const double w = v_level[f->v_level[i]];
    const double by = isnan(w) ? 0 : w * z;
    if (!(fabs(x - by) <= 1e-12 * fabs(x))) {
      return false;
    }
  }
  for (size_t g = 0; g < f->n_level; ++g) {
    v_level[g] = isnan(v_level[g]) ? 0 : v_level[g];
  }
  return true;
}

static enum tb_status add_tie(struct crossed* p,
                              const struct crossed_tie* tie,
                              const double* v_level) {
  const size_t n_level = p->v_factor[tie->factor].n_level;
  struct crossed_tie* v =
      realloc(p->v_tie, (p->n_tie + 1) * sizeof(struct crossed_tie));
  if (v == NULL) {
    return TB_STATUS_memory;
  }
  p->v_tie = v;
  v[p->n_tie] = *tie;
  if (!is_ones(v_level, n_level)) {
    double* v_own = malloc(n_level * sizeof(double));
    if (v_own == NULL) {
      return TB_STATUS_memory;
    }
    memcpy(v_own, v_level, n_level * sizeof(double));
    v[p->n_tie].v_level = v_own;
  }
  p->n_tie += 1;
  return TB_STATUS_ok;
}

enum tb_status crossed_find_ties(struct crossed* p) {
  enum tb_status status = TB_STATUS_ok;
  double* v_level = malloc(p->n_level_most * sizeof(double));
  if (v_level == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    for (size_t a = 0; a < f->n_effect; ++a) {
      for (size_t j = 0; j < p->n_coef && status == TB_STATUS_ok; ++j) {
        const struct crossed_tie tie = {.coef = j, .factor = k, .effect = a};
        if (multiples(p, f, p->v_column[j], f->v_column[a], v_level)) {
          status = add_tie(p, &tie, v_level);
        }
      }
    }
  }
  free(v_level);
  return status;
}

/* ---- links ---- */

static int32_t find(int32_t* v, int32_t i) {
  while (v[i] != i) {
    v[i] = v[v[i]];
    i = v[i];
  }
  return i;
}

/* Levels of both factors by the part they are in: v_part, v_size. */
static enum tb_status set_parts(struct crossed* p, struct crossed_link* link) {
  const struct crossed_factor* f[2] = {&p->v_factor[link->v_factor[0]],
                                       &p->v_factor[link->v_factor[1]]};
  const size_t n = f[0]->n_level + f[1]->n_level;
  int32_t* v_root = malloc(n * sizeof(*v_root));
  int32_t* v_number = malloc(n * sizeof(*v_number));
  link->v_part[0] = malloc(f[0]->n_level * sizeof(int32_t));
  link->v_part[1] = malloc(f[1]->n_level * sizeof(int32_t));
  const bool is_there = v_root != NULL && v_number != NULL &&
                        link->v_part[0] != NULL && link->v_part[1] != NULL;
  for (size_t g = 0; is_there && g < n; ++g) {
    v_root[g] = (int32_t)g;
    v_number[g] = -1;
  }
  for (size_t i = 0; is_there && i < p->n_row; ++i) {
    const int32_t one = find(v_root, f[0]->v_level[i]);
    const int32_t other =
        find(v_root, (int32_t)f[0]->n_level + f[1]->v_level[i]);
    v_root[one > other ? one : other] = one > other ? other : one;
  }
  for (size_t g = 0; is_there && g < n; ++g) {
    const int32_t root = find(v_root, (int32_t)g);
    if (v_number[root] < 0) {
      v_number[root] = (int32_t)link->n_part++;
    }
    const size_t s = g >= f[0]->n_level;
    link->v_part[s][g - (s == 0 ? 0 : f[0]->n_level)] = v_number[root];
  }
  if (is_there) {
    link->v_size = calloc(2 * link->n_part, sizeof(double));
  }
  for (size_t s = 0; link->v_size != NULL && s < 2; ++s) {
    for (size_t g = 0; g < f[s]->n_level; ++g) {
      link->v_size[2 * (size_t)link->v_part[s][g] + s] += 1;
    }
  }
  for (size_t s = 0; link->v_size != NULL && s < 2; ++s) {
    link->v_is_outer[s] = f[s]->n_level == link->n_part;
  }
  p->n_part_most = tb_max(p->n_part_most, link->n_part);
  free(v_root);
  free(v_number);
  return link->v_size == NULL ? TB_STATUS_memory : TB_STATUS_ok;
}

enum tb_status crossed_find_links(struct crossed* p) {
  const size_t n_most = p->n_factor * p->n_factor * CROSSED_EFFECT;
  enum tb_status status = TB_STATUS_ok;
  p->v_link = calloc(n_most, sizeof(*p->v_link));
  if (p->v_link == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t k = 0; k < p->n_factor; ++k) {
    for (size_t l = k + 1; l < p->n_factor; ++l) {
      for (size_t a = 0; a < p->v_factor[k].n_effect; ++a) {
        for (size_t b = 0; b < p->v_factor[l].n_effect; ++b) {
          if (p->v_factor[k].v_column[a] != p->v_factor[l].v_column[b] ||
              status != TB_STATUS_ok) {
            continue;
          }
          struct crossed_link* link = &p->v_link[p->n_link++];
          *link = (struct crossed_link){.v_factor = {k, l}, .v_effect = {a, b}};
          status = set_parts(p, link);
        }
      }
    }
  }
  return status;
}

void crossed_release(struct crossed* p) {
  for (size_t t = 0; t < p->n_tie; ++t) {
    free(p->v_tie[t].v_level);
  }
  for (size_t t = 0; t < p->n_link; ++t) {
    free(p->v_link[t].v_part[0]);
    free(p->v_link[t].v_part[1]);
    free(p->v_link[t].v_size);
  }
  free(p->v_tie);
  free(p->v_link);
  free(p->v_column);
  tb_big_free(p->p_rows, p->n_byte);
}
