/* Dense store: row-major doubles, each observation contiguous.
 *
 * The time of a minibatch is the time memory takes to deliver its rows, so
 * everything here serves two ends: have the next rows on their way while this
 * block is worked on, and finish the arithmetic of a block before they arrive.
 *
 *   - dot takes all rows of a block together: a load of v serves eight rows,
 *     and eight sums are in flight, enough to hide the latency of an addition;
 *   - add passes over v_sum once per block, not once per row;
 *   - the next block's rows are asked for a cache line of each at a time,
 *     between pieces of arithmetic, the first lines in dot and the others in
 *     add: all at once they would fill the few buffers for outstanding lines
 *     and hold up the loads of this block, and all in dot would leave memory
 *     idle during the model's scalar work and add.
 *
 * A row's dot product is added up in the same order whatever its place in the
 * block and however the block was named (indices or a range), so that the
 * same row and vector always give the same bits: control variates cancel
 * exactly at their reference. */
#include "base/clones.h"
#include "base/memory.h"
#include "base/vector.h"
#include "data/store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if TB_STORE_BLOCK != 8
#error "the loops below are written for blocks of 8 rows"
#endif

/* doubles in a cache line, the unit rows are prefetched in */
#define LINE 8

/* ---- rows of a block ---- */

#define EACH_ROW(do)                                                           \
  do                                                                           \
  (0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)

/* Addresses of n rows. Fewer than eight are filled up with the last one: the
 * loops are written for eight, and a row that is there already costs next to
 * nothing. */
TB_INLINE void rows_find(const struct tb_store* p_store,
                         const size_t* v_index,
                         size_t start,
                         size_t n,
                         const double* v_row[TB_STORE_BLOCK]) {
  const double* const v_data = p_store->v_data;
  const size_t n_padded = p_store->n_padded;
  if (n == TB_STORE_BLOCK && v_index != NULL) {
#define FIND(k) v_row[k] = v_data + v_index[k] * n_padded;
    EACH_ROW(FIND)
#undef FIND
    return;
  }
  for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
    const size_t at = k < n ? k : n - 1;
    const size_t row = v_index == NULL ? start + at : v_index[at];
    v_row[k] = v_data + row * n_padded;
  }
}

#define PREFETCH(k) TB_PREFETCH(v_next[k] + j);

/* How many columns of the next rows dot asks for; add asks for the rest. A
 * line of each of eight rows, and of their responses, which the model asks for
 * next, is about what a core can have on its way at once. Short rows are done
 * with that, and wide ones need no such care: their dot lasts long enough. */
TB_INLINE size_t columns_ahead(size_t n) {
  return n <= 2 * LINE || n > 16 * LINE ? n : LINE;
}

/* ---- dot ---- */

#ifdef TB_VECTOR
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

/* v_out[k] = v_row[k]^T v, k = 0..7; asks for the first n_ahead columns of
 * v_next's rows unless NULL */
TB_INLINE void dot_block(const double* const v_row[TB_STORE_BLOCK],
                         const double* const* v_next,
                         size_t n_ahead,
                         const double* v,
                         size_t n,
                         double v_out[TB_STORE_BLOCK]) {
  size_t j = 0;
#define BEGIN(k) const double* const p##k = v_row[k];
  EACH_ROW(BEGIN)
#undef BEGIN

#ifdef TB_VECTOR
#define BEGIN(k) tb_v4d sum##k = {0, 0, 0, 0};
#define STEP(k)  sum##k += *(const tb_v4d*)(p##k + j) * x;
#define STEP2(k)                                                               \
  sum##k += *(const tb_v4d*)(p##k + j) * x;                                    \
  sum##k += *(const tb_v4d*)(p##k + j + 4) * y;
  EACH_ROW(BEGIN)
  for (; j + LINE <= n; j += LINE) {
    const tb_v4d x = *(const tb_v4d*)(v + j);
    const tb_v4d y = *(const tb_v4d*)(v + j + 4);
    if (v_next != NULL && j < n_ahead) {
      EACH_ROW(PREFETCH)
    }
    EACH_ROW(STEP2)
  }
  if (j + 4 <= n) {
    if (v_next != NULL && j < n_ahead) {
      EACH_ROW(PREFETCH)
    }
    const tb_v4d x = *(const tb_v4d*)(v + j);
    EACH_ROW(STEP)
    j += 4;
  }
  sum_across(&sum0, &sum1, &sum2, &sum3, v_out);
  sum_across(&sum4, &sum5, &sum6, &sum7, v_out + 4);
#undef BEGIN
#undef STEP
#undef STEP2
#else
  memset(v_out, 0, TB_STORE_BLOCK * sizeof(double));
#endif

#define STEP(k) v_out[k] += p##k[j] * v[j];
  for (; j < n; ++j) {
    if (v_next != NULL && j % LINE == 0 && j < n_ahead) {
      EACH_ROW(PREFETCH)
    }
    EACH_ROW(STEP)
  }
#undef STEP
}

