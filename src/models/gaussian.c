/* Mean of a normal with known covariance, conjugate: every posterior quantity
 * has a closed form, which is what this model is for.
 *
 *   x_i | theta ~ N(theta, S),  theta ~ N(m_0, L_0),  P = S^{-1}
 *   g_i = P (x_i - theta),  H_i = -P,  g_0 = -L_0^{-1} (theta - m_0)
 *
 * Putcha, Nemeth & Fearnhead (2023), appendix C.1. The rows are stored as
 * z_i = P (x_i - xbar), so that g_i = z_i - P (theta - xbar) costs one row.
 *
 *   symbol       variable     shape             owner
 *   z_i          store        n_data x n_dim    gaussian
 *   P, L_0^{-1}  v_precision, n_dim x n_dim     gaussian
 *                v_prior
 *   m_0, xbar    v_location,  n_dim             gaussian
 *                v_center
 *   (x_i-xbar)^T P (x_i-xbar)  v_square  n_data  gaussian
 */
#include "base/clip.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gaussian {
  struct tb_store store;
  double* v_precision;
  double* v_prior;
  double* v_location;
  double* v_center;
  double* v_square;
  double log_det;                /* of P */
  double largest, largest_prior; /* eigenvalues of P and of L_0^{-1} */
};

#define BLOCK TB_STORE_BLOCK

/* v_out = A v for a symmetric A */
static void
multiply(size_t n, const double* v_a, const double* v, double* v_out) {
  for (size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) {
      sum += v_a[i * n + j] * v[j];
    }
    v_out[i] = sum;
  }
}

static size_t gaussian_workspace_size(const struct tb_model* p_model,
                                      size_t n_batch) {
  const struct gaussian* p = p_model->p_self;
  (void)n_batch;
  return 4 * p->store.n_padded * sizeof(double);
}

static enum tb_status gaussian_prior(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     double* v_gradient,
                                     double* p_log_prior) {
  const struct gaussian* p = p_model->p_self;
  const size_t n = p_model->n_dim;
  double* v_shift = p_work->p_scratch;
  for (size_t j = 0; j < n; ++j) {
    v_shift[j] = p->v_location[j] - v_theta[j];
  }
  multiply(n, p->v_prior, v_shift, v_gradient);
  for (size_t j = 0; p_log_prior != NULL && j < n; ++j) {
    *p_log_prior -= 0.5 * v_shift[j] * v_gradient[j];
  }
  return TB_STATUS_ok;
}

/* log p(x_i | theta), given t = theta - xbar and m = P t:
 * -(k_i - 2 z_i^T t + t^T m) / 2 */
static void log_lik_rows(const struct gaussian* p,
                         const struct tb_batch* p_batch,
                         size_t first,
                         const double* v_shift,
                         double quadratic,
                         double* v_out) {
  const struct tb_rows rows = tb_batch_block(p_batch, first);
  p->store.type->dot(&p->store, &rows, v_shift, v_out);
  for (size_t k = 0; k < rows.n_row; ++k) {
    const double square = p->v_square[tb_batch_row(p_batch, first + k)];
    v_out[k] = v_out[k] - 0.5 * (square + quadratic);
  }
}

/* *p_sum += sum of c_i log p(x_i | theta); v_mean: P v_shift */
static void add_log_lik(const struct gaussian* p,
                        const struct tb_batch* p_batch,
                        size_t n,
                        const double* v_shift,
                        const double* v_mean,
                        double* p_sum) {
  double quadratic = 0;
  for (size_t j = 0; j < n; ++j) {
    quadratic += v_shift[j] * v_mean[j];
  }
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    double v_log_lik[BLOCK];
    log_lik_rows(p, p_batch, b, v_shift, quadratic, v_log_lik);
    for (size_t k = 0; k < tb_min(BLOCK, p_batch->n_batch - b); ++k) {
      *p_sum += tb_batch_weight(p_batch, b + k) * v_log_lik[k];
    }
  }
}

/* g_i(theta) - g_i(reference) = P (reference - theta), whatever the row; v_step
 * and v_mean are scratch */
static void add_step(const struct gaussian* p,
                     size_t n,
                     const double* v_theta,
                     const double* v_reference,
                     double weight,
                     double weight2,
                     double* v_step,
                     double* v_mean,
                     const struct tb_sums* p_sums) {
  for (size_t j = 0; j < n; ++j) {
    v_step[j] = v_reference[j] - v_theta[j];
  }
  multiply(n, p->v_precision, v_step, v_mean);
  for (size_t j = 0; j < n; ++j) {
    if (p_sums->v_gradient != NULL) {
      p_sums->v_gradient[j] += weight * v_mean[j];
    }
    if (p_sums->v_square != NULL) {
      p_sums->v_square[j] += weight2 * v_mean[j] * v_mean[j];
    }
  }
}

