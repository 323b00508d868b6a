/* The model family: what a posterior must be able to say about itself.
 *
 *   log pi(theta) = log p(theta) + sum_i log p(y_i | theta) + const
 *   g(theta) = g_0(theta) + sum_i g_i(theta)       (gradients of the LOG
 *   posterior; g_0: the prior and every term that needs no data)
 *
 * A model is a const table of functions and an opaque `p_self` that the
 * threads share and never change while a run advances. What a chain needs to
 * write is its own workspace. Every function takes blocks of rows: dispatch is
 * once per minibatch, never per row. No function goes over all rows by itself:
 * passes/ do, and hand in one block after the other.
 *
 * Coordinates: functions take the SAMPLER coordinates (phi when the model
 * has a frame, theta otherwise).
 *
 * Batches, references and sums are those of tallbayes.h, which models of
 * users include. */
#ifndef TB_MODELS_MODEL_H
#define TB_MODELS_MODEL_H

#include "base/frame.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/status.h"
#include "models/batch.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tallbayes.h>

/* What a chain lends to the model for one call. */
struct tb_workspace {
  void* p_scratch;      /* workspace_size() bytes, this chain's alone */
  struct tb_rng* p_rng; /* the model's own stream, TB_STREAM_model; NULL asks a
                           TB_MODEL_NOISY model for its exact gradient */
  size_t n_thread;      /* that the call may use; 0: one. What it computes does
                           not depend on it. */
};

enum tb_model_flag {
  TB_MODEL_SCALAR = 1u << 0,      /* g_i = r_i x_i: n_scalar numbers a row */
  TB_MODEL_MAIN_THREAD = 1u << 1, /* calls R: chains run one after another */
  TB_MODEL_RANDOM = 1u << 2,      /* draws from its own stream */
  TB_MODEL_NOISY = 1u << 3, /* injects noise into g_0, reports its variance */
  TB_MODEL_NO_DENSITY = 1u << 4, /* leaves p_log_lik alone: no Metropolis */
  TB_MODEL_POLLS = 1u << 5       /* a minibatch may take long: gradients ask
                                    p_model->p_poll, and may end interrupted */
};

enum tb_weight_type {
  TB_WEIGHT_gradient = 0,  /* ||g_i|| */
  TB_WEIGHT_hessian = 1,   /* sqrt(tr(H_i Sigma H_i^T)) */
  TB_WEIGHT_lipschitz = 2, /* L_i */
  TB_WEIGHT_leverage = 3,  /* |w_i| x_i^T Sigma x_i */
  TB_WEIGHT_robust = 4,    /* the same with the largest |w_i| within
                              TB_WEIGHT_REACH sds: see tb_model_type.weights */
  TB_WEIGHT_cubic = 5,     /* sup |l_i'''| (x_i^T Sigma x_i)^(3/2), likewise */
  TB_WEIGHT_count = 6
};

/* How far from theta robust and cubic weights look: the linear predictor of row
 * i between eta_i -+ TB_WEIGHT_REACH sqrt(x_i^T Sigma x_i), that many of its
 * posterior sds. */
#define TB_WEIGHT_REACH 4.0

/* What rows add to the log posterior and its derivatives, each with its
 * multiplier: ADDED to, but v_root, which is SET. Where a model has n_root, the
 * leading n_root x n_root of -Hessian are S^T S: S has a row for each of the
 * batch, and the pass makes one product of many rows. */
struct tb_curvature {
  double* p_log_lik;
  double* v_gradient; /* n_dim */
  double* v_hessian;  /* n_dim x (n_dim - n_root): the columns of -Hessian from
                         n_root on, full */
  double* v_root;     /* S: n_batch rows of n_root numbers, n_lead apart */
  double* v_sign;     /* n_batch, 0 so far: below 0 of rows whose product is
                         subtracted */
  size_t n_lead;
  bool with_prior; /* of the first block of a pass, where a model has no
                      curvature_prior(): it adds its prior as well. The sums are
                      0 so far. */
};

struct tb_model;
struct tb_model_blocks;
struct tb_model_expansion;
struct tb_model_sweeps;
struct tb_mixtures;
struct tb_shelf;

