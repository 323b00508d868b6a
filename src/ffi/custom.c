/* Models whose log likelihood and prior are functions of R.
 *
 * The core calls the slots below like those of any model; they call R, and what
 * goes wrong there must not jump through the core. Every call into R is one body
 * under R_UnwindProtect(): a jump ends in protected_call(), which returns a
 * status, and the door that entered the core lets the jump go on
 * (ffi_continue()) once the core has returned. Errors of the user's functions
 * are worded and noted in `state` by R/custom.R, which a calling handler around
 * the body asks for; any other jump is an interrupt. All of this happens on the
 * main thread, so the model may note that a jump waits.
 *
 * The user's functions are called without any function of R around them. What
 * they return is used as it is where it has the plain form; else R/custom.R makes
 * that of it, or says why it cannot.
 *
 * Coordinates: free y in the core; the user's functions see the natural x
 * (models/transform.h). Gradients of rows come from one of
 *
 *   rows   rows(theta, batch): n x n_natural, by the user's grad_log_lik
 *   tape   automatic differentiation without R (ffi/tape.h); row by row where
 *          squares are wanted
 *   sum    sum(theta, batch, c): n_natural numbers, sum_i c_i dl_i / dx, by
 *          automatic differentiation in R, with `rows` where squares are wanted
 *   none   central differences of log_lik in y
 *
 *   symbol   variable     shape                      owner
 *   y        v_theta      n_dim                      the core
 *   c_i      v_weight     n_batch                    R vector of the body
 *   a_i      v_row        n_batch x n_dim            R_alloc, of the body
 */
#include "ffi/batch.h"
#include "ffi/tape.h"

#include "base/hash.h"
#include "base/norm.h"
#include "models/transform.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* Hessians by differences of gradients up to so many coordinates */
#define MAX_CURVATURE 100

struct custom {
  struct tb_model_type type; /* `curvature` depends on n_dim */
  size_t n_part;
  struct tb_transform_part* v_part;
  double n_byte;
  enum tb_status jump; /* that waits: callback or interrupted */
  struct tapes *p_tape, *p_prior_tape; /* or NULL */
  struct ffi_pack* p_pack;             /* or NULL */
  const char* running; /* the user's function, NULL: none */
  SEXP theta;          /* where it is called */
  /* R objects, kept by the external pointer */
  SEXP token, spec, state, data, init, batches;
  SEXP functions; /* environment in which the user's are called, by name */
  SEXP rows, sum, prior_gradient, fail, shape, undefined;
};

/* -------------------------------------------------------------- calls of R */

static void on_jump(void* p_home, Rboolean jump) {
  if (jump) {
    longjmp(*(jmp_buf*) p_home, 1);
  }
}

/* An error in a user's function: R/custom.R words it and jumps. Others, such as
 * those it has worded, are left to other handlers. */
static SEXP on_error(SEXP condition, void* p_data) {
  struct custom* p = p_data;
  if (p->running != NULL && !Rf_inherits(condition, "tall_error")) {
    SEXP name = PROTECT(Rf_mkString(p->running));
    SEXP call = PROTECT(Rf_lang4(p->fail, name, p->theta, condition));
    p->running = NULL;
    Rf_eval(call, R_GlobalEnv);
    UNPROTECT(2);
  }
  return R_NilValue;
}

struct guarded {
  struct custom* p;
  SEXP (*body)(void*);
  void* p_data;
};

static SEXP guarded_body(void* p_data) {
  const struct guarded* p = p_data;
  return R_withCallingErrorHandler(p->body, p->p_data, on_error, p->p);
}

/* A body that calls none of the user's functions itself: tapes word the errors
 * of theirs. */
static enum tb_status unwind_call(struct custom* p,
                                  SEXP (*body)(void*),
                                  void* p_data) {
  jmp_buf home;
  const void* p_top = vmaxget();
  if (setjmp(home) == 0) {
    R_UnwindProtect(body, p_data, on_jump, &home, p->token);
    vmaxset(p_top);
    return TB_STATUS_ok;
  }
  vmaxset(p_top);
  p->running = NULL;
  SEXP failed = Rf_install("failed");
  const bool is_error =
    Rf_asLogical(Rf_findVarInFrame(p->state, failed)) == TRUE;
  Rf_defineVar(failed, Rf_ScalarLogical(FALSE), p->state);
  p->jump = is_error ? TB_STATUS_callback : TB_STATUS_interrupted;
  return p->jump;
}

static enum tb_status protected_call(struct custom* p,
                                     SEXP (*body)(void*),
                                     void* p_data) {
  struct guarded guarded = { p, body, p_data };
  return unwind_call(p, guarded_body, &guarded);
}

/* The custom model below any frames, NULL where there is none. */
static struct custom* custom_of(SEXP model);

void ffi_continue(SEXP model) {
  struct custom* p = custom_of(model);
  if (p != NULL && p->jump != TB_STATUS_ok) {
    p->jump = TB_STATUS_ok;
    R_ContinueUnwind(p->token);
  }
}

void ffi_continue_interrupt(SEXP model) {
  struct custom* p = custom_of(model);
  if (p != NULL && p->jump == TB_STATUS_callback) {
    p->jump = TB_STATUS_ok;
  }
  ffi_continue(model);
}

