/* A pass: means and sums of products of the columns of a design and its
 * response, all that a Gaussian likelihood needs of the rows. */
#ifndef TB_PASSES_SUMS_H
#define TB_PASSES_SUMS_H

#include "models/model.h"

/* With z_i = (x_i, y_i - o_i) of n = n_coef + 1 numbers and the weights w_i:
 * SETS v_mean (n) to the weighted mean m, v_sum (n x n, full) to
 * sum_i w_i (z_i - m)(z_i - m)^T and *p_weight to sum_i w_i. Nothing cancels
 * where means are far larger than standard deviations: rows are taken about a
 * center that some of them give, and the sums of ROWS of them are added in
 * their order, so that results do not depend on the number of threads. */
enum tb_status tb_model_product_sums(const struct tb_model* p_model,
                                     size_t n_coef,
                                     double* v_mean,
                                     double* v_sum,
                                     double* p_weight,
                                     int n_threads);

#endif
