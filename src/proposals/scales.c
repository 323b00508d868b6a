/* Hyperparameters and coefficients of a surrogate, in turn:
 *
 *   phi | beta,  (beta | phi,  phi | beta) x n
 *
 * phi by the draws of its priors (priors/mixture-type.h), beta by the law that
 * is normal given phi, m + a (beta - m) + sqrt(1 - a^2) xi, with a coin for
 * what the surrogate has beyond it. Each is reversible for the surrogate, and
 * so is the whole, which reads the same backwards: it leaves its coin nothing
 * to do. (phi, then beta alone would not be.) Its options: a and n. */
#include "proposals/shared.h"

#include <math.h>

#define ROUNDS_MOST 1000

static bool scales_is_possible(const double* v_option) {
  return tb_proposal_has_stay(v_option) &&
         tb_proposal_is_count(v_option[1], ROUNDS_MOST);
}

static enum tb_status scales_draw(struct tb_chain* p_chain,
                                  const struct tb_surrogate* p_surrogate,
                                  const double* v_option,
                                  const struct tb_spot* p_from,
                                  struct tb_spot* p_to,
                                  double* v_scratch,
                                  double* p_log) {
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  struct tb_spot next = {.v_theta = v_scratch + p_chain->n_dim};
  enum tb_status status = TB_STATUS_ok;
  *p_log = 0;
  tb_spot_copy(p_chain, p_from, p_to);
  if (!tb_surrogate_has_scales(p_surrogate)) {
    return TB_STATUS_unsupported; /* refused before the run */
  }
  tb_surrogate_draw_scales(p_chain, p_surrogate, p_to->v_theta);
  for (size_t k = 0; k < (size_t)v_option[1] && status == TB_STATUS_ok; ++k) {
    tb_rng_fill_norm(p_rng, v_scratch, tb_surrogate_n_coef(p_surrogate));
    tb_surrogate_draw(p_chain,
                      p_surrogate,
                      v_option[0],
                      p_to->v_theta,
                      v_scratch,
                      NULL,
                      next.v_theta);
    double log_ratio;
    status = tb_spot_ratio(p_chain, p_surrogate, p_to, &next, 0, &log_ratio);
    if (log_ratio >= 0 || log(tb_rng_unif(p_rng)) < log_ratio) {
      tb_spot_copy(p_chain, &next, p_to);
    }
    tb_surrogate_draw_scales(p_chain, p_surrogate, p_to->v_theta);
  }
  return status;
}

const struct tb_proposal_type tb_proposal_scales = {
    .name = "scales",
    .is_possible = scales_is_possible,
    .moves_scales = true,
    .n_array = 2,
    .draw = scales_draw,
};
