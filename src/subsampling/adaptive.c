/* Minibatches that grow with the distance from the mode, so that the noise of
 * a control-variate gradient stays below V_0 (Putcha, Nemeth & Fearnhead 2023,
 * section 5):
 *
 *   n(theta) = floor( (1/V_0) ||theta - mode||^2 sum_i L_i^2 / p_i ) + 1
 *
 * between n_min and n_max; all rows, in order, where it reaches N. It depends
 * on theta alone, so the estimate stays unbiased.
 *
 *   symbol                    variable   shape  owner
 *   mode                      v_at       n_dim  adaptive
 *   sum_i L_i^2 / p_i / V_0   rate              adaptive
 *   p_i                       v_record   N      adaptive: alias table made for
 *                                               n = 1 (NULL: uniform)
 *   i, c_i = 1/(n p_i)        v_index,   n_max  chain
 *                             v_weight
 */
#include "base/clip.h"
#include "subsampling/subsample.h"
#include "subsampling/weighted.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct adaptive {
  double* v_at;
  double rate;
  struct tb_alias* v_record;
};

static size_t adaptive_n_dim(const struct tb_params* p_params) {
  const struct tb_param* p_at = tb_params_find(p_params, "at");
  return p_at == NULL ? 0 : p_at->n_value;
}

static size_t adaptive_self_size(const struct tb_params* p_params,
                                 size_t n_data) {
  const size_t n_at = adaptive_n_dim(p_params) * sizeof(double);
  if (n_data >= SIZE_MAX / (2 * sizeof(struct tb_alias)) - 2) {
    return SIZE_MAX;
  }
  const size_t n_record =
      tb_params_find(p_params, "weights") == NULL ? 0 : n_data + 2;
  return tb_align(sizeof(struct adaptive)) + tb_align(n_at) +
         n_record * sizeof(struct tb_alias);
}

/* Parameters: "at" (n_dim, sampler coordinates), "rate", "min_size",
 * "max_size", "weights" (N; none: uniform). */
static enum tb_status adaptive_init(struct tb_scheme* p_scheme,
                                    const struct tb_model* p_model,
                                    const struct tb_params* p_params) {
  struct adaptive* p_self = p_scheme->p_self;
  const size_t n_dim = p_model->n_dim, n_data = p_model->n_data;
  const struct tb_param* p_at = tb_params_find(p_params, "at");
  const struct tb_param* p_weights = tb_params_find(p_params, "weights");
  const double rate = tb_params_number(p_params, "rate", NAN);
  const double least = tb_params_number(p_params, "min_size", NAN);
  const double most = tb_params_number(p_params, "max_size", NAN);
  if (p_at == NULL || p_at->n_value != n_dim || !(rate >= 0) || !(least >= 1) ||
      !(most >= least) || !(most <= (double)n_data) ||
      (p_weights != NULL && p_weights->n_value != n_data)) {
    return TB_STATUS_argument;
  }
  p_scheme->n_data = n_data;
  p_scheme->n_size = (size_t)least;
  p_scheme->n_size_max = (size_t)most;

  char* p = (char*)p_self + tb_align(sizeof(*p_self));
  p_self->v_at = (double*)(void*)p;
  p_self->rate = rate;
  tb_model_fold(p_model, p_at->v_value, p_self->v_at);
  if (p_weights == NULL) {
    p_self->v_record = NULL;
    return TB_STATUS_ok;
  }
  for (size_t i = 0; i < n_data; ++i) {
    if (!(p_weights->v_value[i] > 0)) {
      return TB_STATUS_argument; /* such a row would never be drawn */
    }
  }
  /* on a multiple of a record's size: none straddles two cache lines */
  const uintptr_t unit = sizeof(struct tb_alias);
  p += tb_align(n_dim * sizeof(double));
  p += (unit - (uintptr_t)p % unit) % unit;
  p_self->v_record = (struct tb_alias*)(void*)p;
  return tb_alias_build(p_weights->v_value, n_data, 1, p_self->v_record);
}

static size_t adaptive_state_size(const struct tb_scheme* p_scheme) {
  return p_scheme->n_size_max * (sizeof(size_t) + sizeof(double));
}

/* n(theta); a theta that is not finite gets all it may */
static size_t adaptive_size(const struct tb_scheme* p_scheme,
                            const double* v_theta,
                            size_t n_dim) {
  const struct adaptive* p_self = p_scheme->p_self;
  double square = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    const double t = v_theta[j] - p_self->v_at[j];
    square += t * t;
  }
  const double size = floor(p_self->rate * square) + 1;
  return !(size < (double)p_scheme->n_size_max)
             ? p_scheme->n_size_max
             : tb_max(p_scheme->n_size, (size_t)size);
}

static enum tb_status adaptive_draw(struct tb_chain* p_chain,
                                    const double* v_theta,
                                    struct tb_batch* p_batch) {
  const struct tb_scheme* p_scheme = p_chain->p_target->p_scheme;
  const struct adaptive* p_self = p_scheme->p_self;
  const size_t n_data = p_scheme->n_data;
  const size_t n = adaptive_size(p_scheme, v_theta, p_chain->n_dim);
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_batch];
  size_t* v_index = p_chain->p_scheme_state;
  double* v_weight = (double*)(void*)(v_index + p_scheme->n_size_max);

  if (n == n_data) {
    *p_batch = (struct tb_batch){.n_batch = n_data, .weight = 1, .finite = 0};
    return TB_STATUS_ok;
  }
  *p_batch = (struct tb_batch){.n_batch = n,
                               .v_index = v_index,
                               .weight = (double)n_data / (double)n,
                               .finite = 1};
  if (p_self->v_record == NULL) {
    tb_rng_fill_index(p_rng, v_index, n, n_data);
    return TB_STATUS_ok;
  }
  tb_alias_draw(p_self->v_record, n_data, p_rng, n, v_index, v_weight);
  for (size_t k = 0; k < n; ++k) {
    v_weight[k] /= (double)n;
  }
  p_batch->v_weight = v_weight;
  return TB_STATUS_ok;
}

extern const struct tb_scheme_type tb_scheme_adaptive;
const struct tb_scheme_type tb_scheme_adaptive = {
    .name = "adaptive",
    .citation = "Putcha, Nemeth & Fearnhead (2023), section 5",
    .flags = TB_SCHEME_STATE_DEPENDENT,
    .self_size = adaptive_self_size,
    .init = adaptive_init,
    .state_size = adaptive_state_size,
    .draw = adaptive_draw};
