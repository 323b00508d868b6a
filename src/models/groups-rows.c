/* The rows of a multilevel regression. Of normal responses
 *
 *   sum_i w_i (y_i - offset_i - x_i^T b)^2 = || T (b, -1) ||^2
 *
 * whatever b, T the triangular factor of the rows sqrt(w_i) (x_i, y_i -
 * offset_i): its rows take their place where they are fewer, at any size of a
 * group, and nothing cancels as it would in sums of products. Each row that is
 * spared stays as one without residual, which has its part in the density. T is
 * made by Givens' rotations, one row after the other, where it lies.
 *
 *   symbol   variable   shape
 *   T        v_T        n_wide x n_wide, by rows; n_wide = n_col + 1
 */
#include "models/groups-rows.h"

#include "base/clip.h"
#include "base/memory.h"
#include "data/shelf.h"
#include "models/groups-file.h"
#include "models/groups-inside.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- columns */

static bool is_same(const double* v_x, const double* v_z, size_t n_row) {
  size_t i = 0;
  while (i < n_row && v_x[i] == v_z[i]) {
    ++i;
  }
  return i == n_row;
}

/* v_seen: of one effect */
static bool
varies(const struct groups_columns* p, const double* v_z, double* v_seen) {
  bool does = false;
  for (size_t i = 0; i < p->n_row; ++i) {
    double* p_seen = &v_seen[p->v_group[i] - 1];
    *p_seen = isnan(*p_seen) ? v_z[i] : *p_seen;
    does = does || *p_seen != v_z[i];
  }
  return does;
}

bool groups_compare(const struct groups_columns* p) {
  for (size_t i = 0; i < p->n_row && p->v_seen != NULL; ++i) {
    if (p->v_group[i] < 1 || (size_t)p->v_group[i] > p->n_group) {
      return false;
    }
  }
  for (size_t a = 0; a < p->n_effect; ++a) {
    const double* v_z = p->v_z + a * p->n_lead_z;
    p->v_most[a] = 0;
    for (size_t i = 0; i < p->n_row; ++i) {
      p->v_most[a] = fmax(p->v_most[a], fabs(v_z[i]));
    }
    for (size_t j = 0; j < p->n_col; ++j) {
      p->v_same[a * p->n_col + j] =
          is_same(p->v_x + j * p->n_lead, v_z, p->n_row);
    }
    p->v_varies[a] =
        p->v_seen != NULL && varies(p, v_z, p->v_seen + a * p->n_group);
  }
  return true;
}

/* ---------------------------------------------------------------- beginning */

/* rows that a group has here, of those that come */
static size_t rows_of(const struct groups_shape* p_shape, size_t group) {
  const size_t n = (size_t)p_shape->v_size[group];
  return p_shape->folds ? tb_min(n, p_shape->n_col + 1) : n;
}

/* All rows; 0: a group has none, or there cannot be so many. */
static size_t rows_of_all(const struct groups_shape* p_shape) {
  const double most = 9007199254740992.0 / (double)p_shape->n_group;
  size_t n = 0;
  for (size_t g = 0; g < p_shape->n_group; ++g) {
    if (!(p_shape->v_size[g] >= 1 && p_shape->v_size[g] <= most)) {
      return 0;
    }
    n += rows_of(p_shape, g);
  }
  return n;
}

/* where groups begin, and what is spared */
static void set_first(struct groups_rows* p,
                      const struct groups_shape* p_shape) {
  size_t at = 0;
  for (size_t g = 0; g < p_shape->n_group; ++g) {
    const size_t n_out = rows_of(p_shape, g);
    p->v_first[g] = at;
    if (p_shape->folds) {
      p->v_spare[g] = p_shape->v_size[g] - (double)n_out;
    }
    at += n_out;
  }
  p->v_first[p_shape->n_group] = at;
}

