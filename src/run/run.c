/* The run loop: layout of its two allocations, the step, the recorder. */
#include "run/run.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/norm.h"
#include "gradients/gradient.h"
#include "kernels/kernel.h"
#include "kernels/metropolis.h"
#include "schedules/schedule.h"
#include "subsampling/subsample.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What a chain owns besides the part its kernel sees.
 *
 *   variable      shape                      saved
 *   chain         the kernel's view          partly (struct saved)
 *   p_saved       theta, gradient, variance, yes, as one piece of n_saved bytes
 *                 kernel and estimator state
 *   v_parameter   n_dim, scratch             no: with a frame only
 *   v_natural     n_natural, scratch         no: where variables differ
 *   v_shift       n_natural, scratch         no
 *   v_pushed      n_dim, scratch             no: with a frame or v_bias only
 *   v_origin      n_dim                      no: with v_bias only
 *   v_norm2       n_dim, ||M_j||^2           no: with v_bias only; 1 without a
 *                                            frame
 *   v_bias, v_moments, v_noise               no: each run has its own
 */
struct chain_slot {
  struct tb_chain chain;
  struct tb_report report;
  char* p_saved;
  double* v_parameter;
  double* v_natural;
  double* v_shift;
  double* v_pushed;
  double* v_origin;
  double* v_norm2;
  double* v_bias;
  double* v_moments;
  double* v_noise;
};

struct tb_run {
  struct tb_run_spec spec; /* names and parameters in it are gone */
  struct tb_target target;
  struct tb_kernel kernel;
  struct tb_estimator estimator;
  struct tb_scheme scheme;
  struct tb_schedule schedule;
  size_t n_total;  /* steps of this run */
  size_t n_saved;  /* bytes at p_saved */
  struct chain_slot* v_slot;
  void* p_chains;  /* second allocation: the chains' arrays */
  size_t n_members_byte; /* of the first, which this struct is in */
  size_t n_chains_byte;
  char* p_undo; /* TB_MODEL_MAIN_THREAD: slots and chains before a slice */
};

/* the fixed part of a saved chain */
struct saved {
  uint64_t format;
  uint64_t hash; /* of all that follows, and of the members' names */
  uint64_t n_byte;
  uint64_t iteration;
  uint64_t n_batch;
  uint64_t has_variance;
  uint64_t is_exact;
  uint64_t is_warmup;
  double log_posterior;
  double step_scale;
  struct tb_rng v_rng[TB_STREAM_count];
  struct tb_counts counts;
};

#define SAVED_FORMAT UINT64_C(0x7462303033) /* "tb003" */

enum tb_status tb_chain_gradient(struct tb_chain* p_chain,
                                 const double* v_theta,
                                 double* v_gradient,
                                 double* p_log_posterior) {
  const struct tb_target* p_target = p_chain->p_target;
  const double* v_at = v_theta;
  if (p_chain->v_folded != NULL) {
    tb_model_fold(p_target->p_model, v_theta, p_chain->v_folded);
    v_at = p_chain->v_folded;
  }
  const enum tb_status status = p_target->p_estimator->type->estimate(
    p_chain, v_at, v_gradient, p_log_posterior);
  for (size_t j = 0; v_at != v_theta && j < p_chain->n_dim; ++j) {
    v_gradient[j] *= copysign(1, v_theta[j]);
  }
  return status;
}

/* ------------------------------------------------------------------ layout */

/* Hands out aligned pieces; with a NULL base it only counts. */
struct arena {
  char* p_base;
  size_t n_used;
};

static void* arena_take(struct arena* p_arena, size_t n_byte) {
  void* p = p_arena->p_base == NULL ? NULL : p_arena->p_base + p_arena->n_used;
  p_arena->n_used += tb_align(n_byte);
  return p;
}

static double* arena_doubles(struct arena* p_arena, size_t n) {
  return n == 0 ? NULL : arena_take(p_arena, n * sizeof(double));
}

/* doubles at v_moments */
static size_t moments_size(const struct tb_run_spec* p_spec, size_t n) {
  return !p_spec->keeps_moments ? 0
         : p_spec->keeps_covariance ? 1 + 2 * n + n * n
                                    : 1 + 2 * n;
}

