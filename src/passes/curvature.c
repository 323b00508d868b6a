/* The leading part of a Hessian that is S^T S is one product for each TB_CHUNK
 * rows: their S is made in threads, ROWS at a time. Other models add up
 * Hessians of TB_CHUNK rows in threads.
 *
 *   symbol        variable  shape                        owner
 *   of a part:    v_sum     2 + n_dim (1 + n_dim - n_root)  the pass
 *     log lik, sum of multipliers, gradient, columns of -Hessian
 *   S             v_root    TB_CHUNK x n_lead            here
 *     its signs   v_sign    TB_CHUNK                     here
 *     S^T S of those below 0, v_minus  n_dim x n_dim     here, where there are
 *     any
 */
#include "passes/curvature.h"

#include "base/blas.h"
#include "base/clip.h"
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 512 };
enum { SUM_log_lik = 0, SUM_weight = 1, SUM_gradient = 2 };

struct curvature {
  const struct tb_model* p_model;
  const double* v_theta;
  double* v_root;
  double* v_sign;
  double* v_minus; /* NULL: no row was subtracted so far */
  size_t n_lead;
  bool with_prior;
};

static enum tb_status curvature_part(void* p_what,
                                     const struct tb_part* p_part) {
  const struct curvature* p = p_what;
  const struct tb_model* p_model = p->p_model;
  double* v_sum = p_part->v_sum;
  const struct tb_curvature sums = {
      .p_log_lik = &v_sum[SUM_log_lik],
      .v_gradient = v_sum + SUM_gradient,
      .v_hessian = v_sum + SUM_gradient + p_model->n_dim,
      .v_root =
          p->v_root == NULL ? NULL : p->v_root + p_part->first * p->n_lead,
      .v_sign = p->v_sign == NULL ? NULL : p->v_sign + p_part->first,
      .n_lead = p->n_lead,
      .with_prior = p->with_prior && p_part->first == 0};
  for (size_t k = 0; k < p_part->batch.n_batch; ++k) {
    v_sum[SUM_weight] += tb_batch_weight(&p_part->batch, k);
  }
  return p_model->type->curvature(p_model,
                                  &p_part->work,
                                  p->v_theta,
                                  &p_part->batch,
                                  &sums);
}

/* Rows of S below 0 out of it, and their product into v_minus. */
static enum tb_status take_minus(struct curvature* p, size_t n_row) {
  const size_t n_dim = p->p_model->n_dim, n_root = p->p_model->n_root;
  size_t n_minus = 0;
  for (size_t k = 0; k < n_row; ++k) {
    n_minus += p->v_sign[k] < 0;
  }
  if (n_minus == 0) {
    return TB_STATUS_ok;
  }
  if (p->v_minus == NULL) {
    p->v_minus = calloc(n_dim * n_dim, sizeof(double));
  }
  double* v_apart = malloc(n_minus * p->n_lead * sizeof(double));
  if (v_apart == NULL || p->v_minus == NULL) {
    free(v_apart);
    return TB_STATUS_memory;
  }
  double* v_to = v_apart;
  for (size_t k = 0; k < n_row; ++k) {
    if (p->v_sign[k] < 0) {
      double* v_from = p->v_root + k * p->n_lead;
      memcpy(v_to, v_from, p->n_lead * sizeof(double));
      memset(v_from, 0, p->n_lead * sizeof(double));
      v_to += p->n_lead;
    }
  }
  tb_syrk('N', n_root, n_minus, 1, v_apart, p->n_lead, p->v_minus, n_dim);
  free(v_apart);
  return TB_STATUS_ok;
}

/* Block by block, in the order of rows. */
static enum tb_status add_blocks(struct curvature* p,
                                 const struct tb_pass* p_pass,
                                 const struct tb_batch* p_batch,
                                 size_t n_block_row,
                                 double* v_total,
                                 double* v_hessian) {
  const size_t n_dim = p->p_model->n_dim, n_root = p->p_model->n_root;
  enum tb_status status = TB_STATUS_ok;
  size_t first = 0;
  do { /* a batch without rows is a block, too */
    const struct tb_batch block = tb_batch_part(p_batch, first, n_block_row);
    p->with_prior = first == 0;
    status = tb_pass_over(p_pass, &block, v_total);
    if (status == TB_STATUS_ok && n_root > 0) {
      status = take_minus(p, block.n_batch);
      tb_syrk('N',
              n_root,
              block.n_batch,
              1,
              p->v_root,
              p->n_lead,
              v_hessian,
              n_dim);
    }
    first += block.n_batch;
  } while (first < p_batch->n_batch && status == TB_STATUS_ok);
  for (size_t k = 0; p->v_minus != NULL && k < n_dim * n_dim; ++k) {
    v_hessian[k] -= p->v_minus[k];
  }
  return status;
}

