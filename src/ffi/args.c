#include "ffi/args.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifndef _WIN32
#include <unistd.h>
#endif

/* R/util-conditions.R words it. */
void NORET ffi_fault_at(const char* file, int line, const char* message) {
  SEXP ours = PROTECT(Rf_mkString("tallbayes"));
  SEXP home = PROTECT(R_FindNamespace(ours));
  SEXP what = PROTECT(Rf_mkString(message));
  SEXP where = PROTECT(Rf_mkString(file));
  SEXP at = PROTECT(Rf_ScalarInteger(line));
  SEXP call = PROTECT(Rf_lang4(Rf_install("abort_fault"), what, where, at));
  Rf_eval(call, home);
  UNPROTECT(6);
  Rf_error("internal error in tallbayes (%s:%d): %s", file, line, message);
}

/* the largest count: beyond it doubles no longer tell whole numbers apart */
#define MAX_COUNT 9007199254740992.0

SEXP ffi_element(SEXP x, const char* name) {
  SEXP names = Rf_getAttrib(x, R_NamesSymbol);
  if (x != R_NilValue && TYPEOF(x) != VECSXP) {
    ffi_fault(name);
  }
  for (R_xlen_t i = 0; i < Rf_xlength(names); ++i) {
    if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0) {
      return VECTOR_ELT(x, i);
    }
  }
  return R_NilValue;
}

static size_t to_count(double value, const char* name) {
  if (!(value >= 0) || value > MAX_COUNT || value != floor(value)) {
    ffi_fault(name);
  }
  return (size_t)value;
}

double ffi_number(SEXP x, const char* name) {
  SEXP value = ffi_element(x, name);
  if (TYPEOF(value) == REALSXP && Rf_xlength(value) == 1) {
    return REAL(value)[0];
  }
  ffi_fault(name);
}

size_t ffi_count(SEXP x, const char* name) {
  return to_count(ffi_number(x, name), name);
}

double ffi_as_number(SEXP x, const char* name) {
  if (Rf_xlength(x) == 1 && TYPEOF(x) == REALSXP && !ISNAN(REAL(x)[0])) {
    return REAL(x)[0];
  }
  if (Rf_xlength(x) == 1 && TYPEOF(x) == INTSXP &&
      INTEGER(x)[0] != NA_INTEGER) {
    return INTEGER(x)[0];
  }
  ffi_fault(name);
}

size_t ffi_as_count(SEXP x, const char* name) {
  return to_count(ffi_as_number(x, name), name);
}

int ffi_as_code(SEXP x, int n, const char* name) {
  const size_t code = ffi_as_count(x, name);
  if (code >= (size_t)n) {
    ffi_fault(name);
  }
  return (int)code;
}

bool ffi_as_flag(SEXP x, const char* name) {
  if (TYPEOF(x) != LGLSXP || Rf_xlength(x) != 1 ||
      LOGICAL(x)[0] == NA_LOGICAL) {
    ffi_fault(name);
  }
  return LOGICAL(x)[0];
}

const char* ffi_string(SEXP x, const char* name) {
  if (TYPEOF(x) != STRSXP || Rf_xlength(x) != 1 ||
      STRING_ELT(x, 0) == NA_STRING) {
    ffi_fault(name);
  }
  return CHAR(STRING_ELT(x, 0));
}

bool ffi_is_whole(SEXP x) {
  return TYPEOF(x) == INTSXP || TYPEOF(x) == LGLSXP;
}

const int* ffi_whole(SEXP x) {
  return TYPEOF(x) == LGLSXP ? LOGICAL(x) : INTEGER(x);
}

double* ffi_doubles(SEXP x, size_t n, const char* name) {
  if (x == R_NilValue) {
    return NULL;
  }
  if (TYPEOF(x) != REALSXP || (size_t)Rf_xlength(x) != n) {
    ffi_fault(name);
  }
  return REAL(x);
}

double* ffi_some_doubles(SEXP x, size_t n, const char* name) {
  double* v = ffi_doubles(x, n, name);
  if (v == NULL) {
    ffi_fault(name);
  }
  return v;
}

int ffi_extent(size_t n, const char* name) {
  if (n > INT_MAX) {
    ffi_fault(name);
  }
  return (int)n;
}