/* The chains' part; needs the initialised members. */
static void run_lay_out_chains(struct tb_run* p_run, struct arena* p_arena) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  const struct tb_model* p_model = p_spec->p_model;
  const size_t n_dim = p_model->n_dim, n_natural = p_model->n_natural;
  const bool wants_variance =
    (p_run->kernel.flags & TB_KERNEL_VARIANCE) || p_spec->n_noise_every > 0;
  const size_t n_kernel =
    p_run->kernel.type->state_size == NULL
      ? 0
      : p_run->kernel.type->state_size(&p_run->kernel, n_dim);
  const size_t n_estimator =
    p_run->estimator.type->state_size == NULL
      ? 0
      : p_run->estimator.type->state_size(&p_run->estimator, p_model);
  const bool has_scheme = p_run->scheme.type != NULL;
  const size_t n_batch = tb_max(TB_CHUNK, p_run->scheme.n_size_max);
  const size_t n_work = p_model->type->workspace_size == NULL
                          ? 0
                          : p_model->type->workspace_size(p_model, n_batch);
  const size_t n_vector = tb_align(n_dim * sizeof(double));
  /* scratch that a model with many parameters should not pay for unused */
  const size_t n_frame = p_model->p_frame == NULL ? 0 : n_dim;
  const size_t n_differ = p_model->type->constrain == NULL ? 0 : n_natural;
  const size_t n_folded = p_model->is_even ? n_dim : 0;
  const size_t n_bias = p_spec->n_bias_block == 0 ? 0 : n_dim;

  double* v_bias_map =
    arena_doubles(p_arena, p_spec->v_bias_map == NULL ? 0 : n_dim * n_dim);
  if (p_arena->p_base != NULL && v_bias_map != NULL) {
    memcpy(v_bias_map, p_spec->v_bias_map, n_dim * n_dim * sizeof(double));
    p_run->spec.v_bias_map = v_bias_map;
  }
  p_run->n_saved = n_vector * (wants_variance ? 3 : 2) + tb_align(n_kernel) +
                   tb_align(n_estimator);
  for (size_t c = 0; c < p_spec->n_chain; ++c) {
    struct chain_slot unused;
    struct chain_slot* p_slot =
      p_arena->p_base == NULL ? &unused : &p_run->v_slot[c];
    struct tb_chain* p_chain = &p_slot->chain;
    p_slot->p_saved = arena_take(p_arena, p_run->n_saved);
    p_slot->v_parameter = arena_doubles(p_arena, n_frame);
    p_slot->v_natural = arena_doubles(p_arena, n_differ);
    p_slot->v_shift =
      arena_doubles(p_arena, p_spec->keeps_moments ? n_natural : 0);
    p_slot->v_pushed = arena_doubles(p_arena, tb_max(n_frame, n_bias));
    p_slot->v_origin = arena_doubles(p_arena, n_bias);
    p_slot->v_norm2 = arena_doubles(p_arena, n_bias);
    p_slot->v_bias =
      arena_doubles(p_arena, p_spec->n_bias_block * (1 + 3 * n_dim));
    p_slot->v_moments =
      arena_doubles(p_arena, moments_size(p_spec, n_natural));
    p_slot->v_noise =
      arena_doubles(p_arena, p_spec->n_noise_every > 0 ? 1 + 2 * n_dim : 0);
    p_chain->p_estimator_scratch = arena_doubles(p_arena, n_dim);
    p_chain->v_folded = arena_doubles(p_arena, n_folded);
    p_chain->p_estimator_extra =
      p_run->estimator.type->scratch_size == NULL
        ? NULL
        : arena_take(p_arena,
                     p_run->estimator.type->scratch_size(
                       p_model, p_run->scheme.n_size_max));
    p_chain->work.p_scratch = arena_take(p_arena, n_work);
    p_chain->p_scheme_state =
      has_scheme
        ? arena_take(p_arena, p_run->scheme.type->state_size(&p_run->scheme))
        : NULL;
    if (p_arena->p_base == NULL) {
      continue;
    }
    char* p = p_slot->p_saved;
    p_chain->v_theta = (double*) p;
    p_chain->v_gradient = (double*) (p += n_vector);
    p += n_vector;
    if (wants_variance) {
      p_chain->v_variance = (double*) p;
      p += n_vector;
    }
    p_chain->p_kernel_state = p;
    p_chain->p_estimator_state = p + tb_align(n_kernel);
  }
}

struct member_sizes {
  size_t n_kernel, n_estimator, n_scheme, n_schedule;
};

static enum tb_status run_find_members(struct tb_run* p_run) {
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
    p_run->estimator.type != NULL &&
    !(p_run->estimator.type->flags & TB_ESTIMATOR_FULL);
  return p_run->kernel.type == NULL || p_run->estimator.type == NULL ||
             p_run->schedule.type == NULL ||
             (needs_scheme && p_run->scheme.type == NULL)
           ? TB_STATUS_argument
           : TB_STATUS_ok;
}

static struct member_sizes run_member_sizes(const struct tb_run* p_run) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  const struct tb_model* p_model = p_spec->p_model;
  struct member_sizes sizes = { 0 };
  if (p_run->kernel.type->self_size != NULL) {
    sizes.n_kernel =
      p_run->kernel.type->self_size(&p_spec->kernel.params, p_model->n_dim);
  }
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

/* Can this kernel, now that its options are known, use this estimator? */
static enum tb_status run_check_members(const struct tb_run* p_run) {
  const unsigned kernel = p_run->kernel.flags;
  const unsigned estimator = p_run->estimator.type->flags;
  const unsigned model = p_run->spec.p_model->type->flags;
  const bool is_refused =
    ((kernel & TB_KERNEL_METROPOLIS) && (model & TB_MODEL_NO_DENSITY)) ||
    ((kernel & TB_KERNEL_METROPOLIS) && (estimator & TB_ESTIMATOR_MEMORY)) ||
    ((kernel & TB_KERNEL_FULL_GRADIENT) && !(estimator & TB_ESTIMATOR_FULL)) ||
    ((kernel & TB_KERNEL_LOSS) && !(estimator & TB_ESTIMATOR_LOSS));
  return is_refused ? TB_STATUS_unsupported : TB_STATUS_ok;
}

