/* Covariances of the effects of a level, and their law given the effects.
 *
 * Sigma = F F^T, F = D C: D the standard deviations, C the lower triangular
 * factor of the correlations by canonical partial ones, r_ab = tanh zeta_ab,
 *
 *   C_ab = r_ab prod_{c < b} sech zeta_ac,   C_aa = prod_{c < a} sech zeta_ac.
 *
 * In an LKJ(eta) prior these are independent (Lewandowski, Kurowicka & Joe
 * 2009, J. Multivariate Analysis 100:1989), r_ab of density (1 - r^2)^(B_b - 1)
 * with B_b = eta + (q - 1 - b) / 2, b = 1, 2, ..; so zeta_ab has sech^(2 B_b),
 * and log sd_a the density p(sd_a) sd_a. Given n effects with S = sum u u^T,
 *
 *   log p(lambda | u) = log p(lambda) - n log |F| - tr(F^-1 S F^-T) / 2.
 */
#include "base/slice.h"
#include "models/crossed-inside.h"

#include <math.h>

enum { Q = CROSSED_EFFECT };

static double log_sech(double x) {
  const double size = fabs(x);
  return log(2.0) - size - log1p(exp(-2 * size));
}

double crossed_root(const struct crossed_factor* f,
                    const double* v_lambda,
                    crossed_square root) {
  double log_det = 0;
  for (size_t a = 0; a < f->n_effect; ++a) {
    double left = exp(v_lambda[a]);
    log_det += v_lambda[a];
    for (size_t b = 0; b < a; ++b) {
      if (f->is_correlated) {
        const double zeta = v_lambda[f->at[a][b]];
        root[a][b] = left * tanh(zeta);
        left *= exp(log_sech(zeta));
        log_det += log_sech(zeta);
      } else {
        root[a][b] = 0;
      }
    }
    root[a][a] = left;
    for (size_t b = a + 1; b < f->n_effect; ++b) {
      root[a][b] = 0;
    }
  }
  return log_det;
}

/* G = F^-1, lower */
static void invert(size_t q, const double (*root)[Q], crossed_square inverse) {
  for (size_t b = 0; b < q; ++b) {
    for (size_t a = 0; a < q; ++a) {
      double sum = a == b;
      for (size_t c = b; c < a; ++c) {
        sum -= root[a][c] * inverse[c][b];
      }
      inverse[a][b] = a < b ? 0 : sum / root[a][a];
    }
  }
}

double crossed_precision(const struct crossed_factor* f,
                         const double* v_lambda,
                         crossed_square precision) {
  const size_t q = f->n_effect;
  crossed_square root, inverse;
  const double log_det = crossed_root(f, v_lambda, root);
  invert(q, (const double(*)[Q])root, inverse);
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b < q; ++b) {
      precision[a][b] = 0;
      for (size_t c = a > b ? a : b; c < q; ++c) {
        precision[a][b] += inverse[c][a] * inverse[c][b];
      }
    }
  }
  return log_det;
}

/* log p(sd) in log sd, and its slope there */
static double
log_sd_density(const struct crossed_factor* f, size_t a, double t, double* p) {
  const double scale = f->v_scale[a], sd = exp(t),
               s = (sd / scale) * sd / scale;
  switch (f->kind) {
  case CROSSED_SD_normal:
    *p = -s;
    return -0.5 * s;
  case CROSSED_SD_student:
    *p = -(f->df + 1) / (1 + f->df / s);
    return -0.5 * (f->df + 1) * log1p(s / f->df);
  case CROSSED_SD_exponential:
    *p = -sd / scale;
    return -sd / scale;
  case CROSSED_SD_flat:
    break;
  }
  *p = 0;
  return 0;
}

double
crossed_sd_prior(const struct crossed_factor* f, size_t effect, double log_sd) {
  double slope;
  return log_sd + log_sd_density(f, effect, log_sd, &slope);
}

double crossed_covariance_prior(const struct crossed_factor* f,
                                const double* v_lambda,
                                double* v_gradient) {
  double sum = 0;
  for (size_t a = 0; a < f->n_effect; ++a) {
    double slope;
    sum += v_lambda[a] + log_sd_density(f, a, v_lambda[a], &slope);
    if (v_gradient != NULL) {
      v_gradient[a] += 1 + slope;
    }
    for (size_t b = 0; f->is_correlated && b < a; ++b) {
      const double zeta = v_lambda[f->at[a][b]];
      const double twice = 2 * f->eta + (double)(f->n_effect - 2 - b);
      sum += twice * log_sech(zeta);
      if (v_gradient != NULL) {
        v_gradient[f->at[a][b]] -= twice * tanh(zeta);
      }
    }
  }
  return sum;
}

struct given {
  const struct crossed_factor* f;
  crossed_square sum; /* S */
  double v_lambda[CROSSED_LAMBDA];
  size_t at; /* which is at x */
};

static double log_given(const void* p_context, double x) {
  const struct given* p = p_context;
  const size_t q = p->f->n_effect;
  double v_lambda[CROSSED_LAMBDA], trace = 0;
  crossed_square precision;
  for (size_t l = 0; l < p->f->n_lambda; ++l) {
    v_lambda[l] = l == p->at ? x : p->v_lambda[l];
  }
  const double log_det = crossed_precision(p->f, v_lambda, precision);
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b < q; ++b) {
      trace += precision[a][b] * p->sum[a][b];
    }
  }
  return crossed_covariance_prior(p->f, v_lambda, NULL) -
         (double)p->f->n_level * log_det - 0.5 * trace;
}

void crossed_draw_covariance(struct crossed_chain* c, size_t factor) {
  const struct crossed_factor* f = &c->p->v_factor[factor];
  const size_t q = f->n_effect;
  const double* v_u = c->v_u + f->at_effect;
  double* v_lambda = c->v_theta + f->at_lambda;
  struct given given = {.f = f};
  for (size_t g = 0; g < f->n_level; ++g) {
    for (size_t a = 0; a < q; ++a) {
      for (size_t b = 0; b <= a; ++b) {
        given.sum[a][b] += v_u[g * q + a] * v_u[g * q + b];
      }
    }
  }
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = a + 1; b < q; ++b) {
      given.sum[a][b] = given.sum[b][a];
    }
  }
  for (size_t l = 0; l < f->n_lambda; ++l) {
    given.v_lambda[l] = v_lambda[l];
  }
  const double width = fmin(1.5, 3 / sqrt(2 * (double)f->n_level));
  for (size_t l = 0; l < f->n_lambda; ++l) {
    given.at = l;
    given.v_lambda[l] = v_lambda[l] =
        tb_slice_step(log_given, &given, v_lambda[l], width, c->p_rng);
  }
}
