/* Doors to the families' functions of linear predictors. */
#include "ffi/args.h"

#include "models/link.h"

static enum tb_link parse_link(SEXP code) {
  return (enum tb_link)ffi_as_code(code, TB_LINK_count, "code");
}

/* the cumulant, log(1 + exp(eta)) for a binomial response; with the shape of
 * eta */
SEXP ffi_link_cumulant(SEXP eta, SEXP code) {
  const enum tb_link link = parse_link(code);
  const size_t n = (size_t)Rf_xlength(eta);
  const double* v_eta = ffi_some_doubles(eta, n, "eta");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n));
  tb_link_cumulant(link, v_eta, REAL(out), n);
  Rf_setAttrib(out, R_DimSymbol, Rf_getAttrib(eta, R_DimSymbol));
  UNPROTECT(1);
  return out;
}

/* The means at the linear predictors theta x' + offset, draws x rows. */
SEXP ffi_link_product(SEXP theta,
                      SEXP x,
                      SEXP offset,
                      SEXP code,
                      SEXP n_threads) {
  size_t n_draw, n_row, n_dim, n_column;
  ffi_shape(theta, &n_draw, &n_dim, "theta");
  ffi_shape(x, &n_row, &n_column, "x");
  struct tb_link_product product = {
    .link = parse_link(code),
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