/* The members' shared parts live in an allocation of their own size, the
 * chains in a second: their layout is known only once the members are. */
static enum tb_status run_init_members(struct tb_run* p_run, int n_threads) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  struct tb_model* p_model = p_spec->p_model;
  enum tb_status status = TB_STATUS_ok;

  p_run->scheme.n_data = p_model->n_data;
  if (p_run->kernel.type->init != NULL) {
    status = p_run->kernel.type->init(
      &p_run->kernel, p_model->n_dim, &p_spec->kernel.params);
  }
  if (status == TB_STATUS_ok) {
    status = run_check_members(p_run);
  }
  if (status == TB_STATUS_ok && p_run->schedule.type->init != NULL) {
    status =
      p_run->schedule.type->init(&p_run->schedule, &p_spec->schedule.params);
  }
  if (status == TB_STATUS_ok && p_run->scheme.type != NULL) {
    status = p_run->scheme.type->init(
      &p_run->scheme, p_model, &p_spec->scheme.params);
  }
  if (status == TB_STATUS_ok && run_lacks_variance(p_run)) {
    return TB_STATUS_unsupported;
  }
  if (status == TB_STATUS_ok && p_run->estimator.type->init != NULL) {
    status = p_run->estimator.type->init(
      &p_run->estimator, p_model, &p_spec->estimator.params, n_threads);
  }
  return status;
}

/* bytes of what a slice changes: the slots and the chains */
static size_t undo_size(const struct tb_run* p_run) {
  return p_run->spec.n_chain * sizeof(struct chain_slot) + p_run->n_chains_byte;
}

static void run_init_chain(struct tb_run* p_run, size_t c) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  struct tb_chain* p_chain = &p_run->v_slot[c].chain;
  p_chain->p_target = &p_run->target;
  p_chain->n_dim = p_spec->p_model->n_dim;
  p_chain->log_posterior = NAN;
  p_chain->step_scale = 1;
  p_chain->is_warmup = p_spec->n_warmup > 0;
  p_run->v_slot[c].report.coordinate = p_chain->n_dim;
  p_run->v_slot[c].report.value = NAN;
  for (int k = 0; k < TB_STREAM_count; ++k) {
    tb_rng_init(
      &p_chain->v_rng[k], p_spec->seed, p_spec->n_first + c, (enum tb_stream) k);
  }
  p_chain->work.p_rng = &p_chain->v_rng[TB_STREAM_model];
  memcpy(p_chain->v_theta,
         p_spec->v_init + c * p_chain->n_dim,
         p_chain->n_dim * sizeof(double));
}

enum tb_status tb_run_create(const struct tb_run_spec* p_spec,
                             int n_threads,
                             struct tb_run** pp_run) {
  struct tb_run draft = { .spec = *p_spec };
  enum tb_status status = run_find_members(&draft);
  *pp_run = NULL;
  if (status != TB_STATUS_ok) {
    return status;
  }
  const struct member_sizes sizes = run_member_sizes(&draft);
  if (sizes.n_scheme > SIZE_MAX / 2) {
    return TB_STATUS_memory; /* a table that no memory could hold */
  }
  struct arena arena = { NULL, 0 };
  arena_take(&arena, sizeof(struct tb_run));
  arena_take(&arena, p_spec->n_chain * sizeof(struct chain_slot));
  arena_take(&arena, sizes.n_kernel);
  arena_take(&arena, sizes.n_estimator);
  arena_take(&arena, sizes.n_scheme);
  arena_take(&arena, sizes.n_schedule);
  const size_t n_members = arena.n_used;

  /* an alias table or a SAGA table may be as long as the data */
  char* p_members = tb_big_alloc(n_members);
  if (p_members == NULL) {
    return TB_STATUS_memory;
  }
  struct tb_run* p_run = (struct tb_run*) p_members;
  *p_run = draft;
  p_run->n_members_byte = n_members;
  arena = (struct arena){ p_members, 0 };
  arena_take(&arena, sizeof(struct tb_run));
  p_run->v_slot = arena_take(&arena, p_spec->n_chain * sizeof(struct chain_slot));
  p_run->kernel.p_self = arena_take(&arena, sizes.n_kernel);
  p_run->estimator.p_self = arena_take(&arena, sizes.n_estimator);
  p_run->scheme.p_self = arena_take(&arena, sizes.n_scheme);
  p_run->schedule.p_self = arena_take(&arena, sizes.n_schedule);
  status = run_init_members(p_run, n_threads);
  if (status != TB_STATUS_ok) {
    tb_big_free(p_members, n_members);
    return status;
  }
  p_run->target = (struct tb_target){
    .p_model = p_spec->p_model,
    .p_estimator = &p_run->estimator,
    .p_scheme = &p_run->scheme,
    .p_kernel = &p_run->kernel,
    .p_schedule = &p_run->schedule,
    .likelihood_scale = p_spec->likelihood_scale
  };
  p_run->n_total = p_spec->n_warmup + p_spec->n_sampling;

  struct arena chains = { NULL, 0 };
  run_lay_out_chains(p_run, &chains);
  p_run->n_chains_byte = chains.n_used + 64;
  p_run->p_chains = tb_big_alloc(p_run->n_chains_byte);
  if (p_run->p_chains == NULL) {
    tb_big_free(p_members, n_members);
    return TB_STATUS_memory;
  }
  chains = (struct arena){
    (char*) tb_align((size_t) (uintptr_t) p_run->p_chains), 0
  };
  run_lay_out_chains(p_run, &chains);
  for (size_t c = 0; c < p_spec->n_chain; ++c) {
    run_init_chain(p_run, c);
  }
  if (p_spec->p_model->type->flags & TB_MODEL_MAIN_THREAD) {
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
    tb_big_free(p_run->p_undo, undo_size(p_run));
    tb_big_free(p_run->p_chains, p_run->n_chains_byte);
    tb_big_free(p_run, p_run->n_members_byte);
  }
}

