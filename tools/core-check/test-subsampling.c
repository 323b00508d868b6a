#include "check.h"

#include "fixture.h"
#include "gradients/gradient.h"
#include "subsampling/subsample.h"
#include "subsampling/weighted.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A scheme on n_data rows and a chain that draws from it. */
struct drawer {
  struct tb_model model;
  struct tb_scheme scheme;
  struct tb_target target;
  struct tb_chain chain;
  enum tb_status status;
};

static void drawer_start(struct drawer* p, uint64_t seed) {
  tb_rng_init(&p->chain.v_rng[TB_STREAM_batch], seed, 0, TB_STREAM_batch);
}

static void drawer_make_with(struct drawer* p,
                             const char* name,
                             size_t n_data,
                             struct tb_params params) {
  memset(p, 0, sizeof *p);
  p->model.n_data = n_data;
  p->scheme.type = tb_scheme_find(name);
  p->scheme.p_self = check_alloc(1, p->scheme.type->self_size(&params, n_data));
  p->status = p->scheme.type->init(&p->scheme, &p->model, &params);
  p->target.p_model = &p->model;
  p->target.p_scheme = &p->scheme;
  p->chain.p_target = &p->target;
  if (p->status == TB_STATUS_ok) {
    /* not zero: the scheme must not count on it */
    const size_t n_byte = p->scheme.type->state_size(&p->scheme);
    p->chain.p_scheme_state = check_alloc(1, n_byte);
    memset(p->chain.p_scheme_state, 0xa5, n_byte);
  }
  drawer_start(p, 1);
}

static void drawer_make(struct drawer* p,
                        const char* name,
                        size_t n_data,
                        double size,
                        double replace,
                        const double* v_weight) {
  const struct tb_param v_param[] = {
      {"size", &size, NULL, 1, 1},
      {"replace", &replace, NULL, 1, 1},
      {"weights", v_weight, NULL, n_data, n_data}};
  const struct tb_params params = {v_param, v_weight == NULL ? 2 : 3};
  drawer_make_with(p, name, n_data, params);
}

static void drawer_free(struct drawer* p) {
  free(p->scheme.p_self);
  free(p->chain.p_scheme_state);
}

static struct tb_batch drawer_draw(struct drawer* p) {
  struct tb_batch batch = {0};
  p->status = p->scheme.type->draw(&p->chain, NULL, &batch);
  return batch;
}

static void registry_finds(struct check* p_check) {
  for (size_t i = 0; tb_scheme_registry[i] != NULL; ++i) {
    const struct tb_scheme_type* p_type = tb_scheme_registry[i];
    CHECK(tb_scheme_find(p_type->name) == p_type);
  }
  CHECK(tb_scheme_find("no such scheme") == NULL);
}

/* ---- uniform ---- */

static void uniform_replaced(struct check* p_check) {
  struct drawer d;
  drawer_make(&d, "uniform", 10, 4, 1, NULL);
  CHECK(d.status == TB_STATUS_ok);
  CHECK(d.scheme.n_size == 4 && d.scheme.n_size_max == 4);
  double v_seen[100] = {0}, v_expected[100];
  for (size_t k = 0; k < 50000; ++k) {
    const struct tb_batch batch = drawer_draw(&d);
    CHECK(batch.n_batch == 4 && batch.weight == 2.5 && batch.finite == 1 &&
          batch.v_weight == NULL);
    /* pairs: places are independent, so repeats come as often as they must */
    v_seen[10 * batch.v_index[0] + batch.v_index[1]] += 1;
    v_seen[10 * batch.v_index[2] + batch.v_index[3]] += 1;
  }
  for (size_t k = 0; k < 100; ++k) {
    v_expected[k] = 1000;
  }
  CHECK(fabs(check_chi_square(v_seen, v_expected, 100)) < 5);
  drawer_free(&d);

  drawer_make(&d, "uniform", 3, 7, 1, NULL); /* more draws than rows */
  CHECK(d.status == TB_STATUS_ok && drawer_draw(&d).n_batch == 7);
  drawer_free(&d);
}