/* n doubles, the value of a call; R/custom.R has checked it */
static const double* call_doubles(SEXP call, size_t n) {
  SEXP value = Rf_eval(call, R_GlobalEnv);
  return ffi_doubles(value, n, "the value of a user's function");
}

/* The value of a user's function at theta and, unless it is NULL, batch. */
static SEXP call_user(struct custom* p,
                      const char* name,
                      SEXP theta,
                      SEXP batch) {
  SEXP call = PROTECT(batch == NULL
                        ? Rf_lang2(Rf_install(name), theta)
                        : Rf_lang3(Rf_install(name), theta, batch));
  p->running = name;
  p->theta = theta;
  SEXP out = Rf_eval(call, p->functions);
  p->running = NULL;
  if (batch != NULL) {
    SETCADDR(call, R_NilValue); /* it counts as a reference: see ffi_batch() */
  }
  UNPROTECT(1);
  return out;
}

/* The n doubles that R/custom.R makes of a value without the plain form. */
static SEXP shaped(struct custom* p,
                   const char* name,
                   SEXP value,
                   size_t n_row,
                   size_t n,
                   SEXP theta) {
  PROTECT(value);
  SEXP kind = PROTECT(Rf_mkString(name));
  SEXP rows = PROTECT(Rf_ScalarReal((double) n_row));
  SEXP call = PROTECT(Rf_lang5(p->shape, kind, value, rows, theta));
  SEXP out = Rf_eval(call, R_GlobalEnv);
  ffi_doubles(out, n, "the value of a user's function");
  UNPROTECT(4);
  return out;
}

/* A vector of n doubles, whatever its attributes. */
static SEXP call_vector(struct custom* p,
                        const char* name,
                        SEXP theta,
                        SEXP batch,
                        size_t n) {
  SEXP out = call_user(p, name, theta, batch);
  return TYPEOF(out) == REALSXP && (size_t) Rf_xlength(out) == n
           ? out
           : shaped(p, name, out, n, n, theta);
}

/* Is it a matrix of so many rows and columns, or a vector that stands for one? */
static bool is_matrix(SEXP value, size_t n_row, size_t n_column) {
  SEXP dim = Rf_getAttrib(value, R_DimSymbol);
  if (TYPEOF(value) != REALSXP ||
      (size_t) Rf_xlength(value) != n_row * n_column) {
    return false;
  }
  return dim == R_NilValue
           ? n_row == 1 || n_column == 1
           : Rf_xlength(dim) == 2 && (size_t) INTEGER(dim)[0] == n_row;
}

/* A list as `init` whose elements have n_row numbers for each of theirs, one
 * after the other; NULL where it is anything else. */
static double* flat_list(const struct custom* p,
                         SEXP value,
                         size_t n_row,
                         size_t n) {
  SEXP names = Rf_getAttrib(value, R_NamesSymbol);
  SEXP wanted = Rf_getAttrib(p->init, R_NamesSymbol);
  if (TYPEOF(value) != VECSXP || TYPEOF(names) != STRSXP) {
    return NULL;
  }
  double* v_out = (double*) R_alloc(n + 1, sizeof(double));
  double* v_next = v_out;
  for (size_t k = 0; k < p->n_part; ++k) {
    const size_t n_part = n_row * p->v_part[k].n_natural;
    SEXP part = R_NilValue;
    for (R_xlen_t m = 0; m < Rf_xlength(names) && part == R_NilValue; ++m) {
      if (strcmp(CHAR(STRING_ELT(names, m)),
                 CHAR(STRING_ELT(wanted, (R_xlen_t) k))) == 0) {
        part = VECTOR_ELT(value, m);
      }
    }
    if (TYPEOF(part) != REALSXP || (size_t) Rf_xlength(part) != n_part) {
      return NULL;
    }
    memcpy(v_next, REAL(part), n_part * sizeof(double));
    v_next += n_part;
  }
  return v_out;
}

/* ------------------------------------------------- what the functions take */

/* x, R_alloc */
static double* natural_of(const struct custom* p, const double* v_free) {
  size_t n_natural = 0;
  for (size_t k = 0; k < p->n_part; ++k) {
    n_natural += p->v_part[k].n_natural;
  }
  double* v_natural = (double*) R_alloc(n_natural, sizeof(double));
  tb_transform_constrain(p->v_part, p->n_part, v_free, v_natural);
  return v_natural;
}

/* theta: the list `init` with other numbers */
static SEXP make_theta(const struct custom* p, const double* v_free) {
  const double* v_natural = natural_of(p, v_free);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t) p->n_part));
  SHALLOW_DUPLICATE_ATTRIB(out, p->init);
  for (size_t k = 0; k < p->n_part; ++k) {
    const size_t n = p->v_part[k].n_natural;
    SEXP one = Rf_allocVector(REALSXP, (R_xlen_t) n);
    SET_VECTOR_ELT(out, (R_xlen_t) k, one);
    memcpy(REAL(one), v_natural, n * sizeof(double));
    SHALLOW_DUPLICATE_ATTRIB(one, VECTOR_ELT(p->init, (R_xlen_t) k));
    v_natural += n;
  }
  UNPROTECT(1);
  return out;
}

