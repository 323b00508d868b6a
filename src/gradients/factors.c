/* What the factorised test keeps of the rows is made and let go; see
 * gradients/factorised.c.
 *
 *   symbol     variable   shape   owner
 *   L, m       law        n_dim^2 factors
 *   ||x~_i||   v_norm     n_data  factors
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
  const size_t n_dim = p_cv2->expansion.p_model->n_dim;
  double* v_chol = malloc(n_dim * n_dim * sizeof(double));
  if (v_chol == NULL) {
    return TB_STATUS_memory;
  }
  enum tb_status status =
      tb_chol(n_dim, p_cv2->v_bend, v_chol) ? TB_STATUS_ok : TB_STATUS_singular;
  if (status == TB_STATUS_ok) {
    status = tb_frame_create(&p->law.frame,
                             n_dim,
                             p_cv2->expansion.v_at,
                             v_chol,
                             false);
  }
  if (status == TB_STATUS_ok) {
    const struct tb_model* p_model = p_cv2->expansion.p_model;
    tb_frame_pull_gradient(&p->law.frame, p_cv2->v_sum, p->law.v_mean);
    const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
    if (p->p_drawn == NULL) {
      status =
          p_model->type->expansion->norms(p_model, v_chol, &all, p->v_norm);
    }
  }
  free(v_chol);
  return status;
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
  const size_t n_norm = is_ahead ? 0 : p_model->n_data;
  p->p_cv2 = p_cv2;
  p->n_byte = (n_norm + p_model->n_dim) * sizeof(double);
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
    p->p_ball = is_ahead ? &p->p_drawn->ball : &p->law.frame;
    p->law.v_mean = p->v_norm + n_norm;
    status = factors_set_law(p);
  }
  if (status == TB_STATUS_ok && !is_ahead) {
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
  tb_frame_destroy(&p->law.frame);
  tb_big_free(p->v_norm, p->n_byte);
  free(p);
}

const struct tb_law* tb_factors_law(const struct tb_factors* p) {
  return p == NULL ? NULL : &p->law;
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
