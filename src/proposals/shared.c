#include "proposals/shared.h"

#include <math.h>
#include <string.h>

bool tb_proposal_has_stay(const double* v_option) {
  return v_option[0] >= 0 && v_option[0] < 1;
}

bool tb_proposal_has_width(const double* v_option) {
  return v_option[0] > 0 && isfinite(v_option[0]);
}

bool tb_proposal_is_count(double option, double most) {
  return option >= 1 && option <= most && option == floor(option);
}

void tb_spot_copy(const struct tb_chain* p_chain,
                  const struct tb_spot* p_from,
                  struct tb_spot* p_to) {
  memcpy(p_to->v_theta, p_from->v_theta, p_chain->n_dim * sizeof(double));
  p_to->beyond = p_from->beyond;
}

enum tb_status tb_spot_ratio(struct tb_chain* p_chain,
                             const struct tb_surrogate* p_surrogate,
                             const struct tb_spot* p_from,
                             struct tb_spot* p_to,
                             double besides,
                             double* p_log) {
  const enum tb_status status =
      tb_surrogate_beyond(p_chain, p_surrogate, p_to->v_theta, &p_to->beyond);
  *p_log = besides + p_to->beyond - p_from->beyond;
  return status;
}

enum tb_status tb_spot_draw(struct tb_chain* p_chain,
                            const struct tb_surrogate* p_surrogate,
                            double stay,
                            const struct tb_spot* p_from,
                            struct tb_spot* p_to,
                            double* v_scratch,
                            double* p_log) {
  const size_t n_dim = p_chain->n_dim;
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_scratch, n_dim);
  tb_surrogate_draw(p_chain,
                    p_surrogate,
                    stay,
                    p_from->v_theta,
                    v_scratch,
                    stay == 0 ? NULL : v_scratch + n_dim,
                    p_to->v_theta);
  return tb_spot_ratio(p_chain, p_surrogate, p_from, p_to, 0, p_log);
}
