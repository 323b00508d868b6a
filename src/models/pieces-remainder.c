/* Times with a hazard in pieces beyond their second order: see pieces.c,
 * models/expansion.h. With t = x^T (beta - beta(at)), a = alpha - alpha(at) and
 * m_i = w_i e^eta_i at `at`,
 *
 *   e_i   = m_i sum_k D_ik e^alpha_k f(t + a_k),  f(s) = e^s - 1 - s - s^2 / 2
 *   f(t + a) = f(t) + f(a) + (e^t - 1) (e^a - 1 - a) + (e^t - 1 - t) a
 *
 * so that four integrals of the hazard, each weighed by a function of a, are
 * tabulated once a place, and a row costs as much as one of another model.
 *
 *   |e_i| <= sum_k w_i D_ik e^{eta_i + alpha_k} |t + a_k|^3 e^|t + a_k| / 6
 *   |t + a_k| <= r (sd of x_i^T beta + sd of alpha_k)
 *
 * sds of the normal law of precision L L^T, r the larger of ||M^T d beta||, M
 * M^T the precision of beta by itself, and of the |a_k| in their sds: about
 * three, where ||L^T delta|| is about the root of the number of pieces.
 *
 *   symbol           variable   shape                owner
 *   four integrals   v_piece    n_piece              scratch
 *   m_i, ..          v_record   n_data               caller
 */
#include "models/pieces-inside.h"

#include "base/blas.h"
#include "base/chol.h"
#include "base/clones.h"
#include "base/norm.h"
#include "responses/remainder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The four: of 1, f(a), e^a - 1 - a, and a; a cache line. */
enum { PART_one = 0, PART_rest = 1, PART_bent = 2, PART_line = 3, N_PART = 4 };

struct piece {
  double v_total[N_PART]; /* to its beginning */
  double v_rate[N_PART];
};

/* the four integrals, a table, two numbers a piece, and a row */
size_t pieces_remainder_size(const struct pieces* p) {
  return p->n_piece * (sizeof(struct piece) / sizeof(double) + 2) +
         pieces_table_size(p) + 1 + tb_max(p->store.n_padded, p->n_coef);
}

static size_t record_size(const struct tb_model* p_model) {
  (void)p_model;
  return sizeof(struct pieces_record);
}

static enum tb_status expand(const struct tb_model* p_model,
                             const double* v_at,
                             const struct tb_batch* p_batch,
                             void* p_record,
                             const struct tb_curvature* p_sums,
                             int n_threads) {
  const struct pieces* p = p_model->p_self;
  double* v_scratch = malloc(pieces_sum_size(p) * sizeof(double));
  (void)n_threads;
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  pieces_sum(p_model, v_at, p_batch, p_record, p_sums, v_scratch);
  free(v_scratch);
  return TB_STATUS_ok;
}

static double largest_predictor(const struct tb_model* p_model,
                                const void* p_record,
                                size_t n_row) {
  const struct pieces_record* v_record = p_record;
  double largest = 0;
  (void)p_model;
  for (size_t i = 0; i < n_row; ++i) {
    largest = fmax(largest, fabs(v_record[i].eta));
  }
  return largest;
}

/* e^s - 1 - s */
static double bent(double s) {
  if (fabs(s) >= 0.5) {
    return expm1(s) - s;
  }
  return 0.5 * s * s + tb_exp_remainder(1, 0, s);
}

/* ------------------------------------------------------------------ beyond */

/* v_score := m (r, s) of one row beyond second order, in (eta, alpha), and
 * *p_first and *p_last where s is not 0 */
static void go_beyond(const struct pieces* p,
                      const struct pieces_record* p_record,
                      const struct pieces_row* p_row,
                      const double* v_rate,
                      const double* v_shift,
                      double t,
                      double* v_score) {
  v_score[0] = 0;
  for (size_t k = p_row->first; k <= p_row->last; ++k) {
    const double stay = pieces_stay(p, p_row, k);
    const double s = -p_record->mass * stay * v_rate[k] * bent(t + v_shift[k]);
    v_score[0] += s;
    v_score[1 + k] = s;
  }
}

