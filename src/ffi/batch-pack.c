/* Columns of data side by side, for batches. */
#include "ffi/batch.h"

#include "base/memory.h"
#include "ffi/turn-rows.h"

#include <stdlib.h>

struct ffi_pack {
  double* v_number; /* n_row x n_column, by rows */
  size_t n_byte;
  size_t n_part, n_column;
  size_t v_column[]; /* n_part: see ffi_pack_column() */
};

static bool is_packed(SEXP part) {
  return TYPEOF(part) == REALSXP &&
         Rf_getAttrib(part, R_DimSymbol) == R_NilValue;
}

bool ffi_pack_create(SEXP data, size_t n_row, struct ffi_pack** pp_pack) {
  const size_t n_part = TYPEOF(data) == VECSXP ? (size_t)Rf_xlength(data) : 0;
  size_t n_column = 0;
  *pp_pack = NULL;
  for (size_t j = 0; j < n_part; ++j) {
    n_column += is_packed(VECTOR_ELT(data, (R_xlen_t)j));
  }
  if (n_column < 2) {
    return true;
  }
  struct ffi_pack* p = malloc(sizeof(*p) + n_part * sizeof(p->v_column[0]));
  if (p == NULL) {
    return false;
  }
  p->n_part = n_part;
  p->n_column = n_column;
  p->n_byte = n_row * n_column * sizeof(double);
  p->v_number = tb_big_alloc(p->n_byte);
  if (p->v_number == NULL) {
    free(p);
    return false;
  }
  size_t at = 0;
  for (size_t j = 0; j < n_part; ++j) {
    SEXP part = VECTOR_ELT(data, (R_xlen_t)j);
    p->v_column[j] = is_packed(part) ? at++ : n_column;
  }
  for (size_t first = 0; first < n_row; first += 256) {
    const size_t end = tb_min(first + 256, n_row);
    for (size_t j = 0; j < n_part; ++j) {
      double* v_out = p->v_number + p->v_column[j];
      if (p->v_column[j] == n_column) {
        continue;
      }
      const double* v_x = REAL(VECTOR_ELT(data, (R_xlen_t)j));
      for (size_t i = first; i < end; ++i) {
        v_out[i * n_column] = v_x[i];
      }
    }
  }
  *pp_pack = p;
  return true;
}

void ffi_pack_destroy(struct ffi_pack* p_pack) {
  if (p_pack != NULL) {
    tb_big_free(p_pack->v_number, p_pack->n_byte);
    free(p_pack);
  }
}

size_t ffi_pack_memory(const struct ffi_pack* p_pack) {
  return p_pack == NULL ? 0 : p_pack->n_byte;
}

size_t ffi_pack_n_column(const struct ffi_pack* p_pack) {
  return p_pack == NULL ? 0 : p_pack->n_column;
}

size_t ffi_pack_column(const struct ffi_pack* p_pack, size_t part) {
  return p_pack == NULL ? 0 : p_pack->v_column[part];
}

#define NOT_NULL(m) (v_out[m] != NULL)
#define POINTED(m)  v_out[m]

void ffi_pack_take(const struct ffi_pack* p_pack,
                   const struct tb_batch* p_batch,
                   double* const* v_out) {
  const double* v_x = p_pack->v_number;
  const size_t n_column = p_pack->n_column;
  TURN_ROWS(double, NOT_NULL, POINTED)
}
