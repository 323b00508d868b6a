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
