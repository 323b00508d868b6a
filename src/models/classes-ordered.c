/* Ordered classes, with a cumulative link: see classes.c. Class k lies between
 * thresholds k and k + 1 of c_1 < ... < c_(K-1), and beyond the first or last:
 *
 *   P(y <= k) = F(c_(k+1) - eta),  F the logistic or normal distribution
 *   l = log[F(u) - F(v)],  u = c_(k+1) - eta, v = c_k - eta
 *   c_1 = a_1,  c_k = c_(k-1) + e^(a_k)
 *
 * In (u, v) the logistic l is, with d = u - v,
 *   log F(u) + log F(-v) + log(1 - e^-d),
 * in which nothing cancels. The normal one is taken from the tail in which it
 * lies, by the hazard h(t) = phi(t) / Phi(-t).
 *
 * The thresholds' prior is a Dirichlet law of the probabilities of the classes
 * where eta is 0, as rstanarm's, with counts alpha:
 *
 *   log p(a) = sum_k log f(c_k) + sum_k (alpha_k - 1) log P_k + sum_(k>1) a_k
 *
 *   symbol   variable   shape    owner
 *   a        v_shared   K - 1    caller
 *   c        v_cut      K - 1    caller's scratch
 *   alpha    v_count    K        classes
 */
#include "models/classes-inside.h"
#include "responses/normal-tails.h"

#include <math.h>
#include <string.h>

/* Log probability of a class, its slopes and second derivatives in (u, v) */
struct ends {
  double value, u, v, uu, uv, vv;
};

