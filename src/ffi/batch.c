/* Minibatches as R objects.
 *
 * What is slow about a batch is memory: its rows are in random places, and a
 * new matrix of a few 100 kB is in none of the caches. So the rows of the next
 * block are fetched while this one is turned into columns, and the objects of
 * the last batch are written over. That is seen by nobody: R counts
 * references, and an object that a user's function has kept, in a variable or
 * an environment, has more than the one of its place here.
 *
 *   symbol   variable   shape                        owner
 *   data     v_x        n_column x n_row, by rows    the model
 *            v_number   the same                     the pack
 *   batch    v_out      n x n_column, by columns     R, kept by `cache`
 */
#include "ffi/batch.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/memory.h"
#include "models/batch.h"

#include <stdlib.h>
#include <string.h>

/* Rows that are turned into columns together: a cache line of each column. */
#define N_TURN 8

/* Bytes of a batch that is kept: passes over all the data may have larger
 * ones. */
#define MAX_KEPT ((size_t)8 << 20)

/* Bytes that are fetched early, at least. */
#define N_AHEAD 4096

/* Bytes of the first lines of a row that are fetched early. */
#define MAX_FETCH 1024

/* ---------------------------------------------------------------- the numbers
 */

/* Rows of v_x, a matrix by rows. COLUMN(m): where those of column m go. */
#define TURN_ROWS(type, WANTED, COLUMN)                                        \
  {                                                                            \
    const size_t n = p_batch->n_batch;                                         \
    const size_t n_fetch = tb_min(n_column * sizeof(type), MAX_FETCH);         \
    const size_t ahead = tb_max(N_TURN, N_AHEAD / n_fetch);                    \
    size_t k = 0;                                                              \
    for (; k + N_TURN <= n; k += N_TURN) {                                     \
      const type* v_row[N_TURN];                                               \
      for (size_t r = 0; r < N_TURN; ++r) {                                    \
        const size_t next = tb_min(k + r + ahead, n - 1);                      \
        const char* p =                                                        \
            (const char*)(v_x + tb_batch_row(p_batch, next) * n_column);       \
        for (size_t b = 0; b < n_fetch; b += 64) {                             \
          TB_PREFETCH(p + b);                                                  \
        }                                                                      \
        TB_PREFETCH(p + n_fetch - 1);                                          \
        v_row[r] = v_x + tb_batch_row(p_batch, k + r) * n_column;              \
      }                                                                        \
      for (size_t m = 0; m < n_column; ++m) {                                  \
        if (WANTED(m)) {                                                       \
          type* v = COLUMN(m) + k;                                             \
          const type a = v_row[0][m], b = v_row[1][m], c = v_row[2][m],        \
                     d = v_row[3][m], e = v_row[4][m], f = v_row[5][m],        \
                     g = v_row[6][m], h = v_row[7][m];                         \
          v[0] = a, v[1] = b, v[2] = c, v[3] = d;                              \
          v[4] = e, v[5] = f, v[6] = g, v[7] = h;                              \
        }                                                                      \
      }                                                                        \
    }                                                                          \
    for (; k < n; ++k) {                                                       \
      const type* v_row = v_x + tb_batch_row(p_batch, k) * n_column;           \
      for (size_t m = 0; m < n_column; ++m) {                                  \
        if (WANTED(m)) {                                                       \
          COLUMN(m)[k] = v_row[m];                                             \
        }                                                                      \
      }                                                                        \
    }                                                                          \
  }

#define ALL(m) true
#define NTH(m) (v_out + (m)*n_stride)

#define GATHER(name, type)                                                     \
  static void name(const type* v_x,                                            \
                   size_t n_column,                                            \
                   const struct tb_batch* p_batch,                             \
                   size_t n_stride,                                            \
                   type* v_out) {                                              \
    for (size_t k = 0; n_column == 1 && k < p_batch->n_batch; ++k) {           \
      v_out[k] = v_x[tb_batch_row(p_batch, k)];                                \
    }                                                                          \
    if (n_column != 1) {                                                       \
      TURN_ROWS(type, ALL, NTH)                                                \
    }                                                                          \
  }

GATHER(gather_doubles, double)
GATHER(gather_integers, int)

void ffi_batch_doubles(const double* v_x,
                       size_t n_column,
                       const struct tb_batch* p_batch,
                       size_t n_stride,
                       double* v_out) {
  gather_doubles(v_x, n_column, p_batch, n_stride, v_out);
}

static void gather_strings(SEXP x,
                           size_t n_column,
                           const struct tb_batch* p_batch,
                           SEXP out) {
  const size_t n = p_batch->n_batch;
  for (size_t k = 0; k < n; ++k) {
    const size_t from = tb_batch_row(p_batch, k) * n_column;
    for (size_t m = 0; m < n_column; ++m) {
      SET_STRING_ELT(out,
                     (R_xlen_t)(m * n + k),
                     STRING_ELT(x, (R_xlen_t)(from + m)));
    }
  }
}

