/* Random numbers. D. Blackman and S. Vigna (2021), Scrambled linear
 * pseudorandom number generators, ACM TOMS 47:36 (xoshiro256++, its jumps, and
 * SplitMix64 to seed it); D. Lemire (2019), Fast random integer generation in
 * an interval, ACM TOMACS 29:3; G. Marsaglia and W. W. Tsang (2000), The
 * ziggurat method for generating random variables, JSS 5:8.
 *
 * The ziggurat takes one 64-bit word per attempt: bits 0-7 are the layer, bit
 * 8 the sign, bits 12-63 the abscissa. The program of 2000 reused the layer's
 * bits in the abscissa, which correlates the two. */
#include "base/rng.h"

#include "base/ziggurat-tables.h"

#include <math.h>
#include <string.h>

/* ---- streams ---- */

/* SplitMix64: every seed, 0 included, gives a well mixed non-zero state. */
static uint64_t splitmix_next(uint64_t* p_state) {
  uint64_t z = (*p_state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Polynomials of the jumps by 2^128 and 2^192 draws. */
static const uint64_t jump_purpose[4] = {UINT64_C(0x180ec6d33cfd0aba),
                                         UINT64_C(0xd5a61266f0c9392c),
                                         UINT64_C(0xa9582618e03fc9aa),
                                         UINT64_C(0x39abdc4529b1661c)};
static const uint64_t jump_chain[4] = {UINT64_C(0x76e15d3efefdcbbf),
                                       UINT64_C(0xc5004e441c522fb3),
                                       UINT64_C(0x77710069854ee241),
                                       UINT64_C(0x39109bb02acbe635)};

static void rng_jump(struct tb_rng* p_rng, const uint64_t v_jump[4]) {
  uint64_t v_sum[4] = {0, 0, 0, 0};
  for (int word = 0; word < 4; ++word) {
    for (int bit = 0; bit < 64; ++bit) {
      if (v_jump[word] >> bit & 1) {
        for (int k = 0; k < 4; ++k) {
          v_sum[k] ^= p_rng->s[k];
        }
      }
      (void)tb_rng_bits(p_rng);
    }
  }
  memcpy(p_rng->s, v_sum, sizeof v_sum);
}

void tb_rng_init(struct tb_rng* p_rng,
                 uint64_t seed,
                 size_t chain,
                 enum tb_stream purpose) {
  for (int k = 0; k < 4; ++k) {
    p_rng->s[k] = splitmix_next(&seed);
  }
  for (size_t k = 0; k < chain; ++k) {
    rng_jump(p_rng, jump_chain);
  }
  for (int k = 0; k < (int)purpose; ++k) {
    rng_jump(p_rng, jump_purpose);
  }
}

/* ---- bounded integers ---- */

/* The state lives in registers. */
void tb_rng_fill_index(struct tb_rng* p_rng,
                       size_t* v_out,
                       size_t n_out,
                       size_t n) {
  struct tb_rng rng = *p_rng;
  for (size_t k = 0; k < n_out; ++k) {
    v_out[k] = tb_rng_index(&rng, n);
  }
  *p_rng = rng;
}

/* ---- uniforms ---- */

/* The state lives in registers. */
void tb_rng_fill_unif(struct tb_rng* p_rng, double* v_out, size_t n) {
  struct tb_rng rng = *p_rng;
  for (size_t k = 0; k < n; ++k) {
    v_out[k] = tb_rng_unif(&rng);
  }
  *p_rng = rng;
}

/* ---- normals ---- */

#define LAYER(bits)    ((size_t)((bits)&0xff))
#define ABSCISSA(bits) ((bits) >> 12)

/* |x| in the layer, with the sign of bit 8. The sign goes in by bits: a branch
 * on it would be mispredicted every other time. */
static inline double signed_abscissa(uint64_t bits, double x) {
  uint64_t pattern;
  memcpy(&pattern, &x, sizeof pattern);
  pattern ^= (bits & UINT64_C(0x100)) << 55;
  memcpy(&x, &pattern, sizeof x);
  return x;
}

/* |x| > r: two exponentials until the point is under the normal tail */
static double normal_tail(struct tb_rng* p_rng) {
  double excess, height;
  do {
    excess = -log(tb_rng_unif(p_rng)) / TB_ZIGGURAT_EDGE;
    height = -log(tb_rng_unif(p_rng));
  } while (height + height < excess * excess);
  return TB_ZIGGURAT_EDGE + excess;
}

/* The attempts that are not inside a layer's rectangle for sure (1.2 %). */
static double normal_edge(struct tb_rng* p_rng, uint64_t bits) {
  for (;;) {
    const size_t layer = LAYER(bits);
    const uint64_t abscissa = ABSCISSA(bits);
    const double x = (double)abscissa * tb_ziggurat_layer[layer].scale;
    if (abscissa < tb_ziggurat_layer[layer].inside) {
      return signed_abscissa(bits, x);
    }
    if (layer == 0) {
      return signed_abscissa(bits, normal_tail(p_rng));
    }
    const double low = tb_ziggurat_height[layer];
    const double high = tb_ziggurat_height[layer + 1];
    if (low + tb_rng_unif(p_rng) * (high - low) < exp(-0.5 * x * x)) {
      return signed_abscissa(bits, x);
    }
    bits = tb_rng_bits(p_rng);
  }
}

double tb_rng_norm(struct tb_rng* p_rng) {
  const uint64_t bits = tb_rng_bits(p_rng);
  const struct tb_ziggurat_layer* p_layer = &tb_ziggurat_layer[LAYER(bits)];
  if (ABSCISSA(bits) < p_layer->inside) {
    return signed_abscissa(bits, (double)ABSCISSA(bits) * p_layer->scale);
  }
  return normal_edge(p_rng, bits);
}

/* The same numbers as n calls of tb_rng_norm(). The state lives in registers:
 * its address goes only to the rare path, as that of a copy. */
void tb_rng_fill_norm(struct tb_rng* p_rng, double* v_out, size_t n) {
  struct tb_rng rng = *p_rng;
  for (size_t k = 0; k < n; ++k) {
    const uint64_t bits = tb_rng_bits(&rng);
    const struct tb_ziggurat_layer* p_layer = &tb_ziggurat_layer[LAYER(bits)];
    if (ABSCISSA(bits) < p_layer->inside) {
      v_out[k] = signed_abscissa(bits, (double)ABSCISSA(bits) * p_layer->scale);
    } else {
      struct tb_rng copy = rng;
      v_out[k] = normal_edge(&copy, bits);
      rng = copy;
    }
  }
  *p_rng = rng;
}

/* ---- gamma ---- */

/* G. Marsaglia and W. W. Tsang (2000), A simple method for generating gamma
 * variables, ACM TOMS 26:363: d v with v = (1 + x / sqrt(9 d))^3, d = shape -
 * 1/3; shapes below 1 through shape + 1 and a power of a uniform. */
double tb_rng_gamma(struct tb_rng* p_rng, double shape) {
  if (shape < 1) {
    const double u = tb_rng_unif(p_rng);
    return tb_rng_gamma(p_rng, shape + 1) * pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / sqrt(9 * d);
  for (;;) {
    const double x = tb_rng_norm(p_rng);
    const double root = 1 + c * x;
    const double v = root * root * root;
    if (v > 0 &&
        log(tb_rng_unif(p_rng)) < 0.5 * x * x + d - d * v + d * log(v)) {
      return d * v;
    }
  }
}
