#include "check.h"
#include "fixture.h"

#include "base/norm.h"
#include "base/poll.h"
#include "kernels/kernel.h"
#include "models/framed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 5, N_CHAIN = 4, N_STEP = 60, N_DRAW = N_STEP * N_CHAIN * N_DIM };

static const struct fixture_run v_what[] = {
    {.kernel = "sgld", .step_size = 1e-4},
    {.kernel = "sgld", .step_size = 1e-4, .integrator = 1, .variant = 1},
    {.kernel = "sgld", .step_size = 1e-4, .integrator = 1, .is_coupled = true},
    {.kernel = "sgld", .step_size = 1e-4, .estimator = "cv"},
    {.kernel = "sgld", .step_size = 1e-4, .estimator = "full"},
    {.kernel = "sgld", .step_size = 1e-4, .estimator = "saga"},
    {.kernel = "sgld",
     .step_size = 1e-4,
     .estimator = "svrg",
     .refresh = 7,
     .variant = 1},
    {.kernel = "mala", .step_size = 1e-3, .estimator = "full", .adapt = 1},
    {.kernel = "mala", .step_size = 1e-3, .ratio = 1},
    {.kernel = "barker", .step_size = 1e-2, .estimator = "cv", .adapt = 1},
    {.kernel = "hmc", .step_size = 1e-2, .estimator = "full", .steps = 2},
    {.kernel = "adam_mcmc", .step_size = 1e-2, .learning_rate = 1e-3},
    {.kernel = "adam_mcmc",
     .step_size = 1e-2,
     .learning_rate = 1e-3,
     .exact = 1,
     .estimator = "full"}};
enum { n_what = sizeof v_what / sizeof v_what[0] };

static struct fixture_run what_at(size_t k, const double* v_init) {
  struct fixture_run what = v_what[k];
  what.n_chain = N_CHAIN;
  what.n_warmup = 15;
  what.n_sampling = N_STEP;
  what.seed = 5;
  what.v_init = v_init;
  return what;
}

static void slices_do_not_matter(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  double v_one[N_DRAW], v_other[N_DRAW];
  fixture_glm(&f, 150, N_DIM, 1, FIXTURE_WEIGHTS);
  for (size_t k = 0; k < n_what; ++k) {
    const struct fixture_run what = what_at(k, v_init);
    CHECK(fixture_run_go(&f, &what, 1000, v_one) == TB_STATUS_ok);
    const size_t v_slice[] = {1, 2, 7, 14, 15, 16, 74, 75};
    for (size_t s = 0; s < sizeof v_slice / sizeof v_slice[0]; ++s) {
      CHECK(fixture_run_go(&f, &what, v_slice[s], v_other) == TB_STATUS_ok);
      CHECK(memcmp(v_one, v_other, sizeof v_one) == 0);
    }
  }
  fixture_free(&f);
}

static size_t n_asked, n_until_stop;

static bool ask(void) {
  return ++n_asked == n_until_stop;
}

/* A step that is stopped in its middle was not made, by any chain: what comes
 * after is as if nobody had asked. */
