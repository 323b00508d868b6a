/* Cornish, Vanetti, Bouchard-Cote, Deligiannidis & Doucet (2019, ICML), from
 * rows that are seen once; see passes/ahead.h.
 *
 *   symbol            variable   shape                    owner
 *   sums of a part    v_sum      SUM_total + n_dim (n_dim + 1)  the pass
 *     log lik, sum of psi, G, H
 *   records, norms    v_own      of a part                the pass
 *   psi_i, c_i                   n_data                   caller */
#include "passes/ahead.h"

#include "base/clip.h"
#include "base/hash.h"
#include "base/variates.h"
#include "models/expansion.h"
#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4096 };
enum { SUM_log_lik = 0, SUM_psi = 1, SUM_total = 2 };

/* Up to this mean a count is found by inversion. */
#define FEW 16.0

struct ahead {
  const struct tb_model* p_model;
  const double* v_at;
  const struct tb_ahead_draw* p_draw;
  struct tb_ahead_rows* p_rows;
  double* v_largest; /* of each part */
};

void tb_row_bounds_at(const struct tb_row_bounds* p_bounds,
                      const void* v_record,
                      const double* v_norm,
                      size_t n_row,
                      double* v_psi,
                      bool* v_is_always) {
  const struct tb_model* p_model = p_bounds->p_model;
  p_model->type->expansion
      ->third_bounds(p_model, v_record, v_norm, n_row, p_bounds->radius, v_psi);
  for (size_t i = 0; i < n_row; ++i) {
    const double norm = v_norm[i];
    /* 0 times Inf: a row of zeros has no say */
    v_psi[i] =
        norm == 0 ? 0 : p_bounds->scale * v_psi[i] * (norm * norm * norm / 6);
    v_is_always[i] = !(p_bounds->phi * v_psi[i] <= 1) ||
                     (p_bounds->wide > 0 && norm >= p_bounds->wide);
  }
}

uint64_t tb_ahead_key(uint64_t seed, uint64_t purpose, uint64_t pass) {
  return tb_hash_at(tb_hash_at(tb_hash_mix(seed), purpose), pass);
}

/* The smallest count with P(more than it) <= u; beyond FEW from a generator
 * that the word seeds, since tails of large means are no small sums. */
double tb_ahead_count(uint64_t word, double mean) {
  if (mean > FEW) {
    struct tb_rng rng;
    tb_rng_init(&rng, word, 0, TB_STREAM_batch);
    return tb_rng_poisson(&rng, mean);
  }
  const double u = tb_hash_unif(word);
  if (u >= mean) {
    return 0; /* P(more than 0) is less than the mean */
  }
  double beyond = -expm1(-mean), probability = exp(-mean), count = 0;
  while (u < beyond) {
    count += 1;
    probability *= mean / count;
    beyond -= probability;
    if (count > mean && probability < 1e-20) {
      break; /* what is left is rounding */
    }
  }
  return count;
}

/* psi_i and c_i of a part, of which the records are known */
static enum tb_status draw_part(const struct ahead* p,
                                const struct tb_part* p_part,
                                const void* v_record,
                                double* v_norm) {
  const struct tb_ahead_draw* p_draw = p->p_draw;
  const size_t n_row = p_part->batch.n_batch, first = p_part->first;
  double* v_psi = p->p_rows->v_psi + first;
  double* v_count = p->p_rows->v_count + first;
  bool* v_is_always = (bool*)(v_norm + ROWS);
  const enum tb_status status =
      p->p_model->type->expansion->norms(p->p_model,
                                         p_draw->v_chol,
                                         &p_part->batch,
                                         v_norm);
  if (status != TB_STATUS_ok) {
    return status;
  }
  tb_row_bounds_at(&p_draw->bounds,
                   v_record,
                   v_norm,
                   n_row,
                   v_psi,
                   v_is_always);
  if (p->p_rows->v_norm != NULL) {
    memcpy(p->p_rows->v_norm + first, v_norm, n_row * sizeof(double));
  }
  double total = 0;
  for (size_t k = 0; k < n_row; ++k) {
    if (v_is_always[k]) {
      v_count[k] = -1;
      continue;
    }
    const uint64_t number = p_draw->first + first + k;
    total += v_psi[k];
    v_count[k] = tb_ahead_count(tb_hash_at(p_draw->key, number),
                                p_draw->rate * v_psi[k]);
  }
  p_part->v_sum[SUM_psi] += total;
  return TB_STATUS_ok;
}

