#include "fixture.h"

#include "data/shelf.h"
#include "responses/response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct tb_store_type* fixture_store = NULL;

enum tb_status fixture_create(struct tb_model* p_model,
                              const struct tb_params* p_params) {
  return fixture_create_from(p_model, p_params, false);
}

enum tb_status fixture_create_from(struct tb_model* p_model,
                                   const struct tb_params* p_params,
                                   bool is_read_only) {
  const struct tb_store_type* p_dense = tb_store_find("dense");
  const struct tb_shelf shelf = {.type = fixture_store == NULL ? p_dense
                                                               : fixture_store,
                                 .is_read_only = is_read_only};
  return p_model->type->create(p_model, p_params, &shelf);
}

/* Normal entries of rows, rounded to what every type of store can keep. */
static void fill_rows(struct tb_rng* p_rng, double* v, size_t n) {
  tb_rng_fill_norm(p_rng, v, n);
  for (size_t j = 0; j < n; ++j) {
    v[j] = (double)(float)v[j];
  }
}

void fixture_finish(struct fixture* p) {
  size_t n_byte = 0;
  if (p->model.type->workspace_size != NULL) {
    n_byte = p->model.type->workspace_size(&p->model, p->model.n_data);
  }
  p->work.p_scratch = check_alloc(1, n_byte + 64);
  tb_rng_init(&p->rng, 1, 0, TB_STREAM_model);
  p->work.p_rng = &p->rng;
}

/* What the other columns of y may be, by their number; false: there are no
 * more. */
static bool more_columns(size_t k, double y, double v_y[TB_RESPONSE_MOST_Y]) {
  const double v_more[][2] = {{y, y},
                              {y + 0.7, y},
                              {INFINITY, y},
                              {0, 1},
                              {0.5 * y, 0},
                              {0, 2},
                              {y + 0.7, 3},
                              {0.5 * y, 1}};
  if (k >= sizeof v_more / sizeof v_more[0]) {
    return false;
  }
  v_y[0] = y;
  v_y[1] = v_more[k][0];
  v_y[2] = v_more[k][1];
  return true;
}

bool fixture_has_value(const struct tb_response_type* type, double y) {
  double v_y[TB_RESPONSE_MOST_Y];
  bool has = false;
  for (size_t k = 0; !has && more_columns(k, y, v_y); ++k) {
    has = type->outside(v_y, 1, 0) == 1;
  }
  return has;
}

void fixture_more_columns(const struct tb_response_type* type,
                          size_t n,
                          double* v_y) {
  for (size_t i = 0; i < n && tb_response_n_y(type) > 1; ++i) {
    double v_row[TB_RESPONSE_MOST_Y];
    fixture_row(type, i, v_y[i], v_row);
    for (size_t j = 1; j < tb_response_n_y(type); ++j) {
      v_y[j * n + i] = v_row[j];
    }
  }
}

void fixture_row(const struct tb_response_type* type,
                 size_t i,
                 double y,
                 double* v_y) {
  size_t n_fit = 0, at = 0;
  for (size_t k = 0; more_columns(k, y, v_y); ++k) {
    n_fit += type->outside(v_y, 1, 0) == 1;
  }
  for (size_t k = 0; n_fit > 0 && more_columns(k, y, v_y); ++k) {
    if (type->outside(v_y, 1, 0) == 1 && at++ == i % n_fit) {
      return;
    }
  }
}

int fixture_place(const char* name) {
  int place = 0;
  while (strcmp(tb_response_registry[place]->name, name) != 0) {
    ++place;
  }
  return place;
}

