#include "check.h"
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 5, N_CHAIN = 4, N_STEP = 60, N_DRAW = N_STEP * N_CHAIN * N_DIM };

static const struct fixture_run v_what[] = {
    {.kernel = "sgld", .step_size = 1e-4},
    {.kernel = "sgld", .step_size = 1e-4, .integrator = 1, .variant = 1},
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

const struct check_case check_run[] = {
    {"slices of any length give the same draws", slices_do_not_matter},
    {"a saved run goes on as if never stopped", saved_runs_go_on},
    {"loading checks its bytes", loading_checks_its_bytes},
    {"threads share a model", threads_share_a_model},
    {"the number of threads does not matter", thread_counts_do_not_matter},
    {"a start that is not finite is reported", starts_are_reported},
    {"divergence is reported, the draws are kept", divergence_is_reported},
    {"unknown members are refused", unknown_members_are_refused},
    {NULL, NULL}};
