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
 *   tau^2     v_average   n_dim        chain's kernel state, if it is needed
 *   sigma_j   v_sigma     n_dim        chain's kernel state, with adaptation
 */
#include "base/clip.h"
#include "base/clones.h"
#include "base/vmath.h"
#include "kernels/kernel.h"
#include "kernels/noise.h"

#include <math.h>

enum sgbd_variant { SGBD_vanilla = 0, SGBD_corrected = 1, SGBD_extreme = 2 };
enum sgbd_noise { SGBD_bimodal = 0, SGBD_normal = 1 };

/* coordinates at a time: their numbers stay in the first cache */
#define SGBD_BLOCK 256

/* spread of the bimodal increments around sigma */
#define SGBD_SPREAD 0.1

struct sgbd {
  enum sgbd_variant variant;
  enum sgbd_noise noise;
  double smoothing; /* beta */
  double constant;  /* K */
  bool adapts;
};

/* Arrays after the struct tb_noise of a chain, the first where the variance of
 * the gradient is needed, both where sigma is adapted: with very many
 * parameters an array that says one number again and again costs time in every
 * step. */
enum { AT_average, AT_sigma };

/* Parameters: "sigma" (1 or n_dim), "variant", "noise" (enums above),
 * "noise_smoothing", "constant", "adaptive" (0/1). */
static enum tb_status sgbd_init(struct tb_kernel* p_kernel,
                                const struct tb_params* p_params) {
  struct sgbd* p_sgbd = p_kernel->p_self;
  size_t variant, noise;
  if (!tb_params_count(p_params, "variant", SGBD_extreme, 0, &variant) ||
      !tb_params_count(p_params, "noise", SGBD_normal, 0, &noise)) {
    return TB_STATUS_argument;
  }
  p_sgbd->variant = (enum sgbd_variant)variant;
  p_sgbd->noise = (enum sgbd_noise)noise;
  p_sgbd->smoothing = tb_params_number(p_params, "noise_smoothing", 0.1);
  p_sgbd->constant = tb_params_number(p_params, "constant", 1.702);
  p_sgbd->adapts = tb_params_number(p_params, "adaptive", 0) != 0;
  p_kernel->flags = p_sgbd->variant == SGBD_corrected || p_sgbd->adapts
                        ? TB_KERNEL_VARIANCE
                        : 0;
  p_kernel->n_array = (size_t)(p_kernel->flags != 0) + p_sgbd->adapts;
  return TB_STATUS_ok;
}

/* sigma_j of every coordinate, or of all of them */
static struct tb_step state_sigma(const struct tb_chain* p_chain) {
  const struct sgbd* p_sgbd = tb_kernel_self(p_chain);
  return p_sgbd->adapts ? (struct tb_step){tb_kernel_array(p_chain, AT_sigma),
                                           p_chain->n_dim}
                        : p_chain->p_target->p_kernel->step;
}

static enum tb_status sgbd_start(struct tb_chain* p_chain) {
  const struct sgbd* p_sgbd = tb_kernel_self(p_chain);
  if (p_sgbd->adapts) {
    double* v_sigma = tb_kernel_array(p_chain, AT_sigma);
    for (size_t j = 0; j < p_chain->n_dim; ++j) {
      v_sigma[j] = tb_step_at(&p_chain->p_target->p_kernel->step, j);
    }
  }
  return TB_STATUS_ok;
}

static void sgbd_adapt(struct tb_chain* p_chain, double unbias) {
  const struct sgbd* p_sgbd = tb_kernel_self(p_chain);
  const double* v_average = tb_kernel_array(p_chain, AT_average);
  double* v_sigma = tb_kernel_array(p_chain, AT_sigma);
  const double quantile = p_sgbd->noise == SGBD_bimodal ? 1.233 : 2.576;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    const double tau = sqrt(unbias * v_average[j]);
    const double cap = tb_step_at(&p_chain->p_target->p_kernel->step, j);
    v_sigma[j] = quantile * tau * cap > p_sgbd->constant
                     ? p_sgbd->constant / (quantile * tau)
                     : cap;
  }
}

