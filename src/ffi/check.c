/* Doors to the parts of the core that are useful, or tested, alone. */
#include "ffi/model.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/norm.h"
#include "data/store.h"
#include "gradients/gradient.h"
#include "kernels/kernel.h"
#include "priors/prior.h"
#include "schedules/schedule.h"
#include "subsampling/subsample.h"

#include <stdlib.h>
#include <string.h>

/* standard deviation of each column (divisor N - 1) */
SEXP ffi_column_sds(SEXP x) {
  size_t n_row, n_col;
  ffi_shape(x, &n_row, &n_col, "x");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_col));
  for (size_t j = 0; j < n_col; ++j) {
    REAL(out)[j] = tb_sd(REAL(x) + j * n_row, n_row);
  }
  UNPROTECT(1);
  return out;
}

/* ---- means and standard deviations of rows that come in parts ---- */

/* What a sum of so many digits as colMeans() takes is kept in: its double, the
 * rest that this leaves, and the plain sum of doubles, for each column. */
enum { SUM_high, SUM_low, SUM_plain, SUM_count };

/* sums: SUM_count x n_col, of the rows before; the same with those of x. */
SEXP ffi_add_sums(SEXP sums, SEXP x) {
  size_t n_row, n_col;
  ffi_shape(x, &n_row, &n_col, "x");
  const double* v_x = ffi_doubles(x, n_row * n_col, "x");
  const double* v_sum = ffi_doubles(sums, SUM_count * n_col, "sums");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, SUM_count, (int)n_col));
  for (size_t j = 0; j < n_col; ++j) {
    const double* v = v_x + j * n_row;
    const double* v_from = v_sum + SUM_count * j;
    double* v_to = REAL(out) + SUM_count * j;
    long double sum = (long double)v_from[SUM_high] + v_from[SUM_low];
    for (size_t i = 0; i < n_row; ++i) {
      sum += v[i];
    }
    v_to[SUM_high] = (double)sum;
    v_to[SUM_low] = (double)(sum - v_to[SUM_high]);
    v_to[SUM_plain] = tb_add_sum(v_from[SUM_plain], v, n_row);
  }
  UNPROTECT(1);
  return out;
}

/* 2 x n_col: means as colMeans() has them, and as tb_sd() does. */
SEXP ffi_sums_means(SEXP sums, SEXP n_row) {
  size_t n_sum, n_col;
  ffi_shape(sums, &n_sum, &n_col, "sums");
  const double* v_sum = ffi_doubles(sums, SUM_count * n_col, "sums");
  const double n = (double)ffi_as_count(n_row, "n_row");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, 2, (int)n_col));
  for (size_t j = 0; j < n_col; ++j) {
    const double* v = v_sum + SUM_count * j;
    const long double sum = (long double)v[SUM_high] + v[SUM_low];
    REAL(out)[2 * j] = (double)(sum / n);
    REAL(out)[2 * j + 1] = v[SUM_plain] / n;
  }
  UNPROTECT(1);
  return out;
}

/* What mean() adds to the mean of a vector: the sum of what its values, of
 * which there are n_row in all, are away from that. sum, away: of SUM_high and
 * SUM_low. */
static long double rough_mean(const double* v_sum, double n) {
  return ((long double)v_sum[SUM_high] + v_sum[SUM_low]) / n;
}

SEXP ffi_add_away(SEXP away, SEXP x, SEXP sum, SEXP n_row) {
  const size_t n_x = (size_t)Rf_xlength(x);
  const double* v_x = ffi_some_doubles(x, n_x, "x");
  const double* v_away = ffi_some_doubles(away, 2, "away");
  const double n = (double)ffi_as_count(n_row, "n_row");
  const long double mean = rough_mean(ffi_some_doubles(sum, 2, "sum"), n);
  long double total = (long double)v_away[SUM_high] + v_away[SUM_low];
  for (size_t i = 0; i < n_x; ++i) {
    total += v_x[i] - mean;
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 2));
  REAL(out)[SUM_high] = (double)total;
  REAL(out)[SUM_low] = (double)(total - REAL(out)[SUM_high]);
  UNPROTECT(1);
  return out;
}

SEXP ffi_away_mean(SEXP away, SEXP sum, SEXP n_row) {
  const double n = (double)ffi_as_count(n_row, "n_row");
  const double* v_away = ffi_some_doubles(away, 2, "away");
  const long double mean = rough_mean(ffi_some_doubles(sum, 2, "sum"), n);
  return Rf_ScalarReal((double)(mean + rough_mean(v_away, n)));
}

/* squares: of each column about its mean, of the rows before; those of x added
 */
