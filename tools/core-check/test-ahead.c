/* Rows drawn ahead: passes, the law of a test from them, chains that wait. */
#include "check.h"
#include "fixture.h"

#include "base/chol.h"
#include "base/hash.h"
#include "gradients/factors.h"
#include "passes/ahead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 3, N_ROW = 60, N_MOST = 3 * N_ROW };

static const double v_at[N_DIM] = {0.05, -0.1, 0.02};

/* One pass over the rows of a model, and what a run takes of it. */
struct ahead {
  double v_total[N_DIM], v_hessian[N_DIM * N_DIM], v_chol[N_DIM * N_DIM];
  double radius, total, phi;
  size_t n_always, n_draw;
  double* v_always; /* numbers of rows */
  double* v_row;    /* of each draw, shuffled */
  double* v_psi;
  bool v_is_always[N_MOST];
};

static void shuffle(struct ahead* p, uint64_t pass) {
  struct tb_rng rng;
  tb_rng_init(&rng, 3, pass, TB_STREAM_batch);
  for (size_t k = p->n_draw; k > 1; --k) {
    const size_t at = tb_rng_index(&rng, k);
    const double row = p->v_row[at], psi = p->v_psi[at];
    p->v_row[at] = p->v_row[k - 1];
    p->v_psi[at] = p->v_psi[k - 1];
    p->v_row[k - 1] = row;
    p->v_psi[k - 1] = psi;
  }
}

/* n_draw: about how many; share: rows with a larger share of the largest psi
 * are looked at always */
static void draw_ahead(struct check* p_check,
                       const struct fixture* p,
                       double n_draw,
                       double share,
                       uint64_t pass,
                       struct ahead* p_out) {
  const size_t n_row = p->model.n_data;
  double v_psi[N_MOST], v_count[N_MOST];
  struct tb_ahead_sums sums = {.v_total = p_out->v_total,
                               .v_hessian = p_out->v_hessian};
  struct tb_ahead_rows rows = {.v_psi = v_psi, .v_count = v_count};
  p_out->radius = 9;
  CHECK(tb_ahead_pass(&p->model, v_at, NULL, 1, &sums, NULL) == TB_STATUS_ok);
  CHECK(tb_chol(N_DIM, p_out->v_hessian, p_out->v_chol));
  struct tb_ahead_draw draw = {
      .bounds = {.p_model = &p->model, .radius = p_out->radius, .scale = 1},
      .v_chol = p_out->v_chol,
      .key = tb_ahead_key(1, 1, pass)};
  tb_ahead_pass(&p->model, v_at, &draw, 1, &sums, &rows);
  double largest = 0;
  for (size_t i = 0; i < n_row; ++i) {
    largest = fmax(largest, v_psi[i]);
  }
  draw.bounds.phi = 1 / (share * largest);
  tb_ahead_pass(&p->model, v_at, &draw, 1, &sums, &rows);
  draw.rate = n_draw / rows.total;
  tb_ahead_pass(&p->model, v_at, &draw, 1, &sums, &rows);
  p_out->total = rows.total;
  p_out->n_always = p_out->n_draw = 0;
  for (size_t i = 0; i < n_row; ++i) {
    p_out->n_draw += v_count[i] > 0 ? (size_t)v_count[i] : 0;
  }
  p_out->v_always = check_alloc(n_row + 2 * p_out->n_draw, sizeof(double));
  p_out->v_row = p_out->v_always + n_row;
  p_out->v_psi = p_out->v_row + p_out->n_draw;
  size_t n = 0;
  for (size_t i = 0; i < n_row; ++i) {
    p_out->v_is_always[i] = v_count[i] < 0;
    if (v_count[i] < 0) {
      p_out->v_always[p_out->n_always++] = (double)i;
    }
    for (double k = 0; k < v_count[i]; ++k) {
      p_out->v_row[n] = (double)i;
      p_out->v_psi[n++] = v_psi[i];
    }
  }
  shuffle(p_out, pass);
}