/* -------------------------------------------------------------------- step */

/* Name the coordinate at fault: the first that is not finite, else the
 * largest. */
static void report_coordinate(struct chain_slot* p_slot) {
  const struct tb_chain* p_chain = &p_slot->chain;
  size_t at = 0;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    if (!isfinite(p_chain->v_theta[j])) {
      at = j;
      break;
    }
    if (fabs(p_chain->v_theta[j]) > fabs(p_chain->v_theta[at])) {
      at = j;
    }
  }
  p_slot->report.coordinate = at;
  p_slot->report.value = p_chain->v_theta[at];
}

/* Name the first coordinate that is not finite, or else whose gradient is not a
 * number. None, if the model said so of a point and gave no numbers. */
static void report_nonfinite(struct chain_slot* p_slot) {
  const struct tb_chain* p_chain = &p_slot->chain;
  const double* v_theta = p_chain->v_theta;
  const double* v_gradient = p_chain->v_gradient;
  if (!isfinite(tb_square_norm(v_theta, p_chain->n_dim))) {
    report_coordinate(p_slot);
    return;
  }
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    if (isnan(v_gradient[j])) {
      p_slot->report.coordinate = j;
      p_slot->report.value = v_gradient[j];
      return;
    }
  }
}

static enum tb_status slot_check(struct chain_slot* p_slot,
                                 const struct tb_run_spec* p_spec) {
  struct tb_chain* p_chain = &p_slot->chain;
  const double norm2 = tb_square_norm(p_chain->v_theta, p_chain->n_dim);
  if (!isfinite(norm2)) {
    report_coordinate(p_slot);
    return TB_STATUS_nonfinite;
  }
  if (p_spec->escape > 0 && norm2 > p_spec->escape) {
    p_chain->counts.n_escape += 1;
    if (p_chain->counts.n_escape >= (double) p_spec->n_escape_max) {
      report_coordinate(p_slot);
      return TB_STATUS_escaped;
    }
  }
  return TB_STATUS_ok;
}

/* A user's function that is undefined stops the chain where it was called, not
 * one step later: the place is told. */
static enum tb_status slot_check_gradient(struct chain_slot* p_slot) {
  const struct tb_chain* p_chain = &p_slot->chain;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    if (isnan(p_chain->v_gradient[j])) {
      report_nonfinite(p_slot);
      return TB_STATUS_nonfinite;
    }
  }
  return TB_STATUS_ok;
}

static void slot_start_sampling(struct chain_slot* p_slot) {
  struct tb_counts* p_counts = &p_slot->chain.counts;
  p_slot->chain.is_warmup = false;
  p_counts->n_accept = p_counts->n_propose = 0;
  p_counts->n_outside = p_counts->n_nonfinite = 0;
  p_counts->n_escape = 0;
}

/* The chain's position as unconstrained parameters, in v_parameter. */
static const double* slot_parameter(struct chain_slot* p_slot) {
  const struct tb_model* p_model = p_slot->chain.p_target->p_model;
  if (p_model->p_frame == NULL) {
    return p_slot->chain.v_theta;
  }
  tb_frame_to_parameter(
    p_model->p_frame, p_slot->chain.v_theta, p_slot->v_parameter);
  return p_slot->v_parameter;
}

/* The gradient there, with respect to the parameters, in v_pushed. */
static const double* slot_gradient(struct chain_slot* p_slot) {
  const struct tb_model* p_model = p_slot->chain.p_target->p_model;
  if (p_model->p_frame == NULL) {
    return p_slot->chain.v_gradient;
  }
  tb_frame_push_gradient(
    p_model->p_frame, p_slot->chain.v_gradient, p_slot->v_pushed);
  return p_slot->v_pushed;
}

/* ||M_j||^2 of every row of the frame's map, one direction at a time. */
static void slot_row_norms(struct chain_slot* p_slot) {
  const struct tb_frame* p_frame = p_slot->chain.p_target->p_model->p_frame;
  const size_t n_dim = p_slot->chain.n_dim;
  double* v_unit = p_slot->v_pushed;
  for (size_t j = 0; j < n_dim; ++j) {
    p_slot->v_norm2[j] = p_frame == NULL ? 1 : 0;
  }
  for (size_t k = 0; p_frame != NULL && !p_frame->is_diagonal && k < n_dim; ++k) {
    memset(v_unit, 0, n_dim * sizeof(double));
    v_unit[k] = 1;
    tb_frame_map(p_frame, v_unit, p_slot->v_parameter);
    for (size_t j = 0; j < n_dim; ++j) {
      p_slot->v_norm2[j] += p_slot->v_parameter[j] * p_slot->v_parameter[j];
    }
  }
  for (size_t j = 0; p_frame != NULL && p_frame->is_diagonal && j < n_dim; ++j) {
    p_slot->v_norm2[j] = p_frame->v_map[j] * p_frame->v_map[j];
  }
}

