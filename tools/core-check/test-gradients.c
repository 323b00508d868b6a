#include "check.h"
#include "fixture.h"

#include "gradients/gradient.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 5 };

static void registry_finds(struct check* p_check) {
  for (size_t i = 0; tb_estimator_registry[i] != NULL; ++i) {
    const struct tb_estimator_type* type = tb_estimator_registry[i];
    CHECK(tb_estimator_find(type->name) == type);
    CHECK(type->estimate != NULL && type->citation != NULL);
  }
  CHECK(tb_estimator_find("no such estimator") == NULL);
}

/* the estimate where the chain starts */
static enum tb_status estimate_at(const struct fixture* p,
                                  const char* estimator,
                                  const double* v_theta,
                                  uint64_t seed,
                                  double* v_gradient) {
  const struct fixture_run what = { .estimator = estimator,
                                    .step_size = 1e-3,
                                    .n_chain = 1,
                                    .n_sampling = 1,
                                    .seed = seed,
                                    .v_init = v_theta };
  struct tb_run* p_run;
  enum tb_status status = fixture_run_create(p, &what, &p_run);
  if (status == TB_STATUS_ok) {
    status = tb_run_start(p_run);
    memcpy(v_gradient, tb_run_chain(p_run, 0)->v_gradient,
           N_DIM * sizeof(double));
  }
  tb_run_destroy(p_run);
  return status;
}

static void full_is_exact(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, 500, N_DIM, 1, FIXTURE_WEIGHTS | FIXTURE_OFFSET);
  double v_theta[N_DIM], v_exact[N_DIM], v_full[N_DIM];
  fixture_point(&f, 3, v_theta);
  fixture_gradient(&f, v_theta, v_exact);
  CHECK(estimate_at(&f, "full", v_theta, 1, v_full) == TB_STATUS_ok);
  for (size_t j = 0; j < N_DIM; ++j) {
    CHECK_CLOSE(v_full[j], v_exact[j], 1e-10 * (1 + fabs(v_exact[j])));
  }
  fixture_free(&f);
}

/* at their point control variates are exact whatever the minibatch */
static void cv_is_exact_at_its_point(struct check* p_check) {
  struct fixture f;
  for (int kind = 0; kind < 2; ++kind) {
    if (kind == 0) {
      fixture_glm(&f, 500, N_DIM, 2, 0);
    } else {
      fixture_gaussian(&f, 500, N_DIM);
    }
    const double v_zero[N_DIM] = { 0 };
    double v_exact[N_DIM], v_cv[N_DIM], v_simple[N_DIM];
    fixture_gradient(&f, v_zero, v_exact);
    bool differs = false;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      CHECK(estimate_at(&f, "cv", v_zero, seed, v_cv) == TB_STATUS_ok);
      CHECK(estimate_at(&f, "simple", v_zero, seed, v_simple) ==
            TB_STATUS_ok);
      for (size_t j = 0; j < N_DIM; ++j) {
        CHECK_CLOSE(v_cv[j], v_exact[j], 1e-9 * (1 + fabs(v_exact[j])));
        differs = differs || fabs(v_simple[j] - v_exact[j]) > 1e-3;
      }
    }
    CHECK(differs);
    fixture_free(&f);
  }
}

/* averaged over many minibatches an estimate is the gradient */
static void estimates_are_unbiased(struct check* p_check) {
  const char* const v_name[] = { "simple", "cv" };
  enum { n_draw = 4000 };
  struct fixture f;
  fixture_glm(&f, 50, N_DIM, 1, FIXTURE_WEIGHTS);
  double v_theta[N_DIM], v_exact[N_DIM];
  fixture_point(&f, 3, v_theta);
  fixture_gradient(&f, v_theta, v_exact);
  for (size_t e = 0; e < 2; ++e) {
    double v_sum[N_DIM] = { 0 }, v_square[N_DIM] = { 0 }, v_one[N_DIM];
    for (uint64_t seed = 0; seed < n_draw; ++seed) {
      estimate_at(&f, v_name[e], v_theta, seed, v_one);
      for (size_t j = 0; j < N_DIM; ++j) {
        v_sum[j] += v_one[j];
        v_square[j] += v_one[j] * v_one[j];
      }
    }
    for (size_t j = 0; j < N_DIM; ++j) {
      const double mean = v_sum[j] / n_draw;
      const double variance = v_square[j] / n_draw - mean * mean;
      CHECK_CLOSE(mean, v_exact[j], 5 * sqrt(variance / n_draw));
    }
  }
  fixture_free(&f);
}

static void cv_refuses(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, 50, N_DIM, 1, 0);
  const double v_at[N_DIM + 1] = { 0 }, step_size = 1, size = 5;
  for (size_t n_at = 0; n_at <= N_DIM + 1; ++n_at) {
    const struct tb_param at = { "at", v_at, n_at, n_at };
    const struct tb_param kernel = { "step_size", &step_size, 1, 1 };
    const struct tb_param scheme = { "size", &size, 1, 1 };
    const struct tb_run_spec spec = { .p_model = &f.model,
                                      .kernel = { "sgld", { &kernel, 1 } },
                                      .estimator = { "cv",
                                                     { &at, n_at > 0 } },
                                      .scheme = { "uniform", { &scheme, 1 } },
                                      .schedule = { "constant", { NULL, 0 } },
                                      .n_chain = 1,
                                      .n_sampling = 1,
                                      .n_every = 1,
                                      .likelihood_scale = 1,
                                      .v_init = v_at };
    struct tb_run* p_run;
    const enum tb_status status = tb_run_create(&spec, 1, &p_run);
    CHECK(status == (n_at == N_DIM ? TB_STATUS_ok : TB_STATUS_argument));
    CHECK((p_run == NULL) == (status != TB_STATUS_ok));
    tb_run_destroy(p_run);
  }
  fixture_free(&f);
}

const struct check_case check_gradients[] = {
  { "the registry finds every estimator by name", registry_finds },
  { "full is the gradient", full_is_exact },
  { "cv is exact at its point", cv_is_exact_at_its_point },
  { "estimates are unbiased", estimates_are_unbiased },
  { "cv refuses points of another length", cv_refuses },
  { NULL, NULL }
};
