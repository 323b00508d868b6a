/* Doors to files of rows: write one, look at one, read rows of one. What is
 * wrong with a file is handed back as a code, in the order of tb_file_fault. */
#include "ffi/args.h"

#include "base/clip.h"
#include "data/file.h"
#include "data/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SEXP fault_of(enum tb_file_fault fault) {
  return Rf_ScalarInteger((int)fault);
}

/* ---- writing ---- */

static void writer_finalize(SEXP ptr) {
  struct tb_writer* p_writer = R_ExternalPtrAddr(ptr);
  if (p_writer != NULL) {
    tb_writer_close(p_writer);
    free(p_writer);
    R_ClearExternalPtr(ptr);
  }
}

static struct tb_writer* parse_writer(SEXP x) {
  return ffi_pointer(x, "tall_writer", "pointer of a file");
}

/* A file for n_row rows (0: as many as come); names: the columns' as they stand
 * in the file, raw. Pointer, or the fault. */
SEXP ffi_file_create(SEXP path,
                     SEXP is_float,
                     SEXP n_row,
                     SEXP n_col,
                     SEXP names) {
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  const bool rounds = ffi_as_flag(is_float, "is_float");
  const size_t n_rows = ffi_as_count(n_row, "n_row");
  const size_t n_cols = ffi_as_count(n_col, "n_col");
  if (TYPEOF(names) != RAWSXP || n_cols == 0) {
    ffi_fault("names");
  }
  SEXP ptr =
      PROTECT(R_MakeExternalPtr(NULL, Rf_install("tall_writer"), R_NilValue));
  R_RegisterCFinalizerEx(ptr, writer_finalize, TRUE);
  struct tb_writer* p_writer = calloc(1, sizeof(*p_writer));
  R_SetExternalPtrAddr(ptr, p_writer);
  const enum tb_file_fault fault =
      p_writer == NULL ? TB_FILE_memory
                       : tb_writer_open(p_writer,
                                        p_path,
                                        rounds,
                                        n_rows,
                                        n_cols,
                                        (const char*)RAW(names),
                                        (size_t)Rf_xlength(names));
  UNPROTECT(1);
  return fault == TB_FILE_ok ? ptr : fault_of(fault);
}

/* the rows of a matrix, as many columns as the file has */
SEXP ffi_file_append(SEXP writer, SEXP x) {
  struct tb_writer* p_writer = parse_writer(writer);
  size_t n_row, n_col;
  ffi_shape(x, &n_row, &n_col, "x");
  if (n_col != p_writer->file.n_col || p_writer->p_stream == NULL) {
    ffi_fault("x");
  }
  return fault_of(tb_writer_append(p_writer, n_row, REAL(x)));
}

/* The file is whole, or there was a fault, after which nothing can be written.
 * Nobody takes it for left before it is abandoned. */
SEXP ffi_file_finish(SEXP writer) {
  struct tb_writer* p_writer = parse_writer(writer);
  if (p_writer->p_stream == NULL) {
    ffi_fault("pointer of a file");
  }
  return fault_of(tb_writer_finish(p_writer));
}

/* Frees what a file has open, finished or not. */
SEXP ffi_file_abandon(SEXP writer) {
  if (TYPEOF(writer) != EXTPTRSXP ||
      R_ExternalPtrTag(writer) != Rf_install("tall_writer")) {
    ffi_fault("pointer of a file");
  }
  writer_finalize(writer);
  return R_NilValue;
}

/* A file gets another name that no file has; or the fault. */
SEXP ffi_file_place(SEXP path, SEXP to) {
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  char* p_from = R_alloc(strlen(p_path) + 1, 1);
  strcpy(p_from, p_path); /* the next one may lie where it lay */
  return fault_of(
      tb_file_place(p_from, R_ExpandFileName(ffi_string(to, "to"))));
}

/* Removes what a writer left that is no more; was it? */
SEXP ffi_file_sweep(SEXP path) {
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  return Rf_ScalarLogical(tb_file_sweep(p_path));
}

/* ---- reading ---- */

static void file_finalize(SEXP ptr) {
  struct tb_file* p_file = R_ExternalPtrAddr(ptr);
  if (p_file != NULL) {
    tb_file_destroy(p_file);
    free(p_file);
    R_ClearExternalPtr(ptr);
  }
}

