/* How a file that is being written comes to its place, and what is left where
 * its writer was killed.
 *
 * A writer holds a lock on what it writes, which the system lets go with the
 * process, however that ends: a file that can be locked has no writer. Where
 * the system, or the disk, knows no such locks no file is taken for left. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* flock(), link() */
#endif

#include "data/place.h"

#include <errno.h>
#include <string.h>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#if !defined(_WIN32) && defined(LOCK_EX) && defined(LOCK_NB)
#define HAS_LOCKS
#endif

/* ---- a place of its own ---- */

#ifdef _WIN32

enum tb_file_fault tb_file_place(const char* path, const char* to) {
  if (rename(path, to) == 0) { /* which replaces nothing there */
    return TB_FILE_ok;
  }
  return errno == EEXIST || errno == EACCES ? TB_FILE_exists
                                            : TB_FILE_unwritable;
}

#else

/* Where a file can have but one name: who makes an empty one of that name first
 * has it, and may replace it. */
static enum tb_file_fault claim(const char* path, const char* to) {
  const int file = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (file < 0) {
    return errno == EEXIST ? TB_FILE_exists : TB_FILE_unwritable;
  }
  (void)close(file);
  if (rename(path, to) == 0) {
    return TB_FILE_ok;
  }
  (void)unlink(to);
  return TB_FILE_unwritable;
}

enum tb_file_fault tb_file_place(const char* path, const char* to) {
  if (link(path, to) == 0) {
    return unlink(path) == 0 ? TB_FILE_ok : TB_FILE_unwritable;
  }
  return errno == EEXIST ? TB_FILE_exists : claim(path, to);
}

#endif

/* ---- locks ---- */

#ifdef HAS_LOCKS

enum tb_file_fault tb_file_lock(FILE* p_stream, int* p_lock) {
  struct stat now;
  /* the stream is closed before the lock is let go */
  const int file = dup(fileno(p_stream));
  *p_lock = -1;
  if (file < 0) {
    return TB_FILE_ok; /* none is had, as where the disk knows none */
  }
  const bool is_held = flock(file, LOCK_EX | LOCK_NB) != 0;
  if ((is_held && errno == EWOULDBLOCK) ||
      (fstat(file, &now) == 0 && now.st_nlink == 0)) {
    (void)close(file);
    return TB_FILE_exists;
  }
  *p_lock = file;
  return TB_FILE_ok;
}

void tb_file_unlock(int lock) {
  if (lock >= 0) {
    (void)close(lock);
  }
}

/* Nobody holds it, and it still has a name. */
static bool is_left(FILE* p_stream) {
  struct stat now;
  return flock(fileno(p_stream), LOCK_EX | LOCK_NB) == 0 &&
         fstat(fileno(p_stream), &now) == 0 && now.st_nlink > 0;
}

#else

enum tb_file_fault tb_file_lock(FILE* p_stream, int* p_lock) {
  (void)p_stream;
  *p_lock = -1;
  return TB_FILE_ok;
}

void tb_file_unlock(int lock) {
  (void)lock;
}

static bool is_left(FILE* p_stream) {
  (void)p_stream;
#ifdef _WIN32
  return true; /* there is no removing of what another has open */
#else
  return false;
#endif
}

#endif

/* The head comes last: who has one is whole, and somebody's, whatever its name.
 */
static bool is_headless(FILE* p_stream) {
  char v_head[8] = {0};
  const char v_none[sizeof(v_head)] = {0};
  const size_t n = fread(v_head, 1, sizeof(v_head), p_stream);
  return (n == sizeof(v_head) || !ferror(p_stream)) &&
         memcmp(v_head, v_none, sizeof(v_head)) == 0;
}

bool tb_file_sweep(const char* path) {
  FILE* p_stream = fopen(path, "r+b");
  if (p_stream == NULL) {
    return false;
  }
  bool goes = is_left(p_stream) && is_headless(p_stream);
#ifdef _WIN32
  fclose(p_stream);
  goes = goes && remove(path) == 0;
#else
  goes = goes && unlink(path) == 0; /* while the lock is held */
  fclose(p_stream);
#endif
  return goes;
}
