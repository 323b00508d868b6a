/* Door to the finite set Stein discrepancy. */
#include "ffi/args.h"

#include "diagnostics/fssd.h"

/* list(sum, square, slope) of each location (see fssd.h): n_dim x n_location,
 * n_location, and n_dim x n_location or NULL. draws, gradients: n_dim x n_draw;
 * wants_slope: FALSE, or TRUE for that of ||S||^2, less D without diagonal */
SEXP ffi_fssd(SEXP draws,
              SEXP gradients,
              SEXP weights,
              SEXP locations,
              SEXP c,
              SEXP beta,
              SEXP diagonal,
              SEXP wants_slope,
              SEXP n_threads) {
  size_t n_dim, n_draw, n_row, n_location;
  ffi_shape(draws, &n_dim, &n_draw, "draws");
  ffi_shape(locations, &n_row, &n_location, "locations");
  const bool has_slope = ffi_as_flag(wants_slope, "wants_slope");
  const bool has_diagonal = ffi_as_flag(diagonal, "diagonal");
  struct tb_fssd fssd = {
      .n_draw = n_draw,
      .n_dim = n_dim,
      .n_location = n_location,
      .v_draw = ffi_doubles(draws, n_dim * n_draw, "draws"),
      .v_gradient = ffi_some_doubles(gradients, n_dim * n_draw, "gradients"),
      .v_weight = ffi_some_doubles(weights, n_draw, "weights"),
      .v_location = ffi_doubles(locations, n_dim * n_location, "locations"),
      .c = ffi_as_number(c, "c"),
      .beta = ffi_as_number(beta, "beta"),
      .n_threads = ffi_threads(n_threads)};
  SEXP out = PROTECT(ffi_list(3));
  double* v_sum = ffi_add_matrix(out, "sum", n_dim, n_location);
  double* v_square = ffi_add_vector(out, "square", n_location);
  double* v_slope =
      has_slope ? ffi_add_matrix(out, "slope", n_dim, n_location) : NULL;
  if (!has_slope) {
    ffi_add(out, "slope", R_NilValue);
  }
  R_CheckUserInterrupt();
  tb_fssd_prepare(&fssd, R_alloc(tb_fssd_scratch_size(&fssd), 1));
  tb_fssd_sums(&fssd, v_sum, v_square);
  if (has_slope) {
    tb_fssd_slopes(&fssd, v_sum, has_diagonal, v_slope);
  }
  UNPROTECT(1);
  return out;
}
