/* Draws near the chain that leave the normal law of a surrogate invariant,
 *
 *   theta' = m + alpha (theta - m) + sqrt(1 - alpha^2) Sigma^{1/2} xi:
 *
 * independent ones leave a tail that is heavier than the law's too seldom. Its
 * option: alpha. */
#include "proposals/shared.h"

static enum tb_status
autoregressive_draw(struct tb_chain* p_chain,
                    const struct tb_surrogate* p_surrogate,
                    const double* v_option,
                    const struct tb_spot* p_from,
                    struct tb_spot* p_to,
                    double* v_scratch,
                    double* p_log) {
  return tb_spot_draw(p_chain,
                      p_surrogate,
                      v_option[0],
                      p_from,
                      p_to,
                      v_scratch,
                      p_log);
}

const struct tb_proposal_type tb_proposal_autoregressive = {
    .name = "autoregressive",
    .is_possible = tb_proposal_has_stay,
    .n_array = 2,
    .draw = autoregressive_draw,
};