SEXP ffi_add_squares(SEXP squares, SEXP x, SEXP mean) {
  size_t n_row, n_col;
  ffi_shape(x, &n_row, &n_col, "x");
  const double* v_x = ffi_doubles(x, n_row * n_col, "x");
  const double* v_square = ffi_doubles(squares, n_col, "squares");
  const double* v_mean = ffi_doubles(mean, n_col, "mean");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_col));
  for (size_t j = 0; j < n_col; ++j) {
    REAL(out)
    [j] = tb_add_squares(v_square[j], v_x + j * n_row, n_row, v_mean[j]);
  }
  UNPROTECT(1);
  return out;
}

/* sums of v - from and of (v - from)^2, in lanes that do not wait for each
 * other */
static TB_CLONES void away_sums(const double* restrict v,
                                size_t n,
                                double from,
                                double* restrict v_sum) {
  enum { LANES = 8 };
  double v_away[LANES] = {0}, v_square[LANES] = {0};
  const size_t n_whole = n / LANES * LANES;
  for (size_t i = 0; i < n_whole; i += LANES) {
    for (size_t k = 0; k < LANES; ++k) {
      const double away = v[i + k] - from;
      v_away[k] += away;
      v_square[k] += away * away;
    }
  }
  for (size_t i = n_whole; i < n; ++i) {
    const double away = v[i] - from;
    v_away[0] += away;
    v_square[0] += away * away;
  }
  v_sum[0] = v_sum[1] = 0;
  for (size_t k = 0; k < LANES; ++k) {
    v_sum[0] += v_away[k];
    v_sum[1] += v_square[k];
  }
}

/* Mean of a tile and the sum of squares about it, from sums about a place near
 * by; where it was not near, from sums about the mean. */
static double tile_mean(const double* v, size_t n, double from, double* p_sum) {
  double v_sum[2];
  away_sums(v, n, from, v_sum);
  double away = v_sum[0] / (double)n;
  *p_sum = v_sum[1] - away * v_sum[0];
  if (!(away * v_sum[0] <= 100 * *p_sum)) {
    from += away;
    away_sums(v, n, from, v_sum);
    away = v_sum[0] / (double)n;
    *p_sum = v_sum[1] - away * v_sum[0];
  }
  return from + away;
}

/* Means of the first n rows of each column of x, a matrix or one column, and
 * the sums of squares about them: list(mean, square), by tiles of rows that
 * stay in the cache. */
SEXP ffi_column_moments(SEXP x, SEXP n) {
  enum { TILE = 2048 };
  size_t n_row = (size_t)Rf_xlength(x), n_col = 1;
  if (Rf_isMatrix(x)) {
    ffi_shape(x, &n_row, &n_col, "x");
  } else {
    (void)ffi_some_doubles(x, n_row, "x");
  }
  const size_t n_used = ffi_as_count(n, "n");
  if (n_used > n_row) {
    ffi_fault("n");
  }
  SEXP out = PROTECT(ffi_list(2));
  double* v_mean = ffi_add_vector(out, "mean", n_col);
  double* v_square = ffi_add_vector(out, "square", n_col);
  for (size_t j = 0; j < n_col; ++j) {
    const double* v_x = REAL(x) + j * n_row;
    double mean = n_used > 0 ? v_x[0] : 0, square = 0;
    for (size_t first = 0; first < n_used; first += TILE) {
      const size_t n_here = n_used - first < TILE ? n_used - first : TILE;
      double own;
      const double here = tile_mean(v_x + first, n_here, mean, &own);
      const double share = (double)n_here / (double)(first + n_here);
      const double away = here - mean;
      square += own + away * away * (double)first * share;
      mean += away * share;
    }
    v_mean[j] = mean;
    v_square[j] = square;
  }
  UNPROTECT(1);
  return out;
}

static struct tb_rng parse_stream(SEXP seed, SEXP chain, SEXP purpose) {
  struct tb_rng rng;
  tb_rng_init(
      &rng,
      ffi_as_count(seed, "seed"),
      ffi_as_count(chain, "chain"),
      (enum tb_stream)ffi_as_code(purpose, TB_STREAM_init + 1, "purpose"));
  return rng;
}

/* n standard normals of a stream */
SEXP ffi_rng_norm(SEXP seed, SEXP chain, SEXP purpose, SEXP n) {
  struct tb_rng rng = parse_stream(seed, chain, purpose);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)ffi_as_count(n, "n")));
  tb_rng_fill_norm(&rng, REAL(out), (size_t)Rf_xlength(out));
  UNPROTECT(1);
  return out;
}

