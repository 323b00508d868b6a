/* SVRG (Johnson & Zhang 2013; in SGLD: Dubey et al. 2016): control variates
 * whose reference moves to the current theta every m estimates, with one pass
 * over all rows. At that theta the estimate is the exact gradient, and no
 * minibatch is drawn.
 *
 *   sum_i g_i(ref) + g_0(theta) + (1/n) sum_{i in S} [g_i(theta) -
 * g_i(ref)]/p_i
 *
 * g_i(ref) is computed again, from rows that are in the cache already: a
 * second inner product costs less than fetching a stored scalar from memory,
 * works for every model, and the chain's state stays at 2 n_dim numbers.
 *
 *   symbol            variable     shape   owner
 *   ref               v_at         n_dim   chain's estimator state
 *   sum_i g_i(ref)    v_total      n_dim   chain's estimator state
 *   m                 n_refresh            svrg; 0: N / n, one pass of rows
 */
#include "gradients/minibatch.h"

#include "base/clip.h"
#include "subsampling/subsample.h"

#include <string.h>

struct svrg {
  size_t n_refresh;
};

/* Followed by v_at[n_dim] and v_total[n_dim]. */
struct svrg_state {
  uint64_t n_left; /* estimates until the reference moves */
};

static double* svrg_at(const struct tb_chain* p_chain) {
  return (double*)(void*)((struct svrg_state*)p_chain->p_estimator_state + 1);
}

static double* svrg_total(const struct tb_chain* p_chain) {
  return svrg_at(p_chain) + p_chain->n_dim;
}

static size_t svrg_self_size(const struct tb_model* p_model) {
  (void)p_model;
  return sizeof(struct svrg);
}

/* Parameter: "refresh" (m), optional. */
static enum tb_status svrg_init(struct tb_estimator* p_estimator,
                                struct tb_model* p_model,
                                const struct tb_params* p_params,
                                int n_threads) {
  struct svrg* p_svrg = p_estimator->p_self;
  (void)p_model;
  (void)n_threads;
  return tb_params_count(p_params,
                         "refresh",
                         (size_t)1 << 53,
                         0,
                         &p_svrg->n_refresh)
             ? TB_STATUS_ok
             : TB_STATUS_argument;
}

static size_t svrg_state_size(const struct tb_estimator* p_estimator,
                              const struct tb_model* p_model) {
  (void)p_estimator;
  return sizeof(struct svrg_state) + 2 * p_model->n_dim * sizeof(double);
}

static size_t svrg_period(const struct tb_target* p_target) {
  const struct svrg* p_svrg = p_target->p_estimator->p_self;
  const size_t n_data = p_target->p_model->n_data;
  const size_t n_size = tb_max(1, p_target->p_scheme->n_size);
  return p_svrg->n_refresh > 0 ? p_svrg->n_refresh
                               : (n_data + n_size - 1) / n_size;
}

static enum tb_status svrg_refresh(struct tb_chain* p_chain,
                                   const double* v_theta,
                                   double* v_gradient) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  struct svrg_state* p_state = p_chain->p_estimator_state;
  double* v_total = svrg_total(p_chain);
  enum tb_status status = tb_full_pass(p_chain, v_theta, NULL, v_total);
  if (status == TB_STATUS_ok) {
    status = p_model->type->prior(p_model,
                                  &p_chain->work,
                                  v_theta,
                                  v_gradient,
                                  NULL);
  }
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_gradient[j] += p_target->likelihood_scale * v_total[j];
  }
  memmove(svrg_at(p_chain), v_theta, p_chain->n_dim * sizeof(double));
  p_state->n_left = svrg_period(p_target) - 1;
  tb_minibatch_exact(p_chain);
  p_chain->n_batch = p_model->n_data;
  return status;
}

static enum tb_status svrg_estimate(struct tb_chain* p_chain,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_posterior) {
  struct svrg_state* p_state = p_chain->p_estimator_state;
  const struct tb_reference reference = {.v_theta = svrg_at(p_chain)};
  struct tb_batch batch;
  (void)p_log_posterior;
  if (p_state->n_left == 0) {
    return svrg_refresh(p_chain, v_theta, v_gradient);
  }
  p_state->n_left -= 1;
  return tb_minibatch_estimate(p_chain,
                               v_theta,
                               &reference,
                               svrg_total(p_chain),
                               &batch,
                               NULL,
                               v_gradient,
                               NULL);
}

static enum tb_status svrg_square_norms(struct tb_chain* p_chain,
                                        const double* v_theta,
                                        double* v_square) {
  const struct tb_reference reference = {.v_theta = svrg_at(p_chain)};
  return tb_minibatch_square_norms(p_chain, v_theta, &reference, v_square);
}

const struct tb_estimator_type tb_estimator_svrg = {
    .name = "svrg",
    .citation = "Johnson & Zhang (2013), NeurIPS 26",
    .flags = TB_ESTIMATOR_VARIANCE,
    .self_size = svrg_self_size,
    .init = svrg_init,
    .state_size = svrg_state_size,
    .square_norms = svrg_square_norms,
    .estimate = svrg_estimate,
};
