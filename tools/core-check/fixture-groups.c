/* Multilevel regressions on made-up groups. */
#include "fixture.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_NODE = 25 };

/* phi_0..phi_n, the orthonormal Hermite functions */
static void hermite(double t, size_t n, double* v) {
  v[0] = exp(-t * t / 2) / sqrt(sqrt(acos(-1)));
  v[1] = sqrt(2) * t * v[0];
  for (size_t j = 2; j <= n; ++j) {
    const double k = (double)j;
    v[j] = t * sqrt(2 / k) * v[j - 1] - sqrt((k - 1) / k) * v[j - 2];
  }
}

/* Nodes, and the logarithms of their weights times e^(t^2): where phi_n changes
 * its sign. */
static void set_nodes(double* v_node) {
  enum { STEPS = 2000 };
  const double most = sqrt(2 * N_NODE + 2);
  double v[N_NODE + 1];
  size_t n = 0;
  for (size_t k = 0; k < STEPS && n < N_NODE; ++k) {
    double left = most * (2 * (double)k / STEPS - 1) + 1e-4;
    double right = left + 2 * most / STEPS;
    hermite(left, N_NODE, v);
    const bool is_up = v[N_NODE] < 0;
    hermite(right, N_NODE, v);
    if (is_up == (v[N_NODE] < 0)) {
      continue;
    }
    for (size_t i = 0; i < 60; ++i) {
      const double middle = (left + right) / 2;
      hermite(middle, N_NODE, v);
      *((v[N_NODE] < 0) == is_up ? &left : &right) = middle;
    }
    hermite(left, N_NODE, v);
    double sum = 0;
    for (size_t j = 0; j < N_NODE; ++j) {
      sum += v[j] * v[j];
    }
    v_node[n] = left;
    v_node[N_NODE + n++] = -log(sum);
  }
}

struct fixture_rows fixture_groups_rows(size_t n_group, int family) {
  struct fixture_rows rows = {.n_group = n_group};
  struct tb_rng rng;
  rows.v_first = check_alloc(n_group + 1, sizeof(double));
  for (size_t g = 0; g < n_group; ++g) {
    rows.v_first[g + 1] = rows.v_first[g] + 1 + (double)(g % 5);
  }
  const size_t n = rows.n_row = (size_t)rows.v_first[n_group];
  const struct tb_response_type* type = tb_response_at_place(family);
  const size_t n_y = tb_response_n_y(type);
  rows.v_x = check_alloc((4 + n_y) * n, sizeof(double));
  rows.v_y = rows.v_x + 2 * n;
  rows.v_weight = rows.v_y + n_y * n;
  rows.v_offset = rows.v_weight + n;
  tb_rng_init(&rng, 23, 0, TB_STREAM_noise);
  for (size_t i = 0; i < n; ++i) {
    const double u = tb_rng_unif(&rng);
    rows.v_x[i] = 1;
    rows.v_x[n + i] = (double)(float)tb_rng_norm(&rng);
    rows.v_y[i] = family == 0 ? 3 * u : family == 1 ? u < 0.4 : floor(4 * u);
    rows.v_weight[i] = 0.5 + tb_rng_unif(&rng);
    rows.v_offset[i] = 0.3 * tb_rng_norm(&rng);
  }
  fixture_more_columns(type, n, rows.v_y);
  return rows;
}

void fixture_rows_free(struct fixture_rows* p_rows) {
  free(p_rows->v_first);
  free(p_rows->v_x);
}

void fixture_groups(struct fixture* p,
                    size_t n_group,
                    size_t n_effect,
                    int family) {
  enum { N_COEF = 2, DIM_MOST = 6 };
  const bool is_normal = family == 0;
  const size_t n_dim = N_COEF + (n_effect == 1 ? 1 : 3) + is_normal;
  struct fixture_rows rows = fixture_groups_rows(n_group, family);
  const size_t n = rows.n_row;
  const size_t n_y = tb_response_n_y(tb_response_at_place(family)) * n;
  double v_node[2 * N_NODE], v_prior[3 * DIM_MOST] = {0};
  set_nodes(v_node);
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = j < N_COEF || j == n_dim - is_normal; /* normal, or flat */
    v_prior[n_dim + j] = 0.1 * (double)j;
    v_prior[2 * n_dim + j] = 2;
  }
  const double place = family, aux = NAN, n_coef = N_COEF, fold = is_normal;
  const double v_z[] = {0, 1}, v_scale[] = {1.5, 0.5}, lkj = 2, kind = 2;
  const struct tb_param v_param[] = {
      {"x", rows.v_x, NULL, N_COEF * n, n},
      {"y", rows.v_y, NULL, n_y, n},
      {"offset", rows.v_offset, NULL, n, n},
      {"first", rows.v_first, NULL, n_group + 1, n_group + 1},
      {"z", v_z, NULL, n_effect, n_effect},
      {"n_coef", &n_coef, NULL, 1, 1},
      {"nodes", v_node, NULL, 2 * N_NODE, N_NODE},
      {"fold", &fold, NULL, 1, 1},
      {"response", &place, NULL, 1, 1},
      {"sd_kind", &kind, NULL, 1, 1},
      {"sd_scale", v_scale, NULL, n_effect, n_effect},
      {"lkj", &lkj, NULL, 1, 1},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim},
      {"aux", &aux, NULL, is_normal, is_normal},
      {"weights", rows.v_weight, NULL, n, n}};
  /* those of zeros and ones have no weights, and no auxiliary parameter */
  struct tb_params params = {v_param, family == 1 ? 15 : 17};
  struct tb_param v_counts[16];
  if (family > 1) {
    memcpy(v_counts, v_param, 15 * sizeof *v_param);
    v_counts[15] = v_param[16];
    params = (struct tb_params){v_counts, 16};
  }
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("groups");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  fixture_rows_free(&rows);
}
