#include "check.h"
#include "fixture.h"

#include "base/rng.h"
#include "models/framed.h"
#include "models/lda.h"
#include "models/link.h"
#include "models/native.h"
#include "passes/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DIM_MOST = 24 };

static void registry_finds(struct check* p_check) {
  for (size_t i = 0; tb_model_registry[i] != NULL; ++i) {
    const struct tb_model_type* type = tb_model_registry[i];
    CHECK(tb_model_find(type->name) == type);
    CHECK(type->create != NULL && type->destroy != NULL &&
          type->prior != NULL && type->gradient != NULL &&
          type->citation != NULL);
  }
  CHECK(tb_model_find("no such model") == NULL);
}

/* every kind of fixture, a number each; false beyond the last */
static bool fixture_next(struct fixture* p, size_t kind) {
  const size_t v_n_coef[] = {1, 5, 8, 21};
  if (kind < 64) {
    const int family = (int)(kind % 4);
    const unsigned columns = (unsigned)(kind / 4 % 4);
    fixture_glm(p,
                131,
                v_n_coef[kind / 16],
                family % 3,
                columns | (family == 3 ? FIXTURE_SIGMA : 0));
    return true;
  }
  if (kind < 68) {
    fixture_gaussian(p, 131, v_n_coef[kind - 64]);
    return true;
  }
  if (kind < 77) {
    fixture_network(p, 131, (int)(kind - 68) % 3, (int)(kind - 68) / 3);
    return true;
  }
  if (kind < 80) {
    fixture_ica(p, 131, kind - 75); /* 2 to 4 sources */
    return true;
  }
  if (kind < 82) {
    fixture_factors(p, 131, kind == 80 ? "bpmf" : "pmf");
    return true;
  }
  if (kind < 90) {
    fixture_native(p, 131, 3 * (kind - 81), kind % 2); /* 3 to 24 columns */
    return true;
  }
  if (kind < 94) {
    fixture_groups(p, 131, 1 + kind % 2, (int)(kind - 89) % 3);
    return true;
  }
  if (kind < 106) {
    const int head = (int)(kind - 94) % 3;
    const unsigned columns = (unsigned)(kind % 2 == 0 ? FIXTURE_WEIGHTS : 0) |
                             (head == 0 ? 0 : FIXTURE_OFFSET);
    fixture_classes(p, 131, head, 2 + (kind - 94) / 3, columns);
    return true;
  }
  if (kind < 110) {
    fixture_glm(p,
                131,
                v_n_coef[kind - 106],
                fixture_place("interval"),
                (unsigned)(kind - 106));
    return true;
  }
  if (kind < 114) {
    fixture_network(p, 131, (int)(kind - 110) % 3, 3 + (int)(kind % 2));
    return true;
  }
  if (kind < 118) {
    fixture_pieces(p, 131, 2 + 2 * (kind - 114), (unsigned)(kind - 114));
    return true;
  }
  if (kind < 122) {
    static const char* const v_name[] = {"gaussian_sigma",
                                         "zero_inflated_negbinomial",
                                         "beta_phi",
                                         "student_sigma"};
    const size_t k = kind - 118;
    fixture_predictors(p, 131, v_name[k], k % 2 == 0, (unsigned)k);
    return true;
  }
  if (kind < 124) {
    fixture_pieces(p, 131, 4 + 4 * (kind - 122), FIXTURE_STRATA);
    return true;
  }
  return false;
}

/* one pass over a batch is the sum of passes over its rows */
static void sums_are_sums(struct check* p_check) {
  struct fixture f;
  for (size_t kind = 0; fixture_next(&f, kind); ++kind) {
    const struct tb_model_type* type = f.model.type;
    const size_t n_dim = f.model.n_dim;
    double v_theta[N_DIM_MOST], v_all[N_DIM_MOST], v_one[N_DIM_MOST] = {0};
    double v_square[N_DIM_MOST] = {0}, v_square_one[N_DIM_MOST] = {0};
    double log_lik = 0, log_lik_one = 0;
    fixture_point(&f, kind, v_theta);
    memset(v_all, 0, sizeof v_all);

    enum { n_batch = 90 };
    size_t v_index[n_batch];
    double v_weight[n_batch];
    for (size_t k = 0; k < n_batch; ++k) {
      v_index[k] = (k * 37 + kind) % 131;
      v_weight[k] = 0.1 + 0.01 * (double)k;
    }
    const struct tb_batch batch = {.n_batch = n_batch,
                                   .v_index = v_index,
                                   .v_weight = v_weight};
    const struct tb_sums sums = {.v_gradient = v_all,
                                 .v_square = v_square,
                                 .p_log_lik = &log_lik};
    CHECK(type->gradient(&f.model, &f.work, v_theta, &batch, NULL, &sums) ==
          TB_STATUS_ok);
    for (size_t k = 0; k < n_batch; ++k) {
      const struct tb_batch single = {.n_batch = 1,
                                      .start = v_index[k],
                                      .weight = v_weight[k]};
      const struct tb_sums more = {.v_gradient = v_one,
                                   .v_square = v_square_one,
                                   .p_log_lik = &log_lik_one};
      type->gradient(&f.model, &f.work, v_theta, &single, NULL, &more);
    }
    CHECK_CLOSE(log_lik, log_lik_one, 1e-9 * (1 + fabs(log_lik)));
    for (size_t j = 0; j < n_dim; ++j) {
      CHECK_CLOSE(v_all[j], v_one[j], 1e-9 * (1 + fabs(v_one[j])));
      CHECK_CLOSE(v_square[j],
                  v_square_one[j],
                  1e-9 * (1 + fabs(v_square_one[j])));
    }
    fixture_free(&f);
  }
}

/* a model has a map exactly where its variables are other numbers */
static void maps_are_told(struct check* p_check) {
  struct fixture f;
  for (size_t kind = 0; fixture_next(&f, kind); ++kind) {
    const size_t n_dim = f.model.n_dim;
    double v_theta[N_DIM_MOST], v_natural[N_DIM_MOST];
    fixture_point(&f, kind, v_theta);
    memcpy(v_natural, v_theta, sizeof v_natural);
    if (f.model.type->constrain != NULL) {
      f.model.type->constrain(&f.model, v_theta, v_natural);
    }
    CHECK(f.model.n_natural <= N_DIM_MOST);
    CHECK(tb_model_has_map(&f.model) ==
          (f.model.n_natural != n_dim ||
           memcmp(v_natural, v_theta, n_dim * sizeof(double)) != 0));
    fixture_free(&f);
  }
}

/* with a reference: g_i(theta) - g_i(reference), from scalars too */
static void references_subtract(struct check* p_check) {
  struct fixture f;
  for (size_t kind = 0; fixture_next(&f, kind); ++kind) {
    const struct tb_model_type* type = f.model.type;
    double v_theta[N_DIM_MOST], v_at[N_DIM_MOST];
    double v_here[N_DIM_MOST] = {0}, v_there[N_DIM_MOST] = {0};
    fixture_point(&f, kind, v_theta);
    fixture_point(&f, kind + 1000, v_at);
    const struct tb_batch batch = {.n_batch = 100, .start = 20, .weight = 2};
    const struct tb_sums here = {.v_gradient = v_here};
    const struct tb_sums there = {.v_gradient = v_there};
    type->gradient(&f.model, &f.work, v_theta, &batch, NULL, &here);
    type->gradient(&f.model, &f.work, v_at, &batch, NULL, &there);

    struct tb_reference v_reference[2] = {{.v_theta = v_at}};
    size_t n_reference = 1;
    if (type->store_scalar != NULL) {
      double v_sum[N_DIM_MOST] = {0}, v_whole[N_DIM_MOST] = {0};
      CHECK(tb_model_store_scalar(&f.model, v_at, v_sum, 1) == TB_STATUS_ok);
      const struct tb_batch all = {.n_batch = f.model.n_data, .weight = 1};
      const struct tb_sums whole = {.v_gradient = v_whole};
      type->gradient(&f.model, &f.work, v_at, &all, NULL, &whole);
      for (size_t j = 0; j < f.model.n_dim; ++j) {
        CHECK_CLOSE(v_sum[j], v_whole[j], 1e-9 * (1 + fabs(v_whole[j])));
      }
      v_reference[n_reference] = type->stored_scalar(&f.model);
      v_reference[n_reference++].v_theta = v_at;
    }
    for (size_t r = 0; r < n_reference; ++r) {
      double v_difference[N_DIM_MOST] = {0};
      const struct tb_sums sums = {.v_gradient = v_difference};
      type->gradient(&f.model,
                     &f.work,
                     v_theta,
                     &batch,
                     &v_reference[r],
                     &sums);
      for (size_t j = 0; j < f.model.n_dim; ++j) {
        CHECK_CLOSE(v_difference[j],
                    v_here[j] - v_there[j],
                    1e-9 * (1 + fabs(v_here[j])));
      }
    }
    fixture_free(&f);
  }
}