/* room for y, weights and offsets of n rows; folded ones have one y alone */
static bool
make_room(struct groups_rows* p, const struct groups_shape* shape, size_t n) {
  const bool has_weights = shape->has_weights && !p->folds;
  const bool has_offset = shape->has_offset && !p->folds;
  const size_t n_column = p->n_y + has_weights + has_offset;
  p->n_byte = n * n_column * sizeof(double);
  p->v_number = tb_big_alloc(p->n_byte);
  if (p->v_number == NULL) {
    return false;
  }
  p->v_y = p->v_number;
  p->v_weight = has_weights ? p->v_number + n * p->n_y : NULL;
  p->v_offset = has_offset ? p->v_number + n * (n_column - 1) : NULL;
  return true;
}

/* all arrays of n_row rows, and the store, in memory */
static enum tb_status make_arrays(struct groups_rows* p,
                                  const struct groups_shape* p_shape,
                                  size_t n_row) {
  const size_t n = p_shape->n_group;
  p->v_first = malloc((n + 1) * sizeof(size_t));
  bool is_there = p->v_first != NULL;
  if (is_there && (p->folds || p_shape->has_constant)) {
    p->v_constant = calloc(n + 1, sizeof(double));
    is_there = p->v_constant != NULL;
  }
  if (is_there && p->folds) {
    p->v_spare = malloc((n + 1) * sizeof(double));
    is_there = p->v_spare != NULL;
  }
  if (!is_there || !make_room(p, p_shape, n_row)) {
    return TB_STATUS_memory;
  }
  const enum tb_status status =
      tb_store_create(&p->store, p_shape->type, n_row, p_shape->n_col);
  return status == TB_STATUS_ok ? tb_store_open(&p->store) : status;
}

static bool make_scratch(struct groups_rows* p) {
  const size_t n_wide = p->store.n_col + 1;
  p->v_there = calloc(p->n_group + 1, sizeof(size_t));
  p->v_row = calloc(p->store.n_padded + 1, sizeof(double));
  p->v_T = p->folds ? malloc(n_wide * n_wide * sizeof(double)) : NULL;
  return p->v_there != NULL && p->v_row != NULL &&
         (p->v_T != NULL || !p->folds);
}

enum tb_status groups_rows_begin(struct groups_rows* p,
                                 const struct groups_shape* p_shape,
                                 enum tb_file_fault* p_fault) {
  const size_t n_row = rows_of_all(p_shape);
  *p = (struct groups_rows){.n_group = p_shape->n_group,
                            .n_y = p_shape->n_y,
                            .folds = p_shape->folds};
  *p_fault = TB_FILE_ok;
  if (n_row == 0 || (p->folds && p->n_y != 1)) {
    return TB_STATUS_argument;
  }
  enum tb_status status;
  if (p_shape->path == NULL) {
    status = make_arrays(p, p_shape, n_row);
  } else {
    *p_fault = groups_file_create(p_shape->path, p_shape, n_row, p);
    status = *p_fault == TB_FILE_ok ? TB_STATUS_ok : TB_STATUS_memory;
  }
  if (status == TB_STATUS_ok && !make_scratch(p)) {
    status = TB_STATUS_memory;
  }
  if (status == TB_STATUS_ok) {
    set_first(p, p_shape);
  } else {
    groups_rows_destroy(p);
  }
  return status;
}

/* ------------------------------------------------------------------- blocks */

/* of row i, column j */
static double y_at(const struct groups_block* p, size_t i, size_t j) {
  const size_t at = j * p->n_lead_y + i;
  return p->v_whole == NULL ? p->v_y[at] : p->v_whole[at];
}

/* Row i of the block becomes row `at`. */
static enum tb_status put_row(struct groups_rows* p,
                              const struct groups_block* p_block,
                              size_t i,
                              size_t at) {
  for (size_t j = 0; j < p->store.n_col; ++j) {
    p->v_row[j] = p_block->v_x[j * p_block->n_lead + i];
  }
  for (size_t j = 0; j < p->n_y; ++j) {
    p->v_y[j * p->store.n_row + at] = y_at(p_block, i, j);
  }
  if (p->v_weight != NULL) {
    p->v_weight[at] = p_block->v_weight[i];
  }
  if (p->v_offset != NULL) {
    p->v_offset[at] = p_block->v_offset[i];
  }
  return tb_store_write(&p->store, at, 1, p->v_row);
}

