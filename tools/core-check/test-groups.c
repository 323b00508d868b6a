/* Multilevel regressions against integrals by the trapezoidal rule, closed
 * forms and differences, which no node has a part in. */
#include "check.h"
#include "fixture.h"

#include "models/expansion.h"
#include "models/groups-effects.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_GROUP = 37, N_DIM_MOST = 6, N_COEF = 2 };

/* With one effect, of which all but the normal one are looked at by integrals
 * first, and with two; interval has two columns of y. */
static const struct {
  size_t n_effect;
  const char* name;
} v_kind[] = {{1, "binomial"},
              {1, "poisson"},
              {1, "interval"},
              {1, "gaussian"},
              {2, "gaussian"},
              {2, "binomial"},
              {2, "interval"}};
enum { N_KIND = sizeof v_kind / sizeof *v_kind, N_INTEGRAL = 3, N_KNOWN = 5 };

static int family_of(size_t kind) {
  return fixture_place(v_kind[kind].name);
}

/* ---- references ---- */

/* log(1 + e^x) */
static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* of row i */
static double
log_density(const struct fixture_rows* p, int family, size_t i, double eta) {
  const double y = p->v_y[i], weight = p->v_weight[i];
  if (family == 1) {
    return -softplus(y > 0.5 ? -eta : eta);
  }
  if (family == 2) {
    return weight * (y * eta - exp(eta) - lgamma(y + 1));
  }
  const double end = p->v_y[p->n_row + i];
  const double within = end > y ? log1p(-exp(y - end)) : 0;
  return weight * (within - softplus(eta - end) - softplus(y - eta));
}

/* log int prod_i p(y_i | eta_i + e^lambda v) N(v; 0, 1) dv, and moments of
 * e^lambda v */
struct integral {
  double log_lik, mean, square;
};

static struct integral integrate(const struct fixture_rows* p,
                                 int family,
                                 size_t group,
                                 const double* v_theta) {
  enum { N = 801 };
  const double most = 10, step = 2 * most / (N - 1), sd = exp(v_theta[N_COEF]);
  const double root = 0.5 * log(2 * acos(-1));
  double v_log[N], top = -INFINITY;
  for (size_t k = 0; k < N; ++k) {
    const double v = -most + step * (double)k;
    v_log[k] = -0.5 * v * v - root + log(step);
    for (size_t i = (size_t)p->v_first[group];
         i < (size_t)p->v_first[group + 1];
         ++i) {
      const double eta = p->v_x[i] * v_theta[0] +
                         p->v_x[p->n_row + i] * v_theta[1] + p->v_offset[i] +
                         sd * v;
      v_log[k] += log_density(p, family, i, eta);
    }
    top = fmax(top, v_log[k]);
  }
  double sum = 0, mean = 0, square = 0;
  for (size_t k = 0; k < N; ++k) {
    const double u = sd * (-most + step * (double)k);
    const double term = exp(v_log[k] - top);
    sum += term;
    mean += term * u;
    square += term * u * u;
  }
  return (struct integral){top + log(sum), mean / sum, square / sum};
}

/* log N(y; eta, Z Lambda Lambda^T Z^T + sigma^2 / w) by Cholesky's method */
static double normal_log_lik(const struct fixture_rows* p,
                             size_t q,
                             size_t group,
                             const double* v_theta) {
  enum { MOST = 5 };
  const size_t first = (size_t)p->v_first[group];
  const size_t n = (size_t)p->v_first[group + 1] - first;
  const double* v_lambda = v_theta + N_COEF;
  const double s = v_theta[N_COEF + (q == 1 ? 1 : 3)];
  double v[MOST][MOST], v_rest[MOST], log_lik = 0;
  for (size_t i = 0; i < n; ++i) {
    const double x_i = p->v_x[p->n_row + first + i];
    v_rest[i] = p->v_y[first + i] - p->v_offset[first + i] - v_theta[0] -
                x_i * v_theta[1];
    for (size_t j = 0; j <= i; ++j) {
      const double x_j = p->v_x[p->n_row + first + j];
      double a = exp(v_lambda[0]), b = 0, below = 0;
      if (q == 2) {
        b = exp(v_lambda[1]) / cosh(v_lambda[2]);
        below = exp(v_lambda[1]) * tanh(v_lambda[2]);
      }
      v[i][j] = (a + x_i * below) * (a + x_j * below) + x_i * x_j * b * b;
      v[i][j] += i == j ? exp(2 * s) / p->v_weight[first + i] : 0;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      for (size_t k = 0; k < j; ++k) {
        v[i][j] -= v[i][k] * v[j][k];
      }
      v[i][j] = i == j ? sqrt(v[i][i]) : v[i][j] / v[j][j];
    }
    for (size_t k = 0; k < i; ++k) {
      v_rest[i] -= v[i][k] * v_rest[k];
    }
    v_rest[i] /= v[i][i];
    log_lik -=
        log(v[i][i]) + 0.5 * v_rest[i] * v_rest[i] + 0.5 * log(2 * acos(-1));
  }
  return log_lik;
}

