/* Columns of data as they stand in R, of which designs are made. */
#ifndef TB_DATA_COLUMN_H
#define TB_DATA_COLUMN_H

#include <limits.h>
#include <stddef.h>

/* how large a number may be: most_of_data in R */
#define TB_MOST_OF_DATA 1e60

/* R's missing integer */
#define TB_NA_INT INT_MIN

enum tb_column_kind {
  TB_COLUMN_double,
  TB_COLUMN_int,
  TB_COLUMN_code,
  TB_COLUMN_smooth
};

struct tb_column;

/* A smooth term (data/smooth.c): column j is basis v_basis[j] - 1 at a number
 * x, times the indicator of level v_level[j], times numbers; 0 for basis or
 * level: that factor is 1.
 *
 * v_break        n_break: between two of them a basis is a cubic
 * v_coefficient  4 x n_basis x (n_break + 1): of powers of the distance to the
 *                break below; first of what lies before all, about the first
 * period         distance of the outer breaks, of a basis that begins anew
 *                there; 0: of others
 * v_part         the columns read: x, where n_break > 0, n_code of codes, whose
 *                levels together count from 1, those of the last fastest, and
 *                n_times of numbers */
struct tb_smooth {
  size_t n_column;
  const int* v_basis;
  const int* v_level;
  size_t n_break, n_basis;
  const double* v_break;
  const double* v_coefficient;
  double period;
  size_t n_code, n_times;
  const struct tb_column* v_part;
};

/* Values of one variable; all arrays are of others, read only.
 *
 * v_double / v_int  n_col columns, n_row apart; row r of the block is at
 *                   first + r of each
 * base              codes: of the first level (1; logical values: 0)
 * v_map             codes: n_map of them, the code that stands for code k + 1,
 *                   or -1: none; NULL: codes are as they should be
 * n_level           codes: base .. base + n_level - 1 are known
 * v_table           codes of a response: the number of each level; or NULL
 * p_smooth          a smooth term, which has nothing of the above */
struct tb_column {
  enum tb_column_kind kind;
  const double* v_double;
  const int* v_int;
  size_t n_row, n_col, first;
  int base;
  const int* v_map;
  size_t n_map;
  size_t n_level;
  const double* v_table;
  const struct tb_smooth* p_smooth;
};

#endif
