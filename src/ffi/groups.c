/* Doors to what only multilevel regressions have: rows on their way to their
 * groups, other nodes, and effects of groups given draws. */
#include "ffi/model.h"

#include "models/groups-effects.h"
#include "models/groups-file.h"
#include "models/groups-merge.h"
#include "models/groups-rows.h"

#include <R_ext/Utils.h>
#include <stdlib.h>

/* The model, or what it is a frame of. */
static struct tb_model* groups_of(SEXP model) {
  const struct tb_model_type* type = tb_model_find("groups");
  struct tb_model* p_model = ffi_model(model);
  const SEXP base = R_ExternalPtrProtected(model);
  if (p_model->type != type && TYPEOF(base) == EXTPTRSXP) {
    p_model = ffi_model(base);
  }
  if (p_model->type != type) {
    ffi_fault("a model that is not groups");
  }
  return p_model;
}

/* Of the first n rows of x and z what R/design-group-rows.R has to know:
 * list(most: the largest absolute value of each column of z; same, p x q: is a
 * column of x that of z?; varies: is a value of z another than the first of its
 * group?). group: codes from 1, of which those after `first` are the rows'.
 * seen: n_group x q, the first value of each group, NaN where none came, which
 * is written in place; NULL: nothing varies. */
SEXP ffi_groups_look(SEXP x,
                     SEXP z,
                     SEXP n,
                     SEXP first,
                     SEXP group,
                     SEXP seen) {
  const size_t n_row = ffi_as_count(n, "n"),
               from = ffi_as_count(first, "first");
  size_t n_x, n_z, p, q, n_group = 0, q_seen = 0;
  ffi_shape(x, &n_x, &p, "x");
  ffi_shape(z, &n_z, &q, "z");
  if (seen != R_NilValue) {
    ffi_shape(seen, &n_group, &q_seen, "seen");
  }
  if (n_row > n_x || n_row > n_z || TYPEOF(group) != INTSXP ||
      (size_t)Rf_xlength(group) < from + n_row ||
      (seen != R_NilValue && q_seen != q)) {
    ffi_fault("rows");
  }
  SEXP out = PROTECT(ffi_list(3));
  double* v_most = ffi_add_vector(out, "most", q);
  ffi_add(out, "same", Rf_allocMatrix(LGLSXP, (int)p, (int)q));
  ffi_add(out, "varies", Rf_allocVector(LGLSXP, (R_xlen_t)q));
  const struct groups_columns columns = {
      .n_row = n_row,
      .n_col = p,
      .n_lead = n_x,
      .v_x = REAL(x),
      .n_effect = q,
      .n_lead_z = n_z,
      .v_z = REAL(z),
      .n_group = n_group,
      .v_group = INTEGER(group) + from,
      .v_seen = seen == R_NilValue ? NULL : REAL(seen),
      .v_most = v_most,
      .v_same = LOGICAL(VECTOR_ELT(out, 1)),
      .v_varies = LOGICAL(VECTOR_ELT(out, 2))};
  if (!groups_compare(&columns)) {
    ffi_fault("group");
  }
  UNPROTECT(1);
  return out;
}

static void rows_finalize(SEXP ptr) {
  struct groups_rows* p = R_ExternalPtrAddr(ptr);
  if (p != NULL) {
    groups_rows_destroy(p);
    free(p);
    R_ClearExternalPtr(ptr);
  }
}

/* NULL: none */
static const char* path_of(SEXP path) {
  return path == R_NilValue ? NULL : R_ExpandFileName(ffi_string(path, "path"));
}

/* list(status) or list(fault): what went wrong, the fault in the order of
 * tb_file_fault */
static SEXP trouble(enum tb_status status, enum tb_file_fault fault) {
  SEXP out = PROTECT(ffi_list(1));
  const bool is_file = fault != TB_FILE_ok;
  ffi_add(out,
          is_file ? "fault" : "status",
          Rf_ScalarInteger(is_file ? (int)fault : (int)status));
  UNPROTECT(1);
  return out;
}

static SEXP make_pointer(struct groups_rows** p_made) {
  SEXP ptr = PROTECT(
      R_MakeExternalPtr(NULL, Rf_install("tall_group_rows"), R_NilValue));
  R_RegisterCFinalizerEx(ptr, rows_finalize, TRUE);
  *p_made = calloc(1, sizeof(**p_made));
  R_SetExternalPtrAddr(ptr, *p_made);
  UNPROTECT(1);
  return ptr;
}

