#include "check.h"
#include "fixture.h"

#include "base/rng.h"
#include "base/variates.h"
#include "responses/response.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROW = 173, N_CLASS = 3, N_COLUMN = 6, MOST = 6 };

/* rows of any response: predictors from moderate to extreme, y of its support
 */
struct rows {
  double v_eta[N_ROW * N_CLASS];
  double v_y[N_ROW * TB_RESPONSE_MOST_Y], v_weight[N_ROW];
  struct tb_response response;
  struct tb_response_point point;
  struct tb_response_rows rows;
};

/* 0 or 1, or where a response has not that value one that it has */
static double value_of(const struct tb_response_type* type, double y) {
  return fixture_has_value(type, y) ? y : fixture_has_value(type, 1) ? 1 : 0.5;
}

static size_t n_predictor_of(const struct tb_response_type* type) {
  return tb_response_n_predictor(type, N_CLASS);
}

/* does it bend the other way nowhere? Of times of rows that are seen from later
 * on, the law is conditional. */
static bool is_concave(const struct tb_response_type* type) {
  const char* const v_other[] = {"student",
                                 "censored_student",
                                 "beta",
                                 "lognormal",
                                 "loglogistic",
                                 "truncated_neg_binomial"};
  bool is_other = false;
  for (size_t k = 0; k < sizeof v_other / sizeof v_other[0]; ++k) {
    is_other |= strcmp(type->name, v_other[k]) == 0;
  }
  return !is_other;
}

/* with parameters of 1.5 and of 5, or all sampled */
static struct tb_response response_of(const struct tb_response_type* type,
                                      double first,
                                      bool samples_aux) {
  return (struct tb_response){
      type,
      {samples_aux ? NAN : first, samples_aux ? NAN : 5}};
}

static const double v_coordinate[TB_RESPONSE_MOST_AUX] = {0.3, 0.9};

/* columns of what is at place c */
static size_t n_column_of(const struct tb_response_type* type, int c) {
  const size_t n_aux = type->n_aux, n_predictor = n_predictor_of(type);
  const size_t v_column[N_COLUMN] = {1,
                                     n_predictor,
                                     n_predictor * (n_predictor + 1) / 2,
                                     n_aux,
                                     n_aux * n_predictor,
                                     n_aux * (n_aux + 1) / 2};
  return v_column[c];
}

static void rows_make(struct rows* p,
                      const struct tb_response_type* type,
                      bool samples_aux) {
  struct tb_rng rng;
  tb_rng_init(&rng, 5, 0, TB_STREAM_noise);
  for (size_t i = 0; i < N_ROW * N_CLASS; ++i) {
    const double size = i % 7 == 0 ? 40 : i % 5 == 0 ? 8 : 1;
    p->v_eta[i] = size * tb_rng_norm(&rng);
  }
  for (size_t i = 0; i < N_ROW; ++i) {
    const double y = (double)(i % 3);
    p->v_y[i] = fixture_has_value(type, y) ? y : value_of(type, i % 2);
    p->v_weight[i] = i % 4 == 0 ? 1 : 0.5 + tb_rng_unif(&rng);
  }
  fixture_more_columns(type, N_ROW, p->v_y);
  p->response = response_of(type, 1.5, samples_aux);
  p->point = tb_response_at(&p->response, v_coordinate);
  p->rows = (struct tb_response_rows){.n_row = N_ROW,
                                      .n_predictor = n_predictor_of(type),
                                      .v_eta = p->v_eta,
                                      .v_y = p->v_y,
                                      .v_weight = p->v_weight,
                                      .p_point = &p->point};
}

/* room for every result; those that a response does not have stay NULL */
struct results {
  double v[N_COLUMN][N_ROW * MOST];
  struct tb_response_out out;
};

static void
results_make(struct results* p, bool samples_aux, bool is_complete) {
  memset(p, 0, sizeof *p);
  p->out =
      (struct tb_response_out){.v_log_density = p->v[0],
                               .is_complete = is_complete,
                               .v_score = p->v[1],
                               .v_curvature = p->v[2],
                               .v_aux_score = samples_aux ? p->v[3] : NULL,
                               .v_cross = samples_aux ? p->v[4] : NULL,
                               .v_aux_curvature = samples_aux ? p->v[5] : NULL};
}

