/* Stores of rows of one type of numbers, each observation contiguous: all that
 * dense.c and float.c share. What a file has before it includes this:
 *
 *   NUMBER   the type
 *   ROWS     the member of struct tb_store that the rows are at
 *   LINE     numbers in a cache line, the unit rows are prefetched in
 *   LOAD4(p), LOAD8(p)   so many numbers as doubles, with TB_VECTOR
 *
 * and after it the functions that are declared below, and the table.
 *
 * The time of a minibatch is the time memory takes to deliver its rows, so
 * everything here serves two ends: have the next rows on their way while this
 * block is worked on, and finish the arithmetic of a block before they arrive.
 *
 *   - dot takes many rows of a block together: a load of v serves all of them,
 *     and as many sums are in flight as hide the latency of an addition;
 *   - add passes over v_sum once per block, not once per row;
 *   - the next block's rows are asked for a cache line of each at a time,
 *     between pieces of arithmetic.
 *
 * A row's dot product is added up in the same order whatever its place in the
 * block and however the block was named (indices or a range), so that the
 * same row and vector always give the same bits: control variates cancel
 * exactly at their reference. */
#ifndef TB_DATA_DENSE_TEMPLATE_H
#define TB_DATA_DENSE_TEMPLATE_H

#include "base/clones.h"
#include "base/memory.h"

#include <string.h>

#if TB_STORE_BLOCK != 8
#error "the loops below are written for blocks of 8 rows"
#endif

/* ---- of each type of numbers ---- */

/* v_out[k] = v_row[k]^T v, k = 0..7; asks for the first n_ahead columns of
 * v_next's rows unless NULL */
TB_INLINE void dot_block(const NUMBER* const v_row[TB_STORE_BLOCK],
                         const NUMBER* const* v_next,
                         size_t n_ahead,
                         const double* v,
                         size_t n,
                         double v_out[TB_STORE_BLOCK]);

/* How many columns of the next rows dot asks for; add asks for the rest. More
 * than n: dot asks for all that there is. */
TB_INLINE size_t columns_ahead(size_t n);

/* n numbers, as doubles and from them */
static void widen(const NUMBER* v_from, size_t n, double* v_to);
static void narrow(const double* v_from, size_t n, NUMBER* v_to);

/* ---- rows of a block ---- */

#define EACH_OF_FOUR(do)                                                       \
  do                                                                           \
  (0) do(1) do(2) do(3)

#define EACH_ROW(do)                                                           \
  do                                                                           \
  (0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)

#define PREFETCH(k) TB_PREFETCH(v_next[k] + j);

/* Addresses of n rows. Fewer than eight are filled up with the last one: the
 * loops are written for eight, and a row that is there already costs next to
 * nothing. */
TB_INLINE void rows_find(const struct tb_store* p_store,
                         const size_t* v_index,
                         size_t start,
                         size_t n,
                         const NUMBER* v_row[TB_STORE_BLOCK]) {
  const NUMBER* const v_data = p_store->ROWS;
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

TB_CLONES
static void rows_dot(const struct tb_store* p_store,
                     const struct tb_rows* p_rows,
                     const double* v,
                     double* v_out) {
  const NUMBER* v_row[TB_STORE_BLOCK];
  double v_dot[TB_STORE_BLOCK];
  const size_t n = p_store->n_padded;
  double* const v_full = p_rows->n_row == TB_STORE_BLOCK ? v_out : v_dot;
  rows_find(p_store, p_rows->v_index, p_rows->start, p_rows->n_row, v_row);
  if (p_rows->v_index != NULL && p_rows->n_next > 0) {
    const NUMBER* v_next[TB_STORE_BLOCK];
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
TB_INLINE void add_block(const NUMBER* const v_row[TB_STORE_BLOCK],
                         const NUMBER* const* v_next,
                         size_t n_ahead,
                         const double v_u[TB_STORE_BLOCK],
                         size_t n,
                         double* v_sum,
                         double* v_square) {
  size_t j = 0;
#define BEGIN(k)                                                               \
  const NUMBER* const p##k = v_row[k];                                         \
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
  if (v_next != NULL && j % LINE == 0 && j >= n_ahead) {                       \
    EACH_ROW(PREFETCH)                                                         \
  }                                                                            \
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
  const NUMBER* v_row[TB_STORE_BLOCK];
  double v_filled[TB_STORE_BLOCK];
  rows_find(p_store, p_rows->v_index, p_rows->start, p_rows->n_row, v_row);
  v_u = multipliers_fill(p_rows, v_u, v_filled);
  const size_t n_ahead = columns_ahead(n);
  if (p_rows->v_index != NULL && p_rows->n_next > 0 && n_ahead <= n) {
    const NUMBER* v_next[TB_STORE_BLOCK];
    rows_find(p_store, p_rows->v_next, 0, p_rows->n_next, v_next);
    add_block(v_row, v_next, n_ahead, v_u, n, v_sum, v_square);
  } else {
    add_block(v_row, NULL, 0, v_u, n, v_sum, v_square);
  }
}

TB_CLONES
static void rows_add(const struct tb_store* p_store,
                     const struct tb_rows* p_rows,
                     const double* v_u,
                     double* v_sum) {
  add_rows(p_store, p_rows, v_u, v_sum, NULL);
}

TB_CLONES
static void rows_add_square(const struct tb_store* p_store,
                            const struct tb_rows* p_rows,
                            const double* v_u,
                            double* v_sum,
                            double* v_square) {
  add_rows(p_store, p_rows, v_u, v_sum, v_square);
}

/* ---- the rest of the table ---- */

static void rows_gather(const struct tb_store* p_store,
                        const size_t* v_index,
                        size_t start,
                        size_t n_row,
                        size_t n_lead,
                        double* v_out) {
  const NUMBER* v_rows = p_store->ROWS;
  for (size_t k = 0; k < n_row; ++k) {
    const size_t row = v_index == NULL ? start + k : v_index[k];
    widen(v_rows + row * p_store->n_padded, p_store->n_col, v_out + k * n_lead);
  }
}

static void rows_write(struct tb_store* p_store,
                       size_t start,
                       size_t n_row,
                       const double* v_block) {
  NUMBER* v_rows = p_store->ROWS;
  narrow(v_block,
         n_row * p_store->n_padded,
         v_rows + start * p_store->n_padded);
}

static enum tb_status
rows_append(struct tb_store* p_store, size_t n_row, const double* v_block) {
  rows_write(p_store, p_store->n_filled, n_row, v_block);
  return TB_STATUS_ok;
}

static void rows_prefetch(const struct tb_store* p_store, size_t row) {
  const NUMBER* v_rows = p_store->ROWS;
  const NUMBER* v_row = v_rows + row * p_store->n_padded;
  for (size_t j = 0; j < p_store->n_padded; j += LINE) {
    TB_PREFETCH(v_row + j);
  }
}

static size_t rows_memory(const struct tb_store* p_store) {
  return p_store->n_byte;
}

static void rows_destroy(struct tb_store* p_store) {
  tb_big_free(p_store->ROWS, p_store->n_byte);
  p_store->ROWS = NULL;
  p_store->n_byte = 0;
}

/* Rows are written, padding and all, before they are read. */
static enum tb_status rows_create(struct tb_store* p_store) {
  size_t n_byte;
  if (!tb_store_size(p_store, sizeof(NUMBER), &n_byte)) {
    return TB_STATUS_memory;
  }
  p_store->ROWS = tb_big_room(n_byte);
  if (p_store->ROWS == NULL) {
    return TB_STATUS_memory;
  }
  p_store->n_byte = n_byte;
  return TB_STATUS_ok;
}

#endif