static double reference(const struct fixture_rows* p,
                        size_t kind,
                        size_t group,
                        const double* v_theta) {
  return kind < N_INTEGRAL
             ? integrate(p, family_of(kind), group, v_theta).log_lik
             : normal_log_lik(p, v_kind[kind].n_effect, group, v_theta);
}

/* ---- laws ---- */

static struct tb_batch one_group(size_t group) {
  return (struct tb_batch){.n_batch = 1, .start = group, .weight = 1};
}

/* density and gradient of each group, to what 25 nodes leave */
static void groups_are_integrals(struct check* p_check) {
  for (size_t kind = 0; kind < N_KNOWN; ++kind) {
    struct fixture f;
    struct fixture_rows rows = fixture_groups_rows(N_GROUP, family_of(kind));
    fixture_groups(&f, N_GROUP, v_kind[kind].n_effect, family_of(kind));
    CHECK(f.model.n_data == N_GROUP && f.model.n_dim <= N_DIM_MOST);
    const double tolerance = kind < N_INTEGRAL ? 1e-7 : 1e-11;
    double v_theta[N_DIM_MOST], v_gradient[N_DIM_MOST];
    fixture_point(&f, kind, v_theta);
    for (size_t g = 0; g < N_GROUP; ++g) {
      const struct tb_batch batch = one_group(g);
      double log_lik;
      f.model.type->log_lik(&f.model, &f.work, v_theta, &batch, &log_lik);
      CHECK_CLOSE(log_lik,
                  reference(&rows, kind, g, v_theta),
                  tolerance * (1 + fabs(log_lik)));
      memset(v_gradient, 0, sizeof v_gradient);
      const struct tb_sums sums = {.v_gradient = v_gradient};
      f.model.type->gradient(&f.model, &f.work, v_theta, &batch, NULL, &sums);
      for (size_t j = 0; j < f.model.n_dim; ++j) {
        const double h = 1e-4, here = v_theta[j];
        v_theta[j] = here + h;
        const double up = reference(&rows, kind, g, v_theta);
        v_theta[j] = here - h;
        const double down = reference(&rows, kind, g, v_theta);
        v_theta[j] = here;
        CHECK_CLOSE(v_gradient[j],
                    (up - down) / (2 * h),
                    1e-6 * (1 + fabs(v_gradient[j])));
      }
    }
    fixture_rows_free(&rows);
    fixture_free(&f);
  }
}

static void full_gradient(const struct fixture* p,
                          const double* v_theta,
                          double* v_gradient) {
  const struct tb_batch all = {.n_batch = N_GROUP, .weight = 1};
  const struct tb_sums sums = {.v_gradient = v_gradient};
  memset(v_gradient, 0, p->model.n_dim * sizeof(double));
  p->model.type->gradient(&p->model, &p->work, v_theta, &all, NULL, &sums);
}

/* memory of passes, which is more than that of steps */
static void* pass_memory(const struct fixture* p) {
  return check_alloc(1, p->model.type->pass_size(&p->model, N_GROUP, 1) + 64);
}

