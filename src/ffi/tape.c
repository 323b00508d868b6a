/* Gradients of functions of R by automatic differentiation.
 *
 * RTMB (Kristensen et al. 2016, doi:10.18637/jss.v070.i05) records what an R
 * function does to its arguments on a tape. Ours (R/model-autodiff-data.R) take
 *
 *   x | rows of the data, part by part | c
 *
 * and return sum_k c_k dl_k / dx, so that one tape serves any minibatch of its
 * number of rows and no R code runs after it is made. Sizes are rounded up,
 * with rows of multiplier 0, to few different ones, and large batches are cut:
 * both depend on the number of rows alone, so that draws do not depend on what
 * was computed before.
 *
 * RTMB lends three pointers: to what a tape reads, to what it writes, and to
 * the function that runs it. Tapes with operations that may fail are run by an
 * R function instead.
 *
 *   symbol   variable      shape                              owner
 *   x        v_x           n_natural                          the caller
 *            v_in          n_natural + n_row (n_column + 1)   the tape
 *            v_out         n_natural                          the tape
 *   c        end of v_in   n_row                              the tape
 */
#include "ffi/tape.h"

#include "ffi/batch.h"

#include "base/clip.h"
#include "models/batch.h"

#include <R_ext/Rdynload.h>
#include <stdlib.h>
#include <string.h>

/* numbers that a tape reads: they and what is computed from them stay in the
 * cache of a core */
#define MAX_READ 131072
#define MAX_ROW  1024
#define MIN_ROW  16

struct tape {
  double* v_in; /* NULL: not made yet */
  const double* v_out;
  void* p_tape; /* NULL: run(in) of R is called */
  SEXP in, run;
};

struct part {
  SEXP x;
  size_t n_column;
  size_t packed; /* its column of the pack; as many as there are: none */
};

struct tapes {
  SEXP make;
  const struct ffi_pack* p_pack; /* of the data, or NULL */
  const double* v_weight;        /* w, n_data: the caller's; NULL: all 1 */
  size_t n_data, n_natural;
  size_t n_packed_input;
  size_t n_part, n_column, n_most; /* columns of all parts, rows of a tape */
  struct part* v_part;
  struct tape* v_tape; /* by the number of rows */
  void (*run)(void*);  /* RTMB's; NULL: not looked up yet */
};

void tapes_free(struct tapes* p) {
  if (p != NULL) {
    free(p->v_part);
    free(p->v_tape);
    free(p);
  }
}

struct tapes* tapes_new(SEXP spec,
                        SEXP data,
                        const struct ffi_pack* p_pack,
                        const double* v_weight,
                        size_t n_data,
                        size_t n_natural) {
  SEXP make = ffi_element(spec, "make"), inputs = ffi_element(spec, "inputs");
  const size_t n_part = (size_t)Rf_xlength(inputs);
  const double* v_input = ffi_doubles(inputs, n_part, "inputs");
  for (size_t j = 0; j < n_part; ++j) {
    if (!(v_input[j] >= 0) ||
        (TYPEOF(data) == VECSXP && v_input[j] >= (double)Rf_xlength(data))) {
      ffi_fault("inputs");
    }
  }
  struct tapes* p = calloc(1, sizeof(*p));
  struct part* v_part = calloc(n_part + 1, sizeof(*v_part));
  struct tape* v_tape = calloc(MAX_ROW + 1, sizeof(*v_tape));
  if (p == NULL || v_part == NULL || v_tape == NULL) {
    free(p);
    free(v_part);
    free(v_tape);
    return NULL;
  }
  *p = (struct tapes){.make = make,
                      .p_pack = p_pack,
                      .v_weight = v_weight,
                      .n_data = n_data,
                      .n_natural = n_natural,
                      .n_part = n_part,
                      .v_part = v_part,
                      .v_tape = v_tape};
  for (size_t j = 0; j < n_part; ++j) {
    SEXP x = data;
    if (TYPEOF(data) == VECSXP) {
      x = VECTOR_ELT(data, (R_xlen_t)v_input[j]);
    }
    v_part[j] = (struct part){
        x,
        (size_t)Rf_xlength(x) / n_data,
        ffi_pack_column(p_pack, n_part == 0 ? 0 : (size_t)v_input[j])};
    p->n_column += v_part[j].n_column;
    p->n_packed_input += v_part[j].packed < ffi_pack_n_column(p_pack);
  }
  const size_t n_fit = MAX_READ / (p->n_column + 1);
  p->n_most = n_fit > MAX_ROW ? MAX_ROW : n_fit < MIN_ROW ? MIN_ROW : n_fit;
  return p;
}

