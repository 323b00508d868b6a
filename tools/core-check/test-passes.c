#include "check.h"
#include "fixture.h"

#include "base/clip.h"
#include "models/framed.h"
#include "models/native.h"
#include "passes/curvature.h"
#include "passes/pass.h"
#include "passes/points.h"
#include "passes/rows.h"
#include "passes/sums.h"
#include "passes/tie.h"
#include "passes/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_DATA = 301, N_DIM = 4, N_POINT = 3 };

/* One pass with blocks of n_block rows. */
static enum tb_status pass_by(const struct fixture* p,
                              size_t n_block,
                              const double* v_theta,
                              double* v_density,
                              double* v_gradient) {
  const struct tb_batch all = {.n_batch = N_DATA, .weight = 1};
  enum tb_status v_status[N_POINT];
  struct tb_points points = {.p_model = &p->model,
                             .p_work = &p->work,
                             .v_theta = v_theta,
                             .n_point = N_POINT,
                             .wants_log_lik = true,
                             .v_density = v_density,
                             .v_gradient = v_gradient,
                             .v_status = v_status};
  tb_points_begin(&points);
  tb_points_add_prior(&points);
  for (size_t first = 0; first < N_DATA && tb_points_go_on(&points);
       first += n_block) {
    const struct tb_batch block = tb_batch_part(&all, first, n_block);
    tb_points_add(&points, &block);
  }
  tb_points_end(&points);
  return points.status;
}

static void
blocks_of_glm_add_up(struct check* p_check, int family, unsigned columns) {
  const size_t v_block[] = {1, 7, 64, N_DATA};
  struct fixture f;
  fixture_glm(&f, N_DATA, N_DIM, family, columns);
  double v_theta[N_POINT * N_DIM], v_density[N_POINT];
  double v_gradient[N_POINT * N_DIM], v_exact[N_DIM];
  for (size_t k = 0; k < N_POINT; ++k) {
    fixture_point(&f, k, v_theta + k * N_DIM);
  }
  for (size_t b = 0; b < sizeof v_block / sizeof v_block[0]; ++b) {
    CHECK(pass_by(&f, v_block[b], v_theta, v_density, v_gradient) ==
          TB_STATUS_ok);
    for (size_t k = 0; k < N_POINT; ++k) {
      const double log_pi = fixture_gradient(&f, v_theta + k * N_DIM, v_exact);
      CHECK_CLOSE(v_density[k], log_pi, 1e-10 * (1 + fabs(log_pi)));
      for (size_t j = 0; j < N_DIM; ++j) {
        CHECK_CLOSE(v_gradient[k * N_DIM + j],
                    v_exact[j],
                    1e-9 * (1 + fabs(v_exact[j])));
      }
    }
  }
  fixture_free(&f);
}

static void blocks_add_up(struct check* p_check) {
  blocks_of_glm_add_up(p_check, 2, FIXTURE_WEIGHTS);
  blocks_of_glm_add_up(p_check,
                       fixture_place("interval"),
                       FIXTURE_WEIGHTS | FIXTURE_OFFSET);
}

/* A model that says so of points with a negative first coordinate, or fails. */
static enum tb_status v_answer[2];
static enum tb_status says_no(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_theta,
                              const struct tb_batch* p_batch,
                              const struct tb_reference* p_reference,
                              const struct tb_sums* p_sums) {
  (void)p_work;
  (void)p_reference;
  for (size_t j = 0; j < p_model->n_dim; ++j) {
    p_sums->v_gradient[j] += (double)p_batch->n_batch;
  }
  return v_theta[0] < 0 ? v_answer[0] : v_answer[1];
}

static void points_fail_alone(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, N_DATA, N_DIM, 1, 0);
  struct tb_model_type type = *f.model.type;
  const struct tb_model_type* real = f.model.type;
  type.gradient = says_no;
  double v_theta[N_POINT * N_DIM] = {0}, v_density[N_POINT];
  double v_gradient[N_POINT * N_DIM];
  v_theta[N_DIM] = -1; /* the second point */
  f.model.type = &type;
  v_answer[0] = TB_STATUS_nonfinite;
  v_answer[1] = TB_STATUS_ok;
  CHECK(pass_by(&f, 50, v_theta, v_density, v_gradient) == TB_STATUS_nonfinite);
  CHECK(isnan(v_density[1]) && isnan(v_gradient[N_DIM]));
  CHECK(isfinite(v_density[0]) && isfinite(v_density[2]));
  CHECK(v_gradient[0] == N_DATA && v_gradient[2 * N_DIM] == N_DATA);
  v_answer[0] = TB_STATUS_callback;
  CHECK(pass_by(&f, 50, v_theta, v_density, v_gradient) == TB_STATUS_callback);
  CHECK(v_gradient[0] == 50 && v_gradient[2 * N_DIM] == 0);
  f.model.type = real;
  fixture_free(&f);
}

