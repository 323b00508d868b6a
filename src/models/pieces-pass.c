/* Times with a hazard in pieces, passes over all rows; see pieces.c. Sums over
 * pieces and rows are made from sums by the piece where rows end, and where
 * they enter: with m_i = w_i e^eta_i,
 *
 *   -H(beta, beta)    = sum_i m_i (sum_k D_ik e^alpha_k) x_i x_i^T
 *   -H(alpha_k, beta) = e^alpha_k [width_k sum_{l > k} V_l + P_k],
 *     V_l = sum of m_i x_i over rows that end in piece l, less that over rows
 *           that enter there, P_l the same with the time since it began
 *   -H(alpha_k, alpha_k) likewise with 1 for x_i, and 0 elsewhere
 *
 *   symbol     variable           shape              owner
 *   V, P       v_whole, v_part    (n_coef + 1) x K   scratch
 *   events     v_event            K                  scratch
 */
#include "models/pieces-inside.h"

#include "base/blas.h"
#include "models/rows.h"

#include <math.h>
#include <string.h>

/* rows of one product of matrices */
enum { ROWS = 256 };

struct sums_scratch {
  double* v_rows;   /* n_padded x ROWS */
  double* v_scaled; /* n_coef x ROWS */
  double* v_eta;    /* ROWS */
  double* v_u;      /* ROWS */
  double* v_whole;  /* (n_coef + 1) x n_piece */
  double* v_part;
  double* v_event;  /* n_piece */
  double* v_square; /* n_coef x n_coef, its upper triangle */
  double* v_run;    /* n_coef + 1 */
  double* v_score;  /* n_piece */
  double* v_cross;  /* n_coef x n_piece */
  double* v_table;
};

static size_t n_lead(const struct pieces* p) {
  return tb_max(p->store.n_padded, p->n_coef);
}

size_t pieces_sum_size(const struct pieces* p) {
  const size_t n = p->n_coef, n_piece = p->n_piece;
  return (n_lead(p) + n + 2) * ROWS + 2 * (n + 1) * n_piece + 2 * n_piece +
         n * n + n + 1 + n * n_piece + pieces_table_size(p);
}

static struct sums_scratch scratch_at(const struct pieces* p, double* v) {
  const size_t n = p->n_coef, n_piece = p->n_piece;
  struct sums_scratch s = {.v_rows = v};
  s.v_scaled = s.v_rows + n_lead(p) * ROWS;
  s.v_eta = s.v_scaled + n * ROWS;
  s.v_u = s.v_eta + ROWS;
  s.v_whole = s.v_u + ROWS;
  s.v_part = s.v_whole + (n + 1) * n_piece;
  s.v_event = s.v_part + (n + 1) * n_piece;
  s.v_square = s.v_event + n_piece;
  s.v_run = s.v_square + n * n;
  s.v_score = s.v_run + n + 1;
  s.v_cross = s.v_score + n_piece;
  s.v_table = s.v_cross + n * n_piece;
  return s;
}

size_t
pieces_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point) {
  const struct pieces* p = p_model->p_self;
  (void)n_point;
  return tb_max(p_model->type->workspace_size(p_model, n_row),
                pieces_sum_size(p) * sizeof(double));
}

/* n_row rows of the batch from `first` on, *p_lead apart */
static const double* rows_at(const struct pieces* p,
                             const struct tb_batch* p_batch,
                             size_t first,
                             size_t n_row,
                             double* v_rows,
                             size_t* p_lead) {
  const struct tb_store* p_store = &p->store;
  if (p_batch->v_index == NULL) {
    *p_lead = p_store->n_padded;
    return p_store->type->block(p_store, p_batch->start + first, n_row, v_rows);
  }
  *p_lead = p->n_coef;
  p_store->type
      ->gather(p_store, p_batch->v_index + first, 0, n_row, p->n_coef, v_rows);
  return v_rows;
}

/* v_to += c (x, 1) */
static inline void
add_row(double c, const double* v_x, size_t n, double* v_to) {
  for (size_t j = 0; j < n; ++j) {
    v_to[j] += c * v_x[j];
  }
  v_to[n] += c;
}

