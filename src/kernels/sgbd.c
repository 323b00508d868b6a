/* Stochastic gradient Barker dynamics (Mauri & Zanella 2024, AISTATS,
 * Algorithms 1-6), coordinate by coordinate:
 *
 *   w ~ N(sigma, (0.1 sigma)^2)  (bimodal)  or  N(0, sigma^2)  (normal)
 *   b = +1 with probability p, else -1;  theta_j <- theta_j + b w
 *
 *   vanilla    p = 1 / (1 + exp(-w g_j))
 *   corrected  the same with g_j K / sqrt(K^2 - tau_j^2 w^2) where |w| < K /
 *              tau_j, else b = sign(g_j w)
 *   extreme    b = sign(g_j w), a fair coin at 0
 *
 * K = 1.702 by default; 4 phi(0) = 1.596 matches slopes at 0. The paper's
 * tau_theta is the standard deviation of g, with its factor N / sqrt(n), which
 * Algorithms 3 and 6 leave out; see kernels/noise.h. With adaptation,
 *
 *   sigma_j = min(sigma, K / (q tau_j)),  q = 1.233 (bimodal), 2.576 (normal)
 *
 * the 0.99 quantile of w / sigma, during warmup, frozen after it. A schedule
 * scales sigma^2. A gradient of +-Inf moves by its sign; NaN ends the chain.
 *
 *   symbol    variable    shape        owner
 *   sigma     step        1 or n_dim   sgbd
 *   sigma_j   v_sigma     n_dim        chain's kernel state
 *   tau^2     v_average   n_dim        chain's kernel state
 */
#include "core/clip.h"
#include "core/clones.h"
#include "core/vmath.h"
#include "kernels/kernel.h"
#include "kernels/noise.h"
#include "kernels/step.h"

#include <math.h>

enum sgbd_variant { SGBD_vanilla = 0, SGBD_corrected = 1, SGBD_extreme = 2 };
enum sgbd_noise { SGBD_bimodal = 0, SGBD_normal = 1 };

/* coordinates at a time: their numbers stay in the first cache */
#define SGBD_BLOCK 256

/* spread of the bimodal increments around sigma */
#define SGBD_SPREAD 0.1

struct sgbd {
  struct tb_step step;
  enum sgbd_variant variant;
  enum sgbd_noise noise;
  double smoothing; /* beta */
  double constant;  /* K */
  bool adapts;
};

/* Followed by v_sigma[n_dim] and v_average[n_dim]. */
struct sgbd_state {
  struct tb_noise noise;
};

static size_t sgbd_self_size(const struct tb_params* p_params, size_t n_dim) {
  (void) p_params;
  return sizeof(struct sgbd) + n_dim * sizeof(double);
}

/* Parameters: "sigma" (1 or n_dim), "variant", "noise" (enums above),
 * "noise_smoothing", "constant", "adaptive" (0/1). */
static enum tb_status sgbd_init(struct tb_kernel* p_kernel,
                                size_t n_dim,
                                const struct tb_params* p_params) {
  struct sgbd* p_sgbd = p_kernel->p_self;
  const enum tb_status status = tb_step_read(
    &p_sgbd->step, p_params, "sigma", n_dim, (double*) (p_sgbd + 1));
  p_sgbd->variant = (enum sgbd_variant) tb_params_number(p_params, "variant", 0);
  p_sgbd->noise = (enum sgbd_noise) tb_params_number(p_params, "noise", 0);
  p_sgbd->smoothing = tb_params_number(p_params, "noise_smoothing", 0.1);
  p_sgbd->constant = tb_params_number(p_params, "constant", 1.702);
  p_sgbd->adapts = tb_params_number(p_params, "adaptive", 0) != 0;
  p_kernel->flags = p_sgbd->variant == SGBD_corrected || p_sgbd->adapts
                      ? TB_KERNEL_VARIANCE
                      : 0;
  return status;
}

static size_t sgbd_state_size(const struct tb_kernel* p_kernel, size_t n_dim) {
  (void) p_kernel;
  return sizeof(struct sgbd_state) + 2 * n_dim * sizeof(double);
}

static double* state_sigma(struct sgbd_state* p_state) {
  return (double*) (p_state + 1);
}

static enum tb_status sgbd_start(struct tb_chain* p_chain) {
  const struct sgbd* p_sgbd = p_chain->p_target->p_kernel->p_self;
  double* v_sigma = state_sigma(p_chain->p_kernel_state);
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_sigma[j] = tb_step_at(&p_sgbd->step, j);
  }
  return TB_STATUS_ok;
}

static void sgbd_adapt(const struct sgbd* p_sgbd,
                       const double* v_average,
                       double unbias,
                       size_t n_dim,
                       double* v_sigma) {
  const double quantile = p_sgbd->noise == SGBD_bimodal ? 1.233 : 2.576;
  for (size_t j = 0; j < n_dim; ++j) {
    const double tau = sqrt(unbias * v_average[j]);
    const double cap = tb_step_at(&p_sgbd->step, j);
    v_sigma[j] =
      quantile * tau * cap > p_sgbd->constant
        ? p_sgbd->constant / (quantile * tau)
        : cap;
  }
}

