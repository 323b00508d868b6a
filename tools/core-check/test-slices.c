/* Slices in one dimension: their law from a start that has it. A step is
 * reversible, so that the pairs of its ends are as often one way as the other;
 * starts are drawn from a grid, independent of each other. */
#include "check.h"

#include "base/chol.h"
#include "base/slice.h"
#include "priors/mixture-law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_GRID = 8000, N_CELL = 8 };

double check_line_step(struct check* p_check,
                       const struct check_line* p,
                       size_t n_step,
                       size_t stream) {
  double *v_cdf = check_alloc(N_GRID, sizeof(double)), most = -INFINITY;
  double v_pair[N_CELL * N_CELL] = {0}, v_cut[N_CELL], sum = 0;
  double v_before[N_CELL] = {0}, v_after[N_CELL] = {0};
  const double h = (p->high - p->low) / N_GRID;
  for (size_t i = 0; i < N_GRID; ++i) {
    v_cdf[i] = p->log_density(p->p_context, p->low + ((double)i + 0.5) * h);
    most = fmax(most, v_cdf[i]);
  }
  for (size_t i = 0; i < N_GRID; ++i) {
    v_cdf[i] = sum += exp(v_cdf[i] - most);
  }
  for (size_t i = 0; i < N_GRID; ++i) {
    v_cdf[i] /= sum;
  }
  for (size_t c = 0; c < N_CELL; ++c) {
    const double share = (double)(c + 1) / N_CELL;
    v_cut[c] = c + 1 == N_CELL
                   ? INFINITY
                   : p->low + h * (double)check_find(v_cdf, N_GRID, share);
  }
  struct tb_rng rng;
  tb_rng_init(&rng, 37, stream, TB_STREAM_noise);
  double n_moved = 0;
  for (size_t k = 0; k < n_step; ++k) {
    const size_t i = check_find(v_cdf, N_GRID, tb_rng_unif(&rng));
    const double x = p->low + h * ((double)i + tb_rng_unif(&rng));
    const double to = p->step(p->p_context, x, &rng);
    size_t v_at[2] = {0, 0};
    while (x > v_cut[v_at[0]]) {
      ++v_at[0];
    }
    while (to > v_cut[v_at[1]]) {
      ++v_at[1];
    }
    v_before[v_at[0]] += 1;
    v_after[v_at[1]] += 1;
    v_pair[v_at[0] * N_CELL + v_at[1]] += 1;
    n_moved += v_at[0] != v_at[1];
  }
  for (size_t a = 0; a < N_CELL; ++a) {
    CHECK_CLOSE(v_after[a], v_before[a], 6 * sqrt(v_before[a]));
  }
  size_t n;
  CHECK(check_symmetry(v_pair, N_CELL, &n) < 5 && n >= N_CELL - 1);
  free(v_cdf);
  return n_moved / (double)n_step;
}

/* ---- steps of base/slice.h ---- */

struct shape {
  double gap;   /* of two modes of unit and half unit sd, from 0 */
  double width; /* of a first interval */
};

static double modes_log_density(const void* p_context, double x) {
  const struct shape* p = p_context;
  const double a = x + p->gap, b = 2 * (x - p->gap);
  return log(0.6 * exp(-0.5 * a * a) + 0.8 * exp(-0.5 * b * b));
}

static double
modes_step(const void* p_context, double x, struct tb_rng* p_rng) {
  const struct shape* p = p_context;
  return tb_slice_step(modes_log_density, p_context, x, p->width, p_rng);
}

/* All of the slice is the box: what is cut of it too soon is missed. */
static double box_log_density(const void* p_context, double x) {
  (void)p_context;
  return fabs(x) < 1 ? 0 : -INFINITY;
}

static double box_step(const void* p_context, double x, struct tb_rng* p_rng) {
  return tb_slice_step(box_log_density, p_context, x, 12, p_rng);
}

static void shrinking_leaves_the_slice_whole(struct check* p_check) {
  const struct check_line line = {.log_density = box_log_density,
                                  .step = box_step,
                                  .low = -1,
                                  .high = 1};
  CHECK(check_line_step(p_check, &line, 400000, 99) > 0.7);
}

/* One mode and two, which an interval bridges or not by where it begins; widths
 * so small that stepping out ends by its limit. */
static void slices_are_reversible(struct check* p_check) {
  static const struct shape v_shape[] =
      {{0, 1}, {0, 20}, {3, 1}, {3, 4}, {3, 7}, {2.5, 30}, {1, 0.03}};
  for (size_t k = 0; k < sizeof v_shape / sizeof *v_shape; ++k) {
    const struct check_line line = {.log_density = modes_log_density,
                                    .step = modes_step,
                                    .p_context = &v_shape[k],
                                    .low = -10,
                                    .high = 10};
    const double moved = check_line_step(p_check, &line, 60000, k);
    CHECK(moved > 0.25);
  }
}

