/* Doors to the responses: what methods of fits, and tests, ask of them alone.
 * `place`: of a response in the registry. `aux`: its auxiliary parameters,
 * draws x parameters; NULL: 1 each. */
#include "ffi/args.h"

#include "models/link.h"
#include "responses/response.h"

#include <math.h>
#include <string.h>

enum { TILE = 64 };

static const struct tb_response_type* parse_response(SEXP place) {
  return tb_response_registry[ffi_as_code(place,
                                          (int)tb_response_count(),
                                          "place")];
}

/* the same, of one predictor a row */
static const struct tb_response_type* parse_single(SEXP place) {
  const struct tb_response_type* type = parse_response(place);
  if (tb_response_n_predictor(type, 0) != 1) {
    ffi_fault("place");
  }
  return type;
}

/* rows of a response, of which y is columns; v_y: numbers of y */
static size_t
parse_y(const struct tb_response_type* type, SEXP y, const double** v_y) {
  const size_t n = (size_t)Rf_xlength(y), n_y = tb_response_n_y(type);
  if (n % n_y != 0) {
    ffi_fault("y");
  }
  *v_y = ffi_some_doubles(y, n, "y");
  return n / n_y;
}

/* what auxiliary parameters, natural or where they are sampled coordinates,
 * make of each draw; R_alloc */
static struct tb_response_point*
parse_points(SEXP place, SEXP aux, bool is_sampled, size_t n_draw) {
  const struct tb_response_type* type = parse_response(place);
  const size_t n_value = ffi_times(n_draw, type->n_aux, "aux");
  const double* v_aux = ffi_doubles(aux, n_value, "aux");
  struct tb_response_point* v_point =
      (struct tb_response_point*)R_alloc(n_draw, sizeof *v_point);
  for (size_t d = 0; d < n_draw; ++d) {
    struct tb_response response = {.type = type};
    double v_coordinate[TB_RESPONSE_MOST_AUX] = {0};
    for (size_t k = 0; k < type->n_aux; ++k) {
      const double value = v_aux == NULL ? 1 : v_aux[k * n_draw + d];
      response.v_known[k] = is_sampled ? NAN : value;
      v_coordinate[k] = value;
    }
    v_point[d] = tb_response_at(&response, v_coordinate);
  }
  return v_point;
}

/* name, coordinate and lower bound of each parameter of a response */
static SEXP aux_texts(const struct tb_response_type* type, bool is_name) {
  SEXP out = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)type->n_aux));
  for (size_t k = 0; k < type->n_aux; ++k) {
    const struct tb_response_aux* p = &type->v_aux[k];
    SET_STRING_ELT(out,
                   (R_xlen_t)k,
                   Rf_mkChar(is_name ? p->name : p->coordinate));
  }
  UNPROTECT(1);
  return out;
}

static SEXP aux_bounds(const struct tb_response_type* type) {
  SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)type->n_aux);
  for (size_t k = 0; k < type->n_aux; ++k) {
    REAL(out)[k] = type->v_aux[k].lower;
  }
  return out;
}

/* columns of every response of the registry, in its order; aux, coordinate and
 * lower: lists of vectors; n_predictor: 0 where it is that of classes */
