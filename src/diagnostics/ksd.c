/* See ksd.h. Summed over coordinates,
 *
 *   k(k, l) = K [ b_k.b_l + (2 beta (cross - d) - 4 beta (beta-1) r^2/q) / q ]
 *   cross   = b_l.x_k + b_k.x_l - b_k.x_k - b_l.x_l,   r^2 = ||u||^2
 *
 * whose inner products come from three matrix products for each pair of
 * blocks, not four: with s the ratio of the sizes of x and b, and y = x + s b,
 *
 *   b_l.x_k + b_k.x_l = (y_k.y_l - x_k.x_l - s^2 b_k.b_l) / s
 *
 * where the three terms are of one size, so that rounding is that of the
 * larger inner products. By coordinate, sums over k of the kernel times columns
 * of x and b are matrix products themselves:
 *
 *   sum_k K b_kj b_lj          = b_lj (K' B)_lj
 *   sum_k W u_j (b_lj - b_kj)  = b_lj (W'X)_lj + x_lj (W'B)_lj
 *                                - (W'(B.X))_lj - b_lj x_lj (W'1)_l
 *   sum_k V u_j^2              = (V' X.X)_lj - 2 x_lj (V'X)_lj
 *                                + x_lj^2 (V'1)_l
 *
 * with W = q^(beta-1), V = q^(beta-2). */
#include "diagnostics/ksd.h"

#include "base/threads.h"
#include "diagnostics/stein.h"

#include <math.h>
#include <string.h>

enum { BLOCK = TB_STEIN_BLOCK };
enum { PRODUCT_draw, PRODUCT_gradient, PRODUCT_sum, N_PRODUCT };

/* numbers of a thread */
static size_t work_size(const struct tb_ksd* p_ksd) {
  const size_t n_square = BLOCK * BLOCK;
  return p_ksd->by_coordinate ? 4 * n_square + 6 * BLOCK * p_ksd->n_dim
                              : N_PRODUCT * n_square;
}

size_t tb_ksd_scratch_size(const struct tb_ksd* p_ksd) {
  const size_t n_array = p_ksd->n_dim * p_ksd->n_draw;
  return sizeof(double) *
         ((p_ksd->by_coordinate ? 2 : 1) * n_array + 2 * p_ksd->n_draw +
          (size_t)p_ksd->n_threads * work_size(p_ksd));
}

size_t tb_ksd_n_task(const struct tb_ksd* p_ksd) {
  return (p_ksd->n_draw + BLOCK - 1) / BLOCK;
}

void tb_ksd_prepare(struct tb_ksd* p_ksd, void* p_scratch) {
  const size_t n_dim = p_ksd->n_dim, n_draw = p_ksd->n_draw;
  const size_t n_array = n_dim * n_draw;
  const double* v_x = p_ksd->v_draw;
  const double* v_b = p_ksd->v_gradient;
  p_ksd->v_sum = p_scratch;
  p_ksd->v_square = p_ksd->v_sum + (p_ksd->by_coordinate ? 2 : 1) * n_array;
  p_ksd->v_inner = p_ksd->v_square + n_draw;
  p_ksd->v_work = p_ksd->v_inner + n_draw;

  double size_x = 0, size_b = 0;
  for (size_t k = 0; k < n_draw; ++k) {
    double square = 0, inner = 0;
    for (size_t j = 0; j < n_dim; ++j) {
      const double x = v_x[k * n_dim + j], b = v_b[k * n_dim + j];
      square += x * x;
      inner += x * b;
      size_b += b * b;
    }
    p_ksd->v_square[k] = square;
    p_ksd->v_inner[k] = inner;
    size_x += square;
  }
  p_ksd->balance = size_x > 0 && size_b > 0 ? sqrt(size_x / size_b) : 1;
  if (p_ksd->by_coordinate) {
    for (size_t i = 0; i < n_array; ++i) {
      p_ksd->v_sum[i] = v_x[i] * v_b[i];
      p_ksd->v_sum[n_array + i] = v_x[i] * v_x[i];
    }
  } else {
    for (size_t i = 0; i < n_array; ++i) {
      p_ksd->v_sum[i] = v_x[i] + p_ksd->balance * v_b[i];
    }
  }
}

/* ---- functions of the distance ---- */

/* what depends on the column l alone */
struct column {
  double square;
  double inner;
};

