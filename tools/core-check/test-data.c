#include "check.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/design.h"
#include "data/file.h"
#include "data/place.h"
#include "data/shelf.h"
#include "data/store.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_ROW 37

static enum tb_status
dense_create(struct tb_store* p_store, size_t n_row, size_t n_col) {
  return tb_store_create(p_store, tb_store_find("dense"), n_row, n_col);
}

/* A store, and the rows it was given, row-major and n_padded apart. */
struct kept {
  struct tb_store store;
  double* v_x;
};

/* Normal entries, rounded to what every type can keep. */
static void fill_norm(struct tb_rng* p_rng, double* v, size_t n) {
  tb_rng_fill_norm(p_rng, v, n);
  for (size_t j = 0; j < n; ++j) {
    v[j] = (double)(float)v[j];
  }
}

/* Normal entries; the padding stays zero. Not appended yet. */
static void kept_create(struct check* p_check,
                        struct kept* p,
                        const struct tb_store_type* p_type,
                        size_t n_row,
                        size_t n_col,
                        struct tb_rng* p_rng) {
  CHECK(tb_store_create(&p->store, p_type, n_row, n_col) == TB_STATUS_ok);
  CHECK(p->store.type == p_type && p->store.n_filled == 0);
  CHECK(p->store.n_row == n_row && p->store.n_col == n_col);
  CHECK(p->store.n_padded >= n_col);
  p->v_x = check_alloc(n_row * p->store.n_padded, sizeof(double));
  for (size_t i = 0; i < n_row; ++i) {
    fill_norm(p_rng, p->v_x + i * p->store.n_padded, n_col);
  }
}

static void kept_append(struct check* p_check, struct kept* p) {
  CHECK(tb_store_append(&p->store, p->store.n_row, p->v_x) == TB_STATUS_ok);
}

static void kept_destroy(struct check* p_check, struct kept* p) {
  tb_store_destroy(&p->store);
  CHECK(p->store.v_data == NULL && p->store.p_self == NULL);
  free(p->v_x);
}

static double entry(const struct kept* p, size_t row, size_t col) {
  return p->v_x[row * p->store.n_padded + col];
}

/* Every row comes out as it went in, bit for bit, in any number and order, also
 * more than once, and by block() with zeros in the padding. */
static void rows_agree(struct check* p_check,
                       const struct tb_store* p_store,
                       const double* v_x,
                       struct tb_rng* p_rng) {
  enum { SPARE = 3, MARK = 12345 };
  const size_t n_row = p_store->n_row, n_col = p_store->n_col;
  const size_t n_padded = p_store->n_padded, n_lead = n_col + SPARE;
  size_t* v_index = check_alloc(2 * n_row, sizeof(size_t));
  double* v_out = check_alloc(2 * n_row * n_lead, sizeof(double));
  double* v_scratch = check_alloc(n_row * n_padded, sizeof(double));
  for (size_t k = 0; k < 2 * n_row; ++k) {
    v_index[k] = tb_rng_index(p_rng, n_row);
  }
  for (size_t n = 1; n <= 2 * n_row; ++n) {
    const bool is_range = n <= n_row && n % 2 == 0;
    /* the last range, and the last row by its number */
    const size_t start = is_range ? n_row - n : 0;
    v_index[n - 1] = n % 3 == 0 ? n_row - 1 : v_index[n - 1];
    for (size_t k = 0; k < n * n_lead; ++k) {
      v_out[k] = MARK;
    }
    p_store->type
        ->gather(p_store, is_range ? NULL : v_index, start, n, n_lead, v_out);
    for (size_t k = 0; k < n; ++k) {
      const size_t row = is_range ? start + k : v_index[k];
      CHECK(memcmp(v_out + k * n_lead,
                   v_x + row * n_padded,
                   n_col * sizeof(double)) == 0);
      for (size_t j = n_col; j < n_lead; ++j) {
        CHECK(v_out[k * n_lead + j] == MARK); /* of the caller */
      }
    }
  }
  for (size_t start = 0; start < n_row; ++start) {
    for (size_t n = 1; n <= n_row - start; n += n < 3 ? 1 : 7) {
      for (size_t k = 0; k < n * n_padded; ++k) {
        v_scratch[k] = MARK;
      }
      const double* v = p_store->type->block(p_store, start, n, v_scratch);
      CHECK(memcmp(v, v_x + start * n_padded, n * n_padded * sizeof(double)) ==
            0);
    }
  }
  free(v_index);
  free(v_out);
  free(v_scratch);
}