/* The batch, in the form of the data. */
static SEXP make_batch(const struct custom* p,
                       size_t n_row,
                       const struct tb_batch* p_batch) {
  return ffi_batch(p->data, n_row, p->p_pack, p->batches, p_batch);
}

static SEXP make_weights(const struct tb_batch* p_batch) {
  SEXP out = Rf_allocVector(REALSXP, (R_xlen_t) p_batch->n_batch);
  double* v_out = REAL(out);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    v_out[k] = tb_batch_weight(p_batch, k);
  }
  return out;
}

/* ------------------------------------------------------------ log likelihood */

/* l_i of the rows of the batch; the caller protects what it keeps */
static SEXP call_log_lik(struct custom* p,
                         const double* v_theta,
                         SEXP batch,
                         size_t n_batch) {
  SEXP theta = PROTECT(make_theta(p, v_theta));
  SEXP out = call_vector(p, "log_lik", theta, batch, n_batch);
  UNPROTECT(1);
  return out;
}

/* ------------------------------------------------------------------ gradients */

/* h of a central difference: the rounding error of the difference and the
 * third derivative's share are about equal */
static double difference_step(double y) {
  return cbrt(2.2e-16) * fmax(1, fabs(y));
}

/* v_out (n) := (f(y + h e_j) - f(y - h e_j)) / 2h of the log likelihoods */
static void difference_log_lik(struct custom* p,
                               double* v_at,
                               size_t j,
                               SEXP batch,
                               size_t n,
                               double* v_out) {
  const double y = v_at[j], h = difference_step(y);
  v_at[j] = y + h;
  SEXP above = PROTECT(call_log_lik(p, v_at, batch, n));
  v_at[j] = y - h;
  SEXP below = PROTECT(call_log_lik(p, v_at, batch, n));
  v_at[j] = y;
  const double *v_above = REAL(above), *v_below = REAL(below);
  for (size_t k = 0; k < n; ++k) {
    v_out[k] = (v_above[k] - v_below[k]) / (2 * h);
  }
  UNPROTECT(2);
}

static double* copy_point(const double* v_theta, size_t n_dim) {
  double* v_at = (double*) R_alloc(n_dim, sizeof(double));
  memcpy(v_at, v_theta, n_dim * sizeof(double));
  return v_at;
}

/* sum(theta, batch, c) in the natural parameters */
static const double* call_sum(const struct tb_model* p_model,
                              SEXP theta,
                              SEXP batch,
                              SEXP weights) {
  const struct custom* p = p_model->p_self;
  SEXP call = PROTECT(Rf_lang4(p->sum, theta, batch, weights));
  const double* v = call_doubles(call, p_model->n_natural);
  UNPROTECT(1);
  return v;
}

/* n x n_natural by columns, the user's gradients of rows */
static const double* call_rows(const struct tb_model* p_model,
                               SEXP theta,
                               SEXP batch,
                               size_t n) {
  struct custom* p = p_model->p_self;
  const size_t n_natural = p_model->n_natural;
  SEXP value = PROTECT(call_user(p, "grad_log_lik", theta, batch));
  const double* v_out = is_matrix(value, n, n_natural)
                          ? REAL(value)
                          : flat_list(p, value, n, n * n_natural);
  if (v_out == NULL) {
    v_out =
      REAL(shaped(p, "grad_log_lik", value, n, n * n_natural, theta));
  }
  UNPROTECT(1);
  return v_out;
}

/* v_sum (n_dim) += sign sum_k c_k g_k(y) */
static void add_sum(const struct tb_model* p_model,
                    const double* v_theta,
                    const struct tb_batch* p_batch,
                    SEXP batch,
                    SEXP weights,
                    double sign,
                    double* v_sum) {
  struct custom* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n = p_batch->n_batch;
  const double* v_weight = REAL(weights);
  if (p->rows == R_NilValue) {
    double* v_at = copy_point(v_theta, n_dim);
    double* v_slope = (double*) R_alloc(n, sizeof(double));
    for (size_t j = 0; j < n_dim; ++j) {
      difference_log_lik(p, v_at, j, batch, n, v_slope);
      for (size_t k = 0; k < n; ++k) {
        v_sum[j] += sign * v_weight[k] * v_slope[k];
      }
    }
    return;
  }
  double* v_natural = (double*) R_alloc(p_model->n_natural, sizeof(double));
  double* v_pulled = (double*) R_alloc(n_dim, sizeof(double));
  SEXP theta = PROTECT(make_theta(p, v_theta));
  if (p->sum != R_NilValue) {
    memcpy(v_natural, call_sum(p_model, theta, batch, weights),
           p_model->n_natural * sizeof(double));
  } else {
    const double* v_row = call_rows(p_model, theta, batch, n);
    tb_column_sums(v_row, n, p_model->n_natural, v_weight, v_natural);
  }
  tb_transform_pull(p->v_part, p->n_part, v_theta, v_natural, v_pulled);
  for (size_t j = 0; j < n_dim; ++j) {
    v_sum[j] += sign * v_pulled[j];
  }
  UNPROTECT(1);
}

