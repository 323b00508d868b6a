/* Generalised linear models, second derivatives and sums at many points; see
 * glm.c. */
#include "models/glm.h"

#include "base/blas.h"

#include <math.h>
#include <stdlib.h>

/* sums of a chunk of the curvature pass, with c_i */
struct glm_part {
  double log_lik;
  double weight;        /* sum of c_i */
  double aux_score;     /* sum of t_i */
  double aux_curvature; /* sum of b_i, less the information */
  double* v_gradient;   /* n_padded: sum of r_i x_i */
  double* v_cross;      /* n_padded: sum of a_i x_i */
  double* v_scaled;     /* the rows times sqrt(c_i w_i), see below */
};

/* One chunk of the curvature pass, which leaves rows S such that S^T S is
 * -Hessian. */
static void glm_curvature_rows(const struct glm* p_glm,
                               const struct glm_point* p_point,
                               const struct tb_batch* p_batch,
                               struct glm_part* p_part) {
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    struct glm_block block;
    double v_r[BLOCK], v_log_lik[BLOCK], v_w[BLOCK];
    double v_t[BLOCK] = {0}, v_a[BLOCK], v_b[BLOCK] = {0};
    struct tb_response_out out = {.v_log_density = v_log_lik,
                                  .v_score = v_r,
                                  .v_curvature = v_w};
    if (p_glm->has_aux) {
      out.v_aux_score = v_t;
      out.v_cross = v_a;
      out.v_aux_curvature = v_b;
    }
    glm_load(p_glm, &rows, p_point, &block);
    glm_evaluate(p_glm, p_point, &block, &out);
    for (size_t k = 0; k < rows.n_row; ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      p_part->log_lik += c * v_log_lik[k];
      p_part->aux_score += c * v_t[k];
      p_part->aux_curvature += c * v_b[k];
      p_part->weight += c;
      v_r[k] *= c;
      v_w[k] = sqrt(c * v_w[k]);
    }
    p_store->type->add(p_store, &rows, v_r, p_part->v_gradient);
    if (p_glm->has_aux) {
      for (size_t k = 0; k < rows.n_row; ++k) {
        v_a[k] *= tb_batch_weight(p_batch, b + k);
      }
      p_store->type->add(p_store, &rows, v_a, p_part->v_cross);
    }
    for (size_t k = 0; k < rows.n_row; ++k) {
      double* v_to = p_part->v_scaled + (b + k) * n_padded;
      const double* v_row =
          p_store->type->block(p_store, tb_batch_row(p_batch, b + k), 1, v_to);
      for (size_t j = 0; j < n_padded; ++j) {
        v_to[j] = v_w[k] * v_row[j];
      }
    }
  }
}

