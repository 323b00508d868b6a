/* Rows of a table that are alike: of factors and whole numbers many are, and
 * what a likelihood makes of one it makes of all of them.
 *
 * A row is the bits of its numbers: 0 and -0 are not alike. */
#ifndef TB_PASSES_TIE_H
#define TB_PASSES_TIE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Groups of alike rows, in the order in which they are met.
 * v_column  n_column columns of n_row numbers each
 * n_row     below 2^31
 * v_group   n_row: the group of each row, from 0; SET
 * v_first   n_row: the first row of each group; the first *p_n_group SET */
enum tb_status tb_tie_rows(const double* const* v_column,
                           size_t n_column,
                           size_t n_row,
                           uint32_t* v_group,
                           uint32_t* v_first,
                           size_t* p_n_group);

#endif
