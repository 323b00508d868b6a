/* Float store: row-major floats, sums in double; data/dense-template.h has all
 * that it shares with other types of numbers.
 *
 * A row takes half of what it takes in dense.c, and so does the time until it
 * has come from memory, which is that of a minibatch. The loops are those of
 * dense.c but for the conversion, eight numbers an instruction where there are
 * such registers.
 *
 * What is appended or written is rounded to the nearest float, and the rounded
 * numbers are the rows from then on: dot, add, block and gather agree on them
 * to the bit. */
#include "base/vector.h"
#include "data/store.h"

#include <float.h>

#ifdef TB_VECTOR
typedef float tb_v4f __attribute__((vector_size(16), aligned(4), may_alias));
typedef float tb_v8f __attribute__((vector_size(32), aligned(4), may_alias));
#endif

#define NUMBER   float
#define ROWS     p_self
#define LINE     16
#define LOAD4(p) __builtin_convertvector(*(const tb_v4f*)(p), tb_v4d)
#define LOAD8(p) __builtin_convertvector(*(const tb_v8f*)(p), tb_v8d)
#include "data/dense-template.h"

/* rows are short: all of them in dot */
TB_INLINE size_t columns_ahead(size_t n) {
  return n + 1;
}

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

TB_INLINE void dot_block(const float* const v_row[TB_STORE_BLOCK],
                         const float* const* v_next,
                         size_t n_ahead,
                         const double* v,
                         size_t n,
                         double v_out[TB_STORE_BLOCK]) {
  (void)n_ahead;
  dot_four(v_row, v_next, v, n, v_out);
  dot_four(v_row + 4, v_next == NULL ? NULL : v_next + 4, v, n, v_out + 4);
}

TB_CLONES
static void widen(const float* v_from, size_t n, double* v_to) {
  for (size_t j = 0; j < n; ++j) {
    v_to[j] = (double)v_from[j];
  }
}

TB_CLONES
static void narrow(const double* v_from, size_t n, float* v_to) {
  for (size_t j = 0; j < n; ++j) {
    v_to[j] = (float)v_from[j];
  }
}

static const double* float_block(const struct tb_store* p_store,
                                 size_t start,
                                 size_t n_row,
                                 double* v_scratch) {
  const float* v_rows = p_store->p_self;
  const size_t n_padded = p_store->n_padded;
  widen(v_rows + start * n_padded, n_row * n_padded, v_scratch);
  return v_scratch;
}

extern const struct tb_store_type tb_store_float;
const struct tb_store_type tb_store_float = {.name = "float",
                                             .rounding = FLT_EPSILON / 2,
                                             .create = rows_create,
                                             .append = rows_append,
                                             .dot = rows_dot,
                                             .add = rows_add,
                                             .add_square = rows_add_square,
                                             .block = float_block,
                                             .gather = rows_gather,
                                             .write = rows_write,
                                             .prefetch = rows_prefetch,
                                             .memory = rows_memory,
                                             .destroy = rows_destroy};