/* dot, add and add_square of one block against the definitions. */
static void block_agrees(struct check* p_check,
                         const struct kept* p,
                         const struct tb_rows* p_rows,
                         struct tb_rng* p_rng) {
  const struct tb_store* p_store = &p->store;
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

  for (size_t k = 0; k <= n; ++k) {
    v_out[k] = 12345; /* set, not added to; nothing past the rows asked for */
  }
  p_store->type->dot(p_store, p_rows, v, v_out);
  CHECK(v_out[n] == 12345);
  /* add may read v_u[0..n-1] alone: the others are poisoned */
  for (size_t k = n; k < TB_STORE_BLOCK; ++k) {
    v_u[k] = NAN;
  }
  p_store->type->add(p_store, p_rows, v_u, v_sum);
  p_store->type->add_square(p_store, p_rows, v_u, v_both, v_square);

  for (size_t k = 0; k < n; ++k) {
    const size_t row = tb_rows_at(p_rows, k);
    double sum = 0, size = 0;
    for (size_t j = 0; j < n_col; ++j) {
      sum += entry(p, row, j) * v[j];
      size += fabs(entry(p, row, j) * v[j]);
    }
    CHECK_CLOSE(v_out[k], sum, DBL_EPSILON * (double)n_col * size);
  }
  for (size_t j = 0; j < n_padded; ++j) {
    double sum = v_start[j], square = v_start[j], size = fabs(v_start[j]);
    for (size_t k = 0; k < n; ++k) {
      const double term = v_u[k] * entry(p, tb_rows_at(p_rows, k), j);
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

/* rows drawn, in any order and more than once, and ranges with the last one */
static void one_algebra(struct check* p_check,
                        const struct tb_store_type* p_type,
                        size_t n_row,
                        size_t n_col,
                        struct tb_rng* p_rng) {
  struct kept kept;
  kept_create(p_check, &kept, p_type, n_row, n_col, p_rng);
  kept_append(p_check, &kept);
  for (size_t n = 1; n <= TB_STORE_BLOCK; ++n) {
    for (size_t n_next = 0; n_next <= TB_STORE_BLOCK; n_next += 4) {
      size_t v_index[2 * TB_STORE_BLOCK];
      for (size_t k = 0; k < 2 * TB_STORE_BLOCK; ++k) {
        v_index[k] = tb_rng_index(p_rng, n_row);
      }
      v_index[n_next % n] = n_row - 1;
      struct tb_rows rows = {.n_row = n,
                             .v_index = v_index,
                             .n_next = n_next,
                             .v_next = v_index + n};
      block_agrees(p_check, &kept, &rows, p_rng);
      if (n > n_row) {
        continue;
      }
      rows.v_index = NULL;
      rows.start = tb_rng_index(p_rng, n_row - n + 1);
      block_agrees(p_check, &kept, &rows, p_rng);
      rows.start = n_row - n;
      block_agrees(p_check, &kept, &rows, p_rng);
    }
  }
  kept_destroy(p_check, &kept);
}

static void algebra(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 11, 0, TB_STREAM_batch);
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    const struct tb_store_type* p_type = tb_store_registry[t];
    for (size_t n_col = 1; n_col <= 70; ++n_col) {
      one_algebra(p_check, p_type, N_ROW, n_col, &rng);
    }
    /* wide rows, where prefetching changes */
    for (size_t n_col = 125; n_col <= 140; n_col += 5) {
      one_algebra(p_check, p_type, N_ROW, n_col, &rng);
    }
    for (size_t n_row = 1; n_row <= TB_STORE_BLOCK + 1; ++n_row) {
      one_algebra(p_check, p_type, n_row, 1, &rng);
      one_algebra(p_check, p_type, n_row, 13, &rng);
    }
  }
}

/* Control variates cancel at their reference only if a row and a vector give
 * the same bits wherever the row stands. */
static void one_same_bits(struct check* p_check,
                          const struct tb_store_type* p_type) {
  struct tb_rng rng;
  tb_rng_init(&rng, 12, 0, TB_STREAM_batch);
  for (size_t n_col = 1; n_col <= 70; ++n_col) {
    struct kept kept;
    const struct tb_store* p_store = &kept.store;
    kept_create(p_check, &kept, p_type, N_ROW, n_col, &rng);
    kept_append(p_check, &kept);
    double* v = check_alloc(p_store->n_padded, sizeof(double));
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
      p_type->dot(p_store, &range, v, v_range);
      p_type->dot(p_store, &list, v, v_list);
      p_type->dot(p_store, &one, v, &alone);
      for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
        CHECK(v_range[k] == v_list[TB_STORE_BLOCK - 1 - k]);
      }
      CHECK(alone == v_list[0]);
    }
    free(v);
    kept_destroy(p_check, &kept);
  }
}

static void same_bits(struct check* p_check) {
  for (size_t k = 0; tb_store_registry[k] != NULL; ++k) {
    one_same_bits(p_check, tb_store_registry[k]);
  }
}

/* Blocks in, rows out: blocks of n rows, or of 1, 2, 3, ... where n is 0. What
 * there is no room for is refused, and changes nothing. */
static void one_appends(struct check* p_check,
                        struct kept* p,
                        size_t n,
                        struct tb_rng* p_rng) {
  struct tb_store* p_store = &p->store;
  for (size_t k = 1; p_store->n_filled < p_store->n_row; ++k) {
    const size_t start = p_store->n_filled, left = p_store->n_row - start;
    const size_t n_block = n == 0 ? k : n;
    CHECK(tb_store_append(p_store, left + 1, p->v_x) == TB_STATUS_argument);
    CHECK(tb_store_append(p_store, SIZE_MAX, p->v_x) == TB_STATUS_argument);
    CHECK(p_store->n_filled == start);
    CHECK(tb_store_append(p_store,
                          n_block < left ? n_block : left,
                          p->v_x + start * p_store->n_padded) == TB_STATUS_ok);
  }
  CHECK(tb_store_append(p_store, 1, p->v_x) == TB_STATUS_argument);
  rows_agree(p_check, p_store, p->v_x, p_rng);
}

/* The shape of a store is that of its type: blocks of any size, 0 standing for
 * sizes that grow. */