/* squared norms, and the sum beside them, of a batch are those of its rows */
static void norms_are_norms(struct check* p_check) {
  struct fixture f;
  for (size_t kind = 0; fixture_next(&f, kind); ++kind) {
    const struct tb_model_type* type = f.model.type;
    const size_t n_dim = f.model.n_dim;
    double v_theta[N_DIM_MOST], v_at[N_DIM_MOST];
    fixture_point(&f, kind, v_theta);
    fixture_point(&f, kind + 1000, v_at);
    const struct tb_reference reference = {.v_theta = v_at};
    for (int k = 0; type->square_norms != NULL && k < 2; ++k) {
      const struct tb_reference* p_reference = k == 0 ? NULL : &reference;
      const struct tb_batch batch = {.n_batch = 100, .start = 20, .weight = 3};
      double v_norm[100], v_sum[N_DIM_MOST] = {0};
      double v_total[N_DIM_MOST] = {0};
      CHECK(type->square_norms(&f.model,
                               &f.work,
                               v_theta,
                               &batch,
                               p_reference,
                               v_norm,
                               v_sum) == TB_STATUS_ok);
      for (size_t i = 0; i < 100; ++i) {
        const struct tb_batch one = {.n_batch = 1,
                                     .start = 20 + i,
                                     .weight = 1};
        double v_row[N_DIM_MOST] = {0}, norm = 0;
        const struct tb_sums sums = {.v_gradient = v_row};
        type->gradient(&f.model, &f.work, v_theta, &one, p_reference, &sums);
        for (size_t j = 0; j < n_dim; ++j) {
          norm += v_row[j] * v_row[j];
          v_total[j] += v_row[j];
        }
        CHECK_CLOSE(v_norm[i], norm, 1e-9 * (1 + norm));
      }
      for (size_t j = 0; j < n_dim; ++j) {
        CHECK_CLOSE(v_sum[j], v_total[j], 1e-9 * (1 + fabs(v_total[j])));
      }
    }
    fixture_free(&f);
  }
}

/* lower L, column-major, that does not mix the last `n_apart` coordinates */
static void make_chol(size_t n, size_t n_apart, double* v_chol) {
  struct tb_rng rng;
  tb_rng_init(&rng, n, 0, TB_STREAM_noise);
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = j; i < n; ++i) {
      v_chol[j * n + i] = i == j            ? 1 + tb_rng_unif(&rng)
                          : i < n - n_apart ? 0.2 * tb_rng_norm(&rng)
                                            : 0;
    }
  }
}

/* in other coordinates the density is the same, up to no constant at all, and
 * the gradient is pulled back */
static void whitening_keeps_the_density(struct check* p_check) {
  struct fixture f;
  for (size_t kind = 0; fixture_next(&f, kind); ++kind) {
    const struct tb_model_type* type = f.model.type;
    const size_t n_dim = f.model.n_dim;
    if (type->whiten == NULL) {
      fixture_free(&f);
      continue;
    }
    for (int is_diagonal = 0; is_diagonal < 2; ++is_diagonal) {
      double v_theta[N_DIM_MOST], v_center[N_DIM_MOST], v_phi[N_DIM_MOST];
      double v_raw[N_DIM_MOST], v_white[N_DIM_MOST], v_pulled[N_DIM_MOST];
      double v_chol[N_DIM_MOST * N_DIM_MOST];
      fixture_point(&f, kind, v_theta);
      fixture_point(&f, kind + 500, v_center);
      const double log_raw = fixture_gradient(&f, v_theta, v_raw);
      if (is_diagonal) {
        for (size_t j = 0; j < n_dim; ++j) {
          v_chol[j] = 1 + 0.1 * (double)j;
        }
      } else {
        make_chol(n_dim, kind < 64 && kind % 4 == 3, v_chol);
      }
      struct fixture w = f;
      CHECK(type->copy(&f.model, &w.model) == TB_STATUS_ok);
      CHECK(type->whiten(&w.model, v_center, v_chol, is_diagonal) ==
            TB_STATUS_ok);
      CHECK(w.model.p_frame != NULL && f.model.p_frame == NULL);
      tb_frame_to_sampler(w.model.p_frame, v_theta, v_phi);
      const double log_white = fixture_gradient(&w, v_phi, v_white);
      CHECK_CLOSE(log_white, log_raw, 1e-9 * (1 + fabs(log_raw)));
      tb_frame_pull_gradient(w.model.p_frame, v_raw, v_pulled);
      for (size_t j = 0; j < n_dim; ++j) {
        CHECK_CLOSE(v_white[j], v_pulled[j], 1e-8 * (1 + fabs(v_pulled[j])));
      }
      /* twice is refused, and the original has not changed */
      CHECK(type->whiten(&w.model, v_center, v_chol, is_diagonal) ==
            TB_STATUS_unsupported);
      double v_again[N_DIM_MOST];
      CHECK(fixture_gradient(&f, v_theta, v_again) == log_raw);
      CHECK(memcmp(v_again, v_raw, n_dim * sizeof(double)) == 0);
      type->destroy(&w.model);
    }
    fixture_free(&f);
  }
}

/* Rows that must stay as they are: the frame around the model has the density
 * of the rewritten one. */
static void read_only_rows_get_a_frame(struct check* p_check) {
  enum { N = 3 };
  struct fixture f, w;
  const double v_center[N] = {0.1, -0.2, 0.3};
  double v_phi[N], v_chol[N * N], v_raw[N], v_stays[N], v_frame[N], v_white[N];
  make_chol(N, false, v_chol);
  fixture_glm(&w, 40, N, 1, FIXTURE_OFFSET);
  fixture_glm(&f, 40, N, 1, FIXTURE_OFFSET | FIXTURE_READ_ONLY);
  fixture_point(&f, 1, v_phi);
  CHECK(tb_model_can_whiten(&w.model) && !tb_model_can_whiten(&f.model));
  const double log_raw = fixture_gradient(&w, v_phi, v_raw);
  CHECK(f.model.type->whiten(&f.model, v_center, v_chol, false) ==
        TB_STATUS_unsupported);
  CHECK(fixture_gradient(&f, v_phi, v_stays) == log_raw);
  CHECK(memcmp(v_stays, v_raw, sizeof v_raw) == 0);
  CHECK(f.model.fingerprint == w.model.fingerprint);

  CHECK(w.model.type->whiten(&w.model, v_center, v_chol, false) ==
        TB_STATUS_ok);
  struct tb_model base = f.model;
  CHECK(tb_model_frame(&base, v_center, v_chol, false, &f.model) ==
        TB_STATUS_ok);
  const double log_white = fixture_gradient(&w, v_phi, v_white);
  free(f.work.p_scratch);
  f.work.p_scratch =
      check_alloc(1, f.model.type->workspace_size(&f.model, 40) + 64);
  CHECK_CLOSE(fixture_gradient(&f, v_phi, v_frame),
              log_white,
              1e-9 * fabs(log_white));
  for (size_t j = 0; j < N; ++j) {
    CHECK_CLOSE(v_frame[j], v_white[j], 1e-8 * (1 + fabs(v_white[j])));
  }
  f.model.type->destroy(&f.model);
  f.model = base;
  fixture_free(&f);
  fixture_free(&w);
}