enum tb_status glm_curvature(const struct tb_model* p_model,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const double* v_round,
                             double* p_log_posterior,
                             double* v_gradient,
                             double* v_hessian,
                             int n_threads) {
  enum { ROWS = 512, PARTS = 16 }; /* ROWS * PARTS rows per product */
  const struct glm* p_glm = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n_coef = p_glm->n_coef;
  const size_t n_padded = p_glm->store.n_padded;
  const size_t n_group = (size_t)ROWS * PARTS;
  struct glm_part v_sums[PARTS];
  double v_total[4] = {0}; /* log lik, weight, aux score and curvature */
  (void)n_threads;

  if (p_model->p_frame != NULL) {
    /* modes are sought before the rows are whitened */
    return TB_STATUS_unsupported;
  }
  double* v_scratch =
      calloc(n_padded * (2 + 2 * PARTS) + n_dim + n_group * n_padded,
             sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_cross = v_scratch + n_padded;
  double* v_part = v_cross + n_padded; /* of each part two sums */
  double* v_prior = v_part + (size_t)2 * PARTS * n_padded;
  double* v_scaled = v_prior + n_dim;
  const struct glm_point point = glm_point_at(p_model, v_theta, v_scratch);

  memset(v_gradient, 0, n_dim * sizeof(double));
  memset(v_hessian, 0, n_dim * n_dim * sizeof(double));

  for (size_t first = 0; first < p_batch->n_batch; first += n_group) {
    const struct tb_batch group = tb_batch_part(p_batch, first, n_group);
    const size_t n_part = (group.n_batch + ROWS - 1) / ROWS;
    memset(v_part, 0, (size_t)2 * PARTS * n_padded * sizeof(double));
    for (size_t p = 0; p < n_part; ++p) {
      v_sums[p] = (struct glm_part){.v_gradient = v_part + 2 * p * n_padded,
                                    .v_cross = v_part + (2 * p + 1) * n_padded,
                                    .v_scaled = v_scaled + p * ROWS * n_padded};
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(static)
#endif
    for (size_t p = 0; p < n_part; ++p) {
      const struct tb_batch part = tb_batch_part(&group, p * ROWS, ROWS);
      glm_curvature_rows(p_glm, &point, &part, &v_sums[p]);
    }
    for (size_t p = 0; p < n_part; ++p) {
      v_total[0] += v_sums[p].log_lik;
      v_total[1] += v_sums[p].weight;
      v_total[2] += v_sums[p].aux_score;
      v_total[3] += v_sums[p].aux_curvature;
      for (size_t j = 0; j < n_coef; ++j) {
        v_gradient[j] += v_sums[p].v_gradient[j];
        v_cross[j] += v_sums[p].v_cross[j];
      }
    }
    tb_syrk(n_coef, group.n_batch, v_scaled, n_padded, v_hessian, n_dim);
  }
  if (p_glm->has_aux) {
    const struct tb_response_aux* p_aux = p_glm->response.type->p_aux;
    double* v_last = v_hessian + n_coef * n_dim;
    memcpy(v_last, v_cross, n_coef * sizeof(double));
    v_last[n_coef] = v_total[3] + p_aux->information * v_total[1];
    v_gradient[n_coef] = v_total[2];
  }
  for (size_t j = 0; j < n_dim; ++j) {
    for (size_t i = 0; i < j; ++i) {
      v_hessian[i * n_dim + j] = v_hessian[j * n_dim + i];
    }
  }
  *p_log_posterior = v_total[0] + tb_prior_curvature(&p_glm->prior,
                                                     v_theta,
                                                     v_round,
                                                     v_prior,
                                                     v_hessian,
                                                     n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    v_gradient[j] += v_prior[j];
  }
  free(v_scratch);
  return TB_STATUS_ok;
}

/* Many points at once: the predictors of a block of rows are one matrix
 * product, and responses, weights and offsets are read once a block. */
enum tb_status glm_log_lik_many(const struct tb_model* p_model,
                                const double* v_theta,
                                size_t n_point,
                                double* v_out) {
  enum { ROWS = 1024 };
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_padded = p_store->n_padded;
  double* v_scratch = malloc(
      ((size_t)ROWS * (n_padded + n_point + 4) + n_padded) * sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v_rows = v_scratch;
  double* v_eta = v_rows + (size_t)ROWS * n_padded; /* ROWS x n_point */
  double* v_y = v_eta + (size_t)ROWS * n_point;
  double* v_weight = v_y + ROWS;
  double* v_offset = v_weight + ROWS;
  double* v_log_lik = v_offset + ROWS;
  double* v_padded = v_log_lik + ROWS;
  memset(v_out, 0, n_point * sizeof(double));

  for (size_t start = 0; start < p_model->n_data; start += ROWS) {
    const size_t n_row = tb_min(ROWS, p_model->n_data - start);
    const double* v_block = p_store->type->block(p_store, start, n_row, v_rows);
    tb_gemm('T',
            n_row,
            n_point,
            p_glm->n_coef,
            v_block,
            n_padded,
            v_theta,
            p_model->n_dim,
            v_eta,
            ROWS);
    for (size_t k = 0; k < n_row; ++k) {
      const double* v_obs = glm_obs(p_glm, start + k);
      v_y[k] = v_obs[OBS_y];
      v_weight[k] = p_glm->k_weight ? v_obs[p_glm->k_weight] : 1;
      v_offset[k] = p_glm->k_offset ? v_obs[p_glm->k_offset] : 0;
    }
    for (size_t p = 0; p < n_point; ++p) {
      const struct glm_point point =
          glm_point_at(p_model, v_theta + p * p_model->n_dim, v_padded);
      double* v = v_eta + p * ROWS;
      for (size_t k = 0; k < n_row; ++k) {
        v[k] += v_offset[k];
      }
      const struct tb_response_rows rows = {.n_row = n_row,
                                            .n_predictor = 1,
                                            .v_eta = v,
                                            .v_y = v_y,
                                            .v_weight = v_weight,
                                            .p_point = &point.response};
      const struct tb_response_out out = {.v_log_density = v_log_lik};
      p_glm->response.type->evaluate(&rows, &out);
      double sum = 0;
      for (size_t k = 0; k < n_row; ++k) {
        sum += v_log_lik[k];
      }
      v_out[p] += sum;
    }
  }
  free(v_scratch);
  return TB_STATUS_ok;
}

double glm_largest_predictor(const struct tb_model* p_model,
                             const double* v_theta) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  double* v_padded = calloc(p_store->n_padded, sizeof(double));
  double largest = 0;
  if (v_padded == NULL) {
    return NAN;
  }
  memcpy(v_padded, v_theta, p_glm->n_coef * sizeof(double));
  for (size_t start = 0; start < p_model->n_data; start += BLOCK) {
    const struct tb_rows rows = {.n_row =
                                     tb_min(BLOCK, p_model->n_data - start),
                                 .start = start};
    double v_eta[BLOCK];
    p_store->type->dot(p_store, &rows, v_padded, v_eta);
    for (size_t k = 0; k < rows.n_row; ++k) {
      largest = fmax(largest, fabs(v_eta[k]));
    }
  }
  free(v_padded);
  return largest;
}
