/* A run is made, asked and let go. Its members' shared parts live in an
 * allocation of their own size, the chains in a second: their layout is known
 * only once the members are. */
#include "base/clip.h"
#include "base/memory.h"
#include "run/inside.h"

#include <math.h>
#include <string.h>

/* bytes of what a slice changes: the slots and the chains */
static size_t undo_size(const struct tb_run* p_run) {
  return p_run->spec.n_chain * sizeof(struct tb_slot) + p_run->n_chains_byte;
}

/* A step of such models may be interrupted in its middle. */
static bool needs_undo(const struct tb_model* p_model) {
  return p_model->type->flags & (TB_MODEL_MAIN_THREAD | TB_MODEL_POLLS);
}

/* Memory that a system promises may not be there when it is written to. */
static bool run_fits(const struct tb_run* p_run) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  const size_t n_undo = needs_undo(p_spec->p_model) ? undo_size(p_run) : 0;
  const size_t n_byte = p_run->n_members_byte + p_run->n_chains_byte + n_undo;
  if (p_spec->p_byte != NULL) {
    *p_spec->p_byte = n_byte;
  }
  return p_spec->n_byte_most == 0 || n_byte <= p_spec->n_byte_most;
}

static void run_init_chain(struct tb_run* p_run, size_t c) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  struct tb_chain* p_chain = &p_run->v_slot[c].chain;
  p_chain->p_target = &p_run->target;
  p_chain->place = c;
  p_chain->n_dim = p_spec->p_model->n_dim;
  p_chain->log_posterior = NAN;
  p_chain->step_scale = 1;
  p_chain->is_warmup = p_spec->n_warmup > 0;
  p_run->v_slot[c].report.coordinate = p_chain->n_dim;
  p_run->v_slot[c].report.value = NAN;
  for (int k = 0; k < TB_STREAM_count; ++k) {
    tb_rng_init(&p_chain->v_rng[k],
                p_spec->seed,
                p_spec->n_first + c,
                (enum tb_stream)k);
  }
  p_chain->work.p_rng = &p_chain->v_rng[TB_STREAM_model];
  memcpy(p_chain->v_theta,
         p_spec->v_init + c * p_chain->n_dim,
         p_chain->n_dim * sizeof(double));
}

/* What members hold besides their part of the first allocation. */
static void run_release_members(struct tb_run* p_run) {
  const struct tb_estimator_type* type = p_run->estimator.type;
  if (type->destroy != NULL) {
    type->destroy(&p_run->estimator);
  }
  tb_big_free(p_run->p_refill, p_run->n_refill_byte);
  p_run->p_refill = NULL;
}

enum tb_status tb_run_create(const struct tb_run_spec* p_spec,
                             int n_threads,
                             struct tb_run** pp_run) {
  struct tb_run draft = {.spec = *p_spec};
  enum tb_status status = tb_run_find_members(&draft);
  *pp_run = NULL;
  if (status != TB_STATUS_ok) {
    return status;
  }
  const struct tb_member_sizes sizes = tb_run_member_sizes(&draft);
  if (sizes.n_scheme > SIZE_MAX / 2) {
    return TB_STATUS_memory; /* a table that no memory could hold */
  }
  struct tb_arena arena = {NULL, 0};
  tb_arena_take(&arena, sizeof(struct tb_run));
  tb_arena_take(&arena, p_spec->n_chain * sizeof(struct tb_slot));
  tb_arena_take(&arena, sizes.n_kernel);
  tb_arena_take(&arena, sizes.n_estimator);
  tb_arena_take(&arena, sizes.n_scheme);
  tb_arena_take(&arena, sizes.n_schedule);
  const size_t n_members = arena.n_used;

  /* an alias table or a SAGA table may be as long as the data */
  char* p_members = tb_big_alloc(n_members);
  if (p_members == NULL) {
    return TB_STATUS_memory;
  }
  struct tb_run* p_run = (struct tb_run*)p_members;
  *p_run = draft;
  p_run->n_members_byte = n_members;
  arena = (struct tb_arena){p_members, 0};
  tb_arena_take(&arena, sizeof(struct tb_run));
  p_run->v_slot =
      tb_arena_take(&arena, p_spec->n_chain * sizeof(struct tb_slot));
  p_run->kernel.p_self = tb_arena_take(&arena, sizes.n_kernel);
  p_run->estimator.p_self = tb_arena_take(&arena, sizes.n_estimator);
  p_run->scheme.p_self = tb_arena_take(&arena, sizes.n_scheme);
  p_run->schedule.p_self = tb_arena_take(&arena, sizes.n_schedule);
  status = tb_run_init_members(p_run, n_threads);
  if (status != TB_STATUS_ok) {
    run_release_members(p_run);
    tb_big_free(p_members, n_members);
    return status;
  }
  p_run->target =
      (struct tb_target){.p_model = p_spec->p_model,
                         .p_estimator = &p_run->estimator,
                         .p_scheme = &p_run->scheme,
                         .p_kernel = &p_run->kernel,
                         .p_schedule = &p_run->schedule,
                         .p_test = tb_run_test(p_run),
                         .square_norms = p_run->estimator.type->square_norms,
                         .n_chain = p_spec->n_chain,
                         .likelihood_scale = p_spec->likelihood_scale};
  p_run->n_total = p_spec->n_warmup + p_spec->n_sampling;

  struct tb_arena chains = {NULL, 0};
  tb_run_lay_out_chains(p_run, &chains);
  p_run->n_chains_byte = chains.n_used + 64;
  p_run->p_chains = run_fits(p_run) ? tb_big_alloc(p_run->n_chains_byte) : NULL;
  if (p_run->p_chains == NULL) {
    run_release_members(p_run);
    tb_big_free(p_members, n_members);
    return TB_STATUS_memory;
  }
  chains =
      (struct tb_arena){(char*)tb_align((size_t)(uintptr_t)p_run->p_chains), 0};
  tb_run_lay_out_chains(p_run, &chains);
  for (size_t c = 0; c < p_spec->n_chain; ++c) {
    run_init_chain(p_run, c);
  }
  if (needs_undo(p_spec->p_model)) {
    p_run->p_undo = tb_big_alloc(undo_size(p_run));
    if (p_run->p_undo == NULL) {
      tb_run_destroy(p_run);
      return TB_STATUS_memory;
    }
  }
  *pp_run = p_run;
  return TB_STATUS_ok;
}