static void hessians_are_derivatives(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    fixture_groups(&f, N_GROUP, v_kind[kind].n_effect, family_of(kind));
    const size_t n_dim = f.model.n_dim;
    double v_theta[N_DIM_MOST], v_up[N_DIM_MOST], v_down[N_DIM_MOST];
    double v_gradient[N_DIM_MOST] = {0}, log_lik = 0;
    double v_hessian[N_DIM_MOST * N_DIM_MOST] = {0};
    fixture_point(&f, kind, v_theta);
    struct tb_workspace work = {.p_scratch = pass_memory(&f)};
    const struct tb_batch all = {.n_batch = N_GROUP, .weight = 1};
    const struct tb_curvature sums = {.p_log_lik = &log_lik,
                                      .v_gradient = v_gradient,
                                      .v_hessian = v_hessian};
    CHECK(f.model.type->curvature(&f.model, &work, v_theta, &all, &sums) ==
          TB_STATUS_ok);
    full_gradient(&f, v_theta, v_up);
    for (size_t j = 0; j < n_dim; ++j) {
      CHECK_CLOSE(v_gradient[j], v_up[j], 1e-9 * (1 + fabs(v_up[j])));
    }
    for (size_t j = 0; j < n_dim; ++j) {
      const double h = 1e-4, here = v_theta[j];
      v_theta[j] = here + h;
      full_gradient(&f, v_theta, v_up);
      v_theta[j] = here - h;
      full_gradient(&f, v_theta, v_down);
      v_theta[j] = here;
      for (size_t i = 0; i < n_dim; ++i) {
        const double slope = (v_down[i] - v_up[i]) / (2 * h);
        CHECK_CLOSE(v_hessian[i * n_dim + j], slope, 1e-4 * (1 + fabs(slope)));
        CHECK(v_hessian[i * n_dim + j] == v_hessian[j * n_dim + i]);
      }
    }
    free(work.p_scratch);
    fixture_free(&f);
  }
}

/* what groups have beyond second order, all together: g - g(at) + H delta */
static void expansions_add_up(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    fixture_groups(&f, N_GROUP, v_kind[kind].n_effect, family_of(kind));
    const size_t n_dim = f.model.n_dim;
    const struct tb_model_expansion* expansion = f.model.type->expansion;
    double v_at[N_DIM_MOST], v_theta[N_DIM_MOST], v_there[N_DIM_MOST];
    double v_gradient[N_DIM_MOST] = {0}, v_beyond[N_DIM_MOST] = {0};
    double v_hessian[N_DIM_MOST * N_DIM_MOST] = {0};
    fixture_point(&f, kind, v_at);
    fixture_point(&f, kind + 50, v_theta);
    void* p_record = check_alloc(N_GROUP, expansion->record_size(&f.model));
    const struct tb_batch all = {.n_batch = N_GROUP, .weight = 1};
    const struct tb_curvature sums = {.v_gradient = v_gradient,
                                      .v_hessian = v_hessian};
    CHECK(expansion->expand(&f.model, v_at, &all, p_record, &sums, 2) ==
          TB_STATUS_ok);
    const struct tb_sums more = {.v_gradient = v_beyond};
    CHECK(
        expansion
            ->beyond(&f.model, &f.work, p_record, v_at, v_theta, &all, &more) ==
        TB_STATUS_ok);
    full_gradient(&f, v_theta, v_there);
    for (size_t i = 0; i < n_dim; ++i) {
      double want = v_there[i] - v_gradient[i];
      for (size_t j = 0; j < n_dim; ++j) {
        want += v_hessian[i * n_dim + j] * (v_theta[j] - v_at[j]);
      }
      CHECK_CLOSE(v_beyond[i], want, 1e-8 * (1 + fabs(v_there[i])));
    }
    /* nothing at the point */
    memset(v_beyond, 0, sizeof v_beyond);
    expansion->beyond(&f.model, &f.work, p_record, v_at, v_at, &all, &more);
    for (size_t i = 0; i < n_dim; ++i) {
      CHECK(v_beyond[i] == 0);
    }
    free(p_record);
    fixture_free(&f);
  }
}

/* moments of effects by the integral, and draws that have them, whatever the
 * number of threads */
