/* Rows of a design matrix, a tile of rows at a time: what a tile reads stays in
 * the fastest cache while it is looked through for values that are missing and
 * then written, column by column.
 *
 * Most tiles are complete: one test for each column, without branches, tells
 * so, and rows are then read where they stand. Otherwise rows are looked at one
 * by one, and the complete ones read through their numbers, v_row.
 *
 * p_tile  the rows of a tile; its arrays are of the caller's stack
 * v_out   a column of the design from the next row to fill; the caller's, out
 */
#include "data/design.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/vector.h"
#include "data/smooth.h"
#include "data/tile.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct tile {
  size_t from;  /* row of the block */
  size_t n;     /* rows to write */
  bool is_full; /* they are consecutive */
  size_t v_row[N_TILE];
  int v_code[N_TILE];
  struct tb_smooth_rows smooth;
};

/* ---- is all there? ---- */

TB_CLONES
static bool all_within_bounds(const double* v, size_t n) {
  bool is_ok = true;
  size_t i = 0;
  for (; i + N_WIDE <= n; i += N_WIDE) {
    double n_bad = 0;
    for (size_t k = 0; k < N_WIDE; ++k) {
      n_bad += fabs(v[i + k]) <= TB_MOST_OF_DATA ? 0 : 1;
    }
    is_ok &= n_bad == 0;
  }
  for (; i < n; ++i) {
    is_ok &= fabs(v[i]) <= TB_MOST_OF_DATA;
  }
  return is_ok;
}

/* no NA: codes from `low` on, n_level of them */
TB_CLONES
static bool all_within(const int* v, size_t n, int low, unsigned n_level) {
  unsigned v_wrong[N_WIDE] = {0};
  size_t i = 0;
  for (; i + N_WIDE <= n; i += N_WIDE) {
    for (size_t k = 0; k < N_WIDE; ++k) {
      v_wrong[k] |= (unsigned)v[i + k] - (unsigned)low >= n_level;
    }
  }
  for (; i < n; ++i) {
    v_wrong[0] |= (unsigned)v[i] - (unsigned)low >= n_level;
  }
  unsigned wrong = 0;
  for (size_t k = 0; k < N_WIDE; ++k) {
    wrong |= v_wrong[k];
  }
  return wrong == 0;
}

static bool codes_are_known(const struct tb_column* p, size_t at, size_t n) {
  const unsigned low = (unsigned)p->base, n_level = (unsigned)p->n_level;
  if (p->v_map == NULL) {
    return all_within(p->v_int + at, n, p->base, n_level);
  }
  unsigned wrong = 0;
  for (size_t k = 0; k < n; ++k) {
    wrong |= (unsigned)tb_code_of(p, at + k) - low >= n_level;
  }
  return wrong == 0;
}

static bool part_is_whole(const struct tb_column* p, size_t from, size_t n) {
  const size_t at = p->first + from;
  switch (p->kind) {
  case TB_COLUMN_double:
    for (size_t j = 0; j < p->n_col; ++j) {
      if (!all_within_bounds(p->v_double + j * p->n_row + at, n)) {
        return false;
      }
    }
    return true;
  case TB_COLUMN_int:
    for (size_t j = 0; j < p->n_col; ++j) {
      /* every integer but the smallest, which is R's missing one */
      if (!all_within(p->v_int + j * p->n_row + at, n, -INT_MAX, UINT_MAX)) {
        return false;
      }
    }
    return true;
  case TB_COLUMN_code:
    return codes_are_known(p, at, n);
  case TB_COLUMN_smooth:
    break;
  }
  return false;
}

static bool column_is_whole(const struct tb_column* p, size_t from, size_t n) {
  if (p->kind != TB_COLUMN_smooth) {
    return part_is_whole(p, from, n);
  }
  for (size_t c = 0; c < tb_smooth_parts(p->p_smooth); ++c) {
    if (!part_is_whole(&p->p_smooth->v_part[c], from, n)) {
      return false;
    }
  }
  return true;
}

/* What a row lacks: nothing, a value that is finite and known, a value. */
enum { FOUND_fine = 0, FOUND_bad = 1, FOUND_missing = 2 };

static unsigned look_at_part(const struct tb_column* p, size_t row) {
  const size_t at = p->first + row;
  if (p->kind == TB_COLUMN_code) {
    const int code = tb_code_of(p, at);
    if (code == TB_NA_INT) {
      return FOUND_missing;
    }
    const bool is_known = (unsigned)code - (unsigned)p->base < p->n_level;
    return is_known ? FOUND_fine : FOUND_bad;
  }
  unsigned found = FOUND_fine;
  for (size_t j = 0; j < p->n_col; ++j) {
    const size_t cell = j * p->n_row + at;
    if (p->kind == TB_COLUMN_int) {
      found |= p->v_int[cell] == TB_NA_INT ? FOUND_missing : 0;
    } else {
      const double value = p->v_double[cell];
      found |= isnan(value)                     ? FOUND_missing
               : fabs(value) <= TB_MOST_OF_DATA ? 0
                                                : FOUND_bad;
    }
  }
  return found;
}