void fixture_glm(struct fixture* p,
                 size_t n_data,
                 size_t n_coef,
                 int family,
                 unsigned columns) {
  const bool has_sigma = columns & FIXTURE_SIGMA;
  const size_t n_dim = n_coef + has_sigma;
  double* v_x = check_alloc(n_data * n_coef, sizeof(double));
  const struct tb_response_type* type = tb_response_at_place(family);
  const size_t n_y = tb_response_n_y(type);
  double* v_y = check_alloc((2 + n_y) * n_data, sizeof(double));
  double* v_weight = v_y + n_y * n_data;
  double* v_offset = v_weight + n_data;
  double* v_prior = check_alloc(3 * n_dim, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 17, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, n_data * n_coef);
  for (size_t i = 0; i < n_data; ++i) {
    const double u = tb_rng_unif(&rng);
    v_y[i] = family == 0 ? 3 * u : family == 1 ? u < 0.4 : floor(4 * u);
    v_weight[i] = 0.5 + tb_rng_unif(&rng);
    v_offset[i] = tb_rng_norm(&rng);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = 1; /* normal */
    v_prior[n_dim + j] = 0.1 * (double)j;
    v_prior[2 * n_dim + j] = 2;
  }
  fixture_more_columns(type, n_data, v_y);
  const double number = family, v_aux[] = {has_sigma ? NAN : 1.5, 5};
  struct tb_param v_param[9] = {
      {"x", v_x, NULL, n_data * n_coef, n_data},
      {"y", v_y, NULL, n_y * n_data, n_data},
      {"response", &number, NULL, 1, 1},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim}};
  struct tb_params params = {v_param, 6};
  if (type->n_aux > 0) {
    v_param[params.n_param++] =
        (struct tb_param){"aux", v_aux, NULL, type->n_aux, type->n_aux};
  }
  struct tb_param v_more[10];
  memcpy(v_more, v_param, sizeof v_param);
  params.v_param = v_more;
  if (columns & FIXTURE_WEIGHTS) {
    v_more[params.n_param++] =
        (struct tb_param){"weights", v_weight, NULL, n_data, n_data};
  }
  if (columns & FIXTURE_OFFSET) {
    v_more[params.n_param++] =
        (struct tb_param){"offset", v_offset, NULL, n_data, n_data};
  }
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("glm");
  if (fixture_create_from(&p->model, &params, columns & FIXTURE_READ_ONLY) !=
      TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
  free(v_y);
  free(v_prior);
}

void fixture_gaussian(struct fixture* p, size_t n_data, size_t n_dim) {
  double* v_x = check_alloc(n_data * n_dim, sizeof(double));
  double* v_precision = check_alloc(2 * n_dim * n_dim, sizeof(double));
  double* v_prior = v_precision + n_dim * n_dim;
  double* v_mean = check_alloc(n_dim, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 18, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, n_data * n_dim);
  for (size_t i = 0; i < n_dim; ++i) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_precision[i * n_dim + j] = i == j ? 1.5 : 0.2;
    }
    v_prior[i * n_dim + i] = 0.25;
    v_mean[i] = 0.5;
  }
  const struct tb_param v_param[] = {
      {"x", v_x, NULL, n_data * n_dim, n_data},
      {"precision", v_precision, NULL, n_dim * n_dim, n_dim},
      {"prior_precision", v_prior, NULL, n_dim * n_dim, n_dim},
      {"prior_mean", v_mean, NULL, n_dim, n_dim}};
  const struct tb_params params = {v_param, 4};
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("gaussian");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
  free(v_precision);
  free(v_mean);
}

void fixture_ica(struct fixture* p, size_t n_data, size_t n_source) {
  double* v_x = check_alloc(n_data * n_source, sizeof(double));
  const double prior_sd = 0.9;
  struct tb_rng rng;
  tb_rng_init(&rng, 20, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, n_data * n_source);
  const struct tb_param v_param[] = {
      {"x", v_x, NULL, n_data * n_source, n_data},
      {"prior_sd", &prior_sd, NULL, 1, 1}};
  const struct tb_params params = {v_param, 2};
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("ica");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
}

/* classes from 0, every one of which some row has */
static void fill_classes(struct tb_rng* p_rng,
                         size_t n_data,
                         size_t n_class,
                         double* v_class) {
  for (size_t i = 0; i < n_data; ++i) {
    v_class[i] =
        (double)(i < n_class ? i : tb_rng_index(p_rng, (uint32_t)n_class));
  }
}