/* What to feed the logistic function: +-Inf decides. */
static double sgbd_extreme(double product) {
  return product > 0 ? INFINITY : product < 0 ? -INFINITY : product;
}

static double sgbd_corrected(double w, double g, double tau2, double k) {
  const double room = k * k - tau2 * w * w;
  return room > 0 ? w * g * (k / sqrt(room)) : sgbd_extreme(w * g);
}

/* theta += b w for n coordinates: p = logistic(v_a), b = +1 where u < p.
 * FALSE if a probability is not a number. */
static TB_CLONES bool sgbd_move(size_t n,
                                const double* v_a,
                                const double* v_w,
                                const double* v_u,
                                double* v_theta) {
  double v_p[SGBD_BLOCK];
  double check = 0;
  tb_vlogistic(v_a, v_p, n);
  for (size_t k = 0; k < n; ++k) {
    v_theta[k] += v_u[k] < v_p[k] ? v_w[k] : -v_w[k];
    check += v_p[k];
  }
  return !isnan(check);
}

static enum tb_status sgbd_step(struct tb_chain* p_chain) {
  const struct sgbd* p_sgbd = p_chain->p_target->p_kernel->p_self;
  struct sgbd_state* p_state = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_sigma = state_sigma(p_state);
  double* v_average = v_sigma + n_dim;
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  const double scale = sqrt(p_chain->step_scale);
  const bool is_bimodal = p_sgbd->noise == SGBD_bimodal;
  const enum sgbd_variant variant =
    p_chain->is_exploring ? SGBD_extreme : p_sgbd->variant;
  double v_w[SGBD_BLOCK], v_u[SGBD_BLOCK], v_a[SGBD_BLOCK];

  if (p_chain->p_target->p_kernel->flags & TB_KERNEL_VARIANCE) {
    tb_noise_add(&p_state->noise, p_sgbd->smoothing, p_chain, v_average);
  }
  if (p_sgbd->adapts && p_chain->is_warmup) {
    sgbd_adapt(
      p_sgbd, v_average, tb_noise_unbias(&p_state->noise), n_dim, v_sigma);
  }
  const double unbias = tb_noise_now(&p_state->noise, p_chain);

  for (size_t start = 0; start < n_dim; start += SGBD_BLOCK) {
    const size_t n = tb_min(SGBD_BLOCK, n_dim - start);
    const double* v_g = p_chain->v_gradient + start;
    tb_rng_fill_norm(p_rng, v_w, n);
    for (size_t k = 0; k < n; ++k) {
      v_u[k] = tb_rng_unif(p_rng);
    }
    for (size_t k = 0; k < n; ++k) {
      const double sigma = scale * v_sigma[start + k];
      v_w[k] = is_bimodal ? sigma * (1 + SGBD_SPREAD * v_w[k])
                          : sigma * v_w[k];
      v_a[k] = v_w[k] * v_g[k];
    }
    if (variant == SGBD_corrected) {
      for (size_t k = 0; k < n; ++k) {
        v_a[k] = sgbd_corrected(
          v_w[k], v_g[k], unbias * v_average[start + k], p_sgbd->constant);
      }
    } else if (variant == SGBD_extreme) {
      for (size_t k = 0; k < n; ++k) {
        v_a[k] = sgbd_extreme(v_a[k]);
      }
    }
    if (!sgbd_move(n, v_a, v_w, v_u, p_chain->v_theta + start)) {
      return TB_STATUS_nonfinite;
    }
  }
  return tb_chain_gradient(
    p_chain, p_chain->v_theta, p_chain->v_gradient, NULL);
}

/* Probability that |w| tau > K. */
static double sgbd_beyond(const struct tb_chain* p_chain,
                          size_t j,
                          double variance) {
  const struct sgbd* p_sgbd = p_chain->p_target->p_kernel->p_self;
  const double sigma = sqrt(p_chain->step_scale) *
                       state_sigma(p_chain->p_kernel_state)[j];
  const double reach = sigma * sqrt(variance);
  if (!(reach > 0)) {
    return 0;
  }
  const double z = p_sgbd->constant / reach;
  return p_sgbd->noise == SGBD_bimodal
           ? 0.5 * erfc((z - 1) / SGBD_SPREAD / sqrt(2))
           : erfc(z / sqrt(2));
}

static void sgbd_info(const struct tb_chain* p_chain,
                      struct tb_kernel_info* p_info) {
  p_info->step_size = sqrt(p_chain->step_scale) *
                      state_sigma(p_chain->p_kernel_state)[0];
}

const struct tb_kernel_type tb_kernel_sgbd = {
  .name = "sgbd",
  .citation = "Mauri & Zanella (2024), AISTATS",
  .flags = 0,
  .self_size = sgbd_self_size,
  .init = sgbd_init,
  .state_size = sgbd_state_size,
  .start = sgbd_start,
  .step = sgbd_step,
  .beyond = sgbd_beyond,
  .info = sgbd_info,
};