/* ------------------------------------------------------- triangular factors */

/* T := that of T and one row more, which is lost */
static void rotate_in(double* v_T, double* v_row, size_t n_wide) {
  for (size_t j = 0; j < n_wide; ++j) {
    double* v_to = v_T + j * n_wide;
    if (v_row[j] == 0) {
      continue;
    }
    const double size = hypot(v_to[j], v_row[j]);
    const double c = v_to[j] / size, s = v_row[j] / size;
    for (size_t k = j; k < n_wide; ++k) {
      const double above = v_to[k], below = v_row[k];
      v_to[k] = c * above + s * below;
      v_row[k] = c * below - s * above;
    }
  }
}

/* row i, scaled by the root of its weight, which is returned, and its y */
static double scaled_row(const struct groups_block* p_block,
                         size_t i,
                         size_t n_col,
                         double* v_row) {
  const double w = p_block->v_weight == NULL ? 1 : p_block->v_weight[i];
  const double root = sqrt(w);
  const double y = y_at(p_block, i, 0) -
                   (p_block->v_offset == NULL ? 0 : p_block->v_offset[i]);
  for (size_t j = 0; j < n_col; ++j) {
    v_row[j] = root * p_block->v_x[j * p_block->n_lead + i];
  }
  v_row[n_col] = root * y;
  return w;
}

/* A row of the store and its y, from v_row; one number past n_padded is y's. */
static enum tb_status
put_factor_row(struct groups_rows* p, size_t at, const double* v_from) {
  const size_t n_col = p->store.n_col;
  memcpy(p->v_row, v_from, n_col * sizeof(double));
  for (size_t j = n_col; j < p->store.n_padded; ++j) {
    p->v_row[j] = 0;
  }
  p->v_y[at] = v_from[n_col];
  return tb_store_write(&p->store, at, 1, p->v_row);
}

static void read_factor(struct groups_rows* p, size_t first) {
  const size_t n_col = p->store.n_col, n_wide = n_col + 1;
  p->store.type->gather(&p->store, NULL, first, n_wide, n_wide, p->v_T);
  for (size_t j = 0; j < n_wide; ++j) {
    p->v_T[j * n_wide + n_col] = p->v_y[first + j];
  }
}

/* Row i of the block into its group, whose rows are few enough to stay, or are
 * those of T. */
static enum tb_status fold_row(struct groups_rows* p,
                               const struct groups_block* p_block,
                               size_t i,
                               size_t group) {
  const size_t n_col = p->store.n_col, n_wide = n_col + 1;
  const size_t first = p->v_first[group];
  const double w = scaled_row(p_block, i, n_col, p->v_row);
  p->v_constant[group] += 0.5 * log(w);
  if (p->v_spare[group] == 0) {
    memcpy(p->v_T, p->v_row, n_wide * sizeof(double));
    return put_factor_row(p, first + p->v_there[group], p->v_T);
  }
  if (p->v_there[group] == 0) {
    memset(p->v_T, 0, n_wide * n_wide * sizeof(double));
  } else {
    read_factor(p, first);
  }
  rotate_in(p->v_T, p->v_row, n_wide);
  enum tb_status status = TB_STATUS_ok;
  for (size_t j = 0; j < n_wide && status == TB_STATUS_ok; ++j) {
    status = put_factor_row(p, first + j, p->v_T + j * n_wide);
  }
  return status;
}

/* rows that a group has in all */
static size_t group_size(const struct groups_rows* p, size_t group) {
  return p->v_first[group + 1] - p->v_first[group] +
         (p->folds ? (size_t)p->v_spare[group] : 0);
}

