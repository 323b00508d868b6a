#include "check.h"

#include "priors/mixture.h"

#include <math.h>
#include <string.h>

/* A block of each member, of up to N_COEF coefficients. */
enum { N_COEF = 3, N_MOST = N_COEF + 2 };

static const double v_location[] = {0.3, 0, -1};
static const double v_scale[] = {1.6, 0.5, 1};
/* degrees of freedom of student, for closed forms */
static const double v_shape[] = {3, 3, 3};
static const double v_concentration[] = {0.5, 0.7, 1.5};

static struct tb_mixture block_of(const char* name, size_t n_coef) {
  struct tb_mixture mixture = {.n_coef = n_coef,
                               .v_location = v_location,
                               .v_scale = v_scale,
                               .v_shape = v_shape};
  const double v_horseshoe[] = {1, 2, 0.4, 4, 1.5};
  const double v_r2d2[] = {0.4, 3};
  const double v_ridge[] = {3, 0.8, 1};
  const double v_exponential[] = {1, 0.8, 2};
  const bool is_exponential = strcmp(name, "exponential") == 0;
  for (size_t k = 0; k < tb_mixture_count(); ++k) {
    const char* own = is_exponential ? "ridge" : name;
    if (strcmp(tb_mixture_registry[k]->name, own) == 0) {
      mixture.type = tb_mixture_registry[k];
    }
  }
  if (strcmp(name, "horseshoe") == 0) {
    memcpy(mixture.v_argument, v_horseshoe, sizeof v_horseshoe);
  } else if (strcmp(name, "r2d2") == 0) {
    memcpy(mixture.v_argument, v_r2d2, sizeof v_r2d2);
    mixture.v_shape = v_concentration;
  } else if (strcmp(name, "ridge") == 0) {
    memcpy(mixture.v_argument, v_ridge, sizeof v_ridge);
  } else if (is_exponential) {
    memcpy(mixture.v_argument, v_exponential, sizeof v_exponential);
  }
  mixture.n_hyper =
      mixture.type->n_shared + (mixture.type->has_locals ? n_coef : 0);
  return mixture;
}

/* of each member, and last of a ridge whose scale is exponential */
static size_t block_count(void) {
  return tb_mixture_count() + 1;
}

static struct tb_mixture block_at(size_t k, size_t n_coef) {
  const bool is_last = k == tb_mixture_count();
  return block_of(is_last ? "exponential" : tb_mixture_registry[k]->name,
                  n_coef);
}

static struct tb_rng stream(size_t chain) {
  struct tb_rng rng;
  tb_rng_init(&rng, 20260, chain, TB_STREAM_noise);
  return rng;
}

static void simulate_beta(const struct tb_mixture* p,
                          const double* v_phi,
                          double* v_beta,
                          struct tb_rng* p_rng) {
  double v_precision[N_COEF];
  p->type->precision(p, v_phi, v_precision);
  for (size_t j = 0; j < p->n_coef; ++j) {
    v_beta[j] = v_location[j] + tb_rng_norm(p_rng) / sqrt(v_precision[j]);
  }
}

static void registry_finds_mixtures(struct check* p_check) {
  CHECK(tb_mixture_count() > 0);
  CHECK(tb_mixture_registry[tb_mixture_count()] == NULL);
  for (size_t k = 0; k < tb_mixture_count(); ++k) {
    const struct tb_mixture_type* type = tb_mixture_registry[k];
    const struct tb_mixture block = block_at(k, N_COEF);
    CHECK(tb_mixture_at_place((double)k) == type);
    CHECK(type->n_argument <= TB_MIXTURE_n_argument);
    CHECK(type->is_valid(&block));
    for (size_t i = 0; i < type->n_argument; ++i) {
      struct tb_mixture bad = block;
      bad.v_argument[i] = 0;
      CHECK(!type->is_valid(&bad));
      bad.v_argument[i] = NAN;
      CHECK(!type->is_valid(&bad));
    }
    for (size_t i = 0; i < k; ++i) {
      CHECK(strcmp(tb_mixture_registry[i]->name, type->name) != 0);
    }
  }
  const double v_bad[] = {-1, 0.5, (double)tb_mixture_count(), NAN, INFINITY};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    CHECK(tb_mixture_at_place(v_bad[k]) == NULL);
  }
}

