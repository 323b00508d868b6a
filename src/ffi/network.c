/* Outputs of networks that need no data of a model: predictions. */
#include "ffi/args.h"

#include "models/layers.h"

static struct tb_layers layers_of(SEXP widths, SEXP activation) {
  struct tb_layers layers;
  const size_t n_width = (size_t)Rf_xlength(widths);
  const double* v_width = ffi_some_doubles(widths, n_width, "widths");
  const int code = ffi_as_code(activation, TB_ACTIVATION_count, "activation");
  if (!tb_layers_create(&layers, (enum tb_activation)code, v_width, n_width)) {
    ffi_fault("widths");
  }
  return layers;
}

/* widths: n_0, .., n_L; theta: at least n_weight x n_draw; x: n_row x n_0.
 * An array of draws x rows x outputs. */
SEXP ffi_network_map(SEXP widths, SEXP activation, SEXP theta, SEXP x) {
  const struct tb_layers layers = layers_of(widths, activation);
  size_t n_row, n_column, n_dim, n_draw;
  ffi_shape(x, &n_row, &n_column, "x");
  ffi_shape(theta, &n_dim, &n_draw, "theta");
  const size_t n_out = layers.v_width[layers.n_layer];
  const double* v_x = ffi_doubles(x, n_row * layers.v_width[0], "x");
  const double* v_theta = ffi_doubles(theta, n_dim * n_draw, "theta");
  if (n_dim < tb_layers_n_weight(&layers)) {
    ffi_fault("theta");
  }
  double* v_scratch =
      (double*)R_alloc(tb_layers_map_scratch(&layers), sizeof(double));
  SEXP out =
      PROTECT(Rf_alloc3DArray(REALSXP, (int)n_draw, (int)n_row, (int)n_out));
  tb_layers_map(&layers,
                v_theta,
                n_dim,
                n_draw,
                v_x,
                n_row,
                v_scratch,
                REAL(out));
  UNPROTECT(1);
  return out;
}

/* Rows that a network evaluates at a time: whole blocks of them have the same
 * outputs, to the bit, as when all rows come at once. */
SEXP ffi_network_block(SEXP widths, SEXP activation) {
  const struct tb_layers layers = layers_of(widths, activation);
  return Rf_ScalarReal((double)layers.n_block);
}
