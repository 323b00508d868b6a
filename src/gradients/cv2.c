/* Control variates of order 2: the rows' terms are expanded about a reference,
 * and a minibatch estimates only what is beyond, as Bardenet, Doucet & Holmes
 * (2017, JMLR 18:47, section 7.2) do with log likelihoods:
 *
 *   g_0(theta) + s [G - H delta + (1/n) sum_{i in S} a_i / p_i],
 *   a_i = g_i(theta) - g_i(ref) - H_i delta,  delta = theta - ref
 *
 * with G and H sums over all rows at the reference, see passes/expansion.h. H
 * is the sum of exactly the rows' Hessians: so it is unbiased everywhere, with
 * any reference, and a_i is of the order of delta^2. A prior that is quadratic,
 * with curvature P, leaves g_0(ref) + s G - A delta for all that needs no row,
 * A = P + s H: -delta alone in the coordinates that are whitened there.
 *
 *   symbol   variable   shape          owner
 *   ref      v_at       n_dim          expansion (sampler coordinates)
 *   G, H     v_total, v_hessian        expansion
 *   A        v_bend     n_dim x n_dim  cv2
 */
#include "gradients/cv2-inside.h"

#include "base/clip.h"
#include "base/memory.h"
#include "gradients/factors.h"
#include "gradients/minibatch.h"
#include "subsampling/subsample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A differs from the identity by rounding only */
#define WHITE 1e-11

static size_t cv2_self_size(const struct tb_model* p_model) {
  (void)p_model;
  return sizeof(struct tb_cv2);
}

static void cv2_destroy(struct tb_estimator* p_estimator) {
  struct tb_cv2* p = p_estimator->p_self;
  tb_factors_destroy(p->p_factors);
  p->p_factors = NULL;
  tb_expansion_destroy(&p->expansion);
  tb_big_free(p->p_memory, p->n_byte);
  p->p_memory = NULL;
}

/* The prior where the reference is, and what needs no row. */
static enum tb_status cv2_set_prior(struct tb_cv2* p,
                                    const struct tb_model* p_model) {
  const size_t n_dim = p_model->n_dim;
  const size_t n_work = tb_model_work_size(p_model, 1);
  void* p_scratch = calloc(1, n_work + 64);
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  const struct tb_workspace work = {.p_scratch = p_scratch};
  const double* v_at = p->expansion.v_at;
  const enum tb_status status =
      p_model->type->prior(p_model, &work, v_at, p->v_prior, &p->log_prior);
  free(p_scratch);
  if (status != TB_STATUS_ok) {
    return status;
  }
  p->is_quadratic = p_model->type->prior_quadratic != NULL &&
                    p_model->type->prior_quadratic(p_model, v_at, p->v_P);
  double most = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    p->v_sum[j] = p->v_prior[j] + p->scale * p->expansion.v_total[j];
    for (size_t i = 0; i < n_dim; ++i) {
      const size_t at = j * n_dim + i;
      p->v_bend[at] = p->v_P[at] + p->scale * p->expansion.v_hessian[at];
      most = fmax(most, fabs(p->v_bend[at] - (i == j)));
    }
  }
  p->mean = !p->is_quadratic ? TB_CV2_any
            : most < WHITE   ? TB_CV2_white
                             : TB_CV2_quadratic;
  return TB_STATUS_ok;
}

/* G and H of more rows than the model has, where they are given. */
static enum tb_status cv2_take_sums(struct tb_cv2* p,
                                    const struct tb_params* p_params) {
  const struct tb_param* p_total = tb_params_find(p_params, "total");
  const struct tb_param* p_hessian = tb_params_find(p_params, "hessian");
  const size_t n_dim = p->expansion.p_model->n_dim;
  if (p_total == NULL && p_hessian == NULL) {
    return TB_STATUS_ok;
  }
  if (p_total == NULL || p_total->n_value != n_dim || p_hessian == NULL ||
      p_hessian->n_value != n_dim * n_dim ||
      p->expansion.p_model->p_frame != NULL) {
    return TB_STATUS_argument;
  }
  memcpy(p->expansion.v_total, p_total->v_value, n_dim * sizeof(double));
  memcpy(p->expansion.v_hessian,
         p_hessian->v_value,
         n_dim * n_dim * sizeof(double));
  return TB_STATUS_ok;
}

