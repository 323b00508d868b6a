/* How a multilevel regression takes its rows, and its nodes.
 *
 * Rows come in blocks, in any order, and each is put down where its group's
 * rows lie: none of them is kept twice. */
#ifndef TB_MODELS_GROUPS_ROWS_H
#define TB_MODELS_GROUPS_ROWS_H

#include "data/fault.h"
#include "models/groups-held.h"
#include "models/model.h"

struct tb_params;
struct tb_shelf;

/* v_y or v_whole, columns n_lead_y apart; v_weight and v_offset where they are
 * wanted */
struct groups_block {
  size_t n_row;
  size_t n_lead;
  const double* v_x;  /* columns n_lead apart */
  const int* v_group; /* from 1 */
  size_t n_lead_y;
  const double* v_y;
  const int* v_whole;
  const double* v_weight;
  const double* v_offset;
};

/* What is known of columns before rows come: of each column of z the largest
 * absolute value; which columns of x it is; and whether a value is another than
 * the first of its group.
 *
 *   variable    shape               owner
 *   v_x         n_row x n_col       the caller, columns n_lead apart
 *   v_z         n_row x n_effect    the caller, columns n_lead_z apart
 *   v_group     n_row               the caller: from 1
 *   v_seen      n_group x n_effect  the caller: the first value of each group,
 *                                   NaN where none came, which is written here;
 *                                   NULL: nothing varies
 *   v_most      n_effect            the caller's, written, as those below
 *   v_same      n_col x n_effect
 *   v_varies    n_effect */
struct groups_columns {
  size_t n_row;
  size_t n_col;
  size_t n_lead;
  const double* v_x;
  size_t n_effect;
  size_t n_lead_z;
  const double* v_z;
  size_t n_group;
  const int* v_group;
  double* v_seen;
  double* v_most;
  int* v_same;
  int* v_varies;
};

/* false: a group is none */
bool groups_compare(const struct groups_columns* p);

/* Where it fails there is nothing to destroy; *p_fault: of the file, where
 * there is one, and the status is TB_STATUS_memory. */
enum tb_status groups_rows_begin(struct groups_rows* p,
                                 const struct groups_shape* p_shape,
                                 enum tb_file_fault* p_fault);
/* TB_STATUS_argument for a group that is none, or has all its rows; no row
 * counts on after that. */
enum tb_status groups_rows_add(struct groups_rows* p,
                               const struct groups_block* p_block);
/* After the last block; TB_STATUS_argument where rows are missing. */
enum tb_status groups_rows_end(struct groups_rows* p);

/* Rows, responses and where groups begin; n_data is set. They are the parameter
 * "rows", the address of those that were put down, or "x" and others. */
enum tb_status groups_take_rows(struct tb_model* p_model,
                                const struct tb_params* p_params,
                                const struct tb_shelf* p_shelf);

/* Other nodes: not while a run advances. */
enum tb_status groups_set_nodes(struct tb_model* p_model,
                                const double* v_value,
                                size_t n_node);

#endif
