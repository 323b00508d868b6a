/* The natural exponential families of GLMs as functions of arrays: what the
 * methods of a fit apply to matrices of linear predictors. */
#ifndef TB_MODELS_LINK_H
#define TB_MODELS_LINK_H

#include <stddef.h>

/* `code` of glm_families in R/models.R */
enum tb_link {
  TB_LINK_identity = 0,
  TB_LINK_logit = 1,
  TB_LINK_log = 2,
  TB_LINK_count = 3
};

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

/* The means at the linear predictors theta x' + offset. A number of v_out is
 * the same whatever else is asked for, and by how many threads. All matrices
 * are column-major and the caller's. */
struct tb_link_product {
  enum tb_link link;
  size_t n_draw, n_row, n_dim;
  const double* v_theta;  /* n_draw x n_dim */
  const double* v_x;      /* n_row x n_dim */
  const double* v_offset; /* n_row, or NULL */
  double* v_out;          /* out: n_draw x n_row */
  int n_threads;
};

void tb_link_product(const struct tb_link_product* p_product);

#endif