static void stopped_steps_are_made_again(struct check* p_check) {
  enum { N_TOPIC = 18, STEPS = 6, CHAINS = 2 };
  struct fixture f;
  double v_init[N_TOPIC * CHAINS];
  double v_one[STEPS * CHAINS * N_TOPIC], v_other[STEPS * CHAINS * N_TOPIC];
  fixture_lda(&f, 300, 0);
  for (size_t c = 0; c < CHAINS; ++c) {
    fixture_point(&f, c, v_init + c * N_TOPIC);
  }
  const struct fixture_run what = {.kernel = "sgld",
                                   .step_size = 1e-4,
                                   .estimator = "full",
                                   .n_chain = CHAINS,
                                   .n_sampling = STEPS,
                                   .seed = 5,
                                   .v_init = v_init};
  n_until_stop = 0;
  CHECK(fixture_run_go(&f, &what, 2, v_one) == TB_STATUS_ok);
  for (int n_threads = 1; n_threads <= 2; ++n_threads) {
    const struct tb_recorder recorder = {.n_keep = STEPS, .v_draw = v_other};
    struct tb_run* p_run;
    size_t n_stop = 0;
    memset(v_other, 0, sizeof v_other);
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
    CHECK(tb_run_start(p_run) == TB_STATUS_ok);
    for (size_t k = 0; k < 20 && !tb_run_report(p_run, 0).is_done; ++k) {
      const size_t n_before = tb_run_report(p_run, 0).n_step;
      n_asked = 0;
      n_until_stop = k % 4; /* 0: never; a slice asks up to four times */
      struct tb_poll poll = {.ask = ask};
      f.model.p_poll = &poll;
      tb_run_advance(p_run, 2, n_threads, &recorder);
      f.model.p_poll = NULL;
      const bool was_stopped = atomic_load(&poll.is_stopped);
      n_stop += was_stopped;
      for (size_t c = 0; c < CHAINS; ++c) {
        const struct tb_report report = tb_run_report(p_run, c);
        CHECK(report.status == TB_STATUS_ok);
        CHECK(report.n_step == n_before + (was_stopped ? 0 : 2));
      }
    }
    /* of several threads the first alone asks, and may find nothing to do */
    CHECK(n_stop > 0 || n_threads > 1);
    CHECK(tb_run_report(p_run, 0).is_done);
    CHECK(memcmp(v_one, v_other, sizeof v_one) == 0);
    tb_run_destroy(p_run);
  }
  /* before the first one: the start says so */
  struct tb_run* p_run;
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
  n_asked = 0;
  n_until_stop = 1;
  struct tb_poll poll = {.ask = ask};
  f.model.p_poll = &poll;
  CHECK(tb_run_start(p_run) == TB_STATUS_interrupted);
  CHECK(tb_poll(&poll) && !tb_poll(NULL));
  tb_run_destroy(p_run);
  fixture_free(&f);
}

/* stopped after `n_done` steps, saved, loaded by another run, the same draws */
static void saved_runs_go_on(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  const double v_elsewhere[N_DIM * N_CHAIN] = {1, 1, 1};
  double v_whole[N_DRAW], v_first[N_DRAW], v_second[N_DRAW];
  fixture_glm(&f, 150, N_DIM, 2, FIXTURE_OFFSET);
  for (size_t k = 0; k < n_what; ++k) {
    struct fixture_run what = what_at(k, v_init);
    fixture_run_go(&f, &what, 1000, v_whole);
    const size_t v_done[] = {0, 1, 15, 16, 40}; /* before, in, after warmup */
    for (size_t s = 0; s < sizeof v_done / sizeof v_done[0]; ++s) {
      const size_t n_done = v_done[s];
      struct tb_run *p_run, *p_next;
      struct tb_recorder recorder = {.n_keep = N_STEP, .v_draw = v_first};
      memset(v_first, 0, sizeof v_first);
      memset(v_second, 0, sizeof v_second);
      CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
      CHECK(tb_run_start(p_run) == TB_STATUS_ok);
      tb_run_advance(p_run, n_done, 1, &recorder);

      const size_t n_byte = tb_run_saved_size(p_run);
      char* p_bytes = check_alloc(N_CHAIN, n_byte);
      for (size_t c = 0; c < N_CHAIN; ++c) {
        tb_run_save(p_run, c, p_bytes + c * n_byte);
      }
      tb_run_destroy(p_run);

      struct fixture_run rest = what;
      rest.n_warmup = n_done < 15 ? 15 - n_done : 0;
      rest.n_sampling = n_done < 15 ? N_STEP : N_STEP + 15 - n_done;
      rest.seed = 999; /* streams come from the saved state */
      rest.v_init = v_elsewhere;
      CHECK(fixture_run_create(&f, &rest, &p_next) == TB_STATUS_ok);
      CHECK(tb_run_saved_size(p_next) == n_byte);
      for (size_t c = 0; c < N_CHAIN; ++c) {
        const char* p_chain = p_bytes + c * n_byte;
        CHECK(tb_run_load(p_next, c, p_chain, n_byte) == TB_STATUS_ok);
        CHECK(tb_run_load(p_next, c, p_chain, n_byte - 1) ==
              TB_STATUS_argument);
      }
      recorder.v_draw = v_second;
      tb_run_advance(p_next, 1000, 1, &recorder);
      CHECK(tb_run_report(p_next, 0).is_done);
      tb_run_destroy(p_next);
      free(p_bytes);

      const size_t n_before = N_STEP - rest.n_sampling;
      bool is_same = true;
      for (size_t column = 0; column < N_CHAIN * N_DIM; ++column) {
        const double* v = v_whole + column * N_STEP;
        is_same =
            is_same &&
            memcmp(v, v_first + column * N_STEP, n_before * sizeof(double)) ==
                0 &&
            memcmp(v + n_before,
                   v_second + column * N_STEP,
                   rest.n_sampling * sizeof(double)) == 0;
      }
      CHECK(is_same);
    }
  }
  fixture_free(&f);
}

