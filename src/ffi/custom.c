/* The model whose functions are R's, as the core sees it, and its doors. */
#include "ffi/custom-inside.h"

#include "base/hash.h"
#include "ffi/model.h"

#include <stdlib.h>

/* Hessians by differences of gradients up to so many coordinates */
#define MAX_CURVATURE 100

static void custom_constrain(const struct tb_model* p_model,
                             const double* v_theta,
                             double* v_natural) {
  const struct custom* p = p_model->p_self;
  tb_transform_constrain(p->v_part, p->n_part, v_theta, v_natural);
}

static size_t custom_memory(const struct tb_model* p_model) {
  const struct custom* p = p_model->p_self;
  return (size_t)p->n_byte + ffi_pack_memory(p->p_pack);
}

static void custom_destroy(struct tb_model* p_model) {
  struct custom* p = p_model->p_self;
  if (p != NULL) {
    tapes_free(p->p_tape);
    tapes_free(p->p_prior_tape);
    ffi_pack_destroy(p->p_pack);
    free(p->v_part);
    free(p);
    p_model->p_self = NULL;
  }
}

static const struct tb_model_type tb_model_custom = {
    .name = "custom",
    .citation = "",
    .flags = TB_MODEL_MAIN_THREAD,
    .destroy = custom_destroy,
    .prior = custom_prior,
    .gradient = custom_gradient,
    .log_lik = custom_log_lik,
    .square_norms = custom_square_norms,
    .row_gradients = custom_row_gradients,
    .constrain = custom_constrain,
    .memory = custom_memory,
};

/* What ffi_model_custom() was given. */
SEXP ffi_custom_spec(SEXP model) {
  const struct tb_model* p_model = ffi_model(model);
  if (!(p_model->type->flags & TB_MODEL_MAIN_THREAD)) {
    ffi_fault("a model that is not custom");
  }
  for (; p_model->p_frame != NULL; p_model = ffi_model(model)) {
    model = R_ExternalPtrProtected(model); /* the model inside the frame */
  }
  return ((const struct custom*)p_model->p_self)->spec;
}

static void
bind(SEXP functions, const char* name, SEXP spec, const char* from) {
  Rf_defineVar(Rf_install(name), ffi_element(spec, from), functions);
}

/* Do the kinds and sizes of the parts belong together? */
static void check_parts(SEXP init, const double* v_kind, const double* v_free) {
  if (TYPEOF(init) != VECSXP) {
    ffi_fault("init");
  }
  for (R_xlen_t k = 0; k < Rf_xlength(init); ++k) {
    if (!(v_kind[k] >= 0) || v_kind[k] >= TB_TRANSFORM_count) {
      ffi_fault("kind");
    }
    const double n_natural = (double)Rf_xlength(VECTOR_ELT(init, k));
    const bool is_simplex = (int)v_kind[k] == TB_TRANSFORM_simplex;
    if (v_free[k] != n_natural - is_simplex) {
      ffi_fault("n_free");
    }
  }
}

/* spec: list(n_data, data, init, kind, n_free, hash, n_byte, state, log_lik,
 * rows, sum, log_prior, prior_gradient, tape, prior_tape, fail, shape,
 * weights),
 * functions, tapes or NULL, as R/model-custom-engine.R makes it. Pointer, or
 * the status as an integer. */