/* every subset equally often: all inclusion probabilities, of any order */
static void uniform_subsets(struct check* p_check) {
  for (size_t n = 1; n < 8; ++n) {
    struct drawer d;
    drawer_make(&d, "uniform", 8, (double)n, 0, NULL);
    CHECK(d.status == TB_STATUS_ok);
    double v_seen[256] = {0};
    const size_t n_draw = 100000;
    for (size_t k = 0; k < n_draw; ++k) {
      const struct tb_batch batch = drawer_draw(&d);
      CHECK(batch.n_batch == n && batch.v_weight == NULL);
      CHECK_CLOSE(batch.weight, 8 / (double)n, 1e-15);
      CHECK_CLOSE(batch.finite, 1 - (double)n / 8, 1e-15);
      size_t subset = 0;
      for (size_t i = 0; i < n; ++i) {
        subset |= (size_t)1 << batch.v_index[i];
      }
      v_seen[subset & 255] += 1;
    }
    double v_count[256], v_expected[256];
    size_t n_subset = 0;
    for (size_t subset = 0; subset < 256; ++subset) {
      size_t n_member = 0;
      for (size_t i = 0; i < 8; ++i) {
        n_member += subset >> i & 1;
      }
      if (n_member == n) {
        v_count[n_subset++] = v_seen[subset];
      } else {
        CHECK(v_seen[subset] == 0); /* a row twice, or out of range */
      }
    }
    for (size_t k = 0; k < n_subset; ++k) {
      v_expected[k] = (double)n_draw / (double)n_subset;
    }
    CHECK(fabs(check_chi_square(v_count, v_expected, n_subset)) < 5);
    drawer_free(&d);
  }
}

static void uniform_distinct(struct check* p_check) {
  const size_t v_data[] = {100, 1000, 5000};
  for (size_t t = 0; t < 3; ++t) {
    const size_t n_data = v_data[t];
    for (size_t n = 1; n < n_data; n = 2 * n + 3) {
      struct drawer d;
      drawer_make(&d, "uniform", n_data, (double)n, 0, NULL);
      unsigned char* v_is_seen = check_alloc(n_data, 1);
      for (int repeat = 0; repeat < 3; ++repeat) {
        const struct tb_batch batch = drawer_draw(&d);
        memset(v_is_seen, 0, n_data);
        for (size_t k = 0; k < n; ++k) {
          CHECK(batch.v_index[k] < n_data);
          CHECK(!v_is_seen[batch.v_index[k] % n_data]);
          v_is_seen[batch.v_index[k] % n_data] = 1;
        }
      }
      free(v_is_seen);
      drawer_free(&d);
    }
  }
}

static void uniform_all(struct check* p_check) {
  struct drawer d;
  drawer_make(&d, "uniform", 12, 12, 0, NULL);
  const struct tb_batch batch = drawer_draw(&d);
  CHECK(batch.n_batch == 12 && batch.v_index == NULL && batch.start == 0 &&
        batch.weight == 1 && batch.finite == 0);
  drawer_free(&d);
}

static void uniform_refuses(struct check* p_check) {
  const double v_bad[][2] = {{0, 1},
                             {-3, 1},
                             {NAN, 1},
                             {13, 0},
                             {1e300, 1},
                             {0.5, 0},
                             {0, 0},
                             {INFINITY, 1}};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    struct drawer d;
    drawer_make(&d, "uniform", 12, v_bad[k][0], v_bad[k][1], NULL);
    CHECK(d.status == TB_STATUS_argument);
    drawer_free(&d);
  }
}

/* ---- weighted ---- */

static void weights_fill(double* v_weight, size_t n, int kind) {
  struct tb_rng rng;
  tb_rng_init(&rng, 7 + (uint64_t)n, 0, TB_STREAM_noise);
  for (size_t i = 0; i < n; ++i) {
    switch (kind) {
    case 0:
      v_weight[i] = 3;
      break;
    case 1:
      v_weight[i] = exp(3 * tb_rng_norm(&rng));
      break;
    case 2: /* one row has almost all, and no sum of these is finite */
      v_weight[i] = i == n / 2 ? 1e308 : 1e301 * tb_rng_unif(&rng);
      break;
    default:
      v_weight[i] = 1e-300 * (double)(i + 1);
    }
  }
}

