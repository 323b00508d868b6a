/* AdamMCMC (Bieringer, Kasieczka, Steffen & Trabs 2023, arXiv:2312.14027,
 * Algorithm 1 and Theorem 1): a step of ADAM as the drift of a Metropolis
 * proposal, with noise that is long in the direction of the step. d(theta) is
 * the gradient of -(1/lambda) log p_lambda: the mean loss, the prior's share,
 *
 *   u(theta, m) = gamma [b_1 m_1 + (1 - b_1) d] / (1 - b_1^k) /
 *                 ( sqrt( |b_2 m_2 + (1 - b_2) d^2| / (1 - b_2^k) ) + delta )
 *   tau ~ N(theta - u, s^2 I + s_d^2 u u^T)                           (eq. 7)
 *
 * and the way back from tau is judged with the same m and k. Two forms:
 *
 *   practical  (Algorithm 1) m = 0; m_l <- b_l m_l + (1 - b_l) d(tau)^l
 *              on acceptance, else m stays; k = 1 + updates of m (counting
 *              rejections would shrink u). m depends on the past, and the ratio
 *              leaves out the term C below: biased.
 *   exact      (Theorem 1) no bias correction (1 - b^k is 1);
 *              m_l ~ N(d^l, s_l^2) at first; after every iteration
 *              m_l ~ N(b_l m_l + (1 - b_l) d(theta)^l, (1 - b_l^2) s_l^2); the
 *              ratio times C,
 *                log C = sum_l ( |m_l - d(theta)^l|^2 - |m_l - d(tau)^l|^2 )
 *                              / (2 s_l^2)
 *              (the last line of the paper's C lacks the power l). Leaves
 *              p_lambda(theta) prod_l N(m_l; d^l, s_l^2) invariant.
 *
 * With adaptation s^2 and gamma are multiplied by one factor in warmup, which
 * keeps Langevin's proportion of drift to noise; see kernels/adapt.h.
 *
 *   symbol        variable          shape   owner
 *   m_1, m_2      v_first, v_second n_dim   chain's kernel state
 *   k             n_update + 1              chain's kernel state
 *   tau, its g    proposal          n_dim   chain's kernel state (scratch)
 *   u(theta, m)   v_forth           n_dim   chain's kernel state (scratch)
 *   u(tau, m)     v_back            n_dim   chain's kernel state (scratch)
 *   z             v_z               n_dim   chain's kernel state (scratch)
 *   s_1, s_2      v_momentum_sd     2       adam_mcmc
 */
#include "kernels/adapt.h"
#include "kernels/metropolis.h"
#include "kernels/prolate.h"

#include <string.h>

struct adam_mcmc {
  double learning_rate; /* gamma */
  double sd;            /* s */
  double sd_direction;  /* s_d */
  double v_beta[2];
  double delta;
  double v_momentum_sd[2];
  bool is_exact;
};

struct adam_state {
  struct tb_adapt adapt;
  double n_update;
};

enum { N_ARRAY = 7 };
struct adam_arrays {
  double *v_first, *v_second, *v_tau, *v_gradient, *v_forth, *v_back, *v_z;
};

static struct adam_arrays adam_arrays(const struct tb_chain* p_chain) {
  const size_t n_dim = p_chain->n_dim;
  double* v = tb_kernel_array(p_chain, 0);
  return (struct adam_arrays){v,
                              v + n_dim,
                              v + 2 * n_dim,
                              v + 3 * n_dim,
                              v + 4 * n_dim,
                              v + 5 * n_dim,
                              v + 6 * n_dim};
}

static bool adam_is_valid(const struct adam_mcmc* p) {
  for (int l = 0; l < 2; ++l) {
    if (!(p->v_beta[l] >= 0) || !(p->v_beta[l] < 1) ||
        (p->is_exact && !(p->v_momentum_sd[l] > 0))) {
      return false;
    }
  }
  return p->learning_rate >= 0 && p->sd >= 0 && p->sd_direction >= 0 &&
         p->delta > 0;
}

/* Parameters: "learning_rate", "sigma", "sigma_direction", "delta" (1 each),
 * "beta" (2), "exact" (0/1), "momentum_sd" (2, if exact), "adapt" (0/1),
 * "ratio". */