/* at points of the prior and away from it */
static void gradients_are_differences(struct check* p_check) {
  struct tb_rng rng = stream(0);
  for (size_t k = 0; k < 20 * block_count(); ++k) {
    const struct tb_mixture block = block_at(k / 20, N_COEF);
    double v_phi[N_MOST], v_beta[N_COEF], v_gradient[N_MOST], v_work[N_COEF];
    block.type->simulate(&block, v_phi, &rng);
    for (size_t j = 0; j < N_COEF; ++j) {
      v_beta[j] = 2 * tb_rng_norm(&rng);
    }
    for (size_t j = 0; j < block.n_hyper; ++j) {
      v_phi[j] = fmax(-4, fmin(4, v_phi[j]));
    }
    block.type->gradient(&block, v_beta, v_phi, v_gradient);
    for (size_t j = 0; j < block.n_hyper; ++j) {
      const double x = v_phi[j], h = 1e-5;
      v_phi[j] = x + h;
      const double up = tb_mixture_log_density(&block, v_beta, v_phi, v_work);
      v_phi[j] = x - h;
      const double down = tb_mixture_log_density(&block, v_beta, v_phi, v_work);
      v_phi[j] = x;
      const double size =
          1 + fabs(v_gradient[j]) +
          fabs(tb_mixture_log_density(&block, v_beta, v_phi, v_work));
      CHECK_CLOSE(v_gradient[j], (up - down) / (2 * h), 1e-8 * size);
    }
  }
}

/* ------------------------------------------------------ laws by quadrature */

enum { N_GRID = 6000, N_BIN = 20 };

/* The law of one coordinate of phi: a grid and the distribution function. */
struct law {
  double low, step;
  double v_below[N_GRID + 1];
};

/* x: coordinate k of phi, the others as they are; given beta or (NULL) not */
static void integrate(struct law* p_law,
                      const struct tb_mixture* p,
                      const double* v_beta,
                      double* v_phi,
                      size_t k) {
  double v_log[N_GRID], v_work[N_COEF], most = -INFINITY;
  const double before = v_phi[k];
  p_law->low = -40;
  p_law->step = 60.0 / N_GRID;
  for (size_t i = 0; i < N_GRID; ++i) {
    v_phi[k] = p_law->low + ((double)i + 0.5) * p_law->step;
    v_log[i] = v_beta == NULL
                   ? p->type->log_prior(p, v_phi)
                   : tb_mixture_log_density(p, v_beta, v_phi, v_work);
    most = fmax(most, v_log[i]);
  }
  v_phi[k] = before;
  p_law->v_below[0] = 0;
  for (size_t i = 0; i < N_GRID; ++i) {
    p_law->v_below[i + 1] = p_law->v_below[i] + exp(v_log[i] - most);
  }
  for (size_t i = 0; i <= N_GRID; ++i) {
    p_law->v_below[i] /= p_law->v_below[N_GRID];
  }
}

static double probability_below(const struct law* p_law, double x) {
  const double at = (x - p_law->low) / p_law->step;
  if (!(at > 0)) {
    return 0;
  }
  if (!(at < N_GRID)) {
    return 1;
  }
  const size_t i = (size_t)at;
  return p_law->v_below[i] +
         (at - (double)i) * (p_law->v_below[i + 1] - p_law->v_below[i]);
}

/* a uniform number, if its law is what was claimed */
static void count_uniform(double* v_count, double u) {
  const size_t bin = (size_t)(u * N_BIN);
  v_count[bin < N_BIN ? bin : N_BIN - 1] += 1;
}