/* Parameters: "at" (n_dim), "scale" (of the likelihood), "factorised" (0/1: a
 * factorised test is wanted), "total" (n_dim) and "hessian" (n_dim x n_dim),
 * where the sums are not those of the model's rows, those of the surrogate, see
 * factors.c, and those of rows drawn ahead, see drawn.c. Of a model with
 * hyperparameters only what its rows see is expanded, for the test alone. */
static enum tb_status cv2_init(struct tb_estimator* p_estimator,
                               struct tb_model* p_model,
                               const struct tb_params* p_params,
                               int n_threads) {
  struct tb_cv2* p = p_estimator->p_self;
  const struct tb_param* p_at = tb_params_find(p_params, "at");
  const struct tb_model* p_rows = tb_model_of_rows(p_model);
  const size_t n_dim = p_rows->n_dim;
  const bool is_factorised = tb_params_number(p_params, "factorised", 0) != 0;
  *p = (struct tb_cv2){.scale = tb_params_number(p_params, "scale", 1),
                       .p_mixtures = p_model->p_mixtures};
  if (p_at == NULL || p_at->n_value != p_model->n_dim || !(p->scale > 0)) {
    return TB_STATUS_argument;
  }
  if (p->p_mixtures != NULL && !is_factorised) {
    return TB_STATUS_unsupported; /* phi has no expansion */
  }
  p->n_byte = (2 * n_dim + 2 * n_dim * n_dim) * sizeof(double);
  p->p_memory = n_dim > TB_EXPANSION_MOST ? NULL : tb_big_alloc(p->n_byte);
  if (p->p_memory == NULL) {
    return n_dim > TB_EXPANSION_MOST ? TB_STATUS_unsupported : TB_STATUS_memory;
  }
  memset(p->p_memory, 0, p->n_byte);
  p->v_prior = (double*)(void*)p->p_memory;
  p->v_sum = p->v_prior + n_dim;
  p->v_bend = p->v_sum + n_dim;
  p->v_P = p->v_bend + n_dim * n_dim;
  tb_model_fold(p_rows, p_at->v_value, p->v_sum);
  enum tb_status status = tb_expansion_make(p_rows,
                                            p->v_sum,
                                            n_threads,
                                            &p->expansion,
                                            &p_estimator->n_row);
  if (status == TB_STATUS_ok) {
    status = cv2_take_sums(p, p_params);
  }
  if (status == TB_STATUS_ok) {
    status = cv2_set_prior(p, p_rows);
  }
  if (status == TB_STATUS_ok && is_factorised) {
    status = tb_factors_make(p, p_params, &p->p_factors);
    p_estimator->may_wait = tb_params_find(p_params, "ahead_rows") != NULL;
  }
  return status; /* the run calls destroy() */
}

static size_t cv2_scratch_size(const struct tb_model* p_model, size_t n_batch) {
  (void)n_batch;
  return tb_align(tb_expansion_scratch_size(p_model)) +
         tb_factors_scratch_size(p_model);
}

/* v_gradient := g_0(theta) + s (G - H delta + v_rows) */
static enum tb_status cv2_finish(const struct tb_chain* p_chain,
                                 const struct tb_expansion_view* p_view,
                                 const double* v_rows,
                                 double* v_gradient,
                                 double* p_log_prior) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const size_t n_dim = p_chain->n_dim;
  enum tb_status status = TB_STATUS_ok;
  if (p->mean == TB_CV2_any || p_log_prior != NULL) {
    status = p_model->type->prior(p_model,
                                  &p_chain->work,
                                  p_view->v_theta,
                                  v_gradient,
                                  p_log_prior);
  }
  if (p->mean == TB_CV2_any) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_gradient[j] +=
          p->scale * (p->expansion.v_total[j] - p_view->v_bent[j] + v_rows[j]);
    }
    return status;
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_gradient[j] = p->v_sum[j] - p_view->v_delta[j] + p->scale * v_rows[j];
  }
  for (size_t j = 0; p->mean == TB_CV2_quadratic && j < n_dim; ++j) {
    /* less what a white one would have had */
    const double* v_row = p->v_bend + j * n_dim;
    double sum = -p_view->v_delta[j];
    for (size_t i = 0; i < n_dim; ++i) {
      sum += v_row[i] * p_view->v_delta[i];
    }
    v_gradient[j] -= sum;
  }
  return status;
}

