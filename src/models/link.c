/* See models/link.h. */
#include "models/link.h"

#include "base/clones.h"
#include "base/vector.h"

#include <string.h>

/* A tile is N_ROW rows x N_DRAW draws: its sums, and the pieces of v_theta and
 * v_x they are made from, copied so that each is read in order, N_COLUMN
 * coordinates at a time. Together they stay in the cache of one core; powers
 * of two would put many columns on the same lines of it. */
enum { N_DRAW = 96, N_ROW = 64, N_COLUMN = 120, N_QUAD = 4, N_MICRO = 12 };

struct tile {
  /* [micro][coordinate][N_MICRO] */
  _Alignas(64) double v_theta[N_COLUMN * N_DRAW];
  double v_x[N_COLUMN * N_ROW]; /* [quad][coordinate][N_QUAD] */
  double v_sum[N_ROW * N_DRAW]; /* [row][draw] */
};

/* Rows first .. first + n_here of columns of n_all, in groups of n_group (a
 * constant where it is called: short copies of a known length), zeros beyond
 * the last. Column by column: each is on a page of its own. */
TB_INLINE void tile_pack(double* v_to,
                         const double* v_from,
                         size_t n_all,
                         size_t first,
                         size_t n_here,
                         size_t n_column,
                         size_t n_group) {
  for (size_t j = 0; j < n_column; ++j) {
    const double* v_column = v_from + j * n_all + first;
    double* v_group = v_to + j * n_group;
    size_t n = n_here;
    for (; n >= n_group; n -= n_group) {
      memcpy(v_group, v_column, n_group * sizeof(double));
      v_column += n_group;
      v_group += n_column * n_group;
    }
    if (n > 0) {
      memcpy(v_group, v_column, n * sizeof(double));
      memset(v_group + n, 0, (n_group - n) * sizeof(double));
    }
  }
}

/* Sums of N_QUAD rows x N_MICRO draws, which the registers hold. */
TB_INLINE void micro_add(const double* v_theta,
                         const double* v_x,
                         size_t n_column,
                         double* v_sum) {
#ifdef TB_VECTOR
#define ROW(r)                                                                 \
  tb_v4d s##r##0 = *(tb_v4d*)(v_sum + r * N_DRAW);                             \
  tb_v4d s##r##1 = *(tb_v4d*)(v_sum + r * N_DRAW + 4);                         \
  tb_v4d s##r##2 = *(tb_v4d*)(v_sum + r * N_DRAW + 8);
#define ADD(r)                                                                 \
  s##r##0 += t0 * v_x[r];                                                      \
  s##r##1 += t1 * v_x[r];                                                      \
  s##r##2 += t2 * v_x[r];
#define PUT(r)                                                                 \
  *(tb_v4d*)(v_sum + r * N_DRAW) = s##r##0;                                    \
  *(tb_v4d*)(v_sum + r * N_DRAW + 4) = s##r##1;                                \
  *(tb_v4d*)(v_sum + r * N_DRAW + 8) = s##r##2;
  ROW(0)
  ROW(1)
  ROW(2)
  ROW(3)
  for (size_t j = 0; j < n_column; ++j, v_theta += N_MICRO, v_x += N_QUAD) {
    const tb_v4d t0 = *(const tb_v4d*)v_theta;
    const tb_v4d t1 = *(const tb_v4d*)(v_theta + 4);
    const tb_v4d t2 = *(const tb_v4d*)(v_theta + 8);
    ADD(0) ADD(1) ADD(2) ADD(3)
  }
  PUT(0) PUT(1) PUT(2) PUT(3)
#undef ROW
#undef ADD
#undef PUT
#else
  for (size_t j = 0; j < n_column; ++j, v_theta += N_MICRO, v_x += N_QUAD) {
    for (size_t r = 0; r < N_QUAD; ++r) {
      for (size_t k = 0; k < N_MICRO; ++k) {
        v_sum[r * N_DRAW + k] += v_theta[k] * v_x[r];
      }
    }
  }
#endif
}

TB_CLONES static void
tile_add(struct tile* p_tile, size_t n_column, size_t n_draw, size_t n_row) {
  for (size_t k = 0; k < n_draw; k += N_MICRO) {
    for (size_t r = 0; r < n_row; r += N_QUAD) {
      micro_add(p_tile->v_theta + k * n_column,
                p_tile->v_x + r * n_column,
                n_column,
                p_tile->v_sum + r * N_DRAW + k);
    }
  }
}

