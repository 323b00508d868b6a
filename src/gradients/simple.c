/* The plain minibatch estimate (Welling & Teh 2011; weighted: Putcha, Nemeth &
 * Fearnhead 2023, eq. 8):
 *
 *   g_0(theta) + (1/n) sum_{i in S} g_i(theta) / p_i
 */
#include "gradients/minibatch.h"

static enum tb_status simple_estimate(struct tb_chain* p_chain,
                                      const double* v_theta,
                                      double* v_gradient,
                                      double* p_log_posterior) {
  struct tb_batch batch;
  return tb_minibatch_estimate(p_chain,
                               v_theta,
                               NULL,
                               NULL,
                               &batch,
                               NULL,
                               v_gradient,
                               p_log_posterior);
}

const struct tb_estimator_type tb_estimator_simple = {
    .name = "simple",
    .citation = "Welling & Teh (2011), ICML",
    .flags = TB_ESTIMATOR_VARIANCE,
    .estimate = simple_estimate,
    .v_test = {[TB_TEST_full] = &tb_test_pass,
               [TB_TEST_minibatch] = &tb_test_minibatch},
};
