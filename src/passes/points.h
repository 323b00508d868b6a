/* A pass: log density and gradient at several points, summed over blocks of
 * rows that are handed in. The pass does not know where the blocks come from,
 * nor how many there will be; all points see a block while it is in the cache.
 *
 *   symbol       variable     shape             owner
 *   theta_p      v_theta      n_dim x n_point   the caller
 *   log pi       v_density    n_point           the caller, out
 *   g(theta_p)   v_gradient   n_dim x n_point   the caller, out
 */
#ifndef TB_PASSES_POINTS_H
#define TB_PASSES_POINTS_H

#include "models/model.h"

struct tb_points {
  const struct tb_model* p_model;
  const struct tb_workspace* p_work; /* for blocks of up to TB_CHUNK rows */
  const double* v_theta;
  size_t n_point;
  bool wants_log_lik; /* in v_density; else that of the prior alone */
  double* v_density;
  double* v_gradient;
  enum tb_status* v_status; /* n_point: of each */
  enum tb_status status;    /* of the pass: the last that was not ok */
};

/* Sums of nothing. */
void tb_points_begin(struct tb_points* p_points);

/* The prior's density and gradient, which SET those there are: before blocks.
 */
void tb_points_add_prior(struct tb_points* p_points);

/* The rows of a block, with their multipliers. A point whose value is not
 * finite is left out from then on, the others go on; any other failure ends the
 * pass, see tb_points_go_on(). */
void tb_points_add(struct tb_points* p_points, const struct tb_batch* p_block);
bool tb_points_go_on(const struct tb_points* p_points);

/* What is not finite is NaN. */
void tb_points_end(struct tb_points* p_points);

#endif