/* ---- hyperparameters, coefficients integrated out ---- */

/* a ridge of coordinates 4 and 1, a horseshoe of 0, 2 and 5; 3 under neither */
enum { N_COEF = 6, N_HYPER = 6 };
static const double v_kind[] = {2, 3}, v_size[] = {2, 3};
static const double v_place[] = {4, 1, 0, 2, 5};
static const double v_argument[] = {3, 0.8, 1, 0, 0, 1, 2, 0.4, 4, 1.5};
static const double v_location[] = {0.1, 0, 0.3, 0, -1};
static const double v_scale[] = {1, 2, 1.6, 0.5, 1};
static const double v_shape_none[5];
static const struct tb_param v_param[] = {
    {"mixture_kind", v_kind, NULL, 2, 2},
    {"mixture_size", v_size, NULL, 2, 2},
    {"mixture_at", v_place, NULL, 5, 5},
    {"mixture_argument", v_argument, NULL, 10, 5},
    {"mixture_location", v_location, NULL, 5, 5},
    {"mixture_scale", v_scale, NULL, 5, 5},
    {"mixture_shape", v_shape_none, NULL, 5, 5}};

/* functionals that may be held */
enum { N_HELD = 2 };
static const double v_held[] = {1, 0, 0.3, -1, 0, 0.2, 0, 0.5, 0, 0.1, 1, -0.7};

struct marginal {
  struct tb_mixture_law law;
  struct tb_mixture_given given;
  size_t k;
  double v_phi[N_HYPER];
  bool is_held;
  double v_beta[N_COEF];
};

/* The law of C^T beta and of beta given that, by inverses, where the law is
 * set: log density of the one, mean and covariance of the other. */
struct held_law {
  double log_density;
  double v_mean[N_COEF], v_covariance[N_COEF * N_COEF];
};

static struct held_law held_law_at(const struct marginal* p,
                                   const double* v_beta) {
  const double* v_precision = p->given.v_precision;
  struct held_law out;
  double v_bend[N_COEF * N_COEF], v_lower[N_COEF * N_COEF];
  double v_work[N_COEF * N_COEF], v_cov[N_COEF * N_COEF];
  double v_along[N_HELD * N_COEF], v_away[N_HELD], v_V[4] = {0};
  memcpy(v_bend, p->law.v_bend, sizeof v_bend);
  for (size_t j = 0; j < N_COEF; ++j) {
    v_bend[j * N_COEF + j] += v_precision[j];
  }
  tb_chol(N_COEF, v_bend, v_lower);
  tb_chol_inverse(N_COEF, v_lower, v_work, v_cov);
  for (size_t k = 0; k < N_HELD; ++k) {
    v_away[k] = 0;
    for (size_t i = 0; i < N_COEF; ++i) {
      double sum = 0;
      for (size_t j = 0; j < N_COEF; ++j) {
        sum += v_cov[i * N_COEF + j] * v_held[k * N_COEF + j];
      }
      v_along[k * N_COEF + i] = sum;
      v_away[k] += v_held[k * N_COEF + i] * (v_beta[i] - p->given.v_mean[i]);
    }
  }
  for (size_t k = 0; k < N_HELD; ++k) {
    for (size_t l = 0; l < N_HELD; ++l) {
      for (size_t i = 0; i < N_COEF; ++i) {
        v_V[k * N_HELD + l] += v_held[l * N_COEF + i] * v_along[k * N_COEF + i];
      }
    }
  }
  const double det = v_V[0] * v_V[3] - v_V[1] * v_V[2];
  const double v_inverse[] = {v_V[3] / det,
                              -v_V[1] / det,
                              -v_V[2] / det,
                              v_V[0] / det};
  memcpy(out.v_mean, p->given.v_mean, sizeof out.v_mean);
  memcpy(out.v_covariance, v_cov, sizeof v_cov);
  out.log_density = -0.5 * log(det);
  for (size_t k = 0; k < N_HELD; ++k) {
    for (size_t l = 0; l < N_HELD; ++l) {
      const double w = v_inverse[k * N_HELD + l];
      out.log_density -= 0.5 * v_away[k] * w * v_away[l];
      for (size_t i = 0; i < N_COEF; ++i) {
        out.v_mean[i] += v_along[k * N_COEF + i] * w * v_away[l];
        for (size_t j = 0; j < N_COEF; ++j) {
          out.v_covariance[i * N_COEF + j] -=
              v_along[k * N_COEF + i] * w * v_along[l * N_COEF + j];
        }
      }
    }
  }
  return out;
}