static void registry_finds_responses(struct check* p_check) {
  CHECK(tb_response_count() > 0);
  CHECK(tb_response_registry[tb_response_count()] == NULL);
  for (size_t k = 0; k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    CHECK(tb_response_find(type->name, type->link) == type);
    CHECK(tb_response_at_place((double)k) == type);
    CHECK(type->citation != NULL && type->outside != NULL &&
          type->evaluate != NULL && type->mean != NULL);
    CHECK((type->flags & TB_RESPONSE_CLASSES) ||
          (type->variance != NULL && type->deviance != NULL));
    CHECK(tb_response_n_y(type) <= TB_RESPONSE_MOST_Y);
    CHECK(tb_response_n_predictor(type, 1) <= TB_RESPONSE_MOST_PREDICTOR);
    CHECK(tb_response_n_predictor(type, 0) == 1 ||
          (type->bound == NULL && type->third_bound == NULL));
    CHECK((type->n_aux == 0) == (type->prepare == NULL));
  }
  const double v_bad[] =
      {-1, 0.5, (double)tb_response_count(), 1e300, NAN, INFINITY};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    CHECK(tb_response_at_place(v_bad[k]) == NULL);
  }
  CHECK(tb_response_find("binomial", "identity") == NULL);
  CHECK(tb_response_find("no such response", NULL) == NULL);
}

/* to the last bit: one row at a time, one result at a time, weights of 1 or
 * none */
static void rows_are_apart(struct check* p_check) {
  for (size_t k = 0; k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    for (int samples = 0; samples <= (type->n_aux > 0); ++samples) {
      struct rows r;
      struct results all;
      rows_make(&r, type, samples);
      const size_t n_predictor = r.rows.n_predictor;
      results_make(&all, samples, samples == 0);
      type->evaluate(&r.rows, &all.out);
      for (size_t i = 0; i < N_ROW; ++i) {
        struct results one;
        double v_eta[N_CLASS], v_y[TB_RESPONSE_MOST_Y];
        results_make(&one, samples, samples == 0);
        for (size_t j = 0; j < n_predictor; ++j) {
          v_eta[j] = r.v_eta[j * N_ROW + i];
        }
        tb_response_columns(r.v_y, N_ROW, i, 1, tb_response_n_y(type), v_y);
        struct tb_response_rows row = r.rows;
        row.n_row = 1;
        row.v_eta = v_eta;
        row.v_y = v_y;
        row.v_weight = r.v_weight + i;
        type->evaluate(&row, &one.out);
        for (int c = 0; c < N_COLUMN; ++c) {
          const size_t n_wide = n_column_of(type, c);
          for (size_t j = 0; j < n_wide; ++j) {
            const double a = one.v[c][j], b = all.v[c][j * N_ROW + i];
            CHECK(a == b || (isnan(a) && isnan(b)));
          }
        }
      }
      double* const v_slot[] = {all.out.v_log_density,
                                all.out.v_score,
                                all.out.v_curvature,
                                all.out.v_aux_score,
                                all.out.v_cross,
                                all.out.v_aux_curvature};
      for (int c = 0; c < N_COLUMN; ++c) {
        if (v_slot[c] == NULL) {
          continue;
        }
        struct results alone;
        results_make(&alone, samples, samples == 0);
        const struct tb_response_out out = {
            .is_complete = samples == 0,
            .v_log_density = c == 0 ? alone.v[0] : NULL,
            .v_score = c == 1 ? alone.v[1] : NULL,
            .v_curvature = c == 2 ? alone.v[2] : NULL,
            .v_aux_score = c == 3 ? alone.v[3] : NULL,
            .v_cross = c == 4 ? alone.v[4] : NULL,
            .v_aux_curvature = c == 5 ? alone.v[5] : NULL};
        type->evaluate(&r.rows, &out);
        CHECK(memcmp(alone.v[c], all.v[c], sizeof all.v[c]) == 0);
      }
      for (size_t i = 0; i < N_ROW; ++i) {
        r.v_weight[i] = 1;
      }
      type->evaluate(&r.rows, &all.out);
      struct results without;
      results_make(&without, samples, samples == 0);
      r.rows.v_weight = NULL;
      type->evaluate(&r.rows, &without.out);
      CHECK(memcmp(without.v, all.v, sizeof all.v) == 0);
    }
  }
}

