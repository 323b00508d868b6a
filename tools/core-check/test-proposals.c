/* Proposals that move hyperparameters: of five rows with one coefficient, under
 * a ridge with a scale of its own. */
#include "check.h"
#include "fixture.h"

#include "gradients/cv2-inside.h"
#include "gradients/factors.h"
#include "gradients/surrogate.h"
#include "kernels/kernel.h"
#include "models/scaled.h"
#include "proposals/proposal.h"
#include "responses/response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  N_ROW = 5,
  INDEPENDENT = 0,
  AUTOREGRESSIVE,
  HMC,
  SLICE,
  SCALES,
  MARGINAL
};

static const double v_rows[] = {0, 1, 2, 3, 4}, v_some[] = {1, 3};

struct pair {
  struct fixture base, all;
};

static size_t place_of(const char* name, const char* link) {
  size_t k = 0;
  while (strcmp(tb_response_registry[k]->name, name) != 0 ||
         strcmp(tb_response_registry[k]->link, link) != 0) {
    ++k;
  }
  return k;
}

static void
pair_create(struct check* p_check, struct pair* p, const char* name) {
  const double v_x[N_ROW] = {2, -1.5, 3, 1, -2.5};
  const double v_y[N_ROW] = {1, 0, 1, 0, 1}, v_weight[N_ROW] = {1, 2, 1, 1, 3};
  /* of slopes -2 and 2.5, two rows each, and heavy tails: two modes */
  const double v_two[N_ROW] = {-4, -3.75, 7.5, 0.25, 5};
  const bool is_gaussian = strcmp(name, "gaussian") == 0;
  const bool is_student = strcmp(name, "student") == 0;
  const double place =
      (double)place_of(name, is_gaussian || is_student ? "identity" : "logit");
  const double v_aux[] = {is_student ? 0.7 : 1.5, 3}, kind = 0, zero = 0,
               one = 1;
  const size_t n_aux = is_student ? 2 : is_gaussian;
  const struct tb_param v_param[] = {
      {"x", v_x, NULL, N_ROW, N_ROW},
      {"y", is_student ? v_two : v_y, NULL, N_ROW, N_ROW},
      {"weights", v_weight, NULL, N_ROW, N_ROW},
      {"response", &place, NULL, 1, 1},
      {"aux", v_aux, NULL, n_aux, n_aux},
      {"prior_kind", &kind, NULL, 1, 1},
      {"prior_location", &zero, NULL, 1, 1},
      {"prior_scale", &one, NULL, 1, 1}};
  const struct tb_params params = {v_param, sizeof v_param / sizeof *v_param};
  memset(p, 0, sizeof *p);
  p->base.model.type = tb_model_find("glm");
  CHECK(fixture_create(&p->base.model, &params) == TB_STATUS_ok);
  fixture_finish(&p->base);
  const double ridge = 2, at = 0, location = 0.3, scale = 1, none = 0;
  const double v_argument[] = {3, 0.8, 1, 0, 0};
  const struct tb_param v_mixture[] = {
      {"mixture_kind", &ridge, NULL, 1, 1},
      {"mixture_size", &one, NULL, 1, 1},
      {"mixture_at", &at, NULL, 1, 1},
      {"mixture_argument", v_argument, NULL, 5, 5},
      {"mixture_location", &location, NULL, 1, 1},
      {"mixture_scale", &scale, NULL, 1, 1},
      {"mixture_shape", &none, NULL, 1, 1}};
  const struct tb_params mixture = {v_mixture, 7};
  p->all = p->base;
  CHECK(tb_model_scale(&p->base.model, &mixture, NULL, 0, &p->all.model) ==
        TB_STATUS_ok);
  fixture_finish(&p->all);
}

static void pair_free(struct pair* p) {
  p->all.model.type->destroy(&p->all.model);
  free(p->all.work.p_scratch);
  fixture_free(&p->base);
}

/* What a run has in its surrogate and how it proposes. */
struct setting {
  size_t n_awkward;
  size_t n_proposal;
  const double* v_proposal; /* places */
  const double* v_option;   /* two of each */
  double n_inner;
  double scale;
};