static void appends(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 13, 0, TB_STREAM_batch);
  const size_t v_col[] = {1, 5, 31, 32};
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    CHECK(tb_store_find(tb_store_registry[t]->name) == tb_store_registry[t]);
    for (size_t k = 0; k < 4; ++k) {
      for (size_t n_row = 1; n_row <= N_ROW; n_row += N_ROW - 1) {
        for (size_t n = 0; n <= n_row; n += n < 9 ? 1 : 14) {
          struct kept kept;
          kept_create(p_check,
                      &kept,
                      tb_store_registry[t],
                      n_row,
                      v_col[k],
                      &rng);
          one_appends(p_check, &kept, n, &rng);
          CHECK(kept.store.type->memory(&kept.store) > 0);
          kept_destroy(p_check, &kept);
        }
      }
    }
  }
  CHECK(tb_store_find("no such store") == NULL);
}

/* Rows start..start+n-1 anew, and no others; none of a store that must stay. */
static void one_writes(struct check* p_check,
                       struct kept* p,
                       size_t start,
                       size_t n,
                       struct tb_rng* p_rng) {
  struct tb_store* p_store = &p->store;
  const size_t n_padded = p_store->n_padded;
  const bool is_writable = p_store->is_writable;
  double* v_new = check_alloc(n * n_padded, sizeof(double));
  for (size_t k = 0; k < n; ++k) {
    fill_norm(p_rng, v_new + k * n_padded, p_store->n_col);
  }
  p_store->is_writable = false;
  CHECK(tb_store_write(p_store, start, n, v_new) == TB_STATUS_unsupported);
  rows_agree(p_check, p_store, p->v_x, p_rng);
  p_store->is_writable = is_writable;
  if (is_writable) {
    const size_t n_beyond = p_store->n_row - start + 1;
    CHECK(tb_store_write(p_store, start, n_beyond, v_new) ==
          TB_STATUS_argument);
    CHECK(tb_store_write(p_store, SIZE_MAX, 2, v_new) == TB_STATUS_argument);
    CHECK(tb_store_write(p_store, start, n, v_new) == TB_STATUS_ok);
    memcpy(p->v_x + start * n_padded, v_new, n * n_padded * sizeof(double));
    rows_agree(p_check, p_store, p->v_x, p_rng);
  }
  free(v_new);
}

/* A copy has rows of its own, and can be written where its type can. */
static void one_keeps_rows(struct check* p_check,
                           const struct tb_store_type* p_type,
                           size_t n_row,
                           size_t n_col,
                           struct tb_rng* p_rng) {
  struct kept kept, copy;
  kept_create(p_check, &kept, p_type, n_row, n_col, p_rng);
  CHECK(kept.store.is_writable == (p_type->write != NULL));
  CHECK(!kept.store.is_writable ||
        tb_store_write(&kept.store, 0, 1, kept.v_x) == TB_STATUS_argument);
  kept_append(p_check, &kept);
  const size_t n_number = n_row * kept.store.n_padded;
  copy.v_x = check_alloc(n_number, sizeof(double));
  memcpy(copy.v_x, kept.v_x, n_number * sizeof(double));
  kept.store.is_writable = false;
  CHECK(tb_store_copy(&kept.store, &copy.store) == TB_STATUS_ok);
  CHECK(copy.store.type == p_type && copy.store.n_filled == n_row);
  CHECK(copy.store.is_writable == (p_type->write != NULL));
  kept.store.is_writable = p_type->write != NULL;
  one_writes(p_check, &kept, 0, 1, p_rng);
  one_writes(p_check, &kept, n_row - 1, 1, p_rng);
  one_writes(p_check, &kept, n_row / 3, n_row - n_row / 3, p_rng);
  one_writes(p_check, &kept, 0, n_row, p_rng);
  rows_agree(p_check, &copy.store, copy.v_x, p_rng);
  kept_destroy(p_check, &kept);
  rows_agree(p_check, &copy.store, copy.v_x, p_rng);
  kept_destroy(p_check, &copy);
}

static void keeps_rows(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 14, 0, TB_STREAM_batch);
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    const size_t v_col[] = {1, 31, 32};
    for (size_t k = 0; k < 3; ++k) {
      one_keeps_rows(p_check, tb_store_registry[t], 1, v_col[k], &rng);
      one_keeps_rows(p_check, tb_store_registry[t], N_ROW, v_col[k], &rng);
    }
    /* a copy is made in more than one block */
    one_keeps_rows(p_check, tb_store_registry[t], 259, 2, &rng);
  }
}

/* Sizes that no machine has, also those that wrap to something small. */
static void overflow(struct check* p_check) {
  const size_t v_size[][2] = {{SIZE_MAX / 8, 3},
                              {SIZE_MAX / 8 + 2, 1},
                              {SIZE_MAX / 80 + 2, 10}};
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (size_t k = 0; k < 3; ++k) {
      struct tb_store store;
      CHECK(tb_store_create(&store,
                            tb_store_registry[t],
                            v_size[k][0],
                            v_size[k][1]) == TB_STATUS_memory);
      tb_store_destroy(&store); /* nothing there: no harm */
    }
  }
}

