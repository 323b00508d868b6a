/* A Gaussian regression that has lost its rows: of them the log likelihood
 * needs no more than weighted means and centred sums of products (passes/sums.h
 * makes them). With d = beta - beta_0 about coefficients of
 * least squares, their residual sum of squares RSS_0, S and m of the covariates
 *
 *   RSS(beta) = RSS_0 + d^T S d + W (m^T d)^2
 *   log lik   = -n s - RSS / (2 sigma^2),   s = log sigma
 *
 * without constants, as the response has it. Nothing cancels near the fit,
 * however well the columns explain the response. There are no rows: all of the
 * log density is g_0. A step costs n_coef^2. Of no rows it is a prior, which
 * may be one of more parameters than s beside the coefficients.
 *
 *   symbol   variable    shape            owner
 *   S        v_gram      n_coef x n_coef  sums
 *   m        v_mean      n_coef           sums
 *   beta_0   v_origin    n_coef           sums
 *   -        v_lower     n_aux            sums
 *   d, gradient of the prior: n_dim each  scratch
 */
#include "base/hash.h"
#include "models/rows.h"
#include "priors/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_VECTOR = 2, MOST_AUX = 2 };

struct sums {
  size_t n_coef, n_aux;
  double v_lower[MOST_AUX]; /* what natural parameters are above */
  double inverse;           /* 1 / sigma^2, where it is known */
  double n_row;             /* n */
  double weight;            /* W */
  double rest;              /* RSS_0 */
  double* v_gram;           /* one block of memory, here */
  double* v_mean;
  double* v_origin;
  struct tb_prior prior;
};

static size_t sums_workspace_size(const struct tb_model* p_model,
                                  size_t n_batch) {
  (void)n_batch;
  return 2 * p_model->n_dim * sizeof(double);
}

/* SETS v_gradient */
static double sums_log_lik(const struct sums* p,
                           const double* v_theta,
                           double* v_delta,
                           double* v_gradient) {
  const size_t n = p->n_coef;
  const double s = p->n_aux > 0 ? v_theta[n] : 0;
  const double inverse = p->n_aux > 0 ? exp(-2 * s) : p->inverse;
  double mean = 0, rss = p->rest;
  for (size_t j = 0; j < n; ++j) {
    v_delta[j] = v_theta[j] - p->v_origin[j];
    mean += p->v_mean[j] * v_delta[j];
  }
  rss += p->weight * mean * mean;
  for (size_t j = 0; j < n; ++j) {
    const double* v_column = p->v_gram + j * n;
    double product = 0;
    for (size_t i = 0; i < n; ++i) {
      product += v_column[i] * v_delta[i];
    }
    rss += v_delta[j] * product;
    v_gradient[j] = -inverse * (product + p->weight * mean * p->v_mean[j]);
  }
  for (size_t k = 0; k < p->n_aux; ++k) {
    v_gradient[n + k] = k == 0 ? inverse * rss - p->n_row : 0;
  }
  return -p->n_row * s - 0.5 * inverse * rss;
}

static enum tb_status sums_prior(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 double* v_gradient,
                                 double* p_log_prior) {
  const struct sums* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  double* v_delta = p_work->p_scratch;
  double* v_own = v_delta + n_dim;
  const double log_lik = sums_log_lik(p, v_theta, v_delta, v_gradient);
  const double log_prior = tb_prior_gradient(&p->prior, v_theta, v_own);
  for (size_t j = 0; j < n_dim; ++j) {
    v_gradient[j] += v_own[j];
  }
  if (p_log_prior != NULL) {
    *p_log_prior += log_lik + log_prior;
  }
  return TB_STATUS_ok;
}

/* Of no rows: all is in curvature_prior(). */
static enum tb_status sums_curvature(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     const struct tb_curvature* p_sums) {
  (void)p_model;
  (void)p_work;
  (void)v_theta;
  (void)p_sums;
  return p_batch->n_batch == 0 ? TB_STATUS_ok : TB_STATUS_argument;
}

/* Minus the Hessian of the log likelihood: sigma^-2 (S + W m m^T) of the
 * coefficients, 2 RSS / sigma^2 of s, and twice the gradient between them. */
static void sums_curvature_prior(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const double* v_round,
                                 double weight,
                                 const struct tb_curvature* p_sums) {
  const struct sums* p = p_model->p_self;
  const size_t n = p->n_coef, n_dim = p_model->n_dim;
  double *v_delta = p_work->p_scratch, *v_own = v_delta + n_dim;
  double* v_hessian = p_sums->v_hessian;
  (void)weight;
  const double log_lik = sums_log_lik(p, v_theta, v_delta, v_own);
  const double inverse = p->n_aux > 0 ? exp(-2 * v_theta[n]) : p->inverse;
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < n; ++i) {
      v_hessian[j * n_dim + i] +=
          inverse *
          (p->v_gram[j * n + i] + p->weight * p->v_mean[i] * p->v_mean[j]);
    }
  }
  if (p->n_aux > 0) {
    for (size_t j = 0; j < n; ++j) {
      v_hessian[n * n_dim + j] += 2 * v_own[j];
      v_hessian[j * n_dim + n] += 2 * v_own[j];
    }
    v_hessian[n * (n_dim + 1)] += 2 * (v_own[n] + p->n_row);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    p_sums->v_gradient[j] += v_own[j];
  }
  *p_sums->p_log_lik +=
      log_lik +
      tb_prior_curvature(&p->prior, v_theta, v_round, v_own, v_hessian, n_dim);
  for (size_t j = 0; j < n_dim; ++j) {
    p_sums->v_gradient[j] += v_own[j];
  }
}

