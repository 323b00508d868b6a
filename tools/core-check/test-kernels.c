#include "check.h"
#include "fixture.h"

#include "kernels/kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 5, N_CHAIN = 3, N_STEP = 50 };

static void registry_finds(struct check* p_check) {
  for (size_t i = 0; tb_kernel_registry[i] != NULL; ++i) {
    const struct tb_kernel_type* type = tb_kernel_registry[i];
    CHECK(tb_kernel_find(type->name) == type);
    CHECK(type->step != NULL && type->citation != NULL);
  }
  CHECK(tb_kernel_find("no such kernel") == NULL);
}

static const struct fixture_run v_kernel[] = {
  { .kernel = "sgld", .integrator = 0 },
  { .kernel = "sgld", .integrator = 1 },
  { .kernel = "sgld", .integrator = 0, .variant = 1 },
  { .kernel = "sgld", .integrator = 1, .variant = 1 },
  { .kernel = "sgbd" },
  { .kernel = "sgbd", .variant = 1 },
  { .kernel = "sghmc" },
  { .kernel = "sghmc", .variant = 1 },
  { .kernel = "sghmc", .leapfrog = 3 },
  { .kernel = "sgnht" },
  { .kernel = "baoab" },
  { .kernel = "psgld" },
  { .kernel = "mala", .estimator = "full" }
};
enum { n_kernel = sizeof v_kernel / sizeof v_kernel[0] };

static void chains_start(const struct fixture* p, double* v_init) {
  for (size_t c = 0; c < N_CHAIN; ++c) {
    fixture_point(p, 70 + c, v_init + c * N_DIM);
  }
}

static void zero_does_not_move(struct check* p_check) {
  struct fixture f;
  double v_init[N_DIM * N_CHAIN], v_draw[N_STEP * N_CHAIN * N_DIM];
  fixture_glm(&f, 200, N_DIM, 1, 0);
  chains_start(&f, v_init);
  for (size_t k = 0; k < n_kernel; ++k) {
    for (int moves = 0; moves < 2; ++moves) {
      struct fixture_run what = v_kernel[k];
      what.step_size = moves ? 1e-3 : 0;
      what.n_chain = N_CHAIN;
      what.n_sampling = N_STEP;
      what.v_init = v_init;
      CHECK(fixture_run_go(&f, &what, 7, v_draw) == TB_STATUS_ok);
      size_t n_moved = 0;
      for (size_t c = 0; c < N_CHAIN; ++c) {
        for (size_t j = 0; j < N_DIM; ++j) {
          const double* v = v_draw + N_STEP * (c + N_CHAIN * j);
          for (size_t t = 0; t < N_STEP; ++t) {
            n_moved += v[t] != v_init[c * N_DIM + j];
          }
        }
      }
      CHECK((n_moved > 0) == (moves == 1));
    }
  }
  fixture_free(&f);
}

static void same_seed_same_draws(struct check* p_check) {
  struct fixture f;
  double v_init[N_DIM * N_CHAIN];
  double v_first[N_STEP * N_CHAIN * N_DIM], v_second[N_STEP * N_CHAIN * N_DIM];
  fixture_glm(&f, 200, N_DIM, 2, FIXTURE_OFFSET);
  chains_start(&f, v_init);
  for (size_t k = 0; k < n_kernel; ++k) {
    struct fixture_run what = v_kernel[k];
    what.step_size = 1e-4;
    what.n_chain = N_CHAIN;
    what.n_sampling = N_STEP;
    what.v_init = v_init;
    what.seed = 11;
    fixture_run_go(&f, &what, N_STEP, v_first);
    fixture_run_go(&f, &what, N_STEP, v_second);
    CHECK(memcmp(v_first, v_second, sizeof v_first) == 0);
    what.seed = 12;
    fixture_run_go(&f, &what, N_STEP, v_second);
    CHECK(memcmp(v_first, v_second, sizeof v_first) != 0);
  }
  fixture_free(&f);
}

static enum tb_status kernel_init(const char* name,
                                  const struct tb_param* v_param,
                                  size_t n_param) {
  const struct tb_params params = { v_param, n_param };
  struct tb_kernel kernel = { .type = tb_kernel_find(name) };
  kernel.p_self = check_alloc(1, kernel.type->self_size(&params, N_DIM));
  const enum tb_status status = kernel.type->init(&kernel, N_DIM, &params);
  free(kernel.p_self);
  return status;
}

static void kernels_refuse(struct check* p_check) {
  const char* const v_name[] = { "sgld", "mala" };
  const double v_bad[] = { -1, NAN }, v_step[N_DIM + 1] = { 1, 1, 1, 1, 1, 1 };
  for (size_t k = 0; k < 2; ++k) {
    const struct tb_param good = { "step_size", v_step, 1, 1 };
    CHECK(kernel_init(v_name[k], &good, 1) == TB_STATUS_ok);
    CHECK(kernel_init(v_name[k], NULL, 0) == TB_STATUS_argument);
    for (size_t b = 0; b < 2; ++b) {
      const struct tb_param bad = { "step_size", &v_bad[b], 1, 1 };
      CHECK(kernel_init(v_name[k], &bad, 1) == TB_STATUS_argument);
    }
  }
  for (size_t n = 1; n <= N_DIM + 1; ++n) {
    const struct tb_param several = { "step_size", v_step, n, n };
    CHECK(kernel_init("sgld", &several, 1) ==
          (n == 1 || n == N_DIM ? TB_STATUS_ok : TB_STATUS_argument));
  }
}

const struct check_case check_kernels[] = {
  { "the registry finds every kernel by name", registry_finds },
  { "a step size of zero does not move", zero_does_not_move },
  { "the same seed gives the same draws", same_seed_same_draws },
  { "kernels refuse step sizes out of range", kernels_refuse },
  { NULL, NULL }
};