/* whole groups of rows: the last ones' sums are not used */
static void
tile_start(struct tile* p_tile, const double* v_offset, size_t n_row) {
  for (size_t r = 0; r < n_row || r % N_QUAD != 0; ++r) {
    const double start = v_offset == NULL || r >= n_row ? 0 : v_offset[r];
    for (size_t k = 0; k < N_DRAW; ++k) {
      p_tile->v_sum[r * N_DRAW + k] = start;
    }
  }
}

static size_t size_min(size_t a, size_t b) {
  return a < b ? a : b;
}

/* every draw of a part, at some rows */
static void product_task(const struct tb_link_product* p,
                         size_t first_row,
                         size_t first_draw,
                         size_t end_draw) {
  struct tile tile;
  const size_t n_row = size_min(N_ROW, p->n_row - first_row);
  const double* v_offset = p->v_offset == NULL ? NULL : p->v_offset + first_row;
  for (size_t draw = first_draw; draw < end_draw; draw += N_DRAW) {
    const size_t n_draw = size_min(N_DRAW, end_draw - draw);
    tile_start(&tile, v_offset, n_row);
    for (size_t j = 0; j < p->n_dim; j += N_COLUMN) {
      const size_t n_column = size_min(N_COLUMN, p->n_dim - j);
      /* x is in place already where one piece of it is all */
      if (draw == first_draw || p->n_dim > N_COLUMN) {
        tile_pack(tile.v_x,
                  p->v_x + j * p->n_row,
                  p->n_row,
                  first_row,
                  n_row,
                  n_column,
                  N_QUAD);
      }
      tile_pack(tile.v_theta,
                p->v_theta + j * p->n_draw,
                p->n_draw,
                draw,
                n_draw,
                n_column,
                N_MICRO);
      tile_add(&tile, n_column, n_draw, n_row);
    }
    for (size_t r = 0; r < n_row; ++r) {
      const double* v_eta = tile.v_sum + r * N_DRAW;
      double* v_out = p->v_out + (first_row + r) * p->n_draw + draw;
      if (p->response == NULL) {
        memcpy(v_out, v_eta, n_draw * sizeof(double));
      } else {
        p->response->mean(v_eta, n_draw, 1, v_out);
      }
    }
  }
}

/* A row without its zeros, at every draw: a sum of columns of v_theta. */
TB_CLONES static void
sparse_row(const struct tb_link_product* p, size_t row, double* v_out) {
  const struct tb_columns* p_rows = p->p_rows;
  const double start = p->v_offset == NULL ? 0 : p->v_offset[row];
  const size_t end = (size_t)p_rows->v_start[row + 1];
  for (size_t k = 0; k < p->n_draw; ++k) {
    v_out[k] = start;
  }
  for (size_t at = (size_t)p_rows->v_start[row]; at < end; ++at) {
    const double* v_theta = p->v_theta + (size_t)p_rows->v_row[at] * p->n_draw;
    const double x = p_rows->v_value[at];
    for (size_t k = 0; k < p->n_draw; ++k) {
      v_out[k] += x * v_theta[k];
    }
  }
}

static void sparse_product(const struct tb_link_product* p) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(p->n_threads) schedule(static)
#endif
  for (size_t row = 0; row < p->n_row; ++row) {
    double* v_out = p->v_out + row * p->n_draw;
    sparse_row(p, row, v_out);
    if (p->response != NULL) {
      p->response->mean(v_out, p->n_draw, 1, v_out);
    }
  }
}

/* A product of BLAS would leave v_out in memory before its inverse link is
 * taken; here it is taken in the cache. */
void tb_link_product(const struct tb_link_product* p) {
  enum { N_PART = 10 * N_DRAW };
  if (p->p_rows != NULL) {
    sparse_product(p);
    return;
  }
  const size_t n_block = (p->n_row + N_ROW - 1) / N_ROW;
  const size_t n_part = (p->n_draw + N_PART - 1) / N_PART;
#ifdef _OPENMP
#pragma omp parallel for num_threads(p->n_threads) schedule(dynamic, 1)
#endif
  for (size_t task = 0; task < n_block * n_part; ++task) {
    const size_t first_draw = task % n_part * N_PART;
    product_task(p,
                 task / n_part * N_ROW,
                 first_draw,
                 size_min(p->n_draw, first_draw + N_PART));
  }
}
