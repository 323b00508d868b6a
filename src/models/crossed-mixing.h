/* How slowly sweeps of two grouping factors mix, before any is made. */
#ifndef TB_MODELS_CROSSED_MIXING_H
#define TB_MODELS_CROSSED_MIXING_H

#include "models/model.h"

/* Where effects are, as far as that is known. */
struct tb_crossed_place {
  double n_worth; /* rows that the prior of an effect is worth, all alike */
  /* both or none: then rows and priors are worth what they are there */
  const double* v_theta;  /* n_dim */
  const double* v_effect; /* all effects */
};

/* Two factors that have an effect of the same column. */
struct tb_crossed_pair {
  size_t v_factor[2];
  size_t n_part; /* parts of the rows that share no level */
  double rate;   /* what a sweep leaves of where it starts from, at most */
};

/* Rows that are kept, of which equal ones are one where the response is normal.
 */
size_t tb_crossed_n_row(const struct tb_model* p_model);

/* Their number. */
size_t tb_crossed_n_pair(const struct tb_model* p_model);

/* The i-th pair, by n_step passes over the rows; v_row (n_row): of
 * tb_crossed_weigh(), or NULL, where no place is known. */
enum tb_status tb_crossed_pair_at(const struct tb_model* p_model,
                                  size_t i,
                                  size_t n_step,
                                  const struct tb_crossed_place* place,
                                  const double* v_row,
                                  struct tb_crossed_pair* p_pair);

/* What rows are worth at a place that is known: v_row (n_row) SET. */
void tb_crossed_weigh(const struct tb_model* p_model,
                      const struct tb_crossed_place* place,
                      double* v_row);

/* Effects of all levels. */
size_t tb_crossed_n_effect(const struct tb_model* p_model);

/* Bytes of a chain: what it keeps, and its scratch. */
size_t tb_crossed_chain_size(const struct tb_model* p_model);

#endif