/* However far out predictors are: no NaN, no curvature below 0 of responses
 * that are log-concave, and means within their range or at its ends. */
static void extremes_are_finite(struct check* p_check) {
  const double v_eta[] = {-1e300,
                          -1e10,
                          -800,
                          -745,
                          -700,
                          -300,
                          -40,
                          0,
                          40,
                          300,
                          700,
                          745,
                          800,
                          1e10,
                          1e300};
  enum { N_ETA = sizeof v_eta / sizeof v_eta[0] };
  for (size_t k = 0; k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    if (n_predictor_of(type) != 1) {
      continue;
    }
    const bool is_count = !fixture_has_value(type, 0.5);
    for (int y = 0; y < 2; ++y) {
      const struct tb_response response = response_of(type, 1, false);
      const struct tb_response_point point = tb_response_at(&response, NULL);
      double v_y[TB_RESPONSE_MOST_Y * N_ETA];
      double v_l[N_ETA], v_score[N_ETA], v_w[N_ETA], v_mean[N_ETA];
      for (size_t i = 0; i < N_ETA; ++i) {
        v_y[i] = value_of(type, y);
      }
      fixture_more_columns(type, N_ETA, v_y);
      const struct tb_response_rows rows = {.n_row = N_ETA,
                                            .n_predictor = 1,
                                            .v_eta = v_eta,
                                            .v_y = v_y,
                                            .p_point = &point};
      const struct tb_response_out out = {.v_log_density = v_l,
                                          .v_score = v_score,
                                          .v_curvature = v_w};
      type->evaluate(&rows, &out);
      type->mean(v_eta, N_ETA, 1, v_mean);
      for (size_t i = 0; i < N_ETA; ++i) {
        CHECK(!isnan(v_l[i]) && !isnan(v_score[i]) && !isnan(v_mean[i]));
        CHECK(v_w[i] >= 0 || (!is_concave(type) && !isnan(v_w[i])));
        /* a mean of counts lies between two of them */
        const double below = is_count ? floor(v_mean[i]) : v_mean[i];
        const bool is_limit = isinf(below) || below == 0 || below == 1;
        CHECK(fixture_has_value(type, below) || is_limit);
      }
    }
  }
}

/* ----------------------------------------------------------------- slopes */

enum { N_POINT = 5, MOST_MOVED = N_CLASS + TB_RESPONSE_MOST_AUX };

/* What is found at N_POINT points of one row, apart in its coordinate `moved`:
 * of the predictors, and then of the sampled parameters. */
static void moved_make(struct results* p,
                       const struct tb_response_type* type,
                       const double* v_at,
                       const double* v_y,
                       size_t moved,
                       double h) {
  const size_t n_predictor = n_predictor_of(type);
  results_make(p, type->n_aux > 0, true);
  for (int at = 0; at < N_POINT; ++at) {
    const double weight = 2.5;
    double v_here[MOST_MOVED];
    memcpy(v_here, v_at, sizeof v_here);
    v_here[moved] += (at - 2) * h;
    const struct tb_response response = response_of(type, 1.5, true);
    const struct tb_response_point point =
        tb_response_at(&response, v_here + n_predictor);
    const struct tb_response_rows rows = {.n_row = 1,
                                          .n_predictor = n_predictor,
                                          .v_eta = v_here,
                                          .v_y = v_y,
                                          .v_weight = &weight,
                                          .p_point = &point};
    struct results one;
    results_make(&one, type->n_aux > 0, true);
    type->evaluate(&rows, &one.out);
    for (int c = 0; c < N_COLUMN; ++c) {
      for (size_t j = 0; j < n_column_of(type, c); ++j) {
        p->v[c][j * N_POINT + (size_t)at] = one.v[c][j];
      }
    }
  }
}

/* the slope of f in the middle of its points */
static void slope_is(struct check* p_check,
                     const double* f,
                     double h,
                     double expected,
                     double share) {
  const double slope = (8 * (f[3] - f[1]) - (f[4] - f[0])) / (12 * h);
  const double rounding = 100 * DBL_EPSILON * (1 + fabs(f[2])) / h;
  CHECK_CLOSE(slope, expected, share * fabs(expected) + rounding);
}

