/* Steps: the start, a step and what follows from it, slices of them. */
#include "base/clip.h"
#include "base/norm.h"
#include "base/threads.h"
#include "run/inside.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Name the coordinate at fault: the first that is not finite, else the
 * largest. */
static void report_coordinate(struct tb_slot* p_slot) {
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
static void report_nonfinite(struct tb_slot* p_slot) {
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

static enum tb_status slot_check(struct tb_slot* p_slot,
                                 const struct tb_run_spec* p_spec) {
  struct tb_chain* p_chain = &p_slot->chain;
  const double norm2 = tb_square_norm(p_chain->v_theta, p_chain->n_dim);
  if (!isfinite(norm2)) {
    report_coordinate(p_slot);
    return TB_STATUS_nonfinite;
  }
  if (p_spec->escape > 0 && norm2 > p_spec->escape) {
    p_chain->counts.n_escape += 1;
    if (p_chain->counts.n_escape >= (double)p_spec->n_escape_max) {
      report_coordinate(p_slot);
      return TB_STATUS_escaped;
    }
  }
  return TB_STATUS_ok;
}

/* A user's function that is undefined stops the chain where it was called, not
 * one step later: the place is told. */
static enum tb_status slot_check_gradient(struct tb_slot* p_slot) {
  const struct tb_chain* p_chain = &p_slot->chain;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    if (isnan(p_chain->v_gradient[j])) {
      report_nonfinite(p_slot);
      return TB_STATUS_nonfinite;
    }
  }
  return TB_STATUS_ok;
}

static void slot_start_sampling(struct tb_slot* p_slot) {
  struct tb_counts* p_counts = &p_slot->chain.counts;
  p_slot->chain.is_warmup = false;
  p_counts->n_accept = p_counts->n_propose = 0;
  p_counts->n_outside = p_counts->n_nonfinite = 0;
  p_counts->n_escape = 0;
}

/* The gradient (and log posterior) where the chain stands, made anew. */
static enum tb_status slot_gradient_anew(struct tb_run* p_run,
                                         struct tb_chain* p_chain) {
  if (p_run->kernel.flags & TB_KERNEL_SWEEPS) {
    memset(p_chain->v_gradient, 0, p_chain->n_dim * sizeof(double));
    return TB_STATUS_ok; /* nobody asks for it */
  }
  return p_run->kernel.flags & TB_KERNEL_METROPOLIS
             ? tb_test_start(p_chain)
             : tb_chain_gradient(p_chain,
                                 p_chain->v_theta,
                                 p_chain->v_gradient,
                                 NULL);
}

/* The model's own draw, where one is due: by the count that goes on when a run
 * is resumed. Kernels that ask for the factorised test draw what it does not
 * see themselves. */
static enum tb_status slot_gibbs(struct tb_run* p_run, struct tb_slot* p_slot) {
  const struct tb_model* p_model = p_run->spec.p_model;
  struct tb_chain* p_chain = &p_slot->chain;
  if (p_model->n_gibbs_every == 0 || p_chain->iteration == 0 ||
      p_chain->iteration % p_model->n_gibbs_every != 0 ||
      p_run->kernel.flags & TB_KERNEL_FACTORISED) {
    return TB_STATUS_ok;
  }
  const enum tb_status status =
      p_model->type->gibbs(p_model, &p_chain->work, p_chain->v_theta);
  return status == TB_STATUS_ok ? slot_gradient_anew(p_run, p_chain) : status;
}

/* One step of the kernel. A chain that has to wait for rows is put back to
 * where it was: the same step is made when they are there. */
static enum tb_status slot_step(struct tb_run* p_run,
                                struct tb_chain* p_chain) {
  if (!p_run->estimator.may_wait) {
    return p_run->kernel.type->step(p_chain);
  }
  struct tb_rng v_rng[TB_STREAM_count];
  const struct tb_counts counts = p_chain->counts;
  const size_t n_batch = p_chain->n_batch;
  memcpy(v_rng, p_chain->v_rng, sizeof(v_rng));
  const enum tb_status status = p_run->kernel.type->step(p_chain);
  if (status == TB_STATUS_exhausted) {
    memcpy(p_chain->v_rng, v_rng, sizeof(v_rng));
    p_chain->counts = counts;
    p_chain->n_batch = n_batch;
  }
  return status;
}

/* Chains of a model that calls R run on the main thread. */
static bool is_serial(const struct tb_run* p_run) {
  return p_run->spec.p_model->type->flags & TB_MODEL_MAIN_THREAD;
}

/* One step, and what follows from it. */
static void slot_advance(struct tb_run* p_run,
                         size_t c,
                         const struct tb_recorder* p_recorder) {
  const struct tb_run_spec* p_spec = &p_run->spec;
  struct tb_slot* p_slot = &p_run->v_slot[c];
  struct tb_chain* p_chain = &p_slot->chain;
  struct tb_report* p_report = &p_slot->report;
  const size_t step = p_report->n_step;

  if (step == p_spec->n_warmup) {
    if (p_chain->is_warmup) { /* not when sampling is resumed */
      slot_start_sampling(p_slot);
    }
    if (p_slot->v_bias != NULL) {
      tb_slot_start_bias(p_slot);
    }
  }
  p_report->status = slot_gibbs(p_run, p_slot);
  if (p_report->status != TB_STATUS_ok) {
    return;
  }
  const bool is_sampling = step >= p_spec->n_warmup;
  const size_t n_sampled = is_sampling ? step - p_spec->n_warmup : 0;
  const struct tb_schedule* p_schedule = &p_run->schedule;
  p_chain->step_scale = p_schedule->type->scale(p_schedule, p_chain->iteration);
  p_chain->is_exploring =
      p_schedule->type->explores != NULL &&
      p_schedule->type->explores(p_schedule, p_chain->iteration);

  /* by the count that goes on when a run is resumed: a pass with squares may
   * round its sums differently */
  const bool looks_at_noise = p_slot->v_noise != NULL &&
                              p_chain->iteration % p_spec->n_noise_every == 0;
  p_chain->wants_variance =
      looks_at_noise || (p_run->kernel.flags & TB_KERNEL_VARIANCE);
  p_report->status = slot_step(p_run, p_chain);
  if (p_report->status == TB_STATUS_nonfinite) {
    report_nonfinite(p_slot);
  }
  if (p_report->status == TB_STATUS_ok) {
    p_report->status = slot_check(p_slot, p_spec);
  }
  if (p_report->status == TB_STATUS_ok && is_serial(p_run)) {
    p_report->status = slot_check_gradient(p_slot);
  }
  if (p_report->status != TB_STATUS_ok) {
    return;
  }
  if (p_slot->v_normal != NULL) {
    p_run->kernel.type->step_normal(p_chain, p_slot->v_normal);
  }
  p_chain->iteration += 1;
  p_report->n_step += 1;
  p_report->is_done = p_report->n_step == p_run->n_total;
  if (!is_sampling || p_chain->is_exploring) {
    return;
  }
  p_report->n_collected += 1;
  if (p_slot->v_bias != NULL && n_sampled % p_spec->n_bias_every == 0) {
    tb_slot_add_bias(p_slot, p_run, n_sampled);
  }
  if (looks_at_noise) {
    tb_slot_add_noise(p_slot);
  }
  if ((p_spec->n_phase + p_report->n_collected) % p_spec->n_every == 0) {
    if (p_report->n_kept < p_recorder->n_keep) {
      tb_slot_record(p_slot, p_run, c, p_recorder);
    } else {
      p_report->status = TB_STATUS_argument;
    }
  }
}

enum tb_status tb_run_start(struct tb_run* p_run) {
  enum tb_status first = TB_STATUS_ok;
  const bool is_metropolis = p_run->kernel.flags & TB_KERNEL_METROPOLIS;
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    struct tb_slot* p_slot = &p_run->v_slot[c];
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
    if (status == TB_STATUS_ok && p_slot->v_normal != NULL) {
      p_run->kernel.type->start_normal(p_chain, p_slot->v_normal);
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
          : p_run->estimator.type->refresh(&p_run->estimator,
                                           p_run->spec.p_model,
                                           n_threads);
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
  const size_t n_slot = p_run->spec.n_chain * sizeof(struct tb_slot);
  memcpy(p_run->p_undo, p_run->v_slot, n_slot);
  memcpy(p_run->p_undo + n_slot, p_run->p_chains, p_run->n_chains_byte);
}

static void run_undo(struct tb_run* p_run) {
  const size_t n_slot = p_run->spec.n_chain * sizeof(struct tb_slot);
  memcpy(p_run->v_slot, p_run->p_undo, n_slot);
  memcpy(p_run->p_chains, p_run->p_undo + n_slot, p_run->n_chains_byte);
}

static bool can_advance(const struct tb_run* p_run,
                        const struct tb_report* p_report) {
  return p_report->n_step < p_run->n_due && !p_report->is_done &&
         p_report->status == TB_STATUS_ok;
}

/* An interrupt may come in the middle of a step: then the slice was not made.
 */
static bool is_interrupted(const struct tb_run* p_run) {
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    if (p_run->v_slot[c].report.status == TB_STATUS_interrupted) {
      return true;
    }
  }
  return false;
}

/* A model that calls R: chains one after another on the main thread. */
static void run_advance_serial(struct tb_run* p_run,
                               const struct tb_recorder* p_recorder) {
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    const struct tb_report* p_report = &p_run->v_slot[c].report;
    while (can_advance(p_run, p_report)) {
      slot_advance(p_run, c, p_recorder);
    }
    if (p_report->status == TB_STATUS_interrupted) {
      return;
    }
  }
}

