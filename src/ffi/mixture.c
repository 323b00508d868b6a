/* Doors to priors as scale mixtures: what R asks of them alone. params: as
 * tb_mixtures_create() has them. */
#include "ffi/args.h"

#include "priors/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* names of the registry, in its order */
SEXP ffi_mixture_registry(void) {
  SEXP out = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)tb_mixture_count()));
  for (size_t k = 0; k < tb_mixture_count(); ++k) {
    SET_STRING_ELT(out, (R_xlen_t)k, Rf_mkChar(tb_mixture_registry[k]->name));
  }
  UNPROTECT(1);
  return out;
}

/* Blocks for the length of a call: R frees what lies behind the pointer if the
 * call jumps. */
static void mixtures_finalize(SEXP ptr) {
  struct tb_mixtures* p = R_ExternalPtrAddr(ptr);
  if (p != NULL) {
    tb_mixtures_destroy(p);
    free(p);
    R_ClearExternalPtr(ptr);
  }
}

static SEXP make_mixtures(SEXP params, SEXP n_coef) {
  const struct tb_params parsed = ffi_params(params);
  const size_t n = ffi_as_count(n_coef, "n_coef");
  SEXP ptr = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  R_RegisterCFinalizerEx(ptr, mixtures_finalize, TRUE);
  struct tb_mixtures* p = calloc(1, sizeof(*p));
  R_SetExternalPtrAddr(ptr, p);
  if (p == NULL || tb_mixtures_create(p, &parsed, n) != TB_STATUS_ok ||
      p->n_mixture == 0) {
    ffi_fault("params");
  }
  UNPROTECT(1);
  return ptr;
}

static SEXP matrix_of(size_t n_row, size_t n_column) {
  return Rf_allocMatrix(REALSXP,
                        ffi_extent(n_row, "n_row"),
                        ffi_extent(n_column, "n_column"));
}

/* Precisions (n_covered x K), block after block, at the columns of phi (n_hyper
 * x K). */
SEXP ffi_mixture_precision(SEXP params, SEXP n_coef, SEXP phi) {
  SEXP ptr = PROTECT(make_mixtures(params, n_coef));
  const struct tb_mixtures* p = R_ExternalPtrAddr(ptr);
  const size_t n = ffi_columns(phi, p->n_hyper, "phi");
  const size_t n_covered = p->n_covered;
  double* v_all =
      (double*)R_alloc(ffi_as_count(n_coef, "n_coef"), sizeof(double));
  double* v_work = (double*)R_alloc(tb_mixtures_n_work(p), sizeof(double));
  SEXP out = PROTECT(matrix_of(n_covered, n));
  for (size_t k = 0; k < n; ++k) {
    const double* v_phi = REAL(phi) + k * p->n_hyper;
    tb_mixtures_normal(p, v_phi, NULL, v_all, v_work);
    for (size_t j = 0; j < n_covered; ++j) {
      REAL(out)[k * n_covered + j] = v_all[p->v_at[j]];
    }
  }
  mixtures_finalize(ptr);
  UNPROTECT(2);
  return out;
}

/* list(beta (n_coef x n), phi, natural (n_hyper x n)): independent draws, of
 * coefficients that no mixture covers 0 */
SEXP ffi_mixture_simulate(SEXP params, SEXP n_coef, SEXP n, SEXP seed) {
  SEXP ptr = PROTECT(make_mixtures(params, n_coef));
  const struct tb_mixtures* p = R_ExternalPtrAddr(ptr);
  const size_t n_draw = ffi_as_count(n, "n"), n_hyper = p->n_hyper;
  const size_t n_all = ffi_as_count(n_coef, "n_coef");
  double* v_location = (double*)R_alloc(2 * n_all, sizeof(double));
  double* v_precision = v_location + n_all;
  double* v_work = (double*)R_alloc(tb_mixtures_n_work(p), sizeof(double));
  SEXP out = PROTECT(ffi_list(3));
  SEXP beta = PROTECT(matrix_of(n_all, n_draw));
  SEXP phi = PROTECT(matrix_of(n_hyper, n_draw));
  SEXP natural = PROTECT(matrix_of(n_hyper, n_draw));
  struct tb_rng rng;
  tb_rng_init(&rng, (uint64_t)ffi_as_count(seed, "seed"), 0, TB_STREAM_model);
  memset(REAL(beta), 0, n_all * n_draw * sizeof(double));
  for (size_t k = 0; k < n_draw; ++k) {
    double *v_beta = REAL(beta) + k * n_all, *v_phi = REAL(phi) + k * n_hyper;
    tb_mixtures_simulate(p, v_phi, &rng);
    tb_mixtures_natural(p, v_phi, REAL(natural) + k * n_hyper);
    tb_mixtures_normal(p, v_phi, v_location, v_precision, v_work);
    for (size_t i = 0; i < p->n_covered; ++i) {
      const size_t j = p->v_at[i];
      v_beta[j] = v_location[j] + tb_rng_norm(&rng) / sqrt(v_precision[j]);
    }
  }
  ffi_add(out, "beta", beta);
  ffi_add(out, "phi", phi);
  ffi_add(out, "natural", natural);
  mixtures_finalize(ptr);
  UNPROTECT(5);
  return out;
}

/* n steps of draw() from phi, coefficients given: the states after each,
 * n_hyper x n */
SEXP ffi_mixture_draw(SEXP params, SEXP beta, SEXP phi, SEXP n, SEXP seed) {
  const size_t n_coef = (size_t)Rf_xlength(beta);
  SEXP size = PROTECT(Rf_ScalarReal((double)n_coef));
  SEXP ptr = PROTECT(make_mixtures(params, size));
  const struct tb_mixtures* p = R_ExternalPtrAddr(ptr);
  const size_t n_draw = ffi_as_count(n, "n"), n_hyper = p->n_hyper;
  const double* v_beta = ffi_some_doubles(beta, n_coef, "beta");
  double* v_phi = (double*)R_alloc(n_hyper, sizeof(double));
  double* v_work = (double*)R_alloc(tb_mixtures_n_work(p), sizeof(double));
  memcpy(v_phi,
         ffi_some_doubles(phi, n_hyper, "phi"),
         n_hyper * sizeof(double));
  SEXP out = PROTECT(matrix_of(n_hyper, n_draw));
  struct tb_rng rng;
  tb_rng_init(&rng, (uint64_t)ffi_as_count(seed, "seed"), 0, TB_STREAM_model);
  for (size_t k = 0; k < n_draw; ++k) {
    tb_mixtures_draw(p, v_beta, v_phi, v_work, &rng);
    memcpy(REAL(out) + k * n_hyper, v_phi, n_hyper * sizeof(double));
  }
  mixtures_finalize(ptr);
  UNPROTECT(3);
  return out;
}
