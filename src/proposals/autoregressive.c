/* Draws near the chain that leave the normal law of a surrogate invariant,
 *
 *   theta' = m + alpha (theta - m) + sqrt(1 - alpha^2) Sigma^{1/2} xi:
 *
 * independent ones leave a tail that is heavier than the law's too seldom. Its
 * option: alpha. */
#include "proposals/proposal.h"

static bool autoregressive_is_possible(const double* v_option) {
  return v_option[0] >= 0 && v_option[0] < 1;
}

static enum tb_status
autoregressive_draw(struct tb_chain* p_chain,
                    const struct tb_surrogate* p_surrogate,
                    const double* v_option,
                    const struct tb_spot* p_from,
                    struct tb_spot* p_to,
                    double* v_scratch,
                    double* p_log) {
  const size_t n_dim = p_chain->n_dim;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_scratch, n_dim);
  tb_surrogate_draw(p_chain,
                    p_surrogate,
                    v_option[0],
                    p_from->v_theta,
                    v_scratch,
                    v_scratch + n_dim,
                    p_to->v_theta);
  const enum tb_status status =
      tb_surrogate_beyond(p_chain, p_surrogate, p_to->v_theta, &p_to->beyond);
  *p_log = p_to->beyond - p_from->beyond;
  return status;
}

const struct tb_proposal_type tb_proposal_autoregressive = {
    .name = "autoregressive",
    .is_possible = autoregressive_is_possible,
    .n_array = 2,
    .draw = autoregressive_draw,
};