SEXP ffi_model_custom(SEXP spec) {
  SEXP init = ffi_element(spec, "init");
  const size_t n_part = (size_t)Rf_xlength(init);
  const double* v_kind =
      ffi_some_doubles(ffi_element(spec, "kind"), n_part, "kind");
  const double* v_free =
      ffi_some_doubles(ffi_element(spec, "n_free"), n_part, "n_free");
  const size_t n_data = ffi_count(spec, "n_data");
  check_parts(init, v_kind, v_free);
  if (n_data > 0) {
    ffi_batch_check(ffi_element(spec, "data"), n_data);
  }
  const double n_byte = ffi_number(spec, "n_byte");
  SEXP weights = ffi_element(spec, "weights");
  const double* v_weight =
      weights == R_NilValue ? NULL : ffi_doubles(weights, n_data, "weights");
  SEXP hash = ffi_element(spec, "hash");
  const double* v_hash = ffi_doubles(hash, (size_t)Rf_xlength(hash), "hash");

  SEXP ptr = PROTECT(ffi_model_pointer());
  SEXP token = PROTECT(R_MakeUnwindCont());
  SEXP jump = PROTECT(ffi_jump_pointer(NULL));
  SEXP batches = PROTECT(Rf_allocVector(VECSXP, 2));
  SEXP functions = PROTECT(R_NewEnv(R_GlobalEnv, FALSE, 0));
  R_SetExternalPtrProtected(ptr,
                            Rf_list5(spec, token, jump, batches, functions));
  bind(functions, "log_lik", spec, "log_lik");
  bind(functions, "grad_log_lik", spec, "rows");
  bind(functions, "log_prior", spec, "log_prior");
  bind(functions, "grad_log_prior", spec, "prior_gradient");
  struct tb_model* p_model = ffi_model_attach(ptr);
  struct custom* p = calloc(1, sizeof(*p));
  struct tb_transform_part* v_part = calloc(n_part, sizeof(*v_part));
  if (p_model == NULL || p == NULL || v_part == NULL) {
    free(p);
    free(v_part);
    UNPROTECT(5);
    return Rf_ScalarInteger(TB_STATUS_memory);
  }
  *p = (struct custom){.type = tb_model_custom,
                       .n_part = n_part,
                       .v_part = v_part,
                       .n_byte = n_byte,
                       .v_weight = v_weight,
                       .jump.token = token,
                       .spec = spec,
                       .state = ffi_element(spec, "state"),
                       .data = ffi_element(spec, "data"),
                       .batches = batches,
                       .functions = functions,
                       .init = init,
                       .rows = ffi_element(spec, "rows"),
                       .sum = ffi_element(spec, "sum"),
                       .prior_gradient = ffi_element(spec, "prior_gradient"),
                       .fail = ffi_element(spec, "fail"),
                       .shape = ffi_element(spec, "shape"),
                       .undefined = ffi_element(spec, "undefined")};
  R_SetExternalPtrAddr(jump, &p->jump);
  p_model->type = &p->type;
  p_model->p_self = p;
  p_model->n_data = n_data;
  p_model->is_natural = true;
  for (size_t k = 0; k < n_part; ++k) {
    v_part[k] = (struct tb_transform_part){
        .kind = (enum tb_transform)v_kind[k],
        .n_natural = (size_t)Rf_xlength(VECTOR_ELT(init, (R_xlen_t)k)),
        .n_free = (size_t)v_free[k]};
    p_model->n_dim += v_part[k].n_free;
    p_model->n_natural += v_part[k].n_natural;
    p_model->is_natural &= v_part[k].kind == TB_TRANSFORM_real;
  }
  if (p_model->n_dim <= MAX_CURVATURE) {
    p->type.curvature = custom_curvature;
  }
  p_model->fingerprint =
      tb_hash_doubles(n_data, v_hash, (size_t)Rf_xlength(hash));
  SEXP tape = ffi_element(spec, "tape");
  SEXP prior_tape = ffi_element(spec, "prior_tape");
  const bool has_pack = ffi_pack_create(p->data, n_data, &p->p_pack);
  if (tape != R_NilValue) {
    p->p_tape = tapes_new(tape,
                          p->data,
                          p->p_pack,
                          v_weight,
                          n_data,
                          p_model->n_natural);
  }
  if (prior_tape != R_NilValue) {
    p->p_prior_tape =
        tapes_new(prior_tape, R_NilValue, NULL, NULL, 1, p_model->n_natural);
  }
  UNPROTECT(5);
  const bool has_all = has_pack && (tape == R_NilValue || p->p_tape != NULL) &&
                       (prior_tape == R_NilValue || p->p_prior_tape != NULL);
  return has_all ? ptr : Rf_ScalarInteger(TB_STATUS_memory);
}
