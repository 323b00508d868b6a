/* Draws of a part of the coordinates from a surrogate's normal law given the
 * others: along its moves theta + D w, of which D^T A D = I with A the law's
 * curvature, w is N(D^T g, I) there, g the law's gradient at theta, so that
 *
 *   w' = (1 - alpha) D^T g + sqrt(1 - alpha^2) xi,  xi ~ N(0, I)
 *
 * leaves it invariant whatever alpha. What is left of the ratio is what the
 * surrogate has beyond its law. Its option: alpha. Where all coordinates are
 * moved it is the autoregressive proposal. Not with hyperparameters, whose
 * precisions D does not know.
 *
 *   symbol   variable     shape    owner
 *   D^T g    v_pulled     n_free   the caller's scratch
 *   w'       v_w          n_free   the caller's scratch
 */
#include "proposals/shared.h"

#include <math.h>

static enum tb_status block_draw(struct tb_chain* p_chain,
                                 const struct tb_surrogate* p_surrogate,
                                 const double* v_option,
                                 const struct tb_spot* p_from,
                                 struct tb_spot* p_to,
                                 double* v_scratch,
                                 double* p_log) {
  if (tb_surrogate_has_scales(p_surrogate)) {
    return TB_STATUS_unsupported; /* refused before the run */
  }
  const double stay = v_option[0], rest = sqrt(1 - stay * stay);
  if (p_surrogate->n_free == 0) {
    return tb_spot_draw(p_chain,
                        p_surrogate,
                        stay,
                        p_from,
                        p_to,
                        v_scratch,
                        p_log);
  }
  const size_t n_free = p_surrogate->n_free;
  double* v_w = v_scratch;
  double* v_gradient = v_w + p_chain->n_dim;
  double* v_pulled = v_gradient + p_chain->n_dim;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_w, n_free);
  tb_surrogate_law_gradient(p_chain, p_surrogate, p_from->v_theta, v_gradient);
  tb_surrogate_pull(p_surrogate, v_gradient, v_pulled);
  for (size_t j = 0; j < n_free; ++j) {
    v_w[j] = (1 - stay) * v_pulled[j] + rest * v_w[j];
  }
  tb_surrogate_move(p_surrogate, p_from->v_theta, v_w, p_to->v_theta);
  return tb_spot_ratio(p_chain, p_surrogate, p_from, p_to, 0, p_log);
}

const struct tb_proposal_type tb_proposal_block = {
    .name = "block",
    .is_possible = tb_proposal_has_stay,
    .n_array = 3,
    .draw = block_draw,
};
