/* The factorised test: exactness by enumeration and quadrature, the bounds it
 * rests on, shells made by threads. */
#include "check.h"
#include "fixture.h"

#include "gradients/factors.h"
#include "gradients/surrogate.h"
#include "kernels/kernel.h"
#include "proposals/proposal.h"
#include "responses/response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM = 3 };

/* ---- models and runs ---- */

/* Its rows bend the other way where they are far from their predictors: with
 * many of them there is no normal law to propose from. */
static bool is_concave(const struct tb_response_type* type) {
  return strcmp(type->name, "student") != 0;
}

static const double v_middle[N_DIM] = {0.03, -0.02, 0.01};

/* Rows whose leverage goes up to 1, of all weights, with predictors of -30 to
 * 30, or near those at v_middle where they must be; kind of the priors. */
static void steep_model(struct fixture* p,
                        size_t place,
                        size_t n_data,
                        size_t n_dim,
                        double kind) {
  const struct tb_response_type* type = tb_response_registry[place];
  const size_t n_y = tb_response_n_y(type);
  const size_t n_row = n_dim + n_y + 2;
  double* v_x = check_alloc(n_data * n_row + 4 * n_dim, sizeof(double));
  double* v_y = v_x + n_data * n_dim;
  double* v_weight = v_y + n_y * n_data;
  double* v_offset = v_weight + n_data;
  double* v_prior = v_offset + n_data;
  struct tb_rng rng;
  tb_rng_init(&rng, 23, place, TB_STREAM_noise);
  for (size_t i = 0; i < n_data; ++i) {
    /* a shape multiplies predictors: e^{1.5 eta} would leave no digits */
    const double most = strcmp(type->name, "weibull_aft") == 0 ? 6 : 20;
    const double size = i % 10 == 3 ? most : i % 7 == 2 ? 4 : 1;
    for (size_t j = 0; j < n_dim; ++j) {
      v_x[j * n_data + i] = size * tb_rng_norm(&rng);
    }
    const double y = strcmp(type->name, "binomial") == 0
                         ? floor(3 * tb_rng_unif(&rng)) / 2
                         : floor(3 * tb_rng_unif(&rng));
    v_y[i] = fixture_has_value(type, y) ? y : y + 0.5;
    v_weight[i] = i % 5 == 1 ? 20 : 0.5 + tb_rng_unif(&rng);
    /* e^30 would drown all other rows of these */
    const bool is_steep =
        strcmp(type->link, "log") == 0 || strcmp(type->link, "cloglog") == 0;
    /* e^30 is on the other side */
    const bool is_falling = strcmp(type->name, "Gamma") == 0 ||
                            strcmp(type->name, "weibull_aft") == 0;
    const double side = is_falling ? -1 : 1;
    const double far = side * (i % 12 == 5 ? (is_steep ? 4 : 30) : -30);
    v_offset[i] = i % 6 == 5 ? far : tb_rng_norm(&rng);
    if (!is_concave(type)) {
      v_y[i] = v_offset[i] + tb_rng_norm(&rng) / sqrt(v_weight[i]);
      for (size_t j = 0; j < n_dim; ++j) {
        v_y[i] += v_middle[j] * v_x[j * n_data + i];
      }
    }
  }
  fixture_more_columns(type, n_data, v_y);
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = kind;
    v_prior[n_dim + j] = 0.1 * (double)j;
    v_prior[2 * n_dim + j] = 0.7;
    v_prior[3 * n_dim + j] = 3.5;
  }
  const double number = (double)place, v_aux[] = {1.5, 5};
  const struct tb_param v_param[] = {
      {"x", v_x, NULL, n_data * n_dim, n_data},
      {"y", v_y, NULL, n_y * n_data, n_data},
      {"weights", v_weight, NULL, n_data, n_data},
      {"offset", v_offset, NULL, n_data, n_data},
      {"response", &number, NULL, 1, 1},
      {"aux", v_aux, NULL, type->n_aux, type->n_aux},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim},
      {"prior_shape", v_prior + 3 * n_dim, NULL, n_dim, n_dim}};
  const struct tb_params params = {v_param, sizeof v_param / sizeof v_param[0]};
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("glm");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  p->work.p_scratch =
      check_alloc(p->model.type->workspace_size(&p->model, n_data) + 64, 1);
  p->work.p_rng = &p->rng;
  free(v_x);
}

/* What a run has in its surrogate and how it proposes; of zeros: the law, by
 * the kernel's own proposals. */
struct setting {
  size_t n_awkward;
  const double* v_awkward; /* from 0 */
  const double* v_metric;  /* n_dim x n_dim; NULL: none */
  const double* v_free;    /* likewise, where there is a metric */
  size_t n_free;           /* its columns; 0: all */
  const double* v_line;    /* of one; NULL: none */
  size_t n_proposal;
  const double* v_proposal; /* places */
  const double* v_option;   /* two of each */
  double n_inner;
};