/* The sums of the pass beside what its products have added to v_hessian. */
static void take_sums(const struct tb_model* p_model,
                      const double* v_total,
                      double* p_log_posterior,
                      double* v_gradient,
                      double* v_hessian) {
  const size_t n_dim = p_model->n_dim, n_root = p_model->n_root;
  const double* v_column = v_total + SUM_gradient + n_dim;
  *p_log_posterior = v_total[SUM_log_lik];
  memcpy(v_gradient, v_total + SUM_gradient, n_dim * sizeof(double));
  memcpy(v_hessian + n_root * n_dim,
         v_column,
         n_dim * (n_dim - n_root) * sizeof(double));
  for (size_t j = 0; n_root > 0 && j < n_dim; ++j) {
    for (size_t i = 0; i < tb_min(j, n_root); ++i) {
      v_hessian[i * n_dim + j] = v_hessian[j * n_dim + i];
    }
  }
}

enum tb_status tb_model_curvature(const struct tb_model* p_model,
                                  const double* v_theta,
                                  const struct tb_batch* p_batch,
                                  const double* v_round,
                                  double* p_log_posterior,
                                  double* v_gradient,
                                  double* v_hessian,
                                  int n_threads) {
  const size_t n_dim = p_model->n_dim, n_root = p_model->n_root;
  const size_t n_lead = (n_root + 3) & ~(size_t)3;
  const size_t n_sum = SUM_gradient + n_dim * (1 + n_dim - n_root);
  struct curvature what = {.p_model = p_model,
                           .v_theta = v_theta,
                           .n_lead = n_lead};
  struct tb_pass pass = {.p_model = p_model,
                         .part = curvature_part,
                         .p_what = &what,
                         .n_part_row = n_root > 0 ? ROWS : TB_CHUNK,
                         .n_point = 1,
                         .n_sum = n_sum,
                         .n_threads = n_threads};
  if (!tb_model_has_curvature(p_model)) {
    return TB_STATUS_unsupported;
  }
  double* v_memory = calloc(n_sum + TB_CHUNK * (n_lead + 1), sizeof(double));
  if (v_memory == NULL) {
    return TB_STATUS_memory;
  }
  double* v_total = v_memory;
  what.v_root = n_root > 0 ? v_memory + n_sum : NULL;
  what.v_sign = n_root > 0 ? what.v_root + TB_CHUNK * n_lead : NULL;
  enum tb_status status = tb_pass_begin(&pass);
  if (status == TB_STATUS_ok) {
    memset(v_hessian, 0, n_dim * n_dim * sizeof(double));
    status = add_blocks(&what,
                        &pass,
                        p_batch,
                        n_root > 0 ? TB_CHUNK : p_batch->n_batch,
                        v_total,
                        v_hessian);
  }
  if (status == TB_STATUS_ok) {
    take_sums(p_model, v_total, p_log_posterior, v_gradient, v_hessian);
  }
  if (status == TB_STATUS_ok && p_model->type->curvature_prior != NULL) {
    const struct tb_curvature sums = {.p_log_lik = p_log_posterior,
                                      .v_gradient = v_gradient,
                                      .v_hessian = v_hessian};
    const struct tb_workspace work = {.p_scratch = pass.p_memory};
    p_model->type->curvature_prior(p_model,
                                   &work,
                                   v_theta,
                                   v_round,
                                   v_total[SUM_weight],
                                   &sums);
  }
  tb_pass_end(&pass);
  free(what.v_minus);
  free(v_memory);
  return status;
}

struct diagonal {
  const struct tb_model* p_model;
  const double* v_theta;
};

static enum tb_status diagonal_part(void* p_what,
                                    const struct tb_part* p_part) {
  const struct diagonal* p = p_what;
  return p->p_model->type->diagonal(p->p_model,
                                    &p_part->work,
                                    p->v_theta,
                                    &p_part->batch,
                                    p_part->first == 0,
                                    p_part->v_sum);
}

enum tb_status tb_model_diagonal(const struct tb_model* p_model,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 double* v_diagonal,
                                 int n_threads) {
  struct diagonal what = {.p_model = p_model, .v_theta = v_theta};
  struct tb_pass pass = {.p_model = p_model,
                         .part = diagonal_part,
                         .p_what = &what,
                         .n_part_row = 16 * TB_CHUNK,
                         .n_point = 1,
                         .n_sum = p_model->n_dim,
                         .n_threads = n_threads};
  if (p_model->type->diagonal == NULL) {
    return TB_STATUS_unsupported;
  }
  memset(v_diagonal, 0, p_model->n_dim * sizeof(double));
  enum tb_status status = tb_pass_begin(&pass);
  if (status == TB_STATUS_ok) {
    status = tb_pass_over(&pass, p_batch, v_diagonal);
  }
  tb_pass_end(&pass);
  return status;
}
