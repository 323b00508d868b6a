#include "kernels/metropolis.h"

#include "gradients/gradient.h"
#include "models/rows.h"

#include <math.h>
#include <string.h>

unsigned tb_metropolis_flags(const struct tb_params* p_params) {
  const double ratio = tb_params_number(p_params, "ratio", TB_RATIO_full);
  return TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP |
         (ratio == TB_RATIO_minibatch ? TB_KERNEL_LOSS : 0);
}

static bool uses_minibatch_ratio(const struct tb_chain* p_chain) {
  return p_chain->p_target->p_kernel->flags & TB_KERNEL_LOSS;
}

/* log pi(theta) over all rows, without its gradient */
static enum tb_status log_posterior_at(struct tb_chain* p_chain,
                                       const double* v_theta,
                                       double* p_log_posterior) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  double log_lik = 0, log_prior = 0;
  const struct tb_sums sums = { .p_log_lik = &log_lik };
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
  p_chain->counts.n_row += (double) p_model->n_data;
  p_chain->counts.n_full += 1;
  *p_log_posterior = log_prior + p_target->likelihood_scale * log_lik;
  return status;
}

static enum tb_status evaluate(struct tb_chain* p_chain,
                               const double* v_theta,
                               double* v_gradient,
                               double* p_log_posterior) {
  const unsigned estimator = p_chain->p_target->p_estimator->type->flags;
  const bool has_loss = (estimator & TB_ESTIMATOR_LOG_POSTERIOR) ||
                        uses_minibatch_ratio(p_chain);
  const enum tb_status status = tb_chain_gradient(
    p_chain, v_theta, v_gradient, has_loss ? p_log_posterior : NULL);
  return status != TB_STATUS_ok || has_loss
           ? status
           : log_posterior_at(p_chain, v_theta, p_log_posterior);
}

enum tb_status tb_metropolis_start(struct tb_chain* p_chain) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  if (p_model->type->is_outside != NULL &&
      p_model->type->is_outside(p_model, &p_chain->work, p_chain->v_theta)) {
    p_chain->log_posterior = -INFINITY;
    return TB_STATUS_ok; /* a density of 0: the caller refuses to start */
  }
  return evaluate(p_chain,
                  p_chain->v_theta,
                  p_chain->v_gradient,
                  &p_chain->log_posterior);
}

enum tb_status tb_metropolis_begin(struct tb_chain* p_chain) {
  if (!uses_minibatch_ratio(p_chain)) {
    return TB_STATUS_ok;
  }
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_batch];
  const struct tb_rng before = *p_rng;
  const enum tb_status status = tb_chain_gradient(p_chain,
                                                  p_chain->v_theta,
                                                  p_chain->v_gradient,
                                                  &p_chain->log_posterior);
  *p_rng = before;
  return status;
}

enum tb_status tb_metropolis_evaluate(struct tb_chain* p_chain,
                                      struct tb_proposal* p_proposal) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  p_proposal->is_possible = false;
  if (p_model->type->is_outside != NULL &&
      p_model->type->is_outside(p_model, &p_chain->work, p_proposal->v_theta)) {
    p_chain->counts.n_outside += 1;
    return TB_STATUS_ok;
  }
  const enum tb_status status = evaluate(p_chain,
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

double tb_metropolis_decide(struct tb_chain* p_chain,
                            const struct tb_proposal* p_proposal,
                            double log_ratio) {
  const size_t n_byte = p_chain->n_dim * sizeof(double);
  const double uniform = tb_rng_unif(&p_chain->v_rng[TB_STREAM_accept]);
  p_chain->counts.n_propose += 1;
  if (!p_proposal->is_possible || isnan(log_ratio)) {
    return 0;
  }
  log_ratio += p_proposal->log_posterior - p_chain->log_posterior;
  if (log(uniform) < log_ratio) {
    memcpy(p_chain->v_theta, p_proposal->v_theta, n_byte);
    memcpy(p_chain->v_gradient, p_proposal->v_gradient, n_byte);
    p_chain->log_posterior = p_proposal->log_posterior;
    p_chain->counts.n_accept += 1;
  }
  return fmin(1, exp(log_ratio));
}
