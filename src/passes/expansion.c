#include "passes/expansion.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/memory.h"
#include "base/norm.h"
#include "passes/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* lengths in posterior sds at which differences are taken */
#define DIFFERENCE 1e-3

static TB_CLONES double
dot_product(const double* v_a, const double* v_b, size_t n) {
  double v_sum[4] = {0};
  size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    for (size_t k = 0; k < 4; ++k) {
      v_sum[k] += v_a[j + k] * v_b[j + k];
    }
  }
  for (; j < n; ++j) {
    v_sum[0] += v_a[j] * v_b[j];
  }
  return (v_sum[0] + v_sum[1]) + (v_sum[2] + v_sum[3]);
}

/* ------------------------------------------------------------------ making */

/* what differences are made of */
struct probe {
  const struct tb_model* p_model;
  struct tb_workspace work;
  struct tb_batch batch; /* rows that are looked at */
  double* v_theta;
  double* v_plus;
  double* v_minus;
};

static enum tb_status probe_gradient(struct probe* p, double* v_sum) {
  const struct tb_sums sums = {.v_gradient = v_sum};
  enum tb_status status = TB_STATUS_ok;
  memset(v_sum, 0, p->p_model->n_dim * sizeof(double));
  for (size_t start = 0; start < p->batch.n_batch && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&p->batch, start, TB_CHUNK);
    status = p->p_model->type->gradient(p->p_model,
                                        &p->work,
                                        p->v_theta,
                                        &part,
                                        NULL,
                                        &sums);
  }
  return status;
}

/* v_minus := -(sum of Hessians) e_j, by a step of h to either side */
static enum tb_status probe_column(struct probe* p, size_t j, double h) {
  const double middle = p->v_theta[j];
  p->v_theta[j] = middle + h;
  const double above = p->v_theta[j];
  enum tb_status status = probe_gradient(p, p->v_plus);
  if (status == TB_STATUS_ok) {
    p->v_theta[j] = middle - h;
    status = probe_gradient(p, p->v_minus);
  }
  const double width = above - p->v_theta[j];
  p->v_theta[j] = middle;
  for (size_t k = 0; k < p->p_model->n_dim; ++k) {
    p->v_minus[k] = (p->v_minus[k] - p->v_plus[k]) / width;
  }
  return status;
}

/* How far a difference should go in coordinate j: a small part of a posterior
 * sd, which the first rows tell well enough. */
static enum tb_status probe_step(struct probe* p, size_t j, double* p_step) {
  const struct tb_batch all = p->batch;
  const double first = 1e-5 * fmax(1, fabs(p->v_theta[j]));
  p->batch.n_batch = tb_min(all.n_batch, TB_CHUNK);
  const enum tb_status status = probe_column(p, j, first);
  const double share = (double)all.n_batch / (double)p->batch.n_batch;
  const double curvature = fabs(p->v_minus[j]) * share;
  p->batch = all;
  *p_step = DIFFERENCE / sqrt(curvature);
  if (!(*p_step < 100 * first)) {
    *p_step = 100 * first; /* nothing bends */
  }
  return status;
}

/* G and H by passes over the rows */
static enum tb_status expand_by_passes(struct tb_expansion* p_expansion,
                                       double* p_n_row) {
  const struct tb_model* p_model = p_expansion->p_model;
  const size_t n_dim = p_model->n_dim;
  const size_t n_work = tb_align(tb_model_work_size(p_model, TB_CHUNK));
  char* p_scratch = calloc(1, n_work + 3 * n_dim * sizeof(double) + 64);
  if (p_scratch == NULL) {
    return TB_STATUS_memory;
  }
  double* v = (double*)(void*)(p_scratch + n_work);
  struct probe probe = {.p_model = p_model,
                        .work = {.p_scratch = p_scratch},
                        .batch = {.n_batch = p_model->n_data, .weight = 1},
                        .v_theta = v,
                        .v_plus = v + n_dim,
                        .v_minus = v + 2 * n_dim};
  memcpy(v, p_expansion->v_at, n_dim * sizeof(double));
  enum tb_status status = probe_gradient(&probe, p_expansion->v_total);
  for (size_t j = 0; j < n_dim && status == TB_STATUS_ok; ++j) {
    double step;
    status = probe_step(&probe, j, &step);
    if (status == TB_STATUS_ok) {
      status = probe_column(&probe, j, step);
    }
    for (size_t k = 0; k < n_dim; ++k) {
      p_expansion->v_hessian[j * n_dim + k] += 0.5 * probe.v_minus[k];
      p_expansion->v_hessian[k * n_dim + j] += 0.5 * probe.v_minus[k];
    }
  }
  free(p_scratch);
  *p_n_row += (double)p_model->n_data * (1 + 2 * (double)n_dim) +
              2 * (double)n_dim * (double)tb_min(p_model->n_data, TB_CHUNK);
  return status;
}

