/* Doors to models: make one, ask it. Shapes: theta is n_dim x K, column-major,
 * in the model's sampler coordinates. */
#include "ffi/args.h"

#include "base/clip.h"
#include "diagnostics/pseudo-variance.h"
#include "models/framed.h"
#include "models/rows.h"

#include <stdlib.h>
#include <string.h>

static void model_finalize(SEXP ptr) {
  struct tb_model* p_model = R_ExternalPtrAddr(ptr);
  if (p_model != NULL) {
    if (p_model->p_self != NULL) {
      p_model->type->destroy(p_model);
    }
    free(p_model);
    R_ClearExternalPtr(ptr);
  }
}

SEXP ffi_model_pointer(void) {
  SEXP ptr = PROTECT(R_MakeExternalPtr(NULL, Rf_install("tall_model"), R_NilValue));
  R_RegisterCFinalizerEx(ptr, model_finalize, TRUE);
  UNPROTECT(1);
  return ptr;
}

struct tb_model* ffi_model_attach(SEXP ptr) {
  struct tb_model* p_model = calloc(1, sizeof(*p_model));
  R_SetExternalPtrAddr(ptr, p_model);
  return p_model;
}

/* Scratch for calls on the main thread, in R's memory. Injected noise is for
 * samplers: others get exact gradients. */
static struct tb_workspace model_workspace(const struct tb_model* p_model,
                                           size_t n_batch) {
  struct tb_workspace work = { NULL, NULL };
  if (p_model->type->workspace_size != NULL) {
    const size_t n_byte = p_model->type->workspace_size(p_model, n_batch);
    work.p_scratch = R_alloc(n_byte + 64, 1);
  }
  if (!(p_model->type->flags & TB_MODEL_NOISY)) {
    work.p_rng = (struct tb_rng*) R_alloc(1, sizeof(struct tb_rng));
    tb_rng_init(work.p_rng, 1, 0, TB_STREAM_model);
  }
  return work;
}

/* All rows, or those numbered from 1 in `index`. */
static struct tb_batch model_batch(const struct tb_model* p_model,
                                   SEXP index,
                                   double weight) {
  struct tb_batch batch = { .n_batch = p_model->n_data, .weight = weight };
  if (index != R_NilValue) {
    batch.v_index = ffi_rows(index, p_model->n_data, "index");
    batch.n_batch = (size_t) Rf_xlength(index);
  }
  return batch;
}

static void fill_nan(SEXP x) {
  for (R_xlen_t k = 0; k < Rf_xlength(x); ++k) {
    REAL(x)[k] = R_NaN;
  }
}

static SEXP status_out(enum tb_status status) {
  return Rf_ScalarInteger((int) status);
}

/* pointer, or the status as an integer */
SEXP ffi_model_create(SEXP name, SEXP params) {
  const struct tb_model_type* type = tb_model_find(ffi_string(name, "name"));
  const struct tb_params parsed = ffi_params(params);
  if (type == NULL) {
    ffi_fault("no such model");
  }
  SEXP ptr = PROTECT(ffi_model_pointer());
  struct tb_model* p_model = ffi_model_attach(ptr);
  enum tb_status status = TB_STATUS_memory;
  /* a user's compiled code is needed as long as the model */
  R_SetExternalPtrProtected(ptr, ffi_element(params, "table"));
  if (p_model != NULL) {
    p_model->type = type;
    status = type->create(p_model, &parsed);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? ptr : status_out(status);
}

/* NA: its data are there, but not its functions */
SEXP ffi_model_is_alive(SEXP model) {
  const bool is_ours = TYPEOF(model) == EXTPTRSXP &&
                       R_ExternalPtrTag(model) == Rf_install("tall_model");
  const struct tb_model* p_model = is_ours ? R_ExternalPtrAddr(model) : NULL;
  if (p_model == NULL) {
    return Rf_ScalarLogical(FALSE);
  }
  const struct tb_model_type* type = p_model->type;
  return Rf_ScalarLogical(
    type->is_usable == NULL || type->is_usable(p_model) ? TRUE : NA_LOGICAL);
}

SEXP ffi_model_info(SEXP model) {
  static const char* const v_name[] = {
    "n_data",  "n_dim",    "n_natural",   "memory",      "fingerprint",
    "scalar",  "random",   "main_thread", "has_curvature", "has_weights",
    "has_log_lik", "has_whiten", "lipschitz_prior", "is_framed", "n_scalar",
    "has_density", "is_even"
  };
  const struct tb_model* p = ffi_model(model);
  const struct tb_model_type* type = p->type;
  const size_t n = sizeof(v_name) / sizeof(v_name[0]);
  char fingerprint[32];
  SEXP out = PROTECT(ffi_named_list(v_name, n));
  snprintf(fingerprint, sizeof(fingerprint), "%016llx",
           (unsigned long long) p->fingerprint);
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal((double) p->n_data));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal((double) p->n_dim));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal((double) p->n_natural));
  SET_VECTOR_ELT(
    out, 3, Rf_ScalarReal(type->memory == NULL ? NA_REAL : (double) type->memory(p)));
  SET_VECTOR_ELT(out, 4, Rf_mkString(fingerprint));
  SET_VECTOR_ELT(out, 5, Rf_ScalarLogical((type->flags & TB_MODEL_SCALAR) != 0));
  SET_VECTOR_ELT(out, 6, Rf_ScalarLogical((type->flags & TB_MODEL_RANDOM) != 0));
  SET_VECTOR_ELT(
    out, 7, Rf_ScalarLogical((type->flags & TB_MODEL_MAIN_THREAD) != 0));
  SET_VECTOR_ELT(out, 8, Rf_ScalarLogical(type->curvature != NULL));
  SET_VECTOR_ELT(out, 9, Rf_ScalarLogical(type->weights != NULL));
  SET_VECTOR_ELT(out, 10, Rf_ScalarLogical(type->log_lik != NULL));
  SET_VECTOR_ELT(out, 11, Rf_ScalarLogical(type->whiten != NULL));
  SET_VECTOR_ELT(
    out, 12,
    Rf_ScalarReal(type->lipschitz_prior == NULL ? NA_REAL
                                                : type->lipschitz_prior(p)));
  SET_VECTOR_ELT(out, 13, Rf_ScalarLogical(p->p_frame != NULL));
  SET_VECTOR_ELT(out, 14, Rf_ScalarReal((double) p->n_scalar));
  SET_VECTOR_ELT(
    out, 15, Rf_ScalarLogical((type->flags & TB_MODEL_NO_DENSITY) == 0));
  SET_VECTOR_ELT(out, 16, Rf_ScalarLogical(p->is_even));
  UNPROTECT(1);
  return out;
}

