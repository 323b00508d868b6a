/* The regularised horseshoe: Piironen & Vehtari (2017), Electronic Journal of
 * Statistics 11:5018, equations 2.8 to 2.11,
 *
 *   1 / P_j = s_j^2 / q_j,  q_j = 1 / c^2 + 1 / (t u_j)^2,
 *   t ~ half Student(n_t, 0, a),  u_j ~ half Student(n),
 *   c^2 / b^2 ~ inverse gamma(n_c / 2, n_c / 2).
 *
 *   symbol  place in phi  what
 *   t       0             global scale, as its logarithm
 *   c       1             the slab, likewise
 *   u_j     2 + j         local scales, likewise
 *
 * draw(): slices (base/slice.h) of the u_j, which are independent given t and
 * c; of t given u; of t given the products t u_j, on which alone beta depends,
 * which moves t where nearly all coefficients are 0 (Yu & Meng 2011, JCGS
 * 20:531); and of c. The order is forwards or backwards by a fair coin, so that
 * all of it is reversible. */
#include "base/slice.h"
#include "priors/mixture-inside.h"

enum { DF, GLOBAL_DF, GLOBAL_SCALE, SLAB_DF, SLAB_SCALE, N_ARGUMENT };
enum { GLOBAL, SLAB, LOCAL };

static bool horseshoe_is_valid(const struct tb_mixture* p_mixture) {
  for (size_t k = 0; k < N_ARGUMENT; ++k) {
    if (!(p_mixture->v_argument[k] > 0)) {
      return false;
    }
  }
  return isfinite(p_mixture->v_argument[GLOBAL_SCALE]) &&
         isfinite(p_mixture->v_argument[SLAB_SCALE]) &&
         isfinite(p_mixture->v_argument[SLAB_DF]);
}

static double global_log_prior(const struct tb_mixture* p_mixture, double x) {
  const double* v = p_mixture->v_argument;
  return log_half_student(x - log(v[GLOBAL_SCALE]), v[GLOBAL_DF]);
}

static double slab_log_prior(const struct tb_mixture* p_mixture, double x) {
  const double* v = p_mixture->v_argument;
  return log_inverse_chi(x - log(v[SLAB_SCALE]), v[SLAB_DF]);
}

static double horseshoe_log_prior(const struct tb_mixture* p_mixture,
                                  const double* v_phi) {
  double sum = global_log_prior(p_mixture, v_phi[GLOBAL]) +
               slab_log_prior(p_mixture, v_phi[SLAB]);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    sum += log_half_student(v_phi[LOCAL + j], p_mixture->v_argument[DF]);
  }
  return sum;
}

static void horseshoe_precision(const struct tb_mixture* p_mixture,
                                const double* v_phi,
                                double* v_precision) {
  const double slab = exp(-2 * v_phi[SLAB]);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double s = p_mixture->v_scale[j];
    v_precision[j] =
        (slab + exp(-2 * (v_phi[GLOBAL] + v_phi[LOCAL + j]))) / (s * s);
  }
}

/* d/d(log q_j) of log p(beta | phi) is (1 - q_j z_j^2) / 2; log q_j falls by
 * twice the share of 1 / (t u_j)^2 in it where log t or log u_j rises. */
static void horseshoe_gradient(const struct tb_mixture* p_mixture,
                               const double* v_beta,
                               const double* v_phi,
                               double* v_gradient_phi) {
  const double* v_argument = p_mixture->v_argument;
  const double log_slab = -2 * v_phi[SLAB];
  double of_global =
      slope_half_student(v_phi[GLOBAL] - log(v_argument[GLOBAL_SCALE]),
                         v_argument[GLOBAL_DF]);
  double of_slab = slope_inverse_chi(v_phi[SLAB] - log(v_argument[SLAB_SCALE]),
                                     v_argument[SLAB_DF]);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    const double log_own = -2 * (v_phi[GLOBAL] + v_phi[LOCAL + j]);
    const double share = 1 / (1 + exp(log_slab - log_own));
    const double excess = z * z * (exp(log_slab) + exp(log_own)) - 1;
    v_gradient_phi[LOCAL + j] =
        slope_half_student(v_phi[LOCAL + j], v_argument[DF]) + share * excess;
    of_global += share * excess;
    of_slab += (1 - share) * excess;
  }
  v_gradient_phi[GLOBAL] = of_global;
  v_gradient_phi[SLAB] = of_slab;
}

