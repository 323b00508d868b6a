/* Rows with several predictors: passes over all of them, and to second order;
 * see predictors.c, models/expansion.h. With h_i the negative Hessian of l_i in
 * the inner coordinates of a row,
 *
 *   -H_i in (b_k, b_m)  h_km x_k x_m^T,  (b_k, s)  x_k h_ks,  (s, s')  h_ss'
 *   a_i  = (u_ik x_ik, d_i),  (u, d) = slopes - slopes there + h t,
 *   t    = the row's inner coordinates - those there
 *
 *   symbol   variable   shape              owner
 *   h_i      v_bend     n_inner x n_inner  scratch, for each row of a block
 *            v_record   n_data             caller: largest |eta| of a row
 */
#include "models/predictors-inside.h"

#include "base/blas.h"
#include "models/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t predictors_pass_size(const struct tb_model* p_model,
                            size_t n_row,
                            size_t n_point) {
  const size_t own = predictors_scratch_size(p_model->p_self, true);
  (void)n_point;
  return tb_max(tb_blocks_workspace_size(p_model, n_row),
                own + p_model->n_dim * sizeof(double));
}

/* The block of b_k and b_m <= k, and where they differ that of b_m and b_k */
static void add_block(const struct predictors* p,
                      size_t n_row,
                      size_t k,
                      size_t m,
                      const struct predictors_scratch* p_s,
                      double* v_hessian,
                      size_t n_dim) {
  const size_t n = p->n_coef, n_square = p->n_inner * p->n_inner;
  const size_t n_k = predictors_width(p, k), n_m = predictors_width(p, m);
  const size_t at_k = p->v_first[k], at_m = p->v_first[m];
  for (size_t i = 0; i < n_row; ++i) {
    const double h = p_s->v_bend[i * n_square + k * p->n_inner + m];
    for (size_t j = 0; j < n_k; ++j) {
      p_s->v_other[i * n + j] = h * p_s->v_x[i * n + at_k + j];
    }
  }
  tb_gemm_op('N',
             'T',
             n_k,
             n_m,
             n_row,
             p_s->v_other,
             n,
             p_s->v_x + at_m,
             n,
             0,
             p_s->v_block,
             n_k);
  for (size_t j = 0; j < n_m; ++j) {
    for (size_t i = 0; i < n_k; ++i) {
      const double h =
          k != m
              ? p_s->v_block[j * n_k + i]
              : 0.5 * (p_s->v_block[j * n_k + i] + p_s->v_block[i * n_k + j]);
      v_hessian[(at_m + j) * n_dim + at_k + i] += h;
      if (k != m) {
        v_hessian[(at_k + i) * n_dim + at_m + j] += h;
      }
    }
  }
}

/* Rows and columns of what all rows share */
static void add_shared(const struct predictors* p,
                       size_t n_row,
                       const struct predictors_scratch* p_s,
                       double* v_hessian,
                       size_t n_dim) {
  const size_t n = p->n_coef, n_inner = p->n_inner, n_eta = p->n_eta;
  for (size_t i = 0; i < n_row; ++i) {
    const double* v_own = p_s->v_bend + i * n_inner * n_inner;
    const double* v_x = p_s->v_x + i * n;
    for (size_t a = n_eta; a < n_inner; ++a) {
      const size_t at = n + a - n_eta;
      for (size_t k = 0; k < n_eta; ++k) {
        const double cross = v_own[a * n_inner + k];
        for (size_t j = p->v_first[k]; j < p->v_first[k + 1]; ++j) {
          v_hessian[at * n_dim + j] += cross * v_x[j];
          v_hessian[j * n_dim + at] += cross * v_x[j];
        }
      }
      for (size_t b = n_eta; b < n_inner; ++b) {
        v_hessian[at * n_dim + n + b - n_eta] += v_own[a * n_inner + b];
      }
    }
  }
}

enum tb_status predictors_curvature(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const struct tb_curvature* p_sums) {
  const struct predictors* p = p_model->p_self;
  const size_t n = p->n_inner, n_dim = p_model->n_dim;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_work->p_scratch, true);
  for (size_t b = 0; b < p_batch->n_batch; b += PREDICTORS_BLOCK) {
    double v_log_lik[PREDICTORS_BLOCK];
    const size_t n_row = predictors_gather(p, p_batch, b, &s);
    const struct predictors_out out = {.v_log_lik = v_log_lik,
                                       .v_score = s.v_score,
                                       .v_bend = s.v_bend};
    predictors_look(p, v_theta, p_batch, b, n_row, &s, &out);
    for (size_t i = 0; i < n_row; ++i) {
      const double c = tb_batch_weight(p_batch, b + i);
      if (p_sums->p_log_lik != NULL) {
        *p_sums->p_log_lik += c * v_log_lik[i];
      }
      for (size_t k = 0; k < n; ++k) {
        s.v_score[i * n + k] *= c;
      }
      for (size_t k = 0; k < n * n; ++k) {
        s.v_bend[i * n * n + k] *= c;
      }
    }
    predictors_add(p, n_row, &s, s.v_score, p_sums->v_gradient, NULL);
    for (size_t k = 0; k < p->n_eta; ++k) {
      for (size_t m = 0; m <= k; ++m) {
        add_block(p, n_row, k, m, &s, p_sums->v_hessian, n_dim);
      }
    }
    add_shared(p, n_row, &s, p_sums->v_hessian, n_dim);
  }
  return TB_STATUS_ok;
}

void predictors_curvature_prior(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const double* v_round,
                                double weight,
                                const struct tb_curvature* p_sums) {
  const struct predictors* p = p_model->p_self;
  (void)weight;
  tb_curvature_add_prior(&p->prior,
                         v_theta,
                         v_round,
                         p_work->p_scratch,
                         p_sums);
}