/* (Sigma g)_j / Sigma_jj */
static TB_CLONES void bias_direction(const double* v_map,
                                     const double* v_gradient,
                                     size_t n_dim,
                                     double* v_out) {
  memset(v_out, 0, n_dim * sizeof(double));
  for (size_t k = 0; k < n_dim; ++k) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_out[j] += v_map[k * n_dim + j] * v_gradient[k];
    }
  }
}

/* A term of the bias estimate (spec 7), block by block: theta_j times
 * (Sigma g)_j / Sigma_jj. Its mean is -1 under the posterior and, with V the
 * chain's covariance, -(V Sigma^{-1} Sigma)_jj / Sigma_jj in a normal one: the
 * bias of Var(theta_j), also where directions differ in theirs; its variance
 * does not grow with the condition number. With a frame Sigma is M M^T,
 * theta_j = M_j phi and Sigma g_theta = M g. Where Sigma is not known the term
 * is theta_j g_j, which takes the coordinates for independent. */
static void slot_add_bias(struct chain_slot* p_slot,
                          const struct tb_run* p_run,
                          size_t n_sampled) {
  const size_t n_dim = p_slot->chain.n_dim;
  const size_t block =
    n_sampled * p_run->spec.n_bias_block / p_run->spec.n_sampling;
  double* v_sum = p_slot->v_bias + block * (1 + 3 * n_dim);
  const struct tb_frame* p_frame = p_run->spec.p_model->p_frame;
  const double* v_theta = slot_parameter(p_slot);
  const double* v_gradient = p_slot->chain.v_gradient;
  if (p_frame != NULL) {
    tb_frame_map(p_frame, v_gradient, p_slot->v_pushed);
    v_gradient = p_slot->v_pushed;
  } else if (p_run->spec.v_bias_map != NULL) {
    bias_direction(
      p_run->spec.v_bias_map, v_gradient, n_dim, p_slot->v_pushed);
    v_gradient = p_slot->v_pushed;
  }
  *v_sum++ += 1;
  for (size_t j = 0; j < n_dim; ++j) {
    const double t = v_theta[j] - p_slot->v_origin[j];
    const double g = v_gradient[j] / p_slot->v_norm2[j];
    v_sum[j] += t;
    v_sum[n_dim + j] += g;
    v_sum[2 * n_dim + j] += t * g;
  }
}

/* The gradient noise at this step, and what it does to the kernel. */
static void slot_add_noise(struct chain_slot* p_slot) {
  struct tb_chain* p_chain = &p_slot->chain;
  const struct tb_kernel_type* type = p_chain->p_target->p_kernel->type;
  const size_t n_dim = p_chain->n_dim;
  if (!p_chain->has_variance) {
    return;
  }
  p_slot->v_noise[0] += 1;
  for (size_t j = 0; j < n_dim; ++j) {
    const double variance = p_chain->v_variance[j];
    p_slot->v_noise[1 + j] += variance;
    if (type->beyond != NULL) {
      p_slot->v_noise[1 + n_dim + j] += type->beyond(p_chain, j, variance);
    }
  }
}

/* Welford (1962), Technometrics 4:419; v_shift is scratch. */
static void slot_add_moments(double* v_moments,
                             const double* v_natural,
                             size_t n_natural,
                             bool keeps_covariance,
                             double* v_shift) {
  const double n = v_moments[0] += 1;
  double* v_mean = v_moments + 1;
  double* v_square = v_mean + n_natural;
  double* v_product = v_square + n_natural;
  for (size_t j = 0; j < n_natural; ++j) {
    v_shift[j] = v_natural[j] - v_mean[j];
    v_mean[j] += v_shift[j] / n;
    v_square[j] += v_shift[j] * (v_natural[j] - v_mean[j]);
  }
  for (size_t j = 0; keeps_covariance && j < n_natural; ++j) {
    const double after = v_natural[j] - v_mean[j];
    for (size_t k = 0; k < n_natural; ++k) {
      v_product[j * n_natural + k] += v_shift[k] * after;
    }
  }
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
      v_from[v_which == NULL ? j : (size_t) v_which[j] - 1];
  }
}