void fixture_classes(struct fixture* p,
                     size_t n_data,
                     int head,
                     size_t n_class,
                     unsigned columns) {
  enum { N_COEF = 4, MOST = 5 };
  const size_t n_dim =
      head == 0 ? N_COEF * (n_class - 1) : N_COEF + n_class - 1;
  double* v_x = check_alloc(n_data * (N_COEF + 3), sizeof(double));
  double* v_class = v_x + n_data * N_COEF;
  double* v_weight = v_class + n_data;
  double* v_offset = v_weight + n_data;
  double* v_prior = check_alloc(3 * n_dim, sizeof(double));
  const double v_center[N_COEF] = {head == 0 ? 0 : -0.2, 0.3, 0, 0.1};
  const double v_count[MOST] = {1, 2, 1.5, 1, 3};
  const double place = head, number = (double)n_class, intercept = 0;
  struct tb_rng rng;
  tb_rng_init(&rng, 24, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, n_data * N_COEF);
  fill_classes(&rng, n_data, n_class, v_class);
  for (size_t i = 0; i < n_data; ++i) {
    v_x[i] = head == 0 ? 1 : v_x[i];
    v_weight[i] = 0.5 + tb_rng_unif(&rng);
    v_offset[i] = tb_rng_norm(&rng);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    const bool is_flat = head != 0 && j >= N_COEF;
    v_prior[j] = !is_flat; /* normal, of thresholds by counts */
    v_prior[n_dim + j] = is_flat ? 0 : 0.1;
    v_prior[2 * n_dim + j] = is_flat ? 1 : 2;
  }
  struct tb_param v_param[12] = {
      {"x", v_x, NULL, n_data * N_COEF, n_data},
      {"class", v_class, NULL, n_data, n_data},
      {"n_class", &number, NULL, 1, 1},
      {"head", &place, NULL, 1, 1},
      {"center", v_center, NULL, N_COEF, N_COEF},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim}};
  struct tb_params params = {v_param, 8};
  v_param[params.n_param++] =
      head == 0 ? (struct tb_param){"intercept", &intercept, NULL, 1, 1}
                : (struct tb_param){"count", v_count, NULL, n_class, n_class};
  if (columns & FIXTURE_WEIGHTS) {
    v_param[params.n_param++] =
        (struct tb_param){"weights", v_weight, NULL, n_data, n_data};
  }
  if (columns & FIXTURE_OFFSET) {
    v_param[params.n_param++] =
        (struct tb_param){"offset", v_offset, NULL, n_data, n_data};
  }
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("classes");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
  free(v_prior);
}

/* Times in n_piece pieces of a unit each, of which some rows enter late, in the
 * piece where they end or before; a random walk's steps. */
void fixture_pieces(struct fixture* p,
                    size_t n_data,
                    size_t n_piece,
                    unsigned columns) {
  enum { N_COEF = 3, MOST = 8 };
  const size_t n_step = n_piece - 1, n_dim = N_COEF + n_step;
  const double v_n_cut[] = {0, (double)n_step - 1}, v_stratum[] = {0, 0, 1};
  double* v_x = check_alloc(n_data * (N_COEF + 5), sizeof(double));
  double *v_y = v_x + n_data * N_COEF, *v_weight = v_y + 3 * n_data;
  double* v_offset = v_weight + n_data;
  double v_prior[3 * (N_COEF + MOST)], v_cuts[MOST], v_basis[MOST * MOST];
  struct tb_rng rng;
  tb_rng_init(&rng, 25, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, n_data * N_COEF);
  for (size_t i = 0; (columns & FIXTURE_STRATA) && i < n_data; ++i) {
    v_x[2 * n_data + i] = i % 5 < 3;
  }
  for (size_t i = 0; i < n_data; ++i) {
    const double end = (double)n_piece * tb_rng_unif(&rng);
    v_y[i] = i % 7 == 0 ? ceil(end) : end; /* some at the end of a piece */
    v_y[n_data + i] = i % 3 == 0   ? 0
                      : i % 6 == 1 ? floor(0.5 * v_y[i])
                                   : v_y[i] * tb_rng_unif(&rng);
    v_y[2 * n_data + i] = tb_rng_unif(&rng) < 0.4;
    v_weight[i] = 0.5 + tb_rng_unif(&rng);
    v_offset[i] = 0.3 * tb_rng_norm(&rng);
  }
  for (size_t k = 0; k < n_step; ++k) {
    v_cuts[k] = (double)(k + 1);
    for (size_t m = 0; m < n_piece; ++m) {
      v_basis[k * n_piece + m] = (m > k) - (double)(k + 1) / (double)n_piece;
    }
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = 1;
    v_prior[n_dim + j] = j < N_COEF ? 0.1 : 0;
    v_prior[2 * n_dim + j] = j < N_COEF ? 2 : 0.5;
  }
  const size_t n_cut = n_step - (columns & FIXTURE_STRATA ? 1 : 0);
  struct tb_param v_param[11] = {
      {"x", v_x, NULL, n_data * N_COEF, n_data},
      {"y", v_y, NULL, 3 * n_data, n_data},
      {"cuts", v_cuts, NULL, n_cut, n_cut},
      {"basis", v_basis, NULL, n_piece * n_step, n_piece},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim}};
  struct tb_params params = {v_param, 7};
  if (columns & FIXTURE_WEIGHTS) {
    v_param[params.n_param++] =
        (struct tb_param){"weights", v_weight, NULL, n_data, n_data};
  }
  if (columns & FIXTURE_OFFSET) {
    v_param[params.n_param++] =
        (struct tb_param){"offset", v_offset, NULL, n_data, n_data};
  }
  if (columns & FIXTURE_STRATA) {
    v_param[params.n_param++] = (struct tb_param){"n_cut", v_n_cut, NULL, 2, 2};
    v_param[params.n_param++] =
        (struct tb_param){"stratum", v_stratum, NULL, N_COEF, N_COEF};
  }
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("pieces");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
}

