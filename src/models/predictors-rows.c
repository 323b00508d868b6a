/* Rows with several predictors, block by block: gathered less the centres of
 * their columns, their predictors, what the response says there, and its slopes
 * added up over the rows. models/predictors.c has the model, the symbols and
 * who owns what. */
#include "models/predictors-inside.h"

#include "base/blas.h"

#include <string.h>

enum { B = PREDICTORS_BLOCK };

/* columns of scores, of pairs of predictors, of crosses, of pairs of s */
static size_t n_column(const struct predictors* p) {
  const size_t n_eta = p->n_eta, n_aux = p->n_aux;
  return p->n_inner + n_eta * (n_eta + 1) / 2 + n_aux * n_eta +
         n_aux * (n_aux + 1) / 2;
}

size_t predictors_scratch_size(const struct predictors* p, bool has_block) {
  const size_t n_y = tb_response_n_y(p->response.type);
  const size_t n_row = 2 * p->n_coef + 2 * p->n_eta + n_y + 1 + n_column(p) +
                       2 * p->n_inner + p->n_inner * p->n_inner;
  return (n_row * B + (has_block ? p->n_coef * p->n_coef : 0)) * sizeof(double);
}

struct predictors_scratch predictors_scratch_at(const struct predictors* p,
                                                void* p_scratch,
                                                bool has_block) {
  struct predictors_scratch s = {.v_x = p_scratch};
  s.v_other = s.v_x + p->n_coef * B;
  s.v_eta = s.v_other + p->n_coef * B;
  s.v_eta_at = s.v_eta + p->n_eta * B;
  s.v_y = s.v_eta_at + p->n_eta * B;
  s.v_weight = s.v_y + tb_response_n_y(p->response.type) * B;
  s.v_column = s.v_weight + B;
  s.v_score = s.v_column + n_column(p) * B;
  s.v_before = s.v_score + p->n_inner * B;
  s.v_bend = s.v_before + p->n_inner * B;
  s.v_block = has_block ? s.v_bend + p->n_inner * p->n_inner * B : NULL;
  return s;
}

size_t predictors_gather(const struct predictors* p,
                         const struct tb_batch* p_batch,
                         size_t first,
                         const struct predictors_scratch* p_s) {
  const size_t n = p->n_coef, n_y = tb_response_n_y(p->response.type);
  const size_t n_data = p->store.n_row;
  const size_t n_row = tb_min(B, p_batch->n_batch - first);
  const size_t* v_index = p_batch->v_index;
  p->store.type->gather(&p->store,
                        v_index == NULL ? NULL : v_index + first,
                        p_batch->start + first,
                        n_row,
                        n,
                        p_s->v_x);
  for (size_t i = 0; i < n_row; ++i) {
    const size_t row = tb_batch_row(p_batch, first + i);
    for (size_t j = 0; j < n; ++j) {
      p_s->v_x[i * n + j] -= p->v_center[j];
    }
    for (size_t j = 0; j < n_y; ++j) {
      p_s->v_y[j * n_row + i] = p->v_y[j * n_data + row];
    }
    if (p->v_weight != NULL) {
      p_s->v_weight[i] = p->v_weight[row];
    }
  }
  return n_row;
}

void predictors_predict(const struct predictors* p,
                        const double* v_theta,
                        const struct tb_batch* p_batch,
                        size_t first,
                        size_t n_row,
                        const struct predictors_scratch* p_s) {
  for (size_t k = 0; k < p->n_eta; ++k) {
    const size_t n = predictors_width(p, k);
    tb_gemm_op('T',
               'N',
               n_row,
               1,
               n,
               p_s->v_x + p->v_first[k],
               p->n_coef,
               v_theta + p->v_first[k],
               n,
               0,
               p_s->v_eta + k * n_row,
               n_row);
  }
  for (size_t i = 0; p->v_offset != NULL && i < n_row; ++i) {
    p_s->v_eta[i] += p->v_offset[tb_batch_row(p_batch, first + i)];
  }
}

