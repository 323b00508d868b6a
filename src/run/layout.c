/* Where the arrays of the chains lie: one allocation for all of them. */
#include "base/clip.h"
#include "run/inside.h"

#include <string.h>

void tb_run_lay_out_chains(struct tb_run* p_run, struct tb_arena* p_arena) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  const struct tb_model* p_model = p_spec->p_model;
  const size_t n_dim = p_model->n_dim, n_natural = p_model->n_natural;
  const bool wants_variance =
      (p_run->kernel.flags & TB_KERNEL_VARIANCE) || p_spec->n_noise_every > 0;
  const size_t n_kernel = tb_kernel_state_size(&p_run->kernel, p_model);
  const size_t n_estimator =
      p_run->estimator.type->state_size == NULL
          ? 0
          : p_run->estimator.type->state_size(&p_run->estimator, p_model);
  const bool has_scheme = p_run->scheme.type != NULL;
  const size_t n_batch = tb_max(TB_CHUNK, p_run->scheme.n_size_max);
  const size_t n_work = tb_model_work_size(p_model, n_batch);
  const size_t n_vector = tb_align(n_dim * sizeof(double));
  /* scratch that a model with many parameters should not pay for unused */
  const size_t n_frame = p_model->p_frame == NULL ? 0 : n_dim;
  const size_t n_differ = p_model->type->constrain == NULL ? 0 : n_natural;
  const size_t n_folded = p_model->is_even ? n_dim : 0;
  const size_t n_bias = p_spec->n_bias_block == 0 ? 0 : n_dim;

  double* v_bias_map =
      tb_arena_doubles(p_arena, p_spec->v_bias_map == NULL ? 0 : n_dim * n_dim);
  if (p_arena->p_base != NULL && v_bias_map != NULL) {
    memcpy(v_bias_map, p_spec->v_bias_map, n_dim * n_dim * sizeof(double));
    p_run->spec.v_bias_map = v_bias_map;
  }
  const size_t n_in_vector =
      2 + (wants_variance ? 1 : 0) + (p_spec->is_bias_coupled ? 1 : 0);
  p_run->n_saved =
      n_vector * n_in_vector + tb_align(n_kernel) + tb_align(n_estimator);
  for (size_t c = 0; c < p_spec->n_chain; ++c) {
    struct tb_slot unused;
    struct tb_slot* p_slot =
        p_arena->p_base == NULL ? &unused : &p_run->v_slot[c];
    struct tb_chain* p_chain = &p_slot->chain;
    p_slot->p_saved = tb_arena_take(p_arena, p_run->n_saved);
    p_slot->v_parameter = tb_arena_doubles(p_arena, n_frame);
    p_slot->v_natural = tb_arena_doubles(p_arena, n_differ);
    p_slot->v_shift =
        tb_arena_doubles(p_arena, p_spec->keeps_moments ? n_natural : 0);
    p_slot->v_pushed = tb_arena_doubles(p_arena, tb_max(n_frame, n_bias));
    p_slot->v_origin = tb_arena_doubles(p_arena, n_bias);
    p_slot->v_norm2 = tb_arena_doubles(p_arena, n_bias);
    p_slot->v_bias =
        tb_arena_doubles(p_arena, p_spec->n_bias_block * (1 + 3 * n_dim));
    p_slot->v_moments =
        tb_arena_doubles(p_arena, tb_moments_size(p_spec, n_natural));
    p_slot->v_noise =
        tb_arena_doubles(p_arena,
                         p_spec->n_noise_every > 0 ? 1 + 2 * n_dim : 0);
    p_chain->p_estimator_scratch = tb_arena_doubles(p_arena, n_dim);
    p_chain->v_folded = tb_arena_doubles(p_arena, n_folded);
    p_chain->p_estimator_extra =
        p_run->estimator.type->scratch_size == NULL
            ? NULL
            : tb_arena_take(p_arena,
                            p_run->estimator.type->scratch_size(
                                p_model,
                                p_run->scheme.n_size_max));
    p_chain->work.p_scratch = tb_arena_take(p_arena, n_work);
    p_chain->p_scheme_state =
        has_scheme
            ? tb_arena_take(p_arena,
                            p_run->scheme.type->state_size(&p_run->scheme))
            : NULL;
    if (p_arena->p_base == NULL) {
      continue;
    }
    char* p = p_slot->p_saved;
    p_chain->v_theta = (double*)p;
    p_chain->v_gradient = (double*)(p += n_vector);
    p += n_vector;
    if (wants_variance) {
      p_chain->v_variance = (double*)p;
      p += n_vector;
    }
    if (p_spec->is_bias_coupled) {
      p_slot->v_normal = (double*)p;
      p += n_vector;
    }
    p_chain->p_kernel_state = p;
    p_chain->p_estimator_state = p + tb_align(n_kernel);
  }
}
