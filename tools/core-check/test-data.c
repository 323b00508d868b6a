#include "check.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/shelf.h"
#include "data/store.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N_ROW 37

static enum tb_status
dense_create(struct tb_store* p_store, size_t n_row, size_t n_col) {
  return tb_store_create(p_store, tb_store_find("dense"), n_row, n_col);
}

/* Normal entries; the padding stays zero. */
static void store_fill(struct tb_store* p_store, struct tb_rng* p_rng) {
  double* v_row = check_alloc(p_store->n_padded, sizeof(double));
  for (size_t i = 0; i < p_store->n_row; ++i) {
    tb_rng_fill_norm(p_rng, v_row, p_store->n_col);
    tb_store_append(p_store, 1, v_row);
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
    CHECK_CLOSE(v_out[k], sum, DBL_EPSILON * (double)n_col * size);
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

static void one_algebra(struct check* p_check,
                        const struct tb_store_type* p_type) {
  struct tb_rng rng;
  tb_rng_init(&rng, 11, 0, TB_STREAM_batch);
  for (size_t n_col = 1; n_col <= 70 + 4; ++n_col) {
    /* the last ones: wide rows, where prefetching changes */
    const size_t width = n_col <= 70 ? n_col : 120 + 5 * (n_col - 70);
    struct tb_store store;
    CHECK(tb_store_create(&store, p_type, N_ROW, width) == TB_STATUS_ok);
    store_fill(&store, &rng);
    for (size_t n = 1; n <= TB_STORE_BLOCK; ++n) {
      for (size_t n_next = 0; n_next <= TB_STORE_BLOCK; n_next += 4) {
        size_t v_index[2 * TB_STORE_BLOCK];
        for (size_t k = 0; k < 2 * TB_STORE_BLOCK; ++k) {
          v_index[k] = tb_rng_index(&rng, N_ROW);
        }
        struct tb_rows rows = {.n_row = n,
                               .v_index = v_index,
                               .n_next = n_next,
                               .v_next = v_index + n};
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

static void algebra(struct check* p_check) {
  for (size_t k = 0; tb_store_registry[k] != NULL; ++k) {
    one_algebra(p_check, tb_store_registry[k]);
  }
}

/* Control variates cancel at their reference only if a row and a vector give
 * the same bits wherever the row stands. */
static void one_same_bits(struct check* p_check,
                          const struct tb_store_type* p_type) {
  struct tb_rng rng;
  tb_rng_init(&rng, 12, 0, TB_STREAM_batch);
  for (size_t n_col = 1; n_col <= 70; ++n_col) {
    struct tb_store store;
    CHECK(tb_store_create(&store, p_type, N_ROW, n_col) == TB_STATUS_ok);
    store_fill(&store, &rng);
    double* v = check_alloc(store.n_padded, sizeof(double));
    tb_rng_fill_norm(&rng, v, n_col);
    for (size_t row = 0; row + TB_STORE_BLOCK <= N_ROW; ++row) {
      double v_range[TB_STORE_BLOCK], v_list[TB_STORE_BLOCK], alone;
      size_t v_index[TB_STORE_BLOCK];
      for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
        v_index[k] = row + TB_STORE_BLOCK - 1 - k;
      }
      const struct tb_rows range = {.n_row = TB_STORE_BLOCK, .start = row};
      const struct tb_rows list = {.n_row = TB_STORE_BLOCK,
                                   .v_index = v_index,
                                   .n_next = 3,
                                   .v_next = v_index};
      const struct tb_rows one = {.n_row = 1, .v_index = v_index};
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

static void same_bits(struct check* p_check) {
  for (size_t k = 0; tb_store_registry[k] != NULL; ++k) {
    one_same_bits(p_check, tb_store_registry[k]);
  }
}

/* Blocks in, rows out: appended in pieces of any size, gathered, copied,
 * rewritten. */
static void one_keeps_rows(struct check* p_check,
                           const struct tb_store_type* p_type,
                           size_t n_col) {
  struct tb_store store, copy;
  struct tb_rng rng;
  tb_rng_init(&rng, 13, 0, TB_STREAM_batch);
  CHECK(tb_store_create(&store, p_type, N_ROW, n_col) == TB_STATUS_ok);
  const size_t n_padded = store.n_padded;
  double* v_row = check_alloc(N_ROW * n_padded, sizeof(double));
  double* v_out = check_alloc(N_ROW * (n_col + 3), sizeof(double));
  double* v_scratch = check_alloc(N_ROW * n_padded, sizeof(double));
  for (size_t i = 0; i < N_ROW; ++i) {
    tb_rng_fill_norm(&rng, v_row + i * n_padded, n_col);
  }
  CHECK(store.n_filled == 0);
  for (size_t n = 1; store.n_filled < N_ROW; ++n) {
    const size_t left = N_ROW - store.n_filled, start = store.n_filled;
    CHECK(tb_store_append(&store, left + 1, v_row) == TB_STATUS_argument);
    CHECK(store.n_filled == start);
    CHECK(tb_store_append(&store,
                          n < left ? n : left,
                          v_row + start * n_padded) == TB_STATUS_ok);
  }
  CHECK(tb_store_append(&store, 1, v_row) == TB_STATUS_argument);
  CHECK(tb_store_copy(&store, &copy) == TB_STATUS_ok);
  CHECK(copy.type == p_type && copy.n_filled == N_ROW);
  const size_t v_index[] = {5, 0, 5, N_ROW - 1};
  p_type->gather(&store, v_index, 0, 4, n_col + 3, v_out);
  for (size_t k = 0; k < 4; ++k) {
    CHECK(memcmp(v_out + k * (n_col + 3),
                 v_row + v_index[k] * n_padded,
                 n_col * sizeof(double)) == 0);
  }
  p_type->gather(&copy, NULL, 2, 3, n_col, v_out);
  for (size_t k = 0; k < 3; ++k) {
    CHECK(memcmp(v_out + k * n_col,
                 v_row + (2 + k) * n_padded,
                 n_col * sizeof(double)) == 0);
  }
  const double* v_block = p_type->block(&store, 1, N_ROW - 1, v_scratch);
  CHECK(memcmp(v_block,
               v_row + n_padded,
               (N_ROW - 1) * n_padded * sizeof(double)) == 0);
  CHECK(store.is_writable == (p_type->write != NULL));
  if (store.is_writable) {
    p_type->write(&store, 4, 2, v_row);
    p_type->gather(&store, NULL, 4, 1, n_col, v_out);
    CHECK(memcmp(v_out, v_row, n_col * sizeof(double)) == 0);
    p_type->gather(&copy, NULL, 4, 1, n_col, v_out); /* it has its own */
    CHECK(memcmp(v_out, v_row + 4 * n_padded, n_col * sizeof(double)) == 0);
  }
  CHECK(p_type->memory(&store) > 0);
  tb_store_destroy(&store);
  tb_store_destroy(&copy);
  free(v_row);
  free(v_out);
  free(v_scratch);
}

static void keeps_rows(struct check* p_check) {
  for (size_t k = 0; tb_store_registry[k] != NULL; ++k) {
    CHECK(tb_store_find(tb_store_registry[k]->name) == tb_store_registry[k]);
    one_keeps_rows(p_check, tb_store_registry[k], 1);
    one_keeps_rows(p_check, tb_store_registry[k], 31);
    one_keeps_rows(p_check, tb_store_registry[k], 32);
  }
  CHECK(tb_store_find("no such store") == NULL);
}

/* What a model takes: the matrix by rows, ones after it. */
static void shelf_makes_rows(struct check* p_check) {
  enum { N = 600, N_COL = 3, N_ONES = 2 };
  double v_x[N * N_COL], v_out[N_COL + N_ONES];
  const struct tb_param x = {"x", v_x, N * N_COL, N};
  for (size_t k = 0; k < N * N_COL; ++k) {
    v_x[k] = (double)k;
  }
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (int is_read_only = 0; is_read_only < 2; ++is_read_only) {
      const struct tb_shelf shelf = {tb_store_registry[t], is_read_only};
      struct tb_store store;
      CHECK(tb_shelf_take(&shelf, &x, N_ONES, &store) == TB_STATUS_ok);
      CHECK(store.n_row == N && store.n_filled == N);
      CHECK(store.n_col == N_COL + N_ONES);
      CHECK(store.is_writable == (!is_read_only && store.type->write != NULL));
      for (size_t i = 0; i < N; ++i) {
        store.type->gather(&store, &i, 0, 1, store.n_col, v_out);
        for (size_t j = 0; j < store.n_col; ++j) {
          CHECK(v_out[j] == (j < N_COL ? v_x[j * N + i] : 1));
        }
      }
      tb_store_destroy(&store);
    }
  }
}

static void dense_layout(struct check* p_check) {
  for (size_t n_col = 1; n_col <= 300; ++n_col) {
    struct tb_store store;
    CHECK(dense_create(&store, 5, n_col) == TB_STATUS_ok);
    CHECK(store.n_row == 5 && store.n_col == n_col);
    CHECK(store.n_padded >= n_col);
    CHECK((double)store.n_padded <= 1.03 * (double)n_col);
    CHECK(store.n_padded == n_col || store.n_padded % 8 == 0);
    CHECK((uintptr_t)store.v_data % 64 == 0);
    CHECK(store.type->memory(&store) == 5 * store.n_padded * sizeof(double));
    for (size_t k = 0; k < 5 * store.n_padded; ++k) {
      CHECK(store.v_data[k] == 0);
    }
    store.type->destroy(&store);
  }
  struct tb_store store;
  CHECK(dense_create(&store, 1, 55) == TB_STATUS_ok);
  CHECK(store.n_padded == 56);
  store.type->destroy(&store);
}

static void dense_overflow(struct check* p_check) {
  struct tb_store store;
  CHECK(dense_create(&store, SIZE_MAX / 8, 3) == TB_STATUS_memory);
  CHECK(store.v_data == NULL);
  CHECK(dense_create(&store, 2, SIZE_MAX / 8) == TB_STATUS_memory);
  CHECK(dense_create(&store, (size_t)1 << 32, (size_t)1 << 32) ==
        TB_STATUS_memory);
  /* sizes that wrap to something small */
  CHECK(dense_create(&store, SIZE_MAX / 8 + 2, 1) == TB_STATUS_memory);
  CHECK(dense_create(&store, SIZE_MAX / 80 + 2, 10) == TB_STATUS_memory);
  tb_store_destroy(&store); /* nothing there: no harm */
  CHECK(tb_big_alloc(SIZE_MAX) == NULL);
  CHECK(tb_big_alloc(SIZE_MAX - 64) == NULL);
}

static void big_memory(struct check* p_check) {
  const size_t v_size[] = {0, 1, 1000, (size_t)5 << 20};
  for (size_t k = 0; k < 4; ++k) {
    unsigned char* v = tb_big_alloc(v_size[k]);
    CHECK(v != NULL && (uintptr_t)v % 64 == 0);
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
    {"stores: dot, add, add_square by definition", algebra},
    {"stores: a row's product does not depend on its place", same_bits},
    {"stores: rows are kept, gathered, copied, rewritten", keeps_rows},
    {"shelf: the rows of a matrix, and ones", shelf_makes_rows},
    {"dense: layout, padding, zeros", dense_layout},
    {"dense: sizes that overflow are refused", dense_overflow},
    {"big memory is aligned and zero", big_memory},
    {NULL, NULL}};