static void add_beyond(const struct pieces* p,
                       const double* v_score,
                       const struct pieces_row* p_row,
                       double weight,
                       const double* v_x,
                       const struct tb_sums* p_sums) {
  for (size_t j = 0; j < p->n_coef; ++j) {
    const double g = weight * v_score[0] * v_x[j];
    p_sums->v_gradient[j] += g;
    if (p_sums->v_square != NULL) {
      p_sums->v_square[j] += g * g;
    }
  }
  for (size_t j = 0; j < p->n_step; ++j) {
    const double* v_z = p->v_basis + j * p->n_piece;
    double g = 0;
    for (size_t k = p_row->first; k <= p_row->last; ++k) {
      g += v_z[k] * v_score[1 + k];
    }
    g *= weight;
    p_sums->v_gradient[p->n_coef + j] += g;
    if (p_sums->v_square != NULL) {
      p_sums->v_square[p->n_coef + j] += g * g;
    }
  }
}

static enum tb_status beyond(const struct tb_model* p_model,
                             const struct tb_workspace* p_work,
                             const void* p_record,
                             const double* v_at,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const struct tb_sums* p_sums) {
  const struct pieces* p = p_model->p_self;
  const struct tb_store* p_store = &p->store;
  const struct pieces_record* v_record = p_record;
  const struct pieces_table there = pieces_table_at(p, p_work->p_scratch);
  double* v_shift = (double*)p_work->p_scratch + pieces_table_size(p);
  double* v_score = v_shift + p->n_piece;
  double* v_x = v_score + p->n_piece + 1;
  pieces_set_table(p, v_theta + p->n_coef, &there);
  memcpy(v_shift, there.v_alpha, p->n_piece * sizeof(double));
  pieces_set_table(p, v_at + p->n_coef, &there);
  for (size_t k = 0; k < p->n_piece; ++k) {
    v_shift[k] -= there.v_alpha[k];
  }
  for (size_t i = 0; i < p_batch->n_batch; ++i) {
    const size_t row = tb_batch_row(p_batch, i);
    double t = 0;
    p_store->type->gather(p_store, &row, 0, 1, p->n_coef, v_x);
    for (size_t j = 0; j < p->n_coef; ++j) {
      t += v_x[j] * (v_theta[j] - v_at[j]);
    }
    go_beyond(p,
              &v_record[row],
              &p->v_row[row],
              there.v_rate,
              v_shift,
              t,
              v_score);
    add_beyond(p,
               v_score,
               &p->v_row[row],
               tb_batch_weight(p_batch, i),
               v_x,
               p_sums);
  }
  return TB_STATUS_ok;
}

/* -------------------------------------------------------------- remainders */

static bool has_remainders(const struct tb_model* p_model) {
  (void)p_model;
  return true;
}

/* The table of the shift that v_delta makes; v_rate: hazards at `at` */
static void set_pieces(const struct pieces* p,
                       const double* v_rate,
                       const double* v_delta,
                       double* v_shift,
                       struct piece* v_piece) {
  double v_total[N_PART] = {0};
  memset(v_shift, 0, p->n_piece * sizeof(double));
  for (size_t j = 0; j < p->n_step; ++j) {
    const double step = v_delta[p->n_coef + j];
    const double* v_z = p->v_basis + j * p->n_piece;
    for (size_t k = 0; k < p->n_piece; ++k) {
      v_shift[k] += step * v_z[k];
    }
  }
  for (size_t k = 0; k < p->n_piece; ++k) {
    const double a = v_shift[k], rest = tb_exp_remainder(1, 0, a);
    const double v_of[N_PART] = {1, rest, rest + 0.5 * a * a, a};
    for (size_t m = 0; m < N_PART; ++m) {
      v_piece[k].v_rate[m] = v_rate[k] * v_of[m];
      v_piece[k].v_total[m] = v_total[m];
      v_total[m] += p->v_width[k] * v_piece[k].v_rate[m];
    }
  }
}

static inline double remainder_of(const struct pieces_record* p_record,
                                  const struct piece* v_piece,
                                  double t) {
  const struct piece* p_last = &v_piece[p_record->last];
  const struct piece* p_first = &v_piece[p_record->first];
  double v_of[N_PART];
  for (size_t m = 0; m < N_PART; ++m) {
    v_of[m] = p_last->v_total[m] - p_first->v_total[m] +
              p_record->since * p_last->v_rate[m] -
              p_record->entered * p_first->v_rate[m];
  }
  const double rest = tb_exp_remainder(1, 0, t), past = rest + 0.5 * t * t;
  return p_record->mass *
         (rest * v_of[PART_one] + v_of[PART_rest] +
          (past + t) * v_of[PART_bent] + past * v_of[PART_line]);
}