/* What a model takes: the matrix by rows, ones after it. */
static void shelf_makes_rows(struct check* p_check) {
  enum { N = 600, N_COL = 3, N_ONES = 2 };
  double v_x[N * N_COL], v_out[N_COL + N_ONES];
  const struct tb_param x = {"x", v_x, NULL, N * N_COL, N};
  for (size_t k = 0; k < N * N_COL; ++k) {
    v_x[k] = (double)k;
  }
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (int is_read_only = 0; is_read_only < 2; ++is_read_only) {
      const struct tb_shelf shelf = {.type = tb_store_registry[t],
                                     .is_read_only = is_read_only};
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

/* Rows that are in a store already change hands as they are. */
static void shelf_hands_over(struct check* p_check) {
  enum { N = 3, N_COL = 2 };
  const double v_x[N * N_COL] = {1, 2, 3, 4, 5, 6};
  const struct tb_param x = {"x", v_x, NULL, N * N_COL, N};
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (int is_read_only = 0; is_read_only < 2; ++is_read_only) {
      const struct tb_store_type* p_type = tb_store_registry[t];
      struct tb_store given, store;
      struct tb_shelf shelf = {.type = p_type};
      size_t n_row, n_col;
      CHECK(!tb_shelf_shape(&shelf, NULL, &n_row, &n_col));
      CHECK(tb_shelf_take(&shelf, NULL, 0, &store) == TB_STATUS_unsupported);
      CHECK(tb_shelf_take(&shelf, &x, 0, &given) == TB_STATUS_ok);
      shelf.p_given = &given;
      shelf.is_read_only = is_read_only;
      CHECK(tb_shelf_shape(&shelf, NULL, &n_row, &n_col));
      CHECK(n_row == N && n_col == N_COL);
      CHECK(tb_shelf_take(&shelf, NULL, 1, &store) == TB_STATUS_unsupported);
      CHECK(tb_shelf_take(&shelf, NULL, 0, &store) == TB_STATUS_ok);
      CHECK(given.type == NULL && store.type == p_type);
      CHECK(store.hash == given.hash && store.n_filled == N);
      CHECK(store.is_writable == (!is_read_only && p_type->write != NULL));
      CHECK(tb_shelf_take(&shelf, NULL, 0, &store) == TB_STATUS_unsupported);
      tb_store_destroy(&store);
    }
  }
}

/* The same rows have the same hash, whatever keeps them and in whatever blocks
 * they come; other rows, or the same in another order, have another. */
static void hashes_rows(struct check* p_check) {
  enum { N = 300, N_COL = 3 };
  double v_x[N * N_COL], v_turned[N * N_COL];
  const struct tb_param x = {"x", v_x, NULL, N * N_COL, N};
  for (size_t k = 0; k < N * N_COL; ++k) {
    v_x[k] = k % 7 == 0 ? 0 : (double)k;
    v_turned[k % N * N_COL + k / N] = v_x[k];
  }
  const uint64_t hash = tb_rows_hash(0, v_turned, 0, N, N_COL, N_COL);
  const uint64_t end =
      tb_rows_hash(0, v_turned + 10 * N_COL, 10, N - 10, N_COL, N_COL);
  CHECK(tb_rows_hash(end, v_turned, 0, 10, N_COL, N_COL) == hash);
  CHECK(tb_rows_hash(0, v_turned, 1, N, N_COL, N_COL) != hash);
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    const struct tb_shelf shelf = {.type = tb_store_registry[t]};
    struct tb_store store, copy;
    CHECK(tb_shelf_take(&shelf, &x, 0, &store) == TB_STATUS_ok);
    CHECK(store.hash == hash);
    CHECK(tb_store_copy(&store, &copy) == TB_STATUS_ok && copy.hash == hash);
    tb_store_destroy(&copy);
    tb_store_destroy(&store);
    v_x[N + 1] += 1;
    CHECK(tb_shelf_take(&shelf, &x, 0, &store) == TB_STATUS_ok);
    CHECK(store.hash != hash);
    tb_store_destroy(&store);
    v_x[N + 1] -= 1;
  }
}

/* What is appended or written is rounded to the nearest number a type can keep,
 * and that is the number from then on. */
static void rounds(struct check* p_check) {
  const double v_x[2] = {1.0 / 3, 1e9 + 1}, v_new[2] = {-0.1, 7};
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    const struct tb_store_type* p_type = tb_store_registry[t];
    struct tb_store store;
    double v_out[2];
    CHECK(tb_store_create(&store, p_type, 1, 2) == TB_STATUS_ok);
    CHECK(tb_store_append(&store, 1, v_x) == TB_STATUS_ok);
    p_type->gather(&store, NULL, 0, 1, 2, v_out);
    CHECK_CLOSE(v_out[0], v_x[0], p_type->rounding * v_x[0]);
    CHECK_CLOSE(v_out[1], v_x[1], p_type->rounding * v_x[1]);
    CHECK((v_out[0] != v_x[0]) == (p_type->rounding > 0));
    if (store.is_writable) {
      CHECK(tb_store_write(&store, 0, 1, v_new) == TB_STATUS_ok);
      p_type->gather(&store, NULL, 0, 1, 2, v_out);
      CHECK_CLOSE(v_out[0], v_new[0], p_type->rounding * -v_new[0]);
      CHECK(v_out[1] == 7);
    }
    tb_store_destroy(&store);
  }
}

/* A file of n_row rows, reserved or not, in appends of n rows. */
static void file_write(struct check* p_check,
                       const char* path,
                       bool is_float,
                       size_t n_row,
                       size_t n_col,
                       size_t n,
                       const double* v_x) {
  struct tb_writer writer;
  double* v_part = check_alloc(n * n_col, sizeof(double));
  CHECK(tb_writer_open(&writer,
                       path,
                       is_float,
                       n % 2 == 0 ? 0 : n_row,
                       n_col,
                       "a\0b",
                       4) == TB_FILE_ok);
  for (size_t start = 0; start < n_row; start += n) {
    const size_t n_now = n < n_row - start ? n : n_row - start;
    for (size_t k = 0; k < n_now * n_col; ++k) {
      v_part[k] = v_x[k / n_now * n_row + start + k % n_now];
    }
    CHECK(tb_writer_append(&writer, n_now, v_part) == TB_FILE_ok);
  }
  CHECK(tb_writer_finish(&writer) == TB_FILE_ok);
  tb_writer_close(&writer);
  free(v_part);
}

