/* The probabilities of least variance at the current state,
 *
 *   p_i = ||a_i(theta)|| / sum_k ||a_k(theta)||,
 *
 * a_i = g_i(theta), less what the estimator subtracts (Putcha, Nemeth &
 * Fearnhead 2023, section 4.1). O(N) for every minibatch: for study only.
 * Uniform where all a_i are 0. A row with p_i = 0 is never drawn, and need not
 * be: its a_i is 0.
 *
 *   symbol              variable   shape  owner
 *   ||a_i||             v_norm     N      chain
 *   sum_{k<=i} ||a_k||  v_total    N      chain
 *   i, c_i = 1/(n p_i)  v_index,   n      chain
 *                       v_weight
 */
#include "subsampling/subsample.h"

#include "passes/rows.h"

#include <math.h>
#include <stdint.h>

static enum tb_status optimal_init(struct tb_scheme* p_scheme,
                                   const struct tb_model* p_model,
                                   const struct tb_params* p_params) {
  const double size = tb_params_number(p_params, "size", NAN);
  if (!(size >= 1 && size < (double)UINT32_MAX)) {
    return TB_STATUS_argument;
  }
  p_scheme->n_data = p_model->n_data;
  p_scheme->n_size = p_scheme->n_size_max = (size_t)size;
  return TB_STATUS_ok;
}

static size_t optimal_state_size(const struct tb_scheme* p_scheme) {
  return 2 * p_scheme->n_data * sizeof(double) +
         p_scheme->n_size * (sizeof(double) + sizeof(size_t));
}

/* ||a_i|| of every row */
static enum tb_status
optimal_norms(struct tb_chain* p_chain, const double* v_theta, double* v_norm) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  const enum tb_status status =
      p_target->square_norms == NULL
          ? tb_model_all_square_norms(p_model,
                                      &p_chain->work,
                                      v_theta,
                                      NULL,
                                      v_norm,
                                      NULL,
                                      p_chain->p_estimator_scratch)
          : p_target->square_norms(p_chain, v_theta, v_norm);
  for (size_t i = 0; i < p_model->n_data; ++i) {
    v_norm[i] = sqrt(v_norm[i]);
  }
  p_chain->counts.n_row += (double)p_model->n_data;
  return status;
}

/* the first i with v_total[i] > x; the sums do not fall */
static size_t first_above(const double* v_total, size_t n, double x) {
  size_t low = 0, high = n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (v_total[middle] > x) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

static enum tb_status optimal_draw(struct tb_chain* p_chain,
                                   const double* v_theta,
                                   struct tb_batch* p_batch) {
  const struct tb_scheme* p_scheme = p_chain->p_target->p_scheme;
  const size_t n_data = p_scheme->n_data, n = p_scheme->n_size;
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_batch];
  double* v_norm = p_chain->p_scheme_state;
  double* v_total = v_norm + n_data;
  double* v_weight = v_total + n_data;
  size_t* v_index = (size_t*)(void*)(v_weight + n);
  const enum tb_status status = optimal_norms(p_chain, v_theta, v_norm);
  if (status != TB_STATUS_ok) {
    return status;
  }
  double total = 0;
  size_t last = 0;
  for (size_t i = 0; i < n_data; ++i) {
    total += v_norm[i];
    v_total[i] = total;
    last = v_norm[i] > 0 ? i : last;
  }
  const bool is_uniform = !(total > 0 && isfinite(total));
  for (size_t k = 0; k < n; ++k) {
    if (is_uniform) {
      v_index[k] = tb_rng_index(p_rng, n_data);
      v_weight[k] = (double)n_data / (double)n;
      continue;
    }
    const size_t i = first_above(v_total, n_data, tb_rng_unif(p_rng) * total);
    v_index[k] = i < last ? i : last; /* the product may round up to total */
    v_weight[k] = total / v_norm[v_index[k]] / (double)n;
  }
  *p_batch = (struct tb_batch){.n_batch = n,
                               .v_index = v_index,
                               .v_weight = v_weight,
                               .weight = 1,
                               .finite = 1};
  return TB_STATUS_ok;
}

extern const struct tb_scheme_type tb_scheme_optimal;
const struct tb_scheme_type tb_scheme_optimal = {
    .name = "optimal",
    .citation = "Putcha, Nemeth & Fearnhead (2023), section 4.1",
    .flags = TB_SCHEME_STATE_DEPENDENT,
    .init = optimal_init,
    .state_size = optimal_state_size,
    .draw = optimal_draw};
