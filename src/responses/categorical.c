/* Classes y = 0, .., K - 1 with a predictor each:
 *
 *   l = eta_y - log sum_k e^{eta_k},  dl/deta_k = [k = y] - softmax_k
 *   -d2l/deta_k deta_l = softmax_k ([k = l] - softmax_l)
 *
 * times w. Columns of predictors are n_row numbers apart; rows are taken TILE
 * at a time, class by class. */
#include "base/clip.h"
#include "base/clones.h"
#include "base/vmath.h"
#include "responses/response.h"

#include <math.h>
#include <string.h>

enum { TILE = 64 };

static size_t categorical_outside(const double* v_y, size_t n, double size) {
  size_t i = 0;
  while (i < n && v_y[i] >= 0 && v_y[i] == floor(v_y[i]) &&
         (size == 0 || v_y[i] < size)) {
    ++i;
  }
  return i;
}

/* The largest predictor of n rows, e^{eta_k - most} into v_out (NULL: not
 * wanted), and their sum */
static TB_CLONES void softmax_tile(const double* v_eta,
                                   size_t n,
                                   size_t n_class,
                                   size_t n_lead,
                                   double* v_out,
                                   double* v_most,
                                   double* v_sum) {
  double v_one[TILE];
  memcpy(v_most, v_eta, n * sizeof(double));
  for (size_t k = 1; k < n_class; ++k) {
    for (size_t i = 0; i < n; ++i) {
      const double eta = v_eta[k * n_lead + i];
      v_most[i] = eta > v_most[i] ? eta : v_most[i];
    }
  }
  memset(v_sum, 0, n * sizeof(double));
  for (size_t k = 0; k < n_class; ++k) {
    double* v = v_out == NULL ? v_one : v_out + k * n_lead;
    for (size_t i = 0; i < n; ++i) {
      v[i] = v_eta[k * n_lead + i] - v_most[i];
    }
    tb_vexp(v, v, n);
    for (size_t i = 0; i < n; ++i) {
      v_sum[i] += v[i];
    }
  }
}

/* Curvatures of n rows from e^{eta_k - most}, which the first columns of v_out
 * hold. The last class comes first: column tb_response_pair(k, l) is k or
 * beyond, of a class that is not read again. */
static void bend_tile(const struct tb_response_rows* p_rows,
                      size_t first,
                      size_t n,
                      const double* v_sum,
                      double* v_out) {
  const size_t n_row = p_rows->n_row;
  for (size_t k = p_rows->n_predictor; k-- > 0;) {
    for (size_t l = k + 1; l-- > 0;) {
      double* v = v_out + tb_response_pair(k, l) * n_row;
      for (size_t i = 0; i < n; ++i) {
        const double w = tb_response_weight(p_rows, first + i);
        const double p_k = v_out[k * n_row + i] / v_sum[i];
        const double p_l = v_out[l * n_row + i] / v_sum[i];
        v[i] = w * (k == l ? p_k * (1 - p_k) : -p_k * p_l);
      }
    }
  }
}

static void categorical_evaluate(const struct tb_response_rows* p_rows,
                                 const struct tb_response_out* p_out) {
  const size_t n_row = p_rows->n_row, n_class = p_rows->n_predictor;
  double v_most[TILE], v_sum[TILE];
  for (size_t first = 0; first < n_row; first += TILE) {
    const size_t n = tb_min(TILE, n_row - first);
    const double* v_eta = p_rows->v_eta + first;
    const double* v_y = p_rows->v_y + first;
    double* v_score = p_out->v_score == NULL ? NULL : p_out->v_score + first;
    softmax_tile(v_eta, n, n_class, n_row, v_score, v_most, v_sum);
    for (size_t k = 0; v_score != NULL && k < n_class; ++k) {
      for (size_t i = 0; i < n; ++i) {
        const double w = tb_response_weight(p_rows, first + i);
        const double other = -v_score[k * n_row + i] / v_sum[i];
        const bool is_own = (size_t)v_y[i] == k;
        v_score[k * n_row + i] = w * (is_own ? other + 1 : other);
      }
    }
    for (size_t i = 0; p_out->v_log_density != NULL && i < n; ++i) {
      const double eta = v_eta[(size_t)v_y[i] * n_row + i];
      p_out->v_log_density[first + i] = tb_response_weight(p_rows, first + i) *
                                        (eta - v_most[i] - log(v_sum[i]));
    }
    if (p_out->v_curvature != NULL) {
      double* v_bend = p_out->v_curvature + first;
      softmax_tile(v_eta, n, n_class, n_row, v_bend, v_most, v_sum);
      bend_tile(p_rows, first, n, v_sum, v_bend);
    }
  }
}

static void categorical_mean(const double* v_eta,
                             size_t n_row,
                             size_t n_predictor,
                             double* v_out) {
  double v_most[TILE], v_sum[TILE];
  for (size_t first = 0; first < n_row; first += TILE) {
    const size_t n = tb_min(TILE, n_row - first);
    double* v = v_out + first;
    softmax_tile(v_eta + first, n, n_predictor, n_row, v, v_most, v_sum);
    for (size_t k = 0; k < n_predictor; ++k) {
      for (size_t i = 0; i < n; ++i) {
        v[k * n_row + i] /= v_sum[i];
      }
    }
  }
}

const struct tb_response_type tb_response_categorical = {
    .name = "categorical",
    .link = "softmax",
    .citation = "McCullagh & Nelder (1989), Generalized Linear Models",
    .flags = TB_RESPONSE_CLASSES,
    .outside = categorical_outside,
    .evaluate = categorical_evaluate,
    .mean = categorical_mean,
};
