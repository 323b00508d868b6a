/* Float store: row-major floats, each observation contiguous, sums in double.
 *
 * A row takes half of what it takes in dense.c, and so does the time until it
 * has come from memory, which is that of a minibatch. The loops are those of
 * dense.c but for the conversion, four numbers an instruction: all rows of a
 * block together, the next block's asked for meanwhile, and the sum of a row in
 * the same order wherever it stands. See there.
 *
 * What is appended or written is rounded to the nearest float, and the rounded
 * numbers are the rows from then on: dot, add, block and gather agree on them
 * to the bit. */
#include "base/clones.h"
#include "base/memory.h"
#include "base/vector.h"
#include "data/store.h"

#include <float.h>
#include <string.h>

#if TB_STORE_BLOCK != 8
#error "the loops below are written for blocks of 8 rows"
#endif

/* floats in a cache line, the unit rows are prefetched in */
#define LINE 16

/* ---- rows of a block ---- */

#define EACH_ROW(do)                                                           \
  do                                                                           \
  (0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)

/* Addresses of n rows; fewer than eight are filled up with the last one. */
TB_INLINE void rows_find(const struct tb_store* p_store,
                         const size_t* v_index,
                         size_t start,
                         size_t n,
                         const float* v_row[TB_STORE_BLOCK]) {
  const float* const v_data = p_store->p_self;
  const size_t n_padded = p_store->n_padded;
  for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
    const size_t at = k < n ? k : n - 1;
    const size_t row = v_index == NULL ? start + at : v_index[at];
    v_row[k] = v_data + row * n_padded;
  }
}

#define EACH_OF_FOUR(do)                                                       \
  do                                                                           \
  (0) do(1) do(2) do(3)

#define PREFETCH(k) TB_PREFETCH(v_next[k] + j);

/* ---- dot ---- */

#ifdef TB_VECTOR
/* Eight at a time, which is one conversion where there are such registers. */
typedef float tb_v4f __attribute__((vector_size(16), aligned(4), may_alias));
typedef float tb_v8f __attribute__((vector_size(32), aligned(4), may_alias));
typedef double tb_v8d __attribute__((vector_size(64), aligned(8), may_alias));
#define LOAD4(p) __builtin_convertvector(*(const tb_v4f*)(p), tb_v4d)
#define LOAD8(p) __builtin_convertvector(*(const tb_v8f*)(p), tb_v8d)

/* v_out[k] = (x_0 + x_1) + (x_2 + x_3) of the k-th vector; written so that
 * the compiler sees three rounds of shuffles */
TB_INLINE void sum_across(const tb_v4d* p_a,
                          const tb_v4d* p_b,
                          const tb_v4d* p_c,
                          const tb_v4d* p_d,
                          double* v_out) {
  const tb_v4d a = *p_a, b = *p_b, c = *p_c, d = *p_d;
  const tb_v4d ab =
      (tb_v4d){a[0], b[0], a[2], b[2]} + (tb_v4d){a[1], b[1], a[3], b[3]};
  const tb_v4d cd =
      (tb_v4d){c[0], d[0], c[2], d[2]} + (tb_v4d){c[1], d[1], c[3], d[3]};
  *(tb_v4d*)v_out = (tb_v4d){ab[0], ab[1], cd[0], cd[1]} +
                    (tb_v4d){ab[2], ab[3], cd[2], cd[3]};
}
#endif

/* v_out[k] = v_row[k]^T v of four rows, whose sums are as many as there are
 * registers for; asks for v_next's rows unless NULL */
