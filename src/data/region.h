/* A file that is mapped to be written in any order, and mapped to be read once
 * it is whole. What is in it is its user's: of a file on its way the first 8
 * bytes are 0 (see data/place.h), and come last. */
#ifndef TB_DATA_REGION_H
#define TB_DATA_REGION_H

#include "data/fault.h"

#include <stdbool.h>
#include <stddef.h>

/* All zero: none. */
struct tb_region {
  unsigned char* v_byte; /* n_byte of them, at a page */
  size_t n_byte;
  bool is_locked;
  int lock; /* while it is: of who writes */
};

/* A new file of n_byte zeros, for which there is space, to be written. On
 * failure nothing is mapped; the file may be there. */
enum tb_file_fault
tb_region_create(const char* path, size_t n_byte, struct tb_region* p);
/* A file that is there, to be read. */
enum tb_file_fault tb_region_open(const char* path, struct tb_region* p);
/* It is whole: who finds it need not take it for left. */
void tb_region_release(struct tb_region* p);
void tb_region_close(struct tb_region* p);

#endif
