/* Mapped stores: rows in a file that the system keeps in memory as far as there
 * is room, shared by all processes that map it. The loops are those of dense.c
 * and float.c, which do not see the difference; rows stay as they are.
 *
 * Rows are those of a file that tb_file_map() opens, or, where they are
 * appended, in a temporary file without a name. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise() */
#endif

#include "data/file.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

extern const struct tb_store_type tb_store_dense;
extern const struct tb_store_type tb_store_float;
extern const struct tb_store_type tb_store_mapped;
extern const struct tb_store_type tb_store_mapped_float;

/* ---- mappings ---- */

static void rows_set(struct tb_store* p_store, void* p_rows, size_t n_byte) {
  if (p_store->type == &tb_store_mapped) {
    p_store->v_data = p_rows;
  } else {
    p_store->p_self = p_rows;
  }
  p_store->n_byte = n_byte;
}

#ifdef _WIN32

static enum tb_status mapped_create(struct tb_store* p_store) {
  (void)p_store;
  return TB_STATUS_unsupported;
}

static void mapped_destroy(struct tb_store* p_store) {
  (void)p_store;
}

enum tb_file_fault tb_file_map(const char* path, struct tb_store* p_store) {
  (void)path;
  (void)p_store;
  return TB_FILE_unsupported;
}

#else

/* Space for the file, zero, where the system can say whether there is any. */
static bool extend(int file, size_t n_byte) {
#if defined(__linux__) || defined(__FreeBSD__)
  return posix_fallocate(file, 0, (off_t)n_byte) == 0;
#else
  return ftruncate(file, (off_t)n_byte) == 0;
#endif
}

static enum tb_status mapped_create(struct tb_store* p_store) {
  const bool is_float = p_store->type == &tb_store_mapped_float;
  size_t n_byte;
  if (!tb_store_size(p_store,
                     is_float ? sizeof(float) : sizeof(double),
                     &n_byte)) {
    return TB_STATUS_memory;
  }
  FILE* p_stream = tmpfile();
  if (p_stream == NULL) {
    return TB_STATUS_memory;
  }
  void* p_rows = MAP_FAILED;
  if (extend(fileno(p_stream), n_byte)) {
    p_rows = mmap(NULL,
                  n_byte,
                  PROT_READ | PROT_WRITE,
                  MAP_SHARED,
                  fileno(p_stream),
                  0);
  }
  fclose(p_stream); /* the mapping keeps the file */
  if (p_rows == MAP_FAILED) {
    return TB_STATUS_memory;
  }
  rows_set(p_store, p_rows, n_byte);
  return TB_STATUS_ok;
}

static void mapped_destroy(struct tb_store* p_store) {
  void* p_rows =
      p_store->v_data != NULL ? (void*)p_store->v_data : p_store->p_self;
  if (p_rows != NULL) {
    (void)munmap(p_rows, p_store->n_byte);
  }
  p_store->v_data = NULL;
  p_store->p_self = NULL;
  p_store->n_byte = 0;
}

static enum tb_file_fault
map_rows(const char* path, const struct tb_file* p_file, struct tb_store* p) {
  const size_t n_number = p->n_row * p->n_padded;
  const size_t n_byte =
      n_number * (p_file->is_float ? sizeof(float) : sizeof(double));
  const int file = open(path, O_RDONLY);
  if (file < 0) {
    return TB_FILE_unreadable;
  }
  void* p_rows =
      mmap(NULL, n_byte, PROT_READ, MAP_SHARED, file, (off_t)p_file->offset);
  (void)close(file);
  if (p_rows == MAP_FAILED) {
    return TB_FILE_memory;
  }
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  /* advice: random rows then miss the cache but not the TLB as well */
  (void)madvise(p_rows, n_byte, MADV_HUGEPAGE);
#endif
  rows_set(p, p_rows, n_byte);
  return TB_FILE_ok;
}

enum tb_file_fault tb_file_map(const char* path, struct tb_store* p_store) {
  struct tb_file file;
  enum tb_file_fault fault = tb_file_read(path, &file);
  *p_store = (struct tb_store){.type = NULL};
  if (fault != TB_FILE_ok) {
    return fault;
  }
  *p_store = (struct tb_store){.type = file.is_float ? &tb_store_mapped_float
                                                     : &tb_store_mapped,
                               .n_row = file.n_row,
                               .n_col = file.n_col,
                               .n_padded = file.n_padded,
                               .n_filled = file.n_row,
                               .hash = file.hash};
  fault = map_rows(path, &file, p_store);
  tb_file_destroy(&file);
  if (fault != TB_FILE_ok) {
    p_store->type = NULL;
  }
  return fault;
}