/* a run of n_chain chains, all at v_theta */
static struct tb_run* run_with(struct fixture* p,
                               const double* v_at,
                               const double* v_theta,
                               double scale,
                               size_t n_chain,
                               const struct setting* p_setting) {
  const size_t n_dim = p->model.n_dim;
  const double factorised = 1;
  const double whole = p_setting->n_awkward > 0 || p_setting->n_proposal > 0;
  const size_t n = p_setting->n_proposal;
  const size_t n_free = p_setting->n_free > 0 ? p_setting->n_free : n_dim;
  double v_share[8];
  for (size_t k = 0; k < n; ++k) {
    v_share[k] = 1 / (double)n;
  }
  double* v_init = check_alloc(n_chain * n_dim, sizeof(double));
  for (size_t c = 0; c < n_chain; ++c) {
    memcpy(v_init + c * n_dim, v_theta, n_dim * sizeof(double));
  }
  const struct tb_param v_estimator[] = {
      {"at", v_at, NULL, n_dim, n_dim},
      {"scale", &scale, NULL, 1, 1},
      {"factorised", &factorised, NULL, 1, 1},
      {"whole_prior", &whole, NULL, 1, 1},
      {"awkward",
       p_setting->v_awkward,
       NULL,
       p_setting->n_awkward,
       p_setting->n_awkward},
      {"lines", p_setting->v_line, NULL, n_dim, n_dim},
      {"metric", p_setting->v_metric, NULL, n_dim * n_dim, n_dim},
      {"free", p_setting->v_free, NULL, n_dim * n_free, n_dim}};
  const struct tb_param v_kernel[] = {
      {"proposals", p_setting->v_proposal, NULL, n, n},
      {"shares", v_share, NULL, n, n},
      {"options", p_setting->v_option, NULL, 2 * n, 2 * n},
      {"inner", &p_setting->n_inner, NULL, 1, 1}};
  const struct tb_params estimator = {v_estimator,
                                      p_setting->v_line == NULL     ? 5
                                      : p_setting->v_metric == NULL ? 6
                                      : p_setting->v_free == NULL   ? 7
                                                                    : 8};
  const struct tb_params kernel = {v_kernel, n > 0 ? 4 : 0};
  const struct tb_run_spec spec = {.p_model = &p->model,
                                   .kernel = {"smh", kernel},
                                   .estimator = {"cv2", estimator},
                                   .schedule = {"constant", {NULL, 0}},
                                   .n_chain = n_chain,
                                   .n_sampling = 1,
                                   .n_every = 1,
                                   .seed = 6,
                                   .likelihood_scale = scale,
                                   .v_init = v_init};
  struct tb_run* p_run;
  const enum tb_status status = tb_run_create(&spec, 1, &p_run);
  free(v_init);
  return status == TB_STATUS_ok ? p_run : NULL;
}

static struct tb_run* run_at(struct fixture* p,
                             const double* v_at,
                             const double* v_theta,
                             double scale,
                             size_t n_chain) {
  const struct setting plain = {.n_awkward = 0};
  return run_with(p, v_at, v_theta, scale, n_chain, &plain);
}

static struct tb_chain* chain_of(struct tb_run* p_run, size_t c) {
  return (struct tb_chain*)tb_run_chain(p_run, c);
}

static const struct tb_cv2* cv2_of(struct tb_run* p_run) {
  return tb_run_target(p_run)->p_estimator->p_self;
}

static const struct tb_law* law_of(struct tb_run* p_run) {
  return &tb_factors_surrogate(cv2_of(p_run)->p_factors)->law;
}

/* log density of the law, without its constant */
static double law_density(struct tb_run* p_run, const double* v_theta) {
  const struct tb_law* p_law = law_of(p_run);
  double v_z[N_DIM], sum = 0;
  tb_frame_to_sampler(&p_law->frame, v_theta, v_z);
  for (size_t j = 0; j < p_law->frame.n_dim; ++j) {
    sum += (v_z[j] - p_law->v_mean[j]) * (v_z[j] - p_law->v_mean[j]);
  }
  return -0.5 * sum;
}

/* log pi, and the largest of its terms */
static double log_target(const struct fixture* p,
                         const double* v_theta,
                         double scale,
                         double* p_size) {
  const struct tb_batch all = {.n_batch = p->model.n_data, .weight = 1};
  double v_gradient[N_DIM], log_prior = 0, log_lik = 0;
  double* v_row = check_alloc(p->model.n_data, sizeof(double));
  p->model.type->prior(&p->model, &p->work, v_theta, v_gradient, &log_prior);
  p->model.type->log_lik(&p->model, &p->work, v_theta, &all, v_row);
  *p_size = fabs(log_prior);
  for (size_t i = 0; i < p->model.n_data; ++i) {
    log_lik += v_row[i];
    *p_size += scale * fabs(v_row[i]);
  }
  free(v_row);
  return log_prior + scale * log_lik;
}

/* ref + L^{-T} z */
static void place_at(struct tb_run* p_run, const double* v_z, double* v_theta) {
  tb_frame_to_parameter(&law_of(p_run)->frame, v_z, v_theta);
}

/* a direction, of length 1 */
static void direction(struct tb_rng* p_rng, size_t n_dim, double* v) {
  double square = 0;
  for (size_t j = 0; j < n_dim; ++j) {
    v[j] = tb_rng_norm(p_rng);
    square += v[j] * v[j];
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v[j] /= sqrt(square);
  }
}

static const struct tb_surrogate* surrogate_of(struct tb_run* p_run) {
  return tb_factors_surrogate(cv2_of(p_run)->p_factors);
}

/* log pi^ where a chain of the run looks at it */
static double log_surrogate(struct tb_run* p_run, const double* v_theta) {
  double beyond;
  if (tb_surrogate_beyond(chain_of(p_run, 0),
                          surrogate_of(p_run),
                          v_theta,
                          &beyond) != TB_STATUS_ok) {
    abort();
  }
  return beyond + law_density(p_run, v_theta);
}

static const double v_first_five[] = {0, 1, 2, 3, 4};
static const double v_two[] = {1, 3};
enum { BLOCK = 6 }; /* its place in proposals/registry.c */

/* ---- exactness ---- */

/* a(theta, theta') / a(theta', theta) is the ratio of pi over the surrogate: of
 * five rows, with every coin of the test; thinned or looked at always, in every
 * shell, off the mode, with every prior, tempered or not. A surrogate of all
 * rows is the target: all are accepted. */