static struct tb_run* run_with(struct pair* p,
                               const struct setting* p_setting) {
  static const double v_at[] = {0.4, -0.2}, metric = 1.7, line = 0.8;
  static const double one = 1;
  const size_t n = p_setting->n_proposal, n_awkward = p_setting->n_awkward;
  double v_share[6];
  for (size_t k = 0; k < n; ++k) {
    v_share[k] = 1 / (double)n;
  }
  const struct tb_param v_estimator[] = {
      {"at", v_at, NULL, 2, 2},
      {"scale", &p_setting->scale, NULL, 1, 1},
      {"factorised", &one, NULL, 1, 1},
      {"whole_prior", &one, NULL, 1, 1},
      {"metric", &metric, NULL, 1, 1},
      {"lines", &line, NULL, 1, 1},
      {"awkward",
       n_awkward == 2 ? v_some : v_rows,
       NULL,
       n_awkward,
       n_awkward}};
  const struct tb_param v_kernel[] = {
      {"proposals", p_setting->v_proposal, NULL, n, n},
      {"shares", v_share, NULL, n, n},
      {"options", p_setting->v_option, NULL, 2 * n, 2 * n},
      {"inner", &p_setting->n_inner, NULL, 1, 1}};
  const struct tb_run_spec spec = {.p_model = &p->all.model,
                                   .kernel = {"smh", {v_kernel, 4}},
                                   .estimator = {"cv2", {v_estimator, 7}},
                                   .schedule = {"constant", {NULL, 0}},
                                   .n_chain = 1,
                                   .n_sampling = 1,
                                   .n_every = 1,
                                   .seed = 6,
                                   .likelihood_scale = p_setting->scale,
                                   .v_init = v_at};
  struct tb_run* p_run;
  return tb_run_create(&spec, 1, &p_run) == TB_STATUS_ok ? p_run : NULL;
}

static struct tb_chain* chain_of(struct tb_run* p_run) {
  return (struct tb_chain*)tb_run_chain(p_run, 0);
}

static const struct tb_surrogate* surrogate_of(struct tb_run* p_run) {
  const struct tb_cv2* p = tb_run_target(p_run)->p_estimator->p_self;
  return tb_factors_surrogate(p->p_factors);
}

/* log pi, lambda on the rows alone */
static double
log_target(const struct pair* p, const double* v_theta, double scale) {
  double v_gradient[2], log_prior = 0;
  const double all = fixture_gradient(&p->all, v_theta, v_gradient);
  p->all.model.type->prior(&p->all.model,
                           &p->all.work,
                           v_theta,
                           v_gradient,
                           &log_prior);
  return log_prior + scale * (all - log_prior);
}

static double log_surrogate(struct tb_run* p_run, const double* v_theta) {
  double beyond, z;
  struct tb_chain* p_chain = chain_of(p_run);
  const struct tb_surrogate* p = surrogate_of(p_run);
  if (tb_surrogate_beyond(p_chain, p, v_theta, &beyond) != TB_STATUS_ok) {
    abort();
  }
  return beyond + tb_surrogate_law(p_chain, p, v_theta, &z);
}

static const double v_place[] =
    {SCALES, SCALES, MARGINAL, INDEPENDENT, HMC, SLICE, AUTOREGRESSIVE};
static const double v_option[] =
    {0, 1, 0.6, 3, 1.5, 2, 0, 0, 0.8, 2, 1, 0, 0.5, 0};

/* With all rows as they are, or a likelihood that is quadratic, it is the
 * target; its gradient is that of its density; it is normal given phi, and
 * phi's density the one with beta integrated out. */
static void surrogate_with_scales(struct check* p_check) {
  for (int k = 0; k < 3; ++k) {
    struct pair p;
    const struct setting setting = {.n_awkward = k == 0 ? 5 : 0,
                                    .n_proposal = 1,
                                    .v_proposal = v_place,
                                    .v_option = v_option,
                                    .n_inner = 1,
                                    .scale = 0.7};
    pair_create(p_check, &p, k == 1 ? "gaussian" : "binomial");
    struct tb_run* p_run = run_with(&p, &setting);
    CHECK(p_run != NULL);
    struct tb_chain* p_chain = chain_of(p_run);
    const struct tb_surrogate* p_own = surrogate_of(p_run);
    const double v_zero[2] = {0, 0};
    const double before = log_surrogate(p_run, v_zero);
    const double target = log_target(&p, v_zero, setting.scale);
    double v_marginal[2];
    for (int t = 0; t < 20; ++t) {
      double v_theta[2] = {0.3 * t - 3, 0.2 * t - 2}, v_gradient[2];
      const double here = log_surrogate(p_run, v_theta);
      if (k < 2) {
        CHECK_CLOSE(here - before,
                    log_target(&p, v_theta, setting.scale) - target,
                    1e-9);
      }
      CHECK(tb_surrogate_gradient(p_chain, p_own, v_theta, v_gradient) ==
            TB_STATUS_ok);
      const double x = v_theta[0], h = 1e-5;
      v_theta[0] = x + h;
      const double up = log_surrogate(p_run, v_theta);
      v_theta[0] = x - h;
      const double slope = (up - log_surrogate(p_run, v_theta)) / (2 * h);
      CHECK_CLOSE(v_gradient[0], slope, 1e-5 * (1 + fabs(slope)));
    }
    for (int t = 0; t < 2 && k > 0; ++t) {
      double v_theta[2] = {0, 2 * t - 1.5}, sum = 0;
      v_marginal[t] = tb_surrogate_marginal(p_chain, p_own, v_theta);
      for (int i = 0; i < 20000; ++i) {
        v_theta[0] = 20 * ((i + 0.5) / 20000 - 0.5);
        sum += exp(log_surrogate(p_run, v_theta) - before);
      }
      v_marginal[t] -= log(sum);
    }
    CHECK(k == 0 || fabs(v_marginal[1] - v_marginal[0]) < 1e-7);
    tb_run_destroy(p_run);
    pair_free(&p);
  }
}

