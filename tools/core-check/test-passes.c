#include "check.h"
#include "fixture.h"

#include "base/clip.h"
#include "passes/points.h"

#include <math.h>
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

static void blocks_add_up(struct check* p_check) {
  const size_t v_block[] = {1, 7, 64, N_DATA};
  struct fixture f;
  fixture_glm(&f, N_DATA, N_DIM, 2, FIXTURE_WEIGHTS);
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

const struct check_case check_passes[] = {
    {"blocks add up, whatever their size", blocks_add_up},
    {"a point that is not finite is left out alone", points_fail_alone},
    {NULL, NULL}};