static void balance_with(struct check* p_check,
                         const struct setting* p_setting) {
  const double v_kind[] = {0, 1, 2, 5, 6};
  for (size_t place = 0; place < tb_response_count(); ++place) {
    if (tb_response_registry[place]->remainder == NULL) {
      continue;
    }
    for (int k = 0; k < 5; ++k) {
      for (int tempered = 0; tempered < 2; ++tempered) {
        struct fixture f;
        struct tb_rng rng;
        const double scale = tempered ? 0.37 : 1;
        const double v_off[N_DIM] = {0.2, -0.1, 0.3};
        const double* v_at =
            is_concave(tb_response_registry[place]) ? v_off : v_middle;
        steep_model(&f, place, 5, N_DIM, v_kind[k]);
        tb_rng_init(&rng, 1, 0, TB_STREAM_noise);
        struct tb_run* p_run = run_with(&f, v_at, v_at, scale, 1, p_setting);
        CHECK(p_run != NULL);
        if (p_run == NULL) {
          fixture_free(&f);
          continue;
        }
        struct tb_chain* p_chain = chain_of(p_run, 0);
        for (int pair = 0; pair < 40; ++pair) {
          double v_z[2][N_DIM], v_theta[2][N_DIM], v_accept[2], v_log[2];
          double size = 0;
          for (int s = 0; s < 2; ++s) {
            /* both of a common length, or one far out */
            const double length = pair % 4 == 3 && s == 1 ? 8 : 2;
            direction(&rng, N_DIM, v_z[s]);
            for (size_t j = 0; j < N_DIM; ++j) {
              v_z[s][j] *= length * tb_rng_unif(&rng);
            }
            place_at(p_run, v_z[s], v_theta[s]);
            double terms;
            v_log[s] = log_target(&f, v_theta[s], scale, &terms) -
                       log_surrogate(p_run, v_theta[s]);
            size = fmax(size, terms);
          }
          for (int s = 0; s < 2; ++s) {
            double largest;
            memcpy(p_chain->v_theta, v_theta[s], sizeof v_theta[s]);
            CHECK(tb_factors_acceptance(p_chain,
                                        v_theta[1 - s],
                                        &v_accept[s],
                                        &largest) == TB_STATUS_ok);
            CHECK(largest <= 1 + 1e-6);
            CHECK(v_accept[s] >= 0 && v_accept[s] <= 1);
          }
          const bool is_inside =
              isfinite(v_log[0]) && isfinite(v_log[1]); /* of the bounds */
          if (p_setting->n_awkward == 5) {
            CHECK(v_accept[0] == 1 && v_accept[1] == 1);
          }
          if (is_inside && v_accept[0] > 1e-200 && v_accept[1] > 1e-200) {
            CHECK_CLOSE(log(v_accept[0]) - log(v_accept[1]),
                        v_log[1] - v_log[0],
                        1e-12 * (1 + size));
          }
        }
        tb_run_destroy(p_run);
        fixture_free(&f);
      }
    }
  }
}

static void detailed_balance(struct check* p_check) {
  const struct setting v_setting[] = {
      {.n_awkward = 0},
      {.n_awkward = 2, .v_awkward = v_two},
      {.n_awkward = 5, .v_awkward = v_first_five}};
  for (size_t k = 0; k < 3; ++k) {
    balance_with(p_check, &v_setting[k]);
  }
}

/* the gradient of log pi^ is that of its differences */
static void surrogate_gradient(struct check* p_check) {
  const double v_kind[] = {1, 2, 6};
  for (int k = 0; k < 3; ++k) {
    for (size_t n = 0; n < 3; ++n) {
      struct fixture f;
      const double v_at[N_DIM] = {0.2, -0.1, 0.3}, v_size[] = {0, 2, 5};
      const struct setting setting = {.n_awkward = (size_t)v_size[n],
                                      .v_awkward =
                                          n == 1 ? v_two : v_first_five,
                                      .n_proposal = 1,
                                      .v_proposal = v_first_five,
                                      .v_option = v_first_five,
                                      .n_inner = 1};
      const double v_theta[N_DIM] = {0.3, 0.25, -0.2}, h = 1e-5;
      double v_gradient[N_DIM], v_moved[N_DIM];
      steep_model(&f, 1, 5, N_DIM, v_kind[k]);
      struct tb_run* p_run = run_with(&f, v_at, v_at, 0.7, 1, &setting);
      CHECK(tb_surrogate_gradient(chain_of(p_run, 0),
                                  surrogate_of(p_run),
                                  v_theta,
                                  v_gradient) == TB_STATUS_ok);
      for (size_t j = 0; j < N_DIM; ++j) {
        memcpy(v_moved, v_theta, sizeof v_moved);
        v_moved[j] = v_theta[j] + h;
        const double above = log_surrogate(p_run, v_moved);
        v_moved[j] = v_theta[j] - h;
        const double slope = (above - log_surrogate(p_run, v_moved)) / (2 * h);
        CHECK_CLOSE(v_gradient[j], slope, 1e-4 * (1 + fabs(slope)));
      }
      tb_run_destroy(p_run);
      fixture_free(&f);
    }
  }
}

/* A walk along a line says what the density and the surrogate say there: with a
 * prior of its own, and without. */
static void walks_are_along_lines(struct check* p_check) {
  const double v_kind[] = {1, 2, 6};
  for (int k = 0; k < 3; ++k) {
    struct fixture f;
    const double v_at[N_DIM] = {0.2, -0.1, 0.3}, v_s[] = {0.7, -2.5};
    const double v_line[N_DIM] = {0.5, -0.4, 0.1};
    const double v_theta[N_DIM] = {0.3, 0.25, -0.2};
    const struct setting setting = {.n_awkward = 5,
                                    .v_awkward = v_first_five,
                                    .v_line = v_line,
                                    .n_proposal = 1,
                                    .v_proposal = v_first_five,
                                    .v_option = v_first_five,
                                    .n_inner = 1};
    steep_model(&f, 1, 5, N_DIM, v_kind[k]);
    struct tb_run* p_run = run_with(&f, v_at, v_at, 0.7, 1, &setting);
    struct tb_chain* p_chain = chain_of(p_run, 0);
    const struct tb_surrogate* p = surrogate_of(p_run);
    struct tb_walk walk;
    double v_to[N_DIM], beyond, there, moved, here;
    tb_surrogate_walk(p_chain, p, 0, v_theta, &walk);
    CHECK(tb_surrogate_beyond(p_chain, p, v_theta, &beyond) == TB_STATUS_ok);
    CHECK(tb_surrogate_walk_beyond(p_chain, p, &walk, 0, v_to, &here) ==
          TB_STATUS_ok);
    for (int i = 0; i < 2; ++i) {
      const double s = v_s[i];
      CHECK(tb_surrogate_walk_beyond(p_chain, p, &walk, s, v_to, &moved) ==
            TB_STATUS_ok);
      tb_surrogate_walk_to(p, &walk, s, v_to);
      for (size_t j = 0; j < N_DIM; ++j) {
        CHECK_CLOSE(v_to[j], v_theta[j] + s * v_line[j], 1e-15);
      }
      const double law = law_density(p_run, v_to) - law_density(p_run, v_theta);
      CHECK_CLOSE(s * walk.slope - s * s / 2 * walk.bend,
                  law,
                  1e-12 * (1 + fabs(law)));
      CHECK(tb_surrogate_beyond(p_chain, p, v_to, &there) == TB_STATUS_ok);
      CHECK_CLOSE(moved - here, there - beyond, 1e-12 * (1 + fabs(there)));
    }
    tb_run_destroy(p_run);
    fixture_free(&f);
  }
}