static double distance_from_uniform(const double* v_count, size_t n) {
  double v_expected[N_BIN];
  for (size_t i = 0; i < N_BIN; ++i) {
    v_expected[i] = (double)n / N_BIN;
  }
  return check_chi_square(v_count, v_expected, N_BIN);
}

/* The coordinates of phi are independent in every member's prior. */
static void simulated_scales_have_the_prior(struct check* p_check) {
  enum { N_DRAW = 20000 };
  static struct law law;
  for (size_t k = 0; k < block_count(); ++k) {
    const struct tb_mixture block = block_at(k, N_COEF);
    for (size_t j = 0; j < block.n_hyper; ++j) {
      struct tb_rng rng = stream(j);
      double v_phi[N_MOST] = {0}, v_count[N_BIN] = {0};
      integrate(&law, &block, NULL, v_phi, j);
      for (size_t i = 0; i < N_DRAW; ++i) {
        block.type->simulate(&block, v_phi, &rng);
        count_uniform(v_count, probability_below(&law, v_phi[j]));
      }
      CHECK(fabs(distance_from_uniform(v_count, N_DRAW)) < 5);
    }
  }
}

/* One scale for one coefficient: chains of draw() have the law of phi given
 * beta, which is far out, or next to nothing. */
static void draws_have_the_conditional(struct check* p_check) {
  enum { N_DRAW = 20000, N_THIN = 4 };
  static struct law law;
  const char* const v_name[] = {"student", "laplace", "ridge", "exponential"};
  const double v_at[] = {0.3 + 1e-3, 1, 12};
  for (size_t k = 0; k < 12; ++k) {
    const struct tb_mixture block = block_of(v_name[k / 3], 1);
    struct tb_rng rng = stream(k);
    double phi = 0, v_work[2], v_count[N_BIN] = {0};
    integrate(&law, &block, &v_at[k % 3], &phi, 0);
    for (size_t i = 0; i < N_DRAW * N_THIN; ++i) {
      block.type->draw(&block, &v_at[k % 3], &phi, v_work, &rng);
      if (i % N_THIN == 0) {
        count_uniform(v_count, probability_below(&law, phi));
      }
    }
    CHECK(fabs(distance_from_uniform(v_count, N_DRAW)) < 5);
  }
}

/* ---------------------------------------------------- laws of several scales
 */

/* phi and the logarithms of the precisions; returns how many */
static size_t see(const struct tb_mixture* p, const double* v_phi, double* v) {
  memcpy(v, v_phi, p->n_hyper * sizeof(double));
  p->type->precision(p, v_phi, v + p->n_hyper);
  for (size_t j = 0; j < p->n_coef; ++j) {
    v[p->n_hyper + j] = log(v[p->n_hyper + j]);
  }
  return p->n_hyper + p->n_coef;
}

/* Where (phi, beta) are drawn from their joint law, phi and draw()'s phi' must
 * be exchangeable given beta: f(phi, phi', beta) has mean 0 for every f that
 * changes sign when they are swapped. Here for products of bounded functions of
 * two numbers and of a coefficient. */