TB_CLONES
static void dense_dot(const struct tb_store* p_store,
                      const struct tb_rows* p_rows,
                      const double* v,
                      double* v_out) {
  const double* v_row[TB_STORE_BLOCK];
  double v_dot[TB_STORE_BLOCK];
  const size_t n = p_store->n_padded;
  double* const v_full = p_rows->n_row == TB_STORE_BLOCK ? v_out : v_dot;
  rows_find(p_store, p_rows->v_index, p_rows->start, p_rows->n_row, v_row);
  if (p_rows->v_index != NULL && p_rows->n_next > 0) {
    const double* v_next[TB_STORE_BLOCK];
    rows_find(p_store, p_rows->v_next, 0, p_rows->n_next, v_next);
    dot_block(v_row, v_next, columns_ahead(n), v, n, v_full);
  } else {
    /* consecutive rows: the processor sees them coming by itself */
    dot_block(v_row, NULL, 0, v, n, v_full);
  }
  if (v_full == v_dot) {
    memcpy(v_out, v_dot, p_rows->n_row * sizeof(double));
  }
}

/* ---- add ---- */

/* v_sum += sum_k u_k v_row[k], and the squares of the terms to v_square unless
 * NULL; asks for v_next's columns from n_ahead on unless NULL */
TB_INLINE void add_block(const double* const v_row[TB_STORE_BLOCK],
                         const double* const* v_next,
                         size_t n_ahead,
                         const double v_u[TB_STORE_BLOCK],
                         size_t n,
                         double* v_sum,
                         double* v_square) {
  size_t j = 0;
#define BEGIN(k)                                                               \
  const double* const p##k = v_row[k];                                         \
  const double u##k = v_u[k];
  EACH_ROW(BEGIN)
#undef BEGIN

#ifdef TB_VECTOR
#define STEP(k) sum += *(const tb_v4d*)(p##k + j) * u##k;
#define STEP_SQUARE(k)                                                         \
  {                                                                            \
    const tb_v4d term = *(const tb_v4d*)(p##k + j) * u##k;                     \
    sum += term;                                                               \
    square += term * term;                                                     \
  }
  for (; j + 4 <= n; j += 4) {
    if (v_next != NULL && j % LINE == 0 && j >= n_ahead) {
      EACH_ROW(PREFETCH)
    }
    tb_v4d sum = *(tb_v4d*)(v_sum + j);
    if (v_square == NULL) {
      EACH_ROW(STEP)
    } else {
      tb_v4d square = *(tb_v4d*)(v_square + j);
      EACH_ROW(STEP_SQUARE)
      *(tb_v4d*)(v_square + j) = square;
    }
    *(tb_v4d*)(v_sum + j) = sum;
  }
#undef STEP
#undef STEP_SQUARE
#endif

#define STEP(k)                                                                \
  {                                                                            \
    const double term = p##k[j] * u##k;                                        \
    sum += term;                                                               \
    square += term * term;                                                     \
  }
  for (; j < n; ++j) {
    if (v_next != NULL && j % LINE == 0 && j >= n_ahead) {
      EACH_ROW(PREFETCH)
    }
    double sum = v_sum[j], square = 0;
    EACH_ROW(STEP)
    v_sum[j] = sum;
    if (v_square != NULL) {
      v_square[j] += square;
    }
  }
#undef STEP

  /* rows that do not start on a line reach into one more */
  if (v_next != NULL && n % LINE != 0) {
    j = n - 1;
    EACH_ROW(PREFETCH)
  }
}

/* The rows a short block was filled up with count zero times. */
TB_INLINE const double* multipliers_fill(const struct tb_rows* p_rows,
                                         const double* v_u,
                                         double v_filled[TB_STORE_BLOCK]) {
  if (p_rows->n_row == TB_STORE_BLOCK) {
    return v_u;
  }
  for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
    v_filled[k] = k < p_rows->n_row ? v_u[k] : 0;
  }
  return v_filled;
}

