/* What the factorised test keeps of the rows is made and let go; see
 * gradients/factorised.c.
 *
 *   symbol     variable             shape      owner
 *   L, m       surrogate.law        n_dim^2    factors
 *   S          surrogate.v_awkward  n_awkward  factors
 *   ||x~_i||   v_norm               n_data     factors
 */
#include "gradients/factors.h"
#include "gradients/factors-inside.h"

#include "base/chol.h"
#include "base/memory.h"
#include "base/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* L, and the mean L^{-1} (g_0(ref) + s G) of z */
static enum tb_status factors_set_law(struct tb_factors* p) {
  const struct tb_cv2* p_cv2 = p->p_cv2;
  struct tb_law* p_law = &p->surrogate.law;
  const size_t n_dim = p_cv2->expansion.p_model->n_dim;
  double* v_chol = malloc(n_dim * n_dim * sizeof(double));
  if (v_chol == NULL) {
    return TB_STATUS_memory;
  }
  enum tb_status status =
      tb_chol(n_dim, p_cv2->v_bend, v_chol) ? TB_STATUS_ok : TB_STATUS_singular;
  if (status == TB_STATUS_ok) {
    status = tb_frame_create(&p_law->frame,
                             n_dim,
                             p_cv2->expansion.v_at,
                             v_chol,
                             false);
  }
  if (status == TB_STATUS_ok) {
    tb_frame_pull_gradient(&p_law->frame, p_cv2->v_sum, p_law->v_mean);
  }
  free(v_chol);
  return status;
}

/* With hyperparameters: the law given these, and the metric's frame; without
 * them it need not be a law. */
static enum tb_status factors_set_scales(struct tb_factors* p,
                                         const struct tb_params* p_params) {
  const struct tb_cv2* p_cv2 = p->p_cv2;
  const size_t n_dim = p_cv2->expansion.p_model->n_dim;
  const struct tb_param* p_metric = tb_params_find(p_params, "metric");
  const struct tb_param* p_held = tb_params_find(p_params, "held");
  const size_t n_held = p_held == NULL ? 0 : p_held->n_value / n_dim;
  if (p_metric == NULL || p_metric->n_value != n_dim * n_dim ||
      (p_held != NULL && p_held->n_value != n_held * n_dim) ||
      4 * n_held > n_dim) {
    return TB_STATUS_argument;
  }
  p->surrogate.scales =
      (struct tb_mixture_law){.n_coef = n_dim,
                              .v_center = p_cv2->expansion.v_at,
                              .v_slope = p_cv2->v_sum,
                              .v_bend = p_cv2->v_bend,
                              .p_mixtures = p_cv2->p_mixtures};
  const enum tb_status status =
      tb_mixture_base_make(&p->surrogate.scales,
                           n_held,
                           p_held == NULL ? NULL : p_held->v_value);
  return status != TB_STATUS_ok ? status
                                : tb_frame_create(&p->surrogate.law.frame,
                                                  n_dim,
                                                  p_cv2->expansion.v_at,
                                                  p_metric->v_value,
                                                  false);
}

/* What the ball's L says of the rows, and of how far places are. */
static enum tb_status factors_set_norms(struct tb_factors* p, bool has_norms) {
  const struct tb_model* p_model = p->p_cv2->expansion.p_model;
  const struct tb_model_expansion* type = p_model->type->expansion;
  const struct tb_frame* p_frame = p->p_ball;
  const size_t n_dim = p_model->n_dim;
  const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
  enum tb_status status = TB_STATUS_ok;
  if (!has_norms && type->reach == NULL) {
    return TB_STATUS_ok;
  }
  double* v_chol = malloc(n_dim * n_dim * sizeof(double));
  if (v_chol == NULL) {
    return TB_STATUS_memory;
  }
  /* by columns, as it came */
  for (size_t j = 0; j < n_dim; ++j) {
    for (size_t i = 0; i < n_dim; ++i) {
      v_chol[j * n_dim + i] = p_frame->v_chol[i * n_dim + j];
    }
  }
  if (type->reach != NULL) {
    p->v_reach = malloc(type->reach_size(p_model) * sizeof(double));
    status = p->v_reach == NULL ? TB_STATUS_memory
                                : type->set_reach(p_model, v_chol, p->v_reach);
  }
  if (has_norms && status == TB_STATUS_ok) {
    status = type->norms(p_model, v_chol, &all, p->v_norm);
  }
  free(v_chol);
  return status;
}

