#include "responses/shared.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/vmath.h"

#include <math.h>
#include <string.h>

enum { TILE = 64 };

void tb_response_prepare_log(const double* v_aux,
                             struct tb_response_point* p_point) {
  const bool is_sampled = p_point->v_is_sampled[0];
  p_point->aux = is_sampled ? exp(v_aux[0]) : v_aux[0];
  p_point->log_aux = is_sampled ? v_aux[0] : log(v_aux[0]);
}

const struct tb_response_aux tb_response_size = {
    .name = "reciprocal_dispersion",
    .coordinate = "log_reciprocal_dispersion",
};

/* |v| at one point into the largest so far, of n */
static void widen(const double* v, double rest, size_t n, double* v_out) {
  for (size_t k = 0; v_out != NULL && k < n; ++k) {
    v_out[k] = fmax(v_out[k], fabs(v[k] + rest));
  }
}

static double* column(double* v, size_t k, size_t n_row, size_t first) {
  return v == NULL ? NULL : v + k * n_row + first;
}

static void widest_of_tile(const struct tb_response_type* type,
                           const struct tb_response_rows* p_rows,
                           const double* v_reach,
                           size_t first,
                           const struct tb_response_out* p_out) {
  enum { N_POINT = 5 };
  const size_t n = tb_min(TILE, p_rows->n_row - first);
  double v_eta[TILE], v_y[TB_RESPONSE_MOST_Y * TILE], v_c[TILE];
  double v_a[TB_RESPONSE_MOST_AUX * TILE], v_b[TB_RESPONSE_MOST_PAIR * TILE];
  double v_rest[TB_RESPONSE_MOST_AUX] = {0};
  const struct tb_response_rows rows = {
      .n_row = n,
      .n_predictor = 1,
      .v_eta = v_eta,
      .v_y = v_y,
      .v_weight = p_rows->v_weight == NULL ? NULL : p_rows->v_weight + first,
      .p_point = p_rows->p_point};
  const bool has_aux = p_out->v_cross != NULL || p_out->v_aux_curvature != NULL;
  const struct tb_response_out out = {.v_curvature = v_c,
                                      .v_cross = has_aux ? v_a : NULL,
                                      .v_aux_curvature = has_aux ? v_b : NULL};
  const size_t n_aux =
      has_aux ? tb_response_informations(type, p_rows->p_point, v_rest) : 0;
  const size_t n_row = p_rows->n_row, n_y = tb_response_n_y(type);
  tb_response_columns(p_rows->v_y, n_row, first, n, n_y, v_y);
  for (int j = 0; j < N_POINT; ++j) {
    for (size_t k = 0; k < n; ++k) {
      v_eta[k] = p_rows->v_eta[first + k] +
                 v_reach[first + k] * (2.0 * j / (N_POINT - 1) - 1);
    }
    type->evaluate(&rows, &out);
    widen(v_c, 0, n, column(p_out->v_curvature, 0, n_row, first));
    for (size_t k = 0; k < n_aux; ++k) {
      widen(v_a + k * n, 0, n, column(p_out->v_cross, k, n_row, first));
      for (size_t l = 0; l <= k; ++l) {
        const size_t pair = tb_response_pair(k, l);
        widen(v_b + pair * n,
              k == l ? v_rest[k] : 0,
              n,
              column(p_out->v_aux_curvature, pair, n_row, first));
      }
    }
  }
}

static void set_zero(double* v, size_t n) {
  for (size_t k = 0; v != NULL && k < n; ++k) {
    v[k] = 0;
  }
}

void tb_response_widest(const struct tb_response_type* type,
                        const struct tb_response_rows* p_rows,
                        const double* v_reach,
                        const struct tb_response_out* p_out) {
  set_zero(p_out->v_curvature, p_rows->n_row);
  double v_rest[TB_RESPONSE_MOST_AUX];
  const size_t n_aux = tb_response_informations(type, p_rows->p_point, v_rest);
  set_zero(p_out->v_cross, n_aux * p_rows->n_row);
  set_zero(p_out->v_aux_curvature, n_aux * (n_aux + 1) / 2 * p_rows->n_row);
  for (size_t first = 0; first < p_rows->n_row; first += TILE) {
    widest_of_tile(type, p_rows, v_reach, first, p_out);
  }
}

size_t tb_response_outside_counts(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && v_y[i] >= 0 && v_y[i] == floor(v_y[i]) && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

size_t tb_response_outside_above(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && v_y[i] >= 1 && v_y[i] == floor(v_y[i]) && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

double tb_response_less_share(double a) {
  if (a > 0.25) {
    return a > 700 ? 1 : 1 - a / expm1(a);
  }
  const double s = a * a;
  return a / 2 -
         s / 12 *
             (1 - s / 60 * (1 - s / 42 * (1 - s / 40 * (1 - s * 10 / 396))));
}

void tb_response_same_mean(const double* v_eta,
                           size_t n_row,
                           size_t n_predictor,
                           double* v_out) {
  memmove(v_out, v_eta, n_row * n_predictor * sizeof(double));
}

size_t tb_response_outside_positive(const double* v_y, size_t n, double size) {
  (void)size;
  size_t i = 0;
  while (i < n && v_y[i] > 0 && isfinite(v_y[i])) {
    ++i;
  }
  return i;
}

static TB_CLONES void
exponential(const double* v_eta, size_t n, double* v_out) {
  tb_vexp(v_eta, v_out, n);
}

void tb_response_exp_mean(const double* v_eta,
                          size_t n_row,
                          size_t n_predictor,
                          double* v_out) {
  exponential(v_eta, n_row * n_predictor, v_out);
}
