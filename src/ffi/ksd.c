/* Door to the kernel Stein discrepancy. */
#include "ffi/args.h"

#include "diagnostics/ksd.h"

/* pairs between two looks at the keyboard: about a tenth of a second */
#define SLICE 2e7

static double*
add_parts(SEXP out, const char* name, const struct tb_ksd* p_ksd) {
  return p_ksd->by_coordinate
             ? ffi_add_matrix(out, name, p_ksd->n_dim, p_ksd->n_draw)
             : ffi_add_vector(out, name, p_ksd->n_draw);
}

/* list(diagonal, below) of parts that each draw adds (see ksd.h): n_draw
 * numbers, or n_dim x n_draw. draws, gradients: n_dim x n_draw */
SEXP ffi_ksd(SEXP draws,
             SEXP gradients,
             SEXP weights,
             SEXP c,
             SEXP beta,
             SEXP by_coordinate,
             SEXP n_threads) {
  size_t n_dim, n_draw;
  ffi_shape(draws, &n_dim, &n_draw, "draws");
  struct tb_ksd ksd = {
      .n_draw = n_draw,
      .n_dim = n_dim,
      .v_draw = ffi_doubles(draws, n_dim * n_draw, "draws"),
      .v_gradient = ffi_some_doubles(gradients, n_dim * n_draw, "gradients"),
      .v_weight = ffi_some_doubles(weights, n_draw, "weights"),
      .c = ffi_as_number(c, "c"),
      .beta = ffi_as_number(beta, "beta"),
      .by_coordinate = ffi_as_flag(by_coordinate, "by_coordinate"),
      .n_threads = ffi_threads(n_threads)};
  SEXP out = PROTECT(ffi_list(2));
  double* v_diagonal = add_parts(out, "diagonal", &ksd);
  double* v_below = add_parts(out, "below", &ksd);
  tb_ksd_prepare(&ksd, R_alloc(tb_ksd_scratch_size(&ksd), 1));

  const size_t n_task = tb_ksd_n_task(&ksd);
  const double block = (double)n_draw / (double)n_task;
  for (size_t first = 0; first < n_task;) {
    size_t last = first;
    for (double n_pair = 0; last < n_task && n_pair < SLICE; ++last) {
      n_pair += (double)(last + 1) * block * block;
    }
    tb_ksd_advance(&ksd, first, last, v_diagonal, v_below);
    R_CheckUserInterrupt();
    first = last;
  }
  UNPROTECT(1);
  return out;
}