/* Rows of a file are those of the matrix, with its hash, in whatever appends
 * they came; the last block, one row and one column among them. */
static void file_keeps_rows(struct check* p_check, const char* path) {
  const size_t v_shape[][2] = {{1, 1}, {1, 13}, {600, 1}, {37, 31}, {261, 8}};
  struct tb_rng rng;
  tb_rng_init(&rng, 15, 0, TB_STREAM_batch);
  for (size_t k = 0; k < 20; ++k) {
    const size_t n_row = v_shape[k / 4][0], n_col = v_shape[k / 4][1];
    const bool is_float = k % 2 == 1;
    double* v_x = check_alloc(n_row * n_col, sizeof(double));
    const struct tb_param x = {"x", v_x, NULL, n_row * n_col, n_row};
    const struct tb_shelf shelf = {
        .type = tb_store_find(is_float ? "float" : "dense")};
    struct tb_store dense, mapped;
    tb_rng_fill_norm(&rng, v_x, n_row * n_col);
    file_write(p_check, path, is_float, n_row, n_col, k % 4 < 2 ? 7 : 300, v_x);
    CHECK(tb_shelf_take(&shelf, &x, 0, &dense) == TB_STATUS_ok);
    CHECK(tb_file_map(path, &mapped) == TB_FILE_ok);
    CHECK(mapped.n_row == n_row && mapped.n_col == n_col);
    CHECK(mapped.n_padded == dense.n_padded && mapped.hash == dense.hash);
    CHECK(!mapped.is_writable && mapped.n_filled == n_row);
    double* v_rows = check_alloc(n_row * mapped.n_padded, sizeof(double));
    double* v_scratch = check_alloc(n_row * mapped.n_padded, sizeof(double));
    memcpy(v_rows,
           dense.type->block(&dense, 0, n_row, v_scratch),
           n_row * mapped.n_padded * sizeof(double));
    rows_agree(p_check, &mapped, v_rows, &rng);
    CHECK(tb_store_write(&mapped, 0, 1, v_rows) == TB_STATUS_unsupported);
    tb_store_destroy(&mapped);
    tb_store_destroy(&dense);
    free(v_rows);
    free(v_scratch);
    free(v_x);
  }
}

/* Every byte of the head, and every length that is too short, is told. */
static void file_is_checked(struct check* p_check, const char* path) {
  enum { N_MOST = 65536 + 6 * 2 * 8 };
  const double v_x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  unsigned char* v_byte = check_alloc(N_MOST, 1);
  struct tb_file file;
  file_write(p_check, path, false, 6, 2, 7, v_x);
  CHECK(tb_file_read(path, &file) == TB_FILE_ok);
  CHECK(file.n_row == 6 && file.n_col == 2 && file.n_name == 4);
  CHECK(memcmp(file.v_name, "a\0b", 4) == 0);
  CHECK_CLOSE(file.v_column[0], 3.5, 1e-14);
  CHECK_CLOSE(file.v_column[3], sqrt(3.5), 1e-14);
  const size_t n_head = 80 + 4 * sizeof(double) + 4;
  tb_file_destroy(&file);
  FILE* p_stream = fopen(path, "rb");
  const size_t n_file = fread(v_byte, 1, N_MOST, p_stream);
  fclose(p_stream);
  CHECK(n_file == N_MOST);
  for (size_t k = 0; k < n_head; ++k) {
    v_byte[k] ^= 1;
    p_stream = fopen(path, "wb");
    CHECK(fwrite(v_byte, 1, n_file, p_stream) == n_file);
    fclose(p_stream);
    const enum tb_file_fault fault = tb_file_read(path, &file);
    CHECK(fault == (k < 8    ? TB_FILE_foreign
                    : k < 12 ? TB_FILE_byte_order
                    : k < 16 ? TB_FILE_version
                             : TB_FILE_damaged) ||
          fault == TB_FILE_truncated);
    CHECK(fault != TB_FILE_ok && file.v_column == NULL && file.v_name == NULL);
    v_byte[k] ^= 1;
  }
  const size_t v_short[] = {0, 7, 8, 79, 80, 100, 65536, N_MOST - 1};
  for (size_t k = 0; k < 8; ++k) {
    p_stream = fopen(path, "wb");
    CHECK(fwrite(v_byte, 1, v_short[k], p_stream) == v_short[k]);
    fclose(p_stream);
    struct tb_store store;
    CHECK(tb_file_map(path, &store) ==
          (v_short[k] < 8 ? TB_FILE_foreign : TB_FILE_truncated));
    tb_store_destroy(&store); /* nothing there: no harm */
  }
  free(v_byte);
}

