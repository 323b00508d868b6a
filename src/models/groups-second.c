/* Multilevel regressions to second order: passes for Newton's method, weights
 * of groups, and expansions about a point (models/expansion.h) by records
 *
 *   v^ (q), g_g (n_dim), H_g (n_dim (n_dim + 1) / 2)
 *
 * so that a step looks at a group once: a_g = g_g(theta) - g_g(at) + H_g delta,
 * H_g minus the Hessian. H_g is the quadrature's own; sums stay unbiased with
 * any, as long as it is the same in all of them.
 *
 * A group's weight is ||L^-1 H_g L^-T||_F: its leverage. For what is beyond
 * second order there is no bound as for rows; the third derivative of a sum of
 * n alike rows is of the order of H^(3/2) at most, and that is what "cubic"
 * is. */
#include "base/blas.h"
#include "base/clip.h"
#include "base/norm.h"
#include "models/blocks.h"
#include "models/expansion.h"
#include "models/groups-inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t
groups_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point) {
  (void)n_point;
  return tb_max(tb_blocks_workspace_size(p_model, n_row),
                groups_scratch_size(p_model, true));
}

enum tb_status groups_curvature(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_curvature* p_sums) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  const struct groups_scratch s =
      groups_scratch_at(p_model, p_work->p_scratch, true);
  const struct groups_point point = groups_point_at(p, v_theta, false);
  double log_lik;
  const struct groups_look look = {.p_log_lik = &log_lik,
                                   .v_gradient = s.v_gradient,
                                   .v_hessian = s.v_hessian};
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const double c = tb_batch_weight(p_batch, k);
    groups_look(p_model, &point, &s, tb_batch_row(p_batch, k), &look);
    *p_sums->p_log_lik += c * log_lik;
    for (size_t j = 0; j < n_dim; ++j) {
      p_sums->v_gradient[j] += c * s.v_gradient[j];
    }
    for (size_t j = 0; j < n_dim * n_dim; ++j) {
      p_sums->v_hessian[j] += c * s.v_hessian[j];
    }
  }
  return TB_STATUS_ok;
}

void groups_curvature_prior(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const double* v_round,
                            double weight,
                            const struct tb_curvature* p_sums) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  double* v_prior =
      groups_scratch_at(p_model, p_work->p_scratch, true).v_gradient;
  (void)weight;
  *p_sums->p_log_lik += tb_prior_curvature(&p->prior,
                                           v_theta,
                                           v_round,
                                           v_prior,
                                           p_sums->v_hessian,
                                           n_dim);
  *p_sums->p_log_lik +=
      groups_covariance_prior(p, v_theta, v_prior, p_sums->v_hessian, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    p_sums->v_gradient[j] += v_prior[j];
  }
}

/* ------------------------------------------------------------------ weights */

/* v (n x n, symmetric) := L^-1 v, and again from the other side */
static void
whiten_sides(size_t n, const double* v_chol, bool is_both, double* v) {
  tb_trsm('L', 'N', n, n, v_chol, n, v, n);
  for (size_t i = 0; is_both && i < n; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double swap = v[i * n + j];
      v[i * n + j] = v[j * n + i];
      v[j * n + i] = swap;
    }
  }
  if (is_both) {
    tb_trsm('L', 'N', n, n, v_chol, n, v, n);
  }
}

enum tb_status groups_weights(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              enum tb_weight_type type,
                              const double* v_theta,
                              const double* v_chol,
                              const struct tb_batch* p_batch,
                              double* v_out) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  const bool by_gradient = type == TB_WEIGHT_gradient;
  if (type == TB_WEIGHT_lipschitz || (!by_gradient && v_chol == NULL)) {
    return TB_STATUS_unsupported;
  }
  const struct groups_scratch s =
      groups_scratch_at(p_model, p_work->p_scratch, true);
  const struct groups_point point = groups_point_at(p, v_theta, false);
  const struct groups_look look = {.v_gradient = s.v_gradient,
                                   .v_hessian =
                                       by_gradient ? NULL : s.v_hessian};
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    groups_look(p_model, &point, &s, tb_batch_row(p_batch, k), &look);
    if (by_gradient) {
      v_out[k] = sqrt(tb_square_norm(s.v_gradient, n_dim));
      continue;
    }
    whiten_sides(n_dim, v_chol, type != TB_WEIGHT_hessian, s.v_hessian);
    const double size = sqrt(tb_square_norm(s.v_hessian, n_dim * n_dim));
    v_out[k] = type == TB_WEIGHT_cubic ? size * sqrt(size) : size;
  }
  return TB_STATUS_ok;
}

/* --------------------------------------------------------------- expansions */

static size_t record_length(const struct tb_model* p_model) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  return p->n_effect + n_dim + n_dim * (n_dim + 1) / 2;
}

static size_t second_record_size(const struct tb_model* p_model) {
  return tb_align(record_length(p_model) * sizeof(double));
}