/* A block of rows is gathered once for all points. */
enum tb_status predictors_log_lik_many(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       size_t n_point,
                                       const struct tb_batch* p_batch,
                                       double* v_sum) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_work->p_scratch, false);
  for (size_t b = 0; b < p_batch->n_batch; b += PREDICTORS_BLOCK) {
    double v_log_lik[PREDICTORS_BLOCK];
    const size_t n_row = predictors_gather(p, p_batch, b, &s);
    const struct predictors_out out = {.v_log_lik = v_log_lik};
    for (size_t k = 0; k < n_point; ++k) {
      const double* v_at = v_theta + k * p_model->n_dim;
      predictors_look(p, v_at, p_batch, b, n_row, &s, &out);
      for (size_t i = 0; i < n_row; ++i) {
        v_sum[k] += v_log_lik[i];
      }
    }
  }
  return TB_STATUS_ok;
}

double predictors_largest_predictor(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_work->p_scratch, false);
  double largest = 0;
  for (size_t b = 0; b < p_batch->n_batch; b += PREDICTORS_BLOCK) {
    const size_t n_row = predictors_gather(p, p_batch, b, &s);
    predictors_predict(p, v_theta, p_batch, b, n_row, &s);
    for (size_t k = 0; k < n_row * p->n_eta; ++k) {
      largest = fmax(largest, fabs(s.v_eta[k]));
    }
  }
  return largest;
}

/* -------------------------------------------------------------- expansions */

static size_t record_size(const struct tb_model* p_model) {
  (void)p_model;
  return sizeof(double);
}

static enum tb_status expand(const struct tb_model* p_model,
                             const double* v_at,
                             const struct tb_batch* p_batch,
                             void* p_record,
                             const struct tb_curvature* p_sums,
                             int n_threads) {
  const struct predictors* p = p_model->p_self;
  double* v_record = p_record;
  void* p_scratch = malloc(predictors_scratch_size(p, true));
  (void)n_threads;
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  const struct tb_workspace work = {.p_scratch = p_scratch};
  enum tb_status status = TB_STATUS_ok;
  for (size_t b = 0; b < p_batch->n_batch && status == TB_STATUS_ok;
       b += PREDICTORS_BLOCK) {
    const struct tb_batch part = tb_batch_part(p_batch, b, PREDICTORS_BLOCK);
    status = predictors_curvature(p_model, &work, v_at, &part, p_sums);
    const double* v_eta = predictors_scratch_at(p, p_scratch, true).v_eta;
    for (size_t i = 0; i < part.n_batch; ++i) {
      double largest = 0;
      for (size_t k = 0; k < p->n_eta; ++k) {
        largest = fmax(largest, fabs(v_eta[k * part.n_batch + i]));
      }
      v_record[b + i] = largest;
    }
  }
  free(p_scratch);
  return status;
}

static double
largest_of(const struct tb_model* p_model, const void* p_record, size_t n_row) {
  const double* v_record = p_record;
  double largest = 0;
  (void)p_model;
  for (size_t i = 0; i < n_row; ++i) {
    largest = fmax(largest, v_record[i]);
  }
  return largest;
}

/* v_score := weight (u, d) of row i of a block; v_shift: that of s */
static void go_beyond(const struct predictors* p,
                      const struct predictors_scratch* p_s,
                      size_t i,
                      size_t n_row,
                      double weight,
                      const double* v_shift) {
  const size_t n = p->n_inner, n_eta = p->n_eta;
  const double* v_bend = p_s->v_bend + i * n * n;
  for (size_t k = 0; k < n; ++k) {
    double sum = p_s->v_score[i * n + k] - p_s->v_before[i * n + k];
    for (size_t m = 0; m < n; ++m) {
      const double t =
          m < n_eta ? p_s->v_eta[m * n_row + i] - p_s->v_eta_at[m * n_row + i]
                    : v_shift[m - n_eta];
      sum += v_bend[k * n + m] * t;
    }
    p_s->v_score[i * n + k] = weight * sum;
  }
}

static enum tb_status beyond(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const void* p_record,
                             const double* v_at,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const struct tb_sums* p_sums) {
  const struct predictors* p = p_model->p_self;
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_work->p_scratch, false);
  double v_shift[PREDICTORS_MOST_INNER];
  (void)p_record;
  for (size_t k = 0; k < p->n_aux; ++k) {
    v_shift[k] = v_theta[p->n_coef + k] - v_at[p->n_coef + k];
  }
  for (size_t b = 0; b < p_batch->n_batch; b += PREDICTORS_BLOCK) {
    const size_t n_row = predictors_gather(p, p_batch, b, &s);
    const struct predictors_out there = {.v_score = s.v_before,
                                         .v_bend = s.v_bend};
    const struct predictors_out here = {.v_score = s.v_score};
    predictors_look(p, v_at, p_batch, b, n_row, &s, &there);
    memcpy(s.v_eta_at, s.v_eta, p->n_eta * n_row * sizeof(double));
    predictors_look(p, v_theta, p_batch, b, n_row, &s, &here);
    for (size_t i = 0; i < n_row; ++i) {
      go_beyond(p, &s, i, n_row, tb_batch_weight(p_batch, b + i), v_shift);
    }
    predictors_add(p,
                   n_row,
                   &s,
                   s.v_score,
                   p_sums->v_gradient,
                   p_sums->v_square);
  }
  return TB_STATUS_ok;
}

static bool has_remainders(const struct tb_model* p_model) {
  (void)p_model;
  return false;
}

const struct tb_model_expansion tb_predictors_expansion = {
    .record_size = record_size,
    .expand = expand,
    .largest_predictor = largest_of,
    .beyond = beyond,
    .has_remainders = has_remainders,
};
