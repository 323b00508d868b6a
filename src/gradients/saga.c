/* SAGA (Defazio, Bach & Lacoste-Julien 2014; in SGLD: Dubey et al. 2016; Baker,
 * Fearnhead, Fox & Nemeth 2019, section 2.3):
 *
 *   g_0(theta) + A + (1/n) sum_{i in S} [g_i(theta) - a_i] / p_i
 *
 * and then a_i <- g_i(theta) for the rows drawn, so that A = sum_i a_i always.
 * Where g_i = r_i x_i the table holds the scalars r_i alone.
 *
 * The table is brought up to date one entry after the other: the change of a
 * row that came twice is the new gradient less the old one the first time and
 * nothing the second, so A counts every row once. Rows that a scheme has in
 * every minibatch keep the entry they started with: they have no noise to take
 * out.
 *
 *   symbol   variable   shape                  owner
 *   A        v_total    n_dim                  chain's estimator state
 *   a_i      v_table    n_data x n_scalar, or  chain's estimator state
 *                       n_data x n_dim
 *            v_scalar   n_size_max x n_scalar  chain's estimator state: r_i of
 *                       (0 without scalars)    the minibatch
 *            v_row      block x n_dim          the same without scalars: g_i of
 * a block of rows
 */
#include "gradients/minibatch.h"

#include "base/clip.h"
#include "models/rows.h"
#include "passes/rows.h"
#include "subsampling/subsample.h"

#include <string.h>

struct saga {
  double* v_at; /* where the table starts; NULL: where the chain does */
};

static bool saga_has_scalar(const struct tb_model* p_model) {
  return (p_model->type->flags & TB_MODEL_SCALAR) &&
         p_model->type->add_scalar != NULL;
}

/* numbers a row of the table */
static size_t saga_stride(const struct tb_model* p_model) {
  return saga_has_scalar(p_model) ? p_model->n_scalar : p_model->n_dim;
}

/* Numbers at v_row, unless one row has more. */
#define MAX_BLOCK ((size_t)1 << 16)

/* Rows whose gradients are taken together, at most n_most. */
static size_t saga_block(size_t n_dim, size_t n_most) {
  return tb_max(1, tb_min(n_most, MAX_BLOCK / n_dim));
}

static double* saga_total(const struct tb_chain* p_chain) {
  return p_chain->p_estimator_state;
}

static double* saga_table(const struct tb_chain* p_chain) {
  return saga_total(p_chain) + p_chain->n_dim;
}

static size_t saga_self_size(const struct tb_model* p_model) {
  return tb_align(sizeof(struct saga)) + p_model->n_dim * sizeof(double);
}

/* Parameter: "at" (n_dim), optional. */
static enum tb_status saga_init(struct tb_estimator* p_estimator,
                                struct tb_model* p_model,
                                const struct tb_params* p_params,
                                int n_threads) {
  struct saga* p_saga = p_estimator->p_self;
  const struct tb_param* p_at = tb_params_find(p_params, "at");
  (void)n_threads;
  if (p_at == NULL) {
    return TB_STATUS_ok;
  }
  if (p_at->n_value != p_model->n_dim) {
    return TB_STATUS_argument;
  }
  p_saga->v_at = (double*)(void*)((char*)p_saga + tb_align(sizeof(*p_saga)));
  memcpy(p_saga->v_at, p_at->v_value, p_model->n_dim * sizeof(double));
  return TB_STATUS_ok;
}

static size_t saga_state_size(const struct tb_estimator* p_estimator,
                              const struct tb_model* p_model) {
  (void)p_estimator;
  return (p_model->n_dim + p_model->n_data * saga_stride(p_model)) *
         sizeof(double);
}

/* bytes for r_i of a minibatch and the changes they make */
static size_t saga_scratch_size(const struct tb_model* p_model,
                                size_t n_batch) {
  return saga_has_scalar(p_model)
             ? n_batch * p_model->n_scalar * sizeof(double)
             : saga_block(p_model->n_dim, tb_max(n_batch, TB_CHUNK)) *
                   p_model->n_dim * sizeof(double);
}

