/* Counts that are known to lie beyond, below or between limits no more, against
 * sums of probabilities in more digits: with l_j the logarithm of that of a
 * count j in the range, and p_j its share,
 *
 *   l = log sum_j e^l_j,  dl = sum_j p_j dl_j,
 *   d2l = sum_j p_j (d2l_j + dl_j dl_j') - dl dl' */
#include "check.h"

#include "responses/limits.h"
#include "responses/response.h"

#include <math.h>
#include <string.h>

enum { N_OF = 6 };

/* value; derivatives in eta and s; second ones in eta, both and s */
struct exact {
  long double v[N_OF];
};

/* log f of a count, size infinite of Poisson ones; rise: of the sums over
 * i < y of 1 / (size + i) and of its square */
static struct exact
count_at(long double y, long double eta, double size, const long double* rise) {
  const long double mu = expl(eta);
  if (isinf(size)) {
    return (struct exact){{y * eta - mu - lgammal(y + 1), y - mu, 0, -mu}};
  }
  const long double k = size, q = mu / (k + mu), p = k / (k + mu);
  const long double c = (y + k) * q * p, whole = log1pl(mu / k);
  const long double l = rise[2] + y * logl(q) - k * whole - lgammal(y + 1);
  const long double gain = k * (rise[0] - whole);
  return (struct exact){{l,
                         y * p - k * q,
                         k * q - y * p + gain,
                         -c,
                         c - k * q,
                         2 * k * q + gain + k * k * rise[1] - c}};
}

/* over counts above `from`, to `to` or until they add nothing; what is to be
 * divided by the first, of which the log is 0 */
static struct exact sum_over(double from, double to, double eta, double size) {
  long double v_rise[3] = {0}, v_sum[N_OF] = {0}, shift = 0;
  const double middle = exp(eta);
  for (double y = 0; y <= to; ++y) {
    if (y > from) {
      const struct exact at = count_at(y, eta, size, v_rise);
      const long double* v = at.v;
      shift = v_sum[0] == 0 ? v[0] : shift;
      const long double f = expl(v[0] - shift);
      const long double v_add[N_OF] = {1,
                                       v[1],
                                       v[2],
                                       v[3] + v[1] * v[1],
                                       v[4] + v[1] * v[2],
                                       v[5] + v[2] * v[2]};
      for (int j = 0; j < N_OF; ++j) {
        v_sum[j] += f * v_add[j];
      }
      if (y > middle && f * (1 + y * y) < 1e-22L * v_sum[0]) {
        break;
      }
    }
    v_rise[0] += 1 / (size + (long double)y);
    v_rise[1] -= 1 / ((size + (long double)y) * (size + (long double)y));
    v_rise[2] += logl(size + (long double)y);
  }
  for (int j = 1; j < N_OF; ++j) {
    v_sum[j] /= v_sum[0];
  }
  const long double x = v_sum[1], y = v_sum[2];
  return (struct exact){{shift + logl(v_sum[0]),
                         x,
                         y,
                         v_sum[3] - x * x,
                         v_sum[4] - x * y,
                         v_sum[5] - y * y}};
}

