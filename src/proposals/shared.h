/* What proposals share. */
#ifndef TB_PROPOSALS_SHARED_H
#define TB_PROPOSALS_SHARED_H

#include "proposals/proposal.h"

/* `is_possible` of a first option alpha in [0, 1), or of one that is a width
 */
bool tb_proposal_has_stay(const double* v_option);
bool tb_proposal_has_width(const double* v_option);
/* a whole number from 1 */
bool tb_proposal_is_count(double option, double most);

/* p_to := p_from */
void tb_spot_copy(const struct tb_chain* p_chain,
                  const struct tb_spot* p_from,
                  struct tb_spot* p_to);

/* Of a place p_to that was drawn by the law: p_to->beyond, and *p_log := log
 * ratio, which is what the surrogate has beyond its law there less that at
 * p_from, and what a draw says besides. */
enum tb_status tb_spot_ratio(struct tb_chain* p_chain,
                             const struct tb_surrogate* p_surrogate,
                             const struct tb_spot* p_from,
                             struct tb_spot* p_to,
                             double besides,
                             double* p_log);

/* Draws m + stay (theta - m) + sqrt(1 - stay^2) Sigma^{1/2} xi, which leave the
 * law invariant. v_scratch: two arrays; one where `stay` is 0 */
enum tb_status tb_spot_draw(struct tb_chain* p_chain,
                            const struct tb_surrogate* p_surrogate,
                            double stay,
                            const struct tb_spot* p_from,
                            struct tb_spot* p_to,
                            double* v_scratch,
                            double* p_log);

#endif
