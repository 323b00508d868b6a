/* small helpers that every folder needs */
#ifndef TB_BASE_CLIP_H
#define TB_BASE_CLIP_H

#include <stddef.h>

static inline size_t tb_min(size_t a, size_t b) {
  return a < b ? a : b;
}
static inline size_t tb_max(size_t a, size_t b) {
  return a > b ? a : b;
}

/* rows per chunk of a full pass: fixed, so that sums do not depend on the
 * number of threads */
#define TB_CHUNK 8192
static inline size_t tb_n_chunk(size_t n_data) {
  return (n_data + TB_CHUNK - 1) / TB_CHUNK;
}

/* next multiple of 64 bytes */
static inline size_t tb_align(size_t n_byte) {
  return (n_byte + 63) & ~(size_t)63;
}

#endif
