/* Regressions with classes to second order; see classes.c, models/expansion.h.
 * With h_i the negative Hessian of l_i in the inner coordinates of a row,
 *
 *   -H_i in (b_k, b_m)  h_km x x^T,  (b_k, a)  x h_ka,  (a, a')  h_aa'
 *   a_i  = (u_ik x_i, d_i),  (u, d) = slopes - slopes there + h t,
 *   t    = the row's inner coordinates - those there
 *
 *   symbol   variable   shape              owner
 *   h_i      v_bend     n_inner x n_inner  scratch, for each row of a block
 *            v_record   n_data             caller: largest |eta| of a row
 */
#include "models/classes-inside.h"

#include "base/blas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t classes_pass_size(const struct tb_model* p_model,
                         size_t n_row,
                         size_t n_point) {
  (void)n_point;
  return tb_max(tb_blocks_workspace_size(p_model, n_row),
                classes_scratch_size(p_model->p_self, true));
}

/* v_other := h_km of each row times its covariates; v_bend: weights included */
static void scale_rows(const struct classes* p,
                       size_t n_row,
                       size_t at,
                       const struct classes_scratch* p_s) {
  const size_t n = p->n_coef, n_square = p->n_inner * p->n_inner;
  for (size_t i = 0; i < n_row; ++i) {
    const double h = p_s->v_bend[i * n_square + at];
    for (size_t j = 0; j < n; ++j) {
      p_s->v_other[i * n + j] = h * p_s->v_x[i * n + j];
    }
  }
}

/* The block of b_k and b_m, and where they differ that of b_m and b_k */
static void add_block(const struct classes* p,
                      size_t n_row,
                      size_t k,
                      size_t m,
                      const struct classes_scratch* p_s,
                      double* v_hessian,
                      size_t n_dim) {
  const size_t n = p->n_coef;
  scale_rows(p, n_row, k * p->n_inner + m, p_s);
  tb_gemm_op('N',
             'T',
             n,
             n,
             n_row,
             p_s->v_other,
             n,
             p_s->v_x,
             n,
             0,
             p_s->v_block,
             n);
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < n; ++i) {
      const double h =
          0.5 * (p_s->v_block[j * n + i] + p_s->v_block[i * n + j]);
      v_hessian[(m * n + j) * n_dim + k * n + i] += h;
      if (k != m) {
        v_hessian[(k * n + j) * n_dim + m * n + i] += h;
      }
    }
  }
}

/* Rows and columns of what all rows share: one predictor */
static void add_shared(const struct classes* p,
                       size_t n_row,
                       const struct classes_scratch* p_s,
                       double* v_hessian,
                       size_t n_dim) {
  const size_t n = p->n_coef, n_inner = p->n_inner,
               n_square = n_inner * n_inner;
  for (size_t i = 0; i < n_row; ++i) {
    const double* v_own = p_s->v_bend + i * n_square;
    for (size_t k = 0; k < p->n_shared; ++k) {
      double* v_column = v_hessian + (n + k) * n_dim;
      for (size_t m = 0; m < p->n_shared; ++m) {
        v_column[n + m] += v_own[(1 + k) * n_inner + 1 + m];
      }
      const double cross = v_own[1 + k];
      for (size_t j = 0; cross != 0 && j < n; ++j) {
        const double h = cross * p_s->v_x[i * n + j];
        v_column[j] += h;
        v_hessian[j * n_dim + n + k] += h;
      }
    }
  }
}

/* -Hessian of n_row rows whose v_bend is there, weights included */
static void add_bend(const struct classes* p,
                     size_t n_row,
                     const struct classes_scratch* p_s,
                     double* v_hessian,
                     size_t n_dim) {
  for (size_t k = 0; k < p->n_eta; ++k) {
    for (size_t m = 0; m <= k; ++m) {
      add_block(p, n_row, k, m, p_s, v_hessian, n_dim);
    }
  }
  add_shared(p, n_row, p_s, v_hessian, n_dim);
}

