/* Uniform minibatches, with or without replacement. Without: algorithm F2 of
 * R. W. Floyd, in J. Bentley and B. Floyd (1987), Programming pearls: a sample
 * of brilliance, Communications of the ACM 30:754. The sample is looked up in a
 * bit for each row, which is nothing beside the row and much faster than a
 * table of the sample.
 *
 *   symbol  variable              shape     owner
 *   n       n_size                          scheme
 *   N       n_data                          scheme
 *   i       v_index               n         chain
 *   c_i     weight = N/n          all equal
 *           v_bit                 N bits    chain: rows in the sample; all 0
 *                                           between draws
 *
 * Noise factor `finite`: 1 with replacement, 1 - n/N without. Without
 * replacement and n = N the minibatch is all rows in their order, weight 1. */
#include "subsampling/subsample.h"

#include <math.h>
#include <stdint.h>

struct uniform {
  bool is_replaced;
};

/* words of v_bit */
static size_t n_word(size_t n_data) {
  return n_data / 64 + 1;
}

static bool needs_bits(const struct tb_scheme* p_scheme) {
  const struct uniform* p_self = p_scheme->p_self;
  return !p_self->is_replaced && p_scheme->n_size < p_scheme->n_data;
}

static size_t uniform_self_size(const struct tb_params* p_params,
                                size_t n_data) {
  (void)p_params;
  (void)n_data;
  return sizeof(struct uniform);
}

static enum tb_status uniform_init(struct tb_scheme* p_scheme,
                                   const struct tb_model* p_model,
                                   const struct tb_params* p_params) {
  const double size = tb_params_number(p_params, "size", NAN);
  const bool is_replaced = tb_params_number(p_params, "replace", 1) != 0;
  if (!(size >= 1 && size < (double)UINT32_MAX) ||
      (!is_replaced && size > (double)p_model->n_data)) {
    return TB_STATUS_argument;
  }
  p_scheme->n_data = p_model->n_data;
  p_scheme->n_size = (size_t)size;
  p_scheme->n_size_max = p_scheme->n_size;

  struct uniform* p_self = p_scheme->p_self;
  p_self->is_replaced = is_replaced;
  return TB_STATUS_ok;
}

static size_t uniform_state_size(const struct tb_scheme* p_scheme) {
  return p_scheme->n_size * sizeof(size_t) +
         (needs_bits(p_scheme) ? n_word(p_scheme->n_data) : 0) *
             sizeof(uint64_t);
}

/* n of N rows, every subset equally likely */
static void floyd_draw(struct tb_rng* p_rng,
                       size_t n_data,
                       size_t n,
                       uint64_t* v_bit,
                       size_t* v_index) {
  struct tb_rng rng = *p_rng; /* its state lives in registers */
  for (size_t k = 0; k < n; ++k) {
    const size_t top = n_data - n + k; /* never drawn before this round */
    size_t row = tb_rng_index(&rng, top + 1);
    if (v_bit[row / 64] >> row % 64 & 1) {
      row = top;
    }
    v_bit[row / 64] |= UINT64_C(1) << row % 64;
    v_index[k] = row;
  }
  for (size_t k = 0; k < n; ++k) {
    v_bit[v_index[k] / 64] = 0;
  }
  *p_rng = rng;
}

static enum tb_status uniform_draw(struct tb_chain* p_chain,
                                   const double* v_theta,
                                   struct tb_batch* p_batch) {
  (void)v_theta;
  const struct tb_scheme* p_scheme = p_chain->p_target->p_scheme;
  const struct uniform* p_self = p_scheme->p_self;
  const size_t n_data = p_scheme->n_data, n = p_scheme->n_size;
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_batch];
  size_t* v_index = p_chain->p_scheme_state;

  *p_batch = (struct tb_batch){.n_batch = n,
                               .v_index = v_index,
                               .weight = (double)n_data / (double)n,
                               .finite = 1};
  if (p_self->is_replaced) {
    tb_rng_fill_index(p_rng, v_index, n, n_data);
    return TB_STATUS_ok;
  }
  if (n == n_data) {
    p_batch->v_index = NULL;
    p_batch->finite = 0;
    return TB_STATUS_ok;
  }
  p_batch->finite = (double)(n_data - n) / (double)n_data;
  uint64_t* v_bit = (uint64_t*)(void*)(v_index + n);
  floyd_draw(p_rng, n_data, n, v_bit, v_index);
  return TB_STATUS_ok;
}

extern const struct tb_scheme_type tb_scheme_uniform;
const struct tb_scheme_type tb_scheme_uniform = {
    .name = "uniform",
    .citation = "Bentley & Floyd (1987)",
    .self_size = uniform_self_size,
    .init = uniform_init,
    .state_size = uniform_state_size,
    .draw = uniform_draw};