/* What a model says of a point. A value that is not finite is the point's own,
 * others are asked all the same; anything else ends the call. */
static void note_status(enum tb_status status,
                        enum tb_status* p_point,
                        enum tb_status* p_all) {
  if (status != TB_STATUS_ok) {
    *p_point = status;
    *p_all = status;
  }
}

static bool can_go_on(enum tb_status status) {
  return status == TB_STATUS_ok || status == TB_STATUS_nonfinite;
}

/* list(status, log_density (K), gradient (n_dim x K)) over all rows, or over
 * `index` with the multiplier `weight`; parts: 1 likelihood, 2 prior, 3 both, + 4
 * to leave the log likelihood out of the density. Where the model says that a
 * value is not finite, those of the point are NaN. */
SEXP ffi_model_gradient(SEXP model, SEXP theta, SEXP index, SEXP weight, SEXP parts) {
  static const char* const v_name[] = { "status", "log_density", "gradient" };
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  const struct tb_batch all =
    model_batch(p_model, index, ffi_as_number(weight, "weight"));
  const int which = ffi_as_code(parts, 8, "parts");
  const struct tb_workspace work = model_workspace(p_model, TB_CHUNK);
  enum tb_status* v_status =
    (enum tb_status*) R_alloc(n_point + 1, sizeof(enum tb_status));
  SEXP out = PROTECT(ffi_named_list(v_name, 3));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, (R_xlen_t) n_point));
  SET_VECTOR_ELT(out, 2, Rf_allocMatrix(REALSXP, (int) n_dim, (int) n_point));
  double* v_density = REAL(VECTOR_ELT(out, 1));
  double* v_gradient = REAL(VECTOR_ELT(out, 2));

  memset(v_density, 0, n_point * sizeof(double));
  memset(v_gradient, 0, n_point * n_dim * sizeof(double));
  enum tb_status status = TB_STATUS_ok;
  for (size_t p = 0; p < n_point; ++p) {
    v_status[p] = TB_STATUS_ok;
  }
  for (size_t p = 0; (which & 2) && p < n_point && can_go_on(status); ++p) {
    note_status(p_model->type->prior(
                  p_model, &work, v_theta + p * n_dim, v_gradient + p * n_dim,
                  &v_density[p]),
                &v_status[p], &status);
  }
  ffi_continue(model);
  /* all points at one chunk of rows, while it is in the cache */
  for (size_t first = 0;
       (which & 1) && first < all.n_batch && can_go_on(status);
       first += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&all, first, TB_CHUNK);
    for (size_t p = 0; p < n_point && can_go_on(status); ++p) {
      const struct tb_sums sums = { .v_gradient = v_gradient + p * n_dim,
                                    .p_log_lik = which & 4 ? NULL
                                                           : &v_density[p] };
      if (v_status[p] == TB_STATUS_ok) {
        note_status(p_model->type->gradient(
                      p_model, &work, v_theta + p * n_dim, &part, NULL, &sums),
                    &v_status[p], &status);
      }
    }
    ffi_continue(model);
    R_CheckUserInterrupt();
  }
  const bool has_density =
    !(which & 1) || !(p_model->type->flags & TB_MODEL_NO_DENSITY);
  for (size_t p = 0; p < n_point; ++p) {
    if (!has_density) {
      v_density[p] = NA_REAL;
    }
    if (v_status[p] == TB_STATUS_nonfinite) {
      v_density[p] = R_NaN;
      for (size_t j = 0; j < n_dim; ++j) {
        v_gradient[p * n_dim + j] = R_NaN;
      }
    }
  }
  SET_VECTOR_ELT(out, 0, status_out(status));
  UNPROTECT(1);
  return out;
}