/* Sums of two models over the rows of a batch, and the squares of its rows;
 * rounding: of rows that were written. */
static void batch_agrees(struct check* p_check,
                         const struct fixture* p,
                         const struct fixture* p_dense,
                         const double* v_theta,
                         const struct tb_batch* p_batch,
                         double rounding) {
  enum { N_MOST = 131 };
  const struct fixture* v_fixture[2] = {p, p_dense};
  double v_sum[2][N_DIM_MOST] = {{0}}, v_square[2][N_DIM_MOST] = {{0}};
  double v_norm[2][N_MOST] = {{0}}, v_along[2][N_DIM_MOST] = {{0}};
  double v_log_lik[2] = {0, 0};
  const double tolerance = 1e-10 + 100 * rounding;
  for (size_t k = 0; k < 2; ++k) {
    const struct tb_model* p_model = &v_fixture[k]->model;
    const struct tb_sums sums = {.v_gradient = v_sum[k],
                                 .v_square = v_square[k],
                                 .p_log_lik = &v_log_lik[k]};
    CHECK(p_model->type->gradient(p_model,
                                  &v_fixture[k]->work,
                                  v_theta,
                                  p_batch,
                                  NULL,
                                  &sums) == TB_STATUS_ok);
    if (p_model->type->square_norms != NULL) {
      CHECK(p_model->type->square_norms(p_model,
                                        &v_fixture[k]->work,
                                        v_theta,
                                        p_batch,
                                        NULL,
                                        v_norm[k],
                                        v_along[k]) == TB_STATUS_ok);
    }
  }
  CHECK_CLOSE(v_log_lik[0], v_log_lik[1], tolerance * (1 + fabs(v_log_lik[1])));
  for (size_t j = 0; j < p->model.n_dim; ++j) {
    const double size = 1 + sqrt(v_square[1][j]);
    CHECK_CLOSE(v_sum[0][j], v_sum[1][j], tolerance * size);
    CHECK_CLOSE(v_square[0][j], v_square[1][j], tolerance * size * size);
    CHECK_CLOSE(v_along[0][j], v_along[1][j], tolerance * size);
  }
  for (size_t i = 0; i < p_batch->n_batch; ++i) {
    CHECK_CLOSE(v_norm[0][i], v_norm[1][i], tolerance * (1 + v_norm[1][i]));
  }
}

/* A model is the same whatever keeps its rows, also after they are rewritten.
 * Factors have no rows of columns, models of users are shown theirs as they
 * lie, and groups sort them: all three are left out. */
static void any_store_will_do(struct check* p_check) {
  enum { N = 131, N_INDEX = 90, N_KIND = 106 };
  size_t v_index[N_INDEX];
  double v_weight[N_INDEX];
  for (size_t k = 0; k < N_INDEX; ++k) {
    v_index[k] = k * 37 % N / 2;
    v_weight[k] = 0.1 + 0.01 * (double)k;
  }
  const struct tb_batch drawn = {.n_batch = N_INDEX,
                                 .v_index = v_index,
                                 .v_weight = v_weight};
  const struct tb_batch range = {.n_batch = N - 5, .start = 5, .weight = 2};
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (size_t kind = 0; kind < N_KIND; ++kind) {
      struct fixture f, dense;
      double v_theta[N_DIM_MOST], v_chol[N_DIM_MOST * N_DIM_MOST];
      if (kind >= 64 && kind < 68 && tb_store_registry[t]->write == NULL) {
        continue; /* a gaussian model keeps other rows than it is given */
      }
      if (kind >= 80 && kind < 94) {
        continue;
      }
      fixture_next(&dense, kind);
      fixture_store = tb_store_registry[t];
      fixture_next(&f, kind);
      fixture_store = NULL;
      fixture_point(&f, kind, v_theta);
      CHECK(f.model.fingerprint == dense.model.fingerprint);
      const double rounding = tb_store_registry[t]->rounding;
      const double written = kind >= 64 && kind < 68 ? rounding : 0;
      batch_agrees(p_check, &f, &dense, v_theta, &drawn, written);
      batch_agrees(p_check, &f, &dense, v_theta, &range, written);
      if (tb_model_can_whiten(&f.model)) {
        make_chol(f.model.n_dim, false, v_chol);
        CHECK(f.model.type->whiten(&f.model, v_theta, v_chol, false) ==
              TB_STATUS_ok);
        CHECK(dense.model.type->whiten(&dense.model, v_theta, v_chol, false) ==
              TB_STATUS_ok);
        fixture_point(&f, kind + 300, v_theta);
        batch_agrees(p_check, &f, &dense, v_theta, &drawn, rounding);
        batch_agrees(p_check, &f, &dense, v_theta, &range, rounding);
      }
      fixture_free(&f);
      fixture_free(&dense);
    }
  }
}

/* A frame around a model: gradients, their squares and differences to a
 * reference are those of its rows, pulled one by one. */
