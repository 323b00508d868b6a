/* What a user's external pointer points to. */
#include "ffi/args.h"

#include "models/native.h"

/* list(version, current, name, missing, has_constrain): the version is 0 when
 * the pointer is not that of a table, and the rest is read only when it is the
 * current one. */
SEXP ffi_native_info(SEXP pointer) {
  if (TYPEOF(pointer) != EXTPTRSXP) {
    ffi_fault("pointer");
  }
  const struct tb_native_type* p_type = R_ExternalPtrAddr(pointer);
  unsigned version;
  const bool is_readable = tb_native_is_readable(p_type, &version);
  const char* missing = is_readable ? tb_native_missing_slot(p_type) : NULL;
  const char* name = is_readable ? p_type->name : NULL;
  SEXP out = PROTECT(ffi_list(5));
  ffi_add_number(out, "version", version);
  ffi_add_number(out, "current", TALLBAYES_API_VERSION & 0xffffu);
  ffi_add_text(out, "name", name);
  ffi_add_text(out, "missing", missing);
  ffi_add_flag(out, "has_constrain", is_readable && p_type->constrain != NULL);
  UNPROTECT(1);
  return out;
}
