/* Densities with known moments, for trying samplers on, with noise added to
 * their gradients on purpose (Mauri & Zanella 2024, AISTATS, section 4.1 and
 * appendix C). There are no rows: all of the log density is g_0.
 *
 *   z_j = (theta_j - m_j) / s_j;  a product over coordinates, of the banana
 *   over pairs of them
 *
 *   normal       log pi = -z^2 / 2
 *   skew-normal  log pi = -z^2 / 2 + log Phi(a z)    Azzalini (1985), Scand. J.
 *                                                    Statist. 12:171
 *   student      log pi = -(a + 1) / 2 log(1 + z^2 / a)
 *   mixture      log pi = log sum_k w_k N(z; mu_k, sd_k^2)
 *   banana       theta_1 ~ N(m_1, s_1^2), with u = theta_1 - m_1
 *                theta_2 | theta_1 ~ N(m_2 + a (u^2 - s_1^2), s_2^2)
 *                after Haario, Saksman & Tamminen (1999), Comput. Statist.
 *                14:375
 *
 * Every gradient gets fresh noise from the chain's own stream, coordinate by
 * coordinate: N(0, t^2), Laplace(t) with standard deviation sqrt(2) t, or
 * Cauchy(t), which has none and is reported with t. Without a stream it is the
 * exact gradient.
 *
 *   symbol       variable                 shape       owner
 *   m, 1/s, a    v_location, v_inverse,   n_dim       density
 *                v_shape
 *   t            v_noise                  n_dim       density
 *   w, mu, 1/sd  v_weight, v_mean, v_root n_component density
 */
#include "base/clip.h"
#include "base/hash.h"
#include "models/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SQRT_2PI 0.91893853320467274178
#define LOG_2        0.69314718055994530942
#define PI           3.14159265358979323846

/* coordinates whose noise is drawn at a time */
#define BLOCK 256

enum density_noise {
  NOISE_none = 0,
  NOISE_normal = 1,
  NOISE_laplace = 2,
  NOISE_cauchy = 3
};

struct density;

/* Sets the gradient, returns the log density up to its constant; forms that
 * can save time may leave that out unless it is wanted. */
typedef double (*density_terms)(const struct density* p,
                                size_t n_dim,
                                const double* v_theta,
                                bool wants_log,
                                double* v_gradient);

/* What product_terms() goes through. */
typedef double (*density_at)(const struct density* p,
                             size_t j,
                             double z,
                             double* p_slope);

struct density {
  density_terms terms;
  density_at at;
  enum density_noise noise;
  double log_constant;
  double* v_location;
  double* v_inverse;
  double* v_shape;
  double* v_noise;
  size_t n_component;
  double* v_weight; /* log(w_k / sd_k) */
  double* v_mean;
  double* v_root;
};

/* ---- forms ---- */

static double normal_terms(const struct density* p,
                           size_t n_dim,
                           const double* v_theta,
                           bool wants_log,
                           double* v_gradient) {
  double square = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    const double z = (v_theta[j] - p->v_location[j]) * p->v_inverse[j];
    v_gradient[j] = -z * p->v_inverse[j];
  }
  for (size_t j = 0; wants_log && j < n_dim; ++j) {
    const double z = (v_theta[j] - p->v_location[j]) * p->v_inverse[j];
    square += z * z;
  }
  return -0.5 * square;
}

/* phi(x) / Phi(x), and log Phi(x) in *p_log. Far in the left tail, where both
 * underflow, by the continued fraction of Laplace for Mills' ratio, with t = -x
 * t + 1 / (t + 2 / (t + ...)); 30 terms: a few ulp from t = 10 on. */
static double normal_hazard(double x, double* p_log) {
  if (x > -10) {
    const double half = 0.5 * erfc(fabs(x) * sqrt(0.5));
    const double lower = x > 0 ? 1 - half : half;
    *p_log = x > 0 ? log1p(-half) : log(half);
    return exp(-0.5 * x * x - LOG_SQRT_2PI) / lower;
  }
  double fraction = -x;
  for (int k = 30; k > 0; --k) {
    fraction = k / fraction - x;
  }
  *p_log = -0.5 * x * x - LOG_SQRT_2PI - log(fraction);
  return fraction;
}

/* Coordinate by coordinate: log density at z, and its slope there. */

static double
skew_normal_at(const struct density* p, size_t j, double z, double* p_slope) {
  const double a = p->v_shape[j];
  double log_tail;
  *p_slope = a * normal_hazard(a * z, &log_tail) - z;
  return log_tail - 0.5 * z * z;
}

static double
student_at(const struct density* p, size_t j, double z, double* p_slope) {
  const double a = p->v_shape[j];
  *p_slope = -(a + 1) * z / (a + z * z);
  return -0.5 * (a + 1) * log1p(z * z / a);
}

/* The largest component is taken out first: far from all of them the others
 * underflow, and it alone decides. */
