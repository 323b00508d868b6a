/* The rows of a multilevel regression. Of normal responses
 *
 *   sum_i w_i (y_i - offset_i - x_i^T b)^2 = || T (b, -1) ||^2
 *
 * whatever b, T the triangular factor of the rows sqrt(w_i) (x_i, y_i -
 * offset_i): its rows take their place where they are fewer, at any size of a
 * group, and nothing cancels as it would in sums of products. Each row that is
 * spared stays as one without residual, which has its part in the density. T is
 * made by Givens' rotations, one row after the other.
 *
 *   symbol   variable   shape
 *   T        v_T        n_wide x n_wide, by rows; n_wide = n_col + 1
 */
#include "models/groups-rows.h"

#include "base/clip.h"
#include "base/memory.h"
#include "data/shelf.h"
#include "models/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the parameters that are rows */
struct given {
  const struct tb_param* p_x;
  const struct tb_param* p_y;
  const struct tb_param* p_weights;
  const struct tb_param* p_offset;
  size_t n_row;
  size_t n_col;
};

static bool read_given(const struct tb_params* p_params,
                       const struct tb_shelf* p_shelf,
                       struct given* p) {
  p->p_x = tb_params_find(p_params, "x");
  p->p_y = tb_params_find(p_params, "y");
  p->p_weights = tb_params_find(p_params, "weights");
  p->p_offset = tb_params_find(p_params, "offset");
  return tb_shelf_shape(p_shelf, p->p_x, &p->n_row, &p->n_col) &&
         p->p_y != NULL && p->p_y->n_value == p->n_row &&
         (p->p_weights == NULL || p->p_weights->n_value == p->n_row) &&
         (p->p_offset == NULL || p->p_offset->n_value == p->n_row);
}

/* where groups begin, each with a row at least */
static bool
set_first(struct groups* p, const struct tb_param* p_first, size_t n_row) {
  const size_t n = p_first->n_value;
  p->v_first = malloc(n * sizeof(size_t));
  if (p->v_first == NULL) {
    return false;
  }
  for (size_t g = 0; g < n; ++g) {
    const double at = p_first->v_value[g];
    if (!(at >= 0 && at <= (double)n_row) ||
        (g > 0 && (size_t)at <= p->v_first[g - 1])) {
      return false;
    }
    p->v_first[g] = (size_t)at;
  }
  return p->v_first[0] == 0 && p->v_first[n - 1] == n_row;
}

static void measure(struct groups* p, size_t n_group) {
  p->n_most = 0;
  for (size_t g = 0; g < n_group; ++g) {
    p->n_most = tb_max(p->n_most, p->v_first[g + 1] - p->v_first[g]);
  }
}

/* room for y, weights and offsets of n rows */
static enum tb_status
make_room(struct groups* p, size_t n, bool has_weights, bool has_offset) {
  p->n_row = n;
  p->n_byte = n * (1 + has_weights + (size_t)has_offset) * sizeof(double);
  p->v_number = tb_big_alloc(p->n_byte);
  if (p->v_number == NULL) {
    return TB_STATUS_memory;
  }
  p->v_y = p->v_number;
  p->v_weight = has_weights ? p->v_number + n : NULL;
  p->v_offset = has_offset ? p->v_number + n * (1 + (size_t)has_weights) : NULL;
  return TB_STATUS_ok;
}

