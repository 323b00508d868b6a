/* See models/link.h. */
#include "models/link.h"

#include "core/blas.h"
#include "core/clones.h"
#include "core/vmath.h"

#include <string.h>

TB_CLONES void
tb_link_mean(enum tb_link link, const double* v_eta, double* v_out, size_t n) {
  switch (link) {
  case TB_LINK_logit:
    tb_vlogistic(v_eta, v_out, n);
    break;
  case TB_LINK_log:
    tb_vexp(v_eta, v_out, n);
    break;
  default:
    memmove(v_out, v_eta, n * sizeof(double));
  }
}

TB_CLONES void tb_link_cumulant(enum tb_link link,
                                const double* v_eta,
                                double* v_out,
                                size_t n) {
  switch (link) {
  case TB_LINK_logit:
    tb_vsoftplus(v_eta, v_out, n);
    break;
  case TB_LINK_log:
    tb_vexp(v_eta, v_out, n);
    break;
  default:
    for (size_t k = 0; k < n; ++k) {
      v_out[k] = 0.5 * v_eta[k] * v_eta[k];
    }
  }
}

/* Some columns at a time: they are still in the cache when their inverse link
 * is taken. More of them where the product has more to do, since each call
 * copies all of A into an order of its own. */
void tb_link_product(enum tb_link link,
                     size_t n_draw,
                     size_t n_row,
                     size_t n_dim,
                     const double* v_a,
                     const double* v_b,
                     double* v_out) {
  const size_t n_most = 8 > 4 * n_dim ? 8 : 4 * n_dim;
  for (size_t start = 0; start < n_row; start += n_most) {
    const size_t rest = n_row - start;
    const size_t n_block = rest < n_most ? rest : n_most;
    double* v_block = v_out + start * n_draw;
    tb_gemm('T',
            n_draw,
            n_block,
            n_dim,
            v_a,
            n_dim,
            v_b + start * n_dim,
            n_dim,
            v_block,
            n_draw);
    tb_link_mean(link, v_block, v_block, n_block * n_draw);
  }
}
