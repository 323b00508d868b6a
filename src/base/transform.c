#include "base/transform.h"

#include <math.h>

/* 1 / (1 + e^-t), and its logarithm, without overflow */
static double logistic(double t) {
  return t >= 0 ? 1 / (1 + exp(-t)) : exp(t) / (1 + exp(t));
}

static double log_logistic(double t) {
  return t >= 0 ? -log1p(exp(-t)) : t - log1p(exp(t));
}

/* the shifted coordinate of stick k (from 0) of K - 1 */
static double stick(const double* v_free, size_t n_free, size_t k) {
  return v_free[k] - log((double)(n_free - k));
}

static double
simplex_constrain(size_t n_free, const double* v_free, double* v_natural) {
  double rest = 1, log_rest = 0, log_jacobian = 0;
  for (size_t k = 0; k < n_free; ++k) {
    const double t = stick(v_free, n_free, k);
    v_natural[k] = rest * logistic(t);
    log_jacobian += log_logistic(t) + log_logistic(-t) + log_rest;
    log_rest += log_logistic(-t);
    rest *= logistic(-t);
  }
  v_natural[n_free] = rest;
  return log_jacobian;
}

/* Backwards along the stick, with the derivative by rest_{k+1} at hand. */
static void simplex_pull(size_t n_free,
                         const double* v_free,
                         const double* v_gradient,
                         double* v_out) {
  double log_rest = 0, by_rest = v_gradient[n_free];
  for (size_t k = 0; k < n_free; ++k) {
    v_out[k] = log_rest; /* of the stick that k breaks */
    log_rest += log_logistic(-stick(v_free, n_free, k));
  }
  for (size_t k = n_free; k-- > 0;) {
    const double z = logistic(stick(v_free, n_free, k));
    const double change = v_gradient[k] - by_rest;
    by_rest = z * v_gradient[k] + (1 - z) * by_rest;
    v_out[k] = exp(v_out[k]) * z * (1 - z) * change;
  }
}

double tb_transform_constrain(const struct tb_transform_part* v_part,
                              size_t n_part,
                              const double* v_free,
                              double* v_natural) {
  double log_jacobian = 0;
  for (size_t p = 0; p < n_part; ++p) {
    const size_t n_free = v_part[p].n_free;
    if (v_part[p].kind == TB_TRANSFORM_simplex) {
      log_jacobian += simplex_constrain(n_free, v_free, v_natural);
    }
    for (size_t k = 0; v_part[p].kind != TB_TRANSFORM_simplex && k < n_free;
         ++k) {
      const double y = v_free[k];
      switch (v_part[p].kind) {
      case TB_TRANSFORM_positive:
        v_natural[k] = exp(y);
        log_jacobian += y;
        break;
      case TB_TRANSFORM_unit:
        v_natural[k] = logistic(y);
        log_jacobian += log_logistic(y) + log_logistic(-y);
        break;
      default:
        v_natural[k] = y;
      }
    }
    v_free += n_free;
    v_natural += v_part[p].n_natural;
  }
  return log_jacobian;
}

void tb_transform_pull(const struct tb_transform_part* v_part,
                       size_t n_part,
                       const double* v_free,
                       const double* v_gradient,
                       double* v_out) {
  for (size_t p = 0; p < n_part; ++p) {
    const size_t n_free = v_part[p].n_free;
    if (v_part[p].kind == TB_TRANSFORM_simplex) {
      simplex_pull(n_free, v_free, v_gradient, v_out);
    }
    for (size_t k = 0; v_part[p].kind != TB_TRANSFORM_simplex && k < n_free;
         ++k) {
      const double y = v_free[k];
      switch (v_part[p].kind) {
      case TB_TRANSFORM_positive:
        v_out[k] = v_gradient[k] * exp(y);
        break;
      case TB_TRANSFORM_unit:
        v_out[k] = v_gradient[k] * logistic(y) * logistic(-y);
        break;
      default:
        v_out[k] = v_gradient[k];
      }
    }
    v_free += n_free;
    v_gradient += v_part[p].n_natural;
    v_out += n_free;
  }
}

void tb_transform_add_jacobian(const struct tb_transform_part* v_part,
                               size_t n_part,
                               const double* v_free,
                               double* v_gradient) {
  for (size_t p = 0; p < n_part; ++p) {
    const size_t n_free = v_part[p].n_free;
    for (size_t k = 0; k < n_free; ++k) {
      switch (v_part[p].kind) {
      case TB_TRANSFORM_positive:
        v_gradient[k] += 1;
        break;
      case TB_TRANSFORM_unit:
        v_gradient[k] += logistic(-v_free[k]) - logistic(v_free[k]);
        break;
      case TB_TRANSFORM_simplex: {
        /* log z_k once, log(1 - z_k) here and in every later rest */
        const double z = logistic(stick(v_free, n_free, k));
        v_gradient[k] += (1 - z) - (double)(n_free - k) * z;
        break;
      }
      default:
        break;
      }
    }
    v_free += n_free;
    v_gradient += n_free;
  }
}