static double
mixture_at(const struct density* p, size_t j, double z, double* p_slope) {
  double most = -INFINITY, total = 0, slope = 0;
  (void)j;
  for (size_t k = 0; k < p->n_component; ++k) {
    const double u = (z - p->v_mean[k]) * p->v_root[k];
    most = fmax(most, p->v_weight[k] - 0.5 * u * u);
  }
  for (size_t k = 0; k < p->n_component; ++k) {
    const double u = (z - p->v_mean[k]) * p->v_root[k];
    const double share = exp(p->v_weight[k] - 0.5 * u * u - most);
    total += share;
    slope -= share * u * p->v_root[k];
  }
  *p_slope = slope / total;
  return most + log(total);
}

static double product_terms(const struct density* p,
                            size_t n_dim,
                            const double* v_theta,
                            bool wants_log,
                            double* v_gradient) {
  (void)wants_log;
  double sum = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    const double z = (v_theta[j] - p->v_location[j]) * p->v_inverse[j];
    double slope;
    sum += p->at(p, j, z, &slope);
    v_gradient[j] = slope * p->v_inverse[j];
  }
  return sum;
}

static double banana_terms(const struct density* p,
                           size_t n_dim,
                           const double* v_theta,
                           bool wants_log,
                           double* v_gradient) {
  (void)wants_log;
  double square = 0;
  for (size_t j = 0; j + 1 < n_dim; j += 2) {
    const double inverse = p->v_inverse[j], root = p->v_inverse[j + 1];
    const double a = p->v_shape[j];
    const double u = v_theta[j] - p->v_location[j], z = u * inverse;
    const double bend = a * (u * u - 1 / (inverse * inverse));
    const double e = (v_theta[j + 1] - p->v_location[j + 1] - bend) * root;
    v_gradient[j] = 2 * a * u * e * root - z * inverse;
    v_gradient[j + 1] = -e * root;
    square += z * z + e * e;
  }
  return -0.5 * square;
}

/* ---- noise ---- */

/* v_out: n numbers of the law at scale 1 */
static void noise_fill(enum density_noise law,
                       struct tb_rng* p_rng,
                       size_t n,
                       double* v_out) {
  if (law == NOISE_normal) {
    tb_rng_fill_norm(p_rng, v_out, n);
    return;
  }
  for (size_t k = 0; k < n; ++k) {
    const double u = 2 * tb_rng_unif(p_rng) - 1; /* on (-1, 1), never 0 */
    v_out[k] = law == NOISE_laplace ? -copysign(log1p(-fabs(u)), -u)
                                    : tan(0.5 * PI * u);
  }
}

static void noise_add(const struct density* p,
                      struct tb_rng* p_rng,
                      size_t n_dim,
                      double* v_gradient) {
  double v_block[BLOCK];
  for (size_t start = 0; start < n_dim; start += BLOCK) {
    const size_t n = tb_min(BLOCK, n_dim - start);
    noise_fill(p->noise, p_rng, n, v_block);
    for (size_t k = 0; k < n; ++k) {
      v_gradient[start + k] += p->v_noise[start + k] * v_block[k];
    }
  }
}

static void density_noise_variance(const struct tb_model* p_model,
                                   double* v_variance) {
  const struct density* p = p_model->p_self;
  const double factor = p->noise == NOISE_none      ? 0
                        : p->noise == NOISE_laplace ? 2
                                                    : 1;
  for (size_t j = 0; j < p_model->n_dim; ++j) {
    v_variance[j] = factor * p->v_noise[j] * p->v_noise[j];
  }
}

/* ---- slots ---- */

static enum tb_status density_prior(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_prior) {
  const struct density* p = p_model->p_self;
  const double log_density =
      p->terms(p, p_model->n_dim, v_theta, p_log_prior != NULL, v_gradient);
  if (p_log_prior != NULL) {
    *p_log_prior += p->log_constant + log_density;
  }
  if (p->noise != NOISE_none && p_work->p_rng != NULL) {
    noise_add(p, p_work->p_rng, p_model->n_dim, v_gradient);
  }
  return TB_STATUS_ok;
}

static size_t density_memory(const struct tb_model* p_model) {
  const struct density* p = p_model->p_self;
  return (4 * p_model->n_dim + 3 * p->n_component) * sizeof(double);
}

static void density_destroy(struct tb_model* p_model) {
  struct density* p = p_model->p_self;
  if (p != NULL) {
    free(p->v_location);
    free(p);
    p_model->p_self = NULL;
  }
}

static bool all_positive(const double* v, size_t n) {
  bool ok = true;
  for (size_t i = 0; i < n; ++i) {
    ok = ok && v[i] > 0;
  }
  return ok;
}

/* The parameters of these names, all of one length; 0 if they are not. */
static size_t find_equals(const struct tb_params* p_params,
                          const char* const* v_name,
                          size_t n_name,
                          const struct tb_param** v_param) {
  for (size_t k = 0; k < n_name; ++k) {
    v_param[k] = tb_params_find(p_params, v_name[k]);
    if (v_param[k] == NULL || v_param[k]->n_value != v_param[0]->n_value) {
      return 0;
    }
  }
  return v_param[0]->n_value;
}

