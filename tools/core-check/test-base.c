#include "check.h"

#include "base/clones.h"
#include "base/frame.h"
#include "base/norm.h"
#include "base/products.h"
#include "base/rng.h"
#include "base/vmath.h"
#include "base/ziggurat-tables.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- generator and streams ---- */

static void rng_vectors(struct check* p_check) {
  /* xoshiro256++ from the state 1, 2, 3, 4 (reference implementation) */
  const uint64_t v_expected[] = {UINT64_C(41943041),
                                 UINT64_C(58720359),
                                 UINT64_C(3588806011781223),
                                 UINT64_C(3591011842654386),
                                 UINT64_C(9228616714210784205),
                                 UINT64_C(9973669472204895162)};
  struct tb_rng rng = {{1, 2, 3, 4}};
  for (size_t k = 0; k < 6; ++k) {
    CHECK(tb_rng_bits(&rng) == v_expected[k]);
  }
  /* SplitMix64 fills the state */
  tb_rng_init(&rng, UINT64_C(1477776061723855037), 0, TB_STREAM_batch);
  CHECK(rng.s[0] == UINT64_C(1985237415132408290));
  CHECK(rng.s[1] == UINT64_C(2979275885539914483));
  CHECK(rng.s[2] == UINT64_C(13511426838097143398));
}

/* One draw is a linear map of the 256 state bits: row i is the image of bit
 * i. Squaring it k times gives 2^k draws, without the jump polynomials. */
struct map {
  uint64_t v_row[256][4];
};

static void
map_apply(const struct map* p_map, const uint64_t v_in[4], uint64_t v_out[4]) {
  uint64_t v_sum[4] = {0, 0, 0, 0};
  for (int bit = 0; bit < 256; ++bit) {
    if (v_in[bit / 64] >> (bit % 64) & 1) {
      for (int k = 0; k < 4; ++k) {
        v_sum[k] ^= p_map->v_row[bit][k];
      }
    }
  }
  memcpy(v_out, v_sum, sizeof v_sum);
}

static void map_square(struct map* p_map, struct map* p_scratch) {
  for (int bit = 0; bit < 256; ++bit) {
    map_apply(p_map, p_map->v_row[bit], p_scratch->v_row[bit]);
  }
  *p_map = *p_scratch;
}

static void rng_jumps(struct check* p_check) {
  struct map* p_map = check_alloc(2, sizeof *p_map);
  for (int bit = 0; bit < 256; ++bit) {
    struct tb_rng rng = {{0, 0, 0, 0}};
    rng.s[bit / 64] = UINT64_C(1) << (bit % 64);
    (void)tb_rng_bits(&rng);
    memcpy(p_map->v_row[bit], rng.s, sizeof rng.s);
  }
  struct tb_rng start, rng;
  uint64_t v_state[4];
  tb_rng_init(&start, 5, 0, TB_STREAM_batch);
  for (int k = 0; k < 128; ++k) {
    map_square(p_map, p_map + 1);
  }
  memcpy(v_state, start.s, sizeof v_state);
  for (int purpose = 1; purpose < TB_STREAM_count; ++purpose) {
    map_apply(p_map, v_state, v_state);
    tb_rng_init(&rng, 5, 0, (enum tb_stream)purpose);
    CHECK(memcmp(rng.s, v_state, sizeof v_state) == 0);
  }
  for (int k = 128; k < 192; ++k) {
    map_square(p_map, p_map + 1);
  }
  memcpy(v_state, start.s, sizeof v_state);
  for (size_t chain = 1; chain < 4; ++chain) {
    map_apply(p_map, v_state, v_state);
    tb_rng_init(&rng, 5, chain, TB_STREAM_batch);
    CHECK(memcmp(rng.s, v_state, sizeof v_state) == 0);
  }
  free(p_map);
}

static int compare_words(const void* p_a, const void* p_b) {
  const uint64_t a = *(const uint64_t*)p_a, b = *(const uint64_t*)p_b;
  return (a > b) - (a < b);
}

