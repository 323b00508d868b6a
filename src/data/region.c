#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* fileno(), posix_fallocate() */
#endif

#include "data/region.h"

#include "data/place.h"

#include <errno.h>
#include <stdio.h>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

void tb_region_release(struct tb_region* p) {
  if (p->is_locked) {
    tb_file_unlock(p->lock);
    p->is_locked = false;
  }
}

#ifdef _WIN32

enum tb_file_fault
tb_region_create(const char* path, size_t n_byte, struct tb_region* p) {
  (void)path;
  (void)n_byte;
  *p = (struct tb_region){.n_byte = 0};
  return TB_FILE_unsupported;
}

enum tb_file_fault tb_region_open(const char* path, struct tb_region* p) {
  (void)path;
  *p = (struct tb_region){.n_byte = 0};
  return TB_FILE_unsupported;
}

void tb_region_close(struct tb_region* p) {
  *p = (struct tb_region){.n_byte = 0};
}

#else

/* Space is asked for before anything is written, where the system can say. */
static enum tb_file_fault extend(int file, size_t n_byte) {
#if defined(__linux__) || defined(__FreeBSD__)
  int code;
  do {
    code = posix_fallocate(file, 0, (off_t)n_byte);
  } while (code == EINTR);
#else
  const int code = ftruncate(file, (off_t)n_byte) == 0 ? 0 : errno;
#endif
  if (code == 0) {
    return TB_FILE_ok;
  }
  return code == ENOSPC || code == EFBIG ? TB_FILE_full : TB_FILE_unwritable;
}

static enum tb_file_fault map(int file, int access, struct tb_region* p) {
  void* v = mmap(NULL, p->n_byte, access, MAP_SHARED, file, 0);
  p->v_byte = v == MAP_FAILED ? NULL : v;
  return v == MAP_FAILED ? TB_FILE_memory : TB_FILE_ok;
}

enum tb_file_fault
tb_region_create(const char* path, size_t n_byte, struct tb_region* p) {
  *p = (struct tb_region){.n_byte = n_byte};
  FILE* p_stream = fopen(path, "w+b");
  if (p_stream == NULL) {
    return TB_FILE_unwritable;
  }
  enum tb_file_fault fault = tb_file_lock(p_stream, &p->lock);
  p->is_locked = fault == TB_FILE_ok;
  if (fault == TB_FILE_ok) {
    fault = extend(fileno(p_stream), n_byte);
  }
  if (fault == TB_FILE_ok) {
    fault = map(fileno(p_stream), PROT_READ | PROT_WRITE, p);
  }
  fclose(p_stream); /* the mapping keeps the file */
  if (fault != TB_FILE_ok) {
    tb_region_close(p);
  }
  return fault;
}

enum tb_file_fault tb_region_open(const char* path, struct tb_region* p) {
  struct stat facts;
  *p = (struct tb_region){.n_byte = 0};
  const int file = open(path, O_RDONLY);
  if (file < 0) {
    return TB_FILE_unreadable;
  }
  enum tb_file_fault fault = TB_FILE_foreign;
  if (fstat(file, &facts) == 0 && facts.st_size > 0) {
    p->n_byte = (size_t)facts.st_size;
    fault = map(file, PROT_READ, p);
  }
  (void)close(file);
  return fault;
}

void tb_region_close(struct tb_region* p) {
  tb_region_release(p);
  if (p->v_byte != NULL) {
    (void)munmap(p->v_byte, p->n_byte);
  }
  *p = (struct tb_region){.n_byte = 0};
}

#endif
