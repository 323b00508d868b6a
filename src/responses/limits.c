/* See limits.h. */
#include "responses/limits.h"

#include "responses/normal-tails.h"
#include "responses/shared.h"

#include <math.h>

/* a function of z: its value and two derivatives */
struct jet {
  double value, first, second;
};

/* -- laws ------------------------------------------------------------------ */

/* a = e^z, the cumulative hazard: log f = z - a, log S = -a */
static double hazard_at(double z) {
  return exp(fmin(z, TB_RESPONSE_LARGEST_ETA));
}

static struct jet extreme_density(double z) {
  const double a = hazard_at(z);
  return (struct jet){z - a, 1 - a, -a};
}

static struct jet extreme_above(double z) {
  const double a = hazard_at(z);
  return (struct jet){-a, -a, -a};
}

/* log(1 - e^-a): b = a / (e^a - 1), b' = b (1 - a - b) */
static struct jet extreme_below(double z) {
  const double a = hazard_at(z), rest = tb_response_less_share(a);
  const double value = a < 1e-8  ? z - a / 2
                       : a < 0.7 ? log(-expm1(-a))
                                 : log1p(-exp(-a));
  return (struct jet){value, 1 - rest, (1 - rest) * (rest - a)};
}

/* h(t) = phi(t) / Phi(-t), and what it is more than t */
static void normal_hazard(double t, double* p_hazard, double* p_excess) {
  double v_t[TB_LANE] = {fabs(t)};
  tb_lane lane;
  tb_lane_load(v_t, 0, TB_LANE, &lane);
  tb_lane_hazard_excess(&lane);
  double excess;
  tb_lane_store(&lane, 0, 1, &excess);
  *p_hazard = fabs(t) + excess;
  *p_excess = excess;
}

#define LOG_SQRT_2_PI 0.91893853320467274178

static struct jet normal_density(double z) {
  return (struct jet){-0.5 * z * z, -z, -1};
}

/* log Phi(-t) */
static struct jet normal_tail(double t) {
  double hazard, excess;
  normal_hazard(t, &hazard, &excess);
  const double log_density = -0.5 * t * t - LOG_SQRT_2_PI;
  if (t >= 0) {
    return (struct jet){log_density - log(hazard), -hazard, -hazard * excess};
  }
  /* the tail beyond -t, which this is the rest of */
  const double density = exp(log_density), beyond = density / hazard;
  const double h = density / (1 - beyond);
  return (struct jet){log1p(-beyond), -h, -h * (h - t)};
}

static struct jet mirrored(struct jet jet) {
  jet.first = -jet.first;
  return jet;
}

static struct jet normal_below(double z) {
  return mirrored(normal_tail(-z));
}

/* log 1 / (1 + e^z) */
static struct jet logistic_above(double z) {
  const double far = exp(-fabs(z));
  const double p = (z < 0 ? far : 1) / (1 + far);
  return (
      struct jet){-fmax(z, 0) - log1p(far), -p, -far / ((1 + far) * (1 + far))};
}

static struct jet logistic_below(double z) {
  return mirrored(logistic_above(-z));
}

static struct jet logistic_density(double z) {
  const struct jet a = logistic_above(z), b = logistic_below(z);
  return (
      struct jet){a.value + b.value, a.first + b.first, a.second + b.second};
}

/* -- rows ------------------------------------------------------------------ */

/* z, and its derivatives; that in eta twice is 0. x less its origin, and
 * e^{c s}, for how far apart two places are. */
struct place {
  double z, eta, s, eta_s, s_s;
  double x, rate, sign;
};

/* l, and its derivatives */
struct sum {
  double l, eta, s, eta_eta, eta_s, s_s;
};

/* what is the same of a row's places */
struct row {
  double eta, rate; /* e^{c s}, times the root of a precision */
  double origin;    /* u */
  double sign;      /* c */
  bool is_time, is_hazard;
};

static struct place place_at(const struct row* p, double y) {
  const double x = (p->is_time ? log(y) : y) - p->origin;
  if (p->is_hazard) {
    const double far = x * p->rate;
    return (struct place){p->eta + far, 1, far, 0, far, x, p->rate, 1};
  }
  const double z = (x - p->eta) * p->rate;
  return (struct place){.z = z,
                        .eta = -p->rate,
                        .s = p->sign * z,
                        .eta_s = -p->sign * p->rate,
                        .s_s = z,
                        .x = x,
                        .rate = p->rate,
                        .sign = p->sign};
}