static void remainders_at(const struct pieces* p,
                          const struct pieces_record* v_record,
                          const struct piece* v_piece,
                          const double* v_padded,
                          const struct tb_batch* p_batch,
                          double* v_e) {
  const struct tb_store* p_store = &p->store;
  for (size_t b = 0; b < p_batch->n_batch; b += TB_STORE_BLOCK) {
    const struct tb_rows rows = tb_batch_block(p_batch, b);
    double v_t[TB_STORE_BLOCK];
    p_store->type->dot(p_store, &rows, v_padded, v_t);
    for (size_t i = 0; i < rows.n_row; ++i) {
      v_e[b + i] =
          remainder_of(&v_record[tb_rows_at(&rows, i)], v_piece, v_t[i]);
    }
  }
}

static void remainders(const struct tb_model* p_model,
                       const struct tb_workspace* p_work,
                       const void* p_record,
                       const double* v_at,
                       const double* v_from,
                       const double* v_to,
                       const struct tb_batch* p_batch,
                       double* v_e_from,
                       double* v_e_to) {
  const struct pieces* p = p_model->p_self;
  const size_t n_padded = p->store.n_padded, n = p->n_coef;
  struct piece* v_piece = p_work->p_scratch;
  double* v = (double*)(void*)(v_piece + p->n_piece);
  const struct pieces_table there = pieces_table_at(p, v);
  double* v_shift = v + pieces_table_size(p);
  double* v_padded = v_shift + p->n_piece;
  pieces_set_table(p, v_at + n, &there);
  memset(v_padded, 0, n_padded * sizeof(double));
  for (int is_to = v_from == NULL; is_to < 2; ++is_to) {
    const double* v_delta = is_to ? v_to : v_from;
    memcpy(v_padded, v_delta, n * sizeof(double));
    set_pieces(p, there.v_rate, v_delta, v_shift, v_piece);
    remainders_at(p,
                  p_record,
                  v_piece,
                  v_padded,
                  p_batch,
                  is_to ? v_e_to : v_e_from);
  }
}

static void
prefetch(const struct tb_model* p_model, const void* p_record, size_t row) {
  const struct pieces* p = p_model->p_self;
  TB_PREFETCH((const struct pieces_record*)p_record + row);
  if (p->store.type->prefetch != NULL) {
    p->store.type->prefetch(&p->store, row);
  }
}

/* ------------------------------------------------------------------- bounds */

enum { ROWS = 256 };

/* v_sd (n_piece): sds of alpha. With L = [A 0; B C], C C^T is the precision of
 * the steps by themselves. v_work: n_step x n_piece */
static void set_sds(const struct tb_model* p_model,
                    const double* v_chol,
                    double* v_work,
                    double* v_sd) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef, n_step = p->n_step, n_dim = p_model->n_dim;
  for (size_t k = 0; k < p->n_piece; ++k) {
    for (size_t j = 0; j < n_step; ++j) {
      v_work[k * n_step + j] = p->v_basis[j * p->n_piece + k];
    }
  }
  tb_trsm('L',
          'N',
          n_step,
          p->n_piece,
          v_chol + n * n_dim + n,
          n_dim,
          v_work,
          n_step);
  for (size_t k = 0; k < p->n_piece; ++k) {
    v_sd[k] = sqrt(tb_square_norm(v_work + k * n_step, n_step));
  }
}

/* v_x (n_coef x n_row) := A^{-1} v_x, v_y (n_step x n_row) := C^{-1} B A^{-1}
 * v_x: x^T beta has the variance ||v_x||^2 + ||v_y||^2 */
static void whiten_rows(const struct tb_model* p_model,
                        const double* v_chol,
                        size_t n_row,
                        double* v_x,
                        double* v_y) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef, n_step = p->n_step, n_dim = p_model->n_dim;
  tb_trsm('L', 'N', n, n_row, v_chol, n_dim, v_x, n);
  tb_gemm('N', n_step, n_row, n, v_chol + n, n_dim, v_x, n, v_y, n_step);
  tb_trsm('L', 'N', n_step, n_row, v_chol + n * n_dim + n, n_dim, v_y, n_step);
}

/* M, and the sds of alpha */
static size_t reach_size(const struct tb_model* p_model) {
  const struct pieces* p = p_model->p_self;
  return p->n_coef * p->n_coef + p->n_piece;
}