static void alias_exact(struct check* p_check) {
  const size_t v_data[] = {1, 2, 3, 10, 1000, 20000};
  for (size_t t = 0; t < sizeof v_data / sizeof v_data[0]; ++t) {
    for (int kind = 0; kind < 4; ++kind) {
      const size_t n = v_data[t], n_size = 5;
      double* v_weight = check_alloc(n, sizeof(double));
      double* v_p = check_alloc(n, sizeof(double));
      struct tb_alias* v_record = check_alloc(n, sizeof *v_record);
      weights_fill(v_weight, n, kind);
      CHECK(tb_alias_build(v_weight, n, n_size, v_record) == TB_STATUS_ok);
      long double sum = 0;
      for (size_t i = 0; i < n; ++i) {
        sum += v_weight[i];
        CHECK(v_record[i].threshold >= 0 && v_record[i].threshold <= 1);
        CHECK(v_record[i].alias < n);
        v_p[i] += v_record[i].threshold / (double)n;
        v_p[v_record[i].alias] += (1 - v_record[i].threshold) / (double)n;
      }
      for (size_t i = 0; i < n; ++i) {
        const double p = (double)(v_weight[i] / sum);
        /* what a table of doubles can hold: 1/N at the resolution of 1 */
        CHECK_CLOSE(v_p[i], p, 1e-13 * p + 4 * DBL_EPSILON);
        CHECK_CLOSE(v_record[i].weight * (double)n_size * p, 1, 1e-14);
        CHECK(v_record[i].alias_weight == v_record[v_record[i].alias].weight);
      }
      free(v_weight);
      free(v_p);
      free(v_record);
    }
  }
}

static void weighted_law(struct check* p_check) {
  enum { n_data = 50, n_size = 21, n_draw = 20000 };
  double v_weight[n_data], v_seen[n_data] = {0}, v_expected[n_data];
  double sum = 0, total = 0;
  for (size_t i = 0; i < n_data; ++i) {
    v_weight[i] = 1 + (double)(i * i % 17);
    sum += v_weight[i];
  }
  struct drawer d;
  drawer_make(&d, "weighted", n_data, n_size, 1, v_weight);
  CHECK(d.status == TB_STATUS_ok);
  for (size_t k = 0; k < n_draw; ++k) {
    const struct tb_batch batch = drawer_draw(&d);
    CHECK(batch.n_batch == n_size && batch.finite == 1);
    for (size_t i = 0; i < n_size; ++i) {
      const size_t row = batch.v_index[i];
      v_seen[row] += 1;
      total += batch.v_weight[i] / n_draw;
      /* the multiplier belongs to its row: n p_i c_i = 1 */
      CHECK_CLOSE(batch.v_weight[i] * n_size * v_weight[row] / sum, 1, 1e-14);
    }
  }
  double variance = 0; /* of sum_i c_i: (sum 1/p_i - N^2) / n */
  for (size_t i = 0; i < n_data; ++i) {
    v_expected[i] = (double)n_draw * n_size * v_weight[i] / sum;
    variance += sum / v_weight[i] / n_size;
  }
  variance -= (double)n_data * n_data / n_size;
  CHECK(fabs(check_chi_square(v_seen, v_expected, n_data)) < 5);
  CHECK_CLOSE(total, n_data, 5 * sqrt(variance / n_draw));
  drawer_free(&d);
}

/* rows of every minibatch: told apart, never drawn, and the others as without
 * them */