/* --------------------------------------------------------------- the tapes */

/* Rows of the tape for n rows: one of eight sizes in each octave. */
static size_t rounded(const struct tapes* p, size_t n) {
  size_t step = 1;
  while (16 * step < n) {
    step *= 2;
  }
  return tb_min((n + step - 1) / step * step, p->n_most);
}

static void (*runner(void))(void*) {
  return (void (*)(void*))R_GetCCallable("RTMB", "ptr_forward");
}

static struct tape* tape_of(struct tapes* p, size_t n_row) {
  struct tape* p_tape = &p->v_tape[n_row];
  if (p_tape->v_in != NULL) {
    return p_tape;
  }
  const size_t n_in = p->n_natural + n_row * (p->n_column + 1);
  SEXP n = PROTECT(Rf_ScalarReal((double)n_row));
  SEXP call = PROTECT(Rf_lang2(p->make, n));
  /* make() keeps what it returns */
  SEXP made = PROTECT(Rf_eval(call, R_GlobalEnv));
  SEXP tape = ffi_element(made, "tape");
  if (tape == R_NilValue) {
    SEXP in = ffi_element(made, "x");
    *p_tape = (struct tape){.v_in = ffi_some_doubles(in, n_in, "x"),
                            .in = in,
                            .run = ffi_element(made, "run")};
  } else {
    if (p->run == NULL) {
      p->run = runner();
    }
    SEXP x = ffi_element(made, "x"), y = ffi_element(made, "y");
    *p_tape = (struct tape){.v_in = ffi_pointer(x, NULL, "x"),
                            .v_out = ffi_pointer(y, NULL, "y"),
                            .p_tape = ffi_pointer(tape, NULL, "tape")};
  }
  UNPROTECT(3);
  return p_tape;
}

/* made: what make() returns, with pointers; in: what it is to read. What it
 * writes: the first n_out of them. */
SEXP ffi_tape_run(SEXP made, SEXP in, SEXP n_out) {
  const size_t n = ffi_as_count(n_out, "n_out"), n_in = (size_t)Rf_xlength(in);
  double* v_in = ffi_pointer(ffi_element(made, "x"), NULL, "x");
  const double* v_out = ffi_pointer(ffi_element(made, "y"), NULL, "y");
  memcpy(v_in, ffi_some_doubles(in, n_in, "in"), n_in * sizeof(double));
  runner()(ffi_pointer(ffi_element(made, "tape"), NULL, "tape"));
  SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)n);
  memcpy(REAL(out), v_out, n * sizeof(double));
  return out;
}

static void run_tape(const struct tapes* p,
                     struct tape* p_tape,
                     const double* v_x,
                     double* v_out) {
  const size_t n_byte = p->n_natural * sizeof(double);
  memcpy(p_tape->v_in, v_x, n_byte);
  if (p_tape->p_tape != NULL) {
    p->run(p_tape->p_tape);
    memcpy(v_out, p_tape->v_out, n_byte);
    return;
  }
  SEXP call = PROTECT(Rf_lang2(p_tape->run, p_tape->in));
  SEXP value = PROTECT(Rf_eval(call, R_GlobalEnv));
  memcpy(v_out,
         ffi_doubles(value, p->n_natural, "the value of a tape"),
         n_byte);
  UNPROTECT(2);
}

/* ---------------------------------------------------------------- the rows */

static void gather_integers(const int* v_x,
                            size_t n_column,
                            const struct tb_batch* p_batch,
                            size_t n_stride,
                            double* v_out) {
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const int* v_row = v_x + tb_batch_row(p_batch, k) * n_column;
    for (size_t j = 0; j < n_column; ++j) {
      v_out[j * n_stride + k] = v_row[j] == NA_INTEGER ? NA_REAL : v_row[j];
    }
  }
}