/* ---- in threads ---- */

/* more than two chunks, the last one short */
enum { N_TALL = 2 * TB_CHUNK + 77, N_KIND = 7, N_DIM_MOST = 9 };

/* the first so many kinds are regressions, whose rows any store keeps */
enum { N_GLM = 4 };

static void tall(struct fixture* p, size_t kind) {
  switch (kind) {
  case 0:
  case 1:
  case 2:
    fixture_glm(p, N_TALL, 5, (int)kind, FIXTURE_WEIGHTS | FIXTURE_OFFSET);
    break;
  case 3:
    fixture_glm(p, N_TALL, 3, 0, FIXTURE_SIGMA);
    break;
  case N_GLM:
    fixture_gaussian(p, N_TALL, 4);
    break;
  case 5:
    fixture_ica(p, N_TALL, 3);
    break;
  default:
    fixture_native(p, N_TALL, 3, false);
  }
}

/* log posterior, gradient, -Hessian; enough for n_dim <= N_DIM_MOST */
struct derivatives {
  double log_posterior;
  double v_gradient[N_DIM_MOST];
  double v_hessian[N_DIM_MOST * N_DIM_MOST];
};

static enum tb_status curvature_of(const struct fixture* p,
                                   const double* v_theta,
                                   const struct tb_batch* p_batch,
                                   int n_threads,
                                   struct derivatives* p_out) {
  memset(p_out, 0, sizeof *p_out);
  return tb_model_curvature(&p->model,
                            v_theta,
                            p_batch,
                            NULL,
                            &p_out->log_posterior,
                            p_out->v_gradient,
                            p_out->v_hessian,
                            n_threads);
}

/* rows in another order than they lie, with multipliers */
static struct tb_batch mixed_rows(size_t n_row) {
  size_t* v_index = check_alloc(n_row, sizeof *v_index);
  double* v_weight = check_alloc(n_row, sizeof *v_weight);
  for (size_t k = 0; k < n_row; ++k) {
    v_index[k] = k * 37 % N_TALL;
    v_weight[k] = 0.5 + (double)(k % 16) / 8;
  }
  return (struct tb_batch){.n_batch = n_row,
                           .v_index = v_index,
                           .v_weight = v_weight};
}

static void free_rows(struct tb_batch* p_batch) {
  free((void*)p_batch->v_index);
  free((void*)p_batch->v_weight);
}

/* The Hessian of a batch is what rows say one by one, and the prior; log
 * posterior and gradient are those of other passes. */
static void curvature_adds_up(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    tall(&f, kind);
    const size_t n_dim = f.model.n_dim;
    const struct tb_batch none = {.n_batch = 0, .weight = 1};
    struct tb_batch mixed = mixed_rows(TB_CHUNK + 600);
    struct derivatives of_none, all, one, sum;
    double v_theta[N_DIM_MOST];
    fixture_point(&f, kind, v_theta);
    CHECK(curvature_of(&f, v_theta, &none, 1, &of_none) == TB_STATUS_ok);
    CHECK(curvature_of(&f, v_theta, &mixed, 2, &all) == TB_STATUS_ok);
    sum = of_none;
    for (size_t k = 0; k < mixed.n_batch; ++k) {
      const struct tb_batch row = tb_batch_part(&mixed, k, 1);
      curvature_of(&f, v_theta, &row, 1, &one);
      sum.log_posterior += one.log_posterior - of_none.log_posterior;
      for (size_t j = 0; j < n_dim; ++j) {
        sum.v_gradient[j] += one.v_gradient[j] - of_none.v_gradient[j];
      }
      for (size_t j = 0; j < n_dim * n_dim; ++j) {
        sum.v_hessian[j] += one.v_hessian[j] - of_none.v_hessian[j];
      }
    }
    double size = 1;
    for (size_t j = 0; j < n_dim * n_dim; ++j) {
      size = fmax(size, fabs(sum.v_hessian[j]));
    }
    CHECK_CLOSE(all.log_posterior,
                sum.log_posterior,
                1e-9 * (1 + fabs(sum.log_posterior)));
    for (size_t j = 0; j < n_dim; ++j) {
      CHECK_CLOSE(all.v_gradient[j], sum.v_gradient[j], 1e-8 * size);
    }
    for (size_t j = 0; j < n_dim * n_dim; ++j) {
      CHECK_CLOSE(all.v_hessian[j], sum.v_hessian[j], 1e-9 * size);
      CHECK_CLOSE(all.v_hessian[j],
                  all.v_hessian[j % n_dim * n_dim + j / n_dim],
                  1e-13 * size);
    }
    free_rows(&mixed);

    const struct tb_batch rows = {.n_batch = N_TALL, .weight = 1};
    double v_exact[N_DIM_MOST];
    CHECK(curvature_of(&f, v_theta, &rows, 1, &all) == TB_STATUS_ok);
    const double log_pi = fixture_gradient(&f, v_theta, v_exact);
    CHECK_CLOSE(all.log_posterior, log_pi, 1e-9 * (1 + fabs(log_pi)));
    for (size_t j = 0; j < n_dim; ++j) {
      CHECK_CLOSE(all.v_gradient[j], v_exact[j], 1e-8 * size);
    }
    fixture_free(&f);
  }
}

