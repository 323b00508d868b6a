/* Student responses of which some are known to lie beyond, below or between
 * limits no more (see student.c and limits.h). With z = (y - eta) sqrt(w) /
 * sigma, n degrees of freedom, density f of z, and
 *
 *   q = z^2 / (n + z^2) = 1 - p,  k = n / 2
 *
 * z^2 is of an F distribution, so that (see beta-tail.h, a = 1 / 2) the
 * probabilities on both sides are
 *
 *   P(|Z| > |z|) = I_p(k, 1/2) = |z| f(z) K_below
 *   P(|Z| < |z|) = I_q(1/2, k) = |z| f(z) K_above
 *
 * the former far out, the latter near 0, where F(z) = (1 + z f(z) K_above) / 2
 * whatever the sign. All of it is carried with its derivatives in two of the
 * three coordinates at a time, eta, s = log sigma and t = log(n - 1): three
 * times where n is sampled, once where it is known.
 *
 * Abramowitz & Stegun (1964), 26.5.27 and 26.7; Arellano-Valle, Castro,
 * Gonzalez-Farias & Munoz-Gajardo (2012), Student-t censored regression model:
 * properties and inference, Statistical Methods & Applications 21:453.
 *
 *   symbol      variable           shape
 *   y           v_y[i]             n_row x 3, columns of n_row
 *   y'          v_y[n_row + i]     where an interval ends; 0 of other rows
 *   status      v_y[2 n_row + i]   enum tb_limits_status
 *   n, A', A''  v_own[OWN_df], [OWN_first], [OWN_second] of student.c */
#include "responses/beta-tail.h"
#include "responses/limits.h"
#include "responses/shared.h"

#include <math.h>

#define LOG_2 0.69314718055994530942

extern const struct tb_response_type tb_response_student;

static const struct tb_response_aux student_aux[] = {
    {.name = "sigma", .coordinate = "log_sigma"},
    {.name = "nu", .coordinate = "log_nu_minus_1", .lower = 1},
};

enum { OWN_df = 0, OWN_first = 1, OWN_second = 2 };

enum coordinate { COORDINATE_eta, COORDINATE_s, COORDINATE_t, N_COORDINATE };

/* a row, and the two coordinates that x and y of duals are */
struct row {
  const struct tb_response_point* p_point;
  double eta, rate; /* sqrt(w) / sigma */
  double y, other;
  enum tb_limits_status status;
  enum coordinate x_is, y_is;
};

static struct row row_of(const struct tb_response_rows* p, size_t k) {
  const double* v_y = p->v_y + k;
  const size_t n = p->n_row;
  return (struct row){.p_point = p->p_point,
                      .eta = p->v_eta[k],
                      .rate =
                          sqrt(tb_response_weight(p, k) * p->p_point->scale),
                      .y = v_y[0],
                      .other = v_y[n],
                      .status = (enum tb_limits_status)(int)v_y[2 * n],
                      .x_is = COORDINATE_eta,
                      .y_is = COORDINATE_s};
}

/* -- what it is made of, with derivatives ---------------------------------- */

/* what has these derivatives in each coordinate, and in pairs of them */
static struct tb_dual dual_of(const struct row* p,
                              double value,
                              const double v_first[N_COORDINATE],
                              double v_second[N_COORDINATE][N_COORDINATE]) {
  return (struct tb_dual){value,
                          v_first[p->x_is],
                          v_first[p->y_is],
                          v_second[p->x_is][p->x_is],
                          v_second[p->x_is][p->y_is],
                          v_second[p->y_is][p->y_is]};
}

/* its square is finite however far out it is */
static struct tb_dual place_at(const struct row* p, double y) {
  const double far = 1e150;
  const double z = fmin(fmax((y - p->eta) * p->rate, -far), far);
  const double v_first[N_COORDINATE] = {-p->rate, -z, 0};
  double v_second[N_COORDINATE][N_COORDINATE] = {{0, p->rate, 0},
                                                 {p->rate, z, 0}};
  return dual_of(p, z, v_first, v_second);
}

/* a function of n: its value and derivatives in n */
static struct tb_dual
of_df(const struct row* p, double value, double first, double second) {
  const double rest = p->p_point->v_own[OWN_df] - 1; /* dn/dt, d2n/dt2 */
  const double v_first[N_COORDINATE] = {0, 0, first * rest};
  double v_second[N_COORDINATE][N_COORDINATE] = {{0}};
  v_second[COORDINATE_t][COORDINATE_t] = second * rest * rest + first * rest;
  return dual_of(p, value, v_first, v_second);
}

/* q, p, g and r of a place, and log f there */
struct place {
  struct tb_dual z, log_density;
  struct tb_beta beta;
};