static void
add_jet(const struct place* p, struct jet g, double times, struct sum* q) {
  q->l += times * g.value;
  q->eta += times * g.first * p->eta;
  q->s += times * g.first * p->s;
  q->eta_eta += times * g.second * p->eta * p->eta;
  q->eta_s += times * (g.second * p->eta * p->s + g.first * p->eta_s);
  q->s_s += times * (g.second * p->s * p->s + g.first * p->s_s);
}

/* log(1 - e^-x), x > 0 */
static double log_less_exp(double x) {
  return x < 0.7 ? log(-expm1(-x)) : log1p(-exp(-x));
}

/* How far apart two places are, which eta has nothing to do with: x, and
 * 1 / (1 - e^-x) */
struct gap {
  double x, s, s_s, share;
};

static struct gap gap_of(const struct place* a, const struct place* b) {
  const double x = (b->x - a->x) * a->rate;
  return (struct gap){x, a->sign * x, x, -1 / expm1(-x)};
}

/* S(a) - S(b) = e^-A (1 - e^-(B - A)), A = e^a: beyond a, and within log(B - A)
 */
static void
extreme_between(const struct place* a, const struct place* b, struct sum* q) {
  const struct gap gap = gap_of(a, b);
  const double share = gap.share;
  struct place within = *a;
  within.z += gap.x + log_less_exp(gap.x);
  within.s += share * gap.s;
  within.s_s += share * gap.s_s - share * (share - 1) * gap.s * gap.s;
  add_jet(a, extreme_above(a->z), 1, q);
  add_jet(&within, extreme_below(within.z), 1, q);
}

/* S(a) - S(b) = S(a) F(b) (1 - e^-(b - a)) */
static void
logistic_between(const struct place* a, const struct place* b, struct sum* q) {
  const struct gap gap = gap_of(a, b);
  const double rest = gap.share - 1;
  add_jet(a, logistic_above(a->z), 1, q);
  add_jet(b, logistic_below(b->z), 1, q);
  q->l += log_less_exp(gap.x);
  q->s += rest * gap.s;
  q->s_s += rest * gap.s_s - gap.share * rest * gap.s * gap.s;
}

/* With r the densities over the probability dl = r(b) db - r(a) da. Limits no
 * farther apart than NARROW are a density and a width; of one FAR beyond the
 * other there is none. */
#define NARROW 1e-6
#define FAR    40

static void
normal_between(const struct place* a, const struct place* b, struct sum* q) {
  const struct gap gap = gap_of(a, b);
  const struct jet f_a = normal_density(a->z);
  const struct jet f_b = normal_density(b->z);
  if (gap.x < NARROW) {
    add_jet(a, f_a, 0.5, q);
    add_jet(b, f_b, 0.5, q);
    q->l += log(gap.x) - LOG_SQRT_2_PI;
    q->s += gap.s / gap.x;
    q->s_s += gap.s_s / gap.x - gap.s / gap.x * (gap.s / gap.x);
    return;
  }
  const bool is_above = a->z + b->z > 0;
  const double at = is_above ? a->z : -b->z, to = is_above ? b->z : -a->z;
  const double near = normal_tail(at).value, far = normal_tail(to).value;
  if (!(near - far <= FAR)) {
    add_jet(is_above ? a : b,
            is_above ? normal_tail(a->z) : normal_below(b->z),
            1,
            q);
    return;
  }
  const double l = near + log_less_exp(near - far);
  const double r_a = exp(f_a.value - LOG_SQRT_2_PI - l);
  const double r_b = exp(f_b.value - LOG_SQRT_2_PI - l);
  /* second derivatives in the places; the mixed one is r_a r_b */
  const double aa = -f_a.first * r_a - r_a * r_a;
  const double bb = f_b.first * r_b - r_b * r_b;
  const double ab = r_a * r_b;
  /* log-concave, whatever rounding says */
  const double bend = fmin(aa + bb + 2 * ab, 0);
  q->l += l;
  q->eta += (r_b - r_a) * a->eta;
  q->s += r_b * b->s - r_a * a->s;
  q->eta_eta += bend * a->eta * a->eta;
  q->eta_s +=
      a->eta * ((aa + ab) * a->s + (bb + ab) * b->s) + (r_b - r_a) * a->eta_s;
  q->s_s += aa * a->s * a->s + bb * b->s * b->s + 2 * ab * a->s * b->s -
            r_a * a->s_s + r_b * b->s_s;
}

