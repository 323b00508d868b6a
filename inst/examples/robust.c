/* Robust regression: Student's t errors with known degrees of freedom.
 *
 *   y_i = x_i^T b + sigma e_i,  e_i ~ t_nu,  s = log sigma
 *   b_j ~ N(0, prior_sd^2),  sigma ~ Exponential(mean prior_scale)
 *
 * With u_i = (y_i - x_i^T b) / sigma, q_i = nu + u_i^2, w_i = (nu + 1) / q_i,
 *
 *   log p(y_i | b, s) = k - s - (nu + 1)/2 log(1 + u_i^2 / nu)
 *   g_i = (r_i x_i, t_i),  r_i = w_i u_i / sigma,  t_i = w_i u_i^2 - 1
 *   -H_i = [ a_i x_i x_i^T   c_i x_i ; c_i x_i^T   c_i sigma u_i ],
 *   a_i = (nu + 1) (nu - u_i^2) / (q_i sigma)^2,
 *   c_i = 2 nu (nu + 1) u_i / (q_i^2 sigma)
 *
 * and the prior of s has the Jacobian of sigma: s - e^s / prior_scale.
 * Lange, Little & Taylor (1989), Robust statistical modeling using the t
 * distribution, JASA 84, 881-896.
 *
 * Arrays: x (n_data x n_coef), y (n_data); constants: df, prior_sd,
 * prior_scale. The last parameter is s. See robust.R. */
#include <R.h>
#include <Rinternals.h>
#include <tallbayes.h>

#include <math.h>
#include <stdlib.h>

struct robust {
  const struct tb_array *p_x, *p_y;
  double df, precision, prior_scale;
  double constant; /* k */
};

/* a block of rows at one point */
struct block {
  size_t n_row;
  double v_u[TB_BLOCK]; /* u_i */
  double v_w[TB_BLOCK]; /* w_i */
};

