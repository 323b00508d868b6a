/* Sparse store: of each row only the numbers that are not zero (compressed
 * sparse rows; Saad 2003, Iterative Methods for Sparse Linear Systems, section
 * 3.4), so that all a model asks of a row costs what is in it.
 *
 *   symbol      variable   shape                     owner
 *   where rows  v_start    n_row + 1, in words of    the store
 *   begin                  8 bytes
 *   rows        v_word     v_start[n_row] words      the store
 *   A row of n numbers is n doubles, then their n columns in 32 bits, rising,
 *   filled up to a word: n + ceil(n / 2) words, n = floor(2 words / 3).
 *
 * Numbers and columns of a row lie side by side: a row drawn at random is one
 * stretch of memory to fetch. Where nearly all rows are of one length, as with
 * factors, they are filled up to it with zeros of column 0: where they begin
 * then need not be kept, nor waited for, and loops are of one length, too. Rows
 * stay as they are: in other coordinates they would not be sparse. */
#include "base/clones.h"
#include "base/memory.h"
#include "base/vector.h"
#include "data/store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* doubles in a cache line, the unit rows are prefetched in */
#define LINE 8

struct sparse {
  uint64_t* v_start; /* NULL: rows are even */
  size_t n_each;     /* of even rows: their numbers, zeros among them, */
  size_t n_stride;   /* and words */
  double* v_word;
  size_t n_word; /* room for so many words */
};

struct row {
  size_t n;
  const double* v_value;
  const uint32_t* v_column;
};

static size_t words_of(size_t n) {
  return n + (n + 1) / 2;
}

/* Where row i begins, and its words. */
TB_INLINE const double*
row_words(const struct sparse* p, size_t i, size_t* p_n_word) {
  if (p->v_start == NULL) {
    *p_n_word = p->n_stride;
    return p->v_word + i * p->n_stride;
  }
  *p_n_word = (size_t)(p->v_start[i + 1] - p->v_start[i]);
  return p->v_word + p->v_start[i];
}

TB_INLINE struct row row_at(const struct sparse* p, size_t i) {
  size_t n_word;
  const double* v_value = row_words(p, i, &n_word);
  const size_t n = p->v_start == NULL ? p->n_each : 2 * n_word / 3;
  return (struct row){n, v_value, (const uint32_t*)(const void*)(v_value + n)};
}

/* Lines `first` to `last` of each of the next rows, those that there are. */
TB_INLINE void fetch_next(const struct sparse* p,
                          const struct tb_rows* p_rows,
                          size_t first,
                          size_t last) {
  for (size_t k = 0; p_rows->v_index != NULL && k < p_rows->n_next; ++k) {
    size_t n_word;
    const double* v = row_words(p, p_rows->v_next[k], &n_word);
    for (size_t line = first; line < last && line * LINE < n_word; ++line) {
      TB_PREFETCH(v + line * LINE);
    }
  }
}

/* ---- algebra ---- */

/* Two sums in flight, whatever the row's place: the same bits. */
TB_INLINE double row_dot(const struct row row, const double* v) {
  double even = 0, odd = 0;
  size_t j = 0;
  for (; j + 2 <= row.n; j += 2) {
    even += row.v_value[j] * v[row.v_column[j]];
    odd += row.v_value[j + 1] * v[row.v_column[j + 1]];
  }
  if (j < row.n) {
    even += row.v_value[j] * v[row.v_column[j]];
  }
  return even + odd;
}

TB_CLONES
static void sparse_dot(const struct tb_store* p_store,
                       const struct tb_rows* p_rows,
                       const double* v,
                       double* v_out) {
  const struct sparse* p = p_store->p_self;
  fetch_next(p, p_rows, 0, 2);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_out[k] = row_dot(row_at(p, tb_rows_at(p_rows, k)), v);
  }
}

TB_CLONES
static void sparse_add(const struct tb_store* p_store,
                       const struct tb_rows* p_rows,
                       const double* v_u,
                       double* v_sum) {
  const struct sparse* p = p_store->p_self;
  fetch_next(p, p_rows, 2, SIZE_MAX);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct row row = row_at(p, tb_rows_at(p_rows, k));
    for (size_t j = 0; j < row.n; ++j) {
      v_sum[row.v_column[j]] += v_u[k] * row.v_value[j];
    }
  }
}

TB_CLONES
static void sparse_add_square(const struct tb_store* p_store,
                              const struct tb_rows* p_rows,
                              const double* v_u,
                              double* v_sum,
                              double* v_square) {
  const struct sparse* p = p_store->p_self;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct row row = row_at(p, tb_rows_at(p_rows, k));
    for (size_t j = 0; j < row.n; ++j) {
      const double term = v_u[k] * row.v_value[j];
      v_sum[row.v_column[j]] += term;
      v_square[row.v_column[j]] += term * term;
    }
  }
}

static void sparse_square_norms(const struct tb_store* p_store,
                                const struct tb_rows* p_rows,
                                double* v_out) {
  const struct sparse* p = p_store->p_self;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct row row = row_at(p, tb_rows_at(p_rows, k));
    v_out[k] = 0;
    for (size_t j = 0; j < row.n; ++j) {
      v_out[k] += row.v_value[j] * row.v_value[j];
    }
  }
}

