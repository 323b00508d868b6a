/* Rows of a group that say the same become one, see groups-merge.c. */
#ifndef TB_MODELS_GROUPS_MERGE_H
#define TB_MODELS_GROUPS_MERGE_H

#include "models/groups-rows.h"

/* After groups_rows_end(); pools: are y shares of trials? Rows that are folded
 * stay, and all where few are the same. Where it fails p is as it was. */
enum tb_status groups_rows_merge(struct groups_rows* p, bool pools);

#endif
