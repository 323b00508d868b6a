/* Logistic regression, as plain as it can be written against tallbayes.h and
 * still run at the speed of model_glm(): the header's helpers fetch the rows of
 * the next block while the current one is worked on.
 *
 *   y_i | x_i ~ Bernoulli(1 / (1 + exp(-x_i^T b))),  b_j ~ N(0, prior_sd^2)
 *   g_i = r_i x_i,  r_i = y_i - 1 / (1 + exp(-x_i^T b))
 *   H_i = -p_i (1 - p_i) x_i x_i^T
 *
 * Arrays: x (n_data x n_dim), y (n_data); constant: prior_sd.
 * See logistic.R. */
#include <R.h>
#include <Rinternals.h>
#include <tallbayes.h>

#include <stdlib.h>

struct logistic {
  const struct tb_array *p_x, *p_y;
  double precision; /* of the prior */
};

static enum tb_status logistic_create(struct tb_native* p_native) {
  const struct tb_array* p_x = tb_array_find(p_native, "x");
  const struct tb_array* p_y = tb_array_find(p_native, "y");
  const struct tb_array* p_sd = tb_array_find(p_native, "prior_sd");
  if (p_x == NULL || p_y == NULL || p_sd == NULL ||
      p_x->n_col != p_native->n_dim || p_y->n_col != 1) {
    return TB_STATUS_argument;
  }
  struct logistic* p = malloc(sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p->p_x = p_x;
  p->p_y = p_y;
  p->precision = 1 / (p_sd->v_value[0] * p_sd->v_value[0]);
  p_native->p_self = p;
  return TB_STATUS_ok;
}

static void logistic_destroy(struct tb_native* p_native) {
  free(p_native->p_self);
}

/* four padded rows: b, the reference, and the sums */
static size_t logistic_scratch_size(const struct tb_native* p_native,
                                    size_t n_batch) {
  const struct logistic* p = p_native->p_self;
  (void)n_batch;
  return 4 * p->p_x->stride * sizeof(double);
}

static enum tb_status logistic_prior(const struct tb_native* p_native,
                                     void* p_scratch,
                                     const double* v_theta,
                                     double* v_gradient,
                                     double* p_log_prior) {
  const struct logistic* p = p_native->p_self;
  double square = 0;
  (void)p_scratch;
  for (size_t j = 0; j < p_native->n_dim; ++j) {
    v_gradient[j] = -p->precision * v_theta[j];
    square += v_theta[j] * v_theta[j];
  }
  if (p_log_prior != NULL) {
    *p_log_prior -= 0.5 * p->precision * square;
  }
  return TB_STATUS_ok;
}

/* r_i of a block and, unless NULL, log p(y_i | b) */
static void responses(const struct logistic* p,
                      const struct tb_batch* p_batch,
                      size_t first,
                      const double* v_padded,
                      double* v_r,
                      double* v_log_lik) {
  const struct tb_tools* p_tools = p->p_x->p_tools;
  const size_t n = tb_block_size(p_batch, first);
  double v_eta[TB_BLOCK], v_y[TB_BLOCK];
  tb_array_dot(p->p_x, p_batch, first, v_padded, v_eta);
  tb_array_take(p->p_y, p_batch, first, v_y);
  if (v_log_lik != NULL) {
    p_tools->softplus(v_eta, v_log_lik, n);
    for (size_t k = 0; k < n; ++k) {
      v_log_lik[k] = v_y[k] * v_eta[k] - v_log_lik[k];
    }
  }
  p_tools->logistic(v_eta, v_r, n);
  for (size_t k = 0; k < n; ++k) {
    v_r[k] = v_y[k] - v_r[k];
  }
}

static enum tb_status logistic_gradient(const struct tb_native* p_native,
                                        void* p_scratch,
                                        const double* v_theta,
                                        const struct tb_batch* p_batch,
                                        const struct tb_reference* p_reference,
                                        const struct tb_sums* p_sums) {
  const struct logistic* p = p_native->p_self;
  const size_t stride = p->p_x->stride;
  double* v_padded = p_scratch;
  double* v_other = v_padded + stride;
  double* v_sum = v_padded + 2 * stride;
  double* v_square = v_padded + 3 * stride;
  const int is_stored = p_reference != NULL && p_reference->v_scalar != NULL;

  tb_array_pad(p->p_x, v_theta, v_padded);
  if (p_reference != NULL && !is_stored) {
    tb_array_pad(p->p_x, p_reference->v_theta, v_other);
  }
  memset(v_sum, 0, 2 * stride * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    const size_t n = tb_block_size(p_batch, b);
    double v_r[TB_BLOCK], v_before[TB_BLOCK], v_log_lik[TB_BLOCK];
    responses(p,
              p_batch,
              b,
              v_padded,
              v_r,
              p_sums->p_log_lik == NULL ? NULL : v_log_lik);
    for (size_t k = 0; p_sums->p_log_lik != NULL && k < n; ++k) {
      *p_sums->p_log_lik += tb_batch_weight(p_batch, b + k) * v_log_lik[k];
    }
    if (p_sums->v_scalar != NULL) {
      memcpy(p_sums->v_scalar + b, v_r, n * sizeof(double));
    }
    if (is_stored) {
      tb_reference_take(p_native, p_reference, 1, p_batch, b, v_before);
    } else if (p_reference != NULL) {
      responses(p, p_batch, b, v_other, v_before, NULL);
    }
    for (size_t k = 0; k < n; ++k) {
      const double change = p_reference == NULL ? v_r[k] : v_r[k] - v_before[k];
      v_r[k] = tb_batch_weight(p_batch, b + k) * change;
    }
    tb_array_add(p->p_x,
                 p_batch,
                 b,
                 v_r,
                 v_sum,
                 p_sums->v_square == NULL ? NULL : v_square);
  }
  for (size_t j = 0; p_sums->v_gradient != NULL && j < p_native->n_dim; ++j) {
    p_sums->v_gradient[j] += v_sum[j];
  }
  for (size_t j = 0; p_sums->v_square != NULL && j < p_native->n_dim; ++j) {
    p_sums->v_square[j] += v_square[j];
  }
  return TB_STATUS_ok;
}

static enum tb_status logistic_log_lik(const struct tb_native* p_native,
                                       void* p_scratch,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       double* v_out) {
  const struct logistic* p = p_native->p_self;
  double* v_padded = p_scratch;
  tb_array_pad(p->p_x, v_theta, v_padded);
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    double v_r[TB_BLOCK];
    responses(p, p_batch, b, v_padded, v_r, v_out + b);
  }
  return TB_STATUS_ok;
}