static SEXP head_of(const struct tb_file* p_file) {
  char hash[32];
  snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)p_file->hash);
  SEXP out = PROTECT(ffi_list(7));
  ffi_add_flag(out, "is_float", p_file->is_float);
  ffi_add_number(out, "n_row", (double)p_file->n_row);
  ffi_add_number(out, "n_col", (double)p_file->n_col);
  ffi_add_text(out, "hash", hash);
  const size_t n_col = p_file->n_col;
  double* v_mean = ffi_add_vector(out, "mean", n_col);
  double* v_sd = ffi_add_vector(out, "sd", n_col);
  for (size_t j = 0; j < n_col; ++j) {
    v_mean[j] = p_file->v_column[j];
    v_sd[j] = p_file->v_column[n_col + j];
  }
  ffi_add(out, "names", Rf_allocVector(RAWSXP, (R_xlen_t)p_file->n_name));
  Rbyte* v_name = RAW(ffi_element(out, "names"));
  for (size_t k = 0; k < p_file->n_name; ++k) {
    v_name[k] = (Rbyte)p_file->v_name[k];
  }
  UNPROTECT(1);
  return out;
}

/* list(is_float, n_row, n_col, hash, mean, sd, names), or the fault */
SEXP ffi_file_head(SEXP path) {
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  SEXP ptr = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  R_RegisterCFinalizerEx(ptr, file_finalize, TRUE);
  struct tb_file* p_file = calloc(1, sizeof(*p_file));
  R_SetExternalPtrAddr(ptr, p_file);
  const enum tb_file_fault fault =
      p_file == NULL ? TB_FILE_memory : tb_file_read(p_path, p_file);
  SEXP out = PROTECT(fault == TB_FILE_ok ? head_of(p_file) : fault_of(fault));
  file_finalize(ptr);
  UNPROTECT(2);
  return out;
}

/* rows of a file of that shape, numbered from 1: a matrix, or the fault */
SEXP ffi_file_rows(SEXP path, SEXP n_row, SEXP n_col, SEXP rows) {
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  const size_t n_rows = ffi_as_count(n_row, "n_row");
  const size_t n_cols = ffi_as_count(n_col, "n_col");
  const size_t n_out = (size_t)Rf_xlength(rows);
  const size_t* v_index = ffi_rows(rows, n_rows, "rows");
  double* v_row = (double*)R_alloc(n_cols + 1, sizeof(double));
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP,
                                    ffi_extent(n_out, "rows"),
                                    ffi_extent(n_cols, "n_col")));
  struct tb_store store;
  enum tb_file_fault fault = tb_file_map(p_path, &store);
  if (fault == TB_FILE_ok && (store.n_row != n_rows || store.n_col != n_cols)) {
    fault = TB_FILE_damaged;
  }
  for (size_t i = 0; fault == TB_FILE_ok && i < n_out; ++i) {
    store.type->gather(&store, v_index + i, 0, 1, n_cols, v_row);
    for (size_t j = 0; j < n_cols; ++j) {
      REAL(out)[j * n_out + i] = v_row[j];
    }
  }
  tb_store_destroy(&store);
  UNPROTECT(1);
  return fault == TB_FILE_ok ? out : fault_of(fault);
}

static void store_finalize(SEXP ptr) {
  struct tb_store* p_store = R_ExternalPtrAddr(ptr);
  if (p_store != NULL) {
    tb_store_destroy(p_store);
    free(p_store);
    R_ClearExternalPtr(ptr);
  }
}

/* Reads all rows of a file: are they those that were written? The fault. */
SEXP ffi_file_check(SEXP path) {
  enum { NUMBERS = 1 << 14 }; /* that stay in the cache */
  const char* p_path = R_ExpandFileName(ffi_string(path, "path"));
  SEXP ptr = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  R_RegisterCFinalizerEx(ptr, store_finalize, TRUE);
  struct tb_store* p_store = calloc(1, sizeof(*p_store));
  R_SetExternalPtrAddr(ptr, p_store);
  enum tb_file_fault fault =
      p_store == NULL ? TB_FILE_memory : tb_file_map(p_path, p_store);
  if (fault == TB_FILE_ok) {
    const size_t n_most = tb_max(1, NUMBERS / p_store->n_padded);
    double* v_scratch =
        (double*)R_alloc(n_most * p_store->n_padded, sizeof(double));
    uint64_t hash = 0;
    bool is_whole = true;
    for (size_t start = 0, k = 0; start < p_store->n_row && is_whole;
         start += n_most, ++k) {
      const size_t n_row = tb_min(n_most, p_store->n_row - start);
      is_whole = tb_file_hash(p_store, start, n_row, v_scratch, &hash);
      if (k % 256 == 255) {
        R_CheckUserInterrupt(); /* leaves by a jump */
      }
    }
    fault = is_whole && hash == p_store->hash ? TB_FILE_ok : TB_FILE_altered;
  }
  store_finalize(ptr);
  UNPROTECT(1);
  return fault_of(fault);
}
