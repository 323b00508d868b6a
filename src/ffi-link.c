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

/* The means at the linear predictors theta x' + offset, draws x rows. */
SEXP ffi_link_product(SEXP theta,
                      SEXP x,
                      SEXP offset,
                      SEXP code,
                      SEXP n_threads) {
  const size_t n_draw = (size_t)Rf_nrows(theta), n_row = (size_t)Rf_nrows(x);
  const size_t n_dim = (size_t)Rf_ncols(theta);
  struct tb_link_product product = {
    .link = (enum tb_link)Rf_asInteger(code),
    .n_draw = n_draw,
    .n_row = n_row,
    .n_dim = n_dim,
    .v_theta = ffi_doubles(theta, n_draw * n_dim, "theta"),
    .v_x = ffi_doubles(x, n_row * n_dim, "x"),
    .v_offset = ffi_doubles(offset, n_row, "offset"),
    .n_threads = ffi_threads(n_threads)
  };
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n_draw, (int)n_row));
  product.v_out = REAL(out);
  tb_link_product(&product);
  UNPROTECT(1);
  return out;
}