/* v_row (n x n_dim, row-major) += sign g_k(y); tapes do not read batch */
static void add_rows(const struct tb_model* p_model,
                     const double* v_theta,
                     const struct tb_batch* p_batch,
                     SEXP batch,
                     double sign,
                     double* v_row) {
  struct custom* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim, n = p_batch->n_batch;
  const size_t n_natural = p_model->n_natural;
  if (p->p_tape != NULL) {
    const double* v_x = natural_of(p, v_theta);
    double* v_natural = (double*) R_alloc(n_natural, sizeof(double));
    double* v_pulled = (double*) R_alloc(n_dim, sizeof(double));
    for (size_t k = 0; k < n; ++k) {
      tapes_row(p->p_tape, p_batch, k, v_x, v_natural);
      tb_transform_pull(p->v_part, p->n_part, v_theta, v_natural, v_pulled);
      for (size_t j = 0; j < n_dim; ++j) {
        v_row[k * n_dim + j] += sign * v_pulled[j];
      }
    }
    return;
  }
  if (p->rows == R_NilValue) {
    double* v_at = copy_point(v_theta, n_dim);
    double* v_slope = (double*) R_alloc(n, sizeof(double));
    for (size_t j = 0; j < n_dim; ++j) {
      difference_log_lik(p, v_at, j, batch, n, v_slope);
      for (size_t k = 0; k < n; ++k) {
        v_row[k * n_dim + j] += sign * v_slope[k];
      }
    }
    return;
  }
  double* v_natural = (double*) R_alloc(n_natural, sizeof(double));
  double* v_pulled = (double*) R_alloc(n_dim, sizeof(double));
  SEXP theta = PROTECT(make_theta(p, v_theta));
  const double* v_all = call_rows(p_model, theta, batch, n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < n_natural; ++j) {
      v_natural[j] = v_all[j * n + k];
    }
    tb_transform_pull(p->v_part, p->n_part, v_theta, v_natural, v_pulled);
    for (size_t j = 0; j < n_dim; ++j) {
      v_row[k * n_dim + j] += sign * v_pulled[j];
    }
  }
  UNPROTECT(1);
}

/* Both, of a_k = g_k(y) or g_k(y) - g_k(reference), into zeroed arrays. */
struct request {
  const struct tb_model* p_model;
  const double* v_theta;
  const struct tb_batch* p_batch;
  const struct tb_reference* p_reference;
  const struct tb_sums* p_sums; /* NULL: rows are wanted */
  double* v_row;
  double* v_out;                /* log likelihoods, or the prior's gradient */
  double* p_log_density;
};

static double* zeros(size_t n) {
  double* v = (double*) R_alloc(n + 1, sizeof(double));
  memset(v, 0, n * sizeof(double));
  return v;
}

/* a_k of every row */
static void take_rows(const struct request* p_r, SEXP batch, double* v_row) {
  add_rows(p_r->p_model, p_r->v_theta, p_r->p_batch, batch, 1, v_row);
  if (p_r->p_reference != NULL) {
    add_rows(
      p_r->p_model, p_r->p_reference->v_theta, p_r->p_batch, batch, -1, v_row);
  }
}

/* v_sum (n_dim) += sum_k c_k a_k by a tape */
static void add_sum_of_tape(const struct request* p_r, double* v_sum) {
  const struct custom* p = p_r->p_model->p_self;
  const size_t n_dim = p_r->p_model->n_dim;
  const size_t n_natural = p_r->p_model->n_natural;
  const double* v_y[2] = { p_r->v_theta, NULL };
  const double *v_x = natural_of(p, p_r->v_theta), *v_other = NULL;
  double* v_natural = (double*) R_alloc(2 * n_natural, sizeof(double));
  double* v_pulled = (double*) R_alloc(n_dim, sizeof(double));
  if (p_r->p_reference != NULL) {
    v_y[1] = p_r->p_reference->v_theta;
    v_other = natural_of(p, v_y[1]);
  }
  tapes_sum_two(
    p->p_tape, p_r->p_batch, v_x, v_natural, v_other, v_natural + n_natural);
  for (size_t m = 0; m < 2 && v_y[m] != NULL; ++m) {
    const double sign = m == 0 ? 1 : -1;
    tb_transform_pull(
      p->v_part, p->n_part, v_y[m], v_natural + m * n_natural, v_pulled);
    for (size_t j = 0; j < n_dim; ++j) {
      v_sum[j] += sign * v_pulled[j];
    }
  }
}

/* Some of the n numbers that a user's function gave, or their derivatives, are
 * none, although theta is finite: R/custom.R notes which function, and where. */
static void note_undefined(struct custom* p,
                           const char* name,
                           const double* v,
                           size_t n,
                           const double* v_theta,
                           size_t n_dim) {
  bool is_undefined = false;
  for (size_t j = 0; j < n; ++j) {
    is_undefined = is_undefined || isnan(v[j]);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    is_undefined = is_undefined && isfinite(v_theta[j]);
  }
  if (is_undefined) {
    SEXP theta = PROTECT(make_theta(p, v_theta));
    SEXP what = PROTECT(Rf_mkString(name));
    SEXP call = PROTECT(Rf_lang3(p->undefined, what, theta));
    Rf_eval(call, R_GlobalEnv);
    UNPROTECT(3);
  }
}