static void rng_streams(struct check* p_check) {
  enum { n_chain = 8, n_draw = 500 };
  const size_t n = (size_t)n_chain * TB_STREAM_count * n_draw;
  uint64_t* v_all = check_alloc(n, sizeof(uint64_t));
  uint64_t* v_fill = v_all;
  for (size_t chain = 0; chain < n_chain; ++chain) {
    for (int purpose = 0; purpose < TB_STREAM_count; ++purpose) {
      struct tb_rng rng, again, other;
      tb_rng_init(&rng, 99, chain, (enum tb_stream)purpose);
      tb_rng_init(&again, 99, chain, (enum tb_stream)purpose);
      tb_rng_init(&other, 100, chain, (enum tb_stream)purpose);
      CHECK(memcmp(&rng, &again, sizeof rng) == 0);
      CHECK(memcmp(&rng, &other, sizeof rng) != 0);
      for (size_t k = 0; k < n_draw; ++k) {
        *v_fill++ = tb_rng_bits(&rng);
      }
    }
  }
  /* no 64-bit word twice (by chance: 1e-11) */
  qsort(v_all, n, sizeof(uint64_t), compare_words);
  for (size_t k = 1; k < n; ++k) {
    CHECK(v_all[k] != v_all[k - 1]);
  }
  free(v_all);
}

static void rng_uniforms(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 1, 0, TB_STREAM_noise);
  double sum = 0, square = 0;
  const size_t n = 1000000;
  for (size_t k = 0; k < n; ++k) {
    const double u = tb_rng_unif(&rng);
    CHECK(u > 0 && u < 1);
    sum += u;
    square += u * u;
  }
  CHECK_CLOSE(sum / (double)n, 0.5, 5 * sqrt(1.0 / 12 / (double)n));
  CHECK_CLOSE(square / (double)n, 1.0 / 3, 5 * sqrt(4.0 / 45 / (double)n));
}

static void rng_integers(struct check* p_check) {
  const size_t v_n[] = {2, 3, 7, 10, 64, 1000};
  struct tb_rng rng;
  tb_rng_init(&rng, 3, 0, TB_STREAM_batch);
  CHECK(tb_rng_index(&rng, 1) == 0);
  for (size_t t = 0; t < sizeof v_n / sizeof v_n[0]; ++t) {
    const size_t n = v_n[t], n_draw = 200000;
    double* v_seen = check_alloc(n, sizeof(double));
    double* v_expected = check_alloc(n, sizeof(double));
    for (size_t k = 0; k < n_draw; ++k) {
      const size_t i = tb_rng_index(&rng, n);
      CHECK(i < n);
      v_seen[i < n ? i : 0] += 1;
    }
    for (size_t i = 0; i < n; ++i) {
      v_expected[i] = (double)n_draw / (double)n;
    }
    CHECK(fabs(check_chi_square(v_seen, v_expected, n)) < 5);
    free(v_seen);
    free(v_expected);
  }
#if SIZE_MAX > 0xffffffff
  /* n = 3/4 of 2^64: without rejection two thirds of the numbers would be 2
   * apart, or a third of them twice as likely */
  const size_t n = (size_t)3 << 62;
  double v_third[3] = {0, 0, 0}, v_residue[3] = {0, 0, 0};
  const double v_expected[3] = {1e5, 1e5, 1e5};
  for (size_t k = 0; k < 300000; ++k) {
    const size_t i = tb_rng_index(&rng, n);
    v_third[i / ((size_t)1 << 62)] += 1;
    v_residue[i % 3] += 1;
  }
  CHECK(check_chi_square(v_third, v_expected, 3) < 6);
  CHECK(check_chi_square(v_residue, v_expected, 3) < 6);
#endif
}

/* ---- normals ---- */

#define N_NORMAL 4000000

static double normal_cdf(double x) {
  return 0.5 * erfc(-x * 0.70710678118654752);
}