static size_t record_bytes(const struct tb_model* p_model) {
  const struct tb_model_expansion* type = p_model->type->expansion;
  return type == NULL ? 0 : p_model->n_data * type->record_size(p_model);
}

enum tb_status tb_expansion_make(const struct tb_model* p_model,
                                 const double* v_at,
                                 int n_threads,
                                 struct tb_expansion* p_expansion,
                                 double* p_n_row) {
  const size_t n_dim = p_model->n_dim;
  const struct tb_model_expansion* type = p_model->type->expansion;
  *p_expansion = (struct tb_expansion){0};
  if (n_dim > TB_EXPANSION_MOST ||
      (p_model->type->flags & (TB_MODEL_RANDOM | TB_MODEL_NOISY))) {
    return TB_STATUS_unsupported;
  }
  const size_t n_record = tb_align(record_bytes(p_model));
  const size_t n_byte =
      n_record + (2 * n_dim + n_dim * n_dim) * sizeof(double) + 64;
  char* p_memory = tb_big_alloc(n_byte);
  if (p_memory == NULL) {
    return TB_STATUS_memory;
  }
  char* p = (char*)tb_align((size_t)(uintptr_t)p_memory);
  double* v = (double*)(void*)(p + n_record);
  *p_expansion = (struct tb_expansion){.p_model = p_model,
                                       .v_at = v,
                                       .v_total = v + n_dim,
                                       .v_hessian = v + 2 * n_dim,
                                       .v_record = type == NULL ? NULL : p,
                                       .p_memory = p_memory,
                                       .n_byte = n_byte};
  memset(v, 0, (2 * n_dim + n_dim * n_dim) * sizeof(double));
  memcpy(v, v_at, n_dim * sizeof(double));
  enum tb_status status;
  if (type == NULL) {
    status = expand_by_passes(p_expansion, p_n_row);
  } else {
    *p_n_row += (double)p_model->n_data;
    const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
    const struct tb_curvature sums = {.v_gradient = p_expansion->v_total,
                                      .v_hessian = p_expansion->v_hessian};
    status = type->expand(p_model,
                          p_expansion->v_at,
                          &all,
                          p_expansion->v_record,
                          &sums,
                          n_threads);
  }
  const double check = tb_square_norm(p_expansion->v_total, n_dim) +
                       tb_square_norm(p_expansion->v_hessian, n_dim * n_dim);
  if (status == TB_STATUS_ok && !isfinite(check)) {
    status = TB_STATUS_nonfinite;
  }
  if (status != TB_STATUS_ok) {
    tb_expansion_destroy(p_expansion);
  }
  return status;
}

void tb_expansion_destroy(struct tb_expansion* p_expansion) {
  tb_big_free(p_expansion->p_memory, p_expansion->n_byte);
  *p_expansion = (struct tb_expansion){0};
}

/* ------------------------------------------------------------------- views */

size_t tb_expansion_scratch_size(const struct tb_model* p_model) {
  return 6 * p_model->n_dim * sizeof(double);
}

struct tb_expansion_view
tb_expansion_look(const struct tb_expansion* p_expansion,
                  const double* v_theta,
                  bool wants_bent,
                  void* p_scratch) {
  const size_t n_dim = p_expansion->p_model->n_dim;
  const bool by_differences = p_expansion->v_record == NULL;
  double* v = p_scratch;
  struct tb_expansion_view view = {.v_theta = v_theta,
                                   .v_delta = v,
                                   .v_bent = v + n_dim,
                                   .v_free = v + 2 * n_dim};
  for (size_t j = 0; j < n_dim; ++j) {
    view.v_delta[j] = v_theta[j] - p_expansion->v_at[j];
  }
  if (!wants_bent && !by_differences) {
    return view;
  }
  double square = 0, bent = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    square += view.v_delta[j] * view.v_delta[j];
  }
  for (size_t j = 0; j < n_dim; ++j) {
    view.v_bent[j] =
        dot_product(p_expansion->v_hessian + j * n_dim, view.v_delta, n_dim);
    bent += view.v_bent[j] * view.v_delta[j];
  }
  if (by_differences && square > 0) {
    /* not beyond theta itself, where nothing bends */
    view.epsilon = fmin(1, DIFFERENCE / sqrt(fabs(bent)));
  }
  return view;
}

/* v_sum += scale times sum_k c_k [g_k(at + epsilon delta) - g_k(at - epsilon
 * delta)] / (2 epsilon) */