/* What makes exp(terms()) integrate to one. */
static double log_constant(const struct density* p, size_t n_dim) {
  double sum = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    const double a = p->v_shape[j];
    sum += log(p->v_inverse[j]);
    if (p->at == student_at) {
      sum += lgamma(0.5 * (a + 1)) - lgamma(0.5 * a) - 0.5 * log(a * PI);
    } else {
      sum -= LOG_SQRT_2PI;
    }
    if (p->at == skew_normal_at) {
      sum += LOG_2;
    }
  }
  return sum;
}

enum { n_vector = 4, n_part = 3 };

/* One allocation for all vectors. */
static struct density* density_alloc(size_t n_dim, size_t n_component) {
  struct density* p = calloc(1, sizeof(*p));
  double* v = calloc(n_vector * n_dim + n_part * n_component, sizeof(double));
  if (p == NULL || v == NULL) {
    free(p);
    free(v);
    return NULL;
  }
  p->v_location = v;
  p->v_inverse = p->v_location + n_dim;
  p->v_shape = p->v_inverse + n_dim;
  p->v_noise = p->v_shape + n_dim;
  p->n_component = n_component;
  p->v_weight = p->v_noise + n_dim;
  p->v_mean = p->v_weight + n_component;
  p->v_root = p->v_mean + n_component;
  return p;
}

/* Parameters: "form" (index of v_form), "location", "scale", "shape",
 * "noise_scale" (n_dim each), "noise" (enum density_noise), and for the mixture
 * "weights", "means", "sds" (n_component each). */
static enum tb_status density_create(struct tb_model* p_model,
                                     const struct tb_params* p_params,
                                     const struct tb_shelf* p_shelf) {
  (void)p_shelf;
  static const struct {
    density_terms terms;
    density_at at;
  } v_form[] = {{normal_terms, NULL},
                {product_terms, skew_normal_at},
                {product_terms, student_at},
                {product_terms, mixture_at},
                {banana_terms, NULL}};
  const size_t n_form = sizeof(v_form) / sizeof(v_form[0]);
  static const char* const v_name[n_vector] = {"location",
                                               "scale",
                                               "shape",
                                               "noise_scale"};
  static const char* const v_part[n_part] = {"weights", "means", "sds"};
  const struct tb_param *v_vector[n_vector], *v_parts[n_part];
  const double form = tb_params_number(p_params, "form", -1);
  const double noise = tb_params_number(p_params, "noise", NOISE_none);
  const size_t n_dim = find_equals(p_params, v_name, n_vector, v_vector);

  if (n_dim == 0 || !(form >= 0 && form < (double)n_form) ||
      !(noise >= NOISE_none && noise <= NOISE_cauchy) ||
      !all_positive(v_vector[1]->v_value, n_dim)) {
    return TB_STATUS_argument;
  }
  const density_terms terms = v_form[(size_t)form].terms;
  const density_at at = v_form[(size_t)form].at;
  const bool is_mixture = at == mixture_at;
  const size_t n_component =
      is_mixture ? find_equals(p_params, v_part, n_part, v_parts) : 0;
  if ((terms == banana_terms && n_dim % 2 != 0) ||
      (is_mixture &&
       (n_component == 0 || !all_positive(v_parts[0]->v_value, n_component) ||
        !all_positive(v_parts[2]->v_value, n_component)))) {
    return TB_STATUS_argument;
  }
  struct density* p = density_alloc(n_dim, n_component);
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->n_data = 0;
  p_model->n_dim = n_dim;
  p_model->n_natural = n_dim;
  p_model->p_frame = NULL;
  p->terms = terms;
  p->at = at;
  p->noise = (enum density_noise)noise;

  uint64_t hash = tb_hash_doubles((uint64_t)form, &noise, 1);
  for (size_t k = 0; k < n_vector; ++k) {
    memcpy(p->v_location + k * n_dim,
           v_vector[k]->v_value,
           n_dim * sizeof(double));
    hash = tb_hash_doubles(hash, v_vector[k]->v_value, n_dim);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    p->v_inverse[j] = 1 / p->v_inverse[j];
  }
  for (size_t k = 0; k < n_component; ++k) {
    p->v_mean[k] = v_parts[1]->v_value[k];
    p->v_root[k] = 1 / v_parts[2]->v_value[k];
    p->v_weight[k] = log(v_parts[0]->v_value[k] * p->v_root[k]);
  }
  for (size_t k = 0; is_mixture && k < n_part; ++k) {
    hash = tb_hash_doubles(hash, v_parts[k]->v_value, n_component);
  }
  p_model->fingerprint = hash;
  p->log_constant = log_constant(p, n_dim);
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_density = {
    .name = "density",
    .citation = "Mauri & Zanella (2024), AISTATS, section 4.1 and appendix C",
    .flags = TB_MODEL_NOISY | TB_MODEL_RANDOM,
    .create = density_create,
    .destroy = density_destroy,
    .prior = density_prior,
    .gradient = tb_model_no_rows,
    .noise_variance = density_noise_variance,
    .memory = density_memory,
};
