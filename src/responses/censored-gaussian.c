/* Gaussian responses of which some are known to lie beyond, below or between
 * limits no more: the tobit model, see limits.h.
 *
 * Tobin (1958), Estimation of relationships for limited dependent variables,
 * Econometrica 26:24. */
#include "responses/limits.h"
#include "responses/shared.h"

#include <math.h>

static const struct tb_limits censored = {.law = &tb_limits_normal,
                                          .is_sd = true,
                                          .is_precision = true};

static const struct tb_response_aux censored_aux = {.name = "sigma",
                                                    .coordinate = "log_sigma"};

static size_t censored_outside(const double* v_y, size_t n, double size) {
  (void)size;
  return tb_limits_outside(&censored, v_y, n);
}

static void censored_evaluate(const struct tb_response_rows* p_rows,
                              const struct tb_response_out* p_out) {
  tb_limits_evaluate(&censored, p_rows, p_out);
}

/* of what may not be seen */
static void censored_variance(const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  (void)v_mean;
  for (size_t k = 0; k < n_row; ++k) {
    v_out[k] =
        p_point->aux * p_point->aux / (v_weight == NULL ? 1 : v_weight[k]);
  }
}

static void censored_deviance(const double* v_y,
                              const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  const struct tb_response_rows rows =
      tb_response_rows_at(v_y, v_mean, n_row, v_weight, p_point);
  tb_limits_deviance(&censored, &rows, v_out);
}

const struct tb_response_type tb_response_censored_gaussian = {
    .name = "censored_gaussian",
    .link = "identity",
    .citation = "Tobin (1958), Econometrica 26:24",
    .flags = TB_RESPONSE_PRECISION,
    .v_aux = &censored_aux,
    .n_aux = 1,
    .n_y = 3,
    .outside = censored_outside,
    .evaluate = censored_evaluate,
    .mean = tb_response_same_mean,
    .variance = censored_variance,
    .deviance = censored_deviance,
    .prepare = tb_response_prepare_log,
};