/* Scores are slopes of the log density, and curvatures of all pairs of
 * coordinates those of scores, but for the rounding of what they are slopes of.
 * (In R the same for more values, and the other laws:
 * tests/testthat/helper-conformance-response.R.) */
static void slopes_of_row(struct check* p_check,
                          const struct tb_response_type* type,
                          const double* v_at,
                          const double* v_y,
                          bool moves_aux) {
  enum { MIDDLE = 2 };
  const size_t n_predictor = n_predictor_of(type);
  const size_t n_moved = n_predictor + (moves_aux ? type->n_aux : 0);
  for (size_t k = 0; k < n_moved; ++k) {
    const double h = 2e-4, share = k < n_predictor ? 1e-6 : 1e-5;
    struct results r;
    moved_make(&r, type, v_at, v_y, k, h);
    const size_t a = k - n_predictor;
    const double* v_score =
        k < n_predictor ? r.v[1] + k * N_POINT : r.v[3] + a * N_POINT;
    slope_is(p_check, r.v[0], h, v_score[MIDDLE], share);
    for (size_t l = 0; l < n_predictor; ++l) {
      const size_t high = k < l ? l : k, low = k < l ? k : l;
      const double* v_bend =
          k < n_predictor ? r.v[2] + tb_response_pair(high, low) * N_POINT
                          : r.v[4] + (a * n_predictor + l) * N_POINT;
      slope_is(p_check, r.v[1] + l * N_POINT, h, -v_bend[MIDDLE], share);
    }
    for (size_t b = 0; k >= n_predictor && b <= a; ++b) {
      const double* v_bend = r.v[5] + tb_response_pair(a, b) * N_POINT;
      const double known = a == b ? type->v_aux[a].information : 0;
      slope_is(p_check,
               r.v[3] + b * N_POINT,
               h,
               -v_bend[MIDDLE] - known,
               share);
    }
  }
}

static void derivatives_are_slopes(struct check* p_check) {
  for (size_t k = 0; k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    const size_t n_predictor = n_predictor_of(type);
    for (int i = -200; i <= 200; ++i) {
      double v_at[MOST_MOVED], v_y[TB_RESPONSE_MOST_Y + 2];
      for (size_t j = 0; j < n_predictor; ++j) {
        v_at[j] = (j == 0 ? 0.103 : 0.011 * (double)j) * i;
      }
      memcpy(v_at + n_predictor, v_coordinate, sizeof v_coordinate);
      for (size_t j = 0; j < 3; ++j) {
        v_y[j] = value_of(type, i % 2 == 0);
      }
      if (tb_response_n_y(type) > 1) {
        fixture_row(type, (size_t)(i + 200), v_y[0], v_y);
      }
      slopes_of_row(p_check, type, v_at, v_y, abs(i) < 20);
    }
  }
}

/* -------------------------------------------------------------- remainders */

/* e_i of one observation, of several columns of y the `kind`-th that there is,
 * and the bound of it: K_i |t|^3 / 6 over |t| */
static double remainder_of(const struct tb_response_type* type,
                           double eta,
                           double y,
                           size_t kind,
                           double t,
                           double* p_bound) {
  const struct tb_response response = response_of(type, 1.5, false);
  const struct tb_response_point point = tb_response_at(&response, NULL);
  const double weight = 1.5, reach = fabs(t);
  double v_y[TB_RESPONSE_MOST_Y] = {y};
  if (tb_response_n_y(type) > 1) {
    fixture_row(type, kind, y, v_y);
  }
  double e = NAN, third = NAN;
  const struct tb_response_rows rows = {.n_row = 1,
                                        .n_predictor = 1,
                                        .v_eta = &eta,
                                        .v_y = v_y,
                                        .v_weight = &weight,
                                        .p_point = &point};
  type->remainder(&rows, &t, &e);
  type->third_bound(&rows, &reach, &third);
  *p_bound = third * reach * reach * reach / 6;
  return e;
}

/* does the row say that it lies between limits, and no more? */
static bool
is_between(const struct tb_response_type* type, double y, size_t kind) {
  double v_y[TB_RESPONSE_MOST_Y] = {y};
  if (tb_response_n_y(type) < 3) {
    return false;
  }
  fixture_row(type, kind, y, v_y);
  return v_y[2] == 3;
}

