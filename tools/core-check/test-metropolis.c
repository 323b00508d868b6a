/* The Metropolis kernels on densities with known moments: a normal with
 * correlation, a banana, a mixture of two normals, and a normal cut off by
 * bounds or by a density that is not a number. */
#include "check.h"
#include "fixture.h"

#include "gradients/gradient.h"
#include "kernels/kernel.h"
#include "kernels/prolate.h"
#include "models/framed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 2, N_MOMENT = 6 };

/* ---- densities: one "observation", no prior ---- */

/* theta ~ N(0, S), S = (1, 0.6; 0.6, 1) */
static double normal_density(const double* v, double* v_gradient) {
  const double a = 1 / (1 - 0.36), b = -0.6 * a;
  v_gradient[0] = -a * v[0] - b * v[1];
  v_gradient[1] = -b * v[0] - a * v[1];
  return 0.5 * (v[0] * v_gradient[0] + v[1] * v_gradient[1]);
}

static void normal_draw(struct tb_rng* p_rng, double* v) {
  v[0] = tb_rng_norm(p_rng);
  v[1] = 0.6 * v[0] + 0.8 * tb_rng_norm(p_rng);
}

/* theta_1 ~ N(0, 1), theta_2 ~ N((theta_1^2 - 1) / 2, 0.7^2) */
static double banana_density(const double* v, double* v_gradient) {
  const double t = v[1] - 0.5 * (v[0] * v[0] - 1), s2 = 0.49;
  v_gradient[0] = -v[0] + t * v[0] / s2;
  v_gradient[1] = -t / s2;
  return -0.5 * (v[0] * v[0] + t * t / s2);
}

static void banana_draw(struct tb_rng* p_rng, double* v) {
  v[0] = tb_rng_norm(p_rng);
  v[1] = 0.5 * (v[0] * v[0] - 1) + 0.7 * tb_rng_norm(p_rng);
}

/* N((-0.7, -0.7), 0.6^2 I) with weight 0.3, N((0.7, 0.7), 0.6^2 I) with 0.7 */
static double mixture_density(const double* v, double* v_gradient) {
  const double s2 = 0.36, a = 0.7;
  double q[2];
  for (int k = 0; k < 2; ++k) {
    const double x = v[0] - (k ? a : -a), y = v[1] - (k ? a : -a);
    q[k] = log(k ? 0.7 : 0.3) - 0.5 * (x * x + y * y) / s2;
  }
  const double top = fmax(q[0], q[1]);
  const double sum = exp(q[0] - top) + exp(q[1] - top);
  const double up = exp(q[1] - top) / sum;
  for (int j = 0; j < 2; ++j) {
    v_gradient[j] = -(v[j] - a * (2 * up - 1)) / s2;
  }
  return top + log(sum);
}

static void mixture_draw(struct tb_rng* p_rng, double* v) {
  const double a = tb_rng_unif(p_rng) < 0.7 ? 0.7 : -0.7;
  v[0] = a + 0.6 * tb_rng_norm(p_rng);
  v[1] = a + 0.6 * tb_rng_norm(p_rng);
}

/* the normal, not a number where theta_1 > 0.5 */
static double broken_density(const double* v, double* v_gradient) {
  const double density = normal_density(v, v_gradient);
  return v[0] > 0.5 ? NAN : density;
}

static bool cut_is_outside(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           const double* v_theta) {
  (void)p_model;
  (void)p_work;
  return v_theta[0] > 0.5;
}

static void cut_draw(struct tb_rng* p_rng, double* v) {
  do {
    normal_draw(p_rng, v);
  } while (v[0] > 0.5);
}

struct density {
  double (*log_density)(const double* v, double* v_gradient);
  void (*draw)(struct tb_rng* p_rng, double* v);
  size_t n_call;
};

static void density_destroy(struct tb_model* p_model) {
  (void)p_model;
}

static enum tb_status density_prior(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const double* v_theta,
                                    double* v_gradient,
                                    double* p_log_prior) {
  (void)p_work;
  (void)v_theta;
  (void)p_log_prior;
  memset(v_gradient, 0, p_model->n_dim * sizeof(double));
  return TB_STATUS_ok;
}