/* ---- the law of one step ---- */

enum { N_BETA = 600, N_PHI = 400, N_GRID = N_BETA * N_PHI, N_CELL = 3 };
static const double low_beta = -4, high_beta = 8, low_phi = -9, high_phi = 6;

static void grid_at(size_t i, double u, double w, double* v_theta) {
  v_theta[0] =
      low_beta + (high_beta - low_beta) * ((double)(i / N_PHI) + u) / N_BETA;
  v_theta[1] =
      low_phi + (high_phi - low_phi) * ((double)(i % N_PHI) + w) / N_PHI;
}

struct target {
  double* v_cdf;
  double v_cut[2][N_CELL - 1]; /* of beta and of phi, by quantiles */
};

static void
target_create(struct target* t, const struct pair* p, double scale) {
  double v_beta[N_BETA] = {0}, v_phi[N_PHI] = {0}, most = -INFINITY, sum = 0;
  t->v_cdf = check_alloc(N_GRID, sizeof(double));
  for (size_t i = 0; i < N_GRID; ++i) {
    double v_theta[2];
    grid_at(i, 0.5, 0.5, v_theta);
    t->v_cdf[i] = log_target(p, v_theta, scale);
    most = fmax(most, t->v_cdf[i]);
  }
  for (size_t i = 0; i < N_GRID; ++i) {
    const double q = exp(t->v_cdf[i] - most);
    sum += q;
    t->v_cdf[i] = sum;
    v_beta[i / N_PHI] += q;
    v_phi[i % N_PHI] += q;
  }
  for (size_t i = 0; i < N_GRID; ++i) {
    t->v_cdf[i] /= sum;
  }
  for (size_t c = 0; c + 1 < N_CELL; ++c) {
    for (int of = 0; of < 2; ++of) {
      const double* v = of == 0 ? v_beta : v_phi;
      double below = 0;
      size_t i = 0;
      while (below < sum * (double)(c + 1) / N_CELL) {
        below += v[i++];
      }
      double v_theta[2];
      grid_at(of == 0 ? i * N_PHI : i, 0, 0, v_theta);
      t->v_cut[of][c] = v_theta[of];
    }
  }
}

static size_t cell_of(const struct target* t, const double* v_theta) {
  size_t v_cell[2] = {0, 0};
  for (int of = 0; of < 2; ++of) {
    while (v_cell[of] + 1 < N_CELL && v_theta[of] > t->v_cut[of][v_cell[of]]) {
      v_cell[of] += 1;
    }
  }
  return v_cell[0] * N_CELL + v_cell[1];
}

static void
draw_target(const struct target* t, struct tb_rng* p_rng, double* v_theta) {
  const double u = tb_rng_unif(p_rng);
  const double a = tb_rng_unif(p_rng), b = tb_rng_unif(p_rng);
  grid_at(check_find(t->v_cdf, N_GRID, u), a, b, v_theta);
}

/* Steps of a chain that starts from pi: the law of both ends is symmetric, of
 * beta alone where phi is drawn after the step, and the second is of pi again.
 * Returns how many were accepted. */
