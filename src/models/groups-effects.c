/* Effects of groups given the parameters: moments from the nodes of the
 * quadrature, and draws, which need none, see groups-draw.c.
 *
 *   symbol  variable  shape
 *   m, S    v_mean, v_square of struct groups_look: E v, E v v^T
 *   F       factor = A Lambda, so that u = F v */
#include "models/groups-effects.h"

#include "base/rng.h"
#include "models/groups-one.h"
#include "models/groups-rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { Q = GROUPS_EFFECT };

size_t groups_n_effect(const struct tb_model* p_model) {
  const struct groups* p = p_model->p_self;
  return p->n_effect;
}

size_t groups_n_row(const struct tb_model* p_model) {
  const struct groups* p = p_model->p_self;
  return p->n_row;
}

size_t groups_n_node(const struct tb_model* p_model) {
  const struct groups* p = p_model->p_self;
  return p->n_node;
}

static struct groups_point* points_at(const struct tb_model* p_model,
                                      const double* v_theta,
                                      size_t n_point) {
  const struct groups* p = p_model->p_self;
  struct groups_point* v_point = malloc((n_point + 1) * sizeof(*v_point));
  for (size_t d = 0; v_point != NULL && d < n_point; ++d) {
    v_point[d] = groups_point_at(p, v_theta + d * p_model->n_dim, false);
  }
  return v_point;
}

/* v_mean += F m / n, v_square += F S F^T / n */
static void add_moments(const struct groups* p,
                        const struct groups_point* p_point,
                        const double* v_m,
                        const double* v_S,
                        double share,
                        double* v_mean,
                        double* v_square) {
  const size_t q = p->n_effect;
  double factor[Q][Q];
  groups_whole_factor(p, p_point, factor);
  for (size_t a = 0; a < q; ++a) {
    double u = 0;
    for (size_t c = 0; c < q; ++c) {
      u += factor[a][c] * v_m[c];
    }
    v_mean[a] += share * u;
    for (size_t b = 0; b < q; ++b) {
      for (size_t c = 0; c < q; ++c) {
        for (size_t d = 0; d < q; ++d) {
          v_square[a * q + b] +=
              share * factor[a][c] * v_S[c * q + d] * factor[b][d];
        }
      }
    }
  }
}

/* What is done for each of n_group groups, in threads: run(this, scratch, k).
 */
struct task {
  const struct tb_model* p_model;
  const struct groups_point* v_point; /* n_point */
  size_t n_point;
  size_t first;          /* the first group, */
  const size_t* v_group; /* or all their numbers */
  uint64_t seed;
  double* v_mean;
  double* v_square;
  double* v_draw;
  size_t n_group;
  void (*run)(const struct task* p_task,
              const struct groups_scratch* p_s,
              size_t k);
};

static enum tb_status
run_task(const struct task* p_task, const double* v_theta, int n_threads) {
  const struct tb_model* p_model = p_task->p_model;
  const size_t n_work = groups_scratch_size(p_model, false);
  struct groups_point* v_point = points_at(p_model, v_theta, p_task->n_point);
  struct task task = *p_task;
  task.v_point = v_point;
  bool is_short = v_point == NULL;
  (void)n_threads;
#ifdef _OPENMP
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
#endif
  {
    char* p_memory = malloc(n_work + 64);
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 16)
#endif
    for (size_t k = 0; k < task.n_group; ++k) {
      if (p_memory == NULL || v_point == NULL) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
        is_short = true;
        continue;
      }
      const struct groups_scratch s =
          groups_scratch_at(p_model, p_memory, false);
      task.run(&task, &s, k);
    }
    free(p_memory);
  }
  free(v_point);
  return is_short ? TB_STATUS_memory : TB_STATUS_ok;
}

static void moments_of_group(const struct task* p_task,
                             const struct groups_scratch* p_s,
                             size_t k) {
  const struct groups* p = p_task->p_model->p_self;
  const size_t q = p->n_effect;
  double v_m[Q], v_S[Q * Q];
  const struct groups_look look = {.v_mean = v_m, .v_square = v_S};
  for (size_t d = 0; d < p_task->n_point; ++d) {
    const struct groups_point* p_point = &p_task->v_point[d];
    groups_look(p_task->p_model, p_point, p_s, p_task->first + k, &look);
    add_moments(p,
                p_point,
                v_m,
                v_S,
                1 / (double)p_task->n_point,
                p_task->v_mean + q * k,
                p_task->v_square + q * q * k);
  }
}

enum tb_status groups_effect_moments(const struct tb_model* p_model,
                                     const double* v_theta,
                                     size_t n_point,
                                     size_t first,
                                     size_t n_group,
                                     int n_threads,
                                     double* v_mean,
                                     double* v_square) {
  const size_t q = groups_n_effect(p_model);
  const struct task task = {.p_model = p_model,
                            .n_point = n_point,
                            .first = first,
                            .v_mean = v_mean,
                            .v_square = v_square,
                            .n_group = n_group,
                            .run = moments_of_group};
  memset(v_mean, 0, q * n_group * sizeof(double));
  memset(v_square, 0, q * q * n_group * sizeof(double));
  return run_task(&task, v_theta, n_threads);
}

/* -------------------------------------------------------------------- draws */

static void draws_of_group(const struct task* p_task,
                           const struct groups_scratch* p_s,
                           size_t k) {
  const struct groups* p = p_task->p_model->p_self;
  const size_t q = p->n_effect, group = p_task->v_group[k];
  struct tb_rng rng;
  tb_rng_init(&rng, p_task->seed, group, TB_STREAM_model);
  for (size_t d = 0; d < p_task->n_point; ++d) {
    const struct groups_point* p_point = &p_task->v_point[d];
    double* v_u = p_task->v_draw + (d * p_task->n_group + k) * q;
    double v[Q], factor[Q][Q];
    if (!groups_draw(p, p_point, p_s, group, &rng, v)) {
      for (size_t a = 0; a < q; ++a) {
        v[a] = NAN;
      }
    }
    groups_whole_factor(p, p_point, factor);
    for (size_t a = 0; a < q; ++a) {
      v_u[a] = 0;
      for (size_t c = 0; c < q; ++c) {
        v_u[a] += factor[a][c] * v[c];
      }
    }
  }
}

enum tb_status groups_effect_draws(const struct tb_model* p_model,
                                   const double* v_theta,
                                   size_t n_point,
                                   const size_t* v_group,
                                   size_t n_group,
                                   uint64_t seed,
                                   int n_threads,
                                   double* v_out) {
  const struct task task = {.p_model = p_model,
                            .n_point = n_point,
                            .v_group = v_group,
                            .seed = seed,
                            .v_draw = v_out,
                            .n_group = n_group,
                            .run = draws_of_group};
  const enum tb_status status = run_task(&task, v_theta, n_threads);
  const size_t n = groups_n_effect(p_model) * n_group * n_point;
  bool is_finite = true;
  for (size_t k = 0; status == TB_STATUS_ok && k < n; ++k) {
    is_finite = is_finite && isfinite(v_out[k]);
  }
  return is_finite ? status : TB_STATUS_nonfinite;
}
