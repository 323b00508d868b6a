/* Stochastic gradient Langevin dynamics.
 *
 *   euler                theta + (h/2) g + sqrt(h) xi
 *                        Welling & Teh (2011), ICML
 *   leimkuhler-matthews  theta + (h/2) g + (sqrt(h)/2) (xi_t + xi_{t+1})
 *                        Leimkuhler & Matthews (2013), AMRX 2013:34, eq. 1.5
 *
 * h is the variance of the injected noise; g estimates the gradient of the log
 * posterior, summed over the data. The variants scale xi by
 *
 *   vanilla    1
 *   corrected  sqrt(max(0, 1 - h tau^2 / 4)); with leimkuhler-matthews
 *              sqrt(max(0, 1 - h tau^2 / (4 - h k)))
 *              Mauri & Zanella (2024), section 2.3
 *   extreme    0: stochastic gradient ascent
 *   modified   max(0, 1 - h tau^2 / 8)
 *              Vollmer, Zygalakis & Teh (2016), JMLR 17:159
 *
 * where k is the precision of the coordinate: 1 after whitening, otherwise
 * taken as 0, its value for small steps; tau^2: kernels/noise.h.
 *
 *   symbol   variable     shape        owner
 *   h        step         1 or n_dim   sgld
 *   xi_t     v_noise      n_dim        chain's kernel state
 *   tau^2    v_average    n_dim        chain's kernel state
 *   phi^G    v_normal     n_dim        the caller: the normal companion
 */
#include "kernels/kernel.h"
#include "kernels/noise.h"

#include <math.h>
#include <string.h>

enum sgld_integrator { SGLD_euler = 0, SGLD_leimkuhler_matthews = 1 };

enum sgld_variant {
  SGLD_vanilla = 0,
  SGLD_corrected = 1,
  SGLD_extreme = 2,
  SGLD_modified = 3
};

struct sgld {
  enum sgld_integrator integrator;
  enum sgld_variant variant;
  double smoothing; /* beta */
  double precision; /* k */
};

/* arrays after the struct tb_noise of a chain. Between steps v_noise is what
 * the next one begins with, and v_next the other noise of the last: xi_t of
 * leimkuhler-matthews, which has moved on to xi_{t+1}. */
enum { AT_noise, AT_next, AT_average, N_ARRAY };

/* Parameters: "step_size" (1 or n_dim), "integrator", "variant" (enums above),
 * "noise_smoothing", "precision". */
static enum tb_status sgld_init(struct tb_kernel* p_kernel,
                                const struct tb_params* p_params) {
  struct sgld* p_sgld = p_kernel->p_self;
  size_t integrator, variant;
  if (!tb_params_count(p_params,
                       "integrator",
                       SGLD_leimkuhler_matthews,
                       0,
                       &integrator) ||
      !tb_params_count(p_params, "variant", SGLD_modified, 0, &variant)) {
    return TB_STATUS_argument;
  }
  p_sgld->integrator = (enum sgld_integrator)integrator;
  p_sgld->variant = (enum sgld_variant)variant;
  p_sgld->smoothing = tb_params_number(p_params, "noise_smoothing", 0.1);
  p_sgld->precision = tb_params_number(p_params, "precision", 0);
  p_kernel->flags =
      p_sgld->variant == SGLD_corrected || p_sgld->variant == SGLD_modified
          ? TB_KERNEL_VARIANCE
          : 0;
  return TB_STATUS_ok;
}

static enum tb_status sgld_start(struct tb_chain* p_chain) {
  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise],
                   tb_kernel_array(p_chain, AT_noise),
                   p_chain->n_dim);
  return TB_STATUS_ok;
}

/* The share of the injected variance that gradient noise of variance tau2
 * brings already. */
static double sgld_share(const struct sgld* p_sgld, double h, double tau2) {
  return p_sgld->integrator == SGLD_leimkuhler_matthews
             ? h * tau2 / (4 - h * p_sgld->precision)
             : h * tau2 / 4;
}

/* standard deviation of the injected noise */
static double sgld_sd(const struct sgld* p_sgld,
                      enum sgld_variant variant,
                      double h,
                      double tau2) {
  switch (variant) {
  case SGLD_corrected: {
    const double share = sgld_share(p_sgld, h, tau2);
    return share < 1 ? sqrt(h * (1 - share)) : 0;
  }
  case SGLD_extreme:
    return 0;
  case SGLD_modified:
    return sqrt(h) * fmax(0, 1 - h * tau2 / 8);
  default:
    return sqrt(h);
  }
}

static enum tb_status sgld_step(struct tb_chain* p_chain) {
  const struct sgld* p_sgld = tb_kernel_self(p_chain);
  const struct tb_step* p_step = &p_chain->p_target->p_kernel->step;
  struct tb_noise* p_noise = p_chain->p_kernel_state;
  const size_t n_dim = p_chain->n_dim;
  double* v_noise = tb_kernel_array(p_chain, AT_noise);
  double* v_next = tb_kernel_array(p_chain, AT_next);
  double* v_average = tb_kernel_array(p_chain, AT_average);
  const double* v_gradient = p_chain->v_gradient;
  double* v_theta = p_chain->v_theta;
  const bool is_lm = p_sgld->integrator == SGLD_leimkuhler_matthews;
  const bool uses_noise =
      p_chain->p_target->p_kernel->flags & TB_KERNEL_VARIANCE;
  const enum sgld_variant variant =
      p_chain->is_exploring ? SGLD_extreme : p_sgld->variant;