static void weighted_always(struct check* p_check) {
  enum { n_data = 30, n_draw = 20000 };
  const double size = 3, v_always[] = {1, 7, 30}; /* from 1 */
  double v_weight[n_data], v_seen[n_data] = {0}, v_expected[n_data];
  double sum = 0;
  for (size_t i = 0; i < n_data; ++i) {
    v_weight[i] = 1 + (double)(i % 5);
  }
  v_weight[0] = v_weight[6] = v_weight[29] = 0;
  struct tb_param v_param[] = {{"size", &size, NULL, 1, 1},
                               {"weights", v_weight, NULL, n_data, n_data},
                               {"always", v_always, NULL, 3, 3}};
  const struct tb_params params = {v_param, 3};
  for (size_t i = 0; i < n_data; ++i) {
    sum += v_weight[i];
  }
  struct drawer d;
  drawer_make_with(&d, "weighted", n_data, params);
  CHECK(d.status == TB_STATUS_ok);
  const struct tb_batch* p_always = &d.scheme.always;
  CHECK(p_always->n_batch == 3 && p_always->weight == 1);
  CHECK(p_always->v_index[0] == 0 && p_always->v_index[1] == 6 &&
        p_always->v_index[2] == 29);
  for (size_t k = 0; k < n_draw; ++k) {
    const struct tb_batch batch = drawer_draw(&d);
    CHECK(batch.n_batch == 3);
    for (size_t i = 0; i < batch.n_batch; ++i) {
      const size_t row = batch.v_index[i];
      v_seen[row] += 1;
      CHECK(v_weight[row] > 0);
      CHECK_CLOSE(batch.v_weight[i] * 3 * v_weight[row] / sum, 1, 1e-14);
    }
  }
  double v_drawn[n_data];
  size_t n = 0;
  for (size_t i = 0; i < n_data; ++i) {
    if (v_weight[i] > 0) {
      v_drawn[n] = v_seen[i];
      v_expected[n++] = 3.0 * n_draw * v_weight[i] / sum;
    } else {
      CHECK(v_seen[i] == 0);
    }
  }
  CHECK(fabs(check_chi_square(v_drawn, v_expected, n)) < 5);
  drawer_free(&d);

  /* out of range, twice, out of order, with a weight; a weight of 0 alone */
  const double v_bad[][3] = {{1, 7, 31},
                             {0, 7, 30},
                             {1, 1, 30},
                             {7, 1, 30},
                             {1, 2, 30},
                             {1, NAN, 30}};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    v_param[2].v_value = v_bad[k];
    drawer_make_with(&d, "weighted", n_data, params);
    CHECK(d.status == TB_STATUS_argument);
    drawer_free(&d);
  }
  v_param[2].v_value = v_always;
  v_param[2].n_value = 2;
  drawer_make_with(&d, "weighted", n_data, params);
  CHECK(d.status == TB_STATUS_argument);
  drawer_free(&d);
}

static void weighted_refuses(struct check* p_check) {
  const double v_bad[] = {0, -1, NAN, INFINITY};
  for (size_t k = 0; k < 4; ++k) {
    const double v_weight[] = {1, v_bad[k], 2};
    struct drawer d;
    drawer_make(&d, "weighted", 3, 2, 1, v_weight);
    CHECK(d.status == TB_STATUS_argument);
    drawer_free(&d);
  }
  const double v_weight[] = {1e-300, 1, 1e300}; /* p beyond double */
  struct drawer d;
  drawer_make(&d, "weighted", 3, 2, 1, v_weight);
  CHECK(d.status == TB_STATUS_argument);
  drawer_free(&d);
  drawer_make(&d, "weighted", 3, 2, 1, NULL);
  CHECK(d.status == TB_STATUS_argument);
  drawer_free(&d);
}

/* ---- adaptive ---- */

enum { A_DIM = 3, A_DATA = 40 };

struct adaptive_case {
  double rate, least, most;
  const double* v_weight;
};

