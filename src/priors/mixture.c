#include "priors/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* log p(beta | phi) without its constant, where P is v_precision */
static double log_normal(const struct tb_mixture* p_mixture,
                         const double* v_beta,
                         const double* v_precision) {
  double sum = 0;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double t = v_beta[j] - p_mixture->v_location[j];
    sum += log(v_precision[j]) - t * t * v_precision[j];
  }
  return 0.5 * sum;
}

double tb_mixture_log_density(const struct tb_mixture* p_mixture,
                              const double* v_beta,
                              const double* v_phi,
                              double* v_work) {
  p_mixture->type->precision(p_mixture, v_phi, v_work);
  return p_mixture->type->log_prior(p_mixture, v_phi) +
         log_normal(p_mixture, v_beta, v_work);
}

/* ------------------------------------------------------------- all blocks */

enum { LOCATION, SCALE, SHAPE, N_ARRAY };

static enum tb_status
allocate(struct tb_mixtures* p_mixtures, size_t n_mixture, size_t n_covered) {
  p_mixtures->n_mixture = n_mixture;
  p_mixtures->n_covered = n_covered;
  p_mixtures->n_hyper = 0;
  p_mixtures->v_block = calloc(n_mixture + 1, sizeof(struct tb_mixture));
  p_mixtures->v_at = calloc(n_covered + 1, sizeof(size_t));
  p_mixtures->v_memory = calloc(N_ARRAY * n_covered + 1, sizeof(double));
  if (p_mixtures->v_block == NULL || p_mixtures->v_at == NULL ||
      p_mixtures->v_memory == NULL) {
    tb_mixtures_destroy(p_mixtures);
    return TB_STATUS_memory;
  }
  return TB_STATUS_ok;
}

void tb_mixtures_destroy(struct tb_mixtures* p_mixtures) {
  free(p_mixtures->v_block);
  free(p_mixtures->v_at);
  free(p_mixtures->v_memory);
  memset(p_mixtures, 0, sizeof(*p_mixtures));
}

/* The arrays of each block lie one after the other. */
static void place_arrays(struct tb_mixtures* p_mixtures) {
  const double* v = p_mixtures->v_memory;
  const size_t n = p_mixtures->n_covered;
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    struct tb_mixture* p = &p_mixtures->v_block[k];
    p->v_location = v + LOCATION * n;
    p->v_scale = v + SCALE * n;
    p->v_shape = v + SHAPE * n;
    v += p->n_coef;
  }
}

/* Coordinates below n_coef, each once. */
static bool read_places(struct tb_mixtures* p_mixtures,
                        const struct tb_param* p_at,
                        size_t n_coef) {
  unsigned char* v_seen = calloc(n_coef + 1, 1);
  bool is_good = v_seen != NULL;
  for (size_t j = 0; is_good && j < p_mixtures->n_covered; ++j) {
    const double at = tb_param_at(p_at, j);
    is_good = at >= 0 && at < (double)n_coef && at == floor(at) &&
              !v_seen[(size_t)at];
    if (is_good) {
      v_seen[(size_t)at] = 1;
      p_mixtures->v_at[j] = (size_t)at;
    }
  }
  free(v_seen);
  return is_good;
}

static bool is_good_block(const struct tb_mixture* p) {
  bool is_good = p->n_coef > 0;
  for (size_t j = 0; is_good && j < p->n_coef; ++j) {
    is_good =
        isfinite(p->v_location[j]) && isfinite(p->v_scale[j]) &&
        p->v_scale[j] > 0 &&
        (!p->type->has_shape || (isfinite(p->v_shape[j]) && p->v_shape[j] > 0));
  }
  return is_good && p->type->is_valid(p);
}

/* n_covered: the sum of the sizes, or 0 where they are none */
static size_t sum_of_sizes(const struct tb_param* p_size, size_t n_coef) {
  size_t sum = 0;
  for (size_t k = 0; k < p_size->n_value; ++k) {
    const double size = tb_param_at(p_size, k);
    if (!(size >= 1) || !(size <= (double)n_coef) || size != floor(size)) {
      return 0;
    }
    sum += (size_t)size;
  }
  return sum;
}

enum tb_status tb_mixtures_create(struct tb_mixtures* p_mixtures,
                                  const struct tb_params* p_params,
                                  size_t n_coef) {
  static const char* const v_name[] = {"mixture_location",
                                       "mixture_scale",
                                       "mixture_shape"};
  const struct tb_param* p_kind = tb_params_find(p_params, "mixture_kind");
  const struct tb_param* p_size = tb_params_find(p_params, "mixture_size");
  const struct tb_param* p_at = tb_params_find(p_params, "mixture_at");
  const struct tb_param* p_argument =
      tb_params_find(p_params, "mixture_argument");
  memset(p_mixtures, 0, sizeof(*p_mixtures));
  if (p_kind == NULL) {
    return TB_STATUS_ok;
  }
  if (p_size == NULL || p_at == NULL || p_argument == NULL ||
      p_size->n_value != p_kind->n_value ||
      p_argument->n_value != TB_MIXTURE_n_argument * p_kind->n_value) {
    return TB_STATUS_argument;
  }
  const size_t n_covered = sum_of_sizes(p_size, n_coef);
  if (n_covered == 0 || p_at->n_value != n_covered) {
    return TB_STATUS_argument;
  }
  enum tb_status status = allocate(p_mixtures, p_kind->n_value, n_covered);
  if (status != TB_STATUS_ok) {
    return status;
  }
  bool is_good = read_places(p_mixtures, p_at, n_coef);
  for (size_t i = 0; i < N_ARRAY; ++i) {
    const struct tb_param* p = tb_params_find(p_params, v_name[i]);
    if (p == NULL || p->n_value != n_covered) {
      is_good = false;
      continue;
    }
    memcpy(p_mixtures->v_memory + i * n_covered,
           p->v_value,
           n_covered * sizeof(double));
  }
  for (size_t k = 0; is_good && k < p_mixtures->n_mixture; ++k) {
    struct tb_mixture* p = &p_mixtures->v_block[k];
    p->type = tb_mixture_at_place(tb_param_at(p_kind, k));
    p->n_coef = (size_t)tb_param_at(p_size, k);
    memcpy(p->v_argument,
           p_argument->v_value + k * TB_MIXTURE_n_argument,
           sizeof p->v_argument);
    is_good = p->type != NULL;
    if (is_good) {
      p->n_hyper = p->type->n_shared + (p->type->has_locals ? p->n_coef : 0);
      p_mixtures->n_hyper += p->n_hyper;
    }
  }
  place_arrays(p_mixtures);
  for (size_t k = 0; is_good && k < p_mixtures->n_mixture; ++k) {
    is_good = is_good_block(&p_mixtures->v_block[k]);
  }
  if (!is_good) {
    tb_mixtures_destroy(p_mixtures);
    return TB_STATUS_argument;
  }
  return TB_STATUS_ok;
}