static int compare_doubles(const void* p_a, const void* p_b) {
  const double a = *(const double*)p_a, b = *(const double*)p_b;
  return (a > b) - (a < b);
}

static void normal_law(struct check* p_check) {
  double* v = check_alloc(N_NORMAL, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 2, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v, N_NORMAL);
  const double n = N_NORMAL;

  double v_moment[9] = {0}, lagged = 0, lagged_square = 0;
  for (size_t k = 0; k < N_NORMAL; ++k) {
    double power = 1;
    for (int m = 1; m <= 8; ++m) {
      power *= v[k];
      v_moment[m] += power / n;
    }
    if (k > 0) {
      lagged += v[k] * v[k - 1] / n;
      lagged_square += (v[k] * v[k] - 1) * (v[k - 1] * v[k - 1] - 1) / n;
    }
  }
  /* E z^m, and Var z^m = E z^2m - (E z^m)^2 */
  const double v_even[9] = {1, 0, 1, 0, 3, 0, 15, 0, 105};
  const double v_variance[9] = {0, 1, 2, 15, 96, 945, 10170, 135135, 2016000};
  for (int m = 1; m <= 8; ++m) {
    CHECK_CLOSE(v_moment[m], v_even[m], 5 * sqrt(v_variance[m] / n));
  }
  CHECK_CLOSE(lagged, 0, 5 / sqrt(n));
  CHECK_CLOSE(lagged_square, 0, 5 * 2 / sqrt(n));

  qsort(v, N_NORMAL, sizeof(double), compare_doubles);
  double distance = 0;
  for (size_t k = 0; k < N_NORMAL; ++k) {
    const double p = normal_cdf(v[k]);
    distance = fmax(distance, fabs(p - (double)k / n));
    distance = fmax(distance, fabs(p - (double)(k + 1) / n));
  }
  /* P(sqrt(n) D > 2.6) = 2.7e-6 */
  CHECK(sqrt(n) * distance < 2.6);

  /* fine bins: a wrong layer is a narrow dent the moments do not see */
  enum { n_bin = 700 };
  double v_seen[n_bin] = {0}, v_expected[n_bin];
  for (size_t k = 0; k < N_NORMAL; ++k) {
    const double bin = floor((v[k] + 3.5) * 100);
    if (bin >= 0 && bin < n_bin) {
      v_seen[(size_t)bin] += 1;
    }
  }
  for (size_t b = 0; b < n_bin; ++b) {
    const double x = -3.5 + 0.01 * (double)b;
    v_expected[b] = n * (normal_cdf(x + 0.01) - normal_cdf(x));
  }
  CHECK(fabs(check_chi_square(v_seen, v_expected, n_bin)) < 5);

  /* both tails; 3.654 is where the exact tail takes over */
  const double v_edge[] = {2, 3, 3.5, 3.6541528853610088, 3.8, 4, 4.3, 4.6};
  for (size_t e = 0; e < sizeof v_edge / sizeof v_edge[0]; ++e) {
    double above = 0, below = 0;
    for (size_t k = 0; k < N_NORMAL; ++k) {
      above += v[k] > v_edge[e];
      below += v[k] < -v_edge[e];
    }
    const double expected = n * normal_cdf(-v_edge[e]);
    CHECK_CLOSE(above, expected, 5 * sqrt(expected) + 3);
    CHECK_CLOSE(below, expected, 5 * sqrt(expected) + 3);
  }
  free(v);
}