static double phi_log_density(const void* p_context, double x) {
  struct marginal own = *(const struct marginal*)p_context;
  own.v_phi[own.k] = x;
  if (!tb_mixture_law_set(&own.law, own.v_phi, &own.given)) {
    return -INFINITY;
  }
  const double held =
      own.is_held ? held_law_at(&own, own.v_beta).log_density : 0;
  return held + tb_mixture_law_marginal(&own.law, own.v_phi, &own.given);
}

static double phi_step(const void* p_context, double x, struct tb_rng* p_rng) {
  struct marginal own = *(const struct marginal*)p_context;
  double v_phi[N_HYPER];
  own.v_phi[own.k] = x;
  memcpy(v_phi, own.v_phi, sizeof v_phi);
  tb_mixture_law_slice(&own.law,
                       own.k,
                       1.5,
                       own.v_beta,
                       v_phi,
                       &own.given,
                       p_rng);
  for (size_t k = 0; k < N_HYPER; ++k) {
    if (k != own.k && v_phi[k] != own.v_phi[k]) {
      return NAN; /* moved another */
    }
  }
  return v_phi[own.k];
}

/* A law of the mixtures above, with and without its base. */
struct law_case {
  struct tb_mixtures mixtures;
  double v_center[N_COEF], v_slope[N_COEF], v_bend[N_COEF * N_COEF];
  double* v_scratch;
  struct marginal plain, based;
  struct marginal held; /* with the base, functionals held */
};

static void law_case_make(struct check* p_check, struct law_case* p) {
  const struct tb_params params = {v_param, 7};
  struct tb_rng rng;
  double v_root[N_COEF * N_COEF];
  CHECK(tb_mixtures_create(&p->mixtures, &params, N_COEF) == TB_STATUS_ok);
  tb_rng_init(&rng, 5, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_root, N_COEF * N_COEF);
  tb_rng_fill_norm(&rng, p->v_center, N_COEF);
  tb_rng_fill_norm(&rng, p->v_slope, N_COEF);
  for (size_t i = 0; i < N_COEF; ++i) {
    for (size_t j = 0; j < N_COEF; ++j) {
      p->v_bend[i * N_COEF + j] = 0;
      for (size_t k = 0; k < N_COEF; ++k) {
        p->v_bend[i * N_COEF + j] +=
            3 * v_root[k * N_COEF + i] * v_root[k * N_COEF + j];
      }
    }
  }
  p->v_scratch =
      check_alloc(tb_mixture_given_size(&p->mixtures, N_COEF), sizeof(double));
  p->plain = (struct marginal){
      .law = {.n_coef = N_COEF,
              .v_center = p->v_center,
              .v_slope = p->v_slope,
              .v_bend = p->v_bend,
              .p_mixtures = &p->mixtures},
      .given = tb_mixture_given_at(&p->mixtures, N_COEF, p->v_scratch)};
  tb_mixtures_simulate(&p->mixtures, p->plain.v_phi, &rng);
  p->based = p->plain;
  CHECK(tb_mixture_base_make(&p->based.law, 0, NULL) == TB_STATUS_ok);
  CHECK(p->based.law.base.n_bare == 1);
  p->held = p->plain;
  p->held.is_held = true;
  tb_rng_fill_norm(&rng, p->held.v_beta, N_COEF);
  CHECK(tb_mixture_base_make(&p->held.law, N_HELD, v_held) == TB_STATUS_ok);
}

static void law_case_free(struct law_case* p) {
  tb_mixture_base_free(&p->based.law);
  tb_mixture_base_free(&p->held.law);
  free(p->v_scratch);
  tb_mixtures_destroy(&p->mixtures);
}

/* By the law of all coefficients, whether the slice knows a base or not. */
static void scales_are_sliced_by_their_marginal(struct check* p_check) {
  struct law_case c;
  law_case_make(p_check, &c);
  for (size_t k = 0; k < N_HYPER; ++k) {
    struct check_line line = {.log_density = phi_log_density,
                              .step = phi_step,
                              .p_context = &c.plain,
                              .low = -25,
                              .high = 20};
    c.plain.k = c.based.k = c.held.k = k;
    CHECK(check_line_step(p_check, &line, 20000, k) > 0.4);
    line.p_context = &c.based;
    CHECK(check_line_step(p_check, &line, 20000, k) > 0.4);
    line.p_context = &c.held;
    CHECK(check_line_step(p_check, &line, 20000, k) > 0.3);
  }
  law_case_free(&c);
}

/* Draws have the mean, and a functional of them the variance, of the law given
 * what is held, which stays. */
