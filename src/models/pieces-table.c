/* Times with a hazard in pieces: what all rows share at a place, see pieces.c.
 */
#include "models/pieces-inside.h"

#include "base/blas.h"

#include <math.h>
#include <string.h>

void pieces_set_table(const struct pieces* p,
                      const double* v_step,
                      const struct pieces_table* p_table) {
  double total = 0;
  memset(p_table->v_alpha, 0, p->n_piece * sizeof(double));
  for (size_t j = 0; j < p->n_step; ++j) {
    const double* v_z = p->v_basis + j * p->n_piece;
    for (size_t k = 0; k < p->n_piece; ++k) {
      p_table->v_alpha[k] += v_step[j] * v_z[k];
    }
  }
  for (size_t k = 0; k < p->n_piece; ++k) {
    p_table->v_rate[k] = exp(p_table->v_alpha[k]);
    p_table->v_total[k] = total;
    total += p->v_width[k] * p_table->v_rate[k];
  }
}

void pieces_pull(const struct pieces* p,
                 const double* v_piece,
                 double* v_step) {
  for (size_t j = 0; j < p->n_step; ++j) {
    const double* v_z = p->v_basis + j * p->n_piece;
    double sum = 0;
    for (size_t k = 0; k < p->n_piece; ++k) {
      sum += v_z[k] * v_piece[k];
    }
    v_step[j] += sum;
  }
}

void pieces_predict(const struct pieces* p,
                    const double* v_theta,
                    const double* v_x,
                    size_t n_lead,
                    size_t n_row,
                    double* v_eta) {
  tb_gemm_op('T',
             'N',
             1,
             n_row,
             p->n_coef,
             v_theta,
             p->n_coef,
             v_x,
             n_lead,
             0,
             v_eta,
             1);
}
