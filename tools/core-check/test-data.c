#include "check.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/store.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N_ROW 37

/* Normal entries; the padding stays zero. */
static void store_fill(struct tb_store* p_store, struct tb_rng* p_rng) {
  double* v_row = check_alloc(p_store->n_padded, sizeof(double));
  for (size_t i = 0; i < p_store->n_row; ++i) {
    tb_rng_fill_norm(p_rng, v_row, p_store->n_col);
    p_store->type->write(p_store, i, 1, v_row);
  }
  free(v_row);
}

static double entry(const struct tb_store* p_store, size_t row, size_t col) {
  return p_store->type->block(p_store, row, 1, NULL)[col];
}

/* dot, add and add_square of one block against the definitions. */
static void block_agrees(struct check* p_check,
                         const struct tb_store* p_store,
                         const struct tb_rows* p_rows,
                         struct tb_rng* p_rng) {
  const size_t n_col = p_store->n_col, n = p_rows->n_row;
  const size_t n_padded = p_store->n_padded;
  double* v = check_alloc(n_padded, sizeof(double));
  double* v_sum = check_alloc(n_padded, sizeof(double));
  double* v_both = check_alloc(n_padded, sizeof(double));
  double* v_square = check_alloc(n_padded, sizeof(double));
  double* v_start = check_alloc(n_padded, sizeof(double));
  double v_u[TB_STORE_BLOCK];
  double v_out[TB_STORE_BLOCK + 1];
  tb_rng_fill_norm(p_rng, v, n_col);
  tb_rng_fill_norm(p_rng, v_u, TB_STORE_BLOCK);
  tb_rng_fill_norm(p_rng, v_start, n_col);
  memcpy(v_sum, v_start, n_padded * sizeof(double));
  memcpy(v_both, v_start, n_padded * sizeof(double));
  memcpy(v_square, v_start, n_padded * sizeof(double));

  v_out[n] = 12345; /* nothing is written past the rows asked for */
  p_store->type->dot(p_store, p_rows, v, v_out);
  CHECK(v_out[n] == 12345);
  /* add may read v_u[0..n-1] alone: the others are poisoned */
  for (size_t k = n; k < TB_STORE_BLOCK; ++k) {
    v_u[k] = NAN;
  }
  p_store->type->add(p_store, p_rows, v_u, v_sum);
  p_store->type->add_square(p_store, p_rows, v_u, v_both, v_square);

  for (size_t k = 0; k < n; ++k) {
    const size_t row =
      p_rows->v_index == NULL ? p_rows->start + k : p_rows->v_index[k];
    double sum = 0, size = 0;
    for (size_t j = 0; j < n_col; ++j) {
      sum += entry(p_store, row, j) * v[j];
      size += fabs(entry(p_store, row, j) * v[j]);
    }
    CHECK_CLOSE(v_out[k], sum, DBL_EPSILON * (double) n_col * size);
  }
  for (size_t j = 0; j < n_padded; ++j) {
    double sum = v_start[j], square = v_start[j], size = fabs(v_start[j]);
    for (size_t k = 0; k < n; ++k) {
      const size_t row =
        p_rows->v_index == NULL ? p_rows->start + k : p_rows->v_index[k];
      const double term = v_u[k] * entry(p_store, row, j);
      sum += term;
      square += term * term;
      size += fabs(term) + term * term;
    }
    CHECK_CLOSE(v_sum[j], sum, 8 * DBL_EPSILON * size);
    CHECK_CLOSE(v_both[j], sum, 8 * DBL_EPSILON * size);
    CHECK_CLOSE(v_square[j], square, 8 * DBL_EPSILON * size);
  }
  free(v);
  free(v_sum);
  free(v_both);
  free(v_square);
  free(v_start);
}

static void dense_algebra(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 11, 0, TB_STREAM_batch);
  for (size_t n_col = 1; n_col <= 70 + 4; ++n_col) {
    /* the last ones: wide rows, where prefetching changes */
    const size_t width = n_col <= 70 ? n_col : 120 + 5 * (n_col - 70);
    struct tb_store store;
    CHECK(tb_store_dense_create(&store, N_ROW, width) == TB_STATUS_ok);
    store_fill(&store, &rng);
    for (size_t n = 1; n <= TB_STORE_BLOCK; ++n) {
      for (size_t n_next = 0; n_next <= TB_STORE_BLOCK; n_next += 4) {
        size_t v_index[2 * TB_STORE_BLOCK];
        for (size_t k = 0; k < 2 * TB_STORE_BLOCK; ++k) {
          v_index[k] = tb_rng_index(&rng, N_ROW);
        }
        struct tb_rows rows = { .n_row = n,
                                .v_index = v_index,
                                .n_next = n_next,
                                .v_next = v_index + n };
        block_agrees(p_check, &store, &rows, &rng);
        rows.v_index = NULL;
        rows.start = tb_rng_index(&rng, N_ROW - n + 1);
        block_agrees(p_check, &store, &rows, &rng);
      }
    }
    store.type->destroy(&store);
    CHECK(store.v_data == NULL);
  }
}