/* What a row says where it ends and where it enters. */
static void bin_row(const struct pieces* p,
                    const struct sums_scratch* p_s,
                    const struct pieces_row* p_row,
                    double mass,
                    const double* v_x) {
  const size_t n = p->n_coef, n_lead = n + 1;
  double* v_part = p_s->v_part;
  if (p_row->first == p_row->last) {
    add_row(mass * (p_row->since - p_row->entered),
            v_x,
            n,
            v_part + p_row->last * n_lead);
    return;
  }
  add_row(mass, v_x, n, p_s->v_whole + p_row->last * n_lead);
  add_row(mass * p_row->since, v_x, n, v_part + p_row->last * n_lead);
  if (p_row->first > 0) { /* what ends in piece 0 is in no sum over l > k */
    add_row(-mass, v_x, n, p_s->v_whole + p_row->first * n_lead);
  }
  if (p_row->entered > 0) {
    add_row(-mass * p_row->entered, v_x, n, v_part + p_row->first * n_lead);
  }
}

/* The block of beta, and what the bins make of the steps. */
static void add_hessian(const struct tb_model* p_model,
                        const struct sums_scratch* p_s,
                        double* v_hessian) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef, n_dim = p_model->n_dim, n_piece = p->n_piece;
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i <= j; ++i) {
      const double h = p_s->v_square[j * n + i];
      v_hessian[j * n_dim + i] += h;
      if (i < j) {
        v_hessian[i * n_dim + j] += h;
      }
    }
  }
  for (size_t m = 0; m < p->n_step; ++m) {
    const double* v_z = p->v_basis + m * n_piece;
    double* v_column = v_hessian + (n + m) * n_dim;
    for (size_t j = 0; j < n; ++j) {
      double h = 0;
      for (size_t k = 0; k < n_piece; ++k) {
        h += v_z[k] * p_s->v_cross[j * n_piece + k];
      }
      v_column[j] += h;
      v_hessian[j * n_dim + n + m] += h;
    }
    for (size_t l = 0; l < p->n_step; ++l) {
      const double* v_other = p->v_basis + l * n_piece;
      double h = 0;
      for (size_t k = 0; k < n_piece; ++k) {
        h += v_z[k] * v_other[k] * p_s->v_score[k];
      }
      v_column[n + l] += h;
    }
  }
}

/* v_cross, and into v_score the diagonal of -H in alpha */
static void finish_bins(const struct pieces* p,
                        const struct sums_scratch* p_s,
                        const struct pieces_table* p_table) {
  const size_t n = p->n_coef, n_piece = p->n_piece;
  memset(p_s->v_run, 0, (n + 1) * sizeof(double));
  for (size_t k = n_piece; k-- > 0;) {
    const double rate = p_table->v_rate[k], width = p->v_width[k];
    const double* v_part = p_s->v_part + k * (n + 1);
    const double* v_whole = p_s->v_whole + k * (n + 1);
    for (size_t j = 0; j < n; ++j) {
      p_s->v_cross[j * n_piece + k] =
          rate * (width * p_s->v_run[j] + v_part[j]);
    }
    p_s->v_score[k] = rate * (width * p_s->v_run[n] + v_part[n]);
    for (size_t j = 0; j <= n; ++j) {
      p_s->v_run[j] += v_whole[j];
    }
  }
}

static void set_record(struct pieces_record* p_record,
                       const struct pieces_row* p_row,
                       double eta,
                       double mass,
                       double mean) {
  *p_record = (struct pieces_record){.eta = eta,
                                     .mass = mass,
                                     .mean = mean,
                                     .since = p_row->since,
                                     .entered = p_row->entered,
                                     .last = p_row->last,
                                     .first = p_row->first};
}