enum tb_status groups_rows_add(struct groups_rows* p,
                               const struct groups_block* p_block) {
  enum tb_status status = TB_STATUS_ok;
  for (size_t i = 0; i < p_block->n_row && status == TB_STATUS_ok; ++i) {
    const int code = p_block->v_group[i];
    if (code < 1 || (size_t)code > p->n_group) {
      return TB_STATUS_argument;
    }
    const size_t group = (size_t)code - 1;
    if (p->v_there[group] == group_size(p, group)) {
      return TB_STATUS_argument;
    }
    status =
        p->folds
            ? fold_row(p, p_block, i, group)
            : put_row(p, p_block, i, p->v_first[group] + p->v_there[group]);
    p->v_there[group] += 1;
  }
  return status;
}

/* ------------------------------------------------------------------- ending */

enum tb_status groups_rows_end(struct groups_rows* p) {
  for (size_t g = 0; g < p->n_group; ++g) {
    if (p->v_there[g] != group_size(p, g)) {
      return TB_STATUS_argument;
    }
  }
  free(p->v_there);
  free(p->v_row);
  free(p->v_T);
  p->v_there = NULL;
  p->v_row = p->v_T = NULL;
  return groups_rows_hash(&p->store);
}

/* --------------------------------------------------------------- parameters */

/* the parameters that are rows, groups after each other */
struct given {
  const struct tb_param* p_x;
  const struct tb_param* p_y;
  const struct tb_param* p_weights;
  const struct tb_param* p_offset;
  const struct tb_param* p_first;
  size_t n_row;
  size_t n_col;
  size_t n_y;
};

static bool read_given(const struct tb_params* p_params, struct given* p) {
  p->p_x = tb_params_find(p_params, "x");
  p->p_y = tb_params_find(p_params, "y");
  p->p_weights = tb_params_find(p_params, "weights");
  p->p_offset = tb_params_find(p_params, "offset");
  p->p_first = tb_params_find(p_params, "first");
  if (p->p_x == NULL || p->p_x->n_row == 0 || p->p_y == NULL ||
      p->p_first == NULL || p->p_first->n_value < 2) {
    return false;
  }
  p->n_row = p->p_x->n_row;
  p->n_col = p->p_x->n_value / p->n_row;
  p->n_y = p->p_y->n_value / p->n_row;
  return p->n_y > 0 && p->p_y->n_value == p->n_y * p->n_row &&
         (p->p_weights == NULL || p->p_weights->n_value == p->n_row) &&
         (p->p_offset == NULL || p->p_offset->n_value == p->n_row) &&
         p->p_first->v_value[0] == 0 &&
         p->p_first->v_value[p->p_first->n_value - 1] == (double)p->n_row;
}

/* One group after the other. */
static enum tb_status add_given(struct groups_rows* p, const struct given* in) {
  enum { ROWS = 1024 };
  int v_group[ROWS];
  enum tb_status status = TB_STATUS_ok;
  size_t group = 0;
  for (size_t at = 0; at < in->n_row && status == TB_STATUS_ok; at += ROWS) {
    const size_t n = tb_min(ROWS, in->n_row - at);
    for (size_t i = 0; i < n; ++i) {
      while (in->p_first->v_value[group + 1] <= (double)(at + i)) {
        ++group;
      }
      v_group[i] = (int)group + 1;
    }
    const struct groups_block block = {
        .n_row = n,
        .n_lead = in->n_row,
        .v_x = in->p_x->v_value + at,
        .v_group = v_group,
        .n_lead_y = in->n_row,
        .v_y = in->p_y->v_whole == NULL ? in->p_y->v_value + at : NULL,
        .v_whole = in->p_y->v_whole == NULL ? NULL : in->p_y->v_whole + at,
        .v_weight = in->p_weights == NULL ? NULL : in->p_weights->v_value + at,
        .v_offset = in->p_offset == NULL ? NULL : in->p_offset->v_value + at};
    status = groups_rows_add(p, &block);
  }
  return status;
}

