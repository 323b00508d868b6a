#include "ffi-args.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifndef _WIN32
#include <unistd.h>
#endif

void NORET ffi_fault_at(const char* file, int line, const char* message) {
  Rf_error("internal error in tallbayes (%s:%d): %s", file, line, message);
}

SEXP ffi_element(SEXP x, const char* name) {
  SEXP names = Rf_getAttrib(x, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(names); ++i) {
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0) {
      return VECTOR_ELT(x, i);
    }
  }
  return R_NilValue;
}

double ffi_number(SEXP x, const char* name) {
  SEXP value = ffi_element(x, name);
  if (TYPEOF(value) == REALSXP && Rf_xlength(value) == 1) {
    return REAL(value)[0];
  }
  ffi_fault(name);
}

size_t ffi_count(SEXP x, const char* name) {
  const double value = ffi_number(x, name);
  if (!(value >= 0) || value > 9007199254740992.0) {
    ffi_fault(name);
  }
  return (size_t) value;
}

const char* ffi_string(SEXP x, const char* name) {
  if (TYPEOF(x) != STRSXP || Rf_xlength(x) != 1) {
    ffi_fault(name);
  }
  return CHAR(STRING_ELT(x, 0));
}

double* ffi_doubles(SEXP x, size_t n, const char* name) {
  if (x == R_NilValue) {
    return NULL;
  }
  if (TYPEOF(x) != REALSXP || (size_t) Rf_xlength(x) != n) {
    ffi_fault(name);
  }
  return REAL(x);
}

struct tb_params ffi_params(SEXP x) {
  const R_xlen_t n = Rf_xlength(x);
  SEXP names = Rf_getAttrib(x, R_NamesSymbol);
  struct tb_param* v_param =
    (struct tb_param*) R_alloc((size_t) n + 1, sizeof(*v_param));
  size_t n_param = 0;
  for (R_xlen_t i = 0; i < n; ++i) {
    SEXP value = VECTOR_ELT(x, i);
    if (value == R_NilValue) {
      continue;
    }
    if (TYPEOF(value) == EXTPTRSXP) {
      v_param[n_param++] = (struct tb_param){
        .name = CHAR(STRING_ELT(names, i)), .v_value = R_ExternalPtrAddr(value)
      };
      continue;
    }
    if (TYPEOF(value) != REALSXP) {
      ffi_fault(CHAR(STRING_ELT(names, i)));
    }
    const size_t n_value = (size_t) Rf_xlength(value);
    v_param[n_param++] = (struct tb_param){
      .name = CHAR(STRING_ELT(names, i)),
      .v_value = REAL(value),
      .n_value = n_value,
      .n_row = Rf_isMatrix(value) ? (size_t) Rf_nrows(value) : n_value
    };
  }
  return (struct tb_params){ v_param, n_param };
}

struct tb_member ffi_member(SEXP x) {
  if (x == R_NilValue) {
    return (struct tb_member){ NULL, { NULL, 0 } };
  }
  return (struct tb_member){ ffi_string(ffi_element(x, "name"), "name"),
                             ffi_params(ffi_element(x, "params")) };
}

/* Windows has no forks. */
static long process_id(void) {
#ifdef _WIN32
  return 0;
#else
  return (long) getpid();
#endif
}

/* The process that loaded the library; set once, before there are threads. */
static long home;

void ffi_threads_init(void) { home = process_id(); }

/* Threads beyond the processors gain nothing, and where a system refuses to
 * start them the runtime ends the process. Some more are allowed, so that small
 * machines can test what threads do. */
static int most_threads(void) {
#ifdef _OPENMP
  return 4 * omp_get_num_procs();
#else
  return 1;
#endif
}

/* A fork has the runtime's memory of its threads, but not the threads: a
 * parallel region would wait for them for ever. */
int ffi_threads(SEXP x) {
  const int n_wanted = Rf_asInteger(x), n_most = most_threads();
  if (n_wanted == NA_INTEGER || n_wanted < 1) {
    ffi_fault("threads");
  }
  return process_id() != home ? 1 : n_wanted < n_most ? n_wanted : n_most;
}

struct tb_model* ffi_model(SEXP x) {
  if (TYPEOF(x) != EXTPTRSXP || R_ExternalPtrAddr(x) == NULL) {
    ffi_fault("a model pointer that is not alive");
  }
  return R_ExternalPtrAddr(x);
}

SEXP ffi_named_list(const char* const* v_name, size_t n) {
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) n));
  SEXP names = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t) n));
  for (size_t i = 0; i < n; ++i) {
    SET_STRING_ELT(names, (R_xlen_t) i, Rf_mkChar(v_name[i]));
  }
  Rf_setAttrib(out, R_NamesSymbol, names);
  UNPROTECT(2);
  return out;
}