/* the block of all rows that begins at `start` */
static struct tb_batch saga_rows(const struct tb_model* p_model, size_t start) {
  return (struct tb_batch){
      .n_batch =
          tb_min(saga_block(p_model->n_dim, TB_CHUNK), p_model->n_data - start),
      .start = start,
      .weight = 1};
}

static enum tb_status saga_start(struct tb_chain* p_chain) {
  const struct saga* p_saga = p_chain->p_target->p_estimator->p_self;
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const double* v_at = p_saga->v_at == NULL ? p_chain->v_theta : p_saga->v_at;
  if (p_chain->v_folded != NULL) {
    tb_model_fold(p_model, v_at, p_chain->v_folded);
    v_at = p_chain->v_folded;
  }
  double* v_total = saga_total(p_chain);
  double* v_table = saga_table(p_chain);
  const size_t n_dim = p_chain->n_dim;
  enum tb_status status = TB_STATUS_ok;
  if (saga_has_scalar(p_model)) {
    return tb_full_pass(p_chain, v_at, v_table, v_total);
  }
  memset(v_total, 0, n_dim * sizeof(double));
  for (size_t i = 0; i < p_model->n_data && status == TB_STATUS_ok;) {
    const struct tb_batch rows = saga_rows(p_model, i);
    status = tb_model_row_gradients(p_model,
                                    &p_chain->work,
                                    v_at,
                                    &rows,
                                    v_table + i * n_dim);
    for (const size_t end = i + rows.n_batch; i < end; ++i) {
      for (size_t j = 0; j < n_dim; ++j) {
        v_total[j] += v_table[i * n_dim + j];
      }
    }
  }
  p_chain->counts.n_row += (double)p_model->n_data;
  p_chain->counts.n_full += 1;
  return status;
}

static enum tb_status saga_scalar_estimate(struct tb_chain* p_chain,
                                           const double* v_theta,
                                           double* v_gradient) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const size_t n_scalar = p_model->n_scalar;
  double* v_table = saga_table(p_chain);
  double* v_scalar = p_chain->p_estimator_extra;
  const struct tb_reference reference = {.v_scalar = v_table,
                                         .stride = n_scalar};
  struct tb_batch batch;
  const enum tb_status status = tb_minibatch_estimate(p_chain,
                                                      v_theta,
                                                      &reference,
                                                      saga_total(p_chain),
                                                      &batch,
                                                      v_scalar,
                                                      v_gradient,
                                                      NULL);
  if (status != TB_STATUS_ok) {
    return status;
  }
  for (size_t k = 0; k < batch.n_batch; ++k) {
    double* v_old = v_table + tb_batch_row(&batch, k) * n_scalar;
    for (size_t s = 0; s < n_scalar; ++s) {
      const double r = v_scalar[k * n_scalar + s];
      v_scalar[k * n_scalar + s] = r - v_old[s];
      v_old[s] = r;
    }
  }
  return p_model->type->add_scalar(p_model,
                                   &p_chain->work,
                                   &batch,
                                   v_scalar,
                                   saga_total(p_chain));
}

/* Rows of every minibatch add their gradients as they are: take out what A
 * holds of them. */
static void saga_subtract_always(const struct tb_chain* p_chain,
                                 double* v_gradient) {
  const struct tb_batch* p_always = &p_chain->p_target->p_scheme->always;
  const double scale = p_chain->p_target->likelihood_scale;
  const size_t n_dim = p_chain->n_dim;
  for (size_t k = 0; k < p_always->n_batch; ++k) {
    const double* v_row =
        saga_table(p_chain) + tb_batch_row(p_always, k) * n_dim;
    for (size_t j = 0; j < n_dim; ++j) {
      v_gradient[j] -= scale * v_row[j];
    }
  }
}

/* Whole gradients in the table. All differences are taken before the table
 * changes: a row that comes twice counts twice in the estimate. Gradients of a
 * minibatch that is one block are not taken again for the table. */