static void adaptive_make(struct drawer* p,
                          const struct adaptive_case* p_case) {
  static const double v_at[A_DIM] = {1, 0, -1};
  const struct tb_param v_param[] = {
      {"at", v_at, NULL, A_DIM, A_DIM},
      {"rate", &p_case->rate, NULL, 1, 1},
      {"min_size", &p_case->least, NULL, 1, 1},
      {"max_size", &p_case->most, NULL, 1, 1},
      {"weights", p_case->v_weight, NULL, A_DATA, A_DATA}};
  const struct tb_params params = {v_param, p_case->v_weight == NULL ? 4 : 5};
  memset(p, 0, sizeof *p);
  p->model.n_data = A_DATA;
  p->model.n_dim = A_DIM;
  p->chain.n_dim = A_DIM;
  p->scheme.type = tb_scheme_find("adaptive");
  p->scheme.p_self = check_alloc(1, p->scheme.type->self_size(&params, A_DATA));
  p->status = p->scheme.type->init(&p->scheme, &p->model, &params);
  p->target.p_model = &p->model;
  p->target.p_scheme = &p->scheme;
  p->chain.p_target = &p->target;
  if (p->status == TB_STATUS_ok) {
    p->chain.p_scheme_state =
        check_alloc(1, p->scheme.type->state_size(&p->scheme));
  }
  drawer_start(p, 1);
}

/* n = floor(rate ||theta - at||^2) + 1 between the bounds; all rows, in order
 * and without noise, at N */
static void adaptive_sizes(struct check* p_check) {
  double v_weight[A_DATA];
  weights_fill(v_weight, A_DATA, 1);
  double sum = 0;
  for (size_t i = 0; i < A_DATA; ++i) {
    sum += v_weight[i];
  }
  for (int is_weighted = 0; is_weighted < 2; ++is_weighted) {
    for (size_t most = 20; most <= A_DATA; most += 20) {
      const struct adaptive_case one = {2.5,
                                        3,
                                        (double)most,
                                        is_weighted ? v_weight : NULL};
      struct drawer d;
      adaptive_make(&d, &one);
      CHECK(d.status == TB_STATUS_ok);
      CHECK(d.scheme.n_size == 3 && d.scheme.n_size_max == most);
      for (double away = 0; away < 6; away += 0.1) {
        const double v_theta[A_DIM] = {1 + away, 0, -1 - away};
        const double size = floor(2.5 * 2 * away * away) + 1;
        const size_t n = size < 3              ? 3
                         : size < (double)most ? (size_t)size
                                               : most;
        struct tb_batch batch;
        d.scheme.type->draw(&d.chain, v_theta, &batch);
        /* away^2 is rounded: at a whole number either side will do */
        CHECK(batch.n_batch == n ||
              fabs(5 * away * away - round(5 * away * away)) < 1e-9);
        if (batch.n_batch == A_DATA) {
          CHECK(batch.v_index == NULL && batch.weight == 1 &&
                batch.v_weight == NULL && batch.finite == 0);
          continue;
        }
        CHECK(batch.finite == 1);
        for (size_t k = 0; k < batch.n_batch; ++k) {
          const size_t i = tb_batch_row(&batch, k);
          const double p = is_weighted ? v_weight[i] / sum : 1.0 / A_DATA;
          CHECK_CLOSE(tb_batch_weight(&batch, k) * (double)batch.n_batch * p,
                      1,
                      1e-12);
        }
      }
      const double v_bad[A_DIM] = {NAN, 0, 0};
      struct tb_batch batch;
      d.scheme.type->draw(&d.chain, v_bad, &batch);
      CHECK(batch.n_batch == most);
      drawer_free(&d);
    }
  }
}

static void adaptive_law(struct check* p_check) {
  double v_weight[A_DATA], v_seen[A_DATA] = {0}, v_expected[A_DATA];
  double sum = 0;
  for (size_t i = 0; i < A_DATA; ++i) {
    v_weight[i] = 1 + (double)(i % 7);
    sum += v_weight[i];
  }
  const struct adaptive_case one = {2, 1, A_DATA, v_weight};
  const double v_theta[A_DIM] = {2, 1, 0}; /* n = 7 */
  struct drawer d;
  adaptive_make(&d, &one);
  for (size_t t = 0; t < 20000; ++t) {
    struct tb_batch batch;
    d.scheme.type->draw(&d.chain, v_theta, &batch);
    CHECK(batch.n_batch == 7);
    for (size_t k = 0; k < 7; ++k) {
      v_seen[batch.v_index[k]] += 1;
    }
  }
  for (size_t i = 0; i < A_DATA; ++i) {
    v_expected[i] = 140000 * v_weight[i] / sum;
  }
  CHECK(fabs(check_chi_square(v_seen, v_expected, A_DATA)) < 5);
  drawer_free(&d);
}