/* log p(y_i | theta) of the rows `index` (all when NULL), length(index) x K, or
 * the status as an integer */
SEXP ffi_model_log_lik(SEXP model, SEXP theta, SEXP index) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  const struct tb_batch batch = model_batch(p_model, index, 1);
  const struct tb_workspace work = model_workspace(p_model, batch.n_batch);
  SEXP out = PROTECT(
    Rf_allocMatrix(
      REALSXP, ffi_extent(batch.n_batch, "index"), (int) n_point));
  enum tb_status status = TB_STATUS_ok;
  for (size_t p = 0; p < n_point && status == TB_STATUS_ok; ++p) {
    status = p_model->type->log_lik(p_model, &work, v_theta + p * n_dim, &batch,
                                    REAL(out) + p * batch.n_batch);
    ffi_continue(model);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : status_out(status);
}

/* list(status, log_posterior, gradient, hessian): -Hessian, see model.h */
SEXP ffi_model_curvature(SEXP model,
                         SEXP theta,
                         SEXP index,
                         SEXP weight,
                         SEXP round,
                         SEXP n_threads) {
  static const char* const v_name[] = {
    "status", "log_posterior", "gradient", "hessian"
  };
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const double* v_theta = ffi_some_doubles(theta, n_dim, "theta");
  const double* v_round = ffi_doubles(round, n_dim, "round");
  const struct tb_batch batch =
    model_batch(p_model, index, ffi_as_number(weight, "weight"));
  const int n_threads_ = ffi_threads(n_threads);
  SEXP out = PROTECT(ffi_named_list(v_name, 4));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, 1));
  SET_VECTOR_ELT(out, 2, Rf_allocVector(REALSXP, (R_xlen_t) n_dim));
  SET_VECTOR_ELT(out, 3, Rf_allocMatrix(REALSXP, (int) n_dim, (int) n_dim));
  /* where the model cannot say, no bytes that nobody wrote */
  for (R_xlen_t k = 1; k < 4; ++k) {
    fill_nan(VECTOR_ELT(out, k));
  }
  const enum tb_status status =
    p_model->type->curvature(p_model,
                             v_theta,
                             &batch,
                             v_round,
                             REAL(VECTOR_ELT(out, 1)),
                             REAL(VECTOR_ELT(out, 2)),
                             REAL(VECTOR_ELT(out, 3)),
                             n_threads_);
  ffi_continue(model);
  SET_VECTOR_ELT(out, 0, status_out(status));
  UNPROTECT(1);
  return out;
}

/* At each column of theta (n_dim x K) the four sums of struct tb_spread, 4 x K,
 * or the status as an integer. at: the reference, or NULL; probability: N
 * numbers, or NULL. */
SEXP ffi_model_spread(SEXP model, SEXP theta, SEXP at, SEXP probability) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  const double* v_probability =
    ffi_doubles(probability, p_model->n_data, "probability");
  const struct tb_reference reference = {
    .v_theta = ffi_doubles(at, n_dim, "at")
  };
  const struct tb_workspace work = model_workspace(p_model, TB_CHUNK);
  double* v_scratch = (double*)R_alloc(3 * n_dim + TB_CHUNK, sizeof(double));
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, 4, (int) n_point));
  enum tb_status status = TB_STATUS_ok;
  for (size_t p = 0; p < n_point && status == TB_STATUS_ok; ++p) {
    struct tb_spread spread;
    status = tb_spread_of(p_model, &work, v_theta + p * n_dim,
                          reference.v_theta == NULL ? NULL : &reference,
                          v_probability, v_scratch, &spread);
    double* v_out = REAL(out) + 4 * p;
    v_out[0] = spread.square;
    v_out[1] = spread.weighted;
    v_out[2] = spread.norm;
    v_out[3] = spread.total;
    ffi_continue(model);
    R_CheckUserInterrupt();
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : status_out(status);
}

