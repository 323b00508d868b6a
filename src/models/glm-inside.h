/* What the files of generalised linear models share: glm.c makes them and has
 * the mathematics and the shapes of arrays, glm-rows.c says what samplers ask
 * of a minibatch, glm-curvature.c, glm-design.c, glm-weights.c and glm-third.c
 * what passes over all rows ask. */
#ifndef TB_MODELS_GLM_INSIDE_H
#define TB_MODELS_GLM_INSIDE_H

#include "base/clip.h"
#include "data/store.h"
#include "models/blocks.h"
#include "models/expansion.h"
#include "models/model.h"
#include "priors/prior.h"
#include "responses/response.h"

#include <string.h>

/* columns of v_obs that are always there; t_i follows r_i */
enum { OBS_y = 0, OBS_scalar = 1, OBS_fixed = 2 };

#define BLOCK TB_STORE_BLOCK
#define AUX   TB_RESPONSE_MOST_AUX
#define PAIR  TB_RESPONSE_MOST_PAIR

/* Columns of which sums of products are made where rows are sparse, 1,000 and
 * an intercept: with more, n_dim x n_dim numbers would be more than the rows.
 * As `most_whitened` in R/util-settings.R. */
enum { GLM_MOST_PRODUCTS = 1001 };

struct glm {
  struct tb_response response;
  size_t n_aux;    /* sampled: the last coordinates */
  size_t n_coef;   /* columns of x */
  size_t n_scalar; /* stored for each row: r_i, and each t_i */
  struct tb_store store;
  bool is_sparse; /* the store */
  double* v_obs;
  size_t n_obs_col;
  size_t k_weight; /* 0: no such column */
  size_t k_offset;
  size_t k_more_y; /* the first of its further columns of y */
  size_t n_more_y;
  struct tb_prior prior;
  struct tb_frame frame;
};

/* a chain's scratch */
struct glm_scratch {
  double* v_theta;     /* glm_width(), zero beyond the coefficients */
  double* v_reference; /* glm_width(), and so below */
  double* v_sum;
  double* v_square;
};

/* where a pass takes place */
struct glm_point {
  const double* v_coef; /* n_padded, zero beyond n_coef */
  struct tb_response_point response;
  double v_aux[AUX];         /* coordinates s */
  double v_slope[AUX * AUX]; /* ds_k / dphi_l at k AUX + l, k <= l: the identity
                                without a frame */
};

/* the scalar side of a block of rows */
struct glm_block {
  size_t n_row;
  double v_eta[BLOCK];
  double v_y[TB_RESPONSE_MOST_Y * BLOCK]; /* columns of n_row */
  double v_weight[BLOCK];
};

/* what a response reads of a block */
static inline struct tb_response_rows
glm_rows(const struct glm_point* p_point, const struct glm_block* p_block) {
  return (struct tb_response_rows){.n_row = p_block->n_row,
                                   .n_predictor = 1,
                                   .v_eta = p_block->v_eta,
                                   .v_y = p_block->v_y,
                                   .v_weight = p_block->v_weight,
                                   .p_point = &p_point->response};
}

/* Columns of y beyond the first of a block, of which n_row is set. */
void glm_load_more_y(const struct glm* p_glm,
                     const struct tb_rows* p_rows,
                     struct glm_block* p_block);

static inline void glm_evaluate(const struct glm* p_glm,
                                const struct glm_point* p_point,
                                const struct glm_block* p_block,
                                const struct tb_response_out* p_out) {
  const struct tb_response_rows rows = glm_rows(p_point, p_block);
  p_glm->response.type->evaluate(&rows, p_out);
}

/* sum of t_i, and of t_ik t_il by pairs */
struct glm_aux_sums {
  double v_sum[AUX];
  double v_pair[PAIR];
};

/* ADDS weight t_i to the sums; t_k of row i is at v_t[k * n_row + i] */
static inline void glm_aux_add(struct glm_aux_sums* p_sums,
                               size_t n_aux,
                               double weight,
                               const double* v_t,
                               size_t n_row) {
  double v_own[AUX];
  for (size_t k = 0; k < n_aux; ++k) {
    v_own[k] = weight * v_t[k * n_row];
    p_sums->v_sum[k] += v_own[k];
    for (size_t l = 0; l <= k; ++l) {
      p_sums->v_pair[tb_response_pair(k, l)] += v_own[k] * v_own[l];
    }
  }
}

/* M^T t, M the slopes */
static inline void glm_pull_aux(const double* v_slope,
                                size_t n_aux,
                                const double* v_t,
                                double* v_out) {
  for (size_t l = 0; l < n_aux; ++l) {
    double sum = 0;
    for (size_t k = 0; k <= l; ++k) {
      sum += v_slope[k * AUX + l] * v_t[k];
    }
    v_out[l] = sum;
  }
}