size_t ffi_columns(SEXP x, size_t n_row, const char* name) {
  if (TYPEOF(x) != REALSXP || n_row == 0 ||
      (size_t)Rf_xlength(x) % n_row != 0) {
    ffi_fault(name);
  }
  ffi_extent(n_row, name);
  return (size_t)ffi_extent((size_t)Rf_xlength(x) / n_row, name);
}

void ffi_shape(SEXP x, size_t* p_row, size_t* p_column, const char* name) {
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x)) {
    ffi_fault(name);
  }
  *p_row = (size_t)Rf_nrows(x);
  *p_column = (size_t)Rf_ncols(x);
}

size_t ffi_times(size_t a, size_t b, const char* name) {
  if (a != 0 && b > (size_t)R_XLEN_T_MAX / a) {
    ffi_fault(name);
  }
  return a * b;
}

size_t* ffi_rows(SEXP x, size_t n_row, const char* name) {
  const size_t n = (size_t)Rf_xlength(x);
  const double* v_from = ffi_some_doubles(x, n, name);
  size_t* v_index = (size_t*)R_alloc(n + 1, sizeof(size_t));
  for (size_t k = 0; k < n; ++k) {
    if (!(v_from[k] >= 1) || v_from[k] > (double)n_row) {
      ffi_fault(name);
    }
    v_index[k] = (size_t)v_from[k] - 1;
  }
  return v_index;
}

void* ffi_pointer(SEXP x, const char* tag, const char* name) {
  if (TYPEOF(x) != EXTPTRSXP || R_ExternalPtrAddr(x) == NULL ||
      (tag != NULL && R_ExternalPtrTag(x) != Rf_install(tag))) {
    ffi_fault(name);
  }
  return R_ExternalPtrAddr(x);
}

static const int* slot_integers(SEXP x, const char* slot, size_t n) {
  SEXP value = R_do_slot(x, Rf_install(slot));
  if (TYPEOF(value) != INTSXP || (size_t)Rf_xlength(value) != n) {
    ffi_fault(slot);
  }
  return INTEGER(value);
}

/* Positions are where the core will write: they are looked at, all of them. */
const struct tb_columns* ffi_columns_of(SEXP x, const char* name) {
  const bool is_turned = IS_S4_OBJECT(x) && Rf_inherits(x, "dgRMatrix");
  if (!is_turned && !(IS_S4_OBJECT(x) && Rf_inherits(x, "dgCMatrix"))) {
    ffi_fault(name);
  }
  const int* v_shape = slot_integers(x, "Dim", 2);
  const int v_dim[] = {v_shape[is_turned], v_shape[!is_turned]};
  SEXP value = R_do_slot(x, Rf_install("x"));
  if (TYPEOF(value) != REALSXP || v_dim[0] < 0 || v_dim[1] < 0) {
    ffi_fault(name);
  }
  const size_t n_value = (size_t)Rf_xlength(value);
  struct tb_columns* p = (struct tb_columns*)R_alloc(1, sizeof(*p));
  *p = (struct tb_columns){
      .n_row = (size_t)v_dim[0],
      .n_col = (size_t)v_dim[1],
      .v_start = slot_integers(x, "p", (size_t)v_dim[1] + 1),
      .v_row = slot_integers(x, is_turned ? "j" : "i", n_value),
      .v_value = REAL(value)};
  bool is_whole = p->v_start[0] == 0 && (size_t)p->v_start[p->n_col] == n_value;
  for (size_t j = 0; is_whole && j < p->n_col; ++j) {
    const int end = p->v_start[j + 1];
    is_whole = end >= p->v_start[j] && (size_t)end <= n_value;
    int before = -1;
    for (int k = p->v_start[j]; is_whole && k < end; ++k) {
      is_whole = p->v_row[k] > before && p->v_row[k] < v_dim[0];
      before = p->v_row[k];
    }
  }
  if (!is_whole) {
    ffi_fault(name);
  }
  return p;
}

