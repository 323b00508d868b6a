/* Independent components: a square unmixing matrix W, sources of the logistic
 * law (Mauri & Zanella 2024, section 4.4; Welling & Teh 2011, section 5.3):
 *
 *   p(x | W) = |det W| prod_k 1 / (4 cosh^2(w_k^T x / 2)),  W_kj ~ N(0, s^2)
 *   g_i = r_i x_i^T,  r_ik = -tanh(w_k^T x_i / 2)
 *   g_0 = N W^{-T} - W / s^2     (the determinant needs no data)
 *
 * theta is W, column by column: one gemm of a block of rows for W x, one for r
 * x^T, and one of their squares for the second moments.
 *
 * The posterior does not change when rows of W are swapped or change sign. With
 * a reference R, variables are those of W aligned with it: C = W R^{-1}, its
 * rows scaled to length one; each row of W takes the place of its largest
 * |C_kj|, the largest of all first where two compete, and the sign of C_kj.
 *
 *   symbol   variable     shape               owner
 *   x_i      store        n_data x n_source   ica
 *   1/s^2    precision                        ica
 *   R^{-1}   v_aligns     n_source^2          ica, NULL without a reference
 *   x block  v_x          n_source x BLOCK    scratch, column-major
 *   r        v_r          n_source x BLOCK    scratch
 *   W^{-1}   v_inverse    n_source^2          scratch
 */
#include "base/blas.h"
#include "base/clip.h"
#include "base/clones.h"
#include "base/hash.h"
#include "base/lapack.h"
#include "base/vmath.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ica {
  struct tb_store store;
  size_t n_source;
  double precision;
  double* v_aligns;
};

/* rows at a time: x, r and their squares stay in the second cache */
#define BLOCK 256

/* the pieces of a chain's scratch */
struct scratch {
  double* v_x;       /* n_source x BLOCK */
  double* v_r;       /* n_source x BLOCK */
  double* v_other;   /* n_source x BLOCK: weighted or squared rows */
  double* v_inverse; /* n_source x n_source */
  double* v_block;   /* n_source x n_source */
  double* v_work;    /* n_source */
  int* v_pivot;      /* n_source */
  double* p_log_det;
};

static size_t scratch_size(size_t n) {
  return (3 * n * BLOCK + 2 * n * n + 2 * n + 1) * sizeof(double);
}

static struct scratch scratch_at(void* p, size_t n) {
  struct scratch s;
  s.v_x = p;
  s.v_r = s.v_x + n * BLOCK;
  s.v_other = s.v_r + n * BLOCK;
  s.v_inverse = s.v_other + n * BLOCK;
  s.v_block = s.v_inverse + n * n;
  s.p_log_det = s.v_block + n * n;
  s.v_work = s.p_log_det + 1;
  s.v_pivot = (int*)(void*)(s.v_work + n);
  return s;
}

static enum tb_status ica_prior(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                double* v_gradient,
                                double* p_log_prior) {
  const struct ica* p = p_model->p_self;
  const size_t n = p->n_source;
  const struct scratch s = scratch_at(p_work->p_scratch, n);
  const double n_data = (double)p_model->n_data;
  double log_det;
  memcpy(s.v_inverse, v_theta, n * n * sizeof(double));
  const bool is_regular =
      tb_invert(n, s.v_inverse, s.v_work, s.v_pivot, &log_det);
  double square = 0;
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < n; ++k) {
      const double w = v_theta[j * n + k];
      square += w * w;
      v_gradient[j * n + k] =
          is_regular ? n_data * s.v_inverse[k * n + j] - p->precision * w : NAN;
    }
  }
  if (p_log_prior != NULL) {
    *p_log_prior += n_data * log_det - 0.5 * p->precision * square;
  }
  return TB_STATUS_ok;
}

/* v_r (n x n_row) = -tanh(W x / 2) = 1 - 2 logistic(W x) */
static TB_CLONES void responses(size_t n_number, double* v_r) {
  tb_vlogistic(v_r, v_r, n_number);
  for (size_t k = 0; k < n_number; ++k) {
    v_r[k] = 1 - 2 * v_r[k];
  }
}

