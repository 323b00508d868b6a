#include "check.h"
#include "fixture.h"

#include "base/rng.h"
#include "base/vmath.h"
#include "diagnostics/fssd.h"
#include "diagnostics/ksd.h"
#include "passes/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The Stein kernel of coordinate j at draws k and l, by its definition. */
static double stein(const struct tb_ksd* p, size_t k, size_t l, size_t j) {
  const double* v_x = p->v_draw;
  const double* v_b = p->v_gradient;
  const size_t d = p->n_dim;
  double q = p->c * p->c;
  for (size_t i = 0; i < d; ++i) {
    const double u = v_x[k * d + i] - v_x[l * d + i];
    q += u * u;
  }
  const double u = v_x[k * d + j] - v_x[l * d + j];
  const double dx = 2 * p->beta * u * pow(q, p->beta - 1);
  return v_b[k * d + j] * v_b[l * d + j] * pow(q, p->beta) -
         v_b[k * d + j] * dx + v_b[l * d + j] * dx -
         2 * p->beta * pow(q, p->beta - 1) -
         4 * p->beta * (p->beta - 1) * u * u * pow(q, p->beta - 2);
}

static double* normals(size_t n, size_t chain) {
  double* v = check_alloc(n, sizeof *v);
  struct tb_rng rng;
  tb_rng_init(&rng, 1, chain, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v, n);
  return v;
}

static void ksd_is_definition(struct check* p_check) {
  const struct {
    size_t n_draw, n_dim;
    double beta;
  } v_case[] = {{2, 1, -0.5},
                {5, 3, -0.5},
                {64, 2, -0.3},
                {65, 2, -0.5},
                {131, 5, -0.8},
                {70, 66, -0.5}};
  for (size_t i = 0; i < sizeof v_case / sizeof v_case[0]; ++i) {
    for (int by_coordinate = 0; by_coordinate < 2; ++by_coordinate) {
      const size_t n = v_case[i].n_draw, d = v_case[i].n_dim;
      const size_t n_each = by_coordinate ? d : 1;
      double* v_x = normals(n * d, 0);
      double* v_b = normals(n * d, 1);
      double* v_weight = check_alloc(n, sizeof *v_weight);
      double* v_diagonal = check_alloc(n * n_each, sizeof *v_diagonal);
      double* v_below = check_alloc(n * n_each, sizeof *v_below);
      for (size_t k = 0; k < n; ++k) {
        v_weight[k] = 1 + (double)(k % 3);
      }
      struct tb_ksd ksd = {.n_draw = n,
                           .n_dim = d,
                           .v_draw = v_x,
                           .v_gradient = v_b,
                           .v_weight = v_weight,
                           .c = 1.3,
                           .beta = v_case[i].beta,
                           .by_coordinate = by_coordinate,
                           .n_threads = 2};
      void* p_scratch = check_alloc(tb_ksd_scratch_size(&ksd), 1);
      tb_ksd_prepare(&ksd, p_scratch);
      /* in two slices */
      tb_ksd_advance(&ksd, 0, 1, v_diagonal, v_below);
      tb_ksd_advance(&ksd, 1, tb_ksd_n_task(&ksd), v_diagonal, v_below);
      for (size_t l = 0; l < n; ++l) {
        for (size_t part = 0; part < n_each; ++part) {
          double same = 0, below = 0;
          for (size_t j = by_coordinate ? part : 0;
               j < (by_coordinate ? part + 1 : d);
               ++j) {
            same += v_weight[l] * v_weight[l] * stein(&ksd, l, l, j);
            for (size_t k = 0; k < l; ++k) {
              below += 2 * v_weight[k] * v_weight[l] * stein(&ksd, k, l, j);
            }
          }
          const double size = (double)(n * d);
          CHECK_CLOSE(v_diagonal[l * n_each + part], same, 1e-13 * size);
          CHECK_CLOSE(v_below[l * n_each + part], below, 1e-13 * size * 20);
        }
      }
      free(p_scratch);
      free(v_below);
      free(v_diagonal);
      free(v_weight);
      free(v_b);
      free(v_x);
    }
  }
}