static void loading_checks_its_bytes(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  fixture_glm(&f, 50, N_DIM, 1, 0);
  const struct fixture_run what = what_at(0, v_init);
  struct tb_run* p_run;
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
  const size_t n_byte = tb_run_saved_size(p_run);
  char* p_bytes = check_alloc(1, n_byte);
  CHECK(tb_run_load(p_run, 0, p_bytes, n_byte) == TB_STATUS_argument);
  tb_run_save(p_run, 0, p_bytes);
  CHECK(tb_run_load(p_run, 0, p_bytes, n_byte) == TB_STATUS_ok);
  p_bytes[0] ^= 1;
  CHECK(tb_run_load(p_run, 0, p_bytes, n_byte) == TB_STATUS_argument);
  free(p_bytes);
  tb_run_destroy(p_run);
  fixture_free(&f);
}

/* ---- threads ---- */

struct job {
  struct tb_run* p_run;
  struct tb_recorder recorder;
};

static void job_run(void* p) {
  struct job* p_job = p;
  for (size_t k = 0; k < 10; ++k) {
    tb_run_advance(p_job->p_run, 8, 1, &p_job->recorder);
  }
}

/* chains share a model that nobody writes to */
static void threads_share_a_model(struct check* p_check) {
  enum { n_thread = 4 };
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  fixture_glm(&f, 150, N_DIM, 1, FIXTURE_WEIGHTS | FIXTURE_OFFSET);
  for (size_t k = 0; k < n_what; ++k) {
    double v_alone[n_thread][N_DRAW], v_together[n_thread][N_DRAW];
    struct job v_job[n_thread];
    void* v_context[n_thread];
    for (size_t t = 0; t < n_thread; ++t) {
      struct fixture_run what = what_at(k, v_init);
      what.seed = t;
      fixture_run_go(&f, &what, 13, v_alone[t]);
      CHECK(fixture_run_create(&f, &what, &v_job[t].p_run) == TB_STATUS_ok);
      CHECK(tb_run_start(v_job[t].p_run) == TB_STATUS_ok);
      v_job[t].recorder =
          (struct tb_recorder){.n_keep = N_STEP, .v_draw = v_together[t]};
      v_context[t] = &v_job[t];
    }
    CHECK(check_parallel(job_run, v_context, n_thread));
    for (size_t t = 0; t < n_thread; ++t) {
      CHECK(memcmp(v_alone[t], v_together[t], sizeof v_alone[t]) == 0);
      tb_run_destroy(v_job[t].p_run);
    }
  }
  fixture_free(&f);
}

/* as many OpenMP threads as wanted, the same draws (one without OpenMP) */
static void thread_counts_do_not_matter(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  double v_one[N_DRAW], v_many[N_DRAW];
  fixture_glm(&f, 150, N_DIM, 1, 0);
  const struct fixture_run what = what_at(1, v_init);
  fixture_run_go(&f, &what, 1000, v_one);
  for (int n_thread = 2; n_thread < 6; ++n_thread) {
    const struct tb_recorder recorder = {.n_keep = N_STEP, .v_draw = v_many};
    struct tb_run* p_run;
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
    CHECK(tb_run_start(p_run) == TB_STATUS_ok);
    tb_run_advance(p_run, 1000, n_thread, &recorder);
    CHECK(memcmp(v_one, v_many, sizeof v_one) == 0);
    tb_run_destroy(p_run);
  }
  fixture_free(&f);
}