/* All that passes say of a model, with so many threads. */
struct answers {
  struct derivatives curvature, part;
  double v_stored[N_DIM_MOST];
  double largest;
  double v_many[N_POINT];
  enum tb_status v_status[TB_WEIGHT_count];
  double* v_weight; /* N_TALL x TB_WEIGHT_count */
};

static void ask(struct fixture* p, int n_threads, struct answers* p_out) {
  const struct tb_model* p_model = &p->model;
  const size_t n_dim = p_model->n_dim;
  const struct tb_batch all = {.n_batch = N_TALL, .weight = 1};
  const struct tb_batch part = {.n_batch = 9000, .start = 50, .weight = 1.7};
  double v_theta[N_POINT * N_DIM_MOST], v_chol[N_DIM_MOST * N_DIM_MOST] = {0};
  double* v_weight =
      check_alloc((size_t)N_TALL * TB_WEIGHT_count, sizeof *v_weight);
  memset(p_out, 0, sizeof *p_out);
  p_out->v_weight = v_weight;
  for (size_t k = 0; k < N_POINT; ++k) {
    fixture_point(p, k, v_theta + k * n_dim);
  }
  curvature_of(p, v_theta, &all, n_threads, &p_out->curvature);
  curvature_of(p, v_theta, &part, n_threads, &p_out->part);
  for (size_t j = 0; j < n_dim; ++j) {
    for (size_t i = j; i < n_dim; ++i) {
      /* a sampled s, with two numbers stored a row, is apart */
      const bool is_apart = p_model->n_scalar == 2 && i + 1 == n_dim;
      v_chol[j * n_dim + i] = i == j ? 3 + (double)j : is_apart ? 0 : 0.5;
    }
  }
  for (int w = 0; w < TB_WEIGHT_count; ++w) {
    p_out->v_status[w] = tb_model_weights(p_model,
                                          (enum tb_weight_type)w,
                                          v_theta,
                                          v_chol,
                                          v_weight + (size_t)w * N_TALL,
                                          n_threads);
  }
  if (p_model->type->store_scalar != NULL) {
    tb_model_store_scalar(&p->model, v_theta, p_out->v_stored, n_threads);
  }
  const double largest =
      tb_model_largest_predictor(&p->model, v_theta, n_threads);
  p_out->largest = isnan(largest) ? -1 : largest;
  tb_model_log_lik_many(&p->model, v_theta, N_POINT, p_out->v_many, n_threads);
}

static void close_to(struct check* p_check,
                     size_t n,
                     const double* v_a,
                     const double* v_b) {
  double size = 1;
  for (size_t k = 0; k < n; ++k) {
    size = fmax(size, fabs(v_b[k]));
  }
  for (size_t k = 0; k < n; ++k) {
    CHECK_CLOSE(v_a[k], v_b[k], 1e-9 * size);
  }
}

/* Passes over rows that are kept without their zeros say what they say of all
 * rows. */