SEXP ffi_response_registry(void) {
  enum { N_TEXT = 2, N_AUX = 3, N_COUNT = 2, N_FLAG = 4 };
  static const char* const v_name[] = {"name", "link"};
  static const char* const v_aux_name[] = {"aux", "coordinate", "lower"};
  static const char* const v_count_name[] = {"n_y", "n_predictor"};
  static const char* const v_flag_name[] = {"is_precision",
                                            "is_dispersion",
                                            "has_bound",
                                            "has_third_bound"};
  const R_xlen_t n = (R_xlen_t)tb_response_count();
  SEXP out = PROTECT(ffi_list(N_TEXT + N_AUX + N_COUNT + N_FLAG));
  SEXP v_column[N_TEXT], v_aux_column[N_AUX];
  SEXP v_count_column[N_COUNT], v_flag_column[N_FLAG];
  for (int j = 0; j < N_TEXT; ++j) {
    ffi_add(out, v_name[j], v_column[j] = Rf_allocVector(STRSXP, n));
  }
  for (int j = 0; j < N_AUX; ++j) {
    ffi_add(out, v_aux_name[j], v_aux_column[j] = Rf_allocVector(VECSXP, n));
  }
  for (int j = 0; j < N_COUNT; ++j) {
    ffi_add(out,
            v_count_name[j],
            v_count_column[j] = Rf_allocVector(INTSXP, n));
  }
  for (int j = 0; j < N_FLAG; ++j) {
    ffi_add(out, v_flag_name[j], v_flag_column[j] = Rf_allocVector(LGLSXP, n));
  }
  for (R_xlen_t i = 0; i < n; ++i) {
    const struct tb_response_type* type = tb_response_registry[i];
    const char* v_text[N_TEXT] = {type->name, type->link};
    SET_VECTOR_ELT(v_aux_column[0], i, aux_texts(type, true));
    SET_VECTOR_ELT(v_aux_column[1], i, aux_texts(type, false));
    SET_VECTOR_ELT(v_aux_column[2], i, aux_bounds(type));
    INTEGER(v_count_column[0])[i] = (int)tb_response_n_y(type);
    INTEGER(v_count_column[1])[i] = (int)tb_response_n_predictor(type, 0);
    const bool v_flag[N_FLAG] = {type->flags & TB_RESPONSE_PRECISION,
                                 type->flags & TB_RESPONSE_DISPERSION,
                                 type->bound != NULL,
                                 type->third_bound != NULL};
    for (int j = 0; j < N_TEXT; ++j) {
      SET_STRING_ELT(v_column[j], i, Rf_mkChar(v_text[j]));
    }
    for (int j = 0; j < N_FLAG; ++j) {
      LOGICAL(v_flag_column[j])[i] = v_flag[j];
    }
  }
  UNPROTECT(1);
  return out;
}

/* rows first .. first + n of whole numbers, in columns of n_row */
static void whole_columns(const int* v_y,
                          size_t n_row,
                          size_t first,
                          size_t n,
                          size_t n_column,
                          double* v_to) {
  for (size_t j = 0; j < n_column; ++j) {
    for (size_t i = 0; i < n; ++i) {
      const int y = v_y[j * n_row + first + i];
      v_to[j * n + i] = y == NA_INTEGER ? NA_REAL : y;
    }
  }
}

/* 1-based position, among the n rows after `first`, of the first whose y, of
 * any type of numbers, it cannot have; 0 when there is none. size: trials or
 * classes, 0 where they are not known. TILE rows at a time: no memory, however
 * long y is. */
SEXP ffi_response_outside(SEXP place, SEXP y, SEXP size, SEXP first, SEXP n_) {
  const struct tb_response_type* type = parse_response(place);
  const size_t n_y = tb_response_n_y(type), n_value = (size_t)Rf_xlength(y);
  const size_t n_row = n_value / n_y;
  const size_t from = ffi_as_count(first, "first"), n = ffi_as_count(n_, "n");
  const double most = ffi_as_number(size, "size");
  if (n_value % n_y != 0 || n_row < from + n) {
    ffi_fault("y");
  }
  const int* v_whole = ffi_is_whole(y) ? ffi_whole(y) : NULL;
  const double* v_y =
      v_whole == NULL ? ffi_some_doubles(y, n_value, "y") : NULL;
  double v_tile[TB_RESPONSE_MOST_Y * TILE];
  for (size_t k = 0; k < n; k += TILE) {
    const size_t n_tile = n - k < TILE ? n - k : TILE;
    if (v_whole != NULL) {
      whole_columns(v_whole, n_row, from + k, n_tile, n_y, v_tile);
    } else {
      tb_response_columns(v_y, n_row, from + k, n_tile, n_y, v_tile);
    }
    const size_t at = type->outside(v_tile, n_tile, most);
    if (at < n_tile) {
      return Rf_ScalarReal((double)(k + at) + 1);
    }
  }
  return Rf_ScalarReal(0);
}

/* which column of a result is asked for */
enum what {
  WHAT_log_density = 0,
  WHAT_score = 1,
  WHAT_curvature = 2,
  WHAT_aux_score = 3,
  WHAT_cross = 4,
  WHAT_aux_curvature = 5,
  WHAT_count = 6
};