static void sparse_forms(const struct tb_store* p_store,
                         const struct tb_rows* p_rows,
                         const double* v_a,
                         size_t n_lead,
                         double* v_out) {
  const struct sparse* p = p_store->p_self;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct row row = row_at(p, tb_rows_at(p_rows, k));
    double sum = 0;
    for (size_t j = 0; j < row.n; ++j) {
      const double* v_col = v_a + row.v_column[j] * n_lead;
      double above = 0;
      for (size_t i = 0; i < j; ++i) {
        above += row.v_value[i] * v_col[row.v_column[i]];
      }
      sum += row.v_value[j] *
             (2 * above + row.v_value[j] * v_col[row.v_column[j]]);
    }
    v_out[k] = sum;
  }
}

TB_CLONES
static void sparse_add_products(const struct tb_store* p_store,
                                const struct tb_rows* p_rows,
                                const double* v_w,
                                double* v_a,
                                size_t n_lead) {
  const struct sparse* p = p_store->p_self;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct row row = row_at(p, tb_rows_at(p_rows, k));
    for (size_t j = 0; j < row.n; ++j) {
      double* v_col = v_a + row.v_column[j] * n_lead;
      const double u = v_w[k] * row.v_value[j];
      for (size_t i = 0; i <= j; ++i) {
        v_col[row.v_column[i]] += u * row.v_value[i];
      }
    }
  }
}

/* ---- rows out ---- */

static void
row_spread(const struct sparse* p, size_t i, size_t n_col, double* v_out) {
  const struct row row = row_at(p, i);
  memset(v_out, 0, n_col * sizeof(double));
  for (size_t j = 0; j < row.n; ++j) {
    v_out[row.v_column[j]] += row.v_value[j];
  }
}

static const double* sparse_block(const struct tb_store* p_store,
                                  size_t start,
                                  size_t n_row,
                                  double* v_scratch) {
  const size_t n_col = p_store->n_col;
  for (size_t k = 0; k < n_row; ++k) {
    row_spread(p_store->p_self, start + k, n_col, v_scratch + k * n_col);
  }
  return v_scratch;
}

static void sparse_gather(const struct tb_store* p_store,
                          const size_t* v_index,
                          size_t start,
                          size_t n_row,
                          size_t n_lead,
                          double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    row_spread(p_store->p_self,
               v_index == NULL ? start + k : v_index[k],
               p_store->n_col,
               v_out + k * n_lead);
  }
}

/* ---- rows in ---- */

static size_t starts_size(const struct tb_store* p_store) {
  const struct sparse* p = p_store->p_self;
  return p->v_start == NULL ? 0 : (p_store->n_row + 1) * sizeof(uint64_t);
}

/* Room for n_word words, with those there are. */
static enum tb_status sparse_reserve(struct tb_store* p_store, size_t n_word) {
  struct sparse* p = p_store->p_self;
  if (n_word <= p->n_word) {
    return TB_STATUS_ok;
  }
  double* v_word = n_word > SIZE_MAX / sizeof(double)
                       ? NULL
                       : tb_big_alloc(n_word * sizeof(double));
  if (v_word == NULL) {
    return TB_STATUS_memory;
  }
  if (p->v_word != NULL) {
    memcpy(v_word, p->v_word, p->n_word * sizeof(double));
    tb_big_free(p->v_word, p->n_word * sizeof(double));
  }
  p->v_word = v_word;
  p->n_word = n_word;
  p_store->n_byte = starts_size(p_store) + n_word * sizeof(double);
  return TB_STATUS_ok;
}

static size_t count_nonzero(const double* v, size_t n) {
  size_t count = 0;
  for (size_t j = 0; j < n; ++j) {
    count += v[j] != 0;
  }
  return count;
}

/* The place of column k of a row of n numbers. */
static uint32_t* columns_at(double* v_word, size_t n) {
  return (uint32_t*)(void*)(v_word + n);
}

static enum tb_status
sparse_append(struct tb_store* p_store, size_t n_row, const double* v_block) {
  struct sparse* p = p_store->p_self;
  const size_t first = p_store->n_filled, n_col = p_store->n_col;
  size_t n_word = (size_t)p->v_start[first];
  for (size_t k = 0; k < n_row; ++k) {
    n_word += words_of(count_nonzero(v_block + k * n_col, n_col));
  }
  if (n_word > p->n_word) {
    /* half as much again: rows may come one by one */
    const enum tb_status status = sparse_reserve(p_store, n_word + n_word / 2);
    if (status != TB_STATUS_ok) {
      return status;
    }
  }
  for (size_t k = 0; k < n_row; ++k) {
    const double* v_row = v_block + k * n_col;
    const size_t n = count_nonzero(v_row, n_col);
    double* v_value = p->v_word + p->v_start[first + k];
    uint32_t* v_column = columns_at(v_value, n);
    for (size_t j = 0, at = 0; j < n_col; ++j) {
      if (v_row[j] != 0) {
        v_value[at] = v_row[j];
        v_column[at++] = (uint32_t)j;
      }
    }
    p->v_start[first + k + 1] = p->v_start[first + k] + words_of(n);
  }
  return TB_STATUS_ok;
}