static void stores_do_not_matter(struct check* p_check) {
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (size_t kind = 0; kind < N_GLM; ++kind) {
      struct fixture f, dense;
      struct answers of_f, of_dense;
      tall(&dense, kind);
      fixture_store = tb_store_registry[t];
      tall(&f, kind);
      fixture_store = NULL;
      ask(&f, 2, &of_f);
      ask(&dense, 1, &of_dense);
      const size_t n = f.model.n_dim;
      close_to(p_check,
               n * n,
               of_f.curvature.v_hessian,
               of_dense.curvature.v_hessian);
      close_to(p_check, n * n, of_f.part.v_hessian, of_dense.part.v_hessian);
      close_to(p_check, n, of_f.part.v_gradient, of_dense.part.v_gradient);
      close_to(p_check, n, of_f.v_stored, of_dense.v_stored);
      close_to(p_check, N_POINT, of_f.v_many, of_dense.v_many);
      for (size_t w = 0; w < TB_WEIGHT_count; ++w) {
        CHECK(of_f.v_status[w] == of_dense.v_status[w]);
        if (of_f.v_status[w] == TB_STATUS_ok) {
          close_to(p_check,
                   N_TALL,
                   of_f.v_weight + w * N_TALL,
                   of_dense.v_weight + w * N_TALL);
        }
      }
      free(of_f.v_weight);
      free(of_dense.v_weight);
      fixture_free(&f);
      fixture_free(&dense);
    }
  }
}

/* The diagonal of the Hessian alone is that of the Hessian. */
static void diagonals_agree(struct check* p_check) {
  for (size_t t = 0; tb_store_registry[t] != NULL; ++t) {
    for (size_t kind = 0; kind < N_GLM; ++kind) {
      struct fixture f;
      struct derivatives all;
      struct tb_batch mixed = mixed_rows(TB_CHUNK + 600);
      double v_theta[N_DIM_MOST], v_diagonal[N_DIM_MOST];
      double v_expected[N_DIM_MOST];
      fixture_store = tb_store_registry[t];
      tall(&f, kind);
      fixture_store = NULL;
      fixture_point(&f, kind, v_theta);
      const enum tb_status status =
          tb_model_diagonal(&f.model, v_theta, &mixed, v_diagonal, 2);
      CHECK(status == (f.model.type->diagonal == NULL ? TB_STATUS_unsupported
                                                      : TB_STATUS_ok));
      if (status == TB_STATUS_ok) {
        CHECK(curvature_of(&f, v_theta, &mixed, 1, &all) == TB_STATUS_ok);
        for (size_t j = 0; j < f.model.n_dim; ++j) {
          v_expected[j] = all.v_hessian[j * (f.model.n_dim + 1)];
        }
        close_to(p_check, f.model.n_dim, v_diagonal, v_expected);
      }
      free_rows(&mixed);
      fixture_free(&f);
    }
  }
}

/* Weights that whitened coordinates do not change, and densities at many
 * points, are the same behind a frame as in rewritten rows. */
static void frames_do_not_matter(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f, white;
    double v_center[N_DIM_MOST], v_phi[N_POINT * N_DIM_MOST];
    double v_chol[N_DIM_MOST * N_DIM_MOST] = {0};
    tall(&f, kind);
    if (f.model.type->weights == NULL || !tb_model_can_whiten(&f.model)) {
      fixture_free(&f);
      continue;
    }
    tall(&white, kind);
    const size_t n = f.model.n_dim, n_tall = N_TALL;
    double* v_framed = check_alloc(2 * n_tall, sizeof(double));
    double* v_white = v_framed + n_tall;
    fixture_point(&f, kind, v_center);
    for (size_t k = 0; k < N_POINT; ++k) {
      fixture_point(&f, kind + k, v_phi + k * n);
    }
    for (size_t j = 0; j < n; ++j) {
      for (size_t i = j; i < n; ++i) {
        /* s is apart */
        v_chol[j * n + i] = i == j ? 3 + (double)j : i + 1 < n ? 0.5 : 0;
      }
    }
    struct tb_model framed;
    CHECK(tb_model_frame(&f.model, v_center, v_chol, false, &framed) ==
          TB_STATUS_ok);
    CHECK(white.model.type->whiten(&white.model, v_center, v_chol, false) ==
          TB_STATUS_ok);
    CHECK(tb_model_has_weights(&framed));
    for (int w = 0; w < TB_WEIGHT_count; ++w) {
      const enum tb_weight_type type = (enum tb_weight_type)w;
      const bool is_invariant = type == TB_WEIGHT_leverage ||
                                type == TB_WEIGHT_robust ||
                                type == TB_WEIGHT_cubic;
      const enum tb_status status =
          tb_model_weights(&framed, type, v_phi, NULL, v_framed, 2);
      const enum tb_status own =
          tb_model_weights(&white.model, type, v_phi, NULL, v_white, 1);
      CHECK(status == (is_invariant ? own : TB_STATUS_unsupported));
      if (status == TB_STATUS_ok) {
        close_to(p_check, n_tall, v_framed, v_white);
      }
    }
    double v_many[2 * N_POINT];
    const enum tb_status status =
        tb_model_log_lik_many(&framed, v_phi, N_POINT, v_many, 1);
    CHECK(status == (f.model.type->log_lik_many == NULL ? TB_STATUS_unsupported
                                                        : TB_STATUS_ok));
    if (status == TB_STATUS_ok) {
      tb_model_log_lik_many(&white.model, v_phi, N_POINT, v_many + N_POINT, 1);
      close_to(p_check, N_POINT, v_many, v_many + N_POINT);
    }
    framed.type->destroy(&framed);
    free(v_framed);
    fixture_free(&f);
    fixture_free(&white);
  }
}

