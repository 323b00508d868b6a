/* Models behind external pointers. */
#ifndef TB_FFI_MODEL_H
#define TB_FFI_MODEL_H

#include "ffi/args.h"
#include "models/model.h"

/* the model behind an external pointer; an error when it is NULL */
struct tb_model* ffi_model(SEXP x);

/* An external pointer with its finalizer and nothing behind it yet; a zeroed
 * model behind it, or NULL. */
SEXP ffi_model_pointer(void);
struct tb_model* ffi_model_attach(SEXP ptr);

/* a status for R, as an integer */
SEXP ffi_status(enum tb_status status);

#endif