/* Steps of a chain in one dimension that starts from pi: the law of (theta,
 * theta') is symmetric, and theta' is of pi again. Cells of theta by its
 * quantiles; S of 0, 2 and 5 rows of five, K = 1 and 3, each proposal by itself
 * and all of them. */
enum { N_GRID = 8000, N_LAW = 4, REACH = 80 };

static double grid_at(size_t i) {
  return REACH * (2 * ((double)i + 0.5) / N_GRID - 1);
}

/* the distribution of pi on the grid, in z of the law */
static void
target_cells(struct tb_run* p_run, const struct fixture* p, double* v_cdf) {
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < N_GRID; ++i) {
    const double z = grid_at(i);
    double theta, size;
    place_at(p_run, &z, &theta);
    v_cdf[i] = log_target(p, &theta, 1, &size);
    most = fmax(most, v_cdf[i]);
  }
  for (size_t i = 0; i < N_GRID; ++i) {
    sum += exp(v_cdf[i] - most);
    v_cdf[i] = sum;
  }
  for (size_t i = 0; i < N_GRID; ++i) {
    v_cdf[i] /= sum;
  }
}

static size_t cell_of(const double* v_cdf, double z) {
  const double at = floor((z / REACH + 1) / 2 * N_GRID);
  const size_t i = at < 0 ? 0 : at >= N_GRID ? N_GRID - 1 : (size_t)at;
  const size_t cell = (size_t)(N_LAW * v_cdf[i]);
  return cell < N_LAW ? cell : N_LAW - 1;
}

/* Did it move to and fro enough to tell? */
static bool symmetric_with(struct check* p_check,
                           const struct setting* p_setting) {
  enum { N_STEP = 30000 };
  struct fixture f;
  struct tb_rng rng;
  double v_cdf[N_GRID], v_pair[N_LAW * N_LAW] = {0};
  double v_before[N_LAW] = {0}, v_after[N_LAW] = {0};
  const double v_at[1] = {0.05};
  steep_model(&f, 1, 5, 1, 2);
  tb_rng_init(&rng, 9, 0, TB_STREAM_noise);
  struct tb_run* p_run = run_with(&f, v_at, v_at, 1, 1, p_setting);
  CHECK(p_run != NULL);
  struct tb_chain* p_chain = chain_of(p_run, 0);
  const struct tb_kernel* p_kernel = tb_run_target(p_run)->p_kernel;
  target_cells(p_run, &f, v_cdf);
  for (int t = 0; t < N_STEP; ++t) {
    const double u = tb_rng_unif(&rng);
    double z = grid_at(check_find(v_cdf, N_GRID, u)) +
               2.0 * REACH / N_GRID * (tb_rng_unif(&rng) - 0.5);
    const size_t from = cell_of(v_cdf, z);
    place_at(p_run, &z, p_chain->v_theta);
    CHECK(p_kernel->type->step(p_chain) == TB_STATUS_ok);
    tb_frame_to_sampler(&law_of(p_run)->frame, p_chain->v_theta, &z);
    const size_t to = cell_of(v_cdf, z);
    v_pair[from * N_LAW + to] += 1;
    v_before[from] += 1;
    v_after[to] += 1;
  }
  for (size_t a = 0; a < N_LAW; ++a) {
    CHECK_CLOSE(v_after[a], v_before[a], 6 * sqrt(v_before[a]));
  }
  size_t n;
  CHECK(check_symmetry(v_pair, N_LAW, &n) < 5);
  tb_run_destroy(p_run);
  fixture_free(&f);
  return n >= 3;
}

/* L of the law of symmetric_with()'s model, in one dimension */
static double law_precision(void) {
  const struct setting plain = {.n_awkward = 0};
  const double v_at[1] = {0.05};
  struct fixture f;
  steep_model(&f, 1, 5, 1, 2);
  struct tb_run* p_run = run_with(&f, v_at, v_at, 1, 1, &plain);
  const double root = law_of(p_run)->frame.v_chol[0];
  tb_run_destroy(p_run);
  fixture_free(&f);
  return root;
}

static void steps_are_reversible(struct check* p_check) {
  enum { N_PROPOSAL = 5 };
  const double v_place[N_PROPOSAL] = {0, 1, 2, 3, BLOCK};
  /* leaps whose energies differ, so that the coin matters */
  const double v_option[] = {0, 0, 0.7, 0, 1.5, 2, 1.5, 0, 0.4, 0};
  const double metric = 0.8 * law_precision(), v_size[] = {0, 2, 5};
  const double along = 1 / metric;
  size_t v_told[N_PROPOSAL + 1] = {0};
  for (size_t n = 0; n < 3; ++n) {
    for (size_t which = 0; which <= N_PROPOSAL; ++which) {
      for (double inner = 1; inner <= 3; inner += 2) {
        const size_t first = which % N_PROPOSAL;
        const struct setting setting = {
            .n_awkward = (size_t)v_size[n],
            .v_awkward = n == 1 ? v_two : v_first_five,
            .v_metric = which % 2 == 0 ? &metric : NULL,
            .v_free = inner == 1 ? &along : NULL,
            .v_line = &along,
            .n_proposal = which == N_PROPOSAL ? N_PROPOSAL : 1,
            .v_proposal = v_place + first,
            .v_option = v_option + 2 * first,
            .n_inner = inner};
        v_told[which] += symmetric_with(p_check, &setting);
      }
    }
  }
  for (size_t which = 0; which <= N_PROPOSAL; ++which) {
    CHECK(v_told[which] >= 4);
  }
}