static void threads_do_not_matter(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    struct answers alone;
    tall(&f, kind);
    ask(&f, 1, &alone);
    for (int n_threads = 2; n_threads <= 5; ++n_threads) {
      struct answers several;
      ask(&f, n_threads, &several);
      for (size_t w = 0; w < TB_WEIGHT_count; ++w) {
        CHECK(alone.v_status[w] != TB_STATUS_ok ||
              memcmp(alone.v_weight + w * N_TALL,
                     several.v_weight + w * N_TALL,
                     N_TALL * sizeof(double)) == 0);
      }
      free(several.v_weight);
      CHECK(memcmp(&alone.curvature,
                   &several.curvature,
                   sizeof alone.curvature) == 0);
      CHECK(memcmp(&alone.part, &several.part, sizeof alone.part) == 0);
      CHECK(memcmp(alone.v_stored, several.v_stored, sizeof alone.v_stored) ==
            0);
      CHECK(memcmp(alone.v_many, several.v_many, sizeof alone.v_many) == 0);
      CHECK(memcmp(alone.v_status, several.v_status, sizeof alone.v_status) ==
            0);
      CHECK(alone.largest == several.largest);
    }
    free(alone.v_weight);
    fixture_free(&f);
  }
}

/* The other sums over all rows are those of gradients, one row at a time. */
static void rows_add_up(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    struct answers answers;
    double v_theta[N_DIM_MOST], v_sum[N_DIM_MOST] = {0}, log_lik = 0;
    tall(&f, kind);
    const size_t n_dim = f.model.n_dim;
    fixture_point(&f, 0, v_theta);
    ask(&f, 3, &answers);
    for (size_t i = 0; i < N_TALL; ++i) {
      const struct tb_batch one = {.n_batch = 1, .start = i, .weight = 1};
      double v_row[N_DIM_MOST] = {0}, square = 0;
      const struct tb_sums sums = {.v_gradient = v_row, .p_log_lik = &log_lik};
      f.model.type->gradient(&f.model, &f.work, v_theta, &one, NULL, &sums);
      for (size_t j = 0; j < n_dim; ++j) {
        v_sum[j] += v_row[j];
        square += v_row[j] * v_row[j];
      }
      const double weight =
          answers.v_weight[(size_t)TB_WEIGHT_gradient * N_TALL + i];
      CHECK_CLOSE(weight, sqrt(square), 1e-10 * (1 + sqrt(square)));
    }
    if (f.model.type->log_lik_many != NULL) {
      CHECK_CLOSE(answers.v_many[0], log_lik, 1e-10 * (1 + fabs(log_lik)));
    }
    for (size_t j = 0; f.model.type->store_scalar != NULL && j < n_dim; ++j) {
      CHECK_CLOSE(answers.v_stored[j], v_sum[j], 1e-8 * (1 + fabs(v_sum[j])));
    }
    free(answers.v_weight);
    fixture_free(&f);
  }
}

/* ||L^{-1} H_i||_F by the Hessian of each row: what a slot `weights` says, and
 * what the pass makes of curvatures for models without. */
