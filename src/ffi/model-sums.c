/* Doors to what a model says of points: sums over rows, and rows one by one.
 * Shapes: theta is n_dim x K, column-major, in the model's sampler coordinates.
 */
#include "base/clip.h"
#include "ffi/model.h"
#include "ffi/unwind.h"
#include "passes/curvature.h"
#include "passes/points.h"
#include "passes/rows.h"
#include "passes/spread.h"
#include "passes/weights.h"

#include <string.h>

/* Scratch for calls on the main thread, in R's memory. Injected noise is for
 * samplers: others get exact gradients. */
static struct tb_workspace model_workspace(const struct tb_model* p_model,
                                           size_t n_batch) {
  struct tb_workspace work = {NULL, NULL};
  work.p_scratch = R_alloc(tb_model_work_size(p_model, n_batch) + 64, 1);
  if (!(p_model->type->flags & TB_MODEL_NOISY)) {
    work.p_rng = (struct tb_rng*)R_alloc(1, sizeof(struct tb_rng));
    tb_rng_init(work.p_rng, 1, 0, TB_STREAM_model);
  }
  return work;
}

/* All rows, or those numbered from 1 in `index`. */
static struct tb_batch
model_batch(const struct tb_model* p_model, SEXP index, double weight) {
  struct tb_batch batch = {.n_batch = p_model->n_data, .weight = weight};
  if (index != R_NilValue) {
    batch.v_index = ffi_rows(index, p_model->n_data, "index");
    batch.n_batch = (size_t)Rf_xlength(index);
  }
  return batch;
}

static void fill_nan(SEXP x) {
  for (R_xlen_t k = 0; k < Rf_xlength(x); ++k) {
    REAL(x)[k] = R_NaN;
  }
}

/* list(log_density (K), gradient (n_dim x K), status) over all rows, or over
 * `index` with the multiplier `weight`; parts: 1 likelihood, 2 prior, 3 both, +
 * 4 to leave the log likelihood out of the density. Where the model says that a
 * value is not finite, those of the point are NaN. */
SEXP ffi_model_gradient(SEXP model,
                        SEXP theta,
                        SEXP index,
                        SEXP weight,
                        SEXP parts) {
  struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  const struct tb_batch all =
      model_batch(p_model, index, ffi_as_number(weight, "weight"));
  const int which = ffi_as_code(parts, 8, "parts");
  const struct tb_workspace work = model_workspace(p_model, TB_CHUNK);
  SEXP out = PROTECT(ffi_list(3));
  SEXP density = Rf_allocVector(REALSXP, (R_xlen_t)n_point);
  ffi_add(out, "log_density", density);
  SEXP gradient = Rf_allocMatrix(REALSXP, (int)n_dim, (int)n_point);
  ffi_add(out, "gradient", gradient);
  struct tb_points points = {
      .p_model = p_model,
      .p_work = &work,
      .v_theta = v_theta,
      .n_point = n_point,
      .wants_log_lik = !(which & 4),
      .v_density = REAL(density),
      .v_gradient = REAL(gradient),
      .v_status =
          (enum tb_status*)R_alloc(n_point + 1, sizeof(enum tb_status))};

  tb_points_begin(&points);
  if (which & 2) {
    tb_points_add_prior(&points);
  }
  ffi_continue(model);
  for (size_t first = 0;
       (which & 1) && first < all.n_batch && tb_points_go_on(&points);
       first += TB_CHUNK) {
    const struct tb_batch block = tb_batch_part(&all, first, TB_CHUNK);
    struct tb_poll poll;
    ffi_poll_begin(p_model, &poll);
    tb_points_add(&points, &block);
    ffi_poll_end(p_model);
    ffi_continue(model);
    R_CheckUserInterrupt();
  }
  const bool has_density =
      !(which & 1) || !(p_model->type->flags & TB_MODEL_NO_DENSITY);
  for (size_t p = 0; !has_density && p < n_point; ++p) {
    points.v_density[p] = NA_REAL;
  }
  tb_points_end(&points);
  ffi_add(out, "status", ffi_status(points.status));
  UNPROTECT(1);
  return out;
}