/* ---- failures ---- */

static void starts_are_reported(struct check* p_check) {
  struct fixture f;
  double v_init[N_DIM * N_CHAIN] = {0};
  v_init[1 * N_DIM + 3] = -1e5; /* exp(eta) overflows for some row */
  fixture_glm(&f, 100, N_DIM, 2, 0);
  for (size_t k = 0; k < n_what; ++k) {
    const struct fixture_run what = what_at(k, v_init);
    struct tb_run* p_run;
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
    CHECK(tb_run_start(p_run) == TB_STATUS_nonfinite);
    for (size_t c = 0; c < N_CHAIN; ++c) {
      const struct tb_report report = tb_run_report(p_run, c);
      CHECK(report.status == (c == 1 ? TB_STATUS_nonfinite : TB_STATUS_ok));
      CHECK(report.n_step == 0);
      if (c == 1) {
        CHECK(report.coordinate == 3 && report.value == -1e5);
      }
    }
    /* the others can go on, that one stays where it is */
    const struct tb_recorder recorder = {.n_keep = N_STEP};
    tb_run_advance(p_run, 1000, 1, &recorder);
    CHECK(tb_run_report(p_run, 0).is_done && tb_run_report(p_run, 3).is_done);
    CHECK(tb_run_report(p_run, 1).n_step == 0);
    tb_run_destroy(p_run);
  }
  fixture_free(&f);
}

static void divergence_is_reported(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  double v_draw[N_DRAW];
  fixture_glm(&f, 100, N_DIM, 2, 0);
  struct fixture_run what = what_at(0, v_init);
  what.step_size = 0.1;
  what.n_warmup = 0;
  const struct tb_recorder recorder = {.n_keep = N_STEP, .v_draw = v_draw};
  struct tb_run* p_run;
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
  CHECK(tb_run_start(p_run) == TB_STATUS_ok);
  tb_run_advance(p_run, 1000, 1, &recorder);
  for (size_t c = 0; c < N_CHAIN; ++c) {
    const struct tb_report report = tb_run_report(p_run, c);
    CHECK(report.status == TB_STATUS_nonfinite);
    CHECK(report.n_kept == report.n_step && report.n_step < N_STEP);
    CHECK(report.coordinate < N_DIM && !(fabs(report.value) < 1e100));
    for (size_t j = 0; j < N_DIM; ++j) {
      for (size_t t = 0; t < report.n_kept; ++t) {
        CHECK(isfinite(v_draw[t + N_STEP * (c + N_CHAIN * j)]));
      }
    }
  }
  tb_run_destroy(p_run);
  fixture_free(&f);
}

static void unknown_members_are_refused(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  fixture_glm(&f, 50, N_DIM, 1, 0);
  struct tb_run* p_run;
  struct fixture_run what = what_at(0, v_init);
  what.kernel = "none";
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_argument);
  CHECK(p_run == NULL);
  what = what_at(0, v_init);
  what.estimator = "none";
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_argument);
  CHECK(p_run == NULL);
  what = what_at(0, v_init);
  what.step_size = -1;
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_argument);
  CHECK(p_run == NULL);
  what = what_at(0, v_init);
  what.size = 0.5; /* no whole rows */
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_argument);
  CHECK(p_run == NULL);
  fixture_free(&f);
}

/* ---- normal companions ---- */

enum { N_NORMAL = 3 };

/* A normal posterior, and the model of it that is N(0, I). */
struct normal {
  struct fixture base;
  struct fixture white; /* its model only */
};

/* z with L z = x, or L^T z = x; L column-major */
static void solve_chol(const double* v_chol, bool is_transposed, double* v_x) {
  for (size_t k = 0; k < N_NORMAL; ++k) {
    const size_t j = is_transposed ? N_NORMAL - 1 - k : k;
    for (size_t i = 0; i < k; ++i) {
      const size_t at = is_transposed ? N_NORMAL - 1 - i : i;
      v_x[j] -= v_x[at] * (is_transposed ? v_chol[at + j * N_NORMAL]
                                         : v_chol[j + at * N_NORMAL]);
    }
    v_x[j] /= v_chol[j + j * N_NORMAL];
  }
}

