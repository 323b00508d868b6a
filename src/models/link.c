/* See models/link.h. */
#include "models/link.h"

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
