/* What a user's external pointer points to. */
#include "ffi/args.h"

#include "models/native.h"

/* list(version, current, name, missing, has_constrain): the version is 0 when
 * the pointer is not that of a table, and the rest is read only when it is the
 * current one. */
SEXP ffi_native_info(SEXP pointer) {
  static const char* const v_name[] = {"version",
                                       "current",
                                       "name",
                                       "missing",
                                       "has_constrain"};
  if (TYPEOF(pointer) != EXTPTRSXP) {
    ffi_fault("pointer");
  }
  const struct tb_native_type* p_type = R_ExternalPtrAddr(pointer);
  unsigned version;
  const bool is_readable = tb_native_is_readable(p_type, &version);
  const char* missing = is_readable ? tb_native_missing_slot(p_type) : NULL;
  SEXP out = PROTECT(ffi_named_list(v_name, 5));
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal(version));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal(TALLBAYES_API_VERSION & 0xffffu));
  if (is_readable && p_type->name != NULL) {
    SET_VECTOR_ELT(out, 2, Rf_mkString(p_type->name));
  }
  if (missing != NULL) {
    SET_VECTOR_ELT(out, 3, Rf_mkString(missing));
  }
  SET_VECTOR_ELT(out,
                 4,
                 Rf_ScalarLogical(is_readable && p_type->constrain != NULL));
  UNPROTECT(1);
  return out;
}
