/* The natural exponential families of GLMs as functions of arrays: what the
 * methods of a fit apply to matrices of linear predictors. */
#ifndef TB_MODELS_LINK_H
#define TB_MODELS_LINK_H

#include <stddef.h>

/* `code` of glm_families in R/models.R */
enum tb_link { TB_LINK_identity = 0, TB_LINK_logit = 1, TB_LINK_log = 2 };

/* b'(eta), the mean. v_out may be v_eta. */
void tb_link_mean(enum tb_link link,
                  const double* v_eta,
                  double* v_out,
                  size_t n);

/* b(eta): eta^2 / 2, log(1 + exp(eta)), exp(eta). v_out may be v_eta. */
void tb_link_cumulant(enum tb_link link,
                      const double* v_eta,
                      double* v_out,
                      size_t n);

/* The means at the linear predictors A' B: v_a is n_dim x n_draw, v_b is
 * n_dim x n_row, v_out is n_draw x n_row, all column-major. */
void tb_link_product(enum tb_link link,
                     size_t n_draw,
                     size_t n_row,
                     size_t n_dim,
                     const double* v_a,
                     const double* v_b,
                     double* v_out);

#endif
