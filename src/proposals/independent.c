/* Independent draws from the normal law of a surrogate, given hyperparameters:
 * what is left of the ratio is what the surrogate has beyond it. */
#include "proposals/proposal.h"

static enum tb_status independent_draw(struct tb_chain* p_chain,
                                       const struct tb_surrogate* p_surrogate,
                                       const double* v_option,
                                       const struct tb_spot* p_from,
                                       struct tb_spot* p_to,
                                       double* v_scratch,
                                       double* p_log) {
  (void)v_option;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_scratch, p_chain->n_dim);
  tb_surrogate_draw(p_chain,
                    p_surrogate,
                    0,
                    p_from->v_theta,
                    v_scratch,
                    NULL,
                    p_to->v_theta);
  const enum tb_status status =
      tb_surrogate_beyond(p_chain, p_surrogate, p_to->v_theta, &p_to->beyond);
  *p_log = p_to->beyond - p_from->beyond;
  return status;
}

const struct tb_proposal_type tb_proposal_independent = {
    .name = "independent",
    .n_array = 1,
    .draw = independent_draw,
};
