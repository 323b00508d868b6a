/* Fixed priors with heavy tails as mixtures: what they are made from, what they
 * add to a quadratic form, and how their scales move. */
#include "check.h"

#include "priors/tails.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_COEF = 3, N_TAIL = 2 };

static double v_of[] = {1, 0.5, -2, 0, 1, 0};
static double v_kind[] = {0, 1}, v_size[] = {1, 1}, v_at[] = {0, 1};
static const double v_argument[10] = {0};
static const double v_location[] = {0.5, -1}, v_scale[] = {0.7, 2};
static const double v_shape[] = {3, 0};

static struct tb_param v_param[] = {
    {"tail_of", v_of, NULL, 6, 6},
    {"tail_mixture_kind", v_kind, NULL, 2, 2},
    {"tail_mixture_size", v_size, NULL, 2, 2},
    {"tail_mixture_at", v_at, NULL, 2, 2},
    {"tail_mixture_argument", v_argument, NULL, 10, 10},
    {"tail_mixture_location", v_location, NULL, 2, 2},
    {"tail_mixture_scale", v_scale, NULL, 2, 2},
    {"tail_mixture_shape", v_shape, NULL, 2, 2}};

static void tails_are_checked(struct check* p_check) {
  const struct tb_params params = {v_param, 8}, none = {v_param + 1, 7};
  struct tb_tails tails;
  CHECK(tb_tails_create(&tails, &none, N_COEF) == TB_STATUS_ok);
  CHECK(tails.n_tail == 0 && tb_tails_size(&tails) == 0);
  CHECK(tb_tails_create(&tails, &params, 4) == TB_STATUS_argument);
  CHECK(tb_tails_create(&tails, &params, 6) == TB_STATUS_argument);
  /* a ridge's scale is no draw of its own */
  v_kind[1] = 2;
  CHECK(tb_tails_create(&tails, &params, N_COEF) == TB_STATUS_argument);
  v_kind[1] = 1;
  for (size_t n = 1; n < 8; ++n) {
    const struct tb_params fewer = {v_param, n};
    CHECK(tb_tails_create(&tails, &fewer, N_COEF) == TB_STATUS_argument);
    CHECK(tails.v_of == NULL && tails.n_tail == 0);
  }
  CHECK(tb_tails_create(&tails, &params, N_COEF) == TB_STATUS_ok);
  CHECK(tails.n_tail == N_TAIL);
  tb_tails_destroy(&tails);
}

static double quadratic(const struct tb_tail_scales* p, const double* v_beta) {
  double sum = 0;
  for (size_t k = 0; k < N_TAIL; ++k) {
    double t = -v_location[k];
    for (size_t j = 0; j < N_COEF; ++j) {
      t += v_of[k * N_COEF + j] * v_beta[j];
    }
    sum -= 0.5 * p->v_precision[k] * t * t;
  }
  return sum;
}

static void tails_add_a_quadratic_form(struct check* p_check) {
  const struct tb_params params = {v_param, 8};
  const double v_beta[N_COEF] = {0.3, -0.8, 0.6};
  const double v_to[N_COEF] = {1.1, 0.4, -2};
  double v_slope[N_COEF] = {0}, v_bend[N_COEF * N_COEF] = {0}, said = 0;
  struct tb_tails tails;
  struct tb_rng rng;
  CHECK(tb_tails_create(&tails, &params, N_COEF) == TB_STATUS_ok);
  double* v_scratch = check_alloc(tb_tails_size(&tails), sizeof(double));
  struct tb_tail_scales scales = tb_tails_at(&tails, v_scratch);
  tb_rng_init(&rng, 8, 0, TB_STREAM_noise);
  tb_tails_draw(&tails, v_beta, &scales, &rng);
  tb_tails_add(&tails, &scales, SIZE_MAX, v_beta, v_slope, v_bend);
  for (size_t i = 0; i < N_COEF; ++i) {
    const double away = v_to[i] - v_beta[i];
    said += v_slope[i] * away;
    for (size_t j = 0; j < N_COEF; ++j) {
      said -= 0.5 * v_bend[i * N_COEF + j] * away * (v_to[j] - v_beta[j]);
    }
  }
  const double expected = quadratic(&scales, v_to) - quadratic(&scales, v_beta);
  CHECK_CLOSE(said, expected, 1e-10 * (1 + fabs(expected)));
  /* without the first there is what the second says of its coefficient */
  memset(v_slope, 0, sizeof v_slope);
  memset(v_bend, 0, sizeof v_bend);
  tb_tails_add(&tails, &scales, 0, v_beta, v_slope, v_bend);
  CHECK(v_slope[0] == 0 && v_slope[2] == 0 && v_bend[0] == 0);
  CHECK_CLOSE(v_bend[N_COEF + 1], scales.v_precision[1], 1e-12);
  free(v_scratch);
  tb_tails_destroy(&tails);
}

