#include "priors/prior.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct tb_prior_type* prior_type(const struct tb_prior* p_prior,
                                              size_t j) {
  return tb_prior_registry[(size_t)p_prior->v_kind[j]];
}

/* v of coordinate j; NaN where its prior is not quadratic */
static double prior_variance(const struct tb_prior* p_prior, size_t j) {
  const struct tb_prior_type* type = prior_type(p_prior, j);
  return type->variance == NULL ? NAN : type->variance(p_prior->v_scale[j]);
}

static enum tb_status prior_allocate(struct tb_prior* p_prior, size_t n_dim) {
  double* v = calloc(6 * n_dim + 1, sizeof(double));
  if (v == NULL) {
    return TB_STATUS_memory;
  }
  p_prior->n_dim = n_dim;
  p_prior->v_kind = v;
  p_prior->v_location = v + n_dim;
  p_prior->v_scale = v + 2 * n_dim;
  p_prior->v_functional = v + 3 * n_dim;
  p_prior->v_precision = v + 4 * n_dim;
  p_prior->v_shape = v + 5 * n_dim;
  p_prior->at = n_dim;
  return TB_STATUS_ok;
}

enum tb_status tb_prior_create(struct tb_prior* p_prior,
                               const struct tb_params* p_params,
                               size_t n_dim) {
  static const char* const v_name[] = {"prior_kind",
                                       "prior_location",
                                       "prior_scale"};
  const struct tb_param* v_param[3];

  for (int k = 0; k < 3; ++k) {
    v_param[k] = tb_params_find(p_params, v_name[k]);
    if (v_param[k] == NULL || v_param[k]->n_value != n_dim) {
      return TB_STATUS_argument;
    }
  }
  enum tb_status status = prior_allocate(p_prior, n_dim);
  if (status != TB_STATUS_ok) {
    return status;
  }
  for (int k = 0; k < 3; ++k) {
    memcpy(p_prior->v_kind + (size_t)k * n_dim,
           v_param[k]->v_value,
           n_dim * sizeof(double));
  }
  const struct tb_param* p_functional =
      tb_params_find(p_params, "prior_functional");
  const struct tb_param* p_shape = tb_params_find(p_params, "prior_shape");
  const double at = tb_params_number(p_params, "prior_at", 0);
  if (p_shape != NULL && p_shape->n_value == n_dim) {
    memcpy(p_prior->v_shape, p_shape->v_value, n_dim * sizeof(double));
  }
  if (p_functional != NULL && p_functional->n_value == n_dim) {
    if (!(at >= 0) || !(at < (double)n_dim)) {
      tb_prior_destroy(p_prior);
      return TB_STATUS_argument;
    }
    p_prior->at = (size_t)at;
    memcpy(p_prior->v_functional,
           p_functional->v_value,
           n_dim * sizeof(double));
  }
  p_prior->is_normal = 1;
  p_prior->is_bounded = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    const struct tb_prior_type* type = tb_prior_at_place(p_prior->v_kind[j]);
    if (type == NULL || (type->has_shape && !(p_prior->v_shape[j] > 0))) {
      tb_prior_destroy(p_prior);
      return TB_STATUS_argument;
    }
    if (type->variance != NULL && j != p_prior->at) {
      p_prior->v_precision[j] = 1 / type->variance(p_prior->v_scale[j]);
    } else {
      p_prior->is_normal = 0;
    }
    if (type->is_outside != NULL) {
      p_prior->is_bounded = 1;
    }
  }
  return TB_STATUS_ok;
}

enum tb_status tb_prior_copy(const struct tb_prior* p_prior,
                             struct tb_prior* p_out) {
  enum tb_status status = prior_allocate(p_out, p_prior->n_dim);
  if (status == TB_STATUS_ok) {
    memcpy(p_out->v_kind, p_prior->v_kind, 6 * p_prior->n_dim * sizeof(double));
    p_out->at = p_prior->at;
    p_out->is_normal = p_prior->is_normal;
    p_out->is_bounded = p_prior->is_bounded;
  }
  return status;
}

void tb_prior_destroy(struct tb_prior* p_prior) {
  free(p_prior->v_kind);
  p_prior->v_kind = NULL;
}

/* theta_j, or a^T theta */
static double prior_argument(const struct tb_prior* p_prior,
                             size_t j,
                             const double* v_theta) {
  if (j != p_prior->at) {
    return v_theta[j];
  }
  double sum = 0;
  for (size_t k = 0; k < p_prior->n_dim; ++k) {
    sum += p_prior->v_functional[k] * v_theta[k];
  }
  return sum;
}

/* of one coordinate's prior */
static struct tb_prior_value prior_at(const struct tb_prior* p_prior,
                                      size_t j,
                                      double argument,
                                      double round) {
  return prior_type(p_prior, j)
      ->at(argument,
           p_prior->v_location[j],
           p_prior->v_scale[j],
           p_prior->v_shape[j],
           round);
}

double tb_prior_gradient(const struct tb_prior* p_prior,
                         const double* v_theta,
                         double* v_gradient) {
  double sum = 0;
  if (!p_prior->is_normal) {
    return tb_prior_curvature(p_prior, v_theta, NULL, v_gradient, NULL, 0);
  }
  /* the usual case, in every step of a chain: no branch, no division */
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double t = v_theta[j] - p_prior->v_location[j];
    v_gradient[j] = -t * p_prior->v_precision[j];
    sum += t * v_gradient[j];
  }
  return 0.5 * sum;
}