/* "lines" (n_dim x n_line): their curvature, and their rows. */
static enum tb_status factors_set_lines(struct tb_factors* p,
                                        const struct tb_param* p_lines) {
  const struct tb_model* p_model = p->p_cv2->expansion.p_model;
  const size_t n_dim = p_model->n_dim;
  struct tb_surrogate* p_own = &p->surrogate;
  struct tb_lines* p_out = &p_own->lines;
  const size_t n_line = p_lines->n_value / n_dim;
  const size_t n_awkward = p_own->n_awkward;
  if (n_line == 0 || p_lines->n_value != n_line * n_dim) {
    return TB_STATUS_argument;
  }
  const size_t n_number = n_line * (2 * n_dim + 2);
  const size_t n_most = n_line * n_awkward; /* rows that lines move */
  const size_t n_byte = (n_number + n_most) * sizeof(double) +
                        (n_line + 1 + n_most) * sizeof(size_t);
  const size_t n_work = tb_model_work_size(p_model, TB_N_AHEAD);
  p_out->v_line = malloc(n_byte);
  double* v_t = malloc(TB_N_AHEAD * sizeof(double));
  void* p_scratch = calloc(1, n_work + 64);
  if (p_out->v_line == NULL || v_t == NULL || p_scratch == NULL) {
    free(v_t);
    free(p_scratch);
    return TB_STATUS_memory;
  }
  const struct tb_workspace work = {.p_scratch = p_scratch};
  const struct tb_batch all = {.n_batch = n_awkward,
                               .v_index = p_own->v_awkward,
                               .weight = 1};
  const bool has_steps = p_model->type->expansion->steps != NULL;
  p_out->n_line = n_line;
  p_out->v_pull = p_out->v_line + n_line * n_dim;
  p_out->v_curve = p_out->v_pull + n_line * n_dim;
  p_out->v_slope = p_out->v_curve + n_line;
  p_out->v_step = p_out->v_slope + n_line;
  p_out->v_first = (size_t*)(void*)(p_out->v_step + n_most);
  p_out->v_row = p_out->v_first + n_line + 1;
  memcpy(p_out->v_line, p_lines->v_value, n_line * n_dim * sizeof(double));
  p_out->v_first[0] = 0;
  for (size_t k = 0; k < n_line; ++k) {
    const double* v_line = p_out->v_line + k * n_dim;
    double* v_pull = p_out->v_pull + k * n_dim;
    p_out->v_curve[k] = 0;
    p_out->v_slope[k] = 0;
    for (size_t j = 0; j < n_dim; ++j) {
      v_pull[j] = 0;
      for (size_t i = 0; i < n_dim; ++i) {
        v_pull[j] += p->p_cv2->v_bend[j * n_dim + i] * v_line[i];
      }
      p_out->v_curve[k] += v_pull[j] * v_line[j];
      p_out->v_slope[k] += p_own->v_slope[j] * v_line[j];
    }
    size_t n = p_out->v_first[k];
    for (size_t first = 0; first < n_awkward; first += TB_N_AHEAD) {
      const struct tb_batch part = tb_batch_part(&all, first, TB_N_AHEAD);
      if (has_steps) {
        p_model->type->expansion->steps(p_model, &work, v_line, &part, v_t);
      }
      for (size_t i = 0; i < part.n_batch; ++i) {
        /* rows of several predictors are looked at wherever a line goes */
        if (!has_steps || v_t[i] != 0) {
          p_out->v_step[n] = has_steps ? v_t[i] : 0;
          p_out->v_row[n++] = part.v_index[i];
        }
      }
    }
    p_out->v_first[k + 1] = n;
  }
  free(v_t);
  free(p_scratch);
  return TB_STATUS_ok;
}

/* v_d (n_dim x n) := D L^{-T} with L L^T = D^T A D, so that it has I there */
static enum tb_status
factors_norm_free(const struct tb_factors* p, size_t n, double* v_d) {
  const size_t n_dim = p->p_cv2->expansion.p_model->n_dim;
  const double* v_A = p->p_cv2->v_bend;
  double* v_l = malloc((n * n + n_dim) * sizeof(double));
  if (v_l == NULL) {
    return TB_STATUS_memory;
  }
  double* v_bent = v_l + n * n;
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_bent[j] = 0;
      for (size_t i = 0; i < n_dim; ++i) {
        v_bent[j] += v_A[j * n_dim + i] * v_d[k * n_dim + i];
      }
    }
    for (size_t l = k; l < n; ++l) {
      v_l[k * n + l] = 0;
      for (size_t j = 0; j < n_dim; ++j) {
        v_l[k * n + l] += v_bent[j] * v_d[l * n_dim + j];
      }
    }
  }
  const bool is_proper = tb_chol(n, v_l, v_l);
  for (size_t k = 0; k < n && is_proper; ++k) {
    double* v_own = v_d + k * n_dim;
    for (size_t l = 0; l < k; ++l) {
      for (size_t j = 0; j < n_dim; ++j) {
        v_own[j] -= v_l[l * n + k] * v_d[l * n_dim + j];
      }
    }
    for (size_t j = 0; j < n_dim; ++j) {
      v_own[j] /= v_l[k * n + k];
    }
  }
  free(v_l);
  return is_proper ? TB_STATUS_ok : TB_STATUS_argument;
}