static enum tb_status take_all(struct groups* p,
                               const struct given* p_given,
                               const struct tb_shelf* p_shelf) {
  const size_t n = p_given->n_row;
  enum tb_status status =
      make_room(p, n, p_given->p_weights != NULL, p_given->p_offset != NULL);
  if (status != TB_STATUS_ok) {
    return status;
  }
  for (size_t i = 0; i < n; ++i) {
    p->v_y[i] = tb_param_at(p_given->p_y, i);
    if (p->v_weight != NULL) {
      p->v_weight[i] = p_given->p_weights->v_value[i];
    }
    if (p->v_offset != NULL) {
      p->v_offset[i] = p_given->p_offset->v_value[i];
    }
  }
  return tb_shelf_take(p_shelf, p_given->p_x, 0, &p->store);
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

/* row i, scaled by the root of its weight, and its y */
static double read_row(const struct given* p, size_t i, double* v_row) {
  const double w = p->p_weights == NULL ? 1 : p->p_weights->v_value[i];
  const double root = sqrt(w);
  const double y = tb_param_at(p->p_y, i) -
                   (p->p_offset == NULL ? 0 : p->p_offset->v_value[i]);
  for (size_t j = 0; j < p->n_col; ++j) {
    v_row[j] = root * p->p_x->v_value[j * p->n_row + i];
  }
  v_row[p->n_col] = root * y;
  return w;
}

/* Rows of one group, or of their factor, from `to` on of v_x (column-major,
 * n_lead apart) and v_y; how many. */
static size_t fold_group(const struct given* p,
                         size_t first,
                         size_t n,
                         double* v_work,
                         double* v_x,
                         size_t n_lead,
                         double* v_y,
                         double* p_constant) {
  const size_t n_wide = p->n_col + 1, n_out = tb_min(n, n_wide);
  double* v_T = v_work + n_wide;
  memset(v_T, 0, n_wide * n_wide * sizeof(double));
  *p_constant = 0;
  for (size_t i = 0; i < n; ++i) {
    double* v_row = n <= n_wide ? v_T + i * n_wide : v_work;
    *p_constant += 0.5 * log(read_row(p, first + i, v_row));
    if (n > n_wide) {
      rotate_in(v_T, v_row, n_wide);
    }
  }
  for (size_t i = 0; i < n_out; ++i) {
    for (size_t j = 0; j < p->n_col; ++j) {
      v_x[j * n_lead + i] = v_T[i * n_wide + j];
    }
    v_y[i] = v_T[i * n_wide + p->n_col];
  }
  return n_out;
}

static enum tb_status fold_all(struct groups* p,
                               const struct given* p_given,
                               const struct tb_shelf* p_shelf,
                               size_t n_group,
                               double* v_x,
                               double* v_work) {
  size_t at = 0;
  for (size_t g = 0; g < n_group; ++g) {
    const size_t first = p->v_first[g], n = p->v_first[g + 1] - first;
    const size_t n_out = fold_group(p_given,
                                    first,
                                    n,
                                    v_work,
                                    v_x + at,
                                    p->n_row,
                                    p->v_y + at,
                                    &p->v_constant[g]);
    p->v_spare[g] = (double)(n - n_out);
    p->v_first[g] = at;
    at += n_out;
  }
  p->v_first[n_group] = at;
  const struct tb_store_matrix matrix = {.v_value = v_x,
                                         .n_row = p->n_row,
                                         .n_col = p_given->n_col,
                                         .n_lead = p->n_row};
  return tb_shelf_fill(p_shelf->type, &matrix, 0, true, &p->store);
}

static enum tb_status take_folded(struct groups* p,
                                  const struct given* p_given,
                                  const struct tb_shelf* p_shelf,
                                  size_t n_group) {
  const size_t n_wide = p_given->n_col + 1;
  size_t n_out = 0;
  for (size_t g = 0; g < n_group; ++g) {
    n_out += tb_min(n_wide, p->v_first[g + 1] - p->v_first[g]);
  }
  enum tb_status status = make_room(p, n_out, false, false);
  p->v_constant = malloc(n_group * sizeof(double));
  p->v_spare = malloc(n_group * sizeof(double));
  double* v_x = malloc((n_out * p_given->n_col + 1) * sizeof(double));
  double* v_work = malloc(n_wide * (n_wide + 1) * sizeof(double));
  if (status == TB_STATUS_ok && (p->v_constant == NULL || p->v_spare == NULL ||
                                 v_x == NULL || v_work == NULL)) {
    status = TB_STATUS_memory;
  }
  if (status == TB_STATUS_ok) {
    status = fold_all(p, p_given, p_shelf, n_group, v_x, v_work);
  }
  free(v_x);
  free(v_work);
  return status;
}

enum tb_status groups_take_rows(struct tb_model* p_model,
                                const struct tb_params* p_params,
                                const struct tb_shelf* p_shelf) {
  struct groups* p = p_model->p_self;
  const struct tb_param* p_first = tb_params_find(p_params, "first");
  struct given given;
  if (p_first == NULL || p_first->n_value < 2 ||
      !read_given(p_params, p_shelf, &given) || given.n_col < p->n_coef ||
      !set_first(p, p_first, given.n_row)) {
    return TB_STATUS_argument;
  }
  for (size_t a = 0; a < p->n_effect; ++a) {
    if (p->v_z[a] >= given.n_col) {
      return TB_STATUS_argument;
    }
  }
  const size_t n_group = p_first->n_value - 1;
  p_model->n_data = n_group;
  const bool folds =
      tb_params_number(p_params, "fold", 0) != 0 && given.p_x != NULL;
  const enum tb_status status = folds ? take_folded(p, &given, p_shelf, n_group)
                                      : take_all(p, &given, p_shelf);
  measure(p, n_group);
  return status;
}