double tb_prior_curvature(const struct tb_prior* p_prior,
                          const double* v_theta,
                          const double* v_round,
                          double* v_gradient,
                          double* v_hessian,
                          size_t n_lead) {
  const size_t n_dim = p_prior->n_dim;
  double log_density = 0;
  memset(v_gradient, 0, n_dim * sizeof(double));
  for (size_t j = 0; j < n_dim; ++j) {
    const struct tb_prior_value value =
        prior_at(p_prior,
                 j,
                 prior_argument(p_prior, j, v_theta),
                 v_round == NULL ? 0 : v_round[j]);
    log_density += value.log_density;
    if (j != p_prior->at) {
      v_gradient[j] += value.slope;
      if (v_hessian != NULL) {
        v_hessian[j * n_lead + j] += value.curvature;
      }
      continue;
    }
    const double* v_a = p_prior->v_functional;
    for (size_t k = 0; k < n_dim; ++k) {
      v_gradient[k] += value.slope * v_a[k];
      for (size_t i = 0; v_hessian != NULL && i < n_dim; ++i) {
        v_hessian[k * n_lead + i] += value.curvature * v_a[k] * v_a[i];
      }
    }
  }
  return log_density;
}

void tb_prior_diagonal(const struct tb_prior* p_prior,
                       const double* v_theta,
                       double* v_diagonal) {
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double curvature =
        prior_at(p_prior, j, prior_argument(p_prior, j, v_theta), 0).curvature;
    if (j != p_prior->at) {
      v_diagonal[j] += curvature;
      continue;
    }
    for (size_t k = 0; k < p_prior->n_dim; ++k) {
      const double a = p_prior->v_functional[k];
      v_diagonal[k] += curvature * a * a;
    }
  }
}

/* P of one coordinate's prior, see prior.h; is nothing left beyond it? */
static bool quadratic_at(const struct tb_prior* p_prior,
                         size_t j,
                         double x,
                         double* p_curvature) {
  const struct tb_prior_type* type = prior_type(p_prior, j);
  const double scale = p_prior->v_scale[j];
  if (type->variance != NULL) {
    *p_curvature = 1 / type->variance(scale);
    return true;
  }
  *p_curvature = type->quadratic == NULL
                     ? 0
                     : type->quadratic(x,
                                       p_prior->v_location[j],
                                       scale,
                                       p_prior->v_shape[j]);
  return type->quadratic == NULL;
}

bool tb_prior_quadratic(const struct tb_prior* p_prior,
                        const double* v_theta,
                        double* v_hessian) {
  const size_t n_dim = p_prior->n_dim;
  bool is_quadratic = true;
  memset(v_hessian, 0, n_dim * n_dim * sizeof(double));
  for (size_t j = 0; j < n_dim; ++j) {
    const double* v_a = p_prior->v_functional;
    double curvature;
    is_quadratic &= quadratic_at(p_prior,
                                 j,
                                 prior_argument(p_prior, j, v_theta),
                                 &curvature);
    if (j != p_prior->at) {
      v_hessian[j * n_dim + j] += curvature;
    }
    for (size_t k = 0; j == p_prior->at && k < n_dim; ++k) {
      for (size_t i = 0; i < n_dim; ++i) {
        v_hessian[k * n_dim + i] += curvature * v_a[k] * v_a[i];
      }
    }
  }
  return is_quadratic;
}

bool tb_prior_is_outside(const struct tb_prior* p_prior,
                         const double* v_theta) {
  for (size_t j = 0; p_prior->is_bounded && j < p_prior->n_dim; ++j) {
    const struct tb_prior_type* type = prior_type(p_prior, j);
    if (type->is_outside != NULL &&
        type->is_outside(prior_argument(p_prior, j, v_theta),
                         p_prior->v_location[j],
                         p_prior->v_scale[j])) {
      return true;
    }
  }
  return false;
}

/* 1/v_j of coordinate j's own prior, in theta_j / m_j */
static double
prior_diagonal(const struct tb_prior* p_prior, size_t j, const double* v_map) {
  const double m = v_map == NULL ? 1 : v_map[j];
  return j != p_prior->at ? m * m / prior_variance(p_prior, j) : 0;
}

/* b_j = a_j m_j / sqrt(v) of a prior on a^T theta */
static double
prior_column(const struct tb_prior* p_prior, size_t j, const double* v_map) {
  const double m = v_map == NULL ? 1 : v_map[j];
  return p_prior->v_functional[j] * m /
         sqrt(prior_variance(p_prior, p_prior->at));
}

/* No eigenvalue of D + b b^T is above x, itself above all d_j, where
 * sum_j b_j^2 / (x - d_j) <= 1 (Golub 1973, SIAM Review 15:318, section 5). */
static bool
prior_is_below(const struct tb_prior* p_prior, const double* v_map, double x) {
  double sum = 0;
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double b = prior_column(p_prior, j, v_map);
    sum += b * b / (x - prior_diagonal(p_prior, j, v_map));
  }
  return sum <= 1;
}

double tb_prior_lipschitz(const struct tb_prior* p_prior, const double* v_map) {
  double largest = 0, square = 0;
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    if (isnan(prior_variance(p_prior, j))) {
      return NAN;
    }
    largest = fmax(largest, prior_diagonal(p_prior, j, v_map));
  }
  if (p_prior->at >= p_prior->n_dim ||
      isinf(prior_variance(p_prior, p_prior->at))) {
    return largest;
  }
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double b = prior_column(p_prior, j, v_map);
    square += b * b;
  }
  double low = largest, high = largest + square;
  while (high - low > 1e-15 * high) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) {
      break; /* neighbours */
    }
    if (prior_is_below(p_prior, v_map, middle)) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}
