/* Uniform minibatches, with or without replacement. Without: algorithm F2 of
 * R. W. Floyd, in J. Bentley and B. Floyd (1987), Programming pearls: a sample
 * of brilliance, Communications of the ACM 30:754, which needs memory for the
 * sample alone.
 *
 *   symbol  variable              shape     owner
 *   n       n_size                          scheme
 *   N       n_data                          scheme
 *   i       v_index               n         chain
 *   c_i     weight = N/n          all equal
 *           v_slot                2^k >= 2n  chain: hash table of positions in
 *                                           v_index, plus 1; 0 is empty
 *
 * Noise factor `finite`: 1 with replacement, 1 - n/N without. Without
 * replacement and n = N the minibatch is all rows in their order, weight 1. */
#include "subsampling/subsample.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct uniform {
  bool is_replaced;
  size_t n_slot; /* power of two; 0: no hash table */
};

static size_t uniform_self_size(const struct tb_params* p_params,
                                size_t n_data) {
  (void) p_params;
  (void) n_data;
  return sizeof(struct uniform);
}

static enum tb_status uniform_init(struct tb_scheme* p_scheme,
                                   const struct tb_model* p_model,
                                   const struct tb_params* p_params) {
  const double size = tb_params_number(p_params, "size", NAN);
  const bool is_replaced = tb_params_number(p_params, "replace", 1) != 0;
  /* positions are hashed as 32 bits; more rows fit no memory anyway */
  if (!(size >= 1 && size < (double) UINT32_MAX) ||
      (!is_replaced && size > (double) p_model->n_data)) {
    return TB_STATUS_argument;
  }
  p_scheme->n_data = p_model->n_data;
  p_scheme->n_size = (size_t) size;
  p_scheme->n_size_max = p_scheme->n_size;

  struct uniform* p_self = p_scheme->p_self;
  p_self->is_replaced = is_replaced;
  p_self->n_slot = 0;
  if (!is_replaced && p_scheme->n_size < p_scheme->n_data) {
    p_self->n_slot = 2;
    while (p_self->n_slot < 2 * p_scheme->n_size) {
      p_self->n_slot *= 2;
    }
  }
  return TB_STATUS_ok;
}

static size_t uniform_state_size(const struct tb_scheme* p_scheme) {
  const struct uniform* p_self = p_scheme->p_self;
  return p_scheme->n_size * sizeof(size_t) + p_self->n_slot * sizeof(uint32_t);
}

/* Remember v_index[at] = row unless it is there already. */
static bool slot_insert(uint32_t* v_slot,
                        size_t n_slot,
                        size_t* v_index,
                        size_t at,
                        size_t row) {
  /* Fibonacci hashing: the high bits of the product are well mixed */
  size_t slot =
    (size_t) ((uint64_t) row * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
    (n_slot - 1);
  while (v_slot[slot] != 0) {
    if (v_index[v_slot[slot] - 1] == row) {
      return false;
    }
    slot = (slot + 1) & (n_slot - 1);
  }
  v_slot[slot] = (uint32_t) (at + 1);
  v_index[at] = row;
  return true;
}

/* n of N rows, every subset equally likely */
static void floyd_draw(struct tb_rng* p_rng,
                       size_t n_data,
                       size_t n,
                       uint32_t* v_slot,
                       size_t n_slot,
                       size_t* v_index) {
  memset(v_slot, 0, n_slot * sizeof(uint32_t));
  for (size_t k = 0; k < n; ++k) {
    const size_t top = n_data - n + k; /* never drawn before this round */
    const size_t row = tb_rng_index(p_rng, top + 1);
    if (!slot_insert(v_slot, n_slot, v_index, k, row)) {
      (void) slot_insert(v_slot, n_slot, v_index, k, top);
    }
  }
}

static enum tb_status uniform_draw(struct tb_chain* p_chain,
                                   const double* v_theta,
                                   struct tb_batch* p_batch) {
  (void) v_theta;
  const struct tb_scheme* p_scheme = p_chain->p_target->p_scheme;
  const struct uniform* p_self = p_scheme->p_self;
  const size_t n_data = p_scheme->n_data, n = p_scheme->n_size;
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_batch];
  size_t* v_index = p_chain->p_scheme_state;

  *p_batch = (struct tb_batch) { .n_batch = n,
                                 .v_index = v_index,
                                 .weight = (double) n_data / (double) n,
                                 .finite = 1 };
  if (p_self->is_replaced) {
    for (size_t k = 0; k < n; ++k) {
      v_index[k] = tb_rng_index(p_rng, n_data);
    }
    return TB_STATUS_ok;
  }
  if (n == n_data) {
    p_batch->v_index = NULL;
    p_batch->finite = 0;
    return TB_STATUS_ok;
  }
  p_batch->finite = (double) (n_data - n) / (double) n_data;
  uint32_t* v_slot = (uint32_t*) (void*) (v_index + n);
  floyd_draw(p_rng, n_data, n, v_slot, p_self->n_slot, v_index);
  return TB_STATUS_ok;
}

extern const struct tb_scheme_type tb_scheme_uniform;
const struct tb_scheme_type tb_scheme_uniform = {
  .name = "uniform",
  .citation = "Bentley & Floyd (1987)",
  .self_size = uniform_self_size,
  .init = uniform_init,
  .state_size = uniform_state_size,
  .draw = uniform_draw
};