/* Coordinate i of the witness of draw k at location j, by its definition. */
static double witness(const struct tb_fssd* p, size_t k, size_t j, size_t i) {
  const size_t d = p->n_dim;
  const double* v_x = p->v_draw + k * d;
  const double* v_v = p->v_location + j * d;
  double q = p->c * p->c;
  for (size_t l = 0; l < d; ++l) {
    q += (v_x[l] - v_v[l]) * (v_x[l] - v_v[l]);
  }
  return p->v_gradient[k * d + i] * pow(q, p->beta) +
         2 * p->beta * pow(q, p->beta - 1) * (v_x[i] - v_v[i]);
}

/* ||S_j||^2, less D_j without the diagonal */
static double fssd_part(const struct tb_fssd* p, size_t j, bool has_diagonal) {
  double total = 0;
  for (size_t i = 0; i < p->n_dim; ++i) {
    double sum = 0, square = 0;
    for (size_t k = 0; k < p->n_draw; ++k) {
      const double xi = p->v_weight[k] * witness(p, k, j, i);
      sum += xi;
      square += xi * xi;
    }
    total += sum * sum - (has_diagonal ? 0 : square);
  }
  return total;
}

static void fssd_is_definition(struct check* p_check) {
  const struct {
    size_t n_draw, n_dim, n_location;
    double beta;
  } v_case[] = {{2, 1, 1, -0.5},
                {5, 3, 2, -0.5},
                {64, 2, 3, -0.3},
                {65, 2, 65, -0.5},
                {611, 5, 4, -0.8},
                {70, 66, 2, -0.5}};
  for (size_t c = 0; c < sizeof v_case / sizeof v_case[0]; ++c) {
    const size_t n = v_case[c].n_draw, d = v_case[c].n_dim;
    const size_t m = v_case[c].n_location;
    double* v_x = normals(n * d, 0);
    double* v_b = normals(n * d, 1);
    double* v_v = normals(m * d, 2);
    double* v_weight = check_alloc(n, sizeof *v_weight);
    double* v_sum = check_alloc(d * m, sizeof *v_sum);
    double* v_square = check_alloc(m, sizeof *v_square);
    double* v_slope = check_alloc(d * m, sizeof *v_slope);
    for (size_t k = 0; k < n; ++k) {
      v_weight[k] = 1 + (double)(k % 3);
    }
    memcpy(v_v, v_x, d * sizeof *v_v); /* a location that is a draw */
    struct tb_fssd fssd = {.n_draw = n,
                           .n_dim = d,
                           .n_location = m,
                           .v_draw = v_x,
                           .v_gradient = v_b,
                           .v_weight = v_weight,
                           .v_location = v_v,
                           .c = 1.3,
                           .beta = v_case[c].beta,
                           .n_threads = 2};
    void* p_scratch = check_alloc(tb_fssd_scratch_size(&fssd), 1);
    tb_fssd_prepare(&fssd, p_scratch);
    tb_fssd_sums(&fssd, v_sum, v_square);
    for (size_t j = 0; j < m; ++j) {
      double square = 0;
      for (size_t i = 0; i < d; ++i) {
        double sum = 0;
        for (size_t k = 0; k < n; ++k) {
          const double xi = v_weight[k] * witness(&fssd, k, j, i);
          sum += xi;
          square += xi * xi;
        }
        CHECK_CLOSE(v_sum[j * d + i], sum, 1e-13 * (double)(n * d));
      }
      CHECK_CLOSE(v_square[j], square, 1e-12 * square);
    }
    for (int has_diagonal = 0; has_diagonal < 2; ++has_diagonal) {
      tb_fssd_slopes(&fssd, v_sum, has_diagonal, v_slope);
      for (size_t j = 0; j < m; ++j) {
        const double size = fssd_part(&fssd, j, true) + v_square[j];
        for (size_t i = 0; i < d; ++i) {
          const double at = v_v[j * d + i], step = 6e-6;
          v_v[j * d + i] = at + step;
          const double up = fssd_part(&fssd, j, has_diagonal);
          v_v[j * d + i] = at - step;
          const double down = fssd_part(&fssd, j, has_diagonal);
          v_v[j * d + i] = at;
          CHECK_CLOSE(v_slope[j * d + i],
                      (up - down) / (2 * step),
                      4e-9 * (1 + size));
        }
      }
    }
    free(p_scratch);
    free(v_slope);
    free(v_square);
    free(v_sum);
    free(v_weight);
    free(v_v);
    free(v_b);
    free(v_x);
  }
}

