/* Rows of a design matrix, written from columns of data as they stand in R.
 *
 * A variable of a design is a column: numbers (doubles or integers, one or many
 * columns of them), or codes of levels. Each column of the design is a product
 * of operands: a column of numbers, or the entry of a table at the row's level.
 * An empty product is an intercept. */
#ifndef TB_DATA_DESIGN_H
#define TB_DATA_DESIGN_H

#include <limits.h>
#include <stdbool.h>
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

/* A smooth term (spec section 17): column j is basis v_basis[j] - 1 at a number
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

/* Column j of the design is the product of operands v_start[j] up to
 * v_start[j + 1]. An operand is variable v_variable[o], and of it: column
 * v_at[o] of numbers; or, of levels, the table at v_table + v_at[o]. A table
 * whose only entry that is not 0 is of level v_single[o] has that here, others
 * -1. */
struct tb_program {
  size_t n_column;
  const int* v_start;
  const int* v_variable;
  const int* v_at;
  const int* v_single;
  const double* v_table;
};

/* Rows `from` to n of a block: complete ones go to v_x (n_size x n_column, by
 * columns) from row n_filled on, until it is full. v_column: n_variable of the
 * program, then the targets (response, weights, offset; NULL: absent), whose
 * numbers go to v_target, of which each is n_size long. v_keep: TRUE for rows
 * that are wanted, row r at v_keep[r]; or NULL. */
struct tb_filling {
  const struct tb_program* p_program;
  const struct tb_column* v_column;
  size_t n_variable, n_target;
  const int* v_keep;
  size_t n_row, n_size;
  double* v_x;
  double* const* v_target;
  /* in and out */
  size_t from, n_filled;
  /* out: rows that were wanted and lack a value; the row, from 0, and column
   * that stopped it: a number that is not finite or is too large, a level that
   * is unknown */
  size_t n_missing;
  size_t bad_row;
  size_t bad_column;
  bool is_bad;
};

void tb_design_fill(struct tb_filling* p);

#endif
