/* What the minibatch estimators share: draw rows, pass over them once, add the
 * parts that need no rows. */
#ifndef TB_GRADIENTS_MINIBATCH_H
#define TB_GRADIENTS_MINIBATCH_H

#include "gradients/gradient.h"

/* v_gradient = g_0(theta) + s [ v_base + sum_{i in A} a_i + sum_{i in S} c_i
 * a_i ], with a_i = g_i(theta) - reference (p_reference may be NULL, v_base
 * too), s the likelihood scale, A the scheme's rows of every minibatch, S those
 * drawn, which come back in p_batch. The chain's v_variance receives s_j^2 when
 * the chain wants it and the minibatch has two rows or more, or all of them:
 * then it is 0; *p_log_posterior (or NULL) log p(theta) + s sum_{i in S} c_i
 * log p(y_i | theta), an unbiased estimate. */
enum tb_status tb_minibatch_estimate(struct tb_chain* p_chain,
                                     const double* v_theta,
                                     const struct tb_reference* p_reference,
                                     const double* v_base,
                                     struct tb_batch* p_batch,
                                     double* v_scalar,
                                     double* v_gradient,
                                     double* p_log_posterior);

/* The same in two halves, for estimators that make the sums themselves. Begin:
 * the chain's scratch is 0, ready for sum c_i a_ij over the rows drawn; if true
 * is returned sum (c_i a_ij)^2 is wanted too, in its v_variance, which is 0.
 * End: the rows that are always there come on top, without noise, with
 * *p_log_lik (or NULL) theirs. */
bool tb_minibatch_begin(struct tb_chain* p_chain,
                        const struct tb_batch* p_batch);
enum tb_status tb_minibatch_end(struct tb_chain* p_chain,
                                const double* v_theta,
                                const struct tb_reference* p_reference,
                                const double* v_base,
                                const struct tb_batch* p_batch,
                                double* v_gradient,
                                double* p_log_prior,
                                double* p_log_lik);

/* Of the end, what concerns the rows drawn: their noise, and their number. */
void tb_minibatch_settle(struct tb_chain* p_chain,
                         const struct tb_batch* p_batch);

/* Say that the estimate is from all rows: exact, unless the model injects
 * noise. */
void tb_minibatch_exact(struct tb_chain* p_chain);

/* ||g_i(theta) - reference||^2 of every row into v_square (n_data). */
enum tb_status tb_minibatch_square_norms(struct tb_chain* p_chain,
                                         const double* v_theta,
                                         const struct tb_reference* p_reference,
                                         double* v_square);

/* v_sum = sum_i g_i(theta) over all rows, counted as a pass of the chain;
 * v_scalar (NULL, or n_data x n_scalar): r_i(theta) of every row */
enum tb_status tb_full_pass(struct tb_chain* p_chain,
                            const double* v_theta,
                            double* v_scalar,
                            double* v_sum);

#endif