struct tb_params ffi_params(SEXP x) {
  const R_xlen_t n = Rf_xlength(x);
  SEXP names = Rf_getAttrib(x, R_NamesSymbol);
  if (x != R_NilValue && TYPEOF(x) != VECSXP) {
    ffi_fault("params");
  }
  if (Rf_xlength(names) != n) {
    ffi_fault("names of params");
  }
  struct tb_param* v_param =
      (struct tb_param*)R_alloc((size_t)n + 1, sizeof(*v_param));
  size_t n_param = 0;
  for (R_xlen_t i = 0; i < n; ++i) {
    SEXP value = VECTOR_ELT(x, i);
    const char* name = CHAR(STRING_ELT(names, i));
    if (value == R_NilValue) {
      continue;
    }
    if (strcmp(name, "table") == 0) {
      v_param[n_param++] =
          (struct tb_param){.name = name,
                            .v_value = ffi_pointer(value, NULL, name)};
      continue;
    }
    if (strcmp(name, "rows") == 0) {
      v_param[n_param++] = (struct tb_param){
          .name = name,
          .v_value = ffi_pointer(value, "tall_group_rows", name)};
      continue;
    }
    if (strcmp(name, "columns") == 0) {
      v_param[n_param++] = (struct tb_param){
          .name = name,
          .v_value = (const double*)(const void*)ffi_columns_of(value, name)};
      continue;
    }
    const bool may_be_whole =
        strcmp(name, "y") == 0 || strcmp(name, "level") == 0;
    const bool is_whole = may_be_whole && ffi_is_whole(value);
    if (TYPEOF(value) != REALSXP && !is_whole) {
      ffi_fault(name);
    }
    const size_t n_value = (size_t)Rf_xlength(value);
    v_param[n_param++] = (struct tb_param){
        .name = name,
        .v_value = is_whole ? NULL : REAL(value),
        .v_whole = is_whole ? ffi_whole(value) : NULL,
        .n_value = n_value,
        .n_row = Rf_isMatrix(value) ? (size_t)Rf_nrows(value) : n_value};
  }
  return (struct tb_params){v_param, n_param};
}

struct tb_member ffi_member(SEXP x) {
  if (x == R_NilValue) {
    return (struct tb_member){NULL, {NULL, 0}};
  }
  return (struct tb_member){ffi_string(ffi_element(x, "name"), "name"),
                            ffi_params(ffi_element(x, "params"))};
}

/* Windows has no forks. */
static long process_id(void) {
#ifdef _WIN32
  return 0;
#else
  return (long)getpid();
#endif
}

/* The process that loaded the library; set once, before there are threads. */
static long home;

void ffi_threads_init(void) {
  home = process_id();
}

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
  const double n_wanted = ffi_as_number(x, "threads");
  const int n_most = most_threads();
  if (!(n_wanted >= 1)) {
    ffi_fault("threads");
  }
  return process_id() != home ? 1 : n_wanted < n_most ? (int)n_wanted : n_most;
}

SEXP ffi_list(size_t n) {
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)n));
  SEXP names = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)n));
  Rf_setAttrib(out, R_NamesSymbol, names);
  UNPROTECT(2);
  return out;
}

void ffi_add(SEXP list, const char* name, SEXP value) {
  SEXP names = Rf_getAttrib(list, R_NamesSymbol);
  R_xlen_t k = 0;
  while (k < Rf_xlength(list) && STRING_ELT(names, k) != R_BlankString) {
    k += 1;
  }
  if (k == Rf_xlength(list)) {
    ffi_fault(name);
  }
  SET_VECTOR_ELT(list, k, value);
  SET_STRING_ELT(names, k, Rf_mkChar(name));
}

void ffi_add_number(SEXP list, const char* name, double value) {
  ffi_add(list, name, Rf_ScalarReal(value));
}

void ffi_add_flag(SEXP list, const char* name, bool value) {
  ffi_add(list, name, Rf_ScalarLogical(value));
}

void ffi_add_text(SEXP list, const char* name, const char* text) {
  ffi_add(list, name, text == NULL ? R_NilValue : Rf_mkString(text));
}

double* ffi_add_vector(SEXP list, const char* name, size_t n) {
  SEXP value = Rf_allocVector(REALSXP, (R_xlen_t)n);
  ffi_add(list, name, value);
  return REAL(value);
}

double*
ffi_add_matrix(SEXP list, const char* name, size_t n_row, size_t n_column) {
  SEXP value = Rf_allocMatrix(REALSXP,
                              ffi_extent(n_row, name),
                              ffi_extent(n_column, name));
  ffi_add(list, name, value);
  return REAL(value);
}