/* Draws of a block along one direction D of three: from the law they are of the
 * law again, w = D^T A (theta - c) with the correlation alpha, and nothing else
 * moves. */
static void blocks_move(struct check* p_check) {
  enum { N = 3, N_DRAW = 20000 };
  const double stay = 0.4, place = BLOCK, v_option[2] = {stay, 0};
  const double v_metric[N * N] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const double v_line[N] = {0, 1, 0}, v_free[N * N] = {1, -2, 0.5};
  const struct setting setting = {.v_metric = v_metric,
                                  .v_line = v_line,
                                  .v_free = v_free,
                                  .n_free = 1,
                                  .n_proposal = 1,
                                  .v_proposal = &place,
                                  .v_option = v_option,
                                  .n_inner = 1};
  struct fixture f;
  struct tb_rng rng;
  steep_model(&f, 0, 40, N, 1);
  tb_rng_init(&rng, 5, 0, TB_STREAM_noise);
  struct tb_run* p_run = run_with(&f, v_middle, v_middle, 1, 1, &setting);
  CHECK(p_run != NULL);
  struct tb_chain* p_chain = chain_of(p_run, 0);
  const struct tb_surrogate* p = surrogate_of(p_run);
  const struct tb_law* p_law = law_of(p_run);
  const struct tb_proposal_type* p_type = tb_proposal_at_place(place);
  double v_sum[4] = {0}, *v_scratch = check_alloc(p_type->n_array * N, 8);
  for (int t = 0; t < N_DRAW; ++t) {
    double v_from[N], v_to[N], v_z[N], v_after[N], before = 0, after = 0;
    double log_ratio, size = 0;
    for (size_t j = 0; j < N; ++j) {
      v_z[j] = p_law->v_mean[j] + tb_rng_norm(&rng);
    }
    place_at(p_run, v_z, v_from);
    struct tb_spot from = {v_from, 0}, to = {v_to, 0};
    CHECK(tb_surrogate_beyond(p_chain, p, v_from, &from.beyond) ==
          TB_STATUS_ok);
    CHECK(
        p_type->draw(p_chain, p, v_option, &from, &to, v_scratch, &log_ratio) ==
        TB_STATUS_ok);
    CHECK(log_ratio == to.beyond - from.beyond);
    const double moved = v_to[0] - v_from[0];
    for (size_t j = 0; j < N; ++j) {
      CHECK_CLOSE(v_to[j] - v_from[j], v_free[j] * moved, 1e-10);
    }
    /* z of the law: w is along that of D */
    tb_frame_to_sampler(&p_law->frame, v_to, v_after);
    double v_along[N], v_end[N], v_none[N];
    for (size_t j = 0; j < N; ++j) {
      v_end[j] = p_law->frame.v_center[j] + v_free[j];
    }
    tb_frame_to_sampler(&p_law->frame, v_end, v_along);
    tb_frame_to_sampler(&p_law->frame, p_law->frame.v_center, v_none);
    for (size_t j = 0; j < N; ++j) {
      v_along[j] -= v_none[j];
      size += v_along[j] * v_along[j];
      before += v_along[j] * (v_z[j] - p_law->v_mean[j]);
      after += v_along[j] * (v_after[j] - p_law->v_mean[j]);
    }
    before /= sqrt(size);
    after /= sqrt(size);
    v_sum[0] += after;
    v_sum[1] += after * after;
    v_sum[2] += before * after;
    v_sum[3] += before * before;
  }
  const double error = 5 / sqrt(N_DRAW);
  CHECK_CLOSE(v_sum[0] / N_DRAW, 0, error);
  CHECK_CLOSE(v_sum[1] / N_DRAW, 1, 1.5 * error);
  CHECK_CLOSE(v_sum[2] / v_sum[3], stay, error);
  free(v_scratch);
  tb_run_destroy(p_run);
  fixture_free(&f);
}

/* what cannot be: rows that are not, not in order, proposals that are none */
static void surrogate_refuses(struct check* p_check) {
  const double v_at[N_DIM] = {0}, v_row[] = {60}, v_twice[] = {2, 2};
  const double v_none[] = {17}, v_option[] = {0, 0}, v_place[] = {2};
  const struct setting v_setting[] = {{.n_awkward = 1, .v_awkward = v_row},
                                      {.n_awkward = 2, .v_awkward = v_twice},
                                      {.n_proposal = 1,
                                       .v_proposal = v_none,
                                       .v_option = v_option,
                                       .n_inner = 1},
                                      {.n_proposal = 1,
                                       .v_proposal = v_place,
                                       .v_option = v_option,
                                       .n_inner = 1},
                                      {.n_proposal = 1,
                                       .v_proposal = v_option,
                                       .v_option = v_option,
                                       .n_inner = 0}};
  struct fixture f;
  steep_model(&f, 1, 60, N_DIM, 1);
  for (size_t k = 0; k < 5; ++k) {
    CHECK(run_with(&f, v_at, v_at, 1, 1, &v_setting[k]) == NULL);
  }
  fixture_free(&f);
}