static void draws_are_reversible(struct check* p_check) {
  enum { N_DRAW = 60000, N_SEEN = N_MOST + N_COEF };
  for (size_t k = 0; k < block_count(); ++k) {
    const struct tb_mixture block = block_at(k, 2);
    struct tb_rng rng = stream(k);
    double v_phi[N_MOST], v_beta[N_COEF], v_work[2 * N_MOST];
    double v_from[N_SEEN], v_to[N_SEEN];
    double v_sum[N_SEEN][N_SEEN][2], v_square[N_SEEN][N_SEEN][2];
    size_t n_seen = 0;
    memset(v_sum, 0, sizeof v_sum);
    memset(v_square, 0, sizeof v_square);
    for (size_t i = 0; i < N_DRAW; ++i) {
      block.type->simulate(&block, v_phi, &rng);
      simulate_beta(&block, v_phi, v_beta, &rng);
      n_seen = see(&block, v_phi, v_from);
      block.type->draw(&block, v_beta, v_phi, v_work, &rng);
      see(&block, v_phi, v_to);
      for (size_t a = 0; a < n_seen; ++a) {
        for (size_t b = 0; b < n_seen; ++b) {
          const double f = tanh(v_from[a]) * atan(v_to[b] - 1.5) -
                           tanh(v_to[a]) * atan(v_from[b] - 1.5);
          const double g = f * tanh(fabs(v_beta[0]) - 0.3);
          v_sum[a][b][0] += f;
          v_sum[a][b][1] += g;
          v_square[a][b][0] += f * f;
          v_square[a][b][1] += g * g;
        }
      }
    }
    for (size_t i = 0; i < n_seen * n_seen; ++i) {
      const size_t a = i / n_seen, b = i % n_seen;
      CHECK(fabs(v_sum[a][b][0]) <= 4.5 * sqrt(v_square[a][b][0]));
      CHECK(fabs(v_sum[a][b][1]) <= 4.5 * sqrt(v_square[a][b][1]));
    }
  }
}

/* Geweke (2004), JASA 99:799: beta | phi and phi | beta in turn keep the joint
 * law, in which each scale has its prior and, of student and laplace, each
 * coefficient the density it is named after. */
static double student_below(double t) { /* 3 degrees of freedom */
  const double x = t / sqrt(3);
  return 0.5 + (x / (1 + x * x) + atan(x)) / acos(-1);
}

static double laplace_below(double t) {
  return t < 0 ? 0.5 * exp(t) : 1 - 0.5 * exp(-t);
}

static void gibbs_keeps_the_joint_law(struct check* p_check) {
  enum { N_DRAW = 4000, N_THIN = 25 };
  static struct law v_law[N_MOST];
  for (size_t k = 0; k < block_count(); ++k) {
    const struct tb_mixture block = block_at(k, N_COEF);
    const char* name = block.type->name;
    struct tb_rng rng = stream(k);
    double v_phi[N_MOST] = {0}, v_beta[N_COEF], v_work[2 * N_MOST];
    double v_count[N_MOST][N_BIN] = {{0}}, v_coef[N_COEF][N_BIN] = {{0}};
    for (size_t j = 0; j < block.n_hyper; ++j) {
      integrate(&v_law[j], &block, NULL, v_phi, j);
    }
    block.type->simulate(&block, v_phi, &rng);
    for (size_t i = 0; i < N_DRAW * N_THIN; ++i) {
      simulate_beta(&block, v_phi, v_beta, &rng);
      block.type->draw(&block, v_beta, v_phi, v_work, &rng);
      for (size_t j = 0; i % N_THIN == 0 && j < block.n_hyper; ++j) {
        count_uniform(v_count[j], probability_below(&v_law[j], v_phi[j]));
      }
      for (size_t j = 0; i % N_THIN == 0 && j < N_COEF; ++j) {
        const double z = (v_beta[j] - v_location[j]) / v_scale[j];
        count_uniform(v_coef[j],
                      strcmp(name, "laplace") == 0 ? laplace_below(z)
                                                   : student_below(z));
      }
    }
    for (size_t j = 0; j < block.n_hyper; ++j) {
      CHECK(fabs(distance_from_uniform(v_count[j], N_DRAW)) < 6);
    }
    for (size_t j = 0; j < N_COEF; ++j) {
      const double distance = distance_from_uniform(v_coef[j], N_DRAW);
      CHECK(strcmp(name, "student") != 0 && strcmp(name, "laplace") != 0
                ? distance > 6
                : fabs(distance) < 6);
    }
  }
}

/* Coefficients that are 0, all but 0, and huge: what comes out is a number, and
 * comes back. */