static unsigned look_at(const struct tb_column* p, size_t row) {
  if (p->kind != TB_COLUMN_smooth) {
    return look_at_part(p, row);
  }
  unsigned found = FOUND_fine;
  for (size_t c = 0; c < tb_smooth_parts(p->p_smooth); ++c) {
    found |= look_at_part(&p->p_smooth->v_part[c], row);
  }
  return found;
}

/* What the rows lack goes to v_found; false: nothing, and all are wanted. */
static bool
look_at_tile(const struct tb_filling* p, size_t from, size_t n, char* v_found) {
  bool is_whole = p->v_keep == NULL || all_within(p->v_keep + from, n, 1, 1);
  memset(v_found, FOUND_fine, n);
  for (size_t c = 0; c < p->n_variable + p->n_target; ++c) {
    const struct tb_column* p_column = &p->v_column[c];
    if (!column_is_whole(p_column, from, n)) {
      is_whole = false;
      for (size_t k = 0; k < n; ++k) {
        v_found[k] |= (char)look_at(p_column, from + k);
      }
    }
  }
  return !is_whole;
}

static void stop_at(struct tb_filling* p, size_t row) {
  p->is_bad = true;
  p->bad_row = row;
  p->bad_column = 0;
  while (look_at(&p->v_column[p->bad_column], row) == FOUND_fine) {
    ++p->bad_column;
  }
}

/* Which of rows from .. from + n - 1 are written. Stops before a bad one: no
 * value of it is missing, but one cannot be. */
static void
tile_find(struct tb_filling* p, struct tile* p_tile, size_t from, size_t n) {
  char v_found[N_TILE];
  p_tile->from = from;
  p_tile->n = n;
  p_tile->smooth.p_held = NULL;
  p_tile->is_full = !look_at_tile(p, from, n, v_found);
  if (p_tile->is_full) {
    return;
  }
  p_tile->n = 0;
  for (size_t k = 0; k < n; ++k) {
    const size_t row = from + k;
    if (p->v_keep != NULL && p->v_keep[row] != 1) {
      continue;
    }
    if (v_found[k] == FOUND_bad) {
      stop_at(p, row);
      return;
    }
    if (v_found[k] == FOUND_fine) {
      p_tile->v_row[p_tile->n++] = row;
    } else {
      ++p->n_missing;
    }
  }
}

/* ---- writing ---- */

/* Numbers of `n` rows, consecutive or v_row; the first operand of a product is
 * written, others multiply what is there. */
TB_CLONES
static void put_doubles(const double* restrict v,
                        const size_t* v_row,
                        size_t n,
                        bool is_first,
                        double* restrict v_out) {
  if (v_row != NULL) {
    if (is_first) {
      EACH(n, k, v_out[k] = v[v_row[k]])
    } else {
      EACH(n, k, v_out[k] *= v[v_row[k]])
    }
  } else if (is_first) {
    memcpy(v_out, v, n * sizeof(double));
  } else {
    EACH(n, k, v_out[k] *= v[k])
  }
}

TB_CLONES
static void put_ints(const int* restrict v,
                     const size_t* v_row,
                     size_t n,
                     bool is_first,
                     double* restrict v_out) {
  if (v_row != NULL) {
    EACH(n, k, v_out[k] = (is_first ? 1 : v_out[k]) * v[v_row[k]])
  } else if (is_first) {
    EACH(n, k, v_out[k] = v[k])
  } else {
    EACH(n, k, v_out[k] *= v[k])
  }
}

/* The value where the code is this, and 0 elsewhere. */
TB_CLONES
static void put_single(const int* restrict v_code,
                       int code,
                       double value,
                       size_t n,
                       bool is_first,
                       double* restrict v_out) {
  if (is_first) {
    EACH(n, k, v_out[k] = v_code[k] == code ? value : 0)
  } else {
    EACH(n, k, v_out[k] = v_code[k] == code ? v_out[k] * value : 0)
  }
}

static void put_table(const int* restrict v_code,
                      int base,
                      const double* restrict v_table,
                      size_t n,
                      bool is_first,
                      double* restrict v_out) {
  if (is_first) {
    EACH(n, k, v_out[k] = v_table[v_code[k] - base])
  } else {
    EACH(n, k, v_out[k] *= v_table[v_code[k] - base])
  }
}

