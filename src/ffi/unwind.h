/* Jumps out of R code that the core has called. The core must not be jumped
 * through: a body under ffi_unwind() ends with what it returns, the jump waits
 * in its model, and the door that entered the core lets it go on with
 * ffi_continue() once the core has returned. */
#ifndef TB_FFI_UNWIND_H
#define TB_FFI_UNWIND_H

#include "base/poll.h"
#include "ffi/args.h"
#include "models/model.h"

struct ffi_jump {
  SEXP token;             /* R_MakeUnwindCont(), kept by the model's pointer */
  enum tb_status waiting; /* ok: none; callback: an error; or interrupted */
};

/* Call body(p_data). False: it jumped, and the caller says in `waiting` why. */
bool ffi_unwind(struct ffi_jump* p_jump, SEXP (*body)(void*), void* p_data);

/* How the pointer of a model leads to its jump: an object for the list that it
 * protects. */
SEXP ffi_jump_pointer(struct ffi_jump* p_jump);

/* Let the jump that waits go on; does not return if there is one. Of models
 * whose functions are not R's there is none. The second lets interrupts go on
 * and forgets errors, which the core has reported. */
void ffi_continue(SEXP model);
void ffi_continue_interrupt(SEXP model);

/* Did the user ask to stop? It is forgotten then. */
bool ffi_is_interrupted(void);
/* What polls of the model ask meanwhile; until ffi_poll_end(). */
void ffi_poll_begin(struct tb_model* p_model, struct tb_poll* p_poll);
/* Was anybody told to stop? */
bool ffi_poll_end(struct tb_model* p_model);

#endif