static void draws_survive_extremes(struct check* p_check) {
  const double v_at[] = {0, 1e-300, 1e150};
  for (size_t k = 0; k < block_count(); ++k) {
    const struct tb_mixture block = block_at(k, N_COEF);
    struct tb_rng rng = stream(k);
    double v_phi[N_MOST] = {0}, v_beta[N_COEF], v_work[2 * N_MOST];
    for (size_t i = 0; i < 3 * 400; ++i) {
      for (size_t j = 0; j < N_COEF; ++j) {
        v_beta[j] = v_location[j] + v_scale[j] * v_at[i / 400];
      }
      block.type->draw(&block, v_beta, v_phi, v_work, &rng);
      for (size_t j = 0; j < block.n_hyper; ++j) {
        CHECK(isfinite(v_phi[j]));
      }
    }
    for (size_t j = 0; j < N_COEF; ++j) {
      v_beta[j] = v_location[j] + v_scale[j];
    }
    for (size_t i = 0; i < 200; ++i) {
      block.type->draw(&block, v_beta, v_phi, v_work, &rng);
    }
    double v_precision[N_COEF];
    block.type->precision(&block, v_phi, v_precision);
    for (size_t j = 0; j < N_COEF; ++j) {
      const double v = v_precision[j] * v_scale[j] * v_scale[j];
      CHECK(v > 1e-6 && v < 1e6);
    }
  }
}

/* ----------------------------------------------------------------- several */

/* a ridge of coordinates 4 and 1, a horseshoe of 0, 2 and 5; 3 under neither */
static const double v_kind[] = {2, 3}, v_size[] = {2, 3};
static double v_at[] = {4, 1, 0, 2, 5};
static const double v_argument[] = {3, 0.8, 1, 0, 0, 1, 2, 0.4, 4, 1.5};
static const double v_all_location[] = {0.1, 0, 0.3, 0, -1};
static const double v_all_scale[] = {1, 2, 1.6, 0.5, 1};
static const double v_none[5];

static const struct tb_param v_param[] = {
    {"mixture_kind", v_kind, NULL, 2, 2},
    {"mixture_size", v_size, NULL, 2, 2},
    {"mixture_at", v_at, NULL, 5, 5},
    {"mixture_argument", v_argument, NULL, 10, 5},
    {"mixture_location", v_all_location, NULL, 5, 5},
    {"mixture_scale", v_all_scale, NULL, 5, 5},
    {"mixture_shape", v_none, NULL, 5, 5}};

static double joint_log_density(const struct tb_mixtures* p,
                                const double* v_theta,
                                double* v_work) {
  double v_beta[6] = {0}, v_phi[6];
  return tb_mixtures_gradient(p, v_theta, v_theta + 6, v_beta, v_phi, v_work);
}

