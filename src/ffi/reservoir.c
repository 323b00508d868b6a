/* Doors to the sample of a look at the rows of a source. */
#include "ffi/model.h"

#include "passes/ahead.h"
#include "passes/reservoir.h"

#include <stdlib.h>

static void reservoir_finalize(SEXP ptr) {
  struct tb_reservoir* p = R_ExternalPtrAddr(ptr);
  if (p != NULL) {
    tb_reservoir_destroy(p);
    free(p);
    R_ClearExternalPtr(ptr);
  }
}

static struct tb_reservoir* parse_reservoir(SEXP x) {
  return ffi_pointer(x, "tall_reservoir", "pointer of a look");
}

/* Pointer, or a status. seed, purpose: of hashed uniforms. */
SEXP ffi_reservoir_create(SEXP n_all,
                          SEXP n_stratum,
                          SEXP n_set,
                          SEXP seed,
                          SEXP purpose) {
  const size_t n_most = ffi_as_count(n_all, "n_all");
  const size_t n_level = ffi_as_count(n_stratum, "n_stratum");
  const size_t n_sets = ffi_as_count(n_set, "n_set");
  const uint64_t key = tb_ahead_key(ffi_as_count(seed, "seed"),
                                    ffi_as_count(purpose, "purpose"),
                                    0);
  SEXP ptr = PROTECT(
      R_MakeExternalPtr(NULL, Rf_install("tall_reservoir"), R_NilValue));
  R_RegisterCFinalizerEx(ptr, reservoir_finalize, TRUE);
  struct tb_reservoir* p = calloc(1, sizeof(*p));
  R_SetExternalPtrAddr(ptr, p);
  const enum tb_status status =
      p == NULL ? TB_STATUS_memory
                : tb_reservoir_create(p, key, n_most, n_level, n_sets);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? ptr : ffi_status(status);
}

/* Sets of strata, each list(values, first) of codes that reach n rows. */
static const struct tb_codes*
codes_of(SEXP strata, size_t n_set, size_t n_row) {
  if (TYPEOF(strata) != VECSXP || (size_t)Rf_xlength(strata) != n_set) {
    ffi_fault("strata");
  }
  struct tb_codes* v_codes =
      (struct tb_codes*)R_alloc(n_set + 1, sizeof(struct tb_codes));
  for (size_t c = 0; c < n_set; ++c) {
    SEXP set = VECTOR_ELT(strata, (R_xlen_t)c);
    SEXP values = ffi_element(set, "values");
    const size_t first = ffi_as_count(ffi_element(set, "first"), "strata");
    if (TYPEOF(values) != INTSXP ||
        (size_t)Rf_xlength(values) < first + n_row) {
      ffi_fault("strata");
    }
    v_codes[c].v_code = INTEGER(values) + first;
  }
  return v_codes;
}

static const int* keep_of(SEXP keep, size_t n_row) {
  if (keep == R_NilValue) {
    return NULL;
  }
  SEXP values = ffi_element(keep, "values");
  const size_t first = ffi_as_count(ffi_element(keep, "first"), "keep");
  if (TYPEOF(values) != LGLSXP || (size_t)Rf_xlength(values) < first + n_row) {
    ffi_fault("keep");
  }
  return LOGICAL(values) + first;
}

/* Rows of a block, numbered from 1, that stay for now, or a status; `first`:
 * rows before the block. */
SEXP ffi_reservoir_add(SEXP reservoir,
                       SEXP first,
                       SEXP n,
                       SEXP strata,
                       SEXP keep) {
  struct tb_reservoir* p = parse_reservoir(reservoir);
  const size_t first_row = ffi_as_count(first, "first");
  const size_t n_row = ffi_as_count(n, "n");
  const struct tb_codes* v_codes = codes_of(strata, p->n_set, n_row);
  const int* v_keep = keep_of(keep, n_row);
  size_t* v_row = (size_t*)R_alloc(n_row + 1, sizeof(size_t));
  size_t n_stay;
  const enum tb_status status =
      tb_reservoir_add(p, first_row, n_row, v_codes, v_keep, v_row, &n_stay);
  if (status != TB_STATUS_ok) {
    return ffi_status(status);
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_stay));
  for (size_t k = 0; k < n_stay; ++k) {
    REAL(out)[k] = 1 + (double)v_row[k];
  }
  UNPROTECT(1);
  return out;
}

