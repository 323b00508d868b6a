/* See fssd.h. Both passes over the draws are sums of blocks of
 *
 *   out_j = B f_j + X g_j - v_j sum(g_j)
 *
 * with coefficients f_j, g_j of the distances and inner products: four matrix
 * products for each block, six for the slopes. With W = q^(beta-1), V =
 * q^(beta-2), S_j:
 *
 *   S_j: f = w K,  g = 2 beta w W
 *   slope of ||S_j||^2, less 4 beta S_j sum_k w W:
 *     f = 0,  g = 2 w (-2 beta W S.b - 4 beta (beta-1) V S.u)
 *   slope of -D_j:
 *     f = 4 beta w^2 K^2/q
 *     g = w^2 K^2/q (4 beta b.b + 8 beta (2 beta-1) b.u/q
 *                    + 8 beta^2 (2 (beta-1) r^2/q + 1)/q) */
#include "diagnostics/fssd.h"

#include "base/threads.h"
#include "diagnostics/stein.h"

#include <string.h>

enum { BLOCK = TB_STEIN_BLOCK, N_CHUNK = 8 };

enum {
  PRODUCT_vx,
  PRODUCT_vb,
  PRODUCT_sx,
  PRODUCT_sb,
  COEFFICIENT_b,
  COEFFICIENT_x,
  N_SQUARE
};

/* sums of a chunk: out (n_dim x n_location), then one number a location */
static size_t part_size(const struct tb_fssd* p_fssd) {
  return (p_fssd->n_dim + 1) * p_fssd->n_location;
}

size_t tb_fssd_scratch_size(const struct tb_fssd* p_fssd) {
  return sizeof(double) *
         (3 * p_fssd->n_draw + p_fssd->n_location +
          N_CHUNK * part_size(p_fssd) +
          (size_t)p_fssd->n_threads * N_SQUARE * BLOCK * BLOCK);
}

void tb_fssd_prepare(struct tb_fssd* p_fssd, void* p_scratch) {
  const size_t n_dim = p_fssd->n_dim, n_draw = p_fssd->n_draw;
  p_fssd->v_norm = p_scratch;
  p_fssd->v_inner = p_fssd->v_norm + n_draw;
  p_fssd->v_size = p_fssd->v_inner + n_draw;
  p_fssd->v_far = p_fssd->v_size + n_draw;
  p_fssd->v_part = p_fssd->v_far + p_fssd->n_location;
  p_fssd->v_work = p_fssd->v_part + N_CHUNK * part_size(p_fssd);
  for (size_t k = 0; k < n_draw; ++k) {
    const double* v_x = p_fssd->v_draw + k * n_dim;
    const double* v_b = p_fssd->v_gradient + k * n_dim;
    p_fssd->v_norm[k] = tb_stein_inner(v_b, v_b, n_dim);
    p_fssd->v_inner[k] = tb_stein_inner(v_b, v_x, n_dim);
    p_fssd->v_size[k] = tb_stein_inner(v_x, v_x, n_dim);
  }
  for (size_t j = 0; j < p_fssd->n_location; ++j) {
    const double* v_v = p_fssd->v_location + j * n_dim;
    p_fssd->v_far[j] = tb_stein_inner(v_v, v_v, n_dim);
  }
}

/* ---- coefficients of one location and a block of draws ---- */

/* a block of draws against one location */
struct column {
  size_t start; /* first draw */
  size_t n;     /* draws */
  size_t location;
  const double* v_vx; /* n: v.x */
  const double* v_vb; /* n: v.b */
  double* v_f;        /* n, out */
  double* v_g;        /* n, out */
};

TB_INLINE void column_kernel(const struct tb_fssd* p_fssd,
                             const struct column* p_column,
                             struct tb_stein_column* p) {
  tb_stein_kernel(p_fssd->v_size + p_column->start,
                  p_fssd->v_far[p_column->location],
                  p_column->v_vx,
                  p_fssd->c,
                  p_fssd->beta,
                  p_column->n,
                  p);
}