/* v_count[i] := numbers of row i that are not zero */
static void count_rows(const struct tb_columns* p_from, uint32_t* v_count) {
  const size_t n_value = (size_t)p_from->v_start[p_from->n_col];
  for (size_t k = 0; k < n_value; ++k) {
    v_count[p_from->v_row[k]] += p_from->v_value[k] != 0;
  }
}

/* Column by column, so that those of a row come out rising. v_at: n_row zeros.
 */
static void turn_columns(const struct tb_columns* p_from,
                         const struct sparse* p,
                         uint32_t* v_at) {
  for (size_t j = 0; j < p_from->n_col; ++j) {
    const size_t end = (size_t)p_from->v_start[j + 1];
    for (size_t k = (size_t)p_from->v_start[j]; k < end; ++k) {
      const size_t i = (size_t)p_from->v_row[k];
      if (p_from->v_value[k] != 0) {
        const struct row row = row_at(p, i);
        double* v_value = (double*)row.v_value;
        v_value[v_at[i]] = p_from->v_value[k];
        columns_at(v_value, row.n)[v_at[i]++] = (uint32_t)j;
      }
    }
  }
}

/* Are rows of these lengths to be even? Where that takes no more than an eighth
 * more than what is in them, and where they begin. */
static bool lay_even(struct tb_store* p_store, const uint32_t* v_count) {
  struct sparse* p = p_store->p_self;
  const size_t n_row = p_store->n_row;
  size_t most = 0, n_word = 0;
  for (size_t i = 0; i < n_row; ++i) {
    most = v_count[i] > most ? v_count[i] : most;
    n_word += words_of(v_count[i]);
  }
  if (most == 0 || (double)words_of(most) * (double)n_row >
                       1.125 * (double)n_word + (double)n_row) {
    return false;
  }
  tb_big_free(p->v_start, starts_size(p_store));
  p->v_start = NULL;
  p->n_each = most;
  p->n_stride = words_of(most);
  return true;
}

static enum tb_status sparse_turn(struct tb_store* p_store,
                                  const struct tb_columns* p_from) {
  struct sparse* p = p_store->p_self;
  const size_t n_row = p_store->n_row;
  uint32_t* v_at = calloc(n_row, sizeof(uint32_t));
  if (v_at == NULL) {
    return TB_STATUS_memory;
  }
  count_rows(p_from, v_at);
  size_t n_word = 0;
  if (lay_even(p_store, v_at)) {
    n_word = n_row * p->n_stride;
  } else {
    for (size_t i = 0; i < n_row; ++i) {
      p->v_start[i + 1] = p->v_start[i] + words_of(v_at[i]);
    }
    n_word = (size_t)p->v_start[n_row];
  }
  const enum tb_status status = sparse_reserve(p_store, n_word);
  if (status == TB_STATUS_ok) {
    memset(v_at, 0, n_row * sizeof(uint32_t));
    turn_columns(p_from, p, v_at);
  }
  free(v_at);
  return status;
}

/* ---- life ---- */

static size_t sparse_memory(const struct tb_store* p_store) {
  return p_store->n_byte;
}

static void sparse_destroy(struct tb_store* p_store) {
  struct sparse* p = p_store->p_self;
  if (p != NULL) {
    if (p->v_start != NULL) {
      tb_big_free(p->v_start, starts_size(p_store));
    }
    tb_big_free(p->v_word, p->n_word * sizeof(double));
    free(p);
  }
  p_store->p_self = NULL;
  p_store->n_byte = 0;
}

static enum tb_status sparse_create(struct tb_store* p_store) {
  const size_t n_row = p_store->n_row, n_col = p_store->n_col;
  /* as of stores that keep zeros: sizes that wrap are refused */
  if (n_col > UINT32_MAX ||
      (n_col > 0 && n_row >= SIZE_MAX / sizeof(uint64_t) / n_col)) {
    return TB_STATUS_memory;
  }
  struct sparse* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p->v_start = tb_big_alloc((n_row + 1) * sizeof(uint64_t));
  if (p->v_start == NULL) {
    free(p);
    return TB_STATUS_memory;
  }
  p_store->p_self = p;
  p_store->n_padded = n_col;
  p_store->n_byte = starts_size(p_store);
  return TB_STATUS_ok;
}

extern const struct tb_store_type tb_store_sparse;
const struct tb_store_type tb_store_sparse = {
    .name = "sparse",
    .create = sparse_create,
    .append = sparse_append,
    .turn = sparse_turn,
    .dot = sparse_dot,
    .add = sparse_add,
    .add_square = sparse_add_square,
    .square_norms = sparse_square_norms,
    .forms = sparse_forms,
    .add_products = sparse_add_products,
    .block = sparse_block,
    .gather = sparse_gather,
    .memory = sparse_memory,
    .destroy = sparse_destroy};
