/* Generalised linear models, unnormalised subsampling weights of rows; see
 * glm.c. */
#include "models/glm.h"

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
 * O(N d^3). A sampled s adds its own row and column of H_i (variance v,
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
 * which eta and s are within the same reach: none of these is a bound. */
struct glm_weight {
  double norm;       /* ||x_i|| */
  double sigma_norm; /* sqrt(q_i) */
  double r, t;
  double c, a, b; /* -H_i in eta and s, or their bounds; see above */
  double third;   /* K'_i */
  double v;       /* variance of s; 0 when it is known */
};

/* ||H_i|| in whitened coordinates. A bound of it for robust weights: how a
 * change of s changes all rows alike is left out. */
static double glm_leverage(const struct glm_weight* p) {
  const double q = p->sigma_norm * p->sigma_norm;
  if (p->v == 0) {
    return fabs(p->c) * q;
  }
  return sqrt(p->c * p->c * q * q + 2 * p->a * p->a * q * p->v +
              p->b * p->b * p->v * p->v);
}

static double glm_hessian_weight(const struct glm_weight* p) {
  const double norm2 = p->norm * p->norm, q = p->sigma_norm * p->sigma_norm;
  if (p->v == 0) {
    return fabs(p->c) * p->norm * p->sigma_norm;
  }
  return sqrt(p->c * p->c * norm2 * q + p->a * p->a * (norm2 * p->v + q) +
              p->b * p->b * p->v);
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
    return sqrt(p->r * p->r * norm2 + p->t * p->t);
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
    return p_type->bound != NULL && !p_glm->has_aux;
  case TB_WEIGHT_count:
    break;
  }
  return false;
}

/* what the weights of a block need of its rows */
struct glm_terms {
  double v_r[BLOCK], v_t[BLOCK];
  double v_c[BLOCK], v_a[BLOCK], v_b[BLOCK];
  double v_third[BLOCK];
};

static void glm_terms_of(const struct glm* p_glm,
                         enum tb_weight_type type,
                         const struct glm_point* p_point,
                         const struct glm_block* p_block,
                         const double* v_reach,
                         struct glm_terms* p) {
  const struct tb_response_type* p_type = p_glm->response.type;
  const struct tb_response_rows rows = glm_rows(p_point, p_block);
  const bool has_aux = p_glm->has_aux;
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
    for (size_t k = 0; has_aux && k < rows.n_row; ++k) {
      p->v_b[k] = tb_response_aux_curvature(p_type, p->v_b[k]);
    }
  }
}

/* The steepest rise of v between places next to each other along s or along
 * eta, three of each: place (i, j) at 3 i + j. */
static double steepest(const double* v, bool along_eta, double step) {
  double most = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      const double rise = along_eta ? v[3 * i + j + 1] - v[3 * i + j]
                                    : v[3 * (j + 1) + i] - v[3 * j + i];
      most = fmax(most, fabs(rise));
    }
  }
  return step > 0 ? most / step : 0;
}

/* Three places of s, which all rows share, around that of a pass. */
struct grid {
  struct tb_response_point v_point[3];
  double step; /* 0: s is known */
};

static struct grid
glm_grid(const struct glm* p_glm, const struct glm_point* p_point, double v) {
  struct grid grid = {.step = p_glm->has_aux ? TB_WEIGHT_REACH * sqrt(v) : 0};
  for (int i = 0; i < 3; ++i) {
    grid.v_point[i] =
        p_glm->has_aux
            ? tb_response_at(&p_glm->response,
                             p_point->response.log_aux + (i - 1) * grid.step)
            : p_point->response;
  }
  return grid;
}

enum { N_PLACE = 9, N_WHAT = 3 };