static void frames_pull_rows(struct check* p_check) {
  enum { n_batch = 25 };
  struct fixture f;
  for (size_t kind = 0; fixture_next(&f, kind); ++kind) {
    const struct tb_model_type* base = f.model.type;
    const size_t n_dim = f.model.n_dim;
    const bool is_diagonal = kind % 2 == 0;
    double v_theta[N_DIM_MOST], v_at[N_DIM_MOST], v_center[N_DIM_MOST];
    double v_phi[N_DIM_MOST], v_phi_at[N_DIM_MOST];
    double v_chol[N_DIM_MOST * N_DIM_MOST];
    fixture_point(&f, kind, v_theta);
    fixture_point(&f, kind + 300, v_at);
    fixture_point(&f, kind + 500, v_center);
    if (is_diagonal) {
      for (size_t j = 0; j < n_dim; ++j) {
        v_chol[j] = 1 + 0.1 * (double)j;
      }
    } else {
      make_chol(n_dim, false, v_chol);
    }
    struct fixture w = f;
    CHECK(tb_model_frame(&f.model, v_center, v_chol, is_diagonal, &w.model) ==
          TB_STATUS_ok);
    const struct tb_model_type* type = w.model.type;
    const size_t n_work = type->workspace_size(&w.model, n_batch);
    w.work.p_scratch = check_alloc(1, n_work + 64);
    tb_frame_to_sampler(w.model.p_frame, v_theta, v_phi);
    tb_frame_to_sampler(w.model.p_frame, v_at, v_phi_at);

    double v_ours[N_DIM_MOST], v_theirs[N_DIM_MOST], v_pulled[N_DIM_MOST];
    double log_ours = 0, log_theirs = 0;
    type->prior(&w.model, &w.work, v_phi, v_ours, &log_ours);
    base->prior(&f.model, &f.work, v_theta, v_theirs, &log_theirs);
    tb_frame_pull_gradient(w.model.p_frame, v_theirs, v_pulled);
    CHECK_CLOSE(log_ours, log_theirs, 1e-9 * (1 + fabs(log_theirs)));
    for (size_t j = 0; j < n_dim; ++j) {
      CHECK_CLOSE(v_ours[j], v_pulled[j], 1e-8 * (1 + fabs(v_pulled[j])));
    }

    size_t v_index[n_batch];
    double v_weight[n_batch];
    for (size_t k = 0; k < n_batch; ++k) {
      v_index[k] = (k * 37 + kind) % 131;
      v_weight[k] = 0.1 + 0.01 * (double)k;
    }
    const struct tb_batch batch = {.n_batch = n_batch,
                                   .v_index = v_index,
                                   .v_weight = v_weight};
    const struct tb_reference here = {.v_theta = v_phi_at},
                              there = {.v_theta = v_at};
    double v_sum[N_DIM_MOST] = {0}, v_square[N_DIM_MOST] = {0};
    double v_want[N_DIM_MOST] = {0}, v_want_square[N_DIM_MOST] = {0};
    const struct tb_sums sums = {.v_gradient = v_sum, .v_square = v_square};
    CHECK(type->gradient(&w.model, &w.work, v_phi, &batch, &here, &sums) ==
          TB_STATUS_ok);
    for (size_t k = 0; k < n_batch; ++k) {
      const struct tb_batch one = {.n_batch = 1,
                                   .start = v_index[k],
                                   .weight = v_weight[k]};
      memset(v_theirs, 0, sizeof v_theirs);
      const struct tb_sums row = {.v_gradient = v_theirs};
      base->gradient(&f.model, &f.work, v_theta, &one, &there, &row);
      tb_frame_pull_gradient(w.model.p_frame, v_theirs, v_pulled);
      for (size_t j = 0; j < n_dim; ++j) {
        v_want[j] += v_pulled[j];
        v_want_square[j] += v_pulled[j] * v_pulled[j];
      }
    }
    for (size_t j = 0; j < n_dim; ++j) {
      CHECK_CLOSE(v_sum[j], v_want[j], 1e-8 * (1 + fabs(v_want[j])));
      CHECK_CLOSE(v_square[j],
                  v_want_square[j],
                  1e-8 * (1 + fabs(v_want_square[j])));
    }
    if (type->log_lik != NULL) {
      double v_log_ours[n_batch], v_log_theirs[n_batch];
      type->log_lik(&w.model, &w.work, v_phi, &batch, v_log_ours);
      base->log_lik(&f.model, &f.work, v_theta, &batch, v_log_theirs);
      for (size_t k = 0; k < n_batch; ++k) {
        CHECK_CLOSE(v_log_ours[k],
                    v_log_theirs[k],
                    1e-8 * (1 + fabs(v_log_theirs[k])));
      }
    }
    struct tb_model twice;
    CHECK(tb_model_frame(&w.model, v_center, v_chol, is_diagonal, &twice) ==
          TB_STATUS_unsupported);
    type->destroy(&w.model);
    free(w.work.p_scratch);
    fixture_free(&f);
  }
}

/* Of responses of any shape: the others are tried in R,
 * tests/testthat/helper-conformance-model.R. */
static void gradients_are_slopes(struct check* p_check) {
  const double h = 1e-5; /* few kinks of networks are that near */
  struct fixture f;
  for (size_t kind = 106; fixture_next(&f, kind); ++kind) {
    double v_theta[N_DIM_MOST], v_gradient[N_DIM_MOST], v_none[N_DIM_MOST];
    fixture_point(&f, kind, v_theta);
    memset(v_gradient, 0, sizeof v_gradient);
    fixture_gradient(&f, v_theta, v_gradient);
    for (size_t j = 0; j < f.model.n_dim; ++j) {
      const double v_step[] = {-2 * h, -h, h, 2 * h};
      double v_f[4], at = v_theta[j];
      for (int k = 0; k < 4; ++k) {
        v_theta[j] = at + v_step[k];
        v_f[k] = fixture_gradient(&f, v_theta, v_none);
      }
      v_theta[j] = at;
      const double slope =
          (8 * (v_f[2] - v_f[1]) - (v_f[3] - v_f[0])) / (12 * h);
      CHECK_CLOSE(v_gradient[j], slope, 1e-6 * (1 + fabs(slope)));
    }
    fixture_free(&f);
  }
}

/* ---- parameters that cannot be used ---- */

static enum tb_status create_without(const char* name,
                                     const struct tb_params* p_all,
                                     size_t omit,
                                     const struct tb_param* p_replacement) {
  struct tb_param v_param[16];
  size_t n_param = 0;
  for (size_t k = 0; k < p_all->n_param; ++k) {
    if (k != omit) {
      v_param[n_param++] = p_all->v_param[k];
    } else if (p_replacement != NULL) {
      v_param[n_param++] = *p_replacement;
    }
  }
  struct tb_model model = {.type = tb_model_find(name)};
  const struct tb_params params = {v_param, n_param};
  const enum tb_status status = fixture_create(&model, &params);
  if (status == TB_STATUS_ok) {
    model.type->destroy(&model);
  } else if (model.p_self != NULL) {
    return TB_STATUS_ok; /* must be released: not the refusal we want */
  }
  return status;
}

static void glm_refuses(struct check* p_check) {
  const double v_x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const double v_y[6] = {0, 1, 0, 1, 0, 1}, v_one[6] = {1, 1, 1, 1, 1, 1};
  const double family = 0;
  const struct tb_param v_param[] = {{"x", v_x, NULL, 12, 6},
                                     {"y", v_y, NULL, 6, 6},
                                     {"response", &family, NULL, 1, 1},
                                     {"prior_kind", v_one, NULL, 2, 2},
                                     {"prior_location", v_one, NULL, 2, 2},
                                     {"prior_scale", v_one, NULL, 2, 2},
                                     {"aux", v_one, NULL, 1, 1},
                                     {"weights", v_one, NULL, 6, 6},
                                     {"offset", v_one, NULL, 6, 6}};
  const struct tb_params all = {v_param, 9};
  CHECK(create_without("glm", &all, 99, NULL) == TB_STATUS_ok);
  for (size_t k = 0; k < 7; ++k) { /* required */
    CHECK(create_without("glm", &all, k, NULL) == TB_STATUS_argument);
  }
  for (size_t k = 7; k < 9; ++k) { /* optional */
    CHECK(create_without("glm", &all, k, NULL) == TB_STATUS_ok);
  }
  const size_t v_shorter[] = {1, 3, 4, 5, 7, 8};
  for (size_t k = 0; k < 6; ++k) {
    struct tb_param shorter = v_param[v_shorter[k]];
    shorter.n_value -= 1;
    shorter.n_row -= 1;
    CHECK(create_without("glm", &all, v_shorter[k], &shorter) ==
          TB_STATUS_argument);
  }
  /* 3: of classes; interval: y has one column here */
  const double v_bad_family[] = {-1,
                                 3,
                                 0.5,
                                 1e9,
                                 NAN,
                                 INFINITY,
                                 fixture_place("interval"),
                                 fixture_place("spread")};
  for (size_t k = 0; k < 8; ++k) {
    const struct tb_param bad = {"response", &v_bad_family[k], NULL, 1, 1};
    CHECK(create_without("glm", &all, 2, &bad) == TB_STATUS_argument);
  }
  /* the last: one to be sampled, which has no prior */
  const double v_bad_sigma[] = {0, -1, NAN};
  for (size_t k = 0; k < 3; ++k) {
    const struct tb_param bad = {"aux", &v_bad_sigma[k], NULL, 1, 1};
    CHECK(create_without("glm", &all, 6, &bad) == TB_STATUS_argument);
  }
  const struct tb_param empty = {"x", v_x, NULL, 0, 0};
  CHECK(create_without("glm", &all, 0, &empty) == TB_STATUS_argument);
}

/* A response with two columns of y is one of glm's, with two predictors it is
 * not, whatever else fits. */
