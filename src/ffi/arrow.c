/* Doors to Arrow's tables. The pointers are those of the package nanoarrow,
 * which releases what they point to: an error of R leaves nothing behind. */
#include "ffi/args.h"

#include "data/arrow.h"

#include <limits.h>

static const struct ArrowSchema* parse_schema(SEXP x) {
  const struct ArrowSchema* p = ffi_pointer(x, NULL, "schema");
  if (p->release == NULL) {
    ffi_fault("schema");
  }
  return p;
}

/* list(name, is_ours, is_table): of every column its name and whether the other
 * door reads it */
SEXP ffi_arrow_schema(SEXP schema) {
  const struct ArrowSchema* p = parse_schema(schema);
  const R_xlen_t n = p->n_children < 0 ? 0 : (R_xlen_t)p->n_children;
  SEXP out = PROTECT(ffi_list(3));
  SEXP name = Rf_allocVector(STRSXP, n);
  ffi_add(out, "name", name);
  SEXP is_ours = Rf_allocVector(LGLSXP, n);
  ffi_add(out, "is_ours", is_ours);
  for (R_xlen_t j = 0; j < n; ++j) {
    const struct ArrowSchema* p_child = p->children[j];
    const char* text = p_child->name == NULL ? "" : p_child->name;
    SET_STRING_ELT(name, j, Rf_mkCharCE(text, CE_UTF8));
    LOGICAL(is_ours)[j] = tb_arrow_kind_of(p_child) != TB_ARROW_other;
  }
  ffi_add_flag(out,
               "is_table",
               p->format != NULL && p->format[0] == '+' && p->format[1] == 's');
  UNPROTECT(1);
  return out;
}

static SEXP as_text(const struct tb_arrow_column* p) {
  SEXP out = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)p->n_row));
  for (size_t i = 0; i < p->n_row; ++i) {
    size_t n_byte = 0;
    const char* text = tb_arrow_text(p, i, &n_byte);
    SET_STRING_ELT(
        out,
        (R_xlen_t)i,
        text == NULL
            ? NA_STRING
            : Rf_mkCharLenCE(text, ffi_extent(n_byte, "text"), CE_UTF8));
  }
  UNPROTECT(1);
  return out;
}

/* list(place, level, is_ordered); R makes a factor of it */
static SEXP as_levels(const struct tb_arrow_column* p) {
  struct tb_arrow_column dictionary;
  if (!tb_arrow_dictionary(p, &dictionary)) {
    ffi_fault("dictionary");
  }
  SEXP out = PROTECT(ffi_list(3));
  SEXP place = Rf_allocVector(INTSXP, (R_xlen_t)p->n_row);
  ffi_add(out, "place", place);
  if (!tb_arrow_levels(p, dictionary.n_row, NA_INTEGER, INTEGER(place))) {
    ffi_fault("places in a dictionary");
  }
  ffi_add(out, "level", as_text(&dictionary));
  ffi_add_flag(out,
               "is_ordered",
               p->p_schema->flags & ARROW_FLAG_DICTIONARY_ORDERED);
  UNPROTECT(1);
  return out;
}

static SEXP as_vector(const struct tb_arrow_column* p) {
  const enum tb_arrow_kind kind = tb_arrow_kind_of(p->p_schema);
  const R_xlen_t n = (R_xlen_t)p->n_row;
  if (kind == TB_ARROW_text) {
    return as_text(p);
  }
  if (kind == TB_ARROW_level) {
    return as_levels(p);
  }
  if (kind == TB_ARROW_number) {
    SEXP out = Rf_allocVector(REALSXP, n);
    tb_arrow_numbers(p, NA_REAL, REAL(out));
    return out;
  }
  SEXP out = Rf_allocVector(kind == TB_ARROW_whole ? INTSXP : LGLSXP, n);
  tb_arrow_wholes(p,
                  NA_INTEGER,
                  kind == TB_ARROW_whole ? INTEGER(out) : LOGICAL(out));
  return out;
}

/* list(n, offset, columns) of a table: its rows, where they begin in the
 * columns as nanoarrow gives them, and those columns, `at` from 1, NULL for
 * what the core does not read */
SEXP ffi_arrow_columns(SEXP schema, SEXP array, SEXP at) {
  const struct ArrowSchema* p_schema = parse_schema(schema);
  const struct ArrowArray* p_array = ffi_pointer(array, NULL, "array");
  if (p_array->release == NULL || !tb_arrow_is_table(p_schema, p_array)) {
    ffi_fault("array");
  }
  const size_t n_column = (size_t)Rf_xlength(at);
  const size_t* v_at = ffi_rows(at, (size_t)p_schema->n_children, "at");
  SEXP out = PROTECT(ffi_list(3));
  ffi_add_number(out, "n", (double)p_array->length);
  ffi_add_number(out, "offset", (double)p_array->offset);
  SEXP columns = Rf_allocVector(VECSXP, (R_xlen_t)n_column);
  ffi_add(out, "columns", columns);
  for (size_t k = 0; k < n_column; ++k) {
    const struct ArrowSchema* p_child = p_schema->children[v_at[k]];
    struct tb_arrow_column column;
    if (tb_arrow_kind_of(p_child) == TB_ARROW_other) {
      continue;
    }
    if (!tb_arrow_column_at(p_schema, p_array, v_at[k], &column)) {
      ffi_fault("column of an array");
    }
    SET_VECTOR_ELT(columns, (R_xlen_t)k, as_vector(&column));
  }
  UNPROTECT(1);
  return out;
}
