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
#include "models/blocks.h"

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

/* ------------------------------------------------------------------- blocks */

/* a chain's scratch, its vectors behind it, n_padded each */
struct gaussian_pass {
  double* v_shift;  /* t = theta - xbar */
  double* v_mean;   /* m = P t */
  double* v_step;   /* P (theta - reference) */
  double* v_sum;    /* sum c_i z_i */
  double* v_cross;  /* sum c_i^2 z_i */
  double* v_square; /* sum (c_i z_ij)^2 */
  double quadratic; /* t^T P t */
  double weight;    /* sum c_i */
  double weight2;   /* sum c_i^2 */
};

enum { PASS_vectors = 6 };

static struct tb_block_shape gaussian_shape(const struct tb_model* p_model) {
  const struct gaussian* p = p_model->p_self;
  return (struct tb_block_shape){
      .n_row = tb_block_most(&p->store),
      .n_own = tb_align(sizeof(struct gaussian_pass)) +
               PASS_vectors * p->store.n_padded * sizeof(double)};
}

static void gaussian_begin(const struct tb_model* p_model,
                           const struct tb_block* p_block) {
  const struct gaussian* p = p_model->p_self;
  const size_t n = p->store.n_padded;
  double* v = (double*)(void*)((char*)p_block->p_own +
                               tb_align(sizeof(struct gaussian_pass)));
  memset(v, 0, PASS_vectors * n * sizeof(double));
  *(struct gaussian_pass*)p_block->p_own =
      (struct gaussian_pass){.v_shift = v,
                             .v_mean = v + n,
                             .v_step = v + 2 * n,
                             .v_sum = v + 3 * n,
                             .v_cross = v + 4 * n,
                             .v_square = v + 5 * n};
}

/* Against a reference the difference is P (reference - theta), whatever the
 * row. */
static void gaussian_go(const struct tb_model* p_model,
                        const struct tb_block* p_block,
                        enum tb_block_place place) {
  const struct gaussian* p = p_model->p_self;
  struct gaussian_pass* p_own = p_block->p_own;
  const size_t n = p_model->n_dim;
  const bool is_here = place == TB_PLACE_here;
  const double* v_here = p_block->v_theta[TB_PLACE_here];
  const double* v_from = is_here ? p->v_center : p_block->v_theta[place];
  double* v_shift = is_here ? p_own->v_shift : p_own->v_cross;
  double* v_out = is_here ? p_own->v_mean : p_own->v_step;
  double quadratic = 0;
  for (size_t j = 0; j < n; ++j) {
    v_shift[j] = v_here[j] - v_from[j];
  }
  multiply(n, p->v_precision, v_shift, v_out);
  for (size_t j = 0; is_here && j < n; ++j) {
    quadratic += v_shift[j] * v_out[j];
  }
  if (is_here) {
    p_own->quadratic = quadratic;
  }
}

static void gaussian_fetch(const struct tb_model* p_model,
                           const struct tb_block* p_block) {
  const struct gaussian* p = p_model->p_self;
  tb_block_fetch(p_block, &p->store);
}

/* log p(x_i | theta) = -(k_i - 2 z_i^T t + t^T m) / 2, and constants */
static void gaussian_look(const struct tb_model* p_model,
                          const struct tb_block* p_block,
                          enum tb_block_place place,
                          const struct tb_block_look* p_look) {
  const struct gaussian* p = p_model->p_self;
  const struct gaussian_pass* p_own = p_block->p_own;
  double* v_out = p_look->v_log_lik;
  if (v_out == NULL || place != TB_PLACE_here) {
    return;
  }
  for (size_t b = 0; b < p_block->n_row; b += BLOCK) {
    const struct tb_rows rows = tb_block_part(p_block, b);
    p->store.type->dot(&p->store, &rows, p_own->v_shift, v_out + b);
  }
  for (size_t k = 0; k < p_block->n_row; ++k) {
    const double square = p->v_square[tb_block_row(p_block, k)];
    v_out[k] = v_out[k] - 0.5 * (square + p_own->quadratic);
  }
  for (size_t k = 0; p_block->is_complete && k < p_block->n_row; ++k) {
    v_out[k] +=
        0.5 * p->log_det - 0.91893853320467274178 * (double)p->store.n_col;
  }
}

static bool has_reference(const struct tb_block* p_block) {
  return p_block->v_theta[TB_PLACE_reference] != NULL;
}