/* it accepts as often as its coins say, and counts what it looks at */
static void coins_are_fair(struct check* p_check) {
  enum { N_TRIAL = 20000 };
  struct fixture f;
  steep_model(&f, 1, 60, N_DIM, 2);
  const double v_at[N_DIM] = {0};
  struct tb_run* p_run = run_at(&f, v_at, v_at, 1, 1);
  struct tb_chain* p_chain = chain_of(p_run, 0);
  struct tb_rng rng;
  tb_rng_init(&rng, 2, 0, TB_STREAM_noise);
  CHECK(tb_test_start(p_chain) == TB_STATUS_ok);
  size_t n_between = 0;
  for (int pair = 0; pair < 12; ++pair) {
    double v_z[N_DIM], v_theta[N_DIM], v_gradient[N_DIM], expected, largest;
    direction(&rng, N_DIM, v_z);
    place_at(p_run, v_z, p_chain->v_theta);
    direction(&rng, N_DIM, v_z);
    for (size_t j = 0; j < N_DIM; ++j) {
      v_z[j] *= 2.5;
    }
    place_at(p_run, v_z, v_theta);
    CHECK(tb_factors_acceptance(p_chain, v_theta, &expected, &largest) ==
          TB_STATUS_ok);
    n_between += expected > 0.05 && expected < 0.95;
    struct tb_proposal proposal = {.v_theta = v_theta,
                                   .v_gradient = v_gradient,
                                   .is_possible = true};
    double n_accept = 0;
    const double v_here[N_DIM] = {p_chain->v_theta[0],
                                  p_chain->v_theta[1],
                                  p_chain->v_theta[2]};
    for (int t = 0; t < N_TRIAL; ++t) {
      double probability;
      memcpy(p_chain->v_theta, v_here, sizeof v_here);
      n_accept += tb_test_accepts(p_chain, &proposal, 0, &probability);
      CHECK(proposal.fault == TB_STATUS_ok);
    }
    CHECK_CLOSE(n_accept / N_TRIAL,
                expected,
                5 * sqrt(expected * (1 - expected) / N_TRIAL) + 1e-9);
  }
  CHECK(n_between > 3);
  CHECK(p_chain->counts.n_row >= p_chain->counts.n_always);
  tb_run_destroy(p_run);
  fixture_free(&f);
}

/* One step from a place, in one dimension: where it ends, against the integral
 * of proposal times acceptance. */
static void law_of_one_step(struct check* p_check) {
  enum { N_STEP = 40000, N_CELL = 12, N_FINE = 64 };
  for (int k = 0; k < 2; ++k) {
    struct fixture f;
    steep_model(&f, k == 0 ? 1 : 2, 30, 1, 2);
    const double v_at[1] = {0.05}, from = k == 0 ? -0.4 : 1.2;
    struct tb_run* p_run = run_at(&f, v_at, v_at, 1, 1);
    struct tb_chain* p_chain = chain_of(p_run, 0);
    const struct tb_kernel* p_kernel = tb_run_target(p_run)->p_kernel;
    const double mean = law_of(p_run)->v_mean[0];
    CHECK(tb_test_start(p_chain) == TB_STATUS_ok);
    double v_seen[N_CELL + 1] = {0}, v_expected[N_CELL + 1] = {0};
    double start, moved = 0;
    place_at(p_run, &from, &start);
    for (int cell = 0; cell < N_CELL; ++cell) {
      for (int i = 0; i < N_FINE; ++i) {
        /* midpoints in u = Phi(z - mean), cells of the same probability */
        const double width = 8.0 / N_CELL / N_FINE;
        const double z = mean - 4 + (cell * N_FINE + i + 0.5) * width;
        const double near = (z - mean - 0.9 * (from - mean)) / sqrt(0.19);
        const double far = z - mean;
        const double q = (0.9 * exp(-0.5 * far * far) +
                          0.1 / sqrt(0.19) * exp(-0.5 * near * near)) /
                         sqrt(8 * atan(1));
        double theta, accept, largest;
        place_at(p_run, &z, &theta);
        p_chain->v_theta[0] = start;
        tb_factors_acceptance(p_chain, &theta, &accept, &largest);
        v_expected[cell] += N_STEP * q * accept * width;
      }
      moved += v_expected[cell];
    }
    v_expected[N_CELL] = N_STEP - moved; /* stayed, or further out */
    for (int t = 0; t < N_STEP; ++t) {
      double z;
      p_chain->v_theta[0] = start;
      CHECK(p_kernel->type->step(p_chain) == TB_STATUS_ok);
      tb_frame_to_sampler(&law_of(p_run)->frame, p_chain->v_theta, &z);
      const double cell = floor((z - mean + 4) * N_CELL / 8);
      const bool stayed = p_chain->v_theta[0] == start;
      v_seen[stayed || cell < 0 || cell >= N_CELL ? N_CELL : (int)cell] += 1;
    }
    size_t n;
    CHECK(fabs(check_cells(v_seen, v_expected, N_CELL + 1, &n)) < 5);
    CHECK(n > 5);
    tb_run_destroy(p_run);
    fixture_free(&f);
  }
}

/* The law of a chain on the surrogate by quadrature in one dimension: where it
 * still is, and a density on N_PLACE places z. */
enum { N_PLACE = 400 };

struct inner_law {
  double stayed;
  double v_place[N_PLACE];
};

static const double place_width = 16.0 / N_PLACE;

/* density of a draw at z' from z, both from the mean of the law: of an
 * independent one, or an autoregressive one */
static double draw_density(double from, double to, double stay) {
  const double spread = 1 - stay * stay, near = to - stay * from;
  return exp(-0.5 * near * near / spread) / sqrt(spread * 8 * atan(1));
}

/* v_beyond: of the places, and last where the chain started; stay: of the one
 * that draws, 0: of the independent one */
static void inner_step(const double* v_z,
                       const double* v_beyond,
                       double stay,
                       struct inner_law* p) {
  struct inner_law next = {0};
  for (size_t from = 0; from <= N_PLACE; ++from) {
    const double mass = from < N_PLACE ? p->v_place[from] : p->stayed;
    double left = mass;
    for (size_t to = 0; to < N_PLACE; ++to) {
      const double moved = mass * place_width *
                           draw_density(v_z[from], v_z[to], stay) *
                           fmin(1, exp(v_beyond[to] - v_beyond[from]));
      next.v_place[to] += moved;
      left -= moved;
    }
    *(from < N_PLACE ? &next.v_place[from] : &next.stayed) += left;
  }
  *p = next;
}

/* K of them, 1 or 3: of two members with a share of a half each, one or the
 * other as often as not, or both and one of them again, in all orders. */
