#include "check.h"
#include "fixture.h"

#include "models/framed.h"
#include "models/scaled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A horseshoe of coordinates 0 and 2 of three coefficients. */
enum { N_ROW = 40, N = 3, N_HYPER = 4, N_ALL = N + N_HYPER };

static const double kind = 3, size = 2;
static const double v_at[] = {2, 0}, v_location[] = {0.2, 0};
static const double v_scale[] = {1.5, 1}, v_shape[] = {0, 0};
static const double v_argument[] = {1, 2, 0.4, 4, 1.5};
static const double v_center[] = {0.3, -0.1, 0.2};

#define N_PARAM 7
#define N_MOVE  4
static const struct tb_param v_mixture[N_PARAM] = {
    {"mixture_kind", &kind, NULL, 1, 1},
    {"mixture_size", &size, NULL, 1, 1},
    {"mixture_at", v_at, NULL, 2, 2},
    {"mixture_argument", v_argument, NULL, 5, 5},
    {"mixture_location", v_location, NULL, 2, 2},
    {"mixture_scale", v_scale, NULL, 2, 2},
    {"mixture_shape", v_shape, NULL, 2, 2}};

static const double v_phi[] = {-1, 0.4, 0.3, -0.8};
static const double v_line[] = {0, 0.3, 0, 0.1, 0.2, -0.1};

/* A base and the model around it; moves: gradient and minus Hessian of the base
 * at v_center, by differences, which are exact where it is quadratic. */
struct pair {
  struct fixture base, all;
  double v_slope[N], v_hessian[N * N];
};

static void pair_create(struct check* p_check,
                        struct pair* p,
                        int family,
                        bool has_moves,
                        const double* v_held) {
  struct tb_param v_param[N_PARAM + N_MOVE];
  fixture_glm(&p->base, N_ROW, N, family, FIXTURE_WEIGHTS * (family != 1));
  fixture_gradient(&p->base, v_center, p->v_slope);
  for (size_t j = 0; j < N; ++j) {
    double v_up[N], v_down[N], v_theta[N];
    memcpy(v_theta, v_center, sizeof v_theta);
    v_theta[j] = v_center[j] + 0.5;
    fixture_gradient(&p->base, v_theta, v_up);
    v_theta[j] = v_center[j] - 0.5;
    fixture_gradient(&p->base, v_theta, v_down);
    for (size_t i = 0; i < N; ++i) {
      p->v_hessian[j * N + i] = v_down[i] - v_up[i];
    }
  }
  memcpy(v_param, v_mixture, sizeof v_mixture);
  const struct tb_param v_move[] = {
      {"move_center", v_center, NULL, N, N},
      {"move_slope", p->v_slope, NULL, N, N},
      {"move_hessian", p->v_hessian, NULL, N * N, N},
      {"move_lines", v_line, NULL, 2 * N, N}};
  memcpy(v_param + N_PARAM, v_move, sizeof v_move);
  const struct tb_params params = {v_param, N_PARAM + N_MOVE * has_moves};
  p->all = p->base;
  CHECK(tb_model_scale(&p->base.model,
                       &params,
                       v_held,
                       v_held == NULL ? 0 : N_HYPER,
                       &p->all.model) == TB_STATUS_ok);
  fixture_finish(&p->all);
}

static void pair_free(struct pair* p) {
  p->all.model.type->destroy(&p->all.model);
  free(p->all.work.p_scratch);
  fixture_free(&p->base);
}

static void start(double* v_theta, struct tb_rng* p_rng) {
  for (size_t j = 0; j < N; ++j) {
    v_theta[j] = v_center[j] + 0.5 * tb_rng_norm(p_rng);
  }
  memcpy(v_theta + N, v_phi, sizeof v_phi);
}