static struct tb_params ahead_params(const struct ahead* p,
                                     struct tb_param v_param[10]) {
  static const double one = 1;
  const struct tb_param v[] = {
      {"at", v_at, NULL, N_DIM, N_DIM},
      {"factorised", &one, NULL, 1, 1},
      {"total", p->v_total, NULL, N_DIM, N_DIM},
      {"hessian", p->v_hessian, NULL, N_DIM * N_DIM, N_DIM},
      {"ahead_chol", p->v_chol, NULL, N_DIM * N_DIM, N_DIM},
      {"ahead_radius", &p->radius, NULL, 1, 1},
      {"ahead_total", &p->total, NULL, 1, 1},
      {"ahead_always", p->v_always, NULL, p->n_always, p->n_always},
      {"ahead_rows", p->v_row, NULL, p->n_draw, p->n_draw},
      {"ahead_psi", p->v_psi, NULL, p->n_draw, p->n_draw}};
  memcpy(v_param, v, sizeof v);
  return (struct tb_params){v_param, 10};
}

static struct tb_run* run_of(struct fixture* p,
                             const struct ahead* p_ahead,
                             size_t n_chain,
                             size_t n_step) {
  struct tb_param v_param[10];
  double* v_init = check_alloc(n_chain * N_DIM, sizeof(double));
  for (size_t c = 0; c < n_chain; ++c) {
    memcpy(v_init + c * N_DIM, v_at, sizeof v_at);
  }
  const struct tb_run_spec spec = {
      .p_model = &p->model,
      .kernel = {"smh", {NULL, 0}},
      .estimator = {"cv2", ahead_params(p_ahead, v_param)},
      .schedule = {"constant", {NULL, 0}},
      .n_chain = n_chain,
      .n_sampling = n_step,
      .n_every = 1,
      .seed = 6,
      .likelihood_scale = 1,
      .v_init = v_init};
  struct tb_run* p_run;
  const enum tb_status status = tb_run_create(&spec, 1, &p_run);
  free(v_init);
  return status == TB_STATUS_ok ? p_run : NULL;
}

static struct tb_chain* chain_of(struct tb_run* p_run, size_t c) {
  return (struct tb_chain*)tb_run_chain(p_run, c);
}

/* ---- passes ---- */

static void threads_do_not_matter(struct check* p_check) {
  enum { N = 9001 };
  struct fixture f;
  fixture_glm(&f, N, N_DIM, 2, FIXTURE_WEIGHTS | FIXTURE_OFFSET);
  double* v = check_alloc(4 * N, sizeof(double));
  double v_sum[2][N_DIM], v_hessian[2][N_DIM * N_DIM], v_chol[N_DIM * N_DIM];
  struct tb_ahead_sums v_sums[2];
  struct tb_ahead_rows v_rows[2];
  for (int k = 0; k < 2; ++k) {
    v_sums[k] =
        (struct tb_ahead_sums){.v_total = v_sum[k], .v_hessian = v_hessian[k]};
    v_rows[k] = (struct tb_ahead_rows){.v_psi = v + 2 * k * N,
                                       .v_count = v + (2 * k + 1) * N};
  }
  CHECK(tb_ahead_pass(&f.model, v_at, NULL, 1, &v_sums[0], NULL) ==
        TB_STATUS_ok);
  CHECK(tb_chol(N_DIM, v_hessian[0], v_chol));
  const struct tb_ahead_draw draw = {
      .bounds = {.p_model = &f.model, .radius = 9, .phi = 16, .scale = 1},
      .v_chol = v_chol,
      .rate = 1e6,
      .key = tb_ahead_key(1, 2, 3),
      .first = 5};
  for (int k = 0; k < 2; ++k) {
    CHECK(tb_ahead_pass(&f.model,
                        v_at,
                        &draw,
                        1 + 3 * k,
                        &v_sums[k],
                        &v_rows[k]) == TB_STATUS_ok);
  }
  CHECK(memcmp(v, v + 2 * N, 2 * N * sizeof(double)) == 0);
  CHECK(memcmp(v_hessian[0], v_hessian[1], sizeof v_hessian[0]) == 0);
  CHECK(v_rows[0].total == v_rows[1].total && v_rows[0].total > 0);
  CHECK(v_sums[0].log_lik == v_sums[1].log_lik);
  free(v);
  fixture_free(&f);
}

