/* Fixed priors with heavy tails as the normal ones that they are given scales
 * of their own, for laws that are normal but for them:
 *
 *   a_k^T beta ~ N(m_k, 1 / w_k),   w_k of a mixture with locals
 *
 * (priors/mixture-type.h: Student's and Laplace's). Scales are drawn anew given
 * beta, exactly, so that nothing is kept of them between steps.
 *
 *   symbol  variable     shape             owner
 *   a       v_of         n_coef x n_tail   tails
 *   log u   v_log        n_tail            one draw, the caller's scratch
 *   w, m    v_precision, v_location  n_tail   the same
 */
#ifndef TB_PRIORS_TAILS_H
#define TB_PRIORS_TAILS_H

#include "priors/mixture.h"

struct tb_tails {
  struct tb_mixtures mixtures; /* v_at: 0, 1, ... */
  size_t n_tail;               /* 0: there are none */
  size_t n_coef;
  double* v_of;
};

/* From "tail_of" (n_coef x n_tail) and what tb_mixtures_create() takes, after
 * "tail_", of n_tail coefficients. Without: n_tail is 0. */
enum tb_status tb_tails_create(struct tb_tails* p_tails,
                               const struct tb_params* p_params,
                               size_t n_coef);
void tb_tails_destroy(struct tb_tails* p_tails);

struct tb_tail_scales {
  double* v_log;
  double* v_precision;
  double* v_location;
  double* v_at; /* n_tail, a^T beta */
  double* v_work;
};

/* numbers of that scratch, and where each lies */
size_t tb_tails_size(const struct tb_tails* p_tails);
struct tb_tail_scales tb_tails_at(const struct tb_tails* p_tails,
                                  double* v_scratch);

/* SETS them to a draw given beta, n_coef */
void tb_tails_draw(const struct tb_tails* p_tails,
                   const double* v_beta,
                   const struct tb_tail_scales* p_scales,
                   struct tb_rng* p_rng);

/* Adds to the gradient and to minus the Hessian (n_coef, n_coef x n_coef) at
 * beta what all of them but number `without` have there. */
void tb_tails_add(const struct tb_tails* p_tails,
                  const struct tb_tail_scales* p_scales,
                  size_t without,
                  const double* v_beta,
                  double* v_slope,
                  double* v_bend);

/* Moves scale k by a slice of its density where a_k^T beta ~ N(mean, variance)
 * without it, beta integrated out. */
void tb_tails_slice(const struct tb_tails* p_tails,
                    const struct tb_tail_scales* p_scales,
                    size_t k,
                    double mean,
                    double variance,
                    struct tb_rng* p_rng);

#endif