/* Every byte of the rows, what fills them up among it, is in the hash. */
static void rows_are_checked(struct check* p_check, const char* path) {
  enum { N_FEW = 9, N_WIDE = 63, N_FILE = 65536 + N_FEW * 64 * 8 };
  double* v_x = check_alloc(N_FEW * N_WIDE, sizeof(double));
  unsigned char* v_byte = check_alloc(N_FILE, 1);
  double v_scratch[N_FEW * 64];
  struct tb_rng rng;
  tb_rng_init(&rng, 16, 0, TB_STREAM_batch);
  tb_rng_fill_norm(&rng, v_x, N_FEW * N_WIDE);
  for (int is_float = 0; is_float < 2; ++is_float) {
    file_write(p_check, path, is_float == 1, N_FEW, N_WIDE, 7, v_x);
    FILE* p_stream = fopen(path, "rb");
    const size_t n_file = fread(v_byte, 1, N_FILE, p_stream);
    fclose(p_stream);
    CHECK(n_file == 65536 + N_FEW * 64 * (is_float == 1 ? 4 : 8));
    for (size_t k = 65535; k < n_file; k += k < 65536 ? 1 : 5) {
      struct tb_store store;
      v_byte[k] ^= 1;
      p_stream = fopen(path, "wb");
      CHECK(fwrite(v_byte, 1, n_file, p_stream) == n_file);
      fclose(p_stream);
      v_byte[k] ^= 1;
      CHECK(tb_file_map(path, &store) == TB_FILE_ok);
      uint64_t hash = 0;
      const bool is_whole = tb_file_hash(&store, 0, 4, v_scratch, &hash) &&
                            tb_file_hash(&store, 4, 5, v_scratch, &hash);
      /* the byte before the rows is nobody's */
      CHECK((is_whole && hash == store.hash) == (k == 65535));
      tb_store_destroy(&store);
    }
  }
  free(v_x);
  free(v_byte);
}

static bool is_there(const char* path) {
  FILE* p_stream = fopen(path, "rb");
  if (p_stream != NULL) {
    fclose(p_stream);
  }
  return p_stream != NULL;
}

/* A writer's file is its own until it is closed, and then only until it has a
 * head; no file takes the place of another. */
static void files_have_their_place(struct check* p_check,
                                   const char* path,
                                   const char* to) {
  const double v_x[4] = {1, 2, 3, 4};
  struct tb_writer writer;
  CHECK(tb_writer_open(&writer, path, false, 0, 2, NULL, 0) == TB_FILE_ok);
  CHECK(tb_writer_append(&writer, 2, v_x) == TB_FILE_ok);
  CHECK(!tb_file_sweep(path) && is_there(path));
  tb_writer_close(&writer); /* as if it had been killed */
  CHECK(tb_file_sweep(path) && !is_there(path));
  CHECK(!tb_file_sweep(path));
  CHECK(tb_writer_open(&writer, path, false, 0, 2, NULL, 0) == TB_FILE_ok);
  CHECK(tb_writer_append(&writer, 2, v_x) == TB_FILE_ok);
  CHECK(tb_writer_finish(&writer) == TB_FILE_ok);
  CHECK(!tb_file_sweep(path));
  CHECK(tb_file_place(path, to) == TB_FILE_ok);
  CHECK(is_there(to) && !is_there(path));
  tb_writer_close(&writer);
  file_write(p_check, path, false, 2, 2, 7, v_x);
  CHECK(!tb_file_sweep(path));
  CHECK(tb_file_place(path, to) == TB_FILE_exists && is_there(path));
  CHECK(tb_file_place(path, "no/folder") == TB_FILE_unwritable);
  CHECK(is_there(path));
  CHECK(remove(path) == 0 && remove(to) == 0);
  CHECK(tb_file_place(path, to) == TB_FILE_unwritable && !is_there(to));
}

/* The builds' tests may run beside each other: files of one process. */
static void name_file(const char* what, char v_path[64]) {
  snprintf(v_path, 64, "build/%s-%ld.tall", what, (long)getpid());
}

static void files(struct check* p_check) {
  char path[64], writing[64], placed[64];
  name_file("rows", path);
  name_file("writing", writing);
  name_file("placed", placed);
  file_keeps_rows(p_check, path);
  file_is_checked(p_check, path);
  rows_are_checked(p_check, path);
  files_have_their_place(p_check, writing, placed);
  CHECK(remove(path) == 0);
  struct tb_store store;
  struct tb_writer writer;
  CHECK(tb_file_map(path, &store) == TB_FILE_unreadable);
  CHECK(tb_writer_open(&writer, "no/folder", false, 1, 1, NULL, 0) ==
        TB_FILE_unwritable);
  CHECK(tb_writer_open(&writer, path, false, SIZE_MAX / 32, 1, NULL, 0) ==
        TB_FILE_full);
  CHECK(remove(path) == 0);
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
    store.type->destroy(&store);
  }
  struct tb_store store;
  CHECK(dense_create(&store, 1, 55) == TB_STATUS_ok);
  CHECK(store.n_padded == 56);
  store.type->destroy(&store);
}

static void dense_overflow(struct check* p_check) {
  struct tb_store store;
  CHECK(dense_create(&store, 2, SIZE_MAX / 8) == TB_STATUS_memory);
  CHECK(store.v_data == NULL);
  CHECK(dense_create(&store, (size_t)1 << 32, (size_t)1 << 32) ==
        TB_STATUS_memory);
  tb_store_destroy(&store);
  CHECK(tb_big_alloc(SIZE_MAX) == NULL);
  CHECK(tb_big_alloc(SIZE_MAX - 64) == NULL);
}

/* n_row x n_col numbers by rows, of which about a share is not zero; row 2 and
 * the last one are empty, and so is column 1. */
static void fill_sparse(size_t n_row,
                        size_t n_col,
                        double share,
                        struct tb_rng* p_rng,
                        double* v_x) {
  for (size_t i = 0; i < n_row; ++i) {
    const bool is_empty = i == 2 || (i + 1 == n_row && n_row > 1);
    for (size_t j = 0; j < n_col; ++j) {
      const bool is_there = tb_rng_unif(p_rng) < share && j != 1 && !is_empty;
      v_x[i * n_col + j] = is_there ? tb_rng_norm(p_rng) : 0;
    }
  }
}

