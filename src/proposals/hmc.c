/* Hamiltonian Monte Carlo on a surrogate (Duane, Kennedy, Pendleton & Roweth
 * 1987), along its moves theta + D w with unit masses: for tails that the
 * normal law does not have. Leapfrog steps from w = 0 with p ~ N(0, I),
 *
 *   p <- p + (e/2) g(w),  w <- w + e p,  p <- p + (e/2) g(w),
 *
 * of the size e = step (0.8 + 0.4 u), u uniform and drawn for each trajectory:
 * no orbit closes after every one. Its options: step, and the number of leaps.
 *
 *   symbol   variable     shape    owner
 *   w        v_w          n_free   the caller's scratch
 *   p        v_momentum   n_free   the caller's scratch
 *   g(w)     v_pulled     n_free   the caller's scratch
 */
#include "base/norm.h"
#include "proposals/shared.h"

#include <math.h>
#include <string.h>

#define LEAPS_MOST 1e6

static bool hmc_is_possible(const double* v_option) {
  return tb_proposal_has_width(v_option) &&
         tb_proposal_is_count(v_option[1], LEAPS_MOST);
}

/* v_momentum += size D^T g(theta) */
static enum tb_status kick(struct tb_chain* p_chain,
                           const struct tb_surrogate* p_surrogate,
                           const double* v_theta,
                           double size,
                           double* v_momentum,
                           double* v_work) {
  const size_t n_free = tb_surrogate_n_free(p_surrogate);
  double* v_pulled = v_work + p_chain->n_dim;
  const enum tb_status status =
      tb_surrogate_gradient(p_chain, p_surrogate, v_theta, v_work);
  tb_surrogate_pull(p_surrogate, v_work, v_pulled);
  for (size_t j = 0; j < n_free; ++j) {
    v_momentum[j] += size * v_pulled[j];
  }
  return status;
}

static enum tb_status hmc_draw(struct tb_chain* p_chain,
                               const struct tb_surrogate* p_surrogate,
                               const double* v_option,
                               const struct tb_spot* p_from,
                               struct tb_spot* p_to,
                               double* v_scratch,
                               double* p_log) {
  const size_t n_free = tb_surrogate_n_free(p_surrogate);
  const size_t n_dim = p_chain->n_dim, n_leap = (size_t)v_option[1];
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  double* v_w = v_scratch;
  double* v_momentum = v_w + n_dim;
  double* v_work = v_momentum + n_dim;
  const double step = v_option[0] * (0.8 + 0.4 * tb_rng_unif(p_rng));
  tb_rng_fill_norm(p_rng, v_momentum, n_free);
  double energy = 0.5 * tb_square_norm(v_momentum, n_free) -
                  tb_surrogate_law(p_chain, p_surrogate, p_from->v_theta, v_w) -
                  p_from->beyond;
  memset(v_w, 0, n_free * sizeof(double));
  enum tb_status status =
      kick(p_chain, p_surrogate, p_from->v_theta, step / 2, v_momentum, v_work);
  for (size_t k = 1; k <= n_leap && status == TB_STATUS_ok; ++k) {
    for (size_t j = 0; j < n_free; ++j) {
      v_w[j] += step * v_momentum[j];
    }
    tb_surrogate_move(p_surrogate, p_from->v_theta, v_w, p_to->v_theta);
    status = kick(p_chain,
                  p_surrogate,
                  p_to->v_theta,
                  k < n_leap ? step : step / 2,
                  v_momentum,
                  v_work);
  }
  if (status == TB_STATUS_ok) {
    status =
        tb_surrogate_beyond(p_chain, p_surrogate, p_to->v_theta, &p_to->beyond);
  }
  energy -= 0.5 * tb_square_norm(v_momentum, n_free) -
            tb_surrogate_law(p_chain, p_surrogate, p_to->v_theta, v_w) -
            p_to->beyond;
  /* thrown out of what can be represented: refused */
  *p_log = isnan(energy) ? -INFINITY : energy;
  return status;
}

const struct tb_proposal_type tb_proposal_hmc = {
    .name = "hmc",
    .is_possible = hmc_is_possible,
    .n_array = 4,
    .draw = hmc_draw,
};