/* Never beyond the bound, at which they arrive for small t, whatever the place:
 * that takes all of their digits. A bound of half the size fails. */
static void remainders_are_bounded(struct check* p_check) {
  const size_t n_try = 400000;
  struct tb_rng rng;
  tb_rng_init(&rng, 9, 0, TB_STREAM_noise);
  for (size_t k = 0; k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    CHECK((type->third_bound == NULL) == (type->remainder == NULL));
    if (type->remainder == NULL) {
      continue;
    }
    const bool is_binomial = strcmp(type->name, "binomial") == 0;
    double largest = 0;
    size_t n_beyond = 0, n_short = 0, n_small = 0;
    for (size_t i = 0; i < n_try; ++i) {
      const double eta = 60 * tb_rng_unif(&rng) - 30;
      const double y = is_binomial ? floor(4 * tb_rng_unif(&rng)) / 3 : 1;
      const double size = exp(-16 * tb_rng_unif(&rng)) * 40;
      const double t = tb_rng_unif(&rng) < 0.5 ? size : -size;
      const size_t kind = i % 64;
      double bound;
      const double e = remainder_of(type, eta, y, kind, t, &bound);
      if (bound == 0 && e == 0) {
        continue;
      }
      /* the smallest numbers have no digits left */
      n_beyond += !(fabs(e) <= bound * (1 + 1e-6) + 1e-290);
      largest = fmax(largest, fabs(e) / bound);
      /* a single kind of outcome: no sum of two of opposite signs */
      if (size < 1e-3 && fabs(eta) > 5 && y == floor(y) && bound > 1e-290) {
        /* the tails of a probit change over 1 / |eta|, a cloglog over e^-eta */
        const bool is_small = is_concave(type) && !is_between(type, y, kind) &&
                              size * fmax(fabs(eta), exp(eta)) < 1e-3;
        n_small += is_small;
        n_short += is_small && !(fabs(e) > 0.99 * bound);
      }
    }
    CHECK(n_beyond == 0);
    CHECK(n_short == 0);
    CHECK(largest > 0.9 || n_small == 0);
  }
}

/* against differences in long double, where they have digits */
static void remainders_are_accurate(struct check* p_check) {
  const char* const v_link[] = {"logit", "probit", "cloglog", "log"};
  for (int k = 0; k < 4; ++k) {
    const struct tb_response_type* type =
        tb_response_find(k == 3 ? "poisson" : "binomial", v_link[k]);
    for (double eta = -6; eta <= 3; eta += 0.37) {
      for (double t = -4; t <= 3; t += 0.083) {
        for (int y = 0; y < 2; ++y) {
          /* U and its slopes at eta, U at eta + t */
          long double v_u[2], slope = 0, bend = 0;
          for (int at = 0; at < 2; ++at) {
            const long double x = (long double)eta + (at ? t : 0);
            const long double side = y ? x : -x, mean = expl(x);
            const long double p = 1 / (1 + expl(-x));
            const long double cdf = erfcl(-side / sqrtl(2)) / 2;
            const long double lambda =
                expl(-side * side / 2) / sqrtl(8 * atanl(1)) / cdf;
            const long double b = mean / expm1l(mean);
            v_u[at] = k == 0 ? log1pl(expl(-side))
                      : k == 1
                          ? (side > 0 ? -log1pl(-erfcl(side / sqrtl(2)) / 2)
                                      : -logl(cdf))
                      : k == 2 ? (y ? -logl(-expm1l(-mean)) : mean)
                               : mean - y * x;
            if (at == 0) {
              slope = k == 0   ? p - y
                      : k == 1 ? (y ? -lambda : lambda)
                      : k == 2 ? (y ? -b : mean)
                               : mean - y;
              bend =
                  k == 0   ? p * (1 - p)
                  : k == 1 ? lambda * (side + lambda)
                  : k == 2
                      ? (y ? b * (mean < 0.01L ? mean / 2 + mean * mean / 12 -
                                                     powl(mean, 4) / 720
                                               : mean / -expm1l(-mean) - 1)
                           : mean)
                      : mean;
            }
          }
          const long double step = t;
          const double expected =
              (double)(v_u[1] - v_u[0] - slope * step - bend * step * step / 2);
          const double size = (double)(fabsl(v_u[0]) + fabsl(v_u[1]) +
                                       fabsl(bend) * step * step);
          double bound;
          const double e = remainder_of(type, eta, y, 0, t, &bound);
          CHECK_CLOSE(e / 1.5, expected, 1e-8 * bound + 1e-18 * size);
        }
      }
    }
  }
}

