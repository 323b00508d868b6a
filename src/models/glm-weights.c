/* Generalised linear models, unnormalised subsampling weights of rows; see
 * glm.c. */
#include "models/glm-inside.h"

#include "base/blas.h"
#include "base/norm.h"
#include "responses/shared.h"

#include <math.h>

/* Euclidean norms of n rows of a row-major block */
static void block_norms(const double* v_block,
                        size_t n_row,
                        size_t n_col,
                        size_t n_lead,
                        double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = sqrt(tb_square_norm(v_block + k * n_lead, n_col));
  }
}

/* Unnormalised weights (preferential subsampling, section 4; leverage: the
 * same argument in whitened coordinates):
 *   gradient  ||g_i||                  hessian  sqrt(tr(H_i Sigma H_i^T))
 *   leverage  ||L^{-1} H_i L^{-T}||_F  lipschitz  max c ||x_i||^2
 * where H_i = -c_i x_i x_i^T these are |r_i| ||x_i||, c_i ||x_i|| sqrt(q_i) and
 * c_i q_i, q_i = x_i^T Sigma x_i. With L L^T = Sigma^{-1}, q_i = ||L^{-1}
 * x_i||^2: one triangular solve of the rows, O(N d^2), where the paper pays
 * O(N d^3). A sampled s adds its own row and column of H_i (covariance R R^T,
 * uncorrelated with the coefficients).
 *
 * At the mode a row can weigh next to nothing and, an sd away, more than all
 * the others: an outlier whose fitted probability is 0 or 1. So
 *   robust     K_i q_i             K_i = sup |c(eta)|
 *   cubic      K'_i q_i^(3/2)      K'_i = sup |c'(eta)|
 * over the eta within TB_WEIGHT_REACH sqrt(q_i) of eta_i. The sum of the cubic
 * ones bounds how far log pi is from quadratic: by sum K'_i q_i^(3/2) r^3 / 6
 * at the distance r, in posterior sds.
 *
 * Where a response has no such bounds K is the largest at some points of that
 * interval. A sampled s makes K'_i q_i^(3/2) the Frobenius norm of the third
 * derivatives in whitened coordinates, by differences between some points at
 * which eta and s are within the same reach (glm-third.c): none of these is a
 * bound. */
struct glm_weight {
  double norm;       /* ||x_i|| */
  double sigma_norm; /* sqrt(q_i) */
  size_t n_aux;
  double r, v_t[AUX];
  double c, v_a[AUX], v_b[PAIR]; /* -H_i in eta and s, or bounds; see above */
  double third;                  /* K'_i */
  const double* v_root;          /* R, at k AUX + l */
};

/* squares of R^T a, a, B R and R^T B R, summed: those of s in the norms below
 */
struct glm_aux_norms {
  double cross, raw_cross, half, whole;
};

static struct glm_aux_norms glm_aux_norms_of(const struct glm_weight* p) {
  struct glm_aux_norms out = {0};
  const size_t n = p->n_aux;
  double v_half[AUX * AUX] = {0};
  for (size_t l = 0; l < n; ++l) {
    double cross = 0;
    for (size_t k = 0; k < n; ++k) {
      cross += p->v_root[k * AUX + l] * p->v_a[k];
      for (size_t h = 0; h < n; ++h) {
        const size_t pair =
            k < h ? tb_response_pair(h, k) : tb_response_pair(k, h);
        v_half[k * AUX + l] += p->v_b[pair] * p->v_root[h * AUX + l];
      }
      out.half += v_half[k * AUX + l] * v_half[k * AUX + l];
    }
    out.cross += cross * cross;
    out.raw_cross += p->v_a[l] * p->v_a[l];
  }
  for (size_t l = 0; l < n; ++l) {
    for (size_t m = 0; m < n; ++m) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) {
        sum += p->v_root[k * AUX + l] * v_half[k * AUX + m];
      }
      out.whole += sum * sum;
    }
  }
  return out;
}

