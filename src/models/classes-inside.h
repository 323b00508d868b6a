/* What the files of models/classes.c share.
 *
 * A row acts through n_eta linear predictors, and through n_shared parameters
 * that all rows share: its inner coordinates, n_inner of both, the predictors
 * first. What a head knows is the log density of the row's class in these. */
#ifndef TB_MODELS_CLASSES_INSIDE_H
#define TB_MODELS_CLASSES_INSIDE_H

#include "base/clip.h"
#include "data/store.h"
#include "models/blocks.h"
#include "models/expansion.h"
#include "models/model.h"
#include "priors/prior.h"

struct classes;

/* K at most */
enum { CLASSES_MOST = 1000 };

/* rows that are looked at together */
enum { CLASSES_BLOCK = 128 };

/* What a head finds of each row of a block, whatever its weights; NULL: not
 * wanted. */
struct classes_out {
  double* v_log_lik; /* n_row */
  double* v_score;   /* n_inner x n_row */
  double* v_bend;    /* n_inner x n_inner x n_row: -Hessian, both triangles */
};

struct classes_head {
  const char* name;
  bool is_ordered; /* one predictor, and thresholds */

  /* v_eta: n_eta x n_row; v_class: n_row, from 0; v_shared: n_shared;
   * v_work: room for n_work numbers */
  void (*look)(const struct classes* p,
               const double* v_shared,
               const double* v_eta,
               const double* v_class,
               size_t n_row,
               double* v_work,
               const struct classes_out* p_out);
};

extern const struct classes_head classes_softmax;
extern const struct classes_head classes_cumulative_logit;
extern const struct classes_head classes_cumulative_probit;

struct classes {
  const struct classes_head* head;
  struct tb_store store;
  size_t n_class; /* K */
  size_t n_coef;  /* p, columns of x */
  size_t n_eta;
  size_t n_shared;
  size_t n_inner;
  size_t intercept; /* its column; n_coef: there is none */
  double* v_class;  /* n_data */
  double* v_weight; /* n_data, NULL: all 1 */
  double* v_offset; /* n_data, NULL: none; of one predictor */
  double* v_center; /* n_coef: subtracted from the columns */
  double* v_count;  /* n_class: of the thresholds' prior; NULL: they are flat */
  struct tb_prior prior;
  char* p_memory; /* of v_class to v_count */
  size_t n_byte;
};

/* the pieces of a scratch, of rows of one block */
struct classes_scratch {
  double* v_x;      /* n_coef x CLASSES_BLOCK: rows less v_center */
  double* v_eta;    /* n_eta x CLASSES_BLOCK */
  double* v_score;  /* n_inner x CLASSES_BLOCK */
  double* v_before; /* n_inner x CLASSES_BLOCK: of a reference, or squares */
  double* v_other;  /* n_coef x CLASSES_BLOCK */
  double* v_work;   /* classes_work_size() */
  double* v_eta_at; /* n_eta x CLASSES_BLOCK: of a reference */
  double* v_bend;   /* n_inner x n_inner x CLASSES_BLOCK */
  double* v_along;  /* n_dim */
  double* v_block;  /* n_coef x n_coef; only in those that are for curvatures */
};

static inline size_t classes_theta_size(const struct classes* p) {
  return p->n_eta * p->n_coef + p->n_shared;
}

/* ---- classes-rows.c ---- */

/* frees what the model has, and forgets it */
void classes_destroy(struct tb_model* p_model);

size_t classes_scratch_size(const struct classes* p, bool has_block);
struct classes_scratch
classes_scratch_at(const struct classes* p, void* p_scratch, bool has_block);

/* shared parameters of theta */
static inline const double* classes_shared(const struct classes* p,
                                           const double* v_theta) {
  return v_theta + p->n_eta * p->n_coef;
}

/* multiplier of a row of the batch times its weight in the data */
static inline double classes_weight(const struct classes* p,
                                    const struct tb_batch* p_batch,
                                    size_t k) {
  const double c = tb_batch_weight(p_batch, k);
  return p->v_weight == NULL ? c : c * p->v_weight[tb_batch_row(p_batch, k)];
}

/* Rows of the batch from `first` on into v_x; how many. */
size_t classes_gather(const struct classes* p,
                      const struct tb_batch* p_batch,
                      size_t first,
                      const struct classes_scratch* p_s);

/* Their predictors at theta into v_eta, and what the head finds there. */
void classes_look(const struct classes* p,
                  const double* v_theta,
                  const struct tb_batch* p_batch,
                  size_t first,
                  size_t n_row,
                  const struct classes_scratch* p_s,
                  const struct classes_out* p_out);

/* v_gradient += sum_i u_i x_i^T and the shared part, v_square its squares, of
 * what v_u (n_inner x n_row) holds, weights included, which is overwritten;
 * either may be NULL */
void classes_add(const struct classes* p,
                 size_t n_row,
                 const struct classes_scratch* p_s,
                 double* v_u,
                 double* v_gradient,
                 double* v_square);

/* thresholds of their coordinates, K - 1 numbers */
void classes_thresholds(size_t n_class, const double* v_shared, double* v_cut);

/* Log prior of the thresholds: ADDS its gradient and -Hessian (n_lead apart) to
 * what is not NULL. */
double classes_prior_of_thresholds(const struct classes* p,
                                   const double* v_shared,
                                   double* v_gradient,
                                   double* v_bend,
                                   size_t n_lead);

/* classes-log-lik.c */
enum tb_status classes_log_lik_many(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    size_t n_point,
                                    const struct tb_batch* p_batch,
                                    double* v_sum);
double classes_largest_predictor(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch);

/* classes-second.c */
size_t
classes_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point);
enum tb_status classes_curvature(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 const struct tb_curvature* p_sums);
void classes_curvature_prior(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const double* v_round,
                             double weight,
                             const struct tb_curvature* p_sums);
extern const struct tb_model_expansion classes_expansion;

/* classes-merge.c */
enum tb_status classes_merge(const struct tb_model* p_model,
                             size_t n_most,
                             struct tb_model* p_out);

/* classes-weights.c */
enum tb_status classes_weights(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               enum tb_weight_type type,
                               const double* v_theta,
                               const double* v_sigma,
                               const struct tb_batch* p_batch,
                               double* v_out);

#endif
