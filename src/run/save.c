/* Chains as plain bytes, and back. */
#include "base/clip.h"
#include "base/hash.h"
#include "run/inside.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

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

#define SAVED_FORMAT UINT64_C(0x7462303034) /* "tb004" */

size_t tb_run_saved_size(const struct tb_run* p_run) {
  return sizeof(struct saved) + p_run->n_saved;
}

/* Bytes that were altered, or are those of other members, are not a state. */
static uint64_t saved_hash(const struct tb_run* p_run,
                           const struct saved* p_saved,
                           const void* p_state) {
  const char* const v_name[] = {p_run->kernel.type->name,
                                p_run->estimator.type->name};
  uint64_t hash = p_run->n_saved;
  for (size_t k = 0; k < sizeof(v_name) / sizeof(v_name[0]); ++k) {
    for (const char* p = v_name[k]; *p != '\0'; ++p) {
      hash = tb_hash_word(hash, (uint64_t)*p);
    }
  }
  hash = tb_hash_bytes(hash,
                       (const char*)p_saved + offsetof(struct saved, n_byte),
                       sizeof(*p_saved) - offsetof(struct saved, n_byte));
  return tb_hash_bytes(hash, p_state, p_run->n_saved);
}

void tb_run_save(const struct tb_run* p_run, size_t chain, void* p_out) {
  const struct tb_slot* p_slot = &p_run->v_slot[chain];
  const struct tb_chain* p_chain = &p_slot->chain;
  struct saved saved = {.format = SAVED_FORMAT,
                        .n_byte = p_run->n_saved,
                        .iteration = p_chain->iteration,
                        .n_batch = p_chain->n_batch,
                        .has_variance = p_chain->has_variance,
                        .is_exact = p_chain->is_exact,
                        .is_warmup = p_chain->is_warmup,
                        .log_posterior = p_chain->log_posterior,
                        .step_scale = p_chain->step_scale,
                        .counts = p_chain->counts};
  memcpy(saved.v_rng, p_chain->v_rng, sizeof(saved.v_rng));
  saved.hash = saved_hash(p_run, &saved, p_slot->p_saved);
  memcpy(p_out, &saved, sizeof(saved));
  memcpy((char*)p_out + sizeof(saved), p_slot->p_saved, p_run->n_saved);
}

/* Can a chain of this run be in such a state? */
static bool saved_is_possible(const struct tb_run* p_run,
                              const struct saved* p_saved) {
  /* a factorised test draws rows as often as it needs them */
  const uint64_t n_most =
      p_run->kernel.flags & TB_KERNEL_FACTORISED
          ? UINT64_C(1) << 53
          : tb_max(p_run->spec.p_model->n_data, p_run->scheme.n_size_max);
  bool is_possible = p_saved->iteration <= UINT64_C(1) << 53 &&
                     p_saved->n_batch <= n_most && p_saved->has_variance <= 1 &&
                     p_saved->is_exact <= 1 && p_saved->is_warmup <= 1 &&
                     isfinite(p_saved->step_scale);
  for (int k = 0; k < TB_STREAM_count; ++k) {
    const uint64_t* s = p_saved->v_rng[k].s;
    is_possible = is_possible && (s[0] | s[1] | s[2] | s[3]) != 0;
  }
  const struct tb_counts* p = &p_saved->counts;
  const double v_count[] = {p->n_row,
                            p->n_full,
                            p->n_always,
                            p->n_accept,
                            p->n_propose,
                            p->n_outside,
                            p->n_nonfinite,
                            p->n_escape};
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
  struct tb_slot* p_slot = &p_run->v_slot[chain];
  struct tb_chain* p_chain = &p_slot->chain;
  const char* p_state = (const char*)p_in + sizeof(struct saved);
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