/* -H_i in eta and s at all places, of the rows of a block: c, a, b */
static void look_around(const struct glm* p_glm,
                        const struct grid* p_grid,
                        const struct glm_block* p_block,
                        const double* v_sigma_norm,
                        double v_look[N_WHAT][N_PLACE][BLOCK]) {
  for (int place = 0; place < N_PLACE; ++place) {
    struct glm_block block = *p_block;
    for (size_t k = 0; k < block.n_row; ++k) {
      block.v_eta[k] += (place % 3 - 1) * TB_WEIGHT_REACH * v_sigma_norm[k];
    }
    const struct glm_point point = {.response = p_grid->v_point[place / 3]};
    const struct tb_response_out out = {
        .v_curvature = v_look[0][place],
        .v_cross = p_glm->has_aux ? v_look[1][place] : NULL,
        .v_aux_curvature = p_glm->has_aux ? v_look[2][place] : NULL};
    glm_evaluate(p_glm, &point, &block, &out);
  }
}

/* Cubic weights by differences. */
static void weigh_third(const struct glm* p_glm,
                        const struct grid* p_grid,
                        const struct glm_block* p_block,
                        const double* v_sigma_norm,
                        double* v_out) {
  const double sd = p_grid->step / TB_WEIGHT_REACH, step = p_grid->step;
  double v_look[N_WHAT][N_PLACE][BLOCK];
  memset(v_look, 0, sizeof(v_look));
  look_around(p_glm, p_grid, p_block, v_sigma_norm, v_look);
  for (size_t k = 0; k < p_block->n_row; ++k) {
    const double norm = v_sigma_norm[k], reach = TB_WEIGHT_REACH * norm;
    double v_eta[N_WHAT], v_s[N_WHAT];
    for (int what = 0; what < N_WHAT; ++what) {
      double v[N_PLACE];
      for (int place = 0; place < N_PLACE; ++place) {
        v[place] = v_look[what][place][k];
      }
      v_eta[what] = steepest(v, true, reach) * norm;
      v_s[what] = steepest(v, false, step) * sd;
    }
    const double eee = v_eta[0] * norm * norm;
    const double ees = fmax(v_eta[1] * norm * sd, v_s[0] * norm * norm);
    const double ess = fmax(v_eta[2] * sd * sd, v_s[1] * norm * sd);
    const double sss = v_s[2] * sd * sd;
    v_out[k] = sqrt(eee * eee + 3 * (ees * ees + ess * ess) + sss * sss);
  }
}

/* v_out of the rows of a block */
static void weigh(const struct glm* p_glm,
                  enum tb_weight_type type,
                  const struct glm_point* p_point,
                  const struct grid* p_grid,
                  const struct tb_rows* p_rows,
                  const double* v_norm,
                  const double* v_sigma_norm,
                  double v,
                  double* v_out) {
  struct glm_block block;
  struct glm_terms terms;
  double v_reach[BLOCK];
  glm_load(p_glm, p_rows, p_point, &block);
  if (type == TB_WEIGHT_cubic &&
      (p_glm->has_aux || p_glm->response.type->third_bound == NULL)) {
    weigh_third(p_glm, p_grid, &block, v_sigma_norm, v_out);
    return;
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    v_reach[k] = type == TB_WEIGHT_lipschitz
                     ? INFINITY
                     : TB_WEIGHT_REACH * v_sigma_norm[k];
  }
  glm_terms_of(p_glm, type, p_point, &block, v_reach, &terms);
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct glm_weight one = {.norm = v_norm[k],
                                   .sigma_norm = v_sigma_norm[k],
                                   .r = terms.v_r[k],
                                   .t = terms.v_t[k],
                                   .c = terms.v_c[k],
                                   .a = terms.v_a[k],
                                   .b = terms.v_b[k],
                                   .third = terms.v_third[k],
                                   .v = v};
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
  tb_trsm_lower(n_coef, n_row, v_chol, n_dim, v_rows, n_padded);
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

/* Variance of s: with it Sigma is block diagonal. */
static double
variance_of_aux(const struct tb_model* p_model, double slope, const double* v) {
  const struct glm* p_glm = p_model->p_self;
  if (!p_glm->has_aux) {
    return 0;
  }
  const double last = v == NULL ? 1 : v[p_model->n_dim * p_model->n_dim - 1];
  return p_glm->is_sparse ? slope * slope * last
                          : slope * slope / (last * last);
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
  const double v = variance_of_aux(p_model, point.slope, v_chol);
  const struct grid grid = glm_grid(p_glm, &point, v);
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
          v,
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