static enum tb_status ahead_part(void* p_what, const struct tb_part* p_part) {
  const struct ahead* p = p_what;
  const struct tb_model* p_model = p->p_model;
  const struct tb_model_expansion* type = p_model->type->expansion;
  const size_t n_row = p_part->batch.n_batch;
  const uintptr_t own = (uintptr_t)p_part->v_own;
  void* v_record = (char*)p_part->v_own + (tb_align(own) - own);
  double* v_norm =
      (double*)(void*)((char*)v_record + ROWS * type->record_size(p_model));
  const struct tb_curvature sums = {.p_log_lik = &p_part->v_sum[SUM_log_lik],
                                    .v_gradient = p_part->v_sum + SUM_total,
                                    .v_hessian = p_part->v_sum + SUM_total +
                                                 p_model->n_dim};
  const enum tb_status status =
      type->expand(p_model, p->v_at, &p_part->batch, v_record, &sums, 1);
  if (status != TB_STATUS_ok) {
    return status;
  }
  p->v_largest[p_part->first / ROWS] =
      type->largest_predictor(p->p_model, v_record, n_row);
  return p->p_draw == NULL ? TB_STATUS_ok
                           : draw_part(p, p_part, v_record, v_norm);
}

/* room for the records, the norms and the flags of a part */
static size_t own_doubles(const struct tb_model* p_model) {
  const size_t n_record = p_model->type->expansion->record_size(p_model);
  return (ROWS * (n_record + sizeof(bool)) + 64) / sizeof(double) + ROWS;
}

enum tb_status tb_ahead_pass(const struct tb_model* p_model,
                             const double* v_at,
                             const struct tb_ahead_draw* p_draw,
                             int n_threads,
                             struct tb_ahead_sums* p_sums,
                             struct tb_ahead_rows* p_rows) {
  const struct tb_model_expansion* type = p_model->type->expansion;
  const size_t n_dim = p_model->n_dim;
  const size_t n_sum = SUM_total + n_dim * (n_dim + 1);
  const size_t n_part = p_model->n_data / ROWS + 1;
  const struct tb_batch all = {.n_batch = p_model->n_data, .weight = 1};
  if (type == NULL || (p_draw != NULL && !type->has_remainders(p_model))) {
    return TB_STATUS_unsupported;
  }
  double* v_total = calloc(n_sum + n_part, sizeof(double));
  if (v_total == NULL) {
    return TB_STATUS_memory;
  }
  struct ahead what = {.p_model = p_model,
                       .v_at = v_at,
                       .p_draw = p_draw,
                       .p_rows = p_rows,
                       .v_largest = v_total + n_sum};
  struct tb_pass pass = {.p_model = p_model,
                         .part = ahead_part,
                         .p_what = &what,
                         .n_part_row = ROWS,
                         .n_point = 1,
                         .n_sum = n_sum,
                         .n_own = own_doubles(p_model),
                         .n_threads = n_threads};
  enum tb_status status = tb_pass_begin(&pass);
  if (status == TB_STATUS_ok) {
    status = tb_pass_over(&pass, &all, v_total);
  }
  tb_pass_end(&pass);
  p_sums->log_lik = v_total[SUM_log_lik];
  p_sums->largest = 0;
  for (size_t k = 0; k < n_part; ++k) {
    p_sums->largest = fmax(p_sums->largest, what.v_largest[k]);
  }
  memcpy(p_sums->v_total, v_total + SUM_total, n_dim * sizeof(double));
  memcpy(p_sums->v_hessian,
         v_total + SUM_total + n_dim,
         n_dim * n_dim * sizeof(double));
  if (p_rows != NULL) {
    p_rows->total = v_total[SUM_psi];
  }
  free(v_total);
  return status;
}
