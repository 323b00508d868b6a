/* A given minibatch, every time: for enumerating all minibatches of a small
 * data set, which proves an estimator unbiased without any Monte Carlo.
 *
 * Parameters: "index" (1-based row numbers), "multiplier" (c_i of each),
 * "finite" (factor of the noise variance), "always" (rows of every minibatch,
 * besides; none: not given). */
#include "subsampling/subsample.h"

#include <stdbool.h>
#include <string.h>

/* Followed by v_index[n_size], v_weight[n_size] and the rows of `always`. */
struct fixed {
  double finite;
};

static size_t fixed_self_size(const struct tb_params* p_params, size_t n_data) {
  const struct tb_param* p_index = tb_params_find(p_params, "index");
  const struct tb_param* p_always = tb_params_find(p_params, "always");
  const size_t n = p_index == NULL ? 0 : p_index->n_value;
  const size_t n_always = p_always == NULL ? 0 : p_always->n_value;
  (void)n_data;
  return sizeof(struct fixed) + n * (sizeof(size_t) + sizeof(double)) +
         n_always * sizeof(size_t);
}

/* v_index := the rows numbered from 1; false: one is out of range */
static bool
fixed_rows(const struct tb_param* p_param, size_t n_data, size_t* v_index) {
  for (size_t k = 0; k < p_param->n_value; ++k) {
    if (!(p_param->v_value[k] >= 1) || p_param->v_value[k] > (double)n_data) {
      return false;
    }
    v_index[k] = (size_t)p_param->v_value[k] - 1;
  }
  return true;
}

static enum tb_status fixed_init(struct tb_scheme* p_scheme,
                                 const struct tb_model* p_model,
                                 const struct tb_params* p_params) {
  struct fixed* p_fixed = p_scheme->p_self;
  const struct tb_param* p_index = tb_params_find(p_params, "index");
  const struct tb_param* p_weight = tb_params_find(p_params, "multiplier");
  if (p_index == NULL || p_weight == NULL || p_index->n_value == 0 ||
      p_index->n_value != p_weight->n_value) {
    return TB_STATUS_argument;
  }
  const size_t n = p_index->n_value;
  size_t* v_index = (size_t*)(p_fixed + 1);
  const struct tb_param* p_always = tb_params_find(p_params, "always");
  size_t* v_always =
      (size_t*)(void*)((char*)(v_index + n) + n * sizeof(double));
  if (!fixed_rows(p_index, p_model->n_data, v_index) ||
      (p_always != NULL && !fixed_rows(p_always, p_model->n_data, v_always))) {
    return TB_STATUS_argument;
  }
  if (p_always != NULL) {
    p_scheme->always = (struct tb_batch){.n_batch = p_always->n_value,
                                         .v_index = v_always,
                                         .weight = 1,
                                         .finite = 1};
  }
  memcpy(v_index + n, p_weight->v_value, n * sizeof(double));
  p_fixed->finite = tb_params_number(p_params, "finite", 1);
  p_scheme->n_size = p_scheme->n_size_max = n;
  return TB_STATUS_ok;
}

static size_t fixed_state_size(const struct tb_scheme* p_scheme) {
  (void)p_scheme;
  return 0;
}

static enum tb_status fixed_draw(struct tb_chain* p_chain,
                                 const double* v_theta,
                                 struct tb_batch* p_batch) {
  const struct tb_scheme* p_scheme = p_chain->p_target->p_scheme;
  const struct fixed* p_fixed = p_scheme->p_self;
  const size_t* v_index = (const size_t*)(p_fixed + 1);
  (void)v_theta;
  *p_batch =
      (struct tb_batch){.n_batch = p_scheme->n_size,
                        .v_index = v_index,
                        .v_weight = (const double*)(v_index + p_scheme->n_size),
                        .finite = p_fixed->finite};
  return TB_STATUS_ok;
}

const struct tb_scheme_type tb_scheme_fixed = {
    .name = "fixed",
    .citation = "none: enumeration in tests",
    .self_size = fixed_self_size,
    .init = fixed_init,
    .state_size = fixed_state_size,
    .draw = fixed_draw,
};