static enum tb_status density_gradient(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       const struct tb_reference* p_reference,
                                       const struct tb_sums* p_sums) {
  struct density* p = p_model->p_self;
  double v_gradient[N_DIM];
  (void)p_work;
  (void)p_batch;
  (void)p_reference;
  const double log_density = p->log_density(v_theta, v_gradient);
  p->n_call += 1;
  if (p_sums->p_log_lik != NULL) {
    *p_sums->p_log_lik += log_density;
  }
  for (size_t j = 0; p_sums->v_gradient != NULL && j < N_DIM; ++j) {
    p_sums->v_gradient[j] += v_gradient[j];
  }
  return TB_STATUS_ok;
}

static const struct tb_model_type density_type = {
    .name = "density",
    .destroy = density_destroy,
    .prior = density_prior,
    .gradient = density_gradient,
};

static const struct tb_model_type cut_type = {
    .name = "cut",
    .destroy = density_destroy,
    .prior = density_prior,
    .gradient = density_gradient,
    .is_outside = cut_is_outside,
};

static const struct tb_model_type silent_type = {
    .name = "silent",
    .flags = TB_MODEL_NO_DENSITY,
    .destroy = density_destroy,
    .prior = density_prior,
    .gradient = density_gradient,
};

static struct fixture density_fixture(const struct tb_model_type* type,
                                      struct density* p_density) {
  return (struct fixture){.model = {.type = type,
                                    .n_data = 1,
                                    .n_dim = N_DIM,
                                    .n_natural = N_DIM,
                                    .p_self = p_density}};
}

/* ---- moments ---- */

static void add_moments(const double* v, double* v_sum) {
  const double v_f[N_MOMENT] =
      {v[0], v[1], v[0] * v[0], v[1] * v[1], v[0] * v[1], v[0] * v[0] * v[1]};
  for (int k = 0; k < N_MOMENT; ++k) {
    v_sum[k] += v_f[k];
  }
}

/* by direct draws, the same for every kernel: `n` of them */
static void
true_moments(const struct density* p, double* v_mean, double* v_se) {
  const size_t n = 500000;
  struct tb_rng rng;
  double v_square[N_MOMENT] = {0};
  tb_rng_init(&rng, 99, 0, TB_STREAM_noise);
  memset(v_mean, 0, N_MOMENT * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    double v[N_DIM], v_f[N_MOMENT] = {0};
    p->draw(&rng, v);
    add_moments(v, v_f);
    for (int k = 0; k < N_MOMENT; ++k) {
      v_mean[k] += v_f[k] / (double)n;
      v_square[k] += v_f[k] * v_f[k] / (double)n;
    }
  }
  for (int k = 0; k < N_MOMENT; ++k) {
    v_se[k] = sqrt((v_square[k] - v_mean[k] * v_mean[k]) / (double)n);
  }
}

/* Independent chains: each one's average over its last n_average of n_step
 * draws is one number; z scores of their means against the truth. */
static void check_moments(struct check* p_check,
                          const struct density* p_density,
                          const double* v_draw,
                          size_t n_step,
                          size_t n_chain,
                          const char* label) {
  double v_mean[N_MOMENT], v_se[N_MOMENT];
  double v_sum[N_MOMENT] = {0}, v_square[N_MOMENT] = {0};
  true_moments(p_density, v_mean, v_se);
  for (size_t c = 0; c < n_chain; ++c) {
    double v_average[N_MOMENT] = {0};
    for (size_t t = 0; t < n_step; ++t) {
      const double v[N_DIM] = {v_draw[t + n_step * c],
                               v_draw[t + n_step * (c + n_chain)]};
      add_moments(v, v_average);
    }
    for (int k = 0; k < N_MOMENT; ++k) {
      const double a = v_average[k] / (double)n_step;
      v_sum[k] += a / (double)n_chain;
      v_square[k] += a * a / (double)n_chain;
    }
  }
  for (int k = 0; k < N_MOMENT; ++k) {
    const double variance =
        (v_square[k] - v_sum[k] * v_sum[k]) / (double)(n_chain - 1);
    const double z =
        (v_sum[k] - v_mean[k]) / sqrt(variance + v_se[k] * v_se[k]);
    if (!(fabs(z) < 5)) {
      check_fail(p_check,
                 __FILE__,
                 __LINE__,
                 "%s: moment %d is %.4f, not %.4f (z = %.1f)",
                 label,
                 k,
                 v_sum[k],
                 v_mean[k],
                 z);
    }
  }
}

/* momenta that follow the gradient: short memories, small noise */
static const double v_short[2] = {0.2, 0.5}, v_small[2] = {0.7, 1};

