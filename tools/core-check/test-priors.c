#include "check.h"

#include "priors/prior.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* by a kink, near the location, and far away, on both sides */
static const double v_away[] = {-7, -1.3, -0.2, -1e-3, 1e-3, 0.4, 1.7, 6};
enum { N_AWAY = sizeof v_away / sizeof v_away[0] };
static const double location = 0.3, scale = 1.6, shape = 3.5;

static double
density(const struct tb_prior_type* type, double x, double round) {
  return type->at(x, location, scale, shape, round).log_density;
}

static double slope(const struct tb_prior_type* type, double x, double round) {
  return type->at(x, location, scale, shape, round).slope;
}

static void registry_finds_priors(struct check* p_check) {
  CHECK(tb_prior_count() > 0);
  CHECK(tb_prior_registry[tb_prior_count()] == NULL);
  for (size_t k = 0; k < tb_prior_count(); ++k) {
    const struct tb_prior_type* type = tb_prior_registry[k];
    CHECK(tb_prior_at_place((double)k) == type);
    CHECK(type->name != NULL && type->at != NULL);
    for (size_t i = 0; i < k; ++i) {
      CHECK(strcmp(tb_prior_registry[i]->name, type->name) != 0);
    }
  }
  const double v_bad[] =
      {-1, 0.5, (double)tb_prior_count(), 1e300, NAN, INFINITY};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    CHECK(tb_prior_at_place(v_bad[k]) == NULL);
  }
}

/* with kinks rounded off, and as they are */
static void derivatives_are_slopes(struct check* p_check) {
  const double v_round[] = {0, 0.7};
  for (size_t k = 0; k < tb_prior_count(); ++k) {
    const struct tb_prior_type* type = tb_prior_registry[k];
    for (size_t i = 0; i < 2 * N_AWAY; ++i) {
      const double x = location + v_away[i % N_AWAY];
      const double round = v_round[i / N_AWAY];
      const double h = 1e-4 * cbrt(fabs(v_away[i % N_AWAY]));
      const struct tb_prior_value here =
          type->at(x, location, scale, shape, round);
      const double up = density(type, x + h, round);
      const double down = density(type, x - h, round);
      CHECK_CLOSE(here.slope,
                  (up - down) / (2 * h),
                  1e-6 * (1 + fabs(here.slope)));
      CHECK_CLOSE(here.curvature,
                  (slope(type, x - h, round) - slope(type, x + h, round)) /
                      (2 * h),
                  1e-6 * (1 + fabs(here.curvature)));
    }
  }
}

/* what is said to be quadratic is, and only within bounds that are said */
static void variances_are_those_of_the_density(struct check* p_check) {
  for (size_t k = 0; k < tb_prior_count(); ++k) {
    const struct tb_prior_type* type = tb_prior_registry[k];
    if (type->variance == NULL) {
      continue;
    }
    const double variance = type->variance(scale);
    CHECK(variance > 0);
    for (size_t i = 0; i < N_AWAY; ++i) {
      const double away = v_away[i], x = location + away;
      const double fall = density(type, x, 0) - density(type, location, 0);
      CHECK_CLOSE(fall,
                  -0.5 * away * away / variance,
                  8 * DBL_EPSILON * (1 + away * away));
    }
  }
}

static void bounds_enclose_the_location(struct check* p_check) {
  size_t n_bounded = 0;
  for (size_t k = 0; k < tb_prior_count(); ++k) {
    const struct tb_prior_type* type = tb_prior_registry[k];
    if (type->is_outside == NULL) {
      continue;
    }
    n_bounded += 1;
    CHECK(!type->is_outside(location, location, scale));
    for (int side = -1; side <= 1; side += 2) {
      CHECK(
          !type->is_outside(location + side * 0.999 * scale, location, scale));
      CHECK(type->is_outside(location + side * 1.001 * scale, location, scale));
    }
  }
  CHECK(n_bounded > 0);
}

/* every kind in one prior: its sums are those of its members, with a functional
 * or without */
static void sums_are_those_of_members(struct check* p_check) {
  enum { N_MOST = 32 };
  const size_t n = tb_prior_count();
  double v_kind[N_MOST], v_location[N_MOST], v_scale[N_MOST], v_a[N_MOST];
  double v_shape[N_MOST];
  double v_theta[N_MOST], v_gradient[N_MOST], v_expected[N_MOST];
  CHECK(n <= N_MOST);
  for (size_t j = 0; j < n; ++j) {
    v_kind[j] = (double)j;
    v_location[j] = location;
    v_scale[j] = scale;
    v_shape[j] = shape;
    v_a[j] = 0.1 + 0.2 * (double)j;
    v_theta[j] = location + v_away[j % N_AWAY];
  }
  const double at = 1; /* a normal one */
  const struct tb_param v_param[] = {{"prior_kind", v_kind, NULL, n, n},
                                     {"prior_location", v_location, NULL, n, n},
                                     {"prior_scale", v_scale, NULL, n, n},
                                     {"prior_shape", v_shape, NULL, n, n},
                                     {"prior_at", &at, NULL, 1, 1},
                                     {"prior_functional", v_a, NULL, n, n}};
  for (size_t n_param = 4; n_param <= 6; n_param += 2) {
    const struct tb_params params = {v_param, n_param};
    struct tb_prior prior;
    CHECK(tb_prior_create(&prior, &params, n) == TB_STATUS_ok);
    double log_density = 0, functional = 0;
    for (size_t j = 0; j < n; ++j) {
      functional += v_a[j] * v_theta[j];
      v_expected[j] = 0;
    }
    for (size_t j = 0; j < n; ++j) {
      const bool is_functional = n_param == 6 && j == 1;
      const double x = is_functional ? functional : v_theta[j];
      const struct tb_prior_value value =
          tb_prior_registry[j]->at(x, location, scale, shape, 0);
      log_density += value.log_density;
      for (size_t i = 0; i < n; ++i) {
        v_expected[i] += value.slope * (is_functional ? v_a[i] : i == j);
      }
    }
    CHECK_CLOSE(tb_prior_gradient(&prior, v_theta, v_gradient),
                log_density,
                1e-13 * (1 + fabs(log_density)));
    for (size_t j = 0; j < n; ++j) {
      CHECK_CLOSE(v_gradient[j], v_expected[j], 1e-13);
    }
    CHECK(isnan(tb_prior_lipschitz(&prior, NULL)));
    tb_prior_destroy(&prior);
  }
  v_kind[0] = 0.5;
  const struct tb_params bad = {v_param, 3};
  struct tb_prior none;
  CHECK(tb_prior_create(&none, &bad, n) == TB_STATUS_argument);
}

const struct check_case check_priors[] = {
    {"the registry finds every prior", registry_finds_priors},
    {"slope and curvature of priors are derivatives", derivatives_are_slopes},
    {"variances are those of the density", variances_are_those_of_the_density},
    {"bounds enclose the location", bounds_enclose_the_location},
    {"the sums of a prior are those of its members", sums_are_those_of_members},
    {NULL, NULL}};