static void inner_steps(const double* v_z,
                        const double* v_beyond,
                        double stay,
                        int n_step,
                        struct inner_law* p) {
  const struct inner_law start = *p;
  double n_order = 0;
  *p = (struct inner_law){0};
  for (int order = 0; order < 1 << n_step; ++order) {
    struct inner_law own = start;
    int n_near = 0;
    for (int step = 0; step < n_step; ++step) {
      n_near += order >> step & 1;
    }
    if (n_step == 3 && (n_near == 0 || n_near == 3)) {
      continue;
    }
    for (int step = 0; step < n_step; ++step) {
      inner_step(v_z, v_beyond, order >> step & 1 ? stay : 0, &own);
    }
    for (size_t i = 0; i < N_PLACE; ++i) {
      p->v_place[i] += own.v_place[i];
    }
    p->stayed += own.stayed;
    n_order += 1;
  }
  for (size_t i = 0; i < N_PLACE; ++i) {
    p->v_place[i] /= n_order;
  }
  p->stayed /= n_order;
}

/* One step from a place: K steps on the surrogate and the test, as often as the
 * quadrature says, with S of 0, 2 and 5 rows. */
static void law_of_surrogate_steps(struct check* p_check) {
  enum { N_STEP = 20000, N_CELL = 10, EACH = N_PLACE / N_CELL };
  const double stay = 0.7, v_option[] = {0, 0, stay, 0}, v_kind[] = {0, 1};
  const double v_size[] = {0, 2, 5};
  for (int k = 0; k < 6; ++k) {
    const size_t n_awkward = (size_t)v_size[k % 3];
    const double v_at[1] = {0.05};
    const struct setting setting = {.n_awkward = n_awkward,
                                    .v_awkward =
                                        n_awkward == 2 ? v_two : v_first_five,
                                    .n_proposal = 2,
                                    .v_proposal = v_kind,
                                    .v_option = v_option,
                                    .n_inner = k < 3 ? 1 : 3};
    struct fixture f;
    /* a double exponential prior, which the surrogate has as it is */
    steep_model(&f, 1, 12, 1, 2);
    struct tb_run* p_run = run_with(&f, v_at, v_at, 1, 1, &setting);
    struct tb_chain* p_chain = chain_of(p_run, 0);
    const struct tb_kernel* p_kernel = tb_run_target(p_run)->p_kernel;
    const double mean = law_of(p_run)->v_mean[0];
    double v_z[N_PLACE + 1], v_beyond[N_PLACE + 1], v_theta[N_PLACE + 1];
    struct inner_law law = {.stayed = 1};
    CHECK(tb_test_start(p_chain) == TB_STATUS_ok);
    for (size_t i = 0; i <= N_PLACE; ++i) {
      v_z[i] = i < N_PLACE ? ((double)i + 0.5) * place_width - 8 : -1.3;
      const double z = v_z[i] + mean;
      place_at(p_run, &z, &v_theta[i]);
      CHECK(tb_surrogate_beyond(p_chain,
                                surrogate_of(p_run),
                                &v_theta[i],
                                &v_beyond[i]) == TB_STATUS_ok);
    }
    inner_steps(v_z, v_beyond, stay, setting.n_inner, &law);
    double v_seen[N_CELL + 1] = {0}, v_expected[N_CELL + 1] = {0};
    double moved = 0;
    for (size_t i = 0; i < N_PLACE; ++i) {
      double accept, largest;
      p_chain->v_theta[0] = v_theta[N_PLACE];
      tb_factors_acceptance(p_chain, &v_theta[i], &accept, &largest);
      v_expected[i / EACH] += N_STEP * law.v_place[i] * accept;
      moved += N_STEP * law.v_place[i] * accept;
    }
    v_expected[N_CELL] = N_STEP - moved;
    for (int t = 0; t < N_STEP; ++t) {
      double z;
      p_chain->v_theta[0] = v_theta[N_PLACE];
      CHECK(p_kernel->type->step(p_chain) == TB_STATUS_ok);
      tb_frame_to_sampler(&law_of(p_run)->frame, p_chain->v_theta, &z);
      const double cell = floor((z - mean + 8) / place_width / EACH);
      const bool stayed = p_chain->v_theta[0] == v_theta[N_PLACE];
      v_seen[stayed || cell < 0 || cell >= N_CELL ? N_CELL : (int)cell] += 1;
    }
    size_t n;
    CHECK(fabs(check_cells(v_seen, v_expected, N_CELL + 1, &n)) < 5);
    CHECK(n > 3);
    tb_run_destroy(p_run);
    fixture_free(&f);
  }
}

/* ---- bounds ---- */

/* No row kills with a probability above 1, wherever two places are; and some
 * come near it, so that bounds of half the size fail. CHECK_LONG in the
 * environment: ten million rows of each response. */
static void bounds_hold(struct check* p_check) {
  enum { N_ROW = 40 };
  const size_t n_pair = getenv("CHECK_LONG") != NULL ? 250000 : 2000;
  for (size_t place = 0; place < tb_response_count(); ++place) {
    if (tb_response_registry[place]->remainder == NULL) {
      continue;
    }
    struct fixture f;
    struct tb_rng rng;
    const double* v_at = v_middle;
    double v_x[N_ROW][N_DIM], most = 0;
    size_t n_wrong = 0;
    steep_model(&f, place, N_ROW, N_DIM, 1);
    tb_rng_init(&rng, 4, 0, TB_STREAM_noise);
    struct tb_run* p_run = run_at(&f, v_at, v_at, 1, 1);
    struct tb_chain* p_chain = chain_of(p_run, 0);
    /* along the rows, whitened: r_i x_i tells them up to their length */
    for (size_t i = 0; i < N_ROW; ++i) {
      const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
      double v_g[N_DIM] = {0}, square = 0;
      const struct tb_sums sums = {.v_gradient = v_g};
      f.model.type->gradient(&f.model, &f.work, v_at, &one, NULL, &sums);
      tb_frame_pull_gradient(&law_of(p_run)->frame, v_g, v_x[i]);
      for (size_t j = 0; j < N_DIM; ++j) {
        square += v_x[i][j] * v_x[i][j];
      }
      for (size_t j = 0; j < N_DIM; ++j) {
        v_x[i][j] = square > 0 ? v_x[i][j] / sqrt(square) : 0;
      }
    }
    const double root = sqrt((double)N_DIM);
    for (size_t pair = 0; pair < n_pair; ++pair) {
      double v_from[N_DIM], v_to[N_DIM], v_there[N_DIM], accept, largest;
      /* to the edge of the first shells, and beyond */
      const double reach = pair % 3 == 0   ? root + 2.5
                           : pair % 3 == 1 ? root + 7
                                           : 40;
      const double a = reach * tb_rng_unif(&rng), b = reach * tb_rng_unif(&rng);
      direction(&rng, N_DIM, v_from);
      direction(&rng, N_DIM, v_to);
      if (pair % 2 == 0) {
        const size_t i = tb_rng_index(&rng, N_ROW);
        const double side = tb_rng_unif(&rng) < 0.5 ? 1 : -1;
        for (size_t j = 0; j < N_DIM; ++j) {
          v_from[j] = -side * v_x[i][j];
          v_to[j] = side * v_x[i][j];
        }
      }
      for (size_t j = 0; j < N_DIM; ++j) {
        v_from[j] *= a;
        v_to[j] *= b;
      }
      place_at(p_run, v_from, p_chain->v_theta);
      place_at(p_run, v_to, v_there);
      CHECK(tb_factors_acceptance(p_chain, v_there, &accept, &largest) ==
            TB_STATUS_ok);
      n_wrong += !(largest <= 1 + 1e-6);
      most = fmax(most, largest);
    }
    CHECK(n_wrong == 0);
    CHECK(most > 0.75 || f.model.n_data == 0 ||
          strcmp(tb_response_registry[place]->name, "gaussian") == 0);
    tb_run_destroy(p_run);
    fixture_free(&f);
  }
}