static const struct {
  const char* label;
  struct fixture_run what;
} v_exact[] = {{"mala", {.kernel = "mala", .step_size = 0.4}},
               {"mala, directional",
                {.kernel = "mala", .step_size = 0.3, .sigma_direction = 0.5}},
               {"barker", {.kernel = "barker", .step_size = 0.8}},
               {"hmc", {.kernel = "hmc", .step_size = 0.4, .steps = 3}},
               {"adam_mcmc, exact",
                {.kernel = "adam_mcmc",
                 .step_size = 0.6,
                 .learning_rate = 0.2,
                 .sigma_direction = 0.7,
                 .exact = 1}},
               {"adam_mcmc, exact, short memory",
                {.kernel = "adam_mcmc",
                 .step_size = 0.4,
                 .learning_rate = 0.4,
                 .sigma_direction = 0.7,
                 .exact = 1,
                 .v_beta = v_short,
                 .v_momentum_sd = v_small}}};
enum { n_exact = sizeof v_exact / sizeof v_exact[0] };

static struct density v_density[] = {
    {.log_density = normal_density, .draw = normal_draw},
    {.log_density = banana_density, .draw = banana_draw},
    {.log_density = mixture_density, .draw = mixture_draw}};
enum { n_density = sizeof v_density / sizeof v_density[0] };

/* Chains that start at stationarity stay there: nothing depends on mixing, and
 * the momenta start from their own law. */
static void stationary_stays(struct check* p_check) {
  enum { N_CHAIN = 150, N_STEP = 800 };
  double* v_init = check_alloc(N_DIM * N_CHAIN, sizeof(double));
  double* v_draw = check_alloc(N_DIM * N_CHAIN * N_STEP, sizeof(double));
  for (size_t d = 0; d < n_density; ++d) {
    struct fixture f = density_fixture(&density_type, &v_density[d]);
    struct tb_rng rng;
    tb_rng_init(&rng, 5, 0, TB_STREAM_noise);
    for (size_t c = 0; c < N_CHAIN; ++c) {
      v_density[d].draw(&rng, v_init + N_DIM * c);
    }
    for (size_t k = 0; k < n_exact; ++k) {
      struct fixture_run what = v_exact[k].what;
      what.estimator = "full";
      what.n_chain = N_CHAIN;
      what.n_sampling = N_STEP;
      what.seed = 3;
      what.v_init = v_init;
      CHECK(fixture_run_go(&f, &what, N_STEP, v_draw) == TB_STATUS_ok);
      check_moments(p_check,
                    &v_density[d],
                    v_draw,
                    N_STEP,
                    N_CHAIN,
                    v_exact[k].label);
    }
  }
  free(v_init);
  free(v_draw);
}

/* ... and chains that start elsewhere get there */
static void chains_arrive(struct check* p_check) {
  enum { N_CHAIN = 40, N_STEP = 5000 };
  double v_init[N_DIM * N_CHAIN];
  double* v_draw = check_alloc(N_DIM * N_CHAIN * N_STEP, sizeof(double));
  for (size_t c = 0; c < N_DIM * N_CHAIN; ++c) {
    v_init[c] = c % 4 < 2 ? 1.5 : -1;
  }
  for (size_t d = 0; d < n_density; ++d) {
    struct fixture f = density_fixture(&density_type, &v_density[d]);
    for (size_t k = 0; k < n_exact; ++k) {
      struct fixture_run what = v_exact[k].what;
      what.estimator = "full";
      what.n_chain = N_CHAIN;
      what.n_warmup = 500;
      what.n_sampling = N_STEP;
      what.seed = 4;
      what.v_init = v_init;
      CHECK(fixture_run_go(&f, &what, 1000, v_draw) == TB_STATUS_ok);
      check_moments(p_check,
                    &v_density[d],
                    v_draw,
                    N_STEP,
                    N_CHAIN,
                    v_exact[k].label);
    }
  }
  free(v_draw);
}

/* ---- what cannot be accepted ---- */