static enum tb_status saga_vector_estimate(struct tb_chain* p_chain,
                                           const double* v_theta,
                                           double* v_gradient) {
  const struct tb_target* p_target = p_chain->p_target;
  const struct tb_model* p_model = p_target->p_model;
  const size_t n_dim = p_chain->n_dim;
  double* v_total = saga_total(p_chain);
  double* v_table = saga_table(p_chain);
  double* v_sum = p_chain->p_estimator_scratch;
  double* v_rows = p_chain->p_estimator_extra;
  struct tb_batch batch;
  enum tb_status status =
      p_target->p_scheme->type->draw(p_chain, v_theta, &batch);
  if (status != TB_STATUS_ok) {
    return status;
  }
  const size_t n_block = saga_block(n_dim, batch.n_batch);
  const bool has_variance = tb_minibatch_begin(p_chain, &batch);
  for (int is_update = 0; is_update < 2; ++is_update) {
    for (size_t first = 0; first < batch.n_batch; first += n_block) {
      const struct tb_batch part = tb_batch_part(&batch, first, n_block);
      if (!is_update || n_block < batch.n_batch) {
        status = tb_model_row_gradients(p_model,
                                        &p_chain->work,
                                        v_theta,
                                        &part,
                                        v_rows);
      }
      if (status != TB_STATUS_ok) {
        return status;
      }
      for (size_t k = 0; k < part.n_batch; ++k) {
        const double c = tb_batch_weight(&part, k);
        const double* v_row = v_rows + k * n_dim;
        double* v_old = v_table + tb_batch_row(&part, k) * n_dim;
        for (size_t j = 0; j < n_dim; ++j) {
          const double a = v_row[j] - v_old[j];
          if (is_update) {
            v_total[j] += a;
            v_old[j] = v_row[j];
            continue;
          }
          v_sum[j] += c * a;
          if (has_variance) {
            p_chain->v_variance[j] += c * c * a * a;
          }
        }
      }
    }
    if (!is_update) {
      status = tb_minibatch_end(p_chain,
                                v_theta,
                                NULL,
                                v_total,
                                &batch,
                                v_gradient,
                                NULL,
                                NULL);
      if (status != TB_STATUS_ok) {
        return status;
      }
      saga_subtract_always(p_chain, v_gradient);
    }
  }
  return status;
}

static enum tb_status saga_estimate(struct tb_chain* p_chain,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_posterior) {
  (void)p_log_posterior;
  return saga_has_scalar(p_chain->p_target->p_model)
             ? saga_scalar_estimate(p_chain, v_theta, v_gradient)
             : saga_vector_estimate(p_chain, v_theta, v_gradient);
}

static enum tb_status saga_square_norms(struct tb_chain* p_chain,
                                        const double* v_theta,
                                        double* v_square) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  const double* v_table = saga_table(p_chain);
  double* v_row = p_chain->p_estimator_scratch;
  enum tb_status status = TB_STATUS_ok;
  if (saga_has_scalar(p_model)) {
    const struct tb_reference reference = {.v_scalar = v_table,
                                           .stride = p_model->n_scalar};
    return tb_model_all_square_norms(p_model,
                                     &p_chain->work,
                                     v_theta,
                                     &reference,
                                     v_square,
                                     NULL,
                                     v_row);
  }
  double* v_rows = p_chain->p_estimator_extra;
  const size_t n_dim = p_chain->n_dim;
  for (size_t i = 0; i < p_model->n_data && status == TB_STATUS_ok;) {
    const struct tb_batch rows = saga_rows(p_model, i);
    status =
        tb_model_row_gradients(p_model, &p_chain->work, v_theta, &rows, v_rows);
    for (size_t k = 0; k < rows.n_batch; ++k, ++i) {
      v_square[i] = 0;
      for (size_t j = 0; j < n_dim; ++j) {
        const double a = v_rows[k * n_dim + j] - v_table[i * n_dim + j];
        v_square[i] += a * a;
      }
    }
  }
  return status;
}

const struct tb_estimator_type tb_estimator_saga = {
    .name = "saga",
    .citation = "Defazio, Bach & Lacoste-Julien (2014), NeurIPS 27",
    .flags = TB_ESTIMATOR_VARIANCE,
    .self_size = saga_self_size,
    .init = saga_init,
    .state_size = saga_state_size,
    .scratch_size = saga_scratch_size,
    .start = saga_start,
    .square_norms = saga_square_norms,
    .estimate = saga_estimate,
};
