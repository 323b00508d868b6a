/* Times with a hazard in pieces: what is beyond second order, and its bounds */
#include "base/blas.h"
#include "base/chol.h"
#include "check.h"
#include "fixture.h"
#include "models/expansion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROW = 131, N_KIND = 6, N_DIM_MOST = 12 };

static void make(struct fixture* p, size_t kind) {
  const bool has_strata = kind >= 4;
  fixture_pieces(p,
                 N_ROW,
                 2 + 2 * (has_strata ? kind - 2 : kind),
                 (unsigned)(kind & 3) | (has_strata ? FIXTURE_STRATA : 0));
}

static void expansions_add_up(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    make(&f, kind);
    fixture_check_expansion(p_check, &f, kind);
    fixture_free(&f);
  }
}

/* e_i of each row by its density and its own derivatives, and its bounds at
 * places near and far; v_largest: the largest share of one that is used */
static void remainders_are_bounded(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    make(&f, kind);
    const size_t n_dim = f.model.n_dim;
    const struct tb_model_expansion* type = f.model.type->expansion;
    double v_at[N_DIM_MOST], v_theta[N_DIM_MOST], v_delta[N_DIM_MOST];
    double v_gradient[N_DIM_MOST] = {0}, v_H[N_DIM_MOST * N_DIM_MOST] = {0};
    double v_chol[N_DIM_MOST * N_DIM_MOST], v_norm[N_ROW], v_K[N_ROW];
    double v_before[N_ROW], v_after[N_ROW], v_e[N_ROW], v_half[N_ROW];
    double largest = 0;
    fixture_point(&f, kind, v_at);
    void* p_record = check_alloc(N_ROW, type->record_size(&f.model));
    double* v_table = check_alloc(type->reach_size(&f.model), sizeof(double));
    const struct tb_batch all = {.n_batch = N_ROW, .weight = 1};
    const struct tb_curvature sums = {.v_gradient = v_gradient,
                                      .v_hessian = v_H};
    type->expand(&f.model, v_at, &all, p_record, &sums, 1);
    for (size_t j = 0; j < n_dim; ++j) {
      v_H[j * n_dim + j] += 0.5; /* a prior */
    }
    CHECK(tb_chol(n_dim, v_H, v_chol));
    CHECK(type->norms(&f.model, v_chol, &all, v_norm) == TB_STATUS_ok);
    CHECK(type->set_reach(&f.model, v_chol, v_table) == TB_STATUS_ok);
    CHECK(type->has_remainders(&f.model) && type->steps == NULL);
    f.model.type->log_lik(&f.model, &f.work, v_at, &all, v_before);
    for (size_t place = 0; place < 40; ++place) {
      const double size = pow(10, -2 + 0.06 * (double)place);
      for (size_t j = 0; j < n_dim; ++j) {
        v_delta[j] = size * tb_rng_norm(&f.rng) / v_chol[j * n_dim + j];
        v_theta[j] = v_at[j] + v_delta[j];
      }
      const double r = type->reach(&f.model, v_table, v_delta);
      type->remainders(&f.model,
                       &f.work,
                       p_record,
                       v_at,
                       v_delta,
                       v_delta,
                       &all,
                       v_e,
                       v_half);
      type->third_bounds(&f.model, p_record, v_norm, N_ROW, r, v_K);
      f.model.type->log_lik(&f.model, &f.work, v_theta, &all, v_after);
      for (size_t i = 0; i < N_ROW; ++i) {
        const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
        double v_g[N_DIM_MOST] = {0}, v_h[N_DIM_MOST * N_DIM_MOST] = {0};
        const struct tb_curvature own = {.v_gradient = v_g, .v_hessian = v_h};
        struct tb_workspace work = {
            .p_scratch = malloc(f.model.type->pass_size(&f.model, 1, 1))};
        f.model.type->curvature(&f.model, &work, v_at, &one, &own);
        free(work.p_scratch);
        double want = v_before[i] - v_after[i];
        for (size_t j = 0; j < n_dim; ++j) {
          double bent = v_g[j];
          for (size_t k = 0; k < n_dim; ++k) {
            bent -= 0.5 * v_h[j * n_dim + k] * v_delta[k];
          }
          want += bent * v_delta[j];
        }
        const double scale = 1 + fabs(v_before[i]) + fabs(v_after[i]);
        CHECK_CLOSE(v_e[i], want, 1e-11 * scale);
        CHECK(v_half[i] == v_e[i]);
        const double bound = v_K[i] * pow(v_norm[i] * r, 3) / 6;
        CHECK(fabs(v_e[i]) <= bound * (1 + 1e-9));
        largest = fmax(largest, fabs(v_e[i]) / bound);
      }
    }
    CHECK(largest > 0.2); /* of what would hold for anything */
    free(v_table);
    free(p_record);
    fixture_free(&f);
  }
}

