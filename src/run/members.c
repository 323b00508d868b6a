/* The members of a run: found by name, asked for their sizes, made, and checked
 * against each other. */
#include "run/inside.h"

enum tb_status tb_run_find_members(struct tb_run* p_run) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  p_run->kernel.type = tb_kernel_find(p_spec->kernel.name);
  p_run->estimator.type = tb_estimator_find(p_spec->estimator.name);
  p_run->schedule.type = tb_schedule_find(p_spec->schedule.name);
  if (p_spec->scheme.name != NULL) {
    p_run->scheme.type = tb_scheme_find(p_spec->scheme.name);
    if (p_run->scheme.type == NULL) {
      return TB_STATUS_argument;
    }
  }
  const bool needs_scheme =
      p_run->estimator.type != NULL && p_run->kernel.type != NULL &&
      !(p_run->estimator.type->flags & TB_ESTIMATOR_FULL) &&
      !(p_run->kernel.type->flags & TB_KERNEL_FACTORISED);
  return p_run->kernel.type == NULL || p_run->estimator.type == NULL ||
                 p_run->schedule.type == NULL ||
                 (needs_scheme && p_run->scheme.type == NULL)
             ? TB_STATUS_argument
             : TB_STATUS_ok;
}

struct tb_member_sizes tb_run_member_sizes(const struct tb_run* p_run) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  const struct tb_model* p_model = p_spec->p_model;
  struct tb_member_sizes sizes = {0};
  sizes.n_kernel = tb_kernel_self_size(p_run->kernel.type, p_model->n_dim);
  if (p_run->estimator.type->self_size != NULL) {
    sizes.n_estimator = p_run->estimator.type->self_size(p_model);
  }
  if (p_run->scheme.type != NULL && p_run->scheme.type->self_size != NULL) {
    sizes.n_scheme =
        p_run->scheme.type->self_size(&p_spec->scheme.params, p_model->n_data);
  }
  if (p_run->schedule.type->self_size != NULL) {
    sizes.n_schedule =
        p_run->schedule.type->self_size(&p_spec->schedule.params);
  }
  return sizes;
}

/* Does the kernel ask for a variance that no minibatch can show? */
static bool run_lacks_variance(const struct tb_run* p_run) {
  const unsigned flags = p_run->estimator.type->flags;
  return (p_run->kernel.flags & TB_KERNEL_VARIANCE) &&
         (!(flags & TB_ESTIMATOR_VARIANCE) ||
          (!(flags & TB_ESTIMATOR_FULL) && p_run->scheme.n_size_max < 2));
}

const struct tb_test_type* tb_run_test(const struct tb_run* p_run) {
  const unsigned kernel = p_run->kernel.flags;
  return p_run->estimator.type
      ->v_test[kernel & TB_KERNEL_FACTORISED ? TB_TEST_factorised
               : kernel & TB_KERNEL_LOSS     ? TB_TEST_minibatch
                                             : TB_TEST_full];
}

/* Can this kernel, now that its options are known, use this estimator? */
static enum tb_status run_check_members(const struct tb_run* p_run) {
  const unsigned kernel = p_run->kernel.flags;
  const unsigned estimator = p_run->estimator.type->flags;
  const unsigned model = p_run->spec.p_model->type->flags;
  const bool is_metropolis = kernel & TB_KERNEL_METROPOLIS;
  const bool is_refused =
      ((kernel & TB_KERNEL_SWEEPS) != 0) !=
          (p_run->spec.p_model->type->sweeps != NULL) ||
      (is_metropolis && (model & TB_MODEL_NO_DENSITY)) ||
      (is_metropolis && tb_run_test(p_run) == NULL) ||
      ((kernel & TB_KERNEL_FULL_GRADIENT) &&
       !(estimator & TB_ESTIMATOR_FULL)) ||
      (p_run->spec.is_bias_coupled && p_run->kernel.type->step_normal == NULL);
  return is_refused ? TB_STATUS_unsupported : TB_STATUS_ok;
}

enum tb_status tb_run_init_members(struct tb_run* p_run, int n_threads) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  struct tb_model* p_model = p_spec->p_model;

  p_run->scheme.n_data = p_model->n_data;
  enum tb_status status =
      tb_kernel_init(&p_run->kernel, p_model->n_dim, &p_spec->kernel.params);
  if (status == TB_STATUS_ok) {
    status = run_check_members(p_run);
  }
  if (status == TB_STATUS_ok && p_run->schedule.type->init != NULL) {
    status =
        p_run->schedule.type->init(&p_run->schedule, &p_spec->schedule.params);
  }
  if (status == TB_STATUS_ok && p_run->scheme.type != NULL) {
    status = p_run->scheme.type->init(&p_run->scheme,
                                      p_model,
                                      &p_spec->scheme.params);
  }
  if (status == TB_STATUS_ok && run_lacks_variance(p_run)) {
    return TB_STATUS_unsupported;
  }
  if (status == TB_STATUS_ok && p_run->estimator.type->init != NULL) {
    status = p_run->estimator.type->init(&p_run->estimator,
                                         p_model,
                                         &p_spec->estimator.params,
                                         n_threads);
  }
  return status;
}
