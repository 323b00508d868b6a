/* Minibatches with fixed probabilities p_i, with replacement, by the alias
 * method: A. J. Walker (1977), ACM TOMS 3:253; the table in O(N) by M. D. Vose
 * (1991), IEEE Transactions on Software Engineering 17:972.
 *
 *   symbol       variable    shape   owner
 *   p_i          w_i / sum w         parameter "weights", any scale
 *   n            n_size              scheme
 *   c_i          v_weight    n       chain: 1 / (n p_i)
 *   i            v_index     n       chain
 *                v_record    N       scheme: row i of the table is kept with
 *                                    probability `threshold`, else its alias
 *                                    is taken
 *   A            v_always            scheme: rows of every minibatch, parameter
 *                                    "always" (from 1); their w_i are 0, so
 *                                    that they are not drawn as well
 *
 * Where rows are in A, the size is that of the others and 1 / p_i counts them
 * alone: the certainty stratum of survey sampling (Tille 2006, Sampling
 * Algorithms, section 2.10).
 *
 * A record carries both multipliers beside threshold and alias, 32 bytes, so
 * that a draw costs one cache miss, and the draw makes that miss early. */
#include "subsampling/weighted.h"

#include "base/clones.h"
#include "subsampling/subsample.h"

#include <math.h>
#include <stdint.h>

/* draws between asking for a record and reading it */
#define N_AHEAD 16

struct weighted {
  struct tb_alias* v_record;
};

static size_t weighted_n_always(const struct tb_params* p_params) {
  const struct tb_param* p_always = tb_params_find(p_params, "always");
  return p_always == NULL ? 0 : p_always->n_value;
}

static size_t weighted_self_size(const struct tb_params* p_params,
                                 size_t n_data) {
  const size_t n_always = weighted_n_always(p_params);
  /* one record more than rows: room to align them, so that none of them
   * straddles two cache lines */
  if (n_data >= SIZE_MAX / sizeof(struct tb_alias) / 2 - 2 ||
      n_always > n_data) {
    return SIZE_MAX;
  }
  return sizeof(struct weighted) + (n_data + 1) * sizeof(struct tb_alias) +
         n_always * sizeof(size_t);
}

/* First record after the struct on a multiple of its size. */
static struct tb_alias* weighted_records(struct weighted* p_self) {
  const uintptr_t after = (uintptr_t)(p_self + 1);
  const uintptr_t unit = sizeof(struct tb_alias);
  char* p_after = (char*)(p_self + 1);
  return (struct tb_alias*)(void*)(p_after + (unit - after % unit) % unit);
}

#define END_OF_LIST SIZE_MAX

enum tb_status tb_alias_build(const double* v_weight,
                              size_t n_data,
                              size_t n_size,
                              struct tb_alias* v_record) {
  double largest = 0;
  for (size_t i = 0; i < n_data; ++i) {
    if (!(v_weight[i] >= 0 && isfinite(v_weight[i]))) {
      return TB_STATUS_argument;
    }
    if (v_weight[i] > largest) {
      largest = v_weight[i];
    }
  }
  if (largest == 0) {
    return TB_STATUS_argument;
  }
  /* relative to the largest, so that no scale overflows; Kahan's sum, because
   * the multipliers are only as exact as it is */
  double sum = 0, lost = 0;
  for (size_t i = 0; i < n_data; ++i) {
    const double term = v_weight[i] / largest - lost;
    const double next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }

  /* threshold: N p_i, what row i has to give away (> 1) or lacks (< 1). Both
   * kinds are linked lists through `alias`, which is free until a row is
   * settled, so that building takes no memory beside the table. */
  size_t lacking = END_OF_LIST, giving = END_OF_LIST;
  for (size_t k = n_data; k > 0; --k) {
    struct tb_alias* p_record = &v_record[k - 1];
    const double relative = v_weight[k - 1] / largest;
    p_record->threshold = relative / sum * (double)n_data;
    p_record->weight = relative == 0 ? 0 : sum / relative / (double)n_size;
    if (!isfinite(p_record->weight) || (relative == 0 && v_weight[k - 1] > 0)) {
      return TB_STATUS_argument; /* some 10^300 times rarer than another */
    }
    size_t* p_list = p_record->threshold < 1 ? &lacking : &giving;
    p_record->alias = *p_list;
    *p_list = k - 1;
  }
  while (lacking != END_OF_LIST && giving != END_OF_LIST) {
    struct tb_alias* p_small = &v_record[lacking];
    struct tb_alias* p_large = &v_record[giving];
    const size_t large = giving;
    lacking = p_small->alias;
    p_small->alias = large;
    p_large->threshold -= 1 - p_small->threshold;
    if (p_large->threshold < 1) {
      giving = p_large->alias;
      p_large->alias = lacking;
      lacking = large;
    }
  }
  /* what is left of either kind is 1 up to rounding; a weight of 0 is not,
   * whatever the rounding */
  for (int k = 0; k < 2; ++k) {
    size_t i = k == 0 ? lacking : giving;
    while (i != END_OF_LIST) {
      const size_t next = v_record[i].alias;
      if (v_record[i].weight == 0) {
        return TB_STATUS_argument;
      }
      v_record[i].threshold = 1;
      v_record[i].alias = i;
      i = next;
    }
  }
  for (size_t i = 0; i < n_data; ++i) {
    v_record[i].alias_weight = v_record[v_record[i].alias].weight;
  }
  return TB_STATUS_ok;
}

