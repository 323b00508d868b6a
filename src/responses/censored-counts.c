/* Counts of which some are known to lie beyond, below or between limits no
 * more: Poisson or negative binomial ones, f the probability of a count at
 * mu = e^eta (see poisson-log.c and neg-binomial-log.c). As brms has them, a
 * row says
 *
 *   status 1   seen                 log f(y)
 *          0   more than y          log P(Y > y)
 *          2   y or fewer           log P(Y <= y)
 *          3   more than y, and y'  log P(y < Y <= y')
 *              or fewer
 *
 * With q = mu / (k + mu), k the size (Poisson: infinite), both tails are those
 * of beta distributions (see beta-tail.h), P(Y > y) = I_q(y + 1, k), and
 *
 *   log P = log f(y + 1) + log(y + 1) + log K
 *
 * of the tail that is not near 1, of which the other is the rest. A short
 * interval is a sum of f, with p_j the probability of each count in it and l_j
 * its log f,
 *
 *   dl = sum_j p_j dl_j,   d2l = sum_j p_j (d2l_j + dl_j dl_j') - dl dl'
 *
 * and a wide one the difference of two tails on one side.
 *
 * Terza (1985), A Tobit-type estimator for the censored Poisson regression
 * model, Economics Letters 18:361; Caudill & Mixon (1995), Modeling household
 * fertility decisions: estimation and testing of censored regression models for
 * count data, Empirical Economics 20:183.
 *
 *   symbol      variable           shape
 *   y           v_y[i]             n_row x 3, columns of n_row
 *   y'          v_y[n_row + i]     0 of other rows
 *   status      v_y[2 n_row + i]   enum tb_limits_status
 *   k, s        p_point->aux, p_point->log_aux: s = log k */
#include "responses/beta-tail.h"
#include "responses/limits.h"
#include "responses/shared.h"

#include <math.h>

extern const struct tb_response_type tb_response_poisson_log;
extern const struct tb_response_type tb_response_neg_binomial_log;

/* a law of counts, and a row of it */
struct counts {
  const struct tb_response_type* base;
  /* q, p, g and r at eta, in which x is eta and y is s */
  struct tb_beta (*place)(double eta, const struct tb_response_point* p_point);
};

struct row {
  const struct counts* law;
  const struct tb_response_point* p_point;
  double eta;
  double y, other;
  enum tb_limits_status status;
};

static struct row
row_of(const struct counts* law, const struct tb_response_rows* p, size_t k) {
  const double* v_y = p->v_y + k;
  const size_t n = p->n_row;
  return (struct row){.law = law,
                      .p_point = p->p_point,
                      .eta = p->v_eta[k],
                      .y = v_y[0],
                      .other = v_y[n],
                      .status = (enum tb_limits_status)(int)v_y[2 * n]};
}

/* -- what a row says ------------------------------------------------------- */

/* log f(y + j), j = 0 .. n - 1, WIDTH at most */
enum { WIDTH = 32 };

static void log_counts(const struct row* p,
                       double y,
                       size_t n,
                       bool is_complete,
                       struct tb_dual* v_out) {
  double v_eta[WIDTH], v_y[WIDTH], v_l[WIDTH], v_score[WIDTH], v_bend[WIDTH];
  double v_aux_score[WIDTH], v_cross[WIDTH], v_aux_bend[WIDTH];
  const bool samples = p->law->base->n_aux > 0 && p->p_point->v_is_sampled[0];
  for (size_t j = 0; j < n; ++j) {
    v_eta[j] = p->eta;
    v_y[j] = y + (double)j;
  }
  const struct tb_response_rows rows = {.n_row = n,
                                        .n_predictor = 1,
                                        .v_eta = v_eta,
                                        .v_y = v_y,
                                        .p_point = p->p_point};
  const struct tb_response_out out = {
      .v_log_density = v_l,
      .is_complete = is_complete,
      .v_score = v_score,
      .v_curvature = v_bend,
      .v_aux_score = samples ? v_aux_score : NULL,
      .v_cross = samples ? v_cross : NULL,
      .v_aux_curvature = samples ? v_aux_bend : NULL};
  p->law->base->evaluate(&rows, &out);
  for (size_t j = 0; j < n; ++j) {
    v_out[j] = (struct tb_dual){.value = v_l[j],
                                .x = v_score[j],
                                .y = samples ? v_aux_score[j] : 0,
                                .xx = -v_bend[j],
                                .xy = samples ? -v_cross[j] : 0,
                                .yy = samples ? -v_aux_bend[j] : 0};
  }
}

/* log P(Y > y) and log P(Y <= y), and which of them is not near 0 */
struct tails {
  struct tb_dual above, below;
  bool is_below;
};

