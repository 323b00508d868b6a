/* Kernel Stein discrepancy of draws against a density known by the gradients
 * of its logarithm, with the inverse multiquadric kernel.
 *
 * J. Gorham and L. Mackey (2017), Measuring sample quality with kernels,
 * ICML. For draws x_k with b_k = grad log pi(x_k) (the LOG density: with the
 * other sign the terms that are linear in b change theirs), u = x_k - x_l,
 * q = c^2 + ||u||^2 and K = q^beta,
 *
 *   k_j(k, l) = b_kj b_lj K + 2 beta q^(beta-1) u_j (b_lj - b_kj)
 *               - 2 beta q^(beta-1) - 4 beta (beta-1) q^(beta-2) u_j^2
 *
 * and the discrepancy is built from sums of k_j over pairs. What is handed
 * back are the parts that each draw adds to those sums, so that their running
 * totals give the discrepancy of every prefix:
 *
 *   diagonal_l = w_l^2 k(l, l),   below_l = 2 w_l sum_{k<l} w_k k(k, l)
 *
 *   symbol  variable    shape             owner   in/out
 *   x       v_draw      n_dim x n_draw    caller  in, centred for accuracy
 *   b       v_gradient  n_dim x n_draw    caller  in
 *   w       v_weight    n_draw            caller  in
 *                                                 (arrays are column-major)
 *
 * A column of blocks is one task and adds up in a fixed order, so results do
 * not depend on the number of threads. */
#ifndef TB_DIAGNOSTICS_KSD_H
#define TB_DIAGNOSTICS_KSD_H

#include <stdbool.h>
#include <stddef.h>

struct tb_ksd {
  size_t n_draw;
  size_t n_dim;
  const double* v_draw;
  const double* v_gradient;
  const double* v_weight;
  double c;    /* > 0 */
  double beta; /* in (-1, 0) */
  bool by_coordinate;
  int n_threads;
  /* made by tb_ksd_prepare() in the caller's scratch */
  double balance;
  double* v_sum;    /* n_dim x n_draw */
  double* v_square; /* n_draw: ||x||^2 */
  double* v_inner;  /* n_draw: b.x */
  double* v_work;   /* of the threads */
};

/* bytes of scratch: three numbers a coordinate of the draws at most, and a few
 * blocks for each thread */
size_t tb_ksd_scratch_size(const struct tb_ksd* p_ksd);

void tb_ksd_prepare(struct tb_ksd* p_ksd, void* p_scratch);

/* columns of blocks; together they are all pairs */
size_t tb_ksd_n_task(const struct tb_ksd* p_ksd);

/* Tasks first, ..., last - 1, whose parts they overwrite: n_draw numbers, or
 * n_dim x n_draw by coordinate. */
void tb_ksd_advance(const struct tb_ksd* p_ksd,
                    size_t first,
                    size_t last,
                    double* v_diagonal,
                    double* v_below);

#endif
