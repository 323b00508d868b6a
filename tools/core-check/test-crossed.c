/* Regressions with several grouping factors: sweeps against the laws that they
 * must leave alone. */
#include "check.h"
#include "fixture.h"

#include "base/variates.h"
#include "models/crossed-inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Three factors: two that are crossed within two parts of the rows, and one
 * that the second is nested in; the first has a slope as well. x: ones, a
 * covariate, one that is constant within levels of the first factor. */
enum {
  N_ROW = 48,
  N_COEF = 3,
  N_EFFECT = 5 * 2 + 4 + 2,
  N_DIM_MOST = N_COEF + 3 + 1 + 1 + 1,
  N_STAT = 2 * N_DIM_MOST + 8
};

static const double v_level_count[] = {5, 4, 2};

struct design {
  size_t n_row;
  double *v_x, *v_level, *v_y, *v_weight, *v_offset;
};

/* Of n rows the first n / n_times again and again, but for y, weights and an
 * offset that grows by `by` each time. */
struct repeat {
  size_t n_times;
  double by;
};

static struct design design_of(size_t n, const struct repeat* repeat) {
  struct design d = {.n_row = n};
  struct tb_rng rng;
  d.v_x = check_alloc((N_COEF + 3 + 3) * n, sizeof(double));
  d.v_level = d.v_x + N_COEF * n;
  d.v_y = d.v_level + 3 * n;
  d.v_weight = d.v_y + n;
  d.v_offset = d.v_weight + n;
  tb_rng_init(&rng, 77, 0, TB_STREAM_noise);
  for (size_t i = 0; i < n; ++i) {
    const size_t part = i % 2;
    const size_t one = part == 0 ? i / 2 % 2 : 2 + i / 2 % 3;
    const size_t other = 2 * part + (i / 4 + i / 12) % 2;
    d.v_level[i] = 1 + (double)one;
    d.v_level[n + i] = 1 + (double)other;
    d.v_level[2 * n + i] = 1 + (double)(other / 2);
    d.v_x[i] = 1;
    d.v_x[n + i] = tb_rng_norm(&rng);
    d.v_x[2 * n + i] = 0.5 * (double)one - 1;
    d.v_y[i] = i % 3 == 0;
    d.v_weight[i] = 0.5 + tb_rng_unif(&rng);
    d.v_offset[i] = 0.3 * tb_rng_norm(&rng);
  }
  for (size_t i = n / repeat->n_times; i < n; ++i) {
    const size_t own = i - n / repeat->n_times;
    for (size_t j = 0; j < N_COEF; ++j) {
      d.v_x[j * n + i] = d.v_x[j * n + own];
    }
    for (size_t k = 0; k < 3; ++k) {
      d.v_level[k * n + i] = d.v_level[k * n + own];
    }
    d.v_offset[i] = d.v_offset[own] + repeat->by;
    d.v_y[i] = 1 - d.v_y[own];
  }
  return d;
}

/* normal priors of coefficients and of the logarithms of the response's own
 * parameter, or Laplace's and uniform ones of the coefficients */
