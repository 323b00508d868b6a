/* Logistic regression against tallbayes.h without any of its helpers for
 * blocks: one row after the other, in plain loops. What native.R compares with
 * inst/examples/logistic.c. Arrays: x, y; the prior is N(0, 2.5^2). */
#include <R.h>
#include <Rinternals.h>
#include <tallbayes.h>

#include <math.h>

static enum tb_status plain_prior(const struct tb_native* p_native,
                                  void* p_scratch,
                                  const double* v_theta,
                                  double* v_gradient,
                                  double* p_log_prior) {
  (void) p_scratch;
  for (size_t j = 0; j < p_native->n_dim; ++j) {
    v_gradient[j] = -v_theta[j] / (2.5 * 2.5);
    if (p_log_prior != NULL) {
      *p_log_prior += 0.5 * v_gradient[j] * v_theta[j];
    }
  }
  return TB_STATUS_ok;
}

static double predictor(const struct tb_native* p_native,
                        size_t i,
                        const double* v_theta) {
  const double* v_x = tb_array_row(&p_native->v_array[0], i);
  double sum = 0;
  for (size_t j = 0; j < p_native->n_dim; ++j) {
    sum += v_x[j] * v_theta[j];
  }
  return sum;
}

static enum tb_status plain_gradient(const struct tb_native* p_native,
                                     void* p_scratch,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     const struct tb_reference* p_reference,
                                     const struct tb_sums* p_sums) {
  (void) p_scratch;
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const size_t i = tb_batch_row(p_batch, k);
    const double* v_x = tb_array_row(&p_native->v_array[0], i);
    const double y = tb_array_row(&p_native->v_array[1], i)[0];
    const double eta = predictor(p_native, i, v_theta);
    const double weight = tb_batch_weight(p_batch, k);
    double r = y - 1 / (1 + exp(-eta));
    if (p_reference != NULL) {
      const double other = predictor(p_native, i, p_reference->v_theta);
      r -= y - 1 / (1 + exp(-other));
    }
    const double c = weight * r;
    for (size_t j = 0; p_sums->v_gradient != NULL && j < p_native->n_dim; ++j) {
      p_sums->v_gradient[j] += c * v_x[j];
    }
    for (size_t j = 0; p_sums->v_square != NULL && j < p_native->n_dim; ++j) {
      p_sums->v_square[j] += c * v_x[j] * (c * v_x[j]);
    }
    if (p_sums->p_log_lik != NULL) {
      *p_sums->p_log_lik += weight * (y * eta - log1p(exp(eta)));
    }
  }
  return TB_STATUS_ok;
}

static enum tb_status plain_log_lik(const struct tb_native* p_native,
                                    void* p_scratch,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    double* v_out) {
  (void) p_scratch;
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const size_t i = tb_batch_row(p_batch, k);
    const double eta = predictor(p_native, i, v_theta);
    const double y = tb_array_row(&p_native->v_array[1], i)[0];
    v_out[k] = y * eta - log1p(exp(eta));
  }
  return TB_STATUS_ok;
}

static const struct tb_native_type plain_type = {
  .version = TALLBAYES_API_VERSION,
  .name = "plain logistic regression",
  .prior = plain_prior,
  .gradient = plain_gradient,
  .log_lik = plain_log_lik
};

SEXP plain_model(void) {
  return R_MakeExternalPtr((void*) &plain_type, R_NilValue, R_NilValue);
}