static void normal_make(struct check* p_check, struct normal* p) {
  enum { n = N_NORMAL };
  double v_chol[n * n], v_zero[n] = {0}, v_one[n], v_center[n];
  fixture_gaussian(&p->base, 20, n);
  fixture_gradient(&p->base, v_zero, v_center);
  for (size_t k = 0; k < n; ++k) { /* minus the Hessian, and its factor */
    double v_unit[n] = {0};
    v_unit[k] = 1;
    fixture_gradient(&p->base, v_unit, v_one);
    for (size_t j = 0; j < n; ++j) {
      double value = v_center[j] - v_one[j];
      for (size_t i = 0; i < k; ++i) {
        value -= v_chol[j + i * n] * v_chol[k + i * n];
      }
      v_chol[j + k * n] = j < k    ? 0
                          : j == k ? sqrt(value)
                                   : value / v_chol[k + k * n];
    }
  }
  solve_chol(v_chol, false, v_center);
  solve_chol(v_chol, true, v_center);
  memset(&p->white, 0, sizeof p->white);
  CHECK(tb_model_frame(&p->base.model,
                       v_center,
                       v_chol,
                       false,
                       &p->white.model) == TB_STATUS_ok);
}

static void normal_free(struct normal* p) {
  p->white.model.type->destroy(&p->white.model);
  fixture_free(&p->base);
}

static struct fixture_run normal_run(double integrator, const double* v_init) {
  return (struct fixture_run){.estimator = "full",
                              .integrator = integrator,
                              .step_size = 0.5,
                              .n_chain = 1,
                              .n_warmup = 200,
                              .n_sampling = 50,
                              .seed = 3,
                              .v_init = v_init};
}

/* on N(0, I) it is the chain, of leimkuhler-matthews; euler's, which is too
 * wide, on the scale of the posterior */
static void companions_follow(struct check* p_check) {
  struct normal normal;
  normal_make(p_check, &normal);
  const double v_init[N_NORMAL] = {3, -2, 1};
  for (int integrator = 0; integrator < 2; ++integrator) {
    const struct fixture_run what = normal_run(integrator, v_init);
    const double scale = integrator == 0 ? sqrt(1 - what.step_size / 4) : 1;
    const struct tb_recorder recorder = {.n_keep = 50};
    struct tb_run* p_run;
    double v_normal[N_NORMAL];
    CHECK(fixture_run_create(&normal.white, &what, &p_run) == TB_STATUS_ok);
    CHECK(tb_run_start(p_run) == TB_STATUS_ok);
    const struct tb_chain* p_chain = tb_run_chain(p_run, 0);
    const struct tb_kernel_type* type = tb_kernel_find("sgld");
    type->start_normal(p_chain, v_normal);
    for (size_t k = 0; k < 250; ++k) {
      tb_run_advance(p_run, 1, 1, &recorder);
      type->step_normal(p_chain, v_normal);
    }
    for (size_t j = 0; j < N_NORMAL; ++j) {
      CHECK(fabs(v_normal[j] - scale * p_chain->v_theta[j]) < 1e-12);
    }
    tb_run_destroy(p_run);
  }
  normal_free(&normal);
}