static void crossed_repeated(struct fixture* p,
                             const char* name,
                             bool is_odd,
                             size_t n_row,
                             const struct repeat* repeat) {
  const struct design d = design_of(n_row, repeat);
  const struct tb_response_type* type = tb_response_find(name, NULL);
  const size_t n_dim = N_COEF + 5 + type->n_aux;
  /* large counts hold their predictors for thousands of sweeps */
  const double size = strcmp(name, "poisson") == 0 ? 0.6 : 1;
  double v_prior[3 * N_DIM_MOST] = {0};
  for (size_t j = 0; j < n_dim; ++j) {
    const bool is_flat = j >= N_COEF && j < N_COEF + 5;
    const bool is_aux = j >= N_COEF + 5;
    v_prior[j] = is_flat ? 0 : is_odd && j == 0 ? 2 : is_odd && j == 2 ? 5 : 1;
    v_prior[n_dim + j] = is_aux ? 0.5 : 0;
    v_prior[2 * n_dim + j] = is_aux ? 0.3 : 0.8 * size;
  }
  for (size_t i = 0; i < n_row; ++i) {
    d.v_y[i] = strcmp(name, "Gamma") == 0 ? 0.5 + d.v_y[i] : d.v_y[i];
  }
  const double place = fixture_place(name), aux = NAN, n_coef = N_COEF;
  const double v_z[] = {0, 1, 0, 0};
  const double v_scale[] = {0.6 * size, 0.4 * size, 0.7 * size, 0.5 * size};
  const double v_q[] = {2, 1, 1}, v_one[] = {1, 1, 1}, v_df[] = {3, 3, 3};
  const double v_lkj[] = {2, 1, 1};
  const bool weighs = type->flags & TB_RESPONSE_PRECISION;
  const struct tb_param v_param[] = {
      {"x", d.v_x, NULL, n_row * N_COEF, n_row},
      {"y", d.v_y, NULL, n_row, n_row},
      {"offset", d.v_offset, NULL, n_row, n_row},
      {"level", d.v_level, NULL, 3 * n_row, n_row},
      {"n_coef", &n_coef, NULL, 1, 1},
      {"n_column", &n_coef, NULL, 1, 1},
      {"n_level", v_level_count, NULL, 3, 3},
      {"n_effect", v_q, NULL, 3, 3},
      {"correlated", v_one, NULL, 3, 3},
      {"sd_kind", v_one, NULL, 3, 3},
      {"sd_df", v_df, NULL, 3, 3},
      {"lkj", v_lkj, NULL, 3, 3},
      {"z", v_z, NULL, 4, 4},
      {"sd_scale", v_scale, NULL, 4, 4},
      {"response", &place, NULL, 1, 1},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim},
      {"aux", &aux, NULL, type->n_aux, type->n_aux},
      {"weights", d.v_weight, NULL, n_row, n_row}};
  const size_t n_param = sizeof v_param / sizeof *v_param;
  const struct tb_params params = {v_param, weighs ? n_param : n_param - 1};
  *p = (struct fixture){.model = {.type = tb_model_find("crossed")}};
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(d.v_x);
}

static void crossed_of_rows(struct fixture* p,
                            const char* name,
                            bool is_odd,
                            size_t n_row) {
  const struct repeat once = {.n_times = 1};
  crossed_repeated(p, name, is_odd, n_row, &once);
}

static void crossed_fixture(struct fixture* p, const char* name, bool is_odd) {
  crossed_of_rows(p, name, is_odd, N_ROW);
}

/* ---- draws of theta, u and y ---- */

static void draw_prior(const struct crossed* p,
                       struct tb_rng* p_rng,
                       double* v_theta,
                       double* v_u) {
  for (size_t j = 0; j < p->n_coef; ++j) {
    const double kind = p->prior.v_kind[j], unif = tb_rng_unif(p_rng);
    const double laplace =
        (unif < 0.5 ? 1 : -1) * log(fmin(unif, 1 - unif) * 2);
    v_theta[j] = p->prior.v_scale[j] * (kind == 1   ? tb_rng_norm(p_rng)
                                        : kind == 2 ? laplace
                                                    : 2 * unif - 1);
  }
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    double* v_lambda = v_theta + f->at_lambda;
    crossed_square root;
    for (size_t a = 0; a < f->n_effect; ++a) {
      v_lambda[a] = log(f->v_scale[a] * fabs(tb_rng_norm(p_rng)));
    }
    if (f->n_lambda > f->n_effect) {
      double r;
      do { /* LKJ(2) of two: 1 - r^2 */
        r = 2 * tb_rng_unif(p_rng) - 1;
      } while (tb_rng_unif(p_rng) > 1 - r * r);
      v_lambda[2] = atanh(r);
    }
    crossed_root(f, v_lambda, root);
    for (size_t g = 0; g < f->n_level; ++g) {
      double v[CROSSED_EFFECT];
      tb_rng_fill_norm(p_rng, v, f->n_effect);
      for (size_t a = 0; a < f->n_effect; ++a) {
        double* u = &v_u[f->at_effect + g * f->n_effect + a];
        *u = 0;
        for (size_t b = 0; b <= a; ++b) {
          *u += root[a][b] * v[b];
        }
      }
    }
  }
  for (size_t k = 0; k < p->n_aux; ++k) {
    v_theta[p->prior.n_dim - p->n_aux + k] = 0.5 + 0.3 * tb_rng_norm(p_rng);
  }
}

