/* How a multilevel regression takes its rows, and its nodes. */
#ifndef TB_MODELS_GROUPS_ROWS_H
#define TB_MODELS_GROUPS_ROWS_H

#include "models/model.h"

struct tb_params;
struct tb_shelf;

/* Rows, responses and where groups begin, from the parameters; n_data is set.
 */
enum tb_status groups_take_rows(struct tb_model* p_model,
                                const struct tb_params* p_params,
                                const struct tb_shelf* p_shelf);

/* Other nodes: not while a run advances. */
enum tb_status groups_set_nodes(struct tb_model* p_model,
                                const double* v_value,
                                size_t n_node);

#endif