/* N(0, 1) from the first step, whatever the noise of the chain's gradients */
static void companions_are_normal(struct check* p_check) {
  enum { n_rep = 1000, n_step = 3 };
  struct fixture f;
  double* v_init = check_alloc(N_DIM * n_rep, sizeof(double));
  double* v_normal = check_alloc(N_DIM * n_rep, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 8, 0, TB_STREAM_init);
  tb_rng_fill_norm(&rng, v_init, N_DIM * n_rep);
  fixture_glm(&f, 30, N_DIM, 1, 0);
  const struct tb_kernel_type* type = tb_kernel_find("sgld");
  for (int k = 0; k < 4; ++k) {
    const struct fixture_run what = {.integrator = k % 2,
                                     .variant = k / 2,
                                     .step_size = 1.5,
                                     .n_chain = n_rep,
                                     .n_sampling = n_step,
                                     .seed = 4,
                                     .v_init = v_init};
    const struct tb_recorder recorder = {.n_keep = n_step};
    struct tb_run* p_run;
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
    CHECK(tb_run_start(p_run) == TB_STATUS_ok);
    for (size_t c = 0; c < n_rep; ++c) {
      type->start_normal(tb_run_chain(p_run, c), v_normal + N_DIM * c);
    }
    for (size_t t = 0; t < n_step; ++t) {
      double square = 0;
      tb_run_advance(p_run, 1, 1, &recorder);
      for (size_t c = 0; c < n_rep; ++c) {
        double* v = v_normal + N_DIM * c;
        type->step_normal(tb_run_chain(p_run, c), v);
        square += tb_square_norm(v, N_DIM);
      }
      /* the mean of so many squares of variance 2 */
      const double n = N_DIM * n_rep;
      CHECK(fabs(square / n - 1) < 4 * sqrt(2 / n));
    }
    tb_run_destroy(p_run);
  }
  free(v_normal);
  free(v_init);
  fixture_free(&f);
}

/* theta_j (Sigma g)_j / Sigma_jj + (M_j phi^G)^2 / Sigma_jj - 1 = -1 where the
 * companion is the chain, in every term */
static void coupled_terms_are_exact(struct check* p_check) {
  struct normal normal;
  normal_make(p_check, &normal);
  const double v_init[N_NORMAL] = {3, -2, 1};
  struct fixture_run what = normal_run(1, v_init);
  what.is_coupled = true;
  struct tb_run* p_run;
  const struct tb_recorder recorder = {.n_keep = 50};
  CHECK(fixture_run_create(&normal.white, &what, &p_run) == TB_STATUS_ok);
  CHECK(tb_run_start(p_run) == TB_STATUS_ok);
  tb_run_advance(p_run, 1000, 1, &recorder);
  const double* v_bias = tb_run_bias(p_run, 0);
  const double* v_origin = tb_run_bias_origin(p_run, 0);
  const double* v_center = normal.white.model.p_frame->v_center;
  for (size_t block = 0; block < 2; ++block) {
    const double* v = v_bias + block * (1 + 3 * N_NORMAL);
    CHECK(v[0] == 25);
    for (size_t j = 0; j < N_NORMAL; ++j) {
      const double gradient = v[1 + N_NORMAL + j];
      const double product =
          v[1 + 2 * N_NORMAL + j] + (v_origin[j] - v_center[j]) * gradient;
      CHECK(fabs(product + 25) < 1e-9);
      CHECK(fabs(gradient) > 1e-3);
    }
  }
  tb_run_destroy(p_run);
  normal_free(&normal);
}

static void coupling_needs_a_companion(struct check* p_check) {
  struct fixture f;
  const double v_init[N_DIM * N_CHAIN] = {0};
  fixture_glm(&f, 50, N_DIM, 1, 0);
  struct fixture_run what = what_at(0, v_init);
  what.is_coupled = true;
  what.kernel = "sghmc";
  struct tb_run* p_run;
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_unsupported);
  CHECK(p_run == NULL);
  fixture_free(&f);
}

const struct check_case check_run[] = {
    {"slices of any length give the same draws", slices_do_not_matter},
    {"a stopped step is made again", stopped_steps_are_made_again},
    {"a saved run goes on as if never stopped", saved_runs_go_on},
    {"loading checks its bytes", loading_checks_its_bytes},
    {"threads share a model", threads_share_a_model},
    {"the number of threads does not matter", thread_counts_do_not_matter},
    {"a start that is not finite is reported", starts_are_reported},
    {"divergence is reported, the draws are kept", divergence_is_reported},
    {"unknown members are refused", unknown_members_are_refused},
    {"normal companions follow their chains", companions_follow},
    {"normal companions are normal", companions_are_normal},
    {"coupled terms of the bias are exact", coupled_terms_are_exact},
    {"coupling needs a companion", coupling_needs_a_companion},
    {NULL, NULL}};
