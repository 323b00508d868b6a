#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* fileno(), posix_fallocate() */
#endif

#include "data/file.h"

#include "base/clip.h"
#include "base/hash.h"
#include "data/place.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <io.h>
#else
#include <fcntl.h>
#include <sys/types.h>
#endif

#define MAGIC           "tallrows"
#define BYTE_ORDER_MARK UINT32_C(0x01020304)
#define VERSION         1
#define PAGE            ((size_t)65536) /* a multiple of every system's */
#define HUGE_PAGE       ((size_t)2 << 20)

enum { ROWS = 256 };

struct head {
  char v_magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint64_t is_float;
  uint64_t n_row;
  uint64_t n_col;
  uint64_t n_padded;
  uint64_t offset;
  uint64_t n_name;
  uint64_t hash;
  uint64_t checksum;
};

void tb_file_destroy(struct tb_file* p_file) {
  free(p_file->v_column);
  free(p_file->v_name);
  p_file->v_column = NULL;
  p_file->v_name = NULL;
}

static struct head head_of(const struct tb_file* p) {
  struct head out = {.byte_order = BYTE_ORDER_MARK,
                     .version = VERSION,
                     .is_float = p->is_float,
                     .n_row = p->n_row,
                     .n_col = p->n_col,
                     .n_padded = p->n_padded,
                     .offset = p->offset,
                     .n_name = p->n_name,
                     .hash = p->hash};
  memcpy(out.v_magic, MAGIC, sizeof(out.v_magic));
  uint64_t sum = tb_hash_bytes(0, &out, sizeof(out));
  sum = tb_hash_doubles(sum, p->v_column, 2 * p->n_col);
  out.checksum = tb_hash_bytes(sum, p->v_name, p->n_name);
  return out;
}

static size_t number_size(const struct tb_file* p) {
  return p->is_float ? sizeof(float) : sizeof(double);
}

/* Bytes of the file; false: there can be none so large. */
static bool file_size(const struct tb_file* p, size_t* p_size) {
  struct tb_store shape = {.n_row = p->n_row, .n_col = p->n_col};
  size_t n_byte;
  if (!tb_store_size(&shape, number_size(p), &n_byte) ||
      shape.n_padded != p->n_padded || n_byte > SIZE_MAX / 2 - p->offset) {
    return false;
  }
  *p_size = p->offset + n_byte;
  return true;
}

/* Where rows begin: behind head, columns and names, and where there are, or may
 * be, many of them at a huge page, so that the system can map them by such. */
static size_t offset_of(const struct tb_file* p, size_t n_row) {
  const size_t n_before =
      sizeof(struct head) + 2 * p->n_col * sizeof(double) + p->n_name;
  const bool is_small =
      n_row > 0 && n_row < HUGE_PAGE / p->n_padded / number_size(p);
  const size_t page = is_small ? PAGE : HUGE_PAGE;
  return (n_before + page - 1) / page * page;
}

/* ---- reading ---- */

/* 64 bits also where long has fewer */
static bool seek_end(FILE* p_stream, uint64_t* p_size) {
#ifdef _WIN32
  const bool is_there = _fseeki64(p_stream, 0, SEEK_END) == 0;
  const long long size = is_there ? _ftelli64(p_stream) : -1;
#else
  const bool is_there = fseeko(p_stream, 0, SEEK_END) == 0;
  const off_t size = is_there ? ftello(p_stream) : -1;
#endif
  *p_size = size < 0 ? 0 : (uint64_t)size;
  return size >= 0;
}

/* A head that was written by this code on such a machine, whole or not. */
static enum tb_file_fault head_read(FILE* p_stream, struct head* p_head) {
  const size_t n_read = fread(p_head, 1, sizeof(*p_head), p_stream);
  if (n_read < sizeof(p_head->v_magic) ||
      memcmp(p_head->v_magic, MAGIC, sizeof(p_head->v_magic)) != 0) {
    return ferror(p_stream) ? TB_FILE_unreadable : TB_FILE_foreign;
  }
  if (n_read < sizeof(*p_head)) {
    return TB_FILE_truncated;
  }
  if (p_head->byte_order != BYTE_ORDER_MARK) {
    return TB_FILE_byte_order;
  }
  return p_head->version == VERSION ? TB_FILE_ok : TB_FILE_version;
}