/* sum of log 1 / (4 cosh^2(s / 2)) = s - 2 softplus(s) over a row's sources */
static TB_CLONES double row_log_lik(size_t n, double* v_s) {
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    sum += v_s[k];
  }
  tb_vsoftplus(v_s, v_s, n);
  for (size_t k = 0; k < n; ++k) {
    sum -= 2 * v_s[k];
  }
  return sum;
}

static struct tb_block_shape ica_shape(const struct tb_model* p_model) {
  const struct ica* p = p_model->p_self;
  return (struct tb_block_shape){.n_row = BLOCK,
                                 .n_score = p->n_source,
                                 .n_own = scratch_size(p->n_source)};
}

/* log |det W| where log likelihoods are wanted whole */
static void ica_go(const struct tb_model* p_model,
                   const struct tb_block* p_block,
                   enum tb_block_place place) {
  const size_t n = ((const struct ica*)p_model->p_self)->n_source;
  const struct scratch s = scratch_at(p_block->p_own, n);
  const double* v_theta = p_block->v_theta[place];
  if (p_block->is_complete) {
    memcpy(s.v_inverse, v_theta, n * n * sizeof(double));
    tb_invert(n, s.v_inverse, s.v_work, s.v_pivot, s.p_log_det);
  }
}

/* rows of the block, one a column of v_x */
static void ica_load(const struct tb_model* p_model,
                     const struct tb_block* p_block) {
  const struct ica* p = p_model->p_self;
  const struct scratch s = scratch_at(p_block->p_own, p->n_source);
  tb_block_gather(p_block, &p->store, p->n_source, s.v_x);
}

static void ica_look(const struct tb_model* p_model,
                     const struct tb_block* p_block,
                     enum tb_block_place place,
                     const struct tb_block_look* p_look) {
  const size_t n = ((const struct ica*)p_model->p_self)->n_source;
  const size_t n_row = p_block->n_row;
  const struct scratch s = scratch_at(p_block->p_own, n);
  const double* v_theta = p_block->v_theta[place];
  tb_gemm('N', n, n_row, n, v_theta, n, s.v_x, n, s.v_r, n);
  if (p_look->v_score != NULL) {
    memcpy(p_look->v_score, s.v_r, n * n_row * sizeof(double));
    responses(n * n_row, p_look->v_score);
  }
  for (size_t k = 0; p_look->v_log_lik != NULL && k < n_row; ++k) {
    const double log_lik = row_log_lik(n, s.v_r + k * n);
    p_look->v_log_lik[k] =
        p_block->is_complete ? *s.p_log_det + log_lik : log_lik;
  }
}

/* ||r_i x_i^T||^2 = ||r_i||^2 ||x_i||^2 */
static void ica_square(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       double* v_square) {
  const size_t n = ((const struct ica*)p_model->p_self)->n_source;
  const struct scratch s = scratch_at(p_block->p_own, n);
  for (size_t k = 0; k < p_block->n_row; ++k) {
    double r2 = 0, x2 = 0;
    for (size_t j = 0; j < n; ++j) {
      const double r = p_block->v_score[k * n + j], x = s.v_x[k * n + j];
      r2 += r * r;
      x2 += x * x;
    }
    v_square[k] = r2 * x2;
  }
}

/* sum_k u_k x_k^T, and sum_k (u_k x_k^T)^2 */
static void ica_add(const struct tb_model* p_model,
                    const struct tb_block* p_block,
                    const struct tb_sums* p_sums) {
  const size_t n = ((const struct ica*)p_model->p_self)->n_source;
  const size_t n_row = p_block->n_row;
  const struct scratch s = scratch_at(p_block->p_own, n);
  double* v_u = p_block->v_score;
  double *v_sum = p_sums->v_gradient, *v_square = p_sums->v_square;
  if (v_sum != NULL) {
    tb_gemm_op('N', 'T', n, n, n_row, v_u, n, s.v_x, n, 1, v_sum, n);
  }
  if (v_square != NULL) {
    for (size_t k = 0; k < n * n_row; ++k) {
      v_u[k] *= v_u[k];
      s.v_other[k] = s.v_x[k] * s.v_x[k];
    }
    tb_gemm_op('N', 'T', n, n, n_row, v_u, n, s.v_other, n, 1, v_square, n);
  }
}

static const struct tb_model_blocks ica_blocks = {
    .shape = ica_shape,
    .go = ica_go,
    .load = ica_load,
    .look = ica_look,
    .square = ica_square,
    .add = ica_add,
};

