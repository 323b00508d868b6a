/* Door to rows of a design matrix: values of a block's variables in, rows of a
 * chunk out. The chunk's arrays are written in place; see R/design-chunk.R. */
#include "ffi/args.h"

#include "data/design.h"

#include <limits.h>

/* A column is list(values, first, map, table); the last two may be absent. */

static const int*
ints_of(SEXP x, const char* name, R_xlen_t at_least, R_xlen_t* p_n) {
  if (TYPEOF(x) != INTSXP || Rf_xlength(x) < at_least) {
    ffi_fault(name);
  }
  if (p_n != NULL) {
    *p_n = Rf_xlength(x);
  }
  return INTEGER(x);
}

/* Rows first .. first + n - 1 are in it. */
static struct tb_column column_shape(SEXP x, size_t n, const char* name) {
  SEXP values = ffi_element(x, "values");
  struct tb_column column = {.first =
                                 ffi_as_count(ffi_element(x, "first"), name)};
  const size_t n_value = (size_t)Rf_xlength(values);
  column.n_col = Rf_isMatrix(values) ? (size_t)Rf_ncols(values) : 1;
  column.n_row = column.n_col == 0 ? 0 : n_value / column.n_col;
  if (column.n_row < column.first + n) {
    ffi_fault(name);
  }
  switch (TYPEOF(values)) {
  case REALSXP:
    column.kind = TB_COLUMN_double;
    column.v_double = REAL(values);
    break;
  case INTSXP:
    column.kind = TB_COLUMN_int;
    column.v_int = INTEGER(values);
    break;
  case LGLSXP:
    column.kind = TB_COLUMN_int;
    column.v_int = LOGICAL(values);
    break;
  default:
    ffi_fault(name);
  }
  return column;
}

/* Codes of n_level levels: of a factor from 1, of logical values from 0. */
static void
as_codes(struct tb_column* p, SEXP x, size_t n_level, const char* name) {
  SEXP map = ffi_element(x, "map");
  if (p->kind != TB_COLUMN_int || p->n_col != 1 || n_level == 0) {
    ffi_fault(name);
  }
  p->kind = TB_COLUMN_code;
  p->n_level = n_level;
  p->base = TYPEOF(ffi_element(x, "values")) == LGLSXP ? 0 : 1;
  if (map != R_NilValue) {
    R_xlen_t n_map;
    p->v_map = ints_of(map, name, 0, &n_map);
    p->n_map = (size_t)n_map;
  }
}

static const int* codes_of_columns(SEXP x, size_t n, int most) {
  const int* v = ints_of(x, "smooth", (R_xlen_t)n, NULL);
  for (size_t j = 0; j < n; ++j) {
    if (v[j] < 0 || v[j] > most) {
      ffi_fault("smooth");
    }
  }
  return v;
}

/* Columns that a smooth term reads; *p_level: combinations of levels. */
static const struct tb_column* parts_of(const struct tb_smooth* p,
                                        SEXP x,
                                        SEXP sizes,
                                        size_t n,
                                        int* p_level) {
  const size_t n_number = p->n_break > 0 ? 1 : 0;
  const size_t n_part = n_number + p->n_code + p->n_times;
  const int* v_size = ints_of(sizes, "levels", (R_xlen_t)p->n_code, NULL);
  if (TYPEOF(x) != VECSXP || (size_t)Rf_xlength(x) != n_part) {
    ffi_fault("parts");
  }
  struct tb_column* v_part =
      (struct tb_column*)R_alloc(n_part + 1, sizeof(struct tb_column));
  double n_level = 1;
  for (size_t c = 0; c < n_part; ++c) {
    SEXP one = VECTOR_ELT(x, (R_xlen_t)c);
    v_part[c] = column_shape(one, n, "part");
    if (c >= n_number && c < n_number + p->n_code) {
      const int size = v_size[c - n_number];
      if (size < 1) {
        ffi_fault("levels");
      }
      n_level *= size;
      as_codes(&v_part[c], one, (size_t)size, "part");
    } else if (v_part[c].n_col != 1) {
      ffi_fault("part");
    }
  }
  if (n_level > INT_MAX) {
    ffi_fault("levels");
  }
  *p_level = (int)n_level;
  return v_part;
}