/* sum_k w_k k(k, l) over n rows */
TB_CLONES
static double column_sum(const struct tb_ksd* p_ksd,
                         size_t start,
                         size_t n,
                         const struct column* p_column,
                         const double* v_xx,
                         const double* v_bb,
                         const double* v_yy) {
  const double* v_square = p_ksd->v_square + start;
  const double* v_inner = p_ksd->v_inner + start;
  const double* v_weight = p_ksd->v_weight + start;
  const double beta = p_ksd->beta, s = p_ksd->balance;
  const double from_bb = s, from_both = 1 / s;
  const double twice = 2 * beta, four = 4 * beta * (beta - 1);
  const double d = (double)p_ksd->n_dim;
  double sum = 0;

  struct tb_stein_column at;
  tb_stein_kernel(v_square, p_column->square, v_xx, p_ksd->c, beta, n, &at);

  size_t k = 0;
#ifdef TB_VECTOR
  tb_v4d v_part = {0, 0, 0, 0};
  for (; k + 4 <= n; k += 4) {
    const tb_v4d xx = *(const tb_v4d*)(v_xx + k);
    const tb_v4d bb = *(const tb_v4d*)(v_bb + k);
    const tb_v4d yy = *(const tb_v4d*)(v_yy + k);
    const tb_v4d inverse = *(const tb_v4d*)(at.v_inverse + k);
    const tb_v4d r2 = *(const tb_v4d*)(at.v_r2 + k);
    const tb_v4d cross = (yy - xx) * from_both - from_bb * bb -
                         *(const tb_v4d*)(v_inner + k) - p_column->inner;
    const tb_v4d bracket =
        bb + inverse * (twice * (cross - d) - four * r2 * inverse);
    v_part += *(const tb_v4d*)(v_weight + k) *
              *(const tb_v4d*)(at.v_kernel + k) * bracket;
  }
  sum = (v_part[0] + v_part[1]) + (v_part[2] + v_part[3]);
#endif
  for (; k < n; ++k) {
    const double inverse = at.v_inverse[k];
    const double cross = (v_yy[k] - v_xx[k]) * from_both - from_bb * v_bb[k] -
                         v_inner[k] - p_column->inner;
    sum += v_weight[k] * at.v_kernel[k] *
           (v_bb[k] +
            inverse * (twice * (cross - d) - four * at.v_r2[k] * inverse));
  }
  return sum;
}

/* Column l of the matrices w_k K, w_k W and w_k V, n rows; in: x_k.x_l. */
TB_CLONES
static void column_kernels(const struct tb_ksd* p_ksd,
                           size_t start,
                           size_t n,
                           double square,
                           const double* v_xx,
                           double* v_k,
                           double* v_w,
                           double* v_v) {
  struct tb_stein_column at;
  const double* v_weight = p_ksd->v_weight + start;
  tb_stein_kernel(p_ksd->v_square + start,
                  square,
                  v_xx,
                  p_ksd->c,
                  p_ksd->beta,
                  n,
                  &at);
  for (size_t k = 0; k < n; ++k) {
    v_k[k] = v_weight[k] * at.v_kernel[k];
    v_w[k] = v_k[k] * at.v_inverse[k];
    v_v[k] = v_w[k] * at.v_inverse[k];
  }
}

/* ---- tasks ---- */

static void vector_task(const struct tb_ksd* p_ksd,
                        size_t task,
                        double* v_work,
                        double* v_diagonal,
                        double* v_below) {
  const size_t n_dim = p_ksd->n_dim;
  const size_t column = task * BLOCK;
  const size_t n_column = tb_min(BLOCK, p_ksd->n_draw - column);
  const double* v_of[N_PRODUCT] = {
      [PRODUCT_draw] = p_ksd->v_draw,
      [PRODUCT_gradient] = p_ksd->v_gradient,
      [PRODUCT_sum] = p_ksd->v_sum,
  };
  double* v_product[N_PRODUCT];
  for (size_t p = 0; p < N_PRODUCT; ++p) {
    v_product[p] = v_work + p * BLOCK * BLOCK;
  }
  memset(v_below + column, 0, n_column * sizeof(double));

  for (size_t row = 0; row <= column; row += BLOCK) {
    const size_t n_row = tb_min(BLOCK, p_ksd->n_draw - row);
    for (size_t p = 0; p < N_PRODUCT; ++p) {
      tb_stein_product(n_dim,
                       v_of[p] + row * n_dim,
                       n_row,
                       v_of[p] + column * n_dim,
                       n_column,
                       v_product[p]);
    }
    for (size_t l = 0; l < n_column; ++l) {
      const struct column here = {p_ksd->v_square[column + l],
                                  p_ksd->v_inner[column + l]};
      const size_t n_before = row == column ? l : n_row;
      v_below[column + l] += column_sum(p_ksd,
                                        row,
                                        n_before,
                                        &here,
                                        v_product[PRODUCT_draw] + l * BLOCK,
                                        v_product[PRODUCT_gradient] + l * BLOCK,
                                        v_product[PRODUCT_sum] + l * BLOCK);
    }
  }

  const double c2 = p_ksd->c * p_ksd->c;
  const double kernel = pow(c2, p_ksd->beta);
  const double trace = -2 * p_ksd->beta * kernel / c2 * (double)n_dim;
  for (size_t l = column; l < column + n_column; ++l) {
    const double w = p_ksd->v_weight[l];
    const double* v_b = p_ksd->v_gradient + l * n_dim;
    const double square = tb_stein_inner(v_b, v_b, n_dim);
    v_below[l] *= 2 * w;
    v_diagonal[l] = w * w * (kernel * square + trace);
  }
}

