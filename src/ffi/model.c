/* Doors to models: make one, ask what it is, change its coordinates. Shapes:
 * theta is n_dim x K, column-major, in the model's sampler coordinates. */
#include "ffi/model.h"

#include "data/file.h"
#include "data/shelf.h"
#include "models/expansion.h"
#include "models/framed.h"
#include "models/scaled.h"
#include "passes/weights.h"

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
  SEXP ptr =
      PROTECT(R_MakeExternalPtr(NULL, Rf_install("tall_model"), R_NilValue));
  R_RegisterCFinalizerEx(ptr, model_finalize, TRUE);
  UNPROTECT(1);
  return ptr;
}

struct tb_model* ffi_model_attach(SEXP ptr) {
  struct tb_model* p_model = calloc(1, sizeof(*p_model));
  R_SetExternalPtrAddr(ptr, p_model);
  return p_model;
}

/* The memory of a model that nobody will ask again. R sees a pointer alone, and
 * would not know that there is something to collect. */
SEXP ffi_model_release(SEXP model) {
  if (TYPEOF(model) == EXTPTRSXP) {
    model_finalize(model);
  }
  return R_NilValue;
}

struct tb_model* ffi_model(SEXP x) {
  return ffi_pointer(x, "tall_model", "pointer of a model");
}

SEXP ffi_status(enum tb_status status) {
  return Rf_ScalarInteger((int)status);
}

/* list(type, read_only, file): the name of a type of store, whether rows in it
 * must stay as they are, and the path of a file that has them, or NULL */
static struct tb_shelf parse_shelf(SEXP store) {
  const struct tb_shelf out = {
      .type = tb_store_find(ffi_string(ffi_element(store, "type"), "type")),
      .is_read_only =
          ffi_as_flag(ffi_element(store, "read_only"), "read_only")};
  if (out.type == NULL) {
    ffi_fault("no such store");
  }
  return out;
}

/* The rows of a file onto the shelf; the caller destroys what is left there.
 * What is wrong with the file was told before the door, but it may have gone
 * since. */
static enum tb_status shelve_file(const char* path,
                                  struct tb_shelf* p_shelf,
                                  struct tb_store* p_store) {
  *p_store = (struct tb_store){.type = NULL};
  if (path == NULL) {
    return TB_STATUS_ok;
  }
  p_shelf->p_given = p_store;
  switch (tb_file_map(path, p_store)) {
  case TB_FILE_ok:
    return TB_STATUS_ok;
  case TB_FILE_memory:
    return TB_STATUS_memory;
  default:
    return TB_STATUS_unsupported;
  }
}

