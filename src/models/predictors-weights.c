/* Rows with several predictors: unnormalised subsampling weights; see
 * predictors.c. With M the posterior covariance of the inner coordinates of a
 * row, R R^T = M, and G = R^T h R what h, the negative Hessian of l_i there, is
 * in posterior sds,
 *
 *   robust  the largest ||G||_F,
 *   cubic   ||.||_F of the third derivatives, by differences of G,
 *
 * over places at which each whitened coordinate is -TB_WEIGHT_REACH, 0 or
 * TB_WEIGHT_REACH. None of these is a bound: estimates are unbiased with any
 * weights, and a pilot says how large they must be. Parameters that all rows
 * share come first in R: where they are at a place is then the same for all
 * rows.
 *
 *   symbol   variable   shape                          owner
 *   Sigma    v_sigma    n_dim x n_dim                  caller
 *   R        v_root     n_inner x n_inner x n_row      heap
 *   G        v_whole    n_place x n_inner x n_inner x n_row   heap
 */
#include "models/predictors-inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = PREDICTORS_MOST_INNER };

/* the inner coordinate that is the j-th of R: parameters first */
static size_t inner_at(const struct predictors* p, size_t j) {
  return j < p->n_aux ? p->n_eta + j : j - p->n_aux;
}

/* z^T Sigma z' of the j-th and l-th coordinates of R, of a row v_x */
static double inner_product(const struct predictors* p,
                            const double* v_sigma,
                            size_t n_dim,
                            const double* v_x,
                            size_t j,
                            size_t l) {
  const size_t a = inner_at(p, j), b = inner_at(p, l), n = p->n_coef;
  const bool is_a = a < p->n_eta, is_b = b < p->n_eta;
  const size_t from_a = is_a ? p->v_first[a] : n + a - p->n_eta;
  const size_t from_b = is_b ? p->v_first[b] : n + b - p->n_eta;
  const size_t n_a = is_a ? predictors_width(p, a) : 1;
  const size_t n_b = is_b ? predictors_width(p, b) : 1;
  double sum = 0;
  for (size_t k = 0; k < n_b; ++k) {
    double own = 0;
    for (size_t i = 0; i < n_a; ++i) {
      own += v_sigma[(from_b + k) * n_dim + from_a + i] *
             (is_a ? v_x[from_a + i] : 1);
    }
    sum += own * (is_b ? v_x[from_b + k] : 1);
  }
  return sum;
}

/* Lower, row-major; what rounding leaves below 0 is 0. */
static void set_root(size_t n, double v_m[N][N], double* v_root) {
  memset(v_root, 0, n * n * sizeof(double));
  for (size_t j = 0; j < n; ++j) {
    for (size_t l = 0; l <= j; ++l) {
      double rest = v_m[j][l];
      for (size_t k = 0; k < l; ++k) {
        rest -= v_root[j * n + k] * v_root[l * n + k];
      }
      if (l == j) {
        v_root[j * n + j] = sqrt(fmax(rest, 0));
      } else {
        const double pivot = v_root[l * n + l];
        v_root[j * n + l] = pivot > 0 ? rest / pivot : 0;
      }
    }
  }
}

/* -1, 0 or 1 of coordinate j at a place */
static double side(size_t place, size_t j) {
  for (size_t k = 0; k < j; ++k) {
    place /= 3;
  }
  return (double)(place % 3) - 1;
}

/* v_whole := R^T h R of a row */
static void whiten(const struct predictors* p,
                   const double* v_root,
                   const double* v_bend,
                   double* v_whole) {
  const size_t n = p->n_inner;
  double v_half[N][N];
  for (size_t j = 0; j < n; ++j) {
    for (size_t l = 0; l < n; ++l) {
      v_half[j][l] = 0;
      for (size_t k = l; k < n; ++k) {
        v_half[j][l] +=
            v_bend[inner_at(p, j) * n + inner_at(p, k)] * v_root[k * n + l];
      }
    }
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t l = 0; l < n; ++l) {
      double sum = 0;
      for (size_t k = j; k < n; ++k) {
        sum += v_root[k * n + j] * v_half[k][l];
      }
      v_whole[j * n + l] = sum;
    }
  }
}

/* the steepest rise of entry e between neighbours along direction d, an sd */
static double steepest(const double* v_whole,
                       size_t n_place,
                       size_t n_each,
                       size_t e,
                       size_t stride) {
  double most = 0;
  for (size_t place = 0; place < n_place; ++place) {
    if (place / stride % 3 < 2) {
      most = fmax(most,
                  fabs(v_whole[(place + stride) * n_each + e] -
                       v_whole[place * n_each + e]));
    }
  }
  return most / TB_WEIGHT_REACH;
}