void tb_run_destroy(struct tb_run* p_run) {
  if (p_run != NULL) {
    run_release_members(p_run);
    tb_big_free(p_run->p_undo, undo_size(p_run));
    tb_big_free(p_run->p_chains, p_run->n_chains_byte);
    tb_big_free(p_run, p_run->n_members_byte);
  }
}

bool tb_run_records(const struct tb_run* p_run,
                    const struct tb_recorder* p_recorder) {
  const struct tb_model* p_model = p_run->spec.p_model;
  const size_t n = tb_min(p_model->n_natural, p_model->n_dim);
  for (size_t j = 0; p_recorder->v_which != NULL && j < p_recorder->n_which;
       ++j) {
    const double number = p_recorder->v_which[j];
    if (!(number >= 1 && number <= (double)n)) { /* so that NaN fails */
      return false;
    }
  }
  return true;
}

/* ----------------------------------------------------------------- reports */

size_t tb_run_n_chain(const struct tb_run* p_run) {
  return p_run->spec.n_chain;
}

size_t tb_run_n_total(const struct tb_run* p_run) {
  return p_run->n_total;
}

size_t tb_run_n_bias_block(const struct tb_run* p_run) {
  return p_run->spec.n_bias_block;
}

struct tb_report tb_run_report(const struct tb_run* p_run, size_t chain) {
  return p_run->v_slot[chain].report;
}

const struct tb_chain* tb_run_chain(const struct tb_run* p_run, size_t chain) {
  return &p_run->v_slot[chain].chain;
}

const struct tb_target* tb_run_target(const struct tb_run* p_run) {
  return &p_run->target;
}

const double* tb_run_bias(const struct tb_run* p_run, size_t chain) {
  return p_run->v_slot[chain].v_bias;
}

const double* tb_run_bias_origin(const struct tb_run* p_run, size_t chain) {
  return p_run->v_slot[chain].v_origin;
}

const double* tb_run_moments(const struct tb_run* p_run, size_t chain) {
  return p_run->v_slot[chain].v_moments;
}

size_t tb_run_n_moments(const struct tb_run* p_run) {
  return tb_moments_size(&p_run->spec, p_run->spec.p_model->n_natural);
}

const double* tb_run_noise(const struct tb_run* p_run, size_t chain) {
  return p_run->v_slot[chain].v_noise;
}

void tb_run_position(const struct tb_run* p_run,
                     size_t chain,
                     double* v_parameter,
                     double* v_natural) {
  const struct tb_model* p_model = p_run->spec.p_model;
  const double* v_theta = p_run->v_slot[chain].chain.v_theta;
  if (p_model->p_frame != NULL) {
    tb_frame_to_parameter(p_model->p_frame, v_theta, v_parameter);
  } else {
    memcpy(v_parameter, v_theta, p_model->n_dim * sizeof(double));
  }
  if (p_model->type->constrain != NULL) {
    p_model->type->constrain(p_model, v_parameter, v_natural);
  } else {
    memcpy(v_natural, v_parameter, p_model->n_natural * sizeof(double));
  }
}