static void coordinate_task(const struct tb_ksd* p_ksd,
                            size_t task,
                            double* v_work,
                            double* v_diagonal,
                            double* v_below) {
  const size_t n_dim = p_ksd->n_dim;
  const size_t column = task * BLOCK;
  const size_t n_column = tb_min(BLOCK, p_ksd->n_draw - column);
  const size_t n_square = BLOCK * BLOCK, n_map = BLOCK * n_dim;
  const double* v_bx = p_ksd->v_sum;
  const double* v_x2 = p_ksd->v_sum + n_dim * p_ksd->n_draw;
  double* v_xx = v_work;
  double* v_k = v_xx + n_square;
  double* v_w = v_k + n_square;
  double* v_v = v_w + n_square;
  double* v_kb = v_v + n_square;
  double* v_wx = v_kb + n_map;
  double* v_wb = v_wx + n_map;
  double* v_wbx = v_wb + n_map;
  double* v_vx = v_wbx + n_map;
  double* v_vx2 = v_vx + n_map;
  const double beta = p_ksd->beta, c2 = p_ksd->c * p_ksd->c;
  memset(v_below + column * n_dim, 0, n_column * n_dim * sizeof(double));

  for (size_t row = 0; row <= column; row += BLOCK) {
    const size_t n_row = tb_min(BLOCK, p_ksd->n_draw - row);
    tb_stein_product(n_dim,
                     p_ksd->v_draw + row * n_dim,
                     n_row,
                     p_ksd->v_draw + column * n_dim,
                     n_column,
                     v_xx);
    for (size_t l = 0; l < n_column; ++l) {
      const size_t n_before = row == column ? l : n_row;
      const size_t n_after = n_row - n_before, at = l * BLOCK;
      column_kernels(p_ksd,
                     row,
                     n_before,
                     p_ksd->v_square[column + l],
                     v_xx + at,
                     v_k + at,
                     v_w + at,
                     v_v + at);
      memset(v_k + at + n_before, 0, n_after * sizeof(double));
      memset(v_w + at + n_before, 0, n_after * sizeof(double));
      memset(v_v + at + n_before, 0, n_after * sizeof(double));
    }
    const double* v_xr = p_ksd->v_draw + row * n_dim;
    const double* v_br = p_ksd->v_gradient + row * n_dim;
    const double* v_bxr = v_bx + row * n_dim;
    const double* v_x2r = v_x2 + row * n_dim;
    tb_stein_map(n_dim, v_br, n_row, v_k, n_column, 0, v_kb);
    tb_stein_map(n_dim, v_xr, n_row, v_w, n_column, 0, v_wx);
    tb_stein_map(n_dim, v_br, n_row, v_w, n_column, 0, v_wb);
    tb_stein_map(n_dim, v_bxr, n_row, v_w, n_column, 0, v_wbx);
    tb_stein_map(n_dim, v_xr, n_row, v_v, n_column, 0, v_vx);
    tb_stein_map(n_dim, v_x2r, n_row, v_v, n_column, 0, v_vx2);
    for (size_t l = 0; l < n_column; ++l) {
      double w1 = 0, v1 = 0;
      for (size_t k = 0; k < n_row; ++k) {
        w1 += v_w[l * BLOCK + k];
        v1 += v_v[l * BLOCK + k];
      }
      const double* v_x = p_ksd->v_draw + (column + l) * n_dim;
      const double* v_b = p_ksd->v_gradient + (column + l) * n_dim;
      double* v_to = v_below + (column + l) * n_dim;
      for (size_t j = 0; j < n_dim; ++j) {
        const size_t at = l * n_dim + j;
        const double cross = v_b[j] * v_wx[at] + v_x[j] * v_wb[at] - v_wbx[at] -
                             v_b[j] * v_x[j] * w1;
        const double square =
            v_vx2[at] - 2 * v_x[j] * v_vx[at] + v_x[j] * v_x[j] * v1;
        v_to[j] += v_b[j] * v_kb[at] + 2 * beta * (cross - w1) -
                   4 * beta * (beta - 1) * square;
      }
    }
  }

  const double kernel = pow(c2, beta), trace = -2 * beta * kernel / c2;
  for (size_t l = column; l < column + n_column; ++l) {
    const double w = p_ksd->v_weight[l];
    for (size_t j = 0; j < n_dim; ++j) {
      const double b = p_ksd->v_gradient[l * n_dim + j];
      v_below[l * n_dim + j] *= 2 * w;
      v_diagonal[l * n_dim + j] = w * w * (kernel * b * b + trace);
    }
  }
}

void tb_ksd_advance(const struct tb_ksd* p_ksd,
                    size_t first,
                    size_t last,
                    double* v_diagonal,
                    double* v_below) {
  const size_t n_work = work_size(p_ksd);
#ifdef _OPENMP
#pragma omp parallel for num_threads(p_ksd->n_threads) schedule(dynamic, 1)
#endif
  /* the longest columns first */
  for (size_t i = 0; i < last - first; ++i) {
    const size_t task = last - 1 - i;
    double* v_work = p_ksd->v_work + tb_thread() * n_work;
    if (p_ksd->by_coordinate) {
      coordinate_task(p_ksd, task, v_work, v_diagonal, v_below);
    } else {
      vector_task(p_ksd, task, v_work, v_diagonal, v_below);
    }
  }
}
