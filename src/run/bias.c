/* An observer: the terms of the bias estimate, in blocks of sampling steps. */
#include "base/clones.h"
#include "run/inside.h"

#include <string.h>

/* ||M_j||^2 of every row of the frame's map, one direction at a time. */
static void slot_row_norms(struct tb_slot* p_slot) {
  const struct tb_frame* p_frame = p_slot->chain.p_target->p_model->p_frame;
  const size_t n_dim = p_slot->chain.n_dim;
  double* v_unit = p_slot->v_pushed;
  for (size_t j = 0; j < n_dim; ++j) {
    p_slot->v_norm2[j] = p_frame == NULL ? 1 : 0;
  }
  for (size_t k = 0; p_frame != NULL && !p_frame->is_diagonal && k < n_dim;
       ++k) {
    memset(v_unit, 0, n_dim * sizeof(double));
    v_unit[k] = 1;
    tb_frame_map(p_frame, v_unit, p_slot->v_parameter);
    for (size_t j = 0; j < n_dim; ++j) {
      p_slot->v_norm2[j] += p_slot->v_parameter[j] * p_slot->v_parameter[j];
    }
  }
  for (size_t j = 0; p_frame != NULL && p_frame->is_diagonal && j < n_dim;
       ++j) {
    p_slot->v_norm2[j] = p_frame->v_map[j] * p_frame->v_map[j];
  }
}

void tb_slot_start_bias(struct tb_slot* p_slot) {
  memcpy(p_slot->v_origin,
         tb_slot_parameter(p_slot),
         p_slot->chain.n_dim * sizeof(double));
  slot_row_norms(p_slot);
}

/* (Sigma g)_j / Sigma_jj */
static TB_CLONES void bias_direction(const double* v_map,
                                     const double* v_gradient,
                                     size_t n_dim,
                                     double* v_out) {
  memset(v_out, 0, n_dim * sizeof(double));
  for (size_t k = 0; k < n_dim; ++k) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_out[j] += v_map[k * n_dim + j] * v_gradient[k];
    }
  }
}

/* To each product what the companion phi^G says of it: (M_j phi^G)^2 /
 * Sigma_jj - 1, of mean 0, as phi^G is N(0, I), and nearly minus the rest of
 * the product, as it is moved by the noise that moves the chain: a control
 * variate, which leaves the estimate its mean and little of its variance. */
static void slot_add_companion(struct tb_slot* p_slot,
                               const struct tb_frame* p_frame,
                               double* v_product) {
  const double* v_normal = p_slot->v_normal;
  if (p_frame != NULL) {
    tb_frame_map(p_frame, v_normal, p_slot->v_pushed);
    v_normal = p_slot->v_pushed;
  }
  for (size_t j = 0; j < p_slot->chain.n_dim; ++j) {
    v_product[j] += v_normal[j] * v_normal[j] / p_slot->v_norm2[j] - 1;
  }
}

/* A term of the bias estimate, block by block: theta_j times
 * (Sigma g)_j / Sigma_jj. Its mean is -1 under the posterior and, with V the
 * chain's covariance, -(V Sigma^{-1} Sigma)_jj / Sigma_jj in a normal one: the
 * bias of Var(theta_j), also where directions differ in theirs; its variance
 * does not grow with the condition number. With a frame Sigma is M M^T,
 * theta_j = M_j phi and Sigma g_theta = M g. Where Sigma is not known the term
 * is theta_j g_j, which takes the coordinates for independent. */
void tb_slot_add_bias(struct tb_slot* p_slot,
                      const struct tb_run* p_run,
                      size_t n_sampled) {
  const size_t n_dim = p_slot->chain.n_dim;
  const size_t block =
      n_sampled * p_run->spec.n_bias_block / p_run->spec.n_sampling;
  double* v_sum = p_slot->v_bias + block * (1 + 3 * n_dim);
  const struct tb_frame* p_frame = p_run->spec.p_model->p_frame;
  const double* v_theta = tb_slot_parameter(p_slot);
  const double* v_gradient = p_slot->chain.v_gradient;
  *v_sum++ += 1;
  if (p_slot->v_normal != NULL) {
    slot_add_companion(p_slot, p_frame, v_sum + 2 * n_dim);
  }
  if (p_frame != NULL) {
    tb_frame_map(p_frame, v_gradient, p_slot->v_pushed);
    v_gradient = p_slot->v_pushed;
  } else if (p_run->spec.v_bias_map != NULL) {
    bias_direction(p_run->spec.v_bias_map, v_gradient, n_dim, p_slot->v_pushed);
    v_gradient = p_slot->v_pushed;
  }
  for (size_t j = 0; j < n_dim; ++j) {
    const double t = v_theta[j] - p_slot->v_origin[j];
    const double g = v_gradient[j] / p_slot->v_norm2[j];
    v_sum[j] += t;
    v_sum[n_dim + j] += g;
    v_sum[2 * n_dim + j] += t * g;
  }
}