struct tb_model_type {
  const char* name;
  const char* citation;
  unsigned flags;

  /* ---- required ---- */

  /* Build p_model->p_self (and n_data, n_dim, n_natural) from the parameters;
   * rows for random access are taken from the shelf. On failure everything is
   * released and p_self is NULL. */
  enum tb_status (*create)(struct tb_model* p_model,
                           const struct tb_params* p_params,
                           const struct tb_shelf* p_shelf);
  void (*destroy)(struct tb_model* p_model);

  /* g_0: SETS v_gradient (n_dim); adds log p(theta) to *p_log_prior if not
   * NULL. */
  enum tb_status (*prior)(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          const double* v_theta,
                          double* v_gradient,
                          double* p_log_prior);

  /* The pass over rows; see struct tb_sums. p_reference may be NULL. */
  enum tb_status (*gradient)(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const struct tb_reference* p_reference,
                             const struct tb_sums* p_sums);

  /* ---- optional: NULL where a model cannot ---- */

  /* bytes of scratch a chain needs for minibatches of up to n_batch rows */
  size_t (*workspace_size)(const struct tb_model* p_model, size_t n_batch);

  /* TB_MODEL_NOISY: SETS v_variance (n_dim) to that of the injected noise */
  void (*noise_variance)(const struct tb_model* p_model, double* v_variance);

  /* Is theta outside the support of the prior? NULL: it has no bounds. prior()
   * does not look: outside, its density is that of the formula continued. */
  bool (*is_outside)(const struct tb_model* p_model,
                     const struct tb_workspace* p_work,
                     const double* v_theta);

  /* Of a model with moves: one in coordinates of its own, for posteriors that
   * are narrow somewhere in theta. SETS v_to (n_dim) to a draw from q(. |
   * theta) and returns log q(theta | v_to) - log q(v_to | theta). */
  double (*move)(const struct tb_model* p_model,
                 const struct tb_workspace* p_work,
                 const double* v_theta,
                 struct tb_rng* p_rng,
                 double* v_to);

  /* log p(y_i | theta) of each row of the batch into v_out (n_batch) */
  enum tb_status (*log_lik)(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const struct tb_batch* p_batch,
                            double* v_out);

  /* Store r_i(theta) of the rows of the batch, which follow each other, inside
   * the model, ADD sum_i g_i(theta) to v_sum; the place is then read through
   * stored_scalar(). Threads call it at the same time for other rows. */
  enum tb_status (*store_scalar)(struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 double* v_sum);
  struct tb_reference (*stored_scalar)(const struct tb_model* p_model);

  /* ||a_k||^2 of each row of the batch into v_square (n_batch), whatever its
   * multiplier, and sum_k a_k ADDED to v_sum (NULL: not wanted); a_k as in
   * struct tb_sums. NULL: models/rows.h asks one row at a time. */
  enum tb_status (*square_norms)(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch,
                                 const struct tb_reference* p_reference,
                                 double* v_square,
                                 double* v_sum);

  /* g_i(theta) of each row of the batch, whatever its multiplier, into v_row
   * (n_batch x n_dim, a row of it each), SET. NULL: models/rows.h asks one row
   * at a time. */
  enum tb_status (*row_gradients)(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  const double* v_theta,
                                  const struct tb_batch* p_batch,
                                  double* v_row);

  /* TB_MODEL_SCALAR: add to v_sum the gradients, whatever their multipliers,
   * that v_scalar (n_batch x n_scalar) holds of the rows of the batch. */
  enum tb_status (*add_scalar)(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               const struct tb_batch* p_batch,
                               const double* v_scalar,
                               double* v_sum);

  /* models/blocks.h, which has the slots above for those who say what is done
   * with a block of rows; NULL: they are the model's own */
  const struct tb_model_blocks* blocks;

  /* ---- for passes over all rows, in threads: passes/ ---- */

  /* bytes of scratch that those below need for a block of up to n_row rows,
   * and n_point points seen at once; NULL: what workspace_size() says */
  size_t (*pass_size)(const struct tb_model* p_model,
                      size_t n_row,
                      size_t n_point);