static enum tb_status adam_init(struct tb_kernel* p_kernel,
                                const struct tb_params* p_params) {
  struct adam_mcmc* p = p_kernel->p_self;
  const struct tb_param* p_beta = tb_params_find(p_params, "beta");
  const struct tb_param* p_sd = tb_params_find(p_params, "momentum_sd");
  p->learning_rate = tb_params_number(p_params, "learning_rate", -1);
  p->sd = tb_params_number(p_params, "sigma", -1);
  p->sd_direction = tb_params_number(p_params, "sigma_direction", 0);
  p->delta = tb_params_number(p_params, "delta", 1e-8);
  p->is_exact = tb_params_number(p_params, "exact", 0) != 0;
  p_kernel->flags = tb_metropolis_flags(p_params) |
                    (p->is_exact ? TB_KERNEL_FULL_GRADIENT : 0);
  if (p_beta == NULL || p_beta->n_value != 2 ||
      (p->is_exact && (p_sd == NULL || p_sd->n_value != 2))) {
    return TB_STATUS_argument;
  }
  memcpy(p->v_beta, p_beta->v_value, sizeof(p->v_beta));
  if (p->is_exact) {
    memcpy(p->v_momentum_sd, p_sd->v_value, sizeof(p->v_momentum_sd));
  }
  return adam_is_valid(p) ? TB_STATUS_ok : TB_STATUS_argument;
}

/* d_j from the gradient of the log posterior */
static double descent(const struct tb_chain* p_chain, double gradient) {
  return -gradient / tb_target_lambda(p_chain->p_target);
}

/* m_l ~ N(b_l m_l + (1 - b_l) d^l, sd_l^2) at the chain's position; without
 * noise where sd is NULL */
static void adam_update(struct tb_chain* p_chain,
                        const double* v_beta,
                        const double* v_sd) {
  const struct adam_arrays at = adam_arrays(p_chain);
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    const double d = descent(p_chain, p_chain->v_gradient[j]);
    at.v_first[j] = v_beta[0] * at.v_first[j] + (1 - v_beta[0]) * d;
    at.v_second[j] = v_beta[1] * at.v_second[j] + (1 - v_beta[1]) * d * d;
    if (v_sd != NULL) {
      at.v_first[j] += v_sd[0] * tb_rng_norm(p_rng);
      at.v_second[j] += v_sd[1] * tb_rng_norm(p_rng);
    }
  }
}

static enum tb_status adam_start(struct tb_chain* p_chain) {
  const struct adam_mcmc* p = tb_kernel_self(p_chain);
  if (p->is_exact) {
    const double v_none[2] = {0, 0};
    adam_update(p_chain, v_none, p->v_momentum_sd);
  }
  return TB_STATUS_ok;
}

/* u(theta, m), v_gradient that of the log posterior at theta */
static void adam_direction(const struct tb_chain* p_chain,
                           const double* v_gradient,
                           double* v_u) {
  const struct adam_mcmc* p = tb_kernel_self(p_chain);
  const struct adam_state* p_state = p_chain->p_kernel_state;
  const struct adam_arrays at = adam_arrays(p_chain);
  const double b1 = p->v_beta[0], b2 = p->v_beta[1];
  const double k = p_state->n_update + 1;
  const double unbias1 = p->is_exact ? 1 : 1 / (1 - pow(b1, k));
  const double unbias2 = p->is_exact ? 1 : 1 / (1 - pow(b2, k));
  const double rate = p->learning_rate * tb_adapt_factor(p_chain) * unbias1;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    const double d = descent(p_chain, v_gradient[j]);
    const double first = b1 * at.v_first[j] + (1 - b1) * d;
    const double second = b2 * at.v_second[j] + (1 - b2) * d * d;
    v_u[j] = rate * first / (sqrt(unbias2 * fabs(second)) + p->delta);
  }
}

/* log q(to | from), v_u that at from */
static double adam_log_proposal(const struct tb_prolate* p_shape,
                                const double* v_from,
                                const double* v_u,
                                const double* v_to,
                                double* v_z) {
  struct tb_prolate law = *p_shape;
  for (size_t j = 0; j < law.n_dim; ++j) {
    v_z[j] = v_to[j] - v_from[j] + v_u[j];
  }
  law.v_axis = v_u;
  return tb_prolate_log_density(&law, v_z);
}