static void table_of(struct tb_smooth* p, SEXP x) {
  SEXP breaks = ffi_element(x, "breaks");
  SEXP table = ffi_element(x, "coefficients");
  if (breaks == R_NilValue) {
    return;
  }
  p->n_break = (size_t)Rf_xlength(breaks);
  const size_t n_value = (size_t)Rf_xlength(table);
  if (p->n_break < 2 || p->n_break >= INT_MAX || n_value == 0 ||
      n_value % (4 * (p->n_break + 1)) != 0) {
    ffi_fault("breaks");
  }
  p->n_basis = n_value / (4 * (p->n_break + 1));
  p->v_break = ffi_some_doubles(breaks, p->n_break, "breaks");
  p->v_coefficient = ffi_some_doubles(table, n_value, "coefficients");
  p->period = ffi_number(x, "period");
}

/* list(smooth, parts): `smooth` has breaks, coefficients and period, or none of
 * them; levels, of each factor how many; basis and level by column. */
static struct tb_column smooth_of(SEXP x, SEXP parts, size_t n, int n_column) {
  struct tb_smooth* p = (struct tb_smooth*)R_alloc(1, sizeof(struct tb_smooth));
  *p = (struct tb_smooth){.n_column = (size_t)n_column};
  table_of(p, x);
  SEXP sizes = ffi_element(x, "levels");
  p->n_code = (size_t)Rf_xlength(sizes);
  p->n_times = ffi_count(x, "n_times");
  int n_level;
  p->v_part = parts_of(p, parts, sizes, n, &n_level);
  if (p->n_code == 0) {
    n_level = 0;
  }
  p->v_basis =
      codes_of_columns(ffi_element(x, "basis"), p->n_column, (int)p->n_basis);
  p->v_level = codes_of_columns(ffi_element(x, "level"), p->n_column, n_level);
  return (struct tb_column){.kind = TB_COLUMN_smooth,
                            .n_col = p->n_column,
                            .p_smooth = p};
}

/* n_level: numbers of levels, or of columns as -n. */
static struct tb_column variable_of(SEXP x, size_t n, int n_level) {
  SEXP smooth = ffi_element(x, "smooth");
  if (smooth != R_NilValue) {
    if (n_level >= 0) {
      ffi_fault("variable");
    }
    return smooth_of(smooth, ffi_element(x, "parts"), n, -n_level);
  }
  struct tb_column column = column_shape(x, n, "variable");
  if (n_level > 0) {
    as_codes(&column, x, (size_t)n_level, "variable");
  } else if (column.n_col != (size_t)-n_level) {
    ffi_fault("variable");
  }
  return column;
}

static struct tb_column target_of(SEXP x, size_t n) {
  struct tb_column column = column_shape(x, n, "target");
  SEXP table = ffi_element(x, "table");
  if (table != R_NilValue) {
    column.v_table =
        ffi_some_doubles(table, (size_t)Rf_xlength(table), "table");
    as_codes(&column, x, (size_t)Rf_xlength(table), "target");
  }
  return column;
}

/* Every operand reads what is there. */
static void check_operands(const struct tb_program* p,
                           size_t n_operand,
                           const int* v_level,
                           size_t n_variable,
                           size_t n_table) {
  for (size_t o = 0; o < n_operand; ++o) {
    const int variable = p->v_variable[o], at = p->v_at[o];
    const int single = p->v_single[o];
    if (variable < 0 || (size_t)variable >= n_variable || at < 0) {
      ffi_fault("program");
    }
    const int n_level = v_level[variable];
    const bool is_there =
        n_level > 0 ? (size_t)at + (size_t)n_level <= n_table : at < -n_level;
    if (!is_there || (single >= 0 && single >= n_level)) {
      ffi_fault("program");
    }
  }
}