/* the types that R/model-custom-engine.R lets through */
static bool is_data(SEXP x) {
  const int type = TYPEOF(x);
  return type == REALSXP || type == INTSXP || type == LGLSXP || type == STRSXP;
}

static void
gather(SEXP x, size_t n_column, const struct tb_batch* p_batch, SEXP out) {
  const size_t n = p_batch->n_batch;
  switch (TYPEOF(x)) {
  case REALSXP:
    gather_doubles(REAL(x), n_column, p_batch, n, REAL(out));
    break;
  case INTSXP:
    gather_integers(INTEGER(x), n_column, p_batch, n, INTEGER(out));
    break;
  case LGLSXP:
    gather_integers(LOGICAL(x), n_column, p_batch, n, LOGICAL(out));
    break;
  default:
    gather_strings(x, n_column, p_batch, out);
  }
}

/* ------------------------------------------------------------------- the pack
 */

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

/* ------------------------------------------------------------------- the data
 */

/* blocks that fit in the cache both ways */
#define TURN(type, access)                                                     \
  {                                                                            \
    const type* v_x = access(x);                                               \
    type* v_out = access(out);                                                 \
    tb_big_advise(v_out, n_row* n_column * sizeof(type));                      \
    for (size_t first = 0; first < n_row; first += 256) {                      \
      const size_t end = tb_min(first + 256, n_row);                           \
      for (size_t m = 0; m < n_column; ++m) {                                  \
        for (size_t i = first; i < end; ++i) {                                 \
          v_out[i * n_column + m] = v_x[m * n_row + i];                        \
        }                                                                      \
      }                                                                        \
    }                                                                          \
  }

/* An array with its first dimension last, without names. */
SEXP ffi_batch_turn(SEXP x) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  const R_xlen_t n_dim = Rf_xlength(dim), n = Rf_xlength(x);
  if (TYPEOF(dim) != INTSXP || !is_data(x)) {
    ffi_fault("data");
  }
  const size_t n_row = (size_t)INTEGER(dim)[0];
  const size_t n_column = n_row == 0 ? 0 : (size_t)n / n_row;
  SEXP out = PROTECT(Rf_allocVector(TYPEOF(x), n));
  switch (TYPEOF(x)) {
  case REALSXP:
    TURN(double, REAL)
    break;
  case INTSXP:
    TURN(int, INTEGER)
    break;
  case LGLSXP:
    TURN(int, LOGICAL)
    break;
  default:
    for (size_t i = 0; i < n_row; ++i) {
      for (size_t m = 0; m < n_column; ++m) {
        SET_STRING_ELT(out,
                       (R_xlen_t)(i * n_column + m),
                       STRING_ELT(x, (R_xlen_t)(m * n_row + i)));
      }
    }
  }
  SEXP shape = PROTECT(Rf_allocVector(INTSXP, n_dim));
  for (R_xlen_t k = 1; k < n_dim; ++k) {
    INTEGER(shape)[k - 1] = INTEGER(dim)[k];
  }
  INTEGER(shape)[n_dim - 1] = (int)n_row;
  Rf_setAttrib(out, R_DimSymbol, shape);
  UNPROTECT(2);
  return out;
}

/* ---------------------------------------------------------------- the objects
 */

/* Dimensions and their names, the rows first. */
static void turn_attributes(SEXP x, size_t n, SEXP out) {
  SEXP dim = Rf_getAttrib(x, R_DimSymbol);
  if (dim == R_NilValue) {
    SHALLOW_DUPLICATE_ATTRIB(out, x); /* levels and class */
    return;
  }
  const R_xlen_t n_dim = Rf_xlength(dim);
  SEXP shape = PROTECT(Rf_allocVector(INTSXP, n_dim));
  INTEGER(shape)[0] = (int)n;
  for (R_xlen_t k = 1; k < n_dim; ++k) {
    INTEGER(shape)[k] = INTEGER(dim)[k - 1];
  }
  Rf_setAttrib(out, R_DimSymbol, shape);
  SEXP names = Rf_getAttrib(x, R_DimNamesSymbol);
  if (names != R_NilValue) {
    SEXP turned = PROTECT(Rf_allocVector(VECSXP, n_dim));
    for (R_xlen_t k = 1; k < n_dim; ++k) {
      SET_VECTOR_ELT(turned, k, VECTOR_ELT(names, k - 1));
    }
    Rf_setAttrib(out, R_DimNamesSymbol, turned);
    UNPROTECT(1);
  }
  UNPROTECT(1);
}

/* Room for n rows of x: `before` where that is possible. */
static SEXP room_for(SEXP x, size_t n_row, size_t n, SEXP before) {
  if (before != R_NilValue && !MAYBE_SHARED(before)) {
    return before;
  }
  const size_t n_column = (size_t)Rf_xlength(x) / n_row;
  SEXP out = PROTECT(Rf_allocVector(TYPEOF(x), (R_xlen_t)(n * n_column)));
  turn_attributes(x, n, out);
  UNPROTECT(1);
  return out;
}