static void glm_tells_shapes_of_responses(struct check* p_check) {
  const double v_x[] = {1, 2, 3}, v_one[] = {1}, known = 2;
  const double v_y[] = {1, -INFINITY, 2, 1, 3, INFINITY};
  const double v_place[] = {fixture_place("interval"), fixture_place("spread")};
  const struct tb_param v_param[] = {{"x", v_x, NULL, 3, 3},
                                     {"y", v_y, NULL, 6, 3},
                                     {"response", v_place, NULL, 1, 1},
                                     {"prior_kind", v_one, NULL, 1, 1},
                                     {"prior_location", v_one, NULL, 1, 1},
                                     {"prior_scale", v_one, NULL, 1, 1}};
  const struct tb_params all = {v_param, 6};
  CHECK(create_without("glm", &all, 99, NULL) == TB_STATUS_ok);
  struct tb_param v_other[7];
  memcpy(v_other, v_param, sizeof v_param);
  v_other[1].n_value = 3;
  v_other[2].v_value = v_place + 1;
  v_other[6] = (struct tb_param){"aux", &known, NULL, 1, 1};
  const struct tb_params other = {v_other, 7};
  CHECK(create_without("glm", &other, 99, NULL) == TB_STATUS_argument);
  v_other[1].n_value = 6;
  CHECK(create_without("glm", &other, 99, NULL) == TB_STATUS_argument);
}

static void gaussian_refuses(struct check* p_check) {
  const double v_x[6] = {1, 2, 3, 4, 5, 6};
  const double v_eye[4] = {1, 0, 0, 1};
  const struct tb_param v_param[] = {{"x", v_x, NULL, 6, 3},
                                     {"precision", v_eye, NULL, 4, 2},
                                     {"prior_precision", v_eye, NULL, 4, 2},
                                     {"prior_mean", v_x, NULL, 2, 2}};
  const struct tb_params all = {v_param, 4};
  CHECK(create_without("gaussian", &all, 99, NULL) == TB_STATUS_ok);
  for (size_t k = 0; k < 4; ++k) {
    CHECK(create_without("gaussian", &all, k, NULL) == TB_STATUS_argument);
  }
  for (size_t k = 1; k < 4; ++k) {
    struct tb_param shorter = v_param[k];
    shorter.n_value = 1;
    CHECK(create_without("gaussian", &all, k, &shorter) == TB_STATUS_argument);
  }
}

/* ---- links ---- */

static double mean_at(const struct tb_response_type* response, double eta) {
  double mean = eta;
  if (response != NULL) {
    response->mean(&eta, 1, 1, &mean);
  }
  return mean;
}

struct product {
  struct tb_link_product product;
  double *v_theta, *v_x, *v_offset;
  size_t n_out;
};

static void product_make(struct product* p,
                         const struct tb_response_type* response,
                         size_t n_draw,
                         size_t n_row,
                         size_t n_dim,
                         bool has_offset) {
  struct tb_rng rng;
  tb_rng_init(&rng, 77, n_draw, TB_STREAM_noise);
  p->v_theta = check_alloc(n_draw * n_dim, sizeof(double));
  p->v_x = check_alloc(n_row * n_dim, sizeof(double));
  p->v_offset = check_alloc(n_row, sizeof(double));
  tb_rng_fill_norm(&rng, p->v_theta, n_draw * n_dim);
  tb_rng_fill_norm(&rng, p->v_x, n_row * n_dim);
  tb_rng_fill_norm(&rng, p->v_offset, n_row);
  for (size_t k = 0; k < n_draw * n_dim; ++k) {
    p->v_theta[k] /= sqrt((double)n_dim);
  }
  p->n_out = n_draw * n_row;
  p->product = (struct tb_link_product){
      .response = response,
      .n_draw = n_draw,
      .n_row = n_row,
      .n_dim = n_dim,
      .v_theta = p->v_theta,
      .v_x = p->v_x,
      .v_offset = has_offset ? p->v_offset : NULL,
      .v_out = check_alloc(p->n_out + 1, sizeof(double)),
      .n_threads = 1};
  p->product.v_out[p->n_out] = 7;
}

static void product_free(struct product* p) {
  free(p->v_theta);
  free(p->v_x);
  free(p->v_offset);
  free(p->product.v_out);
}

static double
product_at(const struct tb_link_product* p, size_t draw, size_t row) {
  double eta = p->v_offset == NULL ? 0 : p->v_offset[row];
  for (size_t j = 0; j < p->n_dim; ++j) {
    eta += p->v_theta[draw + j * p->n_draw] * p->v_x[row + j * p->n_row];
  }
  return mean_at(p->response, eta);
}

/* sizes on both sides of those the product is cut into */
static void products_are_definition(struct check* p_check) {
  const struct {
    size_t n_draw, n_row, n_dim;
  } v_case[] = {{1, 1, 1},
                {11, 3, 4},
                {12, 4, 2},
                {95, 63, 1},
                {96, 64, 119},
                {97, 65, 120},
                {13, 66, 121},
                {961, 5, 3},
                {100, 66, 250}};
  for (size_t i = 0; i < sizeof v_case / sizeof v_case[0]; ++i) {
    for (size_t link = 0; link < 3; ++link) {
      const struct tb_response_type* v_response[] = {
          NULL,
          tb_response_find("binomial", NULL),
          tb_response_find("poisson", NULL)};
      struct product made;
      product_make(&made,
                   v_response[link],
                   v_case[i].n_draw,
                   v_case[i].n_row,
                   v_case[i].n_dim,
                   (i + link) % 2 == 0);
      struct tb_link_product* p = &made.product;
      tb_link_product(p);
      for (size_t row = 0; row < p->n_row; ++row) {
        for (size_t draw = 0; draw < p->n_draw; ++draw) {
          const double expected = product_at(p, draw, row);
          CHECK_CLOSE(p->v_out[row * p->n_draw + draw],
                      expected,
                      1e-13 * (1 + fabs(expected)));
        }
      }
      CHECK(p->v_out[made.n_out] == 7);
      product_free(&made);
    }
  }
}

/* to the last bit, for every number of threads and every subset of rows */
static void products_do_not_depend_on_cuts(struct check* p_check) {
  struct product made;
  product_make(&made, tb_response_find("binomial", NULL), 1000, 131, 7, true);
  struct tb_link_product part = made.product;
  tb_link_product(&made.product);
  const size_t n_byte = made.n_out * sizeof(double);
  part.v_out = check_alloc(made.n_out, sizeof(double));
  for (int n_threads = 2; n_threads <= 3; ++n_threads) {
    memset(part.v_out, 0, n_byte);
    part.n_threads = n_threads;
    tb_link_product(&part);
    CHECK(memcmp(part.v_out, made.product.v_out, n_byte) == 0);
  }
  part.n_row = 1;
  double v_row[7];
  part.v_x = v_row;
  for (size_t row = 0; row < 131; ++row) {
    for (size_t j = 0; j < 7; ++j) {
      v_row[j] = made.v_x[row + 131 * j];
    }
    part.v_offset = made.v_offset + row;
    tb_link_product(&part);
    CHECK(memcmp(part.v_out,
                 made.product.v_out + row * 1000,
                 1000 * sizeof(double)) == 0);
  }
  free(part.v_out);
  product_free(&made);
}

static void product_run(void* p) {
  tb_link_product(p);
}

static void products_share_nothing(struct check* p_check) {
  struct product made;
  product_make(&made, tb_response_find("binomial", NULL), 200, 70, 5, false);
  struct tb_link_product other = made.product;
  other.v_out = check_alloc(made.n_out, sizeof(double));
  void* v_context[] = {&made.product, &other};
  CHECK(check_parallel(product_run, v_context, 2));
  CHECK(memcmp(made.product.v_out, other.v_out, made.n_out * sizeof(double)) ==
        0);
  free(other.v_out);
  product_free(&made);
}

