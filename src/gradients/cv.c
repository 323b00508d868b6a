/* Control variates (Baker, Fearnhead, Fox & Nemeth 2019, section 3):
 *
 *   g_0(theta) + sum_i g_i(ref) + (1/n) sum_{i in S} a_i / p_i,
 *   a_i = g_i(theta) - g_i(ref)
 *
 * Where g_i = r_i x_i, the scalars r_i(ref) stand in the model beside y_i, and
 * the estimate costs one inner product a row, as the simple one does.
 *
 *   symbol            variable   shape    owner
 *   ref               v_at       n_dim    cv (sampler coordinates)
 *   sum_i g_i(ref)    v_total    n_dim    cv
 */
#include "gradients/minibatch.h"

#include "base/clip.h"
#include "passes/rows.h"

#include <stdlib.h>
#include <string.h>

struct cv {
  struct tb_reference reference;
  double* v_at;
  double* v_total;
  uint64_t n_stored; /* the model's count when the scalars were ours */
};

static size_t cv_self_size(const struct tb_model* p_model) {
  return tb_align(sizeof(struct cv)) + 2 * p_model->n_dim * sizeof(double);
}

/* sum of g_i(ref) over all rows, for a model without stored scalars */
static enum tb_status cv_total(struct cv* p_cv, struct tb_model* p_model) {
  const size_t n_work = tb_model_work_size(p_model, TB_CHUNK);
  void* p_scratch = calloc(1, n_work + 64);
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  const struct tb_workspace work = {.p_scratch = p_scratch};
  const struct tb_sums sums = {.v_gradient = p_cv->v_total};
  const enum tb_status status =
      tb_model_all_gradient(p_model, &work, p_cv->v_at, &sums);
  free(p_scratch);
  return status;
}

static enum tb_status cv_set(struct tb_estimator* p_estimator,
                             struct tb_model* p_model,
                             int n_threads) {
  struct cv* p_cv = p_estimator->p_self;
  memset(p_cv->v_total, 0, p_model->n_dim * sizeof(double));
  p_cv->reference = (struct tb_reference){.v_theta = p_cv->v_at};
  p_estimator->n_row += (double)p_model->n_data;
  if (p_model->type->store_scalar == NULL) {
    return cv_total(p_cv, p_model);
  }
  const enum tb_status status =
      tb_model_store_scalar(p_model, p_cv->v_at, p_cv->v_total, n_threads);
  p_model->n_stored += 1;
  p_cv->n_stored = p_model->n_stored;
  p_cv->reference = p_model->type->stored_scalar(p_model);
  p_cv->reference.v_theta = p_cv->v_at;
  return status;
}

/* Another run on the same model may have stored its own scalars. */
static enum tb_status cv_refresh(struct tb_estimator* p_estimator,
                                 struct tb_model* p_model,
                                 int n_threads) {
  const struct cv* p_cv = p_estimator->p_self;
  return p_cv->n_stored == p_model->n_stored
             ? TB_STATUS_ok
             : cv_set(p_estimator, p_model, n_threads);
}

/* Parameter: "at" (n_dim). */
static enum tb_status cv_init(struct tb_estimator* p_estimator,
                              struct tb_model* p_model,
                              const struct tb_params* p_params,
                              int n_threads) {
  struct cv* p_cv = p_estimator->p_self;
  const struct tb_param* p_at = tb_params_find(p_params, "at");
  if (p_at == NULL || p_at->n_value != p_model->n_dim) {
    return TB_STATUS_argument;
  }
  p_cv->v_at = (double*)((char*)p_cv + tb_align(sizeof(*p_cv)));
  p_cv->v_total = p_cv->v_at + p_model->n_dim;
  tb_model_fold(p_model, p_at->v_value, p_cv->v_at);
  return cv_set(p_estimator, p_model, n_threads);
}

static enum tb_status cv_estimate(struct tb_chain* p_chain,
                                  const double* v_theta,
                                  double* v_gradient,
                                  double* p_log_posterior) {
  const struct cv* p_cv = p_chain->p_target->p_estimator->p_self;
  struct tb_batch batch;
  return tb_minibatch_estimate(p_chain,
                               v_theta,
                               &p_cv->reference,
                               p_cv->v_total,
                               &batch,
                               NULL,
                               v_gradient,
                               p_log_posterior);
}

static enum tb_status cv_square_norms(struct tb_chain* p_chain,
                                      const double* v_theta,
                                      double* v_square) {
  const struct cv* p_cv = p_chain->p_target->p_estimator->p_self;
  return tb_minibatch_square_norms(p_chain,
                                   v_theta,
                                   &p_cv->reference,
                                   v_square);
}

const struct tb_estimator_type tb_estimator_cv = {
    .name = "cv",
    .citation = "Baker, Fearnhead, Fox & Nemeth (2019), Stat. Comput. 29:599",
    .flags = TB_ESTIMATOR_VARIANCE | TB_ESTIMATOR_REFERENCE,
    .self_size = cv_self_size,
    .init = cv_init,
    .refresh = cv_refresh,
    .square_norms = cv_square_norms,
    .estimate = cv_estimate,
    .v_test = {[TB_TEST_full] = &tb_test_pass,
               [TB_TEST_minibatch] = &tb_test_minibatch},
};