static struct place look_at(const struct row* p, double y) {
  const struct tb_response_point* p_at = p->p_point;
  const double n = p_at->v_own[OWN_df];
  const struct tb_dual z = place_at(p, y), df = of_df(p, n, 1, 0);
  const struct tb_dual inverse = of_df(p, 1 / n, -1 / n / n, 2 / n / n / n);
  const struct tb_dual square = tb_dual_product(z, z);
  const struct tb_dual ratio = tb_dual_product(square, inverse);
  const struct tb_dual rest = tb_dual_inverse(tb_dual_plus(ratio, 1));
  const struct tb_dual constant = of_df(p,
                                        p_at->log_norm + p_at->log_aux,
                                        p_at->v_own[OWN_first],
                                        p_at->v_own[OWN_second]);
  const struct tb_dual power =
      tb_dual_scaled(tb_dual_plus(df, 1), -0.5); /* -(n + 1) / 2 */
  return (struct place){
      .z = z,
      .log_density =
          tb_dual_sum(constant, tb_dual_product(power, tb_dual_log1p(ratio))),
      .beta = {.a = 0.5,
               .q = tb_dual_product(ratio, rest),
               .p = rest,
               .g = tb_dual_scaled(tb_dual_product(square, rest), 0.5),
               .r = tb_dual_scaled(inverse, 2)}};
}

/* -- what a row says ------------------------------------------------------- */

/* log P(Z > z) and log P(Z < z) */
struct tails {
  struct tb_dual above, below;
};

static struct tails tails_of(const struct place* p) {
  const bool is_far = tb_beta_is_below(&p->beta), is_left = p->z.value < 0;
  const struct tb_dual own =
      tb_dual_sum(p->log_density, tb_beta_log_fraction(&p->beta, is_far));
  if (!is_far) {
    /* P(-|z| < Z < |z|), with the sign of z */
    const struct tb_dual more = tb_dual_product(p->z, tb_dual_exp(own));
    const struct tb_dual less = tb_dual_scaled(more, -1);
    return (struct tails){.above = tb_dual_plus(tb_dual_log1p(less), -LOG_2),
                          .below = tb_dual_plus(tb_dual_log1p(more), -LOG_2)};
  }
  const struct tb_dual size = tb_dual_scaled(p->z, is_left ? -1 : 1);
  const struct tb_dual far =
      tb_dual_plus(tb_dual_sum(own, tb_dual_log(size)), -LOG_2);
  const struct tb_dual rest = tb_dual_log_less(tb_dual_number(0), far);
  return (struct tails){.above = is_left ? rest : far,
                        .below = is_left ? far : rest};
}

/* Limits no farther apart than this, for how fast the density changes: the
 * difference of two tails would cancel, and three points of Gauss and Legendre
 * have all digits of its integral. */
#define NARROW 0.05

/* log of the mean density between limits, that of their middle given */
static struct tb_dual log_mean_density(const struct row* p,
                                       struct tb_dual middle) {
  const double half = (p->other - p->y) / 2, away = 0.77459666924148337704;
  struct tb_dual sum = tb_dual_number(0);
  for (int side = -1; side <= 1; side += 2) {
    const struct place at = look_at(p, p->y + half + side * away * half);
    const struct tb_dual rise =
        tb_dual_sum(at.log_density, tb_dual_scaled(middle, -1));
    sum = tb_dual_sum(sum, tb_dual_scaled(tb_dual_exp(rise), 5.0 / 18));
  }
  return tb_dual_sum(middle, tb_dual_log(tb_dual_plus(sum, 8.0 / 18)));
}

static struct tb_dual log_between(const struct row* p) {
  const struct place from = look_at(p, p->y), to = look_at(p, p->other);
  const double n = p->p_point->v_own[OWN_df], z = fabs(from.z.value);
  const double gap = (p->other - p->y) * p->rate;
  if (gap * (n + 1) * (1 + z) <= NARROW * (n + z * z)) {
    const struct place middle = look_at(p, p->y + (p->other - p->y) / 2);
    const double v_first[N_COORDINATE] = {0, -1, 0};
    double v_second[N_COORDINATE][N_COORDINATE] = {{0}};
    return tb_dual_sum(log_mean_density(p, middle.log_density),
                       dual_of(p, log(gap), v_first, v_second));
  }
  const struct tails a = tails_of(&from), b = tails_of(&to);
  return from.z.value > 0 ? tb_dual_log_less(a.above, b.above)
                          : tb_dual_log_less(b.below, a.below);
}

static struct tb_dual look_at_limits(const struct row* p) {
  if (p->status == TB_LIMITS_interval) {
    return log_between(p);
  }
  const struct place place = look_at(p, p->y);
  const struct tails tails = tails_of(&place);
  return p->status == TB_LIMITS_right ? tails.above : tails.below;
}

static void put(double* v, size_t k, double value) {
  if (v != NULL) {
    v[k] = value;
  }
}

