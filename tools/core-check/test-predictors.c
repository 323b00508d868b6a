/* Rows with two predictors: what is beyond second order, weights, variables */
#include "check.h"
#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROW = 131, N_RESPONSE = 7 };

static const char* const v_response[N_RESPONSE] = {"gaussian_sigma",
                                                   "student_sigma",
                                                   "neg_binomial_2_shape",
                                                   "Gamma_shape",
                                                   "beta_phi",
                                                   "zero_inflated_poisson",
                                                   "zero_inflated_negbinomial"};

static void make(struct fixture* p, size_t kind) {
  fixture_predictors(p,
                     N_ROW,
                     v_response[kind % N_RESPONSE],
                     kind % 2 == 0,
                     (unsigned)kind % 4);
}

static void expansions_add_up(struct check* p_check) {
  for (size_t kind = 0; kind < 2 * N_RESPONSE; ++kind) {
    struct fixture f;
    make(&f, kind);
    fixture_check_expansion(p_check, &f, kind);
    fixture_free(&f);
  }
}

/* positive, whatever Sigma, and 0 where rows have no variance */
static void weights_are_weights(struct check* p_check) {
  for (size_t kind = 0; kind < 2 * N_RESPONSE; ++kind) {
    struct fixture f;
    make(&f, kind);
    const size_t n_dim = f.model.n_dim;
    double v_theta[FIXTURE_MOST_DIM], v_out[N_ROW], v_more[N_ROW];
    double v_sigma[FIXTURE_MOST_DIM * FIXTURE_MOST_DIM] = {0};
    const struct tb_batch all = {.n_batch = N_ROW, .weight = 1};
    fixture_point(&f, kind, v_theta);
    for (int type = TB_WEIGHT_robust; type <= TB_WEIGHT_cubic; ++type) {
      memset(v_sigma, 0, sizeof v_sigma);
      CHECK(f.model.type->weights(&f.model,
                                  &f.work,
                                  (enum tb_weight_type)type,
                                  v_theta,
                                  v_sigma,
                                  &all,
                                  v_out) == TB_STATUS_ok);
      for (size_t i = 0; i < N_ROW; ++i) {
        CHECK(v_out[i] == 0);
      }
      /* of a power of the scale, where curvatures hardly change */
      for (int size = 0; size < 2; ++size) {
        for (size_t j = 0; j < n_dim; ++j) {
          v_sigma[j * (n_dim + 1)] = size == 0 ? 1e-8 : 4e-8;
        }
        CHECK(f.model.type->weights(&f.model,
                                    &f.work,
                                    (enum tb_weight_type)type,
                                    v_theta,
                                    v_sigma,
                                    &all,
                                    size == 0 ? v_out : v_more) ==
              TB_STATUS_ok);
      }
      for (size_t i = 0; i < N_ROW; ++i) {
        const double ratio = type == TB_WEIGHT_robust ? 4 : 8;
        CHECK(v_out[i] > 0 && isfinite(v_out[i]));
        CHECK_CLOSE(v_more[i] / v_out[i], ratio, 0.02 * ratio);
      }
    }
    CHECK(f.model.type->weights(&f.model,
                                &f.work,
                                TB_WEIGHT_leverage,
                                v_theta,
                                v_sigma,
                                &all,
                                v_out) == TB_STATUS_unsupported);
    fixture_free(&f);
  }
}

/* intercepts at x = 0, whose predictors are the same */
static void variables_are_at_zero(struct check* p_check) {
  struct fixture f;
  make(&f, 0);
  double v_theta[FIXTURE_MOST_DIM], v_natural[FIXTURE_MOST_DIM];
  fixture_point(&f, 3, v_theta);
  CHECK(!f.model.is_natural);
  f.model.type->constrain(&f.model, v_theta, v_natural);
  CHECK_CLOSE(v_natural[0],
              v_theta[0] - 0.3 * v_theta[1] + 0.3 * v_theta[2],
              1e-15);
  CHECK_CLOSE(v_natural[3], v_theta[3] - 0.3 * v_theta[4], 1e-15);
  CHECK(v_natural[1] == v_theta[1] && v_natural[4] == v_theta[4]);
  fixture_free(&f);
  make(&f, 7); /* the same response without intercepts */
  CHECK(f.model.is_natural);
  fixture_free(&f);
}

static void refuses(struct check* p_check) {
  const double v_x[] = {1, 1, 1, 1}, v_prior[] = {0, 0}, v_one[] = {1, 1};
  const double v_y[] = {0.5, 1}, v_zero[] = {0, 0};
  const double of_two = fixture_place("gaussian_sigma");
  const double of_counts = fixture_place("zero_inflated_poisson");
  const double of_classes = fixture_place("categorical");
  const double v_width[][2] = {{1, 1}, {2, 0}, {1, 2}, {0.5, 1.5}, {1, NAN}};
  const double v_at[][2] = {{0, NAN}, {1, NAN}, {-1, 0}, {0.5, 0}};
  const struct {
    const double* p_response;
    size_t width, at;
  } v_case[] = {{&of_two, 0, 0},
                {&of_two, 1, 0},
                {&of_two, 2, 0},
                {&of_two, 3, 0},
                {&of_two, 4, 0},
                {&of_two, 0, 1},
                {&of_two, 0, 2},
                {&of_two, 0, 3},
                {&of_counts, 0, 0},
                {&of_classes, 0, 0}};
  for (size_t k = 0; k < sizeof v_case / sizeof *v_case; ++k) {
    const struct tb_param v_param[] = {
        {"x", v_x, NULL, 4, 2},
        {"y", v_y, NULL, 2, 2},
        {"response", v_case[k].p_response, NULL, 1, 1},
        {"width", v_width[v_case[k].width], NULL, 2, 2},
        {"intercept", v_at[v_case[k].at], NULL, 2, 2},
        {"center", v_zero, NULL, 2, 2},
        {"prior_kind", v_prior, NULL, 2, 2},
        {"prior_location", v_prior, NULL, 2, 2},
        {"prior_scale", v_one, NULL, 2, 2}};
    const struct tb_params params = {v_param, 9};
    struct tb_model model = {.type = tb_model_find("predictors")};
    CHECK(fixture_create(&model, &params) ==
          (k == 0 ? TB_STATUS_ok : TB_STATUS_argument));
    if (k == 0) {
      model.type->destroy(&model);
    }
    CHECK(model.p_self == NULL);
  }
}

const struct check_case check_predictors[] = {
    {"expansions add up to all rows", expansions_add_up},
    {"weights are those of posterior scales", weights_are_weights},
    {"variables are at 0", variables_are_at_zero},
    {"refuses parameters it cannot use", refuses},
    {NULL, NULL}};