static double symmetric_with(struct check* p_check,
                             struct pair* p,
                             const struct target* t,
                             const struct setting* p_setting) {
  enum { N_STEP = 20000, N = N_CELL * N_CELL };
  struct tb_rng rng;
  double v_pair[N * N] = {0}, v_before[N] = {0}, v_after[N] = {0};
  tb_rng_init(&rng, 9, 0, TB_STREAM_noise);
  struct tb_run* p_run = run_with(p, p_setting);
  CHECK(p_run != NULL);
  struct tb_chain* p_chain = chain_of(p_run);
  const struct tb_kernel* p_kernel = tb_run_target(p_run)->p_kernel;
  const double first = p_setting->v_proposal[0];
  const bool always_moves = p_setting->n_awkward == 0 && first == SCALES;
  const bool moves_scales = first == SCALES || first == MARGINAL;
  for (int k = 0; k < N_STEP; ++k) {
    double v_theta[2];
    draw_target(t, &rng, v_theta);
    memcpy(p_chain->v_theta, v_theta, sizeof v_theta);
    const double n_accept = p_chain->counts.n_accept;
    CHECK(p_kernel->type->step(p_chain) == TB_STATUS_ok);
    /* what is refused leaves phi as it was, too */
    const bool stays = p_chain->counts.n_accept == n_accept;
    CHECK(!stays || p_chain->v_theta[0] == v_theta[0]);
    CHECK(!stays || !always_moves || p_chain->v_theta[1] == v_theta[1]);
    size_t from = cell_of(t, v_theta), to = cell_of(t, p_chain->v_theta);
    v_before[from] += 1;
    v_after[to] += 1;
    if (!moves_scales) { /* what comes then is one after the other */
      from = from / N_CELL * N_CELL;
      to = to / N_CELL * N_CELL;
    }
    v_pair[from * N + to] += 1;
  }
  for (size_t a = 0; a < N; ++a) {
    CHECK_CLOSE(v_after[a], v_before[a], 6 * sqrt(v_before[a]));
  }
  size_t n;
  CHECK(check_symmetry(v_pair, N, &n) < 5 && n >= 3);
  const double accepted = p_chain->counts.n_accept / N_STEP;
  tb_run_destroy(p_run);
  return accepted;
}

static void steps_with_scales(struct check* p_check) {
  const double v_size[] = {0, 2, 5};
  for (int family = 0; family < 2; ++family) {
    struct pair p;
    struct target target;
    pair_create(p_check, &p, family == 0 ? "binomial" : "gaussian");
    target_create(&target, &p, 0.7);
    for (size_t n = 0; n < (family == 0 ? 3 : 1); ++n) {
      for (size_t which = 0; which < 8; ++which) {
        const bool is_mixture = which == 7;
        const size_t first = is_mixture ? 0 : which;
        const struct setting setting = {.n_awkward = (size_t)v_size[n],
                                        .n_proposal = is_mixture ? 6 : 1,
                                        .v_proposal = v_place + first,
                                        .v_option = v_option + 2 * first,
                                        .n_inner = which % 2 == 0 ? 1 : 3,
                                        .scale = 0.7};
        const double accepted = symmetric_with(p_check, &p, &target, &setting);
        /* the surrogate is the target, and a palindrome has no coin */
        const bool is_target = n == 2 || family == 1;
        CHECK(!is_target || which > 1 || n == 2 || accepted == 1);
        CHECK(is_target || accepted < 0.999);
      }
    }
    free(target.v_cdf);
    pair_free(&p);
  }
}

struct sliced {
  struct tb_run* p_run;
  double phi, width;
};

static double sliced_log_density(const void* p_context, double x) {
  const struct sliced* p = p_context;
  const double v_theta[] = {x, p->phi};
  return log_surrogate(p->p_run, v_theta);
}

static double
sliced_step(const void* p_context, double x, struct tb_rng* p_rng) {
  const struct sliced* p = p_context;
  struct tb_chain* p_chain = chain_of(p->p_run);
  const struct tb_proposal_type* p_type = tb_proposal_at_place(SLICE);
  double v_from[] = {x, p->phi}, v_to[2], v_scratch[8], log_ratio;
  const double v_width[] = {p->width, 0};
  struct tb_spot from = {.v_theta = v_from}, to = {.v_theta = v_to};
  struct tb_rng* p_own = &p_chain->v_rng[TB_STREAM_noise];
  if (tb_surrogate_beyond(p_chain,
                          surrogate_of(p->p_run),
                          v_from,
                          &from.beyond) != TB_STATUS_ok) {
    abort();
  }
  *p_own = *p_rng;
  if (p_type->draw(p_chain,
                   surrogate_of(p->p_run),
                   v_width,
                   &from,
                   &to,
                   v_scratch,
                   &log_ratio) != TB_STATUS_ok) {
    abort();
  }
  *p_rng = *p_own;
  return log_ratio >= 0 ? to.v_theta[0] : x;
}