static bool sums_is_outside(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta) {
  const struct sums* p = p_model->p_self;
  (void)p_work;
  return p->prior.is_bounded && tb_prior_is_outside(&p->prior, v_theta);
}

static void sums_constrain(const struct tb_model* p_model,
                           const double* v_theta,
                           double* v_natural) {
  const struct sums* p = p_model->p_self;
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  for (size_t k = 0; k < p->n_aux; ++k) {
    v_natural[p->n_coef + k] = p->v_lower[k] + exp(v_theta[p->n_coef + k]);
  }
}

static size_t sums_memory(const struct tb_model* p_model) {
  const struct sums* p = p_model->p_self;
  return (p->n_coef + N_VECTOR) * p->n_coef * sizeof(double);
}

static void sums_destroy(struct tb_model* p_model) {
  struct sums* p = p_model->p_self;
  if (p != NULL) {
    tb_prior_destroy(&p->prior);
    free(p->v_gram);
    free(p);
    p_model->p_self = NULL;
  }
}

/* Parameters: "gram" (n_coef x n_coef), "mean", "origin" (n_coef each),
 * "n_row", "weight", "rest" and, where it is known, "sigma" (numbers), "lower",
 * of each parameter beside the coefficients that is sampled, and those of
 * tb_prior_create(). */
static enum tb_status sums_create(struct tb_model* p_model,
                                  const struct tb_params* p_params,
                                  const struct tb_shelf* p_shelf) {
  (void)p_shelf;
  const struct tb_param* p_gram = tb_params_find(p_params, "gram");
  const struct tb_param* p_mean = tb_params_find(p_params, "mean");
  const struct tb_param* p_origin = tb_params_find(p_params, "origin");
  if (p_gram == NULL || p_mean == NULL || p_origin == NULL) {
    return TB_STATUS_argument;
  }
  const struct tb_param* p_lower = tb_params_find(p_params, "lower");
  const size_t n = p_mean->n_value;
  const size_t n_aux = p_lower == NULL ? 0 : p_lower->n_value;
  if (n_aux > MOST_AUX || n == 0 || p_gram->n_value != n * n ||
      p_origin->n_value != n) {
    return TB_STATUS_argument;
  }
  struct sums* p = calloc(1, sizeof(*p));
  double* v = malloc((n + N_VECTOR) * n * sizeof(double));
  if (p == NULL || v == NULL) {
    free(p);
    free(v);
    return TB_STATUS_memory;
  }
  const double sigma = tb_params_number(p_params, "sigma", NAN);
  *p = (struct sums){.n_coef = n,
                     .n_aux = n_aux,
                     .inverse = 1 / (sigma * sigma),
                     .n_row = tb_params_number(p_params, "n_row", 0),
                     .weight = tb_params_number(p_params, "weight", 0),
                     .rest = tb_params_number(p_params, "rest", 0),
                     .v_gram = v,
                     .v_mean = v + n * n,
                     .v_origin = v + n * n + n};
  memcpy(p->v_gram, p_gram->v_value, n * n * sizeof(double));
  memcpy(p->v_mean, p_mean->v_value, n * sizeof(double));
  memcpy(p->v_origin, p_origin->v_value, n * sizeof(double));
  p_model->n_data = 0;
  for (size_t k = 0; k < n_aux; ++k) {
    p->v_lower[k] = p_lower->v_value[k];
  }
  p_model->n_dim = n + n_aux;
  p_model->n_natural = p_model->n_dim;
  p_model->is_natural = n_aux == 0;
  p_model->p_frame = NULL;
  uint64_t hash = tb_hash_doubles((uint64_t)n, &p->n_row, 1);
  hash = tb_hash_param(hash, p_gram);
  hash = tb_hash_param(hash, p_mean);
  p_model->fingerprint = tb_hash_param(hash, p_origin);
  const enum tb_status status =
      tb_prior_create(&p->prior, p_params, p_model->n_dim);
  if (status != TB_STATUS_ok) {
    free(v);
    free(p);
    return status;
  }
  p_model->p_self = p;
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_sums = {
    .name = "sums",
    .citation = "Gelman et al. (2013), Bayesian Data Analysis, section 14.2",
    .create = sums_create,
    .destroy = sums_destroy,
    .prior = sums_prior,
    .gradient = tb_model_no_rows,
    .curvature = sums_curvature,
    .curvature_prior = sums_curvature_prior,
    .workspace_size = sums_workspace_size,
    .is_outside = sums_is_outside,
    .constrain = sums_constrain,
    .memory = sums_memory,
};