/* the user's function that gradients of rows come from */
static const char* likelihood_name(const struct custom* p) {
  return p->rows == R_NilValue || p->sum != R_NilValue ? "log_lik"
                                                       : "grad_log_lik";
}

/* Results are added only once nothing can fail any more. */
static SEXP gradient_body(void* p_data) {
  const struct request* p_r = p_data;
  const struct tb_model* p_model = p_r->p_model;
  struct custom* p = p_model->p_self;
  const struct tb_sums* p_sums = p_r->p_sums;
  const size_t n_dim = p_model->n_dim, n = p_r->p_batch->n_batch;
  SEXP batch = R_NilValue;
  if (p->p_tape == NULL || p_sums->p_log_lik != NULL) {
    batch = make_batch(p, p_model->n_data, p_r->p_batch);
  }
  PROTECT(batch);
  SEXP weights = PROTECT(make_weights(p_r->p_batch));
  const double* v_weight = REAL(weights);
  double *v_sum = zeros(n_dim), *v_square = NULL, log_lik = 0;

  if (p_sums->v_square != NULL) {
    double* v_row = zeros(n * n_dim);
    v_square = zeros(n_dim);
    take_rows(p_r, batch, v_row);
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n_dim; ++j) {
        const double a = v_weight[k] * v_row[k * n_dim + j];
        v_sum[j] += a;
        v_square[j] += a * a;
      }
    }
  } else if (p_sums->v_gradient != NULL && p->p_tape != NULL) {
    add_sum_of_tape(p_r, v_sum);
  } else if (p_sums->v_gradient != NULL) {
    add_sum(p_model, p_r->v_theta, p_r->p_batch, batch, weights, 1, v_sum);
    if (p_r->p_reference != NULL) {
      add_sum(p_model, p_r->p_reference->v_theta, p_r->p_batch, batch, weights,
              -1, v_sum);
    }
  }
  note_undefined(p, likelihood_name(p), v_sum, n_dim, p_r->v_theta, n_dim);
  if (p_sums->p_log_lik != NULL) {
    const double* v_value = REAL(call_log_lik(p, p_r->v_theta, batch, n));
    for (size_t k = 0; k < n; ++k) {
      log_lik += v_weight[k] * v_value[k];
    }
    note_undefined(p, "log_lik", &log_lik, 1, p_r->v_theta, n_dim);
    *p_sums->p_log_lik += log_lik;
  }
  for (size_t j = 0; p_sums->v_gradient != NULL && j < n_dim; ++j) {
    p_sums->v_gradient[j] += v_sum[j];
  }
  for (size_t j = 0; v_square != NULL && j < n_dim; ++j) {
    p_sums->v_square[j] += v_square[j];
  }
  UNPROTECT(2);
  return R_NilValue;
}

static enum tb_status custom_gradient(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      const struct tb_sums* p_sums) {
  struct request request = { .p_model = p_model,
                             .v_theta = v_theta,
                             .p_batch = p_batch,
                             .p_reference = p_reference,
                             .p_sums = p_sums };
  struct custom* p = p_model->p_self;
  (void) p_work;
  if (p_batch->n_batch == 0) {
    return TB_STATUS_ok;
  }
  return p->p_tape != NULL && p_sums->p_log_lik == NULL
           ? unwind_call(p, gradient_body, &request)
           : protected_call(p, gradient_body, &request);
}

static SEXP square_norms_body(void* p_data) {
  const struct request* p_r = p_data;
  const size_t n_dim = p_r->p_model->n_dim, n = p_r->p_batch->n_batch;
  const struct custom* p = p_r->p_model->p_self;
  SEXP batch = R_NilValue;
  if (p->p_tape == NULL) {
    batch = make_batch(p, p_r->p_model->n_data, p_r->p_batch);
  }
  PROTECT(batch);
  double* v_row = zeros(n * n_dim);
  take_rows(p_r, batch, v_row);
  for (size_t k = 0; k < n; ++k) {
    p_r->v_row[k] = 0;
    for (size_t j = 0; j < n_dim; ++j) {
      const double a = v_row[k * n_dim + j];
      p_r->v_row[k] += a * a;
      if (p_r->v_out != NULL) {
        p_r->v_out[j] += a;
      }
    }
  }
  UNPROTECT(1);
  return R_NilValue;
}

static enum tb_status custom_square_norms(const struct tb_model* p_model,
                                          const struct tb_workspace* p_work,
                                          const double* v_theta,
                                          const struct tb_batch* p_batch,
                                          const struct tb_reference* p_reference,
                                          double* v_square,
                                          double* v_sum) {
  struct request request = { .p_model = p_model,
                             .v_theta = v_theta,
                             .p_batch = p_batch,
                             .p_reference = p_reference,
                             .v_row = v_square,
                             .v_out = v_sum };
  (void) p_work;
  return protected_call(p_model->p_self, square_norms_body, &request);
}

