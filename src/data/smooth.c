/* Bases of smooth terms as tables of piecewise cubics, which R makes
 * (design-smooth-tables.R), for a tile of rows at a time: each row's interval
 * is found once for all columns, which then cost four coefficients each.
 *
 * p       the term; of others, read only
 * p_rows  of the caller, in and out
 * v_out   a column of the design from the next row to fill; the caller's, out
 */
#include "data/smooth.h"

#include "base/clones.h"
#include "base/vector.h"

#include <math.h>
#include <string.h>

size_t tb_smooth_parts(const struct tb_smooth* p) {
  return (p->n_break > 0 ? 1 : 0) + p->n_code + p->n_times;
}

static double number_at(const struct tb_column* p, size_t row) {
  const size_t at = p->first + row;
  return p->kind == TB_COLUMN_double ? p->v_double[at] : p->v_int[at];
}

/* How many breaks are not behind x. */
static size_t breaks_before(const struct tb_smooth* p, double x) {
  size_t low = 0, n = p->n_break;
  while (n > 0) {
    const size_t half = n / 2;
    const bool is_behind = p->v_break[low + half] <= x;
    low += is_behind ? half + 1 : 0;
    n = is_behind ? n - half - 1 : half;
  }
  return low;
}

static void read_number(const struct tb_smooth* p,
                        size_t row,
                        size_t k,
                        struct tb_smooth_rows* p_rows) {
  double x = number_at(&p->v_part[0], row);
  if (p->period > 0) {
    x -= floor((x - p->v_break[0]) / p->period) * p->period;
  }
  const size_t cell = breaks_before(p, x);
  p_rows->v_cell[k] = (int)cell;
  p_rows->v_away[k] = x - p->v_break[cell > 0 ? cell - 1 : 0];
}

void tb_smooth_read(const struct tb_smooth* p,
                    const size_t* v_row,
                    size_t from,
                    size_t n,
                    struct tb_smooth_rows* p_rows) {
  const bool has_table = p->n_break > 0;
  const struct tb_column* v_code = p->v_part + (has_table ? 1 : 0);
  const struct tb_column* v_times = v_code + p->n_code;
  for (size_t k = 0; k < n; ++k) {
    const size_t row = v_row != NULL ? v_row[k] : from + k;
    if (has_table) {
      read_number(p, row, k, p_rows);
    }
    size_t level = 0;
    for (size_t c = 0; c < p->n_code; ++c) {
      const struct tb_column* p_one = &v_code[c];
      const int code = tb_code_of(p_one, p_one->first + row) - p_one->base;
      level = level * p_one->n_level + (size_t)code;
    }
    p_rows->v_level[k] = (int)level + 1;
    double times = 1;
    for (size_t c = 0; c < p->n_times; ++c) {
      times *= number_at(&v_times[c], row);
    }
    p_rows->v_times[k] = times;
  }
  p_rows->p_held = p;
}

/* Multiplies by column `basis` of the table. */
static void times_cubic(const struct tb_smooth_rows* p_rows,
                        size_t basis,
                        size_t n,
                        double* restrict v_out) {
  const struct tb_smooth* p = p_rows->p_held;
  const double* restrict v_all = p->v_coefficient + 4 * basis;
  const size_t step = 4 * p->n_basis;
  for (size_t k = 0; k < n; ++k) {
    const double* restrict v = v_all + (size_t)p_rows->v_cell[k] * step;
    const double away = p_rows->v_away[k];
    v_out[k] *= v[0] + away * (v[1] + away * (v[2] + away * v[3]));
  }
}

/* Of the rows of a level, which are few. */
static void times_cubic_of_level(const struct tb_smooth_rows* p_rows,
                                 size_t basis,
                                 int level,
                                 size_t n,
                                 double* restrict v_out) {
  const struct tb_smooth* p = p_rows->p_held;
  const double* v_all = p->v_coefficient + 4 * basis;
  for (size_t k = 0; k < n; ++k) {
    if (p_rows->v_level[k] == level) {
      const double* v = v_all + (size_t)p_rows->v_cell[k] * 4 * p->n_basis;
      const double away = p_rows->v_away[k];
      v_out[k] *= v[0] + away * (v[1] + away * (v[2] + away * v[3]));
    }
  }
}

TB_CLONES
static void keep_level(const int* restrict v_level,
                       int level,
                       size_t n,
                       double* restrict v_out) {
  EACH(n, k, v_out[k] = v_level[k] == level ? v_out[k] : 0)
}

void tb_smooth_put(const struct tb_smooth_rows* p_rows,
                   size_t column,
                   size_t n,
                   bool is_first,
                   double* v_out) {
  const struct tb_smooth* p = p_rows->p_held;
  const int level = p->v_level[column], basis = p->v_basis[column];
  const double* v_times = p_rows->v_times;
  if (!is_first) {
    EACH(n, k, v_out[k] *= v_times[k])
  } else {
    memcpy(v_out, v_times, n * sizeof(double));
  }
  if (level > 0) {
    keep_level(p_rows->v_level, level, n, v_out);
  }
  if (basis == 0) {
    return;
  }
  if (level > 0) {
    times_cubic_of_level(p_rows, (size_t)basis - 1, level, n, v_out);
  } else {
    times_cubic(p_rows, (size_t)basis - 1, n, v_out);
  }
}
