/* Gradients of rows, and their sums, of a model whose functions are R's. */
#include "base/norm.h"
#include "ffi/custom-inside.h"

#include <math.h>
#include <string.h>

/* Is it a matrix of so many rows and columns, or a vector that stands for one?
 */
static bool is_matrix(SEXP value, size_t n_row, size_t n_column) {
  SEXP dim = Rf_getAttrib(value, R_DimSymbol);
  if (TYPEOF(value) != REALSXP ||
      (size_t)Rf_xlength(value) != n_row * n_column) {
    return false;
  }
  return dim == R_NilValue
             ? n_row == 1 || n_column == 1
             : Rf_xlength(dim) == 2 && (size_t)INTEGER(dim)[0] == n_row;
}

/* c_k w_k */
static SEXP make_weights(const struct custom* p,
                         const struct tb_batch* p_batch) {
  SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)p_batch->n_batch);
  double* v_out = REAL(out);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    v_out[k] = tb_batch_weight(p_batch, k) * custom_weight(p, p_batch, k);
  }
  return out;
}

/* n doubles, the value of a call; R/model-custom-engine.R has checked it */
static const double* custom_doubles(SEXP call, size_t n) {
  SEXP value = Rf_eval(call, R_GlobalEnv);
  return ffi_doubles(value, n, "the value of a user's function");
}

/* v_out (n) := (f(y + h e_j) - f(y - h e_j)) / 2h of the log likelihoods */
static void difference_log_lik(struct custom* p,
                               double* v_at,
                               size_t j,
                               SEXP batch,
                               size_t n,
                               double* v_out) {
  const double y = v_at[j], h = custom_difference_step(y);
  v_at[j] = y + h;
  SEXP above = PROTECT(custom_call_log_lik(p, v_at, batch, n));
  v_at[j] = y - h;
  SEXP below = PROTECT(custom_call_log_lik(p, v_at, batch, n));
  v_at[j] = y;
  const double *v_above = REAL(above), *v_below = REAL(below);
  for (size_t k = 0; k < n; ++k) {
    v_out[k] = (v_above[k] - v_below[k]) / (2 * h);
  }
  UNPROTECT(2);
}

/* sum(theta, batch, c, first) in the natural parameters; first: the number of
 * the first row, from 1, of a block of a pass over all rows, which comes again;
 * 0: of other batches */
static const double* call_sum(const struct tb_model* p_model,
                              SEXP theta,
                              const struct tb_batch* p_batch,
                              SEXP batch,
                              SEXP weights) {
  const struct custom* p = p_model->p_self;
  const double row = p_batch->v_index == NULL ? (double)p_batch->start + 1 : 0;
  SEXP first = PROTECT(Rf_ScalarReal(row));
  SEXP call = PROTECT(Rf_lang5(p->sum, theta, batch, weights, first));
  const double* v = custom_doubles(call, p_model->n_natural);
  UNPROTECT(2);
  return v;
}

