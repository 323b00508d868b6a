/* How slowly sweeps of two grouping factors mix, before any is made. */
#ifndef TB_MODELS_CROSSED_MIXING_H
#define TB_MODELS_CROSSED_MIXING_H

#include "models/model.h"

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

/* The i-th pair, by n_step passes over the rows. */
enum tb_status tb_crossed_pair_at(const struct tb_model* p_model,
                                  size_t i,
                                  size_t n_step,
                                  struct tb_crossed_pair* p_pair);

#endif
