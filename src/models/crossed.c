/* Regressions with several grouping factors; crossed-inside.h has the model and
 * the symbols. All effects are numbers of the chain: only sweeps sample it. */
#include "base/hash.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- slots */

static enum tb_status crossed_prior(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_prior) {
  const struct crossed* p = p_model->p_self;
  (void)p_work;
  double log_prior = tb_prior_gradient(&p->prior, v_theta, v_gradient);
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    log_prior += crossed_covariance_prior(f,
                                          v_theta + f->at_lambda,
                                          v_gradient + f->at_lambda);
  }
  if (p_log_prior != NULL) {
    *p_log_prior += log_prior;
  }
  return TB_STATUS_ok;
}

/* Effects are not theta's: there is none of theta alone. */
static enum tb_status crossed_gradient(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       const struct tb_reference* p_reference,
                                       const struct tb_sums* p_sums) {
  (void)p_model;
  (void)p_work;
  (void)v_theta;
  (void)p_batch;
  (void)p_reference;
  (void)p_sums;
  return TB_STATUS_unsupported;
}

static bool crossed_is_outside(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               const double* v_theta) {
  const struct crossed* p = p_model->p_self;
  (void)p_work;
  return p->prior.is_bounded && tb_prior_is_outside(&p->prior, v_theta);
}

/* lambda -> standard deviations, then correlations in the places of partial
 * ones; s -> its natural scale */
static void crossed_constrain(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_natural) {
  const struct crossed* p = p_model->p_self;
  memcpy(v_natural, v_theta, p_model->n_dim * sizeof(double));
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    double* v_out = v_natural + f->at_lambda;
    crossed_square root;
    crossed_root(f, v_theta + f->at_lambda, root);
    for (size_t a = 0; a < f->n_effect; ++a) {
      v_out[a] = exp(v_theta[f->at_lambda + a]);
      for (size_t b = 0; f->is_correlated && b < a; ++b) {
        double product = 0;
        for (size_t c = 0; c <= b; ++c) {
          product += root[a][c] * root[b][c];
        }
        v_out[f->at[a][b]] = product / (v_out[a] * v_out[b]);
      }
    }
  }
  const size_t at_aux = p_model->n_dim - p->n_aux;
  tb_response_natural(&p->response, v_theta + at_aux, v_natural + at_aux);
}

static size_t crossed_memory(const struct tb_model* p_model) {
  const struct crossed* p = p_model->p_self;
  return p->n_byte;
}

/* --------------------------------------------------------------------- life */

static void crossed_destroy(struct tb_model* p_model) {
  struct crossed* p = p_model->p_self;
  if (p != NULL) {
    tb_prior_destroy(&p->prior);
    crossed_release(p);
    free(p);
    p_model->p_self = NULL;
  }
}

/* numbers of lambda: the diagonal first */
static void number_lambda(struct crossed_factor* f) {
  size_t l = 0;
  for (size_t a = 0; a < f->n_effect; ++a) {
    f->at[a][a] = l++;
  }
  for (size_t a = 1; f->is_correlated && a < f->n_effect; ++a) {
    for (size_t b = 0; b < a; ++b) {
      f->at[a][b] = l++;
    }
  }
  f->n_lambda = l;
}

/* numbers of one parameter for each factor, or for each effect of each */
static const double*
values_of(const struct tb_params* p_params, const char* name, size_t n) {
  const struct tb_param* p_param = tb_params_find(p_params, name);
  return p_param == NULL || p_param->n_value != n ? NULL : p_param->v_value;
}

static bool set_factors(struct crossed* p, const struct tb_params* p_params) {
  const struct tb_param* p_effect = tb_params_find(p_params, "n_effect");
  if (p_effect == NULL || p_effect->n_value == 0 ||
      p_effect->n_value > CROSSED_FACTOR) {
    return false;
  }
  const size_t n = p->n_factor = p_effect->n_value;
  size_t n_z = 0, at = 0;
  for (size_t k = 0; k < n; ++k) {
    const double q = p_effect->v_value[k];
    if (!(q >= 1 && q <= CROSSED_EFFECT)) {
      return false;
    }
    n_z += (size_t)q;
  }
  const double* v_level = values_of(p_params, "n_level", n);
  const double* v_correlated = values_of(p_params, "correlated", n);
  const double* v_kind = values_of(p_params, "sd_kind", n);
  const double* v_df = values_of(p_params, "sd_df", n);
  const double* v_lkj = values_of(p_params, "lkj", n);
  const double* v_z = values_of(p_params, "z", n_z);
  const double* v_scale = values_of(p_params, "sd_scale", n_z);
  if (v_level == NULL || v_correlated == NULL || v_kind == NULL ||
      v_df == NULL || v_lkj == NULL || v_z == NULL || v_scale == NULL) {
    return false;
  }
  for (size_t k = 0; k < n; ++k) {
    struct crossed_factor* f = &p->v_factor[k];
    f->n_effect = (size_t)p_effect->v_value[k];
    f->is_correlated = f->n_effect > 1 && v_correlated[k] != 0;
    number_lambda(f);
    f->df = v_df[k];
    f->eta = v_lkj[k];
    if (!(v_level[k] >= 1 && v_level[k] <= INT32_MAX / 8) ||
        !(v_kind[k] >= 0 && v_kind[k] <= CROSSED_SD_exponential) ||
        !(f->df > 0) || !(f->eta > 0)) {
      return false;
    }
    f->n_level = (size_t)v_level[k];
    f->kind = (enum crossed_sd_kind)v_kind[k];
    f->at_lambda = p->n_coef + p->n_lambda;
    f->at_effect = p->n_effect;
    p->n_lambda += f->n_lambda;
    p->n_effect += f->n_level * f->n_effect;
    if (f->n_level > p->n_level_most) {
      p->n_level_most = f->n_level;
    }
    for (size_t a = 0; a < f->n_effect; ++a, ++at) {
      if (!(v_z[at] >= 0 && v_z[at] < (double)p->n_column) ||
          !(v_scale[at] > 0)) {
        return false;
      }
      f->v_z[a] = (size_t)v_z[at];
      f->v_scale[a] = v_scale[at];
    }
  }
  return true;
}