/* N W^{-1} (x) W^{-1} with the factors crossed, and the prior */
static void add_prior_curvature(const struct tb_model* p_model,
                                const struct scratch* p_s,
                                double* v_hessian) {
  const struct ica* p = p_model->p_self;
  const size_t n = p->n_source, n_dim = n * n;
  const double n_data = (double)p_model->n_data;
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t m = 0; m < n; ++m) {
        for (size_t l = 0; l < n; ++l) {
          v_hessian[(j * n + k) * n_dim + m * n + l] +=
              n_data * (p_s->v_inverse[l * n + j] * p_s->v_inverse[k * n + m]);
        }
      }
      v_hessian[(j * n + k) * (n_dim + 1)] += p->precision;
    }
  }
}

/* -H = sum_i c_i (1 - r_ik^2)/2 x_i x_i^T for each row k of W, and the prior's
 */
static enum tb_status ica_curvature(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const struct tb_curvature* p_sums) {
  const struct ica* p = p_model->p_self;
  const size_t n = p->n_source, n_dim = n * n;
  const struct scratch s = scratch_at(p_work->p_scratch, n);
  double* v_hessian = p_sums->v_hessian;
  const struct tb_sums sums = {.v_gradient = p_sums->v_gradient,
                               .p_log_lik = p_sums->p_log_lik};
  if (p_sums->with_prior) {
    ica_prior(p_model, p_work, v_theta, p_sums->v_gradient, p_sums->p_log_lik);
    add_prior_curvature(p_model, &s, v_hessian);
  }
  tb_blocks_gradient(p_model, p_work, v_theta, p_batch, NULL, &sums);
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const size_t n_row = tb_min(BLOCK, p_batch->n_batch - b);
    const struct tb_block block = {p_batch, .first = b, .n_row = n_row};
    tb_block_gather(&block, &p->store, n, s.v_x);
    tb_gemm('N', n, n_row, n, v_theta, n, s.v_x, n, s.v_r, n);
    responses(n * n_row, s.v_r);
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n_row; ++i) {
        const double r = s.v_r[i * n + k];
        const double d = 0.5 * tb_batch_weight(p_batch, b + i) * (1 - r * r);
        for (size_t j = 0; j < n; ++j) {
          s.v_other[i * n + j] = d * s.v_x[i * n + j];
        }
      }
      tb_gemm_op('N',
                 'T',
                 n,
                 n,
                 n_row,
                 s.v_other,
                 n,
                 s.v_x,
                 n,
                 0,
                 s.v_block,
                 n);
      for (size_t j = 0; j < n; ++j) {
        for (size_t m = 0; m < n; ++m) {
          v_hessian[(j * n + k) * n_dim + m * n + k] +=
              0.5 * (s.v_block[m * n + j] + s.v_block[j * n + m]);
        }
      }
    }
  }
  return TB_STATUS_ok;
}

/* the largest |C_kj| left; taken rows and columns are NAN */
static size_t largest_cosine(const double* v_cosine, size_t n_number) {
  size_t at = n_number;
  for (size_t i = 0; i < n_number; ++i) {
    if (!isnan(v_cosine[i]) &&
        (at == n_number || fabs(v_cosine[i]) > fabs(v_cosine[at]))) {
      at = i;
    }
  }
  return at;
}

/* v_natural: first C, then W aligned */
static void ica_constrain(const struct tb_model* p_model,
                          const double* v_theta,
                          double* v_natural) {
  const struct ica* p = p_model->p_self;
  const size_t n = p->n_source, n_dim = n * n;
  if (p->v_aligns == NULL) {
    memcpy(v_natural, v_theta, n_dim * sizeof(double));
    return;
  }
  double* v_sign = malloc(n * sizeof(double));
  size_t* v_place = malloc(n * sizeof(size_t));
  bool is_ok = v_sign != NULL && v_place != NULL;
  if (is_ok) {
    tb_gemm('N', n, n, n, v_theta, n, p->v_aligns, n, v_natural, n);
    for (size_t k = 0; k < n; ++k) {
      double square = 0;
      for (size_t j = 0; j < n; ++j) {
        square += v_natural[j * n + k] * v_natural[j * n + k];
      }
      for (size_t j = 0; j < n; ++j) {
        v_natural[j * n + k] /= sqrt(square);
      }
    }
  }
  for (size_t step = 0; is_ok && step < n; ++step) {
    const size_t at = largest_cosine(v_natural, n_dim);
    is_ok = at < n_dim;
    if (is_ok) {
      const size_t row = at % n, column = at / n;
      v_place[row] = column;
      v_sign[row] = v_natural[at] < 0 ? -1 : 1;
      for (size_t j = 0; j < n; ++j) {
        v_natural[j * n + row] = v_natural[column * n + j] = NAN;
      }
    }
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < n; ++k) {
      const size_t row = is_ok ? v_place[k] : k;
      v_natural[j * n + row] = is_ok ? v_sign[k] * v_theta[j * n + k] : NAN;
    }
  }
  free(v_sign);
  free(v_place);
}