/* -- laws: their functions ------------------------------------------------- */

struct tb_limits_law {
  struct jet (*density)(double z); /* log f, without its constant */
  struct jet (*above)(double z);   /* log S */
  struct jet (*below)(double z);   /* log F */
  /* log [S(a) - S(b)] */
  void (*between)(const struct place* a, const struct place* b, struct sum* q);
  double constant; /* of log f */
};

const struct tb_limits_law tb_limits_extreme = {.density = extreme_density,
                                                .above = extreme_above,
                                                .below = extreme_below,
                                                .between = extreme_between};
const struct tb_limits_law tb_limits_normal = {.density = normal_density,
                                               .above = normal_tail,
                                               .below = normal_below,
                                               .between = normal_between,
                                               .constant = -LOG_SQRT_2_PI};
const struct tb_limits_law tb_limits_logistic = {.density = logistic_density,
                                                 .above = logistic_above,
                                                 .below = logistic_below,
                                                 .between = logistic_between};

static struct sum sum_of_row(const struct tb_limits* p,
                             const struct row* p_row,
                             const double v_y[3]) {
  const struct tb_limits_law* law = p->law;
  const struct place at = place_at(p_row, v_y[0]);
  struct sum sum = {0};
  const enum tb_limits_status status = (enum tb_limits_status)(int)v_y[2];
  if (status == TB_LIMITS_interval) {
    const struct place to = place_at(p_row, v_y[1]);
    law->between(&at, &to, &sum);
    return sum;
  }
  add_jet(&at,
          status == TB_LIMITS_seen    ? law->density(at.z)
          : status == TB_LIMITS_right ? law->above(at.z)
                                      : law->below(at.z),
          1,
          &sum);
  if (status == TB_LIMITS_seen) {
    sum.l += law->constant;
    sum.s += p_row->sign;
  }
  if (p->is_time && v_y[1] > 0) {
    const struct place entry = place_at(p_row, v_y[1]);
    add_jet(&entry, law->above(entry.z), -1, &sum);
  }
  return sum;
}

static struct row row_of(const struct tb_limits* p,
                         const struct tb_response_rows* p_rows,
                         size_t k) {
  const struct tb_response_point* p_at = p_rows->p_point;
  const double w = p->is_precision ? tb_response_weight(p_rows, k) : 1;
  return (struct row){.eta = p_rows->v_eta[k],
                      .rate = (p->is_sd ? 1 / p_at->aux : p_at->aux) * sqrt(w),
                      .origin = p->is_hazard ? p_at->v_own[TB_LIMITS_unit] : 0,
                      .sign = p->is_sd ? -1 : 1,
                      .is_time = p->is_time,
                      .is_hazard = p->is_hazard};
}

static void
columns_of(const struct tb_response_rows* p_rows, size_t k, double v_y[3]) {
  for (size_t j = 0; j < 3; ++j) {
    v_y[j] = p_rows->v_y[j * p_rows->n_row + k];
  }
}

/* what the predictor and a sampled parameter have nothing to do with */
static double constant_of(const struct tb_limits* p,
                          const struct tb_response_rows* p_rows,
                          size_t k,
                          const double v_y[3],
                          bool is_complete) {
  const double log_rate = (p->is_sd ? -1 : 1) * p_rows->p_point->log_aux;
  if ((enum tb_limits_status)(int)v_y[2] != TB_LIMITS_seen) {
    return 0;
  }
  double sum = 0;
  if (is_complete || p_rows->p_point->v_is_sampled[0]) {
    sum += log_rate;
  }
  if (is_complete && p->is_time) {
    sum -= log(v_y[0]);
  }
  if (is_complete && p->is_precision) {
    sum += 0.5 * log(tb_response_weight(p_rows, k));
  }
  return sum;
}

static void put(double* v, size_t k, double value) {
  if (v != NULL) {
    v[k] = value;
  }
}

/* What hangs on sampled parameters. l has the unit in eta - e^s u, and is as of
 * e^s = rate for it. */
