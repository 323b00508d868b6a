/* Models whose log likelihood and prior are functions of R.
 *
 * The core calls the slots below like those of any model; they call R, and what
 * goes wrong there must not jump through the core. Every call into R is one
 * body under ffi_unwind(), which ends with a status. Errors of the user's
 * functions are worded and noted in `state` by R/model-custom-engine.R, which a
 * calling handler around the body asks for; any other jump is an interrupt. All
 * of this happens on the main thread, so the model may note that a jump waits.
 *
 * The user's functions are called without any function of R around them. What
 * they return is used as it is where it has the plain form; else
 * R/model-custom-engine.R makes that of it, or says why it cannot.
 *
 * Coordinates: free y in the core; the user's functions see the natural x
 * (base/transform.h). Gradients of rows come from one of
 *
 *   rows   rows(theta, batch): n x n_natural, by the user's grad_log_lik
 *   tape   automatic differentiation without R (ffi/tape.h); row by row where
 *          squares are wanted
 *   sum    sum(theta, batch, c, first): n_natural numbers, sum_i c_i dl_i / dx,
 *          by automatic differentiation in R, with `rows` where squares are
 *          wanted
 *   none   central differences of log_lik in y
 *
 *   symbol   variable     shape                      owner
 *   y        v_theta      n_dim                      the core
 *   c_i w_i  v_weight     n_batch                    R vector of the body
 *   a_i      v_row        n_batch x n_dim            R_alloc, of the body
 */
#ifndef TB_FFI_CUSTOM_INSIDE_H
#define TB_FFI_CUSTOM_INSIDE_H

#include "base/transform.h"
#include "ffi/batch.h"
#include "ffi/tape.h"
#include "ffi/unwind.h"

struct custom {
  struct tb_model_type type; /* `curvature` depends on n_dim */
  size_t n_part;
  struct tb_transform_part* v_part;
  double n_byte;
  const double* v_weight; /* n_data, R's: of rows that stand for several; NULL:
                             all 1 */
  struct ffi_jump jump;
  struct tapes *p_tape, *p_prior_tape; /* or NULL */
  struct ffi_pack* p_pack;             /* or NULL */
  const char* running;                 /* the user's function, NULL: none */
  SEXP theta;                          /* where it is called */
  /* R objects, kept by the external pointer */
  SEXP spec, state, data, init, batches;
  SEXP functions; /* environment in which the user's are called, by name */
  SEXP rows, sum, prior_gradient, fail, shape, undefined;
};

/* Both, of a_k = g_k(y) or g_k(y) - g_k(reference), into zeroed arrays. */
struct custom_request {
  const struct tb_model* p_model;
  const double* v_theta;
  const struct tb_batch* p_batch;
  const struct tb_reference* p_reference;
  const struct tb_sums* p_sums; /* NULL: rows are wanted */
  double* v_row;
  double* v_out; /* log likelihoods, or the prior's gradient */
  double* p_log_density;
};

/* ---- custom-call.c: into R and back ---- */

/* A body under R_UnwindProtect(). Errors of the user's functions are worded,
 * but by custom_unwind(): for a body that calls none of them itself, as tapes
 * word the errors of theirs. */
enum tb_status
custom_protected(struct custom* p, SEXP (*body)(void*), void* p_data);
enum tb_status
custom_unwind(struct custom* p, SEXP (*body)(void*), void* p_data);

/* The value of a user's function at theta and, unless it is NULL, batch. */
SEXP custom_call(struct custom* p, const char* name, SEXP theta, SEXP batch);
/* The n doubles that R/model-custom-engine.R makes of a value without the plain
 * form. */
SEXP custom_shaped(struct custom* p,
                   const char* name,
                   SEXP value,
                   size_t n_row,
                   size_t n,
                   SEXP theta);
/* A vector of n doubles, whatever its attributes. */
SEXP custom_vector(struct custom* p,
                   const char* name,
                   SEXP theta,
                   SEXP batch,
                   size_t n);
/* A list as `init` whose elements have n_row numbers for each of theirs, one
 * after the other; NULL where it is anything else. */
double*
custom_flat_list(const struct custom* p, SEXP value, size_t n_row, size_t n);
/* l_i of the rows of the batch, without their weights; the caller protects what
 * it keeps */
SEXP custom_call_log_lik(struct custom* p,
                         const double* v_theta,
                         SEXP batch,
                         size_t n_batch);

/* x, R_alloc */
double* custom_natural(const struct custom* p, const double* v_free);
/* theta: the list `init` with other numbers */
SEXP custom_theta(const struct custom* p, const double* v_free);
/* w_i of row k of the batch */
static inline double custom_weight(const struct custom* p,
                                   const struct tb_batch* p_batch,
                                   size_t k) {
  return p->v_weight == NULL ? 1 : p->v_weight[tb_batch_row(p_batch, k)];
}
/* The batch, in the form of the data. */
SEXP custom_batch(const struct custom* p,
                  size_t n_row,
                  const struct tb_batch* p_batch);

/* Some of the n numbers that a user's function gave, or their derivatives, are
 * none, although theta is finite: R/model-custom-engine.R notes which function,
 * and where.
 */
void custom_note_undefined(struct custom* p,
                           const char* name,
                           const double* v,
                           size_t n,
                           const double* v_theta,
                           size_t n_dim);

/* h of a central difference: the rounding error of the difference and the
 * third derivative's share are about equal; v_theta to write to, R_alloc */
double custom_difference_step(double y);
double* custom_copy_point(const double* v_theta, size_t n_dim);

/* ---- slots of the model: custom-gradient.c, custom-density.c ---- */

enum tb_status custom_gradient(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               const double* v_theta,
                               const struct tb_batch* p_batch,
                               const struct tb_reference* p_reference,
                               const struct tb_sums* p_sums);
enum tb_status custom_square_norms(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   const struct tb_batch* p_batch,
                                   const struct tb_reference* p_reference,
                                   double* v_square,
                                   double* v_sum);
enum tb_status custom_row_gradients(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    double* v_row);
enum tb_status custom_prior(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            double* v_gradient,
                            double* p_log_prior);
enum tb_status custom_log_lik(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta,
                              const struct tb_batch* p_batch,
                              double* v_out);
enum tb_status custom_curvature(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_curvature* p_sums);

#endif