static void weights_are_of_hessians(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    struct answers answers;
    double v_theta[N_DIM_MOST];
    const struct tb_batch none = {.n_batch = 0, .weight = 1};
    struct derivatives of_none, one;
    tall(&f, kind);
    const size_t n_dim = f.model.n_dim;
    fixture_point(&f, 0, v_theta);
    ask(&f, 2, &answers);
    if (kind == 3 || kind == 4) { /* by the expected one, or relative */
      free(answers.v_weight);
      fixture_free(&f);
      continue;
    }
    CHECK(answers.v_status[TB_WEIGHT_hessian] == TB_STATUS_ok);
    curvature_of(&f, v_theta, &none, 1, &of_none);
    for (size_t i = 0; i < N_TALL; i += 1009) {
      const struct tb_batch row = {.n_batch = 1, .start = i, .weight = 1};
      curvature_of(&f, v_theta, &row, 1, &one);
      double square = 0;
      for (size_t c = 0; c < n_dim; ++c) {
        double v_solved[N_DIM_MOST]; /* L v = column c of H */
        for (size_t j = 0; j < n_dim; ++j) {
          const size_t at = c * n_dim + j;
          double v = one.v_hessian[at] - of_none.v_hessian[at];
          for (size_t k = 0; k < j; ++k) {
            v -= 0.5 * v_solved[k];
          }
          v_solved[j] = v / (3 + (double)j);
          square += v_solved[j] * v_solved[j];
        }
      }
      CHECK_CLOSE(answers.v_weight[(size_t)TB_WEIGHT_hessian * N_TALL + i],
                  sqrt(square),
                  1e-7 * (1 + sqrt(square)));
    }
    free(answers.v_weight);
    fixture_free(&f);
  }
}

/* A user's Hessian that fails, or says what no status says, from a row on. */
static size_t fails_from;
static int fails_with;
static enum tb_status failing_curvature(const struct tb_native* p_native,
                                        void* p_scratch,
                                        const double* v_theta,
                                        const struct tb_batch* p_batch,
                                        double* v_hessian) {
  (void)p_native;
  (void)p_scratch;
  (void)v_theta;
  (void)v_hessian;
  return p_batch->n_batch > 0 && p_batch->start + p_batch->n_batch > fails_from
             ? (enum tb_status)(fails_with + (int)(p_batch->start / TB_CHUNK))
             : TB_STATUS_ok;
}

static void failures_are_told(struct check* p_check) {
  struct tb_native_type type = fixture_user;
  struct fixture f = {0};
  struct derivatives out;
  double v_theta[3] = {0}, v_chol[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  double* v_weight = check_alloc(N_TALL, sizeof *v_weight);
  const struct tb_batch all = {.n_batch = N_TALL, .weight = 1};
  type.curvature = failing_curvature;
  CHECK(fixture_native_create(&f.model, &type, N_TALL, 3) == TB_STATUS_ok);
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    fails_from = SIZE_MAX;
    CHECK(curvature_of(&f, v_theta, &all, n_threads, &out) == TB_STATUS_ok);
    /* the second and the third chunk: what the second says */
    fails_from = TB_CHUNK + 10;
    fails_with = TB_STATUS_memory - 1;
    CHECK(curvature_of(&f, v_theta, &all, n_threads, &out) == TB_STATUS_memory);
    CHECK(tb_model_weights(&f.model,
                           TB_WEIGHT_hessian,
                           v_theta,
                           v_chol,
                           v_weight,
                           n_threads) == TB_STATUS_memory);
    fails_with = 1000;
    CHECK(curvature_of(&f, v_theta, &all, n_threads, &out) ==
          TB_STATUS_callback);
    CHECK(tb_model_weights(&f.model,
                           TB_WEIGHT_leverage,
                           v_theta,
                           v_chol,
                           v_weight,
                           n_threads) == TB_STATUS_callback);
    CHECK(tb_model_weights(&f.model,
                           TB_WEIGHT_cubic,
                           v_theta,
                           v_chol,
                           v_weight,
                           n_threads) == TB_STATUS_unsupported);
  }
  f.model.type->destroy(&f.model);
  free(v_weight);
}

/* Parts before one that fails are in the total, others are not; a model that
 * calls R is asked by one thread. */
static enum tb_status count_part(void* p_what, const struct tb_part* p_part) {
  const size_t* p_fails = p_what;
  p_part->v_sum[0] += (double)p_part->batch.n_batch;
  return p_part->first / 10 >= *p_fails ? TB_STATUS_singular : TB_STATUS_ok;
}

