#include "data/shelf.h"

#include "base/clip.h"

#include <stdlib.h>

/* rows start.. of the matrix into the row-major v_block, whose other columns
 * are left alone; four columns at a time, since a line of the block is written
 * to once for each of these rounds */
static void turn_rows(const struct tb_store_matrix* p_matrix,
                      size_t start,
                      size_t n_turn,
                      size_t n_lead,
                      double* restrict v_block) {
  size_t j = 0;
  for (; j + 4 <= p_matrix->n_col; j += 4) {
    const double* v_a = p_matrix->v_value + j * p_matrix->n_lead + start;
    const double* v_b = v_a + p_matrix->n_lead;
    const double* v_c = v_b + p_matrix->n_lead;
    const double* v_d = v_c + p_matrix->n_lead;
    for (size_t k = 0; k < n_turn; ++k) {
      double* v_to = v_block + k * n_lead + j;
      v_to[0] = v_a[k];
      v_to[1] = v_b[k];
      v_to[2] = v_c[k];
      v_to[3] = v_d[k];
    }
  }
  for (; j < p_matrix->n_col; ++j) {
    const double* v_col = p_matrix->v_value + j * p_matrix->n_lead + start;
    for (size_t k = 0; k < n_turn; ++k) {
      v_block[k * n_lead + j] = v_col[k];
    }
  }
}

bool tb_shelf_shape(const struct tb_shelf* p_shelf,
                    const struct tb_param* p_matrix,
                    size_t* p_row,
                    size_t* p_col) {
  const struct tb_store* p_given = p_shelf->p_given;
  if (p_matrix != NULL) {
    *p_row = p_matrix->n_row;
    *p_col = *p_row > 0 ? p_matrix->n_value / *p_row : 0;
  } else if (p_given != NULL && p_given->type != NULL) {
    *p_row = p_given->n_row;
    *p_col = p_given->n_col;
  } else {
    return false;
  }
  return *p_row > 0;
}

static enum tb_status take_given(const struct tb_shelf* p_shelf,
                                 size_t n_ones,
                                 struct tb_store* p_store) {
  struct tb_store* p_given = p_shelf->p_given;
  if (p_given == NULL || p_given->type == NULL || n_ones > 0) {
    return TB_STATUS_unsupported;
  }
  *p_store = *p_given;
  p_store->is_writable = p_store->is_writable && !p_shelf->is_read_only;
  p_given->type = NULL;
  return TB_STATUS_ok;
}

/* v_block: room for n_most rows, with ones where they belong */
static enum tb_status fill_store(const struct tb_store_matrix* p_matrix,
                                 bool wants_hash,
                                 double* v_block,
                                 size_t n_most,
                                 struct tb_store* p_store) {
  const size_t n_row = p_matrix->n_row, n_padded = p_store->n_padded;
  enum tb_status status = TB_STATUS_ok;
  for (size_t start = 0; start < n_row && status == TB_STATUS_ok;
       start += n_most) {
    const size_t n_turn = tb_min(n_most, n_row - start);
    turn_rows(p_matrix, start, n_turn, n_padded, v_block);
    status = tb_store_append(p_store, n_turn, v_block);
    if (status == TB_STATUS_ok && wants_hash) {
      p_store->hash =
          tb_rows_hash(p_store->hash,
                       p_store->type->block(p_store, start, n_turn, v_block),
                       start,
                       n_turn,
                       p_store->n_col,
                       n_padded);
    }
  }
  return status;
}

enum tb_status tb_shelf_fill(const struct tb_store_type* p_type,
                             const struct tb_store_matrix* p_matrix,
                             size_t n_ones,
                             bool wants_hash,
                             struct tb_store* p_store) {
  enum { ROWS = 256 };
  const size_t n_row = p_matrix->n_row, n_col = p_matrix->n_col;
  enum tb_status status =
      tb_store_create(p_store, p_type, n_row, n_col + n_ones);
  if (status != TB_STATUS_ok) {
    return status;
  }
  const size_t n_padded = p_store->n_padded;
  const size_t n_most = tb_min(ROWS, n_row);
  double* v_block = calloc(n_most * sizeof(double), n_padded);
  for (size_t k = 0; v_block != NULL && k < n_most; ++k) {
    for (size_t j = 0; j < n_ones; ++j) {
      v_block[k * n_padded + n_col + j] = 1;
    }
  }
  status = v_block == NULL
               ? TB_STATUS_memory
               : fill_store(p_matrix, wants_hash, v_block, n_most, p_store);
  free(v_block);
  if (status != TB_STATUS_ok) {
    tb_store_destroy(p_store);
    p_store->type = NULL;
  }
  return status;
}

enum tb_status tb_shelf_take(const struct tb_shelf* p_shelf,
                             const struct tb_param* p_matrix,
                             size_t n_ones,
                             struct tb_store* p_store) {
  if (p_matrix == NULL) {
    return take_given(p_shelf, n_ones, p_store);
  }
  const size_t n_row = p_matrix->n_row;
  const struct tb_store_matrix matrix = {.v_value = p_matrix->v_value,
                                         .n_row = n_row,
                                         .n_col = p_matrix->n_value / n_row,
                                         .n_lead = n_row};
  const enum tb_status status =
      tb_shelf_fill(p_shelf->type, &matrix, n_ones, true, p_store);
  if (status == TB_STATUS_ok && p_shelf->is_read_only) {
    p_store->is_writable = false;
  }
  return status;
}

enum tb_status tb_shelf_turn(const struct tb_shelf* p_shelf,
                             const struct tb_columns* p_columns,
                             struct tb_store* p_store) {
  enum tb_status status = tb_store_create(p_store,
                                          p_shelf->type,
                                          p_columns->n_row,
                                          p_columns->n_col);
  if (status == TB_STATUS_ok) {
    p_store->hash = tb_columns_hash(p_columns);
    status = tb_store_turn(p_store, p_columns);
    if (status != TB_STATUS_ok) {
      tb_store_destroy(p_store);
      p_store->type = NULL;
    }
  }
  return status;
}
