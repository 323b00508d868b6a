/* Generalised linear models, what samplers ask of a minibatch; see glm.c. */
#include "models/glm-inside.h"

#include "base/clones.h"

/* Columns of y beyond the first of a few rows, n_lead apart. */
static void load_more_y(const struct glm* p_glm,
                        const struct tb_rows* p_rows,
                        size_t n_lead,
                        double* v_y) {
  for (size_t k = 0; p_glm->n_more_y > 0 && k < p_rows->n_row; ++k) {
    const double* v_more =
        glm_obs(p_glm, tb_rows_at(p_rows, k)) + p_glm->k_more_y;
    for (size_t j = 0; j < p_glm->n_more_y; ++j) {
      v_y[(j + 1) * n_lead + k] = v_more[j];
    }
  }
}

void glm_load_more_y(const struct glm* p_glm,
                     const struct tb_rows* p_rows,
                     struct glm_block* p_block) {
  load_more_y(p_glm, p_rows, p_rows->n_row, p_block->v_y);
}

/* Linear predictors, responses and weights of a few rows. */
static void load_rows(const struct glm* p_glm,
                      const struct tb_rows* p_rows,
                      const double* v_coef,
                      double* v_eta,
                      double* v_y,
                      double* v_weight) {
  p_glm->store.type->dot(&p_glm->store, p_rows, v_coef, v_eta);
  if (p_rows->v_index != NULL) {
    for (size_t k = 0; k < p_rows->n_next; ++k) {
      TB_PREFETCH(glm_obs(p_glm, p_rows->v_next[k]));
    }
  }
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const double* v_row = glm_obs(p_glm, tb_rows_at(p_rows, k));
    v_y[k] = v_row[OBS_y];
    v_weight[k] = p_glm->k_weight ? v_row[p_glm->k_weight] : 1;
    if (p_glm->k_offset) {
      v_eta[k] += v_row[p_glm->k_offset];
    }
  }
}

void glm_load(const struct glm* p_glm,
              const struct tb_rows* p_rows,
              const struct glm_point* p_point,
              struct glm_block* p_block) {
  p_block->n_row = p_rows->n_row;
  load_rows(p_glm,
            p_rows,
            p_point->v_coef,
            p_block->v_eta,
            p_block->v_y,
            p_block->v_weight);
  glm_load_more_y(p_glm, p_rows, p_block);
}

/* ds / d its coordinate: the frame does not mix s with the coefficients.
 * Without s nothing is set. */
void glm_slope(const struct tb_model* p_model, double* v_slope) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_frame* p_frame = p_model->p_frame;
  const size_t j = p_glm->n_coef;
  if (p_glm->n_aux == 0) {
    return;
  }
  for (size_t k = 0; k < AUX; ++k) {
    for (size_t l = 0; l < AUX; ++l) {
      double slope = k == l;
      if (p_frame != NULL && k <= l && l < p_glm->n_aux) {
        slope = !p_frame->is_diagonal
                    ? p_frame->v_map[(j + k) * p_frame->n_dim + j + l]
                : k == l ? p_frame->v_map[j + k]
                         : 0;
      }
      v_slope[k * AUX + l] = slope;
    }
  }
}

void glm_pull_pairs(const double* v_slope,
                    size_t n_aux,
                    const double* v_pair,
                    double* v_out) {
  for (size_t l = 0; l < n_aux; ++l) {
    for (size_t m = 0; m <= l; ++m) {
      double sum = 0;
      for (size_t k = 0; k <= l; ++k) {
        for (size_t h = 0; h <= m; ++h) {
          const size_t pair =
              k < h ? tb_response_pair(h, k) : tb_response_pair(k, h);
          sum += v_slope[k * AUX + l] * v_slope[h * AUX + m] * v_pair[pair];
        }
      }
      v_out[tb_response_pair(l, m)] = sum;
    }
  }
}

void glm_aux_finish(const struct glm* p_glm,
                    const double* v_slope,
                    const struct glm_aux_sums* p_from,
                    const struct tb_sums* p_sums) {
  const size_t n_coef = p_glm->n_coef, n_aux = p_glm->n_aux;
  double v_sum[AUX], v_pair[PAIR];
  glm_pull_aux(v_slope, n_aux, p_from->v_sum, v_sum);
  for (size_t l = 0; p_sums->v_gradient != NULL && l < n_aux; ++l) {
    p_sums->v_gradient[n_coef + l] += v_sum[l];
  }
  if (p_sums->v_square != NULL) {
    glm_pull_pairs(v_slope, n_aux, p_from->v_pair, v_pair);
    for (size_t l = 0; l < n_aux; ++l) {
      p_sums->v_square[n_coef + l] += v_pair[tb_response_pair(l, l)];
    }
  }
}

