/* Doors to the families' functions of linear predictors. */
#include "ffi-args.h"

#include "models/link.h"

typedef void link_map(enum tb_link, const double*, double*, size_t);

/* Works on eta itself unless somebody else has it too: matrices of draws are
 * large. Callers assign the result over their eta. */
static SEXP apply_map(SEXP eta, SEXP code, link_map* map) {
  const enum tb_link link = (enum tb_link)Rf_asInteger(code);
  if (TYPEOF(eta) != REALSXP) {
    ffi_fault("eta");
  }
  SEXP out = PROTECT(MAYBE_SHARED(eta) ? Rf_duplicate(eta) : eta);
  map(link, REAL(out), REAL(out), (size_t)Rf_xlength(out));
  UNPROTECT(1);
  return out;
}

/* the mean of the response */
SEXP ffi_link_mean(SEXP eta, SEXP code) {
  return apply_map(eta, code, tb_link_mean);
}

/* the cumulant: log(1 + exp(eta)) for a binomial response */
SEXP ffi_link_cumulant(SEXP eta, SEXP code) {
  return apply_map(eta, code, tb_link_cumulant);
}

/* The means at the linear predictors A' B, a matrix of draws x rows. */
SEXP ffi_link_product(SEXP a, SEXP b, SEXP code) {
  const size_t n_dim = (size_t)Rf_nrows(a);
  const size_t n_draw = (size_t)Rf_ncols(a), n_row = (size_t)Rf_ncols(b);
  const enum tb_link link = (enum tb_link)Rf_asInteger(code);
  const double* v_a = ffi_doubles(a, n_dim * n_draw, "a");
  const double* v_b = ffi_doubles(b, n_dim * n_row, "b");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n_draw, (int)n_row));
  tb_link_product(link, n_draw, n_row, n_dim, v_a, v_b, REAL(out));
  UNPROTECT(1);
  return out;
}