static struct tails tails_of(const struct row* p, double y) {
  struct tb_beta at = p->law->place(p->eta, p->p_point);
  at.a = y + 1;
  const bool is_below = tb_beta_is_below(&at);
  struct tb_dual own;
  log_counts(p, y + 1, 1, true, &own);
  own = tb_dual_sum(tb_dual_plus(own, log(y + 1)),
                    tb_beta_log_fraction(&at, is_below));
  const struct tb_dual rest = tb_dual_log_less(tb_dual_number(0), own);
  return (struct tails){.above = is_below ? rest : own,
                        .below = is_below ? own : rest,
                        .is_below = is_below};
}

/* log of a sum of n counts' probabilities from y on */
static struct tb_dual log_sum(const struct row* p, double y, size_t n) {
  struct tb_dual v_l[WIDTH];
  log_counts(p, y, n, true, v_l);
  double most = -INFINITY, total = 0;
  for (size_t j = 0; j < n; ++j) {
    most = fmax(most, v_l[j].value);
  }
  if (most == -INFINITY) {
    return v_l[n - 1];
  }
  struct tb_dual sum = {0};
  double v_p[WIDTH];
  for (size_t j = 0; j < n; ++j) {
    v_p[j] = exp(v_l[j].value - most);
    total += v_p[j];
  }
  for (size_t j = 0; j < n; ++j) {
    v_p[j] /= total;
    sum = tb_dual_sum(sum, tb_dual_scaled(v_l[j], v_p[j]));
  }
  for (size_t j = 0; j < n; ++j) {
    const double x = v_l[j].x - sum.x, y_own = v_l[j].y - sum.y;
    sum.xx += v_p[j] * x * x;
    sum.xy += v_p[j] * x * y_own;
    sum.yy += v_p[j] * y_own * y_own;
  }
  sum.value = most + log(total);
  return sum;
}

static struct tb_dual log_between(const struct row* p) {
  const double n = p->other - p->y;
  if (n <= WIDTH) {
    return log_sum(p, p->y + 1, (size_t)n);
  }
  const struct tails from = tails_of(p, p->y), to = tails_of(p, p->other);
  return to.is_below ? tb_dual_log_less(to.below, from.below)
                     : tb_dual_log_less(from.above, to.above);
}

static struct tb_dual look_at_row(const struct row* p, bool is_complete) {
  if (p->status == TB_LIMITS_interval) {
    return log_between(p);
  }
  if (p->status == TB_LIMITS_seen) {
    struct tb_dual own;
    log_counts(p, p->y, 1, is_complete, &own);
    return own;
  }
  const struct tails tails = tails_of(p, p->y);
  return p->status == TB_LIMITS_right ? tails.above : tails.below;
}

static void put(double* v, size_t k, double value) {
  if (v != NULL) {
    v[k] = value;
  }
}

static void counts_evaluate(const struct counts* law,
                            const struct tb_response_rows* p_rows,
                            const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    const struct row row = row_of(law, p_rows, k);
    const struct tb_dual own = look_at_row(&row, p_out->is_complete);
    const double w = tb_response_weight(p_rows, k);
    put(p_out->v_log_density, k, w * own.value);
    put(p_out->v_score, k, w * own.x);
    /* log-concave, whatever rounding says */
    put(p_out->v_curvature, k, w * fmax(-own.xx, 0));
    put(p_out->v_aux_score, k, w * own.y);
    put(p_out->v_cross, k, -w * own.xy);
    put(p_out->v_aux_curvature, k, -w * own.yy);
  }
}

/* -- what rows may be ------------------------------------------------------ */

static size_t counts_outside(const double* v_y, size_t n, double size) {
  for (size_t i = 0; i < n; ++i) {
    const double v_row[] = {v_y[i], v_y[n + i]};
    const double status = v_y[2 * n + i];
    const bool is_between = status == TB_LIMITS_interval;
    const bool is_known = is_between || status == TB_LIMITS_right ||
                          status == TB_LIMITS_seen || status == TB_LIMITS_left;
    if (!is_known || tb_response_outside_counts(v_row, 2, size) < 2 ||
        (is_between ? !(v_row[1] > v_row[0]) : v_row[1] != 0)) {
      return i;
    }
  }
  return n;
}

/* Over eta, of what rises to one maximum and falls: by thirds. There mu is the
 * mean of counts in the interval. */
static double largest_between(struct row row) {
  double low = log(row.y + 1), high = log(row.other);
  for (int k = 0; k < 200 && high - low > 1e-10; ++k) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    row.eta = a;
    const double at_a = log_between(&row).value;
    row.eta = b;
    if (at_a < log_between(&row).value) {
      low = a;
    } else {
      high = b;
    }
  }
  row.eta = 0.5 * (low + high);
  return log_between(&row).value;
}