static void refuses(struct check* p_check) {
  const double v_x[] = {1, 1}, v_prior[] = {0, 0}, v_one[] = {1, 1};
  const double v_basis[] = {-0.5, 0.5};
  /* time, entry, event of two rows; the last is what no row can have */
  const double v_y[][6] = {{1, 2, 0, 0, 1, 0},
                           {1, 2, 0, 0, 1, 3},
                           {1, 2, 0, 2, 1, 0},
                           {1, 2, 0, -1, 1, 0},
                           {1, NAN, 0, 0, 1, 0}};
  const double v_cut[] = {1.5, 0, -1, INFINITY};
  for (size_t k = 0; k < 9; ++k) {
    const double* v_own = v_y[k < 5 ? k : 0];
    const double* p_cut = &v_cut[k < 5 ? 0 : k - 5];
    const struct tb_param v_param[] = {
        {"x", v_x, NULL, 2, 2},
        {"y", v_own, NULL, 6, 2},
        {"cuts", p_cut, NULL, 1, 1},
        {"basis", v_basis, NULL, k == 8 ? 1 : 2, 2},
        {"prior_kind", v_prior, NULL, 2, 2},
        {"prior_location", v_prior, NULL, 2, 2},
        {"prior_scale", v_one, NULL, 2, 2}};
    const struct tb_params params = {v_param, 7};
    struct tb_model model = {.type = tb_model_find("pieces")};
    const bool is_good = k == 0 || k == 5;
    CHECK(fixture_create(&model, &params) ==
          (is_good ? TB_STATUS_ok : TB_STATUS_argument));
    if (is_good) {
      model.type->destroy(&model);
    }
    CHECK(model.p_self == NULL);
  }
}

/* Rows of both strata by the definition: x = (1, stratum), times from an entry
 * on, three pieces of the second stratum that begin at 0, 1 and 3. */
