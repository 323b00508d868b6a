/* Calls of a user's functions: what they take, what they return, what goes
 * wrong in them. */
#include "ffi/custom-inside.h"

#include <math.h>
#include <string.h>

/* An error in a user's function: R/model-custom-engine.R words it and jumps.
 * Others, such as those it has worded, are left to other handlers. */
static SEXP on_error(SEXP condition, void* p_data) {
  struct custom* p = p_data;
  if (p->running != NULL && !Rf_inherits(condition, "tall_error")) {
    SEXP name = PROTECT(Rf_mkString(p->running));
    SEXP call = PROTECT(Rf_lang4(p->fail, name, p->theta, condition));
    p->running = NULL;
    Rf_eval(call, R_GlobalEnv);
    UNPROTECT(2);
  }
  return R_NilValue;
}

struct guarded {
  struct custom* p;
  SEXP (*body)(void*);
  void* p_data;
};

static SEXP guarded_body(void* p_data) {
  const struct guarded* p = p_data;
  return R_withCallingErrorHandler(p->body, p->p_data, on_error, p->p);
}

enum tb_status
custom_unwind(struct custom* p, SEXP (*body)(void*), void* p_data) {
  if (ffi_unwind(&p->jump, body, p_data)) {
    return TB_STATUS_ok;
  }
  p->running = NULL;
  SEXP failed = Rf_install("failed");
  const bool is_error =
      Rf_asLogical(Rf_findVarInFrame(p->state, failed)) == TRUE;
  Rf_defineVar(failed, Rf_ScalarLogical(FALSE), p->state);
  p->jump.waiting = is_error ? TB_STATUS_callback : TB_STATUS_interrupted;
  return p->jump.waiting;
}

enum tb_status
custom_protected(struct custom* p, SEXP (*body)(void*), void* p_data) {
  struct guarded guarded = {p, body, p_data};
  return custom_unwind(p, guarded_body, &guarded);
}

SEXP custom_call(struct custom* p, const char* name, SEXP theta, SEXP batch) {
  SEXP call = PROTECT(batch == NULL ? Rf_lang2(Rf_install(name), theta)
                                    : Rf_lang3(Rf_install(name), theta, batch));
  p->running = name;
  p->theta = theta;
  SEXP out = Rf_eval(call, p->functions);
  p->running = NULL;
  if (batch != NULL) {
    SETCADDR(call, R_NilValue); /* it counts as a reference: see ffi_batch() */
  }
  UNPROTECT(1);
  return out;
}

SEXP custom_shaped(struct custom* p,
                   const char* name,
                   SEXP value,
                   size_t n_row,
                   size_t n,
                   SEXP theta) {
  PROTECT(value);
  SEXP kind = PROTECT(Rf_mkString(name));
  SEXP rows = PROTECT(Rf_ScalarReal((double)n_row));
  SEXP call = PROTECT(Rf_lang5(p->shape, kind, value, rows, theta));
  SEXP out = Rf_eval(call, R_GlobalEnv);
  ffi_doubles(out, n, "the value of a user's function");
  UNPROTECT(4);
  return out;
}

SEXP custom_vector(struct custom* p,
                   const char* name,
                   SEXP theta,
                   SEXP batch,
                   size_t n) {
  SEXP out = custom_call(p, name, theta, batch);
  return TYPEOF(out) == REALSXP && (size_t)Rf_xlength(out) == n
             ? out
             : custom_shaped(p, name, out, n, n, theta);
}

double*
custom_flat_list(const struct custom* p, SEXP value, size_t n_row, size_t n) {
  SEXP names = Rf_getAttrib(value, R_NamesSymbol);
  SEXP wanted = Rf_getAttrib(p->init, R_NamesSymbol);
  if (TYPEOF(value) != VECSXP || TYPEOF(names) != STRSXP) {
    return NULL;
  }
  double* v_out = (double*)R_alloc(n + 1, sizeof(double));
  double* v_next = v_out;
  for (size_t k = 0; k < p->n_part; ++k) {
    const size_t n_part = n_row * p->v_part[k].n_natural;
    SEXP part = R_NilValue;
    for (R_xlen_t m = 0; m < Rf_xlength(names) && part == R_NilValue; ++m) {
      if (strcmp(CHAR(STRING_ELT(names, m)),
                 CHAR(STRING_ELT(wanted, (R_xlen_t)k))) == 0) {
        part = VECTOR_ELT(value, m);
      }
    }
    if (TYPEOF(part) != REALSXP || (size_t)Rf_xlength(part) != n_part) {
      return NULL;
    }
    memcpy(v_next, REAL(part), n_part * sizeof(double));
    v_next += n_part;
  }
  return v_out;
}

double* custom_natural(const struct custom* p, const double* v_free) {
  size_t n_natural = 0;
  for (size_t k = 0; k < p->n_part; ++k) {
    n_natural += p->v_part[k].n_natural;
  }
  double* v_natural = (double*)R_alloc(n_natural, sizeof(double));
  tb_transform_constrain(p->v_part, p->n_part, v_free, v_natural);
  return v_natural;
}

SEXP custom_theta(const struct custom* p, const double* v_free) {
  const double* v_natural = custom_natural(p, v_free);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)p->n_part));
  SHALLOW_DUPLICATE_ATTRIB(out, p->init);
  for (size_t k = 0; k < p->n_part; ++k) {
    const size_t n = p->v_part[k].n_natural;
    SEXP one = Rf_allocVector(REALSXP, (R_xlen_t)n);
    SET_VECTOR_ELT(out, (R_xlen_t)k, one);
    memcpy(REAL(one), v_natural, n * sizeof(double));
    SHALLOW_DUPLICATE_ATTRIB(one, VECTOR_ELT(p->init, (R_xlen_t)k));
    v_natural += n;
  }
  UNPROTECT(1);
  return out;
}

SEXP custom_batch(const struct custom* p,
                  size_t n_row,
                  const struct tb_batch* p_batch) {
  return ffi_batch(p->data, n_row, p->p_pack, p->batches, p_batch);
}

SEXP custom_call_log_lik(struct custom* p,
                         const double* v_theta,
                         SEXP batch,
                         size_t n_batch) {
  SEXP theta = PROTECT(custom_theta(p, v_theta));
  SEXP out = custom_vector(p, "log_lik", theta, batch, n_batch);
  UNPROTECT(1);
  return out;
}

void custom_note_undefined(struct custom* p,
                           const char* name,
                           const double* v,
                           size_t n,
                           const double* v_theta,
                           size_t n_dim) {
  bool is_undefined = false;
  for (size_t j = 0; j < n; ++j) {
    is_undefined = is_undefined || isnan(v[j]);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    is_undefined = is_undefined && isfinite(v_theta[j]);
  }
  if (is_undefined) {
    SEXP theta = PROTECT(custom_theta(p, v_theta));
    SEXP what = PROTECT(Rf_mkString(name));
    SEXP call = PROTECT(Rf_lang3(p->undefined, what, theta));
    Rf_eval(call, R_GlobalEnv);
    UNPROTECT(3);
  }
}

double custom_difference_step(double y) {
  return cbrt(2.2e-16) * fmax(1, fabs(y));
}

double* custom_copy_point(const double* v_theta, size_t n_dim) {
  double* v_at = (double*)R_alloc(n_dim, sizeof(double));
  memcpy(v_at, v_theta, n_dim * sizeof(double));
  return v_at;
}
