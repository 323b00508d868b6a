#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise() */
#endif

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#define HUGE_PAGE ((size_t)2 << 20)

/* Twice a huge page: less would waste up to half of it on alignment. */
static int is_huge(size_t n_byte) {
  return n_byte >= 2 * HUGE_PAGE;
}

/* The block's address, as malloc gave it, is kept in front of the aligned
 * one where the system has no aligned allocation. */
void* tb_big_room(size_t n_byte) {
  const size_t alignment = is_huge(n_byte) ? HUGE_PAGE : 64;
  if (n_byte == 0) {
    n_byte = 1;
  }
  if (n_byte > SIZE_MAX - alignment - sizeof(void*)) {
    return NULL;
  }
#ifdef __linux__
  void* p = NULL;
  if (posix_memalign(&p, alignment, n_byte) != 0) {
    return NULL;
  }
#ifdef MADV_HUGEPAGE
  if (is_huge(n_byte)) {
    /* advice: random rows then miss the cache but not the TLB as well */
    (void)madvise(p, n_byte, MADV_HUGEPAGE);
  }
#endif
  return p;
#else
  void* p_block = malloc(n_byte + 64 + sizeof(void*));
  if (p_block == NULL) {
    return NULL;
  }
  const uintptr_t address =
      ((uintptr_t)p_block + sizeof(void*) + 63) & ~(uintptr_t)63;
  void* p = (void*)address;
  ((void**)p)[-1] = p_block;
  return p;
#endif
}

void* tb_big_alloc(size_t n_byte) {
  void* p = tb_big_room(n_byte);
  if (p != NULL) {
    memset(p, 0, n_byte);
  }
  return p;
}

void tb_big_advise(void* p, size_t n_byte) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t first =
      ((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
  const uintptr_t end = (uintptr_t)p + n_byte;
  if (is_huge(n_byte)) {
    (void)madvise((void*)first, end - first, MADV_HUGEPAGE);
  }
#else
  (void)p;
  (void)n_byte;
#endif
}

void tb_big_free(void* p, size_t n_byte) {
  (void)n_byte;
#ifdef __linux__
  free(p);
#else
  if (p != NULL) {
    free(((void**)p)[-1]);
  }
#endif
}
