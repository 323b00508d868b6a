/* What is left of a prior beyond its expansion at theta-hat,
 *
 *   e_0(theta) = log p(theta-hat) - log p(theta) + p_0^T delta
 *                - 1/2 delta^T P delta,  delta = theta - theta-hat,
 *
 * p_0 the gradient of log p there; 0 of one that is quadratic, with P.
 *
 *   symbol   variable    shape          owner
 *   p_0      v_prior     n_dim          cv2
 *   P        v_P         n_dim x n_dim  cv2
 *   delta    v_delta     n_dim          the caller
 */
#include "gradients/cv2-inside.h"

enum tb_status tb_cv2_prior_remainder(struct tb_chain* p_chain,
                                      const double* v_theta,
                                      const double* v_delta,
                                      double* p_e) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_model* p_model = tb_cv2_rows(p_chain);
  const size_t n_dim = p_model->n_dim;
  double log_prior = 0, linear = 0, bent = 0;
  *p_e = 0;
  if (p->is_quadratic) {
    return TB_STATUS_ok;
  }
  const enum tb_status status =
      p_model->type->prior(p_model,
                           &p_chain->work,
                           v_theta,
                           p_chain->p_estimator_scratch,
                           &log_prior);
  for (size_t j = 0; j < n_dim; ++j) {
    double sum = 0;
    for (size_t i = 0; i < n_dim; ++i) {
      sum += p->v_P[j * n_dim + i] * v_delta[i];
    }
    bent += sum * v_delta[j];
    linear += p->v_prior[j] * v_delta[j];
  }
  *p_e = p->log_prior - log_prior + linear - 0.5 * bent;
  return status;
}