/* n uniform integers 1..size of a stream */
SEXP ffi_rng_index(SEXP seed, SEXP chain, SEXP purpose, SEXP n, SEXP size) {
  struct tb_rng rng = parse_stream(seed, chain, purpose);
  const size_t bound = ffi_as_count(size, "size");
  if (bound == 0) {
    ffi_fault("size");
  }
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)ffi_as_count(n, "n")));
  for (R_xlen_t i = 0; i < Rf_xlength(out); ++i) {
    REAL(out)[i] = 1 + (double)tb_rng_index(&rng, bound);
  }
  UNPROTECT(1);
  return out;
}

/* n minibatches of a scheme at theta: list(index, multiplier), n_max x n */
SEXP ffi_subsample_draw(SEXP model,
                        SEXP scheme,
                        SEXP theta,
                        SEXP seed,
                        SEXP n) {
  const struct tb_model* p_model = ffi_model(model);
  const struct tb_member member = ffi_member(scheme);
  const double* v_theta = ffi_doubles(theta, p_model->n_dim, "theta");
  const size_t n_draw = ffi_as_count(n, "n");
  struct tb_scheme one = {.type = tb_scheme_find(member.name),
                          .n_data = p_model->n_data};
  if (one.type == NULL) {
    ffi_fault("scheme");
  }
  if (v_theta == NULL && (one.type->flags & TB_SCHEME_STATE_DEPENDENT)) {
    ffi_fault("theta");
  }
  if (one.type->self_size != NULL) {
    const size_t n_self = one.type->self_size(&member.params, p_model->n_data);
    one.p_self = R_alloc(n_self + 64, 1);
    memset(one.p_self, 0, n_self);
  }
  if (one.type->init(&one, p_model, &member.params) != TB_STATUS_ok) {
    ffi_fault("scheme parameters");
  }
  const size_t n_state = one.type->state_size(&one);
  const struct tb_target target = {.p_model = p_model,
                                   .p_scheme = &one,
                                   .likelihood_scale = 1};
  struct tb_chain chain = {.p_target = &target, .n_dim = p_model->n_dim};
  chain.p_scheme_state = R_alloc(n_state + 64, 1);
  memset(chain.p_scheme_state, 0, n_state);
  chain.p_estimator_scratch = R_alloc(p_model->n_dim + 1, sizeof(double));
  chain.work.p_scratch = R_alloc(tb_model_work_size(p_model, TB_CHUNK) + 64, 1);
  tb_rng_init(&chain.v_rng[TB_STREAM_batch],
              ffi_as_count(seed, "seed"),
              0,
              TB_STREAM_batch);

  const int n_max = ffi_extent(one.n_size_max, "size");
  SEXP out = PROTECT(ffi_list(2));
  double* v_index = ffi_add_matrix(out, "index", one.n_size_max, n_draw);
  double* v_multiplier =
      ffi_add_matrix(out, "multiplier", one.n_size_max, n_draw);
  for (size_t t = 0; t < n_draw; ++t) {
    struct tb_batch batch;
    one.type->draw(&chain, v_theta, &batch);
    for (size_t k = 0; k < (size_t)n_max; ++k) {
      const bool is_in = k < batch.n_batch;
      v_index[t * (size_t)n_max + k] =
          is_in ? 1 + (double)tb_batch_row(&batch, k) : NA_REAL;
      v_multiplier[t * (size_t)n_max + k] =
          is_in ? tb_batch_weight(&batch, k) : NA_REAL;
    }
  }
  UNPROTECT(1);
  return out;
}

/* What an estimator is, see gradients/gradient.h. */
SEXP ffi_gradient_info(SEXP name) {
  const char* member = ffi_string(name, "name");
  const struct tb_estimator_type* type = tb_estimator_find(member);
  if (type == NULL) {
    ffi_fault(member);
  }
  SEXP out = PROTECT(ffi_list(2));
  ffi_add_flag(out, "has_memory", type->v_test[TB_TEST_full] == NULL);
  ffi_add_flag(out, "has_variance", type->flags & TB_ESTIMATOR_VARIANCE);
  UNPROTECT(1);
  return out;
}

/* What a kernel with these options asks of the rest of a run, see
 * kernels/kernel.h. n_dim: any that its parameters fit. */
