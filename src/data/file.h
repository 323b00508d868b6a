/* Files of rows: written once, block by block, and mapped ever after.
 *
 *   head     one struct head (file.c): magic number, byte order, version, type,
 *            shape, hash of the rows, checksum of all that stands before them
 *   columns  n_col means, n_col standard deviations (divisor N - 1), doubles
 *   names    n_name bytes, each name ended by a 0; none: columns have no names
 *   rows     from `offset` on, a multiple of every page size: n_row x n_padded
 *            doubles or floats, row-major, zeros beyond n_col
 *
 * Numbers are as the machine that wrote them has them: a file of another byte
 * order is refused, not turned, since its rows could not be mapped. */
#ifndef TB_DATA_FILE_H
#define TB_DATA_FILE_H

#include "data/fault.h"
#include "data/store.h"

#include <stdio.h>

struct tb_file {
  bool is_float;
  size_t n_row;
  size_t n_col;
  size_t n_padded;
  size_t offset;
  size_t n_name;
  uint64_t hash;    /* of the rows: tb_rows_hash() */
  double* v_column; /* 2 n_col: means, standard deviations; owned */
  char* v_name;     /* n_name; owned */
};

void tb_file_destroy(struct tb_file* p_file);

/* Any file: *p_n bytes after the first `offset`, or as many as there are. */
enum tb_file_fault
tb_file_bytes(const char* path, size_t offset, unsigned char* v, size_t* p_n);

/* What stands before the rows. On failure nothing is kept. */
enum tb_file_fault tb_file_read(const char* path, struct tb_file* p_file);

/* A file that is being written; all zero: none is. */
struct tb_writer {
  struct tb_file file; /* n_row: the rows there are */
  size_t n_reserved;   /* rows there is space for */
  FILE* p_stream;
  char* p_buffer;  /* of the stream */
  double* v_block; /* ROWS x n_padded, as rows are appended */
  float* v_float;  /* the same in single precision; NULL: doubles */
  bool is_locked;
  int lock; /* while it is: held until the writer is closed */
};

/* A new file with space for n_row rows, 0: for as many as come. v_name: n_name
 * bytes, or NULL. On failure the writer is closed; the file may be there. */
enum tb_file_fault tb_writer_open(struct tb_writer* p_writer,
                                  const char* path,
                                  bool is_float,
                                  size_t n_row,
                                  size_t n_col,
                                  const char* v_name,
                                  size_t n_name);
/* n_row rows of a matrix of column-major doubles. */
enum tb_file_fault tb_writer_append(struct tb_writer* p_writer,
                                    size_t n_row,
                                    const double* v_matrix);
/* Writes what stands before the rows: only then the file is one. */
enum tb_file_fault tb_writer_finish(struct tb_writer* p_writer);
/* Frees all that the writer has, its lock too; the file stays as it is. */
void tb_writer_close(struct tb_writer* p_writer);

/* mapped.c: a read-only store of the rows of a file; tb_file_fault of
 * tb_file_read() and its own. */
enum tb_file_fault tb_file_map(const char* path, struct tb_store* p_store);
/* Adds rows start.. of a mapped file to the hash, which after all of them,
 * from 0 on, is p_store->hash; false: what fills a row up is not 0. v_scratch:
 * n_row x n_padded numbers. */
bool tb_file_hash(const struct tb_store* p_store,
                  size_t start,
                  size_t n_row,
                  double* v_scratch,
                  uint64_t* p_hash);

#endif
