/* Arguments of the doors: from SEXP to what the core takes. Everything here
 * may raise an R error, so doors parse before they allocate outside R.
 *
 * The R layer has checked what users type; what doors find wrong was altered
 * after it was made, or read from a damaged file. It is an error of class
 * tall_error_corrupt that names the argument: no door trusts a type, a length
 * or a range that memory depends on. */
#ifndef TB_FFI_ARGS_H
#define TB_FFI_ARGS_H

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

#include "base/param.h"
#include "models/model.h"
#include "run/run.h"

#include <stdbool.h>

#define ffi_fault(...) ffi_fault_at(__FILE__, __LINE__, __VA_ARGS__)
void NORET ffi_fault_at(const char* file, int line, const char* message);

/* element of a named list, or of NULL, R_NilValue when absent */
SEXP ffi_element(SEXP x, const char* name);

/* Elements of a named list: one double, any; a whole number from 0 to 2^53. */
double ffi_number(SEXP x, const char* name);
size_t ffi_count(SEXP x, const char* name);

/* The same of an argument, which may be an integer: any number but NA; a whole
 * number from 0 to 2^53; a code from 0 to n - 1; TRUE or FALSE. */
double ffi_as_number(SEXP x, const char* name);
size_t ffi_as_count(SEXP x, const char* name);
int ffi_as_code(SEXP x, int n, const char* name);
bool ffi_as_flag(SEXP x, const char* name);

const char* ffi_string(SEXP x, const char* name);
/* whole numbers: those of R's integers and logicals, NA_INTEGER among them */
bool ffi_is_whole(SEXP x);
const int* ffi_whole(SEXP x);
/* data pointer of a double vector of n values, or NULL for NULL; the second
 * does not take NULL */
double* ffi_doubles(SEXP x, size_t n, const char* name);
double* ffi_some_doubles(SEXP x, size_t n, const char* name);
/* columns of n_row doubles each, of a vector or matrix, as many as R's
 * dimensions can have */
size_t ffi_columns(SEXP x, size_t n_row, const char* name);
/* Dimensions of a double matrix. */
void ffi_shape(SEXP x, size_t* p_row, size_t* p_column, const char* name);
/* A dimension of a matrix of R, which is an integer. */
int ffi_extent(size_t n, const char* name);
/* a b, if that is a number of bytes or values that there can be */
size_t ffi_times(size_t a, size_t b, const char* name);
/* Rows of `n_row`, numbered from 1 in x: their numbers from 0, R_alloc. */
size_t* ffi_rows(SEXP x, size_t n_row, const char* name);
/* what is behind an external pointer of this tag; NULL: any */
void* ffi_pointer(SEXP x, const char* tag, const char* name);

/* A matrix without its zeros: a dgCMatrix of the package Matrix, or a
 * dgRMatrix, of which the transpose is given. R_alloc. */
const struct tb_columns* ffi_columns_of(SEXP x, const char* name);

/* list(name = , params = list(...)) ; params of doubles, NULLs left out, or,
 * named "table" or "rows", an external pointer, whose address goes to v_value,
 * with n_value 0, or, named "columns", a dgCMatrix, whose struct
 * tb_columns is there */
struct tb_member ffi_member(SEXP x);
struct tb_params ffi_params(SEXP x);

/* Threads to use where the user allows so many; see ffi/args.c. Every number of
 * threads in the core comes from here. ffi_threads_init(): when the library is
 * loaded. */
int ffi_threads(SEXP x);
void ffi_threads_init(void);

/* A list of n elements without names, and the next of them: the caller protects
 * the list, not the value. */
SEXP ffi_list(size_t n);
void ffi_add(SEXP list, const char* name, SEXP value);
void ffi_add_number(SEXP list, const char* name, double value);
void ffi_add_flag(SEXP list, const char* name, bool value);
void ffi_add_text(SEXP list, const char* name, const char* text); /* or NULL */

/* The next element: doubles that nobody has written yet, and where they are. */
double* ffi_add_vector(SEXP list, const char* name, size_t n);
double*
ffi_add_matrix(SEXP list, const char* name, size_t n_row, size_t n_column);

#endif