SEXP ffi_kernel_info(SEXP kernel, SEXP n_dim) {
  const struct tb_member member = ffi_member(kernel);
  const size_t n = ffi_as_count(n_dim, "n_dim");
  struct tb_kernel one = {.type = tb_kernel_find(member.name)};
  if (one.type == NULL) {
    ffi_fault("kernel");
  }
  const size_t n_self = tb_kernel_self_size(one.type, n);
  one.p_self = R_alloc(n_self + 1, 1); /* of none, too */
  memset(one.p_self, 0, n_self);
  if (tb_kernel_init(&one, n, &member.params) != TB_STATUS_ok) {
    ffi_fault("kernel parameters");
  }
  SEXP out = PROTECT(ffi_list(9));
  /* sweeps accept and reject, too */
  ffi_add_flag(out,
               "is_metropolis",
               one.flags & (TB_KERNEL_METROPOLIS | TB_KERNEL_SWEEPS));
  ffi_add_flag(out, "uses_variance", one.flags & TB_KERNEL_VARIANCE);
  ffi_add_flag(out, "takes_schedule", !(one.flags & TB_KERNEL_CONSTANT_STEP));
  ffi_add_flag(out, "uses_loss", one.flags & TB_KERNEL_LOSS);
  ffi_add_flag(out, "needs_full_gradient", one.flags & TB_KERNEL_FULL_GRADIENT);
  ffi_add_flag(out, "has_tolerance", one.type->beyond != NULL);
  ffi_add_flag(out, "is_factorised", one.flags & TB_KERNEL_FACTORISED);
  ffi_add_flag(out, "has_companion", one.type->step_normal != NULL);
  ffi_add_flag(out, "sweeps", one.flags & TB_KERNEL_SWEEPS);
  UNPROTECT(1);
  return out;
}

/* What a scheme is, see subsampling/subsample.h. */
SEXP ffi_subsample_info(SEXP name) {
  const char* member = ffi_string(name, "name");
  const struct tb_scheme_type* type = tb_scheme_find(member);
  if (type == NULL) {
    ffi_fault(member);
  }
  SEXP out = PROTECT(ffi_list(1));
  ffi_add_flag(out, "looks_at_state", type->flags & TB_SCHEME_STATE_DEPENDENT);
  UNPROTECT(1);
  return out;
}

/* Of n steps after `from`, those that do not explore (schedules/schedule.h). */
SEXP ffi_schedule_collected(SEXP schedule, SEXP from, SEXP n) {
  const struct tb_member member = ffi_member(schedule);
  const size_t n_from = ffi_as_count(from, "from");
  const size_t n_step = ffi_as_count(n, "n");
  struct tb_schedule one = {.type = tb_schedule_find(member.name)};
  if (one.type == NULL) {
    ffi_fault("schedule");
  }
  if (one.type->explores == NULL) {
    return Rf_ScalarReal((double)n_step);
  }
  if (one.type->self_size != NULL) {
    const size_t n_self = one.type->self_size(&member.params);
    one.p_self = R_alloc(n_self + 64, 1);
    memset(one.p_self, 0, n_self);
  }
  if (one.type->init != NULL &&
      one.type->init(&one, &member.params) != TB_STATUS_ok) {
    ffi_fault("schedule parameters");
  }
  size_t n_collected = 0;
  for (size_t t = n_from; t < n_from + n_step; ++t) {
    n_collected += !one.type->explores(&one, t);
  }
  return Rf_ScalarReal((double)n_collected);
}

/* Names of the members of a registry, a NULL-terminated array of tables. */
#define REGISTRY_NAMES(registry)                                               \
  do {                                                                         \
    R_xlen_t n = 0;                                                            \
    while (registry[n] != NULL) {                                              \
      ++n;                                                                     \
    }                                                                          \
    SEXP out = PROTECT(Rf_allocVector(STRSXP, n));                             \
    for (R_xlen_t k = 0; k < n; ++k) {                                         \
      SET_STRING_ELT(out, k, Rf_mkChar(registry[k]->name));                    \
    }                                                                          \
    UNPROTECT(1);                                                              \
    return out;                                                                \
  } while (0)

/* Members of a family: "model", "prior", "gradient", "subsample", "kernel",
 * "schedule", "store". */
SEXP ffi_registry(SEXP family) {
  const char* name = ffi_string(family, "family");
  if (strcmp(name, "model") == 0) {
    REGISTRY_NAMES(tb_model_registry);
  }
  if (strcmp(name, "prior") == 0) {
    REGISTRY_NAMES(tb_prior_registry);
  }
  if (strcmp(name, "gradient") == 0) {
    REGISTRY_NAMES(tb_estimator_registry);
  }
  if (strcmp(name, "subsample") == 0) {
    REGISTRY_NAMES(tb_scheme_registry);
  }
  if (strcmp(name, "kernel") == 0) {
    REGISTRY_NAMES(tb_kernel_registry);
  }
  if (strcmp(name, "schedule") == 0) {
    REGISTRY_NAMES(tb_schedule_registry);
  }
  if (strcmp(name, "store") == 0) {
    REGISTRY_NAMES(tb_store_registry);
  }
  ffi_fault(name);
}
