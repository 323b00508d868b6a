/* Doors to text files: their bytes and the records in them. */
#include "ffi/args.h"

#include "data/file.h"
#include "data/text.h"

#include <string.h>

/* Bytes without the first `from`, and place for n more; *pp_more: where. */
static SEXP rest_of(SEXP bytes, SEXP from, size_t n, unsigned char** pp_more) {
  const size_t n_from = ffi_as_count(from, "from");
  if (TYPEOF(bytes) != RAWSXP || n_from > (size_t)Rf_xlength(bytes)) {
    ffi_fault("bytes");
  }
  const size_t n_rest = (size_t)Rf_xlength(bytes) - n_from;
  SEXP out = Rf_allocVector(RAWSXP, (R_xlen_t)(n_rest + n));
  if (n_rest > 0) {
    memcpy(RAW(out), RAW(bytes) + n_from, n_rest);
  }
  *pp_more = RAW(out) + n_rest;
  return out;
}

/* The same and all others. */
SEXP ffi_text_join(SEXP bytes, SEXP from, SEXP others) {
  if (TYPEOF(others) != RAWSXP) {
    ffi_fault("others");
  }
  const size_t n = (size_t)Rf_xlength(others);
  unsigned char* v_more;
  SEXP out = rest_of(bytes, from, n, &v_more);
  if (n > 0) {
    memcpy(v_more, RAW(others), n);
  }
  return out;
}

/* The same and n of a file after its first `offset`, or as many as there are;
 * the fault. */
SEXP ffi_text_read(SEXP bytes, SEXP from, SEXP path, SEXP offset, SEXP n) {
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  const size_t n_offset = ffi_as_count(offset, "offset");
  const size_t n_most = ffi_as_count(n, "n");
  size_t n_more = n_most;
  unsigned char* v_more;
  SEXP out = PROTECT(rest_of(bytes, from, n_most, &v_more));
  const enum tb_file_fault fault =
      tb_file_bytes(p_path, n_offset, v_more, &n_more);
  if (fault != TB_FILE_ok) {
    out = Rf_ScalarInteger((int)fault);
  } else if (n_more < n_most) {
    out = Rf_xlengthgets(out, Rf_xlength(out) - (R_xlen_t)(n_most - n_more));
  }
  UNPROTECT(1);
  return out;
}

/* At most `most` records that follow the first `from` bytes. quote, separator:
 * bytes, 256: none. is_over: nothing follows the bytes. Of the list `text` is
 * one string, each record ended by a line feed. */
SEXP ffi_text_records(SEXP bytes,
                      SEXP from,
                      SEXP most,
                      SEXP quote,
                      SEXP separator,
                      SEXP is_over) {
  const size_t n_from = ffi_as_count(from, "from");
  const size_t n_most = ffi_as_count(most, "most");
  const struct tb_text_format format = {
      .quote = ffi_as_code(quote, TB_TEXT_none + 1, "quote"),
      .separator = ffi_as_code(separator, TB_TEXT_none + 1, "separator"),
      .is_over = ffi_as_flag(is_over, "is_over")};
  if (TYPEOF(bytes) != RAWSXP || n_from > (size_t)Rf_xlength(bytes)) {
    ffi_fault("bytes");
  }
  const size_t n = (size_t)Rf_xlength(bytes) - n_from;
  const char* v = (const char*)RAW(bytes) + n_from;
  struct tb_text text;
  if (!tb_text_look(v, n, n_most, &format, &text)) {
    char* v_to = R_alloc(n + 1, 1);
    text = tb_text_copy(v, n, n_most, &format, v_to);
    v = v_to;
  }
  SEXP out = PROTECT(ffi_list(8));
  ffi_add_number(out, "n", (double)text.n_record);
  ffi_add_number(out, "n_taken", (double)text.n_taken);
  ffi_add_number(out, "n_open", (double)text.n_open);
  ffi_add_flag(out, "has_quotes", text.has_quotes);
  ffi_add_flag(out, "is_regular", text.is_regular);
  ffi_add_flag(out, "is_tight", text.is_tight);
  ffi_add_flag(out, "is_ascii", text.is_ascii);
  const int n_byte = ffi_extent(text.n_byte, "bytes");
  SEXP string = PROTECT(Rf_mkCharLenCE(v, n_byte, CE_UTF8));
  ffi_add(out, "text", Rf_ScalarString(string));
  UNPROTECT(2);
  return out;
}