/* pointer, or the status as an integer */
SEXP ffi_model_create(SEXP name, SEXP params, SEXP store) {
  const struct tb_model_type* type = tb_model_find(ffi_string(name, "name"));
  const struct tb_params parsed = ffi_params(params);
  SEXP file = ffi_element(store, "file");
  const char* path =
      file == R_NilValue ? NULL : R_ExpandFileName(ffi_string(file, "file"));
  struct tb_shelf shelf = parse_shelf(store);
  struct tb_store given;
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
    status = shelve_file(path, &shelf, &given);
    if (status == TB_STATUS_ok) {
      status = type->create(p_model, &parsed, &shelf);
    }
    tb_store_destroy(&given);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? ptr : ffi_status(status);
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
  const struct tb_model* p = ffi_model(model);
  const struct tb_model_type* type = p->type;
  char fingerprint[32];
  snprintf(fingerprint,
           sizeof(fingerprint),
           "%016llx",
           (unsigned long long)p->fingerprint);
  const struct tb_model_expansion* expansion = type->expansion;
  SEXP out = PROTECT(ffi_list(21));
  ffi_add_number(out, "n_data", (double)p->n_data);
  ffi_add_number(out, "n_dim", (double)p->n_dim);
  ffi_add_number(out, "n_natural", (double)p->n_natural);
  ffi_add_number(out,
                 "memory",
                 type->memory == NULL ? NA_REAL : (double)type->memory(p));
  ffi_add(out, "fingerprint", Rf_mkString(fingerprint));
  ffi_add_flag(out, "scalar", type->flags & TB_MODEL_SCALAR);
  ffi_add_flag(out, "random", type->flags & TB_MODEL_RANDOM);
  ffi_add_flag(out, "main_thread", type->flags & TB_MODEL_MAIN_THREAD);
  ffi_add_flag(out, "has_curvature", tb_model_has_curvature(p));
  ffi_add_flag(out, "has_diagonal", type->diagonal != NULL);
  ffi_add_flag(out, "has_weights", tb_model_has_weights(p));
  ffi_add_flag(out, "has_log_lik", type->log_lik != NULL);
  ffi_add_flag(out, "has_whiten", tb_model_can_whiten(p));
  ffi_add_number(out,
                 "lipschitz_prior",
                 type->lipschitz_prior == NULL ? NA_REAL
                                               : type->lipschitz_prior(p));
  ffi_add_flag(out, "is_framed", p->p_frame != NULL);
  ffi_add_number(out, "n_scalar", (double)p->n_scalar);
  ffi_add_flag(out, "has_density", !(type->flags & TB_MODEL_NO_DENSITY));
  ffi_add_flag(out, "is_even", p->is_even);
  ffi_add_flag(out, "has_map", tb_model_has_map(p));
  ffi_add_flag(out, "has_predictors", expansion != NULL);
  const struct tb_model* p_rows = tb_model_of_rows(p);
  const struct tb_model_expansion* of_rows = p_rows->type->expansion;
  ffi_add_flag(out,
               "has_remainders",
               of_rows != NULL && of_rows->has_remainders(p_rows));
  UNPROTECT(1);
  return out;
}

/* How far each column of delta (n_dim x n) is, by chol (lower L); see
 * models/expansion.h. NULL: ||L^T delta||, of which nobody has to be asked. */
SEXP ffi_model_reach(SEXP model, SEXP chol, SEXP delta) {
  const struct tb_model* p_model = ffi_model(model);
  const struct tb_model_expansion* type = p_model->type->expansion;
  const size_t n_dim = p_model->n_dim;
  const double* v_chol = ffi_some_doubles(chol, n_dim * n_dim, "chol");
  if (type == NULL || type->reach == NULL) {
    return R_NilValue;
  }
  const size_t n = (size_t)Rf_xlength(delta) / n_dim;
  const double* v_delta = ffi_some_doubles(delta, n * n_dim, "delta");
  double* v_table = (double*)R_alloc(type->reach_size(p_model), sizeof(double));
  const enum tb_status status = type->set_reach(p_model, v_chol, v_table);
  if (status != TB_STATUS_ok) {
    return ffi_status(status);
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n));
  for (size_t k = 0; k < n; ++k) {
    REAL(out)[k] = type->reach(p_model, v_table, v_delta + k * n_dim);
  }
  UNPROTECT(1);
  return out;
}

/* A whitened model: the same one rewritten in place, or a copy, or, where a
 * model cannot rewrite its rows, a frame around it. Pointer, or
 * the status as an integer. */
