#include "check.h"
#include "fixture.h"

#include "gradients/gradient.h"
#include "kernels/kernel.h"
#include "kernels/noise.h"

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
    {.kernel = "sgld", .integrator = 0},
    {.kernel = "sgld", .integrator = 1},
    {.kernel = "sgld", .integrator = 0, .variant = 1},
    {.kernel = "sgld", .integrator = 1, .variant = 1},
    {.kernel = "sgbd"},
    {.kernel = "sgbd", .variant = 1},
    {.kernel = "sgbd", .variant = 2},
    {.kernel = "sghmc"},
    {.kernel = "sghmc", .variant = 1},
    {.kernel = "sghmc", .leapfrog = 3},
    {.kernel = "sgnht"},
    {.kernel = "baoab"},
    {.kernel = "psgld"},
    {.kernel = "mala", .estimator = "full"},
    {.kernel = "mala", .estimator = "full", .sigma_direction = 1},
    {.kernel = "mala", .estimator = "cv"},
    {.kernel = "mala", .ratio = 1},
    {.kernel = "barker", .estimator = "full"},
    {.kernel = "barker"},
    {.kernel = "hmc", .estimator = "full", .steps = 3},
    {.kernel = "smh", .estimator = "cv2"},
    {.kernel = "adam_mcmc", .learning_rate = 1e-4, .estimator = "full"},
    {.kernel = "adam_mcmc", .learning_rate = 1e-4},
    {.kernel = "adam_mcmc",
     .learning_rate = 1e-4,
     .exact = 1,
     .estimator = "full"}};
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
    /* what has no step size always moves */
    const bool has_step = strcmp(v_kernel[k].kernel, "smh") != 0;
    for (int moves = has_step ? 0 : 1; moves < 2; ++moves) {
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

static enum tb_status
kernel_init(const char* name, const struct tb_param* v_param, size_t n_param) {
  const struct tb_params params = {v_param, n_param};
  struct tb_kernel kernel = {.type = tb_kernel_find(name)};
  kernel.p_self = check_alloc(1, tb_kernel_self_size(kernel.type, N_DIM));
  const enum tb_status status = tb_kernel_init(&kernel, N_DIM, &params);
  free(kernel.p_self);
  return status;
}

static void kernels_refuse(struct check* p_check) {
  const char* const v_name[] = {"sgld", "mala"};
  const double v_bad[] = {-1, NAN}, v_step[N_DIM + 1] = {1, 1, 1, 1, 1, 1};
  for (size_t k = 0; k < 2; ++k) {
    const struct tb_param good = {"step_size", v_step, NULL, 1, 1};
    CHECK(kernel_init(v_name[k], &good, 1) == TB_STATUS_ok);
    CHECK(kernel_init(v_name[k], NULL, 0) == TB_STATUS_argument);
    for (size_t b = 0; b < 2; ++b) {
      const struct tb_param bad = {"step_size", &v_bad[b], NULL, 1, 1};
      CHECK(kernel_init(v_name[k], &bad, 1) == TB_STATUS_argument);
    }
  }
  const struct tb_param sigma = {"sigma", v_step, NULL, N_DIM, N_DIM};
  CHECK(kernel_init("sgbd", &sigma, 1) == TB_STATUS_ok);
  for (size_t b = 0; b < 2; ++b) {
    const struct tb_param bad = {"sigma", &v_bad[b], NULL, 1, 1};
    CHECK(kernel_init("sgbd", &bad, 1) == TB_STATUS_argument);
  }
  for (size_t n = 1; n <= N_DIM + 1; ++n) {
    const struct tb_param several = {"step_size", v_step, NULL, n, n};
    CHECK(kernel_init("sgld", &several, 1) ==
          (n == 1 || n == N_DIM ? TB_STATUS_ok : TB_STATUS_argument));
  }
}

/* ---- gradient noise ---- */

/* g = 0.3 with noise of variance 1, every other time exact */
static enum tb_status alternate(struct tb_chain* p_chain,
                                const double* v_theta,
                                double* v_gradient,
                                double* p_log_posterior) {
  (void)v_theta;
  (void)p_log_posterior;
  p_chain->is_exact = p_chain->iteration % 2 == 0;
  p_chain->has_variance = true;
  for (size_t j = 0; j < p_chain->n_dim; ++j) {
    v_gradient[j] = 0.3;
    p_chain->v_variance[j] = p_chain->is_exact ? 0 : 1;
  }
  return TB_STATUS_ok;
}

/* n_step moves of every coordinate into v_move */
static void
alternate_run(const char* name, double variant, size_t n_step, double* v_move) {
  const double size = 2, sigma = 4, smoothing = 0.1;
  const struct tb_param v_param[] = {
      {"step_size", &size, NULL, 1, 1},
      {"sigma", &sigma, NULL, 1, 1},
      {"variant", &variant, NULL, 1, 1},
      {"noise_smoothing", &smoothing, NULL, 1, 1}};
  const struct tb_params params = {v_param, 4};
  const struct tb_estimator_type type = {.estimate = alternate};
  const struct tb_estimator estimator = {.type = &type};
  struct tb_kernel kernel = {.type = tb_kernel_find(name)};
  const struct tb_model model = {.n_dim = N_DIM};
  const struct tb_target target = {.p_estimator = &estimator,
                                   .p_kernel = &kernel};
  double v_theta[N_DIM] = {0}, v_gradient[N_DIM], v_variance[N_DIM];
  struct tb_chain chain = {.p_target = &target,
                           .n_dim = N_DIM,
                           .v_theta = v_theta,
                           .v_gradient = v_gradient,
                           .v_variance = v_variance,
                           .step_scale = 1};
  kernel.p_self = check_alloc(1, tb_kernel_self_size(kernel.type, N_DIM));
  tb_kernel_init(&kernel, N_DIM, &params);
  chain.p_kernel_state = check_alloc(1, tb_kernel_state_size(&kernel, &model));
  tb_rng_init(&chain.v_rng[TB_STREAM_noise], 3, 0, TB_STREAM_noise);
  kernel.type->start(&chain);
  alternate(&chain, v_theta, v_gradient, NULL);
  for (chain.iteration = 1; chain.iteration <= n_step; ++chain.iteration) {
    memset(v_theta, 0, sizeof v_theta);
    kernel.type->step(&chain);
    memcpy(v_move + (chain.iteration - 1) * N_DIM, v_theta, sizeof v_theta);
  }
  free(chain.p_kernel_state);
  free(kernel.p_self);
}

/* An exact gradient needs no correction, and says nothing about minibatches.
 * sgld: tau^2 takes h tau^2 / 4 = 1/2 of the injected variance; sgbd: |w| tau
 * is about 4, beyond 1.702, so that the sign of the gradient decides. */
static void exact_needs_no_correction(struct check* p_check) {
  double v_plain[N_STEP * N_DIM], v_corrected[N_STEP * N_DIM];
  alternate_run("sgld", 0, N_STEP, v_plain);
  alternate_run("sgld", 1, N_STEP, v_corrected);
  for (size_t k = 0; k < N_STEP * N_DIM; ++k) {
    const bool is_exact = (k / N_DIM) % 2 == 0;
    CHECK_CLOSE(v_corrected[k] - 0.3,
                (is_exact ? 1 : sqrt(0.5)) * (v_plain[k] - 0.3),
                1e-14);
  }
  size_t n_back = 0;
  alternate_run("sgbd", 0, N_STEP, v_plain);
  alternate_run("sgbd", 1, N_STEP, v_corrected);
  for (size_t k = 0; k < N_STEP * N_DIM; ++k) {
    const bool is_exact = (k / N_DIM) % 2 == 0;
    CHECK(v_corrected[k] == (is_exact ? v_plain[k] : fabs(v_plain[k])));
    n_back += is_exact && v_plain[k] < 0;
  }
  CHECK(n_back > 0);
}

/* One step of Barker dynamics from zero, along `slope` in every coordinate. */
static enum tb_status barker_step(const struct fixture* p,
                                  double variant,
                                  double slope,
                                  double* v_theta) {
  const double v_init[N_DIM] = {0};
  const struct fixture_run what = {.kernel = "sgbd",
                                   .estimator = "full",
                                   .step_size = 0.1,
                                   .variant = variant,
                                   .n_chain = 1,
                                   .n_sampling = 1,
                                   .v_init = v_init};
  struct tb_run* p_run;
  const struct tb_recorder recorder = {.n_keep = 1, .v_draw = v_theta};
  enum tb_status status = fixture_run_create(p, &what, &p_run);
  if (status == TB_STATUS_ok && tb_run_start(p_run) == TB_STATUS_ok) {
    for (size_t j = 0; j < N_DIM; ++j) {
      tb_run_chain(p_run, 0)->v_gradient[j] = slope;
    }
    tb_run_advance(p_run, 1, 1, &recorder);
    status = tb_run_report(p_run, 0).status;
  }
  tb_run_destroy(p_run);
  return status;
}

static void infinite_gradients_move_by_their_sign(struct check* p_check) {
  struct fixture f;
  double v_theta[N_DIM];
  fixture_gaussian(&f, 50, N_DIM);
  for (int variant = 0; variant < 3; ++variant) {
    for (int sign = -1; sign <= 1; sign += 2) {
      memset(v_theta, 0, sizeof v_theta);
      CHECK(barker_step(&f, variant, sign * INFINITY, v_theta) == TB_STATUS_ok);
      for (size_t j = 0; j < N_DIM; ++j) {
        CHECK(sign * v_theta[j] > 0.04 && sign * v_theta[j] < 0.16);
      }
    }
    CHECK(barker_step(&f, variant, NAN, v_theta) == TB_STATUS_nonfinite);
  }
  fixture_free(&f);
}

static void exact_estimates_have_no_noise(struct check* p_check) {
  double v_variance[] = {4}, v_average[] = {0};
  struct tb_noise noise = {0};
  struct tb_chain chain = {.n_dim = 1, .v_variance = v_variance};
  chain.has_variance = true;
  CHECK(tb_noise_now(&noise, &chain) == 0);
  tb_noise_add(&noise, 0.25, &chain, v_average);
  CHECK(tb_noise_now(&noise, &chain) * v_average[0] == 4);
  /* all rows: no noise now, and none is averaged in */
  chain.is_exact = true;
  v_variance[0] = 0;
  tb_noise_add(&noise, 0.25, &chain, v_average);
  CHECK(tb_noise_now(&noise, &chain) == 0);
  chain.is_exact = false;
  CHECK(tb_noise_now(&noise, &chain) * v_average[0] == 4);
}

const struct check_case check_kernels[] = {
    {"the registry finds every kernel by name", registry_finds},
    {"a step size of zero does not move", zero_does_not_move},
    {"the same seed gives the same draws", same_seed_same_draws},
    {"an exact gradient needs no correction", exact_needs_no_correction},
    {"an estimate from all rows has no noise, and adds none to the average",
     exact_estimates_have_no_noise},
    {"kernels refuse step sizes out of range", kernels_refuse},
    {"Barker dynamics follows the sign of an infinite gradient",
     infinite_gradients_move_by_their_sign},
    {NULL, NULL}};