static enum tb_status gaussian_gradient(const struct tb_model* p_model,
                                        const struct tb_workspace* p_work,
                                        const double* v_theta,
                                        const struct tb_batch* p_batch,
                                        const struct tb_reference* p_reference,
                                        const struct tb_sums* p_sums) {
  const struct gaussian* p = p_model->p_self;
  const size_t n = p_model->n_dim, n_padded = p->store.n_padded;
  double* v_shift = p_work->p_scratch;
  double* v_mean = v_shift + n_padded;
  double* v_sum = v_mean + n_padded;
  double* v_square = v_sum + n_padded;
  double weight = 0, weight2 = 0;

  memset(v_shift, 0, 4 * n_padded * sizeof(double));
  for (size_t j = 0; j < n; ++j) {
    v_shift[j] = v_theta[j] - p->v_center[j];
  }
  multiply(n, p->v_precision, v_shift, v_mean);

  if (p_sums->p_log_lik != NULL) {
    add_log_lik(p, p_batch, n, v_shift, v_mean, p_sums->p_log_lik);
  }
  if (p_sums->v_gradient == NULL && p_sums->v_square == NULL) {
    return TB_STATUS_ok;
  }

  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const double c = tb_batch_weight(p_batch, k);
    weight += c;
    weight2 += c * c;
  }
  if (p_reference != NULL) {
    add_step(p,
             n,
             v_theta,
             p_reference->v_theta,
             weight,
             weight2,
             v_sum,
             v_mean,
             p_sums);
    return TB_STATUS_ok;
  }

  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_u[BLOCK];
    for (size_t k = 0; k < rows.n_row; ++k) {
      v_u[k] = tb_batch_weight(p_batch, b + k);
    }
    p->store.type->add_square(&p->store, &rows, v_u, v_sum, v_square);
  }
  for (size_t j = 0; p_sums->v_gradient != NULL && j < n; ++j) {
    p_sums->v_gradient[j] += v_sum[j] - weight * v_mean[j];
  }
  if (p_sums->v_square != NULL) {
    /* sum c^2 (z - m)^2 = sum c^2 z^2 - 2 m sum c^2 z + m^2 sum c^2 */
    memset(v_sum, 0, n_padded * sizeof(double));
    for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
      const struct tb_rows rows = tb_batch_block(p_batch, b);
      double v_u[BLOCK];
      for (size_t k = 0; k < rows.n_row; ++k) {
        const double c = tb_batch_weight(p_batch, b + k);
        v_u[k] = c * c;
      }
      p->store.type->add(&p->store, &rows, v_u, v_sum);
    }
    for (size_t j = 0; j < n; ++j) {
      p_sums->v_square[j] += v_square[j] - 2 * v_mean[j] * v_sum[j] +
                             weight2 * v_mean[j] * v_mean[j];
    }
  }
  return TB_STATUS_ok;
}

/* g_i = z_i - m, m = P (theta - xbar); against a reference P (reference -
 * theta), whatever the row */
static enum tb_status
gaussian_square_norms(const struct tb_model* p_model,
                      const struct tb_workspace* p_work,
                      const double* v_theta,
                      const struct tb_batch* p_batch,
                      const struct tb_reference* p_reference,
                      double* v_square,
                      double* v_sum) {
  const struct gaussian* p = p_model->p_self;
  const size_t n = p_model->n_dim, n_padded = p->store.n_padded;
  double* v_shift = p_work->p_scratch;
  double* v_mean = v_shift + n_padded;
  double* v_row = v_mean + n_padded;
  const double* v_from =
      p_reference == NULL ? p->v_center : p_reference->v_theta;
  for (size_t j = 0; j < n; ++j) {
    v_shift[j] = v_theta[j] - v_from[j];
  }
  multiply(n, p->v_precision, v_shift, v_mean);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const double* v_z = p_reference != NULL
                            ? NULL
                            : p->store.type->block(&p->store,
                                                   tb_batch_row(p_batch, k),
                                                   1,
                                                   v_row);
    double square = 0;
    for (size_t j = 0; j < n; ++j) {
      const double a = (v_z == NULL ? 0 : v_z[j]) - v_mean[j];
      square += a * a;
      if (v_sum != NULL) {
        v_sum[j] += a;
      }
    }
    v_square[k] = square;
  }
  return TB_STATUS_ok;
}