SEXP ffi_model_whiten(SEXP model,
                      SEXP center,
                      SEXP chol,
                      SEXP diagonal,
                      SEXP in_place) {
  struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const bool is_diagonal = ffi_as_flag(diagonal, "diagonal");
  const bool is_in_place = ffi_as_flag(in_place, "in_place");
  const double* v_center = ffi_some_doubles(center, n_dim, "center");
  const double* v_chol =
      ffi_some_doubles(chol, is_diagonal ? n_dim : n_dim * n_dim, "chol");
  enum tb_status status = TB_STATUS_ok;
  const bool is_framed = !tb_model_can_whiten(p_model);
  SEXP out = PROTECT(is_in_place && !is_framed ? model : ffi_model_pointer());

  if (is_framed) {
    /* the frame's model lives as long as it is needed */
    R_SetExternalPtrProtected(out, model);
    struct tb_model* p_frame = ffi_model_attach(out);
    status =
        p_frame == NULL
            ? TB_STATUS_memory
            : tb_model_frame(p_model, v_center, v_chol, is_diagonal, p_frame);
    UNPROTECT(1);
    return status == TB_STATUS_ok ? out : ffi_status(status);
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
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* The model with hyperparameters (`held`, n_hyper, not NULL: held there) of a
 * base whose own prior is flat in the coefficients under them. Pointer, or the
 * status as an integer. */
SEXP ffi_model_scale(SEXP model, SEXP params, SEXP held) {
  struct tb_model* p_base = ffi_model(model);
  const struct tb_params parsed = ffi_params(params);
  const size_t n_held = (size_t)Rf_xlength(held);
  const double* v_held = ffi_doubles(held, n_held, "held");
  SEXP out = PROTECT(ffi_model_pointer());
  R_SetExternalPtrProtected(out, model); /* lives as long as it is needed */
  struct tb_model* p_out = ffi_model_attach(out);
  const enum tb_status status =
      p_out == NULL ? TB_STATUS_memory
                    : tb_model_scale(p_base, &parsed, v_held, n_held, p_out);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* The model of distinct rows with weights; pointer, or the status as an
 * integer: unsupported where there are more than `most` of them. */
SEXP ffi_model_merge(SEXP model, SEXP most) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_most = ffi_as_count(most, "most");
  if (p_model->type->merge == NULL || p_model->p_frame != NULL) {
    return ffi_status(TB_STATUS_unsupported);
  }
  SEXP out = PROTECT(ffi_model_pointer());
  struct tb_model* p_out = ffi_model_attach(out);
  enum tb_status status = TB_STATUS_memory;
  if (p_out != NULL) {
    p_out->type = p_model->type;
    status = p_model->type->merge(p_model, n_most, p_out);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* columns, each through one of the maps of the model's frame */
static SEXP
map_points(SEXP model,
           SEXP from,
           const char* name,
           void (*map)(const struct tb_frame*, const double*, double*)) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim;
  const size_t n_point = ffi_columns(from, n_dim, name);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n_dim, (int)n_point));
  if (p_model->p_frame == NULL) {
    memcpy(REAL(out), REAL(from), n_point * n_dim * sizeof(double));
  } else {
    for (size_t p = 0; p < n_point; ++p) {
      map(p_model->p_frame, REAL(from) + p * n_dim, REAL(out) + p * n_dim);
    }
  }
  UNPROTECT(1);
  return out;
}

/* sampler coordinates -> parameters */
SEXP ffi_model_to_parameter(SEXP model, SEXP phi) {
  return map_points(model, phi, "phi", tb_frame_to_parameter);
}

/* and back */
SEXP ffi_model_to_sampler(SEXP model, SEXP theta) {
  return map_points(model, theta, "theta", tb_frame_to_sampler);
}

/* parameters -> variables, columns */
SEXP ffi_model_to_variables(SEXP model, SEXP theta) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n_dim = p_model->n_dim, n_natural = p_model->n_natural;
  const size_t n_point = ffi_columns(theta, n_dim, "theta");
  const double* v_theta = REAL(theta);
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n_natural, (int)n_point));
  for (size_t p = 0; p < n_point; ++p) {
    double* v_out = REAL(out) + p * n_natural;
    if (tb_model_has_map(p_model)) {
      p_model->type->constrain(p_model, v_theta + p * n_dim, v_out);
    } else {
      memcpy(v_out, v_theta + p * n_dim, n_dim * sizeof(double));
    }
  }
  UNPROTECT(1);
  return out;
}
