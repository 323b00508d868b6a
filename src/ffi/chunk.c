/* Doors to chunks of rows, as sequential passes see them: a model of their own
 * for as long as they are there. Shapes: theta is n_dim. */
#include "base/hash.h"
#include "data/shelf.h"
#include "ffi/model.h"
#include "passes/ahead.h"

#include <stdlib.h>
#include <string.h>

/* the first n of a vector that may be longer; NULL: no such parameter */
static void add_vector(struct tb_param* v_param,
                       size_t* p_n,
                       const char* name,
                       SEXP x,
                       size_t n) {
  if (x == R_NilValue) {
    return;
  }
  if (TYPEOF(x) != REALSXP || (size_t)Rf_xlength(x) < n) {
    ffi_fault(name);
  }
  v_param[(*p_n)++] = (struct tb_param){.name = name,
                                        .v_value = REAL(x),
                                        .n_value = n,
                                        .n_row = n};
}

static void
add_number(struct tb_param* v_param, size_t* p_n, const char* name, SEXP x) {
  if (TYPEOF(x) != REALSXP || Rf_xlength(x) != 1) {
    ffi_fault(name);
  }
  v_param[(*p_n)++] = (struct tb_param){.name = name,
                                        .v_value = REAL(x),
                                        .n_value = 1,
                                        .n_row = 1};
}

/* Where pieces end, the basis of their log hazards, and what tells of strata;
 * how many columns the basis has */
static size_t add_pieces(struct tb_param* v_param, size_t* p_n, SEXP pieces) {
  const char* const v_name[] = {"cuts", "basis", "n_cut", "stratum"};
  size_t v_n[4] = {0};
  if (TYPEOF(pieces) != VECSXP ||
      (Rf_xlength(pieces) != 2 && Rf_xlength(pieces) != 4)) {
    ffi_fault("pieces");
  }
  for (R_xlen_t k = 0; k < Rf_xlength(pieces); ++k) {
    SEXP part = VECTOR_ELT(pieces, k);
    v_n[k] = (size_t)Rf_xlength(part);
    add_vector(v_param, p_n, v_name[k], part, v_n[k]);
  }
  return v_n[1] / (v_n[0] + (v_n[2] > 0 ? v_n[2] : 1));
}

/* A generalised linear model with a flat prior of the first n rows of x (more
 * rows x n_coef); y, weights (or NULL) and offset (or NULL) have n values or
 * more, y of several columns as a matrix of n rows. response: its place; aux:
 * its known parameters, NULL without. pieces: list(cuts, basis) of times with a
 * hazard in pieces, and n_cut and stratum of strata, see models/pieces.c; their
 * steps are further parameters; or NULL. Pointer, or
 * the status as an integer. */