static void put_aux(const struct tb_response_out* p_out,
                    const struct tb_response_rows* p_rows,
                    size_t k,
                    double w,
                    double rate,
                    const struct sum* q) {
  const size_t n = p_rows->n_row;
  const bool has_s = p_rows->p_point->v_is_sampled[0];
  if (has_s) {
    put(p_out->v_aux_score, k, w * q->s);
    put(p_out->v_cross, k, -w * q->eta_s);
    put(p_out->v_aux_curvature, k, -w * q->s_s);
  }
  if (p_rows->p_point->v_is_sampled[1]) {
    const size_t at = (has_s ? 1 : 0) * n + k;
    const size_t pair = (has_s ? tb_response_pair(1, 1) : 0) * n + k;
    put(p_out->v_aux_score, at, -w * rate * q->eta);
    put(p_out->v_cross, at, w * rate * q->eta_eta);
    put(p_out->v_aux_curvature, pair, -w * rate * rate * q->eta_eta);
  }
  if (has_s && p_rows->p_point->v_is_sampled[1]) {
    put(p_out->v_aux_curvature,
        tb_response_pair(1, 0) * n + k,
        w * rate * (q->eta + q->eta_s));
  }
}

void tb_limits_evaluate(const struct tb_limits* p,
                        const struct tb_response_rows* p_rows,
                        const struct tb_response_out* p_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    double v_y[3];
    columns_of(p_rows, k, v_y);
    const struct row row = row_of(p, p_rows, k);
    const struct sum sum = sum_of_row(p, &row, v_y);
    const double w = p->is_precision ? 1 : tb_response_weight(p_rows, k);
    if (p_out->v_log_density != NULL) {
      p_out->v_log_density[k] =
          w * (sum.l + constant_of(p, p_rows, k, v_y, p_out->is_complete));
    }
    put(p_out->v_score, k, w * sum.eta);
    put(p_out->v_curvature, k, -w * sum.eta_eta);
    put_aux(p_out, p_rows, k, w, row.rate, &sum);
  }
}

static bool is_of_row(const struct tb_limits* p, const double v_y[3]) {
  const double y = v_y[0], other = v_y[1], status = v_y[2];
  if (!isfinite(y) || !isfinite(other) || (p->is_time && !(y > 0))) {
    return false;
  }
  if (status == TB_LIMITS_interval) {
    return other > y;
  }
  const bool is_open = status == TB_LIMITS_right || status == TB_LIMITS_seen;
  return (is_open || status == TB_LIMITS_left) &&
         (other == 0 || (is_open && p->is_time && other > 0 && other < y));
}

size_t
tb_limits_outside(const struct tb_limits* p, const double* v_y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double v_row[] = {v_y[i], v_y[n + i], v_y[2 * n + i]};
    if (!is_of_row(p, v_row)) {
      return i;
    }
  }
  return n;
}

/* -- how far a row is from the best that it could be ----------------------- */

static double density_at(const struct tb_limits* p,
                         struct row row,
                         const double v_y[3],
                         double eta) {
  row.eta = eta;
  return sum_of_row(p, &row, v_y).l;
}

/* over eta, of what rises to one maximum and falls: by thirds */
static double largest(const struct tb_limits* p,
                      const struct row* p_row,
                      const double v_y[3]) {
  const double x = (p->is_time ? log(v_y[0]) : v_y[0]) - p_row->origin;
  const double centre = p->is_hazard ? -x * p_row->rate : x;
  const double reach = p->is_hazard ? 60 : 60 / p_row->rate;
  double far = reach;
  if ((enum tb_limits_status)(int)v_y[2] == TB_LIMITS_interval) {
    const double to = (p->is_time ? log(v_y[1]) : v_y[1]) - p_row->origin;
    far += p->is_hazard ? (to - x) * p_row->rate : to - x;
  }
  double low = centre - far, high = centre + far;
  for (int k = 0; k < 200 && high - low > 1e-10 * (1 + fabs(low)); ++k) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (density_at(p, *p_row, v_y, a) < density_at(p, *p_row, v_y, b)) {
      low = a;
    } else {
      high = b;
    }
  }
  return density_at(p, *p_row, v_y, 0.5 * (low + high));
}

void tb_limits_deviance(const struct tb_limits* p,
                        const struct tb_response_rows* p_rows,
                        double* v_out) {
  for (size_t k = 0; k < p_rows->n_row; ++k) {
    double v_y[3];
    columns_of(p_rows, k, v_y);
    const struct row row = row_of(p, p_rows, k);
    const enum tb_limits_status status = (enum tb_limits_status)(int)v_y[2];
    const bool is_open = status == TB_LIMITS_right || status == TB_LIMITS_left;
    const double most = is_open ? 0 : largest(p, &row, v_y);
    const double w = p->is_precision ? 1 : tb_response_weight(p_rows, k);
    v_out[k] = 2 * w * (most - sum_of_row(p, &row, v_y).l);
  }
}