static void effects_have_their_law(struct check* p_check) {
  enum { N_DRAW = 2000 };
  for (size_t kind = 0; kind < N_INTEGRAL; ++kind) {
    struct fixture f;
    struct fixture_rows rows = fixture_groups_rows(N_GROUP, family_of(kind));
    fixture_groups(&f, N_GROUP, 1, family_of(kind));
    const size_t n_dim = f.model.n_dim;
    double v_mean[N_GROUP], v_square[N_GROUP];
    double* v_theta = check_alloc(N_DRAW * n_dim, sizeof(double));
    double* v_draw = check_alloc(2 * N_DRAW * N_GROUP, sizeof(double));
    double* v_again = v_draw + N_DRAW * N_GROUP;
    size_t v_group[N_GROUP];
    fixture_point(&f, kind, v_theta);
    for (size_t d = 1; d < N_DRAW; ++d) {
      memcpy(v_theta + d * n_dim, v_theta, n_dim * sizeof(double));
    }
    for (size_t g = 0; g < N_GROUP; ++g) {
      v_group[g] = g;
    }
    CHECK(groups_effect_moments(&f.model,
                                v_theta,
                                2,
                                0,
                                N_GROUP,
                                2,
                                v_mean,
                                v_square) == TB_STATUS_ok);
    CHECK(groups_effect_draws(&f.model,
                              v_theta,
                              N_DRAW,
                              v_group,
                              N_GROUP,
                              7,
                              1,
                              v_draw) == TB_STATUS_ok);
    groups_effect_draws(&f.model,
                        v_theta,
                        N_DRAW,
                        v_group,
                        N_GROUP,
                        7,
                        3,
                        v_again);
    CHECK(memcmp(v_draw, v_again, N_DRAW * N_GROUP * sizeof(double)) == 0);
    for (size_t g = 0; g < N_GROUP; ++g) {
      const struct integral exact =
          integrate(&rows, family_of(kind), g, v_theta);
      const double sd = sqrt(exact.square - exact.mean * exact.mean);
      CHECK_CLOSE(v_mean[g], exact.mean, 1e-7);
      CHECK_CLOSE(v_square[g], exact.square, 1e-6 * (1 + exact.square));
      double mean = 0, square = 0;
      for (size_t d = 0; d < N_DRAW; ++d) {
        const double u = (v_draw[d * N_GROUP + g] - exact.mean) / sd;
        mean += u / N_DRAW;
        square += u * u / N_DRAW;
      }
      CHECK_CLOSE(mean, 0, 5 / sqrt(N_DRAW));
      CHECK_CLOSE(square, 1, 6 * sqrt(2.0 / N_DRAW));
    }
    free(v_theta);
    free(v_draw);
    fixture_rows_free(&rows);
    fixture_free(&f);
  }
}

/* n draws of all groups at v_theta, groups after each other */
static double*
draws_at(const struct fixture* p, const double* v_theta, size_t n) {
  const size_t n_dim = p->model.n_dim, q = groups_n_effect(&p->model);
  double* v_all = check_alloc(n * n_dim, sizeof(double));
  double* v_draw = check_alloc(n * N_GROUP * q, sizeof(double));
  size_t v_group[N_GROUP];
  for (size_t d = 0; d < n; ++d) {
    memcpy(v_all + d * n_dim, v_theta, n_dim * sizeof(double));
  }
  for (size_t g = 0; g < N_GROUP; ++g) {
    v_group[g] = g;
  }
  groups_effect_draws(&p->model, v_all, n, v_group, N_GROUP, 7, 1, v_draw);
  free(v_all);
  return v_draw;
}

/* Where sds are large and most groups alike, the variance of all groups' draws
 * together: 3 is more than the variance of a square of theirs. */
static void draws_reach_the_tails(struct check* p_check) {
  enum { N_DRAW = 4000 };
  struct fixture f;
  struct fixture_rows rows = fixture_groups_rows(N_GROUP, family_of(0));
  double v_theta[N_DIM_MOST];
  fixture_groups(&f, N_GROUP, 1, family_of(0));
  fixture_point(&f, 0, v_theta);
  v_theta[N_COEF] = log(8);
  double* v_draw = draws_at(&f, v_theta, N_DRAW);
  double square = 0;
  for (size_t g = 0; g < N_GROUP; ++g) {
    const struct integral exact = integrate(&rows, family_of(0), g, v_theta);
    const double variance = exact.square - exact.mean * exact.mean;
    for (size_t d = 0; d < N_DRAW; ++d) {
      const double u = v_draw[d * N_GROUP + g] - exact.mean;
      square += u * u / variance;
    }
  }
  const double n = N_GROUP * N_DRAW;
  CHECK_CLOSE(square / n, 1, 5 * sqrt(3 / n));
  free(v_draw);
  fixture_rows_free(&rows);
  fixture_free(&f);
}

