#include "gradients/gradient.h"

enum tb_status tb_chain_gradient(struct tb_chain* p_chain,
                                 const double* v_theta,
                                 double* v_gradient,
                                 double* p_log_posterior) {
  const struct tb_target* p_target = p_chain->p_target;
  const double* v_at = v_theta;
  if (p_chain->v_folded != NULL) {
    tb_model_fold(p_target->p_model, v_theta, p_chain->v_folded);
    v_at = p_chain->v_folded;
  }
  const enum tb_status status =
      p_target->p_estimator->type->estimate(p_chain,
                                            v_at,
                                            v_gradient,
                                            p_log_posterior);
  for (size_t j = 0; v_at != v_theta && j < p_chain->n_dim; ++j) {
    v_gradient[j] *= copysign(1, v_theta[j]);
  }
  return status;
}
