/* Independent draws from the normal law of a surrogate, given hyperparameters:
 * what is left of the ratio is what the surrogate has beyond it. */
#include "proposals/shared.h"

static enum tb_status independent_draw(struct tb_chain* p_chain,
                                       const struct tb_surrogate* p_surrogate,
                                       const double* v_option,
                                       const struct tb_spot* p_from,
                                       struct tb_spot* p_to,
                                       double* v_scratch,
                                       double* p_log) {
  (void)v_option;
  return tb_spot_draw(p_chain, p_surrogate, 0, p_from, p_to, v_scratch, p_log);
}

const struct tb_proposal_type tb_proposal_independent = {
    .name = "independent",
    .n_array = 1,
    .draw = independent_draw,
};