static struct tb_program program_of(SEXP x, const int** p_level, size_t* p_n) {
  R_xlen_t n_start, n_operand, n_variable;
  SEXP table = ffi_element(x, "table");
  struct tb_program program = {
      .v_start = ints_of(ffi_element(x, "start"), "start", 1, &n_start),
      .v_variable = ints_of(ffi_element(x, "variable"), "o", 0, &n_operand),
      .v_at = ints_of(ffi_element(x, "at"), "at", n_operand, NULL),
      .v_single = ints_of(ffi_element(x, "single"), "one", n_operand, NULL),
      .v_table = ffi_doubles(table, (size_t)Rf_xlength(table), "table")};
  *p_level = ints_of(ffi_element(x, "size"), "size", 0, &n_variable);
  *p_n = (size_t)n_variable;
  program.n_column = (size_t)n_start - 1;
  for (size_t j = 0; j < program.n_column; ++j) {
    if (program.v_start[j] < 0 || program.v_start[j + 1] < program.v_start[j] ||
        program.v_start[j + 1] > n_operand) {
      ffi_fault("start");
    }
  }
  check_operands(&program,
                 (size_t)n_operand,
                 *p_level,
                 *p_n,
                 (size_t)Rf_xlength(table));
  return program;
}

static const int* keep_of(SEXP x, size_t n) {
  if (x == R_NilValue) {
    return NULL;
  }
  SEXP values = ffi_element(x, "values");
  const size_t first = ffi_as_count(ffi_element(x, "first"), "keep");
  if (TYPEOF(values) != LGLSXP || (size_t)Rf_xlength(values) < first + n) {
    ffi_fault("keep");
  }
  return LOGICAL(values) + first;
}

static SEXP report(const struct tb_filling* p) {
  SEXP out = PROTECT(ffi_list(5));
  ffi_add_number(out, "from", (double)p->from);
  ffi_add_number(out, "fill", (double)p->n_filled);
  ffi_add_number(out, "n_missing", (double)p->n_missing);
  ffi_add_number(out, "bad_row", p->is_bad ? 1 + (double)p->bad_row : 0);
  ffi_add_number(out, "bad_column", p->is_bad ? 1 + (double)p->bad_column : 0);
  UNPROTECT(1);
  return out;
}

/* Complete rows of a block, from row `from` (0, 1, ...) of n on, written to x
 * and the arrays of `into` after the first `fill` rows. values: of the
 * program's variables; targets: as many as `into`, each a column or NULL. */
SEXP ffi_design_fill(SEXP program,
                     SEXP values,
                     SEXP targets,
                     SEXP keep,
                     SEXP n,
                     SEXP from,
                     SEXP x,
                     SEXP into,
                     SEXP fill) {
  const int* v_level;
  size_t n_variable, n_size, n_column;
  const struct tb_program one = program_of(program, &v_level, &n_variable);
  ffi_shape(x, &n_size, &n_column, "x");
  const size_t n_row = ffi_as_count(n, "n");
  if (n_column != one.n_column || TYPEOF(values) != VECSXP ||
      (size_t)Rf_xlength(values) != n_variable || TYPEOF(targets) != VECSXP ||
      TYPEOF(into) != VECSXP || Rf_xlength(targets) != Rf_xlength(into)) {
    ffi_fault("chunk");
  }
  const size_t n_target = (size_t)Rf_xlength(targets);
  struct tb_column* v_column =
      (struct tb_column*)R_alloc(n_variable + n_target + 1,
                                 sizeof(struct tb_column));
  double** v_target = (double**)R_alloc(n_target + 1, sizeof(double*));
  for (size_t k = 0; k < n_variable; ++k) {
    v_column[k] =
        variable_of(VECTOR_ELT(values, (R_xlen_t)k), n_row, v_level[k]);
  }
  for (size_t k = 0; k < n_target; ++k) {
    v_column[n_variable + k] =
        target_of(VECTOR_ELT(targets, (R_xlen_t)k), n_row);
    const size_t n_value = n_size * v_column[n_variable + k].n_col;
    v_target[k] =
        ffi_some_doubles(VECTOR_ELT(into, (R_xlen_t)k), n_value, "into");
  }
  struct tb_filling filling = {.p_program = &one,
                               .v_column = v_column,
                               .n_variable = n_variable,
                               .n_target = n_target,
                               .v_keep = keep_of(keep, n_row),
                               .n_row = n_row,
                               .n_size = n_size,
                               .v_x = REAL(x),
                               .v_target = v_target,
                               .from = ffi_as_count(from, "from"),
                               .n_filled = ffi_as_count(fill, "fill")};
  tb_design_fill(&filling);
  return report(&filling);
}