static enum tb_status gaussian_log_lik(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       double* v_out) {
  const struct gaussian* p = p_model->p_self;
  const size_t n = p_model->n_dim, n_padded = p->store.n_padded;
  double* v_shift = p_work->p_scratch;
  double* v_mean = v_shift + n_padded;
  double quadratic = 0;
  memset(v_shift, 0, n_padded * sizeof(double));
  for (size_t j = 0; j < n; ++j) {
    v_shift[j] = v_theta[j] - p->v_center[j];
  }
  multiply(n, p->v_precision, v_shift, v_mean);
  for (size_t j = 0; j < n; ++j) {
    quadratic += v_shift[j] * v_mean[j];
  }
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    log_lik_rows(p, p_batch, b, v_shift, quadratic, v_out + b);
    for (size_t k = 0; k < tb_min(BLOCK, p_batch->n_batch - b); ++k) {
      v_out[b + k] += 0.5 * p->log_det - 0.91893853320467274178 * (double)n;
    }
  }
  return TB_STATUS_ok;
}

static enum tb_status gaussian_curvature(const struct tb_model* p_model,
                                         const struct tb_workspace* p_work,
                                         const double* v_theta,
                                         const struct tb_batch* p_batch,
                                         const struct tb_curvature* p_sums) {
  const struct tb_sums sums = {.v_gradient = p_sums->v_gradient,
                               .p_log_lik = p_sums->p_log_lik};
  return gaussian_gradient(p_model, p_work, v_theta, p_batch, NULL, &sums);
}

/* -H_i = P, whatever the row */
static void gaussian_curvature_prior(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const double* v_round,
                                     double weight,
                                     const struct tb_curvature* p_sums) {
  const struct gaussian* p = p_model->p_self;
  const size_t n = p_model->n_dim;
  double* v_prior = (double*)p_work->p_scratch + p->store.n_padded;
  (void)v_round;
  gaussian_prior(p_model, p_work, v_theta, v_prior, p_sums->p_log_lik);
  for (size_t j = 0; j < n; ++j) {
    p_sums->v_gradient[j] += v_prior[j];
  }
  for (size_t k = 0; k < n * n; ++k) {
    p_sums->v_hessian[k] += weight * p->v_precision[k] + p->v_prior[k];
  }
}

/* H_i = -P for every row, whatever theta: weights by it are uniform, and there
 * is no third derivative */
static enum tb_status gaussian_weights(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       enum tb_weight_type type,
                                       const double* v_theta,
                                       const double* v_chol,
                                       const struct tb_batch* p_batch,
                                       double* v_out) {
  const struct gaussian* p = p_model->p_self;
  (void)v_chol;
  if (type != TB_WEIGHT_gradient) {
    for (size_t k = 0; k < p_batch->n_batch; ++k) {
      v_out[k] = type == TB_WEIGHT_lipschitz ? p->largest
                 : type == TB_WEIGHT_cubic   ? 0
                                             : 1;
    }
    return TB_STATUS_ok;
  }
  gaussian_square_norms(p_model, p_work, v_theta, p_batch, NULL, v_out, NULL);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    v_out[k] = sqrt(v_out[k]);
  }
  return TB_STATUS_ok;
}

static double gaussian_lipschitz_prior(const struct tb_model* p_model) {
  const struct gaussian* p = p_model->p_self;
  return p->largest_prior;
}

static size_t gaussian_memory(const struct tb_model* p_model) {
  const struct gaussian* p = p_model->p_self;
  return p->store.type->memory(&p->store) + p_model->n_data * sizeof(double);
}

static void gaussian_destroy(struct tb_model* p_model) {
  struct gaussian* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_store_destroy(&p->store);
  tb_big_free(p->v_square, p_model->n_data * sizeof(double));
  free(p->v_precision);
  free(p);
  p_model->p_self = NULL;
}

/* Rewrite x_i as z_i = P (x_i - center), with its square form in v_square;
 * v_row, v_z: n and n_padded doubles, zero at first */