/* a_i = z_i - m, or minus the step */
static void gaussian_squares(const struct tb_model* p_model,
                             const struct tb_block* p_block,
                             double* v_square) {
  const struct gaussian* p = p_model->p_self;
  const struct gaussian_pass* p_own = p_block->p_own;
  const bool has_other = has_reference(p_block);
  const double* v_mean = has_other ? p_own->v_step : p_own->v_mean;
  for (size_t k = 0; k < p_block->n_row; ++k) {
    const double* v_z = has_other
                            ? NULL
                            : p->store.type->block(&p->store,
                                                   tb_block_row(p_block, k),
                                                   1,
                                                   p_own->v_cross);
    v_square[k] = 0;
    for (size_t j = 0; j < p_model->n_dim; ++j) {
      const double a = (v_z == NULL ? 0 : v_z[j]) - v_mean[j];
      v_square[k] += a * a;
    }
  }
}

static void gaussian_add(const struct tb_model* p_model,
                         const struct tb_block* p_block,
                         const struct tb_sums* p_sums) {
  const struct gaussian* p = p_model->p_self;
  struct gaussian_pass* p_own = p_block->p_own;
  const double* v_c = p_block->v_weight;
  const bool wants_square = p_sums->v_square != NULL;
  double v_c2[TB_BLOCK_ROWS];
  for (size_t k = 0; k < p_block->n_row; ++k) {
    p_own->weight += v_c[k];
  }
  for (size_t k = 0; wants_square && k < p_block->n_row; ++k) {
    v_c2[k] = v_c[k] * v_c[k];
    p_own->weight2 += v_c2[k];
  }
  if (has_reference(p_block)) {
    return;
  }
  for (size_t b = 0; b < p_block->n_row; b += BLOCK) {
    const struct tb_rows rows = tb_block_part(p_block, b);
    p->store.type->add_square(&p->store,
                              &rows,
                              v_c + b,
                              p_own->v_sum,
                              p_own->v_square);
    if (wants_square) {
      p->store.type->add(&p->store, &rows, v_c2 + b, p_own->v_cross);
    }
  }
}

static void gaussian_end(const struct tb_model* p_model,
                         const struct tb_block* p_block,
                         const struct tb_sums* p_sums) {
  const struct gaussian_pass* p = p_block->p_own;
  const double weight = p->weight, weight2 = p->weight2;
  const bool has_other = has_reference(p_block);
  for (size_t j = 0; p_sums->v_gradient != NULL && j < p_model->n_dim; ++j) {
    p_sums->v_gradient[j] += has_other ? weight * -p->v_step[j]
                                       : p->v_sum[j] - weight * p->v_mean[j];
  }
  /* sum c^2 (z - m)^2 = sum c^2 z^2 - 2 m sum c^2 z + m^2 sum c^2 */
  for (size_t j = 0; p_sums->v_square != NULL && j < p_model->n_dim; ++j) {
    const double m = has_other ? p->v_step[j] : p->v_mean[j];
    const double of_rows =
        has_other ? 0 : p->v_square[j] - 2 * m * p->v_cross[j];
    p_sums->v_square[j] += of_rows + weight2 * m * m;
  }
}

static const struct tb_model_blocks gaussian_blocks = {
    .shape = gaussian_shape,
    .begin = gaussian_begin,
    .go = gaussian_go,
    .load = gaussian_fetch,
    .look = gaussian_look,
    .square = gaussian_squares,
    .add = gaussian_add,
    .end = gaussian_end,
};

/* ------------------------------------------------------------------ passes */

static enum tb_status gaussian_curvature(const struct tb_model* p_model,
                                         const struct tb_workspace* p_work,
                                         const double* v_theta,
                                         const struct tb_batch* p_batch,
                                         const struct tb_curvature* p_sums) {
  const struct tb_sums sums = {.v_gradient = p_sums->v_gradient,
                               .p_log_lik = p_sums->p_log_lik};
  return tb_blocks_gradient(p_model, p_work, v_theta, p_batch, NULL, &sums);
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
  tb_blocks_square_norms(p_model, p_work, v_theta, p_batch, NULL, v_out, NULL);
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
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .blocks = &gaussian_blocks,
    .curvature = gaussian_curvature,
    .curvature_prior = gaussian_curvature_prior,
    .weights = gaussian_weights,
    .lipschitz_prior = gaussian_lipschitz_prior,
    .memory = gaussian_memory,
};