static void sums_are_those_of_base_and_prior(struct check* p_check) {
  struct pair p;
  struct tb_rng rng;
  double v_theta[N_ALL], v_gradient[N_ALL], v_unused[N_ALL];
  pair_create(p_check, &p, 1, false, NULL);
  tb_rng_init(&rng, 1, 0, TB_STREAM_noise);
  CHECK(p.all.model.n_dim == N_ALL && p.all.model.n_natural == N_ALL);
  CHECK(p.all.model.fingerprint != p.base.model.fingerprint);
  start(v_theta, &rng);
  fixture_gradient(&p.all, v_theta, v_gradient);
  for (size_t j = 0; j < N_ALL; ++j) {
    const double x = v_theta[j], h = 1e-5;
    v_theta[j] = x + h;
    const double up = fixture_gradient(&p.all, v_theta, v_unused);
    v_theta[j] = x - h;
    const double down = fixture_gradient(&p.all, v_theta, v_unused);
    v_theta[j] = x;
    CHECK_CLOSE(v_gradient[j],
                (up - down) / (2 * h),
                1e-6 * (1 + fabs(v_gradient[j])));
  }
  double v_base[N], v_natural[N_ALL];
  fixture_gradient(&p.base, v_theta, v_base);
  CHECK(v_gradient[1] == v_base[1]); /* under no mixture */
  p.all.model.type->constrain(&p.all.model, v_theta, v_natural);
  for (size_t j = 0; j < N_ALL; ++j) {
    CHECK(v_natural[j] == (j < N ? v_theta[j] : exp(v_theta[j])));
  }
  pair_free(&p);
}

/* 1: one of the lines, times t, 0: none */
static bool is_along(const double* v_from, const double* v_to) {
  for (size_t k = 0; k < 2; ++k) {
    const double t = (v_to[1] - v_from[1]) / v_line[N * k + 1];
    double largest = 0;
    for (size_t j = 0; j < N_ALL; ++j) {
      const double moved = j < N ? t * v_line[N * k + j] : 0;
      largest = fmax(largest, fabs(v_to[j] - v_from[j] - moved));
    }
    if (largest < 1e-12) {
      return true;
    }
  }
  return false;
}

/* Where the log likelihood is quadratic, moves are drawn from the law of the
 * coefficients given the scales, or of both: all would be accepted, but for
 * those along a line, which are symmetric. So it is in whitened coordinates;
 * where it is not quadratic, they would not. */