/* -------------------------------------------------------- new links, digits */

static void tails_are_accurate(struct check* p_check) {
  const struct tb_response_type* probit =
      tb_response_find("binomial", "probit");
  const struct tb_response_type* cloglog =
      tb_response_find("binomial", "cloglog");
  CHECK(probit != NULL && cloglog != NULL);
  for (double eta = -40; eta <= 40; eta += 0.125) {
    for (int y = 0; y < 2; ++y) {
      const double response = y;
      double l, score, w, mean;
      const struct tb_response_rows rows = {.n_row = 1,
                                            .n_predictor = 1,
                                            .v_eta = &eta,
                                            .v_y = &response};
      const struct tb_response_out out = {.v_log_density = &l,
                                          .v_score = &score,
                                          .v_curvature = &w};
      probit->evaluate(&rows, &out);
      probit->mean(&eta, 1, 1, &mean);
      const long double x = y ? eta : -eta;
      const long double cdf = erfcl(-x / sqrtl(2)) / 2;
      const long double phi = expl(-x * x / 2) / sqrtl(8 * atanl(1));
      const long double lambda = phi / cdf;
      const double expected =
          (double)(x > 0 ? log1pl(-erfcl(x / sqrtl(2)) / 2) : logl(cdf));
      const double slope = (double)(y ? lambda : -lambda);
      /* e^(-x^2/2) of a rounded exponent */
      const double far = 2e-16 * (4 + eta * eta / 2);
      const double least = 1e-307; /* subnormal numbers have fewer digits */
      CHECK_CLOSE(l, expected, far * fabs(expected));
      CHECK_CLOSE(score, slope, least + far * fabs(slope));
      /* x + lambda cancels in the reference where x < 0 */
      const double bend = (double)(lambda * (x + lambda));
      const double lost = x < 0 ? 1e-19 * eta * eta * eta * eta : 0;
      CHECK_CLOSE(w, bend, least + (far + lost) * fabs(bend));
      CHECK_CLOSE(mean,
                  (double)(erfcl(-(long double)eta / sqrtl(2)) / 2),
                  least + far * mean);
      if (eta > 6) {
        continue;
      }
      cloglog->evaluate(&rows, &out);
      cloglog->mean(&eta, 1, 1, &mean);
      const long double u = expl(eta), mu = -expm1l(-u), v = u / mu;
      const long double b = u / expm1l(u);
      const long double log_mu = u > 0.7L ? log1pl(-expl(-u)) : logl(mu);
      const double log_density = (double)(y ? log_mu : -u);
      const double first = (double)(y ? b : -u);
      const long double ahead =
          u < 0.01L ? u / 2 + u * u / 12 - powl(u, 4) / 720 + powl(u, 6) / 30240
                    : v - 1;
      const double second = (double)(y ? b * ahead : u);
      const double loss = 1e-15 + 2e-16 * (double)u; /* e^-u likewise */
      CHECK_CLOSE(l, log_density, loss * fabs(log_density));
      CHECK_CLOSE(score, first, loss * fabs(first));
      CHECK_CLOSE(w, second, loss * fabs(second));
      CHECK_CLOSE(mean, (double)mu, 1e-15 * mean);
    }
  }
}

/* ----------------------------------------------------------- what comes along
 */

/* the natural scale of auxiliary parameters; known there, or sampled: the same
 * but for what is left out */
