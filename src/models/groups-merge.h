/* Rows of a group that say the same become one, see groups-merge.c. */
#ifndef TB_MODELS_GROUPS_MERGE_H
#define TB_MODELS_GROUPS_MERGE_H

#include "models/groups-rows.h"

/* After groups_rows_end(); pools: are y shares of trials? Rows that are folded
 * stay, and all where few are the same. Where it fails p is as it was. path: of
 * a new file that takes what becomes of rows in a file; *p_fault: of that, as
 * groups_rows_begin() has it; *p_is_new: did it take them? */
enum tb_status groups_rows_merge(struct groups_rows* p,
                                 bool pools,
                                 const char* path,
                                 enum tb_file_fault* p_fault,
                                 bool* p_is_new);

#endif
