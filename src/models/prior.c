#include "models/prior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sign_of(double x) { return (double) (x > 0) - (double) (x < 0); }

static enum tb_status prior_allocate(struct tb_prior* p_prior, size_t n_dim) {
  double* v = malloc((3 * n_dim + 1) * sizeof(double));
  if (v == NULL) {
    return TB_STATUS_memory;
  }
  p_prior->n_dim = n_dim;
  p_prior->v_kind = v;
  p_prior->v_location = v + n_dim;
  p_prior->v_scale = v + 2 * n_dim;
  return TB_STATUS_ok;
}

enum tb_status tb_prior_create(struct tb_prior* p_prior,
                               const struct tb_params* p_params,
                               size_t n_dim) {
  static const char* const v_name[] = {
    "prior_kind", "prior_location", "prior_scale"
  };
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
    memcpy(p_prior->v_kind + (size_t) k * n_dim,
           v_param[k]->v_value,
           n_dim * sizeof(double));
  }
  return TB_STATUS_ok;
}

enum tb_status tb_prior_copy(const struct tb_prior* p_prior,
                             struct tb_prior* p_out) {
  enum tb_status status = prior_allocate(p_out, p_prior->n_dim);
  if (status == TB_STATUS_ok) {
    memcpy(p_out->v_kind, p_prior->v_kind, 3 * p_prior->n_dim * sizeof(double));
  }
  return status;
}

void tb_prior_destroy(struct tb_prior* p_prior) {
  free(p_prior->v_kind);
  p_prior->v_kind = NULL;
}

double tb_prior_gradient(const struct tb_prior* p_prior,
                         const double* v_theta,
                         double* v_gradient) {
  double log_density = 0;
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double scale = p_prior->v_scale[j];
    const double t = v_theta[j] - p_prior->v_location[j];
    switch ((enum tb_prior_kind) p_prior->v_kind[j]) {
    case TB_PRIOR_normal:
      v_gradient[j] = -t / (scale * scale);
      log_density -= 0.5 * (t / scale) * (t / scale);
      break;
    case TB_PRIOR_laplace:
      v_gradient[j] = -sign_of(t) / scale;
      log_density -= fabs(t) / scale;
      break;
    default:
      v_gradient[j] = 0;
    }
  }
  return log_density;
}

double tb_prior_curvature(const struct tb_prior* p_prior,
                          const double* v_theta,
                          const double* v_round,
                          double* v_gradient,
                          double* v_hessian,
                          size_t n_lead) {
  double log_density = tb_prior_gradient(p_prior, v_theta, v_gradient);
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double scale = p_prior->v_scale[j];
    double* p_diagonal = &v_hessian[j * n_lead + j];
    if ((enum tb_prior_kind) p_prior->v_kind[j] == TB_PRIOR_normal) {
      *p_diagonal += 1 / (scale * scale);
    }
    if ((enum tb_prior_kind) p_prior->v_kind[j] == TB_PRIOR_laplace &&
        v_round != NULL && v_round[j] > 0) {
      const double t = v_theta[j] - p_prior->v_location[j];
      const double length = sqrt(t * t + v_round[j] * v_round[j]);
      v_gradient[j] = -t / (length * scale);
      log_density += (fabs(t) - length) / scale;
      *p_diagonal +=
        v_round[j] * v_round[j] / (length * length * length * scale);
    }
  }
  return log_density;
}

double tb_prior_lipschitz(const struct tb_prior* p_prior) {
  double largest = 0;
  for (size_t j = 0; j < p_prior->n_dim; ++j) {
    const double scale = p_prior->v_scale[j];
    switch ((enum tb_prior_kind) p_prior->v_kind[j]) {
    case TB_PRIOR_normal:
      largest = fmax(largest, 1 / (scale * scale));
      break;
    case TB_PRIOR_laplace:
      return NAN;
    default:
      break;
    }
  }
  return largest;
}
