/* The exact gradient and log posterior: every row, in order.
 *
 *   g_0(theta) + s sum_i g_i(theta)
 */
#include "gradients/minibatch.h"

#include "passes/rows.h"

#include <string.h>

static enum tb_status full_estimate(struct tb_chain* p_chain,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_posterior) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  const double scale = p_target->likelihood_scale;
  double* v_sum = p_chain->p_estimator_scratch;
  double log_lik = 0, log_prior = 0;
  const struct tb_sums sums = {.v_gradient = v_sum,
                               .p_log_lik =
                                   p_log_posterior == NULL ? NULL : &log_lik};
  memset(v_sum, 0, p_chain->n_dim * sizeof(double));
  enum tb_status status =
      tb_model_all_gradient(p_model, &p_chain->work, v_theta, &sums);
  if (status != TB_STATUS_ok) {
    return status;
  }
  status = p_model->type->prior(p_model,
                                &p_chain->work,
                                v_theta,
                                v_gradient,
                                p_log_posterior == NULL ? NULL : &log_prior);
  for (size_t j = 0; p_model->n_data > 0 && j < p_chain->n_dim; ++j) {
    v_gradient[j] += scale * v_sum[j];
  }
  if (p_log_posterior != NULL) {
    *p_log_posterior = log_prior + scale * log_lik;
  }
  tb_minibatch_exact(p_chain);
  p_chain->n_batch = p_model->n_data;
  p_chain->counts.n_row += (double)p_model->n_data;
  p_chain->counts.n_full += 1;
  return status;
}

const struct tb_estimator_type tb_estimator_full = {
    .name = "full",
    .citation = "the exact gradient",
    .flags = TB_ESTIMATOR_FULL | TB_ESTIMATOR_VARIANCE,
    .estimate = full_estimate,
    .v_test = {[TB_TEST_full] = &tb_test_full},
};