static void predictors(const struct crossed* p,
                       const double* v_theta,
                       const double* v_u,
                       double* v_eta) {
  for (size_t i = 0; i < p->n_row; ++i) {
    v_eta[i] = p->v_offset[i];
    for (size_t j = 0; j < p->n_coef; ++j) {
      const double* v_x = p->v_column[j];
      v_eta[i] += v_theta[j] * (v_x == NULL ? 1 : v_x[i]);
    }
    for (size_t k = 0; k < p->n_factor; ++k) {
      const struct crossed_factor* f = &p->v_factor[k];
      const double* v =
          v_u + f->at_effect + (size_t)f->v_level[i] * f->n_effect;
      for (size_t a = 0; a < f->n_effect; ++a) {
        v_eta[i] += v[a] * (f->v_column[a] == NULL ? 1 : f->v_column[a][i]);
      }
    }
  }
}

/* into the model, whose rows nobody else sees */
static void draw_rows(struct crossed* p,
                      struct tb_rng* p_rng,
                      const double* v_theta,
                      const double* v_u) {
  const char* name = p->response.type->name;
  const double aux = exp(v_theta[p->prior.n_dim - 1]);
  double v_eta[N_ROW];
  predictors(p, v_theta, v_u, v_eta);
  for (size_t i = 0; i < N_ROW; ++i) {
    if (strcmp(name, "gaussian") == 0) {
      p->v_y[i] = v_eta[i] + aux / sqrt(p->v_weight[i]) * tb_rng_norm(p_rng);
    } else if (strcmp(name, "binomial") == 0) {
      p->v_y[i] = tb_rng_unif(p_rng) < 1 / (1 + exp(-v_eta[i]));
    } else if (strcmp(name, "poisson") == 0) {
      p->v_y[i] = tb_rng_poisson(p_rng, exp(v_eta[i]));
    } else {
      p->v_y[i] = tb_rng_gamma(p_rng, aux) / aux * exp(v_eta[i]);
    }
  }
}

static void statistics(const struct crossed* p,
                       const double* v_theta,
                       const double* v_u,
                       double* v) {
  for (size_t j = 0; j < p->prior.n_dim; ++j) {
    *v++ = v_theta[j];
    *v++ = v_theta[j] * v_theta[j];
  }
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    for (size_t a = 0; a < f->n_effect; ++a) {
      double sum = 0, square = 0;
      for (size_t g = 0; g < f->n_level; ++g) {
        const double u = v_u[f->at_effect + g * f->n_effect + a];
        sum += u;
        square += u * u;
      }
      *v++ = sum;
      *v++ = square;
    }
  }
}

/* a chain's state that the test holds */
struct held {
  struct tb_sweep sweep;
  double v_theta[N_DIM_MOST];
  double* v_u;
};

static void hold(struct fixture* p, struct held* h) {
  const struct tb_model_sweeps* sweeps = p->model.type->sweeps;
  h->sweep = (struct tb_sweep){
      .v_theta = h->v_theta,
      .p_state = check_alloc(1, sweeps->state_size(&p->model)),
      .p_rng = &p->rng};
  memset(h->v_theta, 0, sizeof h->v_theta);
  if (sweeps->start(&p->model, &p->work, &h->sweep) != TB_STATUS_ok) {
    abort();
  }
  h->v_u = (double*)sweeps->effects(&p->model, h->sweep.p_state);
}