static void network_refuses(struct check* p_check) {
  const double v_x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const double v_y[6] = {0, 1, 2, 1, 0, 1}, v_width[] = {2, 3, 3};
  const double activation = 0, likelihood = 3, v_one[21] = {1};
  const struct tb_param v_param[] = {{"x", v_x, NULL, 12, 6},
                                     {"y", v_y, NULL, 6, 6},
                                     {"widths", v_width, NULL, 3, 3},
                                     {"activation", &activation, NULL, 1, 1},
                                     {"response", &likelihood, NULL, 1, 1},
                                     {"prior_kind", v_one, NULL, 21, 21},
                                     {"prior_location", v_one, NULL, 21, 21},
                                     {"prior_scale", v_one, NULL, 21, 21}};
  const struct tb_params all = {v_param, 8};
  CHECK(create_without("network", &all, 99, NULL) == TB_STATUS_ok);
  for (size_t k = 0; k < 8; ++k) {
    CHECK(create_without("network", &all, k, NULL) == TB_STATUS_argument);
  }
  const double v_bad_width[][3] = {{2, 0, 3},
                                   {2, 2.5, 3},
                                   {3, 3, 3},
                                   {2, -1, 3},
                                   {2, NAN, 3},
                                   {2, 3, 2},
                                   {2, 3, 2e9},
                                   {0, 3, 3}};
  for (size_t k = 0; k < 8; ++k) {
    const struct tb_param bad = {"widths", v_bad_width[k], NULL, 3, 3};
    CHECK(create_without("network", &all, 2, &bad) == TB_STATUS_argument);
  }
  const double v_bad[] = {-1, 3, NAN};
  for (size_t k = 0; k < 3; ++k) {
    const struct tb_param bad_activation = {"activation",
                                            &v_bad[k],
                                            NULL,
                                            1,
                                            1};
    const double place = k == 1 ? 1e9 : v_bad[k];
    const struct tb_param bad_likelihood = {"response", &place, NULL, 1, 1};
    CHECK(create_without("network", &all, 3, &bad_activation) ==
          TB_STATUS_argument);
    CHECK(create_without("network", &all, 4, &bad_likelihood) ==
          TB_STATUS_argument);
  }
  const double v_bad_y[6] = {0, 1, 3, 1, 0, 1};
  const struct tb_param bad_y = {"y", v_bad_y, NULL, 6, 6};
  CHECK(create_without("network", &all, 1, &bad_y) == TB_STATUS_argument);
}

enum { N_DENSITY = 600, N_LOOK = 200 };

static const double density_part[] = {1, 2};

/* "density", n_dim coordinates; `bad` replaces the parameter of its name */
static enum tb_status density_make(struct tb_model* p_model,
                                   size_t n_dim,
                                   double form,
                                   double noise,
                                   const struct tb_param* p_bad) {
  static double v_one[N_DENSITY];
  for (size_t j = 0; j < N_DENSITY; ++j) {
    v_one[j] = 0.5;
  }
  struct tb_param v_param[] = {{"form", &form, NULL, 1, 1},
                               {"noise", &noise, NULL, 1, 1},
                               {"location", v_one, NULL, n_dim, n_dim},
                               {"scale", v_one, NULL, n_dim, n_dim},
                               {"shape", v_one, NULL, n_dim, n_dim},
                               {"noise_scale", v_one, NULL, n_dim, n_dim},
                               {"weights", density_part, NULL, 2, 2},
                               {"means", density_part, NULL, 2, 2},
                               {"sds", density_part, NULL, 2, 2}};
  const size_t n_part = sizeof v_param / sizeof v_param[0];
  for (size_t k = 0; p_bad != NULL && k < n_part; ++k) {
    if (strcmp(v_param[k].name, p_bad->name) == 0) {
      v_param[k] = *p_bad;
    }
  }
  const struct tb_params params = {v_param, n_part};
  *p_model = (struct tb_model){.type = tb_model_find("density")};
  return fixture_create(p_model, &params);
}

static void density_refuses(struct check* p_check) {
  struct tb_model model;
  const double v_bad[] = {0.5, -1, NAN};
  for (double form = 0; form < 5; ++form) {
    CHECK(density_make(&model, 4, form, 1, NULL) == TB_STATUS_ok);
    model.type->destroy(&model);
    CHECK(density_make(&model, 3, form, 1, NULL) ==
          (form == 4 ? TB_STATUS_argument : TB_STATUS_ok));
    if (model.p_self != NULL) {
      model.type->destroy(&model);
    }
  }
  const struct tb_param v_wrong[] = {{"scale", v_bad + 1, NULL, 1, 1},
                                     {"scale", v_bad, NULL, 2, 2},
                                     {"weights", v_bad, NULL, 2, 2},
                                     {"sds", v_bad + 2, NULL, 1, 1},
                                     {"means", v_bad, NULL, 1, 1},
                                     {"form", v_bad + 1, NULL, 1, 1},
                                     {"form", v_bad + 2, NULL, 1, 1},
                                     {"noise", v_bad + 1, NULL, 1, 1},
                                     {"noise", v_bad + 2, NULL, 1, 1},
                                     {"location", v_bad, NULL, 0, 0}};
  for (size_t k = 0; k < sizeof v_wrong / sizeof v_wrong[0]; ++k) {
    CHECK(density_make(&model, 1, 3, 1, &v_wrong[k]) == TB_STATUS_argument);
    CHECK(model.p_self == NULL);
  }
}

/* Noise is added only where a stream is lent, fresh in every call, with the
 * variance that is reported; the log density never has any. */
static void density_noise_is_fresh(struct check* p_check) {
  static double v_theta[N_DENSITY], v_exact[N_DENSITY], v_noisy[N_DENSITY];
  static double v_variance[N_DENSITY];
  for (double noise = 0; noise < 3; ++noise) {
    struct tb_model model;
    struct tb_rng rng;
    const struct tb_workspace still = {NULL, NULL, 0};
    const struct tb_workspace noisy = {NULL, &rng, 0};
    double log_exact = 0, log_noisy = 0, sum = 0, square = 0, lagged = 0;
    tb_rng_init(&rng, 5, 0, TB_STREAM_model);
    CHECK(density_make(&model, N_DENSITY, 0, noise, NULL) == TB_STATUS_ok);
    model.type->noise_variance(&model, v_variance);
    model.type->prior(&model, &still, v_theta, v_exact, &log_exact);
    double v_before[N_DENSITY] = {0};
    for (size_t look = 0; look < N_LOOK; ++look) {
      log_noisy = 0;
      model.type->prior(&model, &noisy, v_theta, v_noisy, &log_noisy);
      CHECK(log_noisy == log_exact);
      for (size_t j = 0; j < N_DENSITY; ++j) {
        const double e = v_noisy[j] - v_exact[j];
        sum += e;
        square += e * e;
        lagged += e * v_before[j];
        v_before[j] = e;
      }
    }
    const double n = (double)N_DENSITY * N_LOOK, sd = sqrt(v_variance[0]);
    CHECK_CLOSE(v_variance[0], noise == 0 ? 0 : noise == 1 ? 0.25 : 0.5, 0);
    CHECK_CLOSE(sum / n, 0, 5 * sd / sqrt(n));
    CHECK_CLOSE(lagged / n, 0, 5 * sd * sd / sqrt(n));
    /* the kurtosis is 3 or 6 */
    CHECK_CLOSE(square / n, sd * sd, 5 * sd * sd * sqrt(5 / n));
    model.type->destroy(&model);
  }
}

/* ---- models of users ---- */

/* A table that was compiled with the header of version 1 must go on working:
 * who moves a member has to raise TALLBAYES_API_VERSION. (Sizes are in words,
 * the two numbers of the batch's doubles included.) */