/* ---- a move of several coordinates at once ---- */

#ifdef TB_VECTOR
typedef tb_v4d lanes;
#define LANES              4
#define ALL(x)             TB_V_ALL(x)
#define SELECT(mask, a, b) TB_V_SELECT(mask, a, b)
#else
typedef double lanes;
#define LANES              1
#define ALL(x)             (x)
#define SELECT(mask, a, b) ((mask) ? (a) : (b))
#endif

/* What decides the moves of a block of coordinates. */
struct sgbd_block {
  double offset, spread;  /* w = sigma (offset + spread xi) */
  double constant;        /* K */
  double unbias;          /* of v_average */
  const double* v_normal; /* xi */
  const double* v_unif;
  const double* v_sigma;
  const double* v_gradient;
  const double* v_average;
};

TB_INLINE void load(lanes* p_to, const double* v_from, size_t n) {
  *p_to = ALL(0.0);
  memcpy(p_to, v_from, n * sizeof(double));
}

TB_INLINE void lanes_sqrt(lanes* p_x) {
  double v[LANES];
  memcpy(v, p_x, sizeof v);
  for (int k = 0; k < LANES; ++k) {
    v[k] = sqrt(v[k]);
  }
  memcpy(p_x, v, sizeof v);
}

/* +-Inf by its sign, so that the sign decides; 0 and NaN stay. */
TB_INLINE void lanes_extreme(lanes* p_x) {
  const lanes x = *p_x;
  const lanes low = SELECT(x < 0.0, ALL(-INFINITY), x);
  *p_x = SELECT(x > 0.0, ALL(INFINITY), low);
}

/* Coordinates k .. k + n - 1, n <= LANES. With e = exp(-w g) the probability of
 * +w is 1 / (1 + e), so that u < 1 / (1 + e) is u e < 1 - u: no division, and
 * as u and 1 - u are 2^-53 at least, right for e beyond the bounds of the
 * exponential. p_check becomes NaN if an e is. */
TB_INLINE void move_lanes(const struct sgbd_block* p,
                          enum sgbd_variant variant,
                          size_t k,
                          size_t n,
                          double* v_theta,
                          lanes* p_check) {
  lanes xi, u, sigma, g, theta;
  load(&xi, p->v_normal + k, n);
  load(&u, p->v_unif + k, n);
  load(&sigma, p->v_sigma + k, n);
  load(&g, p->v_gradient + k, n);
  load(&theta, v_theta + k, n);
  const lanes w = sigma * (p->offset + p->spread * xi);
  lanes e = -w * g;
  if (variant == SGBD_corrected) {
    lanes tau2, root, extreme = e;
    load(&tau2, p->v_average + k, n);
    const lanes room = p->constant * p->constant - p->unbias * tau2 * w * w;
    root = SELECT(room > 0.0, room, ALL(1.0));
    lanes_sqrt(&root);
    lanes_extreme(&extreme);
    e = SELECT(room > 0.0, e * p->constant / root, extreme);
  } else if (variant == SGBD_extreme) {
    lanes_extreme(&e);
  }
  tb_v4_exp_bounded(&e);
  *p_check = *p_check + e;
  theta = theta + SELECT(u * e < 1.0 - u, w, -w);
  memcpy(v_theta + k, &theta, n * sizeof(double));
}

TB_INLINE bool move_block(const struct sgbd_block* p,
                          enum sgbd_variant variant,
                          size_t n,
                          double* v_theta) {
  lanes check = ALL(0.0);
  double v_check[LANES], sum = 0;
  size_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    move_lanes(p, variant, k, LANES, v_theta, &check);
  }
  if (k < n) {
    move_lanes(p, variant, k, n - k, v_theta, &check);
  }
  memcpy(v_check, &check, sizeof v_check);
  for (int i = 0; i < LANES; ++i) {
    sum += v_check[i];
  }
  return !isnan(sum);
}