SEXP ffi_chunk_model(SEXP x,
                     SEXP n,
                     SEXP y,
                     SEXP weights,
                     SEXP offset,
                     SEXP response,
                     SEXP aux,
                     SEXP pieces) {
  struct tb_store_matrix matrix = {.n_row = ffi_as_count(n, "n")};
  struct tb_param v_param[12];
  size_t n_param = 0;
  ffi_shape(x, &matrix.n_lead, &matrix.n_col, "x");
  matrix.v_value = REAL(x);
  if (matrix.n_row == 0 || matrix.n_row > matrix.n_lead || y == R_NilValue) {
    ffi_fault("n");
  }
  add_vector(v_param,
             &n_param,
             "y",
             y,
             Rf_isMatrix(y) ? (size_t)Rf_xlength(y) : matrix.n_row);
  add_vector(v_param, &n_param, "weights", weights, matrix.n_row);
  add_vector(v_param, &n_param, "offset", offset, matrix.n_row);
  add_number(v_param, &n_param, "response", response);
  if (aux != R_NilValue) {
    add_vector(v_param, &n_param, "aux", aux, (size_t)Rf_xlength(aux));
  }
  const bool has_pieces = pieces != R_NilValue;
  size_t n_dim = matrix.n_col;
  if (has_pieces) {
    n_dim += add_pieces(v_param, &n_param, pieces);
  }
  double* v_flat = (double*)R_alloc(n_dim + 1, sizeof(double));
  double* v_one = (double*)R_alloc(n_dim + 1, sizeof(double));
  for (size_t j = 0; j < n_dim; ++j) {
    v_flat[j] = 0; /* the place of the flat prior, and a location */
    v_one[j] = 1;
  }
  const char* const v_name[] = {"prior_kind", "prior_location", "prior_scale"};
  for (size_t k = 0; k < 3; ++k) {
    v_param[n_param++] = (struct tb_param){.name = v_name[k],
                                           .v_value = k == 2 ? v_one : v_flat,
                                           .n_value = n_dim,
                                           .n_row = n_dim};
  }
  const struct tb_params params = {v_param, n_param};
  SEXP ptr = PROTECT(ffi_model_pointer());
  struct tb_model* p_model = ffi_model_attach(ptr);
  struct tb_store store = {.type = NULL};
  enum tb_status status = TB_STATUS_memory;
  if (p_model != NULL) {
    const struct tb_shelf shelf = {.type = tb_store_find("dense"),
                                   .p_given = &store};
    p_model->type = tb_model_find(has_pieces ? "pieces" : "glm");
    status = tb_shelf_fill(shelf.type, &matrix, 0, false, &store);
    if (status == TB_STATUS_ok) {
      status = p_model->type->create(p_model, &params, &shelf);
    }
    tb_store_destroy(&store);
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? ptr : ffi_status(status);
}

/* out: protected */
static void add_sums(SEXP out, size_t n_dim, struct tb_ahead_sums* p_sums) {
  p_sums->v_total = ffi_add_vector(out, "gradient", n_dim);
  p_sums->v_hessian = ffi_add_matrix(out, "hessian", n_dim, n_dim);
}

/* list(gradient, hessian, log_lik, largest, status): sums of the likelihood
 * alone over all rows, hessian with the sign of -Hessian */
SEXP ffi_chunk_sums(SEXP chunk, SEXP theta, SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(chunk);
  const size_t n_dim = p_model->n_dim;
  const double* v_theta = ffi_some_doubles(theta, n_dim, "theta");
  const int n_threads_ = ffi_threads(n_threads);
  struct tb_ahead_sums sums;
  SEXP out = PROTECT(ffi_list(5));
  add_sums(out, n_dim, &sums);
  const enum tb_status status =
      tb_ahead_pass(p_model, v_theta, NULL, n_threads_, &sums, NULL);
  ffi_add_number(out, "log_lik", sums.log_lik);
  ffi_add_number(out, "largest", sums.largest);
  ffi_add(out, "status", ffi_status(status));
  UNPROTECT(1);
  return out;
}

static struct tb_ahead_draw parse_draw(SEXP draw, const double* v_chol) {
  return (struct tb_ahead_draw){.bounds = {.radius = ffi_number(draw, "radius"),
                                           .phi = ffi_number(draw, "phi_bar"),
                                           .scale = ffi_number(draw, "scale"),
                                           .wide = ffi_number(draw, "wide")},
                                .v_chol = v_chol,
                                .rate = ffi_number(draw, "rate"),
                                .key = tb_ahead_key(ffi_count(draw, "seed"),
                                                    ffi_count(draw, "purpose"),
                                                    ffi_count(draw, "pass")),
                                .first = ffi_count(draw, "first")};
}

/* Rows that are looked at always or drawn: rows (from 1), count (0: always),
 * psi, norm */
static void add_rows(SEXP out, const struct tb_ahead_rows* p, size_t n_data) {
  size_t n = 0;
  for (size_t i = 0; i < n_data; ++i) {
    n += p->v_count[i] != 0;
  }
  double* v_row = ffi_add_vector(out, "rows", n);
  double* v_count = ffi_add_vector(out, "count", n);
  double* v_psi = ffi_add_vector(out, "psi", n);
  double* v_norm = ffi_add_vector(out, "norm", n);
  n = 0;
  for (size_t i = 0; i < n_data; ++i) {
    if (p->v_count[i] != 0) {
      v_row[n] = (double)(i + 1);
      v_count[n] = p->v_count[i] < 0 ? 0 : p->v_count[i];
      v_norm[n] = p->v_norm[i];
      v_psi[n++] = p->v_psi[i];
    }
  }
}

/* The same and total, rows, count, psi, norm: see passes/ahead.h */
SEXP ffi_chunk_draw(SEXP chunk,
                    SEXP theta,
                    SEXP chol,
                    SEXP draw,
                    SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(chunk);
  const size_t n_dim = p_model->n_dim, n_data = p_model->n_data;
  const double* v_theta = ffi_some_doubles(theta, n_dim, "theta");
  struct tb_ahead_draw draw_ =
      parse_draw(draw, ffi_some_doubles(chol, n_dim * n_dim, "chol"));
  const int n_threads_ = ffi_threads(n_threads);
  draw_.bounds.p_model = p_model;
  struct tb_ahead_sums sums;
  struct tb_ahead_rows rows = {
      .v_psi = (double*)R_alloc(n_data, sizeof(double)),
      .v_count = (double*)R_alloc(n_data, sizeof(double)),
      .v_norm = (double*)R_alloc(n_data, sizeof(double))};
  SEXP out = PROTECT(ffi_list(10));
  add_sums(out, n_dim, &sums);
  const enum tb_status status =
      tb_ahead_pass(p_model, v_theta, &draw_, n_threads_, &sums, &rows);
  ffi_add_number(out, "log_lik", sums.log_lik);
  ffi_add_number(out, "largest", sums.largest);
  ffi_add_number(out, "total", rows.total);
  add_rows(out, &rows, status == TB_STATUS_ok ? n_data : 0);
  ffi_add(out, "status", ffi_status(status));
  UNPROTECT(1);
  return out;
}

/* n uniforms of rows first + 1, first + 2, ...: those of ffi_chunk_draw()
 * where purpose is the same and pass is 0 */
SEXP ffi_hash_uniforms(SEXP seed, SEXP purpose, SEXP first, SEXP n) {
  const uint64_t key = tb_ahead_key(ffi_as_count(seed, "seed"),
                                    ffi_as_count(purpose, "purpose"),
                                    0);
  const uint64_t first_ = ffi_as_count(first, "first");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)ffi_as_count(n, "n")));
  for (size_t i = 0; i < (size_t)Rf_xlength(out); ++i) {
    REAL(out)[i] = tb_hash_unif(tb_hash_at(key, first_ + i));
  }
  UNPROTECT(1);
  return out;
}
