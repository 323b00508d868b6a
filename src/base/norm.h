/* Norms and sums of vectors. */
#ifndef TB_BASE_NORM_H
#define TB_BASE_NORM_H

#include <stddef.h>

/* ||v||^2, vectorised; not finite where an element is not. */
double tb_square_norm(const double* v, size_t n);

/* The sum and that of the squares about the mean, number after number: those of
 * parts, one after the other, are to the bit those of the whole. */
double tb_add_sum(double sum, const double* v, size_t n);
double tb_add_squares(double sum, const double* v, size_t n, double mean);

/* standard deviation (divisor n - 1), 0 of a single number */
double tb_sd(const double* v, size_t n);

/* v_out[j] = sum_k v_weight[k] v[k + n j], for n_column columns of n */
void tb_column_sums(const double* v,
                    size_t n,
                    size_t n_column,
                    const double* v_weight,
                    double* v_out);

#endif