/* theta += b w for n coordinates. FALSE if a probability is not a number. */
static TB_CLONES bool sgbd_move(const struct sgbd_block* p,
                                enum sgbd_variant variant,
                                size_t n,
                                double* v_theta) {
  switch (variant) {
  case SGBD_corrected:
    return move_block(p, SGBD_corrected, n, v_theta);
  case SGBD_extreme:
    return move_block(p, SGBD_extreme, n, v_theta);
  default:
    return move_block(p, SGBD_vanilla, n, v_theta);
  }
}

static enum tb_status sgbd_step(struct tb_chain* p_chain) {
  const struct sgbd* p_sgbd = tb_kernel_self(p_chain);
  struct tb_noise* p_noise = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_average = tb_kernel_array(p_chain, AT_average);
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  const bool is_bimodal = p_sgbd->noise == SGBD_bimodal;
  const enum sgbd_variant variant =
      p_chain->is_exploring ? SGBD_extreme : p_sgbd->variant;
  const bool uses_noise =
      p_chain->p_target->p_kernel->flags & TB_KERNEL_VARIANCE;
  double v_normal[SGBD_BLOCK], v_unif[SGBD_BLOCK], v_same[SGBD_BLOCK];

  if (uses_noise) {
    tb_noise_add(p_noise, p_sgbd->smoothing, p_chain, v_average);
  }
  if (p_sgbd->adapts && p_chain->is_warmup) {
    sgbd_adapt(p_chain, tb_noise_unbias(p_noise));
  }
  const struct tb_step sigma = state_sigma(p_chain);
  for (size_t k = 0; k < SGBD_BLOCK; ++k) {
    v_same[k] = sigma.v_size[0];
  }

  const double scale = sqrt(p_chain->step_scale);
  struct sgbd_block block = {.offset = is_bimodal ? scale : 0,
                             .spread = is_bimodal ? SGBD_SPREAD * scale : scale,
                             .constant = p_sgbd->constant,
                             .unbias = tb_noise_now(p_noise, p_chain),
                             .v_normal = v_normal,
                             .v_unif = v_unif,
                             .v_sigma = v_same};
  for (size_t start = 0; start < n_dim; start += SGBD_BLOCK) {
    const size_t n = tb_min(SGBD_BLOCK, n_dim - start);
    tb_rng_fill_norm(p_rng, v_normal, n);
    tb_rng_fill_unif(p_rng, v_unif, n);
    block.v_gradient = p_chain->v_gradient + start;
    if (sigma.n_size > 1) {
      block.v_sigma = sigma.v_size + start;
    }
    if (uses_noise) {
      block.v_average = v_average + start;
    }
    if (!sgbd_move(&block, variant, n, p_chain->v_theta + start)) {
      return TB_STATUS_nonfinite;
    }
  }
  return tb_chain_gradient(p_chain,
                           p_chain->v_theta,
                           p_chain->v_gradient,
                           NULL);
}

/* Probability that |w| tau > K. */
static double
sgbd_beyond(const struct tb_chain* p_chain, size_t j, double variance) {
  const struct sgbd* p_sgbd = tb_kernel_self(p_chain);
  const struct tb_step step = state_sigma(p_chain);
  const double sigma = sqrt(p_chain->step_scale) * tb_step_at(&step, j);
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
  const struct sgbd* p_sgbd = tb_kernel_self(p_chain);
  const struct tb_step sigma = state_sigma(p_chain);
  p_info->step_size = sqrt(p_chain->step_scale) * sigma.v_size[0];
  p_info->v_step = p_sgbd->adapts ? sigma.v_size : NULL;
}

const struct tb_kernel_type tb_kernel_sgbd = {
    .name = "sgbd",
    .citation = "Mauri & Zanella (2024), AISTATS",
    .n_self = sizeof(struct sgbd),
    .step_sizes = "sigma",
    .init = sgbd_init,
    .n_state = sizeof(struct tb_noise),
    .start = sgbd_start,
    .step = sgbd_step,
    .beyond = sgbd_beyond,
    .info = sgbd_info,
};