static void moves_are_of_the_conditional_law(struct check* p_check) {
  const double v_chol[] = {2, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3,
                           0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0,
                           0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
  const double v_zero[N_ALL] = {0};
  for (int k = 0; k < 3; ++k) {
    struct pair p;
    struct tb_rng rng;
    struct fixture framed;
    pair_create(p_check, &p, k == 2 ? 2 : 0, true, NULL);
    framed = p.all;
    CHECK(tb_model_frame(&p.all.model, v_zero, v_chol, false, &framed.model) ==
          TB_STATUS_ok);
    fixture_finish(&framed);
    const struct fixture* p_f = k == 1 ? &framed : &p.all;
    const struct tb_model* p_model = &p_f->model;
    CHECK(p_model->move_share > 0);
    double v_from[N_ALL], v_to[N_ALL], v_unused[N_ALL], largest = 0;
    size_t n_along = 0, n_scales = 0;
    tb_rng_init(&rng, 1, 0, TB_STREAM_noise);
    start(v_from, &rng);
    for (size_t i = 0; i < 100; ++i) {
      const double ratio =
          p_model->type->move(p_model, &p_f->work, v_from, &rng, v_to);
      const double before = fixture_gradient(p_f, v_from, v_unused);
      const double after = fixture_gradient(p_f, v_to, v_unused);
      if (ratio == 0) {
        n_along += 1;
        CHECK(k == 1 || is_along(v_from, v_to));
        continue;
      }
      largest = fmax(largest, fabs(after - before + ratio));
      CHECK(v_to[0] != v_from[0] && v_to[1] != v_from[1]);
      double shift = 0;
      for (size_t j = N; j < N_ALL; ++j) {
        shift = fmax(shift, fabs(v_to[j] - v_from[j]));
      }
      n_scales += shift > 1e-12;
      memcpy(v_from, v_to, sizeof v_from);
    }
    CHECK(n_along > 0 && n_scales > 0 && n_along + n_scales < 100);
    CHECK(k == 2 ? largest > 1e-2 : largest < 1e-8);
    framed.model.type->destroy(&framed.model);
    free(framed.work.p_scratch);
    pair_free(&p);
  }
}

/* Chains of moves of scales and coefficients together, and of scales given
 * coefficients in turn with coefficients given scales, all of which are
 * accepted where the log likelihood is quadratic: the same law. */
static void moves_of_scales_keep_the_law(struct check* p_check) {
  enum { N_STEP = 40000, N_BATCH = 40, N_SIZE = N_STEP / N_BATCH };
  double v_mean[2][N_ALL] = {{0}}, v_square[2][N_ALL] = {{0}};
  struct pair p;
  pair_create(p_check, &p, 0, true, NULL);
  const struct tb_model* p_model = &p.all.model;
  for (int k = 0; k < 2; ++k) {
    double v_theta[N_ALL], v_to[N_ALL], v_sum[N_ALL];
    struct tb_rng rng;
    tb_rng_init(&rng, 7, (uint32_t)k, TB_STREAM_noise);
    tb_rng_init(p.all.work.p_rng, 7, (uint32_t)k, TB_STREAM_model);
    start(v_theta, &rng);
    for (int b = 0; b < N_BATCH; ++b) {
      memset(v_sum, 0, sizeof v_sum);
      for (int i = 0; i < N_SIZE; ++i) {
        bool is_moved = false;
        while (!is_moved) {
          const double ratio =
              p_model->type->move(p_model, &p.all.work, v_theta, &rng, v_to);
          const bool is_of_scales =
              memcmp(v_to + N, v_theta + N, N_HYPER * sizeof(double)) != 0;
          is_moved = ratio != 0 && is_of_scales == (k == 0);
        }
        memcpy(v_theta, v_to, sizeof v_theta);
        if (k == 1) {
          (void)p_model->type->gibbs(p_model, &p.all.work, v_theta);
        }
        for (size_t j = 0; j < N_ALL; ++j) {
          v_sum[j] += v_theta[j] / N_SIZE;
        }
      }
      for (size_t j = 0; j < N_ALL; ++j) {
        v_mean[k][j] += v_sum[j] / N_BATCH;
        v_square[k][j] += v_sum[j] * v_sum[j] / N_BATCH;
      }
    }
  }
  for (size_t j = 0; j < N_ALL; ++j) {
    double variance = 0;
    for (int k = 0; k < 2; ++k) {
      const double mean = v_mean[k][j];
      variance += (v_square[k][j] - mean * mean) / (N_BATCH - 1);
    }
    CHECK_CLOSE(v_mean[0][j], v_mean[1][j], 4 * sqrt(variance));
  }
  pair_free(&p);
}

static void scales_move_given_the_coefficients(struct check* p_check) {
  struct pair p;
  double v_theta[N_ALL], v_before[N_ALL];
  pair_create(p_check, &p, 1, false, NULL);
  CHECK(p.all.model.n_gibbs_every == 1 && p.all.model.move_share == 0);
  tb_rng_init(p.all.work.p_rng, 1, 0, TB_STREAM_model);
  start(v_theta, p.all.work.p_rng);
  memcpy(v_before, v_theta, sizeof v_theta);
  CHECK(p.all.model.type->gibbs(&p.all.model, &p.all.work, v_theta) ==
        TB_STATUS_ok);
  CHECK(memcmp(v_theta, v_before, N * sizeof(double)) == 0);
  for (size_t j = N; j < N_ALL; ++j) {
    CHECK(v_theta[j] != v_before[j] && isfinite(v_theta[j]));
  }
  pair_free(&p);
}

/* With scales held the model is the same of the coefficients alone, and has a
 * Hessian. */
static void held_scales_leave_a_normal_prior(struct check* p_check) {
  struct pair p, held;
  struct tb_rng rng;
  double v_theta[N_ALL], v_all[N_ALL], v_held[N], v_gradient[N] = {0};
  double v_hessian[N * N] = {0}, log_posterior = 0;
  pair_create(p_check, &p, 1, false, NULL);
  pair_create(p_check, &held, 1, false, v_phi);
  CHECK(held.all.model.n_dim == N && !tb_model_has_curvature(&p.all.model));
  CHECK(tb_model_has_curvature(&held.all.model));
  tb_rng_init(&rng, 1, 0, TB_STREAM_noise);
  start(v_theta, &rng);
  fixture_gradient(&p.all, v_theta, v_all);
  fixture_gradient(&held.all, v_theta, v_held);
  for (size_t j = 0; j < N; ++j) {
    CHECK_CLOSE(v_held[j], v_all[j], 1e-12 * (1 + fabs(v_all[j])));
  }
  const struct tb_curvature sums = {.p_log_lik = &log_posterior,
                                    .v_gradient = v_gradient,
                                    .v_hessian = v_hessian};
  struct fixture* f = &held.all;
  f->model.type
      ->curvature_prior(&f->model, &f->work, v_theta, NULL, N_ROW, &sums);
  for (size_t j = 0; j < N; ++j) {
    double v_up[N], v_down[N], v_none[N];
    const double x = v_theta[j], h = 1e-4;
    v_theta[j] = x + h;
    f->model.type->prior(&f->model, &f->work, v_theta, v_up, NULL);
    v_theta[j] = x - h;
    f->model.type->prior(&f->model, &f->work, v_theta, v_down, NULL);
    v_theta[j] = x;
    f->model.type->prior(&f->model, &f->work, v_theta, v_none, NULL);
    CHECK_CLOSE(v_gradient[j], v_none[j], 1e-12 * (1 + fabs(v_none[j])));
    for (size_t i = 0; i < N; ++i) {
      const double slope = (v_down[i] - v_up[i]) / (2 * h);
      CHECK_CLOSE(v_hessian[j * N + i], slope, 1e-7 * (1 + fabs(slope)));
    }
  }
  pair_free(&p);
  pair_free(&held);
}

static void bad_parts_are_refused(struct check* p_check) {
  const struct tb_params params = {v_mixture, N_PARAM};
  struct fixture f;
  struct tb_model model, framed;
  const double v_chol[] = {1, 1, 1};
  fixture_glm(&f, N_ROW, N, 1, 0);
  CHECK(tb_model_scale(&f.model, &params, v_phi, 1, &model) ==
        TB_STATUS_argument);
  for (size_t n = 1; n < N_PARAM; ++n) {
    const struct tb_params some = {v_mixture, n};
    CHECK(tb_model_scale(&f.model, &some, NULL, 0, &model) ==
          TB_STATUS_argument);
  }
  CHECK(tb_model_frame(&f.model, v_center, v_chol, true, &framed) ==
        TB_STATUS_ok);
  CHECK(tb_model_scale(&framed, &params, NULL, 0, &model) ==
        TB_STATUS_unsupported);
  framed.type->destroy(&framed);
  fixture_free(&f);
}

const struct check_case check_scaled[] = {
    {"models under scale mixtures are those of base and prior",
     sums_are_those_of_base_and_prior},
    {"moves under scale mixtures are of the conditional law",
     moves_are_of_the_conditional_law},
    {"moves of scales and coefficients keep their law",
     moves_of_scales_keep_the_law},
    {"scales of a model move given the coefficients",
     scales_move_given_the_coefficients},
    {"held scales leave a normal prior", held_scales_leave_a_normal_prior},
    {"what scale mixtures cannot go around is refused", bad_parts_are_refused},
    {NULL, NULL}};