/* ---- laws ---- */

/* sweeps in one of a hundred parts of a chain: what sees a factor that is left
 * out, where it does not take minutes */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EACH = 50 };
#else
enum { EACH = 1000 };
#endif

/* Geweke (2004, JASA 99:799): draws of (theta, u) by sweeps, with new rows
 * between them, are draws of the prior. */
static void
joint_law(struct check* p_check, const char* name, bool is_odd, bool is_joint) {
  enum { N_BATCH = 100, N_PRIOR = 200000 };
  struct fixture f;
  struct held h;
  struct tb_rng rng;
  crossed_fixture(&f, name, is_odd);
  struct crossed* p = f.model.p_self;
  tb_rng_init(&rng, 5, 0, TB_STREAM_noise);
  double v_mean[N_STAT] = {0}, v_square[N_STAT] = {0}, v[N_STAT] = {0};
  for (size_t t = 0; t < N_PRIOR; ++t) {
    double v_theta[N_DIM_MOST], v_u[N_EFFECT];
    draw_prior(p, &rng, v_theta, v_u);
    statistics(p, v_theta, v_u, v);
    for (size_t s = 0; s < N_STAT; ++s) {
      v_mean[s] += v[s] / N_PRIOR;
      v_square[s] += v[s] * v[s] / N_PRIOR;
    }
  }
  hold(&f, &h);
  h.sweep.is_joint = is_joint;
  draw_prior(p, &rng, h.v_theta, h.v_u);
  draw_rows(p, &rng, h.v_theta, h.v_u);
  double v_sum[N_STAT] = {0}, v_all[N_STAT] = {0}, v_spread[N_STAT] = {0};
  for (size_t b = 0; b < N_BATCH; ++b) {
    memset(v_sum, 0, sizeof v_sum);
    for (size_t t = 0; t < EACH; ++t) {
      CHECK(f.model.type->sweeps->sweep(&f.model, &f.work, &h.sweep) ==
            TB_STATUS_ok);
      draw_rows(p, &rng, h.v_theta, h.v_u);
      statistics(p, h.v_theta, h.v_u, v);
      for (size_t s = 0; s < N_STAT; ++s) {
        v_sum[s] += v[s] / EACH;
      }
    }
    for (size_t s = 0; s < N_STAT; ++s) {
      v_all[s] += v_sum[s] / N_BATCH;
      v_spread[s] += v_sum[s] * v_sum[s] / N_BATCH;
    }
  }
  const size_t n_stat = 2 * f.model.n_dim + 8;
  for (size_t s = 0; s < n_stat; ++s) {
    const double by_prior = (v_square[s] - v_mean[s] * v_mean[s]) / N_PRIOR;
    const double by_sweep = (v_spread[s] - v_all[s] * v_all[s]) / N_BATCH;
    CHECK(by_sweep > 0);
    CHECK_CLOSE((v_all[s] - v_mean[s]) / sqrt(by_prior + by_sweep), 0, 4.5);
  }
  CHECK(h.sweep.n_propose == 0 || h.sweep.n_accept > 0.3 * h.sweep.n_propose);
  free(h.sweep.p_state);
  fixture_free(&f);
}

static void joint_law_of_normal_rows(struct check* p_check) {
  joint_law(p_check, "gaussian", false, false);
  joint_law(p_check, "gaussian", true, false);
}

static void joint_law_of_joint_draws(struct check* p_check) {
  joint_law(p_check, "gaussian", false, true);
}

static void joint_law_of_other_rows(struct check* p_check) {
  joint_law(p_check, "binomial", true, false);
  joint_law(p_check, "poisson", false, false);
  joint_law(p_check, "Gamma", false, false);
}