/* ||H_i|| in whitened coordinates. A bound of it for robust weights: how a
 * change of s changes all rows alike is left out. */
static double glm_leverage(const struct glm_weight* p) {
  const double q = p->sigma_norm * p->sigma_norm;
  if (p->n_aux == 0) {
    return fabs(p->c) * q;
  }
  const struct glm_aux_norms of = glm_aux_norms_of(p);
  return sqrt(p->c * p->c * q * q + 2 * of.cross * q + of.whole);
}

static double glm_hessian_weight(const struct glm_weight* p) {
  const double norm2 = p->norm * p->norm, q = p->sigma_norm * p->sigma_norm;
  if (p->n_aux == 0) {
    return fabs(p->c) * p->norm * p->sigma_norm;
  }
  const struct glm_aux_norms of = glm_aux_norms_of(p);
  return sqrt(p->c * p->c * norm2 * q + of.cross * norm2 + of.raw_cross * q +
              of.half);
}

/* NaN for a type that there is not */
static double glm_weight_of(enum tb_weight_type type,
                            const struct glm_weight* p) {
  const double norm2 = p->norm * p->norm;
  switch (type) {
  case TB_WEIGHT_robust:
  case TB_WEIGHT_leverage:
    return glm_leverage(p);
  case TB_WEIGHT_cubic:
    return p->third * (p->sigma_norm * p->sigma_norm) * p->sigma_norm;
  case TB_WEIGHT_gradient:
    return sqrt(p->r * p->r * norm2 + tb_square_norm(p->v_t, p->n_aux));
  case TB_WEIGHT_hessian:
    return glm_hessian_weight(p);
  case TB_WEIGHT_lipschitz:
    return p->c * norm2;
  case TB_WEIGHT_count:
    break;
  }
  return NAN;
}

/* Are there weights of this type for the response? */
static bool glm_has_weights(const struct glm* p_glm, enum tb_weight_type type) {
  const struct tb_response_type* p_type = p_glm->response.type;
  switch (type) {
  case TB_WEIGHT_robust:
  case TB_WEIGHT_cubic:
  case TB_WEIGHT_gradient:
  case TB_WEIGHT_hessian:
  case TB_WEIGHT_leverage:
    return true;
  case TB_WEIGHT_lipschitz:
    return p_type->bound != NULL && p_glm->n_aux == 0;
  case TB_WEIGHT_count:
    break;
  }
  return false;
}

/* what the weights of a block need of its rows */
struct glm_terms {
  double v_r[BLOCK], v_t[AUX * BLOCK];
  double v_c[BLOCK], v_a[AUX * BLOCK], v_b[PAIR * BLOCK];
  double v_third[BLOCK];
};

/* -d2l/ds2 from what a response gives of it */
static void add_information(const struct glm* p_glm,
                            const struct glm_point* p_point,
                            size_t n_row,
                            double* v_b) {
  double v_rest[AUX];
  (void)tb_response_informations(p_glm->response.type,
                                 &p_point->response,
                                 v_rest);
  for (size_t j = 0; j < p_glm->n_aux; ++j) {
    for (size_t k = 0; k < n_row; ++k) {
      v_b[tb_response_pair(j, j) * n_row + k] += v_rest[j];
    }
  }
}

static void glm_terms_of(const struct glm* p_glm,
                         enum tb_weight_type type,
                         const struct glm_point* p_point,
                         const struct glm_block* p_block,
                         const double* v_reach,
                         struct glm_terms* p) {
  const struct tb_response_type* p_type = p_glm->response.type;
  const struct tb_response_rows rows = glm_rows(p_point, p_block);
  const bool has_aux = p_glm->n_aux > 0;
  struct tb_response_out out = {.v_curvature = p->v_c,
                                .v_cross = has_aux ? p->v_a : NULL,
                                .v_aux_curvature = has_aux ? p->v_b : NULL};
  memset(p, 0, sizeof(*p));
  if (type == TB_WEIGHT_cubic) {
    p_type->third_bound(&rows, v_reach, p->v_third);
  } else if (type == TB_WEIGHT_robust || type == TB_WEIGHT_lipschitz) {
    if (p_type->bound != NULL) {
      p_type->bound(&rows, v_reach, &out);
    } else {
      tb_response_widest(p_type, &rows, v_reach, &out);
    }
  } else {
    out.v_score = p->v_r;
    out.v_aux_score = has_aux ? p->v_t : NULL;
    p_type->evaluate(&rows, &out);
    add_information(p_glm, p_point, rows.n_row, p->v_b);
  }
}