static enum tb_status logistic_curvature(const struct tb_native* p_native,
                                         void* p_scratch,
                                         const double* v_theta,
                                         const struct tb_batch* p_batch,
                                         double* v_hessian) {
  const struct logistic* p = p_native->p_self;
  const size_t n_dim = p_native->n_dim;
  double* v_padded = p_scratch;
  tb_array_pad(p->p_x, v_theta, v_padded);
  for (size_t j = 0; j < n_dim; ++j) {
    v_hessian[j * n_dim + j] += p->precision;
  }
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    const size_t n = tb_block_size(p_batch, b);
    double v_r[TB_BLOCK], v_y[TB_BLOCK];
    responses(p, p_batch, b, v_padded, v_r, NULL);
    tb_array_take(p->p_y, p_batch, b, v_y);
    for (size_t k = 0; k < n; ++k) {
      const double* v_x = tb_array_row(p->p_x, tb_batch_row(p_batch, b + k));
      const double mean = v_y[k] - v_r[k];
      const double c = tb_batch_weight(p_batch, b + k) * mean * (1 - mean);
      for (size_t i = 0; i < n_dim; ++i) {
        for (size_t j = 0; j < n_dim; ++j) {
          v_hessian[i * n_dim + j] += c * (v_x[i] * v_x[j]);
        }
      }
    }
  }
  return TB_STATUS_ok;
}

static enum tb_status logistic_add_scalar(const struct tb_native* p_native,
                                          void* p_scratch,
                                          const struct tb_batch* p_batch,
                                          const double* v_scalar,
                                          double* v_sum) {
  const struct logistic* p = p_native->p_self;
  double* v_padded = p_scratch;
  memset(v_padded, 0, p->p_x->stride * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    tb_array_add(p->p_x, p_batch, b, v_scalar + b, v_padded, NULL);
  }
  for (size_t j = 0; j < p_native->n_dim; ++j) {
    v_sum[j] += v_padded[j];
  }
  return TB_STATUS_ok;
}

static const struct tb_native_type logistic_type = {
    .version = TALLBAYES_API_VERSION,
    .name = "logistic regression",
    .prior = logistic_prior,
    .gradient = logistic_gradient,
    .log_lik = logistic_log_lik,
    .create = logistic_create,
    .destroy = logistic_destroy,
    .scratch_size = logistic_scratch_size,
    .curvature = logistic_curvature,
    .n_scalar = 1,
    .add_scalar = logistic_add_scalar};

SEXP logistic_model(void) {
  return R_MakeExternalPtr((void*)&logistic_type, R_NilValue, R_NilValue);
}