/* ---- a user's model: y_i ~ N(x_i^T theta, 1), theta ~ N(0, I) ---- */

static enum tb_status user_prior(const struct tb_native* p_native,
                                 void* p_scratch,
                                 const double* v_theta,
                                 double* v_gradient,
                                 double* p_log_prior) {
  (void)p_scratch;
  for (size_t j = 0; j < p_native->n_dim; ++j) {
    v_gradient[j] = -v_theta[j];
    if (p_log_prior != NULL) {
      *p_log_prior -= 0.5 * v_theta[j] * v_theta[j];
    }
  }
  return TB_STATUS_ok;
}

/* r_i = y_i - x_i^T theta of a block */
static void user_errors(const struct tb_native* p_native,
                        const struct tb_batch* p_batch,
                        size_t first,
                        const double* v_padded,
                        double* v_out) {
  double v_y[TB_BLOCK];
  tb_array_dot(tb_array_find(p_native, "x"), p_batch, first, v_padded, v_out);
  tb_array_take(tb_array_find(p_native, "y"), p_batch, first, v_y);
  for (size_t k = 0; k < tb_block_size(p_batch, first); ++k) {
    v_out[k] = v_y[k] - v_out[k];
  }
}

static enum tb_status user_gradient(const struct tb_native* p_native,
                                    void* p_scratch,
                                    const double* v_theta,
                                    const struct tb_batch* p_batch,
                                    const struct tb_reference* p_reference,
                                    const struct tb_sums* p_sums) {
  const struct tb_array* p_x = tb_array_find(p_native, "x");
  const size_t stride = p_x->stride;
  double *v_padded = p_scratch, *v_other = v_padded + stride;
  double *v_sum = v_other + stride, *v_square = v_sum + stride;
  const bool is_stored = p_reference != NULL && p_reference->v_scalar != NULL;
  tb_array_pad(p_x, v_theta, v_padded);
  if (p_reference != NULL && !is_stored) {
    tb_array_pad(p_x, p_reference->v_theta, v_other);
  }
  memset(v_sum, 0, 2 * stride * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    double v_r[TB_BLOCK], v_before[TB_BLOCK] = {0};
    user_errors(p_native, p_batch, b, v_padded, v_r);
    if (is_stored) {
      tb_reference_take(p_native, p_reference, 1, p_batch, b, v_before);
    } else if (p_reference != NULL) {
      user_errors(p_native, p_batch, b, v_other, v_before);
    }
    for (size_t k = 0; k < tb_block_size(p_batch, b); ++k) {
      const double c = tb_batch_weight(p_batch, b + k);
      if (p_sums->p_log_lik != NULL) {
        *p_sums->p_log_lik -= 0.5 * c * v_r[k] * v_r[k];
      }
      if (p_sums->v_scalar != NULL) {
        p_sums->v_scalar[b + k] = v_r[k];
      }
      v_r[k] = c * (v_r[k] - v_before[k]);
    }
    tb_array_add(p_x,
                 p_batch,
                 b,
                 v_r,
                 v_sum,
                 p_sums->v_square == NULL ? NULL : v_square);
  }
  const struct tb_sums all = {.v_gradient = p_sums->v_gradient};
  tb_sums_add(&all, p_native->n_dim, 1, v_sum);
  for (size_t j = 0; p_sums->v_square != NULL && j < p_native->n_dim; ++j) {
    p_sums->v_square[j] += v_square[j];
  }
  return TB_STATUS_ok;
}

