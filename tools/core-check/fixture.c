#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fixture_finish(struct fixture* p) {
  size_t n_byte = 0;
  if (p->model.type->workspace_size != NULL) {
    n_byte = p->model.type->workspace_size(&p->model, p->model.n_data);
  }
  p->work.p_scratch = check_alloc(1, n_byte + 64);
  tb_rng_init(&p->rng, 1, 0, TB_STREAM_model);
  p->work.p_rng = &p->rng;
}

void fixture_glm(struct fixture* p,
                 size_t n_data,
                 size_t n_coef,
                 int family,
                 unsigned columns) {
  const bool has_sigma = columns & FIXTURE_SIGMA;
  const size_t n_dim = n_coef + has_sigma;
  double* v_x = check_alloc(n_data * n_coef, sizeof(double));
  double* v_y = check_alloc(3 * n_data, sizeof(double));
  double* v_weight = v_y + n_data;
  double* v_offset = v_weight + n_data;
  double* v_prior = check_alloc(3 * n_dim, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 17, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_x, n_data * n_coef);
  for (size_t i = 0; i < n_data; ++i) {
    const double u = tb_rng_unif(&rng);
    v_y[i] = family == 0 ? 3 * u : family == 1 ? u < 0.4 : floor(4 * u);
    v_weight[i] = 0.5 + tb_rng_unif(&rng);
    v_offset[i] = tb_rng_norm(&rng);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = 1; /* normal */
    v_prior[n_dim + j] = 0.1 * (double) j;
    v_prior[2 * n_dim + j] = 2;
  }
  const double number = family, sample = has_sigma, sigma = 1.5;
  struct tb_param v_param[9] = {
    { "x", v_x, n_data * n_coef, n_data },
    { "y", v_y, n_data, n_data },
    { "family", &number, 1, 1 },
    { "sigma", &sigma, 1, 1 },
    { "sample_sigma", &sample, 1, 1 },
    { "prior_kind", v_prior, n_dim, n_dim },
    { "prior_location", v_prior + n_dim, n_dim, n_dim },
    { "prior_scale", v_prior + 2 * n_dim, n_dim, n_dim }
  };
  struct tb_params params = { v_param, 8 };
  struct tb_param v_more[10];
  memcpy(v_more, v_param, 8 * sizeof(struct tb_param));
  params.v_param = v_more;
  if (columns & FIXTURE_WEIGHTS) {
    v_more[params.n_param++] =
      (struct tb_param) { "weights", v_weight, n_data, n_data };
  }
  if (columns & FIXTURE_OFFSET) {
    v_more[params.n_param++] =
      (struct tb_param) { "offset", v_offset, n_data, n_data };
  }
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("glm");
  if (p->model.type->create(&p->model, &params) != TB_STATUS_ok) {
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
  tb_rng_fill_norm(&rng, v_x, n_data * n_dim);
  for (size_t i = 0; i < n_dim; ++i) {
    for (size_t j = 0; j < n_dim; ++j) {
      v_precision[i * n_dim + j] = i == j ? 1.5 : 0.2;
    }
    v_prior[i * n_dim + i] = 0.25;
    v_mean[i] = 0.5;
  }
  const struct tb_param v_param[] = {
    { "x", v_x, n_data * n_dim, n_data },
    { "precision", v_precision, n_dim * n_dim, n_dim },
    { "prior_precision", v_prior, n_dim * n_dim, n_dim },
    { "prior_mean", v_mean, n_dim, n_dim }
  };
  const struct tb_params params = { v_param, 4 };
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("gaussian");
  if (p->model.type->create(&p->model, &params) != TB_STATUS_ok) {
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
  tb_rng_fill_norm(&rng, v_x, n_data * n_source);
  const struct tb_param v_param[] = { { "x", v_x, n_data * n_source, n_data },
                                      { "prior_sd", &prior_sd, 1, 1 } };
  const struct tb_params params = { v_param, 2 };
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("ica");
  if (p->model.type->create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
}

void fixture_network(struct fixture* p,
                     size_t n_data,
                     int activation,
                     int likelihood) {
  const double v_width[] = { 2, 3, likelihood == 2 ? 3 : 1 };
  const double has_sigma = likelihood == 0;
  const double v_code[] = { activation, likelihood };
  const size_t n_dim =
    9 + 4 * (size_t) v_width[2] + (likelihood == 0 ? 1 : 0);
  double* v_x = check_alloc(3 * n_data, sizeof(double));
  double* v_y = v_x + 2 * n_data;
  double* v_prior = check_alloc(3 * n_dim, sizeof(double));
  struct tb_rng rng;
  tb_rng_init(&rng, 19, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_x, 2 * n_data);
  for (size_t i = 0; i < n_data; ++i) {
    const double u = tb_rng_unif(&rng);
    v_y[i] = likelihood == 0 ? 3 * u : floor((likelihood + 1) * u);
  }
  for (size_t j = 0; j < n_dim; ++j) {
    v_prior[j] = 1; /* normal */
    v_prior[2 * n_dim + j] = 2;
  }
  const struct tb_param v_param[] = {
    { "x", v_x, 2 * n_data, n_data },
    { "y", v_y, n_data, n_data },
    { "widths", v_width, 3, 3 },
    { "activation", v_code, 1, 1 },
    { "likelihood", v_code + 1, 1, 1 },
    { "sample_sigma", &has_sigma, 1, 1 },
    { "prior_kind", v_prior, n_dim, n_dim },
    { "prior_location", v_prior + n_dim, n_dim, n_dim },
    { "prior_scale", v_prior + 2 * n_dim, n_dim, n_dim }
  };
  const struct tb_params params = { v_param, 9 };
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find("network");
  if (p->model.type->create(&p->model, &params) != TB_STATUS_ok) {
    abort();
  }
  fixture_finish(p);
  free(v_x);
  free(v_prior);
}

void fixture_factors(struct fixture* p, size_t n_data, const char* name) {
  const double n_user = 3, n_item = 2, rank = 2, alpha = 1.5, one = 1, every = 3;
  double* v_user = check_alloc(3 * n_data, sizeof(double));
  double* v_item = v_user + n_data;
  double* v_rating = v_item + n_data;
  struct tb_rng rng;
  tb_rng_init(&rng, 23, 0, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, v_rating, n_data);
  for (size_t i = 0; i < n_data; ++i) {
    v_user[i] = (double) (1 + tb_rng_index(&rng, 3));
    v_item[i] = (double) (1 + tb_rng_index(&rng, 2));
  }
  const struct tb_param v_param[] = {
    { "user", v_user, n_data, n_data }, { "item", v_item, n_data, n_data },
    { "rating", v_rating, n_data, n_data }, { "n_user", &n_user, 1, 1 },
    { "n_item", &n_item, 1, 1 }, { "rank", &rank, 1, 1 },
    { "alpha", &alpha, 1, 1 }, { "a0", &one, 1, 1 }, { "b0", &one, 1, 1 },
    { "gibbs_every", &every, 1, 1 }
  };
  const struct tb_params params = { v_param, 10 };
  memset(p, 0, sizeof *p);
  p->model.type = tb_model_find(name);
  if (p->model.type->create(&p->model, &params) != TB_STATUS_ok) {
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
    const struct tb_batch batch = { .n_batch = 1, .start = i, .weight = 1 };
    const struct tb_sums sums = { .v_gradient = v_gradient,
                                  .p_log_lik = &log_posterior };
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
  const double v_beta[2] = { 0.7, 0.9 }, v_momentum_sd[2] = { 2, 4 };
  const double friction = 0.3, diffusion = 0.1, decay = 0.9, epsilon = 1e-5;
  const double size = p_what->size > 0 ? p_what->size : 10;
  const double steps = p_what->steps > 0 ? p_what->steps : 1;
  double* v_at = check_alloc(n_dim, sizeof(double));
  const struct tb_param v_kernel[] = {
    { "step_size", &p_what->step_size, 1, 1 },
    { "sigma", &p_what->step_size, 1, 1 },
    { "variant", &p_what->variant, 1, 1 },
    { "integrator", &p_what->integrator, 1, 1 },
    { "noise_smoothing", &smoothing, 1, 1 },
    { "adapt", &p_what->adapt, 1, 1 },
    { "sigma_direction", &p_what->sigma_direction, 1, 1 },
    { "learning_rate", &p_what->learning_rate, 1, 1 },
    { "beta", p_what->v_beta == NULL ? v_beta : p_what->v_beta, 2, 2 },
    { "exact", &p_what->exact, 1, 1 },
    { "momentum_sd",
      p_what->v_momentum_sd == NULL ? v_momentum_sd : p_what->v_momentum_sd,
      2,
      2 },
    { "ratio", &p_what->ratio, 1, 1 },
    { "steps", &steps, 1, 1 },
    { "sigma", &p_what->step_size, 1, 1 },
    { "friction", &friction, 1, 1 },
    { "leapfrog", &p_what->leapfrog, 1, 1 },
    { "noise_estimate", &p_what->variant, 1, 1 },
    { "diffusion", &diffusion, 1, 1 },
    { "decay", &decay, 1, 1 },
    { "epsilon", &epsilon, 1, 1 }
  };
  const struct tb_param v_estimator[] = { { "at", v_at, n_dim, n_dim },
                                          { "refresh", &p_what->refresh, 1,
                                            1 } };
  const struct tb_param v_scheme[] = { { "size", &size, 1, 1 },
                                       { "replace", &replace, 1, 1 } };
  struct tb_run_spec spec = {
    .p_model = (struct tb_model*) &p->model,
    .kernel = { kernel, { v_kernel, sizeof v_kernel / sizeof v_kernel[0] } },
    .estimator = { estimator, { v_estimator, 2 } },
    .scheme = { "uniform", { v_scheme, 2 } },
    .schedule = { "constant", { NULL, 0 } },
    .n_chain = p_what->n_chain,
    .n_warmup = p_what->n_warmup,
    .n_sampling = p_what->n_sampling,
    .n_every = 1,
    .seed = p_what->seed,
    .likelihood_scale = 1,
    .v_init = p_what->v_init
  };
  if (p_what->scheme != NULL) {
    spec.scheme = (struct tb_member){ p_what->scheme,
                                      { p_what->v_scheme, p_what->n_scheme } };
  }
  if (strcmp(estimator, "full") == 0) {
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
  const struct tb_recorder recorder = { .n_keep = p_what->n_sampling,
                                        .v_draw = v_draw };
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