enum tb_status classes_curvature(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 const struct tb_curvature* p_sums) {
  const struct classes* p = p_model->p_self;
  const size_t n = p->n_inner;
  const struct classes_scratch s =
      classes_scratch_at(p, p_work->p_scratch, true);
  for (size_t b = 0; b < p_batch->n_batch; b += CLASSES_BLOCK) {
    double v_log_lik[CLASSES_BLOCK];
    const size_t n_row = classes_gather(p, p_batch, b, &s);
    const struct classes_out out = {v_log_lik, s.v_score, s.v_bend};
    classes_look(p, v_theta, p_batch, b, n_row, &s, &out);
    for (size_t i = 0; i < n_row; ++i) {
      const double c = classes_weight(p, p_batch, b + i);
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
    classes_add(p, n_row, &s, s.v_score, p_sums->v_gradient, NULL);
    add_bend(p, n_row, &s, p_sums->v_hessian, p_model->n_dim);
  }
  return TB_STATUS_ok;
}

void classes_curvature_prior(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const double* v_round,
                             double weight,
                             const struct tb_curvature* p_sums) {
  const struct classes* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n_all = p->n_eta * p->n_coef;
  double* v_prior = classes_scratch_at(p, p_work->p_scratch, false).v_along;
  (void)weight;
  const double log_prior = tb_prior_curvature(&p->prior,
                                              v_theta,
                                              v_round,
                                              v_prior,
                                              p_sums->v_hessian,
                                              n_dim);
  const double of_cuts =
      classes_prior_of_thresholds(p,
                                  v_theta + n_all,
                                  v_prior + n_all,
                                  p_sums->v_hessian + n_all * (n_dim + 1),
                                  n_dim);
  *p_sums->p_log_lik += log_prior + of_cuts;
  for (size_t j = 0; j < n_dim; ++j) {
    p_sums->v_gradient[j] += v_prior[j];
  }
}

/* -------------------------------------------------------------- expansions */

static size_t classes_record_size(const struct tb_model* p_model) {
  (void)p_model;
  return sizeof(double);
}

static enum tb_status classes_expand(const struct tb_model* p_model,
                                     const double* v_at,
                                     const struct tb_batch* p_batch,
                                     void* p_record,
                                     const struct tb_curvature* p_sums,
                                     int n_threads) {
  const struct classes* p = p_model->p_self;
  double* v_record = p_record;
  void* p_scratch = malloc(classes_scratch_size(p, true));
  (void)n_threads;
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  const struct tb_workspace work = {.p_scratch = p_scratch};
  enum tb_status status = TB_STATUS_ok;
  for (size_t b = 0; b < p_batch->n_batch && status == TB_STATUS_ok;
       b += CLASSES_BLOCK) {
    const struct tb_batch part = tb_batch_part(p_batch, b, CLASSES_BLOCK);
    status = classes_curvature(p_model, &work, v_at, &part, p_sums);
    const struct classes_scratch s = classes_scratch_at(p, p_scratch, true);
    for (size_t i = 0; i < part.n_batch; ++i) {
      double largest = 0;
      for (size_t k = 0; k < p->n_eta; ++k) {
        largest = fmax(largest, fabs(s.v_eta[i * p->n_eta + k]));
      }
      v_record[b + i] = largest;
    }
  }
  free(p_scratch);
  return status;
}

static double classes_largest(const struct tb_model* p_model,
                              const void* p_record,
                              size_t n_row) {
  (void)p_model;
  const double* v_record = p_record;
  double largest = 0;
  for (size_t i = 0; i < n_row; ++i) {
    largest = fmax(largest, v_record[i]);
  }
  return largest;
}

/* One row, whose predictors and slopes are at theta in v_eta and v_score, and
 * at v_at in v_eta_at, v_score_at and v_bend: v_score := weight (u, d) */
static void go_beyond(const struct classes* p,
                      const double* v_shift,
                      double weight,
                      const double* v_eta,
                      const double* v_eta_at,
                      const double* v_score_at,
                      const double* v_bend,
                      double* v_score) {
  const size_t n = p->n_inner, n_eta = p->n_eta;
  for (size_t k = 0; k < n; ++k) {
    double sum = v_score[k] - v_score_at[k];
    for (size_t m = 0; m < n; ++m) {
      const double t = m < n_eta ? v_eta[m] - v_eta_at[m] : v_shift[m - n_eta];
      sum += v_bend[k * n + m] * t;
    }
    v_score[k] = weight * sum;
  }
}

static enum tb_status classes_beyond(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const void* p_record,
                                     const double* v_at,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     const struct tb_sums* p_sums) {
  const struct classes* p = p_model->p_self;
  const size_t n = p->n_inner, n_eta = p->n_eta;
  const struct classes_scratch s =
      classes_scratch_at(p, p_work->p_scratch, false);
  double v_shift[CLASSES_MOST];
  (void)p_record;
  for (size_t k = 0; k < p->n_shared; ++k) {
    v_shift[k] = classes_shared(p, v_theta)[k] - classes_shared(p, v_at)[k];
  }
  for (size_t b = 0; b < p_batch->n_batch; b += CLASSES_BLOCK) {
    const size_t n_row = classes_gather(p, p_batch, b, &s);
    const struct classes_out there = {.v_score = s.v_before,
                                      .v_bend = s.v_bend};
    const struct classes_out here = {.v_score = s.v_score};
    classes_look(p, v_at, p_batch, b, n_row, &s, &there);
    memcpy(s.v_eta_at, s.v_eta, n_eta * n_row * sizeof(double));
    classes_look(p, v_theta, p_batch, b, n_row, &s, &here);
    for (size_t i = 0; i < n_row; ++i) {
      go_beyond(p,
                v_shift,
                classes_weight(p, p_batch, b + i),
                s.v_eta + i * n_eta,
                s.v_eta_at + i * n_eta,
                s.v_before + i * n,
                s.v_bend + i * n * n,
                s.v_score + i * n);
    }
    classes_add(p, n_row, &s, s.v_score, p_sums->v_gradient, p_sums->v_square);
  }
  return TB_STATUS_ok;
}

static bool classes_has_remainders(const struct tb_model* p_model) {
  (void)p_model;
  return false;
}

const struct tb_model_expansion classes_expansion = {
    .record_size = classes_record_size,
    .expand = classes_expand,
    .largest_predictor = classes_largest,
    .beyond = classes_beyond,
    .has_remainders = classes_has_remainders,
};