static void aux_is_transformed(struct check* p_check) {
  for (size_t k = 0; k < tb_response_count(); ++k) {
    const struct tb_response_type* type = tb_response_registry[k];
    const struct tb_response sampled = response_of(type, 1, true);
    CHECK(tb_response_n_sampled(&sampled) == type->n_aux);
    for (double s = -3; s < 3; s += 0.37) {
      const double v_s[TB_RESPONSE_MOST_AUX] = {s, 0.5 - s};
      struct tb_response known = {.type = type};
      double v_natural[TB_RESPONSE_MOST_AUX] = {0};
      tb_response_natural(&sampled, v_s, v_natural);
      for (size_t j = 0; j < type->n_aux; ++j) {
        CHECK(v_natural[j] == type->v_aux[j].lower + exp(v_s[j]));
      }
      CHECK(tb_response_know(&known, v_natural, type->n_aux));
      CHECK(tb_response_n_sampled(&known) == 0);
      const struct tb_response_point a = tb_response_at(&known, NULL);
      const struct tb_response_point b = tb_response_at(&sampled, v_s);
      CHECK_CLOSE(a.scale, b.scale, 1e-14 * b.scale);
      CHECK_CLOSE(a.log_norm, b.log_norm, 1e-14 * (1 + fabs(b.log_norm)));
    }
    const double v_bad[] = {-1, 0, INFINITY};
    for (size_t j = 0; type->n_aux > 0 && j < 3; ++j) {
      struct tb_response known = {.type = type};
      CHECK(!tb_response_know(&known, &v_bad[j], 1));
    }
    struct tb_response known = {.type = type};
    CHECK(!tb_response_know(&known, v_coordinate, type->n_aux + 1));
  }
}

/* counts have the probabilities of their laws, large ones the moments */
static void counts_follow_their_laws(struct check* p_check) {
  enum { N_DRAW = 40000, N_CELL = 12 };
  struct tb_rng rng;
  tb_rng_init(&rng, 8, 0, TB_STREAM_noise);
  for (int law = 0; law < 2; ++law) {
    double v_seen[N_CELL] = {0}, v_expected[N_CELL] = {0};
    for (size_t i = 0; i < N_DRAW; ++i) {
      const double x =
          law == 0 ? tb_rng_binomial(&rng, 9, 0.3) : tb_rng_poisson(&rng, 2.5);
      CHECK(x >= 0 && x == floor(x));
      v_seen[x < N_CELL ? (size_t)x : N_CELL - 1] += 1;
    }
    double left = N_DRAW;
    for (size_t x = 0; x + 1 < N_CELL; ++x) {
      const double n = 9;
      const double log_p =
          law == 0 ? lgamma(n + 1) - lgamma((double)x + 1) -
                         lgamma(n - (double)x + 1) + (double)x * log(0.3) +
                         (n - (double)x) * log(0.7)
                   : (double)x * log(2.5) - 2.5 - lgamma((double)x + 1);
      v_expected[x] = law == 0 && x > 9 ? 0 : N_DRAW * exp(log_p);
      left -= v_expected[x];
    }
    v_expected[N_CELL - 1] = left;
    const size_t n_cell = law == 0 ? 8 : N_CELL; /* those that are seen */
    CHECK(fabs(check_chi_square(v_seen, v_expected, n_cell)) < 5);
  }
  const double v_mean[] = {17, 120, 4e4};
  for (size_t k = 0; k < 3; ++k) {
    for (int law = 0; law < 2; ++law) {
      const double n = v_mean[k] / 0.4;
      const double variance = law == 0 ? v_mean[k] * 0.6 : v_mean[k];
      double sum = 0, square = 0;
      for (size_t i = 0; i < N_DRAW; ++i) {
        const double x =
            (law == 0 ? tb_rng_binomial(&rng, floor(n), v_mean[k] / floor(n))
                      : tb_rng_poisson(&rng, v_mean[k])) -
            v_mean[k];
        sum += x;
        square += x * x;
      }
      CHECK(fabs(sum / N_DRAW) < 5 * sqrt(variance / N_DRAW));
      CHECK_CLOSE(square / N_DRAW,
                  variance,
                  (0.02 + 6 * sqrt(2.5 / N_DRAW)) * variance);
    }
  }
}

const struct check_case check_responses[] = {
    {"the registry finds every response", registry_finds_responses},
    {"rows and results do not depend on each other", rows_are_apart},
    {"predictors may be anything", extremes_are_finite},
    {"score and curvature are slopes", derivatives_are_slopes},
    {"remainders stay within their bounds", remainders_are_bounded},
    {"remainders are accurate", remainders_are_accurate},
    {"probit and cloglog: tails are accurate", tails_are_accurate},
    {"auxiliary parameters are transformed", aux_is_transformed},
    {"counts follow their laws", counts_follow_their_laws},
    {NULL, NULL}};