/* Rows met, of all and by stratum: a list of vectors. */
SEXP ffi_reservoir_counts(SEXP reservoir) {
  const struct tb_reservoir* p = parse_reservoir(reservoir);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)p->n_set + 1));
  for (size_t c = 0; c <= p->n_set; ++c) {
    const struct tb_strata* p_set = &p->v_set[c];
    SEXP count = Rf_allocVector(REALSXP, (R_xlen_t)p_set->n_level);
    SET_VECTOR_ELT(out, (R_xlen_t)c, count);
    for (size_t k = 0; k < p_set->n_level; ++k) {
      REAL(count)[k] = p_set->v_count[k];
    }
  }
  UNPROTECT(1);
  return out;
}

/* The smallest uniforms of each stratum: a list, by set, of lists of vectors.
 */
SEXP ffi_reservoir_smallest(SEXP reservoir) {
  const struct tb_reservoir* p = parse_reservoir(reservoir);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)p->n_set + 1));
  for (size_t c = 0; c <= p->n_set; ++c) {
    const struct tb_strata* p_set = &p->v_set[c];
    SEXP set = Rf_allocVector(VECSXP, (R_xlen_t)p_set->n_level);
    SET_VECTOR_ELT(out, (R_xlen_t)c, set);
    for (size_t k = 0; k < p_set->n_level; ++k) {
      const struct tb_heap* p_heap = &p_set->v_heap[k];
      SEXP u = Rf_allocVector(REALSXP, (R_xlen_t)p_heap->n);
      SET_VECTOR_ELT(set, (R_xlen_t)k, u);
      for (size_t i = 0; i < p_heap->n; ++i) {
        REAL(u)[i] = p_heap->v_u[i];
      }
    }
  }
  UNPROTECT(1);
  return out;
}

/* A set of another look, from 0: counts and smallest uniforms of its levels,
 * and what code each of them has here. */
SEXP ffi_reservoir_merge(SEXP reservoir,
                         SEXP set,
                         SEXP counts,
                         SEXP smallest,
                         SEXP codes) {
  struct tb_reservoir* p = parse_reservoir(reservoir);
  const size_t c = ffi_as_count(set, "set");
  const size_t n_level = (size_t)Rf_xlength(smallest);
  const double* v_count = ffi_some_doubles(counts, n_level, "counts");
  if (c > p->n_set || TYPEOF(smallest) != VECSXP || TYPEOF(codes) != INTSXP ||
      (size_t)Rf_xlength(codes) < n_level) {
    ffi_fault("codes");
  }
  enum tb_status status = TB_STATUS_ok;
  for (size_t k = 0; k < n_level && status == TB_STATUS_ok; ++k) {
    SEXP u = VECTOR_ELT(smallest, (R_xlen_t)k);
    const size_t n_u = (size_t)Rf_xlength(u);
    if (INTEGER(codes)[k] < 1) {
      ffi_fault("codes");
    }
    status = tb_reservoir_merge(p,
                                c,
                                (size_t)INTEGER(codes)[k] - 1,
                                ffi_some_doubles(u, n_u, "smallest"),
                                n_u,
                                v_count[k]);
  }
  return status == TB_STATUS_ok ? R_NilValue : ffi_status(status);
}

/* Weights of rows, numbered from 1, that were met: 0 where one does not stay.
 * strata: of these rows. */
SEXP ffi_reservoir_weights(SEXP reservoir, SEXP rows, SEXP strata) {
  const struct tb_reservoir* p = parse_reservoir(reservoir);
  const size_t n_row = (size_t)Rf_xlength(rows);
  const double* v_row = ffi_some_doubles(rows, n_row, "rows");
  const struct tb_codes* v_codes = codes_of(strata, p->n_set, n_row);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_row));
  for (size_t i = 0; i < n_row; ++i) {
    if (!(v_row[i] >= 1 && v_row[i] <= 0x1p53)) {
      ffi_fault("rows");
    }
    REAL(out)[i] = tb_reservoir_weight(p, (uint64_t)v_row[i] - 1, v_codes, i);
  }
  UNPROTECT(1);
  return out;
}
