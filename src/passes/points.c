#include "passes/points.h"

#include <math.h>
#include <string.h>

void tb_points_begin(struct tb_points* p_points) {
  const size_t n = p_points->n_point;
  memset(p_points->v_density, 0, n * sizeof(double));
  memset(p_points->v_gradient,
         0,
         n * p_points->p_model->n_dim * sizeof(double));
  p_points->status = TB_STATUS_ok;
  for (size_t p = 0; p < n; ++p) {
    p_points->v_status[p] = TB_STATUS_ok;
  }
}

bool tb_points_go_on(const struct tb_points* p_points) {
  return p_points->status == TB_STATUS_ok ||
         p_points->status == TB_STATUS_nonfinite;
}

static void note(struct tb_points* p_points, size_t p, enum tb_status status) {
  if (status != TB_STATUS_ok) {
    p_points->v_status[p] = status;
    p_points->status = status;
  }
}

void tb_points_add_prior(struct tb_points* p_points) {
  const struct tb_model* p_model = p_points->p_model;
  const size_t n_dim = p_model->n_dim;
  for (size_t p = 0; p < p_points->n_point && tb_points_go_on(p_points); ++p) {
    note(p_points,
         p,
         p_model->type->prior(p_model,
                              p_points->p_work,
                              p_points->v_theta + p * n_dim,
                              p_points->v_gradient + p * n_dim,
                              &p_points->v_density[p]));
  }
}

void tb_points_add(struct tb_points* p_points, const struct tb_batch* p_block) {
  const struct tb_model* p_model = p_points->p_model;
  const size_t n_dim = p_model->n_dim;
  for (size_t p = 0; p < p_points->n_point && tb_points_go_on(p_points); ++p) {
    const struct tb_sums sums = {
        .v_gradient = p_points->v_gradient + p * n_dim,
        .p_log_lik = p_points->wants_log_lik ? &p_points->v_density[p] : NULL};
    if (p_points->v_status[p] == TB_STATUS_ok) {
      note(p_points,
           p,
           p_model->type->gradient(p_model,
                                   p_points->p_work,
                                   p_points->v_theta + p * n_dim,
                                   p_block,
                                   NULL,
                                   &sums));
    }
  }
}

void tb_points_end(struct tb_points* p_points) {
  const size_t n_dim = p_points->p_model->n_dim;
  for (size_t p = 0; p < p_points->n_point; ++p) {
    if (p_points->v_status[p] != TB_STATUS_nonfinite) {
      continue;
    }
    p_points->v_density[p] = NAN;
    for (size_t j = 0; j < n_dim; ++j) {
      p_points->v_gradient[p * n_dim + j] = NAN;
    }
  }
}
