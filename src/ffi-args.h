/* Arguments of the doors: from SEXP to what the core takes. Everything here
 * may raise an R error, so doors parse before they allocate outside R. The R
 * layer has checked the values; these are internal faults. */
#ifndef TB_FFI_ARGS_H
#define TB_FFI_ARGS_H

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

#include "core/param.h"
#include "core/run.h"
#include "models/model.h"

#define ffi_fault(...) ffi_fault_at(__FILE__, __LINE__, __VA_ARGS__)
void NORET ffi_fault_at(const char* file, int line, const char* message);

/* element of a named list, R_NilValue when absent */
SEXP ffi_element(SEXP x, const char* name);

double ffi_number(SEXP x, const char* name);
size_t ffi_count(SEXP x, const char* name);
const char* ffi_string(SEXP x, const char* name);
/* data pointer of a double vector of n values, or NULL for NULL */
double* ffi_doubles(SEXP x, size_t n, const char* name);

/* list(name = , params = list(...)) ; params of doubles, NULLs left out, or an
 * external pointer, whose address goes to v_value, with n_value 0 */
struct tb_member ffi_member(SEXP x);
struct tb_params ffi_params(SEXP x);

/* Threads to use where the user allows so many; see ffi-args.c. Every number of
 * threads in the core comes from here. ffi_threads_init(): when the library is
 * loaded. */
int ffi_threads(SEXP x);
void ffi_threads_init(void);

/* the model behind an external pointer; an error when it is NULL */
struct tb_model* ffi_model(SEXP x);

SEXP ffi_named_list(const char* const* v_name, size_t n);

/* ffi-model.c: an external pointer with its finalizer and nothing behind it
 * yet; a zeroed model behind it, or NULL. */
SEXP ffi_model_pointer(void);
struct tb_model* ffi_model_attach(SEXP ptr);

/* ffi-custom.c: let a jump out of a user's function, which waited until the core
 * had returned, go on; does not return if there is one. The second lets
 * interrupts go on and forgets errors, which the core has reported. */
void ffi_continue(SEXP model);
void ffi_continue_interrupt(SEXP model);

#endif
