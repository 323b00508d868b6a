/* A run: chains on one shared target, advanced in slices.
 *
 *   steps  0 .. n_warmup-1                     warmup
 *          n_warmup .. n_warmup+n_sampling-1   sampling
 *
 * The state after every n_every-th sampling step is kept; steps in which the
 * schedule explores do not count. Nothing a chain does depends on how many
 * threads there are or how long a slice is. */
#ifndef TB_RUN_RUN_H
#define TB_RUN_RUN_H

#include "chains/chain.h"

/* A family member by name, with its parameters. */
struct tb_member {
  const char* name;
  struct tb_params params;
};

struct tb_run_spec {
  struct tb_model* p_model;
  struct tb_member kernel;
  struct tb_member estimator;
  struct tb_member scheme; /* name NULL: none (estimators of all rows) */
  struct tb_member schedule;
  size_t n_chain;
  size_t n_first;    /* chains before them in other runs: their random numbers
                        are those of chains n_first, n_first + 1, ... */
  size_t n_warmup;   /* steps */
  size_t n_sampling; /* steps after them */
  size_t n_every;    /* sampling steps to a kept draw */
  size_t n_phase;    /* of these, already made before this run (resuming) */
  uint64_t seed;
  double likelihood_scale;
  double escape;       /* a draw with ||phi||^2 above it is far out; 0: never */
  size_t n_escape_max; /* so many of them end the chain */
  size_t n_bias_block; /* blocks of the bias estimate; 0: none */
  size_t n_bias_every; /* steps between its terms */
  /* n_dim x n_dim, column-major, Sigma_jk / Sigma_jj with Sigma about the
   * posterior's covariance, for models without a frame; NULL: not known. The
   * run copies it. */
  const double* v_bias_map;
  /* The terms less those of a normal companion of the kernel, whose mean is
   * known: the same estimate with less variance where the posterior is near
   * N(0, I) in the sampler's coordinates. Wants a kernel that has one and a
   * schedule that is constant. */
  bool is_bias_coupled;
  bool keeps_moments;    /* running mean and variance of the natural draws */
  bool keeps_covariance; /* and their covariance; with keeps_moments only */
  size_t n_noise_every; /* steps between looks at the gradient noise; 0: none */
  const double* v_init; /* n_dim x n_chain, sampler coordinates */
  size_t n_byte_most;   /* TB_STATUS_memory where the run would take more; 0:
                           whatever it takes */
  size_t* p_byte;       /* what it takes; NULL: not asked for */
};

/* Where kept draws go: arrays of R, column-major; NULL: not wanted.
 * draw k of chain c of variable j stands at [k + n_keep (c + n_chain j)]. */
struct tb_recorder {
  size_t n_keep;         /* room for so many; one more is an error */
  const double* v_which; /* n_which: numbers, from 1, of the variables kept in
                            the next three instead of all; NULL: all */
  size_t n_which;
  double* v_draw;          /* n_keep x n_chain x n_natural */
  double* v_unconstrained; /* n_keep x n_chain x n_dim */
  double* v_gradient;      /* n_keep x n_chain x n_dim, with respect to the
                              unconstrained parameters, at the draw */
  double* v_size;          /* n_keep x n_chain: rows of the minibatch */
  double* v_weight;        /* n_keep x n_chain: the schedule's factor */
  double* v_log_posterior; /* n_keep x n_chain */
  const double*
      v_which_effect; /* n_which_effect: numbers, from 1, of the
                         effects that are kept, of models that sweep */
  size_t n_which_effect;
  double* v_effect; /* n_keep x n_chain x n_which_effect */
};

/* How a chain stands. */
struct tb_report {
  enum tb_status status;
  size_t n_step;      /* steps made in this run */
  size_t n_collected; /* sampling steps among them that were not exploring */
  size_t coordinate; /* the first one that is not finite, or the largest; n_dim:
                        none is at fault */
  double value;      /* its value, NaN for none */
  size_t n_kept;
  bool is_done;
};

struct tb_run;

/* *pp_run is NULL unless the status is ok. */
enum tb_status tb_run_create(const struct tb_run_spec* p_spec,
                             int n_threads,
                             struct tb_run** pp_run);
void tb_run_destroy(struct tb_run* p_run);

/* Before the first slice: the gradients at the starting points, of every
 * chain; the first failure is returned, all are in the reports. */
enum tb_status tb_run_start(struct tb_run* p_run);

/* n_step more steps of every chain that can go on, and those that it has left
 * of earlier calls, after it waited. A chain whose estimator has too few rows
 * left for a step (TB_STATUS_exhausted) waits, as if it had not begun it. */
void tb_run_advance(struct tb_run* p_run,
                    size_t n_step,
                    int n_threads,
                    const struct tb_recorder* p_recorder);

/* Another model of the same posterior, and the estimator made of it anew with
 * these parameters, for all chains; those that wait can go on. Where it fails
 * all is as it was: unsupported, of estimators whose chains never wait, or
 * another shape of model. */
enum tb_status tb_run_refill(struct tb_run* p_run,
                             struct tb_model* p_model,
                             const struct tb_params* p_params,
                             int n_threads);

/* Put back what other runs on the same model may have changed. A failure stops
 * every chain, and is in their reports. */
enum tb_status tb_run_refresh(struct tb_run* p_run, int n_threads);

/* Are the variables that it keeps among the model's? Once, before the first
 * slice: the recorder trusts their numbers. */
bool tb_run_records(const struct tb_run* p_run,
                    const struct tb_recorder* p_recorder);

size_t tb_run_n_chain(const struct tb_run* p_run);
size_t tb_run_n_total(const struct tb_run* p_run);
size_t tb_run_n_bias_block(const struct tb_run* p_run);
struct tb_report tb_run_report(const struct tb_run* p_run, size_t chain);
const struct tb_chain* tb_run_chain(const struct tb_run* p_run, size_t chain);
struct tb_target const* tb_run_target(const struct tb_run* p_run);

/* n_bias_block x (1 + 3 n_dim): count, sums of t, g, t g (centred at the start
 * of sampling), per block; NULL if not wanted */
const double* tb_run_bias(const struct tb_run* p_run, size_t chain);
/* n_dim: that start; NULL likewise */
const double* tb_run_bias_origin(const struct tb_run* p_run, size_t chain);
/* count, then n_natural means, then n_natural sums of squared deviations; with
 * keeps_covariance then n_natural x n_natural sums of their products */
const double* tb_run_moments(const struct tb_run* p_run, size_t chain);
size_t tb_run_n_moments(const struct tb_run* p_run);
/* where a chain is: n_dim parameters and n_natural variables */
void tb_run_position(const struct tb_run* p_run,
                     size_t chain,
                     double* v_parameter,
                     double* v_natural);
/* count, then n_dim sums of the minibatch variance, then n_dim sums of the
 * probability that a proposal is beyond what this noise lets the kernel do */
const double* tb_run_noise(const struct tb_run* p_run, size_t chain);

/* A chain as plain bytes, to go on later as if never stopped. They carry their
 * checksum: bytes that were altered, or that another version, kernel or
 * estimator saved, are refused with TB_STATUS_argument, and so is a chain
 * beyond the run's. */
size_t tb_run_saved_size(const struct tb_run* p_run);
void tb_run_save(const struct tb_run* p_run, size_t chain, void* p_out);
enum tb_status tb_run_load(struct tb_run* p_run,
                           size_t chain,
                           const void* p_in,
                           size_t n_byte);

#endif