static enum tb_status user_log_lik(const struct tb_native* p_native,
                                   void* p_scratch,
                                   const double* v_theta,
                                   const struct tb_batch* p_batch,
                                   double* v_out) {
  tb_array_pad(tb_array_find(p_native, "x"), v_theta, p_scratch);
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    double v_r[TB_BLOCK];
    user_errors(p_native, p_batch, b, p_scratch, v_r);
    for (size_t k = 0; k < tb_block_size(p_batch, b); ++k) {
      v_out[b + k] = -0.5 * v_r[k] * v_r[k];
    }
  }
  return TB_STATUS_ok;
}

static size_t user_scratch_size(const struct tb_native* p_native,
                                size_t n_batch) {
  (void)n_batch;
  return 4 * tb_array_find(p_native, "x")->stride * sizeof(double);
}

/* x x^T and I, one row at a time */
static enum tb_status user_curvature(const struct tb_native* p_native,
                                     void* p_scratch,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     double* v_hessian) {
  const size_t n_dim = p_native->n_dim;
  (void)p_scratch;
  (void)v_theta;
  for (size_t j = 0; j < n_dim; ++j) {
    v_hessian[j * n_dim + j] += 1;
  }
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    const double* v_x =
        tb_array_row(tb_array_find(p_native, "x"), tb_batch_row(p_batch, k));
    for (size_t i = 0; i < n_dim * n_dim; ++i) {
      v_hessian[i] +=
          tb_batch_weight(p_batch, k) * v_x[i / n_dim] * v_x[i % n_dim];
    }
  }
  return TB_STATUS_ok;
}

static enum tb_status user_create(struct tb_native* p_native) {
  p_native->p_self = malloc(1);
  return p_native->p_self == NULL ? TB_STATUS_memory : TB_STATUS_ok;
}

static void user_destroy(struct tb_native* p_native) {
  free(p_native->p_self);
}

static enum tb_status user_add_scalar(const struct tb_native* p_native,
                                      void* p_scratch,
                                      const struct tb_batch* p_batch,
                                      const double* v_scalar,
                                      double* v_sum) {
  const struct tb_array* p_x = tb_array_find(p_native, "x");
  double* v_padded = p_scratch;
  memset(v_padded, 0, p_x->stride * sizeof(double));
  for (size_t b = 0; b < p_batch->n_batch; b += TB_BLOCK) {
    tb_array_add(p_x, p_batch, b, v_scalar + b, v_padded, NULL);
  }
  const struct tb_sums sums = {.v_gradient = v_sum};
  tb_sums_add(&sums, p_native->n_dim, 1, v_padded);
  return TB_STATUS_ok;
}

const struct tb_native_type fixture_user = {.version = TALLBAYES_API_VERSION,
                                            .name = "user",
                                            .prior = user_prior,
                                            .gradient = user_gradient,
                                            .log_lik = user_log_lik,
                                            .create = user_create,
                                            .destroy = user_destroy,
                                            .scratch_size = user_scratch_size,
                                            .curvature = user_curvature,
                                            .n_scalar = 1,
                                            .add_scalar = user_add_scalar};