/* of two effects, about the moments by nodes */
static void draws_of_two_effects(struct check* p_check) {
  enum { N_DRAW = 2000, N_EFFECT = 2 };
  for (size_t kind = N_KNOWN - 1; kind < N_KIND; ++kind) {
    struct fixture f;
    double v_theta[N_DIM_MOST];
    double v_mean[N_GROUP * N_EFFECT], v_square[N_GROUP * N_EFFECT * N_EFFECT];
    fixture_groups(&f, N_GROUP, N_EFFECT, family_of(kind));
    fixture_point(&f, kind, v_theta);
    double* v_draw = draws_at(&f, v_theta, N_DRAW);
    groups_effect_moments(&f.model,
                          v_theta,
                          1,
                          0,
                          N_GROUP,
                          1,
                          v_mean,
                          v_square);
    for (size_t k = 0; k < N_GROUP * N_EFFECT; ++k) {
      const size_t g = k / N_EFFECT, a = k % N_EFFECT;
      const double sd =
          sqrt(v_square[(g * N_EFFECT + a) * N_EFFECT + a] - pow(v_mean[k], 2));
      double mean = 0, square = 0;
      for (size_t d = 0; d < N_DRAW; ++d) {
        const double u = (v_draw[d * N_GROUP * N_EFFECT + k] - v_mean[k]) / sd;
        mean += u / N_DRAW;
        square += u * u / N_DRAW;
      }
      CHECK_CLOSE(mean, 0, 5 / sqrt(N_DRAW));
      CHECK_CLOSE(square, 1, 6 * sqrt(2.0 / N_DRAW));
    }
    free(v_draw);
    fixture_free(&f);
  }
}

/* ---- parameters that cannot be used ---- */

static void groups_refuse(struct check* p_check) {
  enum { N = 4, N_PARAM = 11 };
  const double v_x[] = {1, 1, 1, 1}, v_y[] = {0, 1, 1, 0}, v_z[] = {0, 0, 0, 0};
  const double v_first[] = {0, 2, 4}, v_empty[] = {0, 2, 2, 4};
  const double v_late[] = {1, 2, 4}, v_beyond[] = {0, 2, 9};
  const double v_node[] = {0, 0.5}, v_scale[] = {1, -1, 1, 1};
  const double two_y = fixture_place("interval");
  const double two_eta = fixture_place("spread");
  const double one = 1, none = 99, v_prior[] = {1, 0, 1, 1};
  const struct tb_param v_good[N_PARAM] = {
      {"x", v_x, NULL, N, N},
      {"y", v_y, NULL, N, N},
      {"first", v_first, NULL, 3, 3},
      {"z", v_z, NULL, 1, 1},
      {"n_coef", &one, NULL, 1, 1},
      {"nodes", v_node, NULL, 2, 1},
      {"response", &one, NULL, 1, 1},
      {"sd_scale", v_scale, NULL, 1, 1},
      {"prior_kind", v_prior, NULL, 2, 2},
      {"prior_location", v_prior, NULL, 2, 2},
      {"prior_scale", v_prior + 2, NULL, 2, 2}};
  const struct tb_param v_bad[] = {{"y", v_y, NULL, 3, 3},
                                   {"first", v_empty, NULL, 4, 4},
                                   {"first", v_late, NULL, 3, 3},
                                   {"first", v_beyond, NULL, 3, 3},
                                   {"z", v_z, NULL, 4, 4},
                                   {"z", &none, NULL, 1, 1},
                                   {"n_coef", &none, NULL, 1, 1},
                                   {"nodes", v_node, NULL, 1, 1},
                                   {"response", &none, NULL, 1, 1},
                                   {"response", &two_y, NULL, 1, 1},
                                   {"response", &two_eta, NULL, 1, 1},
                                   {"sd_scale", v_scale + 1, NULL, 1, 1},
                                   {"sd_scale", v_scale, NULL, 2, 2}};
  for (size_t k = 0; k <= sizeof v_bad / sizeof *v_bad; ++k) {
    struct tb_param v_param[N_PARAM];
    memcpy(v_param, v_good, sizeof v_good);
    for (size_t i = 0; i < N_PARAM && k > 0; ++i) {
      if (strcmp(v_param[i].name, v_bad[k - 1].name) == 0) {
        v_param[i] = v_bad[k - 1];
      }
    }
    struct tb_model model = {.type = tb_model_find("groups")};
    const struct tb_params params = {v_param, N_PARAM};
    const enum tb_status status = fixture_create(&model, &params);
    CHECK((status == TB_STATUS_ok) == (k == 0));
    CHECK((model.p_self == NULL) == (k > 0));
    if (k == 0) {
      CHECK(model.n_data == 2 && model.n_dim == 2);
      model.type->destroy(&model);
    }
  }
}

const struct check_case check_groups[] = {
    {"densities and gradients are those of integrals", groups_are_integrals},
    {"Hessians are derivatives of gradients", hessians_are_derivatives},
    {"expansions add up to all groups", expansions_add_up},
    {"effects have the law that the rows leave", effects_have_their_law},
    {"draws of effects reach the tails", draws_reach_the_tails},
    {"draws of two effects have their moments", draws_of_two_effects},
    {"parameters that cannot be used are refused", groups_refuse},
    {NULL, NULL}};
