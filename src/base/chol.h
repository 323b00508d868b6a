/* Cholesky factors. */
#ifndef TB_BASE_CHOL_H
#define TB_BASE_CHOL_H

#include <stdbool.h>
#include <stddef.h>

/* v_lower (n x n, column-major, 0 above the diagonal) := L with L L^T = A, of
 * which the lower triangle is read; v_lower may be v_a. False: A is not
 * positive definite, to rounding. */
bool tb_chol(size_t n, const double* v_a, double* v_lower);

/* The same by blocks, which is fast where n is not small: v_a (n x n,
 * column-major), of which the upper triangle is read, := R with R^T R = A
 * there; what is below the diagonal stays. */
bool tb_chol_upper(size_t n, double* v_a);

/* Of the leading n_done rows only: with A = [A_1 A_12; . A_2], R_1 and R_1^-T
 * A_12 are there then, and in the place of A_2 what is left of it, A_2 - A_12^T
 * A_1^-1 A_12. The first n_had of these rows have been done before. */
bool tb_chol_upper_part(size_t n, size_t n_had, size_t n_done, double* v_a);

/* v := R^-T v and v := R^-1 v, R: upper, as above */
void tb_upper_solve_transposed(size_t n, const double* v_upper, double* v);
void tb_upper_solve(size_t n, const double* v_upper, double* v);

/* v_out (n x n, symmetric) := (L L^T)^{-1}; v_work: n x n */
void tb_chol_inverse(size_t n,
                     const double* v_lower,
                     double* v_work,
                     double* v_out);

#endif