enum tb_status tb_mixtures_copy(const struct tb_mixtures* p_mixtures,
                                struct tb_mixtures* p_out) {
  memset(p_out, 0, sizeof(*p_out));
  if (p_mixtures->n_mixture == 0) {
    return TB_STATUS_ok;
  }
  const size_t n = p_mixtures->n_covered;
  const enum tb_status status = allocate(p_out, p_mixtures->n_mixture, n);
  if (status == TB_STATUS_ok) {
    memcpy(p_out->v_block,
           p_mixtures->v_block,
           p_mixtures->n_mixture * sizeof(struct tb_mixture));
    memcpy(p_out->v_at, p_mixtures->v_at, n * sizeof(size_t));
    memcpy(p_out->v_memory, p_mixtures->v_memory, N_ARRAY * n * sizeof(double));
    p_out->n_hyper = p_mixtures->n_hyper;
    place_arrays(p_out);
  }
  return status;
}

/* v_work: the coefficients of a block, what a block works with */
size_t tb_mixtures_n_work(const struct tb_mixtures* p_mixtures) {
  size_t most = 0;
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    const size_t n = 2 * p->n_coef + p->n_hyper;
    most = n > most ? n : most;
  }
  return most;
}

static void gather(const struct tb_mixture* p_mixture,
                   const size_t* v_at,
                   const double* v_beta,
                   double* v_out) {
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_out[j] = v_beta[v_at[j]];
  }
}

double tb_mixtures_log_prior(const struct tb_mixtures* p_mixtures,
                             const double* v_phi) {
  double sum = 0;
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    sum += p->type->log_prior(p, v_phi);
    v_phi += p->n_hyper;
  }
  return sum;
}

void tb_mixtures_normal(const struct tb_mixtures* p_mixtures,
                        const double* v_phi,
                        double* v_location,
                        double* v_precision,
                        double* v_work) {
  const size_t* v_at = p_mixtures->v_at;
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    p->type->precision(p, v_phi, v_work);
    for (size_t j = 0; j < p->n_coef; ++j) {
      v_precision[v_at[j]] = v_work[j];
      if (v_location != NULL) {
        v_location[v_at[j]] = p->v_location[j];
      }
    }
    v_phi += p->n_hyper;
    v_at += p->n_coef;
  }
}

double tb_mixtures_gradient(const struct tb_mixtures* p_mixtures,
                            const double* v_beta,
                            const double* v_phi,
                            double* v_gradient_beta,
                            double* v_gradient_phi,
                            double* v_work) {
  const size_t* v_at = p_mixtures->v_at;
  double sum = 0;
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    double *v_own = v_work, *v_precision = v_work + p->n_coef;
    gather(p, v_at, v_beta, v_own);
    p->type->precision(p, v_phi, v_precision);
    sum += p->type->log_prior(p, v_phi) + log_normal(p, v_own, v_precision);
    for (size_t j = 0; j < p->n_coef; ++j) {
      v_gradient_beta[v_at[j]] -=
          v_precision[j] * (v_own[j] - p->v_location[j]);
    }
    p->type->gradient(p, v_own, v_phi, v_gradient_phi);
    v_phi += p->n_hyper;
    v_gradient_phi += p->n_hyper;
    v_at += p->n_coef;
  }
  return sum;
}

void tb_mixtures_draw(const struct tb_mixtures* p_mixtures,
                      const double* v_beta,
                      double* v_phi,
                      double* v_work,
                      struct tb_rng* p_rng) {
  const size_t* v_at = p_mixtures->v_at;
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    gather(p, v_at, v_beta, v_work);
    p->type->draw(p, v_work, v_phi, v_work + p->n_coef, p_rng);
    v_phi += p->n_hyper;
    v_at += p->n_coef;
  }
}

void tb_mixtures_simulate(const struct tb_mixtures* p_mixtures,
                          double* v_phi,
                          struct tb_rng* p_rng) {
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    p->type->simulate(p, v_phi, p_rng);
    v_phi += p->n_hyper;
  }
}

void tb_mixtures_natural(const struct tb_mixtures* p_mixtures,
                         const double* v_phi,
                         double* v_natural) {
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture* p = &p_mixtures->v_block[k];
    p->type->natural(p, v_phi, v_natural);
    v_phi += p->n_hyper;
    v_natural += p->n_hyper;
  }
}
