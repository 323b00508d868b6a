/* Few hyperparameters as if the coefficients were integrated out: n slices of
 * phi, each of one of them, drawn at random, given the others, and then beta of
 * the law that is normal given phi'. Each slice is reversible for phi's density
 * under the law, and so are n of them; with beta' | phi' the whole is for the
 * law, and a coin says what the surrogate has beyond it. Its options: the width
 * of a slice's first interval, and n.
 *
 * A slice costs a factorisation (priors/mixture-slice.c), a proposal another:
 * for few phi only. */
#include "proposals/shared.h"

#include <math.h>

#define ROUNDS_MOST 1000

static bool marginal_is_possible(const double* v_option) {
  return tb_proposal_has_width(v_option) &&
         tb_proposal_is_count(v_option[1], ROUNDS_MOST);
}

static enum tb_status marginal_draw(struct tb_chain* p_chain,
                                    const struct tb_surrogate* p_surrogate,
                                    const double* v_option,
                                    const struct tb_spot* p_from,
                                    struct tb_spot* p_to,
                                    double* v_scratch,
                                    double* p_log) {
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  const size_t n_dim = p_chain->n_dim;
  const size_t n_coef = tb_surrogate_n_coef(p_surrogate);
  *p_log = -INFINITY;
  tb_spot_copy(p_chain, p_from, p_to);
  if (!tb_surrogate_has_scales(p_surrogate)) {
    return TB_STATUS_unsupported; /* refused before the run */
  }
  for (size_t k = 0; k < (size_t)v_option[1]; ++k) {
    const size_t which = tb_rng_index(p_rng, n_dim - n_coef);
    tb_surrogate_slice_scale(p_chain,
                             p_surrogate,
                             which,
                             v_option[0],
                             p_to->v_theta);
  }
  tb_rng_fill_norm(p_rng, v_scratch, n_coef);
  if (!isfinite(tb_surrogate_marginal(p_chain, p_surrogate, p_to->v_theta)) ||
      !tb_surrogate_draw_given(p_chain,
                               p_surrogate,
                               v_scratch,
                               p_to->v_theta)) {
    return TB_STATUS_ok; /* to rounding: it stays */
  }
  return tb_spot_ratio(p_chain, p_surrogate, p_from, p_to, 0, p_log);
}

const struct tb_proposal_type tb_proposal_marginal = {
    .name = "marginal",
    .is_possible = marginal_is_possible,
    .moves_scales = true,
    .n_array = 1,
    .draw = marginal_draw,
};
