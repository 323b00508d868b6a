#include "priors/tails.h"

#include "base/slice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAD        "tail_"
#define SLICE_WIDTH 1.5 /* of log scales */

/* The parameters of the mixtures by the names that these know them by. */
static size_t without_lead(const struct tb_params* p_params,
                           struct tb_param* v_param) {
  const size_t n_lead = sizeof LEAD - 1;
  size_t n = 0;
  for (size_t i = 0; i < p_params->n_param; ++i) {
    const char* name = p_params->v_param[i].name;
    if (strncmp(name, LEAD, n_lead) == 0) {
      v_param[n] = p_params->v_param[i];
      v_param[n++].name = name + n_lead;
    }
  }
  return n;
}

/* Is a scale drawn whatever it was before, so that none need be kept? */
static bool has_locals_alone(const struct tb_mixtures* p_mixtures) {
  for (size_t k = 0; k < p_mixtures->n_mixture; ++k) {
    const struct tb_mixture_type* type = p_mixtures->v_block[k].type;
    if (!type->has_locals || type->n_shared > 0) {
      return false;
    }
  }
  return true;
}

enum tb_status tb_tails_create(struct tb_tails* p_tails,
                               const struct tb_params* p_params,
                               size_t n_coef) {
  *p_tails = (struct tb_tails){.n_coef = n_coef};
  const struct tb_param* p_of = tb_params_find(p_params, LEAD "of");
  if (p_of == NULL) {
    return TB_STATUS_ok;
  }
  struct tb_param* v_param = calloc(p_params->n_param, sizeof(*v_param));
  if (v_param == NULL) {
    return TB_STATUS_memory;
  }
  const struct tb_params own = {.v_param = v_param,
                                .n_param = without_lead(p_params, v_param)};
  enum tb_status status = TB_STATUS_argument;
  if (n_coef > 0 && p_of->n_value > 0 && p_of->n_value % n_coef == 0) {
    p_tails->n_tail = p_of->n_value / n_coef;
    status = tb_mixtures_create(&p_tails->mixtures, &own, p_tails->n_tail);
  }
  free(v_param);
  if (status == TB_STATUS_ok &&
      (p_tails->mixtures.n_covered != p_tails->n_tail ||
       !has_locals_alone(&p_tails->mixtures))) {
    status = TB_STATUS_argument;
  }
  if (status == TB_STATUS_ok) {
    p_tails->v_of = malloc(p_of->n_value * sizeof(double));
    status = p_tails->v_of == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  }
  if (status != TB_STATUS_ok) {
    tb_tails_destroy(p_tails);
    return status;
  }
  memcpy(p_tails->v_of, p_of->v_value, p_of->n_value * sizeof(double));
  return TB_STATUS_ok;
}

void tb_tails_destroy(struct tb_tails* p_tails) {
  tb_mixtures_destroy(&p_tails->mixtures);
  free(p_tails->v_of);
  *p_tails = (struct tb_tails){0};
}

enum { N_ARRAY = 4 };

size_t tb_tails_size(const struct tb_tails* p_tails) {
  return N_ARRAY * p_tails->n_tail + tb_mixtures_n_work(&p_tails->mixtures);
}

struct tb_tail_scales tb_tails_at(const struct tb_tails* p_tails,
                                  double* v_scratch) {
  const size_t n = p_tails->n_tail;
  return (struct tb_tail_scales){.v_log = v_scratch,
                                 .v_precision = v_scratch + n,
                                 .v_location = v_scratch + 2 * n,
                                 .v_at = v_scratch + 3 * n,
                                 .v_work = v_scratch + N_ARRAY * n};
}

static double
along(const struct tb_tails* p_tails, size_t k, const double* v_beta) {
  const double* v_of = p_tails->v_of + k * p_tails->n_coef;
  double sum = 0;
  for (size_t j = 0; j < p_tails->n_coef; ++j) {
    sum += v_of[j] * v_beta[j];
  }
  return sum;
}

static void set_normal(const struct tb_tails* p_tails,
                       const struct tb_tail_scales* p_scales) {
  tb_mixtures_normal(&p_tails->mixtures,
                     p_scales->v_log,
                     p_scales->v_location,
                     p_scales->v_precision,
                     p_scales->v_work);
}

void tb_tails_draw(const struct tb_tails* p_tails,
                   const double* v_beta,
                   const struct tb_tail_scales* p_scales,
                   struct tb_rng* p_rng) {
  for (size_t k = 0; k < p_tails->n_tail; ++k) {
    p_scales->v_at[k] = along(p_tails, k, v_beta);
  }
  tb_mixtures_draw(&p_tails->mixtures,
                   p_scales->v_at,
                   p_scales->v_log,
                   p_scales->v_work,
                   p_rng);
  set_normal(p_tails, p_scales);
}

void tb_tails_add(const struct tb_tails* p_tails,
                  const struct tb_tail_scales* p_scales,
                  size_t without,
                  const double* v_beta,
                  double* v_slope,
                  double* v_bend) {
  const size_t n = p_tails->n_coef;
  for (size_t k = 0; k < p_tails->n_tail; ++k) {
    const double* v_of = p_tails->v_of + k * n;
    const double precision = p_scales->v_precision[k];
    if (k == without) {
      continue;
    }
    const double away = p_scales->v_location[k] - along(p_tails, k, v_beta);
    for (size_t j = 0; j < n; ++j) {
      const double part = precision * v_of[j];
      v_slope[j] += part * away;
      for (size_t i = 0; part != 0 && i < n; ++i) {
        v_bend[j * n + i] += part * v_of[i];
      }
    }
  }
}

struct one_tail {
  const struct tb_tails* p_tails;
  const struct tb_tail_scales* p_scales;
  size_t k;
  double mean, variance;
};

static double log_density(const void* p_context, double x) {
  const struct one_tail* p = p_context;
  const struct tb_tail_scales* p_scales = p->p_scales;
  p_scales->v_log[p->k] = x;
  set_normal(p->p_tails, p_scales);
  const double variance = p->variance + 1 / p_scales->v_precision[p->k];
  const double away = p->mean - p_scales->v_location[p->k];
  return tb_mixtures_log_prior(&p->p_tails->mixtures, p_scales->v_log) -
         0.5 * (log(variance) + away * away / variance);
}

void tb_tails_slice(const struct tb_tails* p_tails,
                    const struct tb_tail_scales* p_scales,
                    size_t k,
                    double mean,
                    double variance,
                    struct tb_rng* p_rng) {
  const struct one_tail one = {.p_tails = p_tails,
                               .p_scales = p_scales,
                               .k = k,
                               .mean = mean,
                               .variance = variance};
  const double x = p_scales->v_log[k];
  p_scales->v_log[k] = tb_slice_step(log_density, &one, x, SLICE_WIDTH, p_rng);
  set_normal(p_tails, p_scales);
}