/* the record of a group, at v_at */
static void make_record(const struct tb_model* p_model,
                        const struct groups_point* p_point,
                        const struct groups_scratch* p_s,
                        size_t group,
                        double* v_record) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  double* v_gradient = v_record + p->n_effect;
  double* v_to = v_gradient + n_dim;
  const struct groups_look look = {.v_gradient = v_gradient,
                                   .v_hessian = p_s->v_hessian,
                                   .v_mode = v_record};
  groups_look(p_model, p_point, p_s, group, &look);
  /* looked at again as beyond() does, so that nothing is left at the point */
  const struct groups_look again = {.v_gradient = v_gradient,
                                    .v_start = v_record};
  groups_look(p_model, p_point, p_s, group, &again);
  for (size_t i = 0; i < n_dim; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      *v_to++ = p_s->v_hessian[i * n_dim + j];
    }
  }
}

static void add_record(const struct tb_model* p_model,
                       const double* v_record,
                       const struct tb_curvature* p_sums) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  const double* v_gradient = v_record + p->n_effect;
  const double* v_from = v_gradient + n_dim;
  for (size_t i = 0; i < n_dim; ++i) {
    p_sums->v_gradient[i] += v_gradient[i];
    for (size_t j = 0; j <= i; ++j, ++v_from) {
      p_sums->v_hessian[i * n_dim + j] += *v_from;
      p_sums->v_hessian[j * n_dim + i] += j < i ? *v_from : 0;
    }
  }
}

static enum tb_status second_expand(const struct tb_model* p_model,
                                    const double* v_at,
                                    const struct tb_batch* p_batch,
                                    void* p_record,
                                    const struct tb_curvature* p_sums,
                                    int n_threads) {
  const struct groups* p = p_model->p_self;
  const size_t n_record = second_record_size(p_model);
  const size_t n_work = groups_scratch_size(p_model, true);
  const size_t n_group = p_batch->n_batch;
  const struct groups_point point = groups_point_at(p, v_at, false);
  bool is_short = false;
  (void)n_threads;
#ifdef _OPENMP
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
#endif
  {
    char* p_memory = malloc(n_work + 64);
    if (p_memory == NULL) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
      is_short = true;
    }
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 16)
#endif
    for (size_t k = 0; k < n_group; ++k) {
      if (p_memory != NULL) {
        const struct groups_scratch s =
            groups_scratch_at(p_model, p_memory, true);
        double* v_record = (double*)(void*)((char*)p_record + k * n_record);
        make_record(p_model, &point, &s, p_batch->start + k, v_record);
      }
    }
    free(p_memory);
  }
  if (is_short) {
    return TB_STATUS_memory;
  }
  for (size_t k = 0; k < n_group; ++k) {
    const void* p_one = (const char*)p_record + k * n_record;
    add_record(p_model, p_one, p_sums);
  }
  if (p_sums->p_log_lik != NULL) {
    return TB_STATUS_unsupported; /* no pass asks for it */
  }
  return TB_STATUS_ok;
}

static enum tb_status second_beyond(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const void* p_record,
                                    const double* v_at,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const struct tb_sums* p_sums) {
  const struct groups* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  const size_t n_record = second_record_size(p_model);
  const struct groups_scratch s =
      groups_scratch_at(p_model, p_work->p_scratch, false);
  const struct groups_point point = groups_point_at(p, v_theta, false);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const size_t group = tb_batch_row(p_batch, k);
    const double c = tb_batch_weight(p_batch, k);
    const double* v_record =
        (const double*)(const void*)((const char*)p_record + group * n_record);
    const double* v_gradient = v_record + p->n_effect;
    const double* v_hessian = v_gradient + n_dim;
    const struct groups_look look = {.v_gradient = s.v_gradient,
                                     .v_start = v_record};
    groups_look(p_model, &point, &s, group, &look);
    for (size_t i = 0; i < n_dim; ++i) {
      s.v_gradient[i] -= v_gradient[i];
    }
    for (size_t i = 0; i < n_dim; ++i) {
      for (size_t j = 0; j <= i; ++j, ++v_hessian) {
        s.v_gradient[i] += *v_hessian * (v_theta[j] - v_at[j]);
        s.v_gradient[j] += j < i ? *v_hessian * (v_theta[i] - v_at[i]) : 0;
      }
    }
    for (size_t j = 0; j < n_dim; ++j) {
      const double term = c * s.v_gradient[j];
      p_sums->v_gradient[j] += term;
      if (p_sums->v_square != NULL) {
        p_sums->v_square[j] += term * term;
      }
    }
  }
  return TB_STATUS_ok;
}

static bool second_has_remainders(const struct tb_model* p_model) {
  (void)p_model;
  return false;
}

/* of no use to who asks: groups have effects of their own */
static double second_largest_predictor(const struct tb_model* p_model,
                                       const void* p_record,
                                       size_t n_row) {
  (void)p_model;
  (void)p_record;
  (void)n_row;
  return 0;
}

const struct tb_model_expansion groups_expansion = {
    .record_size = second_record_size,
    .expand = second_expand,
    .largest_predictor = second_largest_predictor,
    .beyond = second_beyond,
    .has_remainders = second_has_remainders,
};