enum tb_status fixture_native_create(struct tb_model* p_model,
                                     const struct tb_native_type* p_type,
                                     size_t n_data,
                                     size_t n_dim) {
  double* v_x = check_alloc(n_data * (n_dim + 1), sizeof(double));
  double* v_y = v_x + n_data * n_dim;
  const double rows = (double)n_data, dims = (double)n_dim;
  struct tb_rng rng;
  tb_rng_init(&rng, 23, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, n_data * (n_dim + 1));
  const struct tb_param v_param[] = {
      {"table", (const double*)(const void*)p_type, NULL, 0, 0},
      {"n_dim", &dims, NULL, 1, 1},
      {"n_data", &rows, NULL, 1, 1},
      {"x", v_x, NULL, n_data * n_dim, n_data},
      {"y", v_y, NULL, n_data, n_data}};
  const struct tb_params params = {v_param, 5};
  memset(p_model, 0, sizeof *p_model);
  p_model->type = tb_model_find("native");
  const enum tb_status status = fixture_create(p_model, &params);
  free(v_x);
  return status;
}

void fixture_native(struct fixture* p,
                    size_t n_data,
                    size_t n_dim,
                    bool is_minimal) {
  struct tb_native_type type = fixture_user;
  if (is_minimal) {
    type.create = NULL;
    type.destroy = NULL;
    type.curvature = NULL;
    type.n_scalar = 0;
    type.add_scalar = NULL;
  }
  memset(p, 0, sizeof *p);
  if (fixture_native_create(&p->model, &type, n_data, n_dim) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
}

void fixture_lda(struct fixture* p, size_t n_data, double coordinates) {
  double* v_start = check_alloc(n_data + 1, sizeof(double));
  double* v_word = check_alloc(10 * n_data, sizeof(double));
  double* v_count = v_word + 5 * n_data;
  const double v_shape[] = {3, 6}, alpha = 0.4, beta = 0.8;
  const double burn = 2, sweeps = 4;
  struct tb_rng rng;
  size_t n_cell = 0;
  tb_rng_init(&rng, 21, 0, TB_STREAM_noise);
  for (size_t d = 0; d < n_data; ++d) {
    for (size_t w = 0; w <= d % 5; ++w, ++n_cell) {
      v_word[n_cell] = (double)(w + d % 2);
      v_count[n_cell] = (double)(1 + tb_rng_index(&rng, 3));
    }
    v_start[d + 1] = (double)n_cell;
  }
  const struct tb_param v_param[] = {
      {"start", v_start, NULL, n_data + 1, n_data + 1},
      {"word", v_word, NULL, n_cell, n_cell},
      {"count", v_count, NULL, n_cell, n_cell},
      {"shape", v_shape, NULL, 2, 2},
      {"alpha", &alpha, NULL, 1, 1},
      {"beta", &beta, NULL, 1, 1},
      {"burn", &burn, NULL, 1, 1},
      {"sweeps", &sweeps, NULL, 1, 1},
      {"coordinates", &coordinates, NULL, 1, 1}};
  const struct tb_params params = {v_param, 9};
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("lda");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_start);
  free(v_word);
}

void fixture_network(struct fixture* p,
                     size_t n_data,
                     int activation,
                     int likelihood) {
  const char* const v_name[] = {"gaussian",
                                "binomial",
                                "categorical",
                                "spread",
                                "interval"};
  const int place = fixture_place(v_name[likelihood]);
  const struct tb_response_type* type = tb_response_at_place(place);
  const size_t n_y = tb_response_n_y(type);
  const double v_width[] = {2, 3, (double)tb_response_n_predictor(type, 3)};
  const double sampled = NAN;
  const double v_code[] = {activation, place};
  const size_t n_dim = 9 + 4 * (size_t)v_width[2] + type->n_aux;
  double* v_x = check_alloc((2 + n_y) * n_data, sizeof(double));
  double* v_y = v_x + 2 * n_data;
  double* v_prior = check_alloc(3 * n_dim, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 19, 0, TB_STREAM_noise);
  fill_rows(&rng, v_x, 2 * n_data);
  for (size_t i = 0; i < n_data; ++i) {
    const double u = tb_rng_unif(&rng);
    const bool is_number = likelihood == 0 || likelihood > 2;
    v_y[i] = is_number ? 3 * u : floor((likelihood + 1) * u);
  }
  fixture_more_columns(type, n_data, v_y);
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = 1; /* normal */
    v_prior[2 * n_dim + j] = 2;
  }
  const struct tb_param v_param[] = {
      {"x", v_x, NULL, 2 * n_data, n_data},
      {"y", v_y, NULL, n_y * n_data, n_data},
      {"widths", v_width, NULL, 3, 3},
      {"activation", v_code, NULL, 1, 1},
      {"response", v_code + 1, NULL, 1, 1},
      {"prior_kind", v_prior, NULL, n_dim, n_dim},
      {"prior_location", v_prior + n_dim, NULL, n_dim, n_dim},
      {"prior_scale", v_prior + 2 * n_dim, NULL, n_dim, n_dim},
      {"aux", &sampled, NULL, 1, 1}};
  const struct tb_params params = {v_param, 8 + type->n_aux};
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("network");
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
  free(v_prior);
}