static enum tb_file_fault columns_read(FILE* p_stream, struct tb_file* p) {
  const size_t n_value = 2 * p->n_col;
  p->v_column = malloc(n_value * sizeof(double));
  p->v_name = malloc(p->n_name + 1);
  if (p->v_column == NULL || p->v_name == NULL) {
    return TB_FILE_memory;
  }
  if (fread(p->v_column, sizeof(double), n_value, p_stream) != n_value ||
      fread(p->v_name, 1, p->n_name, p_stream) != p->n_name) {
    return TB_FILE_truncated;
  }
  return TB_FILE_ok;
}

static enum tb_file_fault stream_read(FILE* p_stream, struct tb_file* p) {
  struct head head;
  uint64_t n_there;
  size_t n_wanted;
  enum tb_file_fault fault = head_read(p_stream, &head);
  if (fault != TB_FILE_ok) {
    return fault;
  }
  /* nothing is allocated by a size that the file does not bear out */
  const uint64_t most = head.offset;
  if (head.n_col == 0 || head.n_row == 0 || most < sizeof(head) ||
      head.n_name > most || head.n_col > most / sizeof(double) / 2 ||
      head.n_row > SIZE_MAX || most > SIZE_MAX / 4) {
    return TB_FILE_damaged;
  }
  *p = (struct tb_file){.is_float = head.is_float != 0,
                        .n_row = (size_t)head.n_row,
                        .n_col = (size_t)head.n_col,
                        .n_padded = (size_t)head.n_padded,
                        .offset = (size_t)head.offset,
                        .n_name = (size_t)head.n_name,
                        .hash = head.hash};
  if (!file_size(p, &n_wanted) || p->offset % PAGE != 0 ||
      p->offset < sizeof(head) + 2 * p->n_col * sizeof(double) + p->n_name) {
    return TB_FILE_damaged;
  }
  fault = columns_read(p_stream, p);
  if (fault != TB_FILE_ok) {
    return fault;
  }
  if (head_of(p).checksum != head.checksum) {
    return TB_FILE_damaged;
  }
  if (!seek_end(p_stream, &n_there)) {
    return TB_FILE_unreadable;
  }
  return n_there < n_wanted ? TB_FILE_truncated : TB_FILE_ok;
}

static bool seek_to(FILE* p_stream, size_t offset) {
#ifdef _WIN32
  return _fseeki64(p_stream, (long long)offset, SEEK_SET) == 0;
#else
  return fseeko(p_stream, (off_t)offset, SEEK_SET) == 0;
#endif
}

enum tb_file_fault
tb_file_bytes(const char* path, size_t offset, unsigned char* v, size_t* p_n) {
  FILE* p_stream = fopen(path, "rb");
  const size_t n = *p_n;
  *p_n = 0;
  if (p_stream == NULL) {
    return TB_FILE_unreadable;
  }
  const bool is_there = seek_to(p_stream, offset);
  if (is_there) {
    *p_n = fread(v, 1, n, p_stream);
  }
  const bool is_read = is_there && ferror(p_stream) == 0;
  fclose(p_stream);
  return is_read ? TB_FILE_ok : TB_FILE_unreadable;
}

enum tb_file_fault tb_file_read(const char* path, struct tb_file* p_file) {
  FILE* p_stream = fopen(path, "rb");
  *p_file = (struct tb_file){.n_row = 0};
  if (p_stream == NULL) {
    return TB_FILE_unreadable;
  }
  const enum tb_file_fault fault = stream_read(p_stream, p_file);
  fclose(p_stream);
  if (fault != TB_FILE_ok) {
    tb_file_destroy(p_file);
  }
  return fault;
}

/* ---- writing ---- */

static enum tb_file_fault write_fault(void) {
  return errno == ENOSPC || errno == EFBIG ? TB_FILE_full : TB_FILE_unwritable;
}

/* Space is asked for before anything is written; where the system cannot say,
 * writing will. */