/* Coefficients of S; returns what the block adds to D. */
TB_CLONES
static double sum_column(const struct tb_fssd* p_fssd,
                         const struct column* p_column) {
  struct tb_stein_column at;
  const double* v_weight = p_fssd->v_weight + p_column->start;
  const double* v_norm = p_fssd->v_norm + p_column->start;
  const double* v_inner = p_fssd->v_inner + p_column->start;
  const double twice = 2 * p_fssd->beta;
  double square = 0;
  column_kernel(p_fssd, p_column, &at);
  for (size_t k = 0; k < p_column->n; ++k) {
    const double f = v_weight[k] * at.v_kernel[k];
    const double g = twice * f * at.v_inverse[k];
    const double bu = v_inner[k] - p_column->v_vb[k];
    square += f * f * v_norm[k] + 2 * f * g * bu + g * g * at.v_r2[k];
    p_column->v_f[k] = f;
    p_column->v_g[k] = g;
  }
  return square;
}

/* Coefficients of the slope; returns the block's sum of w W. v_sx, v_sb: S.x
 * and S.b of the draws, sv: S.v */
TB_CLONES
static double slope_column(const struct tb_fssd* p_fssd,
                           const struct column* p_column,
                           const double* v_sx,
                           const double* v_sb,
                           double sv,
                           bool has_diagonal) {
  struct tb_stein_column at;
  const double* v_weight = p_fssd->v_weight + p_column->start;
  const double* v_norm = p_fssd->v_norm + p_column->start;
  const double* v_inner = p_fssd->v_inner + p_column->start;
  const double beta = p_fssd->beta;
  const double off = has_diagonal ? 0 : 1;
  double sum = 0;
  column_kernel(p_fssd, p_column, &at);
  for (size_t k = 0; k < p_column->n; ++k) {
    const double inverse = at.v_inverse[k], r2 = at.v_r2[k];
    const double w1 = v_weight[k] * at.v_kernel[k] * inverse;
    const double su = v_sx[k] - sv, bu = v_inner[k] - p_column->v_vb[k];
    const double own = off * v_weight[k] * at.v_kernel[k] * w1;
    const double from_sum =
        -4 * beta * w1 * (v_sb[k] + 2 * (beta - 1) * inverse * su);
    const double from_own =
        4 * beta * v_norm[k] +
        8 * beta * inverse *
            ((2 * beta - 1) * bu + beta * (2 * (beta - 1) * r2 * inverse + 1));
    p_column->v_f[k] = 4 * beta * own;
    p_column->v_g[k] = from_sum + own * from_own;
    sum += w1;
  }
  return sum;
}

/* ---- passes over the draws ---- */

struct pass {
  const double* v_sum; /* S, for slopes; NULL: make S */
  bool has_diagonal;
};

/* A block of draws and a block of locations, added to a chunk's part. */
static void add_block(const struct tb_fssd* p_fssd,
                      const struct pass* p_pass,
                      size_t row,
                      size_t n_row,
                      size_t column,
                      size_t n_column,
                      double* v_work,
                      double* v_part) {
  const size_t n_dim = p_fssd->n_dim;
  const double* v_x = p_fssd->v_draw + row * n_dim;
  const double* v_b = p_fssd->v_gradient + row * n_dim;
  const double* v_v = p_fssd->v_location + column * n_dim;
  double* v_square[N_SQUARE];
  for (size_t i = 0; i < N_SQUARE; ++i) {
    v_square[i] = v_work + i * BLOCK * BLOCK;
  }
  tb_stein_product(n_dim, v_x, n_row, v_v, n_column, v_square[PRODUCT_vx]);
  tb_stein_product(n_dim, v_b, n_row, v_v, n_column, v_square[PRODUCT_vb]);
  if (p_pass->v_sum != NULL) {
    const double* v_s = p_pass->v_sum + column * n_dim;
    tb_stein_product(n_dim, v_x, n_row, v_s, n_column, v_square[PRODUCT_sx]);
    tb_stein_product(n_dim, v_b, n_row, v_s, n_column, v_square[PRODUCT_sb]);
  }
  double* v_out = v_part + column * n_dim;
  double* v_number = v_part + p_fssd->n_location * n_dim + column;
  for (size_t j = 0; j < n_column; ++j) {
    const size_t at = j * BLOCK;
    const struct column here = {.start = row,
                                .n = n_row,
                                .location = column + j,
                                .v_vx = v_square[PRODUCT_vx] + at,
                                .v_vb = v_square[PRODUCT_vb] + at,
                                .v_f = v_square[COEFFICIENT_b] + at,
                                .v_g = v_square[COEFFICIENT_x] + at};
    v_number[j] +=
        p_pass->v_sum == NULL
            ? sum_column(p_fssd, &here)
            : slope_column(p_fssd,
                           &here,
                           v_square[PRODUCT_sx] + at,
                           v_square[PRODUCT_sb] + at,
                           tb_stein_inner(p_pass->v_sum + (column + j) * n_dim,
                                          v_v + j * n_dim,
                                          n_dim),
                           p_pass->has_diagonal);
    double total = 0;
    for (size_t k = 0; k < n_row; ++k) {
      total += here.v_g[k];
    }
    for (size_t i = 0; i < n_dim; ++i) {
      v_out[j * n_dim + i] -= v_v[j * n_dim + i] * total;
    }
  }
  tb_stein_map(n_dim, v_b, n_row, v_square[COEFFICIENT_b], n_column, 1, v_out);
  tb_stein_map(n_dim, v_x, n_row, v_square[COEFFICIENT_x], n_column, 1, v_out);
}

