/* The means of ratings, which predictions need without a model: see
 * models/factors.c. */
#ifndef TB_MODELS_FACTORS_H
#define TB_MODELS_FACTORS_H

#include <stdbool.h>
#include <stddef.h>

/* theta starts with n_user rows of n_width numbers, then n_item of them; where
 * there are biases, they are the last of a row. */
struct tb_factors_shape {
  size_t n_user;
  size_t n_item;
  size_t n_rank;
  size_t n_width; /* n_rank + has_bias */
  bool has_bias;
};

/* U_i^T V_j [+ a_i + b_j] of n_pair pairs of numbers from 1 into v_out. */
void tb_factors_map(const struct tb_factors_shape* p_shape,
                    const double* v_theta,
                    const double* v_user,
                    const double* v_item,
                    size_t n_pair,
                    double* v_out);

#endif