/* Threads beyond one a chain are lent to the chains, in equal parts. */
static size_t threads_of_chain(const struct tb_run* p_run, int n_threads) {
  return tb_max(1, (size_t)n_threads / p_run->spec.n_chain);
}

static void advance_chain(struct tb_run* p_run,
                          size_t c,
                          const struct tb_recorder* p_recorder) {
  const struct tb_report* p_report = &p_run->v_slot[c].report;
  while (can_advance(p_run, p_report)) {
    slot_advance(p_run, c, p_recorder);
  }
}

static void advance_together(struct tb_run* p_run,
                             int n_threads,
                             const struct tb_recorder* p_recorder) {
#ifdef _OPENMP
  const int n_level = omp_get_max_active_levels();
  omp_set_max_active_levels(n_level < 2 ? 2 : n_level);
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)
#endif
  for (size_t c = 0; c < p_run->spec.n_chain; ++c) {
    advance_chain(p_run, c, p_recorder);
  }
#ifdef _OPENMP
  omp_set_max_active_levels(n_level);
#endif
  (void)n_threads;
}

static void run_advance_threads(struct tb_run* p_run,
                                int n_threads,
                                const struct tb_recorder* p_recorder) {
  const size_t n_chain = p_run->spec.n_chain;
  for (size_t c = 0; c < n_chain; ++c) {
    p_run->v_slot[c].chain.work.n_thread = threads_of_chain(p_run, n_threads);
  }
  if (n_threads > 1 && n_chain > 1) {
    advance_together(p_run,
                     (int)tb_min((size_t)n_threads, n_chain),
                     p_recorder);
    return;
  }
  /* outside of any region: threads of regions within one are started anew each
   * time */
  for (size_t c = 0; c < n_chain; ++c) {
    advance_chain(p_run, c, p_recorder);
  }
}

void tb_run_advance(struct tb_run* p_run,
                    size_t n_step,
                    int n_threads,
                    const struct tb_recorder* p_recorder) {
  const size_t n_due = p_run->n_due;
  p_run->n_due =
      n_step > SIZE_MAX - p_run->n_due ? SIZE_MAX : p_run->n_due + n_step;
  if (p_run->p_undo != NULL) {
    run_keep(p_run);
  }
  if (is_serial(p_run)) {
    run_advance_serial(p_run, p_recorder);
  } else {
    run_advance_threads(p_run, n_threads, p_recorder);
  }
  if (p_run->p_undo != NULL && is_interrupted(p_run)) {
    run_undo(p_run);
    p_run->n_due = n_due;
  }
}