/* What a response says of pairs, into both triangles of each row. */
static void set_bend(const struct predictors* p,
                     const struct tb_response_point* p_point,
                     size_t n_row,
                     const double* v_curvature,
                     const double* v_cross,
                     const double* v_aux,
                     double* v_bend) {
  const size_t n_eta = p->n_eta, n = p->n_inner;
  double v_rest[TB_RESPONSE_MOST_AUX];
  (void)tb_response_informations(p->response.type, p_point, v_rest);
  for (size_t k = 0; k < n; ++k) {
    for (size_t m = 0; m <= k; ++m) {
      const double* v_from =
          k < n_eta   ? v_curvature + tb_response_pair(k, m) * n_row
          : m < n_eta ? v_cross + ((k - n_eta) * n_eta + m) * n_row
                      : v_aux + tb_response_pair(k - n_eta, m - n_eta) * n_row;
      const double rest = k == m && k >= n_eta ? v_rest[k - n_eta] : 0;
      for (size_t i = 0; i < n_row; ++i) {
        double* v_own = v_bend + i * n * n;
        v_own[k * n + m] = v_own[m * n + k] = v_from[i] + rest;
      }
    }
  }
}

void predictors_evaluate(const struct predictors* p,
                         const struct tb_response_point* p_point,
                         size_t n_row,
                         const struct predictors_scratch* p_s,
                         const struct predictors_out* p_out) {
  const size_t n_eta = p->n_eta, n_aux = p->n_aux, n = p->n_inner;
  double* v_slope = p_s->v_column;
  double* v_curvature = v_slope + n * n_row;
  double* v_cross = v_curvature + n_eta * (n_eta + 1) / 2 * n_row;
  double* v_aux = v_cross + n_aux * n_eta * n_row;
  const bool slopes = p_out->v_score != NULL, bends = p_out->v_bend != NULL;
  const struct tb_response_rows rows = {
      .n_row = n_row,
      .n_predictor = n_eta,
      .v_eta = p_s->v_eta,
      .v_y = p_s->v_y,
      .v_weight = p->v_weight == NULL ? NULL : p_s->v_weight,
      .p_point = p_point};
  const struct tb_response_out out = {
      .v_log_density = p_out->v_log_lik,
      .is_complete = p_out->is_complete,
      .v_score = slopes ? v_slope : NULL,
      .v_curvature = bends ? v_curvature : NULL,
      .v_aux_score = slopes && n_aux > 0 ? v_slope + n_eta * n_row : NULL,
      .v_cross = bends && n_aux > 0 ? v_cross : NULL,
      .v_aux_curvature = bends && n_aux > 0 ? v_aux : NULL};
  p->response.type->evaluate(&rows, &out);
  for (size_t i = 0; slopes && i < n_row; ++i) {
    for (size_t k = 0; k < n; ++k) {
      p_out->v_score[i * n + k] = v_slope[k * n_row + i];
    }
  }
  if (bends) {
    set_bend(p, p_point, n_row, v_curvature, v_cross, v_aux, p_out->v_bend);
  }
}

void predictors_look(const struct predictors* p,
                     const double* v_theta,
                     const struct tb_batch* p_batch,
                     size_t first,
                     size_t n_row,
                     const struct predictors_scratch* p_s,
                     const struct predictors_out* p_out) {
  const struct tb_response_point point =
      tb_response_at(&p->response, v_theta + p->n_coef);
  predictors_predict(p, v_theta, p_batch, first, n_row, p_s);
  predictors_evaluate(p, &point, n_row, p_s, p_out);
}

void predictors_add(const struct predictors* p,
                    size_t n_row,
                    const struct predictors_scratch* p_s,
                    double* v_u,
                    double* v_gradient,
                    double* v_square) {
  const size_t n = p->n_coef, n_inner = p->n_inner;
  for (size_t k = 0; v_gradient != NULL && k < p->n_eta; ++k) {
    tb_gemm_op('N',
               'T',
               predictors_width(p, k),
               1,
               n_row,
               p_s->v_x + p->v_first[k],
               n,
               v_u + k,
               n_inner,
               1,
               v_gradient + p->v_first[k],
               predictors_width(p, k));
  }
  for (size_t i = 0; v_gradient != NULL && i < n_row; ++i) {
    for (size_t k = p->n_eta; k < n_inner; ++k) {
      v_gradient[n + k - p->n_eta] += v_u[i * n_inner + k];
    }
  }
  if (v_square == NULL) {
    return;
  }
  for (size_t k = 0; k < n_inner * n_row; ++k) {
    v_u[k] *= v_u[k];
  }
  for (size_t k = 0; k < n * n_row; ++k) {
    p_s->v_other[k] = p_s->v_x[k] * p_s->v_x[k];
  }
  const struct predictors_scratch squares = {.v_x = p_s->v_other};
  predictors_add(p, n_row, &squares, v_u, v_square, NULL);
}