/* v_whole: of one row, places n_each apart */
static double
cubic_weight(size_t n, const double* v_whole, size_t n_place, size_t n_each) {
  double v_rise[N][N][N], sum = 0;
  size_t stride = 1;
  for (size_t d = 0; d < n; ++d, stride *= 3) {
    for (size_t e = 0; e < n * n; ++e) {
      v_rise[e / n][e % n][d] = steepest(v_whole, n_place, n_each, e, stride);
    }
  }
  for (size_t i = 0; i < n * n * n; ++i) {
    const size_t a = i / (n * n), b = i / n % n, d = i % n;
    const double most =
        fmax(v_rise[a][b][d], fmax(v_rise[a][d][b], v_rise[b][d][a]));
    sum += most * most;
  }
  return sqrt(sum);
}

static double
robust_weight(size_t n, const double* v_whole, size_t n_place, size_t n_each) {
  double most = 0;
  for (size_t place = 0; place < n_place; ++place) {
    double sum = 0;
    for (size_t e = 0; e < n * n; ++e) {
      const double g = v_whole[place * n_each + e];
      sum += g * g;
    }
    most = fmax(most, sum);
  }
  return sqrt(most);
}

/* G at all places, of the rows of a block whose predictors are in v_eta_at */
static void look_around(const struct predictors* p,
                        const double* v_s,
                        size_t n_row,
                        size_t n_place,
                        const struct predictors_scratch* p_s,
                        const double* v_root,
                        double* v_whole) {
  const size_t n = p->n_inner, n_square = n * n;
  const struct predictors_out out = {.v_bend = p_s->v_bend};
  for (size_t place = 0; place < n_place; ++place) {
    double v_at[N] = {0};
    for (size_t a = 0; a < p->n_aux; ++a) {
      v_at[a] = v_s[a];
      for (size_t l = 0; l <= a; ++l) {
        v_at[a] += v_root[a * n + l] * TB_WEIGHT_REACH * side(place, l);
      }
    }
    const struct tb_response_point point = tb_response_at(&p->response, v_at);
    for (size_t i = 0; i < n_row; ++i) {
      for (size_t k = 0; k < p->n_eta; ++k) {
        double eta = p_s->v_eta_at[k * n_row + i];
        for (size_t l = 0; l < n; ++l) {
          eta += v_root[i * n_square + (p->n_aux + k) * n + l] *
                 TB_WEIGHT_REACH * side(place, l);
        }
        p_s->v_eta[k * n_row + i] = eta;
      }
    }
    predictors_evaluate(p, &point, n_row, p_s, &out);
    for (size_t i = 0; i < n_row; ++i) {
      whiten(p,
             v_root + i * n_square,
             p_s->v_bend + i * n_square,
             v_whole + (place * n_row + i) * n_square);
    }
  }
}

enum tb_status predictors_weights(const struct tb_model* p_model,
                                  const struct tb_workspace* p_work,
                                  enum tb_weight_type type,
                                  const double* v_theta,
                                  const double* v_sigma,
                                  const struct tb_batch* p_batch,
                                  double* v_out) {
  const struct predictors* p = p_model->p_self;
  const size_t n = p->n_inner, n_square = n * n, n_dim = p_model->n_dim;
  size_t n_place = 1;
  if (type != TB_WEIGHT_robust && type != TB_WEIGHT_cubic) {
    return TB_STATUS_unsupported;
  }
  for (size_t j = 0; j < n; ++j) {
    n_place *= 3;
  }
  const struct predictors_scratch s =
      predictors_scratch_at(p, p_work->p_scratch, false);
  const size_t n_number = (1 + n_place) * n_square * PREDICTORS_BLOCK;
  double* v_root = malloc(n_number * sizeof(double));
  if (v_root == NULL) {
    return TB_STATUS_memory;
  }
  double* v_whole = v_root + n_square * PREDICTORS_BLOCK;
  for (size_t b = 0; b < p_batch->n_batch; b += PREDICTORS_BLOCK) {
    const size_t n_row = predictors_gather(p, p_batch, b, &s);
    predictors_predict(p, v_theta, p_batch, b, n_row, &s);
    memcpy(s.v_eta_at, s.v_eta, p->n_eta * n_row * sizeof(double));
    for (size_t i = 0; i < n_row; ++i) {
      double v_m[N][N];
      for (size_t j = 0; j < n_square; ++j) {
        const double* v_x = s.v_x + i * p->n_coef;
        v_m[j / n][j % n] = inner_product(p, v_sigma, n_dim, v_x, j / n, j % n);
      }
      set_root(n, v_m, v_root + i * n_square);
    }
    look_around(p, v_theta + p->n_coef, n_row, n_place, &s, v_root, v_whole);
    for (size_t i = 0; i < n_row; ++i) {
      const double* v_own = v_whole + i * n_square;
      const size_t n_each = n_row * n_square;
      v_out[b + i] = type == TB_WEIGHT_cubic
                         ? cubic_weight(n, v_own, n_place, n_each)
                         : robust_weight(n, v_own, n_place, n_each);
    }
  }
  free(v_root);
  return TB_STATUS_ok;
}