static void strata_have_their_own(struct check* p_check) {
  enum { N = 6, K = 4 };
  const double v_x[2 * N] = {1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1};
  const double v_y[3 * N] = {2,
                             2,
                             4,
                             4,
                             1,
                             3.5, /* ends */
                             0,
                             0,
                             3,
                             0.5,
                             0,
                             3, /* entries */
                             1,
                             1,
                             0,
                             1,
                             0,
                             1}; /* events */
  const double v_cut[] = {1, 3}, v_n_cut[] = {0, 2}, v_stratum[] = {0, 1};
  const double v_basis[K] = {0.5, -1, 0.25, 2};
  const double v_prior[3] = {0}, v_one[3] = {1, 1, 1};
  const double v_begin[K] = {0, 0, 1, 3}, v_end[K] = {99, 1, 3, 99};
  const struct tb_param v_param[] = {{"x", v_x, NULL, 2 * N, N},
                                     {"y", v_y, NULL, 3 * N, N},
                                     {"cuts", v_cut, NULL, 2, 2},
                                     {"basis", v_basis, NULL, K, K},
                                     {"prior_kind", v_prior, NULL, 3, 3},
                                     {"prior_location", v_prior, NULL, 3, 3},
                                     {"prior_scale", v_one, NULL, 3, 3},
                                     {"n_cut", v_n_cut, NULL, 2, 2},
                                     {"stratum", v_stratum, NULL, 2, 2}};
  const struct tb_params params = {v_param, 9};
  struct fixture f;
  memset(&f, 0, sizeof f);
  f.model.type = tb_model_find("pieces");
  CHECK(fixture_create(&f.model, &params) == TB_STATUS_ok);
  fixture_finish(&f);
  const double v_theta[] = {-0.7, 0.4, 0.3};
  const struct tb_batch all = {.n_batch = N, .weight = 1};
  double v_log_lik[N];
  f.model.type->log_lik(&f.model, &f.work, v_theta, &all, v_log_lik);
  for (size_t i = 0; i < N; ++i) {
    const bool is_second = v_x[N + i] == 1;
    const double eta = v_theta[0] + v_theta[1] * v_x[N + i];
    const double end = v_y[i], entry = v_y[N + i];
    double l = 0;
    for (size_t k = is_second ? 1 : 0; k < (is_second ? K : 1); ++k) {
      const double alpha = v_basis[k] * v_theta[2];
      const double stay = fmin(end, v_end[k]) - fmax(entry, v_begin[k]);
      l -= stay > 0 ? stay * exp(alpha + eta) : 0;
      l += v_y[2 * N + i] == 1 && end > v_begin[k] && end <= v_end[k]
               ? alpha + eta
               : 0;
    }
    CHECK_CLOSE(v_log_lik[i], l, 1e-13);
  }
  fixture_free(&f);
}

/* of strata: too many cuts, too few, a column of none, one parameter alone */
static void refuses_strata(struct check* p_check) {
  const double v_x[] = {1, 1, 0, 1}, v_y[] = {1, 2, 0, 0, 1, 1};
  const double v_basis[] = {0, 1, 2}, v_prior[3] = {0}, v_one[] = {1, 1, 1};
  const double v_cut[] = {1.5};
  const double v_n_cut[][2] = {{0, 1}, {1, 1}, {0, 0}, {0, 1}, {0, 1}, {1, 0}};
  const double v_stratum[][2] =
      {{0, 1}, {0, 1}, {0, 1}, {0, 2}, {0, 1}, {0, 1}};
  for (size_t k = 0; k < 6; ++k) {
    const struct tb_param v_param[] = {{"x", v_x, NULL, 4, 2},
                                       {"y", v_y, NULL, 6, 2},
                                       {"cuts", v_cut, NULL, 1, 1},
                                       {"basis", v_basis, NULL, 3, 3},
                                       {"prior_kind", v_prior, NULL, 3, 3},
                                       {"prior_location", v_prior, NULL, 3, 3},
                                       {"prior_scale", v_one, NULL, 3, 3},
                                       {"n_cut", v_n_cut[k], NULL, 2, 2},
                                       {"stratum", v_stratum[k], NULL, 2, 2}};
    const struct tb_params params = {v_param, k == 4 ? 8 : 9};
    struct tb_model model = {.type = tb_model_find("pieces")};
    const bool is_good = k == 0 || k == 5;
    CHECK(fixture_create(&model, &params) ==
          (is_good ? TB_STATUS_ok : TB_STATUS_argument));
    if (is_good) {
      model.type->destroy(&model);
    }
    CHECK(model.p_self == NULL);
  }
}

const struct check_case check_pieces[] = {
    {"expansions add up to all rows", expansions_add_up},
    {"remainders are what is left, within bounds", remainders_are_bounded},
    {"refuses parameters it cannot use", refuses},
    {"strata have pieces of their own", strata_have_their_own},
    {"strata it cannot use are refused", refuses_strata},
    {NULL, NULL}};
