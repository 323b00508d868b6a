/* Means of ratings without a model: predictions. */
#include "ffi/args.h"

#include "models/factors.h"

#include <limits.h>

/* shape: n_user, n_item, rank, has_bias; theta: n_dim x n_draw (or more rows at
 * its end); user, item: n_pair numbers from 1, checked by the caller.
 * A matrix of pairs x draws. */
SEXP ffi_factors_map(SEXP shape, SEXP theta, SEXP user, SEXP item) {
  const double* v_shape = ffi_some_doubles(shape, 4, "shape");
  for (int k = 0; k < 4; ++k) {
    if (!(v_shape[k] >= 0) || v_shape[k] > INT_MAX) {
      ffi_fault("shape");
    }
  }
  const bool has_bias = v_shape[3] != 0;
  const struct tb_factors_shape parsed = {.n_user = (size_t)v_shape[0],
                                          .n_item = (size_t)v_shape[1],
                                          .n_rank = (size_t)v_shape[2],
                                          .n_width =
                                              (size_t)v_shape[2] + has_bias,
                                          .has_bias = has_bias};
  size_t n_dim = (size_t)Rf_xlength(theta), n_draw = 1;
  if (Rf_isMatrix(theta)) {
    ffi_shape(theta, &n_dim, &n_draw, "theta");
  }
  const size_t n_pair = (size_t)Rf_xlength(user);
  const double* v_theta = ffi_some_doubles(theta, n_dim * n_draw, "theta");
  const double* v_user = ffi_some_doubles(user, n_pair, "user");
  const double* v_item = ffi_some_doubles(item, n_pair, "item");
  ffi_rows(user, parsed.n_user, "user");
  ffi_rows(item, parsed.n_item, "item");
  if (n_dim <
      ffi_times(parsed.n_user + parsed.n_item, parsed.n_width, "shape")) {
    ffi_fault("theta");
  }
  SEXP out =
      PROTECT(Rf_allocMatrix(REALSXP, ffi_extent(n_pair, "user"), (int)n_draw));
  for (size_t d = 0; d < n_draw; ++d) {
    tb_factors_map(&parsed,
                   v_theta + d * n_dim,
                   v_user,
                   v_item,
                   n_pair,
                   REAL(out) + d * n_pair);
  }
  UNPROTECT(1);
  return out;
}
