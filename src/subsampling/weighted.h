/* The alias table, for `weighted` and for schemes that vary the size of the
 * minibatch (multipliers for size n: the table's, made with n_size = 1, over
 * n). */
#ifndef TB_SUBSAMPLING_WEIGHTED_H
#define TB_SUBSAMPLING_WEIGHTED_H

#include "base/rng.h"
#include "base/status.h"

#include <stddef.h>

/* 32 bytes on 64-bit machines: two to a cache line */
struct tb_alias {
  double threshold;    /* the row itself is taken with this probability */
  size_t alias;        /* else this one */
  double weight;       /* 1 / (n p) of the row itself */
  double alias_weight; /* and of its alias */
};

/* v_weight: n_data numbers of any scale, not below 0 nor all 0; those that are
 * 0 are never drawn */
enum tb_status tb_alias_build(const double* v_weight,
                              size_t n_data,
                              size_t n_size,
                              struct tb_alias* v_record);

/* n rows with replacement and their multipliers */
void tb_alias_draw(const struct tb_alias* v_record,
                   size_t n_data,
                   struct tb_rng* p_rng,
                   size_t n,
                   size_t* v_index,
                   double* v_weight);

#endif
