/* The gemms of a pass over the data through a network, and nothing else: the
 * calls that the package makes, with its block of rows and its shapes, on the
 * BLAS that R uses. */
#define USE_FC_LEN_T
#include <Rconfig.h>
#include <R.h>
#include <R_ext/BLAS.h>
#include <Rinternals.h>
#ifndef FCONE
#define FCONE
#endif
#include <stdlib.h>

static void gemm(const char* op_a,
                 const char* op_b,
                 int m,
                 int n,
                 int k,
                 const double* v_a,
                 int n_lead_a,
                 const double* v_b,
                 int n_lead_b,
                 double scale,
                 double* v_c) {
  const double one = 1;
  F77_CALL(dgemm)(op_a, op_b, &m, &n, &k, &one, v_a, &n_lead_a, v_b, &n_lead_b,
                  &scale, v_c, &m FCONE FCONE);
}

/* widths: n_0, .., n_L; returns the number of floating-point operations */
SEXP network_gemms(SEXP widths, SEXP n_data, SEXP n_block) {
  const int n_layer = (int) XLENGTH(widths) - 1, n_row_most = asInteger(n_block);
  const double* v_width = REAL(widths);
  int widest = 0;
  for (int l = 0; l <= n_layer; ++l) {
    widest = (int) v_width[l] > widest ? (int) v_width[l] : widest;
  }
  const size_t n_act = (size_t) n_row_most * (size_t) (widest + 1);
  const size_t n_weight = (size_t) widest * (size_t) (widest + 1);
  double* v = calloc(2 * n_act * (size_t) (n_layer + 1) + 2 * n_weight,
                     sizeof(double));
  if (v == NULL) {
    Rf_error("out of memory");
  }
  double* v_weight = v + 2 * n_act * (size_t) (n_layer + 1);
  double* v_gradient = v_weight + n_weight;
  double n_flop = 0;
  for (size_t k = 0; k < 2 * n_act * (size_t) (n_layer + 1) + n_weight; ++k) {
    v[k] = 0.01 * (double) (k % 7);
  }
  for (double first = 0; first < asReal(n_data); first += n_row_most) {
    const double left = asReal(n_data) - first;
    const int n_row = left < n_row_most ? (int) left : n_row_most;
    for (int l = 1; l <= n_layer; ++l) {
      const int n_in = (int) v_width[l - 1] + 1, n_out = (int) v_width[l];
      gemm(l == 1 ? "T" : "N", "T", n_row, n_out, n_in,
           v + (size_t) (l - 1) * n_act, l == 1 ? n_in : n_row, v_weight, n_out,
           0, v + (size_t) l * n_act);
      n_flop += 2.0 * n_row * n_out * n_in;
    }
    for (int l = n_layer; l >= 1; --l) {
      const int n_in = (int) v_width[l - 1] + 1, n_out = (int) v_width[l];
      const double* v_delta = v + (size_t) (n_layer + 1 + l) * n_act;
      if (l > 1) {
        gemm("N", "N", n_row, n_in - 1, n_out, v_delta, n_row, v_weight, n_out,
             0, v + (size_t) (n_layer + l) * n_act);
        n_flop += 2.0 * n_row * n_out * (n_in - 1);
      }
      gemm("T", l == 1 ? "T" : "N", n_out, n_in, n_row, v_delta, n_row,
           v + (size_t) (l - 1) * n_act, l == 1 ? n_in : n_row, 1, v_gradient);
      n_flop += 2.0 * n_row * n_out * n_in;
    }
  }
  free(v);
  return ScalarReal(n_flop);
}
