/* Few hyperparameters as if the coefficients were integrated out: a step of
 * phi,
 *
 *   phi' = phi + w xi e^(2 u),  xi ~ N(0, I),  u ~ N(0, 1),
 *
 * and then beta' of the law that is normal given phi'. What is left of the
 * ratio is that of the marginal densities of phi' and phi, and of what the
 * surrogate has beyond its law at both ends. Two factorisations a step: for few
 * phi only. Its option: w, in units of the coordinates of phi. */
#include "proposals/shared.h"

#include <math.h>

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
  const double width = v_option[0] * exp(2 * tb_rng_norm(p_rng));
  for (size_t k = n_coef; k < n_dim; ++k) {
    p_to->v_theta[k] += width * tb_rng_norm(p_rng);
  }
  tb_rng_fill_norm(p_rng, v_scratch, n_coef);
  const double before =
      tb_surrogate_marginal(p_chain, p_surrogate, p_from->v_theta);
  const double after =
      tb_surrogate_marginal(p_chain, p_surrogate, p_to->v_theta);
  if (!isfinite(before) || !isfinite(after)) {
    return TB_STATUS_ok;
  }
  tb_surrogate_draw_given(p_chain, p_surrogate, v_scratch, p_to->v_theta);
  return tb_spot_ratio(p_chain,
                       p_surrogate,
                       p_from,
                       p_to,
                       after - before,
                       p_log);
}

const struct tb_proposal_type tb_proposal_marginal = {
    .name = "marginal",
    .is_possible = tb_proposal_has_width,
    .moves_scales = true,
    .n_array = 1,
    .draw = marginal_draw,
};
