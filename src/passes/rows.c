#include "passes/rows.h"

#include "base/clip.h"
#include "models/rows.h"
#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every row with multiplier 1. */
static struct tb_batch all_rows(const struct tb_model* p_model) {
  return (struct tb_batch){.n_batch = p_model->n_data, .weight = 1};
}

enum tb_status tb_model_all_gradient(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_sums* p_sums) {
  const struct tb_batch all = all_rows(p_model);
  struct tb_sums sums = *p_sums;
  enum tb_status status = TB_STATUS_ok;
  for (size_t start = 0; start < all.n_batch && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&all, start, TB_CHUNK);
    if (p_sums->v_scalar != NULL) {
      sums.v_scalar = p_sums->v_scalar + start * p_model->n_scalar;
    }
    status =
        p_model->type->gradient(p_model, p_work, v_theta, &part, NULL, &sums);
  }
  return status;
}

enum tb_status tb_model_all_square_norms(const struct tb_model* p_model,
                                         const struct tb_workspace* p_work,
                                         const double* v_theta,
                                         const struct tb_reference* p_reference,
                                         double* v_square,
                                         double* v_sum,
                                         double* v_row) {
  const struct tb_batch all = all_rows(p_model);
  enum tb_status status = TB_STATUS_ok;
  for (size_t start = 0; start < all.n_batch && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&all, start, TB_CHUNK);
    status = tb_model_square_norms(p_model,
                                   p_work,
                                   v_theta,
                                   &part,
                                   p_reference,
                                   v_square + start,
                                   v_sum,
                                   v_row);
  }
  return status;
}

/* -------------------------------------------------------------- in threads */

struct at {
  struct tb_model* p_model;
  const double* v_theta;
  size_t n_point;
  double* v_largest; /* of each part */
};

static enum tb_status go_over(struct at* p,
                              enum tb_status (*part)(void*,
                                                     const struct tb_part*),
                              size_t n_part_row,
                              size_t n_sum,
                              double* v_total,
                              int n_threads) {
  const struct tb_batch all = all_rows(p->p_model);
  struct tb_pass pass = {.p_model = p->p_model,
                         .part = part,
                         .p_what = p,
                         .n_part_row = n_part_row,
                         .n_point = p->n_point,
                         .n_sum = n_sum,
                         .n_threads = n_threads};
  enum tb_status status = tb_pass_begin(&pass);
  if (status == TB_STATUS_ok) {
    status = tb_pass_over(&pass, &all, v_total);
  }
  tb_pass_end(&pass);
  return status;
}

static enum tb_status store_part(void* p_what, const struct tb_part* p_part) {
  const struct at* p = p_what;
  return p->p_model->type->store_scalar(p->p_model,
                                        &p_part->work,
                                        p->v_theta,
                                        &p_part->batch,
                                        p_part->v_sum);
}

enum tb_status tb_model_store_scalar(struct tb_model* p_model,
                                     const double* v_theta,
                                     double* v_sum,
                                     int n_threads) {
  struct at what = {.p_model = p_model, .v_theta = v_theta, .n_point = 1};
  return go_over(&what, store_part, TB_CHUNK, p_model->n_dim, v_sum, n_threads);
}

static enum tb_status largest_part(void* p_what, const struct tb_part* p_part) {
  const struct at* p = p_what;
  p->v_largest[p_part->first / TB_CHUNK] =
      p->p_model->type->largest_predictor(p->p_model,
                                          &p_part->work,
                                          p->v_theta,
                                          &p_part->batch);
  return TB_STATUS_ok;
}

double tb_model_largest_predictor(struct tb_model* p_model,
                                  const double* v_theta,
                                  int n_threads) {
  const size_t n_part = tb_max(1, tb_n_chunk(p_model->n_data));
  struct at what = {.p_model = p_model,
                    .v_theta = v_theta,
                    .n_point = 1,
                    .v_largest = calloc(n_part, sizeof(double))};
  double largest = NAN;
  if (p_model->type->largest_predictor != NULL && what.v_largest != NULL &&
      go_over(&what, largest_part, TB_CHUNK, 0, NULL, n_threads) ==
          TB_STATUS_ok) {
    largest = 0;
    for (size_t c = 0; c < n_part; ++c) {
      largest = fmax(largest, what.v_largest[c]);
    }
  }
  free(what.v_largest);
  return largest;
}

static enum tb_status many_part(void* p_what, const struct tb_part* p_part) {
  const struct at* p = p_what;
  return p->p_model->type->log_lik_many(p->p_model,
                                        &p_part->work,
                                        p->v_theta,
                                        p->n_point,
                                        &p_part->batch,
                                        p_part->v_sum);
}

/* A frame is gone out of once, not for each block of rows. */
static enum tb_status many_in_frame(struct tb_model* p_model,
                                    const double* v_phi,
                                    size_t n_point,
                                    double* v_out,
                                    int n_threads) {
  const size_t n_dim = p_model->n_dim;
  double* v_theta = malloc((n_dim * n_point + 1) * sizeof(double));
  if (v_theta == NULL) {
    return TB_STATUS_memory;
  }
  for (size_t p = 0; p < n_point; ++p) {
    tb_frame_to_parameter(p_model->p_frame,
                          v_phi + p * n_dim,
                          v_theta + p * n_dim);
  }
  const enum tb_status status = tb_model_log_lik_many(p_model->p_base,
                                                      v_theta,
                                                      n_point,
                                                      v_out,
                                                      n_threads);
  free(v_theta);
  return status;
}

enum tb_status tb_model_log_lik_many(struct tb_model* p_model,
                                     const double* v_theta,
                                     size_t n_point,
                                     double* v_out,
                                     int n_threads) {
  enum { ROWS = 1024 }; /* their predictors at all points stay in the cache */
  struct at what = {.p_model = p_model, .v_theta = v_theta, .n_point = n_point};
  if (p_model->p_base != NULL) {
    return many_in_frame(p_model, v_theta, n_point, v_out, n_threads);
  }
  if (p_model->type->log_lik_many == NULL) {
    return TB_STATUS_unsupported;
  }
  memset(v_out, 0, n_point * sizeof(double));
  return go_over(&what, many_part, ROWS, n_point, v_out, n_threads);
}