TB_INLINE double one_log(double x) {
  double out;
  tb_vlog(&x, &out, 1);
  return out;
}

static void log_is_accurate(struct check* p_check) {
  for (double x = 2.3e-308; x < 1e308; x *= 1.37) {
    const double expected = log(x);
    CHECK_CLOSE(one_log(x), expected, 1e-15 * fmax(1, fabs(expected)));
  }
  for (double x = 0.25; x < 4; x += 1.0 / 1024) {
    CHECK_CLOSE(one_log(x), log(x), 1e-15);
  }
}

/* V = [sum ||a_i||^2 / p_i - ||sum a_i||^2] / n, and the sums of its parts,
 * against the enumeration of all pairs of rows */
static void spread_is_variance(struct check* p_check) {
  enum { n_data = 6, n_dim = 3 };
  const double v_p[n_data] = {0.1, 0.2, 0.05, 0.3, 0.15, 0.2};
  const double v_theta[n_dim] = {0.4, -0.1, 0.2}, v_at[n_dim] = {0.1, 0, 0};
  const struct tb_reference at = {.v_theta = v_at};
  for (int kind = 0; kind < 4; ++kind) {
    const struct tb_reference* p_reference = kind % 2 ? &at : NULL;
    struct fixture f;
    if (kind < 2) {
      fixture_glm(&f, n_data, n_dim, 2, FIXTURE_WEIGHTS);
    } else {
      fixture_gaussian(&f, n_data, n_dim);
    }
    double v_a[n_data][n_dim] = {{0}}, v_sum[n_dim] = {0};
    double square = 0, norm = 0, total = 0, variance = 0;
    for (size_t i = 0; i < n_data; ++i) {
      double own = 0;
      const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
      const struct tb_sums sums = {.v_gradient = v_a[i]};
      f.model.type
          ->gradient(&f.model, &f.work, v_theta, &one, p_reference, &sums);
      for (size_t j = 0; j < n_dim; ++j) {
        own += v_a[i][j] * v_a[i][j];
        v_sum[j] += v_a[i][j];
      }
      square += own;
      norm += sqrt(own);
    }
    for (size_t j = 0; j < n_dim; ++j) {
      total += v_sum[j] * v_sum[j];
    }
    for (size_t i = 0; i < n_data; ++i) {
      for (size_t k = 0; k < n_data; ++k) {
        for (size_t j = 0; j < n_dim; ++j) {
          const double error =
              0.5 * (v_a[i][j] / v_p[i] + v_a[k][j] / v_p[k]) - v_sum[j];
          variance += v_p[i] * v_p[k] * error * error;
        }
      }
    }
    struct tb_spread spread;
    double* v_scratch = check_alloc(3 * n_dim + TB_CHUNK, sizeof(double));
    CHECK(tb_spread_of(&f.model,
                       &f.work,
                       v_theta,
                       p_reference,
                       NULL,
                       NULL,
                       v_p,
                       v_scratch,
                       &spread) == TB_STATUS_ok);
    CHECK_CLOSE(spread.square, square, 1e-12 * square);
    CHECK_CLOSE(spread.norm, norm, 1e-12 * norm);
    CHECK_CLOSE(spread.total, total, 1e-12 * square * n_data);
    CHECK_CLOSE((spread.weighted - spread.total) / 2,
                variance,
                1e-11 * square * n_data);
    free(v_scratch);
    fixture_free(&f);
  }
}

const struct check_case check_diagnostics[] = {
    {"the parts of a Stein discrepancy are those of its definition",
     ksd_is_definition},
    {"the sums and slopes of a finite set are those of their definition",
     fssd_is_definition},
    {"the spread of rows is the variance of estimates", spread_is_variance},
    {"log of arrays is accurate", log_is_accurate},
    {NULL, NULL}};