static void native_layout_is_fixed(struct check* p_check) {
  enum { word = sizeof(void*) };
#define AT(type, member, place)                                                \
  CHECK(offsetof(struct type, member) == (size_t)(place)*word)
  CHECK(TALLBAYES_API_VERSION == 0x74420001u);
  AT(tb_native_type, version, 0);
  AT(tb_native_type, name, 1);
  AT(tb_native_type, prior, 2);
  AT(tb_native_type, gradient, 3);
  AT(tb_native_type, log_lik, 4);
  AT(tb_native_type, create, 5);
  AT(tb_native_type, destroy, 6);
  AT(tb_native_type, scratch_size, 7);
  AT(tb_native_type, curvature, 8);
  AT(tb_native_type, constrain, 9);
  AT(tb_native_type, n_scalar, 10);
  AT(tb_native_type, add_scalar, 11);
  CHECK(sizeof(struct tb_native_type) == (size_t)12 * word);
  AT(tb_native, n_data, 0);
  AT(tb_native, n_dim, 1);
  AT(tb_native, n_array, 2);
  AT(tb_native, v_array, 3);
  AT(tb_native, p_tools, 4);
  AT(tb_native, p_self, 5);
  AT(tb_array, name, 0);
  AT(tb_array, n_row, 1);
  AT(tb_array, n_col, 2);
  AT(tb_array, stride, 3);
  AT(tb_array, v_value, 4);
  AT(tb_array, p_tools, 5);
  CHECK(sizeof(struct tb_array) == (size_t)7 * word);
  AT(tb_tools, dot, 0);
  AT(tb_tools, add, 1);
  AT(tb_tools, take, 2);
  AT(tb_tools, exp, 3);
  AT(tb_tools, log, 4);
  AT(tb_tools, logistic, 5);
  AT(tb_tools, softplus, 6);
  AT(tb_tools, tanh, 7);
  AT(tb_batch, n_batch, 0);
  AT(tb_batch, v_index, 1);
  AT(tb_batch, start, 2);
  AT(tb_batch, v_weight, 3);
  CHECK(offsetof(struct tb_batch, weight) % sizeof(double) == 0);
  AT(tb_reference, v_theta, 0);
  AT(tb_reference, v_scalar, 1);
  AT(tb_reference, stride, 2);
  AT(tb_sums, v_gradient, 0);
  AT(tb_sums, v_square, 1);
  AT(tb_sums, p_log_lik, 2);
  AT(tb_sums, v_scalar, 3);
#undef AT
}

static enum tb_status user_refuses(struct tb_native* p_native) {
  (void)p_native;
  return TB_STATUS_argument;
}

static enum tb_status user_says_anything(struct tb_native* p_native) {
  (void)p_native;
  return (enum tb_status)99;
}

static void native_refuses(struct check* p_check) {
  struct tb_native_type v_type[8];
  struct tb_model model;
  for (size_t k = 0; k < 8; ++k) {
    v_type[k] = fixture_user;
  }
  v_type[0].version += 1;
  v_type[1].version = 1;
  v_type[2].name = NULL;
  v_type[3].prior = NULL;
  v_type[4].gradient = NULL;
  v_type[5].log_lik = NULL;
  v_type[6].add_scalar = NULL;
  v_type[7].create = user_refuses;
  for (size_t k = 0; k < 8; ++k) {
    CHECK(fixture_native_create(&model, &v_type[k], 9, 2) ==
          TB_STATUS_argument);
    CHECK(model.p_self == NULL);
    CHECK(model.type == tb_model_find("native"));
  }
  unsigned version;
  CHECK(!tb_native_is_readable(&v_type[0], &version) && version == 2);
  CHECK(!tb_native_is_readable(&v_type[1], &version) && version == 0);
  CHECK(!tb_native_is_readable(NULL, &version) && version == 0);
  CHECK(tb_native_is_readable(&fixture_user, &version) && version == 1);
  CHECK(strcmp(tb_native_missing_slot(&v_type[4]), "gradient") == 0);
  v_type[7].create = user_says_anything;
  CHECK(fixture_native_create(&model, &v_type[7], 9, 2) == TB_STATUS_callback);
}

enum { N_LDA = 18, N_DOCUMENT = 20 };

/* gradient and squares of one batch; the stream starts anew */
static void lda_pass(struct fixture* p,
                     const double* v_theta,
                     const struct tb_batch* p_batch,
                     const struct tb_reference* p_reference,
                     double* v_gradient,
                     double* v_square) {
  const struct tb_sums sums = {.v_gradient = v_gradient, .v_square = v_square};
  memset(v_gradient, 0, N_LDA * sizeof(double));
  memset(v_square, 0, N_LDA * sizeof(double));
  tb_rng_init(&p->rng, 1, 0, TB_STREAM_model);
  p->model.type
      ->gradient(&p->model, &p->work, v_theta, p_batch, p_reference, &sums);
}

/* Batches with repeated documents, far from their words too: squares and
 * references are those of the documents one by one. */
static void lda_squares_in(struct check* p_check, double coordinates) {
  struct fixture f;
  fixture_lda(&f, N_DOCUMENT, coordinates);
  double v_theta[N_LDA], v_at[N_LDA];
  fixture_point(&f, 1, v_theta);
  fixture_point(&f, 2, v_at);
  const struct tb_reference reference = {.v_theta = v_at};
  const size_t v_index[] = {3, 19, 3, 0, 7};
  const double v_weight[] = {1, 2.5, 0.3, 4, 1};
  for (int has_reference = 0; has_reference < 2; ++has_reference) {
    const struct tb_reference* p_at = has_reference ? &reference : NULL;
    const struct tb_batch all = {.n_batch = 5,
                                 .v_index = v_index,
                                 .v_weight = v_weight};
    double v_sum[N_LDA], v_square[N_LDA], v_by_row[2 * N_LDA] = {0};
    lda_pass(&f, v_theta, &all, p_at, v_sum, v_square);
    /* the same stream, document after document */
    tb_rng_init(&f.rng, 1, 0, TB_STREAM_model);
    for (size_t k = 0; k < 5; ++k) {
      const struct tb_batch one = tb_batch_part(&all, k, 1);
      double v_row[N_LDA] = {0};
      const struct tb_sums sums = {.v_gradient = v_row};
      f.model.type->gradient(&f.model, &f.work, v_theta, &one, p_at, &sums);
      for (size_t j = 0; j < N_LDA; ++j) {
        v_by_row[j] += v_row[j];
        v_by_row[N_LDA + j] += v_row[j] * v_row[j];
      }
    }
    for (size_t j = 0; j < N_LDA; ++j) {
      CHECK_CLOSE(v_sum[j], v_by_row[j], 1e-9 * (1 + fabs(v_by_row[j])));
      CHECK_CLOSE(v_square[j],
                  v_by_row[N_LDA + j],
                  1e-9 * (1 + fabs(v_by_row[N_LDA + j])));
    }
  }
  fixture_free(&f);
}

static void lda_squares_are_squares(struct check* p_check) {
  lda_squares_in(p_check, 0);
  lda_squares_in(p_check, 1);
}

/* Without a stream an estimate is the same whenever and in whatever parts it is
 * made; at the reference differences vanish. */
