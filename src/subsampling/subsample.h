/* The scheme family: which rows a minibatch holds and how they are weighted.
 * A scheme fills a tb_batch with indices i and multipliers c_i = 1/(n p_i)
 * (uniform without replacement: N/n), so that sum_i c_i a_i estimates the
 * sum over all rows without bias. Rows that matter so much that they should be
 * drawn more than once can be `always` there instead: what is drawn then
 * estimates the sum over the others. */
#ifndef TB_SUBSAMPLING_SUBSAMPLE_H
#define TB_SUBSAMPLING_SUBSAMPLE_H

#include "chains/chain.h"

enum tb_scheme_flag {
  TB_SCHEME_STATE_DEPENDENT = 1u << 0 /* looks at theta */
};

struct tb_scheme_type {
  const char* name;
  const char* citation;
  unsigned flags;

  /* shared part, read-only once made (an alias table): bytes and making.
   * init sets n_size_max. */
  size_t (*self_size)(const struct tb_params* p_params, size_t n_data);
  enum tb_status (*init)(struct tb_scheme* p_scheme,
                         const struct tb_model* p_model,
                         const struct tb_params* p_params);

  /* bytes a chain owns (indices, multipliers, scratch); a scheme remembers
   * nothing from one draw to the next, so they are not saved with a run */
  size_t (*state_size)(const struct tb_scheme* p_scheme);

  /* the minibatch for theta; arrays of p_batch point into the chain's state
   * and stay valid until the next draw */
  enum tb_status (*draw)(struct tb_chain* p_chain,
                         const double* v_theta,
                         struct tb_batch* p_batch);
};

struct tb_scheme {
  const struct tb_scheme_type* type;
  struct tb_batch always; /* rows of every minibatch, with multiplier 1, which
                             draw() leaves out; n_batch 0: none. init sets it */
  size_t n_data;
  size_t n_size;     /* rows per minibatch (the least, if it varies) */
  size_t n_size_max; /* the most rows a minibatch can have */
  void* p_self;
};

/* registry.c */
extern const struct tb_scheme_type* const tb_scheme_registry[];
const struct tb_scheme_type* tb_scheme_find(const char* name);

#endif
