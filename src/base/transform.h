/* Constrained parameters and the free coordinates that a sampler moves.
 *
 *   kind      natural x                     free y                   log
 * |dx/dy| real      any numbers                   x                        0
 *   positive  x > 0                         log x                    y
 *   unit      0 < x < 1                     log(x / (1 - x))         log x(1 -
 * x) simplex   x_k > 0, K of them, sum 1     K - 1 broken sticks      below
 *
 * The simplex (Stan Development Team, Reference Manual, "Unit simplex"): with
 * rest_1 = 1 and z_k = logit^-1(y_k - log(K - k)),
 *
 *   x_k = rest_k z_k,  rest_{k+1} = rest_k (1 - z_k),  x_K = rest_K,
 *   log |dx/dy| = sum_k log z_k + log(1 - z_k) + log rest_k,
 *
 * so that y = 0 is the middle of the simplex.
 *
 * Arguments: v_part: n_part pieces, in the order of their numbers in v_free
 * (the sum of the n_free) and v_natural (that of the n_natural). */
#ifndef TB_BASE_TRANSFORM_H
#define TB_BASE_TRANSFORM_H

#include <stddef.h>

enum tb_transform {
  TB_TRANSFORM_real = 0,
  TB_TRANSFORM_positive = 1,
  TB_TRANSFORM_unit = 2,
  TB_TRANSFORM_simplex = 3,
  TB_TRANSFORM_count = 4
};

struct tb_transform_part {
  enum tb_transform kind;
  size_t n_natural;
  size_t n_free;
};

/* SETS v_natural; returns log |dx/dy|. */
double tb_transform_constrain(const struct tb_transform_part* v_part,
                              size_t n_part,
                              const double* v_free,
                              double* v_natural);

/* SETS v_out (free) to the gradient in y of a function whose gradient in x is
 * v_gradient (natural). */
void tb_transform_pull(const struct tb_transform_part* v_part,
                       size_t n_part,
                       const double* v_free,
                       const double* v_gradient,
                       double* v_out);

/* ADDS the gradient in y of log |dx/dy|. */
void tb_transform_add_jacobian(const struct tb_transform_part* v_part,
                               size_t n_part,
                               const double* v_free,
                               double* v_gradient);

#endif