/* Room for rows that ffi_groups_add() puts down. store: its type; sizes: rows
 * of each group; n_y: columns of y; path: of a new file for them, NULL: memory.
 * Pointer, or what went wrong. */
SEXP ffi_groups_rows(SEXP store,
                     SEXP sizes,
                     SEXP n_col,
                     SEXP n_y,
                     SEXP has_weights,
                     SEXP has_offset,
                     SEXP folds,
                     SEXP path) {
  const struct groups_shape shape = {
      .type = tb_store_find(ffi_string(store, "store")),
      .n_col = ffi_as_count(n_col, "n_col"),
      .n_group = (size_t)Rf_xlength(sizes),
      .v_size = ffi_some_doubles(sizes, (size_t)Rf_xlength(sizes), "sizes"),
      .n_y = ffi_as_count(n_y, "n_y"),
      .has_weights = ffi_as_flag(has_weights, "has_weights"),
      .has_offset = ffi_as_flag(has_offset, "has_offset"),
      .folds = ffi_as_flag(folds, "folds"),
      .path = path_of(path)};
  if (shape.type == NULL) {
    ffi_fault("store");
  }
  struct groups_rows* p;
  enum tb_file_fault fault = TB_FILE_ok;
  SEXP ptr = PROTECT(make_pointer(&p));
  const enum tb_status status =
      p == NULL ? TB_STATUS_memory : groups_rows_begin(p, &shape, &fault);
  SEXP out = status == TB_STATUS_ok ? ptr : trouble(status, fault);
  UNPROTECT(1);
  return out;
}

/* The rows of a file that ffi_groups_finish() made; or what is wrong with it.
 */
SEXP ffi_groups_open(SEXP path) {
  const char* p_path = path_of(path);
  struct groups_rows* p;
  SEXP ptr = PROTECT(make_pointer(&p));
  const enum tb_file_fault fault =
      p == NULL ? TB_FILE_memory : groups_file_open(p_path, p);
  SEXP out = fault == TB_FILE_ok ? ptr : trouble(TB_STATUS_ok, fault);
  UNPROTECT(1);
  return out;
}

/* Rows in a file are all there. */
SEXP ffi_groups_finish(SEXP rows) {
  struct groups_rows* p = ffi_pointer(rows, "tall_group_rows", "rows");
  if (p->v_there != NULL || p->region.v_byte == NULL ||
      !p->store.is_writable) { /* a file that was opened is not written */
    ffi_fault("rows");
  }
  groups_file_finish(p);
  return R_NilValue;
}

/* values first + 1, first + 2, ... of n, or NULL where they are not wanted */
static const double*
part_of(SEXP x, size_t first, size_t n, bool is_wanted, const char* name) {
  if (!is_wanted) {
    return NULL;
  }
  if (TYPEOF(x) != REALSXP || (size_t)Rf_xlength(x) < first + n) {
    ffi_fault(name);
  }
  return REAL(x) + first;
}

/* The first n rows of x, those first + 1, first + 2, ... of group (codes from
 * 1), y, weights and offset, of which the last two may be NULL. The last block
 * says so. The status as an integer. */
SEXP ffi_groups_add(SEXP rows,
                    SEXP x,
                    SEXP n,
                    SEXP first,
                    SEXP group,
                    SEXP y,
                    SEXP weights,
                    SEXP offset,
                    SEXP is_last) {
  struct groups_rows* p = ffi_pointer(rows, "tall_group_rows", "rows");
  struct groups_block block = {.n_row = ffi_as_count(n, "n")};
  size_t n_col;
  ffi_shape(x, &block.n_lead, &n_col, "x");
  const size_t from = ffi_as_count(first, "first");
  const size_t end = from + block.n_row;
  block.n_lead_y = (size_t)Rf_xlength(group);
  const bool is_whole = ffi_is_whole(y);
  if (p->v_there == NULL || n_col != p->store.n_col ||
      block.n_row > block.n_lead || TYPEOF(group) != INTSXP ||
      block.n_lead_y < end ||
      (size_t)Rf_xlength(y) != p->n_y * block.n_lead_y) {
    ffi_fault("rows");
  }
  block.v_x = REAL(x);
  block.v_group = INTEGER(group) + from;
  block.v_y = part_of(y, from, block.n_row, !is_whole, "y");
  block.v_whole = is_whole ? ffi_whole(y) + from : NULL;
  const bool has_weights =
      p->folds ? weights != R_NilValue : p->v_weight != NULL;
  const bool has_offset = p->folds ? offset != R_NilValue : p->v_offset != NULL;
  block.v_weight = part_of(weights, from, block.n_row, has_weights, "weights");
  block.v_offset = part_of(offset, from, block.n_row, has_offset, "offset");
  const bool ends = ffi_as_flag(is_last, "is_last");
  enum tb_status status = groups_rows_add(p, &block);
  if (status == TB_STATUS_ok && ends) {
    status = groups_rows_end(p);
  }
  return ffi_status(status);
}

