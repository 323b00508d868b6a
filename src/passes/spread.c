#include "passes/spread.h"

#include "base/clip.h"
#include "models/rows.h"

#include <math.h>
#include <string.h>

/* what the squares are of */
struct terms {
  const struct tb_model* p_model;
  const struct tb_workspace* p_work;
  const double* v_theta;
  const struct tb_reference* p_reference;
  const struct tb_expansion* p_expansion;
  const struct tb_expansion_view* p_view;
  double* v_row;
};

static enum tb_status terms_squares(const struct terms* p,
                                    const struct tb_batch* p_batch,
                                    double* v_square,
                                    double* v_sum) {
  return p->p_expansion == NULL ? tb_model_square_norms(p->p_model,
                                                        p->p_work,
                                                        p->v_theta,
                                                        p_batch,
                                                        p->p_reference,
                                                        v_square,
                                                        v_sum,
                                                        p->v_row)
                                : tb_expansion_square_norms(p->p_expansion,
                                                            p->p_work,
                                                            p->p_view,
                                                            p_batch,
                                                            v_square,
                                                            v_sum,
                                                            p->v_row);
}

enum tb_status tb_spread_of(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const struct tb_reference* p_reference,
                            const struct tb_expansion* p_expansion,
                            const struct tb_expansion_view* p_view,
                            const double* v_probability,
                            double* v_scratch,
                            struct tb_spread* p_spread) {
  const size_t n_dim = p_model->n_dim;
  double* v_sum = v_scratch;
  double* v_row = v_sum + n_dim;
  double* v_always = v_row + n_dim;
  const struct terms terms =
      {p_model, p_work, v_theta, p_reference, p_expansion, p_view, v_row};
  double* v_square = v_always + n_dim;
  enum tb_status status = TB_STATUS_ok;
  *p_spread = (struct tb_spread){0};
  memset(v_sum, 0, n_dim * sizeof(double));
  memset(v_always, 0, n_dim * sizeof(double));
  const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
  for (size_t start = 0; start < all.n_batch && status == TB_STATUS_ok;
       start += TB_CHUNK) {
    const struct tb_batch part = tb_batch_part(&all, start, TB_CHUNK);
    status = terms_squares(&terms, &part, v_square, v_sum);
    for (size_t k = 0; k < part.n_batch && status == TB_STATUS_ok; ++k) {
      p_spread->square += v_square[k];
      p_spread->norm += sqrt(v_square[k]);
      if (v_probability == NULL) {
        continue;
      }
      if (v_probability[start + k] > 0) {
        p_spread->weighted += v_square[k] / v_probability[start + k];
      } else { /* in every minibatch: no part of the noise */
        const struct tb_batch one = tb_batch_part(&part, k, 1);
        status = terms_squares(&terms, &one, &v_square[k], v_always);
      }
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    const double drawn = v_sum[j] - v_always[j];
    p_spread->total += drawn * drawn;
  }
  return status;
}
