/* The factorised test (factorised.c) of control variates of order 2: what it
 * keeps of the rows. */
#ifndef TB_GRADIENTS_FACTORS_H
#define TB_GRADIENTS_FACTORS_H

#include "gradients/cv2-inside.h"

/* Unsupported where the rows have no bounds, singular where the expansion has
 * no normal law. NULL unless ok. p_params: of the estimator, see factors.c and,
 * for rows drawn ahead, drawn.c. */
enum tb_status tb_factors_make(const struct tb_cv2* p_cv2,
                               const struct tb_params* p_params,
                               struct tb_factors** pp_factors);
void tb_factors_destroy(struct tb_factors* p_factors);

/* NULL without factors */
const struct tb_surrogate*
tb_factors_surrogate(const struct tb_factors* p_factors);

/* bytes a chain needs, not saved */
size_t tb_factors_scratch_size(const struct tb_model* p_model);

/* The probability with which the test accepts v_theta from where the chain is,
 * all rows looked at: what its coins come out to, for tests. *p_largest: the
 * largest probability of a row to kill it. */
enum tb_status tb_factors_acceptance(struct tb_chain* p_chain,
                                     const double* v_theta,
                                     double* p_acceptance,
                                     double* p_largest);

/* What the shell that holds two places says, for tests: its radius, the sum of
 * psi over the rows that are thinned and the number of those that are not. */
struct tb_shell_info {
  double radius;
  double total;
  size_t n_always;
};
enum tb_status tb_factors_shell(struct tb_factors* p_factors,
                                double norm,
                                struct tb_shell_info* p_info);
#endif