/* Layers of equal area under the curve, and rectangles that fit in it. */
/* mean a, variance a, third central moment 2 a of Gamma(a) */
static void gamma_law(struct check* p_check) {
  const double v_shape[] = {0.3, 1, 4.5, 400};
  struct tb_rng rng;
  tb_rng_init(&rng, 41, 0, TB_STREAM_model);
  for (size_t s = 0; s < 4; ++s) {
    enum { n = 200000 };
    const double a = v_shape[s];
    double m1 = 0, m2 = 0, m3 = 0;
    for (size_t k = 0; k < n; ++k) {
      const double x = tb_rng_gamma(&rng, a);
      const double z = (x - a) / sqrt(a);
      CHECK(x > 0);
      m1 += z / n;
      m2 += z * z / n;
      m3 += z * z * z / n;
    }
    /* standard errors of the first two are exact; the third's is generous */
    CHECK(fabs(m1) < 5 / sqrt(n));
    CHECK(fabs(m2 - 1) < 5 * sqrt((2 + 6 / a) / n));
    CHECK(fabs(m3 - 2 / sqrt(a)) < 5 * (4 + 30 / (a * sqrt(a))) / sqrt(n));
  }
}

static void normal_tables(struct check* p_check) {
  const double r = TB_ZIGGURAT_EDGE;
  const double area =
      r * exp(-0.5 * r * r) + sqrt(2 * 3.14159265358979324) * normal_cdf(-r);
  double edge = area / exp(-0.5 * r * r);
  CHECK(tb_ziggurat_height[256] == 1);
  for (size_t i = 0; i < 256; ++i) {
    const double next =
        i == 255 ? 0 : ldexp(tb_ziggurat_layer[i + 1].scale, 52);
    CHECK_CLOSE(ldexp(tb_ziggurat_layer[i].scale, 52), edge, 1e-12);
    CHECK_CLOSE(tb_ziggurat_height[i], exp(-0.5 * edge * edge), 1e-13);
    CHECK_CLOSE((double)tb_ziggurat_layer[i].inside * 0x1p-52,
                next / edge,
                1e-15);
    if (i > 0) {
      const double height = tb_ziggurat_height[i + 1] - tb_ziggurat_height[i];
      CHECK_CLOSE(edge * height, area, 1e-13);
    }
    edge = next;
  }
}

/* beyond the last layer's edge: the law of |z| given |z| > r */
static void normal_tail(struct check* p_check) {
  enum { n_block = 10000, n_most = 20000 };
  double* v = check_alloc(n_block, sizeof(double));
  double* v_tail = check_alloc(n_most, sizeof(double));
  size_t n_tail = 0, n_right = 0;
  struct tb_rng rng;
  tb_rng_init(&rng, 13, 0, TB_STREAM_noise);
  for (size_t b = 0; b < 4000; ++b) {
    tb_rng_fill_norm(&rng, v, n_block);
    for (size_t k = 0; k < n_block; ++k) {
      if (fabs(v[k]) > TB_ZIGGURAT_EDGE && n_tail < n_most) {
        v_tail[n_tail++] = fabs(v[k]);
        n_right += v[k] > 0;
      }
    }
  }
  const double beyond = normal_cdf(-TB_ZIGGURAT_EDGE), n = (double)n_tail;
  CHECK_CLOSE(n, 2 * beyond * 4e7, 5 * sqrt(2 * beyond * 4e7));
  CHECK_CLOSE((double)n_right, n / 2, 5 * sqrt(n / 4));
  qsort(v_tail, n_tail, sizeof(double), compare_doubles);
  double distance = 0;
  for (size_t k = 0; k < n_tail; ++k) {
    const double p = 1 - normal_cdf(-v_tail[k]) / beyond;
    distance = fmax(distance, fabs(p - ((double)k + 0.5) / n));
  }
  CHECK(sqrt(n) * distance < 2.6);
  free(v);
  free(v_tail);
}

static void normal_fill(struct check* p_check) {
  struct tb_rng a, b;
  double v[10000];
  tb_rng_init(&a, 4, 1, TB_STREAM_noise);
  b = a;
  tb_rng_fill_norm(&a, v, 10000);
  for (size_t k = 0; k < 10000; ++k) {
    CHECK(v[k] == tb_rng_norm(&b));
  }
  CHECK(memcmp(&a, &b, sizeof a) == 0);
}

/* ---- exp and its friends ---- */

TB_CLONES
static void array_exp(const double* v_x, double* v_out, size_t n) {
  tb_vexp(v_x, v_out, n);
}