static void gaussian_fill(struct gaussian* p, double* v_row, double* v_z) {
  struct tb_store* p_store = &p->store;
  const size_t n_data = p_store->n_row, n = p_store->n_col;
  for (size_t i = 0; i < n_data; ++i) {
    p_store->type->gather(p_store, NULL, i, 1, n, v_row);
    for (size_t j = 0; j < n; ++j) {
      p->v_center[j] += v_row[j];
    }
  }
  for (size_t j = 0; j < n; ++j) {
    p->v_center[j] /= (double)n_data;
  }
  for (size_t i = 0; i < n_data; ++i) {
    double square = 0;
    p_store->type->gather(p_store, NULL, i, 1, n, v_row);
    for (size_t j = 0; j < n; ++j) {
      v_row[j] -= p->v_center[j];
    }
    multiply(n, p->v_precision, v_row, v_z);
    for (size_t j = 0; j < n; ++j) {
      square += v_row[j] * v_z[j];
    }
    p->v_square[i] = square;
    (void)tb_store_write(p_store, i, 1, v_z); /* it is writable */
  }
}

/* Parameters: "x" (n_data x n_dim), "precision", "prior_precision" (n_dim x
 * n_dim), "prior_mean" (n_dim), "log_det", "largest", "largest_prior" (numbers,
 * from R's eigenvalues). */
static enum tb_status gaussian_create(struct tb_model* p_model,
                                      const struct tb_params* p_params,
                                      const struct tb_shelf* p_shelf) {
  const struct tb_param* p_x = tb_params_find(p_params, "x");
  const struct tb_param* p_precision = tb_params_find(p_params, "precision");
  const struct tb_param* p_prior = tb_params_find(p_params, "prior_precision");
  const struct tb_param* p_mean = tb_params_find(p_params, "prior_mean");
  if (p_x == NULL || p_precision == NULL || p_prior == NULL || p_mean == NULL ||
      p_x->n_row == 0) {
    return TB_STATUS_argument;
  }
  const size_t n_data = p_x->n_row, n = p_x->n_value / n_data;
  if (p_precision->n_value != n * n || p_prior->n_value != n * n ||
      p_mean->n_value != n) {
    return TB_STATUS_argument;
  }
  struct gaussian* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->n_data = n_data;
  p_model->n_dim = n;
  p_model->n_natural = n;
  p_model->p_frame = NULL;
  p->log_det = tb_params_number(p_params, "log_det", 0);
  p->largest = tb_params_number(p_params, "largest", NAN);
  p->largest_prior = tb_params_number(p_params, "largest_prior", NAN);

  enum tb_status status = tb_shelf_take(p_shelf, p_x, 0, &p->store);
  if (status == TB_STATUS_ok && !p->store.is_writable) {
    status = TB_STATUS_unsupported; /* it keeps other rows than it is given */
  }
  p->v_precision =
      calloc(2 * n * n + 3 * n + p->store.n_padded, sizeof(double));
  p->v_square = tb_big_alloc(n_data * sizeof(double));
  if (status != TB_STATUS_ok || p->v_precision == NULL || p->v_square == NULL) {
    gaussian_destroy(p_model);
    return status == TB_STATUS_ok ? TB_STATUS_memory : status;
  }
  p->v_prior = p->v_precision + n * n;
  p->v_location = p->v_prior + n * n;
  p->v_center = p->v_location + n;
  double* v_row = p->v_center + n;
  double* v_z = v_row + n;
  memcpy(p->v_precision, p_precision->v_value, n * n * sizeof(double));
  memcpy(p->v_prior, p_prior->v_value, n * n * sizeof(double));
  memcpy(p->v_location, p_mean->v_value, n * sizeof(double));
  gaussian_fill(p, v_row, v_z);
  uint64_t hash = tb_hash_word((uint64_t)n_data, p->store.hash);
  hash = tb_hash_param(hash, p_precision);
  hash = tb_hash_param(hash, p_prior);
  p_model->fingerprint = tb_hash_param(hash, p_mean);
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_gaussian = {
    .name = "gaussian",
    .citation = "Putcha, Nemeth & Fearnhead (2023), appendix C.1",
    .create = gaussian_create,
    .destroy = gaussian_destroy,
    .prior = gaussian_prior,
    .gradient = gaussian_gradient,
    .workspace_size = gaussian_workspace_size,
    .log_lik = gaussian_log_lik,
    .square_norms = gaussian_square_norms,
    .curvature = gaussian_curvature,
    .curvature_prior = gaussian_curvature_prior,
    .weights = gaussian_weights,
    .lipschitz_prior = gaussian_lipschitz_prior,
    .memory = gaussian_memory,
};
