/* The prior, the log likelihood and the curvature of a model whose functions
 * are R's. */
#include "ffi/custom-inside.h"

#include <stdlib.h>
#include <string.h>

static double call_log_prior(struct custom* p, const double* v_theta) {
  SEXP theta = PROTECT(custom_theta(p, v_theta));
  SEXP value = custom_vector(p, "log_prior", theta, NULL, 1);
  UNPROTECT(1);
  return REAL(value)[0];
}

/* n_natural numbers, the user's gradient of the prior */
static const double*
call_prior_gradient(struct custom* p, SEXP theta, size_t n) {
  const char* name = "grad_log_prior";
  SEXP value = PROTECT(custom_call(p, name, theta, NULL));
  const double* v_out =
      TYPEOF(value) == REALSXP && (size_t)Rf_xlength(value) == n
          ? REAL(value)
          : custom_flat_list(p, value, 1, n);
  if (v_out == NULL) {
    v_out = REAL(custom_shaped(p, name, value, n, n, theta));
  }
  UNPROTECT(1);
  return v_out;
}

static SEXP prior_body(void* p_data) {
  const struct custom_request* p_r = p_data;
  const struct tb_model* p_model = p_r->p_model;
  struct custom* p = p_model->p_self;
  const size_t n_dim = p_model->n_dim;
  double* v_gradient = (double*)R_alloc(n_dim, sizeof(double));
  if (p->prior_gradient != R_NilValue) {
    SEXP theta = PROTECT(custom_theta(p, p_r->v_theta));
    tb_transform_pull(p->v_part,
                      p->n_part,
                      p_r->v_theta,
                      call_prior_gradient(p, theta, p_model->n_natural),
                      v_gradient);
    UNPROTECT(1);
  } else if (p->p_prior_tape != NULL) {
    const struct tb_batch once = {.n_batch = 1, .weight = 1};
    double* v_natural = (double*)R_alloc(p_model->n_natural, sizeof(double));
    tapes_sum(p->p_prior_tape,
              &once,
              custom_natural(p, p_r->v_theta),
              v_natural);
    tb_transform_pull(p->v_part,
                      p->n_part,
                      p_r->v_theta,
                      v_natural,
                      v_gradient);
  } else {
    double* v_at = custom_copy_point(p_r->v_theta, n_dim);
    for (size_t j = 0; j < n_dim; ++j) {
      const double y = v_at[j], h = custom_difference_step(y);
      v_at[j] = y + h;
      const double above = call_log_prior(p, v_at);
      v_at[j] = y - h;
      v_gradient[j] = (above - call_log_prior(p, v_at)) / (2 * h);
      v_at[j] = y;
    }
  }
  custom_note_undefined(p,
                        p->prior_gradient == R_NilValue ? "log_prior"
                                                        : "grad_log_prior",
                        v_gradient,
                        n_dim,
                        p_r->v_theta,
                        n_dim);
  tb_transform_add_jacobian(p->v_part, p->n_part, p_r->v_theta, v_gradient);
  if (p_r->p_log_density != NULL) {
    double* v_natural = (double*)R_alloc(p_model->n_natural, sizeof(double));
    const double log_prior = call_log_prior(p, p_r->v_theta);
    custom_note_undefined(p, "log_prior", &log_prior, 1, p_r->v_theta, n_dim);
    *p_r->p_log_density +=
        log_prior +
        tb_transform_constrain(p->v_part, p->n_part, p_r->v_theta, v_natural);
  }
  memcpy(p_r->v_out, v_gradient, n_dim * sizeof(double));
  return R_NilValue;
}

enum tb_status custom_prior(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            double* v_gradient,
                            double* p_log_prior) {
  struct custom_request request = {.p_model = p_model,
                                   .v_theta = v_theta,
                                   .v_out = v_gradient,
                                   .p_log_density = p_log_prior};
  struct custom* p = p_model->p_self;
  (void)p_work;
  return p->p_prior_tape != NULL && p_log_prior == NULL
             ? custom_unwind(p, prior_body, &request)
             : custom_protected(p, prior_body, &request);
}