static enum tb_file_fault reserve(FILE* p_stream, size_t n_byte) {
#if defined(__linux__) || defined(__FreeBSD__)
  const int code = posix_fallocate(fileno(p_stream), 0, (off_t)n_byte);
  if (code == ENOSPC || code == EFBIG) {
    return TB_FILE_full;
  }
#else
  (void)p_stream;
  (void)n_byte;
#endif
  return TB_FILE_ok;
}

static bool writer_allocate(struct tb_writer* p, const char* v_name) {
  struct tb_file* p_file = &p->file;
  const size_t n_block = (size_t)ROWS * p_file->n_padded;
  p_file->v_column = calloc(p_file->n_col, 2 * sizeof(double));
  p_file->v_name = malloc(p_file->n_name + 1);
  p->v_block = calloc(n_block, sizeof(double));
  p->p_buffer = malloc(HUGE_PAGE);
  p->v_float = p_file->is_float ? calloc(n_block, sizeof(float)) : NULL;
  if (p_file->v_column == NULL || p_file->v_name == NULL ||
      p->v_block == NULL || p->p_buffer == NULL ||
      (p_file->is_float && p->v_float == NULL)) {
    return false;
  }
  if (p_file->n_name > 0) {
    memcpy(p_file->v_name, v_name, p_file->n_name);
  }
  return true;
}

/* The file, which another writer may have swept away before it was locked. */
static enum tb_file_fault writer_create(struct tb_writer* p, const char* path) {
  enum { TRIES = 10 };
  enum tb_file_fault fault = TB_FILE_exists;
  for (int k = 0; k < TRIES && fault == TB_FILE_exists; ++k) {
    p->p_stream = fopen(path, "wb");
    if (p->p_stream == NULL) {
      return write_fault();
    }
    fault = tb_file_lock(p->p_stream, &p->lock);
    p->is_locked = fault == TB_FILE_ok;
    if (!p->is_locked) {
      fclose(p->p_stream);
      p->p_stream = NULL;
    }
  }
  return fault == TB_FILE_ok ? TB_FILE_ok : TB_FILE_unwritable;
}

static enum tb_file_fault
writer_begin(struct tb_writer* p, const char* path, const char* v_name) {
  struct tb_file* p_file = &p->file;
  struct tb_store shape = {.n_row = 1, .n_col = p_file->n_col};
  size_t n_byte;
  if (p_file->n_col > SIZE_MAX / 64 / ROWS ||
      !tb_store_size(&shape, sizeof(double), &n_byte)) {
    return TB_FILE_memory;
  }
  p_file->n_padded = shape.n_padded;
  p_file->offset = offset_of(p_file, p->n_reserved);
  if (!writer_allocate(p, v_name)) {
    return TB_FILE_memory;
  }
  enum tb_file_fault fault = writer_create(p, path);
  if (fault != TB_FILE_ok) {
    return fault;
  }
  /* huge pages of the cache come of writes as large as they are */
  (void)setvbuf(p->p_stream, p->p_buffer, _IOFBF, HUGE_PAGE);
  p_file->n_row = p->n_reserved;
  const bool can_be = file_size(p_file, &n_byte);
  p_file->n_row = 0;
  if (!can_be) {
    return TB_FILE_full;
  }
  fault = reserve(p->p_stream, n_byte);
  if (fault == TB_FILE_ok && !seek_to(p->p_stream, p_file->offset)) {
    return write_fault();
  }
  return fault;
}

enum tb_file_fault tb_writer_open(struct tb_writer* p_writer,
                                  const char* path,
                                  bool is_float,
                                  size_t n_row,
                                  size_t n_col,
                                  const char* v_name,
                                  size_t n_name) {
  *p_writer = (struct tb_writer){.file.is_float = is_float,
                                 .file.n_col = n_col,
                                 .file.n_name = n_name,
                                 .n_reserved = n_row};
  const enum tb_file_fault fault = writer_begin(p_writer, path, v_name);
  if (fault != TB_FILE_ok) {
    tb_writer_close(p_writer);
  }
  return fault;
}

