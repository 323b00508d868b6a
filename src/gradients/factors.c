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

#include <math.h>
#include <stdlib.h>

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

static enum tb_status factors_set_norms(struct tb_factors* p) {
  const struct tb_model* p_model = p->p_cv2->expansion.p_model;
  const struct tb_frame* p_frame = p->p_ball;
  const size_t n_dim = p_model->n_dim;
  const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
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
  const enum tb_status status =
      p_model->type->expansion->norms(p_model, v_chol, &all, p->v_norm);
  free(v_chol);
  return status;
}

/* "awkward" (rows that are as they are, from 0 and in order), "metric" (L of
 * its coordinates, n_dim x n_dim), "whole_prior" (0/1) and "untested" (0/1: no
 * test will be asked). */
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
  if (p_metric == NULL) {
    return TB_STATUS_ok;
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
  p->n_byte = (n_norm + p_model->n_dim) * sizeof(double) +
              n_awkward * sizeof(size_t);
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
    p_own->n_awkward = n_awkward;
    p_own->v_awkward = (size_t*)(void*)(p_own->law.v_mean + p_model->n_dim);
    status = factors_set_law(p);
  }
  if (status == TB_STATUS_ok) {
    status = factors_set_surrogate(p, p_params);
  }
  p->p_ball =
      is_ahead ? &p->p_drawn->ball : tb_surrogate_frame(&p->surrogate);
  if (status == TB_STATUS_ok && has_norms) {
    status = factors_set_norms(p);
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