static void draws_hold_functionals(struct check* p_check) {
  enum { N_DRAW = 40000 };
  static const double v_stay[] = {0, 0.6};
  struct law_case c;
  struct tb_rng rng;
  law_case_make(p_check, &c);
  tb_rng_init(&rng, 8, 0, TB_STREAM_noise);
  const struct marginal* p = &c.held;
  struct tb_mixture_given given = p->given;
  CHECK(tb_mixture_law_set(&p->law, p->v_phi, &given));
  const struct held_law law = held_law_at(p, p->v_beta);
  for (size_t s = 0; s < 2; ++s) {
    const double stay = v_stay[s], rest = 1 - stay * stay;
    double v_sum[N_COEF] = {0}, variance = 0, square = 0;
    for (size_t k = 0; k < N_DRAW; ++k) {
      double v_xi[N_COEF], v_beta[N_COEF], t = 0;
      tb_rng_fill_norm(&rng, v_xi, N_COEF);
      CHECK(tb_mixture_law_draw_held(&p->law,
                                     &given,
                                     stay,
                                     p->v_beta,
                                     v_xi,
                                     v_beta));
      for (size_t j = 0; j < N_COEF; ++j) {
        const double from = p->v_beta[j] - law.v_mean[j];
        v_sum[j] += v_beta[j] - (law.v_mean[j] + stay * from);
        t += v_beta[j] - (law.v_mean[j] + stay * from);
      }
      square += t * t;
      for (size_t h = 0; k < 100 && h < N_HELD; ++h) {
        double moved = 0;
        for (size_t j = 0; j < N_COEF; ++j) {
          moved += v_held[h * N_COEF + j] * (v_beta[j] - p->v_beta[j]);
        }
        CHECK_CLOSE(moved, 0, 1e-10);
      }
    }
    for (size_t i = 0; i < N_COEF; ++i) {
      const double own = rest * law.v_covariance[i * N_COEF + i];
      CHECK_CLOSE(v_sum[i] / N_DRAW, 0, 5 * sqrt(own / N_DRAW));
      for (size_t j = 0; j < N_COEF; ++j) {
        variance += rest * law.v_covariance[i * N_COEF + j];
      }
    }
    CHECK_CLOSE(square / N_DRAW / variance, 1, 5 * sqrt(2.0 / N_DRAW));
  }
  law_case_free(&c);
}

/* m and the marginal density are the law's, and what a draw says of densities
 * is so of its places. */
static void a_base_changes_no_law(struct check* p_check) {
  struct law_case c;
  struct tb_rng rng;
  law_case_make(p_check, &c);
  tb_rng_init(&rng, 6, 0, TB_STREAM_noise);
  for (int repeat = 0; repeat < 20; ++repeat) {
    double v_xi[N_COEF], v_beta[N_COEF], v_mean[N_COEF], v_precision[N_COEF];
    double v_from[N_COEF], log_ratio = 0;
    tb_mixtures_simulate(&c.mixtures, c.plain.v_phi, &rng);
    memcpy(c.based.v_phi, c.plain.v_phi, sizeof c.plain.v_phi);
    const double plain = phi_log_density(&c.plain, c.plain.v_phi[0]);
    memcpy(v_mean, c.plain.given.v_mean, sizeof v_mean);
    memcpy(v_precision, c.plain.given.v_precision, sizeof v_precision);
    const double based = phi_log_density(&c.based, c.based.v_phi[0]);
    CHECK_CLOSE(based, plain, 1e-10 * (1 + fabs(plain)));
    for (size_t j = 0; j < N_COEF; ++j) {
      CHECK_CLOSE(c.based.given.v_mean[j], v_mean[j], 1e-9);
    }
    tb_rng_fill_norm(&rng, v_xi, N_COEF);
    tb_rng_fill_norm(&rng, v_from, N_COEF);
    const double said = tb_mixture_law_draw(&c.based.law,
                                            &c.based.given,
                                            0.3,
                                            v_from,
                                            v_xi,
                                            v_beta);
    for (size_t i = 0; i < N_COEF; ++i) {
      for (size_t j = 0; j < N_COEF; ++j) {
        const double bend =
            c.v_bend[i * N_COEF + j] + (i == j ? v_precision[j] : 0);
        log_ratio += 0.5 * bend *
                     ((v_beta[i] - v_mean[i]) * (v_beta[j] - v_mean[j]) -
                      (v_from[i] - v_mean[i]) * (v_from[j] - v_mean[j]));
      }
    }
    CHECK_CLOSE(said, log_ratio, 1e-8 * (1 + fabs(log_ratio)));
  }
  law_case_free(&c);
}

const struct check_case check_slices[] = {
    {"slices are reversible", slices_are_reversible},
    {"shrinking leaves the slice whole", shrinking_leaves_the_slice_whole},
    {"scales are sliced by their marginal density",
     scales_are_sliced_by_their_marginal},
    {"draws hold functionals", draws_hold_functionals},
    {"a base changes no law", a_base_changes_no_law},
    {NULL, NULL}};