void fixture_factors(struct fixture* p, size_t n_data, const char* name) {
  const double n_user = 3, n_item = 2, rank = 2, alpha = 1.5, one = 1,
               every = 3;
  double* v_user = check_alloc(3 * n_data, sizeof(double));
  double* v_item = v_user + n_data;
  double* v_rating = v_item + n_data;
  struct tb_rng rng;
  tb_rng_init(&rng, 23, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_rating, n_data);
  for (size_t i = 0; i < n_data; ++i) {
    v_user[i] = (double)(1 + tb_rng_index(&rng, 3));
    v_item[i] = (double)(1 + tb_rng_index(&rng, 2));
  }
  const struct tb_param v_param[] = {{"user", v_user, NULL, n_data, n_data},
                                     {"item", v_item, NULL, n_data, n_data},
                                     {"rating", v_rating, NULL, n_data, n_data},
                                     {"n_user", &n_user, NULL, 1, 1},
                                     {"n_item", &n_item, NULL, 1, 1},
                                     {"rank", &rank, NULL, 1, 1},
                                     {"alpha", &alpha, NULL, 1, 1},
                                     {"a0", &one, NULL, 1, 1},
                                     {"b0", &one, NULL, 1, 1},
                                     {"gibbs_every", &every, NULL, 1, 1}};
  const struct tb_params params = {v_param, 10};
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find(name);
  if (fixture_create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_user);
}

void fixture_free(struct fixture* p) {
  p->model.type->destroy(&p->model);
  free(p->work.p_scratch);
}

void fixture_point(const struct fixture* p, uint64_t seed, double* v_theta) {
  struct tb_rng rng;
  tb_rng_init(&rng, seed, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_theta, p->model.n_dim);
  for (size_t j = 0; j < p->model.n_dim; ++j) {
    v_theta[j] *= 0.3;
  }
}

double fixture_gradient(const struct fixture* p,
                        const double* v_theta,
                        double* v_gradient) {
  const struct tb_model_type* type = p->model.type;
  double log_posterior = 0;
  type->prior(&p->model, &p->work, v_theta, v_gradient, &log_posterior);
  for (size_t i = 0; i < p->model.n_data; ++i) {
    const struct tb_batch batch = {.n_batch = 1, .start = i, .weight = 1};
    const struct tb_sums sums = {.v_gradient = v_gradient,
                                 .p_log_lik = &log_posterior};
    type->gradient(&p->model, &p->work, v_theta, &batch, NULL, &sums);
  }
  return log_posterior;
}

/* ---- runs ---- */

