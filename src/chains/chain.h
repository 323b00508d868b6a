/* One chain, as its kernel sees it, and the target all chains share. */
#ifndef TB_CHAINS_CHAIN_H
#define TB_CHAINS_CHAIN_H

#include "base/rng.h"
#include "base/status.h"
#include "models/model.h"

#include <stdbool.h>
#include <stddef.h>

struct tb_kernel;
struct tb_estimator;
struct tb_scheme;
struct tb_schedule;
struct tb_test_type;
struct tb_chain;

/* What the chains sample from and how: read-only while a run advances. */
struct tb_target {
  const struct tb_model* p_model;
  const struct tb_estimator* p_estimator;
  const struct tb_scheme* p_scheme;
  const struct tb_kernel* p_kernel;
  const struct tb_schedule* p_schedule;
  const struct tb_test_type* p_test; /* NULL: the estimator has none */
  /* the estimator's, for schemes; NULL: a_i = g_i(theta) */
  enum tb_status (*square_norms)(struct tb_chain* p_chain,
                                 const double* v_theta,
                                 double* v_square);
  size_t n_chain;          /* of the run */
  double likelihood_scale; /* lambda / N of a Gibbs posterior; 1: Bayes */
};

/* lambda, the inverse temperature of the mean loss: N for Bayes; a model
 * without rows is its own loss */
static inline double tb_target_lambda(const struct tb_target* p_target) {
  const size_t n_data = p_target->p_model->n_data;
  return p_target->likelihood_scale * (n_data > 0 ? (double)n_data : 1);
}

/* Counters: what a chain has used and met. */
struct tb_counts {
  double n_row;       /* rows whose gradient was evaluated */
  double n_full;      /* full passes among them */
  double n_always;    /* rows that a factorised test looks at every time */
  double n_accept;    /* accepted proposals (Metropolis kernels) */
  double n_propose;   /* proposals */
  double n_outside;   /* proposals outside the support of the prior */
  double n_nonfinite; /* proposals whose density or gradient is not finite */
  double n_escape;    /* draws far outside the expected region */
};

/*   symbol      variable     shape   owner
 *   theta       v_theta      n_dim   chain (sampler coordinates)
 *   g-hat       v_gradient   n_dim   chain, always that of v_theta
 *   s_j^2       v_variance   n_dim   chain, of v_gradient; NULL: not asked for
 *   h_t / h     step_scale           the schedule's factor of the step size
 */
struct tb_chain {
  const struct tb_target* p_target;
  size_t place; /* among the chains of the run, from 0 */
  size_t n_dim;
  double* v_theta;
  double* v_gradient;
  double* v_variance;
  bool wants_variance;  /* the next estimate should report its variance */
  bool has_variance;    /* v_variance is of the last minibatch */
  bool is_exact;        /* the last estimate saw every row: it has no noise */
  double log_posterior; /* at v_theta, if the estimator gives it */
  size_t n_batch;       /* rows in the last minibatch */
  double step_scale;
  size_t iteration; /* steps made so far */
  bool is_warmup;
  bool is_exploring; /* the schedule wants no injected noise in this step */
  struct tb_rng v_rng[TB_STREAM_count];
  struct tb_counts counts;
  void* p_kernel_state;      /* kernel's state_size() bytes */
  void* p_estimator_state;   /* estimator's */
  void* p_scheme_state;      /* scheme's */
  void* p_estimator_scratch; /* n_dim doubles */
  void* p_estimator_extra;   /* estimator's scratch_size() bytes, not saved */
  double* v_folded;          /* n_dim, scratch: |theta|; NULL: not even */
  struct tb_workspace work;
};

#endif