/* What a slice is given. */
struct horseshoe_given {
  const struct tb_mixture* p_mixture;
  const double* v_square; /* n_coef: z_j^2 */
  const double*
      v_inside; /* n_coef: 1 / u_j^2, or 1 / (t u_j)^2, or u_j^2 / n */
  const double* v_phi;
  double square, other; /* of one coefficient: z_j^2; 1 / c^2 */
  double sum;           /* of the logarithms of u_j, */
  double low, high;     /* the least and the largest of them */
};

/* sum_j log(added + factor r_j), and sum_j (added + factor r_j) z_j^2 where
 * v_square is there. Logarithms of products: one of several factors costs as
 * much as of one. */
static double sum_of_logs(size_t n,
                          const double* v_inside,
                          const double* v_square,
                          double added,
                          double factor,
                          double* p_squares) {
  enum { N_FACTOR = 4 }; /* each between 1e-70 and 1e70, else by itself */
  double sum = 0, squares = 0;
  for (size_t j = 0; j < n; j += N_FACTOR) {
    double product = 1;
    for (size_t i = j; i < n && i < j + N_FACTOR; ++i) {
      const double q = added + factor * v_inside[i];
      squares += v_square == NULL ? 0 : q * v_square[i];
      if (q > 1e-70 && q < 1e70) {
        product *= q;
      } else {
        sum += log(q);
      }
    }
    sum += log(product);
  }
  *p_squares = squares;
  return sum;
}

/* sum_j log p(beta_j | phi) where q_j = added + factor r_j */
static double
log_coefficients(const struct horseshoe_given* p, double added, double factor) {
  double squares;
  const double sum = sum_of_logs(p->p_mixture->n_coef,
                                 p->v_inside,
                                 p->v_square,
                                 added,
                                 factor,
                                 &squares);
  return 0.5 * (sum - squares);
}

/* log(u) - (n + 1) / 2 log(1 + u^2 / n) + log(q) / 2 - q z^2 / 2, and of the
 * Cauchy law with one logarithm */
static double local_conditional(const void* p_context, double x) {
  const struct horseshoe_given* p = p_context;
  if (is_beyond(x)) {
    return -INFINITY;
  }
  const double df = p->p_mixture->v_argument[DF];
  const double u2 = exp(2 * x);
  const double q = p->other + exp(-2 * p->v_phi[GLOBAL]) / u2;
  if (df == 1) {
    const double root = 1 + u2;
    return x + 0.5 * (log(q / (root * root)) - q * p->square);
  }
  return log_half_student(x, df) + 0.5 * (log(q) - q * p->square);
}

static double global_conditional(const void* p_context, double x) {
  const struct horseshoe_given* p = p_context;
  if (is_beyond(x)) {
    return -INFINITY;
  }
  return global_log_prior(p->p_mixture, x) +
         log_coefficients(p, p->other, exp(-2 * x));
}

/* of t where the products stay: u_j is divided by what t is multiplied by */
static double shared_conditional(const void* p_context, double x) {
  const struct horseshoe_given* p = p_context;
  const double down = x - p->v_phi[GLOBAL];
  if (is_beyond(x) || is_beyond(p->low - down) || is_beyond(p->high - down)) {
    return -INFINITY;
  }
  const size_t n = p->p_mixture->n_coef;
  const double df = p->p_mixture->v_argument[DF];
  const double factor = exp(-2 * down);
  const double log =
      global_log_prior(p->p_mixture, x) + p->sum - (double)n * down;
  double all = 0;
  if (isinf(df)) { /* half normal */
    for (size_t j = 0; j < n; ++j) {
      all += p->v_inside[j];
    }
    return log - 0.5 * factor * all;
  }
  return log -
         0.5 * (df + 1) * sum_of_logs(n, p->v_inside, NULL, 1, factor, &all);
}

static double slab_conditional(const void* p_context, double x) {
  const struct horseshoe_given* p = p_context;
  if (is_beyond(x)) {
    return -INFINITY;
  }
  return slab_log_prior(p->p_mixture, x) + log_coefficients(p, exp(-2 * x), 1);
}

static void
draw_locals(struct horseshoe_given given, double* v_phi, struct tb_rng* p_rng) {
  given.other = exp(-2 * v_phi[SLAB]);
  for (size_t j = 0; j < given.p_mixture->n_coef; ++j) {
    given.square = given.v_square[j];
    v_phi[LOCAL + j] =
        tb_slice_step(local_conditional, &given, v_phi[LOCAL + j], 3, p_rng);
  }
}

