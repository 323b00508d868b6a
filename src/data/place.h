/* Files on their way: their names, and who writes them. */
#ifndef TB_DATA_PLACE_H
#define TB_DATA_PLACE_H

#include "data/fault.h"

#include <stdbool.h>
#include <stdio.h>

/* A file that is whole gets the name `to`, and loses its own;
 * TB_FILE_exists, and it keeps it, where there is a file of that name. */
enum tb_file_fault tb_file_place(const char* path, const char* to);
/* The lock of who writes this file, -1 where there are no locks: it outlives
 * the stream. TB_FILE_exists: somebody else has, or had, taken it for left. */
enum tb_file_fault tb_file_lock(FILE* p_stream, int* p_lock);
void tb_file_unlock(int lock);
/* Removes a file that nobody writes and nobody finished; did it? */
bool tb_file_sweep(const char* path);

#endif