static void adaptive_refuses(struct check* p_check) {
  const double v_zero[A_DATA] = {0};
  const struct adaptive_case v_bad[] = {{-1, 1, 5, NULL},
                                        {NAN, 1, 5, NULL},
                                        {1, 0, 5, NULL},
                                        {1, 6, 5, NULL},
                                        {1, 1, A_DATA + 1, NULL},
                                        {1, NAN, 5, NULL},
                                        {1, 1, 5, v_zero}};
  for (size_t k = 0; k < sizeof v_bad / sizeof v_bad[0]; ++k) {
    struct drawer d;
    adaptive_make(&d, &v_bad[k]);
    CHECK(d.status == TB_STATUS_argument);
    drawer_free(&d);
  }
}

/* ---- optimal ---- */

/* p_i ~ ||g_i||, by frequency and by multiplier; uniform where all are 0 */
static void optimal_law(struct check* p_check) {
  enum { n_data = 12, n_draw = 20000 };
  const double size = 3;
  const struct tb_param param = {"size", &size, NULL, 1, 1};
  for (int is_cv = 0; is_cv < 2; ++is_cv) {
    struct fixture f;
    fixture_glm(&f, n_data, A_DIM, 1, FIXTURE_WEIGHTS);
    const double v_theta[A_DIM] = {0.3, -0.2, 0.1}, v_zero[A_DIM] = {0};
    const struct fixture_run what = {.estimator = is_cv ? "cv" : "simple",
                                     .scheme = "optimal",
                                     .v_scheme = &param,
                                     .n_scheme = 1,
                                     .n_chain = 1,
                                     .n_sampling = 1,
                                     .seed = 3,
                                     .v_init = v_theta};
    struct tb_run* p_run;
    CHECK(fixture_run_create(&f, &what, &p_run) == TB_STATUS_ok);
    struct tb_chain chain = *tb_run_chain(p_run, 0);
    const struct tb_scheme* p_scheme = chain.p_target->p_scheme;
    double v_norm[n_data], total = 0;
    for (size_t i = 0; i < n_data; ++i) {
      double v_row[A_DIM] = {0}, v_base[A_DIM] = {0}, square = 0;
      const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
      struct tb_sums sums = {.v_gradient = v_row};
      f.model.type->gradient(&f.model, &f.work, v_theta, &one, NULL, &sums);
      sums.v_gradient = v_base;
      if (is_cv) {
        f.model.type->gradient(&f.model, &f.work, v_zero, &one, NULL, &sums);
      }
      for (size_t j = 0; j < A_DIM; ++j) {
        square += (v_row[j] - v_base[j]) * (v_row[j] - v_base[j]);
      }
      v_norm[i] = sqrt(square);
      total += v_norm[i];
    }
    double v_seen[n_data] = {0}, v_expected[n_data];
    for (size_t t = 0; t < n_draw; ++t) {
      struct tb_batch batch;
      CHECK(p_scheme->type->draw(&chain, v_theta, &batch) == TB_STATUS_ok);
      for (size_t k = 0; k < 3; ++k) {
        const size_t i = batch.v_index[k];
        v_seen[i] += 1;
        CHECK_CLOSE(batch.v_weight[k] * 3 * v_norm[i] / total, 1, 1e-11);
      }
    }
    CHECK(chain.counts.n_row == (double)n_data * n_draw);
    for (size_t i = 0; i < n_data; ++i) {
      v_expected[i] = 3.0 * n_draw * v_norm[i] / total;
    }
    CHECK(fabs(check_chi_square(v_seen, v_expected, n_data)) < 5);
    if (is_cv) {
      double v_even[n_data] = {0};
      for (size_t t = 0; t < n_draw; ++t) {
        struct tb_batch batch;
        p_scheme->type->draw(&chain, v_zero, &batch);
        for (size_t k = 0; k < 3; ++k) {
          v_even[batch.v_index[k]] += 1;
          CHECK_CLOSE(batch.v_weight[k], 4, 1e-14);
        }
      }
      for (size_t i = 0; i < n_data; ++i) {
        v_expected[i] = 3.0 * n_draw / n_data;
      }
      CHECK(fabs(check_chi_square(v_even, v_expected, n_data)) < 5);
    }
    tb_run_destroy(p_run);
    fixture_free(&f);
  }
}