static void counts_deviance(const struct counts* law,
                            const struct tb_response_rows* p_rows,
                            const double* v_mean,
                            double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    struct row row = row_of(law, p_rows, k);
    row.eta = log(v_mean[k]);
    if (row.status == TB_LIMITS_seen) {
      const struct tb_response_point* p_point = row.p_point;
      law->base->deviance(&row.y, v_mean + k, 1, NULL, p_point, v_out + k);
    } else {
      const bool is_between = row.status == TB_LIMITS_interval;
      const double most = is_between ? largest_between(row) : 0;
      v_out[k] = 2 * fmax(most - look_at_row(&row, true).value, 0);
    }
    v_out[k] *= tb_response_weight(p_rows, k);
  }
}

/* -- members --------------------------------------------------------------- */

static struct tb_beta poisson_place(double eta,
                                    const struct tb_response_point* p_point) {
  (void)p_point;
  const double mu = exp(fmin(eta, TB_RESPONSE_LARGEST_ETA));
  return (struct tb_beta){.p = tb_dual_number(1),
                          .g = {.value = mu, .x = mu, .xx = mu}};
}

static const struct counts poisson = {.base = &tb_response_poisson_log,
                                      .place = poisson_place};

static void poisson_evaluate(const struct tb_response_rows* p_rows,
                             const struct tb_response_out* p_out) {
  counts_evaluate(&poisson, p_rows, p_out);
}

/* of what may not be seen */
static void poisson_variance(const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  tb_response_poisson_log.variance(v_mean, n_row, v_weight, p_point, v_out);
}

static void poisson_deviance(const double* v_y,
                             const double* v_mean,
                             size_t n_row,
                             const double* v_weight,
                             const struct tb_response_point* p_point,
                             double* v_out) {
  const struct tb_response_rows rows =
      tb_response_rows_at(v_y, v_mean, n_row, v_weight, p_point);
  counts_deviance(&poisson, &rows, v_mean, v_out);
}

const struct tb_response_type tb_response_censored_poisson = {
    .name = "censored_poisson",
    .link = "log",
    .citation = "Terza (1985), Economics Letters 18:361",
    .n_y = 3,
    .outside = counts_outside,
    .evaluate = poisson_evaluate,
    .mean = tb_response_exp_mean,
    .variance = poisson_variance,
    .deviance = poisson_deviance,
};

/* derivatives of q in (eta, s) are those of a logistic function in eta - s */
static struct tb_beta size_place(double eta,
                                 const struct tb_response_point* p_point) {
  const double k = p_point->aux, u = eta - p_point->log_aux;
  const double far = exp(-fabs(u));
  const double q = (u < 0 ? far : 1) / (1 + far);
  const double p = (u < 0 ? 1 : far) / (1 + far);
  const double slope = q * p, bend = slope * (p - q);
  const struct tb_dual share = {q, slope, -slope, bend, -bend, bend};
  struct tb_dual rest = tb_dual_scaled(share, -1);
  rest.value = p;
  return (struct tb_beta){.q = share,
                          .p = rest,
                          .g = {.value = k * q,
                                .x = k * slope,
                                .y = k * q * q,
                                .xx = k * bend,
                                .xy = 2 * k * q * slope,
                                .yy = k * q * q * (q - p)},
                          .r = {.value = 1 / k, .y = -1 / k, .yy = 1 / k}};
}

static const struct counts size = {.base = &tb_response_neg_binomial_log,
                                   .place = size_place};

static void size_evaluate(const struct tb_response_rows* p_rows,
                          const struct tb_response_out* p_out) {
  counts_evaluate(&size, p_rows, p_out);
}

static void size_variance(const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  const struct tb_response_type* base = &tb_response_neg_binomial_log;
  base->variance(v_mean, n_row, v_weight, p_point, v_out);
}

static void size_deviance(const double* v_y,
                          const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out) {
  const struct tb_response_rows rows =
      tb_response_rows_at(v_y, v_mean, n_row, v_weight, p_point);
  counts_deviance(&size, &rows, v_mean, v_out);
}

const struct tb_response_type tb_response_censored_neg_binomial = {
    .name = "censored_neg_binomial_2",
    .link = "log",
    .citation = "Caudill & Mixon (1995), Empirical Economics 20:183",
    .v_aux = &tb_response_size,
    .n_aux = 1,
    .n_y = 3,
    .outside = counts_outside,
    .evaluate = size_evaluate,
    .mean = tb_response_exp_mean,
    .variance = size_variance,
    .deviance = size_deviance,
    .prepare = tb_response_prepare_log,
};