static void slot_record(struct chain_slot* p_slot,
                        const struct tb_run* p_run,
                        size_t c,
                        const struct tb_recorder* p_recorder) {
  const struct tb_model* p_model = p_run->spec.p_model;
  const struct tb_chain* p_chain = &p_slot->chain;
  const size_t n_keep = p_recorder->n_keep, n_chain = p_run->spec.n_chain;
  const size_t k = p_slot->report.n_kept;
  const double size = (double) p_chain->n_batch;
  const double* v_which = p_recorder->v_which;
  const size_t n_draw =
    v_which == NULL ? p_model->n_natural : p_recorder->n_which;
  const size_t n_parameter =
    v_which == NULL ? p_model->n_dim : p_recorder->n_which;

  if (p_recorder->v_draw != NULL || p_recorder->v_unconstrained != NULL ||
      p_slot->v_moments != NULL) {
    const double* v_parameter = slot_parameter(p_slot);
    const double* v_natural = v_parameter;
    if (p_model->type->constrain != NULL) {
      p_model->type->constrain(p_model, v_parameter, p_slot->v_natural);
      v_natural = p_slot->v_natural;
    }
    put(p_recorder->v_draw, v_natural, v_which, n_draw, n_keep, n_chain, k, c);
    put(p_recorder->v_unconstrained, v_parameter, v_which, n_parameter, n_keep,
        n_chain, k, c);
    if (p_slot->v_moments != NULL) {
      slot_add_moments(p_slot->v_moments, v_natural, p_model->n_natural,
                       p_run->spec.keeps_covariance, p_slot->v_shift);
    }
  }
  if (p_recorder->v_gradient != NULL) {
    put(p_recorder->v_gradient, slot_gradient(p_slot), v_which, n_parameter,
        n_keep, n_chain, k, c);
  }
  put(p_recorder->v_size, &size, NULL, 1, n_keep, n_chain, k, c);
  put(p_recorder->v_weight, &p_chain->step_scale, NULL, 1, n_keep, n_chain, k,
      c);
  put(p_recorder->v_log_posterior, &p_chain->log_posterior, NULL, 1, n_keep,
      n_chain, k, c);
  p_slot->report.n_kept += 1;
}

/* The gradient (and log posterior) where the chain stands, made anew. */
static enum tb_status slot_gradient_anew(struct tb_run* p_run,
                                         struct tb_chain* p_chain) {
  return p_run->kernel.flags & TB_KERNEL_METROPOLIS
           ? tb_metropolis_start(p_chain)
           : tb_chain_gradient(
               p_chain, p_chain->v_theta, p_chain->v_gradient, NULL);
}

/* The model's own draw, where one is due: by the count that goes on when a run
 * is resumed. */
static enum tb_status slot_gibbs(struct tb_run* p_run,
                                 struct chain_slot* p_slot) {
  const struct tb_model* p_model = p_run->spec.p_model;
  struct tb_chain* p_chain = &p_slot->chain;
  if (p_model->n_gibbs_every == 0 || p_chain->iteration == 0 ||
      p_chain->iteration % p_model->n_gibbs_every != 0) {
    return TB_STATUS_ok;
  }
  const enum tb_status status =
    p_model->type->gibbs(p_model, &p_chain->work, p_chain->v_theta);
  return status == TB_STATUS_ok ? slot_gradient_anew(p_run, p_chain) : status;
}

/* One step, and what follows from it. */
static void slot_advance(struct tb_run* p_run,
                         size_t c,
                         const struct tb_recorder* p_recorder) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  struct chain_slot* p_slot = &p_run->v_slot[c];
  struct tb_chain* p_chain = &p_slot->chain;
  struct tb_report* p_report = &p_slot->report;
  const size_t step = p_report->n_step;

  if (step == p_spec->n_warmup) {
    if (p_chain->is_warmup) { /* not when sampling is resumed */
      slot_start_sampling(p_slot);
    }
    if (p_slot->v_bias != NULL) {
      memcpy(p_slot->v_origin,
             slot_parameter(p_slot),
             p_chain->n_dim * sizeof(double));
      slot_row_norms(p_slot);
    }
  }
  p_report->status = slot_gibbs(p_run, p_slot);
  if (p_report->status != TB_STATUS_ok) {
    return;
  }
  const bool is_sampling = step >= p_spec->n_warmup;
  const size_t n_sampled = is_sampling ? step - p_spec->n_warmup : 0;
  const struct tb_schedule* p_schedule = &p_run->schedule;
  p_chain->step_scale =
    p_schedule->type->scale(p_schedule, p_chain->iteration);
  p_chain->is_exploring =
    p_schedule->type->explores != NULL &&
    p_schedule->type->explores(p_schedule, p_chain->iteration);

  /* by the count that goes on when a run is resumed: a pass with squares may
   * round its sums differently */
  const bool looks_at_noise =
    p_slot->v_noise != NULL && p_chain->iteration % p_spec->n_noise_every == 0;
  p_chain->wants_variance =
    looks_at_noise || (p_run->kernel.flags & TB_KERNEL_VARIANCE);
  p_report->status = p_run->kernel.type->step(p_chain);
  if (p_report->status == TB_STATUS_nonfinite) {
    report_nonfinite(p_slot);
  }
  if (p_report->status == TB_STATUS_ok) {
    p_report->status = slot_check(p_slot, p_spec);
  }
  if (p_report->status == TB_STATUS_ok && p_run->p_undo != NULL) {
    p_report->status = slot_check_gradient(p_slot);
  }
  if (p_report->status != TB_STATUS_ok) {
    return;
  }
  p_chain->iteration += 1;
  p_report->n_step += 1;
  p_report->is_done = p_report->n_step == p_run->n_total;
  if (!is_sampling || p_chain->is_exploring) {
    return;
  }
  p_report->n_collected += 1;
  if (p_slot->v_bias != NULL && n_sampled % p_spec->n_bias_every == 0) {
    slot_add_bias(p_slot, p_run, n_sampled);
  }
  if (looks_at_noise) {
    slot_add_noise(p_slot);
  }
  if ((p_spec->n_phase + p_report->n_collected) % p_spec->n_every == 0) {
    if (p_report->n_kept < p_recorder->n_keep) {
      slot_record(p_slot, p_run, c, p_recorder);
    } else {
      p_report->status = TB_STATUS_argument;
    }
  }
}