/* N unnormalised weights, or the status as an integer */
SEXP ffi_model_weights(SEXP model, SEXP type, SEXP theta, SEXP chol, SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const int which = ffi_as_code(type, TB_WEIGHT_count, "type");
  const double* v_theta = which == TB_WEIGHT_lipschitz
                            ? ffi_doubles(theta, n_dim, "theta")
                            : ffi_some_doubles(theta, n_dim, "theta");
  /* NULL: of a whitened model the identity */
  const double* v_chol = ffi_doubles(chol, n_dim * n_dim, "chol");
  const int n_threads_ = ffi_threads(n_threads);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) p_model->n_data));
  const enum tb_status status =
    tb_model_weights(p_model, (enum tb_weight_type) which, v_theta, v_chol,
                     REAL(out), n_threads_);
  ffi_continue(model);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : status_out(status);
}

/* log likelihood at K points, or the status as an integer */
SEXP ffi_model_log_lik_many(SEXP model, SEXP theta) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_point = ffi_columns(theta, p_model->n_dim, "theta");
  const double* v_theta = REAL(theta);
  if (p_model->type->log_lik_many == NULL) {
    return status_out(TB_STATUS_unsupported);
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) n_point));
  const enum tb_status status =
    p_model->type->log_lik_many(p_model, v_theta, n_point, REAL(out));
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : status_out(status);
}

/* largest |x_i^T theta|; NA when the model has no linear predictor */
SEXP ffi_model_largest_predictor(SEXP model, SEXP theta) {
  const struct tb_model* p_model = ffi_model(model);
  const double* v_theta = ffi_some_doubles(theta, p_model->n_dim, "theta");
  return Rf_ScalarReal(
    p_model->type->largest_predictor == NULL
      ? NA_REAL
      : p_model->type->largest_predictor(p_model, v_theta));
}

/* A whitened model: the same one rewritten in place, or a copy, or, where a
 * model cannot rewrite its rows, a frame around it. Pointer, or
 * the status as an integer. */
SEXP ffi_model_whiten(SEXP model, SEXP center, SEXP chol, SEXP diagonal, SEXP in_place) {
  struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const bool is_diagonal = ffi_as_flag(diagonal, "diagonal");
  const bool is_in_place = ffi_as_flag(in_place, "in_place");
  const double* v_center = ffi_some_doubles(center, n_dim, "center");
  const double* v_chol =
    ffi_some_doubles(chol, is_diagonal ? n_dim : n_dim * n_dim, "chol");
  enum tb_status status = TB_STATUS_ok;
  const bool is_framed = p_model->type->whiten == NULL;
  SEXP out = PROTECT(is_in_place && !is_framed ? model : ffi_model_pointer());

  if (is_framed) {
    /* the frame's model lives as long as it is needed */
    R_SetExternalPtrProtected(out, model);
    struct tb_model* p_frame = ffi_model_attach(out);
    status = p_frame == NULL ? TB_STATUS_memory
                             : tb_model_frame(p_model, v_center, v_chol,
                                              is_diagonal, p_frame);
    UNPROTECT(1);
    return status == TB_STATUS_ok ? out : status_out(status);
  }
  if (!is_in_place) {
    struct tb_model* p_copy = ffi_model_attach(out);
    if (p_copy == NULL) {
      status = TB_STATUS_memory;
    } else {
      p_copy->type = p_model->type;
      status = p_model->type->copy(p_model, p_copy);
      p_model = p_copy;
    }
  }
  if (status == TB_STATUS_ok) {
    status = p_model->type->whiten(p_model, v_center, v_chol, is_diagonal);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : status_out(status);
}

/* sampler coordinates -> parameters, columns */
SEXP ffi_model_to_parameter(SEXP model, SEXP phi) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(phi, n_dim, "phi");
  const double* v_phi = REAL(phi);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) n_dim, (int) n_point));
  for (size_t p = 0; p < n_point; ++p) {
    if (p_model->p_frame == NULL) {
      memcpy(REAL(out) + p * n_dim, v_phi + p * n_dim, n_dim * sizeof(double));
    } else {
      tb_frame_to_parameter(
        p_model->p_frame, v_phi + p * n_dim, REAL(out) + p * n_dim);
    }
  }
  UNPROTECT(1);
  return out;
}

/* parameters -> sampler coordinates, columns */
SEXP ffi_model_to_sampler(SEXP model, SEXP theta) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) n_dim, (int) n_point));
  for (size_t p = 0; p < n_point; ++p) {
    if (p_model->p_frame == NULL) {
      memcpy(REAL(out) + p * n_dim, v_theta + p * n_dim, n_dim * sizeof(double));
    } else {
      tb_frame_to_sampler(
        p_model->p_frame, v_theta + p * n_dim, REAL(out) + p * n_dim);
    }
  }
  UNPROTECT(1);
  return out;
}