static SEXP row_gradients_body(void* p_data) {
  const struct request* p_r = p_data;
  SEXP batch = R_NilValue;
  const struct custom* p = p_r->p_model->p_self;
  if (p->p_tape == NULL) {
    batch = make_batch(p, p_r->p_model->n_data, p_r->p_batch);
  }
  PROTECT(batch);
  const size_t n = p_r->p_batch->n_batch * p_r->p_model->n_dim;
  double* v_row = zeros(n);
  take_rows(p_r, batch, v_row);
  note_undefined(p_r->p_model->p_self, likelihood_name(p), v_row, n,
                 p_r->v_theta, p_r->p_model->n_dim);
  memcpy(p_r->v_row, v_row, n * sizeof(double));
  UNPROTECT(1);
  return R_NilValue;
}

static enum tb_status custom_row_gradients(const struct tb_model* p_model,
                                           const struct tb_workspace* p_work,
                                           const double* v_theta,
                                           const struct tb_batch* p_batch,
                                           double* v_row) {
  struct request request = { .p_model = p_model,
                             .v_theta = v_theta,
                             .p_batch = p_batch,
                             .v_row = v_row };
  (void) p_work;
  return protected_call(p_model->p_self, row_gradients_body, &request);
}

/* ----------------------------------------------------------- the other slots */

static double call_log_prior(struct custom* p, const double* v_theta) {
  SEXP theta = PROTECT(make_theta(p, v_theta));
  SEXP value = call_vector(p, "log_prior", theta, NULL, 1);
  UNPROTECT(1);
  return REAL(value)[0];
}

/* n_natural numbers, the user's gradient of the prior */
static const double* call_prior_gradient(struct custom* p,
                                         SEXP theta,
                                         size_t n) {
  const char* name = "grad_log_prior";
  SEXP value = PROTECT(call_user(p, name, theta, NULL));
  const double* v_out = TYPEOF(value) == REALSXP && (size_t) Rf_xlength(value) == n
                          ? REAL(value)
                          : flat_list(p, value, 1, n);
  if (v_out == NULL) {
    v_out = REAL(shaped(p, name, value, n, n, theta));
  }
  UNPROTECT(1);
  return v_out;
}

static SEXP prior_body(void* p_data) {
  const struct request* p_r = p_data;
  const struct tb_model* p_model = p_r->p_model;
  struct custom* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  double* v_gradient = (double*) R_alloc(n_dim, sizeof(double));
  if (p->prior_gradient != R_NilValue) {
    SEXP theta = PROTECT(make_theta(p, p_r->v_theta));
    tb_transform_pull(p->v_part, p->n_part, p_r->v_theta,
                      call_prior_gradient(p, theta, p_model->n_natural),
                      v_gradient);
    UNPROTECT(1);
  } else if (p->p_prior_tape != NULL) {
    const struct tb_batch once = { .n_batch = 1, .weight = 1 };
    double* v_natural =
      (double*) R_alloc(p_model->n_natural, sizeof(double));
    tapes_sum(
      p->p_prior_tape, &once, natural_of(p, p_r->v_theta), v_natural);
    tb_transform_pull(
      p->v_part, p->n_part, p_r->v_theta, v_natural, v_gradient);
  } else {
    double* v_at = copy_point(p_r->v_theta, n_dim);
    for (size_t j = 0; j < n_dim; ++j) {
      const double y = v_at[j], h = difference_step(y);
      v_at[j] = y + h;
      const double above = call_log_prior(p, v_at);
      v_at[j] = y - h;
      v_gradient[j] = (above - call_log_prior(p, v_at)) / (2 * h);
      v_at[j] = y;
    }
  }
  note_undefined(
    p, p->prior_gradient == R_NilValue ? "log_prior" : "grad_log_prior",
    v_gradient, n_dim, p_r->v_theta, n_dim);
  tb_transform_add_jacobian(p->v_part, p->n_part, p_r->v_theta, v_gradient);
  if (p_r->p_log_density != NULL) {
    double* v_natural =
      (double*) R_alloc(p_model->n_natural, sizeof(double));
    const double log_prior = call_log_prior(p, p_r->v_theta);
    note_undefined(p, "log_prior", &log_prior, 1, p_r->v_theta, n_dim);
    *p_r->p_log_density +=
      log_prior +
      tb_transform_constrain(p->v_part, p->n_part, p_r->v_theta, v_natural);
  }
  memcpy(p_r->v_out, v_gradient, n_dim * sizeof(double));
  return R_NilValue;
}

static enum tb_status custom_prior(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_prior) {
  struct request request = { .p_model = p_model,
                             .v_theta = v_theta,
                             .v_out = v_gradient,
                             .p_log_density = p_log_prior };
  struct custom* p = p_model->p_self;
  (void) p_work;
  return p->p_prior_tape != NULL && p_log_prior == NULL
           ? unwind_call(p, prior_body, &request)
           : protected_call(p, prior_body, &request);
}

static SEXP log_lik_body(void* p_data) {
  const struct request* p_r = p_data;
  struct custom* p = p_r->p_model->p_self;
  const size_t n = p_r->p_batch->n_batch;
  SEXP batch = PROTECT(make_batch(p, p_r->p_model->n_data, p_r->p_batch));
  SEXP value = call_log_lik(p, p_r->v_theta, batch, n);
  memcpy(p_r->v_out, REAL(value), n * sizeof(double));
  UNPROTECT(1);
  return R_NilValue;
}

