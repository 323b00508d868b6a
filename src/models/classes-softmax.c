/* Unordered classes: see classes.c. Class 0 is the reference, with predictor 0.
 *
 *   l = eta_y - log(1 + sum_k e^eta_k),  dl/deta_k = [y = k] - p_k
 *   -d2l/deta_k deta_m = p_k ([k = m] - p_m)
 *
 *   symbol   variable   shape   owner
 *   p_k      v_p        n_eta   caller's scratch
 */
#include "models/classes.h"

#include <math.h>

/* v_p := probabilities of classes 1..; returns log(1 + sum_k e^eta_k) */
static double probabilities(const double* v_eta, size_t n_eta, double* v_p) {
  double largest = 0;
  for (size_t k = 0; k < n_eta; ++k) {
    largest = fmax(largest, v_eta[k]);
  }
  double sum = exp(-largest);
  for (size_t k = 0; k < n_eta; ++k) {
    v_p[k] = exp(v_eta[k] - largest);
    sum += v_p[k];
  }
  for (size_t k = 0; k < n_eta; ++k) {
    v_p[k] /= sum;
  }
  return largest + log(sum);
}

static void softmax_look(const struct classes* p,
                         const double* v_shared,
                         const double* v_eta,
                         const double* v_class,
                         size_t n_row,
                         double* v_work,
                         const struct classes_out* p_out) {
  const size_t n = p->n_eta;
  (void)v_shared;
  for (size_t i = 0; i < n_row; ++i) {
    const double* v_own = v_eta + i * n;
    const size_t y = (size_t)v_class[i];
    const double norm = probabilities(v_own, n, v_work);
    if (p_out->v_log_lik != NULL) {
      p_out->v_log_lik[i] = (y == 0 ? 0 : v_own[y - 1]) - norm;
    }
    for (size_t k = 0; p_out->v_score != NULL && k < n; ++k) {
      p_out->v_score[i * n + k] = (y == k + 1) - v_work[k];
    }
    if (p_out->v_bend != NULL) {
      double* v_bend = p_out->v_bend + i * n * n;
      for (size_t k = 0; k < n; ++k) {
        for (size_t m = 0; m < n; ++m) {
          v_bend[k * n + m] = v_work[k] * ((k == m) - v_work[m]);
        }
      }
    }
  }
}

const struct classes_head classes_softmax = {.name = "softmax",
                                             .look = softmax_look};