/* one of the moves that cost no data */
static void shift(const struct crossed* p,
                  struct tb_rng* p_rng,
                  size_t which,
                  double* v_theta,
                  double* v_u) {
  double v_slope[N_DIM_MOST], v_hessian[N_DIM_MOST * N_DIM_MOST];
  double v_part[N_EFFECT];
  struct crossed_chain c = {.p = p,
                            .v_theta = v_theta,
                            .v_u = v_u,
                            .p_rng = p_rng,
                            .v_slope = v_slope,
                            .v_hessian = v_hessian,
                            .v_part = v_part};
  if (which < p->n_tie) {
    crossed_shift_tie(&c, &p->v_tie[which]);
  } else if (which < p->n_tie + p->n_link) {
    crossed_shift_link(&c, &p->v_link[which - p->n_tie]);
  } else {
    /* both others are nested in the third factor */
    crossed_scale_link(&c, &p->v_link[1 + which - p->n_tie - p->n_link], 1);
  }
}

/* From draws x of the prior to x': predictors stay, and g(x) h(x') has the mean
 * of h(x) g(x') for all statistics g and h. */
static void shifts_are_reversible(struct check* p_check, bool is_odd) {
  enum { N = 40000 };
  struct fixture f;
  struct tb_rng rng;
  crossed_fixture(&f, "binomial", is_odd);
  const struct crossed* p = f.model.p_self;
  const size_t n_stat = 2 * f.model.n_dim + 8;
  tb_rng_init(&rng, 15, 0, TB_STREAM_noise);
  /* ones and the level covariate in three factors and one, x in its slope */
  CHECK(p->n_tie == 5 && p->n_link == 3);
  CHECK(p->v_link[0].n_part == 2 && p->v_link[2].n_part == 2);
  for (size_t k = 0; k < 3; ++k) {
    CHECK(!p->v_link[k].v_is_outer[0] && p->v_link[k].v_is_outer[1] == (k > 0));
  }
  for (size_t which = 0; which < p->n_tie + p->n_link + 2; ++which) {
    double v_sum[N_STAT][N_STAT] = {{0}}, v_square[N_STAT][N_STAT] = {{0}};
    double moved = 0;
    for (size_t t = 0; t < N; ++t) {
      double v_theta[N_DIM_MOST], v_u[N_EFFECT];
      double v_eta[N_ROW], v_new[N_ROW], v[N_STAT], w[N_STAT];
      draw_prior(p, &rng, v_theta, v_u);
      predictors(p, v_theta, v_u, v_eta);
      statistics(p, v_theta, v_u, v);
      shift(p, &rng, which, v_theta, v_u);
      predictors(p, v_theta, v_u, v_new);
      statistics(p, v_theta, v_u, w);
      for (size_t i = 0; i < N_ROW; ++i) {
        CHECK_CLOSE(v_new[i], v_eta[i], 1e-12 * (1 + fabs(v_eta[i])));
      }
      for (size_t g = 0; g < n_stat; ++g) {
        moved += fabs(v[g] - w[g]);
        for (size_t h = 0; h < g; ++h) {
          const double e = v[g] * w[h] - v[h] * w[g];
          v_sum[g][h] += e;
          v_square[g][h] += e * e;
        }
      }
    }
    CHECK(moved > 0.1 * N);
    for (size_t g = 0; g < n_stat; ++g) {
      for (size_t h = 0; h < g; ++h) {
        if (v_square[g][h] > 1e-12 * N) {
          CHECK_CLOSE(v_sum[g][h] / sqrt(v_square[g][h]), 0, 5);
        }
      }
    }
  }
  fixture_free(&f);
}

static void shifts_cost_nothing(struct check* p_check) {
  shifts_are_reversible(p_check, false);
  shifts_are_reversible(p_check, true);
}

