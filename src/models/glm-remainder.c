/* Generalised linear models beyond their second order: remainders of rows and
 * what bounds them; see models/expansion.h, glm-second.c.
 *
 *   e_i = U_i(eta_i + t_i) - U_i - U_i' t_i - U_i'' t_i^2 / 2,  U_i = -l_i */
#include "models/glm-record.h"

#include "base/blas.h"
#include "base/chol.h"
#include "base/norm.h"

#include <math.h>
#include <stdlib.h>

bool glm_has_remainders(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return p_glm->n_aux == 0 && p_glm->response.type->third_bound != NULL &&
         p_glm->response.type->remainder != NULL;
}

void glm_prefetch(const struct tb_model* p_model,
                  const void* p_record,
                  size_t row) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  TB_PREFETCH(glm_record_at(p_glm, p_record, row));
  if (p_store->type->prefetch != NULL) {
    p_store->type->prefetch(p_store, row);
  }
}

/* what a response is asked of the rows, from their records */
static void load_records(const struct glm* p_glm,
                         const struct tb_rows* p_rows,
                         const void* p_record,
                         struct glm_block* p_block) {
  p_block->n_row = p_rows->n_row;
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct glm_record* p =
        glm_record_at(p_glm, p_record, tb_rows_at(p_rows, k));
    p_block->v_eta[k] = p->eta;
    p_block->v_y[k] = p->y;
    p_block->v_weight[k] = p->weight;
  }
  glm_load_more_y(p_glm, p_rows, p_block);
}

void glm_remainders(const struct tb_model* p_model,
                    const struct tb_workspace* p_work,
                    const void* p_record,
                    const double* v_at,
                    const double* v_from,
                    const double* v_to,
                    const struct tb_batch* p_batch,
                    double* v_e_from,
                    double* v_e_to) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_response_type* p_type = p_glm->response.type;
  const size_t n_padded = p_glm->store.n_padded;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  const struct glm_point point = {.response =
                                      tb_response_at(&p_glm->response, NULL)};
  (void)v_at; /* records have it */
  if (v_from != NULL) {
    glm_pad(scratch.v_theta, v_from, p_glm->n_coef, n_padded);
  }
  glm_pad(scratch.v_reference, v_to, p_glm->n_coef, n_padded);
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_t[BLOCK], v_u[BLOCK];
    if (v_from != NULL) {
      glm_load_steps(p_glm, &rows, p_record, scratch.v_theta, v_t);
    }
    glm_load_steps(p_glm, &rows, p_record, scratch.v_reference, v_u);
    load_records(p_glm, &rows, p_record, &block);
    const struct tb_response_rows response = glm_rows(&point, &block);
    if (v_from != NULL) {
      p_type->remainder(&response, v_t, v_e_from + b);
    }
    p_type->remainder(&response, v_u, v_e_to + b);
  }
}

void glm_remainders_of(const struct tb_model* p_model,
                       const void* p_record,
                       const struct tb_batch* p_batch,
                       const double* v_t,
                       double* v_e) {
  const struct glm* p_glm = p_model->p_self;
  const struct glm_point point = {.response =
                                      tb_response_at(&p_glm->response, NULL)};
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    load_records(p_glm, &rows, p_record, &block);
    const struct tb_response_rows response = glm_rows(&point, &block);
    p_glm->response.type->remainder(&response, v_t + b, v_e + b);
  }
}

void glm_steps(const struct tb_model* p_model,
               const struct tb_workspace* p_work,
               const double* v_delta,
               const struct tb_batch* p_batch,
               double* v_t) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const struct glm_scratch scratch = glm_scratch_at(p_glm, p_work->p_scratch);
  glm_pad(scratch.v_theta, v_delta, p_glm->n_coef, p_store->n_padded);
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    p_store->type->dot(p_store, &rows, scratch.v_theta, v_t + b);
  }
}

static enum tb_status sparse_norms(const struct tb_model* p_model,
                                   const double* v_chol,
                                   const struct tb_batch* p_batch,
                                   double* v_out) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_dim = p_model->n_dim;
  double* v_sigma = malloc(2 * n_dim * n_dim * sizeof(double));
  if (v_sigma == NULL) {
    return TB_STATUS_memory;
  }
  tb_chol_inverse(n_dim, v_chol, v_sigma + n_dim * n_dim, v_sigma);
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_q[BLOCK];
    p_store->type->forms(p_store, &rows, v_sigma, n_dim, v_q);
    for (size_t k = 0; k < rows.n_row; ++k) {
      v_out[b + k] = sqrt(fmax(v_q[k], 0));
    }
  }
  free(v_sigma);
  return TB_STATUS_ok;
}

enum tb_status glm_norms(const struct tb_model* p_model,
                         const double* v_chol,
                         const struct tb_batch* p_batch,
                         double* v_out) {
  enum { ROWS = 1024 };
  const struct glm* p_glm = p_model->p_self;
  if (p_glm->is_sparse) {
    return sparse_norms(p_model, v_chol, p_batch, v_out);
  }
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded, n_coef = p_glm->n_coef;
  double* v_rows = malloc((size_t)ROWS * n_padded * sizeof(double));
  if (v_rows == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t first = 0; first < p_batch->n_batch; first += ROWS) {
    const size_t n_row = tb_min(ROWS, p_batch->n_batch - first);
    const double* v_block =
        p_store->type->block(p_store, p_batch->start + first, n_row, v_rows);
    memmove(v_rows, v_block, n_row * n_padded * sizeof(double));
    tb_trsm('L', 'N', n_coef, n_row, v_chol, p_model->n_dim, v_rows, n_padded);
    for (size_t k = 0; k < n_row; ++k) {
      v_out[first + k] = sqrt(tb_square_norm(v_rows + k * n_padded, n_coef));
    }
  }
  free(v_rows);
  return TB_STATUS_ok;
}

void glm_third_bounds(const struct tb_model* p_model,
                      const void* p_record,
                      const double* v_norm,
                      size_t n_row,
                      double radius,
                      double* v_out) {
  const struct glm* p_glm = p_model->p_self;
  const struct glm_point point = {.response =
                                      tb_response_at(&p_glm->response, NULL)};
  for (size_t b = 0; b < n_row; b += BLOCK) {
    struct glm_block block = {.n_row = tb_min(BLOCK, n_row - b)};
    double v_reach[BLOCK];
    for (size_t k = 0; k < block.n_row; ++k) {
      const struct glm_record* p = glm_record_at(p_glm, p_record, b + k);
      block.v_eta[k] = p->eta;
      block.v_y[k] = p->y;
      block.v_weight[k] = p->weight;
      v_reach[k] = radius * v_norm[b + k];
    }
    const struct tb_rows at = {.n_row = block.n_row, .start = b};
    glm_load_more_y(p_glm, &at, &block);
    const struct tb_response_rows rows = glm_rows(&point, &block);
    p_glm->response.type->third_bound(&rows, v_reach, v_out + b);
  }
}
