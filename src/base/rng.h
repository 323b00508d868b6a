/* Random numbers: xoshiro256++ (Blackman & Vigna 2021, ACM TOMS 47:36), one
 * stream per (chain, purpose), separated by jumps of 2^128 (purpose) and 2^192
 * (chain) draws; bounded integers by Lemire (2019, ACM TOMACS 29:3), without
 * modulo bias; normals by the ziggurat of Marsaglia & Tsang (2000, JSS 5:8)
 * with 256 layers, taking 52 fresh bits for the abscissa (so that the
 * low-bit correlation of the 2000 program is absent) and the exact tail; gamma
 * variables by Marsaglia & Tsang (2000, ACM TOMS 26:363). */
#ifndef TB_BASE_RNG_H
#define TB_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct tb_rng {
  uint64_t s[4];
};

/* Purposes of the streams a chain owns. The minibatch and the noise have
 * separate streams: changing the kernel does not change the rows visited. */
enum tb_stream {
  TB_STREAM_batch = 0,
  TB_STREAM_noise = 1,
  TB_STREAM_model = 2,
  TB_STREAM_accept = 3,
  TB_STREAM_count = 4,
  TB_STREAM_init = 4 /* starting points, drawn before the chain exists */
};

/* Stream of `purpose` in `chain` for this seed. */
void tb_rng_init(struct tb_rng* p_rng,
                 uint64_t seed,
                 size_t chain,
                 enum tb_stream purpose);

static inline uint64_t tb_rng_rotl(uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

/* 64 uniform bits. */
static inline uint64_t tb_rng_bits(struct tb_rng* p_rng) {
  uint64_t* s = p_rng->s;
  const uint64_t result = tb_rng_rotl(s[0] + s[3], 23) + s[0];
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = tb_rng_rotl(s[3], 45);
  return result;
}

/* Uniform on (0, 1): never 0, never 1. */
static inline double tb_rng_unif(struct tb_rng* p_rng) {
  /* signed: what processors convert in one instruction */
  return ((double)(int64_t)(tb_rng_bits(p_rng) >> 12) + 0.5) * 0x1p-52;
}

/* high word of a * b; the low one through p_low */
static inline uint64_t
tb_multiply_high(uint64_t a, uint64_t b, uint64_t* p_low) {
#ifdef __SIZEOF_INT128__
  __extension__ typedef unsigned __int128 uint128;
  const uint128 product = (uint128)a * b;
  *p_low = (uint64_t)product;
  return (uint64_t)(product >> 64);
#else
  const uint64_t mask = UINT64_C(0xffffffff);
  const uint64_t a0 = a & mask, a1 = a >> 32;
  const uint64_t b0 = b & mask, b1 = b >> 32;
  const uint64_t middle = (a0 * b0 >> 32) + (a1 * b0 & mask) + a0 * b1;
  *p_low = a * b;
  return a1 * b1 + (a1 * b0 >> 32) + (middle >> 32);
#endif
}

/* Uniform on {0, ..., n - 1}, n >= 1. */
static inline size_t tb_rng_index(struct tb_rng* p_rng, size_t n) {
  uint64_t low;
  uint64_t high = tb_multiply_high(tb_rng_bits(p_rng), n, &low);
  if (low < n) { /* rare: only here is the remainder worth its division */
    const uint64_t biased = (0 - (uint64_t)n) % n;
    while (low < biased) {
      high = tb_multiply_high(tb_rng_bits(p_rng), n, &low);
    }
  }
  return (size_t)high;
}

/* v_out[0..n_out-1] uniform on {0, ..., n - 1}: as n_out calls. */
void tb_rng_fill_index(struct tb_rng* p_rng,
                       size_t* v_out,
                       size_t n_out,
                       size_t n);

/* v_out[0..n-1] uniforms, the same as n calls of tb_rng_unif(). */
void tb_rng_fill_unif(struct tb_rng* p_rng, double* v_out, size_t n);

/* Gamma(shape, rate 1), shape > 0. */
double tb_rng_gamma(struct tb_rng* p_rng, double shape);

/* One standard normal; v_out[0..n-1] standard normals. */
double tb_rng_norm(struct tb_rng* p_rng);
void tb_rng_fill_norm(struct tb_rng* p_rng, double* v_out, size_t n);

#endif
