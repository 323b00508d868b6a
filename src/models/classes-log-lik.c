/* Regressions with classes: log likelihoods of rows, at one point or at many,
 * and how far predictors are out; see classes.c. */
#include "models/classes-inside.h"

#include <math.h>

/* A block of rows is gathered once for all points. */
enum tb_status classes_log_lik_many(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    size_t n_point,
                                    const struct tb_batch* p_batch,
                                    double* v_sum) {
  const struct classes* p = p_model->p_self;
  const struct classes_scratch s =
      classes_scratch_at(p, p_work->p_scratch, false);
  for (size_t b = 0; b < p_batch->n_batch; b += CLASSES_BLOCK) {
    double v_log_lik[CLASSES_BLOCK];
    const size_t n_row = classes_gather(p, p_batch, b, &s);
    const struct classes_out out = {.v_log_lik = v_log_lik};
    for (size_t k = 0; k < n_point; ++k) {
      classes_look(p,
                   v_theta + k * p_model->n_dim,
                   p_batch,
                   b,
                   n_row,
                   &s,
                   &out);
      for (size_t i = 0; i < n_row; ++i) {
        const double w =
            p->v_weight == NULL ? 1 : p->v_weight[tb_batch_row(p_batch, b + i)];
        v_sum[k] += w * v_log_lik[i];
      }
    }
  }
  return TB_STATUS_ok;
}

/* of a predictor from the thresholds about class y */
static double largest_distance(const struct classes* p,
                               const double* v_cut,
                               size_t y,
                               double eta) {
  const double above = y + 1 < p->n_class ? fabs(v_cut[y] - eta) : 0;
  return y > 0 ? fmax(above, fabs(v_cut[y - 1] - eta)) : above;
}

double classes_largest_predictor(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work,
                                 const double* v_theta,
                                 const struct tb_batch* p_batch) {
  const struct classes* p = p_model->p_self;
  const struct classes_scratch s =
      classes_scratch_at(p, p_work->p_scratch, false);
  double largest = 0, v_cut[CLASSES_MOST];
  if (p->head->is_ordered) {
    classes_thresholds(p->n_class, classes_shared(p, v_theta), v_cut);
  }
  for (size_t b = 0; b < p_batch->n_batch; b += CLASSES_BLOCK) {
    const size_t n_row = classes_gather(p, p_batch, b, &s);
    const struct classes_out out = {0};
    classes_look(p, v_theta, p_batch, b, n_row, &s, &out);
    for (size_t k = 0; !p->head->is_ordered && k < n_row * p->n_eta; ++k) {
      largest = fmax(largest, fabs(s.v_eta[k]));
    }
    for (size_t k = 0; p->head->is_ordered && k < n_row; ++k) {
      const size_t y = (size_t)p->v_class[tb_batch_row(p_batch, b + k)];
      largest = fmax(largest, largest_distance(p, v_cut, y, s.v_eta[k]));
    }
  }
  return largest;
}
