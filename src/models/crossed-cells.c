/* Rows of a normal response that differ in y and weights alone are one, a cell,
 * to all that is drawn:
 *
 *   sum_i w_i (y_i - eta)^2 = W (y - eta)^2 + sum_i w_i (y_i - y)^2,
 *   W = sum_i w_i, y = sum_i w_i y_i / W,
 *
 * and the second sum, of all cells square_within, is no function of eta.
 * Whether rows repeat, those of some levels tell before all are compared.
 *
 *   symbol   variable          shape          owner
 *   cells    v_begin           n_cell + 1     caller: where the rows of a cell
 *                                             begin in v_order
 *   y, W     v_y, v_weight     n_cell         crossed
 */
#include "base/hash.h"
#include "models/crossed-inside.h"

#include <stdlib.h>

/* cells of so many rows at most are worth it */
#define FEW    0.8
#define N_SOME ((size_t)50000) /* rows that tell */

struct keyed {
  uint64_t hash;
  uint32_t row;
};

static int by_hash(const void* p_one, const void* p_other) {
  const struct keyed *one = p_one, *other = p_other;
  if (one->hash != other->hash) {
    return one->hash < other->hash ? -1 : 1;
  }
  return (one->row > other->row) - (one->row < other->row);
}

static uint64_t hash_number(uint64_t hash, double x) {
  return tb_hash_doubles(hash, &x, 1);
}

static uint64_t hash_row(const struct crossed_input* in, size_t i) {
  const size_t n = in->n_row;
  uint64_t hash = 0;
  for (size_t j = 0; j < in->n_column; ++j) {
    hash = hash_number(hash, tb_param_at(in->p_x, j * n + i));
  }
  if (in->p_offset != NULL) {
    hash = hash_number(hash, tb_param_at(in->p_offset, i));
  }
  for (size_t k = 0; k < in->n_factor; ++k) {
    hash = hash_number(hash, tb_param_at(in->p_level, k * n + i));
  }
  return hash;
}

static bool are_equal(const struct crossed_input* in, size_t i, size_t k) {
  const size_t n = in->n_row;
  bool same = in->p_offset == NULL ||
              tb_param_at(in->p_offset, i) == tb_param_at(in->p_offset, k);
  for (size_t j = 0; same && j < in->n_column; ++j) {
    same = tb_param_at(in->p_x, j * n + i) == tb_param_at(in->p_x, j * n + k);
  }
  for (size_t f = 0; same && f < in->n_factor; ++f) {
    same = tb_param_at(in->p_level, f * n + i) ==
           tb_param_at(in->p_level, f * n + k);
  }
  return same;
}

/* the end of the rows of a level of the first factor, which begin there */
static size_t level_end(const struct crossed_input* in,
                        const uint32_t* v_order,
                        size_t begin) {
  const double level = tb_param_at(in->p_level, v_order[begin]);
  size_t end = begin + 1;
  while (end < in->n_row && tb_param_at(in->p_level, v_order[end]) == level) {
    ++end;
  }
  return end;
}

/* Sorts the rows of a level, so that those of a cell follow each other; v_begin
 * gets where each begins, from v_begin[n_cell] on; returns n_cell then. */
static size_t sort_level(const struct crossed_input* in,
                         uint32_t* v_order,
                         size_t begin,
                         size_t end,
                         struct keyed* v_key,
                         uint32_t* v_begin,
                         size_t n_cell) {
  for (size_t i = begin; i < end; ++i) {
    v_key[i - begin] = (struct keyed){hash_row(in, v_order[i]), v_order[i]};
  }
  qsort(v_key, end - begin, sizeof(*v_key), by_hash);
  for (size_t i = begin; i < end; ++i) {
    v_order[i] = v_key[i - begin].row;
    const bool is_new = i == begin ||
                        v_key[i - begin].hash != v_key[i - begin - 1].hash ||
                        !are_equal(in, v_order[i], v_order[i - 1]);
    if (is_new) {
      v_begin[n_cell++] = (uint32_t)i;
    }
  }
  return n_cell;
}

enum tb_status crossed_find_cells(const struct crossed_input* in,
                                  uint32_t* v_order,
                                  uint32_t* v_begin,
                                  size_t* p_n_cell) {
  size_t n_most = 0, n_cell = 0;
  bool is_worth = true;
  for (size_t at = 0; at < in->n_row;) {
    const size_t end = level_end(in, v_order, at);
    n_most = tb_max(n_most, end - at);
    at = end;
  }
  struct keyed* v_key = malloc(n_most * sizeof(*v_key));
  if (v_key == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t at = 0; at < in->n_row && is_worth;) {
    const size_t end = level_end(in, v_order, at);
    n_cell = sort_level(in, v_order, at, end, v_key, v_begin, n_cell);
    at = end;
    is_worth = at < N_SOME || (double)n_cell <= FEW * (double)at;
  }
  free(v_key);
  is_worth = is_worth && (double)n_cell <= FEW * (double)in->n_row;
  v_begin[is_worth ? n_cell : 0] = (uint32_t)in->n_row;
  *p_n_cell = is_worth ? n_cell : 0;
  return TB_STATUS_ok;
}

void crossed_fill_cells(struct crossed* p,
                        const struct crossed_input* in,
                        const uint32_t* v_order,
                        const uint32_t* v_begin) {
  p->square_within = 0;
  for (size_t k = 0; k < p->n_row; ++k) {
    double weight = 0, sum = 0, square = 0;
    for (size_t i = v_begin[k]; i < v_begin[k + 1]; ++i) {
      const double w =
          in->p_weight == NULL ? 1 : tb_param_at(in->p_weight, v_order[i]);
      weight += w;
      sum += w * tb_param_at(in->p_y, v_order[i]);
    }
    const double mean = weight > 0 ? sum / weight : 0;
    for (size_t i = v_begin[k]; i < v_begin[k + 1]; ++i) {
      const double w =
          in->p_weight == NULL ? 1 : tb_param_at(in->p_weight, v_order[i]);
      const double e = tb_param_at(in->p_y, v_order[i]) - mean;
      square += w * e * e;
    }
    p->v_y[k] = mean;
    p->v_weight[k] = weight;
    p->square_within += square;
  }
}