/* Coefficients into v_padded, s from the last coordinates. */
struct glm_point glm_point_at(const struct tb_model* p_model,
                              const double* v_theta,
                              double* v_padded) {
  const struct glm* p_glm = p_model->p_self;
  struct glm_point point = {.v_coef = v_padded};
  double* v_aux = point.v_aux;
  const struct tb_frame* p_frame = p_model->p_frame;
  const double* v_own = v_theta + p_glm->n_coef;
  glm_pad(v_padded, v_theta, p_glm->n_coef, p_glm->store.n_padded);
  glm_slope(p_model, point.v_slope);
  for (size_t k = 0; k < p_glm->n_aux; ++k) {
    if (p_frame == NULL) {
      v_aux[k] = v_own[k];
      continue;
    }
    v_aux[k] = p_frame->v_center[p_glm->n_coef + k];
    for (size_t l = k; l < p_glm->n_aux; ++l) {
      v_aux[k] += point.v_slope[k * AUX + l] * v_own[l];
    }
  }
  point.response = tb_response_at(&p_glm->response, v_aux);
  return point;
}

/* ------------------------------------------------------------------- blocks */

/* a chain's scratch, its vectors behind it */
struct glm_pass {
  struct glm_scratch scratch;
  struct glm_point v_point[TB_PLACE_count];
  double v_slope[AUX * AUX];
  struct glm_aux_sums aux;
  double v_eta[TB_BLOCK_ROWS];
  double v_y[TB_RESPONSE_MOST_Y * TB_BLOCK_ROWS]; /* columns of n_row */
  double v_weight[TB_BLOCK_ROWS];
};

static struct tb_block_shape glm_shape(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return (struct tb_block_shape){.n_row = tb_block_most(&p_glm->store),
                                 .n_score = p_glm->n_scalar,
                                 .n_own = tb_align(sizeof(struct glm_pass)) +
                                          glm_scratch_size(p_glm)};
}

static void glm_begin(const struct tb_model* p_model,
                      const struct tb_block* p_block) {
  const struct glm* p_glm = p_model->p_self;
  const size_t n_byte = p_glm->store.n_padded * sizeof(double);
  struct glm_pass* p = p_block->p_own;
  p->scratch = glm_scratch_at(p_glm, (char*)p + tb_align(sizeof(*p)));
  p->aux = (struct glm_aux_sums){0};
  glm_slope(p_model, p->v_slope);
  memset(p->scratch.v_sum, 0, n_byte);
  memset(p->scratch.v_square, 0, n_byte);
}

static void glm_go(const struct tb_model* p_model,
                   const struct tb_block* p_block,
                   enum tb_block_place place) {
  struct glm_pass* p = p_block->p_own;
  double* v_padded =
      place == TB_PLACE_here ? p->scratch.v_theta : p->scratch.v_reference;
  p->v_point[place] = glm_point_at(p_model, p_block->v_theta[place], v_padded);
}

static void glm_fetch(const struct tb_model* p_model,
                      const struct tb_block* p_block) {
  const struct glm* p_glm = p_model->p_self;
  const size_t* v_index = p_block->p_batch->v_index;
  if (!tb_block_is_cold(p_block)) {
    return;
  }
  tb_block_fetch(p_block, &p_glm->store);
  for (size_t k = 0; k < p_block->n_row; ++k) {
    TB_PREFETCH(glm_obs(p_glm, v_index[k]));
  }
}

/* r_i, then a column of each t_i */
static void glm_look(const struct tb_model* p_model,
                     const struct tb_block* p_block,
                     enum tb_block_place place,
                     const struct tb_block_look* p_look) {
  const struct glm* p_glm = p_model->p_self;
  struct glm_pass* p = p_block->p_own;
  const struct glm_point* p_point = &p->v_point[place];
  const size_t n_row = p_block->n_row;
  const bool wants_aux = p_look->v_score != NULL && p_glm->n_aux > 0;
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = tb_block_part(p_block, b);
    load_rows(p_glm,
              &rows,
              p_point->v_coef,
              p->v_eta + b,
              p->v_y + b,
              p->v_weight + b);
    load_more_y(p_glm, &rows, n_row, p->v_y + b);
  }
  const struct tb_response_rows seen = {.n_row = n_row,
                                        .n_predictor = 1,
                                        .v_eta = p->v_eta,
                                        .v_y = p->v_y,
                                        .v_weight = p->v_weight,
                                        .p_point = &p_point->response};
  const struct tb_response_out out = {
      .v_log_density = p_look->v_log_lik,
      .is_complete = p_block->is_complete,
      .v_score = p_look->v_score,
      .v_aux_score = wants_aux ? p_look->v_score + n_row : NULL};
  p_glm->response.type->evaluate(&seen, &out);
}