/* ---- shells ---- */

static void chain_steps(void* p) {
  struct tb_chain* p_chain = p;
  const struct tb_kernel* p_kernel = p_chain->p_target->p_kernel;
  for (int t = 0; t < 200; ++t) {
    if (p_kernel->type->step(p_chain) != TB_STATUS_ok) {
      abort();
    }
  }
}

/* Chains of one run in threads make the shells they need, at the same time,
 * and end up where they do one after the other. */
static void threads_share_shells(struct check* p_check) {
  enum { N_CHAIN = 4 };
  double v_end[2][N_CHAIN][N_DIM];
  for (int together = 0; together < 2; ++together) {
    struct fixture f;
    const double v_at[N_DIM] = {0};
    double v_z[N_DIM] = {0}, v_far[N_DIM];
    void* v_context[N_CHAIN];
    steep_model(&f, 1, 200, N_DIM, 1);
    struct tb_run* p_run = run_at(&f, v_at, v_at, 1, N_CHAIN);
    for (size_t c = 0; c < N_CHAIN; ++c) {
      /* a shell of its own for each pair of chains */
      v_z[0] = c < 2 ? 6 : 30;
      place_at(p_run, v_z, v_far);
      memcpy(chain_of(p_run, c)->v_theta, v_far, sizeof v_far);
      v_context[c] = chain_of(p_run, c);
    }
    if (together) {
      CHECK(check_parallel(chain_steps, v_context, N_CHAIN));
    } else {
      for (size_t c = 0; c < N_CHAIN; ++c) {
        chain_steps(v_context[c]);
      }
    }
    for (size_t c = 0; c < N_CHAIN; ++c) {
      memcpy(v_end[together][c],
             chain_of(p_run, c)->v_theta,
             sizeof v_end[together][c]);
    }
    tb_run_destroy(p_run);
    fixture_free(&f);
  }
  CHECK(memcmp(v_end[0], v_end[1], sizeof v_end[0]) == 0);
}

static void shells_nest(struct check* p_check) {
  struct fixture f;
  const double v_at[N_DIM] = {0};
  steep_model(&f, 2, 200, N_DIM, 1);
  struct tb_run* p_run = run_at(&f, v_at, v_at, 1, 1);
  struct tb_factors* p = cv2_of(p_run)->p_factors;
  const double root = sqrt((double)N_DIM);
  const double v_norm[] = {0, root + 2.4, root + 2.6, root + 7.1, 1e5, 1e300};
  const double v_radius[] = {root + 2.5,
                             root + 2.5,
                             root + 7,
                             2 * (root + 7),
                             ldexp(root + 7, 14),
                             INFINITY};
  for (size_t k = 0; k < 6; ++k) {
    struct tb_shell_info info;
    CHECK(tb_factors_shell(p, v_norm[k], &info) == TB_STATUS_ok);
    CHECK_CLOSE(info.radius == v_radius[k] ? 0 : info.radius - v_radius[k],
                0,
                1e-9 * v_norm[k]);
    CHECK(info.n_always <= 200 && (k < 5 || info.n_always == 200));
    CHECK(info.total >= 0 && isfinite(info.total));
  }
  tb_run_destroy(p_run);
  fixture_free(&f);
}

/* what has no bounds, or no normal law, is refused */
static void refuses(struct check* p_check) {
  const double v_at[N_DIM] = {0};
  struct fixture f;
  fixture_gaussian(&f, 30, N_DIM);
  CHECK(run_at(&f, v_at, v_at, 1, 1) == NULL);
  fixture_free(&f);
  fixture_glm(&f, 30, N_DIM - 1, 0, FIXTURE_SIGMA);
  CHECK(run_at(&f, v_at, v_at, 1, 1) == NULL);
  fixture_free(&f);
  /* two rows for three coefficients with a flat prior */
  steep_model(&f, 1, 2, N_DIM, 0);
  CHECK(run_at(&f, v_at, v_at, 1, 1) == NULL);
  fixture_free(&f);
}

const struct check_case check_factorised[] = {
    {"detailed balance", detailed_balance},
    {"the gradient of the surrogate", surrogate_gradient},
    {"walks of the surrogate are along its lines", walks_are_along_lines},
    {"steps by surrogates are reversible", steps_are_reversible},
    {"a block moves by its law alone", blocks_move},
    {"a surrogate refuses what cannot be", surrogate_refuses},
    {"it accepts as often as its coins say", coins_are_fair},
    {"the law of one step", law_of_one_step},
    {"the law of steps on a surrogate", law_of_surrogate_steps},
    {"bounds hold, and are needed", bounds_hold},
    {"threads share shells", threads_share_shells},
    {"shells nest", shells_nest},
    {"refuses what has no bounds or no law", refuses},
    {NULL, NULL}};
