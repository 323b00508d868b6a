/* Finite set Stein discrepancy: the Stein witness function of draws, looked at
 * in a few locations, at a cost linear in the draws.
 *
 * W. Jitkrittum, W. Xu, Z. Szabo, K. Fukumizu and A. Gretton (2017), A
 * linear-time kernel goodness-of-fit test, NeurIPS, section 3. For draws x_k
 * with b_k = grad log pi(x_k) (of the LOG density), a location v, u = x_k - v,
 * q = c^2 + ||u||^2 and K = q^beta,
 *
 *   xi(x_k, v) = b_k K + 2 beta q^(beta-1) u
 *
 * has mean zero under pi. With weights w and J locations,
 *
 *   S_j = sum_k w_k xi(x_k, v_j),  D_j = sum_k w_k^2 ||xi(x_k, v_j)||^2
 *
 *   biased    FSSD^2 = sum_j  ||S_j||^2        / (d J (sum w)^2)
 *   unbiased           sum_j (||S_j||^2 - D_j) / (d J ((sum w)^2 - sum w^2))
 *
 *   symbol  variable    shape               owner   in/out
 *   x       v_draw      n_dim x n_draw      caller  in, centred for accuracy
 *   b       v_gradient  n_dim x n_draw      caller  in
 *   w       v_weight    n_draw              caller  in
 *   v       v_location  n_dim x n_location  caller  in, shifted like the draws
 *   S       v_sum       n_dim x n_location  caller  out
 *   D       v_square    n_location          caller  out
 *                                                   (arrays are column-major)
 *
 * The draws are cut into a fixed number of chunks that add up in a fixed
 * order, so results do not depend on the number of threads. */
#ifndef TB_DIAGNOSTICS_FSSD_H
#define TB_DIAGNOSTICS_FSSD_H

#include <stdbool.h>
#include <stddef.h>

struct tb_fssd {
  size_t n_draw;
  size_t n_dim;
  size_t n_location;
  const double* v_draw;
  const double* v_gradient;
  const double* v_weight;
  const double* v_location;
  double c;    /* > 0 */
  double beta; /* in (-1, 0) */
  int n_threads;
  /* made by tb_fssd_prepare() in the caller's scratch */
  double* v_norm;  /* n_draw: ||b||^2 */
  double* v_inner; /* n_draw: b.x */
  double* v_size;  /* n_draw: ||x||^2 */
  double* v_far;   /* n_location: ||v||^2 */
  double* v_part;  /* (n_dim + 1) n_location, of each chunk */
  double* v_work;  /* of the threads */
};

/* bytes of scratch: a few numbers a draw, a fixed number of copies of the
 * locations, and a few blocks for each thread */
size_t tb_fssd_scratch_size(const struct tb_fssd* p_fssd);

void tb_fssd_prepare(struct tb_fssd* p_fssd, void* p_scratch);

void tb_fssd_sums(const struct tb_fssd* p_fssd,
                  double* v_sum,
                  double* v_square);

/* Derivatives of ||S_j||^2, less D_j without the diagonal, with respect to
 * v_j: n_dim x n_location. v_sum: S. */
void tb_fssd_slopes(const struct tb_fssd* p_fssd,
                    const double* v_sum,
                    bool has_diagonal,
                    double* v_slope);

#endif