TB_CLONES
static void array_exp_bounded(const double* v_x, double* v_out, size_t n){
    TB_V_OVER_ARRAY(tb_v4_exp_bounded)}

TB_CLONES
    static void array_logistic(const double* v_x, double* v_out, size_t n) {
  tb_vlogistic(v_x, v_out, n);
}

TB_CLONES
static void array_softplus(const double* v_x, double* v_out, size_t n) {
  tb_vsoftplus(v_x, v_out, n);
}

TB_CLONES
static void array_tanh(const double* v_x, double* v_out, size_t n) {
  tb_vtanh(v_x, v_out, n);
}

static long double exact_exp(long double x) {
  return expl(x);
}

static long double exact_logistic(long double x) {
  return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x));
}

static long double exact_softplus(long double x) {
  return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}

/* |y - exact| in units of the last place of the exact result */
static double ulp_error(double y, long double exact) {
  const double rounded = (double)exact;
  if (rounded == y) {
    return 0; /* infinities and zeros among them */
  }
  const double size = fmax(fabs(rounded), DBL_MIN);
  const double ulp = size - nextafter(size, 0);
  /* just above a power of two the spacing below is half of that above */
  return (double)(fabsl((long double)y - exact) / ulp);
}

static void errors_bounded(struct check* p_check,
                           void (*over_array)(const double*, double*, size_t),
                           long double (*exact)(long double),
                           double low,
                           double high,
                           double bound) {
  enum { n_block = 1024, n_block_all = 400 };
  double v_x[n_block], v_y[n_block];
  struct tb_rng rng;
  tb_rng_init(&rng, 6, 0, TB_STREAM_noise);
  double worst = 0, at = 0;
  for (size_t b = 0; b < n_block_all; ++b) {
    for (size_t k = 0; k < n_block; ++k) {
      const double u = tb_rng_unif(&rng);
      switch (b % 4) {
      case 0: /* the whole range */
        v_x[k] = low + (high - low) * u;
        break;
      case 1:
        v_x[k] = 4 * u - 2;
        break;
      case 2: /* around multiples of log(2) / 2, where reductions change */
        v_x[k] = (floor(u * 200) - 100) * 0.34657359027997264 +
                 1e-9 * tb_rng_norm(&rng);
        break;
      default: /* tiny arguments */
        v_x[k] = (u < 0.5 ? 1 : -1) * exp2(-1070 * tb_rng_unif(&rng));
      }
    }
    over_array(v_x, v_y, n_block);
    for (size_t k = 0; k < n_block; ++k) {
      const double error = ulp_error(v_y[k], exact(v_x[k]));
      if (!(error <= worst)) {
        worst = error;
        at = v_x[k];
      }
    }
  }
  if (!(worst <= bound)) {
    check_fail(p_check,
               __FILE__,
               __LINE__,
               "%.2f ulp at %.17g, bound %.2f",
               worst,
               at,
               bound);
  }
}

static void vmath_errors(struct check* p_check) {
  errors_bounded(p_check, array_exp, exact_exp, -746, 710, 2);
  errors_bounded(p_check, array_exp_bounded, exact_exp, -708, 708, 2);
  errors_bounded(p_check, array_logistic, exact_logistic, -746, 100, 4);
  errors_bounded(p_check, array_softplus, exact_softplus, -746, 100, 4);
  errors_bounded(p_check, array_tanh, tanhl, -25, 25, 4);
  errors_bounded(p_check, array_tanh, tanhl, -1, 1, 4);
}