/* Codes of the tile's rows, where they stand or gathered. */
static const int* codes_of(const struct tb_column* p, struct tile* p_tile) {
  const size_t first = p->first + p_tile->from;
  if (p_tile->is_full && p->v_map == NULL) {
    return p->v_int + first;
  }
  for (size_t k = 0; k < p_tile->n; ++k) {
    const size_t at = p_tile->is_full ? first + k : p->first + p_tile->v_row[k];
    p_tile->v_code[k] = tb_code_of(p, at);
  }
  return p_tile->v_code;
}

static void put_numbers(const struct tb_column* p,
                        size_t column,
                        const struct tile* p_tile,
                        bool is_first,
                        double* v_out) {
  const size_t at =
      column * p->n_row + p->first + (p_tile->is_full ? p_tile->from : 0);
  const size_t* v_row = p_tile->is_full ? NULL : p_tile->v_row;
  if (p->kind == TB_COLUMN_double) {
    put_doubles(p->v_double + at, v_row, p_tile->n, is_first, v_out);
  } else {
    put_ints(p->v_int + at, v_row, p_tile->n, is_first, v_out);
  }
}

static void put_smooth(const struct tb_smooth* p,
                       size_t column,
                       struct tile* p_tile,
                       bool is_first,
                       double* v_out) {
  if (p_tile->smooth.p_held != p) {
    const size_t* v_row = p_tile->is_full ? NULL : p_tile->v_row;
    tb_smooth_read(p, v_row, p_tile->from, p_tile->n, &p_tile->smooth);
  }
  tb_smooth_put(&p_tile->smooth, column, p_tile->n, is_first, v_out);
}

/* v_code: of variable *p_held, as codes_of() gave them last */
static void put_operand(const struct tb_filling* p,
                        struct tile* p_tile,
                        size_t operand,
                        bool is_first,
                        const int** p_code,
                        int* p_held,
                        double* v_out) {
  const struct tb_program* p_program = p->p_program;
  const int variable = p_program->v_variable[operand];
  const struct tb_column* p_column = &p->v_column[variable];
  const size_t at = (size_t)p_program->v_at[operand];
  if (p_column->kind == TB_COLUMN_smooth) {
    put_smooth(p_column->p_smooth, at, p_tile, is_first, v_out);
    return;
  }
  if (p_column->kind != TB_COLUMN_code) {
    put_numbers(p_column, at, p_tile, is_first, v_out);
    return;
  }
  if (*p_held != variable) {
    *p_code = codes_of(p_column, p_tile);
    *p_held = variable;
  }
  const double* v_table = p_program->v_table + at;
  const int base = p_column->base, single = p_program->v_single[operand];
  if (single >= 0) {
    put_single(*p_code,
               single + base,
               v_table[single],
               p_tile->n,
               is_first,
               v_out);
  } else {
    put_table(*p_code, base, v_table, p_tile->n, is_first, v_out);
  }
}

static void put_design(const struct tb_filling* p, struct tile* p_tile) {
  const struct tb_program* p_program = p->p_program;
  const int* v_code = NULL;
  int held = -1;
  for (size_t j = 0; j < p_program->n_column; ++j) {
    double* v_out = p->v_x + j * p->n_size + p->n_filled;
    const size_t start = (size_t)p_program->v_start[j];
    const size_t end = (size_t)p_program->v_start[j + 1];
    if (start == end) {
      EACH(p_tile->n, k, v_out[k] = 1)
    }
    for (size_t o = start; o < end; ++o) {
      put_operand(p, p_tile, o, o == start, &v_code, &held, v_out);
    }
  }
}

static void put_targets(const struct tb_filling* p, struct tile* p_tile) {
  for (size_t t = 0; t < p->n_target; ++t) {
    const struct tb_column* p_column = &p->v_column[p->n_variable + t];
    double* v_out = p->v_target[t] + p->n_filled;
    if (p_column->kind == TB_COLUMN_code) {
      const int* v_code = codes_of(p_column, p_tile);
      const double* v_table = p_column->v_table;
      put_table(v_code, p_column->base, v_table, p_tile->n, true, v_out);
      continue;
    }
    for (size_t j = 0; j < p_column->n_col; ++j) {
      put_numbers(p_column, j, p_tile, true, v_out + j * p->n_size);
    }
  }
}

void tb_design_fill(struct tb_filling* p) {
  struct tile tile;
  p->n_missing = 0;
  p->is_bad = false;
  while (p->from < p->n_row && p->n_filled < p->n_size && !p->is_bad) {
    const size_t left = tb_min(p->n_row - p->from, p->n_size - p->n_filled);
    const size_t n = tb_min(left, N_TILE);
    tile_find(p, &tile, p->from, n);
    put_design(p, &tile);
    put_targets(p, &tile);
    p->n_filled += tile.n;
    p->from = p->is_bad ? p->bad_row : p->from + n;
  }
}