/* Rows and multipliers, times v_weight of the row where there are such. Beyond
 * the batch its last row is repeated, with multiplier 0. */
static void fill(const struct tapes* p,
                 struct tape* p_tape,
                 const struct tb_batch* p_batch,
                 const double* v_weight,
                 size_t n_row) {
  const size_t n = p_batch->n_batch;
  const size_t n_packed = ffi_pack_n_column(p->p_pack);
  double* v_out = p_tape->v_in + p->n_natural;
  double** v_packed = (double**)R_alloc(n_packed + 1, sizeof(double*));
  memset(v_packed, 0, n_packed * sizeof(double*));
  for (size_t j = 0; j < p->n_part; ++j) {
    const struct part* p_part = &p->v_part[j];
    if (p_part->packed < n_packed) {
      v_packed[p_part->packed] = v_out;
    }
    v_out += p_part->n_column * n_row;
  }
  if (p->n_packed_input > 0) {
    ffi_pack_take(p->p_pack, p_batch, v_packed);
  }
  v_out = p_tape->v_in + p->n_natural;
  for (size_t j = 0; j < p->n_part; ++j) {
    const struct part* p_part = &p->v_part[j];
    if (p_part->packed < n_packed) {
      /* done */
    } else if (TYPEOF(p_part->x) == REALSXP) {
      ffi_batch_doubles(REAL(p_part->x),
                        p_part->n_column,
                        p_batch,
                        n_row,
                        v_out);
    } else {
      gather_integers(INTEGER(p_part->x),
                      p_part->n_column,
                      p_batch,
                      n_row,
                      v_out);
    }
    for (size_t m = 0; m < p_part->n_column; ++m) {
      for (size_t k = n; k < n_row; ++k) {
        v_out[k] = v_out[n - 1];
      }
      v_out += n_row;
    }
  }
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] = k < n ? tb_batch_weight(p_batch, k) : 0;
    if (k < n && v_weight != NULL) {
      v_out[k] *= v_weight[tb_batch_row(p_batch, k)];
    }
  }
}

/* --------------------------------------------------------------- gradients */

static void add(const double* v, size_t n, double* v_sum) {
  for (size_t j = 0; j < n; ++j) {
    v_sum[j] += v[j];
  }
}

void tapes_sum_two(struct tapes* p,
                   const struct tb_batch* p_batch,
                   const double* v_x,
                   double* v_out,
                   const double* v_other,
                   double* v_out_other) {
  const size_t n_byte = p->n_natural * sizeof(double);
  double* v_one = (double*)R_alloc(p->n_natural, sizeof(double));
  memset(v_out, 0, n_byte);
  if (v_other != NULL) {
    memset(v_out_other, 0, n_byte);
  }
  for (size_t first = 0; first < p_batch->n_batch; first += p->n_most) {
    const struct tb_batch part = tb_batch_part(p_batch, first, p->n_most);
    const size_t n_row = rounded(p, part.n_batch);
    struct tape* p_tape = tape_of(p, n_row);
    fill(p, p_tape, &part, p->v_weight, n_row);
    run_tape(p, p_tape, v_x, v_one);
    add(v_one, p->n_natural, v_out);
    if (v_other != NULL) {
      run_tape(p, p_tape, v_other, v_one);
      add(v_one, p->n_natural, v_out_other);
    }
  }
}

void tapes_sum(struct tapes* p,
               const struct tb_batch* p_batch,
               const double* v_x,
               double* v_out) {
  tapes_sum_two(p, p_batch, v_x, v_out, NULL, NULL);
}

void tapes_row(struct tapes* p,
               const struct tb_batch* p_batch,
               size_t k,
               const double* v_x,
               double* v_out) {
  struct tb_batch one = tb_batch_part(p_batch, k, 1);
  one.v_weight = NULL;
  one.weight = 1;
  struct tape* p_tape = tape_of(p, 1);
  fill(p, p_tape, &one, NULL, 1);
  run_tape(p, p_tape, v_x, v_out);
}