/* log p(y_i | theta) of the rows `index` (all when NULL), length(index) x K, or
 * the status as an integer */
SEXP ffi_model_log_lik(SEXP model, SEXP theta, SEXP index) {
  const struct tb_model* p_model = ffi_model(model);
  if (p_model->type->log_lik == NULL) {
    return ffi_status(TB_STATUS_unsupported);
  }
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  const struct tb_batch batch = model_batch(p_model, index, 1);
  const struct tb_workspace work = model_workspace(p_model, batch.n_batch);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP,
                                    ffi_extent(batch.n_batch, "index"),
                                    (int)n_point));
  enum tb_status status = TB_STATUS_ok;
  for (size_t p = 0; p < n_point && status == TB_STATUS_ok; ++p) {
    status = p_model->type->log_lik(p_model,
                                    &work,
                                    v_theta + p * n_dim,
                                    &batch,
                                    REAL(out) + p * batch.n_batch);
    ffi_continue(model);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* list(log_posterior, gradient, hessian, status): -Hessian, see
 * passes/curvature.h */
SEXP ffi_model_curvature(SEXP model,
                         SEXP theta,
                         SEXP index,
                         SEXP weight,
                         SEXP round,
                         SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const double* v_theta = ffi_some_doubles(theta, n_dim, "theta");
  const double* v_round = ffi_doubles(round, n_dim, "round");
  const struct tb_batch batch =
      model_batch(p_model, index, ffi_as_number(weight, "weight"));
  const int n_threads_ = ffi_threads(n_threads);
  SEXP out = PROTECT(ffi_list(4));
  SEXP log_posterior = Rf_ScalarReal(R_NaN);
  ffi_add(out, "log_posterior", log_posterior);
  SEXP gradient = Rf_allocVector(REALSXP, (R_xlen_t)n_dim);
  ffi_add(out, "gradient", gradient);
  SEXP hessian = Rf_allocMatrix(REALSXP, (int)n_dim, (int)n_dim);
  ffi_add(out, "hessian", hessian);
  const enum tb_status status = tb_model_curvature(p_model,
                                                   v_theta,
                                                   &batch,
                                                   v_round,
                                                   REAL(log_posterior),
                                                   REAL(gradient),
                                                   REAL(hessian),
                                                   n_threads_);
  ffi_continue(model);
  if (status != TB_STATUS_ok) { /* no bytes that nobody wrote */
    REAL(log_posterior)[0] = R_NaN;
    fill_nan(gradient);
    fill_nan(hessian);
  }
  ffi_add(out, "status", ffi_status(status));
  UNPROTECT(1);
  return out;
}

/* The diagonal of -Hessian over all rows, each with the multiplier `weight`, or
 * the status as an integer. */
SEXP ffi_model_diagonal(SEXP model, SEXP theta, SEXP weight, SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const double* v_theta = ffi_some_doubles(theta, n_dim, "theta");
  const struct tb_batch batch =
      model_batch(p_model, R_NilValue, ffi_as_number(weight, "weight"));
  const int n_threads_ = ffi_threads(n_threads);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_dim));
  const enum tb_status status =
      tb_model_diagonal(p_model, v_theta, &batch, REAL(out), n_threads_);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

static void expansion_finalize(SEXP ptr) {
  struct tb_expansion* p = R_ExternalPtrAddr(ptr);
  if (p != NULL) {
    tb_expansion_destroy(p);
    free(p);
    R_ClearExternalPtr(ptr);
  }
}

/* list(square, weighted, norm, total, status): at each column of theta (n_dim x
 * K) the sums of struct tb_spread. at: the reference, or NULL; order: 1, or 2
 * of an expansion about it; probability: N numbers, or NULL. */