/* log C: (m - x)^2 - (m - y)^2 = (y - x)(2 m - x - y) */
static double adam_log_momentum(const struct tb_chain* p_chain,
                                const double* v_gradient) {
  const struct adam_mcmc* p = tb_kernel_self(p_chain);
  const struct adam_arrays at = adam_arrays(p_chain);
  double first = 0, second = 0;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    const double x = descent(p_chain, p_chain->v_gradient[j]);
    const double y = descent(p_chain, v_gradient[j]);
    first += (y - x) * (2 * at.v_first[j] - x - y);
    second += (y * y - x * x) * (2 * at.v_second[j] - x * x - y * y);
  }
  const double s1 = p->v_momentum_sd[0], s2 = p->v_momentum_sd[1];
  return first / (2 * s1 * s1) + second / (2 * s2 * s2);
}

static void adam_move_momenta(struct tb_chain* p_chain, bool was_accepted) {
  const struct adam_mcmc* p = tb_kernel_self(p_chain);
  struct adam_state* p_state = p_chain->p_kernel_state;
  if (p->is_exact) {
    const double v_sd[2] = {
        sqrt(1 - p->v_beta[0] * p->v_beta[0]) * p->v_momentum_sd[0],
        sqrt(1 - p->v_beta[1] * p->v_beta[1]) * p->v_momentum_sd[1]};
    adam_update(p_chain, p->v_beta, v_sd);
  } else if (was_accepted) {
    adam_update(p_chain, p->v_beta, NULL);
    p_state->n_update += 1;
  }
}

static enum tb_status adam_step(struct tb_chain* p_chain) {
  const struct adam_mcmc* p = tb_kernel_self(p_chain);
  const size_t n_dim = p_chain->n_dim;
  const struct adam_arrays at = adam_arrays(p_chain);
  struct tb_proposal proposal = {.v_theta = at.v_tau,
                                 .v_gradient = at.v_gradient};
  const struct tb_prolate law = {.sd = p->sd * sqrt(tb_adapt_factor(p_chain)),
                                 .sd_axis = p->sd_direction,
                                 .v_axis = at.v_forth,
                                 .n_dim = n_dim};

  enum tb_status status = tb_test_begin(p_chain);
  if (status != TB_STATUS_ok) {
    return status;
  }
  adam_direction(p_chain, p_chain->v_gradient, at.v_forth);
  for (size_t j = 0; j < n_dim; ++j) {
    at.v_tau[j] = p_chain->v_theta[j] - at.v_forth[j];
  }
  tb_prolate_draw(&law, &p_chain->v_rng[TB_STREAM_noise], at.v_z, at.v_tau);
  status = tb_test_look(p_chain, &proposal);
  if (status != TB_STATUS_ok) {
    return status;
  }

  double log_ratio = 0;
  if (proposal.is_possible) {
    adam_direction(p_chain, at.v_gradient, at.v_back);
    log_ratio =
        adam_log_proposal(&law, at.v_tau, at.v_back, p_chain->v_theta, at.v_z) -
        adam_log_proposal(&law, p_chain->v_theta, at.v_forth, at.v_tau, at.v_z);
    if (p->is_exact) {
      log_ratio += adam_log_momentum(p_chain, at.v_gradient);
    }
  }
  const double n_before = p_chain->counts.n_accept;
  const double acceptance = tb_metropolis_decide(p_chain, &proposal, log_ratio);
  adam_move_momenta(p_chain, p_chain->counts.n_accept > n_before);
  tb_adapt_add(p_chain, acceptance);
  return TB_STATUS_ok;
}

static void adam_info(const struct tb_chain* p_chain,
                      struct tb_kernel_info* p_info) {
  const struct adam_mcmc* p = tb_kernel_self(p_chain);
  p_info->step_size = p->sd * sqrt(tb_adapt_factor(p_chain));
}

const struct tb_kernel_type tb_kernel_adam_mcmc = {
    .name = "adam_mcmc",
    .citation =
        "Bieringer, Kasieczka, Steffen & Trabs (2023), arXiv:2312.14027",
    .flags = TB_KERNEL_METROPOLIS | TB_KERNEL_CONSTANT_STEP,
    .n_self = sizeof(struct adam_mcmc),
    .init = adam_init,
    .n_state = sizeof(struct adam_state),
    .n_array = N_ARRAY,
    .target = TB_TARGET_LANGEVIN,
    .start = adam_start,
    .step = adam_step,
    .info = adam_info,
};