enum tb_status fixture_run_create(const struct fixture* p,
                                  const struct fixture_run* p_what,
                                  struct tb_run** pp_run) {
  const size_t n_dim = p->model.n_dim;
  const char* kernel = p_what->kernel == NULL ? "sgld" : p_what->kernel;
  const char* estimator =
      p_what->estimator == NULL ? "simple" : p_what->estimator;
  const double smoothing = 0.1, replace = 1;
  const double v_beta[2] = {0.7, 0.9}, v_momentum_sd[2] = {2, 4};
  const double friction = 0.3, diffusion = 0.1, decay = 0.9, epsilon = 1e-5;
  const double size = p_what->size > 0 ? p_what->size : 10;
  const double steps = p_what->steps > 0 ? p_what->steps : 1;
  double* v_at = check_alloc(n_dim, sizeof(double));
  const struct tb_param v_kernel[] = {
      {"step_size", &p_what->step_size, NULL, 1, 1},
      {"sigma", &p_what->step_size, NULL, 1, 1},
      {"variant", &p_what->variant, NULL, 1, 1},
      {"integrator", &p_what->integrator, NULL, 1, 1},
      {"noise_smoothing", &smoothing, NULL, 1, 1},
      {"adapt", &p_what->adapt, NULL, 1, 1},
      {"sigma_direction", &p_what->sigma_direction, NULL, 1, 1},
      {"learning_rate", &p_what->learning_rate, NULL, 1, 1},
      {"beta", p_what->v_beta == NULL ? v_beta : p_what->v_beta, NULL, 2, 2},
      {"exact", &p_what->exact, NULL, 1, 1},
      {"momentum_sd",
       p_what->v_momentum_sd == NULL ? v_momentum_sd : p_what->v_momentum_sd,
       NULL,
       2,
       2},
      {"ratio", &p_what->ratio, NULL, 1, 1},
      {"steps", &steps, NULL, 1, 1},
      {"sigma", &p_what->step_size, NULL, 1, 1},
      {"friction", &friction, NULL, 1, 1},
      {"leapfrog", &p_what->leapfrog, NULL, 1, 1},
      {"noise_estimate", &p_what->variant, NULL, 1, 1},
      {"diffusion", &diffusion, NULL, 1, 1},
      {"decay", &decay, NULL, 1, 1},
      {"epsilon", &epsilon, NULL, 1, 1}};
  const double factorised = strcmp(kernel, "smh") == 0;
  const struct tb_param v_estimator[] = {
      {"at", v_at, NULL, n_dim, n_dim},
      {"refresh", &p_what->refresh, NULL, 1, 1},
      {"factorised", &factorised, NULL, 1, 1}};
  const struct tb_param v_scheme[] = {{"size", &size, NULL, 1, 1},
                                      {"replace", &replace, NULL, 1, 1}};
  struct tb_run_spec spec = {
      .p_model = (struct tb_model*)&p->model,
      .kernel = {kernel, {v_kernel, sizeof v_kernel / sizeof v_kernel[0]}},
      .estimator = {estimator, {v_estimator, 3}},
      .scheme = {"uniform", {v_scheme, 2}},
      .schedule = {"constant", {NULL, 0}},
      .n_chain = p_what->n_chain,
      .n_warmup = p_what->n_warmup,
      .n_sampling = p_what->n_sampling,
      .n_every = 1,
      .seed = p_what->seed,
      .likelihood_scale = 1,
      .n_bias_block = p_what->is_coupled ? 2 : 0,
      .n_bias_every = 1,
      .is_bias_coupled = p_what->is_coupled,
      .v_init = p_what->v_init};
  if (p_what->scheme != NULL) {
    spec.scheme = (struct tb_member){p_what->scheme,
                                     {p_what->v_scheme, p_what->n_scheme}};
  }
  if (strcmp(estimator, "full") == 0 || factorised != 0) {
    spec.scheme.name = NULL;
  }
  const enum tb_status status = tb_run_create(&spec, 1, pp_run);
  free(v_at);
  return status;
}

enum tb_status fixture_run_go(const struct fixture* p,
                              const struct fixture_run* p_what,
                              size_t n_slice,
                              double* v_draw) {
  const struct tb_recorder recorder = {.n_keep = p_what->n_sampling,
                                       .v_draw = v_draw};
  struct tb_run* p_run;
  enum tb_status status = fixture_run_create(p, p_what, &p_run);
  if (status == TB_STATUS_ok) {
    status = tb_run_start(p_run);
  }
  for (size_t k = 0;
       status == TB_STATUS_ok && k < p_what->n_warmup + p_what->n_sampling;
       k += n_slice) {
    tb_run_advance(p_run, n_slice, 1, &recorder);
    for (size_t c = 0; c < p_what->n_chain; ++c) {
      const struct tb_report report = tb_run_report(p_run, c);
      status = report.status != TB_STATUS_ok ? report.status : status;
    }
  }
  tb_run_destroy(p_run);
  return status;
}