  /* Log likelihood, gradient and -Hessian of the rows of the batch; see struct
   * tb_curvature. */
  enum tb_status (*curvature)(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta,
                              const struct tb_batch* p_batch,
                              const struct tb_curvature* p_sums);

  /* ADDS the prior, and what depends on no row but the sum of the multipliers,
   * `weight`; v_hessian is all of it then, and v_root NULL. v_round (n_dim, or
   * NULL) rounds off the kinks of a prior that has any: |t| becomes
   * sqrt(t^2 + round^2). NULL: curvature() does, see with_prior. */
  void (*curvature_prior)(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          const double* v_theta,
                          const double* v_round,
                          double weight,
                          const struct tb_curvature* p_sums);

  /* ADDS the diagonal of -Hessian of the rows of the batch to v_diagonal
   * (n_dim), and that of the prior. */
  enum tb_status (*diagonal)(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             bool with_prior,
                             double* v_diagonal);

  /* Unnormalised subsampling weights of the rows of the batch, which follow
   * each other, into v_out (n_batch). v_chol: lower Cholesky factor
   * (column-major) of -Hessian, the inverse of Sigma, or Sigma itself where the
   * model takes_covariance; NULL where the type does not need it. NULL slot:
   * passes/weights.h goes row by row, by the norms of gradients and, where
   * there is a curvature, by Hessians. */
  enum tb_status (*weights)(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            enum tb_weight_type type,
                            const double* v_theta,
                            const double* v_chol,
                            const struct tb_batch* p_batch,
                            double* v_out);

  /* largest |x_i^T theta| over the rows of the batch, which follow each other:
   * grows without end when the classes are separated */
  double (*largest_predictor)(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta,
                              const struct tb_batch* p_batch);

  /* log likelihood of the rows of the batch, which follow each other, at each
   * of n_point columns of v_theta (n_dim x n_point), ADDED to v_sum (n_point)
   */
  enum tb_status (*log_lik_many)(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 size_t n_point,
                                 const struct tb_batch* p_batch,
                                 double* v_sum);

  /* Models with a linear predictor: sqrt(w_i) (x_i - c, y_i - o_i - c_y, 1) of
   * the rows of the batch, w_i their multipliers times the weights of the data,
   * SET, n_lead apart. v_center: c, n_coef + 1 numbers. */
  enum tb_status (*design)(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           const struct tb_batch* p_batch,
                           const double* v_center,
                           double* v_root,
                           size_t n_lead);

  /* ---- */

  /* Lipschitz constant of g_0; NaN where there is none, or none known */
  double (*lipschitz_prior)(const struct tb_model* p_model);

  /* Draws some coordinates of v_theta from their law given the others, with the
   * chain's stream; the run calls it before every n_gibbs_every-th step. */
  enum tb_status (*gibbs)(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          double* v_theta);

  /* parameters (after the frame) -> natural scale, n_natural numbers; NULL:
   * they are natural already. Where it changes nothing in a model that has it,
   * the model is_natural. */
  void (*constrain)(const struct tb_model* p_model,
                    const double* v_theta,
                    double* v_natural);

  /* models/sweeps.h: it moves its own chains, and has no gradient; NULL: others
   * do */
  const struct tb_model_sweeps* sweeps;

  /* models/expansion.h; NULL: rows do not act through a predictor each */
  const struct tb_model_expansion* expansion;

  /* tb_prior_quadratic() in the sampler's coordinates; NULL: P is 0, and the
   * log prior is not quadratic */
  bool (*prior_quadratic)(const struct tb_model* p_model,
                          const double* v_theta,
                          double* v_hessian);

  /* bytes held by the data store */
  size_t (*memory)(const struct tb_model* p_model);

  /* Can its functions still be called? NULL: always. */
  bool (*is_usable)(const struct tb_model* p_model);

  /* Change the coordinates to phi: rewrite the rows IN PLACE. v_chol: n_dim x
   * n_dim, column-major lower L, or the n_dim diagonal of it. Where
   * can_whiten() says that its rows must stay as they are (NULL: never),
   * models/framed.h does it around the model. */
  bool (*can_whiten)(const struct tb_model* p_model);
  enum tb_status (*whiten)(struct tb_model* p_model,
                           const double* v_center,
                           const double* v_chol,
                           bool is_diagonal);