bool tb_run_records(const struct tb_run* p_run,
                    const struct tb_recorder* p_recorder) {
  const struct tb_model* p_model = p_run->spec.p_model;
  const size_t n = tb_min(p_model->n_natural, p_model->n_dim);
  for (size_t j = 0;
       p_recorder->v_which != NULL && j < p_recorder->n_which;
       ++j) {
    const double number = p_recorder->v_which[j];
    if (!(number >= 1 && number <= (double) n)) { /* so that NaN fails */
      return false;
    }
  }
  return true;
}

enum tb_status tb_run_start(struct tb_run* p_run) {
  enum tb_status first = TB_STATUS_ok;
  const bool is_metropolis = p_run->kernel.flags & TB_KERNEL_METROPOLIS;
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    struct chain_slot* p_slot = &p_run->v_slot[c];
    struct tb_chain* p_chain = &p_slot->chain;
    enum tb_status status = TB_STATUS_ok;
    p_chain->wants_variance = p_run->kernel.flags & TB_KERNEL_VARIANCE;
    if (p_run->estimator.type->start != NULL) {
      status = p_run->estimator.type->start(p_chain);
    }
    if (status == TB_STATUS_ok) {
      status = slot_gradient_anew(p_run, p_chain);
    }
    if (status == TB_STATUS_ok &&
        (!isfinite(tb_square_norm(p_chain->v_gradient, p_chain->n_dim)) ||
         (is_metropolis && !isfinite(p_chain->log_posterior)))) {
      status = TB_STATUS_nonfinite;
    }
    if (status == TB_STATUS_nonfinite) {
      report_coordinate(p_slot);
    }
    if (status == TB_STATUS_ok && p_run->kernel.type->start != NULL) {
      status = p_run->kernel.type->start(p_chain);
    }
    p_slot->report.status = status;
    if (first == TB_STATUS_ok) {
      first = status;
    }
  }
  return first;
}

enum tb_status tb_run_refresh(struct tb_run* p_run, int n_threads) {
  const enum tb_status status =
    p_run->estimator.type->refresh == NULL
      ? TB_STATUS_ok
      : p_run->estimator.type->refresh(
          &p_run->estimator, p_run->spec.p_model, n_threads);
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    struct tb_report* p_report = &p_run->v_slot[c].report;
    if (p_report->status == TB_STATUS_ok && !p_report->is_done) {
      p_report->status = status;
    }
  }
  return status;
}

/* Keep what a slice will change, or put it back. */
static void run_keep(struct tb_run* p_run) {
  const size_t n_slot = p_run->spec.n_chain * sizeof(struct chain_slot);
  memcpy(p_run->p_undo, p_run->v_slot, n_slot);
  memcpy(p_run->p_undo + n_slot, p_run->p_chains, p_run->n_chains_byte);
}

static void run_undo(struct tb_run* p_run) {
  const size_t n_slot = p_run->spec.n_chain * sizeof(struct chain_slot);
  memcpy(p_run->v_slot, p_run->p_undo, n_slot);
  memcpy(p_run->p_chains, p_run->p_undo + n_slot, p_run->n_chains_byte);
}

/* A model that calls R: chains one after another on the main thread. An
 * interrupt may come in the middle of a step: then the slice was not made. */
static void run_advance_serial(struct tb_run* p_run,
                               size_t n_step,
                               const struct tb_recorder* p_recorder) {
  run_keep(p_run);
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    const struct tb_report* p_report = &p_run->v_slot[c].report;
    for (size_t k = 0; k < n_step && !p_report->is_done &&
                       p_report->status == TB_STATUS_ok;
         ++k) {
      slot_advance(p_run, c, p_recorder);
    }
    if (p_report->status == TB_STATUS_interrupted) {
      run_undo(p_run);
      return;
    }
  }
}

void tb_run_advance(struct tb_run* p_run,
                    size_t n_step,
                    int n_threads,
                    const struct tb_recorder* p_recorder) {
  const size_t n_chain = p_run->spec.n_chain;
  if (p_run->p_undo != NULL) {
    run_advance_serial(p_run, n_step, p_recorder);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)          \
  if (n_threads > 1)
#endif
  for (size_t c = 0; c < n_chain; ++c) {
    struct tb_report* p_report = &p_run->v_slot[c].report;
    for (size_t k = 0; k < n_step; ++k) {
      if (p_report->is_done || p_report->status != TB_STATUS_ok) {
        break;
      }
      slot_advance(p_run, c, p_recorder);
    }
  }
  (void) n_threads;
}

/* ----------------------------------------------------------------- reports */