/* v_out of the rows of a block */
static void weigh(const struct glm* p_glm,
                  enum tb_weight_type type,
                  const struct glm_point* p_point,
                  const struct glm_grid* p_grid,
                  const struct tb_rows* p_rows,
                  const double* v_norm,
                  const double* v_sigma_norm,
                  double* v_out) {
  struct glm_block block;
  struct glm_terms terms;
  double v_reach[BLOCK];
  glm_load(p_glm, p_rows, p_point, &block);
  if (type == TB_WEIGHT_cubic &&
      (p_glm->n_aux > 0 || p_glm->response.type->third_bound == NULL)) {
    glm_weigh_third(p_glm, p_grid, &block, v_sigma_norm, v_out);
    return;
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_reach[k] = type == TB_WEIGHT_lipschitz
                     ? INFINITY
                     : TB_WEIGHT_REACH * v_sigma_norm[k];
  }
  glm_terms_of(p_glm, type, p_point, &block, v_reach, &terms);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    struct glm_weight one = {.norm = v_norm[k],
                             .sigma_norm = v_sigma_norm[k],
                             .n_aux = p_glm->n_aux,
                             .r = terms.v_r[k],
                             .c = terms.v_c[k],
                             .third = terms.v_third[k],
                             .v_root = p_grid->v_root};
    for (size_t j = 0; j < one.n_aux; ++j) {
      one.v_t[j] = terms.v_t[j * p_rows->n_row + k];
      one.v_a[j] = terms.v_a[j * p_rows->n_row + k];
    }
    for (size_t j = 0; j < one.n_aux * (one.n_aux + 1) / 2; ++j) {
      one.v_b[j] = terms.v_b[j * p_rows->n_row + k];
    }
    v_out[k] = glm_weight_of(type, &one);
  }
}

/* ||x_i|| of the rows of the batch, and sqrt(q_i), the same where v_chol is
 * NULL
 */
static void row_norms(const struct tb_model* p_model,
                      const struct tb_batch* p_batch,
                      const double* v_chol,
                      double* v_rows,
                      double* v_norm,
                      double* v_sigma_norm) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_coef = p_glm->n_coef, n_padded = p_store->n_padded;
  const size_t n_row = p_batch->n_batch, n_dim = p_model->n_dim;
  const double* v_block =
      p_store->type->block(p_store, p_batch->start, n_row, v_rows);
  block_norms(v_block, n_row, n_coef, n_padded, v_norm);
  if (v_chol == NULL) {
    memcpy(v_sigma_norm, v_norm, n_row * sizeof(double));
    return;
  }
  memmove(v_rows, v_block, n_row * n_padded * sizeof(double));
  tb_trsm('L', 'N', n_coef, n_row, v_chol, n_dim, v_rows, n_padded);
  block_norms(v_rows, n_row, n_coef, n_padded, v_sigma_norm);
}

/* The same of sparse rows, q_i = x_i^T Sigma x_i as it stands. */
static void sparse_norms(const struct tb_model* p_model,
                         const struct tb_batch* p_batch,
                         const double* v_sigma,
                         double* v_norm,
                         double* v_sigma_norm) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  for (size_t b = 0; b < p_batch->n_batch; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_square[BLOCK], v_q[BLOCK];
    p_store->type->square_norms(p_store, &rows, v_square);
    if (v_sigma == NULL) {
      memcpy(v_q, v_square, sizeof(v_q));
    } else {
      p_store->type->forms(p_store, &rows, v_sigma, p_model->n_dim, v_q);
    }
    for (size_t k = 0; k < rows.n_row; ++k) {
      v_norm[b + k] = sqrt(v_square[k]);
      v_sigma_norm[b + k] = sqrt(fmax(v_q[k], 0));
    }
  }
}