static void
check_row(struct check* p_check, double eta, double size, const double* v_y) {
  const enum tb_limits_status status = (enum tb_limits_status)(int)v_y[2];
  const double from = status == TB_LIMITS_left ? -1 : v_y[0];
  const double to = status == TB_LIMITS_left    ? v_y[0]
                    : status == TB_LIMITS_right ? 1e7
                                                : v_y[1];
  const struct exact exact = sum_over(from, to, eta, size);
  const bool is_poisson = isinf(size);
  const struct tb_response response = {
      tb_response_find(is_poisson ? "censored_poisson"
                                  : "censored_neg_binomial_2",
                       "log"),
      {NAN, NAN}};
  const double s = log(size);
  const struct tb_response_point point = tb_response_at(&response, &s);
  double v[N_OF] = {0};
  const struct tb_response_rows rows = {.n_row = 1,
                                        .n_predictor = 1,
                                        .v_eta = &eta,
                                        .v_y = v_y,
                                        .p_point = &point};
  const struct tb_response_out out = {.v_log_density = &v[0],
                                      .is_complete = true,
                                      .v_score = &v[1],
                                      .v_aux_score = is_poisson ? NULL : &v[2],
                                      .v_curvature = &v[3],
                                      .v_cross = is_poisson ? NULL : &v[4],
                                      .v_aux_curvature =
                                          is_poisson ? NULL : &v[5]};
  response.type->evaluate(&rows, &out);
  /* what rounds off is of the size of the logarithm of a count */
  const double lost = 1e-13 * (1 + v_y[0] + v_y[1]);
  for (int j = 0; j < N_OF; ++j) {
    const double expected = (double)exact.v[j];
    CHECK_CLOSE(j < 3 ? v[j] : -v[j],
                expected,
                lost * (1 + fabs(expected)) + 1e-13 * exp(eta));
  }
}

static void counts_are_sums(struct check* p_check) {
  const double v_size[] = {INFINITY, 0.05, 1.7, 30, 1e5};
  const double v_row[][3] = {{0, 0, TB_LIMITS_right},
                             {3, 0, TB_LIMITS_right},
                             {60, 0, TB_LIMITS_right},
                             {400, 0, TB_LIMITS_right},
                             {0, 0, TB_LIMITS_left},
                             {3, 0, TB_LIMITS_left},
                             {400, 0, TB_LIMITS_left},
                             {0, 1, TB_LIMITS_interval},
                             {2, 34, TB_LIMITS_interval},
                             {2, 35, TB_LIMITS_interval},
                             {20, 400, TB_LIMITS_interval}};
  for (size_t i = 0; i < sizeof v_size / sizeof v_size[0]; ++i) {
    for (size_t j = 0; j < sizeof v_row / sizeof v_row[0]; ++j) {
      for (double eta = -8; eta < 6.3; eta += 0.61) {
        check_row(p_check, eta, v_size[i], v_row[j]);
      }
    }
  }
}

/* tails to their own size where they vanish: log P(Y > y) where mu is small is
 * that of the first count, P(Y = 0) of one whose mu is large */
static void tails_keep_their_size(struct check* p_check) {
  const struct tb_response_type* type =
      tb_response_find("censored_poisson", "log");
  const struct tb_response_point point = {.scale = 1};
  const double v_eta[] = {-700, 30, -40};
  const double v_y[] = {2, 0, 0, 0, 0, 0, 0, 2, 2};
  double v_l[3], v_score[3], v_bend[3];
  const struct tb_response_rows rows = {.n_row = 3,
                                        .n_predictor = 1,
                                        .v_eta = v_eta,
                                        .v_y = v_y,
                                        .p_point = &point};
  const struct tb_response_out out = {.v_log_density = v_l,
                                      .is_complete = true,
                                      .v_score = v_score,
                                      .v_curvature = v_bend};
  type->evaluate(&rows, &out);
  CHECK_CLOSE(v_l[0], 3 * -700.0 - log(6), 1e-12);
  CHECK_CLOSE(v_score[0], 3, 1e-15);
  CHECK_CLOSE(v_bend[0], 0.75 * exp(-700), 1e-14 * exp(-700));
  for (int k = 1; k < 3; ++k) {
    const double mu = exp(v_eta[k]);
    CHECK_CLOSE(v_l[k], -mu, 1e-14 * mu);
    CHECK_CLOSE(v_score[k], -mu, 1e-14 * mu);
    CHECK_CLOSE(v_bend[k], mu, 1e-13 * mu);
  }
}

const struct check_case check_limits[] = {
    {"censored counts are sums of counts", counts_are_sums},
    {"tails of counts keep their size", tails_keep_their_size},
    {NULL, NULL}};
