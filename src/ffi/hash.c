/* Fingerprints of R objects, by which it is seen that they were altered.
 *
 * An object has the same one after saveRDS() and readRDS(), on any machine of
 * the same byte order: what R may change without anybody's doing is left out
 * (compact sequences, byte code, source references, where pointers and
 * environments point). */
#include "ffi/args.h"

#include "base/hash.h"

#include <string.h>

static uint64_t hash_object(uint64_t hash, SEXP x);

static uint64_t hash_text(uint64_t hash, SEXP x) {
  const size_t n = (size_t)Rf_length(x);
  /* NA is not the string "NA" */
  hash = tb_hash_word(hash, x == NA_STRING ? UINT64_MAX : n);
  return tb_hash_bytes(hash, CHAR(x), n);
}

/* Are these attributes not the object's own? */
static bool is_source(SEXP tag) {
  return tag == Rf_install("srcref") || tag == Rf_install("srcfile") ||
         tag == Rf_install("wholeSrcref");
}

/* calls, argument lists, attributes: values with their names */
static uint64_t hash_pairs(uint64_t hash, SEXP x) {
  for (; TYPEOF(x) == LISTSXP || TYPEOF(x) == LANGSXP; x = CDR(x)) {
    if (!is_source(TAG(x))) {
      hash = TAG(x) == R_NilValue ? hash : hash_text(hash, PRINTNAME(TAG(x)));
      hash = hash_object(hash, CAR(x));
    }
  }
  return x == R_NilValue ? hash : hash_object(hash, x);
}

static uint64_t hash_values(uint64_t hash, SEXP x) {
  const R_xlen_t n = Rf_xlength(x);
  switch (TYPEOF(x)) {
  case LGLSXP:
    return tb_hash_bytes(hash, LOGICAL(x), (size_t)n * sizeof(int));
  case INTSXP:
    return tb_hash_bytes(hash, INTEGER(x), (size_t)n * sizeof(int));
  case REALSXP:
    return tb_hash_doubles(hash, REAL(x), (size_t)n);
  case CPLXSXP:
    return tb_hash_bytes(hash, COMPLEX(x), (size_t)n * sizeof(Rcomplex));
  case RAWSXP:
    return tb_hash_bytes(hash, RAW(x), (size_t)n);
  case STRSXP:
    for (R_xlen_t i = 0; i < n; ++i) {
      hash = hash_text(hash, STRING_ELT(x, i));
    }
    return hash;
  case VECSXP:
  case EXPRSXP:
    for (R_xlen_t i = 0; i < n; ++i) {
      hash = hash_object(hash, VECTOR_ELT(x, i));
    }
    return hash;
  case SYMSXP:
    return hash_text(hash, PRINTNAME(x));
  case LISTSXP:
  case LANGSXP:
    return hash_pairs(hash, x);
  case CLOSXP:
    return hash_object(hash_pairs(hash, FORMALS(x)), R_ClosureExpr(x));
  default:
    return hash; /* pointers, environments: no values */
  }
}

static uint64_t hash_object(uint64_t hash, SEXP x) {
  const bool has_length = Rf_isVector(x);
  R_CheckStack();
  hash = tb_hash_word(hash, (uint64_t)TYPEOF(x));
  hash = tb_hash_word(hash, has_length ? (uint64_t)Rf_xlength(x) : 0);
  hash = hash_values(hash, x);
  const bool has_attributes = has_length || TYPEOF(x) == LANGSXP;
  return has_attributes && ATTRIB(x) != R_NilValue
             ? hash_pairs(tb_hash_word(hash, 1), ATTRIB(x))
             : hash;
}

/* 16 hexadecimal digits */
SEXP ffi_hash(SEXP x) {
  char text[32];
  snprintf(text,
           sizeof(text),
           "%016llx",
           (unsigned long long)hash_object(1, x));
  return Rf_mkString(text);
}
