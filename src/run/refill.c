/* Chains that wait for rows get a new model that holds them. */
#include "base/clip.h"
#include "base/memory.h"
#include "run/inside.h"

#include <string.h>

static size_t work_size(const struct tb_run* p_run,
                        const struct tb_model* p_model) {
  const size_t n_batch = tb_max(TB_CHUNK, p_run->scheme.n_size_max);
  return tb_model_work_size(p_model, n_batch);
}

static size_t scratch_size(const struct tb_run* p_run,
                           const struct tb_model* p_model) {
  const struct tb_estimator_type* type = p_run->estimator.type;
  return type->scratch_size == NULL
             ? 0
             : type->scratch_size(p_model, p_run->scheme.n_size_max);
}

/* A model around another has a table of its own. */
static bool are_alike(const struct tb_model_type* p_new,
                      const struct tb_model_type* p_old) {
  return p_new == p_old ||
         (p_new->name == p_old->name && p_new->flags == p_old->flags &&
          p_new->prior == p_old->prior && p_new->gradient == p_old->gradient);
}

static bool can_replace(const struct tb_run* p_run,
                        const struct tb_model* p_model) {
  const struct tb_model* p_old = p_run->spec.p_model;
  return p_run->estimator.may_wait && p_run->estimator.p_self != NULL &&
         p_run->scheme.type == NULL && are_alike(p_model->type, p_old->type) &&
         p_model->n_dim == p_old->n_dim &&
         p_model->n_natural == p_old->n_natural && p_model->p_frame == NULL &&
         work_size(p_run, p_model) <= work_size(p_run, p_old) &&
         scratch_size(p_run, p_model) <= scratch_size(p_run, p_old);
}

/* What chains keep of the estimator that they had. */
static void clear_chains(struct tb_run* p_run) {
  const size_t n_scratch = scratch_size(p_run, p_run->spec.p_model);
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    struct tb_slot* p_slot = &p_run->v_slot[c];
    if (n_scratch > 0) {
      memset(p_slot->chain.p_estimator_extra, 0, n_scratch);
    }
    if (p_slot->report.status == TB_STATUS_exhausted) {
      p_slot->report.status = TB_STATUS_ok;
    }
  }
}

enum tb_status tb_run_refill(struct tb_run* p_run,
                             struct tb_model* p_model,
                             const struct tb_params* p_params,
                             int n_threads) {
  const struct tb_estimator_type* type = p_run->estimator.type;
  if (!can_replace(p_run, p_model)) {
    return TB_STATUS_unsupported;
  }
  const size_t n_self = type->self_size(p_model);
  struct tb_estimator fresh = {.type = type, .p_self = tb_big_alloc(n_self)};
  enum tb_status status =
      fresh.p_self == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  if (status == TB_STATUS_ok) {
    status = type->init(&fresh, p_model, p_params, n_threads);
    if (status == TB_STATUS_ok && !fresh.may_wait) {
      status = TB_STATUS_argument;
    }
    if (status != TB_STATUS_ok && type->destroy != NULL) {
      type->destroy(&fresh);
    }
  }
  if (status != TB_STATUS_ok) {
    tb_big_free(fresh.p_self, n_self);
    return status;
  }
  fresh.n_row += p_run->estimator.n_row;
  if (type->destroy != NULL) {
    type->destroy(&p_run->estimator);
  }
  tb_big_free(p_run->p_refill, p_run->n_refill_byte);
  p_run->p_refill = fresh.p_self;
  p_run->n_refill_byte = n_self;
  p_run->estimator = fresh;
  p_run->spec.p_model = p_model;
  p_run->target.p_model = p_model;
  clear_chains(p_run);
  return TB_STATUS_ok;
}
