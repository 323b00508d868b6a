/* Generalised linear models, rows of the design for sums of products; see
 * glm.c and passes/sums.h. */
#include "models/glm-inside.h"

#include <math.h>

/* sqrt(w_i) (x_i - c, y_i - o_i - c_y, 1) */
enum tb_status glm_design(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          const struct tb_batch* p_batch,
                          const double* v_center,
                          double* v_root,
                          size_t n_lead) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_coef = p_glm->n_coef;
  double* v_scratch = glm_scratch_at(p_glm, p_work->p_scratch).v_theta;

  if (p_model->p_frame != NULL) {
    return TB_STATUS_unsupported; /* rows that were rewritten */
  }
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const size_t row = tb_batch_row(p_batch, k);
    const double* v_row = p_store->type->block(p_store, row, 1, v_scratch);
    const double* v_obs = glm_obs(p_glm, row);
    const double offset = p_glm->k_offset ? v_obs[p_glm->k_offset] : 0;
    const double weight = p_glm->k_weight ? v_obs[p_glm->k_weight] : 1;
    const double root = sqrt(tb_batch_weight(p_batch, k) * weight);
    double* v_to = v_root + k * n_lead;
    for (size_t j = 0; j < n_coef; ++j) {
      v_to[j] = root * (v_row[j] - v_center[j]);
    }
    v_to[n_coef] = root * (v_obs[OBS_y] - offset - v_center[n_coef]);
    v_to[n_coef + 1] = root;
  }
  return TB_STATUS_ok;
}