static void vmath_limits(struct check* p_check) {
  const double v_x[] = {INFINITY,
                        -INFINITY,
                        750,
                        -750,
                        1e308,
                        -1e308,
                        DBL_MAX,
                        -746,
                        0,
                        -0.0,
                        709.78271,
                        709.7828,
                        -745.1,
                        NAN};
  enum { n = sizeof v_x / sizeof v_x[0] };
  double v_exp[n], v_bounded[n], v_logistic[n], v_softplus[n], v_tanh[n];
  array_exp(v_x, v_exp, n);
  array_exp_bounded(v_x, v_bounded, n);
  array_logistic(v_x, v_logistic, n);
  array_softplus(v_x, v_softplus, n);
  array_tanh(v_x, v_tanh, n);
  for (size_t k = 0; k + 1 < n; ++k) {
    CHECK(ulp_error(v_exp[k], (long double)exp(v_x[k])) <= 2);
    const double bounded = exp(fmin(fmax(v_x[k], -708), 708));
    CHECK(ulp_error(v_bounded[k], (long double)bounded) <= 2);
    CHECK(v_logistic[k] >= 0 && v_logistic[k] <= 1);
    CHECK(v_softplus[k] >= 0 && v_softplus[k] >= v_x[k]);
    CHECK(v_tanh[k] == copysign(v_x[k] == 0 ? 0 : 1, v_x[k]));
    CHECK(signbit(v_tanh[k]) == signbit(v_x[k]));
    if (fabs(v_x[k]) >= 750) {
      CHECK(v_logistic[k] == (v_x[k] > 0));
      CHECK(v_softplus[k] == fmax(v_x[k], 0));
      CHECK(v_exp[k] == (v_x[k] > 0 ? INFINITY : 0));
    }
  }
  CHECK(v_exp[8] == 1 && v_exp[9] == 1);
  CHECK(v_logistic[8] == 0.5 && v_logistic[9] == 0.5);
  CHECK(isnan(v_exp[n - 1]) && isnan(v_bounded[n - 1]) &&
        isnan(v_logistic[n - 1]) && isnan(v_softplus[n - 1]) &&
        isnan(v_tanh[n - 1]));
}

static void vmath_places(struct check* p_check) {
  double v_x[16], v_all[16], v_y[17];
  struct tb_rng rng;
  tb_rng_init(&rng, 8, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_x, 16);
  array_softplus(v_x, v_all, 16);
  for (size_t start = 0; start < 16; ++start) {
    for (size_t n = 0; start + n <= 16; ++n) {
      memcpy(v_y, v_x + start, n * sizeof(double));
      v_y[n] = 7;
      array_softplus(v_y, v_y, n); /* in place */
      CHECK(memcmp(v_y, v_all + start, n * sizeof(double)) == 0);
      CHECK(v_y[n] == 7);
    }
  }
}

/* ---- norms ---- */

static void norm_sums(struct check* p_check) {
  double v[40];
  for (int k = 0; k < 40; ++k) {
    v[k] = k + 1;
  }
  for (size_t n = 0; n <= 39; ++n) {
    const double x = (double)n;
    CHECK(tb_square_norm(v, n) == x * (x + 1) * (2 * x + 1) / 6);
  }
  for (size_t at = 0; at < 40; ++at) {
    const double kept = v[at];
    v[at] = NAN;
    CHECK(isnan(tb_square_norm(v, 40)));
    v[at] = -INFINITY;
    CHECK(tb_square_norm(v, 40) == INFINITY);
    v[at] = kept;
  }
}

/* ---- frames ---- */

struct frame {
  struct tb_frame frame;
  double* v_center;
  double* v_map;
  double* v_chol;
};