/* Once all rows are there: see groups_rows_merge(). TRUE where they are in the
 * new file `path` now, FALSE where they are not; or what went wrong. */
SEXP ffi_groups_merge(SEXP rows, SEXP pools, SEXP path) {
  struct groups_rows* p = ffi_pointer(rows, "tall_group_rows", "rows");
  const bool is_pooled = ffi_as_flag(pools, "pools");
  const char* p_path = path_of(path);
  if (p->v_there != NULL || (is_pooled && p->n_y != 1) ||
      (p_path == NULL) != (p->region.v_byte == NULL)) {
    ffi_fault("rows");
  }
  enum tb_file_fault fault;
  bool is_new;
  const enum tb_status status =
      groups_rows_merge(p, is_pooled, p_path, &fault, &is_new);
  return status == TB_STATUS_ok ? Rf_ScalarLogical(p_path != NULL && is_new)
                                : trouble(status, fault);
}

/* nodes: K x 2, see groups_set_nodes(). The status as an integer. */
SEXP ffi_groups_nodes(SEXP model, SEXP nodes) {
  struct tb_model* p_model = groups_of(model);
  const size_t n_node = ffi_columns(nodes, 2, "nodes");
  return ffi_status(groups_set_nodes(p_model, REAL(nodes), n_node));
}

/* rows that the core has, of those that came */
SEXP ffi_groups_n_row(SEXP model) {
  return Rf_ScalarReal((double)groups_n_row(groups_of(model)));
}

/* nodes in each dimension */
SEXP ffi_groups_n_node(SEXP model) {
  return Rf_ScalarReal((double)groups_n_node(groups_of(model)));
}

/* theta: n_dim x n_draw. list(mean: q x n_group, square: q^2 x n_group), or the
 * status as an integer. */
SEXP ffi_groups_moments(SEXP model, SEXP theta, SEXP threads) {
  enum { GROUPS = 1024 };
  const struct tb_model* p_model = groups_of(model);
  const size_t n_draw = ffi_columns(theta, p_model->n_dim, "theta");
  const size_t q = groups_n_effect(p_model), n_group = p_model->n_data;
  const int n_threads = ffi_threads(threads);
  SEXP out = PROTECT(ffi_list(2));
  double* v_mean = ffi_add_matrix(out, "mean", q, n_group);
  double* v_square = ffi_add_matrix(out, "square", q * q, n_group);
  enum tb_status status = TB_STATUS_ok;
  for (size_t first = 0; first < n_group && status == TB_STATUS_ok;
       first += GROUPS) {
    const size_t n = n_group - first < GROUPS ? n_group - first : GROUPS;
    status = groups_effect_moments(p_model,
                                   REAL(theta),
                                   n_draw,
                                   first,
                                   n,
                                   n_threads,
                                   v_mean + q * first,
                                   v_square + q * q * first);
    R_CheckUserInterrupt();
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* groups: their numbers from 1. q n_group n_draw numbers, or the status as an
 * integer. */
SEXP ffi_groups_draws(SEXP model,
                      SEXP theta,
                      SEXP groups,
                      SEXP seed,
                      SEXP threads) {
  const struct tb_model* p_model = groups_of(model);
  const size_t n_draw = ffi_columns(theta, p_model->n_dim, "theta");
  const size_t q = groups_n_effect(p_model);
  const size_t* v_group = ffi_rows(groups, p_model->n_data, "groups");
  const size_t n_group = (size_t)Rf_xlength(groups);
  const size_t seed_ = ffi_as_count(seed, "seed");
  const int n_threads = ffi_threads(threads);
  const size_t n_value =
      ffi_times(ffi_times(q, n_group, "groups"), n_draw, "theta");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_value));
  const enum tb_status status = groups_effect_draws(p_model,
                                                    REAL(theta),
                                                    n_draw,
                                                    v_group,
                                                    n_group,
                                                    (uint64_t)seed_,
                                                    n_threads,
                                                    REAL(out));
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}