size_t tb_run_n_chain(const struct tb_run* p_run) {
  return p_run->spec.n_chain;
}

size_t tb_run_n_total(const struct tb_run* p_run) { return p_run->n_total; }

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
  return moments_size(&p_run->spec, p_run->spec.p_model->n_natural);
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

const double* tb_run_noise(const struct tb_run* p_run, size_t chain) {
  return p_run->v_slot[chain].v_noise;
}

/* ------------------------------------------------------------ save and load */

size_t tb_run_saved_size(const struct tb_run* p_run) {
  return sizeof(struct saved) + p_run->n_saved;
}

/* Bytes that were altered, or are those of other members, are not a state. */
static uint64_t saved_hash(const struct tb_run* p_run,
                           const struct saved* p_saved,
                           const void* p_state) {
  const char* const v_name[] = { p_run->kernel.type->name,
                                 p_run->estimator.type->name };
  uint64_t hash = p_run->n_saved;
  for (size_t k = 0; k < sizeof(v_name) / sizeof(v_name[0]); ++k) {
    for (const char* p = v_name[k]; *p != '\0'; ++p) {
      hash = tb_hash_word(hash, (uint64_t) *p);
    }
  }
  hash = tb_hash_bytes(
    hash,
    (const char*) p_saved + offsetof(struct saved, n_byte),
    sizeof(*p_saved) - offsetof(struct saved, n_byte));
  return tb_hash_bytes(hash, p_state, p_run->n_saved);
}

void tb_run_save(const struct tb_run* p_run, size_t chain, void* p_out) {
  const struct chain_slot* p_slot = &p_run->v_slot[chain];
  const struct tb_chain* p_chain = &p_slot->chain;
  struct saved saved = { .format = SAVED_FORMAT,
                         .n_byte = p_run->n_saved,
                         .iteration = p_chain->iteration,
                         .n_batch = p_chain->n_batch,
                         .has_variance = p_chain->has_variance,
                         .is_exact = p_chain->is_exact,
                         .is_warmup = p_chain->is_warmup,
                         .log_posterior = p_chain->log_posterior,
                         .step_scale = p_chain->step_scale,
                         .counts = p_chain->counts };
  memcpy(saved.v_rng, p_chain->v_rng, sizeof(saved.v_rng));
  saved.hash = saved_hash(p_run, &saved, p_slot->p_saved);
  memcpy(p_out, &saved, sizeof(saved));
  memcpy((char*) p_out + sizeof(saved), p_slot->p_saved, p_run->n_saved);
}

/* Can a chain of this run be in such a state? */
static bool saved_is_possible(const struct tb_run* p_run,
                              const struct saved* p_saved) {
  const uint64_t n_most =
    tb_max(p_run->spec.p_model->n_data, p_run->scheme.n_size_max);
  bool is_possible = p_saved->iteration <= UINT64_C(1) << 53 &&
                     p_saved->n_batch <= n_most &&
                     p_saved->has_variance <= 1 && p_saved->is_exact <= 1 &&
                     p_saved->is_warmup <= 1 && isfinite(p_saved->step_scale);
  for (int k = 0; k < TB_STREAM_count; ++k) {
    const uint64_t* s = p_saved->v_rng[k].s;
    is_possible = is_possible && (s[0] | s[1] | s[2] | s[3]) != 0;
  }
  const struct tb_counts* p = &p_saved->counts;
  const double v_count[] = { p->n_row,     p->n_full,      p->n_accept,
                             p->n_propose, p->n_outside,   p->n_nonfinite,
                             p->n_escape };
  for (size_t k = 0; k < sizeof(v_count) / sizeof(v_count[0]); ++k) {
    is_possible = is_possible && v_count[k] >= 0 && isfinite(v_count[k]);
  }
  return is_possible;
}

enum tb_status tb_run_load(struct tb_run* p_run,
                           size_t chain,
                           const void* p_in,
                           size_t n_byte) {
  if (chain >= p_run->spec.n_chain || n_byte != tb_run_saved_size(p_run)) {
    return TB_STATUS_argument;
  }
  struct chain_slot* p_slot = &p_run->v_slot[chain];
  struct tb_chain* p_chain = &p_slot->chain;
  const char* p_state = (const char*) p_in + sizeof(struct saved);
  struct saved saved;
  memcpy(&saved, p_in, sizeof(saved));
  if (saved.format != SAVED_FORMAT || saved.n_byte != p_run->n_saved ||
      saved.hash != saved_hash(p_run, &saved, p_state) ||
      !saved_is_possible(p_run, &saved)) {
    return TB_STATUS_argument;
  }
  p_chain->iteration = saved.iteration;
  p_chain->n_batch = saved.n_batch;
  p_chain->has_variance = saved.has_variance != 0;
  p_chain->is_exact = saved.is_exact != 0;
  p_chain->is_warmup = saved.is_warmup != 0;
  p_chain->log_posterior = saved.log_posterior;
  p_chain->step_scale = saved.step_scale;
  p_chain->counts = saved.counts;
  memcpy(p_chain->v_rng, saved.v_rng, sizeof(saved.v_rng));
  memcpy(p_slot->p_saved, p_state, p_run->n_saved);
  return TB_STATUS_ok;
}