/* Is the prior of each coefficient normal, or flat? */
static bool has_normal_prior(const struct crossed* p) {
  for (size_t j = 0; j < p->n_coef; ++j) {
    const struct tb_prior_type* type = tb_prior_at_place(p->prior.v_kind[j]);
    if (type->variance == NULL || type->is_outside != NULL) {
      return false;
    }
  }
  return true;
}

static enum tb_status set_parts(struct tb_model* p_model,
                                const struct tb_params* p_params) {
  struct crossed* p = p_model->p_self;
  if (!tb_response_read(&p->response, p_params) ||
      tb_response_n_predictor(p->response.type, 0) != 1 ||
      tb_response_n_y(p->response.type) != 1 ||
      !tb_params_count(p_params, "n_coef", 1u << 20, 0, &p->n_coef) ||
      !tb_params_count(p_params, "n_column", 1u << 20, 0, &p->n_column) ||
      p->n_column < p->n_coef || !set_factors(p, p_params)) {
    return TB_STATUS_argument;
  }
  p->n_aux = tb_response_n_sampled(&p->response);
  p->is_quadratic = p->response.type == tb_response_find("gaussian", NULL);
  p->v_column = calloc(p->n_column + 1, sizeof(double*));
  p_model->n_dim = p_model->n_natural = p->n_coef + p->n_lambda + p->n_aux;
  enum tb_status status =
      p->v_column == NULL
          ? TB_STATUS_memory
          : tb_prior_create(&p->prior, p_params, p_model->n_dim);
  if (status == TB_STATUS_ok) {
    p->is_normal = has_normal_prior(p);
    status = crossed_take_rows(p, p_params);
  }
  if (status == TB_STATUS_ok) {
    status = crossed_find_ties(p);
  }
  if (status == TB_STATUS_ok) {
    status = crossed_find_links(p);
  }
  p_model->n_data = p->n_datum;
  return status;
}

/* of all that the density is made of */
static uint64_t fingerprint(const struct tb_model* p_model,
                            const struct tb_params* p_params) {
  const struct crossed* p = p_model->p_self;
  const char* const v_name[] = {"response",
                                "aux",
                                "z",
                                "n_effect",
                                "n_level",
                                "correlated",
                                "lkj",
                                "sd_kind",
                                "sd_df",
                                "sd_scale",
                                "prior_at",
                                "prior_functional",
                                "prior_shape"};
  uint64_t hash = tb_hash_word((uint64_t)p->n_datum, (uint64_t)p->n_coef);
  hash = tb_hash_doubles(hash, p->prior.v_kind, 3 * p_model->n_dim);
  for (size_t k = 0; k < sizeof(v_name) / sizeof(*v_name); ++k) {
    hash = tb_hash_param(hash, tb_params_find(p_params, v_name[k]));
  }
  hash = tb_hash_word(hash, p->v_weight != NULL);
  hash = tb_hash_word(hash, p->v_offset != NULL);
  hash = tb_hash_doubles(hash, &p->square_within, 1);
  return tb_hash_bytes(hash, p->p_rows, p->n_byte);
}

/* Parameters: "x" (n_row x n_column: the columns of beta first), "n_column",
 * "n_coef", "y", "weights", "offset", "response", "aux", those of tb_prior,
 * flat in lambda; of each factor "n_level", "n_effect", "correlated" (0/1),
 * "sd_kind", "sd_df", "lkj"; of each effect of each "z" (numbers of columns,
 * from 0) and "sd_scale"; "level" (n_row x factors, from 1). */
static enum tb_status crossed_create(struct tb_model* p_model,
                                     const struct tb_params* p_params,
                                     const struct tb_shelf* p_shelf) {
  struct crossed* p = calloc(1, sizeof(*p));
  (void)p_shelf;
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->p_frame = NULL;
  const enum tb_status status = set_parts(p_model, p_params);
  if (status != TB_STATUS_ok) {
    crossed_destroy(p_model);
    return status;
  }
  p_model->fingerprint = fingerprint(p_model, p_params);
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_crossed = {
    .name = "crossed",
    .citation = "Papaspiliopoulos, Roberts & Zanella (2020), Biometrika 107:25",
    .flags = TB_MODEL_NO_DENSITY,
    .create = crossed_create,
    .destroy = crossed_destroy,
    .prior = crossed_prior,
    .gradient = crossed_gradient,
    .workspace_size = crossed_workspace_size,
    .is_outside = crossed_is_outside,
    .constrain = crossed_constrain,
    .memory = crossed_memory,
    .sweeps = &crossed_sweeps,
};