/* Draws do not depend on slices, threads, or where a run was saved. */
static void runs_are_chains(struct check* p_check) {
  enum { CHAINS = 3, WARMUP = 20, STEPS = 30, N = STEPS * CHAINS * N_DIM_MOST };
  static const char* const v_name[] = {"gaussian", "binomial", "Gamma"};
  for (size_t k = 0; k < 3; ++k) {
    struct fixture f;
    double v_init[N_DIM_MOST * CHAINS] = {0}, v_one[N], v_other[N];
    crossed_fixture(&f, v_name[k], false);
    const size_t n_dim = f.model.n_dim, n_all = STEPS * CHAINS * n_dim;
    const struct fixture_run what = {.kernel = "gibbs",
                                     .estimator = "full",
                                     .n_chain = CHAINS,
                                     .n_warmup = WARMUP,
                                     .n_sampling = STEPS,
                                     .seed = 3,
                                     .v_init = v_init};
    CHECK(fixture_run_go(&f, &what, 1000, v_one) == TB_STATUS_ok);
    CHECK(fixture_run_go(&f, &what, 3, v_other) == TB_STATUS_ok);
    CHECK(memcmp(v_one, v_other, n_all * sizeof(double)) == 0);
    /* saved after 13 kept draws, and again two threads at work */
    struct fixture_run part = what;
    const struct tb_recorder recorder = {.n_keep = STEPS, .v_draw = v_other};
    struct tb_run *p_first, *p_second;
    part.n_sampling = 13;
    CHECK(fixture_run_create(&f, &part, &p_first) == TB_STATUS_ok);
    CHECK(tb_run_start(p_first) == TB_STATUS_ok);
    tb_run_advance(p_first, 1000, 2, &recorder);
    part.n_warmup = 0;
    part.n_sampling = STEPS - 13;
    CHECK(fixture_run_create(&f, &part, &p_second) == TB_STATUS_ok);
    const size_t n_byte = tb_run_saved_size(p_first);
    void* p_byte = check_alloc(1, n_byte);
    for (size_t c = 0; c < CHAINS; ++c) {
      tb_run_save(p_first, c, p_byte);
      CHECK(tb_run_load(p_second, c, p_byte, n_byte) == TB_STATUS_ok);
    }
    double v_rest[N];
    const struct tb_recorder rest = {.n_keep = STEPS - 13, .v_draw = v_rest};
    tb_run_advance(p_second, 1000, 2, &rest);
    for (size_t c = 0; c < CHAINS; ++c) {
      const double* v_moment = f.model.type->sweeps->moments(
          &f.model,
          tb_run_chain(p_second, c)->p_kernel_state);
      CHECK(v_moment[0] == STEPS);
      for (size_t j = 0; j < n_dim; ++j) {
        for (size_t t = 0; t < STEPS; ++t) {
          const double* v_from =
              t < 13 ? v_other + t + STEPS * (c + CHAINS * j)
                     : v_rest + (t - 13) + (STEPS - 13) * (c + CHAINS * j);
          CHECK(*v_from == v_one[t + STEPS * (c + CHAINS * j)]);
        }
      }
    }
    free(p_byte);
    tb_run_destroy(p_first);
    tb_run_destroy(p_second);
    fixture_free(&f);
  }
}