static SEXP log_lik_body(void* p_data) {
  const struct custom_request* p_r = p_data;
  struct custom* p = p_r->p_model->p_self;
  const size_t n = p_r->p_batch->n_batch;
  SEXP batch = PROTECT(custom_batch(p, p_r->p_model->n_data, p_r->p_batch));
  SEXP value = custom_call_log_lik(p, p_r->v_theta, batch, n);
  for (size_t k = 0; k < n; ++k) {
    p_r->v_out[k] = custom_weight(p, p_r->p_batch, k) * REAL(value)[k];
  }
  UNPROTECT(1);
  return R_NilValue;
}

enum tb_status custom_log_lik(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta,
                              const struct tb_batch* p_batch,
                              double* v_out) {
  struct custom_request request = {.p_model = p_model,
                                   .v_theta = v_theta,
                                   .p_batch = p_batch,
                                   .v_out = v_out};
  (void)p_work;
  return custom_protected(p_model->p_self, log_lik_body, &request);
}

/* The gradient over the rows of the batch, and of the prior if it is wanted:
 * SET. */
static enum tb_status batch_gradient(const struct tb_model* p_model,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     bool with_prior,
                                     double* p_log_density,
                                     double* v_gradient) {
  const struct tb_sums sums = {.v_gradient = v_gradient,
                               .p_log_lik = p_log_density};
  enum tb_status status = TB_STATUS_ok;
  if (with_prior) {
    status = custom_prior(p_model, NULL, v_theta, v_gradient, p_log_density);
  } else {
    memset(v_gradient, 0, p_model->n_dim * sizeof(double));
  }
  return status != TB_STATUS_ok
             ? status
             : custom_gradient(p_model, NULL, v_theta, p_batch, NULL, &sums);
}

/* v_hessian (n_dim x n_dim), SET: minus the central differences of the gradient
 * in each coordinate; v_at: 3 n_dim numbers of scratch */
static enum tb_status differences(const struct tb_model* p_model,
                                  const double* v_theta,
                                  const struct tb_batch* p_batch,
                                  bool with_prior,
                                  double* v_at,
                                  double* v_hessian) {
  const size_t n = p_model->n_dim;
  double *v_above = v_at + n, *v_below = v_above + n;
  enum tb_status status = TB_STATUS_ok;
  memcpy(v_at, v_theta, n * sizeof(double));
  for (size_t j = 0; j < n && status == TB_STATUS_ok; ++j) {
    const double y = v_at[j], h = 10 * custom_difference_step(y);
    v_at[j] = y + h;
    status = batch_gradient(p_model, v_at, p_batch, with_prior, NULL, v_above);
    if (status == TB_STATUS_ok) {
      v_at[j] = y - h;
      status =
          batch_gradient(p_model, v_at, p_batch, with_prior, NULL, v_below);
    }
    v_at[j] = y;
    for (size_t k = 0; k < n && status == TB_STATUS_ok; ++k) {
      v_hessian[j * n + k] = (v_below[k] - v_above[k]) / (2 * h);
    }
  }
  return status;
}

/* -Hessian made symmetric: 2 n_dim more passes over the rows. Kinks of Laplace
 * priors, which this model does not know, are not rounded. */
enum tb_status custom_curvature(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_curvature* p_sums) {
  const size_t n = p_model->n_dim;
  const bool with_prior = p_sums->with_prior;
  (void)p_work;
  double* v_memory = malloc((n * n + 4 * n) * sizeof(double));
  if (v_memory == NULL) {
    return TB_STATUS_memory;
  }
  double *v_hessian = v_memory, *v_gradient = v_hessian + n * n,
         *v_at = v_gradient + n;
  enum tb_status status = batch_gradient(p_model,
                                         v_theta,
                                         p_batch,
                                         with_prior,
                                         p_sums->p_log_lik,
                                         v_gradient);
  if (status == TB_STATUS_ok) {
    status =
        differences(p_model, v_theta, p_batch, with_prior, v_at, v_hessian);
  }
  for (size_t j = 0; j < n && status == TB_STATUS_ok; ++j) {
    p_sums->v_gradient[j] += v_gradient[j];
    for (size_t k = 0; k < n; ++k) {
      p_sums->v_hessian[j * n + k] +=
          j == k ? v_hessian[j * n + k]
                 : 0.5 * (v_hessian[j * n + k] + v_hessian[k * n + j]);
    }
  }
  free(v_memory);
  return status;
}
