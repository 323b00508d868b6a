/* Rows of a multilevel regression in a file: see groups-file.c. */
#ifndef TB_MODELS_GROUPS_FILE_H
#define TB_MODELS_GROUPS_FILE_H

#include "data/fault.h"
#include "models/groups-held.h"

/* A file for n_row rows of such a shape: all that is an array of p lies in it,
 * zeros. */
enum tb_file_fault groups_file_create(const char* path,
                                      const struct groups_shape* p_shape,
                                      size_t n_row,
                                      struct groups_rows* p);
/* All rows are there: only then the file is one. */
void groups_file_finish(struct groups_rows* p);
/* The rows of a file, all of which are read to see that they are what was
 * written. On failure there is nothing to destroy. */
enum tb_file_fault groups_file_open(const char* path, struct groups_rows* p);

#endif