/* R with R R^T the covariance of s, upper triangular: Sigma is block diagonal.
 * v: L with L L^T = Sigma^{-1}, of sparse rows Sigma itself; NULL: 1. */
static void root_of_aux(const struct tb_model* p_model,
                        const double* v_slope,
                        const double* v,
                        double* v_root) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_aux = p_glm->n_aux, n_dim = p_model->n_dim;
  double v_own[AUX * AUX] = {1, 0, 0, 1};
  if (v != NULL && n_aux > 0) {
    const double* v_first = v + p_glm->n_coef * (n_dim + 1);
    const bool is_pair = n_aux > 1;
    const double low = is_pair ? v_first[1] : 0;
    const double last = is_pair ? v_first[n_dim + 1] : 1;
    if (p_glm->is_sparse) {
      const double rest = is_pair ? v_first[0] - low * low / last : v_first[0];
      v_own[0] = sqrt(fmax(rest, 0));
      v_own[1] = low / sqrt(last);
      v_own[3] = sqrt(last);
    } else {
      v_own[0] = 1 / v_first[0];
      v_own[1] = -low / (v_first[0] * last);
      v_own[3] = 1 / last;
    }
  }
  for (size_t k = 0; k < AUX; ++k) {
    for (size_t l = 0; l < AUX; ++l) {
      v_root[k * AUX + l] = 0;
      for (size_t h = 0; h < AUX; ++h) {
        v_root[k * AUX + l] += v_slope[k * AUX + h] * v_own[h * AUX + l];
      }
    }
  }
}

enum tb_status glm_weights(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           enum tb_weight_type type,
                           const double* v_theta,
                           const double* v_chol,
                           const struct tb_batch* p_batch,
                           double* v_out) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n_row = p_batch->n_batch;
  const bool wants_sigma = type == TB_WEIGHT_hessian ||
                           type == TB_WEIGHT_leverage ||
                           type == TB_WEIGHT_robust || type == TB_WEIGHT_cubic;
  if (!glm_has_weights(p_glm, type)) {
    return TB_STATUS_unsupported;
  }
  const struct glm_pass_scratch scratch =
      glm_pass_scratch_at(p_glm, p_work, n_row);
  double *v_norm = scratch.v_column[0], *v_sigma_norm = scratch.v_column[1];
  double* v_origin = scratch.of_point.v_reference;
  memset(v_origin, 0, n_dim * sizeof(double));
  const struct glm_point point =
      glm_point_at(p_model,
                   v_theta == NULL ? v_origin : v_theta,
                   scratch.of_point.v_theta);
  double v_root[AUX * AUX];
  root_of_aux(p_model, point.v_slope, v_chol, v_root);
  const struct glm_grid grid = glm_grid_at(p_glm, point.v_aux, v_root);
  const double* v_of = wants_sigma ? v_chol : NULL;
  if (p_glm->is_sparse) {
    sparse_norms(p_model, p_batch, v_of, v_norm, v_sigma_norm);
  } else {
    row_norms(p_model, p_batch, v_of, scratch.v_rows, v_norm, v_sigma_norm);
  }
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    weigh(p_glm,
          type,
          &point,
          &grid,
          &rows,
          v_norm + b,
          v_sigma_norm + b,
          v_out + b);
  }
  for (size_t k = 0; k < n_row; ++k) {
    /* a curvature without bounds */
    if (type == TB_WEIGHT_lipschitz && v_out[k] == INFINITY) {
      return TB_STATUS_unsupported;
    }
  }
  return TB_STATUS_ok;
}