TB_INLINE void add_rows(const struct tb_store* p_store,
                        const struct tb_rows* p_rows,
                        const double* v_u,
                        double* v_sum,
                        double* v_square) {
  const size_t n = p_store->n_padded;
  const double* v_row[TB_STORE_BLOCK];
  double v_filled[TB_STORE_BLOCK];
  rows_find(p_store, p_rows->v_index, p_rows->start, p_rows->n_row, v_row);
  v_u = multipliers_fill(p_rows, v_u, v_filled);
  if (p_rows->v_index != NULL && p_rows->n_next > 0) {
    const double* v_next[TB_STORE_BLOCK];
    rows_find(p_store, p_rows->v_next, 0, p_rows->n_next, v_next);
    add_block(v_row, v_next, columns_ahead(n), v_u, n, v_sum, v_square);
  } else {
    add_block(v_row, NULL, 0, v_u, n, v_sum, v_square);
  }
}

TB_CLONES
static void dense_add(const struct tb_store* p_store,
                      const struct tb_rows* p_rows,
                      const double* v_u,
                      double* v_sum) {
  add_rows(p_store, p_rows, v_u, v_sum, NULL);
}

TB_CLONES
static void dense_add_square(const struct tb_store* p_store,
                             const struct tb_rows* p_rows,
                             const double* v_u,
                             double* v_sum,
                             double* v_square) {
  add_rows(p_store, p_rows, v_u, v_sum, v_square);
}

/* ---- the rest of the table ---- */

static const double* dense_block(const struct tb_store* p_store,
                                 size_t start,
                                 size_t n_row,
                                 double* v_scratch) {
  (void)n_row;
  (void)v_scratch;
  return p_store->v_data + start * p_store->n_padded;
}

static void dense_gather(const struct tb_store* p_store,
                         const size_t* v_index,
                         size_t start,
                         size_t n_row,
                         size_t n_lead,
                         double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const size_t row = v_index == NULL ? start + k : v_index[k];
    memcpy(v_out + k * n_lead,
           p_store->v_data + row * p_store->n_padded,
           p_store->n_col * sizeof(double));
  }
}

static void dense_write(struct tb_store* p_store,
                        size_t start,
                        size_t n_row,
                        const double* v_block) {
  double* v_place = p_store->v_data + start * p_store->n_padded;
  if (v_place != v_block) {
    memmove(v_place, v_block, n_row * p_store->n_padded * sizeof(double));
  }
}

static enum tb_status
dense_append(struct tb_store* p_store, size_t n_row, const double* v_block) {
  dense_write(p_store, p_store->n_filled, n_row, v_block);
  return TB_STATUS_ok;
}

static void dense_prefetch(const struct tb_store* p_store, size_t row) {
  const double* v_row = p_store->v_data + row * p_store->n_padded;
  for (size_t j = 0; j < p_store->n_padded; j += LINE) {
    TB_PREFETCH(v_row + j);
  }
}

static size_t dense_memory(const struct tb_store* p_store) {
  return p_store->n_byte;
}

static void dense_destroy(struct tb_store* p_store) {
  tb_big_free(p_store->v_data, p_store->n_byte);
  p_store->v_data = NULL;
  p_store->n_byte = 0;
}

/* Rows are written, padding and all, before they are read. */
static enum tb_status dense_create(struct tb_store* p_store) {
  size_t n_byte;
  if (!tb_store_size(p_store, sizeof(double), &n_byte)) {
    return TB_STATUS_memory;
  }
  p_store->v_data = tb_big_room(n_byte);
  if (p_store->v_data == NULL) {
    return TB_STATUS_memory;
  }
  p_store->n_byte = n_byte;
  return TB_STATUS_ok;
}

extern const struct tb_store_type tb_store_dense;
const struct tb_store_type tb_store_dense = {.name = "dense",
                                             .create = dense_create,
                                             .append = dense_append,
                                             .dot = dense_dot,
                                             .add = dense_add,
                                             .add_square = dense_add_square,
                                             .block = dense_block,
                                             .gather = dense_gather,
                                             .write = dense_write,
                                             .prefetch = dense_prefetch,
                                             .memory = dense_memory,
                                             .destroy = dense_destroy};
