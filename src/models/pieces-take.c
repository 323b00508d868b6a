/* Times with a hazard in pieces: what a model takes of its parameters, see
 * pieces.c. */
#include "models/pieces-inside.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

/* How many strata, 0: not so many as an int32 holds, or none of a column */
static size_t count_strata(const struct pieces* p,
                           const struct tb_params* p_params) {
  const struct tb_param* p_n_cut = tb_params_find(p_params, "n_cut");
  const struct tb_param* p_stratum = tb_params_find(p_params, "stratum");
  if (p_n_cut == NULL && p_stratum == NULL) {
    return 1;
  }
  const bool are_both = p_n_cut != NULL && p_stratum != NULL;
  return are_both && p_stratum->n_value == p->n_coef &&
                 p_n_cut->n_value <= PIECES_MOST
             ? p_n_cut->n_value
             : 0;
}

static bool set_shape(struct tb_model* p_model,
                      const struct tb_params* p_params,
                      const struct tb_shelf* p_shelf) {
  struct pieces* p = p_model->p_self;
  const struct tb_param* p_cuts = tb_params_find(p_params, "cuts");
  const struct tb_param* p_basis = tb_params_find(p_params, "basis");
  if (!tb_shelf_shape(p_shelf,
                      tb_params_find(p_params, "x"),
                      &p_model->n_data,
                      &p->n_coef) ||
      p_model->n_data == 0 || p->n_coef == 0 || p_cuts == NULL ||
      p_basis == NULL || p_cuts->n_value == 0 ||
      (p->n_stratum = count_strata(p, p_params)) == 0 ||
      p_cuts->n_value + p->n_stratum > PIECES_MOST) {
    return false;
  }
  p->n_piece = p_cuts->n_value + p->n_stratum;
  p->n_step = p_basis->n_value / p->n_piece;
  p_model->n_dim = p_model->n_natural = p->n_coef + p->n_step;
  p_model->n_scalar = 1 + p->n_piece;
  return p->n_step > 0 && p->n_step * p->n_piece == p_basis->n_value;
}

/* The first piece of each stratum, and the columns that tell of them. */
static bool take_strata(struct pieces* p, const struct tb_params* p_params) {
  const struct tb_param* p_n_cut = tb_params_find(p_params, "n_cut");
  const struct tb_param* p_stratum = tb_params_find(p_params, "stratum");
  p->v_first[0] = 0;
  for (size_t s = 0; s < p->n_stratum; ++s) {
    const double n =
        p_n_cut == NULL ? (double)p->n_piece - 1 : tb_param_at(p_n_cut, s);
    if (!(n >= 0 && n < PIECES_MOST)) {
      return false;
    }
    p->v_first[s + 1] = p->v_first[s] + (uint32_t)n + 1;
  }
  for (size_t j = 0; j < p->n_coef; ++j) {
    const double of = p_stratum == NULL ? 0 : tb_param_at(p_stratum, j);
    if (!(of >= 0 && of < (double)p->n_stratum)) {
      return false;
    }
    p->v_stratum[j] = (uint32_t)of;
  }
  return p->v_first[p->n_stratum] == p->n_piece;
}

/* Pieces of each stratum, from 0 on, with ends that rise. */
static bool take_pieces(struct pieces* p, const struct tb_params* p_params) {
  const struct tb_param* p_cuts = tb_params_find(p_params, "cuts");
  const struct tb_param* p_basis = tb_params_find(p_params, "basis");
  size_t cut = 0;
  for (size_t s = 0; s < p->n_stratum; ++s) {
    const size_t first = p->v_first[s], next = p->v_first[s + 1];
    p->v_begin[first] = 0;
    for (size_t k = first + 1; k < next; ++k, ++cut) {
      p->v_begin[k] = tb_param_at(p_cuts, cut);
      p->v_width[k - 1] = p->v_begin[k] - p->v_begin[k - 1];
      if (!(p->v_width[k - 1] > 0) || !isfinite(p->v_begin[k])) {
        return false;
      }
    }
    p->v_width[next - 1] = 0;
  }
  for (size_t i = 0; i < p_basis->n_value; ++i) {
    p->v_basis[i] = tb_param_at(p_basis, i);
  }
  return true;
}

/* of a stratum the last piece that begins before a time, or at 0 */
static uint32_t piece_of(const struct pieces* p, size_t stratum, double time) {
  size_t low = p->v_first[stratum], high = p->v_first[stratum + 1];
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    *(p->v_begin[middle] < time ? &low : &high) = middle;
  }
  return (uint32_t)low;
}

