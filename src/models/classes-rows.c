/* Rows of a regression with classes, block by block: gathered less the centres
 * of the columns, their predictors, what the head finds there, and its slopes
 * added up over the rows.
 *
 *   g = sum_i (u_i (x_i - c)^T, d_i)
 *
 * models/classes.c has the model, the symbols and who owns what.
 */
#include "models/classes-inside.h"

#include "base/blas.h"
#include "base/memory.h"

#include <stdlib.h>

static size_t work_size(const struct classes* p) {
  return 2 * p->n_inner * (1 + p->n_inner) + p->n_class +
         (p->n_eta + 2) * CLASSES_BLOCK;
}

void classes_destroy(struct tb_model* p_model) {
  struct classes* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_store_destroy(&p->store);
  tb_prior_destroy(&p->prior);
  tb_big_free(p->p_memory, p->n_byte);
  free(p);
  p_model->p_self = NULL;
}

size_t classes_scratch_size(const struct classes* p, bool has_block) {
  const size_t n_row =
      2 * p->n_coef + 2 * p->n_eta + 2 * p->n_inner + p->n_inner * p->n_inner;
  const size_t n_more = work_size(p) + classes_theta_size(p) +
                        (has_block ? p->n_coef * p->n_coef : 0);
  return (n_row * CLASSES_BLOCK + n_more) * sizeof(double);
}

struct classes_scratch
classes_scratch_at(const struct classes* p, void* p_scratch, bool has_block) {
  struct classes_scratch s = {.v_x = p_scratch};
  s.v_other = s.v_x + p->n_coef * CLASSES_BLOCK;
  s.v_eta = s.v_other + p->n_coef * CLASSES_BLOCK;
  s.v_eta_at = s.v_eta + p->n_eta * CLASSES_BLOCK;
  s.v_score = s.v_eta_at + p->n_eta * CLASSES_BLOCK;
  s.v_before = s.v_score + p->n_inner * CLASSES_BLOCK;
  s.v_bend = s.v_before + p->n_inner * CLASSES_BLOCK;
  s.v_work = s.v_bend + p->n_inner * p->n_inner * CLASSES_BLOCK;
  s.v_along = s.v_work + work_size(p);
  s.v_block = has_block ? s.v_along + classes_theta_size(p) : NULL;
  return s;
}

size_t classes_gather(const struct classes* p,
                      const struct tb_batch* p_batch,
                      size_t first,
                      const struct classes_scratch* p_s) {
  const size_t n = p->n_coef;
  const size_t n_row = tb_min(CLASSES_BLOCK, p_batch->n_batch - first);
  const size_t* v_index = p_batch->v_index;
  p->store.type->gather(&p->store,
                        v_index == NULL ? NULL : v_index + first,
                        p_batch->start + first,
                        n_row,
                        n,
                        p_s->v_x);
  for (size_t k = 0; k < n_row; ++k) {
    for (size_t j = 0; j < n; ++j) {
      p_s->v_x[k * n + j] -= p->v_center[j];
    }
  }
  return n_row;
}

void classes_look(const struct classes* p,
                  const double* v_theta,
                  const struct tb_batch* p_batch,
                  size_t first,
                  size_t n_row,
                  const struct classes_scratch* p_s,
                  const struct classes_out* p_out) {
  double v_class[CLASSES_BLOCK];
  tb_gemm_op('T',
             'N',
             p->n_eta,
             n_row,
             p->n_coef,
             v_theta,
             p->n_coef,
             p_s->v_x,
             p->n_coef,
             0,
             p_s->v_eta,
             p->n_eta);
  for (size_t k = 0; k < n_row; ++k) {
    const size_t row = tb_batch_row(p_batch, first + k);
    v_class[k] = p->v_class[row];
    if (p->v_offset != NULL) {
      p_s->v_eta[k * p->n_eta] += p->v_offset[row];
    }
  }
  p->head->look(p,
                classes_shared(p, v_theta),
                p_s->v_eta,
                v_class,
                n_row,
                p_s->v_work,
                p_out);
}

void classes_add(const struct classes* p,
                 size_t n_row,
                 const struct classes_scratch* p_s,
                 double* v_u,
                 double* v_gradient,
                 double* v_square) {
  const size_t n = p->n_coef, n_inner = p->n_inner, n_all = p->n_eta * n;
  if (v_gradient != NULL) {
    tb_gemm_op('N',
               'T',
               n,
               p->n_eta,
               n_row,
               p_s->v_x,
               n,
               v_u,
               n_inner,
               1,
               v_gradient,
               n);
    for (size_t i = 0; i < n_row; ++i) {
      for (size_t k = 0; k < p->n_shared; ++k) {
        v_gradient[n_all + k] += v_u[i * n_inner + p->n_eta + k];
      }
    }
  }
  if (v_square == NULL) {
    return;
  }
  for (size_t k = 0; k < n_inner * n_row; ++k) {
    v_u[k] *= v_u[k];
  }
  for (size_t k = 0; k < n * n_row; ++k) {
    p_s->v_other[k] = p_s->v_x[k] * p_s->v_x[k];
  }
  const struct classes_scratch squares = {.v_x = p_s->v_other};
  classes_add(p, n_row, &squares, v_u, v_square, NULL);
}
