#include "data/store.h"

#include "base/clip.h"
#include "base/hash.h"
#include "base/norm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* doubles in a cache line */
#define LINE 8

enum tb_status tb_store_create(struct tb_store* p_store,
                               const struct tb_store_type* p_type,
                               size_t n_row,
                               size_t n_col) {
  *p_store = (struct tb_store){.type = p_type,
                               .n_row = n_row,
                               .n_col = n_col,
                               .is_writable = p_type->write != NULL};
  const enum tb_status status = p_type->create(p_store);
  if (status != TB_STATUS_ok) {
    p_store->type = NULL;
  }
  return status;
}

enum tb_status
tb_store_append(struct tb_store* p_store, size_t n_row, const double* v_block) {
  if (n_row > p_store->n_row - p_store->n_filled) {
    return TB_STATUS_argument;
  }
  const enum tb_status status = p_store->type->append(p_store, n_row, v_block);
  p_store->n_filled += status == TB_STATUS_ok ? n_row : 0;
  return status;
}

enum tb_status tb_store_open(struct tb_store* p_store) {
  if (!p_store->is_writable) {
    return TB_STATUS_unsupported;
  }
  p_store->n_filled = p_store->n_row;
  return TB_STATUS_ok;
}

enum tb_status tb_store_turn(struct tb_store* p_store,
                             const struct tb_columns* p_columns) {
  if (!tb_store_is_sparse(p_store)) {
    return TB_STATUS_unsupported;
  }
  if (p_store->n_filled > 0 || p_columns->n_row != p_store->n_row ||
      p_columns->n_col != p_store->n_col) {
    return TB_STATUS_argument;
  }
  const enum tb_status status = p_store->type->turn(p_store, p_columns);
  p_store->n_filled = status == TB_STATUS_ok ? p_store->n_row : 0;
  return status;
}

void tb_store_square_norms(const struct tb_store* p_store,
                           const struct tb_rows* p_rows,
                           double* v_scratch,
                           double* v_out) {
  if (p_store->type->square_norms != NULL) {
    p_store->type->square_norms(p_store, p_rows, v_out);
    return;
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double* v_row =
        p_store->type->block(p_store, tb_rows_at(p_rows, k), 1, v_scratch);
    v_out[k] = tb_square_norm(v_row, p_store->n_col);
  }
}

enum tb_status tb_store_write(struct tb_store* p_store,
                              size_t start,
                              size_t n_row,
                              const double* v_block) {
  if (!p_store->is_writable) {
    return TB_STATUS_unsupported;
  }
  if (start > p_store->n_filled || n_row > p_store->n_filled - start) {
    return TB_STATUS_argument;
  }
  p_store->type->write(p_store, start, n_row, v_block);
  return TB_STATUS_ok;
}

enum tb_status tb_store_copy(const struct tb_store* p_from,
                             struct tb_store* p_store) {
  enum { ROWS = 256 };
  enum tb_status status =
      tb_store_create(p_store, p_from->type, p_from->n_row, p_from->n_col);
  if (status != TB_STATUS_ok) {
    return status;
  }
  const size_t n_most = tb_max(1, tb_min(ROWS, p_from->n_row));
  double* v_scratch = calloc(n_most * sizeof(double), p_from->n_padded);
  if (v_scratch == NULL) {
    status = TB_STATUS_memory;
  }
  for (size_t start = 0; start < p_from->n_filled && status == TB_STATUS_ok;
       start += n_most) {
    const size_t n_row = tb_min(n_most, p_from->n_filled - start);
    status =
        tb_store_append(p_store,
                        n_row,
                        p_from->type->block(p_from, start, n_row, v_scratch));
  }
  free(v_scratch);
  p_store->hash = p_from->hash;
  if (status != TB_STATUS_ok) {
    tb_store_destroy(p_store);
    p_store->type = NULL;
  }
  return status;
}

bool tb_store_size(struct tb_store* p_store, size_t n_each, size_t* p_byte) {
  const size_t n_col = p_store->n_col;
  if (n_col > SIZE_MAX / n_each - LINE) {
    return false;
  }
  /* rows that start on a cache line touch one line less, on average */
  const size_t n_line = (n_col + LINE - 1) / LINE * LINE;
  const bool is_cheap = (double)(n_line - n_col) <= 0.03 * (double)n_col;
  p_store->n_padded = is_cheap ? n_line : n_col;
  if (p_store->n_padded > 0 &&
      p_store->n_row > SIZE_MAX / 2 / n_each / p_store->n_padded) {
    return false;
  }
  *p_byte = p_store->n_row * p_store->n_padded * n_each;
  return true;
}

/* Of one number and its place, well mixed: sums need every bit. */
static uint64_t number_hash(double x, uint64_t place) {
  uint64_t word;
  memcpy(&word, &x, sizeof(word));
  return tb_hash_at(word, place);
}

uint64_t tb_rows_hash(uint64_t hash,
                      const double* v_block,
                      size_t start,
                      size_t n_row,
                      size_t n_col,
                      size_t n_lead) {
  for (size_t i = 0; i < n_row; ++i) {
    const uint64_t place = (uint64_t)(start + i) * n_col;
    for (size_t j = 0; j < n_col; ++j) {
      const double x = v_block[i * n_lead + j];
      hash += x == 0 ? 0 : number_hash(x, place + j);
    }
  }
  return hash;
}

uint64_t tb_columns_hash(const struct tb_columns* p_columns) {
  uint64_t hash = 0;
  for (size_t j = 0; j < p_columns->n_col; ++j) {
    const size_t end = (size_t)p_columns->v_start[j + 1];
    for (size_t k = (size_t)p_columns->v_start[j]; k < end; ++k) {
      const double x = p_columns->v_value[k];
      const uint64_t place = (uint64_t)p_columns->v_row[k] * p_columns->n_col;
      hash += x == 0 ? 0 : number_hash(x, place + j);
    }
  }
  return hash;
}
