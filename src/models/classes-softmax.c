/* Unordered classes: see classes.c. Class 0 is the reference, with predictor 0.
 *
 *   l = eta_y - log(1 + sum_k e^eta_k),  dl/deta_k = [y = k] - p_k
 *   -d2l/deta_k deta_m = p_k ([k = m] - p_m)
 *
 *   symbol   variable   shape   owner
 *   p_k      v_p        n_eta   caller's scratch, for each row
 */
#include "base/clones.h"
#include "base/vmath.h"
#include "models/classes-inside.h"

/* v_p := e^(eta - largest) of each row, v_norm := log(1 + sum_k e^eta_k),
 * v_total := sum_k e^(eta_k - largest), class 0 included */
static TB_CLONES void exponentials(const double* v_eta,
                                   size_t n_eta,
                                   size_t n_row,
                                   double* v_p,
                                   double* v_norm,
                                   double* v_total) {
  for (size_t i = 0; i < n_row; ++i) {
    double largest = 0;
    for (size_t k = 0; k < n_eta; ++k) {
      const double eta = v_eta[i * n_eta + k];
      largest = eta > largest ? eta : largest;
    }
    for (size_t k = 0; k < n_eta; ++k) {
      v_p[i * n_eta + k] = v_eta[i * n_eta + k] - largest;
    }
    v_norm[i] = largest;
    v_total[i] = -largest;
  }
  tb_vexp(v_p, v_p, n_eta * n_row);
  tb_vexp(v_total, v_total, n_row);
  for (size_t i = 0; i < n_row; ++i) {
    for (size_t k = 0; k < n_eta; ++k) {
      v_total[i] += v_p[i * n_eta + k];
    }
  }
}

/* v_norm += log v_total, which is from 1 to K */
static TB_CLONES void
add_logs(const double* v_total, size_t n_row, double* v_norm) {
  double v_log[CLASSES_BLOCK];
  tb_vlog(v_total, v_log, n_row);
  for (size_t i = 0; i < n_row; ++i) {
    v_norm[i] += v_log[i];
  }
}

static void score_of(const double* v_p, size_t n, size_t y, double* v_score) {
  for (size_t k = 0; k < n; ++k) {
    v_score[k] = -v_p[k];
  }
  if (y > 0) {
    v_score[y - 1] += 1;
  }
}

static void bend_of(const double* v_p, size_t n, double* v_bend) {
  for (size_t k = 0; k < n; ++k) {
    for (size_t m = 0; m < n; ++m) {
      v_bend[k * n + m] = -(v_p[k] * v_p[m]);
    }
    v_bend[k * n + k] += v_p[k];
  }
}

/* v_work: probabilities, n_eta x n_row, and 2 n_row */
static void softmax_look(const struct classes* p,
                         const double* v_shared,
                         const double* v_eta,
                         const double* v_class,
                         size_t n_row,
                         double* v_work,
                         const struct classes_out* p_out) {
  const size_t n = p->n_eta;
  double *v_norm = v_work + n * n_row, *v_total = v_norm + n_row;
  (void)v_shared;
  exponentials(v_eta, n, n_row, v_work, v_norm, v_total);
  if (p_out->v_log_lik != NULL) {
    add_logs(v_total, n_row, v_norm);
    for (size_t i = 0; i < n_row; ++i) {
      const size_t y = (size_t)v_class[i];
      p_out->v_log_lik[i] = (y == 0 ? 0 : v_eta[i * n + y - 1]) - v_norm[i];
    }
  }
  if (p_out->v_score == NULL && p_out->v_bend == NULL) {
    return;
  }
  for (size_t i = 0; i < n_row; ++i) {
    double* v_p = v_work + i * n;
    for (size_t k = 0; k < n; ++k) {
      v_p[k] /= v_total[i];
    }
    if (p_out->v_score != NULL) {
      score_of(v_p, n, (size_t)v_class[i], p_out->v_score + i * n);
    }
    if (p_out->v_bend != NULL) {
      bend_of(v_p, n, p_out->v_bend + i * n * n);
    }
  }
}

const struct classes_head classes_softmax = {.name = "softmax",
                                             .look = softmax_look};