static enum tb_status put_given(const struct tb_params* p_params,
                                const struct tb_store_type* type,
                                struct groups_rows* p) {
  struct given in;
  if (!read_given(p_params, &in)) {
    return TB_STATUS_argument;
  }
  const size_t n_group = in.p_first->n_value - 1;
  double* v_size = malloc(n_group * sizeof(double));
  if (v_size == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t g = 0; g < n_group; ++g) {
    v_size[g] = in.p_first->v_value[g + 1] - in.p_first->v_value[g];
  }
  const struct groups_shape shape = {
      .type = type,
      .n_col = in.n_col,
      .n_group = n_group,
      .v_size = v_size,
      .n_y = in.n_y,
      .has_weights = in.p_weights != NULL,
      .has_offset = in.p_offset != NULL,
      .folds = tb_params_number(p_params, "fold", 0) != 0};
  enum tb_file_fault fault;
  enum tb_status status = groups_rows_begin(p, &shape, &fault);
  free(v_size);
  if (status == TB_STATUS_ok) {
    status = add_given(p, &in);
    status = status == TB_STATUS_ok ? groups_rows_end(p) : status;
    if (status != TB_STATUS_ok) {
      groups_rows_destroy(p);
    }
  }
  return status;
}

static void take_over(struct groups* p, struct groups_rows* p_rows) {
  p->store = p_rows->store;
  p->region = p_rows->region;
  p->n_row = p_rows->store.n_row;
  p->v_first = p_rows->v_first;
  p->v_number = p_rows->v_number;
  p->n_byte = p_rows->n_byte;
  p->v_y = p_rows->v_y;
  p->v_weight = p_rows->v_weight;
  p->v_offset = p_rows->v_offset;
  p->v_constant = p_rows->v_constant;
  p->v_spare = p_rows->v_spare;
  p->n_most = 0;
  for (size_t g = 0; g < p_rows->n_group; ++g) {
    p->n_most = tb_max(p->n_most, p->v_first[g + 1] - p->v_first[g]);
  }
  *p_rows = (struct groups_rows){.n_group = 0};
}

enum tb_status groups_take_rows(struct tb_model* p_model,
                                const struct tb_params* p_params,
                                const struct tb_shelf* p_shelf) {
  struct groups* p = p_model->p_self;
  const struct tb_param* p_param = tb_params_find(p_params, "rows");
  struct groups_rows made = {.n_group = 0};
  struct groups_rows* p_rows = &made;
  if (p_param != NULL) {
    p_rows = (struct groups_rows*)(uintptr_t)p_param->v_value;
  } else {
    const enum tb_status status = put_given(p_params, p_shelf->type, &made);
    if (status != TB_STATUS_ok) {
      return status;
    }
  }
  bool fits = p_rows->n_group > 0 && p_rows->v_there == NULL &&
              p_rows->store.n_col >= p->n_coef &&
              p_rows->n_y == tb_response_n_y(p->response.type);
  for (size_t a = 0; a < p->n_effect; ++a) {
    fits = fits && p->v_z[a] < p_rows->store.n_col;
  }
  if (!fits) {
    groups_rows_destroy(&made);
    return TB_STATUS_argument;
  }
  p_model->n_data = p_rows->n_group;
  take_over(p, p_rows);
  p->store.is_writable = p->store.is_writable && !p_shelf->is_read_only;
  return TB_STATUS_ok;
}

/* "nodes": K x 2, t and the logarithms of their weights times e^(t^2) */
enum tb_status groups_set_nodes(struct tb_model* p_model,
                                const double* v_value,
                                size_t n_node) {
  struct groups* p = p_model->p_self;
  double* v_node = malloc(2 * n_node * sizeof(double));
  if (v_node == NULL || n_node == 0) {
    free(v_node);
    return TB_STATUS_memory;
  }
  memcpy(v_node, v_value, 2 * n_node * sizeof(double));
  free(p->v_node);
  p->v_node = v_node;
  p->v_log_weight = v_node + n_node;
  p->n_node = n_node;
  p->n_point = 1;
  for (size_t a = 0; a < p->n_effect; ++a) {
    p->n_point *= n_node;
  }
  return TB_STATUS_ok;
}
