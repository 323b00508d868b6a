/* Hyperparameters and coefficients of a surrogate, in turn:
 *
 *   phi | beta,  (beta | phi,  phi | beta) x n
 *
 * phi by the draws of its priors (priors/mixture-type.h), beta by the law that
 * is normal given phi, m + a (beta - m) + sqrt(1 - a^2) xi, with a coin for
 * what the surrogate has beyond it. Each is reversible for the surrogate, and
 * so is the whole, which reads the same backwards: it leaves its coin nothing
 * to do. (phi, then beta alone would not be.) Its options: a and n. */
#include "proposals/proposal.h"

#include <math.h>
#include <string.h>

#define ROUNDS_MOST 1000

static bool scales_is_possible(const double* v_option) {
  const double stay = v_option[0], rounds = v_option[1];
  return stay >= 0 && stay < 1 && rounds >= 1 && rounds <= ROUNDS_MOST &&
         rounds == floor(rounds);
}

static enum tb_status scales_draw(struct tb_chain* p_chain,
                                  const struct tb_surrogate* p_surrogate,
                                  const double* v_option,
                                  const struct tb_spot* p_from,
                                  struct tb_spot* p_to,
                                  double* v_scratch,
                                  double* p_log) {
  const size_t n_dim = p_chain->n_dim;
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  double* v_next = v_scratch + n_dim;
  enum tb_status status = TB_STATUS_ok;
  *p_log = 0;
  memcpy(p_to->v_theta, p_from->v_theta, n_dim * sizeof(double));
  p_to->beyond = p_from->beyond;
  if (!tb_surrogate_has_scales(p_surrogate)) {
    return TB_STATUS_unsupported; /* refused before the run */
  }
  tb_surrogate_draw_scales(p_chain, p_surrogate, p_to->v_theta);
  for (size_t k = 0; k < (size_t)v_option[1] && status == TB_STATUS_ok; ++k) {
    double beyond;
    tb_rng_fill_norm(p_rng, v_scratch, tb_surrogate_n_coef(p_surrogate));
    tb_surrogate_draw(p_chain,
                      p_surrogate,
                      v_option[0],
                      p_to->v_theta,
                      v_scratch,
                      NULL,
                      v_next);
    status = tb_surrogate_beyond(p_chain, p_surrogate, v_next, &beyond);
    const double log_ratio = beyond - p_to->beyond;
    if (log_ratio >= 0 || log(tb_rng_unif(p_rng)) < log_ratio) {
      memcpy(p_to->v_theta, v_next, n_dim * sizeof(double));
      p_to->beyond = beyond;
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