static struct tb_response_out result_at(enum what what, double* v) {
  return (struct tb_response_out){
      .is_complete = true,
      .v_log_density = what == WHAT_log_density ? v : NULL,
      .v_score = what == WHAT_score ? v : NULL,
      .v_curvature = what == WHAT_curvature ? v : NULL,
      .v_aux_score = what == WHAT_aux_score ? v : NULL,
      .v_cross = what == WHAT_cross ? v : NULL,
      .v_aux_curvature = what == WHAT_aux_curvature ? v : NULL};
}

/* rows of draws x rows arrays, TILE at a time */
struct tile {
  const struct tb_response_type* type;
  size_t n_draw, n_row, n_predictor;
  size_t n_column; /* of the result */
  const double* v_eta;
  const double* v_y;
  const double* v_weight;
  const struct tb_response_point* v_point;
  double* v_in;  /* TILE x n_predictor */
  double* v_own; /* TILE x columns of y */
  double* v_out; /* TILE x n_column */
};

static void tile_evaluate(const struct tile* p,
                          enum what what,
                          size_t first,
                          size_t draw,
                          double* v_result) {
  const size_t n = p->n_row - first < TILE ? p->n_row - first : TILE;
  for (size_t j = 0; j < p->n_predictor; ++j) {
    const double* v = p->v_eta + (j * p->n_row + first) * p->n_draw + draw;
    for (size_t i = 0; i < n; ++i) {
      p->v_in[j * n + i] = v[i * p->n_draw];
    }
  }
  const size_t n_y = tb_response_n_y(p->type);
  tb_response_columns(p->v_y, p->n_row, first, n, n_y, p->v_own);
  const struct tb_response_rows rows = {
      .n_row = n,
      .n_predictor = p->n_predictor,
      .v_eta = p->v_in,
      .v_y = p->v_own,
      .v_weight = p->v_weight == NULL ? NULL : p->v_weight + first,
      .p_point = &p->v_point[draw]};
  const struct tb_response_out out = result_at(what, p->v_out);
  p->type->evaluate(&rows, &out);
  for (size_t j = 0; j < p->n_column; ++j) {
    double* v = v_result + (j * p->n_row + first) * p->n_draw + draw;
    for (size_t i = 0; i < n; ++i) {
      v[i * p->n_draw] = p->v_out[j * n + i];
    }
  }
}

/* What sums of curvatures leave out, see tb_response_out. */
static void add_informations(const struct tile* p, double* v_result) {
  const size_t n_each = p->n_draw * p->n_row;
  double v_rest[TB_RESPONSE_MOST_AUX];
  const size_t n_aux =
      p->n_draw == 0 ? 0
                     : tb_response_informations(p->type, p->v_point, v_rest);
  for (size_t k = 0; k < n_aux; ++k) {
    for (size_t i = 0; i < n_each; ++i) {
      v_result[tb_response_pair(k, k) * n_each + i] += v_rest[k];
    }
  }
}

static size_t columns_of(enum what what, size_t n_predictor, size_t n_aux) {
  switch (what) {
  case WHAT_score:
    return n_predictor;
  case WHAT_curvature:
    return n_predictor * (n_predictor + 1) / 2;
  case WHAT_aux_score:
    return n_aux;
  case WHAT_cross:
    return n_aux * n_predictor;
  case WHAT_aux_curvature:
    return n_aux * (n_aux + 1) / 2;
  case WHAT_log_density:
  case WHAT_count:
    break;
  }
  return 1;
}

/* One of the results at predictors eta (n_draw x rows, by column, with several
 * predictors one such matrix after the other), in that shape: what there is of
 * each predictor, sampled auxiliary parameter, or pair of them, one such matrix
 * after the other. y (its columns), weight (or NULL): of rows; aux: of draws,
 * natural values or, where they are sampled, coordinates; NULL where there is
 * none. */