SEXP ffi_model_spread(SEXP model,
                      SEXP theta,
                      SEXP at,
                      SEXP order,
                      SEXP probability) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  const double* v_probability =
      ffi_doubles(probability, p_model->n_data, "probability");
  const struct tb_reference reference = {.v_theta =
                                             ffi_doubles(at, n_dim, "at")};
  const struct tb_workspace work = model_workspace(p_model, TB_CHUNK);
  const size_t n_order = ffi_as_count(order, "order");
  double* v_scratch = (double*)R_alloc(3 * n_dim + TB_CHUNK, sizeof(double));
  double* v_view = (double*)R_alloc(tb_expansion_scratch_size(p_model), 1);
  SEXP out = PROTECT(ffi_list(5));
  double* v_square = ffi_add_vector(out, "square", n_point);
  double* v_weighted = ffi_add_vector(out, "weighted", n_point);
  double* v_norm = ffi_add_vector(out, "norm", n_point);
  double* v_total = ffi_add_vector(out, "total", n_point);
  /* an interrupt leaves by a jump */
  SEXP ptr = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  R_RegisterCFinalizer(ptr, expansion_finalize);
  struct tb_expansion* p_expansion = NULL;
  enum tb_status status = TB_STATUS_ok;
  if (n_order == 2 && reference.v_theta != NULL) {
    double n_row = 0;
    p_expansion = calloc(1, sizeof(*p_expansion));
    status = p_expansion == NULL ? TB_STATUS_memory : TB_STATUS_ok;
    R_SetExternalPtrAddr(ptr, p_expansion);
    if (status == TB_STATUS_ok) {
      status =
          tb_expansion_make(p_model, reference.v_theta, 1, p_expansion, &n_row);
      ffi_continue(model);
    }
  }
  for (size_t p = 0; p < n_point; ++p) {
    struct tb_spread spread = {NAN, NAN, NAN, NAN};
    if (status == TB_STATUS_ok) {
      struct tb_expansion_view view = {0};
      if (p_expansion != NULL) {
        view =
            tb_expansion_look(p_expansion, v_theta + p * n_dim, false, v_view);
      }
      status = tb_spread_of(p_model,
                            &work,
                            v_theta + p * n_dim,
                            reference.v_theta == NULL ? NULL : &reference,
                            p_expansion,
                            &view,
                            v_probability,
                            v_scratch,
                            &spread);
      ffi_continue(model);
      R_CheckUserInterrupt();
    }
    v_square[p] = spread.square;
    v_weighted[p] = spread.weighted;
    v_norm[p] = spread.norm;
    v_total[p] = spread.total;
  }
  expansion_finalize(ptr);
  ffi_add(out, "status", ffi_status(status));
  UNPROTECT(2);
  return out;
}

/* N unnormalised weights, or the status as an integer */
SEXP ffi_model_weights(SEXP model,
                       SEXP type,
                       SEXP theta,
                       SEXP chol,
                       SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const int which = ffi_as_code(type, TB_WEIGHT_count, "type");
  const double* v_theta = which == TB_WEIGHT_lipschitz
                              ? ffi_doubles(theta, n_dim, "theta")
                              : ffi_some_doubles(theta, n_dim, "theta");
  /* NULL: of a whitened model the identity */
  const double* v_chol = ffi_doubles(chol, n_dim * n_dim, "chol");
  const int n_threads_ = ffi_threads(n_threads);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)p_model->n_data));
  const enum tb_status status = tb_model_weights(p_model,
                                                 (enum tb_weight_type)which,
                                                 v_theta,
                                                 v_chol,
                                                 REAL(out),
                                                 n_threads_);
  ffi_continue(model);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* log likelihood at K points, or the status as an integer */
SEXP ffi_model_log_lik_many(SEXP model, SEXP theta) {
  struct tb_model* p_model = ffi_model(model);
  const size_t n_point = ffi_columns(theta, p_model->n_dim, "theta");
  const double* v_theta = REAL(theta);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_point));
  const enum tb_status status =
      tb_model_log_lik_many(p_model, v_theta, n_point, REAL(out), 1);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* largest |x_i^T theta|; NaN when the model has no linear predictor */
SEXP ffi_model_largest_predictor(SEXP model, SEXP theta) {
  struct tb_model* p_model = ffi_model(model);
  const double* v_theta = ffi_some_doubles(theta, p_model->n_dim, "theta");
  return Rf_ScalarReal(tb_model_largest_predictor(p_model, v_theta, 1));
}