#endif

/* ---- what is in a file ---- */

bool tb_file_hash(const struct tb_store* p_store,
                  size_t start,
                  size_t n_row,
                  double* v_scratch,
                  uint64_t* p_hash) {
  const size_t n_col = p_store->n_col, n_padded = p_store->n_padded;
  const double* v_block =
      p_store->type->block(p_store, start, n_row, v_scratch);
  *p_hash = tb_rows_hash(*p_hash, v_block, start, n_row, n_col, n_padded);
  bool is_zero = true;
  for (size_t i = 0; i < n_row; ++i) {
    for (size_t j = n_col; j < n_padded; ++j) {
      is_zero = is_zero && v_block[i * n_padded + j] == 0;
    }
  }
  return is_zero;
}

/* ---- the tables ---- */

/* Those of the loops, whose tables are no constants here. */
#define LOOPS(prefix, base)                                                    \
  static enum tb_status prefix##_append(struct tb_store* p_store,              \
                                        size_t n_row,                          \
                                        const double* v_block) {               \
    return base.append(p_store, n_row, v_block);                               \
  }                                                                            \
  static void prefix##_dot(const struct tb_store* p_store,                     \
                           const struct tb_rows* p_rows,                       \
                           const double* v,                                    \
                           double* v_out) {                                    \
    base.dot(p_store, p_rows, v, v_out);                                       \
  }                                                                            \
  static void prefix##_add(const struct tb_store* p_store,                     \
                           const struct tb_rows* p_rows,                       \
                           const double* v_u,                                  \
                           double* v_sum) {                                    \
    base.add(p_store, p_rows, v_u, v_sum);                                     \
  }                                                                            \
  static void prefix##_add_square(const struct tb_store* p_store,              \
                                  const struct tb_rows* p_rows,                \
                                  const double* v_u,                           \
                                  double* v_sum,                               \
                                  double* v_square) {                          \
    base.add_square(p_store, p_rows, v_u, v_sum, v_square);                    \
  }                                                                            \
  static const double* prefix##_block(const struct tb_store* p_store,          \
                                      size_t start,                            \
                                      size_t n_row,                            \
                                      double* v_scratch) {                     \
    return base.block(p_store, start, n_row, v_scratch);                       \
  }                                                                            \
  static void prefix##_gather(const struct tb_store* p_store,                  \
                              const size_t* v_index,                           \
                              size_t start,                                    \
                              size_t n_row,                                    \
                              size_t n_lead,                                   \
                              double* v_out) {                                 \
    base.gather(p_store, v_index, start, n_row, n_lead, v_out);                \
  }                                                                            \
  static void prefix##_prefetch(const struct tb_store* p_store, size_t row) {  \
    base.prefetch(p_store, row);                                               \
  }
LOOPS(mapped, tb_store_dense)
LOOPS(mapped_float, tb_store_float)

static size_t mapped_memory(const struct tb_store* p_store) {
  return p_store->n_byte;
}

const struct tb_store_type tb_store_mapped = {.name = "mapped",
                                              .create = mapped_create,
                                              .append = mapped_append,
                                              .dot = mapped_dot,
                                              .add = mapped_add,
                                              .add_square = mapped_add_square,
                                              .block = mapped_block,
                                              .gather = mapped_gather,
                                              .prefetch = mapped_prefetch,
                                              .memory = mapped_memory,
                                              .destroy = mapped_destroy};

const struct tb_store_type tb_store_mapped_float = {
    .name = "mapped-float",
    .rounding = FLT_EPSILON / 2,
    .create = mapped_create,
    .append = mapped_float_append,
    .dot = mapped_float_dot,
    .add = mapped_float_add,
    .add_square = mapped_float_add_square,
    .block = mapped_float_block,
    .gather = mapped_float_gather,
    .prefetch = mapped_float_prefetch,
    .memory = mapped_memory,
    .destroy = mapped_destroy};