/* Means and sums of squares so far (Welford, 1962), and the hash. */
static void writer_count(struct tb_writer* p, size_t n_row) {
  struct tb_file* p_file = &p->file;
  const size_t n_col = p_file->n_col;
  double* v_mean = p_file->v_column;
  double* v_square = v_mean + n_col;
  for (size_t i = 0; i < n_row; ++i) {
    const double* v_row = p->v_block + i * p_file->n_padded;
    const double share = 1 / (double)(p_file->n_row + i + 1);
    for (size_t j = 0; j < n_col; ++j) {
      const double above = v_row[j] - v_mean[j];
      v_mean[j] += above * share;
      v_square[j] += above * (v_row[j] - v_mean[j]);
    }
  }
  p_file->hash = tb_rows_hash(p_file->hash,
                              p->v_block,
                              p_file->n_row,
                              n_row,
                              n_col,
                              p_file->n_padded);
  p_file->n_row += n_row;
}

/* Rows start.. of the matrix into the block, rounded as the file has them. */
static void writer_fill(struct tb_writer* p,
                        const double* v_matrix,
                        size_t n_matrix,
                        size_t start,
                        size_t n_row) {
  const size_t n_padded = p->file.n_padded;
  for (size_t j = 0; j < p->file.n_col; ++j) {
    const double* v_col = v_matrix + j * n_matrix + start;
    for (size_t i = 0; i < n_row; ++i) {
      p->v_block[i * n_padded + j] = v_col[i];
    }
  }
  for (size_t k = 0; p->v_float != NULL && k < n_row * n_padded; ++k) {
    p->v_float[k] = (float)p->v_block[k];
    p->v_block[k] = (double)p->v_float[k];
  }
}

enum tb_file_fault tb_writer_append(struct tb_writer* p_writer,
                                    size_t n_row,
                                    const double* v_matrix) {
  struct tb_writer* p = p_writer;
  for (size_t start = 0; start < n_row; start += ROWS) {
    const size_t n = tb_min(ROWS, n_row - start);
    const size_t n_number = n * p->file.n_padded;
    writer_fill(p, v_matrix, n_row, start, n);
    const size_t n_written =
        p->v_float == NULL
            ? fwrite(p->v_block, sizeof(double), n_number, p->p_stream)
            : fwrite(p->v_float, sizeof(float), n_number, p->p_stream);
    if (n_written != n_number) {
      return write_fault();
    }
    writer_count(p, n);
  }
  return TB_FILE_ok;
}

enum tb_file_fault tb_writer_finish(struct tb_writer* p_writer) {
  struct tb_file* p_file = &p_writer->file;
  FILE* p_stream = p_writer->p_stream;
  double* v_sd = p_file->v_column + p_file->n_col;
  const size_t n_value = 2 * p_file->n_col;
  for (size_t j = 0; j < p_file->n_col; ++j) {
    const double n_free = (double)p_file->n_row - 1;
    v_sd[j] = n_free > 0 ? sqrt(v_sd[j] / n_free) : 0;
  }
  const struct head head = head_of(p_file);
  if (!seek_to(p_stream, 0) || fwrite(&head, sizeof(head), 1, p_stream) != 1 ||
      fwrite(p_file->v_column, sizeof(double), n_value, p_stream) != n_value ||
      fwrite(p_file->v_name, 1, p_file->n_name, p_stream) != p_file->n_name) {
    return write_fault();
  }
  p_writer->p_stream = NULL;
  return fclose(p_stream) == 0 ? TB_FILE_ok : write_fault();
}

void tb_writer_close(struct tb_writer* p_writer) {
  if (p_writer->p_stream != NULL) {
    fclose(p_writer->p_stream);
    p_writer->p_stream = NULL;
  }
  if (p_writer->is_locked) {
    tb_file_unlock(p_writer->lock);
    p_writer->is_locked = false;
  }
  tb_file_destroy(&p_writer->file);
  free(p_writer->p_buffer);
  free(p_writer->v_block);
  free(p_writer->v_float);
  p_writer->p_buffer = NULL;
  p_writer->v_block = NULL;
  p_writer->v_float = NULL;
}