/* Adds up the parts of all chunks in the first. */
static void run_pass(const struct tb_fssd* p_fssd, const struct pass* p_pass) {
  const size_t n_part = part_size(p_fssd);
  const size_t n_block = (p_fssd->n_draw + BLOCK - 1) / BLOCK;
  memset(p_fssd->v_part, 0, N_CHUNK * n_part * sizeof(double));
#ifdef _OPENMP
#pragma omp parallel for num_threads(p_fssd->n_threads) schedule(dynamic, 1)
#endif
  for (size_t chunk = 0; chunk < N_CHUNK; ++chunk) {
    double* v_work = p_fssd->v_work + tb_thread() * N_SQUARE * BLOCK * BLOCK;
    double* v_part = p_fssd->v_part + chunk * n_part;
    const size_t end =
        tb_min(p_fssd->n_draw, (chunk + 1) * n_block / N_CHUNK * BLOCK);
    for (size_t row = chunk * n_block / N_CHUNK * BLOCK; row < end;
         row += BLOCK) {
      const size_t n_row = tb_min(BLOCK, end - row);
      for (size_t j = 0; j < p_fssd->n_location; j += BLOCK) {
        add_block(p_fssd,
                  p_pass,
                  row,
                  n_row,
                  j,
                  tb_min(BLOCK, p_fssd->n_location - j),
                  v_work,
                  v_part);
      }
    }
  }
  for (size_t chunk = 1; chunk < N_CHUNK; ++chunk) {
    for (size_t i = 0; i < n_part; ++i) {
      p_fssd->v_part[i] += p_fssd->v_part[chunk * n_part + i];
    }
  }
}

void tb_fssd_sums(const struct tb_fssd* p_fssd,
                  double* v_sum,
                  double* v_square) {
  const size_t n_out = p_fssd->n_dim * p_fssd->n_location;
  const struct pass pass = {.v_sum = NULL};
  run_pass(p_fssd, &pass);
  memcpy(v_sum, p_fssd->v_part, n_out * sizeof(double));
  memcpy(v_square, p_fssd->v_part + n_out, p_fssd->n_location * sizeof(double));
}

void tb_fssd_slopes(const struct tb_fssd* p_fssd,
                    const double* v_sum,
                    bool has_diagonal,
                    double* v_slope) {
  const size_t n_dim = p_fssd->n_dim;
  const struct pass pass = {.v_sum = v_sum, .has_diagonal = has_diagonal};
  run_pass(p_fssd, &pass);
  const double* v_total = p_fssd->v_part + n_dim * p_fssd->n_location;
  for (size_t j = 0; j < p_fssd->n_location; ++j) {
    const double factor = 4 * p_fssd->beta * v_total[j];
    for (size_t i = 0; i < n_dim; ++i) {
      const size_t at = j * n_dim + i;
      v_slope[at] = p_fssd->v_part[at] - factor * v_sum[at];
    }
  }
}
