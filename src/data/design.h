/* Rows of a design matrix, written from columns of data as they stand in R.
 *
 * A variable of a design is a column: numbers (doubles or integers, one or many
 * columns of them), or codes of levels. Each column of the design is a product
 * of operands: a column of numbers, or the entry of a table at the row's level.
 * An empty product is an intercept. */
#ifndef TB_DATA_DESIGN_H
#define TB_DATA_DESIGN_H

#include "data/column.h"

#include <stdbool.h>
#include <stddef.h>

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
 * numbers go to v_target, of which each is n_size x its columns. v_keep: TRUE
 * for rows that are wanted, row r at v_keep[r]; or NULL. */
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