  if (uses_noise) {
    tb_noise_add(p_noise, p_sgld->smoothing, p_chain, v_average);
  }
  const double unbias = tb_noise_now(p_noise, p_chain);

  tb_rng_fill_norm(&p_chain->v_rng[TB_STREAM_noise], v_next, n_dim);
  if (!uses_noise && p_step->n_size == 1) {
    /* nothing differs between coordinates: one root for all */
    const double h = tb_kernel_step(p_chain, 0);
    const double sd = sgld_sd(p_sgld, variant, h, 0) * (is_lm ? 0.5 : 1);
    const double before = is_lm ? 1 : 0;
    for (size_t j = 0; j < n_dim; ++j) {
      v_theta[j] +=
          0.5 * h * v_gradient[j] + sd * (before * v_noise[j] + v_next[j]);
    }
  } else {
    for (size_t j = 0; j < n_dim; ++j) {
      const double h = tb_kernel_step(p_chain, j);
      const double xi = is_lm ? 0.5 * (v_noise[j] + v_next[j]) : v_next[j];
      v_theta[j] += 0.5 * h * v_gradient[j] +
                    sgld_sd(p_sgld, variant, h, unbias * v_average[j]) * xi;
    }
  }
  if (is_lm) {
    for (size_t j = 0; j < n_dim; ++j) {
      const double next = v_next[j];
      v_next[j] = v_noise[j];
      v_noise[j] = next;
    }
  }
  return tb_chain_gradient(p_chain, v_theta, p_chain->v_gradient, NULL);
}

/* What the companion takes of the noise so that its law is N(0, 1) for every
 * h < 4: leimkuhler-matthews all, whatever a variant injects into the chain;
 * with all of it euler's would have the variance 1 / (1 - h/4). */
static double sgld_normal_sd(const struct sgld* p_sgld, double h) {
  return p_sgld->integrator == SGLD_leimkuhler_matthews
             ? sqrt(h)
             : sqrt(h * fmax(0, 1 - h / 4));
}

/* From where the chain starts. Under leimkuhler-matthews phi^G_t and xi_t are
 * correlated: phi^G_t - sqrt(h)/2 xi_t has variance 1 - h/4 and is independent
 * of xi_t. A chain that starts from N(0, I) has a companion in its stationary
 * law; another start is forgotten, by both, as warmup goes on. */
static void sgld_start_normal(const struct tb_chain* p_chain,
                              double* v_normal) {
  const struct sgld* p_sgld = tb_kernel_self(p_chain);
  const struct tb_step* p_step = &p_chain->p_target->p_kernel->step;
  const double* v_noise = tb_kernel_array(p_chain, AT_noise);
  const bool is_lm = p_sgld->integrator == SGLD_leimkuhler_matthews;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    const double h = is_lm ? tb_step_at(p_step, j) : 0;
    v_normal[j] = sqrt(fmax(0, 1 - h / 4)) * p_chain->v_theta[j] +
                  0.5 * sqrt(h) * v_noise[j];
  }
}

/* phi^G <- (1 - h/2) phi^G + the noise of the step just made */
static void sgld_step_normal(const struct tb_chain* p_chain, double* v_normal) {
  const struct sgld* p_sgld = tb_kernel_self(p_chain);
  const struct tb_step* p_step = &p_chain->p_target->p_kernel->step;
  const double* v_noise = tb_kernel_array(p_chain, AT_noise);
  const double* v_next = tb_kernel_array(p_chain, AT_next);
  const bool is_lm = p_sgld->integrator == SGLD_leimkuhler_matthews;
  double h = 0, sd = 0;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    if (j == 0 || p_step->n_size > 1) {
      h = tb_kernel_step(p_chain, j);
      sd = sgld_normal_sd(p_sgld, h);
    }
    const double xi = is_lm ? 0.5 * (v_next[j] + v_noise[j]) : v_next[j];
    v_normal[j] = (1 - 0.5 * h) * v_normal[j] + sd * xi;
  }
}

/* tau > 2 / sqrt(h): the noise of the gradient alone is too much */
static double
sgld_beyond(const struct tb_chain* p_chain, size_t j, double variance) {
  const struct sgld* p_sgld = tb_kernel_self(p_chain);
  const double h = tb_kernel_step(p_chain, j);
  return sgld_share(p_sgld, h, variance) > 1;
}

const struct tb_kernel_type tb_kernel_sgld = {
    .name = "sgld",
    .citation =
        "Welling & Teh (2011), ICML; Leimkuhler & Matthews (2013), AMRX",
    .n_self = sizeof(struct sgld),
    .step_sizes = "step_size",
    .init = sgld_init,
    .n_state = sizeof(struct tb_noise),
    .n_array = N_ARRAY,
    .start = sgld_start,
    .step = sgld_step,
    .beyond = sgld_beyond,
    .start_normal = sgld_start_normal,
    .step_normal = sgld_step_normal,
    .info = tb_kernel_step_info,
};