SEXP ffi_response_evaluate(SEXP place,
                           SEXP what,
                           SEXP eta,
                           SEXP n_draw,
                           SEXP y,
                           SEXP weight,
                           SEXP aux,
                           SEXP is_sampled) {
  const struct tb_response_type* type = parse_response(place);
  const enum what which = (enum what)ffi_as_code(what, WHAT_count, "what");
  const double* v_y;
  const size_t n_row = parse_y(type, y, &v_y);
  const size_t n_each = ffi_times(ffi_as_count(n_draw, "n_draw"), n_row, "eta");
  const size_t n = (size_t)Rf_xlength(eta);
  const bool samples = ffi_as_flag(is_sampled, "is_sampled");
  const size_t n_predictor = n_each == 0 ? 1 : n / n_each;
  if (n_predictor * n_each != n ||
      (n_each > 0 &&
       n_predictor != tb_response_n_predictor(type, n_predictor))) {
    ffi_fault("eta");
  }
  if (which >= WHAT_aux_score && !(samples && type->n_aux > 0)) {
    ffi_fault("is_sampled");
  }
  struct tile tile = {.type = type,
                      .n_draw = ffi_as_count(n_draw, "n_draw"),
                      .n_row = n_row,
                      .n_predictor = n_predictor,
                      .n_column = columns_of(which, n_predictor, type->n_aux),
                      .v_eta = ffi_some_doubles(eta, n, "eta"),
                      .v_y = v_y,
                      .v_weight = ffi_doubles(weight, n_row, "weight")};
  if ((type->flags & TB_RESPONSE_CLASSES) &&
      type->outside(tile.v_y, n_row, (double)n_predictor) < n_row) {
    ffi_fault("y");
  }
  tile.v_point = parse_points(place, aux, samples, tile.n_draw);
  tile.v_in = (double*)R_alloc(TILE * n_predictor, sizeof(double));
  tile.v_own = (double*)R_alloc(TILE * tb_response_n_y(type), sizeof(double));
  tile.v_out = (double*)R_alloc(TILE * tile.n_column, sizeof(double));
  const size_t n_out = ffi_times(n_each, tile.n_column, "eta");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_out));
  for (size_t first = 0; first < n_row; first += TILE) {
    for (size_t draw = 0; draw < tile.n_draw; ++draw) {
      tile_evaluate(&tile, which, first, draw, REAL(out));
    }
  }
  if (which == WHAT_aux_curvature) {
    add_informations(&tile, REAL(out));
  }
  UNPROTECT(1);
  return out;
}

/* Bounds over |. - eta| <= reach of rows: list(curvature, third), NULL where
 * there are none. */
SEXP ffi_response_bounds(SEXP place,
                         SEXP eta,
                         SEXP reach,
                         SEXP y,
                         SEXP weight,
                         SEXP aux) {
  const struct tb_response_type* type = parse_single(place);
  const double* v_y;
  const size_t n = parse_y(type, y, &v_y);
  const double* v_reach = ffi_some_doubles(reach, n, "reach");
  struct tb_response_rows rows = {.n_row = n,
                                  .n_predictor = 1,
                                  .v_eta = ffi_some_doubles(eta, n, "eta"),
                                  .v_y = v_y,
                                  .v_weight = ffi_doubles(weight, n, "weight")};
  rows.p_point = parse_points(place, aux, false, 1);
  SEXP out = PROTECT(ffi_list(2));
  if (type->bound == NULL) {
    ffi_add(out, "curvature", R_NilValue);
  } else {
    double* v_curvature = ffi_add_vector(out, "curvature", n);
    const struct tb_response_out result =
        result_at(WHAT_curvature, v_curvature);
    type->bound(&rows, v_reach, &result);
  }
  if (type->third_bound == NULL) {
    ffi_add(out, "third", R_NilValue);
  } else {
    type->third_bound(&rows, v_reach, ffi_add_vector(out, "third", n));
  }
  UNPROTECT(1);
  return out;
}

/* the predictors of a row, of n numbers of all rows */
static size_t
parse_predictors(const struct tb_response_type* type, SEXP x, size_t n) {
  const size_t n_each = ffi_as_count(x, "n_predictor");
  if (n_each == 0 || n % n_each != 0 ||
      n_each != tb_response_n_predictor(type, n_each)) {
    ffi_fault("n_predictor");
  }
  return n_each;
}

/* Means at predictors, in their shape; the last of n_predictor dimensions is
 * that of the predictors of a row. */
SEXP ffi_response_mean(SEXP place, SEXP eta, SEXP n_predictor) {
  const struct tb_response_type* type = parse_response(place);
  const size_t n = (size_t)Rf_xlength(eta);
  const size_t n_each = parse_predictors(type, n_predictor, n);
  const double* v_eta = ffi_some_doubles(eta, n, "eta");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n));
  type->mean(v_eta, n / n_each, n_each, REAL(out));
  Rf_setAttrib(out, R_DimSymbol, Rf_getAttrib(eta, R_DimSymbol));
  UNPROTECT(1);
  return out;
}