static enum tb_status custom_log_lik(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     double* v_out) {
  struct request request = { .p_model = p_model,
                             .v_theta = v_theta,
                             .p_batch = p_batch,
                             .v_out = v_out };
  (void) p_work;
  return protected_call(p_model->p_self, log_lik_body, &request);
}

/* The gradient of the log posterior over the rows of the batch, SET. */
static enum tb_status posterior_gradient(const struct tb_model* p_model,
                                         const double* v_theta,
                                         const struct tb_batch* p_batch,
                                         double* p_log_posterior,
                                         double* v_gradient) {
  const struct tb_sums sums = { .v_gradient = v_gradient,
                                .p_log_lik = p_log_posterior };
  const enum tb_status status =
    custom_prior(p_model, NULL, v_theta, v_gradient, p_log_posterior);
  return status != TB_STATUS_ok
           ? status
           : custom_gradient(p_model, NULL, v_theta, p_batch, NULL, &sums);
}

/* -Hessian by central differences of the gradient, made symmetric: 2 n_dim
 * more passes over the rows. */
static enum tb_status custom_curvature(const struct tb_model* p_model,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       const double* v_round,
                                       double* p_log_posterior,
                                       double* v_gradient,
                                       double* v_hessian,
                                       int n_threads) {
  const size_t n = p_model->n_dim;
  (void) v_round; /* of Laplace priors, which this model does not know */
  (void) n_threads;
  double* v_at = malloc(3 * n * sizeof(double));
  if (v_at == NULL) {
    return TB_STATUS_memory;
  }
  double *v_above = v_at + n, *v_below = v_above + n;
  memcpy(v_at, v_theta, n * sizeof(double));
  *p_log_posterior = 0;
  enum tb_status status = posterior_gradient(
    p_model, v_theta, p_batch, p_log_posterior, v_gradient);
  for (size_t j = 0; j < n && status == TB_STATUS_ok; ++j) {
    const double y = v_at[j], h = 10 * difference_step(y);
    v_at[j] = y + h;
    status = posterior_gradient(p_model, v_at, p_batch, NULL, v_above);
    if (status == TB_STATUS_ok) {
      v_at[j] = y - h;
      status = posterior_gradient(p_model, v_at, p_batch, NULL, v_below);
    }
    v_at[j] = y;
    for (size_t k = 0; k < n && status == TB_STATUS_ok; ++k) {
      v_hessian[j * n + k] = (v_below[k] - v_above[k]) / (2 * h);
    }
  }
  for (size_t j = 0; j < n && status == TB_STATUS_ok; ++j) {
    for (size_t k = 0; k < j; ++k) {
      const double mean = 0.5 * (v_hessian[j * n + k] + v_hessian[k * n + j]);
      v_hessian[j * n + k] = v_hessian[k * n + j] = mean;
    }
  }
  free(v_at);
  return status;
}

static void custom_constrain(const struct tb_model* p_model,
                             const double* v_theta,
                             double* v_natural) {
  const struct custom* p = p_model->p_self;
  tb_transform_constrain(p->v_part, p->n_part, v_theta, v_natural);
}

static size_t custom_memory(const struct tb_model* p_model) {
  const struct custom* p = p_model->p_self;
  return (size_t) p->n_byte + ffi_pack_memory(p->p_pack);
}

static void custom_destroy(struct tb_model* p_model) {
  struct custom* p = p_model->p_self;
  if (p != NULL) {
    tapes_free(p->p_tape);
    tapes_free(p->p_prior_tape);
    ffi_pack_destroy(p->p_pack);
    free(p->v_part);
    free(p);
    p_model->p_self = NULL;
  }
}

static const struct tb_model_type tb_model_custom = {
  .name = "custom",
  .citation = "",
  .flags = TB_MODEL_MAIN_THREAD,
  .destroy = custom_destroy,
  .prior = custom_prior,
  .gradient = custom_gradient,
  .log_lik = custom_log_lik,
  .square_norms = custom_square_norms,
  .row_gradients = custom_row_gradients,
  .constrain = custom_constrain,
  .memory = custom_memory,
};

/* No other model calls R, but a frame does what its model does, and protects
 * the pointer of it. */
static struct custom* custom_of(SEXP model) {
  const struct tb_model* p_model = ffi_model(model);
  if (!(p_model->type->flags & TB_MODEL_MAIN_THREAD)) {
    return NULL;
  }
  while (p_model->type->destroy != custom_destroy) {
    model = R_ExternalPtrProtected(model);
    p_model = ffi_model(model);
  }
  return p_model->p_self;
}

/* What ffi_model_custom() was given. */
SEXP ffi_custom_spec(SEXP model) {
  struct custom* p = custom_of(model);
  if (p == NULL) {
    ffi_fault("a model that is not custom");
  }
  return p->spec;
}

static void bind(SEXP functions, const char* name, SEXP spec, const char* from) {
  Rf_defineVar(Rf_install(name), ffi_element(spec, from), functions);
}