TB_INLINE void dot_four(const float* const* v_row,
                        const float* const* v_next,
                        const double* v,
                        size_t n,
                        double* v_out) {
  size_t j = 0;
#ifdef TB_VECTOR
#define BEGIN(k) tb_v8d wide##k = {0, 0, 0, 0, 0, 0, 0, 0};
#define STEP(k)  wide##k += LOAD8(v_row[k] + j) * x;
#define FOLD(k)                                                                \
  tb_v4d sum##k = (tb_v4d){wide##k[0], wide##k[1], wide##k[2], wide##k[3]} +   \
                  (tb_v4d){wide##k[4], wide##k[5], wide##k[6], wide##k[7]};
#define LAST(k) sum##k += LOAD4(v_row[k] + j) * x;
  EACH_OF_FOUR(BEGIN)
  for (; j + 8 <= n; j += 8) {
    const tb_v8d x = *(const tb_v8d*)(v + j);
    if (v_next != NULL && j % LINE == 0) {
      EACH_OF_FOUR(PREFETCH)
    }
    EACH_OF_FOUR(STEP)
  }
  EACH_OF_FOUR(FOLD)
  if (j + 4 <= n) {
    const tb_v4d x = *(const tb_v4d*)(v + j);
    if (v_next != NULL && j % LINE == 0) {
      EACH_OF_FOUR(PREFETCH)
    }
    EACH_OF_FOUR(LAST)
    j += 4;
  }
  sum_across(&sum0, &sum1, &sum2, &sum3, v_out);
#undef FOLD
#undef LAST
#undef BEGIN
#undef STEP
#else
  memset(v_out, 0, 4 * sizeof(double));
#endif

#define STEP(k) v_out[k] += (double)v_row[k][j] * v[j];
  for (; j < n; ++j) {
    if (v_next != NULL && j % LINE == 0) {
      EACH_OF_FOUR(PREFETCH)
    }
    EACH_OF_FOUR(STEP)
  }
#undef STEP

  /* rows that do not start on a line reach into one more */
  if (v_next != NULL && n % LINE != 0) {
    j = n - 1;
    EACH_OF_FOUR(PREFETCH)
  }
}

TB_CLONES
static void float_dot(const struct tb_store* p_store,
                      const struct tb_rows* p_rows,
                      const double* v,
                      double* v_out) {
  const float* v_row[TB_STORE_BLOCK];
  double v_dot[TB_STORE_BLOCK];
  const size_t n = p_store->n_padded;
  double* const v_full = p_rows->n_row == TB_STORE_BLOCK ? v_out : v_dot;
  rows_find(p_store, p_rows->v_index, p_rows->start, p_rows->n_row, v_row);
  if (p_rows->v_index != NULL && p_rows->n_next > 0) {
    const float* v_next[TB_STORE_BLOCK];
    rows_find(p_store, p_rows->v_next, 0, p_rows->n_next, v_next);
    dot_four(v_row, v_next, v, n, v_full);
    dot_four(v_row + 4, v_next + 4, v, n, v_full + 4);
  } else {
    /* consecutive rows: the processor sees them coming by itself */
    dot_four(v_row, NULL, v, n, v_full);
    dot_four(v_row + 4, NULL, v, n, v_full + 4);
  }
  if (v_full == v_dot) {
    memcpy(v_out, v_dot, p_rows->n_row * sizeof(double));
  }
}

/* ---- add ---- */

/* v_sum += sum_k u_k v_row[k], and the squares of the terms to v_square unless
 * NULL */
TB_INLINE void add_block(const float* const v_row[TB_STORE_BLOCK],
                         const double v_u[TB_STORE_BLOCK],
                         size_t n,
                         double* v_sum,
                         double* v_square) {
  size_t j = 0;
#define BEGIN(k)                                                               \
  const float* const p##k = v_row[k];                                          \
  const double u##k = v_u[k];
  EACH_ROW(BEGIN)
#undef BEGIN

#ifdef TB_VECTOR
#define STEP(load, k) sum += load(p##k + j) * u##k;
#define STEP_SQUARE(vector, load, k)                                           \
  {                                                                            \
    const vector term = load(p##k + j) * u##k;                                 \
    sum += term;                                                               \
    square += term * term;                                                     \
  }
#define STEP8(k)        STEP(LOAD8, k)
#define STEP4(k)        STEP(LOAD4, k)
#define STEP8_SQUARE(k) STEP_SQUARE(tb_v8d, LOAD8, k)
#define STEP4_SQUARE(k) STEP_SQUARE(tb_v4d, LOAD4, k)
#define COLUMNS(vector, step, step_square)                                     \
  vector sum = *(vector*)(v_sum + j);                                          \
  if (v_square == NULL) {                                                      \
    EACH_ROW(step)                                                             \
  } else {                                                                     \
    vector square = *(vector*)(v_square + j);                                  \
    EACH_ROW(step_square)                                                      \
    *(vector*)(v_square + j) = square;                                         \
  }                                                                            \
  *(vector*)(v_sum + j) = sum;
  for (; j + 8 <= n; j += 8) {
    COLUMNS(tb_v8d, STEP8, STEP8_SQUARE)
  }
  if (j + 4 <= n) {
    COLUMNS(tb_v4d, STEP4, STEP4_SQUARE)
    j += 4;
  }
#undef COLUMNS
#undef STEP8
#undef STEP4
#undef STEP8_SQUARE
#undef STEP4_SQUARE
#undef STEP
#undef STEP_SQUARE
#endif

#define STEP(k)                                                                \
  {                                                                            \
    const double term = (double)p##k[j] * u##k;                                \
    sum += term;                                                               \
    square += term * term;                                                     \
  }
  for (; j < n; ++j) {
    double sum = v_sum[j], square = 0;
    EACH_ROW(STEP)
    v_sum[j] = sum;
    if (v_square != NULL) {
      v_square[j] += square;
    }
  }
#undef STEP
}

TB_INLINE void add_rows(const struct tb_store* p_store,
                        const struct tb_rows* p_rows,
                        const double* v_u,
                        double* v_sum,
                        double* v_square) {
  const float* v_row[TB_STORE_BLOCK];
  double v_filled[TB_STORE_BLOCK];
  rows_find(p_store, p_rows->v_index, p_rows->start, p_rows->n_row, v_row);
  if (p_rows->n_row < TB_STORE_BLOCK) {
    /* the rows a short block was filled up with count zero times */
    for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
      v_filled[k] = k < p_rows->n_row ? v_u[k] : 0;
    }
    v_u = v_filled;
  }
  add_block(v_row, v_u, p_store->n_padded, v_sum, v_square);
}

TB_CLONES
static void float_add(const struct tb_store* p_store,
                      const struct tb_rows* p_rows,
                      const double* v_u,
                      double* v_sum) {
  add_rows(p_store, p_rows, v_u, v_sum, NULL);
}

TB_CLONES
static void float_add_square(const struct tb_store* p_store,
                             const struct tb_rows* p_rows,
                             const double* v_u,
                             double* v_sum,
                             double* v_square) {
  add_rows(p_store, p_rows, v_u, v_sum, v_square);
}

/* ---- the rest of the table ---- */

TB_CLONES
static void widen(const float* v_from, size_t n, double* v_to) {
  for (size_t j = 0; j < n; ++j) {
    v_to[j] = (double)v_from[j];
  }
}

static const double* float_block(const struct tb_store* p_store,
                                 size_t start,
                                 size_t n_row,
                                 double* v_scratch) {
  const float* v_data = p_store->p_self;
  const size_t n_padded = p_store->n_padded;
  widen(v_data + start * n_padded, n_row * n_padded, v_scratch);
  return v_scratch;
}

static void float_gather(const struct tb_store* p_store,
                         const size_t* v_index,
                         size_t start,
                         size_t n_row,
                         size_t n_lead,
                         double* v_out) {
  const float* v_data = p_store->p_self;
  for (size_t k = 0; k < n_row; ++k) {
    const size_t row = v_index == NULL ? start + k : v_index[k];
    widen(v_data + row * p_store->n_padded, p_store->n_col, v_out + k * n_lead);
  }
}

TB_CLONES
static void float_write(struct tb_store* p_store,
                        size_t start,
                        size_t n_row,
                        const double* v_block) {
  const size_t n = n_row * p_store->n_padded;
  float* v_place = (float*)p_store->p_self + start * p_store->n_padded;
  for (size_t j = 0; j < n; ++j) {
    v_place[j] = (float)v_block[j];
  }
}

static enum tb_status
float_append(struct tb_store* p_store, size_t n_row, const double* v_block) {
  float_write(p_store, p_store->n_filled, n_row, v_block);
  return TB_STATUS_ok;
}

static void float_prefetch(const struct tb_store* p_store, size_t row) {
  const float* v_row = (const float*)p_store->p_self + row * p_store->n_padded;
  for (size_t j = 0; j < p_store->n_padded; j += LINE) {
    TB_PREFETCH(v_row + j);
  }
}

static size_t float_memory(const struct tb_store* p_store) {
  return p_store->n_byte;
}

static void float_destroy(struct tb_store* p_store) {
  tb_big_free(p_store->p_self, p_store->n_byte);
  p_store->p_self = NULL;
  p_store->n_byte = 0;
}

/* Zeros. */
static enum tb_status float_create(struct tb_store* p_store) {
  size_t n_byte;
  if (!tb_store_size(p_store, sizeof(float), &n_byte)) {
    return TB_STATUS_memory;
  }
  p_store->p_self = tb_big_alloc(n_byte);
  if (p_store->p_self == NULL) {
    return TB_STATUS_memory;
  }
  p_store->n_byte = n_byte;
  return TB_STATUS_ok;
}

extern const struct tb_store_type tb_store_float;
const struct tb_store_type tb_store_float = {.name = "float",
                                             .rounding = FLT_EPSILON / 2,
                                             .create = float_create,
                                             .append = float_append,
                                             .dot = float_dot,
                                             .add = float_add,
                                             .add_square = float_add_square,
                                             .block = float_block,
                                             .gather = float_gather,
                                             .write = float_write,
                                             .prefetch = float_prefetch,
                                             .memory = float_memory,
                                             .destroy = float_destroy};