/* that of a row x */
static size_t stratum_of(const struct pieces* p, const double* v_x) {
  size_t stratum = 0;
  for (size_t j = 0; j < p->n_coef; ++j) {
    if (p->v_stratum[j] > 0 && v_x[j] == 1) {
      stratum = p->v_stratum[j];
    }
  }
  return stratum;
}

/* "y" (n_data x 3: time, entry, event), "weights", "offset"; v_x: n_coef
 * numbers of scratch */
static bool take_rows(struct tb_model* p_model,
                      const struct tb_params* p_params,
                      double* v_x) {
  struct pieces* p = p_model->p_self;
  const size_t n = p_model->n_data;
  const struct tb_param* p_y = tb_params_find(p_params, "y");
  const struct tb_param* p_weights = tb_params_find(p_params, "weights");
  const struct tb_param* p_offset = tb_params_find(p_params, "offset");
  if (p_y == NULL || p_y->n_value != 3 * n ||
      (p_weights != NULL && p_weights->n_value != n) ||
      (p_offset != NULL && p_offset->n_value != n)) {
    return false;
  }
  for (size_t i = 0; i < n; ++i) {
    const double time = tb_param_at(p_y, i), entry = tb_param_at(p_y, n + i);
    const double event = tb_param_at(p_y, 2 * n + i);
    struct pieces_row* p_row = &p->v_row[i];
    size_t stratum = 0;
    if (p->n_stratum > 1) {
      p->store.type->gather(&p->store, NULL, i, 1, p->n_coef, v_x);
      stratum = stratum_of(p, v_x);
    }
    if (!(entry >= 0 && time > entry && isfinite(time)) ||
        (event != 0 && event != 1)) {
      return false;
    }
    p_row->last = piece_of(p, stratum, time);
    p_row->first = piece_of(p, stratum, entry);
    p_row->since = time - p->v_begin[p_row->last];
    p_row->entered = entry - p->v_begin[p_row->first];
    p_row->event = event;
    p_row->weight = p_weights == NULL ? 1 : tb_param_at(p_weights, i);
    p_row->offset = p_offset == NULL ? 0 : tb_param_at(p_offset, i);
  }
  return true;
}

static enum tb_status reserve(struct pieces* p, size_t n_data) {
  const size_t n_number = p->n_piece * (2 + p->n_step);
  p->n_byte = n_number * sizeof(double) + n_data * sizeof(struct pieces_row) +
              (p->n_stratum + 1 + p->n_coef) * sizeof(uint32_t);
  p->v_begin = tb_big_alloc(p->n_byte);
  if (p->v_begin == NULL) {
    return TB_STATUS_memory;
  }
  p->v_width = p->v_begin + p->n_piece;
  p->v_basis = p->v_width + p->n_piece;
  p->v_row = (struct pieces_row*)(void*)(p->v_begin + n_number);
  p->v_first = (uint32_t*)(void*)(p->v_row + n_data);
  p->v_stratum = p->v_first + p->n_stratum + 1;
  return TB_STATUS_ok;
}

/* once the shape is known */
static enum tb_status take_values(struct tb_model* p_model,
                                  const struct tb_params* p_params) {
  struct pieces* p = p_model->p_self;
  double* v_x = malloc(p->n_coef * sizeof(double));
  if (v_x == NULL) {
    return TB_STATUS_memory;
  }
  const bool is_well = take_strata(p, p_params) && take_pieces(p, p_params) &&
                       take_rows(p_model, p_params, v_x);
  free(v_x);
  return is_well ? TB_STATUS_ok : TB_STATUS_argument;
}

enum tb_status pieces_take(struct tb_model* p_model,
                           const struct tb_params* p_params,
                           const struct tb_shelf* p_shelf) {
  struct pieces* p = p_model->p_self;
  enum tb_status status =
      set_shape(p_model, p_params, p_shelf) ? TB_STATUS_ok : TB_STATUS_argument;
  if (status == TB_STATUS_ok) {
    status = tb_prior_create(&p->prior, p_params, p_model->n_dim);
  }
  if (status == TB_STATUS_ok) {
    status =
        tb_shelf_take(p_shelf, tb_params_find(p_params, "x"), 0, &p->store);
  }
  if (status == TB_STATUS_ok) {
    status = reserve(p, p_model->n_data);
  }
  if (status == TB_STATUS_ok) {
    status = take_values(p_model, p_params);
  }
  return status;
}