static void parts_come_in_order(struct check* p_check) {
  struct fixture f;
  fixture_glm(&f, N_DATA, N_DIM, 1, 0);
  struct tb_model_type type = *f.model.type;
  const struct tb_model_type* real = f.model.type;
  f.model.type = &type;
  for (int n_threads = 1; n_threads <= 4; ++n_threads) {
    size_t fails = 7;
    double total = 0;
    const struct tb_batch rows = {.n_batch = 205, .weight = 1};
    const struct tb_batch none = {.n_batch = 0, .weight = 1};
    struct tb_pass pass = {.p_model = &f.model,
                           .part = count_part,
                           .p_what = &fails,
                           .n_part_row = 10,
                           .n_sum = 1,
                           .n_threads = n_threads};
    CHECK(tb_pass_begin(&pass) == TB_STATUS_ok);
    CHECK(tb_pass_over(&pass, &rows, &total) == TB_STATUS_singular);
    CHECK(total == 70);
    fails = SIZE_MAX;
    total = 0;
    CHECK(tb_pass_over(&pass, &rows, &total) == TB_STATUS_ok && total == 205);
    CHECK(tb_pass_over(&pass, &none, &total) == TB_STATUS_ok && total == 205);
    tb_pass_end(&pass);
  }
  type.flags |= TB_MODEL_MAIN_THREAD;
  struct tb_pass pass = {.p_model = &f.model, .n_part_row = 1, .n_threads = 4};
  CHECK(tb_pass_begin(&pass) == TB_STATUS_ok && pass.n_threads == 1);
  tb_pass_end(&pass);
  f.model.type = real;
  fixture_free(&f);
}

/* Blocks of different rows at the same time, by POSIX threads, which the thread
 * sanitizer sees: nothing that is shared is written to. */
struct worker {
  struct fixture* p_fixture;
  size_t number;
  struct derivatives curvature;
};

/* ---- sums of products ---- */

enum { N_COEF = 5, N_Z = N_COEF + 1 };

/* means and centred sums of products in long double, row by row */
static void plain_sums(const struct fixture* p,
                       long double* v_mean,
                       long double* v_sum,
                       long double* p_weight) {
  const double v_zero[N_Z] = {0};
  double v_row[N_Z + 1];
  *p_weight = 0;
  memset(v_mean, 0, N_Z * sizeof *v_mean);
  memset(v_sum, 0, N_Z * N_Z * sizeof *v_sum);
  for (int is_second = 0; is_second < 2; ++is_second) {
    for (size_t i = 0; i < N_TALL; ++i) {
      const struct tb_batch one = {.start = i, .n_batch = 1, .weight = 1};
      p->model.type->design(&p->model, &p->work, &one, v_zero, v_row, N_Z + 1);
      const long double root = v_row[N_Z];
      for (size_t j = 0; j < N_Z && !is_second; ++j) {
        v_mean[j] += root * v_row[j];
      }
      *p_weight += is_second ? 0 : root * root;
      for (size_t j = 0; j < N_Z && is_second; ++j) {
        for (size_t k = 0; k < N_Z; ++k) {
          v_sum[j * N_Z + k] +=
              (v_row[j] - root * v_mean[j]) * (v_row[k] - root * v_mean[k]);
        }
      }
    }
    for (size_t j = 0; j < N_Z && !is_second; ++j) {
      v_mean[j] /= *p_weight;
    }
  }
}

static void products_add_up(struct check* p_check) {
  struct fixture f;
  long double v_mean[N_Z], v_sum[N_Z * N_Z], weight;
  double v_first[N_Z * N_Z];
  tall(&f, 0);
  plain_sums(&f, v_mean, v_sum, &weight);
  for (int n_threads = 1; n_threads <= 3; ++n_threads) {
    double v_found[N_Z], v_square[N_Z * N_Z], total;
    CHECK(tb_model_product_sums(&f.model,
                                N_COEF,
                                v_found,
                                v_square,
                                &total,
                                n_threads) == TB_STATUS_ok);
    CHECK_CLOSE(total, (double)weight, 1e-10 * total);
    for (size_t j = 0; j < N_Z; ++j) {
      CHECK_CLOSE(v_found[j], (double)v_mean[j], 1e-12);
    }
    for (size_t j = 0; j < N_Z * N_Z; ++j) {
      CHECK_CLOSE(v_square[j], (double)v_sum[j], 1e-10 * total);
    }
    if (n_threads == 1) {
      memcpy(v_first, v_square, sizeof v_first);
    }
    CHECK(memcmp(v_first, v_square, sizeof v_first) == 0);
  }
  fixture_free(&f);
  double v_none[N_Z], total;
  tall(&f, 4); /* a model without such rows */
  CHECK(tb_model_product_sums(&f.model, 4, v_none, v_first, &total, 1) ==
        TB_STATUS_unsupported);
  fixture_free(&f);
}