/* Scale k of one tail or the other, beside a normal law of a^T beta. */
struct sliced {
  const struct tb_tails* p_tails;
  struct tb_tail_scales scales;
  size_t k;
};

#define MEAN     1.6
#define VARIANCE 0.3

static double scale_log_density(const void* p_context, double x) {
  const struct sliced* p = p_context;
  const double s = v_scale[p->k] * exp(x);
  const double variance = VARIANCE + s * s, away = MEAN - v_location[p->k];
  const double log_prior =
      p->k == 0 ? -3 * x - 1.5 * exp(-2 * x) : 2 * x - 0.5 * exp(2 * x);
  return log_prior - 0.5 * (log(variance) + away * away / variance);
}

static double
scale_step(const void* p_context, double x, struct tb_rng* p_rng) {
  const struct sliced* p = p_context;
  const size_t other = 1 - p->k;
  p->scales.v_log[p->k] = x;
  p->scales.v_log[other] = 0.25;
  tb_tails_slice(p->p_tails, &p->scales, p->k, MEAN, VARIANCE, p_rng);
  const double s = v_scale[p->k] * exp(p->scales.v_log[p->k]);
  const bool is_set = fabs(p->scales.v_precision[p->k] * s * s - 1) < 1e-12;
  return p->scales.v_log[other] == 0.25 && is_set ? p->scales.v_log[p->k] : NAN;
}

/* The density of z ~ N(MEAN, VARIANCE) times its prior: drawn in turn, as if
 * the normal law were what rows say. Its mean against a sum over a grid. */
static void scales_and_places_have_the_priors_law(struct check* p_check) {
  const struct tb_params params = {v_param, 8};
  struct tb_tails tails;
  struct tb_rng rng;
  CHECK(tb_tails_create(&tails, &params, N_COEF) == TB_STATUS_ok);
  double* v_scratch = check_alloc(tb_tails_size(&tails), sizeof(double));
  struct sliced own = {.p_tails = &tails,
                       .scales = tb_tails_at(&tails, v_scratch)};
  for (own.k = 0; own.k < N_TAIL; ++own.k) {
    const struct check_line line = {.log_density = scale_log_density,
                                    .step = scale_step,
                                    .p_context = &own,
                                    .low = -15,
                                    .high = 15};
    CHECK(check_line_step(p_check, &line, 20000, own.k) > 0.4);
  }
  /* the second tail is of the second coefficient alone */
  double sum = 0, mass = 0, mean = 0, square = 0, v_beta[N_COEF] = {0};
  for (double z = -8; z < 8; z += 1e-3) {
    const double t = z - MEAN;
    const double w =
        exp(-0.5 * t * t / VARIANCE - fabs(z - v_location[1]) / v_scale[1]);
    mass += w;
    mean += w * z;
    square += w * z * z;
  }
  mean /= mass;
  const double variance = square / mass - mean * mean;
  const size_t n_draw = 40000;
  tb_rng_init(&rng, 9, 0, TB_STREAM_noise);
  for (size_t i = 0; i < n_draw; ++i) {
    tb_tails_draw(&tails, v_beta, &own.scales, &rng);
    tb_tails_slice(&tails, &own.scales, 1, MEAN, VARIANCE, &rng);
    const double w = own.scales.v_precision[1], all = w + 1 / VARIANCE;
    v_beta[1] = (w * v_location[1] + MEAN / VARIANCE) / all +
                tb_rng_norm(&rng) / sqrt(all);
    sum += v_beta[1];
  }
  /* draws that follow each other have little to do with each other */
  CHECK_CLOSE(sum / (double)n_draw, mean, 6 * sqrt(variance / n_draw));
  free(v_scratch);
  tb_tails_destroy(&tails);
}

const struct check_case check_tails[] = {
    {"tails are checked", tails_are_checked},
    {"tails add a quadratic form", tails_add_a_quadratic_form},
    {"scales and places have the prior's law",
     scales_and_places_have_the_priors_law},
    {NULL, NULL}};
