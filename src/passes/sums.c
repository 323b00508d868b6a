/* Sums about a center c first, then about the mean m: with u = m - c
 *
 *   sum w (z - m)(z - m)^T = sum w (z - c)(z - c)^T - W u u^T
 *
 * c is the mean of SAMPLE rows spread over all. It is an average of rows, so
 * |u| is at most sqrt(n_data) standard deviations: of 16 digits at most
 * log10(n_data) are lost, and none where the sample is like the rest.
 *
 *   symbol        variable  shape                   owner
 *   sums of a part  v_sum   n_all x n_all, n_all = n_coef + 2  the pass
 *   rows of a part  v_own   n_part_row x n_lead     the pass */
#include "passes/sums.h"

#include "base/blas.h"
#include "base/clip.h"
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, SAMPLE = 1024 };

struct product_sums {
  const struct tb_model* p_model;
  const double* v_center;
  size_t n_all;
  size_t n_lead;
};

static enum tb_status sums_part(void* p_what, const struct tb_part* p_part) {
  const struct product_sums* p = p_what;
  const enum tb_status status = p->p_model->type->design(p->p_model,
                                                         &p_part->work,
                                                         &p_part->batch,
                                                         p->v_center,
                                                         p_part->v_own,
                                                         p->n_lead);
  if (status == TB_STATUS_ok) {
    tb_syrk('N',
            p->n_all,
            p_part->batch.n_batch,
            1,
            p_part->v_own,
            p->n_lead,
            p_part->v_sum,
            p->n_all);
  }
  return status;
}

/* v_center: n_coef + 1 numbers, 0 at first; v_row: n_coef + 2 */
static enum tb_status sample_center(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    size_t n_coef,
                                    double* v_zero,
                                    double* v_row,
                                    double* v_center) {
  const size_t n_data = p_model->n_data, n_row = tb_min(SAMPLE, n_data);
  double total = 0;
  enum tb_status status = TB_STATUS_ok;
  for (size_t k = 0; k < n_row && status == TB_STATUS_ok; ++k) {
    const struct tb_batch one = {
        .start = (size_t)(((double)k + 0.5) * (double)n_data / (double)n_row),
        .n_batch = 1,
        .weight = 1};
    status =
        p_model->type->design(p_model, p_work, &one, v_zero, v_row, n_coef + 2);
    for (size_t j = 0; j <= n_coef; ++j) {
      v_center[j] += v_row[j] / v_row[n_coef + 1];
    }
    total += 1;
  }
  for (size_t j = 0; j <= n_coef; ++j) {
    v_center[j] /= total;
  }
  return status;
}

/* From sums about the center (the upper triangle) to those about the mean. */
static void take_sums(size_t n_coef,
                      const double* v_total,
                      const double* v_center,
                      double* v_mean,
                      double* v_sum,
                      double* p_weight) {
  const size_t n = n_coef + 1, n_all = n_coef + 2;
  const double* v_last = v_total + n * n_all; /* sum w (z - c), sum w */
  const double weight = v_last[n];
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i <= j; ++i) {
      const double sum =
          v_total[j * n_all + i] - v_last[i] * v_last[j] / weight;
      v_sum[j * n + i] = v_sum[i * n + j] = sum;
    }
  }
  for (size_t j = 0; j < n; ++j) {
    v_mean[j] = v_center[j] + v_last[j] / weight;
  }
  *p_weight = weight;
}

enum tb_status tb_model_product_sums(const struct tb_model* p_model,
                                     size_t n_coef,
                                     double* v_mean,
                                     double* v_sum,
                                     double* p_weight,
                                     int n_threads) {
  const size_t n_all = n_coef + 2, n_lead = (n_all + 3) & ~(size_t)3;
  const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
  struct product_sums what = {.p_model = p_model,
                              .n_all = n_all,
                              .n_lead = n_lead};
  struct tb_pass pass = {.p_model = p_model,
                         .part = sums_part,
                         .p_what = &what,
                         .n_part_row = ROWS,
                         .n_point = 1,
                         .n_sum = n_all * n_all,
                         .n_own = ROWS * n_lead,
                         .n_threads = n_threads};
  if (p_model->type->design == NULL) {
    return TB_STATUS_unsupported;
  }
  double* v_memory = calloc(n_all * n_all + 3 * n_all, sizeof(double));
  if (v_memory == NULL) {
    return TB_STATUS_memory;
  }
  double* v_total = v_memory;
  double* v_center = v_total + n_all * n_all;
  double* v_zero = v_center + n_all;
  double* v_row = v_zero + n_all;
  enum tb_status status = tb_pass_begin(&pass);
  if (status == TB_STATUS_ok) {
    const struct tb_workspace work = {.p_scratch = pass.p_memory};
    status = sample_center(p_model, &work, n_coef, v_zero, v_row, v_center);
  }
  what.v_center = v_center;
  if (status == TB_STATUS_ok) {
    status = tb_pass_over(&pass, &all, v_total);
  }
  if (status == TB_STATUS_ok) {
    take_sums(n_coef, v_total, v_center, v_mean, v_sum, p_weight);
  }
  tb_pass_end(&pass);
  free(v_memory);
  return status;
}
