/* A run from inside: what the files of this folder share. */
#ifndef TB_RUN_INSIDE_H
#define TB_RUN_INSIDE_H

#include "base/arena.h"
#include "gradients/gradient.h"
#include "kernels/kernel.h"
#include "run/run.h"
#include "schedules/schedule.h"
#include "subsampling/subsample.h"

/* What a chain owns besides the part its kernel sees.
 *
 *   variable      shape                      saved
 *   chain         the kernel's view          partly (struct saved)
 *   p_saved       theta, gradient, variance, yes, as one piece of n_saved bytes
 *                 v_normal, kernel and
 *                 estimator state
 *   v_normal      n_dim, phi^G: the kernel's yes; NULL: the bias estimate is
 *                 normal companion           not coupled
 *   v_parameter   n_dim, scratch             no: with a frame only
 *   v_natural     n_natural, scratch         no: where variables differ
 *   v_shift       n_natural, scratch         no
 *   v_pushed      n_dim, scratch             no: with a frame or v_bias only
 *   v_origin      n_dim                      no: with v_bias only
 *   v_norm2       n_dim, ||M_j||^2           no: with v_bias only; 1 without a
 *                                            frame
 *   v_bias, v_moments, v_noise               no: each run has its own
 */
struct tb_slot {
  struct tb_chain chain;
  struct tb_report report;
  char* p_saved;
  double* v_normal;
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
  size_t n_total; /* steps of this run */
  size_t n_saved; /* bytes at p_saved */
  struct tb_slot* v_slot;
  void* p_chains;        /* second allocation: the chains' arrays */
  size_t n_members_byte; /* of the first, which this struct is in */
  size_t n_chains_byte;
  size_t n_due;   /* steps that chains are asked to have made so far */
  void* p_refill; /* the estimator's part since tb_run_refill(), or NULL */
  size_t n_refill_byte; /* of it */
  char* p_undo; /* slots and chains before a slice that may be interrupted */
};

/* ---- members.c ---- */

/* bytes of the members' shared parts */
struct tb_member_sizes {
  size_t n_kernel, n_estimator, n_scheme, n_schedule;
};

enum tb_status tb_run_find_members(struct tb_run* p_run);
struct tb_member_sizes tb_run_member_sizes(const struct tb_run* p_run);
/* The estimator's test, by what the kernel looks at; NULL: it has none. */
const struct tb_test_type* tb_run_test(const struct tb_run* p_run);
enum tb_status tb_run_init_members(struct tb_run* p_run, int n_threads);

/* ---- layout.c ---- */

/* The chains' part; needs the initialised members. */
void tb_run_lay_out_chains(struct tb_run* p_run, struct tb_arena* p_arena);

/* ---- record.c ---- */

/* The chain's position as unconstrained parameters, in v_parameter. */
const double* tb_slot_parameter(struct tb_slot* p_slot);

/* A kept draw: to the recorder and the moments. */
void tb_slot_record(struct tb_slot* p_slot,
                    const struct tb_run* p_run,
                    size_t c,
                    const struct tb_recorder* p_recorder);

/* ---- moments.c ---- */

/* doubles at v_moments */
size_t tb_moments_size(const struct tb_run_spec* p_spec, size_t n);
/* v_shift: n_natural, scratch */
void tb_slot_add_moments(double* v_moments,
                         const double* v_natural,
                         size_t n_natural,
                         bool keeps_covariance,
                         double* v_shift);

/* ---- bias.c ---- */

/* Where sampling starts: what positions are measured from. */
void tb_slot_start_bias(struct tb_slot* p_slot);
/* The term of a sampling step, the n_sampled-th from 0. */
void tb_slot_add_bias(struct tb_slot* p_slot,
                      const struct tb_run* p_run,
                      size_t n_sampled);

/* ---- noise.c ---- */

/* The noise of the step just made. */
void tb_slot_add_noise(struct tb_slot* p_slot);

#endif
