/* Sampler coordinates phi and parameters theta:  theta = c + M phi.
 *
 * Whitening (M = L^{-T}, L L^T = -Hessian of the log posterior at c) makes the
 * target close to N(0, I) in phi. A NULL frame is the identity.
 *
 *   symbol   variable       shape            owner
 *   c        v_center       n_dim            the frame
 *   M        v_map          n_dim x n_dim    the frame, row-major, upper
 *                           (diagonal: n_dim)  triangular
 *   L        v_chol         n_dim x n_dim    the frame, row-major, lower
 *                           (diagonal: n_dim)  triangular, M^T L = I
 */
#ifndef TB_BASE_FRAME_H
#define TB_BASE_FRAME_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct tb_frame {
  size_t n_dim;
  bool is_diagonal;
  const double* v_center;
  const double* v_map;
  const double* v_chol;
};

/* From c and L, column-major lower (diagonal: its n_dim numbers). The three
 * arrays are one block of memory, at v_center. */
enum tb_status tb_frame_create(struct tb_frame* p_frame,
                               size_t n_dim,
                               const double* v_center,
                               const double* v_chol,
                               bool is_diagonal);
/* A frame of zeros has nothing to free. */
void tb_frame_destroy(struct tb_frame* p_frame);
/* bytes */
size_t tb_frame_memory(const struct tb_frame* p_frame);

/* theta = c + M phi (in and out must not overlap; likewise below) */
void tb_frame_to_parameter(const struct tb_frame* p_frame,
                           const double* v_phi,
                           double* v_theta);
/* M v: a direction in phi, in theta */
void tb_frame_map(const struct tb_frame* p_frame,
                  const double* v_phi,
                  double* v_theta);
/* phi = L^T (theta - c) */
void tb_frame_to_sampler(const struct tb_frame* p_frame,
                         const double* v_theta,
                         double* v_phi);
/* gradient in theta -> gradient in phi:  M^T g */
void tb_frame_pull_gradient(const struct tb_frame* p_frame,
                            const double* v_theta_gradient,
                            double* v_phi_gradient);
/* Hessian in theta -> Hessian in phi, M^T H M; v_work: n_dim x n_dim */
void tb_frame_pull_hessian(const struct tb_frame* p_frame,
                           double* v_hessian,
                           double* v_work);
/* gradient in phi -> gradient in theta:  L g */
void tb_frame_push_gradient(const struct tb_frame* p_frame,
                            const double* v_phi_gradient,
                            double* v_theta_gradient);

#endif