/* Rows of A, whose weights, and no others, must be 0. */
static enum tb_status weighted_set_always(struct tb_scheme* p_scheme,
                                          const struct tb_params* p_params,
                                          const double* v_weight,
                                          size_t* v_always) {
  const size_t n = weighted_n_always(p_params), n_data = p_scheme->n_data;
  const struct tb_param* p_always = tb_params_find(p_params, "always");
  size_t n_zero = 0;
  for (size_t i = 0; i < n_data; ++i) {
    n_zero += !(v_weight[i] > 0);
  }
  if (n_zero != n || n >= n_data) {
    return TB_STATUS_argument;
  }
  for (size_t k = 0; k < n; ++k) {
    const double row = p_always->v_value[k];
    if (!(row >= 1) || row > (double)n_data || v_weight[(size_t)row - 1] != 0 ||
        (k > 0 && (size_t)row - 1 <= v_always[k - 1])) {
      return TB_STATUS_argument; /* they come in order, each once */
    }
    v_always[k] = (size_t)row - 1;
  }
  p_scheme->always = (struct tb_batch){.n_batch = n,
                                       .v_index = v_always,
                                       .weight = 1,
                                       .finite = 1};
  return TB_STATUS_ok;
}

/* Parameters: "size", "weights" (N), "always" (rows; none: not given). */
static enum tb_status weighted_init(struct tb_scheme* p_scheme,
                                    const struct tb_model* p_model,
                                    const struct tb_params* p_params) {
  const double size = tb_params_number(p_params, "size", NAN);
  const struct tb_param* p_weights = tb_params_find(p_params, "weights");
  if (!(size >= 1 && size < (double)UINT32_MAX) || p_weights == NULL ||
      p_weights->n_value != p_model->n_data) {
    return TB_STATUS_argument;
  }
  p_scheme->n_data = p_model->n_data;
  p_scheme->n_size = (size_t)size;
  p_scheme->n_size_max = p_scheme->n_size;

  struct weighted* p_self = p_scheme->p_self;
  p_self->v_record = weighted_records(p_self);
  const enum tb_status status = weighted_set_always(
      p_scheme,
      p_params,
      p_weights->v_value,
      (size_t*)(void*)(p_self->v_record + p_scheme->n_data));
  if (status != TB_STATUS_ok) {
    return status;
  }
  return tb_alias_build(p_weights->v_value,
                        p_scheme->n_data,
                        p_scheme->n_size,
                        p_self->v_record);
}

static size_t weighted_state_size(const struct tb_scheme* p_scheme) {
  return p_scheme->n_size * (sizeof(size_t) + sizeof(double));
}

void tb_alias_draw(const struct tb_alias* v_record,
                   size_t n_data,
                   struct tb_rng* p_rng,
                   size_t n,
                   size_t* v_index,
                   double* v_weight) {
  /* the outputs hold the table row and the uniform number in the meantime */
  for (size_t k = 0; k < n + N_AHEAD; ++k) {
    if (k < n) {
      v_index[k] = tb_rng_index(p_rng, n_data);
      v_weight[k] = tb_rng_unif(p_rng);
      TB_PREFETCH(&v_record[v_index[k]]);
    }
    if (k >= N_AHEAD) {
      const size_t at = k - N_AHEAD;
      const struct tb_alias* p_record = &v_record[v_index[at]];
      if (v_weight[at] < p_record->threshold) {
        v_weight[at] = p_record->weight;
      } else {
        v_index[at] = p_record->alias;
        v_weight[at] = p_record->alias_weight;
      }
    }
  }
}

static enum tb_status weighted_draw(struct tb_chain* p_chain,
                                    const double* v_theta,
                                    struct tb_batch* p_batch) {
  (void)v_theta;
  const struct tb_scheme* p_scheme = p_chain->p_target->p_scheme;
  const struct weighted* p_self = p_scheme->p_self;
  const size_t n = p_scheme->n_size;
  size_t* v_index = p_chain->p_scheme_state;
  double* v_weight = (double*)(void*)(v_index + n);
  tb_alias_draw(p_self->v_record,
                p_scheme->n_data,
                &p_chain->v_rng[TB_STREAM_batch],
                n,
                v_index,
                v_weight);
  *p_batch = (struct tb_batch){.n_batch = n,
                               .v_index = v_index,
                               .v_weight = v_weight,
                               .weight = 1,
                               .finite = 1};
  return TB_STATUS_ok;
}

extern const struct tb_scheme_type tb_scheme_weighted;
const struct tb_scheme_type tb_scheme_weighted = {
    .name = "weighted",
    .citation = "Walker (1977); Vose (1991)",
    .self_size = weighted_self_size,
    .init = weighted_init,
    .state_size = weighted_state_size,
    .draw = weighted_draw};