/* "free" (n_dim x n_free) */
static enum tb_status factors_set_free(struct tb_factors* p,
                                       const struct tb_param* p_free) {
  const size_t n_dim = p->p_cv2->expansion.p_model->n_dim;
  struct tb_surrogate* p_own = &p->surrogate;
  const size_t n_free = p_free->n_value / n_dim;
  if (n_free == 0 || n_free > n_dim || p_free->n_value != n_free * n_dim) {
    return TB_STATUS_argument;
  }
  p_own->v_free = malloc((2 * p_free->n_value + n_free) * sizeof(double));
  if (p_own->v_free == NULL) {
    return TB_STATUS_memory;
  }
  p_own->n_free = n_free;
  p_own->v_free_pull = p_own->v_free + p_free->n_value;
  p_own->v_free_slope = p_own->v_free_pull + p_free->n_value;
  memcpy(p_own->v_free, p_free->v_value, p_free->n_value * sizeof(double));
  const enum tb_status status = factors_norm_free(p, n_free, p_own->v_free);
  for (size_t k = 0; k < n_free && status == TB_STATUS_ok; ++k) {
    tb_columns_dot(p->p_cv2->v_bend, /* symmetric */
                   n_dim,
                   n_dim,
                   p_own->v_free + k * n_dim,
                   p_own->v_free_pull + k * n_dim);
  }
  if (status == TB_STATUS_ok) {
    tb_columns_dot(p_own->v_free,
                   n_dim,
                   n_free,
                   p_own->v_slope,
                   p_own->v_free_slope);
  }
  return status;
}

/* "awkward" (rows that are as they are, from 0 and in order), "metric" (L of
 * its coordinates, n_dim x n_dim), "free" and "lines" (directions of moves, in
 * columns), "held" (with hyperparameters: functionals that draws of all else
 * hold, in columns), "whole_prior" (0/1), "untested" (0/1: no test will be
 * asked) and, for shells, "radius" and "phi". */
static enum tb_status factors_set_surrogate(struct tb_factors* p,
                                            const struct tb_params* p_params) {
  const struct tb_model* p_model = p->p_cv2->expansion.p_model;
  struct tb_surrogate* p_own = &p->surrogate;
  const struct tb_param* p_awkward = tb_params_find(p_params, "awkward");
  const struct tb_param* p_metric = tb_params_find(p_params, "metric");
  const bool is_whole = tb_params_number(p_params, "whole_prior", 0) != 0;
  p_own->has_prior = is_whole && (!p->p_cv2->is_quadratic ||
                                  p_model->type->is_outside != NULL);
  if (!tb_take_rows(p_awkward, p_model->n_data, p_own->v_awkward)) {
    return TB_STATUS_argument;
  }
  for (size_t k = 1; k < p_own->n_awkward; ++k) {
    if (p_own->v_awkward[k] <= p_own->v_awkward[k - 1]) {
      return TB_STATUS_argument;
    }
  }
  const struct tb_param* p_lines = tb_params_find(p_params, "lines");
  const struct tb_param* p_free = tb_params_find(p_params, "free");
  enum tb_status status = TB_STATUS_ok;
  if (p_lines != NULL) {
    status = factors_set_lines(p, p_lines);
  }
  if (status == TB_STATUS_ok && p_free != NULL) {
    status = factors_set_free(p, p_free);
  }
  if (p_metric == NULL || status != TB_STATUS_ok ||
      p->p_cv2->p_mixtures != NULL) {
    return status;
  }
  if (p_metric->n_value != p_model->n_dim * p_model->n_dim) {
    return TB_STATUS_argument;
  }
  return tb_frame_create(&p_own->metric,
                         p_model->n_dim,
                         p->p_cv2->expansion.v_at,
                         p_metric->v_value,
                         false);
}