static enum tb_status robust_create(struct tb_native* p_native) {
  const struct tb_array* p_x = tb_array_find(p_native, "x");
  const struct tb_array* p_y = tb_array_find(p_native, "y");
  const struct tb_array* p_df = tb_array_find(p_native, "df");
  const struct tb_array* p_sd = tb_array_find(p_native, "prior_sd");
  const struct tb_array* p_scale = tb_array_find(p_native, "prior_scale");
  if (p_x == NULL || p_y == NULL || p_df == NULL || p_sd == NULL ||
      p_scale == NULL || p_x->n_col + 1 != p_native->n_dim || p_y->n_col != 1 ||
      !(p_df->v_value[0] > 0)) {
    return TB_STATUS_argument;
  }
  struct robust* p = malloc(sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  const double df = p_df->v_value[0];
  p->p_x = p_x;
  p->p_y = p_y;
  p->df = df;
  p->precision = 1 / (p_sd->v_value[0] * p_sd->v_value[0]);
  p->prior_scale = p_scale->v_value[0];
  p->constant = lgamma((df + 1) / 2) - lgamma(df / 2) -
                0.5 * log(df * 3.14159265358979323846);
  p_native->p_self = p;
  return TB_STATUS_ok;
}

static void robust_destroy(struct tb_native* p_native) {
  free(p_native->p_self);
}

/* four padded rows: b, the reference, and the sums */
static size_t robust_scratch_size(const struct tb_native* p_native,
                                  size_t n_batch) {
  const struct robust* p = p_native->p_self;
  (void)n_batch;
  return 4 * p->p_x->stride * sizeof(double);
}

static enum tb_status robust_prior(const struct tb_native* p_native,
                                   void* p_scratch,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_prior) {
  const struct robust* p = p_native->p_self;
  const size_t n_coef = p->p_x->n_col;
  const double s = v_theta[n_coef], ratio = exp(s) / p->prior_scale;
  double square = 0;
  (void)p_scratch;
  for (size_t j = 0; j < n_coef; ++j) {
    v_gradient[j] = -p->precision * v_theta[j];
    square += v_theta[j] * v_theta[j];
  }
  v_gradient[n_coef] = 1 - ratio;
  if (p_log_prior != NULL) {
    *p_log_prior += s - ratio - 0.5 * p->precision * square;
  }
  return TB_STATUS_ok;
}

/* u_i and w_i of the block that starts at `first` */
static struct block block_at(const struct robust* p,
                             const struct tb_batch* p_batch,
                             size_t first,
                             const double* v_padded,
                             double sigma) {
  struct block block = {.n_row = tb_block_size(p_batch, first)};
  double v_eta[TB_BLOCK], v_y[TB_BLOCK];
  tb_array_dot(p->p_x, p_batch, first, v_padded, v_eta);
  tb_array_take(p->p_y, p_batch, first, v_y);
  for (size_t k = 0; k < block.n_row; ++k) {
    const double u = (v_y[k] - v_eta[k]) / sigma;
    block.v_u[k] = u;
    block.v_w[k] = (p->df + 1) / (p->df + u * u);
  }
  return block;
}

/* log p(y_i | b, s) of a block; 1 + u^2 / nu is (nu + 1) / (nu w) */
static void block_log_lik(const struct robust* p,
                          const struct block* p_block,
                          double s,
                          double* v_out) {
  double v_log[TB_BLOCK];
  for (size_t k = 0; k < p_block->n_row; ++k) {
    v_log[k] = (p->df + 1) / (p->df * p_block->v_w[k]);
  }
  p->p_x->p_tools->log(v_log, v_log, p_block->n_row);
  for (size_t k = 0; k < p_block->n_row; ++k) {
    v_out[k] = p->constant - s - 0.5 * (p->df + 1) * v_log[k];
  }
}

/* (r_i, t_i) of a block, side by side */
static void
block_scalars(const struct block* p_block, double sigma, double* v_out) {
  for (size_t k = 0; k < p_block->n_row; ++k) {
    const double wu = p_block->v_w[k] * p_block->v_u[k];
    v_out[2 * k] = wu / sigma;
    v_out[2 * k + 1] = wu * p_block->v_u[k] - 1;
  }
}

static enum tb_status robust_gradient(const struct tb_native* p_native,
                                      void* p_scratch,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      const struct tb_sums* p_sums) {
  const struct robust* p = p_native->p_self;
  const size_t n_coef = p->p_x->n_col, stride = p->p_x->stride;
  double* v_padded = p_scratch;
  double* v_other = v_padded + stride;
  double* v_sum = v_padded + 2 * stride;
  double* v_square = v_padded + 3 * stride;
  const double s = v_theta[n_coef], sigma = exp(s);
  const int is_stored = p_reference != NULL && p_reference->v_scalar != NULL;
  double sigma_other = 1, sum_t = 0, square_t = 0;

  tb_array_pad(p->p_x, v_theta, v_padded);
  if (p_reference != NULL && !is_stored) {
    tb_array_pad(p->p_x, p_reference->v_theta, v_other);
    sigma_other = exp(p_reference->v_theta[n_coef]);
  }
  memset(v_sum, 0, 2 * stride * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    const struct block block = block_at(p, p_batch, b, v_padded, sigma);
    double v_scalar[2 * TB_BLOCK], v_before[2 * TB_BLOCK] = {0};
    double v_u[TB_BLOCK];
    block_scalars(&block, sigma, v_scalar);
    if (p_sums->p_log_lik != NULL) {
      double v_log_lik[TB_BLOCK];
      block_log_lik(p, &block, s, v_log_lik);
      for (size_t k = 0; k < block.n_row; ++k) {
        *p_sums->p_log_lik += tb_batch_weight(p_batch, b + k) * v_log_lik[k];
      }
    }
    if (p_sums->v_scalar != NULL) {
      memcpy(p_sums->v_scalar + 2 * b,
             v_scalar,
             2 * block.n_row * sizeof(double));
    }
    if (is_stored) {
      tb_reference_take(p_native, p_reference, 2, p_batch, b, v_before);
    } else if (p_reference != NULL) {
      const struct block other = block_at(p, p_batch, b, v_other, sigma_other);
      block_scalars(&other, sigma_other, v_before);
    }
    for (size_t k = 0; k < block.n_row; ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      const double t = c * (v_scalar[2 * k + 1] - v_before[2 * k + 1]);
      v_u[k] = c * (v_scalar[2 * k] - v_before[2 * k]);
      sum_t += t;
      square_t += t * t;
    }
    tb_array_add(p->p_x,
                 p_batch,
                 b,
                 v_u,
                 v_sum,
                 p_sums->v_square == NULL ? NULL : v_square);
  }
  if (p_sums->v_gradient != NULL) {
    for (size_t j = 0; j < n_coef; ++j) {
      p_sums->v_gradient[j] += v_sum[j];
    }
    p_sums->v_gradient[n_coef] += sum_t;
  }
  if (p_sums->v_square != NULL) {
    for (size_t j = 0; j < n_coef; ++j) {
      p_sums->v_square[j] += v_square[j];
    }
    p_sums->v_square[n_coef] += square_t;
  }
  return TB_STATUS_ok;
}

static enum tb_status robust_log_lik(const struct tb_native* p_native,
                                     void* p_scratch,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     double* v_out) {
  const struct robust* p = p_native->p_self;
  const double s = v_theta[p->p_x->n_col], sigma = exp(s);
  double* v_padded = p_scratch;
  tb_array_pad(p->p_x, v_theta, v_padded);
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    const struct block block = block_at(p, p_batch, b, v_padded, sigma);
    block_log_lik(p, &block, s, v_out + b);
  }
  return TB_STATUS_ok;
}