/* M^T B M of the pairs B */
void glm_pull_pairs(const double* v_slope,
                    size_t n_aux,
                    const double* v_pair,
                    double* v_out);

/* the sums, into what is asked for of the last coordinates */
void glm_aux_finish(const struct glm* p_glm,
                    const double* v_slope,
                    const struct glm_aux_sums* p_from,
                    const struct tb_sums* p_sums);

static inline const double* glm_obs(const struct glm* p_glm, size_t row) {
  return p_glm->v_obs + row * p_glm->n_obs_col;
}

/* room for a padded row, or for all coordinates */
static inline size_t glm_width(const struct glm* p_glm) {
  return tb_max(p_glm->store.n_padded, p_glm->n_coef + AUX);
}

/* bytes */
static inline size_t glm_scratch_size(const struct glm* p_glm) {
  return 4 * glm_width(p_glm) * sizeof(double);
}

static inline struct glm_scratch glm_scratch_at(const struct glm* p_glm,
                                                void* p) {
  const size_t n = glm_width(p_glm);
  double* v = p;
  return (struct glm_scratch){v, v + n, v + 2 * n, v + 3 * n};
}

static inline void
glm_pad(double* v_to, const double* v_from, size_t n, size_t n_padded) {
  memcpy(v_to, v_from, n * sizeof(double));
  for (size_t j = n; j < n_padded; ++j) {
    v_to[j] = 0;
  }
}

/* ---- glm-rows.c ---- */

void glm_load(const struct glm* p_glm,
              const struct tb_rows* p_rows,
              const struct glm_point* p_point,
              struct glm_block* p_block);
void glm_slope(const struct tb_model* p_model, double* v_slope);
struct glm_point glm_point_at(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_padded);
struct tb_reference glm_stored_scalar(const struct tb_model* p_model);
extern const struct tb_model_blocks tb_glm_blocks;

/* ---- glm-curvature.c ---- */

/* scratch for passes, blocks of n_row rows; v_eta: n_row x n_point */
enum { GLM_N_COLUMN = 3 + TB_RESPONSE_MOST_Y };
struct glm_pass_scratch {
  struct glm_scratch of_point;
  double* v_column[GLM_N_COLUMN]; /* n_row each */
  double* v_rows;                 /* n_row x n_padded; of sparse rows none */
  double* v_eta;
};
size_t
glm_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point);
struct glm_pass_scratch glm_pass_scratch_at(const struct glm* p_glm,
                                            const struct tb_workspace* p_work,
                                            size_t n_row);

enum tb_status glm_curvature(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const struct tb_curvature* p_sums);
void glm_curvature_prior(const struct tb_model* p_model,
                         const struct tb_workspace* p_work,
                         const double* v_theta,
                         const double* v_round,
                         double weight,
                         const struct tb_curvature* p_sums);
enum tb_status glm_diagonal(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const struct tb_batch* p_batch,
                            bool with_prior,
                            double* v_diagonal);
enum tb_status glm_log_lik_many(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                size_t n_point,
                                const struct tb_batch* p_batch,
                                double* v_sum);
double glm_largest_predictor(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const struct tb_batch* p_batch);

/* ---- glm-design.c ---- */

enum tb_status glm_design(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          const struct tb_batch* p_batch,
                          const double* v_center,
                          double* v_root,
                          size_t n_lead);

/* ---- glm-second.c ---- */

extern const struct tb_model_expansion tb_glm_expansion;

/* ---- glm-third.c ---- */

/* Places around that of a pass: three along eta, which is a row's own, and
 * three along each whitened s, which all rows share. Place i_0 + 3 i_1 + ..
 */
enum { GLM_MOST_PLACE = 27 };

struct glm_grid {
  size_t n_aux, n_place;
  struct tb_response_point v_point[GLM_MOST_PLACE / 3];
  double v_root[AUX * AUX]; /* R: s from whitened ones */
};

struct glm_grid glm_grid_at(const struct glm* p_glm,
                            const double* v_center,
                            const double* v_root);
/* SETS v_out, one for each row of the block */
void glm_weigh_third(const struct glm* p_glm,
                     const struct glm_grid* p_grid,
                     const struct glm_block* p_block,
                     const double* v_sigma_norm,
                     double* v_out);

/* ---- glm-weights.c ---- */

enum tb_status glm_weights(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           enum tb_weight_type type,
                           const double* v_theta,
                           const double* v_chol,
                           const struct tb_batch* p_batch,
                           double* v_out);

#endif
