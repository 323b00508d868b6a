/* Rows with two predictors, on made-up data, and what is asked of expansions.
 */
#include "fixture.h"

#include "models/expansion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values that responses may have, one after the other. */
static void fill_y(const struct tb_response_type* type, size_t n, double* v_y) {
  const double v_some[] = {0.3, 2, 0, 0.6, 1, 5, -1.2, 0};
  const size_t n_some = sizeof v_some / sizeof *v_some;
  for (size_t i = 0, k = 0; i < n; ++k) {
    if (fixture_has_value(type, v_some[k % n_some])) {
      v_y[i++] = v_some[k % n_some];
    }
  }
}

void fixture_predictors(struct fixture* p,
                        size_t n_data,
                        const char* response,
                        bool has_intercepts,
                        unsigned columns) {
  enum { N_COEF = 5, MOST = N_COEF + TB_RESPONSE_MOST_AUX };
  const double place = fixture_place(response);
  const struct tb_response_type* type = tb_response_at_place(place);
  const size_t n_dim = N_COEF + type->n_aux;
  double* v_x = check_alloc(n_data * (N_COEF + 3), sizeof(double));
  double *v_y = v_x + n_data * N_COEF, *v_weight = v_y + n_data;
  double* v_offset = v_weight + n_data;
  double v_prior[3 * MOST];
  const double v_width[] = {3, 2}, v_known[] = {NAN, NAN};
  const double v_intercept[] = {has_intercepts ? 0 : NAN,
                                has_intercepts ? 0 : NAN};
  const double shift = has_intercepts ? 0.3 : 0;
  const double v_center[N_COEF] = {0, shift, -shift, 0, shift};
  struct tb_rng rng;
  tb_rng_init(&rng, 26, 0, TB_STREAM_noise);
  for (size_t i = 0; i < n_data * N_COEF; ++i) {
    v_x[i] = (double)(float)tb_rng_norm(&rng);
  }
  fill_y(type, n_data, v_y);
  for (size_t i = 0; i < n_data; ++i) {
    v_x[i] = has_intercepts ? 1 : v_x[i];
    v_x[3 * n_data + i] = has_intercepts ? 1 : v_x[3 * n_data + i];
    v_weight[i] = 0.5 + tb_rng_unif(&rng);
    v_offset[i] = 0.3 * tb_rng_norm(&rng);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = 1;
    v_prior[n_dim + j] = 0.1;
    v_prior[2 * n_dim + j] = 2;
  }
  struct tb_param v_param[12] = {
      {"x", v_x, NULL, n_data * N_COEF, n_data},
      {"y", v_y, NULL, n_data, n_data},
      {"response", &place, NULL, 1, 1},
      {"width", v_width, NULL, 2, 2},
      {"intercept", v_intercept, NULL, 2, 2},
      {"center", v_center, NULL, N_COEF, N_COEF},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim}};
  struct tb_params params = {v_param, 9};
  if (type->n_aux > 0) {
    v_param[params.n_param++] =
        (struct tb_param){"aux", v_known, NULL, type->n_aux, type->n_aux};
  }
  if (columns & FIXTURE_WEIGHTS) {
    v_param[params.n_param++] =
        (struct tb_param){"weights", v_weight, NULL, n_data, n_data};
  }
  if (columns & FIXTURE_OFFSET) {
    v_param[params.n_param++] =
        (struct tb_param){"offset", v_offset, NULL, n_data, n_data};
  }
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("predictors");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
}

static void gradient_of(const struct fixture* p,
                        const double* v_theta,
                        const struct tb_batch* p_batch,
                        double* v_gradient) {
  const struct tb_sums sums = {.v_gradient = v_gradient};
  memset(v_gradient, 0, p->model.n_dim * sizeof(double));
  (void)p->model.type
      ->gradient(&p->model, &p->work, v_theta, p_batch, NULL, &sums);
}