static size_t ica_memory(const struct tb_model* p_model) {
  const struct ica* p = p_model->p_self;
  return p->store.type->memory(&p->store);
}

static void ica_destroy(struct tb_model* p_model) {
  struct ica* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  tb_store_destroy(&p->store);
  free(p->v_aligns);
  free(p);
  p_model->p_self = NULL;
}

/* SETS v_aligns to the inverse of the reference */
static enum tb_status invert_reference(struct ica* p,
                                       const double* v_reference) {
  const size_t n = p->n_source;
  double log_det;
  p->v_aligns = malloc(n * n * sizeof(double));
  double* v_work = malloc(n * sizeof(double));
  int* v_pivot = malloc(n * sizeof(int));
  enum tb_status status = TB_STATUS_memory;
  if (p->v_aligns != NULL && v_work != NULL && v_pivot != NULL) {
    memcpy(p->v_aligns, v_reference, n * n * sizeof(double));
    status = tb_invert(n, p->v_aligns, v_work, v_pivot, &log_det)
                 ? TB_STATUS_ok
                 : TB_STATUS_singular;
  }
  free(v_work);
  free(v_pivot);
  return status;
}

/* Parameters: "x" (n_data x n_source), "prior_sd"; "reference" (n_source x
 * n_source) where variables are to be aligned with one. */
static enum tb_status ica_create(struct tb_model* p_model,
                                 const struct tb_params* p_params,
                                 const struct tb_shelf* p_shelf) {
  const struct tb_param* p_x = tb_params_find(p_params, "x");
  const struct tb_param* p_reference = tb_params_find(p_params, "reference");
  const double prior_sd = tb_params_number(p_params, "prior_sd", NAN);
  if (p_x == NULL || p_x->n_row == 0 || !(prior_sd > 0)) {
    return TB_STATUS_argument;
  }
  const size_t n_data = p_x->n_row, n = p_x->n_value / n_data;
  if (p_reference != NULL && p_reference->n_value != n * n) {
    return TB_STATUS_argument;
  }
  struct ica* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p_model->n_data = n_data;
  p_model->n_dim = p_model->n_natural = n * n;
  p_model->n_scalar = n;
  p_model->is_natural = p_reference == NULL;
  p_model->p_frame = NULL;
  p->n_source = n;
  p->precision = 1 / (prior_sd * prior_sd);
  enum tb_status status = tb_shelf_take(p_shelf, p_x, 0, &p->store);
  if (status == TB_STATUS_ok && p_reference != NULL) {
    status = invert_reference(p, p_reference->v_value);
  }
  if (status != TB_STATUS_ok) {
    ica_destroy(p_model);
    return status;
  }
  uint64_t hash = tb_hash_word((uint64_t)n_data, p->store.hash);
  hash = tb_hash_doubles(hash, &prior_sd, 1);
  p_model->fingerprint = tb_hash_param(hash, p_reference);
  return TB_STATUS_ok;
}

const struct tb_model_type tb_model_ica = {
    .name = "ica",
    .citation = "Mauri & Zanella (2024), section 4.4",
    .flags = TB_MODEL_SCALAR,
    .create = ica_create,
    .destroy = ica_destroy,
    .prior = ica_prior,
    .gradient = tb_blocks_gradient,
    .workspace_size = tb_blocks_workspace_size,
    .log_lik = tb_blocks_log_lik,
    .square_norms = tb_blocks_square_norms,
    .add_scalar = tb_blocks_add_scalar,
    .blocks = &ica_blocks,
    .curvature = ica_curvature,
    .constrain = ica_constrain,
    .memory = ica_memory,
};