static void impossible_proposals_are_counted(struct check* p_check) {
  enum { N_CHAIN = 150, N_STEP = 800 };
  double* v_init = check_alloc(N_DIM * N_CHAIN, sizeof(double));
  double* v_draw = check_alloc(N_DIM * N_CHAIN * N_STEP, sizeof(double));
  for (int is_cut = 0; is_cut < 2; ++is_cut) {
    struct density density = {.log_density =
                                  is_cut ? normal_density : broken_density,
                              .draw = cut_draw};
    struct fixture f =
        density_fixture(is_cut ? &cut_type : &density_type, &density);
    struct tb_rng rng;
    tb_rng_init(&rng, 6, 0, TB_STREAM_noise);
    for (size_t c = 0; c < N_CHAIN; ++c) {
      cut_draw(&rng, v_init + N_DIM * c);
    }
    for (size_t k = 0; k < n_exact; ++k) {
      struct fixture_run what = v_exact[k].what;
      const struct tb_recorder recorder = {.n_keep = N_STEP, .v_draw = v_draw};
      struct tb_run* p_run;
      what.estimator = "full";
      what.n_chain = N_CHAIN;
      what.n_sampling = N_STEP;
      what.v_init = v_init;
      CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
      CHECK(tb_run_start(p_run) == TB_STATUS_ok);
      tb_run_advance(p_run, N_STEP, 1, &recorder);
      double n_propose = 0, n_accept = 0, n_outside = 0, n_nonfinite = 0;
      for (size_t c = 0; c < N_CHAIN; ++c) {
        const struct tb_counts* p_counts = &tb_run_chain(p_run, c)->counts;
        n_propose += p_counts->n_propose;
        n_accept += p_counts->n_accept;
        n_outside += p_counts->n_outside;
        n_nonfinite += p_counts->n_nonfinite;
      }
      tb_run_destroy(p_run);
      CHECK(n_propose == (double)N_STEP * N_CHAIN);
      CHECK((n_outside > 0.01 * n_propose) == is_cut);
      CHECK((n_nonfinite > 0.01 * n_propose) == !is_cut);
      CHECK(n_accept + n_outside + n_nonfinite <= n_propose);
      check_moments(p_check,
                    &density,
                    v_draw,
                    N_STEP,
                    N_CHAIN,
                    v_exact[k].label);
    }
  }
  free(v_init);
  free(v_draw);
}

static void impossible_starts_are_refused(struct check* p_check) {
  const double v_init[N_DIM] = {1, 0};
  for (int is_cut = 0; is_cut < 2; ++is_cut) {
    struct density density = {.log_density =
                                  is_cut ? normal_density : broken_density};
    struct fixture f =
        density_fixture(is_cut ? &cut_type : &density_type, &density);
    for (size_t k = 0; k < n_exact; ++k) {
      struct fixture_run what = v_exact[k].what;
      struct tb_run* p_run;
      what.estimator = "full";
      what.n_chain = 1;
      what.n_sampling = 1;
      what.v_init = v_init;
      CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
      CHECK(tb_run_start(p_run) == TB_STATUS_nonfinite);
      tb_run_destroy(p_run);
    }
  }
}

/* the bounds of theta_1 = 0.2 + phi_1 / 4 */
static void frames_keep_the_bounds(struct check* p_check) {
  const double v_center[N_DIM] = {0.2, -1}, v_chol[N_DIM] = {4, 1};
  const double v_inside[N_DIM] = {1.1, 9}, v_outside[N_DIM] = {1.3, 0};
  struct density density = {.log_density = normal_density};
  struct fixture f = density_fixture(&cut_type, &density);
  struct tb_model model;
  CHECK(tb_model_frame(&f.model, v_center, v_chol, true, &model) ==
        TB_STATUS_ok);
  const struct tb_workspace work = {
      .p_scratch = check_alloc(1, model.type->workspace_size(&model, 1))};
  CHECK(!model.type->is_outside(&model, &work, v_inside));
  CHECK(model.type->is_outside(&model, &work, v_outside));
  free(work.p_scratch);
  model.type->destroy(&model);
}

/* The current state's density and gradient are remembered. */
static void one_evaluation_a_step(struct check* p_check) {
  enum { N_STEP = 50 };
  const double v_init[N_DIM] = {0.1, 0.2};
  for (size_t k = 0; k < n_exact; ++k) {
    struct density density = {.log_density = normal_density};
    struct fixture f = density_fixture(&density_type, &density);
    struct fixture_run what = v_exact[k].what;
    what.estimator = "full";
    what.n_chain = 1;
    what.n_sampling = N_STEP;
    what.v_init = v_init;
    CHECK(fixture_run_go(&f, &what, N_STEP, NULL) == TB_STATUS_ok);
    const size_t n_each = what.steps > 0 ? (size_t)what.steps : 1;
    CHECK(density.n_call == 1 + n_each * N_STEP);
  }
}