/* The same by columns, with some zeros kept. */
struct columns {
  struct tb_columns of;
  int* v_start;
  int* v_row;
  double* v_value;
};

static struct columns
columns_of(const double* v_x, size_t n_row, size_t n_col) {
  struct columns out = {.v_start = check_alloc(n_col + 1, sizeof(int)),
                        .v_row = check_alloc(n_row * n_col, sizeof(int)),
                        .v_value = check_alloc(n_row * n_col, sizeof(double))};
  int n = 0;
  for (size_t j = 0; j < n_col; ++j) {
    for (size_t i = 0; i < n_row; ++i) {
      const double x = v_x[i * n_col + j];
      if (x != 0 || (i + j) % 11 == 0) {
        out.v_row[n] = (int)i;
        out.v_value[n++] = x;
      }
    }
    out.v_start[j + 1] = n;
  }
  out.of = (struct tb_columns){.n_row = n_row,
                               .n_col = n_col,
                               .v_start = out.v_start,
                               .v_row = out.v_row,
                               .v_value = out.v_value};
  return out;
}

static void columns_free(struct columns* p) {
  free(p->v_start);
  free(p->v_row);
  free(p->v_value);
}

/* square_norms, forms and add_products of one block against the definitions */
static void products_agree(struct check* p_check,
                           const struct tb_store* p_store,
                           const double* v_x,
                           const struct tb_rows* p_rows,
                           const double* v_a) {
  const size_t n = p_store->n_col;
  double v_norm[TB_STORE_BLOCK + 1], v_form[TB_STORE_BLOCK + 1];
  double v_w[TB_STORE_BLOCK];
  double* v_sum = check_alloc(n * n, sizeof(double));
  v_norm[p_rows->n_row] = v_form[p_rows->n_row] = 12345;
  for (size_t k = 0; k < TB_STORE_BLOCK; ++k) {
    v_w[k] = k < p_rows->n_row ? 0.5 + (double)k : NAN;
  }
  p_store->type->square_norms(p_store, p_rows, v_norm);
  p_store->type->forms(p_store, p_rows, v_a, n, v_form);
  p_store->type->add_products(p_store, p_rows, v_w, v_sum, n);
  CHECK(v_norm[p_rows->n_row] == 12345 && v_form[p_rows->n_row] == 12345);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double* v = v_x + tb_rows_at(p_rows, k) * n;
    double norm = 0, form = 0;
    for (size_t j = 0; j < n; ++j) {
      norm += v[j] * v[j];
      for (size_t i = 0; i < n; ++i) {
        form += v[i] * v[j] * v_a[i <= j ? j * n + i : i * n + j];
      }
    }
    CHECK_CLOSE(v_norm[k], norm, 1e-14 * (1 + norm));
    CHECK_CLOSE(v_form[k], form, 1e-12 * (1 + norm * (double)n));
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t k = 0; i <= j && k < p_rows->n_row; ++k) {
        const double* v = v_x + tb_rows_at(p_rows, k) * n;
        sum += v_w[k] * v[i] * v[j];
      }
      CHECK_CLOSE(v_sum[j * n + i], sum, 1e-12 * (1 + fabs(sum)));
    }
  }
  free(v_sum);
}

static void one_turns(struct check* p_check,
                      const struct tb_store_type* p_type,
                      size_t n_row,
                      size_t n_col,
                      double share,
                      struct tb_rng* p_rng) {
  double* v_x = check_alloc(n_row * n_col, sizeof(double));
  double* v_a = check_alloc(n_col * n_col, sizeof(double));
  fill_sparse(n_row, n_col, share, p_rng, v_x);
  tb_rng_fill_norm(p_rng, v_a, n_col * n_col);
  struct columns columns = columns_of(v_x, n_row, n_col);
  const struct tb_shelf shelf = {.type = p_type};
  struct tb_store store;
  CHECK(tb_shelf_turn(&shelf, &columns.of, &store) == TB_STATUS_ok);
  CHECK(store.n_filled == n_row && !store.is_writable);
  CHECK(store.type->memory(&store) <=
        (n_row + 1 + 3 * n_row * n_col / 2 + n_row) * sizeof(double));
  rows_agree(p_check, &store, v_x, p_rng);
  CHECK(tb_store_turn(&store, &columns.of) == TB_STATUS_argument);
  CHECK(tb_store_append(&store, 1, v_x) == TB_STATUS_argument);

  struct tb_store alike;
  CHECK(tb_store_create(&alike, p_type, n_row, n_col) == TB_STATUS_ok);
  CHECK(tb_store_append(&alike, n_row, v_x) == TB_STATUS_ok);
  rows_agree(p_check, &alike, v_x, p_rng);
  for (size_t n = 1; n <= TB_STORE_BLOCK && n <= n_row; ++n) {
    size_t v_index[TB_STORE_BLOCK];
    for (size_t k = 0; k < n; ++k) {
      v_index[k] = tb_rng_index(p_rng, n_row);
    }
    v_index[n / 2] = n_row - 1;
    const struct tb_rows drawn = {.n_row = n, .v_index = v_index};
    const struct tb_rows last = {.n_row = n, .start = n_row - n};
    products_agree(p_check, &store, v_x, &drawn, v_a);
    products_agree(p_check, &store, v_x, &last, v_a);
    products_agree(p_check, &alike, v_x, &last, v_a);
  }
  tb_store_destroy(&alike);
  tb_store_destroy(&store);
  columns_free(&columns);
  free(v_x);
  free(v_a);
}

