/* Rows drawn ahead for the factorised test (factorised.c): a pass over all rows
 * has drawn them, with probabilities psi_i / Psi, and the model holds no
 * others. Given their number they are independent draws, so a test that uses
 * each once is the same as one that draws them when it needs them.
 *
 * Psi must be known in the pass: there is one R, and no place beyond it.
 *
 *   symbol      variable     shape           owner
 *   L           ball         n_dim x n_dim   drawn
 *   Psi / psi   v_inverse    n_row           drawn
 */
#include "gradients/factors-inside.h"

#include "base/clip.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool tb_take_rows(const struct tb_param* p_param,
                  size_t n_data,
                  size_t* v_row) {
  for (size_t k = 0; p_param != NULL && k < p_param->n_value; ++k) {
    const double row = p_param->v_value[k];
    if (!(row >= 0 && row < (double)n_data && row == floor(row))) {
      return false;
    }
    v_row[k] = (size_t)row;
  }
  return true;
}

static bool
take_psi(const struct tb_param* p_psi, double total, double* v_inverse) {
  for (size_t k = 0; k < p_psi->n_value; ++k) {
    const double psi = p_psi->v_value[k];
    if (!(psi > 0 && psi <= total * (1 + 1e-9))) {
      return false;
    }
    v_inverse[k] = total / psi;
  }
  return true;
}

static size_t count_of(const struct tb_param* p_param) {
  return p_param == NULL ? 0 : p_param->n_value;
}

/* "ahead_chol" (L, n_dim x n_dim), "ahead_radius" (R), "ahead_total" (Psi),
 * "ahead_always" (rows that are looked at always, from 0), "ahead_rows" (those
 * drawn, in order, from 0), "ahead_psi" (psi of each of them). */
enum tb_status tb_drawn_make(const struct tb_cv2* p_cv2,
                             const struct tb_params* p_params,
                             struct tb_drawn** pp_drawn) {
  const struct tb_model* p_model = p_cv2->expansion.p_model;
  const size_t n_dim = p_model->n_dim, n_data = p_model->n_data;
  const struct tb_param* p_chol = tb_params_find(p_params, "ahead_chol");
  const struct tb_param* p_always = tb_params_find(p_params, "ahead_always");
  const struct tb_param* p_rows = tb_params_find(p_params, "ahead_rows");
  const struct tb_param* p_psi = tb_params_find(p_params, "ahead_psi");
  const double radius = tb_params_number(p_params, "ahead_radius", NAN);
  const double total = tb_params_number(p_params, "ahead_total", NAN);
  const size_t n_row = count_of(p_rows), n_always = count_of(p_always);
  *pp_drawn = NULL;
  if (p_chol == NULL || p_chol->n_value != n_dim * n_dim ||
      count_of(p_psi) != n_row || !(radius > 0) || !(total >= 0) ||
      !isfinite(total)) {
    return TB_STATUS_argument;
  }
  const size_t n_self = tb_align(sizeof(struct tb_drawn));
  const size_t n_byte =
      n_self + n_row * sizeof(double) + (n_row + n_always) * sizeof(size_t);
  char* p_memory = tb_big_alloc(n_byte);
  if (p_memory == NULL) {
    return TB_STATUS_memory;
  }
  struct tb_drawn* p = (struct tb_drawn*)(void*)p_memory;
  double* v_inverse = (double*)(void*)(p_memory + n_self);
  size_t* v_row = (size_t*)(void*)(v_inverse + n_row);
  *p = (struct tb_drawn){.shell = {.radius = radius,
                                   .total = total,
                                   .n_always = n_always,
                                   .v_always = v_row + n_row,
                                   .n_byte = n_byte},
                         .n_row = n_row,
                         .v_row = v_row,
                         .v_inverse = v_inverse};
  enum tb_status status = tb_frame_create(&p->ball,
                                          n_dim,
                                          p_cv2->expansion.v_at,
                                          p_chol->v_value,
                                          false);
  if (status == TB_STATUS_ok &&
      !(tb_take_rows(p_rows, n_data, v_row) &&
        tb_take_rows(p_always, n_data, p->shell.v_always) &&
        (n_row == 0 || take_psi(p_psi, total, v_inverse)))) {
    status = TB_STATUS_argument;
  }
  if (status != TB_STATUS_ok) {
    tb_drawn_destroy(p);
    return status;
  }
  *pp_drawn = p;
  return TB_STATUS_ok;
}

void tb_drawn_destroy(struct tb_drawn* p) {
  if (p != NULL) {
    tb_frame_destroy(&p->ball);
    tb_big_free(p, p->shell.n_byte);
  }
}

static size_t stretch_of(const struct tb_chain* p_chain,
                         const struct tb_drawn* p_drawn) {
  return p_drawn->n_row / p_chain->p_target->n_chain;
}

size_t tb_drawn_left(const struct tb_chain* p_chain,
                     const struct tb_drawn* p_drawn,
                     const struct tb_factors_scratch* p_scratch) {
  return stretch_of(p_chain, p_drawn) - p_scratch->n_used;
}

void tb_drawn_look(const struct tb_chain* p_chain,
                   const struct tb_drawn* p_drawn,
                   size_t n,
                   struct tb_factors_scratch* p_scratch) {
  const size_t first =
      p_chain->place * stretch_of(p_chain, p_drawn) + p_scratch->n_used;
  memcpy(p_scratch->v_row, p_drawn->v_row + first, n * sizeof(size_t));
  memcpy(p_scratch->v_inverse, p_drawn->v_inverse + first, n * sizeof(double));
}