/* Random lower L with a positive diagonal; M = L^{-T} by back substitution. */
static void frame_make(struct frame* p, size_t n, bool is_diagonal) {
  struct tb_rng rng;
  tb_rng_init(&rng, 40 + n, 0, TB_STREAM_noise);
  p->v_center = check_alloc(n, sizeof(double));
  p->v_map = check_alloc(n * n, sizeof(double));
  p->v_chol = check_alloc(n * n, sizeof(double));
  tb_rng_fill_norm(&rng, p->v_center, n);
  if (is_diagonal) {
    for (size_t i = 0; i < n; ++i) {
      p->v_chol[i] = 0.5 + tb_rng_unif(&rng);
      p->v_map[i] = 1 / p->v_chol[i];
    }
  } else {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) {
        p->v_chol[i * n + j] = 0.2 * tb_rng_norm(&rng);
      }
      p->v_chol[i * n + i] = 1 + tb_rng_unif(&rng);
    }
    for (size_t col = 0; col < n; ++col) { /* L^T m = e_col */
      for (size_t k = n; k > 0; --k) {
        const size_t i = k - 1;
        double sum = i == col;
        for (size_t j = i + 1; j < n; ++j) {
          sum -= p->v_chol[j * n + i] * p->v_map[j * n + col];
        }
        p->v_map[i * n + col] = sum / p->v_chol[i * n + i];
      }
    }
  }
  for (size_t i = 0; i < n && !is_diagonal; ++i) {
    for (size_t j = 0; j < i; ++j) { /* nobody may look there */
      p->v_chol[j * n + i] = NAN;
      p->v_map[i * n + j] = NAN;
    }
  }
  p->frame = (struct tb_frame){.n_dim = n,
                               .is_diagonal = is_diagonal,
                               .v_center = p->v_center,
                               .v_map = p->v_map,
                               .v_chol = p->v_chol};
}

static double map_entry(const struct frame* p, size_t i, size_t j) {
  if (p->frame.is_diagonal) {
    return i == j ? p->v_map[i] : 0;
  }
  return j >= i ? p->v_map[i * p->frame.n_dim + j] : 0;
}

static double chol_entry(const struct frame* p, size_t i, size_t j) {
  if (p->frame.is_diagonal) {
    return i == j ? p->v_chol[i] : 0;
  }
  return j <= i ? p->v_chol[i * p->frame.n_dim + j] : 0;
}

static void frame_laws(struct check* p_check) {
  for (int is_diagonal = 0; is_diagonal < 2; ++is_diagonal) {
    for (size_t n = 1; n <= 21; ++n) {
      struct frame f;
      frame_make(&f, n, is_diagonal);
      double v_phi[21], v_theta[21], v_g[21], v_pulled[21], v_back[21];
      struct tb_rng rng;
      tb_rng_init(&rng, n, 0, TB_STREAM_noise);
      tb_rng_fill_norm(&rng, v_phi, n);
      tb_rng_fill_norm(&rng, v_g, n);

      tb_frame_to_parameter(&f.frame, v_phi, v_theta);
      tb_frame_to_sampler(&f.frame, v_theta, v_back);
      for (size_t i = 0; i < n; ++i) {
        double sum = f.v_center[i];
        for (size_t j = 0; j < n; ++j) {
          sum += map_entry(&f, i, j) * v_phi[j];
        }
        CHECK_CLOSE(v_theta[i], sum, 1e-12);
        CHECK_CLOSE(v_back[i], v_phi[i], 1e-12);
      }

      tb_frame_pull_gradient(&f.frame, v_g, v_pulled);
      tb_frame_push_gradient(&f.frame, v_pulled, v_back);
      for (size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i) {
          sum += map_entry(&f, i, j) * v_g[i];
        }
        CHECK_CLOSE(v_pulled[j], sum, 1e-12);
        CHECK_CLOSE(v_back[j], v_g[j], 1e-12); /* L M^T = I */
      }

      /* M^T L = I, by the functions alone: column k of L is push(e_k) */
      for (size_t k = 0; k < n; ++k) {
        memset(v_phi, 0, sizeof v_phi);
        v_phi[k] = 1;
        tb_frame_push_gradient(&f.frame, v_phi, v_theta);
        tb_frame_pull_gradient(&f.frame, v_theta, v_back);
        for (size_t i = 0; i < n; ++i) {
          CHECK_CLOSE(v_back[i], i == k, 1e-12);
          CHECK_CLOSE(v_theta[i], chol_entry(&f, i, k), 1e-15);
        }
      }
      free(f.v_center);
      free(f.v_map);
      free(f.v_chol);
    }
  }
}