static void work(void* p_context) {
  struct worker* p = p_context;
  struct tb_model* p_model = &p->p_fixture->model;
  const struct tb_model_type* type = p_model->type;
  const size_t n_row = N_TALL / 4;
  const struct tb_batch mine = {.n_batch = n_row,
                                .start = p->number * n_row,
                                .weight = 1};
  double v_theta[N_DIM_MOST], v_sum[N_DIM_MOST] = {0};
  double v_chol[N_DIM_MOST * N_DIM_MOST] = {0};
  double* v_weight = check_alloc(n_row, sizeof *v_weight);
  const size_t n_byte = type->pass_size != NULL
                            ? type->pass_size(p_model, n_row, 1)
                            : type->workspace_size(p_model, n_row);
  const struct tb_workspace work = {.p_scratch = check_alloc(1, n_byte)};
  fixture_point(p->p_fixture, 0, v_theta);
  curvature_of(p->p_fixture, v_theta, &mine, 1, &p->curvature);
  for (size_t j = 0; j < p_model->n_dim; ++j) {
    v_chol[j * p_model->n_dim + j] = 2;
  }
  if (type->weights != NULL) {
    type->weights(p_model,
                  &work,
                  TB_WEIGHT_hessian,
                  v_theta,
                  v_chol,
                  &mine,
                  v_weight);
  }
  if (type->store_scalar != NULL) {
    type->store_scalar(p_model, &work, v_theta, &mine, v_sum);
  }
  free(work.p_scratch);
  free(v_weight);
}

static void blocks_at_the_same_time(struct check* p_check) {
  for (size_t kind = 0; kind < N_KIND; ++kind) {
    struct fixture f;
    struct worker v_worker[4];
    void* v_context[4];
    tall(&f, kind);
    for (size_t k = 0; k < 4; ++k) {
      v_worker[k] = (struct worker){.p_fixture = &f, .number = k};
      v_context[k] = &v_worker[k];
    }
    CHECK(check_parallel(work, v_context, 4));
    for (size_t k = 0; k < 4; ++k) {
      struct worker alone = {.p_fixture = &f, .number = k};
      work(&alone);
      CHECK(memcmp(&alone.curvature,
                   &v_worker[k].curvature,
                   sizeof alone.curvature) == 0);
    }
    fixture_free(&f);
  }
}

static void alike_rows_are_tied(struct check* p_check) {
  const double v_x[] = {1, 2, 1, 1, 2, 0, 1, -0.0};
  const double v_y[] = {0, 5, 0, 1, 5, 0, 0, 0};
  const double* v_column[] = {v_x, v_y};
  const uint32_t v_known[] = {0, 1, 0, 2, 1, 3, 0, 4};
  const uint32_t v_firsts[] = {0, 1, 3, 5, 7};
  uint32_t v_group[8], v_first[8];
  size_t n_group = 0;
  CHECK(tb_tie_rows(v_column, 2, 8, v_group, v_first, &n_group) ==
        TB_STATUS_ok);
  CHECK(n_group == 5);
  CHECK(memcmp(v_group, v_known, sizeof v_known) == 0);
  CHECK(memcmp(v_first, v_firsts, sizeof v_firsts) == 0);
  /* rows without a column are all alike, and no rows are no group */
  CHECK(tb_tie_rows(v_column, 0, 8, v_group, v_first, &n_group) ==
        TB_STATUS_ok);
  CHECK(n_group == 1 && v_group[7] == 0);
  CHECK(tb_tie_rows(v_column, 2, 0, v_group, v_first, &n_group) ==
        TB_STATUS_ok);
  CHECK(n_group == 0);
}

const struct check_case check_passes[] = {
    {"blocks add up, whatever their size", blocks_add_up},
    {"a point that is not finite is left out alone", points_fail_alone},
    {"pass: curvatures add up", curvature_adds_up},
    {"pass: gradients and densities add up", rows_add_up},
    {"pass: weights are those of Hessians", weights_are_of_hessians},
    {"pass: threads do not matter", threads_do_not_matter},
    {"pass: stores do not matter", stores_do_not_matter},
    {"pass: diagonals are those of Hessians", diagonals_agree},
    {"pass: frames do not matter", frames_do_not_matter},
    {"pass: sums of products add up", products_add_up},
    {"pass: failures are told", failures_are_told},
    {"pass: parts come in order", parts_come_in_order},
    {"pass: blocks at the same time", blocks_at_the_same_time},
    {"pass: alike rows are tied", alike_rows_are_tied},
    {NULL, NULL}};