static void draw_global(struct horseshoe_given given,
                        double* v_phi,
                        double* v_inside,
                        double width,
                        struct tb_rng* p_rng) {
  given.other = exp(-2 * v_phi[SLAB]);
  for (size_t j = 0; j < given.p_mixture->n_coef; ++j) {
    v_inside[j] = exp(-2 * v_phi[LOCAL + j]);
  }
  v_phi[GLOBAL] =
      tb_slice_step(global_conditional, &given, v_phi[GLOBAL], width, p_rng);
}

static void draw_shared(struct horseshoe_given given,
                        double* v_phi,
                        double* v_inside,
                        double width,
                        struct tb_rng* p_rng) {
  const double before = v_phi[GLOBAL];
  const double df = given.p_mixture->v_argument[DF];
  given.low = INFINITY;
  given.high = -INFINITY;
  for (size_t j = 0; j < given.p_mixture->n_coef; ++j) {
    const double local = v_phi[LOCAL + j];
    v_inside[j] = exp(2 * local) / (isinf(df) ? 1 : df);
    given.sum += local;
    given.low = fmin(given.low, local);
    given.high = fmax(given.high, local);
  }
  const double after =
      tb_slice_step(shared_conditional, &given, before, width, p_rng);
  v_phi[GLOBAL] = after;
  for (size_t j = 0; j < given.p_mixture->n_coef; ++j) {
    v_phi[LOCAL + j] -= after - before;
  }
}

static void draw_slab(struct horseshoe_given given,
                      double* v_phi,
                      double* v_inside,
                      struct tb_rng* p_rng) {
  for (size_t j = 0; j < given.p_mixture->n_coef; ++j) {
    v_inside[j] = exp(-2 * (v_phi[GLOBAL] + v_phi[LOCAL + j]));
  }
  v_phi[SLAB] = tb_slice_step(slab_conditional, &given, v_phi[SLAB], 1, p_rng);
}

static void horseshoe_draw(const struct tb_mixture* p_mixture,
                           const double* v_beta,
                           double* v_phi,
                           double* v_work,
                           struct tb_rng* p_rng) {
  enum { N_MOVE = 4 };
  const size_t n = p_mixture->n_coef;
  double *v_square = v_work, *v_inside = v_work + n;
  const struct horseshoe_given given = {.p_mixture = p_mixture,
                                        .v_square = v_square,
                                        .v_inside = v_inside,
                                        .v_phi = v_phi};
  const double width = 4 / sqrt(1 + (double)n);
  const bool is_forward = tb_rng_unif(p_rng) < 0.5;
  for (size_t j = 0; j < n; ++j) {
    const double z = standardised(p_mixture, v_beta, j);
    v_square[j] = z * z;
  }
  for (int k = 0; k < N_MOVE; ++k) {
    switch (is_forward ? k : N_MOVE - 1 - k) {
    case 0:
      draw_locals(given, v_phi, p_rng);
      break;
    case 1:
      draw_global(given, v_phi, v_inside, width, p_rng);
      break;
    case 2:
      draw_shared(given, v_phi, v_inside, width, p_rng);
      break;
    default:
      draw_slab(given, v_phi, v_inside, p_rng);
    }
  }
}

static void horseshoe_simulate(const struct tb_mixture* p_mixture,
                               double* v_phi,
                               struct tb_rng* p_rng) {
  const double* v = p_mixture->v_argument;
  v_phi[GLOBAL] =
      log(v[GLOBAL_SCALE]) + simulate_half_student(v[GLOBAL_DF], p_rng);
  v_phi[SLAB] = log(v[SLAB_SCALE]) + simulate_inverse_chi(v[SLAB_DF], p_rng);
  for (size_t j = 0; j < p_mixture->n_coef; ++j) {
    v_phi[LOCAL + j] = simulate_half_student(v[DF], p_rng);
  }
}

const struct tb_mixture_type tb_mixture_horseshoe = {
    .name = "horseshoe",
    .n_shared = LOCAL,
    .has_locals = true,
    .n_argument = N_ARGUMENT,
    .is_valid = horseshoe_is_valid,
    .log_prior = horseshoe_log_prior,
    .precision = horseshoe_precision,
    .gradient = horseshoe_gradient,
    .draw = horseshoe_draw,
    .simulate = horseshoe_simulate,
    .natural = natural_of_logarithms,
};