/* of means below and beyond those that are inverted */
static void counts_are_poisson(struct check* p_check) {
  enum { N = 200000 };
  const double v_mean[] = {1e-3, 0.7, 15.9, 16.1, 300};
  const uint64_t key = tb_ahead_key(4, 0, 0);
  for (size_t k = 0; k < sizeof v_mean / sizeof v_mean[0]; ++k) {
    const double mean = v_mean[k];
    double sum = 0, square = 0, none = 0;
    for (uint64_t i = 0; i < N; ++i) {
      const double count = tb_ahead_count(tb_hash_at(key, i + k * N), mean);
      sum += count - mean;
      square += (count - mean) * (count - mean);
      none += count == 0;
    }
    CHECK_CLOSE(sum / N, 0, 5 * sqrt(mean / N));
    CHECK_CLOSE(square / N, mean, 5 * sqrt((mean + 2 * mean * mean) / N));
    CHECK_CLOSE(none / N, exp(-mean), 5 * sqrt(exp(-mean) / N) + 1e-12);
  }
  CHECK(tb_ahead_count(0, 1e-300) == 0);
  CHECK(tb_ahead_count(0, 16) < 200);
  CHECK(tb_ahead_count(UINT64_MAX, 16) == 0);
}

/* ---- tests ---- */

/* min(1, those always looked at) times the product of min(1, exp(-e' + e)) */
static double exact_acceptance(const struct tb_run* p_run,
                               const struct ahead* p,
                               const double* v_from,
                               const double* v_to) {
  const struct tb_cv2* p_cv2 = tb_run_target(p_run)->p_estimator->p_self;
  const struct tb_chain* p_chain = tb_run_chain(p_run, 0);
  const struct tb_model* p_model = p_cv2->expansion.p_model;
  const struct tb_batch all = {.n_batch = N_ROW, .weight = 1};
  double v_delta[2][N_DIM], v_e[2][N_ROW], always = 0, thinned = 0;
  for (size_t j = 0; j < N_DIM; ++j) {
    v_delta[0][j] = v_from[j] - v_at[j];
    v_delta[1][j] = v_to[j] - v_at[j];
  }
  p_model->type->expansion->remainders(p_model,
                                       &p_chain->work,
                                       p_cv2->expansion.v_record,
                                       v_at,
                                       v_delta[0],
                                       v_delta[1],
                                       &all,
                                       v_e[0],
                                       v_e[1]);
  for (size_t i = 0; i < N_ROW; ++i) {
    const double change = v_e[1][i] - v_e[0][i];
    if (p->v_is_always[i]) {
      always += change;
    } else {
      thinned += fmax(0, change);
    }
  }
  return fmin(1, exp(-always)) * exp(-thinned);
}

/* at + L^{-T} z, of a random z of this length */
static void place_at(const struct ahead* p,
                     struct tb_rng* p_rng,
                     double length,
                     double* v_theta) {
  double v_z[N_DIM], square = 0;
  for (size_t j = 0; j < N_DIM; ++j) {
    v_z[j] = tb_rng_norm(p_rng);
    square += v_z[j] * v_z[j];
  }
  for (size_t j = N_DIM; j-- > 0;) {
    double sum = v_z[j] * length / sqrt(square);
    for (size_t i = j + 1; i < N_DIM; ++i) {
      sum -= p->v_chol[j * N_DIM + i] * (v_theta[i] - v_at[i]);
    }
    v_theta[j] = v_at[j] + sum / p->v_chol[j * N_DIM + j];
  }
}

