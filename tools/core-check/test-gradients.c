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
  const struct fixture_run what = {.estimator = estimator,
                                   .step_size = 1e-3,
                                   .n_chain = 1,
                                   .n_sampling = 1,
                                   .seed = seed,
                                   .v_init = v_theta};
  struct tb_run* p_run;
  enum tb_status status = fixture_run_create(p, &what, &p_run);
  if (status == TB_STATUS_ok) {
    status = tb_run_start(p_run);
    memcpy(v_gradient,
           tb_run_chain(p_run, 0)->v_gradient,
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
    const double v_zero[N_DIM] = {0};
    double v_exact[N_DIM], v_cv[N_DIM], v_simple[N_DIM];
    fixture_gradient(&f, v_zero, v_exact);
    bool differs = false;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      CHECK(estimate_at(&f, "cv", v_zero, seed, v_cv) == TB_STATUS_ok);
      CHECK(estimate_at(&f, "simple", v_zero, seed, v_simple) == TB_STATUS_ok);
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
  const char* const v_name[] = {"simple", "cv", "cv2"};
  enum { n_draw = 4000 };
  struct fixture f;
  fixture_glm(&f, 50, N_DIM, 1, FIXTURE_WEIGHTS);
  double v_theta[N_DIM], v_exact[N_DIM];
  fixture_point(&f, 3, v_theta);
  fixture_gradient(&f, v_theta, v_exact);
  for (size_t e = 0; e < 3; ++e) {
    double v_sum[N_DIM] = {0}, v_square[N_DIM] = {0}, v_one[N_DIM];
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

/* ---- enumeration ---- */

enum { N_ROW = 4, N_PAIR = N_ROW * N_ROW };

/* The models: one scalar a row, two, none. */
static void small_model(struct fixture* p, int kind) {
  if (kind == 2) {
    fixture_gaussian(p, N_ROW, N_DIM);
  } else {
    fixture_glm(p,
                N_ROW,
                N_DIM - kind,
                kind == 0,
                FIXTURE_WEIGHTS | FIXTURE_OFFSET | (kind ? FIXTURE_SIGMA : 0));
  }
}

static const double v_chance[N_ROW] = {0.1, 0.2, 0.3, 0.4};

/* The run after n_step steps whose minibatches all are rows i and j, drawn with
 * replacement with the chances above. */
static struct tb_run* pair_run(const struct fixture* p,
                               const char* estimator,
                               size_t pair,
                               size_t n_step,
                               const double* v_theta) {
  const double v_index[] = {(double)(pair / N_ROW) + 1,
                            (double)(pair % N_ROW) + 1};
  const double v_multiplier[] = {0.5 / v_chance[pair / N_ROW],
                                 0.5 / v_chance[pair % N_ROW]};
  const struct tb_param v_scheme[] = {{"index", v_index, NULL, 2, 2},
                                      {"multiplier", v_multiplier, NULL, 2, 2}};
  const struct fixture_run what = {.estimator = estimator,
                                   .step_size = 1e-2,
                                   .refresh = 3,
                                   .scheme = "fixed",
                                   .v_scheme = v_scheme,
                                   .n_scheme = 2,
                                   .n_chain = 1,
                                   .n_sampling = 10,
                                   .seed = 5,
                                   .v_init = v_theta};
  const struct tb_recorder recorder = {.n_keep = 10};
  struct tb_run* p_run;
  if (fixture_run_create(p, &what, &p_run) == TB_STATUS_ok) {
    tb_run_start(p_run);
    tb_run_advance(p_run, n_step, 1, &recorder);
  }
  return p_run;
}

/* Over all minibatches, pairs of a row with itself among them, an estimate
 * averages to the gradient. SVRG is exact where the chain starts and takes the
 * minibatch after a step, which is the same for all. */
static void enumeration_is_unbiased(struct check* p_check) {
  const char* const v_name[] = {"simple", "cv", "saga", "svrg"};
  for (int kind = 0; kind < 3; ++kind) {
    struct fixture f;
    small_model(&f, kind);
    double v_theta[N_DIM], v_exact[N_DIM];
    fixture_point(&f, 9, v_theta);
    for (size_t e = 0; e < 4; ++e) {
      double v_mean[N_DIM] = {0}, spread = 0;
      for (size_t pair = 0; pair < N_PAIR; ++pair) {
        struct tb_run* p_run = pair_run(&f, v_name[e], pair, e == 3, v_theta);
        const struct tb_chain* p_chain = tb_run_chain(p_run, 0);
        const double chance = v_chance[pair / N_ROW] * v_chance[pair % N_ROW];
        fixture_gradient(&f, p_chain->v_theta, v_exact);
        for (size_t j = 0; j < N_DIM; ++j) {
          v_mean[j] += chance * p_chain->v_gradient[j];
          spread += fabs(p_chain->v_gradient[j] - v_exact[j]);
        }
        tb_run_destroy(p_run);
      }
      for (size_t j = 0; j < N_DIM; ++j) {
        CHECK_CLOSE(v_mean[j], v_exact[j], 1e-11 * (1 + fabs(v_exact[j])));
      }
      CHECK(spread > 1e-3);
    }
    fixture_free(&f);
  }
}

/* The total of SAGA stays the sum of its table, whatever is drawn; rows that
 * were drawn have the gradient at the chain's position. */
static void saga_keeps_its_total(struct check* p_check) {
  for (int kind = 0; kind < 3; ++kind) {
    struct fixture f;
    small_model(&f, kind);
    const struct tb_model* p_model = &f.model;
    double v_theta[N_DIM];
    fixture_point(&f, 9, v_theta);
    for (size_t pair = 0; pair < N_PAIR; ++pair) {
      struct tb_run* p_run = pair_run(&f, "saga", pair, 3, v_theta);
      const struct tb_chain* p_chain = tb_run_chain(p_run, 0);
      const double* v_total = p_chain->p_estimator_state;
      const double* v_table = v_total + N_DIM;
      double v_sum[N_DIM] = {0};
      if (kind < 2) {
        const struct tb_batch all = {.n_batch = N_ROW, .weight = 1};
        p_model->type->add_scalar(p_model, &f.work, &all, v_table, v_sum);
      }
      for (size_t i = 0; i < N_ROW; ++i) {
        double v_row[N_DIM] = {0};
        double v_scalar[2] = {0};
        const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
        const struct tb_sums sums = {.v_gradient = v_row,
                                     .v_scalar = kind < 2 ? v_scalar : NULL};
        p_model->type
            ->gradient(p_model, &f.work, p_chain->v_theta, &one, NULL, &sums);
        const size_t n = kind < 2 ? p_model->n_scalar : N_DIM;
        const double* v_now = kind < 2 ? v_scalar : v_row;
        const bool is_drawn = i == pair / N_ROW || i == pair % N_ROW;
        for (size_t k = 0; k < n; ++k) {
          const double entry = v_table[i * n + k];
          CHECK((fabs(entry - v_now[k]) <= 1e-12) == is_drawn);
        }
        for (size_t j = 0; kind == 2 && j < N_DIM; ++j) {
          v_sum[j] += v_table[i * N_DIM + j];
        }
      }
      for (size_t j = 0; j < N_DIM; ++j) {
        CHECK_CLOSE(v_total[j], v_sum[j], 1e-11 * (1 + fabs(v_sum[j])));
      }
      tb_run_destroy(p_run);
    }
    fixture_free(&f);
  }
}

/* SVRG moves its reference every third estimate, to where the chain is: there
 * the gradient is exact and has no noise. Rows are counted. */
static void svrg_refreshes(struct check* p_check) {
  struct fixture f;
  small_model(&f, 0);
  double v_theta[N_DIM], v_exact[N_DIM];
  fixture_point(&f, 9, v_theta);
  double n_row = 0;
  for (size_t n_step = 0; n_step < 10; ++n_step) {
    struct tb_run* p_run = pair_run(&f, "svrg", 1, n_step, v_theta);
    const struct tb_chain* p_chain = tb_run_chain(p_run, 0);
    const bool is_refresh = n_step % 3 == 0;
    double error = 0;
    n_row += is_refresh ? N_ROW : 2;
    fixture_gradient(&f, p_chain->v_theta, v_exact);
    for (size_t j = 0; j < N_DIM; ++j) {
      error = fmax(error, fabs(p_chain->v_gradient[j] - v_exact[j]));
    }
    CHECK(is_refresh ? error < 1e-12 : error > 1e-6);
    CHECK(p_chain->is_exact == is_refresh);
    CHECK(p_chain->counts.n_row == n_row);
    CHECK(p_chain->counts.n_full == (double)(n_step / 3 + 1));
    tb_run_destroy(p_run);
  }
  fixture_free(&f);
}

static void cv_refuses(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, 50, N_DIM, 1, 0);
  const double v_at[N_DIM + 1] = {0}, step_size = 1, size = 5;
  for (size_t n_at = 0; n_at <= N_DIM + 1; ++n_at) {
    const struct tb_param at = {"at", v_at, NULL, n_at, n_at};
    const struct tb_param kernel = {"step_size", &step_size, NULL, 1, 1};
    const struct tb_param scheme = {"size", &size, NULL, 1, 1};
    const struct tb_run_spec spec = {.p_model = &f.model,
                                     .kernel = {"sgld", {&kernel, 1}},
                                     .estimator = {"cv", {&at, n_at > 0}},
                                     .scheme = {"uniform", {&scheme, 1}},
                                     .schedule = {"constant", {NULL, 0}},
                                     .n_chain = 1,
                                     .n_sampling = 1,
                                     .n_every = 1,
                                     .likelihood_scale = 1,
                                     .v_init = v_at};
    struct tb_run* p_run;
    const enum tb_status status = tb_run_create(&spec, 1, &p_run);
    CHECK(status == (n_at == N_DIM ? TB_STATUS_ok : TB_STATUS_argument));
    CHECK((p_run == NULL) == (status != TB_STATUS_ok));
    tb_run_destroy(p_run);
  }
  fixture_free(&f);
}

/* Test `which` of an estimator, by its law: what it looks at, how often it
 * accepts, and that kernels get no test that its table does not have. */
static void one_test(struct check* p_check,
                     const struct fixture* p,
                     const struct tb_estimator_type* type,
                     enum tb_test which) {
  enum { N_TRIAL = 4000 };
  double v_theta[N_DIM], v_gradient[N_DIM], v_there[N_DIM], v_exact[N_DIM];
  fixture_point(p, 3, v_theta);
  const struct fixture_run what = {.kernel = "mala",
                                   .estimator = type->name,
                                   .ratio = (double)which,
                                   .step_size = 1e-3,
                                   .n_chain = 1,
                                   .n_sampling = 1,
                                   .seed = 5,
                                   .v_init = v_theta};
  struct tb_run* p_run;
  const enum tb_status status = fixture_run_create(p, &what, &p_run);
  CHECK((status == TB_STATUS_ok) == (type->v_test[which] != NULL));
  if (status != TB_STATUS_ok) {
    CHECK(status == TB_STATUS_unsupported);
    return;
  }
  struct tb_chain* p_chain = (struct tb_chain*)tb_run_chain(p_run, 0);
  CHECK(p_chain->p_target->p_test == type->v_test[which]);
  CHECK(tb_test_start(p_chain) == TB_STATUS_ok);
  const double log_posterior = fixture_gradient(p, v_theta, v_exact);
  if (which == TB_TEST_full) {
    CHECK_CLOSE(p_chain->log_posterior,
                log_posterior,
                1e-10 * fabs(log_posterior));
  }
  memcpy(v_there, v_theta, sizeof v_there);
  v_there[0] += 1e-3;
  struct tb_proposal proposal = {.v_theta = v_there, .v_gradient = v_gradient};
  CHECK(tb_test_begin(p_chain) == TB_STATUS_ok);
  CHECK(tb_test_look(p_chain, &proposal) == TB_STATUS_ok);
  CHECK(proposal.is_possible);
  const double log_ratio =
      log(0.4) - (proposal.log_posterior - p_chain->log_posterior);
  double n_accept = 0, probability = -1;
  for (size_t k = 0; k < N_TRIAL; ++k) {
    n_accept += tb_test_accepts(p_chain, &proposal, log_ratio, &probability);
    CHECK_CLOSE(probability, 0.4, 1e-12);
  }
  CHECK_CLOSE(n_accept / N_TRIAL, 0.4, 5 * sqrt(0.24 / N_TRIAL));
  proposal.is_possible = false;
  CHECK(!tb_test_accepts(p_chain, &proposal, INFINITY, &probability));
  CHECK(probability == 0);
  proposal.is_possible = true;
  CHECK(!tb_test_accepts(p_chain, &proposal, NAN, &probability));
  tb_run_destroy(p_run);
}

static void tests_accept_as_they_say(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, 300, N_DIM, 1, 0);
  for (size_t i = 0; tb_estimator_registry[i] != NULL; ++i) {
    for (int which = 0; which <= TB_TEST_minibatch; ++which) {
      one_test(p_check, &f, tb_estimator_registry[i], (enum tb_test)which);
    }
  }
  fixture_free(&f);
}

const struct check_case check_gradients[] = {
    {"the registry finds every estimator by name", registry_finds},
    {"full is the gradient", full_is_exact},
    {"cv is exact at its point", cv_is_exact_at_its_point},
    {"estimates are unbiased", estimates_are_unbiased},
    {"enumerated estimates are unbiased", enumeration_is_unbiased},
    {"saga keeps its total", saga_keeps_its_total},
    {"svrg moves its reference", svrg_refreshes},
    {"tests accept as often as they say", tests_accept_as_they_say},
    {"cv refuses points of another length", cv_refuses},
    {NULL, NULL}};
