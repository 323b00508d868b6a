#include "gradients/minibatch.h"

#include "passes/rows.h"
#include "subsampling/subsample.h"

#include <string.h>

void tb_estimator_variance(const struct tb_batch* p_batch,
                           const double* v_sum,
                           double* v_square,
                           size_t n_dim) {
  const double n = (double)p_batch->n_batch;
  const double factor = p_batch->finite * n / (n - 1);
  for (size_t j = 0; j < n_dim; ++j) {
    const double s = factor * (v_square[j] - v_sum[j] * v_sum[j] / n);
    v_square[j] = s > 0 ? s : 0;
  }
}

bool tb_minibatch_begin(struct tb_chain* p_chain,
                        const struct tb_batch* p_batch) {
  const size_t n_byte = p_chain->n_dim * sizeof(double);
  memset(p_chain->p_estimator_scratch, 0, n_byte);
  if (p_batch->finite == 0) {
    tb_minibatch_exact(p_chain);
    return false;
  }
  p_chain->is_exact = false;
  p_chain->has_variance = p_chain->wants_variance && p_batch->n_batch > 1;
  if (p_chain->has_variance) {
    memset(p_chain->v_variance, 0, n_byte);
  }
  return p_chain->has_variance;
}

void tb_minibatch_exact(struct tb_chain* p_chain) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const bool is_noisy = p_model->type->flags & TB_MODEL_NOISY;
  p_chain->is_exact = !is_noisy;
  p_chain->has_variance = p_chain->wants_variance;
  if (p_chain->wants_variance && is_noisy) {
    p_model->type->noise_variance(p_model, p_chain->v_variance);
  } else if (p_chain->wants_variance) {
    memset(p_chain->v_variance, 0, p_chain->n_dim * sizeof(double));
  }
}

/* What an estimate leaves behind besides the gradient. */
static void minibatch_count(struct tb_chain* p_chain,
                            const struct tb_batch* p_batch) {
  p_chain->n_batch =
      p_batch->n_batch + p_chain->p_target->p_scheme->always.n_batch;
  p_chain->counts.n_row += (double)p_chain->n_batch;
  p_chain->counts.n_full += p_chain->is_exact;
}

/* Add what the rows of every minibatch say. */
static enum tb_status minibatch_always(const struct tb_chain* p_chain,
                                       const double* v_theta,
                                       const struct tb_reference* p_reference,
                                       double* v_sum,
                                       double* p_log_lik) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const struct tb_batch* p_always = &p_chain->p_target->p_scheme->always;
  const struct tb_sums sums = {.v_gradient = v_sum, .p_log_lik = p_log_lik};
  enum tb_status status = TB_STATUS_ok;
  /* in pieces that a chain's scratch has room for */
  for (size_t first = 0; first < p_always->n_batch && status == TB_STATUS_ok;
       first += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(p_always, first, TB_CHUNK);
    status = p_model->type->gradient(p_model,
                                     &p_chain->work,
                                     v_theta,
                                     &part,
                                     p_reference,
                                     &sums);
  }
  return status;
}

void tb_minibatch_settle(struct tb_chain* p_chain,
                         const struct tb_batch* p_batch) {
  const double scale = p_chain->p_target->likelihood_scale;
  if (p_chain->has_variance && !p_chain->is_exact) {
    tb_estimator_variance(p_batch,
                          p_chain->p_estimator_scratch,
                          p_chain->v_variance,
                          p_chain->n_dim);
    for (size_t j = 0; scale != 1 && j < p_chain->n_dim; ++j) {
      p_chain->v_variance[j] *= scale * scale;
    }
  }
  minibatch_count(p_chain, p_batch);
}

enum tb_status tb_minibatch_end(struct tb_chain* p_chain,
                                const double* v_theta,
                                const struct tb_reference* p_reference,
                                const double* v_base,
                                const struct tb_batch* p_batch,
                                double* v_gradient,
                                double* p_log_prior,
                                double* p_log_lik) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  const double scale = p_target->likelihood_scale;
  const size_t n_dim = p_chain->n_dim;
  double* v_sum = p_chain->p_estimator_scratch;

  tb_minibatch_settle(p_chain, p_batch);
  enum tb_status status =
      minibatch_always(p_chain, v_theta, p_reference, v_sum, p_log_lik);
  if (status == TB_STATUS_ok) {
    status = p_model->type->prior(p_model,
                                  &p_chain->work,
                                  v_theta,
                                  v_gradient,
                                  p_log_prior);
  }
  if (status != TB_STATUS_ok) {
    return status;
  }
  if (v_base == NULL) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_gradient[j] += scale * v_sum[j];
    }
  } else {
    for (size_t j = 0; j < n_dim; ++j) {
      v_gradient[j] += scale * (v_base[j] + v_sum[j]);
    }
  }
  return TB_STATUS_ok;
}