void pieces_sum(const struct tb_model* p_model,
                const double* v_theta,
                const struct tb_batch* p_batch,
                struct pieces_record* v_record,
                const struct tb_curvature* p_sums,
                double* v_scratch) {
  const struct pieces* p = p_model->p_self;
  const size_t n = p->n_coef, n_piece = p->n_piece;
  const struct sums_scratch s = scratch_at(p, v_scratch);
  const struct pieces_table table = pieces_table_at(p, s.v_table);
  double log_lik = 0;
  pieces_set_table(p, v_theta + n, &table);
  memset(s.v_whole,
         0,
         (2 * (n + 1) * n_piece + n_piece + n * n) * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += ROWS) {
    const size_t n_row = tb_min(ROWS, p_batch->n_batch - b);
    size_t lead;
    const double* v_x = rows_at(p, p_batch, b, n_row, s.v_rows, &lead);
    pieces_predict(p, v_theta, v_x, lead, n_row, s.v_eta);
    for (size_t i = 0; i < n_row; ++i) {
      const struct pieces_row* p_row = &p->v_row[tb_batch_row(p_batch, b + i)];
      const double weight = tb_batch_weight(p_batch, b + i) * p_row->weight;
      const double eta = s.v_eta[i] + p_row->offset;
      const double mass = weight * exp(eta), event = weight * p_row->event;
      const double mean = mass * pieces_exposure(&table, p_row);
      const double root = sqrt(mean);
      const double* v_own = v_x + i * lead;
      log_lik += event * (eta + table.v_alpha[p_row->last]) - mean;
      s.v_u[i] = event - mean;
      s.v_event[p_row->last] += event;
      for (size_t j = 0; j < n; ++j) {
        s.v_scaled[i * n + j] = root * v_own[j];
      }
      bin_row(p, &s, p_row, mass, v_own);
      if (v_record != NULL) {
        set_record(&v_record[b + i], p_row, eta, mass, mean);
      }
    }
    tb_gemm_op('N',
               'N',
               n,
               1,
               n_row,
               v_x,
               lead,
               s.v_u,
               n_row,
               1,
               p_sums->v_gradient,
               n);
    tb_syrk('N', n, n_row, 1, s.v_scaled, n, s.v_square, n);
  }
  if (p_sums->p_log_lik != NULL) {
    *p_sums->p_log_lik += log_lik;
  }
  finish_bins(p, &s, &table);
  add_hessian(p_model, &s, p_sums->v_hessian);
  for (size_t k = 0; k < n_piece; ++k) {
    s.v_score[k] = s.v_event[k] - s.v_score[k];
  }
  pieces_pull(p, s.v_score, p_sums->v_gradient + n);
}

enum tb_status pieces_curvature(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_curvature* p_sums) {
  pieces_sum(p_model, v_theta, p_batch, NULL, p_sums, p_work->p_scratch);
  return TB_STATUS_ok;
}

void pieces_curvature_prior(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const double* v_round,
                            double weight,
                            const struct tb_curvature* p_sums) {
  const struct pieces* p = p_model->p_self;
  (void)weight;
  tb_curvature_add_prior(&p->prior,
                         v_theta,
                         v_round,
                         p_work->p_scratch,
                         p_sums);
}

enum tb_status pieces_log_lik_many(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   size_t n_point,
                                   const struct tb_batch* p_batch,
                                   double* v_sum) {
  const struct pieces* p = p_model->p_self;
  const struct sums_scratch s = scratch_at(p, p_work->p_scratch);
  const struct pieces_table table = pieces_table_at(p, s.v_table);
  for (size_t m = 0; m < n_point; ++m) {
    const double* v_at = v_theta + m * p_model->n_dim;
    pieces_set_table(p, v_at + p->n_coef, &table);
    for (size_t b = 0; b < p_batch->n_batch; b += ROWS) {
      const size_t n_row = tb_min(ROWS, p_batch->n_batch - b);
      size_t lead;
      const double* v_x = rows_at(p, p_batch, b, n_row, s.v_rows, &lead);
      pieces_predict(p, v_at, v_x, lead, n_row, s.v_eta);
      for (size_t i = 0; i < n_row; ++i) {
        const struct pieces_row* p_row =
            &p->v_row[tb_batch_row(p_batch, b + i)];
        const double eta = s.v_eta[i] + p_row->offset;
        v_sum[m] +=
            p_row->weight * (p_row->event * (eta + table.v_alpha[p_row->last]) -
                             exp(eta) * pieces_exposure(&table, p_row));
      }
    }
  }
  return TB_STATUS_ok;
}

double pieces_largest_predictor(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch) {
  const struct pieces* p = p_model->p_self;
  const struct sums_scratch s = scratch_at(p, p_work->p_scratch);
  double largest = 0;
  for (size_t b = 0; b < p_batch->n_batch; b += ROWS) {
    const size_t n_row = tb_min(ROWS, p_batch->n_batch - b);
    size_t lead;
    const double* v_x = rows_at(p, p_batch, b, n_row, s.v_rows, &lead);
    pieces_predict(p, v_theta, v_x, lead, n_row, s.v_eta);
    for (size_t i = 0; i < n_row; ++i) {
      largest = fmax(largest, fabs(s.v_eta[i]));
    }
  }
  return largest;
}