/* over many passes, a test accepts as often as the rows say */
static void tests_are_exact(struct check* p_check) {
  enum { N_PAIR = 4, N_PASS = 12, N_TRIAL = 1500 };
  for (int family = 1; family <= 2; ++family) {
    struct fixture f;
    fixture_glm(&f, N_ROW, N_DIM, family, FIXTURE_WEIGHTS | FIXTURE_OFFSET);
    size_t n_between = 0;
    for (int pair = 0; pair < N_PAIR; ++pair) {
      struct tb_rng rng;
      double v_from[N_DIM], v_to[N_DIM], expected = 0, n_accept = 0, used = 0;
      for (int pass = 0; pass < N_PASS; ++pass) {
        struct ahead ahead;
        /* some rows are looked at always */
        draw_ahead(p_check, &f, 4e5, pair % 2 ? 0.5 : 1.1, pass, &ahead);
        CHECK((ahead.n_always > 0) == (pair % 2 == 1));
        struct tb_run* p_run = run_of(&f, &ahead, 1, 1);
        CHECK(p_run != NULL);
        if (p_run == NULL) {
          free(ahead.v_always);
          continue;
        }
        struct tb_chain* p_chain = chain_of(p_run, 0);
        tb_rng_init(&rng, 2, (size_t)pair, TB_STREAM_noise);
        place_at(&ahead, &rng, 1, v_from);
        place_at(&ahead, &rng, 2.2, v_to);
        expected = exact_acceptance(p_run, &ahead, v_from, v_to);
        for (int s = 0; s < TB_STREAM_count; ++s) {
          tb_rng_init(&p_chain->v_rng[s], 9, (size_t)pass, (enum tb_stream)s);
        }
        for (int t = 0; t < N_TRIAL; ++t) {
          double v_gradient[N_DIM], probability;
          struct tb_proposal proposal = {.v_theta = v_to,
                                         .v_gradient = v_gradient,
                                         .is_possible = true};
          memcpy(p_chain->v_theta, v_from, sizeof v_from);
          n_accept += tb_test_accepts(p_chain, &proposal, 0, &probability);
          CHECK(proposal.fault == TB_STATUS_ok);
        }
        used += p_chain->counts.n_row - p_chain->counts.n_always;
        tb_run_destroy(p_run);
        free(ahead.v_always);
      }
      const double n = (double)N_PASS * N_TRIAL;
      n_between += expected > 0.05 && expected < 0.95;
      CHECK(used > 0);
      CHECK_CLOSE(n_accept / n,
                  expected,
                  5 * sqrt(expected * (1 - expected) / n) + 1e-9);
    }
    CHECK(n_between > 1);
    fixture_free(&f);
  }
}

/* ---- chains that wait ---- */

/* A step that lacks rows has not begun; with new ones it is made. */
static void chains_wait(struct check* p_check) {
  enum { N_CHAIN = 3, N_STEP = 200 };
  struct fixture f, g;
  fixture_glm(&f, N_ROW, N_DIM, 1, FIXTURE_WEIGHTS);
  fixture_glm(&g, N_ROW, N_DIM, 1, FIXTURE_WEIGHTS);
  const struct tb_recorder recorder = {.n_keep = N_STEP};
  struct ahead ahead;
  draw_ahead(p_check, &f, 3 * 150, 1.1, 1, &ahead);
  double v_end[2][N_CHAIN * N_DIM];
  size_t n_refill[2] = {0, 0};
  for (int k = 0; k < 2; ++k) {
    struct tb_run* p_run = run_of(&f, &ahead, N_CHAIN, N_STEP);
    CHECK(p_run != NULL && tb_run_start(p_run) == TB_STATUS_ok);
    bool goes_on = p_run != NULL;
    while (goes_on && n_refill[k] < 5000) {
      tb_run_advance(p_run, k == 0 ? N_STEP : 3, k == 0 ? 1 : 2, &recorder);
      bool waits = false;
      goes_on = false;
      for (size_t c = 0; c < N_CHAIN; ++c) {
        const struct tb_report report = tb_run_report(p_run, c);
        goes_on = goes_on || (!report.is_done && report.status == TB_STATUS_ok);
        waits = waits || report.status == TB_STATUS_exhausted;
        CHECK(report.n_step == tb_run_chain(p_run, c)->iteration);
      }
      if (waits && !goes_on) {
        /* a model that the next pass filled: of the same rows here */
        struct ahead next;
        struct tb_param v_param[10];
        ++n_refill[k];
        draw_ahead(p_check, &g, 3 * 150, 1.1, n_refill[k] + 1, &next);
        const struct tb_params params = ahead_params(&next, v_param);
        struct tb_model* p_model = n_refill[k] % 2 ? &g.model : &f.model;
        CHECK(tb_run_refill(p_run, p_model, &params, 1) == TB_STATUS_ok);
        free(next.v_always);
        goes_on = true;
      }
    }
    for (size_t c = 0; p_run != NULL && c < N_CHAIN; ++c) {
      CHECK(tb_run_report(p_run, c).is_done);
      memcpy(v_end[k] + c * N_DIM,
             tb_run_chain(p_run, c)->v_theta,
             N_DIM * sizeof(double));
    }
    tb_run_destroy(p_run);
  }
  CHECK(n_refill[0] > 3);
  CHECK(n_refill[0] == n_refill[1]);
  CHECK(memcmp(v_end[0], v_end[1], sizeof v_end[0]) == 0);
  free(ahead.v_always);
  fixture_free(&f);
  fixture_free(&g);
}