static enum tb_status set_reach(const struct tb_model* p_model,
                                const double* v_chol,
                                double* v_table) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef, n_step = p->n_step;
  const size_t n_number = n * n + n_step * tb_max(n, p->n_piece) + n * n;
  double* v_x = calloc(n_number, sizeof(double));
  if (v_x == NULL) {
    return TB_STATUS_memory;
  }
  double *v_y = v_x + n * n, *v_inverse = v_y + n_step * tb_max(n, p->n_piece);
  set_sds(p_model, v_chol, v_y, v_table + n * n);
  for (size_t j = 0; j < n; ++j) {
    v_x[j * n + j] = 1;
  }
  /* the covariance of beta, then its inverse's root */
  whiten_rows(p_model, v_chol, n, v_x, v_y);
  tb_gemm_op('T', 'N', n, n, n, v_x, n, v_x, n, 0, v_inverse, n);
  tb_gemm_op('T', 'N', n, n, n_step, v_y, n_step, v_y, n_step, 1, v_inverse, n);
  bool is_proper = tb_chol(n, v_inverse, v_x);
  if (is_proper) {
    tb_chol_inverse(n, v_x, v_table, v_inverse);
    is_proper = tb_chol(n, v_inverse, v_table);
  }
  free(v_x);
  return is_proper ? TB_STATUS_ok : TB_STATUS_singular;
}

static enum tb_status norms(const struct tb_model* p_model,
                            const double* v_chol,
                            const struct tb_batch* p_batch,
                            double* v_out) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef;
  double* v_x = malloc((n * ROWS + reach_size(p_model)) * sizeof(double));
  if (v_x == NULL) {
    return TB_STATUS_memory;
  }
  double* v_table = v_x + n * ROWS;
  const double* v_sd = v_table + n * n;
  const enum tb_status status = set_reach(p_model, v_chol, v_table);
  for (size_t b = 0; b < p_batch->n_batch && status == TB_STATUS_ok;
       b += ROWS) {
    const size_t n_row = tb_min(ROWS, p_batch->n_batch - b);
    p->store.type->gather(&p->store, NULL, p_batch->start + b, n_row, n, v_x);
    tb_trsm('L', 'N', n, n_row, v_table, n, v_x, n);
    for (size_t i = 0; i < n_row; ++i) {
      const struct pieces_row* p_row = &p->v_row[p_batch->start + b + i];
      double largest = 0;
      for (size_t k = p_row->first; k <= p_row->last; ++k) {
        largest = fmax(largest, v_sd[k]);
      }
      v_out[b + i] = sqrt(tb_square_norm(v_x + i * n, n)) + largest;
    }
  }
  free(v_x);
  return status;
}

static double reach(const struct tb_model* p_model,
                    const double* v_table,
                    const double* v_delta) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef;
  const double* v_sd = v_table + n * n;
  double square = 0, largest = 0, v_shift[PIECES_MOST] = {0};
  for (size_t j = 0; j < n; ++j) {
    double z = 0;
    for (size_t i = j; i < n; ++i) {
      z += v_table[j * n + i] * v_delta[i];
    }
    square += z * z;
  }
  for (size_t j = 0; j < p->n_step; ++j) {
    const double* v_z = p->v_basis + j * p->n_piece;
    for (size_t k = 0; k < p->n_piece; ++k) {
      v_shift[k] += v_delta[n + j] * v_z[k];
    }
  }
  for (size_t k = 0; k < p->n_piece; ++k) {
    largest = fmax(largest, fabs(v_shift[k]) / v_sd[k]);
  }
  return fmax(sqrt(square), largest);
}

static void third_bounds(const struct tb_model* p_model,
                         const void* p_record,
                         const double* v_norm,
                         size_t n_row,
                         double radius,
                         double* v_out) {
  const struct pieces_record* v_record = p_record;
  (void)p_model;
  for (size_t i = 0; i < n_row; ++i) {
    const double mean = v_record[i].mean;
    v_out[i] = mean == 0 ? 0 : mean * exp(radius * v_norm[i]);
  }
}

const struct tb_model_expansion tb_pieces_expansion = {
    .record_size = record_size,
    .expand = expand,
    .largest_predictor = largest_predictor,
    .beyond = beyond,
    .has_remainders = has_remainders,
    .remainders = remainders,
    .prefetch = prefetch,
    .norms = norms,
    .reach_size = reach_size,
    .set_reach = set_reach,
    .reach = reach,
    .third_bounds = third_bounds,
};
