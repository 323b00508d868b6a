/* Dense store: row-major doubles; data/dense-template.h has all that it shares
 * with other types of numbers.
 *
 * The first lines of the next rows are asked for in dot and the others in add:
 * all at once they would fill the few buffers for outstanding lines and hold up
 * the loads of this block, and all in dot would leave memory idle during the
 * model's scalar work and add. */
#include "base/vector.h"
#include "data/store.h"

#define NUMBER   double
#define ROWS     v_data
#define LINE     8
#define LOAD4(p) (*(const tb_v4d*)(p))
#define LOAD8(p) (*(const tb_v8d*)(p))
#include "data/dense-template.h"

/* A line of each of eight rows, and of their responses, which the model asks
 * for next, is about what a core can have on its way at once. Short rows are
 * done with that, and wide ones need no such care: their dot lasts long enough.
 */
TB_INLINE size_t columns_ahead(size_t n) {
  return n <= 2 * LINE || n > 16 * LINE ? n : LINE;
}

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
#define STEP(k)  sum##k += LOAD4(p##k + j) * x;
#define STEP2(k)                                                               \
  sum##k += LOAD4(p##k + j) * x;                                               \
  sum##k += LOAD4(p##k + j + 4) * y;
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

static void widen(const double* v_from, size_t n, double* v_to) {
  memcpy(v_to, v_from, n * sizeof(double));
}

static void narrow(const double* v_from, size_t n, double* v_to) {
  if (v_to != v_from) {
    memmove(v_to, v_from, n * sizeof(double));
  }
}

static const double* dense_block(const struct tb_store* p_store,
                                 size_t start,
                                 size_t n_row,
                                 double* v_scratch) {
  (void)n_row;
  (void)v_scratch;
  return p_store->v_data + start * p_store->n_padded;
}

extern const struct tb_store_type tb_store_dense;
const struct tb_store_type tb_store_dense = {.name = "dense",
                                             .create = rows_create,
                                             .append = rows_append,
                                             .dot = rows_dot,
                                             .add = rows_add,
                                             .add_square = rows_add_square,
                                             .block = dense_block,
                                             .gather = rows_gather,
                                             .write = rows_write,
                                             .prefetch = rows_prefetch,
                                             .memory = rows_memory,
                                             .destroy = rows_destroy};
