/* Fingerprints by which data are recognised again. */
#ifndef TB_BASE_HASH_H
#define TB_BASE_HASH_H

#include "base/param.h"
#include "base/rng.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `hash` and one word: multiply, rotate. */
static inline uint64_t tb_hash_word(uint64_t hash, uint64_t word) {
  return tb_rng_rotl((hash ^ word) * UINT64_C(0x9E3779B97F4A7C15), 29);
}

/* The finalizer of splitmix64 (Steele, Lea & Flood 2014, OOPSLA): every bit of
 * the word in all bits. */
static inline uint64_t tb_hash_mix(uint64_t word) {
  word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
  return word ^ (word >> 31);
}

/* The number-th word of the stream that splitmix64 has from `key` on. */
static inline uint64_t tb_hash_at(uint64_t key, uint64_t number) {
  return tb_hash_mix(key + (number + 1) * UINT64_C(0x9E3779B97F4A7C15));
}

/* Uniform on (0, 1) from a word: never 0, never 1, as tb_rng_unif(). */
static inline double tb_hash_unif(uint64_t word) {
  return ((double)(int64_t)(word >> 12) + 0.5) * 0x1p-52;
}

/* `hash` and the bits of n doubles, in order. */
static inline uint64_t
tb_hash_doubles(uint64_t hash, const double* v, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    uint64_t word;
    memcpy(&word, &v[i], sizeof(word));
    hash = tb_hash_word(hash, word);
  }
  return hash;
}

/* `hash` and n bytes, eight at a time; what the last word lacks is 0. */
static inline uint64_t tb_hash_bytes(uint64_t hash, const void* p, size_t n) {
  for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    const size_t left = n - i;
    memcpy(&word,
           (const char*)p + i,
           left < sizeof(word) ? left : sizeof(word));
    hash = tb_hash_word(hash, word);
  }
  return hash;
}

/* The same with a parameter, whose whole numbers have the bits of the doubles
 * they are; NULL, one that was not given, leaves the hash. */
static inline uint64_t tb_hash_param(uint64_t hash,
                                     const struct tb_param* p_param) {
  const size_t n = p_param == NULL ? 0 : p_param->n_value;
  for (size_t i = 0; i < n; ++i) {
    const double value = tb_param_at(p_param, i);
    hash = tb_hash_doubles(hash, &value, 1);
  }
  return hash;
}

#endif