/* v_H against differences of gradients at v_at */
static void check_hessian(struct check* p_check,
                          const struct fixture* p,
                          const struct tb_batch* p_all,
                          double* v_at,
                          const double* v_H) {
  double v_up[FIXTURE_MOST_DIM], v_down[FIXTURE_MOST_DIM];
  for (size_t j = 0; j < p->model.n_dim; ++j) {
    const double h = 1e-5, here = v_at[j];
    v_at[j] = here + h;
    gradient_of(p, v_at, p_all, v_up);
    v_at[j] = here - h;
    gradient_of(p, v_at, p_all, v_down);
    v_at[j] = here;
    for (size_t i = 0; i < p->model.n_dim; ++i) {
      const double slope = (v_down[i] - v_up[i]) / (2 * h);
      CHECK_CLOSE(v_H[i * p->model.n_dim + j], slope, 1e-5 * (1 + fabs(slope)));
    }
  }
}

void fixture_check_expansion(struct check* p_check,
                             const struct fixture* p,
                             uint64_t seed) {
  const struct tb_model* p_model = &p->model;
  const size_t n_dim = p_model->n_dim, n_row = p_model->n_data;
  const struct tb_model_expansion* type = p_model->type->expansion;
  double v_at[FIXTURE_MOST_DIM], v_theta[FIXTURE_MOST_DIM];
  double v_there[FIXTURE_MOST_DIM], v_beyond[FIXTURE_MOST_DIM] = {0};
  double v_gradient[FIXTURE_MOST_DIM] = {0};
  double v_H[FIXTURE_MOST_DIM * FIXTURE_MOST_DIM] = {0};
  double log_lik = 0, sum = 0;
  fixture_point(p, seed, v_at);
  fixture_point(p, seed + 50, v_theta);
  void* p_record = check_alloc(n_row, type->record_size(p_model));
  double* v_each = check_alloc(n_row, sizeof(double));
  const struct tb_batch all = {.n_batch = n_row, .weight = 1};
  const struct tb_curvature sums = {.p_log_lik = &log_lik,
                                    .v_gradient = v_gradient,
                                    .v_hessian = v_H};
  CHECK(type->expand(p_model, v_at, &all, p_record, &sums, 2) == TB_STATUS_ok);
  /* up to constants: from one place to another */
  double log_lik_there = 0, sum_there = 0;
  double v_none[FIXTURE_MOST_DIM * FIXTURE_MOST_DIM] = {0};
  const struct tb_curvature there = {.p_log_lik = &log_lik_there,
                                     .v_gradient = v_there,
                                     .v_hessian = v_none};
  memset(v_there, 0, sizeof v_there);
  CHECK(type->expand(p_model, v_theta, &all, p_record, &there, 1) ==
        TB_STATUS_ok);
  p_model->type->log_lik(p_model, &p->work, v_at, &all, v_each);
  for (size_t i = 0; i < n_row; ++i) {
    sum += v_each[i];
  }
  p_model->type->log_lik(p_model, &p->work, v_theta, &all, v_each);
  for (size_t i = 0; i < n_row; ++i) {
    sum_there += v_each[i];
  }
  CHECK_CLOSE(log_lik - log_lik_there,
              sum - sum_there,
              1e-10 * (1 + fabs(sum) + fabs(sum_there)));
  gradient_of(p, v_at, &all, v_there);
  for (size_t j = 0; j < n_dim; ++j) {
    CHECK_CLOSE(v_gradient[j], v_there[j], 1e-10 * (1 + fabs(v_there[j])));
  }
  check_hessian(p_check, p, &all, v_at, v_H);
  const struct tb_sums more = {.v_gradient = v_beyond};
  memset(v_none, 0, sizeof v_none);
  const struct tb_curvature again = {.v_gradient = v_there,
                                     .v_hessian = v_none};
  CHECK(type->expand(p_model, v_at, &all, p_record, &again, 1) == TB_STATUS_ok);
  CHECK(type->beyond(p_model, &p->work, p_record, v_at, v_theta, &all, &more) ==
        TB_STATUS_ok);
  gradient_of(p, v_theta, &all, v_there);
  for (size_t i = 0; i < n_dim; ++i) {
    double want = v_there[i] - v_gradient[i];
    for (size_t j = 0; j < n_dim; ++j) {
      want += v_H[i * n_dim + j] * (v_theta[j] - v_at[j]);
    }
    CHECK_CLOSE(v_beyond[i], want, 1e-8 * (1 + fabs(v_there[i])));
  }
  free(v_each);
  free(p_record);
}
