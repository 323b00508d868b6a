/* What is known to lie beyond, below or between limits no more. Student
 * responses against their laws of 2 and 4 degrees of freedom, which have no
 * integrals; counts against sums of probabilities in more digits: with l_j the
 * logarithm of that of a count j in the range, and p_j its share,
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

/* P(Z > z), of 2 or 4 degrees of freedom, to its own size; its density */
static long double tail_of(int n, long double z) {
  const long double root = sqrtl(n + z * z), c = z / root;
  const long double rest = z > 0 ? n / (root * (root + z)) : 1 - c;
  return n == 2 ? rest / 2 : rest * rest * (2 + c) / 4;
}

static long double density_of(int n, long double z) {
  const long double p = 1 / (1 + z * z / n);
  return n == 2 ? powl(p, 1.5L) / sqrtl(8) : 0.375L * powl(p, 2.5L);
}

/* log P(a < Z < b) where sigma is 1 and eta 0, d/deta = -d/dz, -d2/deta2 and
 * d/ds = -z d/dz */
static void exact_student(int n, long double a, long double b, double* v_out) {
  const long double f_a = isinf(a) ? 0 : density_of(n, a);
  const long double f_b = isinf(b) ? 0 : density_of(n, b);
  const long double p = isinf(a)   ? tail_of(n, -b)
                        : isinf(b) ? tail_of(n, a)
                        : a > 0    ? tail_of(n, a) - tail_of(n, b)
                                   : tail_of(n, -b) - tail_of(n, -a);
  const long double z_a = isinf(a) ? 0 : a, z_b = isinf(b) ? 0 : b;
  const long double score = (f_a - f_b) / p;
  /* -f' */
  const long double fall_a = (n + 1) * z_a / (n + z_a * z_a) * f_a;
  const long double fall_b = (n + 1) * z_b / (n + z_b * z_b) * f_b;
  v_out[0] = (double)logl(p);
  v_out[1] = (double)score;
  v_out[2] = (double)(score * score - (fall_a - fall_b) / p);
  v_out[3] = (double)((z_a * f_a - z_b * f_b) / p);
}

static void check_student(struct check* p_check, int n, double z) {
  const struct tb_response response = {
      tb_response_find("censored_student", "identity"),
      {NAN, NAN}};
  const double v_coordinate[] = {0, log(n - 1)}, v_eta[] = {0, 0, 0};
  const struct tb_response_point point =
      tb_response_at(&response, v_coordinate);
  const double v_status[] = {TB_LIMITS_right,
                             TB_LIMITS_left,
                             TB_LIMITS_interval};
  const double v_y[] =
      {z, z, z, 0, 0, z + 1.5, v_status[0], v_status[1], v_status[2]};
  double v_l[3], v_score[3], v_bend[3], v_aux[6];
  const struct tb_response_rows rows = {.n_row = 3,
                                        .n_predictor = 1,
                                        .v_eta = v_eta,
                                        .v_y = v_y,
                                        .p_point = &point};
  const struct tb_response_out out = {.v_log_density = v_l,
                                      .v_score = v_score,
                                      .v_curvature = v_bend,
                                      .v_aux_score = v_aux};
  response.type->evaluate(&rows, &out);
  const double v_from[] = {z, -INFINITY, z};
  const double v_to[] = {INFINITY, z, z + 1.5};
  for (int k = 0; k < 3; ++k) {
    double v[4];
    exact_student(n, v_from[k], v_to[k], v);
    CHECK_CLOSE(v_l[k], v[0], 1e-13 * (1 - v[0]));
    CHECK_CLOSE(v_score[k], v[1], 1e-13);
    CHECK_CLOSE(v_bend[k], v[2], 1e-13);
    CHECK_CLOSE(v_aux[k], v[3], 1e-13 * (1 + fabs(v[3])));
  }
}

static void students_have_their_law(struct check* p_check) {
  for (int n = 2; n <= 4; n += 2) {
    for (double z = -30; z < 30; z += 0.37) {
      check_student(p_check, n, z);
    }
    check_student(p_check, n, 0);
    check_student(p_check, n, 1e6);
    check_student(p_check, n, -1e6);
  }
}

const struct check_case check_limits[] = {
    {"censored Student responses have their law", students_have_their_law},
    {"censored counts are sums of counts", counts_are_sums},
    {"tails of counts keep their size", tails_keep_their_size},
    {NULL, NULL}};