/* n x n_natural by columns, the user's gradients of rows */
static const double*
call_rows(const struct tb_model* p_model, SEXP theta, SEXP batch, size_t n) {
  struct custom* p = p_model->p_self;
  const size_t n_natural = p_model->n_natural;
  SEXP value = PROTECT(custom_call(p, "grad_log_lik", theta, batch));
  const double* v_out = is_matrix(value, n, n_natural)
                            ? REAL(value)
                            : custom_flat_list(p, value, n, n * n_natural);
  if (v_out == NULL) {
    v_out =
        REAL(custom_shaped(p, "grad_log_lik", value, n, n * n_natural, theta));
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
    double* v_at = custom_copy_point(v_theta, n_dim);
    double* v_slope = (double*)R_alloc(n, sizeof(double));
    for (size_t j = 0; j < n_dim; ++j) {
      difference_log_lik(p, v_at, j, batch, n, v_slope);
      for (size_t k = 0; k < n; ++k) {
        v_sum[j] += sign * v_weight[k] * v_slope[k];
      }
    }
    return;
  }
  double* v_natural = (double*)R_alloc(p_model->n_natural, sizeof(double));
  double* v_pulled = (double*)R_alloc(n_dim, sizeof(double));
  SEXP theta = PROTECT(custom_theta(p, v_theta));
  if (p->sum != R_NilValue) {
    memcpy(v_natural,
           call_sum(p_model, theta, p_batch, batch, weights),
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
    const double* v_x = custom_natural(p, v_theta);
    double* v_natural = (double*)R_alloc(n_natural, sizeof(double));
    double* v_pulled = (double*)R_alloc(n_dim, sizeof(double));
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
    double* v_at = custom_copy_point(v_theta, n_dim);
    double* v_slope = (double*)R_alloc(n, sizeof(double));
    for (size_t j = 0; j < n_dim; ++j) {
      difference_log_lik(p, v_at, j, batch, n, v_slope);
      for (size_t k = 0; k < n; ++k) {
        v_row[k * n_dim + j] += sign * v_slope[k];
      }
    }
    return;
  }
  double* v_natural = (double*)R_alloc(n_natural, sizeof(double));
  double* v_pulled = (double*)R_alloc(n_dim, sizeof(double));
  SEXP theta = PROTECT(custom_theta(p, v_theta));
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

static double* zeros(size_t n) {
  double* v = (double*)R_alloc(n + 1, sizeof(double));
  memset(v, 0, n * sizeof(double));
  return v;
}

/* a_k of every row */
static void
take_rows(const struct custom_request* p_r, SEXP batch, double* v_row) {
  add_rows(p_r->p_model, p_r->v_theta, p_r->p_batch, batch, 1, v_row);
  if (p_r->p_reference != NULL) {
    add_rows(p_r->p_model,
             p_r->p_reference->v_theta,
             p_r->p_batch,
             batch,
             -1,
             v_row);
  }
}

/* v_sum (n_dim) += sum_k c_k a_k by a tape */
static void add_sum_of_tape(const struct custom_request* p_r, double* v_sum) {
  const struct custom* p = p_r->p_model->p_self;
  const size_t n_dim = p_r->p_model->n_dim;
  const size_t n_natural = p_r->p_model->n_natural;
  const double* v_y[2] = {p_r->v_theta, NULL};
  const double *v_x = custom_natural(p, p_r->v_theta), *v_other = NULL;
  double* v_natural = (double*)R_alloc(2 * n_natural, sizeof(double));
  double* v_pulled = (double*)R_alloc(n_dim, sizeof(double));
  if (p_r->p_reference != NULL) {
    v_y[1] = p_r->p_reference->v_theta;
    v_other = custom_natural(p, v_y[1]);
  }
  tapes_sum_two(p->p_tape,
                p_r->p_batch,
                v_x,
                v_natural,
                v_other,
                v_natural + n_natural);
  for (size_t m = 0; m < 2 && v_y[m] != NULL; ++m) {
    const double sign = m == 0 ? 1 : -1;
    tb_transform_pull(p->v_part,
                      p->n_part,
                      v_y[m],
                      v_natural + m * n_natural,
                      v_pulled);
    for (size_t j = 0; j < n_dim; ++j) {
      v_sum[j] += sign * v_pulled[j];
    }
  }
}

/* the user's function that gradients of rows come from */
static const char* likelihood_name(const struct custom* p) {
  return p->rows == R_NilValue || p->sum != R_NilValue ? "log_lik"
                                                       : "grad_log_lik";
}

/* Results are added only once nothing can fail any more. */
static SEXP gradient_body(void* p_data) {
  const struct custom_request* p_r = p_data;
  const struct tb_model* p_model = p_r->p_model;
  struct custom* p = p_model->p_self;
  const struct tb_sums* p_sums = p_r->p_sums;
  const size_t n_dim = p_model->n_dim, n = p_r->p_batch->n_batch;
  SEXP batch = R_NilValue;
  if (p->p_tape == NULL || p_sums->p_log_lik != NULL) {
    batch = custom_batch(p, p_model->n_data, p_r->p_batch);
  }
  PROTECT(batch);
  SEXP weights = PROTECT(make_weights(p, p_r->p_batch));
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
      add_sum(p_model,
              p_r->p_reference->v_theta,
              p_r->p_batch,
              batch,
              weights,
              -1,
              v_sum);
    }
  }
  custom_note_undefined(p,
                        likelihood_name(p),
                        v_sum,
                        n_dim,
                        p_r->v_theta,
                        n_dim);
  if (p_sums->p_log_lik != NULL) {
    const double* v_value =
        REAL(custom_call_log_lik(p, p_r->v_theta, batch, n));
    for (size_t k = 0; k < n; ++k) {
      log_lik += v_weight[k] * v_value[k];
    }
    custom_note_undefined(p, "log_lik", &log_lik, 1, p_r->v_theta, n_dim);
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

enum tb_status custom_gradient(const struct tb_model* p_model,
                               const struct tb_workspace* p_work,
                               const double* v_theta,
                               const struct tb_batch* p_batch,
                               const struct tb_reference* p_reference,
                               const struct tb_sums* p_sums) {
  struct custom_request request = {.p_model = p_model,
                                   .v_theta = v_theta,
                                   .p_batch = p_batch,
                                   .p_reference = p_reference,
                                   .p_sums = p_sums};
  struct custom* p = p_model->p_self;
  (void)p_work;
  if (p_batch->n_batch == 0) {
    return TB_STATUS_ok;
  }
  return p->p_tape != NULL && p_sums->p_log_lik == NULL
             ? custom_unwind(p, gradient_body, &request)
             : custom_protected(p, gradient_body, &request);
}

static SEXP square_norms_body(void* p_data) {
  const struct custom_request* p_r = p_data;
  const size_t n_dim = p_r->p_model->n_dim, n = p_r->p_batch->n_batch;
  const struct custom* p = p_r->p_model->p_self;
  SEXP batch = R_NilValue;
  if (p->p_tape == NULL) {
    batch = custom_batch(p, p_r->p_model->n_data, p_r->p_batch);
  }
  PROTECT(batch);
  double* v_row = zeros(n * n_dim);
  take_rows(p_r, batch, v_row);
  for (size_t k = 0; k < n; ++k) {
    const double w = custom_weight(p, p_r->p_batch, k);
    p_r->v_row[k] = 0;
    for (size_t j = 0; j < n_dim; ++j) {
      const double a = w * v_row[k * n_dim + j];
      p_r->v_row[k] += a * a;
      if (p_r->v_out != NULL) {
        p_r->v_out[j] += a;
      }
    }
  }
  UNPROTECT(1);
  return R_NilValue;
}

enum tb_status custom_square_norms(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   const struct tb_batch* p_batch,
                                   const struct tb_reference* p_reference,
                                   double* v_square,
                                   double* v_sum) {
  struct custom_request request = {.p_model = p_model,
                                   .v_theta = v_theta,
                                   .p_batch = p_batch,
                                   .p_reference = p_reference,
                                   .v_row = v_square,
                                   .v_out = v_sum};
  (void)p_work;
  return custom_protected(p_model->p_self, square_norms_body, &request);
}

static SEXP row_gradients_body(void* p_data) {
  const struct custom_request* p_r = p_data;
  SEXP batch = R_NilValue;
  const struct custom* p = p_r->p_model->p_self;
  if (p->p_tape == NULL) {
    batch = custom_batch(p, p_r->p_model->n_data, p_r->p_batch);
  }
  PROTECT(batch);
  const size_t n = p_r->p_batch->n_batch * p_r->p_model->n_dim;
  double* v_row = zeros(n);
  take_rows(p_r, batch, v_row);
  custom_note_undefined(p_r->p_model->p_self,
                        likelihood_name(p),
                        v_row,
                        n,
                        p_r->v_theta,
                        p_r->p_model->n_dim);
  for (size_t i = 0; i < n; ++i) {
    const size_t k = i / p_r->p_model->n_dim;
    p_r->v_row[i] = custom_weight(p, p_r->p_batch, k) * v_row[i];
  }
  UNPROTECT(1);
  return R_NilValue;
}

enum tb_status custom_row_gradients(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    double* v_row) {
  struct custom_request request = {.p_model = p_model,
                                   .v_theta = v_theta,
                                   .p_batch = p_batch,
                                   .v_row = v_row};
  (void)p_work;
  return custom_protected(p_model->p_self, row_gradients_body, &request);
}