static enum tb_status add_bends(const struct tb_expansion* p_expansion,
                                const struct tb_workspace* p_work,
                                const struct tb_expansion_view* p_view,
                                const struct tb_batch* p_batch,
                                double scale,
                                double* v_sum) {
  const struct tb_model* p_model = p_expansion->p_model;
  const size_t n_dim = p_model->n_dim;
  double* v_above = p_view->v_free + n_dim;
  double* v_below = p_view->v_free + 2 * n_dim;
  double* v_bends = p_view->v_free;
  const struct tb_reference reference = {.v_theta = v_below};
  const struct tb_sums sums = {.v_gradient = v_bends};
  for (size_t j = 0; j < n_dim; ++j) {
    const double step = p_view->epsilon * p_view->v_delta[j];
    v_above[j] = p_expansion->v_at[j] + step;
    v_below[j] = p_expansion->v_at[j] - step;
  }
  memset(v_bends, 0, n_dim * sizeof(double));
  const enum tb_status status = p_model->type->gradient(p_model,
                                                        p_work,
                                                        v_above,
                                                        p_batch,
                                                        &reference,
                                                        &sums);
  for (size_t j = 0; j < n_dim; ++j) {
    v_sum[j] += scale / (2 * p_view->epsilon) * v_bends[j];
  }
  return status;
}

/* v_sum += sum_k c_k a_k of a model without records */
static enum tb_status add_differences(const struct tb_expansion* p_expansion,
                                      const struct tb_workspace* p_work,
                                      const struct tb_expansion_view* p_view,
                                      const struct tb_batch* p_batch,
                                      double* v_sum) {
  const struct tb_model* p_model = p_expansion->p_model;
  const struct tb_reference reference = {.v_theta = p_expansion->v_at};
  const struct tb_sums sums = {.v_gradient = v_sum};
  if (p_view->epsilon == 0) {
    return TB_STATUS_ok; /* at the point itself */
  }
  const enum tb_status status = p_model->type->gradient(p_model,
                                                        p_work,
                                                        p_view->v_theta,
                                                        p_batch,
                                                        &reference,
                                                        &sums);
  return status == TB_STATUS_ok
             ? add_bends(p_expansion, p_work, p_view, p_batch, -1, v_sum)
             : status;
}

enum tb_status tb_expansion_add(const struct tb_expansion* p_expansion,
                                const struct tb_workspace* p_work,
                                const struct tb_expansion_view* p_view,
                                const struct tb_batch* p_batch,
                                const struct tb_sums* p_sums) {
  const struct tb_model* p_model = p_expansion->p_model;
  const size_t n_dim = p_model->n_dim;
  if (p_expansion->v_record != NULL) {
    return p_model->type->expansion->beyond(p_model,
                                            p_work,
                                            p_expansion->v_record,
                                            p_expansion->v_at,
                                            p_view->v_theta,
                                            p_batch,
                                            p_sums);
  }
  if (p_sums->v_square == NULL) {
    return add_differences(p_expansion,
                           p_work,
                           p_view,
                           p_batch,
                           p_sums->v_gradient);
  }
  /* squares are of each row by itself */
  enum tb_status status = TB_STATUS_ok;
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    const struct tb_batch one = tb_batch_part(p_batch, k, 1);
    double* v_row = p_view->v_free + 3 * n_dim;
    memset(v_row, 0, n_dim * sizeof(double));
    status = add_differences(p_expansion, p_work, p_view, &one, v_row);
    for (size_t j = 0; j < n_dim; ++j) {
      p_sums->v_gradient[j] += v_row[j];
      p_sums->v_square[j] += v_row[j] * v_row[j];
    }
  }
  return status;
}

enum tb_status tb_expansion_square_norms(const struct tb_expansion* p_expansion,
                                         const struct tb_workspace* p_work,
                                         const struct tb_expansion_view* p_view,
                                         const struct tb_batch* p_batch,
                                         double* v_square,
                                         double* v_sum,
                                         double* v_row) {
  const size_t n_dim = p_expansion->p_model->n_dim;
  const struct tb_sums sums = {.v_gradient = v_row};
  enum tb_status status = TB_STATUS_ok;
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    struct tb_batch one = tb_batch_part(p_batch, k, 1);
    one.v_weight = NULL;
    one.weight = 1;
    memset(v_row, 0, n_dim * sizeof(double));
    status = tb_expansion_add(p_expansion, p_work, p_view, &one, &sums);
    v_square[k] = tb_square_norm(v_row, n_dim);
    for (size_t j = 0; v_sum != NULL && j < n_dim; ++j) {
      v_sum[j] += v_row[j];
    }
  }
  return status;
}