/* What a test by minibatches looks at. */
static enum tb_status cv2_add_loss(const struct tb_chain* p_chain,
                                   const double* v_theta,
                                   const struct tb_batch* p_batch,
                                   const struct tb_sums* p_loss) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  return p_model->type
      ->gradient(p_model, &p_chain->work, v_theta, p_batch, NULL, p_loss);
}

static enum tb_status cv2_estimate(struct tb_chain* p_chain,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_posterior) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_batch* p_always = &p_target->p_scheme->always;
  double* v_rows = p_chain->p_estimator_scratch;
  struct tb_batch batch;
  enum tb_status status =
      p_target->p_scheme->type->draw(p_chain, v_theta, &batch);
  if (status != TB_STATUS_ok) {
    return status;
  }
  const bool has_variance = tb_minibatch_begin(p_chain, &batch);
  const struct tb_expansion_view view =
      tb_expansion_look(&p->expansion,
                        v_theta,
                        p->mean == TB_CV2_any,
                        p_chain->p_estimator_extra);
  const struct tb_sums sums = {.v_gradient = v_rows,
                               .v_square =
                                   has_variance ? p_chain->v_variance : NULL};
  status =
      tb_expansion_add(&p->expansion, &p_chain->work, &view, &batch, &sums);
  if (status != TB_STATUS_ok) {
    return status;
  }
  tb_minibatch_settle(p_chain, &batch);
  double log_lik = 0, log_prior = 0;
  const struct tb_sums plain = {.v_gradient = v_rows};
  const struct tb_sums loss = {.p_log_lik = &log_lik};
  const bool wants_loss = p_log_posterior != NULL;
  for (size_t first = 0; first < p_always->n_batch && status == TB_STATUS_ok;
       first += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(p_always, first, TB_CHUNK);
    status =
        tb_expansion_add(&p->expansion, &p_chain->work, &view, &part, &plain);
    if (status == TB_STATUS_ok && wants_loss) {
      status = cv2_add_loss(p_chain, v_theta, &part, &loss);
    }
  }
  if (status == TB_STATUS_ok && wants_loss) {
    status = cv2_add_loss(p_chain, v_theta, &batch, &loss);
  }
  if (status == TB_STATUS_ok) {
    status = cv2_finish(p_chain,
                        &view,
                        v_rows,
                        v_gradient,
                        wants_loss ? &log_prior : NULL);
  }
  if (wants_loss) {
    *p_log_posterior = log_prior + p->scale * log_lik;
  }
  return status;
}

static enum tb_status cv2_square_norms(struct tb_chain* p_chain,
                                       const double* v_theta,
                                       double* v_square) {
  const struct tb_cv2* p = tb_cv2_of(p_chain);
  const struct tb_batch all = {.n_batch = p_chain->p_target->p_model->n_data,
                               .weight = 1};
  const struct tb_expansion_view view =
      tb_expansion_look(&p->expansion,
                        v_theta,
                        false,
                        p_chain->p_estimator_extra);
  return tb_expansion_square_norms(&p->expansion,
                                   &p_chain->work,
                                   &view,
                                   &all,
                                   v_square,
                                   NULL,
                                   p_chain->p_estimator_scratch);
}

static const struct tb_surrogate*
cv2_surrogate(const struct tb_estimator* p_estimator) {
  const struct tb_cv2* p = p_estimator->p_self;
  return tb_factors_surrogate(p->p_factors);
}

const struct tb_estimator_type tb_estimator_cv2 = {
    .name = "cv2",
    .citation = "Bardenet, Doucet & Holmes (2017), JMLR 18:47",
    .flags = TB_ESTIMATOR_VARIANCE | TB_ESTIMATOR_REFERENCE,
    .self_size = cv2_self_size,
    .init = cv2_init,
    .destroy = cv2_destroy,
    .scratch_size = cv2_scratch_size,
    .square_norms = cv2_square_norms,
    .estimate = cv2_estimate,
    .surrogate = cv2_surrogate,
    .v_test = {[TB_TEST_full] = &tb_test_pass,
               [TB_TEST_minibatch] = &tb_test_minibatch,
               [TB_TEST_factorised] = &tb_test_factorised},
};