static void lda_references_stay(struct check* p_check, double coordinates) {
  struct fixture f;
  fixture_lda(&f, N_DOCUMENT, coordinates);
  double v_theta[N_LDA], v_first[N_LDA], v_parts[N_LDA], v_square[N_LDA];
  double v_moved[N_LDA], v_moved_square[N_LDA];
  fixture_point(&f, 3, v_theta);
  const struct tb_reference here = {.v_theta = v_theta};
  const struct tb_batch all = {.n_batch = N_DOCUMENT, .weight = 1};
  lda_pass(&f, v_theta, &all, &here, v_moved, v_moved_square);
  f.work.p_rng = NULL;
  lda_pass(&f, v_theta, &all, NULL, v_first, v_square);
  /* 0, but for products that are not rounded before they are subtracted */
  for (size_t j = 0; j < N_LDA; ++j) {
    CHECK(fabs(v_moved[j]) <= 1e-12 * (1 + fabs(v_first[j])));
    CHECK(fabs(v_moved_square[j]) <= 1e-12 * (1 + v_square[j]));
  }
  memset(v_parts, 0, sizeof v_parts);
  for (size_t d = 0; d < N_DOCUMENT; d += 7) {
    const struct tb_batch part = tb_batch_part(&all, d, 7);
    const struct tb_sums sums = {.v_gradient = v_parts};
    f.model.type->gradient(&f.model, &f.work, v_theta, &part, NULL, &sums);
  }
  for (size_t j = 0; j < N_LDA; ++j) {
    CHECK_CLOSE(v_parts[j], v_first[j], 1e-9 * (1 + fabs(v_first[j])));
  }
  double v_topics[N_LDA], v_out[3 * N_DOCUMENT];
  f.model.type->constrain(&f.model, v_theta, v_topics);
  CHECK(tb_lda_proportions(&f.model, v_topics, 3, 5, 1, v_out) == TB_STATUS_ok);
  for (size_t d = 0; d < N_DOCUMENT; ++d) {
    CHECK_CLOSE(v_out[3 * d] + v_out[3 * d + 1] + v_out[3 * d + 2], 1, 1e-12);
  }
  fixture_free(&f);
}

static void lda_references_do_not_move(struct check* p_check) {
  lda_references_stay(p_check, 0);
  lda_references_stay(p_check, 1);
}

static void lda_refuses(struct check* p_check) {
  const double v_start[] = {0, 2, 3}, v_word[] = {0, 1, 1};
  const double v_count[] = {1, 2, 1}, v_shape[] = {2, 2}, one = 1;
  const struct tb_param v_param[] = {{"start", v_start, NULL, 3, 3},
                                     {"word", v_word, NULL, 3, 3},
                                     {"count", v_count, NULL, 3, 3},
                                     {"shape", v_shape, NULL, 2, 2},
                                     {"alpha", &one, NULL, 1, 1},
                                     {"beta", &one, NULL, 1, 1},
                                     {"burn", &one, NULL, 1, 1},
                                     {"sweeps", &one, NULL, 1, 1},
                                     {"coordinates", &one, NULL, 1, 1}};
  const struct tb_params all = {v_param, 9};
  CHECK(create_without("lda", &all, 99, NULL) == TB_STATUS_ok);
  for (size_t k = 0; k < 9; ++k) {
    CHECK(create_without("lda", &all, k, NULL) == TB_STATUS_argument);
  }
  const double v_bad[][3] = {{0, 0, 3},
                             {1, 2, 3},
                             {0, 2, 4},
                             {0, 2, 2},
                             {0, -1, 1},
                             {0, 1, 2},
                             {NAN, 1, 1},
                             {0, 0.5, 1}};
  for (size_t k = 0; k < 3; ++k) {
    const struct tb_param start = {"start", v_bad[k], NULL, 3, 3};
    CHECK(create_without("lda", &all, 0, &start) == TB_STATUS_argument);
  }
  for (size_t k = 4; k < 8; ++k) {
    const struct tb_param word = {"word", v_bad[k], NULL, 3, 3};
    const struct tb_param count = {"count", v_bad[k], NULL, 3, 3};
    CHECK(create_without("lda", &all, 1, &word) == TB_STATUS_argument);
    CHECK(create_without("lda", &all, 2, &count) == TB_STATUS_argument);
  }
  const double v_few[] = {1, 2}, zero = 0, half = 0.5, two = 2;
  const struct tb_param v_wrong[] = {{"shape", v_few, NULL, 2, 2},
                                     {"alpha", &zero, NULL, 1, 1},
                                     {"beta", &zero, NULL, 1, 1},
                                     {"burn", &half, NULL, 1, 1},
                                     {"sweeps", &zero, NULL, 1, 1},
                                     {"coordinates", &two, NULL, 1, 1}};
  for (size_t k = 0; k < 6; ++k) {
    CHECK(create_without("lda", &all, 3 + k, &v_wrong[k]) ==
          TB_STATUS_argument);
  }
}

/* theta is -W with its rows swapped, W the reference */
static void ica_aligns(struct check* p_check) {
  const double v_x[] = {1, -2, 0.5, 3, 0.3, -1, 2, 0.7}, one = 1;
  const double v_reference[] = {2, 0.5, -1, 1};
  const double v_theta[] = {-0.5, -2, -1, 1};
  const struct tb_param v_param[] = {{"x", v_x, NULL, 8, 4},
                                     {"prior_sd", &one, NULL, 1, 1},
                                     {"reference", v_reference, NULL, 4, 2}};
  const struct tb_params all = {v_param, 3};
  for (size_t k = 0; k < 4; ++k) {
    CHECK(create_without("ica", &all, k, NULL) ==
          (k < 2 ? TB_STATUS_argument : TB_STATUS_ok));
  }
  const double v_singular[] = {1, 1, 1, 1};
  const struct tb_param singular = {"reference", v_singular, NULL, 4, 2};
  const struct tb_param few = {"reference", v_singular, NULL, 2, 2};
  CHECK(create_without("ica", &all, 2, &singular) == TB_STATUS_singular);
  CHECK(create_without("ica", &all, 2, &few) == TB_STATUS_argument);
  for (size_t n_param = 2; n_param < 4; ++n_param) {
    const struct tb_params params = {v_param, n_param};
    struct tb_model model;
    memset(&model, 0, sizeof model);
    model.type = tb_model_find("ica");
    CHECK(fixture_create(&model, &params) == TB_STATUS_ok);
    CHECK(tb_model_has_map(&model) == (n_param == 3));
    double v_natural[4];
    model.type->constrain(&model, v_theta, v_natural);
    for (size_t j = 0; j < 4; ++j) {
      CHECK(v_natural[j] == (n_param == 2 ? v_theta[j] : v_reference[j]));
    }
    const double v_nan[] = {NAN, 1, 2, 3};
    model.type->constrain(&model, v_nan, v_natural);
    CHECK(isnan(v_natural[0]));
    model.type->destroy(&model);
  }
}

const struct check_case check_models[] = {
    {"lda: squares are those of documents", lda_squares_are_squares},
    {"lda: references do not move", lda_references_do_not_move},
    {"lda refuses parameters it cannot use", lda_refuses},
    {"ica: variables are aligned with a reference", ica_aligns},
    {"the registry finds every model by name", registry_finds},
    {"a pass over a batch is the sum over its rows", sums_are_sums},
    {"a model tells whether it has a map", maps_are_told},
    {"a reference is subtracted row by row", references_subtract},
    {"squared norms are those of rows", norms_are_norms},
    {"whitening keeps the density", whitening_keeps_the_density},
    {"rows that must stay get a frame", read_only_rows_get_a_frame},
    {"any store gives a model the same sums", any_store_will_do},
    {"frames pull the gradients of rows", frames_pull_rows},
    {"glm refuses parameters it cannot use", glm_refuses},
    {"glm takes columns of y, and one predictor",
     glm_tells_shapes_of_responses},
    {"the gradient is the slope of the density", gradients_are_slopes},
    {"gaussian refuses parameters it cannot use", gaussian_refuses},
    {"link: a product is its definition", products_are_definition},
    {"link: a product does not depend on how it is cut",
     products_do_not_depend_on_cuts},
    {"link: products may run at the same time", products_share_nothing},
    {"network refuses parameters it cannot use", network_refuses},
    {"native: the layout of version 1 is fixed", native_layout_is_fixed},
    {"native refuses tables it cannot use", native_refuses},
    {"density refuses parameters it cannot use", density_refuses},
    {"density adds fresh noise to gradients alone", density_noise_is_fresh},
    {NULL, NULL}};