static void sparse_rows(struct check* p_check) {
  struct tb_rng rng;
  tb_rng_init(&rng, 15, 0, TB_STREAM_batch);
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    const struct tb_store_type* p_type = tb_store_registry[t];
    if (p_type->turn == NULL) {
      double v_x[6] = {1, 0, 0, 2, 3, 0};
      struct columns columns = columns_of(v_x, 3, 2);
      const struct tb_shelf shelf = {.type = p_type};
      struct tb_store store;
      CHECK(tb_shelf_turn(&shelf, &columns.of, &store) ==
            TB_STATUS_unsupported);
      tb_store_destroy(&store);
      columns_free(&columns);
      continue;
    }
    for (int s = 0; s <= 4; ++s) {
      const double share = (double)s / 4; /* nothing, ..., everything */
      one_turns(p_check, p_type, 1, 1, share, &rng);
      one_turns(p_check, p_type, 1, 9, share, &rng);
      one_turns(p_check, p_type, 17, 1, share, &rng);
      one_turns(p_check, p_type, 33, 12, share, &rng);
    }
  }
}

/* Three breaks, two bases; levels of one factor; a multiplier: |x| t and x^3 t
 * where the level is the second, t alone where it is the first. */
static void smooth_columns(struct check* p_check) {
  enum { n = 1300 };
  const double v_break[] = {-1, 0, 1};
  /* of x = break + away, before -1, behind -1, 0, 1 */
  const double v_coefficient[4 * 2 * 4] = {1, -1, 0, 0,  -1, 3, -3, 1, 1, -1, 0,
                                           0, -1, 3, -3, 1,  0, 1,  0, 0, 0,  0,
                                           0, 1,  1, 1,  0,  0, 1,  3, 3, 1};
  const int v_basis[] = {1, 2, 0}, v_level[] = {2, 2, 1};
  double v_x[n], v_times[n], v_out[3 * n];
  int v_code[n];
  for (size_t i = 0; i < n; ++i) {
    v_x[i] = -2.5 + 5 * (double)i / n;
    v_times[i] = 1 + (double)(i % 7);
    v_code[i] = 1 + (int)(i % 3 == 0);
  }
  v_x[5] = NAN;
  v_code[n - 1] = TB_NA_INT;
  const struct tb_column v_part[] = {
      {.kind = TB_COLUMN_double, .v_double = v_x, .n_row = n, .n_col = 1},
      {.kind = TB_COLUMN_code,
       .v_int = v_code,
       .n_row = n,
       .n_col = 1,
       .base = 1,
       .n_level = 2},
      {.kind = TB_COLUMN_double, .v_double = v_times, .n_row = n, .n_col = 1}};
  const struct tb_smooth smooth = {.n_column = 3,
                                   .v_basis = v_basis,
                                   .v_level = v_level,
                                   .n_break = 3,
                                   .n_basis = 2,
                                   .v_break = v_break,
                                   .v_coefficient = v_coefficient,
                                   .n_code = 1,
                                   .n_times = 1,
                                   .v_part = v_part};
  const struct tb_column column = {.kind = TB_COLUMN_smooth,
                                   .n_col = 3,
                                   .p_smooth = &smooth};
  const int v_start[] = {0, 1, 2, 3}, v_variable[] = {0, 0, 0};
  const int v_at[] = {0, 1, 2}, v_single[] = {-1, -1, -1};
  const struct tb_program program = {.n_column = 3,
                                     .v_start = v_start,
                                     .v_variable = v_variable,
                                     .v_at = v_at,
                                     .v_single = v_single};
  struct tb_filling filling = {.p_program = &program,
                               .v_column = &column,
                               .n_variable = 1,
                               .n_row = n,
                               .n_size = n,
                               .v_x = v_out};
  tb_design_fill(&filling);
  CHECK(filling.n_filled == n - 2 && filling.n_missing == 2);
  for (size_t k = 0; k < n - 2; ++k) {
    const size_t i = k < 5 ? k : k + 1;
    const double x = v_x[i], t = v_times[i];
    const bool is_second = v_code[i] == 2;
    CHECK_CLOSE(v_out[k], is_second ? fabs(x) * t : 0, 1e-14);
    CHECK_CLOSE(v_out[n + k], is_second ? x * x * x * t : 0, 1e-12);
    CHECK_CLOSE(v_out[2 * n + k], is_second ? 0 : t, 1e-14);
  }
  v_code[7] = 3;
  filling.from = filling.n_filled = 0;
  tb_design_fill(&filling);
  CHECK(filling.is_bad && filling.bad_row == 7 && filling.bad_column == 0);
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
    {"stores: blocks of any size in, rows in any order out", appends},
    {"stores: rows are rewritten, copied, or must stay", keeps_rows},
    {"stores: sizes that overflow are refused", overflow},
    {"shelf: the rows of a matrix, and ones", shelf_makes_rows},
    {"shelf: rows that are in a store already", shelf_hands_over},
    {"stores: numbers are rounded as their type says", rounds},
    {"stores: a hash of the rows, not of how they are kept", hashes_rows},
    {"sparse: rows of columns, and their products", sparse_rows},
    {"mapped: files of rows, and what can be wrong with them", files},
    {"dense: layout, padding", dense_layout},
    {"dense: wide rows that overflow are refused", dense_overflow},
    {"design: columns of a smooth term", smooth_columns},
    {"big memory is aligned and zero", big_memory},
    {NULL, NULL}};