/* the response, where it has variances and deviances */
static const struct tb_response_type* parse_of_numbers(SEXP place) {
  const struct tb_response_type* type = parse_response(place);
  if (type->variance == NULL || type->deviance == NULL) {
    ffi_fault("place");
  }
  return type;
}

/* Variances of observations, draws x rows, with these means, draws x rows x
 * predictors; weight: of rows, aux: of draws. */
SEXP ffi_response_variance(SEXP place,
                           SEXP mean,
                           SEXP n_draw,
                           SEXP weight,
                           SEXP aux) {
  const struct tb_response_type* type = parse_of_numbers(place);
  const size_t n_value = (size_t)Rf_xlength(mean);
  const size_t n_predictor = tb_response_n_predictor(type, 1);
  const size_t n_each = ffi_as_count(n_draw, "n_draw");
  if (n_each == 0 || n_value % (n_each * n_predictor) != 0) {
    ffi_fault("n_draw");
  }
  const size_t n = n_value / n_predictor;
  const double* v_mean = ffi_some_doubles(mean, n_value, "mean");
  const double* v_weight = ffi_doubles(weight, n / n_each, "weight");
  const struct tb_response_point* v_point =
      parse_points(place, aux, false, n_each);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n));
  for (size_t k = 0; k < n; ++k) {
    const double* v_one = v_weight == NULL ? NULL : v_weight + k / n_each;
    double v_at[TB_RESPONSE_MOST_PREDICTOR];
    tb_response_columns(v_mean, n, k, 1, n_predictor, v_at);
    type->variance(v_at, 1, v_one, &v_point[k % n_each], REAL(out) + k);
  }
  UNPROTECT(1);
  return out;
}

/* mean: rows x predictors; aux: one value, or NULL */
SEXP ffi_response_deviance(SEXP place,
                           SEXP y,
                           SEXP mean,
                           SEXP weight,
                           SEXP aux) {
  const struct tb_response_type* type = parse_of_numbers(place);
  const double* v_y;
  const size_t n = parse_y(type, y, &v_y);
  const size_t n_mean = ffi_times(n, tb_response_n_predictor(type, 1), "mean");
  const double* v_mean = ffi_some_doubles(mean, n_mean, "mean");
  const double* v_weight = ffi_doubles(weight, n, "weight");
  const struct tb_response_point* p_point = parse_points(place, aux, false, 1);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n));
  type->deviance(v_y, v_mean, n, v_weight, p_point, REAL(out));
  UNPROTECT(1);
  return out;
}

/* The means at the linear predictors theta x' + offset, draws x rows; these
 * themselves where place is NULL. x: a matrix, or a dgRMatrix. */
SEXP ffi_link_product(SEXP theta,
                      SEXP x,
                      SEXP offset,
                      SEXP place,
                      SEXP n_threads) {
  size_t n_draw, n_row, n_dim, n_column;
  const struct tb_columns* p_rows = NULL;
  ffi_shape(theta, &n_draw, &n_dim, "theta");
  if (IS_S4_OBJECT(x)) {
    p_rows = ffi_columns_of(x, "x");
    n_row = p_rows->n_col;
    n_column = p_rows->n_row;
  } else {
    ffi_shape(x, &n_row, &n_column, "x");
  }
  if (p_rows != NULL && n_column != n_dim) {
    ffi_fault("x");
  }
  struct tb_link_product product = {
      .response = place == R_NilValue ? NULL : parse_single(place),
      .n_draw = n_draw,
      .n_row = n_row,
      .n_dim = n_dim,
      .v_theta = ffi_doubles(theta, n_draw * n_dim, "theta"),
      .v_x = p_rows != NULL ? NULL : ffi_doubles(x, n_row * n_dim, "x"),
      .p_rows = p_rows,
      .v_offset = ffi_doubles(offset, n_row, "offset"),
      .n_threads = ffi_threads(n_threads)};
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int)n_draw, (int)n_row));
  product.v_out = REAL(out);
  tb_link_product(&product);
  UNPROTECT(1);
  return out;
}
