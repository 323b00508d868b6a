/* Columns of smooth terms, from the numbers and levels of a tile of rows. */
#ifndef TB_DATA_SMOOTH_H
#define TB_DATA_SMOOTH_H

#include "data/column.h"
#include "data/tile.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of a tile as a term has them, out: which interval of its table they are
 * in and how far behind the break, their levels, what they are multiplied by.
 * p_held: the term; NULL: none was read. */
struct tb_smooth_rows {
  const struct tb_smooth* p_held;
  int v_cell[N_TILE];
  double v_away[N_TILE];
  int v_level[N_TILE];
  double v_times[N_TILE];
};

/* How many columns a term reads. */
size_t tb_smooth_parts(const struct tb_smooth* p);

/* n rows of a block: v_row, or, NULL, from `from` on. They lack nothing. */
void tb_smooth_read(const struct tb_smooth* p,
                    const size_t* v_row,
                    size_t from,
                    size_t n,
                    struct tb_smooth_rows* p_rows);

/* A column of these rows; the first of a product is written to v_out, others
 * multiply what is there. */
void tb_smooth_put(const struct tb_smooth_rows* p_rows,
                   size_t column,
                   size_t n,
                   bool is_first,
                   double* v_out);

#endif