/* ---- chains share a scheme ---- */

struct chain_run {
  struct tb_chain chain;
  double sum;
};

static void chain_draws(void* p_context) {
  struct chain_run* p_run = p_context;
  const struct tb_scheme* p_scheme = p_run->chain.p_target->p_scheme;
  for (size_t k = 0; k < 500; ++k) {
    struct tb_batch batch;
    if (p_scheme->type->draw(&p_run->chain, NULL, &batch) != TB_STATUS_ok) {
      p_run->sum = NAN;
      return;
    }
    for (size_t i = 0; i < batch.n_batch; ++i) {
      const double weight =
          batch.v_weight == NULL ? batch.weight : batch.v_weight[i];
      p_run->sum += weight * (double)batch.v_index[i];
    }
  }
}

/* several threads on one scheme draw what they draw one after another */
static void threads_agree(struct check* p_check) {
  enum { n_chain = 4, n_data = 3000 };
  double* v_weight = check_alloc(n_data, sizeof(double));
  weights_fill(v_weight, n_data, 1);
  for (int kind = 0; kind < 3; ++kind) {
    struct drawer d;
    drawer_make(&d,
                kind == 2 ? "weighted" : "uniform",
                n_data,
                70,
                kind == 0,
                v_weight);
    CHECK(d.status == TB_STATUS_ok);
    double v_sum[2][n_chain];
    for (int parallel = 0; parallel < 2; ++parallel) {
      struct chain_run v_run[n_chain];
      void* v_context[n_chain];
      for (size_t k = 0; k < n_chain; ++k) {
        v_run[k].chain = d.chain;
        v_run[k].sum = 0;
        v_run[k].chain.p_scheme_state =
            check_alloc(1, d.scheme.type->state_size(&d.scheme));
        tb_rng_init(&v_run[k].chain.v_rng[TB_STREAM_batch],
                    9,
                    k,
                    TB_STREAM_batch);
        v_context[k] = &v_run[k];
      }
      if (parallel) {
        CHECK(check_parallel(chain_draws, v_context, n_chain));
      } else {
        for (size_t k = 0; k < n_chain; ++k) {
          chain_draws(v_context[k]);
        }
      }
      for (size_t k = 0; k < n_chain; ++k) {
        v_sum[parallel][k] = v_run[k].sum;
        free(v_run[k].chain.p_scheme_state);
      }
    }
    for (size_t k = 0; k < n_chain; ++k) {
      CHECK(v_sum[0][k] == v_sum[1][k]);
      CHECK(k == 0 || v_sum[0][k] != v_sum[0][k - 1]);
    }
    drawer_free(&d);
  }
  free(v_weight);
}

const struct check_case check_subsampling[] = {
    {"the registry finds every scheme by name", registry_finds},
    {"uniform: with replacement", uniform_replaced},
    {"uniform: every subset equally likely", uniform_subsets},
    {"uniform: no row twice without replacement", uniform_distinct},
    {"uniform: n = N is all rows in order", uniform_all},
    {"uniform: refuses sizes out of range", uniform_refuses},
    {"weighted: the alias table is exact", alias_exact},
    {"weighted: frequencies and multipliers", weighted_law},
    {"weighted: rows of every minibatch", weighted_always},
    {"weighted: refuses weights out of range", weighted_refuses},
    {"adaptive: sizes follow their formula", adaptive_sizes},
    {"adaptive: frequencies", adaptive_law},
    {"adaptive: refuses numbers out of range", adaptive_refuses},
    {"optimal: frequencies and multipliers", optimal_law},
    {"chains draw the same in parallel", threads_agree},
    {NULL, NULL}};