/* ||a_i||^2 = u_i^2 ||x_i||^2 (+ ||t_i||^2, with s sampled) */
static void glm_square(const struct tb_model* p_model,
                       const struct tb_block* p_block,
                       double* v_square) {
  const struct glm* p_glm = p_model->p_self;
  const struct glm_pass* p = p_block->p_own;
  const size_t n_row = p_block->n_row;
  const double* v_u = p_block->v_score;
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = tb_block_part(p_block, b);
    tb_store_square_norms(&p_glm->store,
                          &rows,
                          p->scratch.v_square,
                          v_square + b);
  }
  for (size_t k = 0; k < n_row; ++k) {
    double v_own[AUX], v_pulled[AUX];
    v_square[k] = v_u[k] * v_u[k] * v_square[k];
    for (size_t j = 0; j < p_glm->n_aux; ++j) {
      v_own[j] = v_u[(1 + j) * n_row + k];
    }
    glm_pull_aux(p->v_slope, p_glm->n_aux, v_own, v_pulled);
    for (size_t j = 0; j < p_glm->n_aux; ++j) {
      v_square[k] += v_pulled[j] * v_pulled[j];
    }
  }
}

static void glm_add(const struct tb_model* p_model,
                    const struct tb_block* p_block,
                    const struct tb_sums* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const struct tb_store* p_store = &p_glm->store;
  const size_t n_row = p_block->n_row;
  struct glm_pass* p = p_block->p_own;
  const double* v_u = p_block->v_score;
  double *v_sum = p->scratch.v_sum, *v_square = p->scratch.v_square;
  for (size_t k = 0; p_glm->n_aux > 0 && k < n_row; ++k) {
    glm_aux_add(&p->aux, p_glm->n_aux, 1, v_u + n_row + k, n_row);
  }
  for (size_t b = 0; b < n_row; b += BLOCK) {
    const struct tb_rows rows = tb_block_part(p_block, b);
    if (p_sums->v_square != NULL) {
      p_store->type->add_square(p_store, &rows, v_u + b, v_sum, v_square);
    } else {
      p_store->type->add(p_store, &rows, v_u + b, v_sum);
    }
  }
}

static void glm_end(const struct tb_model* p_model,
                    const struct tb_block* p_block,
                    const struct tb_sums* p_sums) {
  const struct glm* p_glm = p_model->p_self;
  const struct glm_pass* p = p_block->p_own;
  for (size_t j = 0; p_sums->v_gradient != NULL && j < p_glm->n_coef; ++j) {
    p_sums->v_gradient[j] += p->scratch.v_sum[j];
  }
  for (size_t j = 0; p_sums->v_square != NULL && j < p_glm->n_coef; ++j) {
    p_sums->v_square[j] += p->scratch.v_square[j];
  }
  glm_aux_finish(p_glm, p->v_slope, &p->aux, p_sums);
}

static void glm_keep(struct tb_model* p_model, const struct tb_block* p_block) {
  struct glm* p_glm = p_model->p_self;
  for (size_t k = 0; k < p_block->n_row; ++k) {
    double* v_row = p_glm->v_obs + tb_block_row(p_block, k) * p_glm->n_obs_col;
    for (size_t j = 0; j < p_glm->n_scalar; ++j) {
      v_row[OBS_scalar + j] = p_block->v_score[j * p_block->n_row + k];
    }
  }
}

struct tb_reference glm_stored_scalar(const struct tb_model* p_model) {
  const struct glm* p_glm = p_model->p_self;
  return (struct tb_reference){.v_scalar = p_glm->v_obs + OBS_scalar,
                               .stride = p_glm->n_obs_col};
}

const struct tb_model_blocks tb_glm_blocks = {
    .is_by_number = true,
    .shape = glm_shape,
    .begin = glm_begin,
    .go = glm_go,
    .load = glm_fetch,
    .look = glm_look,
    .square = glm_square,
    .add = glm_add,
    .end = glm_end,
    .keep = glm_keep,
};
