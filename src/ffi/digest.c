/* Digests of rows: by one number it is seen whether two passes over a source
 * handed out the same rows.
 *
 * A row's word is made of its values, column after column (base/hash.h), and
 * finished; the digest is the sum of all words modulo 2^64, so that it does not
 * depend on the blocks in which rows come. Numbers have the bits of doubles,
 * whatever they are stored as; a factor has the text of its levels.
 *
 *   v_word   n words, one for each row of the block; on the R heap
 */
#include "ffi/args.h"

#include "base/hash.h"

#include <string.h>

/* of no row */
enum { DIGEST_MISSING = 1, DIGEST_TEXT = 2 };

static uint64_t text_word(SEXP x) {
  return x == NA_STRING
             ? DIGEST_MISSING
             : tb_hash_bytes(DIGEST_TEXT, CHAR(x), (size_t)Rf_length(x));
}

static uint64_t double_word(double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof(word));
  return word;
}

static void
add_doubles(uint64_t* restrict v_word, const double* restrict v, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    v_word[i] = tb_hash_word(v_word[i], double_word(v[i]));
  }
}

static void add_integers(uint64_t* v_word, const int* v, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double value = v[i] == NA_INTEGER ? NA_REAL : v[i];
    v_word[i] = tb_hash_word(v_word[i], double_word(value));
  }
}

static void add_factor(uint64_t* v_word, const int* v, size_t n, SEXP levels) {
  const int n_level = Rf_length(levels);
  uint64_t* v_text = (uint64_t*)R_alloc((size_t)n_level + 1, sizeof(*v_text));
  v_text[0] = DIGEST_MISSING;
  for (int k = 0; k < n_level; ++k) {
    v_text[k + 1] = text_word(STRING_ELT(levels, k));
  }
  for (size_t i = 0; i < n; ++i) {
    const bool is_level = v[i] >= 1 && v[i] <= n_level;
    v_word[i] = tb_hash_word(v_word[i], v_text[is_level ? v[i] : 0]);
  }
}

/* n values of a column, or of a column of one that is a matrix, from `first`
 * on; what is none of these (lists) counts for nothing. */
static void add_values(uint64_t* v_word, SEXP x, size_t first, size_t n) {
  switch (TYPEOF(x)) {
  case REALSXP:
    add_doubles(v_word, REAL(x) + first, n);
    break;
  case INTSXP:
    if (Rf_isFactor(x)) {
      SEXP levels = Rf_getAttrib(x, R_LevelsSymbol);
      add_factor(v_word, INTEGER(x) + first, n, levels);
    } else {
      add_integers(v_word, INTEGER(x) + first, n);
    }
    break;
  case LGLSXP:
    add_integers(v_word, LOGICAL(x) + first, n);
    break;
  case STRSXP:
    for (size_t i = 0; i < n; ++i) {
      SEXP text = STRING_ELT(x, (R_xlen_t)(first + i));
      v_word[i] = tb_hash_word(v_word[i], text_word(text));
    }
    break;
  default:
    break;
  }
}

/* columns: a list of vectors or matrices, of which the block's n rows follow
 * the first `first`; before: the digest so far, its upper and lower 32 bits.
 * The digest with these rows. */
SEXP ffi_rows_digest(SEXP columns, SEXP first, SEXP n, SEXP before) {
  const size_t n_first = ffi_as_count(first, "first");
  const size_t n_row = ffi_as_count(n, "n");
  const double* v_before = ffi_some_doubles(before, 2, "before");
  uint64_t* v_word = (uint64_t*)R_alloc(n_row, sizeof(*v_word));
  memset(v_word, 0, n_row * sizeof(*v_word));
  for (R_xlen_t j = 0; j < Rf_xlength(columns); ++j) {
    SEXP x = VECTOR_ELT(columns, j);
    const size_t n_value = (size_t)Rf_xlength(x);
    const size_t n_column = Rf_isMatrix(x) ? (size_t)Rf_ncols(x) : 1;
    const size_t height = n_column > 0 ? n_value / n_column : 0;
    if (TYPEOF(x) == VECSXP || n_column == 0) {
      continue;
    }
    if (n_first > height || n_row > height - n_first) {
      ffi_fault("columns");
    }
    for (size_t k = 0; k < n_column; ++k) {
      add_values(v_word, x, k * height + n_first, n_row);
    }
  }
  uint64_t digest = ((uint64_t)v_before[0] << 32) + (uint64_t)v_before[1];
  for (size_t i = 0; i < n_row; ++i) {
    digest += tb_hash_mix(v_word[i]);
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[0] = (double)(digest >> 32);
  REAL(out)[1] = (double)(digest & UINT32_MAX);
  UNPROTECT(1);
  return out;
}
