#include "gradients/test.h"

#include "gradients/gradient.h"
#include "passes/rows.h"

#include <math.h>

/* ------------------------------------------------------------------ members */

/* Compared on the log scale; one uniform number for each test. */
static bool ratio_accepts(struct tb_chain* p_chain,
                          struct tb_proposal* p_proposal,
                          double log_ratio,
                          double* p_probability) {
  const double uniform = tb_rng_unif(&p_chain->v_rng[TB_STREAM_accept]);
  if (!p_proposal->is_possible || isnan(log_ratio)) {
    *p_probability = 0;
    return false;
  }
  log_ratio += p_proposal->log_posterior - p_chain->log_posterior;
  *p_probability = fmin(1, exp(log_ratio));
  return log(uniform) < log_ratio;
}

/* log pi(theta) over all rows, without its gradient */
static enum tb_status log_posterior_at(struct tb_chain* p_chain,
                                       const double* v_theta,
                                       double* p_log_posterior) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  double log_lik = 0, log_prior = 0;
  const struct tb_sums sums = {.p_log_lik = &log_lik};
  enum tb_status status =
      tb_model_all_gradient(p_model, &p_chain->work, v_theta, &sums);
  if (status != TB_STATUS_ok) {
    return status;
  }
  status = p_model->type->prior(p_model,
                                &p_chain->work,
                                v_theta,
                                p_chain->p_estimator_scratch,
                                &log_prior);
  p_chain->counts.n_row += (double)p_model->n_data;
  p_chain->counts.n_full += 1;
  *p_log_posterior = log_prior + p_target->likelihood_scale * log_lik;
  return status;
}

static enum tb_status pass_look(struct tb_chain* p_chain,
                                const double* v_theta,
                                double* v_gradient,
                                double* p_log_posterior) {
  const enum tb_status status =
      tb_chain_gradient(p_chain, v_theta, v_gradient, NULL);
  return status != TB_STATUS_ok
             ? status
             : log_posterior_at(p_chain, v_theta, p_log_posterior);
}

/* The proposal's minibatch is that of the current state: one stream, put back.
 */
static enum tb_status minibatch_begin(struct tb_chain* p_chain) {
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_batch];
  const struct tb_rng before = *p_rng;
  const enum tb_status status = tb_chain_gradient(p_chain,
                                                  p_chain->v_theta,
                                                  p_chain->v_gradient,
                                                  &p_chain->log_posterior);
  *p_rng = before;
  return status;
}

const struct tb_test_type tb_test_full = {.name = "full",
                                          .look = tb_chain_gradient,
                                          .accepts = ratio_accepts};

const struct tb_test_type tb_test_pass = {.name = "pass",
                                          .look = pass_look,
                                          .accepts = ratio_accepts};

const struct tb_test_type tb_test_minibatch = {.name = "minibatch",
                                               .begin = minibatch_begin,
                                               .look = tb_chain_gradient,
                                               .accepts = ratio_accepts};

/* ---------------------------------------------------------------- questions */

static bool is_outside(struct tb_chain* p_chain, const double* v_theta) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  return p_model->type->is_outside != NULL &&
         p_model->type->is_outside(p_model, &p_chain->work, v_theta);
}

enum tb_status tb_test_start(struct tb_chain* p_chain) {
  if (is_outside(p_chain, p_chain->v_theta)) {
    p_chain->log_posterior = -INFINITY;
    return TB_STATUS_ok; /* a density of 0: the caller refuses to start */
  }
  const struct tb_test_type* p_test = p_chain->p_target->p_test;
  return p_test->start != NULL ? p_test->start(p_chain)
                               : p_test->look(p_chain,
                                              p_chain->v_theta,
                                              p_chain->v_gradient,
                                              &p_chain->log_posterior);
}

bool tb_test_has_moves(const struct tb_chain* p_chain) {
  const struct tb_test_type* p_test = p_chain->p_target->p_test;
  return p_chain->p_target->p_model->move_share > 0 &&
         (p_test == &tb_test_full || p_test == &tb_test_pass);
}

double tb_test_move(struct tb_chain* p_chain, double* v_theta) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  return p_model->type->move(p_model,
                             &p_chain->work,
                             p_chain->v_theta,
                             &p_chain->v_rng[TB_STREAM_noise],
                             v_theta);
}

enum tb_status tb_test_begin(struct tb_chain* p_chain) {
  const struct tb_test_type* p_test = p_chain->p_target->p_test;
  return p_test->begin == NULL ? TB_STATUS_ok : p_test->begin(p_chain);
}

enum tb_status tb_test_look(struct tb_chain* p_chain,
                            struct tb_proposal* p_proposal) {
  p_proposal->is_possible = false;
  p_proposal->fault = TB_STATUS_ok;
  if (is_outside(p_chain, p_proposal->v_theta)) {
    p_chain->counts.n_outside += 1;
    return TB_STATUS_ok;
  }
  if (p_chain->p_target->p_test->look == NULL) {
    p_proposal->is_possible = true;
    return TB_STATUS_ok;
  }
  const enum tb_status status =
      p_chain->p_target->p_test->look(p_chain,
                                      p_proposal->v_theta,
                                      p_proposal->v_gradient,
                                      &p_proposal->log_posterior);
  /* 0 v is 0 or NaN */
  double check = 0 * p_proposal->log_posterior;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    check += 0 * p_proposal->v_gradient[j];
  }
  p_proposal->is_possible = check == 0;
  p_chain->counts.n_nonfinite += check == 0 ? 0 : 1;
  return status;
}

bool tb_test_accepts(struct tb_chain* p_chain,
                     struct tb_proposal* p_proposal,
                     double log_ratio,
                     double* p_probability) {
  return p_chain->p_target->p_test->accepts(p_chain,
                                            p_proposal,
                                            log_ratio,
                                            p_probability);
}