/* Of two modes, which an interval of a slice bridges or not by where it begins,
 * or whose steps out end by their limit. */
static void slices_of_two_modes_are_reversible(struct check* p_check) {
  static const double slice = SLICE, v_width[] = {1, 5, 9, 60, 0.05};
  const struct setting setting = {.n_awkward = N_ROW,
                                  .n_proposal = 1,
                                  .v_proposal = &slice,
                                  .v_option = v_width,
                                  .n_inner = 1,
                                  .scale = 0.7};
  struct pair p;
  pair_create(p_check, &p, "student");
  struct sliced sliced = {.p_run = run_with(&p, &setting), .phi = 1};
  CHECK(sliced.p_run != NULL);
  for (size_t k = 0; k < sizeof v_width / sizeof *v_width; ++k) {
    sliced.width = v_width[k];
    const struct check_line line = {.log_density = sliced_log_density,
                                    .step = sliced_step,
                                    .p_context = &sliced,
                                    .low = -6,
                                    .high = 6};
    CHECK(check_line_step(p_check, &line, 40000, k) > 0.3);
  }
  tb_run_destroy(sliced.p_run);
  pair_free(&p);
}

/* Where the surrogate's chain stands has no say in how many steps it makes: it
 * looks at its rows as often from everywhere. */
static void steps_are_as_many_everywhere(struct check* p_check) {
  static const double v_which[] = {INDEPENDENT, AUTOREGRESSIVE};
  static const double v_own[] = {0, 0, 0.7, 0};
  struct pair p;
  const struct setting setting = {.n_awkward = N_ROW,
                                  .n_proposal = 2,
                                  .v_proposal = v_which,
                                  .v_option = v_own,
                                  .n_inner = 4,
                                  .scale = 0.7};
  pair_create(p_check, &p, "student");
  struct tb_run* p_run = run_with(&p, &setting);
  CHECK(p_run != NULL);
  struct tb_chain* p_chain = chain_of(p_run);
  const struct tb_kernel* p_kernel = tb_run_target(p_run)->p_kernel;
  double low = INFINITY, high = -INFINITY;
  for (int k = 0; k < 2000; ++k) {
    /* far out on both sides, too */
    const double v_theta[] = {0.4 + 0.01 * (k - 1000), -0.2 + 0.002 * k};
    double beyond;
    memcpy(p_chain->v_theta, v_theta, sizeof v_theta);
    CHECK(tb_surrogate_beyond(p_chain, surrogate_of(p_run), v_theta, &beyond) ==
          TB_STATUS_ok);
    low = fmin(low, beyond);
    high = fmax(high, beyond);
    const double n_always = p_chain->counts.n_always;
    CHECK(p_kernel->type->step(p_chain) == TB_STATUS_ok);
    CHECK(p_chain->counts.n_always - n_always ==
          N_ROW * (setting.n_inner + 1)); /* where it starts, too */
  }
  CHECK(low < -5 && high > 2); /* what the surrogate has beyond its law */
  tb_run_destroy(p_run);
  pair_free(&p);
}

/* without hyperparameters there is nothing that these could move */
static void scales_need_hyperparameters(struct check* p_check) {
  struct pair p;
  struct setting setting = {.n_proposal = 1,
                            .v_proposal = v_place,
                            .n_inner = 1,
                            .scale = 1};
  const double v_bad[][2] = {{1, 1}, {-0.1, 1}, {0, 0}, {0, 1.5}, {0, 1e9}};
  pair_create(p_check, &p, "binomial");
  for (size_t k = 0; k < sizeof v_bad / sizeof *v_bad; ++k) {
    setting.v_option = v_bad[k];
    CHECK(run_with(&p, &setting) == NULL);
  }
  setting.v_option = v_option;
  struct fixture all = p.all;
  struct pair plain = {.base = p.base, .all = p.base};
  struct tb_run* p_run = run_with(&plain, &setting);
  CHECK(p_run == NULL); /* "at" has too many coordinates */
  p.all = all;
  pair_free(&p);
}

const struct check_case check_proposals[] = {
    {"a surrogate with hyperparameters", surrogate_with_scales},
    {"steps with hyperparameters are reversible", steps_with_scales},
    {"slices of two modes are reversible", slices_of_two_modes_are_reversible},
    {"steps of a surrogate's chain are as many everywhere",
     steps_are_as_many_everywhere},
    {"proposals with hyperparameters refuse", scales_need_hyperparameters},
    {NULL, NULL}};
