/* The recorder: kept draws into the arrays of R, and to the moments. */
#include "models/sweeps.h"
#include "run/inside.h"

const double* tb_slot_parameter(struct tb_slot* p_slot) {
  const struct tb_model* p_model = p_slot->chain.p_target->p_model;
  if (p_model->p_frame == NULL) {
    return p_slot->chain.v_theta;
  }
  tb_frame_to_parameter(p_model->p_frame,
                        p_slot->chain.v_theta,
                        p_slot->v_parameter);
  return p_slot->v_parameter;
}

/* The gradient there, with respect to the parameters, in v_pushed. */
static const double* slot_gradient(struct tb_slot* p_slot) {
  const struct tb_model* p_model = p_slot->chain.p_target->p_model;
  const struct tb_test_type* p_test = p_slot->chain.p_target->p_test;
  if (p_test != NULL && p_test->gradient != NULL) {
    p_test->gradient(&p_slot->chain, p_slot->chain.v_gradient);
  }
  if (p_model->p_frame == NULL) {
    return p_slot->chain.v_gradient;
  }
  tb_frame_push_gradient(p_model->p_frame,
                         p_slot->chain.v_gradient,
                         p_slot->v_pushed);
  return p_slot->v_pushed;
}

/* v_which: the numbers, from 1, of the n that are kept, which tb_run_records()
 * has checked; NULL: the first n */
static void put(double* v_array,
                const double* v_from,
                const double* v_which,
                size_t n,
                size_t n_keep,
                size_t n_chain,
                size_t draw,
                size_t chain) {
  for (size_t j = 0; v_array != NULL && j < n; ++j) {
    v_array[draw + n_keep * (chain + n_chain * j)] =
        v_from[v_which == NULL ? j : (size_t)v_which[j] - 1];
  }
}

void tb_slot_record(struct tb_slot* p_slot,
                    const struct tb_run* p_run,
                    size_t c,
                    const struct tb_recorder* p_recorder) {
  const struct tb_model* p_model = p_run->spec.p_model;
  const struct tb_chain* p_chain = &p_slot->chain;
  const size_t n_keep = p_recorder->n_keep, n_chain = p_run->spec.n_chain;
  const size_t k = p_slot->report.n_kept;
  const double size = (double)p_chain->n_batch;
  const double* v_which = p_recorder->v_which;
  const size_t n_draw =
      v_which == NULL ? p_model->n_natural : p_recorder->n_which;
  const size_t n_parameter =
      v_which == NULL ? p_model->n_dim : p_recorder->n_which;

  if (p_recorder->v_draw != NULL || p_recorder->v_unconstrained != NULL ||
      p_slot->v_moments != NULL) {
    const double* v_parameter = tb_slot_parameter(p_slot);
    const double* v_natural = v_parameter;
    if (p_model->type->constrain != NULL) {
      p_model->type->constrain(p_model, v_parameter, p_slot->v_natural);
      v_natural = p_slot->v_natural;
    }
    put(p_recorder->v_draw, v_natural, v_which, n_draw, n_keep, n_chain, k, c);
    put(p_recorder->v_unconstrained,
        v_parameter,
        v_which,
        n_parameter,
        n_keep,
        n_chain,
        k,
        c);
    if (p_slot->v_moments != NULL) {
      tb_slot_add_moments(p_slot->v_moments,
                          v_natural,
                          p_model->n_natural,
                          p_run->spec.keeps_covariance,
                          p_slot->v_shift);
    }
  }
  if (p_recorder->v_gradient != NULL) {
    put(p_recorder->v_gradient,
        slot_gradient(p_slot),
        v_which,
        n_parameter,
        n_keep,
        n_chain,
        k,
        c);
  }
  put(p_recorder->v_size, &size, NULL, 1, n_keep, n_chain, k, c);
  put(p_recorder->v_weight,
      &p_chain->step_scale,
      NULL,
      1,
      n_keep,
      n_chain,
      k,
      c);
  put(p_recorder->v_log_posterior,
      &p_chain->log_posterior,
      NULL,
      1,
      n_keep,
      n_chain,
      k,
      c);
  if (p_recorder->v_effect != NULL) {
    const struct tb_model_sweeps* sweeps = p_model->type->sweeps;
    put(p_recorder->v_effect,
        sweeps->effects(p_model, p_chain->p_kernel_state),
        p_recorder->v_which_effect,
        p_recorder->n_which_effect,
        n_keep,
        n_chain,
        k,
        c);
  }
  p_slot->report.n_kept += 1;
}
