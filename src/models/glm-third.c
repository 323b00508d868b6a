/* Generalised linear models, cubic weights of rows by differences, where a
 * response has no bounds of third derivatives or some of its parameters are
 * sampled; see glm-weights.c.
 *
 *   symbol     variable      shape                    owner
 *   -H_i       v_look        places x entries x rows  the caller's frame
 *   R          v_root        AUX x AUX                grid
 *   sqrt(q_i)  v_sigma_norm  rows                     caller
 */
#include "models/glm-inside.h"

#include "responses/shared.h"

#include <math.h>

enum { MOST_ENTRY = 1 + AUX + PAIR };

struct glm_grid glm_grid_at(const struct glm* p_glm,
                            const double* v_center,
                            const double* v_root) {
  struct glm_grid grid = {.n_aux = p_glm->n_aux, .n_place = 3};
  memcpy(grid.v_root, v_root, sizeof(grid.v_root));
  for (size_t k = 0; k < grid.n_aux; ++k) {
    grid.n_place *= 3;
  }
  for (size_t place = 0; place < grid.n_place / 3; ++place) {
    double v_s[AUX] = {0};
    for (size_t k = 0; k < grid.n_aux; ++k) {
      v_s[k] = v_center[k];
      for (size_t l = 0, rest = place; l < grid.n_aux; ++l, rest /= 3) {
        v_s[k] += grid.v_root[k * AUX + l] * ((double)(rest % 3) - 1) *
                  TB_WEIGHT_REACH;
      }
    }
    grid.v_point[place] = tb_response_at(&p_glm->response, v_s);
  }
  return grid;
}

/* -H_i at all places, of the rows of a block: c, then each a, then each b */
static void look_around(const struct glm* p_glm,
                        const struct glm_grid* p_grid,
                        const struct glm_block* p_block,
                        const double* v_sigma_norm,
                        double v_look[GLM_MOST_PLACE][MOST_ENTRY * BLOCK]) {
  const size_t n_row = p_block->n_row, n_aux = p_grid->n_aux;
  for (size_t place = 0; place < p_grid->n_place; ++place) {
    struct glm_block block = *p_block;
    double* v = v_look[place];
    for (size_t k = 0; k < n_row; ++k) {
      block.v_eta[k] +=
          ((double)(place % 3) - 1) * TB_WEIGHT_REACH * v_sigma_norm[k];
    }
    const struct glm_point point = {.response = p_grid->v_point[place / 3]};
    const struct tb_response_out out = {
        .v_curvature = v,
        .v_cross = n_aux > 0 ? v + n_row : NULL,
        .v_aux_curvature = n_aux > 0 ? v + (1 + n_aux) * n_row : NULL};
    glm_evaluate(p_glm, &point, &block, &out);
  }
}

/* -H_i of row k at a place in whitened coordinates, eta's first: v_out[i][j] */
static void whitened(const struct glm_grid* p_grid,
                     const double* v_place,
                     size_t n_row,
                     size_t k,
                     double norm,
                     double v_out[1 + AUX][1 + AUX]) {
  const size_t n_aux = p_grid->n_aux;
  double v_a[AUX], v_b[PAIR], v_cross[AUX], v_pair[PAIR];
  for (size_t j = 0; j < n_aux; ++j) {
    v_a[j] = v_place[(1 + j) * n_row + k];
  }
  for (size_t j = 0; j < n_aux * (n_aux + 1) / 2; ++j) {
    v_b[j] = v_place[(1 + n_aux + j) * n_row + k];
  }
  glm_pull_aux(p_grid->v_root, n_aux, v_a, v_cross);
  glm_pull_pairs(p_grid->v_root, n_aux, v_b, v_pair);
  v_out[0][0] = v_place[k] * norm * norm;
  for (size_t j = 0; j < n_aux; ++j) {
    v_out[0][1 + j] = v_out[1 + j][0] = v_cross[j] * norm;
    for (size_t l = 0; l <= j; ++l) {
      v_out[1 + j][1 + l] = v_out[1 + l][1 + j] =
          v_pair[tb_response_pair(j, l)];
    }
  }
}

/* The steepest rise of entry i, j between places next to each other along
 * direction d, an sd of it */
static double steepest(const struct glm_grid* p_grid,
                       double v_at[GLM_MOST_PLACE][1 + AUX][1 + AUX],
                       size_t i,
                       size_t j,
                       size_t d) {
  size_t stride = 1;
  double most = 0;
  for (size_t l = 0; l < d; ++l) {
    stride *= 3;
  }
  for (size_t place = 0; place < p_grid->n_place; ++place) {
    if (place / stride % 3 < 2) {
      most = fmax(most, fabs(v_at[place + stride][i][j] - v_at[place][i][j]));
    }
  }
  return most / TB_WEIGHT_REACH;
}

/* Cubic weights by differences. */
void glm_weigh_third(const struct glm* p_glm,
                     const struct glm_grid* p_grid,
                     const struct glm_block* p_block,
                     const double* v_sigma_norm,
                     double* v_out) {
  double v_look[GLM_MOST_PLACE][MOST_ENTRY * BLOCK];
  double v_at[GLM_MOST_PLACE][1 + AUX][1 + AUX];
  double v_rise[1 + AUX][1 + AUX][1 + AUX]; /* of i, j along k */
  const size_t n = 1 + p_grid->n_aux, n_row = p_block->n_row;
  look_around(p_glm, p_grid, p_block, v_sigma_norm, v_look);
  for (size_t k = 0; k < n_row; ++k) {
    for (size_t place = 0; place < p_grid->n_place; ++place) {
      whitened(p_grid, v_look[place], n_row, k, v_sigma_norm[k], v_at[place]);
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        for (size_t d = 0; d < n; ++d) {
          v_rise[i][j][d] = v_rise[j][i][d] = steepest(p_grid, v_at, i, j, d);
        }
      }
    }
    double sum = 0;
    for (size_t i = 0; i < n * n * n; ++i) {
      const size_t a = i / (n * n), b = i / n % n, d = i % n;
      const double most =
          fmax(v_rise[a][b][d], fmax(v_rise[a][d][b], v_rise[b][d][a]));
      sum += most * most;
    }
    v_out[k] = sqrt(sum);
  }
}