/* what is asked for of row k, which is not seen */
static void put_limits(const struct tb_response_rows* p_rows,
                       size_t k,
                       const struct tb_response_out* p_out) {
  const bool* v_is_sampled = p_rows->p_point->v_is_sampled;
  const size_t n = p_rows->n_row, at = v_is_sampled[0];
  struct row row = row_of(p_rows, k);
  struct tb_dual own = look_at_limits(&row);
  put(p_out->v_log_density, k, own.value);
  put(p_out->v_score, k, own.x);
  put(p_out->v_curvature, k, -own.xx);
  if (v_is_sampled[0]) {
    put(p_out->v_aux_score, k, own.y);
    put(p_out->v_cross, k, -own.xy);
    put(p_out->v_aux_curvature, k, -own.yy);
  }
  if (!v_is_sampled[1]) {
    return;
  }
  row.y_is = COORDINATE_t;
  own = look_at_limits(&row);
  put(p_out->v_aux_score, at * n + k, own.y);
  put(p_out->v_cross, at * n + k, -own.xy);
  put(p_out->v_aux_curvature, tb_response_pair(at, at) * n + k, -own.yy);
  if (v_is_sampled[0] && p_out->v_aux_curvature != NULL) {
    row.x_is = COORDINATE_s;
    const size_t pair = tb_response_pair(1, 0) * n + k;
    p_out->v_aux_curvature[pair] = -look_at_limits(&row).xy;
  }
}

/* -- the table ------------------------------------------------------------- */

/* n columns of one row, n_row apart in v_to */
static void
spread(const double* v_from, size_t n, size_t n_row, size_t k, double* v_to) {
  for (size_t j = 0; v_to != NULL && j < n; ++j) {
    v_to[j * n_row + k] = v_from[j];
  }
}

/* a row that is seen */
static void put_seen(const struct tb_response_rows* p_rows,
                     size_t k,
                     const struct tb_response_out* p_out) {
  const bool* v_is_sampled = p_rows->p_point->v_is_sampled;
  const size_t n = p_rows->n_row, n_aux = v_is_sampled[0] + v_is_sampled[1];
  const double weight = tb_response_weight(p_rows, k);
  double v_score[TB_RESPONSE_MOST_AUX], v_cross[TB_RESPONSE_MOST_AUX];
  double v_bend[TB_RESPONSE_MOST_PAIR];
  const struct tb_response_rows row = {.n_row = 1,
                                       .n_predictor = 1,
                                       .v_eta = p_rows->v_eta + k,
                                       .v_y = p_rows->v_y + k,
                                       .v_weight = &weight,
                                       .p_point = p_rows->p_point};
  double l, score, bend;
  const struct tb_response_out out = {.v_log_density = &l,
                                      .is_complete = p_out->is_complete,
                                      .v_score = &score,
                                      .v_curvature = &bend,
                                      .v_aux_score = v_score,
                                      .v_cross = v_cross,
                                      .v_aux_curvature = v_bend};
  tb_response_student.evaluate(&row, &out);
  put(p_out->v_log_density, k, l);
  put(p_out->v_score, k, score);
  put(p_out->v_curvature, k, bend);
  spread(v_score, n_aux, n, k, p_out->v_aux_score);
  spread(v_cross, n_aux, n, k, p_out->v_cross);
  spread(v_bend, n_aux * (n_aux + 1) / 2, n, k, p_out->v_aux_curvature);
}

static void censored_evaluate(const struct tb_response_rows* p_rows,
                              const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    if (p_rows->v_y[2 * p_rows->n_row + k] == TB_LIMITS_seen) {
      put_seen(p_rows, k, p_out);
    } else {
      put_limits(p_rows, k, p_out);
    }
  }
}

static void censored_prepare(const double* v_aux,
                             struct tb_response_point* p_point) {
  tb_response_student.prepare(v_aux, p_point);
}

static size_t censored_outside(const double* v_y, size_t n, double size) {
  const struct tb_limits any = {.is_sd = true};
  (void)size;
  return tb_limits_outside(&any, v_y, n);
}

/* of what may not be seen */
static void censored_variance(const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  tb_response_student.variance(v_mean, n_row, v_weight, p_point, v_out);
}

/* of an interval the largest is where eta is its middle */
static void censored_deviance(const double* v_y,
                              const double* v_mean,
                              size_t n_row,
                              const double* v_weight,
                              const struct tb_response_point* p_point,
                              double* v_out) {
  const struct tb_response_rows rows =
      tb_response_rows_at(v_y, v_mean, n_row, v_weight, p_point);
  tb_response_student.deviance(v_y, v_mean, n_row, v_weight, p_point, v_out);
  for (size_t k = 0; k < n_row; ++k) {
    struct row row = row_of(&rows, k);
    if (row.status == TB_LIMITS_seen) {
      continue;
    }
    const double own = look_at_limits(&row).value;
    double most = 0;
    if (row.status == TB_LIMITS_interval) {
      row.eta = row.y + (row.other - row.y) / 2;
      most = look_at_limits(&row).value;
    }
    v_out[k] = 2 * fmax(most - own, 0);
  }
}

const struct tb_response_type tb_response_censored_student = {
    .name = "censored_student",
    .link = "identity",
    .citation = "Arellano-Valle et al. (2012), Stat. Methods Appl. 21:453",
    .flags = TB_RESPONSE_PRECISION,
    .v_aux = student_aux,
    .n_aux = 2,
    .n_y = 3,
    .outside = censored_outside,
    .evaluate = censored_evaluate,
    .mean = tb_response_same_mean,
    .variance = censored_variance,
    .deviance = censored_deviance,
    .prepare = censored_prepare,
};