/* To the last bit: rows of more than one stretch, the last of them no tile. */
static void threads_change_nothing(struct check* p_check) {
  enum { N_MANY = 70 * CROSSED_TILE + 11, N_SWEEP = 12, N_TRY = 4 };
  const char* const v_name[] = {"gaussian", "binomial", "Gamma"};
  const size_t v_thread[N_TRY] = {1, 2, 3, 4};
  for (size_t m = 0; m < 3; ++m) {
    double v_first[N_DIM_MOST + N_EFFECT];
    for (size_t k = 0; k < N_TRY; ++k) {
      struct fixture f;
      struct held h;
      double v_last[N_DIM_MOST + N_EFFECT] = {0};
      crossed_of_rows(&f, v_name[m], m == 1, N_MANY);
      f.work.n_thread = v_thread[k];
      hold(&f, &h);
      h.sweep.is_joint = true;
      for (size_t t = 0; t < N_SWEEP; ++t) {
        h.sweep.is_warmup = t < N_SWEEP / 2;
        CHECK(f.model.type->sweeps->sweep(&f.model, &f.work, &h.sweep) ==
              TB_STATUS_ok);
      }
      memcpy(v_last, h.v_theta, sizeof h.v_theta);
      memcpy(v_last + N_DIM_MOST, h.v_u, N_EFFECT * sizeof(double));
      if (k == 0) {
        memcpy(v_first, v_last, sizeof v_last);
      }
      CHECK(memcmp(v_first, v_last, sizeof v_last) == 0);
      free(h.sweep.p_state);
      fixture_free(&f);
    }
  }
}

/* Rows that are equal but for y and weights make the draws that they make by
 * themselves, to rounding. */
static void cells_are_their_rows(struct check* p_check) {
  enum { N_TIMES = 3, N_MANY = N_TIMES * N_ROW, N_SWEEP = 20 };
  double v_last[2][N_DIM_MOST + N_EFFECT] = {{0}};
  for (size_t k = 0; k < 2; ++k) {
    struct fixture f;
    struct held h;
    struct repeat repeat = {.n_times = N_TIMES, .by = k == 0 ? 0 : 1e-12};
    crossed_repeated(&f, "gaussian", true, N_MANY, &repeat);
    const struct crossed* p = f.model.p_self;
    CHECK(p->n_row == (k == 0 ? N_ROW : N_MANY) && p->n_datum == N_MANY);
    CHECK(f.model.n_data == N_MANY);
    hold(&f, &h);
    for (size_t t = 0; t < N_SWEEP; ++t) {
      h.sweep.is_warmup = t < N_SWEEP / 2;
      CHECK(f.model.type->sweeps->sweep(&f.model, &f.work, &h.sweep) ==
            TB_STATUS_ok);
    }
    memcpy(v_last[k], h.v_theta, sizeof h.v_theta);
    memcpy(v_last[k] + N_DIM_MOST, h.v_u, N_EFFECT * sizeof(double));
    free(h.sweep.p_state);
    fixture_free(&f);
  }
  for (size_t j = 0; j < N_DIM_MOST + N_EFFECT; ++j) {
    CHECK_CLOSE(v_last[0][j], v_last[1][j], 1e-7);
  }
}

/* What sweeps has no gradient, and what has one no sweeps. */
static void others_are_refused(struct check* p_check) {
  struct fixture f, glm;
  struct tb_run* p_run = NULL;
  double v_init[N_DIM_MOST] = {0};
  struct fixture_run what = {.kernel = "mala",
                             .estimator = "full",
                             .n_chain = 1,
                             .n_sampling = 1,
                             .v_init = v_init};
  crossed_fixture(&f, "binomial", false);
  fixture_glm(&glm, 50, 3, 1, 0);
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_unsupported);
  what.kernel = "sgld";
  CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_unsupported);
  what.kernel = "gibbs";
  CHECK(fixture_run_create(&glm, &what, &p_run) == TB_STATUS_unsupported);
  fixture_free(&f);
  fixture_free(&glm);
}

const struct check_case check_crossed[] = {
    {"sweeps leave the joint law of normal rows", joint_law_of_normal_rows},
    {"joint draws leave the joint law of normal rows",
     joint_law_of_joint_draws},
    {"sweeps leave the joint law of other rows", joint_law_of_other_rows},
    {"shifts leave predictors and law", shifts_cost_nothing},
    {"draws of sweeps depend on no slice, thread or save", runs_are_chains},
    {"threads of a sweep change no bit of it", threads_change_nothing},
    {"cells are their rows", cells_are_their_rows},
    {"models that sweep are refused by others", others_are_refused},
    {NULL, NULL},
};