static enum tb_status robust_curvature(const struct tb_native* p_native,
                                       void* p_scratch,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       double* v_hessian) {
  const struct robust* p = p_native->p_self;
  const size_t n_coef = p->p_x->n_col, n_dim = p_native->n_dim;
  const double sigma = exp(v_theta[n_coef]);
  double* v_padded = p_scratch;
  tb_array_pad(p->p_x, v_theta, v_padded);
  for (size_t j = 0; j < n_coef; ++j) {
    v_hessian[j * n_dim + j] += p->precision;
  }
  v_hessian[n_dim * n_dim - 1] += sigma / p->prior_scale;
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    const struct block block = block_at(p, p_batch, b, v_padded, sigma);
    for (size_t k = 0; k < block.n_row; ++k) {
      const double* v_x = tb_array_row(p->p_x, tb_batch_row(p_batch, b + k));
      const double u = block.v_u[k], w = block.v_w[k];
      const double c_i = tb_batch_weight(p_batch, b + k);
      const double factor = c_i * w * w / ((p->df + 1) * sigma);
      const double a = factor * (p->df - u * u) / sigma;
      const double c = factor * 2 * p->df * u;
      for (size_t i = 0; i < n_coef; ++i) {
        for (size_t j = 0; j < n_coef; ++j) {
          v_hessian[i * n_dim + j] += a * (v_x[i] * v_x[j]);
        }
        v_hessian[i * n_dim + n_coef] += c * v_x[i];
        v_hessian[n_coef * n_dim + i] += c * v_x[i];
      }
      v_hessian[n_dim * n_dim - 1] += c * sigma * u;
    }
  }
  return TB_STATUS_ok;
}

/* log sigma -> sigma */
static void robust_constrain(const struct tb_native* p_native,
                             const double* v_theta,
                             double* v_natural) {
  const size_t n_coef = p_native->n_dim - 1;
  memcpy(v_natural, v_theta, n_coef * sizeof(double));
  v_natural[n_coef] = exp(v_theta[n_coef]);
}

static enum tb_status robust_add_scalar(const struct tb_native* p_native,
                                        void* p_scratch,
                                        const struct tb_batch* p_batch,
                                        const double* v_scalar,
                                        double* v_sum) {
  const struct robust* p = p_native->p_self;
  const size_t n_coef = p->p_x->n_col;
  double* v_padded = p_scratch;
  memset(v_padded, 0, p->p_x->stride * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    const size_t n = tb_block_size(p_batch, b);
    double v_u[TB_BLOCK];
    for (size_t k = 0; k < n; ++k) {
      v_u[k] = v_scalar[2 * (b + k)];
      v_sum[n_coef] += v_scalar[2 * (b + k) + 1];
    }
    tb_array_add(p->p_x, p_batch, b, v_u, v_padded, NULL);
  }
  for (size_t j = 0; j < n_coef; ++j) {
    v_sum[j] += v_padded[j];
  }
  return TB_STATUS_ok;
}

static const struct tb_native_type robust_type = {
    .version = TALLBAYES_API_VERSION,
    .name = "robust regression",
    .prior = robust_prior,
    .gradient = robust_gradient,
    .log_lik = robust_log_lik,
    .create = robust_create,
    .destroy = robust_destroy,
    .scratch_size = robust_scratch_size,
    .curvature = robust_curvature,
    .constrain = robust_constrain,
    .n_scalar = 2,
    .add_scalar = robust_add_scalar,
};

SEXP robust_model(void) {
  return R_MakeExternalPtr((void*)&robust_type, R_NilValue, R_NilValue);
}