/* Do the kinds and sizes of the parts belong together? */
static void check_parts(SEXP init, const double* v_kind, const double* v_free) {
  if (TYPEOF(init) != VECSXP) {
    ffi_fault("init");
  }
  for (R_xlen_t k = 0; k < Rf_xlength(init); ++k) {
    if (!(v_kind[k] >= 0) || v_kind[k] >= TB_TRANSFORM_count) {
      ffi_fault("kind");
    }
    const double n_natural = (double) Rf_xlength(VECTOR_ELT(init, k));
    const bool is_simplex = (int) v_kind[k] == TB_TRANSFORM_simplex;
    if (v_free[k] != n_natural - is_simplex) {
      ffi_fault("n_free");
    }
  }
}

/* spec: list(n_data, data, init, kind, n_free, hash, n_byte, state, log_lik,
 * rows, sum, log_prior, prior_gradient, tape, prior_tape, fail, shape),
 * functions, tapes or NULL, as R/custom.R makes it. Pointer, or the status as an
 * integer. */
SEXP ffi_model_custom(SEXP spec) {
  SEXP init = ffi_element(spec, "init");
  const size_t n_part = (size_t) Rf_xlength(init);
  const double* v_kind =
    ffi_some_doubles(ffi_element(spec, "kind"), n_part, "kind");
  const double* v_free =
    ffi_some_doubles(ffi_element(spec, "n_free"), n_part, "n_free");
  const size_t n_data = ffi_count(spec, "n_data");
  check_parts(init, v_kind, v_free);
  if (n_data > 0) {
    ffi_batch_check(ffi_element(spec, "data"), n_data);
  }
  const double n_byte = ffi_number(spec, "n_byte");
  SEXP hash = ffi_element(spec, "hash");
  const double* v_hash =
    ffi_doubles(hash, (size_t) Rf_xlength(hash), "hash");

  SEXP ptr = PROTECT(ffi_model_pointer());
  SEXP token = PROTECT(R_MakeUnwindCont());
  SEXP batches = PROTECT(Rf_allocVector(VECSXP, 2));
  SEXP functions = PROTECT(R_NewEnv(R_GlobalEnv, FALSE, 0));
  R_SetExternalPtrProtected(ptr, Rf_list4(spec, token, batches, functions));
  bind(functions, "log_lik", spec, "log_lik");
  bind(functions, "grad_log_lik", spec, "rows");
  bind(functions, "log_prior", spec, "log_prior");
  bind(functions, "grad_log_prior", spec, "prior_gradient");
  struct tb_model* p_model = ffi_model_attach(ptr);
  struct custom* p = calloc(1, sizeof(*p));
  struct tb_transform_part* v_part = calloc(n_part, sizeof(*v_part));
  if (p_model == NULL || p == NULL || v_part == NULL) {
    free(p);
    free(v_part);
    UNPROTECT(4);
    return Rf_ScalarInteger(TB_STATUS_memory);
  }
  *p = (struct custom){
    .type = tb_model_custom,
    .n_part = n_part,
    .v_part = v_part,
    .n_byte = n_byte,
    .token = token,
    .spec = spec,
    .state = ffi_element(spec, "state"),
    .data = ffi_element(spec, "data"),
    .batches = batches,
    .functions = functions,
    .init = init,
    .rows = ffi_element(spec, "rows"),
    .sum = ffi_element(spec, "sum"),
    .prior_gradient = ffi_element(spec, "prior_gradient"),
    .fail = ffi_element(spec, "fail"),
    .shape = ffi_element(spec, "shape"),
    .undefined = ffi_element(spec, "undefined")
  };
  p_model->type = &p->type;
  p_model->p_self = p;
  p_model->n_data = n_data;
  for (size_t k = 0; k < n_part; ++k) {
    v_part[k] = (struct tb_transform_part){
      .kind = (enum tb_transform) v_kind[k],
      .n_natural = (size_t) Rf_xlength(VECTOR_ELT(init, (R_xlen_t) k)),
      .n_free = (size_t) v_free[k]
    };
    p_model->n_dim += v_part[k].n_free;
    p_model->n_natural += v_part[k].n_natural;
  }
  if (p_model->n_dim <= MAX_CURVATURE) {
    p->type.curvature = custom_curvature;
  }
  p_model->fingerprint =
    tb_hash_doubles(n_data, v_hash, (size_t) Rf_xlength(hash));
  SEXP tape = ffi_element(spec, "tape");
  SEXP prior_tape = ffi_element(spec, "prior_tape");
  const bool has_pack = ffi_pack_create(p->data, n_data, &p->p_pack);
  if (tape != R_NilValue) {
    p->p_tape =
      tapes_new(tape, p->data, p->p_pack, n_data, p_model->n_natural);
  }
  if (prior_tape != R_NilValue) {
    p->p_prior_tape =
      tapes_new(prior_tape, R_NilValue, NULL, 1, p_model->n_natural);
  }
  UNPROTECT(4);
  const bool has_all = has_pack && (tape == R_NilValue || p->p_tape != NULL) &&
                       (prior_tape == R_NilValue || p->p_prior_tape != NULL);
  return has_all ? ptr : Rf_ScalarInteger(TB_STATUS_memory);
}