static double logistic(double x) {
  return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* log F(x) */
static double log_logistic(double x) {
  return x > 0 ? -log1p(exp(-x)) : x - log1p(exp(x));
}

/* has_u, has_v: is there a threshold above, below? */
static struct ends logit_ends(double u, double v, bool has_u, bool has_v) {
  struct ends out = {0};
  if (has_u) {
    const double q = logistic(-u);
    out.value += log_logistic(u);
    out.u += q;
    out.uu -= q * (1 - q);
  }
  if (has_v) {
    const double p = logistic(v);
    out.value += log_logistic(-v);
    out.v -= p;
    out.vv -= p * (1 - p);
  }
  if (has_u && has_v) {
    const double d = u - v;
    const double slope = 1 / expm1(d), bend = -slope * (1 + slope);
    out.value += log(-expm1(-d));
    out.u += slope;
    out.v -= slope;
    out.uu += bend;
    out.vv += bend;
    out.uv -= bend;
  }
  return out;
}

/* h(t), t >= 0 */
static double hazard(double t) {
  double v_lane[sizeof(tb_lane) / sizeof(double)];
  tb_lane lane;
  for (size_t k = 0; k < sizeof(v_lane) / sizeof(*v_lane); ++k) {
    v_lane[k] = t;
  }
  memcpy(&lane, v_lane, sizeof(lane));
  tb_lane_hazard_excess(&lane);
  memcpy(v_lane, &lane, sizeof(lane));
  return t + v_lane[0];
}

#define LOG_ROOT_2PI 0.91893853320467274178

static double log_phi(double x) {
  return -0.5 * x * x - LOG_ROOT_2PI;
}

/* log Phi(-t) */
static double log_tail(double t) {
  return t >= 0 ? log_phi(t) - log(hazard(t)) : log1p(-exp(log_tail(-t)));
}

/* log[Phi(u) - Phi(v)], of the tail where it is smaller */
static double log_between(double u, double v, bool has_u, bool has_v) {
  if (!has_v) {
    return log_tail(-u);
  }
  if (!has_u) {
    return log_tail(v);
  }
  if (u < 0 || (v < 0 && -v > u)) {
    const double below = -v, above = -u;
    return log_between(below, above, true, true);
  }
  const double upper = log_tail(v), lower = log_tail(u);
  return upper + log(-expm1(lower - upper));
}

static struct ends probit_ends(double u, double v, bool has_u, bool has_v) {
  struct ends out = {.value = log_between(u, v, has_u, has_v)};
  if (has_u) {
    out.u = exp(log_phi(u) - out.value);
    out.uu = -out.u * (u + out.u);
  }
  if (has_v) {
    out.v = -exp(log_phi(v) - out.value);
    out.vv = -out.v * (v + out.v);
  }
  if (has_u && has_v) {
    out.uv = -out.u * out.v;
  }
  return out;
}

void classes_thresholds(size_t n_class, const double* v_shared, double* v_cut) {
  v_cut[0] = v_shared[0];
  for (size_t k = 1; k + 1 < n_class; ++k) {
    v_cut[k] = v_cut[k - 1] + exp(v_shared[k]);
  }
}

typedef struct ends ends_function(double, double, bool, bool);

static ends_function* ends_of(const struct classes* p) {
  return p->head == &classes_cumulative_logit ? logit_ends : probit_ends;
}

/* of class y where the predictor is eta */
static struct ends
class_ends(const struct classes* p, const double* v_cut, size_t y, double eta) {
  const bool has_u = y + 1 < p->n_class, has_v = y > 0;
  return ends_of(p)(has_u ? v_cut[y] - eta : 0,
                    has_v ? v_cut[y - 1] - eta : 0,
                    has_u,
                    has_v);
}

/* dc_(y+1) / da_m and dc_y / da_m, m < K - 1, of v_step: 1, e^(a_2), ... */
struct slopes {
  double u, v;
};

static struct slopes slopes_at(const double* v_step, size_t y, size_t m) {
  return (struct slopes){m <= y ? v_step[m] : 0, m < y ? v_step[m] : 0};
}

/* Slopes and -Hessian of class y in eta and a, each ADDED with a multiplier to
 * what is not NULL; n_lead: of v_bend. The predictor comes first, where
 * has_eta. */
static void add_ends(const struct classes* p,
                     const struct ends* p_ends,
                     const double* v_step,
                     size_t y,
                     bool has_eta,
                     double weight,
                     double* v_score,
                     double* v_bend,
                     size_t n_lead) {
  const size_t n_cut = p->n_class - 1;
  const size_t n = tb_min(n_cut, y + 1); /* those that class y sees */
  const bool is_last = y >= n_cut;
  for (size_t i = 0; i < n + has_eta; ++i) {
    /* d(u, v) of coordinate i: of the predictor -1 each */
    const bool is_eta = has_eta && i == 0;
    struct slopes a = {-1, -1};
    if (!is_eta) {
      a = slopes_at(v_step, y, i - has_eta);
    }
    if (is_last) {
      a.u = 0;
    }
    if (y == 0) {
      a.v = 0;
    }
    if (v_score != NULL) {
      v_score[i] += weight * (p_ends->u * a.u + p_ends->v * a.v);
    }
    if (v_bend == NULL) {
      continue;
    }
    const double u = p_ends->uu * a.u + p_ends->uv * a.v;
    const double v = p_ends->uv * a.u + p_ends->vv * a.v;
    for (size_t j = 0; j <= i; ++j) {
      struct slopes b = {-1, -1};
      if (!(has_eta && j == 0)) {
        b = slopes_at(v_step, y, j - has_eta);
      }
      const double bent =
          weight * ((is_last ? 0 : u * b.u) + (y == 0 ? 0 : v * b.v));
      v_bend[i * n_lead + j] -= bent;
      if (j < i) {
        v_bend[j * n_lead + i] -= bent;
      }
    }
    /* e^(a_k) bends by itself */
    if (!is_eta && i - has_eta > 0) {
      v_bend[i * n_lead + i] -= weight * (p_ends->u * a.u + p_ends->v * a.v);
    }
  }
}

static void steps_of(size_t n_class, const double* v_shared, double* v_step) {
  v_step[0] = 1;
  for (size_t k = 1; k + 1 < n_class; ++k) {
    v_step[k] = exp(v_shared[k]);
  }
}

/* v_work: thresholds and steps, 2 (K - 1) */
static void ordered_look(const struct classes* p,
                         const double* v_shared,
                         const double* v_eta,
                         const double* v_class,
                         size_t n_row,
                         double* v_work,
                         const struct classes_out* p_out) {
  const size_t n = p->n_inner;
  double *v_cut = v_work, *v_step = v_work + n;
  classes_thresholds(p->n_class, v_shared, v_cut);
  steps_of(p->n_class, v_shared, v_step);
  if (p_out->v_score != NULL) {
    memset(p_out->v_score, 0, n * n_row * sizeof(double));
  }
  if (p_out->v_bend != NULL) {
    memset(p_out->v_bend, 0, n * n * n_row * sizeof(double));
  }
  for (size_t i = 0; i < n_row; ++i) {
    const size_t y = (size_t)v_class[i];
    const struct ends ends = class_ends(p, v_cut, y, v_eta[i]);
    if (p_out->v_log_lik != NULL) {
      p_out->v_log_lik[i] = ends.value;
    }
    add_ends(p,
             &ends,
             v_step,
             y,
             true,
             1,
             p_out->v_score == NULL ? NULL : p_out->v_score + i * n,
             p_out->v_bend == NULL ? NULL : p_out->v_bend + i * n * n,
             n);
  }
}

/* log f(c), its slope and second derivative */
static void log_density(const struct classes* p, double c, double* v_out) {
  if (p->head == &classes_cumulative_logit) {
    const double q = logistic(c);
    v_out[0] = log_logistic(c) + log_logistic(-c);
    v_out[1] = 1 - 2 * q;
    v_out[2] = -2 * q * (1 - q);
  } else {
    v_out[0] = log_phi(c);
    v_out[1] = -c;
    v_out[2] = -1;
  }
}

/* A slope and a curvature in threshold `cut` (from 0), as of add_ends(). */
static void add_density(const double* v_density,
                        const double* v_step,
                        size_t cut,
                        double* v_gradient,
                        double* v_bend,
                        size_t n_lead) {
  for (size_t i = 0; i <= cut; ++i) {
    if (v_gradient != NULL) {
      v_gradient[i] += v_density[1] * v_step[i];
    }
    for (size_t j = 0; v_bend != NULL && j <= i; ++j) {
      const double bent = v_density[2] * v_step[i] * v_step[j];
      v_bend[i * n_lead + j] -= bent;
      if (j < i) {
        v_bend[j * n_lead + i] -= bent;
      }
    }
    if (v_bend != NULL && i > 0) {
      v_bend[i * n_lead + i] -= v_density[1] * v_step[i];
    }
  }
}

double classes_prior_of_thresholds(const struct classes* p,
                                   const double* v_shared,
                                   double* v_gradient,
                                   double* v_bend,
                                   size_t n_lead) {
  const size_t n_cut = p->n_class - 1;
  double v_cut[CLASSES_MOST], v_step[CLASSES_MOST];
  double log_prior = 0;
  if (p->v_count == NULL) {
    return 0;
  }
  classes_thresholds(p->n_class, v_shared, v_cut);
  steps_of(p->n_class, v_shared, v_step);
  for (size_t k = 0; k < n_cut; ++k) {
    double v_density[3];
    log_density(p, v_cut[k], v_density);
    log_prior += v_density[0] + (k == 0 ? 0 : v_shared[k]);
    add_density(v_density, v_step, k, v_gradient, v_bend, n_lead);
    if (v_gradient != NULL && k > 0) {
      v_gradient[k] += 1;
    }
  }
  for (size_t y = 0; y < p->n_class; ++y) {
    const double weight = p->v_count[y] - 1;
    if (weight != 0) {
      const struct ends ends = class_ends(p, v_cut, y, 0);
      log_prior += weight * ends.value;
      add_ends(p, &ends, v_step, y, false, weight, v_gradient, v_bend, n_lead);
    }
  }
  return log_prior;
}

const struct classes_head classes_cumulative_logit = {.name =
                                                          "cumulative-logit",
                                                      .is_ordered = true,
                                                      .look = ordered_look};

const struct classes_head classes_cumulative_probit = {.name =
                                                           "cumulative-probit",
                                                       .is_ordered = true,
                                                       .look = ordered_look};
