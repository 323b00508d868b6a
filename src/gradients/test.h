/* The second question to an estimator: would a Metropolis test from where the
 * chain stands to a proposal accept? There is a way to answer it for each thing
 * that the test may look at, and an estimator's table lists those it has:
 *
 *   full        the log posterior of all rows: exact
 *   minibatch   its estimate from the proposal's minibatch: approximate
 *   factorised  a few rows, drawn by bounds of what each can change: exact
 *
 * The current state's gradient and log posterior are kept in the chain, so that
 * an iteration costs one new evaluation. */
#ifndef TB_GRADIENTS_TEST_H
#define TB_GRADIENTS_TEST_H

#include "chains/chain.h"

enum tb_test {
  TB_TEST_full = 0,
  TB_TEST_minibatch = 1,
  TB_TEST_factorised = 2,
  TB_TEST_count = 3
};

struct tb_proposal {
  double* v_theta;      /* n_dim */
  double* v_gradient;   /* n_dim, there */
  double log_posterior; /* there, as the test takes it */
  bool is_possible;     /* inside the support, all of it finite */
  enum tb_status fault; /* of a test that could not be made; ok: it could */
};

struct tb_test_type {
  const char* name;

  /* gradient and log posterior where a chain starts; NULL: those of look() */
  enum tb_status (*start)(struct tb_chain* p_chain);

  /* before a proposal is drawn; NULL: nothing to do */
  enum tb_status (*begin)(struct tb_chain* p_chain);

  /* the gradient at v_theta, and the log posterior that the test takes; NULL:
   * it takes neither, and moves leave the chain's as they were */
  enum tb_status (*look)(struct tb_chain* p_chain,
                         const double* v_theta,
                         double* v_gradient,
                         double* p_log_posterior);

  /* Does it accept a possible proposal, with probability min(1, pi(tau) /
   * pi(theta) exp(log_ratio)), log_ratio that of the proposal densities, back
   * over forth? *p_probability: that number, as far as it is known. Random
   * numbers come from the stream TB_STREAM_accept,
   * rows from TB_STREAM_batch.
   *
   * Factorised: pi is its density with respect to the estimator's surrogate, so
   * that a log_ratio of 0 is right for what is reversible for that. */
  bool (*accepts)(struct tb_chain* p_chain,
                  struct tb_proposal* p_proposal,
                  double log_ratio,
                  double* p_probability);

  /* v_gradient := that of the log posterior at a draw that is kept; NULL: it is
   * the chain's own */
  enum tb_status (*gradient)(struct tb_chain* p_chain, double* v_gradient);
};

/* accept.c: for estimators whose gradient gives the log posterior of all rows,
 * for others with a pass over them, and for those that estimate it. */
extern const struct tb_test_type tb_test_full;
extern const struct tb_test_type tb_test_pass;
extern const struct tb_test_type tb_test_minibatch;
extern const struct tb_test_type tb_test_factorised; /* factorised.c */

/* ---- what kernels and runs ask, by the target's p_test ---- */

/* Gradient and log posterior where the chain starts. */
enum tb_status tb_test_start(struct tb_chain* p_chain);

/* Before a proposal is drawn. With a test by minibatches: gradient and loss
 * here on a new one, which the estimator will draw again for the proposal. */
enum tb_status tb_test_begin(struct tb_chain* p_chain);

/* Gradient and log posterior at the proposal's v_theta. One outside the support
 * of the prior, or whose density or gradient is not finite, is not possible,
 * and is counted. */
enum tb_status tb_test_look(struct tb_chain* p_chain,
                            struct tb_proposal* p_proposal);

/* Has the model moves of its own, and does the test look at all rows? */
bool tb_test_has_moves(const struct tb_chain* p_chain);

/* v_theta := such a move from where the chain stands; returns the log_ratio */
double tb_test_move(struct tb_chain* p_chain, double* v_theta);

/* Does the test accept? Never what is not possible. */
bool tb_test_accepts(struct tb_chain* p_chain,
                     struct tb_proposal* p_proposal,
                     double log_ratio,
                     double* p_probability);

#endif