enum tb_status tb_factors_make(const struct tb_cv2* p_cv2,
                               const struct tb_params* p_params,
                               struct tb_factors** pp_factors) {
  const struct tb_model* p_model = p_cv2->expansion.p_model;
  const struct tb_model_expansion* type = p_model->type->expansion;
  *pp_factors = NULL;
  if (type == NULL || !type->has_remainders(p_model)) {
    return TB_STATUS_unsupported;
  }
  struct tb_factors* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  const bool is_ahead = tb_params_find(p_params, "ahead_rows") != NULL;
  const struct tb_param* p_awkward = tb_params_find(p_params, "awkward");
  p->is_untested = tb_params_number(p_params, "untested", 0) != 0;
  const bool has_norms = !is_ahead && !p->is_untested;
  const size_t n_norm = has_norms ? p_model->n_data : 0;
  const size_t n_awkward = p_awkward == NULL ? 0 : p_awkward->n_value;
  p->p_cv2 = p_cv2;
  p->radius =
      tb_params_number(p_params, "radius", sqrt((double)p_model->n_dim) + 2.5);
  p->phi = tb_params_number(p_params,
                            "phi",
                            2 * pow((double)p_model->n_dim + 1, 1.5));
  if (!(p->radius > 0) || !isfinite(p->radius) || !(p->phi > 0) ||
      n_awkward > TB_AWKWARD_MOST) {
    free(p);
    return TB_STATUS_argument;
  }
  p->n_byte =
      (n_norm + p_model->n_dim) * sizeof(double) + n_awkward * sizeof(size_t);
  p->everything =
      (struct tb_shell){.radius = INFINITY, .n_always = p_model->n_data};
  for (size_t k = 0; k < TB_N_SHELL; ++k) {
    atomic_init(&p->v_shell[k], NULL);
  }
  p->v_norm = tb_big_alloc(p->n_byte);
  enum tb_status status = p->v_norm == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  if (status == TB_STATUS_ok && is_ahead) {
    status = tb_drawn_make(p_cv2, p_params, &p->p_drawn);
  }
  if (status == TB_STATUS_ok) {
    struct tb_surrogate* p_own = &p->surrogate;
    p_own->law.v_mean = p->v_norm + n_norm;
    p_own->v_slope = p_cv2->v_sum;
    p_own->n_awkward = n_awkward;
    p_own->v_awkward = (size_t*)(void*)(p_own->law.v_mean + p_model->n_dim);
    status = p_cv2->p_mixtures == NULL ? factors_set_law(p)
                                       : factors_set_scales(p, p_params);
  }
  if (status == TB_STATUS_ok) {
    status = factors_set_surrogate(p, p_params);
  }
  if (status == TB_STATUS_ok) {
    p->p_ball =
        is_ahead ? &p->p_drawn->ball : tb_surrogate_frame(&p->surrogate);
  }
  if (status == TB_STATUS_ok && !p->is_untested) {
    status = factors_set_norms(p, has_norms);
  }
  if (status == TB_STATUS_ok && has_norms) {
    const struct tb_shell* p_first;
    status = tb_shell_for(p, 0, &p_first);
  }
  if (status != TB_STATUS_ok) {
    tb_factors_destroy(p);
    return status;
  }
  *pp_factors = p;
  return TB_STATUS_ok;
}

void tb_factors_destroy(struct tb_factors* p) {
  if (p == NULL) {
    return;
  }
  tb_shells_destroy(p);
  tb_drawn_destroy(p->p_drawn);
  tb_frame_destroy(&p->surrogate.law.frame);
  tb_frame_destroy(&p->surrogate.metric);
  tb_mixture_base_free(&p->surrogate.scales);
  free(p->surrogate.v_free);
  free(p->surrogate.lines.v_line);
  free(p->v_reach);
  tb_big_free(p->v_norm, p->n_byte);
  free(p);
}

const struct tb_surrogate* tb_factors_surrogate(const struct tb_factors* p) {
  return p == NULL ? NULL : &p->surrogate;
}

enum tb_status tb_factors_shell(struct tb_factors* p,
                                double norm,
                                struct tb_shell_info* p_info) {
  const struct tb_shell* p_shell;
  const enum tb_status status = tb_shell_for(p, norm, &p_shell);
  if (status == TB_STATUS_ok) {
    *p_info = (struct tb_shell_info){p_shell->radius,
                                     p_shell->total,
                                     p_shell->n_always};
  }
  return status;
}
