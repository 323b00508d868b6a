/* R2D2, a prior of the coefficient of determination (Zhang, Naughton, Bondell &
 * Reich 2022, JASA 117:862; the parameters are those of brms):
 *
 *   1 / P_j = s_j^2 w_j,  w_j = T g_j / S,  T = R / (1 - R),  S = sum_j g_j,
 *   R ~ beta(a, b),  g_j ~ gamma(c_j, 1),  a = mean u,  b = (1 - mean) u.
 *
 *   symbol  place in phi  what
 *   R       0             log R / (1 - R) = log T
 *   g_j     1 + j         log g_j
 *
 * In y_j = log w_j, with C = sum_j c_j,
 *
 *   log p(y) = sum_j c_j y_j + (a - C) log T - (a + b) log(1 + T),  T = sum_j
 *   e^y_j, independent of S ~ gamma(C, 1).
 *
 * draw(): S anew; slices (base/slice.h) of y_1 to y_n one after the other, and
 * of all y together along (1, .., 1); forwards or backwards by a fair coin, so
 * that it is reversible. */
#include "base/slice.h"
#include "priors/mixture-inside.h"

enum { MEAN, PRECISION, N_ARGUMENT };

static double r2d2_a(const struct tb_mixture* p_mixture) {
  return p_mixture->v_argument[MEAN] * p_mixture->v_argument[PRECISION];
}

static bool r2d2_is_valid(const struct tb_mixture* p_mixture) {
  const double* v = p_mixture->v_argument;
  return v[MEAN] > 0 && v[MEAN] < 1 && v[PRECISION] > 0 &&
         isfinite(v[PRECISION]);
}

/* of log T */
static double total_log_prior(const struct tb_mixture* p_mixture, double x) {
  return r2d2_a(p_mixture) * x -
         p_mixture->v_argument[PRECISION] * log_one_plus(x);
}

static double r2d2_log_prior(const struct tb_mixture* p_mixture,
                             const double* v_phi) {
  double sum = total_log_prior(p_mixture, v_phi[0]);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    sum += p_mixture->v_shape[j] * v_phi[1 + j] - exp(v_phi[1 + j]);
  }
  return sum;
}

/* log S */
static double log_total(const struct tb_mixture* p_mixture,
                        const double* v_phi) {
  double sum = -INFINITY;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    sum = log_sum(sum, v_phi[1 + j]);
  }
  return sum;
}

static void r2d2_precision(const struct tb_mixture* p_mixture,
                           const double* v_phi,
                           double* v_precision) {
  const double shared = log_total(p_mixture, v_phi) - v_phi[0];
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double s = p_mixture->v_scale[j];
    v_precision[j] = exp(shared - v_phi[1 + j]) / (s * s);
  }
}

static void r2d2_gradient(const struct tb_mixture* p_mixture,
                          const double* v_beta,
                          const double* v_phi,
                          double* v_gradient_phi) {
  const double log_s = log_total(p_mixture, v_phi);
  double sum = 0;
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    /* in log w_j, of log p(beta | phi) */
    const double slope =
        0.5 * (z * z * exp(log_s - v_phi[0] - v_phi[1 + j]) - 1);
    v_gradient_phi[1 + j] = p_mixture->v_shape[j] - exp(v_phi[1 + j]) + slope;
    sum += slope;
  }
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_gradient_phi[1 + j] -= exp(v_phi[1 + j] - log_s) * sum;
  }
  v_gradient_phi[0] = r2d2_a(p_mixture) -
                      p_mixture->v_argument[PRECISION] / (1 + exp(-v_phi[0])) +
                      sum;
}

struct r2d2_given {
  const struct tb_mixture* p_mixture;
  double all;    /* C */
  double others; /* log of the sum of the other w; of all, for a shift */
  double square; /* z_j^2; sum_j z_j^2 / w_j, for a shift */
  double shape;  /* c_j */
  double lowest; /* y, for a shift */
};

static double one_conditional(const void* p_context, double y) {
  const struct r2d2_given* p = p_context;
  if (is_beyond(0.25 * y)) {
    return -INFINITY;
  }
  const double log_t = log_sum(p->others, y);
  return (p->shape - 0.5) * y - p->all * log_t +
         total_log_prior(p->p_mixture, log_t) - 0.5 * p->square * exp(-y);
}

static double shift_conditional(const void* p_context, double shift) {
  const struct r2d2_given* p = p_context;
  if (is_beyond(0.25 * (p->others + shift)) ||
      is_beyond(0.25 * (p->lowest + shift))) {
    return -INFINITY;
  }
  return total_log_prior(p->p_mixture, p->others + shift) -
         0.5 * (double)p->p_mixture->n_coef * shift -
         0.5 * p->square * exp(-shift);
}