/* where it waits, streams and counts are those before the step */
static void waiting_changes_nothing(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, N_ROW, N_DIM, 1, 0);
  const struct tb_recorder recorder = {.n_keep = 1000};
  struct ahead ahead;
  draw_ahead(p_check, &f, 100, 1.1, 1, &ahead);
  struct tb_run* p_run = run_of(&f, &ahead, 1, 1000);
  CHECK(p_run != NULL && tb_run_start(p_run) == TB_STATUS_ok);
  struct tb_chain* p_chain = chain_of(p_run, 0);
  struct tb_rng v_before[TB_STREAM_count];
  struct tb_counts counts;
  for (int step = 0;
       step < 1000 && tb_run_report(p_run, 0).status == TB_STATUS_ok;
       ++step) {
    memcpy(v_before, p_chain->v_rng, sizeof v_before);
    counts = p_chain->counts;
    tb_run_advance(p_run, 1, 1, &recorder);
  }
  CHECK(tb_run_report(p_run, 0).status == TB_STATUS_exhausted);
  CHECK(memcmp(v_before, p_chain->v_rng, sizeof v_before) == 0);
  CHECK(memcmp(&counts, &p_chain->counts, sizeof counts) == 0);
  /* what another estimator needs is refused, and nothing is changed */
  struct fixture other;
  struct tb_param v_param[10];
  struct tb_params params = ahead_params(&ahead, v_param);
  fixture_glm(&other, N_ROW, N_DIM + 1, 1, 0);
  CHECK(tb_run_refill(p_run, &other.model, &params, 1) ==
        TB_STATUS_unsupported);
  ahead.v_psi[0] = NAN;
  CHECK(tb_run_refill(p_run, &f.model, &params, 1) == TB_STATUS_argument);
  ahead.v_psi[0] = 1e-9 * ahead.total;
  params.n_param -= 2;
  CHECK(tb_run_refill(p_run, &f.model, &params, 1) == TB_STATUS_argument);
  CHECK(tb_run_report(p_run, 0).status == TB_STATUS_exhausted);
  /* later passes draw more rows than the first */
  struct fixture more;
  struct ahead next;
  fixture_glm(&more, N_MOST, N_DIM, 1, 0);
  draw_ahead(p_check, &more, 100, 1.1, 2, &next);
  params = ahead_params(&next, v_param);
  CHECK(tb_run_refill(p_run, &more.model, &params, 1) == TB_STATUS_ok);
  tb_run_advance(p_run, 1, 1, &recorder);
  tb_run_destroy(p_run);
  free(next.v_always);
  fixture_free(&more);
  free(ahead.v_always);
  fixture_free(&other);
  fixture_free(&f);
}

const struct check_case check_ahead[] = {
    {"threads do not matter", threads_do_not_matter},
    {"counts are Poisson", counts_are_poisson},
    {"tests are exact", tests_are_exact},
    {"chains wait, and go on", chains_wait},
    {"a step that waits has not begun", waiting_changes_nothing},
    {NULL, NULL}};
