/* What rows of a multilevel regression hold, in memory or a file. */
#ifndef TB_MODELS_GROUPS_HELD_H
#define TB_MODELS_GROUPS_HELD_H

#include "base/status.h"
#include "data/region.h"
#include "data/store.h"

/*   variable    shape        owner
 *   v_first     n_group + 1  here: where groups begin in the store
 *   v_there     n_group      here: rows of a group that came
 *   v_number    n_row x k    here: v_y of n_y columns, v_weight, v_offset
 *   v_constant  n_group      here: of the log density, where rows are folded or
 *                            pooled
 *   v_spare     n_group      here: rows that the fold spares
 *   v_row       n_padded     here: scratch, as v_T, n_wide x n_wide by rows
 *   region                   here: the file in which all of these lie but
 *                            v_there and scratch, and the rows; none: memory
 *
 * A model that takes them over leaves zeros here. */
struct groups_rows {
  struct tb_store store;
  struct tb_region region;
  size_t n_group;
  size_t n_y;
  bool folds;
  size_t* v_first;
  size_t* v_there;
  double* v_number;
  size_t n_byte;
  double* v_y;
  double* v_weight; /* NULL: 1 each */
  double* v_offset; /* NULL: 0 each */
  double* v_constant;
  double* v_spare;
  double* v_row;
  double* v_T;
};

struct groups_shape {
  const struct tb_store_type* type; /* of the store */
  size_t n_col;
  size_t n_group;
  const double* v_size; /* n_group: rows of each, one at least */
  size_t n_y;           /* columns of y; one where it folds */
  bool has_weights;
  bool has_offset;
  bool folds;        /* of a normal response, see groups-rows.c */
  bool has_constant; /* is v_constant wanted where nothing folds? */
  const char* path;  /* of a new file, see groups-file.c; NULL: memory */
};

void groups_rows_destroy(struct groups_rows* p);
/* the store's hash, of the rows that are there */
enum tb_status groups_rows_hash(struct tb_store* p_store);

#endif