static void members_are_refused(struct check* p_check) {
  const double v_init[N_DIM] = {0, 0};
  const struct fixture_run v_bad[] = {
      {.kernel = "mala", .estimator = "saga"},
      {.kernel = "mala", .estimator = "svrg"},
      {.kernel = "barker", .estimator = "saga"},
      {.kernel = "hmc", .estimator = "cv"},
      {.kernel = "adam_mcmc", .estimator = "cv", .exact = 1},
      {.kernel = "mala", .estimator = "full", .ratio = 1}};
  struct density density = {.log_density = normal_density};
  struct fixture f = density_fixture(&silent_type, &density);
  struct tb_run* p_run;
  for (size_t k = 0; k < n_exact; ++k) {
    struct fixture_run what = v_exact[k].what;
    what.estimator = "full";
    what.n_chain = 1;
    what.v_init = v_init;
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_unsupported);
  }
  fixture_gaussian(&f, 50, N_DIM);
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    struct fixture_run what = v_bad[k];
    what.step_size = 0.1;
    what.n_chain = 1;
    what.v_init = v_init;
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_unsupported);
  }
  fixture_free(&f);
}

/* ---- the law with a long axis ---- */

/* in the basis of its axis the density is a product of two */
static void prolate_density_is_exact(struct check* p_check) {
  const double v_ratio[] = {0, 1e-3, 1, 1e3, 1e6, 1e10};
  for (size_t k = 0; k < sizeof v_ratio / sizeof v_ratio[0]; ++k) {
    const double s = 1e-3, length = 50, t = v_ratio[k] * s / length;
    const double v_axis[2] = {0.6 * length, 0.8 * length};
    const struct tb_prolate law = {.sd = s,
                                   .sd_axis = t,
                                   .v_axis = v_axis,
                                   .n_dim = 2};
    const double spread = s * s * (1 + v_ratio[k] * v_ratio[k]);
    /* some sds along and across */
    const double along = 1.3 * sqrt(spread), across = -0.7 * s;
    const double v_z[2] = {0.6 * along - 0.8 * across,
                           0.8 * along + 0.6 * across};
    const double expected =
        -0.5 * (1.3 * 1.3 + 0.7 * 0.7 + log(spread / (s * s)));
    /* the rounding of z along the axis is seen across it */
    const double tolerance = 1e-12 + 1e-15 * v_ratio[k];
    CHECK_CLOSE(tb_prolate_log_density(&law, v_z),
                expected,
                tolerance * fabs(expected) + tolerance);
  }
}

static void prolate_draws_have_the_covariance(struct check* p_check) {
  enum { N = 200000 };
  const double v_axis[3] = {1, -2, 0.5};
  const struct tb_prolate law = {.sd = 0.5,
                                 .sd_axis = 0.8,
                                 .v_axis = v_axis,
                                 .n_dim = 3};
  struct tb_rng rng;
  double v_sum[3][3] = {{0}};
  tb_rng_init(&rng, 7, 0, TB_STREAM_noise);
  for (size_t i = 0; i < N; ++i) {
    double v_z[3] = {0}, v_scratch[3];
    tb_prolate_draw(&law, &rng, v_scratch, v_z);
    for (int j = 0; j < 3; ++j) {
      for (int l = 0; l < 3; ++l) {
        v_sum[j][l] += v_z[j] * v_z[l] / N;
      }
    }
  }
  double v_sigma[3][3];
  for (int j = 0; j < 3; ++j) {
    for (int l = 0; l < 3; ++l) {
      v_sigma[j][l] = 0.64 * v_axis[j] * v_axis[l] + (j == l ? 0.25 : 0);
    }
  }
  for (int j = 0; j < 3; ++j) {
    for (int l = 0; l < 3; ++l) {
      const double variance =
          v_sigma[j][j] * v_sigma[l][l] + v_sigma[j][l] * v_sigma[j][l];
      CHECK_CLOSE(v_sum[j][l], v_sigma[j][l], 5 * sqrt(variance / N));
    }
  }
}

const struct check_case check_metropolis[] = {
    {"exact kernels: chains at stationarity stay there", stationary_stays},
    {"exact kernels: chains from elsewhere arrive", chains_arrive},
    {"impossible proposals are rejected and counted",
     impossible_proposals_are_counted},
    {"impossible starts are refused", impossible_starts_are_refused},
    {"frames keep the bounds", frames_keep_the_bounds},
    {"a Metropolis step costs one evaluation", one_evaluation_a_step},
    {"members that cannot work with a Metropolis kernel are refused",
     members_are_refused},
    {"the prolate density is exact, however long the axis",
     prolate_density_is_exact},
    {"prolate draws have the covariance", prolate_draws_have_the_covariance},
    {NULL, NULL}};
