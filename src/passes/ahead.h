/* What a pass makes of a stretch of rows: their sums at a point, and rows drawn
 * ahead (scalable Metropolis-Hastings, see gradients/factorised.c). With
 *
 *   psi_i = s K_i ||L^{-1} x_i||^3 / 6,  K_i within ||L^{-1} x_i|| R of eta_i
 *
 * a row with phi psi_i > 1 is one of those that every step looks at; another is
 * drawn c_i times, c_i ~ Poisson(C psi_i), from a hash of its number: so the
 * same rows are drawn whatever the stretches, their order and the threads. */
#ifndef TB_PASSES_AHEAD_H
#define TB_PASSES_AHEAD_H

#include "models/model.h"

/* Where rows are bounded, and how. */
struct tb_row_bounds {
  const struct tb_model* p_model; /* it has remainders */
  double radius;                  /* R */
  double phi;                     /* above 1 / phi a row is looked at always */
  double scale;                   /* s of the likelihood */
  double wide; /* rows of such a norm are looked at always, too; 0: no norm is
                  large enough */
};

/* psi_i of n_row records, with their ||L^{-1} x_i||, and whether a row is
 * looked at always: its psi_i may be infinite or NaN. */
void tb_row_bounds_at(const struct tb_row_bounds* p_bounds,
                      const void* v_record,
                      const double* v_norm,
                      size_t n_row,
                      double* v_psi,
                      bool* v_is_always);

/* Sums over all rows of a model, of the likelihood alone; SET. */
struct tb_ahead_sums {
  double log_lik;
  double largest;    /* |eta_i| */
  double* v_total;   /* n_dim: sum of g_i */
  double* v_hessian; /* n_dim x n_dim, both triangles: -sum of Hessians */
};

/* Which rows are drawn. */
struct tb_ahead_draw {
  struct tb_row_bounds bounds;
  const double* v_chol; /* L, column-major lower, n_dim x n_dim */
  double rate;          /* C */
  uint64_t key;         /* of the hash, see tb_ahead_key() */
  uint64_t first;       /* number of the first row */
};

struct tb_ahead_rows {
  double* v_psi;   /* n_data; SET */
  double* v_count; /* n_data: c_i, of which 0 is no draw; -1: always; SET */
  double* v_norm;  /* n_data: ||L^{-1} x_i||; SET; NULL: not wanted */
  double total;    /* sum of psi_i but those of -1 */
};

/* A key of its own for each seed, purpose and pass. */
uint64_t tb_ahead_key(uint64_t seed, uint64_t purpose, uint64_t pass);

/* The number of draws of a row: Poisson(mean) from one word of a hash. */
double tb_ahead_count(uint64_t word, double mean);

/* One pass over the rows of a model that has an expansion, and remainders if
 * rows are drawn (p_draw NULL: they are not). Unsupported where it has none.
 * Sums that are not finite are handed back as they are. */
enum tb_status tb_ahead_pass(const struct tb_model* p_model,
                             const double* v_at,
                             const struct tb_ahead_draw* p_draw,
                             int n_threads,
                             struct tb_ahead_sums* p_sums,
                             struct tb_ahead_rows* p_rows);

#endif