/* ---- norms and sums ---- */

static void column_sums(struct check* p_check) {
  enum { MOST = 67, COLUMNS = 3 };
  double v[MOST * COLUMNS], v_weight[MOST], v_out[COLUMNS];
  for (size_t n = 0; n <= MOST; ++n) {
    for (size_t k = 0; k < n; ++k) {
      v_weight[k] = 1 + (double)k;
      for (size_t j = 0; j < COLUMNS; ++j) {
        v[j * n + k] = (double)(j + 1) * (double)(k % 5);
      }
    }
    tb_column_sums(v, n, COLUMNS, v_weight, v_out);
    for (size_t j = 0; j < COLUMNS; ++j) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) {
        sum += v_weight[k] * v[j * n + k];
      }
      CHECK_CLOSE(v_out[j], sum, 0); /* whole numbers: any order is exact */
    }
  }
}

/* A^T x and A w of whole numbers, whatever the length */
static void matrix_products(struct check* p_check) {
  enum { MOST = 19, COLUMNS = 3 };
  double v_a[MOST * COLUMNS], v_x[MOST], v_out[MOST];
  const double v_w[COLUMNS] = {2, -1, 3};
  for (size_t n = 1; n <= MOST; ++n) {
    for (size_t k = 0; k < COLUMNS; ++k) {
      for (size_t j = 0; j < n; ++j) {
        v_a[k * n + j] = (double)((k + 1) * (j + 2) % 7) - 3;
        v_x[j] = (double)(j * j % 5);
      }
    }
    tb_columns_dot(v_a, n, COLUMNS, v_x, v_out);
    for (size_t k = 0; k < COLUMNS; ++k) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) {
        sum += v_a[k * n + j] * v_x[j];
      }
      CHECK_CLOSE(v_out[k], sum, 0);
    }
    memcpy(v_out, v_x, n * sizeof(double));
    tb_columns_add(v_a, n, COLUMNS, v_w, v_out);
    for (size_t j = 0; j < n; ++j) {
      double sum = v_x[j];
      for (size_t k = 0; k < COLUMNS; ++k) {
        sum += v_a[k * n + j] * v_w[k];
      }
      CHECK_CLOSE(v_out[j], sum, 0);
    }
  }
}

/* of a + 1, .., a + n the variance is n (n + 1) / 12 */
static void standard_deviations(struct check* p_check) {
  enum { MOST = 50 };
  double v[MOST];
  for (size_t n = 1; n <= MOST; ++n) {
    for (size_t k = 0; k < n; ++k) {
      v[k] = 1e6 + (double)(k + 1);
    }
    const double x = (double)n, variance = n == 1 ? 0 : x * (x + 1) / 12;
    CHECK_CLOSE(tb_sd(v, n), sqrt(variance), 1e-12 * x);
  }
}

const struct check_case check_base[] = {
    {"rng: xoshiro256++ and SplitMix64 test vectors", rng_vectors},
    {"rng: jumps are 2^128 and 2^192 draws", rng_jumps},
    {"rng: streams are disjoint and depend on the seed alone", rng_streams},
    {"rng: uniforms are open and uniform", rng_uniforms},
    {"rng: bounded integers are unbiased", rng_integers},
    {"rng: gamma variables have their moments", gamma_law},
    {"rng: ziggurat layers have equal areas", normal_tables},
    {"rng: normals follow the normal law", normal_law},
    {"rng: normals beyond the last layer", normal_tail},
    {"rng: filling is repeated drawing", normal_fill},
    {"norm: column sums, whatever the length", column_sums},
    {"norm: standard deviations", standard_deviations},
    {"products: whatever the length", matrix_products},
    {"vmath: errors are bounded", vmath_errors},
    {"vmath: limits, NaN", vmath_limits},
    {"vmath: a result does not depend on its place", vmath_places},
    {"norm: sums of squares, every length and place", norm_sums},
    {"frame: maps, adjoints and round trips", frame_laws},
    {NULL, NULL}};