static void several_mixtures_share_a_prior(struct check* p_check) {
  const struct tb_params params = {v_param, 7}, none = {v_param, 0};
  struct tb_mixtures made, mixtures;
  CHECK(tb_mixtures_create(&made, &none, 6) == TB_STATUS_ok);
  CHECK(made.n_mixture == 0 && made.n_hyper == 0);
  tb_mixtures_destroy(&made);
  for (size_t n_coef = 0; n_coef < 6; ++n_coef) {
    CHECK(tb_mixtures_create(&made, &params, n_coef) == TB_STATUS_argument);
  }
  v_at[1] = 4;
  CHECK(tb_mixtures_create(&made, &params, 6) == TB_STATUS_argument);
  v_at[1] = 1;
  CHECK(tb_mixtures_create(&made, &params, 6) == TB_STATUS_ok);
  CHECK(tb_mixtures_copy(&made, &mixtures) == TB_STATUS_ok);
  tb_mixtures_destroy(&made);
  CHECK(mixtures.n_mixture == 2 && mixtures.n_hyper == 6);
  CHECK(tb_mixtures_n_work(&mixtures) == 11);

  struct tb_rng rng = stream(0);
  double v_theta[12], v_work[11], v_gradient[12] = {0};
  for (size_t j = 0; j < 6; ++j) {
    v_theta[j] = tb_rng_norm(&rng);
  }
  tb_mixtures_simulate(&mixtures, v_theta + 6, &rng);
  tb_mixtures_gradient(&mixtures,
                       v_theta,
                       v_theta + 6,
                       v_gradient,
                       v_gradient + 6,
                       v_work);
  for (size_t j = 0; j < 12; ++j) {
    const double x = v_theta[j], h = 1e-5;
    v_theta[j] = x + h;
    const double up = joint_log_density(&mixtures, v_theta, v_work);
    v_theta[j] = x - h;
    const double down = joint_log_density(&mixtures, v_theta, v_work);
    v_theta[j] = x;
    CHECK_CLOSE(v_gradient[j],
                (up - down) / (2 * h),
                1e-6 * (1 + fabs(v_gradient[j])));
  }
  CHECK(v_gradient[3] == 0);

  /* the gradient in beta is that of the normal law */
  double v_mean[6], v_precision[6];
  v_mean[3] = v_precision[3] = -7;
  tb_mixtures_normal(&mixtures, v_theta + 6, v_mean, v_precision, v_work);
  CHECK(v_mean[3] == -7 && v_precision[3] == -7);
  for (size_t j = 0; j < 6; ++j) {
    CHECK_CLOSE(v_gradient[j],
                j == 3 ? 0 : -v_precision[j] * (v_theta[j] - v_mean[j]),
                1e-12 * (1 + fabs(v_gradient[j])));
  }

  /* each block moves as it would by itself */
  double v_own[6], v_natural[6], v_beta[] = {v_theta[4], v_theta[1]};
  struct tb_rng copy = rng;
  memcpy(v_own, v_theta + 6, sizeof v_own);
  const struct tb_mixture* p = mixtures.v_block;
  p->type->draw(p, v_beta, v_own, v_work, &copy);
  tb_mixtures_draw(&mixtures, v_theta, v_theta + 6, v_work, &rng);
  CHECK(v_own[0] == v_theta[6] && v_own[1] != v_theta[7]);
  tb_mixtures_natural(&mixtures, v_theta + 6, v_natural);
  for (size_t j = 0; j < 6; ++j) {
    CHECK_CLOSE(v_natural[j], exp(v_theta[6 + j]), 1e-15 * v_natural[j]);
  }
  tb_mixtures_destroy(&mixtures);
}

static void shares_add_up(struct check* p_check) {
  const struct tb_mixture block = block_of("r2d2", N_COEF);
  struct tb_rng rng = stream(0);
  double v_phi[N_MOST], v_natural[N_MOST], v_precision[N_COEF];
  block.type->simulate(&block, v_phi, &rng);
  block.type->natural(&block, v_phi, v_natural);
  block.type->precision(&block, v_phi, v_precision);
  CHECK_CLOSE(v_natural[1] + v_natural[2] + v_natural[3], 1, 1e-14);
  for (size_t j = 0; j < N_COEF; ++j) {
    const double s = v_scale[j], r = v_natural[0];
    CHECK_CLOSE(v_precision[j] * s * s * v_natural[1 + j] * r / (1 - r),
                1,
                1e-13);
  }
}

const struct check_case check_mixtures[] = {
    {"the registry finds every scale mixture", registry_finds_mixtures},
    {"gradients of scale mixtures are differences", gradients_are_differences},
    {"simulated scales have their prior", simulated_scales_have_the_prior},
    {"drawn scales have the conditional law", draws_have_the_conditional},
    {"draws of scales are reversible", draws_are_reversible},
    {"draws of scales and coefficients in turn keep the joint law",
     gibbs_keeps_the_joint_law},
    {"draws of scales survive extremes", draws_survive_extremes},
    {"several scale mixtures share a prior", several_mixtures_share_a_prior},
    {"shares of R2D2 add up", shares_add_up},
    {NULL, NULL}};