/* Control variates cancel at their reference only if a row and a vector give
 * the same bits wherever the row stands. */
static void dense_same_bits(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 12, 0, TB_STREAM_batch);
  for (size_t n_col = 1; n_col <= 70; ++n_col) {
    struct tb_store store;
    CHECK(tb_store_dense_create(&store, N_ROW, n_col) == TB_STATUS_ok);
    store_fill(&store, &rng);
    double* v = check_alloc(store.n_padded, sizeof(double));
    tb_rng_fill_norm(&rng, v, n_col);
    for (size_t row = 0; row + TB_STORE_BLOCK <= N_ROW; ++row) {
      double v_range[TB_STORE_BLOCK], v_list[TB_STORE_BLOCK], alone;
      size_t v_index[TB_STORE_BLOCK];
      for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
        v_index[k] = row + TB_STORE_BLOCK - 1 - k;
      }
      const struct tb_rows range = { .n_row = TB_STORE_BLOCK, .start = row };
      const struct tb_rows list = { .n_row = TB_STORE_BLOCK,
                                    .v_index = v_index,
                                    .n_next = 3,
                                    .v_next = v_index };
      const struct tb_rows one = { .n_row = 1, .v_index = v_index };
      store.type->dot(&store, &range, v, v_range);
      store.type->dot(&store, &list, v, v_list);
      store.type->dot(&store, &one, v, &alone);
      for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
        CHECK(v_range[k] == v_list[TB_STORE_BLOCK - 1 - k]);
      }
      CHECK(alone == v_list[0]);
    }
    free(v);
    store.type->destroy(&store);
  }
}

static void dense_layout(struct check* p_check) {
  for (size_t n_col = 1; n_col <= 300; ++n_col) {
    struct tb_store store;
    CHECK(tb_store_dense_create(&store, 5, n_col) == TB_STATUS_ok);
    CHECK(store.n_row == 5 && store.n_col == n_col);
    CHECK(store.n_padded >= n_col);
    CHECK((double) store.n_padded <= 1.03 * (double) n_col);
    CHECK(store.n_padded == n_col || store.n_padded % 8 == 0);
    CHECK((uintptr_t) store.v_data % 64 == 0);
    CHECK(store.type->memory(&store) ==
          5 * store.n_padded * sizeof(double));
    for (size_t k = 0; k < 5 * store.n_padded; ++k) {
      CHECK(store.v_data[k] == 0);
    }
    store.type->destroy(&store);
  }
  struct tb_store store;
  CHECK(tb_store_dense_create(&store, 1, 55) == TB_STATUS_ok);
  CHECK(store.n_padded == 56);
  store.type->destroy(&store);
}

static void dense_overflow(struct check* p_check) {
  struct tb_store store;
  CHECK(tb_store_dense_create(&store, SIZE_MAX / 8, 3) == TB_STATUS_memory);
  CHECK(store.v_data == NULL);
  CHECK(tb_store_dense_create(&store, 2, SIZE_MAX / 8) == TB_STATUS_memory);
  CHECK(tb_store_dense_create(&store, (size_t) 1 << 32, (size_t) 1 << 32) ==
        TB_STATUS_memory);
  /* sizes that wrap to something small */
  CHECK(tb_store_dense_create(&store, SIZE_MAX / 8 + 2, 1) ==
        TB_STATUS_memory);
  CHECK(tb_store_dense_create(&store, SIZE_MAX / 80 + 2, 10) ==
        TB_STATUS_memory);
  store.type->destroy(&store); /* nothing there: no harm */
  CHECK(tb_big_alloc(SIZE_MAX) == NULL);
  CHECK(tb_big_alloc(SIZE_MAX - 64) == NULL);
}

static void big_memory(struct check* p_check) {
  const size_t v_size[] = { 0, 1, 1000, (size_t) 5 << 20 };
  for (size_t k = 0; k < 4; ++k) {
    unsigned char* v = tb_big_alloc(v_size[k]);
    CHECK(v != NULL && (uintptr_t) v % 64 == 0);
    size_t n_set = 0;
    for (size_t i = 0; i < v_size[k]; ++i) {
      n_set += v[i] != 0;
    }
    CHECK(n_set == 0);
    if (v != NULL) {
      memset(v, 1, v_size[k]);
    }
    tb_big_free(v, v_size[k]);
  }
  tb_big_free(NULL, 0);
}

const struct check_case check_data[] = {
  { "dense: dot, add, add_square by definition", dense_algebra },
  { "dense: a row's product does not depend on its place", dense_same_bits },
  { "dense: layout, padding, zeros", dense_layout },
  { "dense: sizes that overflow are refused", dense_overflow },
  { "big memory is aligned and zero", big_memory },
  { NULL, NULL }
};
