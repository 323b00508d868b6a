/* The estimator family: how the gradient of the log posterior is estimated
 * from a minibatch. Each is unbiased for g whatever the scheme, which tests
 * find by enumeration (helper-conformance-gradient.R). */
#ifndef TB_GRADIENTS_GRADIENT_H
#define TB_GRADIENTS_GRADIENT_H

#include "gradients/test.h"

struct tb_surrogate;

enum tb_estimator_flag {
  TB_ESTIMATOR_FULL = 1u << 0,     /* uses every row: no scheme needed */
  TB_ESTIMATOR_VARIANCE = 1u << 1, /* reports s_j^2 */
  TB_ESTIMATOR_REFERENCE = 1u << 2 /* needs a reference point `at` */
};

struct tb_estimator_type {
  const char* name;
  const char* citation;
  unsigned flags;

  /* bytes of the part the chains share, and its making; NULL: none.
   * `p_model` may be written here (stored scalars) and nowhere else. */
  size_t (*self_size)(const struct tb_model* p_model);
  enum tb_status (*init)(struct tb_estimator* p_estimator,
                         struct tb_model* p_model,
                         const struct tb_params* p_params,
                         int n_threads);

  /* frees what init() took, in part too; NULL: nothing */
  void (*destroy)(struct tb_estimator* p_estimator);

  /* Called before every slice, on the main thread: put back what another run
   * on the same model may have changed. NULL: nothing to put back. */
  enum tb_status (*refresh)(struct tb_estimator* p_estimator,
                            struct tb_model* p_model,
                            int n_threads);

  /* bytes of a chain's own state (kept when a run is saved): plain bytes,
   * without pointers; NULL: none */
  size_t (*state_size)(const struct tb_estimator* p_estimator,
                       const struct tb_model* p_model);
  enum tb_status (*start)(struct tb_chain* p_chain);

  /* bytes of a chain's own scratch for minibatches of up to n_batch rows, not
   * saved; NULL: none */
  size_t (*scratch_size)(const struct tb_model* p_model, size_t n_batch);

  /* ||a_i||^2 of every row into v_square (n_data), with the a_i(theta) whose
   * sum the next minibatch estimates; for schemes that weigh rows by them.
   * NULL: a_i = g_i(theta). The chain's p_estimator_scratch may be used. */
  enum tb_status (*square_norms)(struct tb_chain* p_chain,
                                 const double* v_theta,
                                 double* v_square);

  /* required, the first question: the estimate at v_theta; see
   * tb_chain_gradient() */
  enum tb_status (*estimate)(struct tb_chain* p_chain,
                             const double* v_theta,
                             double* v_gradient,
                             double* p_log_posterior);

  /* What stands in for the posterior, for proposals that are reversible for it;
   * NULL: there is none. */
  const struct tb_surrogate* (*surrogate)(
      const struct tb_estimator* p_estimator);

  /* The second, would a Metropolis test accept: the tests it can make, by what
   * they look at. NULL: not this one; an estimator that depends on where the
   * chain has been can make none. */
  const struct tb_test_type* v_test[TB_TEST_count];
};

struct tb_estimator {
  const struct tb_estimator_type* type;
  bool may_wait; /* a step may have to wait: TB_STATUS_exhausted */
  double n_row;  /* rows that the part the chains share has taken so far */
  void* p_self;  /* self_size() bytes, in the run's arena */
};

/* Minibatch variance of the estimate, coordinate by coordinate, from the sums
 * of u_i = c_i a_i over the minibatch, which add up to the estimate:
 *   s_j^2 = finite n/(n - 1) [sum u_ij^2 - (sum u_ij)^2 / n],
 * finite = 1 - n/N without replacement, 1 with. Unbiased: kernels/noise.h has
 * what kernels make of it, and how the papers' programs differ.
 * v_square comes in as sum u_ij^2 and goes out as s_j^2. */
void tb_estimator_variance(const struct tb_batch* p_batch,
                           const double* v_sum,
                           double* v_square,
                           size_t n_dim);

/* Ask the estimator for the gradient at v_theta: fills v_gradient (and the
 * chain's v_variance, has_variance, is_exact, n_batch, counts). p_log_posterior
 * may be NULL; the estimator of all rows sets it to log pi, those that can test
 * by minibatches to an unbiased estimate from the same minibatch, and others
 * leave it alone.
 *
 * Of an even model, g_j(-theta_j) = -g_j(theta_j): the estimator, and through
 * it the scheme, sees |theta|, and its estimate gets the signs of theta. So
 * what is subtracted, of a reference point or from a table, changes its sign
 * with what it is subtracted from, in whatever orthant the chain is. */
enum tb_status tb_chain_gradient(struct tb_chain* p_chain,
                                 const double* v_theta,
                                 double* v_gradient,
                                 double* p_log_posterior);

/* registry.c */
extern const struct tb_estimator_type* const tb_estimator_registry[];
const struct tb_estimator_type* tb_estimator_find(const char* name);

#endif