static void draw_shift(struct r2d2_given given,
                       const double* v_beta,
                       double* v_y,
                       struct tb_rng* p_rng) {
  const size_t n = given.p_mixture->n_coef;
  given.others = -INFINITY;
  given.square = 0;
  given.lowest = INFINITY;
  for (size_t j = 0; j < n; ++j) {
    const double z = standardised(given.p_mixture, v_beta, j);
    given.others = log_sum(given.others, v_y[j]);
    given.square += z * z * exp(-v_y[j]);
    given.lowest = fmin(given.lowest, v_y[j]);
  }
  const double width = 5 / sqrt(1 + (double)n);
  const double shift =
      tb_slice_step(shift_conditional, &given, 0, width, p_rng);
  for (size_t j = 0; j < n; ++j) {
    v_y[j] += shift;
  }
}

/* v_after[i]: log of the sum of the w that come after the i-th in the order */
static void draw_each(struct r2d2_given given,
                      const double* v_beta,
                      double* v_y,
                      double* v_after,
                      bool is_forward,
                      struct tb_rng* p_rng) {
  const size_t n = given.p_mixture->n_coef;
  double before = -INFINITY;
  v_after[n - 1] = -INFINITY;
  for (size_t i = n - 1; i > 0; --i) {
    v_after[i - 1] = log_sum(v_after[i], v_y[is_forward ? i : n - 1 - i]);
  }
  for (size_t i = 0; i < n; ++i) {
    const size_t j = is_forward ? i : n - 1 - i;
    const double z = standardised(given.p_mixture, v_beta, j);
    given.others = log_sum(before, v_after[i]);
    given.square = z * z;
    given.shape = given.p_mixture->v_shape[j];
    v_y[j] = tb_slice_step(one_conditional, &given, v_y[j], 4, p_rng);
    before = log_sum(before, v_y[j]);
  }
}

static void r2d2_draw(const struct tb_mixture* p_mixture,
                      const double* v_beta,
                      double* v_phi,
                      double* v_work,
                      struct tb_rng* p_rng) {
  const size_t n = p_mixture->n_coef;
  double *v_y = v_work, *v_after = v_work + n;
  struct r2d2_given given = {.p_mixture = p_mixture};
  const double to_y = v_phi[0] - log_total(p_mixture, v_phi);
  for (size_t j = 0; j < n; ++j) {
    v_y[j] = v_phi[1 + j] + to_y;
    given.all += p_mixture->v_shape[j];
  }
  const bool is_forward = tb_rng_unif(p_rng) < 0.5;
  if (is_forward) {
    draw_each(given, v_beta, v_y, v_after, true, p_rng);
  }
  draw_shift(given, v_beta, v_y, p_rng);
  if (!is_forward) {
    draw_each(given, v_beta, v_y, v_after, false, p_rng);
  }
  double log_t = -INFINITY;
  for (size_t j = 0; j < n; ++j) {
    log_t = log_sum(log_t, v_y[j]);
  }
  const double from_y = simulate_log_gamma(given.all, p_rng) - log_t;
  v_phi[0] = log_t;
  for (size_t j = 0; j < n; ++j) {
    v_phi[1 + j] = v_y[j] + from_y;
  }
}

static void r2d2_simulate(const struct tb_mixture* p_mixture,
                          double* v_phi,
                          struct tb_rng* p_rng) {
  const double a = r2d2_a(p_mixture);
  v_phi[0] = simulate_log_gamma(a, p_rng);
  v_phi[0] -= simulate_log_gamma(p_mixture->v_argument[PRECISION] - a, p_rng);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_phi[1 + j] = simulate_log_gamma(p_mixture->v_shape[j], p_rng);
  }
}

static void r2d2_natural(const struct tb_mixture* p_mixture,
                         const double* v_phi,
                         double* v_natural) {
  const double log_s = log_total(p_mixture, v_phi);
  v_natural[0] = 1 / (1 + exp(-v_phi[0]));
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_natural[1 + j] = exp(v_phi[1 + j] - log_s);
  }
}

const struct tb_mixture_type tb_mixture_r2d2 = {
    .name = "r2d2",
    .n_shared = 1,
    .has_locals = true,
    .n_argument = N_ARGUMENT,
    .has_shape = true,
    .is_valid = r2d2_is_valid,
    .log_prior = r2d2_log_prior,
    .precision = r2d2_precision,
    .gradient = r2d2_gradient,
    .draw = r2d2_draw,
    .simulate = r2d2_simulate,
    .natural = r2d2_natural,
};