  /* an independent copy, for a whitened twin; p_out is filled whole */
  enum tb_status (*copy)(const struct tb_model* p_model,
                         struct tb_model* p_out);

  /* The same posterior from rows of which no two are equal, each with the
   * weight of all that are: an independent model, p_out filled whole.
   * TB_STATUS_unsupported where there would be more than n_most. NULL: rows are
   * never merged. */
  enum tb_status (*merge)(const struct tb_model* p_model,
                          size_t n_most,
                          struct tb_model* p_out);
};

struct tb_model {
  const struct tb_model_type* type;
  size_t n_data;
  size_t n_dim;     /* coordinates the sampler moves */
  size_t n_natural; /* variables the user sees */
  size_t n_scalar;  /* numbers that hold g_i, TB_MODEL_SCALAR only */
  size_t n_root; /* columns of v_root of struct tb_curvature; 0: the model adds
                    its Hessian itself */
  bool takes_covariance; /* does weights() take Sigma, not a factor? */
  bool is_wide;          /* are n_dim x n_dim numbers too many? Then there is no
                            curvature(), but diagonal() */
  size_t n_gibbs_every;  /* steps from one gibbs() to the next; 0: none */
  double move_share;     /* of the steps: moves of its own, see move(); 0: none
                          */
  bool is_even;    /* each term of log pi is even in each coordinate by itself:
                      chains see it at |theta|, see tb_chain_gradient() */
  bool is_natural; /* are the parameters the variables, although type->constrain
                      is there? See tb_model_has_map(). */
  const struct tb_frame* p_frame; /* NULL: identity */
  struct tb_poll* p_poll;         /* lent for a call; NULL: nobody waits */
  struct tb_model* p_base;        /* what models/framed.h has put the frame
                                     around; NULL for all else */
  /* what models/scaled.h has put hyperparameters around, and their priors: the
     leading coordinates are those of p_rows, the others phi; NULL for all else
   */
  const struct tb_model* p_rows;
  const struct tb_mixtures* p_mixtures;
  uint64_t fingerprint; /* of the data, to recognise them again */
  uint64_t n_stored;    /* how often store_scalar() was called */
  void* p_self;
};

/* the model of the rows alone, whose coordinates are the leading ones */
static inline const struct tb_model*
tb_model_of_rows(const struct tb_model* p_model) {
  return p_model->p_rows == NULL ? p_model : p_model->p_rows;
}

/* Are variables other numbers than the parameters? A model that does not say
 * that it is_natural is taken to have a map where its type has one: who reads a
 * draw then keeps both. */
static inline bool tb_model_has_map(const struct tb_model* p_model) {
  return p_model->type->constrain != NULL && !p_model->is_natural;
}

static inline bool tb_model_has_curvature(const struct tb_model* p_model) {
  return p_model->type->curvature != NULL && !p_model->is_wide;
}

/* bytes that a chain lends for minibatches of up to n_batch rows */
static inline size_t tb_model_work_size(const struct tb_model* p_model,
                                        size_t n_batch) {
  return p_model->type->workspace_size == NULL
             ? 0
             : p_model->type->workspace_size(p_model, n_batch);
}

/* Can its rows be rewritten in whitened coordinates? */
static inline bool tb_model_can_whiten(const struct tb_model* p_model) {
  const struct tb_model_type* type = p_model->type;
  return type->whiten != NULL &&
         (type->can_whiten == NULL || type->can_whiten(p_model));
}

/* Where a chain evaluates the model: |theta| if it is even, else theta itself
 */
static inline void tb_model_fold(const struct tb_model* p_model,
                                 const double* v_theta,
                                 double* v_out) {
  for (size_t j = 0; j < p_model->n_dim; ++j) {
    v_out[j] = p_model->is_even ? fabs(v_theta[j]) : v_theta[j];
  }
}

/* registry.c: every model of the library, NULL-terminated */
extern const struct tb_model_type* const tb_model_registry[];
const struct tb_model_type* tb_model_find(const char* name);

#endif
