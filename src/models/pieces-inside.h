/* What the files of times with a hazard in pieces share: pieces.c makes the
 * model and has the mathematics and the shapes of arrays, pieces-take.c takes
 * its parameters, pieces-pass.c says what passes over all rows ask,
 * pieces-remainder.c what steps that look at few rows ask. */
#ifndef TB_MODELS_PIECES_INSIDE_H
#define TB_MODELS_PIECES_INSIDE_H

#include "base/clip.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/blocks.h"
#include "models/expansion.h"
#include "models/model.h"
#include "priors/prior.h"

/* K at most */
enum { PIECES_MOST = 1000 };

/* rows that are looked at together */
enum { PIECES_BLOCK = 128 };

/* What is kept of a row besides its covariates. It is at risk from `entered`
 * after the beginning of piece `first` to `since` after that of `last`. */
struct pieces_row {
  double since;
  double entered;
  double weight;
  double offset;
  uint32_t last;
  uint32_t first;
  double event; /* 1 or 0 */
};

/* What all rows share at a place. */
struct pieces_table {
  double* v_alpha; /* n_piece: log hazards */
  double* v_rate;  /* n_piece: hazards */
  double* v_total; /* n_piece: their integral to the beginning of each */
};

struct pieces {
  struct tb_store store;
  size_t n_coef;            /* columns of x */
  size_t n_piece;           /* K, of all strata */
  size_t n_step;            /* columns of Z */
  size_t n_stratum;         /* S */
  double* v_begin;          /* n_piece: where each begins */
  double* v_width;          /* n_piece: 0 of a stratum's last: it has no end */
  double* v_basis;          /* Z: n_piece x n_step, column-major */
  struct pieces_row* v_row; /* n_data */
  uint32_t* v_first;        /* S + 1: the first piece of each stratum */
  uint32_t* v_stratum;      /* n_coef: whose rows have a 1 in a column; 0: none
                             * or the first's */
  struct tb_prior prior;
  size_t n_byte; /* of v_begin to v_stratum, which lie there */
};

/* ---- pieces-take.c ---- */

/* what pieces_create() takes, into p_self */
enum tb_status pieces_take(struct tb_model* p_model,
                           const struct tb_params* p_params,
                           const struct tb_shelf* p_shelf);

/* ---- pieces-table.c ---- */

/* u -> alpha and what follows from it, at the steps v_step (n_step) */
void pieces_set_table(const struct pieces* p,
                      const double* v_step,
                      const struct pieces_table* p_table);

static inline size_t pieces_table_size(const struct pieces* p) {
  return 3 * p->n_piece;
}

static inline struct pieces_table pieces_table_at(const struct pieces* p,
                                                  double* v) {
  return (struct pieces_table){v, v + p->n_piece, v + 2 * p->n_piece};
}

/* the integral of the hazard of x = 0 while the row is at risk */
static inline double pieces_exposure(const struct pieces_table* p_table,
                                     const struct pieces_row* p_row) {
  const size_t last = p_row->last, first = p_row->first;
  return p_table->v_total[last] - p_table->v_total[first] +
         p_row->since * p_table->v_rate[last] -
         p_row->entered * p_table->v_rate[first];
}

/* how long it is at risk in piece k, from first to last */
static inline double
pieces_stay(const struct pieces* p, const struct pieces_row* p_row, size_t k) {
  const double to = k == p_row->last ? p_row->since : p->v_width[k];
  return k == p_row->first ? to - p_row->entered : to;
}

/* v_step += Z^T v_piece */
void pieces_pull(const struct pieces* p, const double* v_piece, double* v_step);

/* v_eta := x^T beta, without offset, of n_row rows, n_lead apart in v_x */
void pieces_predict(const struct pieces* p,
                    const double* v_theta,
                    const double* v_x,
                    size_t n_lead,
                    size_t n_row,
                    double* v_eta);

/* ---- pieces-pass.c ---- */

size_t
pieces_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point);
enum tb_status pieces_curvature(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_curvature* p_sums);
void pieces_curvature_prior(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const double* v_round,
                            double weight,
                            const struct tb_curvature* p_sums);
enum tb_status pieces_log_lik_many(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   size_t n_point,
                                   const struct tb_batch* p_batch,
                                   double* v_sum);
double pieces_largest_predictor(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch);

/* What is kept of a row's expansion, with what of the row is needed there. */
struct pieces_record {
  double eta;
  double mass; /* w e^eta */
  double mean; /* its cumulative hazard, weight included */
  double since;
  double entered;
  uint32_t last;
  uint32_t first;
  double spare[2]; /* a cache line */
};

/* Sums of the rows of the batch at v_theta ADDED to what is not NULL, and where
 * v_record is not NULL their records. v_scratch: pieces_sum_size() numbers */
size_t pieces_sum_size(const struct pieces* p);
void pieces_sum(const struct tb_model* p_model,
                const double* v_theta,
                const struct tb_batch* p_batch,
                struct pieces_record* v_record,
                const struct tb_curvature* p_sums,
                double* v_scratch);

/* ---- pieces-remainder.c ---- */

size_t pieces_remainder_size(const struct pieces* p);
extern const struct tb_model_expansion tb_pieces_expansion;

#endif