/* Rows of x, in `before` where that is possible. */
static SEXP
take_part(SEXP x, size_t n_row, const struct tb_batch* p_batch, SEXP before) {
  SEXP out = PROTECT(room_for(x, n_row, p_batch->n_batch, before));
  gather(x, (size_t)Rf_xlength(x) / n_row, p_batch, out);
  UNPROTECT(1);
  return out;
}

/* A list, perhaps a data frame, with no parts yet. */
static SEXP new_list(SEXP data, size_t n) {
  SEXP out = PROTECT(Rf_allocVector(VECSXP, Rf_xlength(data)));
  SHALLOW_DUPLICATE_ATTRIB(out, data);
  if (Rf_inherits(out, "data.frame")) {
    SEXP names = PROTECT(Rf_allocVector(INTSXP, 2));
    INTEGER(names)[0] = NA_INTEGER;
    INTEGER(names)[1] = -(int)n;
    Rf_setAttrib(out, R_RowNamesSymbol, names);
    UNPROTECT(1);
  }
  UNPROTECT(1);
  return out;
}

/* Rows of the parts, in the list `before` unless that is NULL. */
static SEXP take_list(SEXP data,
                      size_t n_row,
                      const struct ffi_pack* p_pack,
                      const struct tb_batch* p_batch,
                      SEXP before) {
  const bool fits = before != R_NilValue && !MAYBE_SHARED(before);
  const size_t n_packed = ffi_pack_n_column(p_pack), n = p_batch->n_batch;
  double** v_packed = (double**)R_alloc(n_packed + 1, sizeof(double*));
  SEXP out = PROTECT(fits ? before : new_list(data, n));
  for (R_xlen_t k = 0; k < Rf_xlength(data); ++k) {
    SEXP x = VECTOR_ELT(data, k), old = VECTOR_ELT(out, k);
    const size_t column = ffi_pack_column(p_pack, (size_t)k);
    SEXP part = column < n_packed ? room_for(x, n_row, n, old)
                                  : take_part(x, n_row, p_batch, old);
    if (part != old) {
      SET_VECTOR_ELT(out, k, part);
    }
    if (column < n_packed) {
      v_packed[column] = REAL(part);
    }
  }
  if (p_pack != NULL) {
    ffi_pack_take(p_pack, p_batch, v_packed);
  }
  UNPROTECT(1);
  return out;
}

static size_t n_byte_of(SEXP data, size_t n_row, size_t n) {
  size_t n_number = 0;
  if (TYPEOF(data) != VECSXP) {
    n_number = (size_t)Rf_xlength(data);
  } else {
    for (R_xlen_t k = 0; k < Rf_xlength(data); ++k) {
      n_number += (size_t)Rf_xlength(VECTOR_ELT(data, k));
    }
  }
  return n_number / n_row * n * sizeof(double);
}

SEXP ffi_batch(SEXP data,
               size_t n_row,
               const struct ffi_pack* p_pack,
               SEXP cache,
               const struct tb_batch* p_batch) {
  const size_t n = p_batch->n_batch;
  const bool keeps = n_byte_of(data, n_row, n) <= MAX_KEPT;
  SEXP last = VECTOR_ELT(cache, 1);
  const bool fits = keeps && last != R_NilValue && Rf_asReal(last) == (double)n;
  SEXP before = fits ? VECTOR_ELT(cache, 0) : R_NilValue;
  SEXP out = TYPEOF(data) == VECSXP
                 ? take_list(data, n_row, p_pack, p_batch, before)
                 : take_part(data, n_row, p_batch, before);
  if (keeps && out != before) {
    PROTECT(out);
    SET_VECTOR_ELT(cache, 0, out);
    SET_VECTOR_ELT(cache, 1, Rf_ScalarReal((double)n));
    UNPROTECT(1);
  }
  return out;
}

/* Can x be data of n_row rows, as ffi_batch_turn() has left them? */
static void check_part(SEXP x, size_t n_row) {
  if (!is_data(x) || n_row == 0 || (size_t)Rf_xlength(x) % n_row != 0) {
    ffi_fault("data");
  }
}

void ffi_batch_check(SEXP data, size_t n_row) {
  if (TYPEOF(data) != VECSXP) {
    check_part(data, n_row);
    return;
  }
  for (R_xlen_t k = 0; k < Rf_xlength(data); ++k) {
    check_part(VECTOR_ELT(data, k), n_row);
  }
}

/* Rows numbered from 1 in `index` of data of n_row. */
SEXP ffi_batch_rows(SEXP data, SEXP n_row, SEXP index) {
  const size_t n_most = ffi_as_count(n_row, "n_row");
  ffi_batch_check(data, n_most);
  const struct tb_batch batch = {.n_batch = (size_t)Rf_xlength(index),
                                 .v_index = ffi_rows(index, n_most, "index")};
  SEXP cache = PROTECT(Rf_allocVector(VECSXP, 2));
  SEXP out = ffi_batch(data, n_most, NULL, cache, &batch);
  UNPROTECT(1);
  return out;
}