/* Where nothing is subtracted, scaled or asked of the noise, the rows' terms go
 * on top of the prior's: with very many parameters two passes over them, and
 * the room of a third vector in the cache, are worth sparing. */
static enum tb_status minibatch_in_place(struct tb_chain* p_chain,
                                         const double* v_theta,
                                         const struct tb_batch* p_batch,
                                         double* v_gradient) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const struct tb_sums sums = {.v_gradient = v_gradient};
  p_chain->is_exact = p_chain->has_variance = false;
  if (p_batch->finite == 0) {
    tb_minibatch_exact(p_chain);
  }
  minibatch_count(p_chain, p_batch);
  enum tb_status status =
      p_model->type->prior(p_model, &p_chain->work, v_theta, v_gradient, NULL);
  if (status == TB_STATUS_ok) {
    status = p_model->type->gradient(p_model,
                                     &p_chain->work,
                                     v_theta,
                                     p_batch,
                                     NULL,
                                     &sums);
  }
  return status == TB_STATUS_ok
             ? minibatch_always(p_chain, v_theta, NULL, v_gradient, NULL)
             : status;
}

enum tb_status tb_minibatch_estimate(struct tb_chain* p_chain,
                                     const double* v_theta,
                                     const struct tb_reference* p_reference,
                                     const double* v_base,
                                     struct tb_batch* p_batch,
                                     double* v_scalar,
                                     double* v_gradient,
                                     double* p_log_posterior) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  enum tb_status status =
      p_target->p_scheme->type->draw(p_chain, v_theta, p_batch);
  if (status != TB_STATUS_ok) {
    return status;
  }
  const bool is_plain = p_reference == NULL && v_base == NULL &&
                        v_scalar == NULL && p_log_posterior == NULL;
  if (is_plain && !p_chain->wants_variance && p_target->likelihood_scale == 1) {
    return minibatch_in_place(p_chain, v_theta, p_batch, v_gradient);
  }
  const bool has_variance = tb_minibatch_begin(p_chain, p_batch);
  const bool wants_loss = p_log_posterior != NULL;
  double log_lik = 0, log_prior = 0;
  const struct tb_sums sums = {.v_gradient = p_chain->p_estimator_scratch,
                               .v_square =
                                   has_variance ? p_chain->v_variance : NULL,
                               .p_log_lik = wants_loss ? &log_lik : NULL,
                               .v_scalar = v_scalar};
  status = p_model->type->gradient(p_model,
                                   &p_chain->work,
                                   v_theta,
                                   p_batch,
                                   p_reference,
                                   &sums);
  if (status != TB_STATUS_ok) {
    return status;
  }
  status = tb_minibatch_end(p_chain,
                            v_theta,
                            p_reference,
                            v_base,
                            p_batch,
                            v_gradient,
                            wants_loss ? &log_prior : NULL,
                            wants_loss ? &log_lik : NULL);
  if (wants_loss) {
    *p_log_posterior = log_prior + p_target->likelihood_scale * log_lik;
  }
  return status;
}

enum tb_status tb_minibatch_square_norms(struct tb_chain* p_chain,
                                         const double* v_theta,
                                         const struct tb_reference* p_reference,
                                         double* v_square) {
  return tb_model_all_square_norms(p_chain->p_target->p_model,
                                   &p_chain->work,
                                   v_theta,
                                   p_reference,
                                   v_square,
                                   NULL,
                                   p_chain->p_estimator_scratch);
}

enum tb_status tb_full_pass(struct tb_chain* p_chain,
                            const double* v_theta,
                            double* v_scalar,
                            double* v_sum) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const struct tb_sums sums = {.v_gradient = v_sum, .v_scalar = v_scalar};
  memset(v_sum, 0, p_chain->n_dim * sizeof(double));
  const enum tb_status status =
      tb_model_all_gradient(p_model, &p_chain->work, v_theta, &sums);
  p_chain->counts.n_row += (double)p_model->n_data;
  p_chain->counts.n_full += 1;
  return status;
}
