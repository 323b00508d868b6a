/* What the files of models/predictors.c share.
 *
 * A row acts through K linear predictors, each of columns of its own, and
 * through parameters s of the response that all rows share: its inner
 * coordinates, n_inner of both, the predictors first. */
#ifndef TB_MODELS_PREDICTORS_INSIDE_H
#define TB_MODELS_PREDICTORS_INSIDE_H

#include "base/clip.h"
#include "data/store.h"
#include "models/blocks.h"
#include "models/expansion.h"
#include "models/model.h"
#include "priors/prior.h"
#include "responses/response.h"

/* inner coordinates at most, and predictors */
enum { PREDICTORS_MOST_INNER = 3, PREDICTORS_MOST_ETA = 2 };

/* rows that are looked at together */
enum { PREDICTORS_BLOCK = 128 };

struct predictors {
  struct tb_response response;
  struct tb_store store;
  size_t n_coef; /* columns of x */
  size_t n_eta;  /* K */
  size_t n_aux;  /* sampled */
  size_t n_inner;
  size_t v_first[PREDICTORS_MOST_ETA + 1]; /* first column of each predictor */
  size_t v_intercept[PREDICTORS_MOST_ETA]; /* its column; n_coef: none */
  double* v_y;                             /* n_data x n_y, column-major */
  double* v_weight;                        /* n_data, NULL: all 1 */
  double* v_offset; /* n_data, of the first predictor; NULL: none */
  double* v_center; /* n_coef: subtracted from the columns */
  struct tb_prior prior;
  char* p_memory; /* of v_y to v_center */
  size_t n_byte;
};

/* what is found of each row of a block, the weights of the data included; NULL:
 * not wanted */
struct predictors_out {
  bool is_complete;
  double* v_log_lik; /* n_row */
  double* v_score;   /* n_inner x n_row */
  double* v_bend;    /* n_inner x n_inner x n_row: -Hessian, both triangles */
};

/* the pieces of a scratch, of rows of one block */
struct predictors_scratch {
  double* v_x;      /* n_coef x PREDICTORS_BLOCK: rows less v_center */
  double* v_other;  /* n_coef x PREDICTORS_BLOCK */
  double* v_eta;    /* PREDICTORS_BLOCK x n_eta */
  double* v_eta_at; /* PREDICTORS_BLOCK x n_eta: of a reference */
  double* v_y;      /* PREDICTORS_BLOCK x n_y */
  double* v_weight; /* PREDICTORS_BLOCK */
  double* v_column; /* PREDICTORS_BLOCK x what a response says of rows */
  double* v_score;  /* n_inner x PREDICTORS_BLOCK */
  double* v_before; /* n_inner x PREDICTORS_BLOCK: of a reference */
  double* v_bend;   /* n_inner x n_inner x PREDICTORS_BLOCK */
  double* v_block;  /* n_coef x n_coef; only in those that are for curvatures */
};

/* ---- predictors-rows.c ---- */

size_t predictors_scratch_size(const struct predictors* p, bool has_block);
struct predictors_scratch predictors_scratch_at(const struct predictors* p,
                                                void* p_scratch,
                                                bool has_block);

/* columns of predictor k */
static inline size_t predictors_width(const struct predictors* p, size_t k) {
  return p->v_first[k + 1] - p->v_first[k];
}

/* Rows of the batch from `first` on into v_x, with what else the response takes
 * of them; how many. */
size_t predictors_gather(const struct predictors* p,
                         const struct tb_batch* p_batch,
                         size_t first,
                         const struct predictors_scratch* p_s);

/* Their predictors at theta into v_eta. */
void predictors_predict(const struct predictors* p,
                        const double* v_theta,
                        const struct tb_batch* p_batch,
                        size_t first,
                        size_t n_row,
                        const struct predictors_scratch* p_s);

/* What the response says at v_eta, with what all rows share at p_point. */
void predictors_evaluate(const struct predictors* p,
                         const struct tb_response_point* p_point,
                         size_t n_row,
                         const struct predictors_scratch* p_s,
                         const struct predictors_out* p_out);

/* Both, at theta. */
void predictors_look(const struct predictors* p,
                     const double* v_theta,
                     const struct tb_batch* p_batch,
                     size_t first,
                     size_t n_row,
                     const struct predictors_scratch* p_s,
                     const struct predictors_out* p_out);

/* v_gradient += sum_i (u_i1 x_i1, u_i2 x_i2, .., d_i), v_square its squares, of
 * what v_u (n_inner x n_row) holds, which is overwritten; either may be NULL */
void predictors_add(const struct predictors* p,
                    size_t n_row,
                    const struct predictors_scratch* p_s,
                    double* v_u,
                    double* v_gradient,
                    double* v_square);

/* ---- predictors-second.c ---- */

size_t predictors_pass_size(const struct tb_model* p_model,
                            size_t n_row,
                            size_t n_point);
enum tb_status predictors_curvature(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const struct tb_curvature* p_sums);
void predictors_curvature_prior(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const double* v_round,
                                double weight,
                                const struct tb_curvature* p_sums);
enum tb_status predictors_log_lik_many(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       size_t n_point,
                                       const struct tb_batch* p_batch,
                                       double* v_sum);
double predictors_largest_predictor(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch);
extern const struct tb_model_expansion tb_predictors_expansion;

/* ---- predictors-weights.c ---- */

enum tb_status predictors_weights(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  enum tb_weight_type type,
                                  const double* v_theta,
                                  const double* v_sigma,
                                  const struct tb_batch* p_batch,
                                  double* v_out);

#endif
