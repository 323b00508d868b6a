#include "priors/mixture-law.h"

#include "base/chol.h"
#include "base/norm.h"
#include "base/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of fewer than one in so many it does not pay */
enum { SHARE_BARE = 8 };

enum { N_ARRAY = 5, N_MATRIX = 3 }; /* n_coef each, and squares of it */

size_t tb_mixture_given_size(const struct tb_mixtures* p_mixtures,
                             size_t n_coef) {
  return n_coef * (N_MATRIX * n_coef + N_ARRAY) +
         tb_mixtures_n_work(p_mixtures);
}

struct tb_mixture_given
tb_mixture_given_at(const struct tb_mixtures* p_mixtures,
                    size_t n_coef,
                    double* v_scratch) {
  (void)p_mixtures;
  double* v_upper = v_scratch + N_ARRAY * n_coef;
  return (struct tb_mixture_given){.v_precision = v_scratch,
                                   .v_location = v_scratch + n_coef,
                                   .v_mean = v_scratch + 2 * n_coef,
                                   .v_z = v_scratch + 3 * n_coef,
                                   .v_order = v_scratch + 4 * n_coef,
                                   .v_upper = v_upper,
                                   .v_part = v_upper + n_coef * n_coef,
                                   .v_hold = v_upper + 2 * n_coef * n_coef,
                                   .v_work =
                                       v_upper + N_MATRIX * n_coef * n_coef};
}

void tb_mixture_law_scales(const struct tb_mixture_law* p_law,
                           const double* v_phi,
                           struct tb_mixture_given* p_given) {
  const size_t n_byte = p_law->n_coef * sizeof(double);
  memset(p_given->v_precision, 0, n_byte);
  memcpy(p_given->v_location, p_law->v_center, n_byte);
  tb_mixtures_normal(p_law->p_mixtures,
                     v_phi,
                     p_given->v_location,
                     p_given->v_precision,
                     p_given->v_work);
}

void tb_mixture_law_gradient(const struct tb_mixture_law* p_law,
                             const struct tb_mixture_given* p_given,
                             double* v_out) {
  const size_t n = p_law->n_coef;
  double* v_away = p_given->v_z;
  for (size_t j = 0; j < n; ++j) {
    v_away[j] = p_given->v_location[j] - p_law->v_center[j];
  }
  memcpy(v_out, p_law->v_slope, n * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    const double* v_column = p_law->v_bend + i * n;
    for (size_t j = 0; v_away[i] != 0 && j < n; ++j) {
      v_out[j] -= v_column[j] * v_away[i];
    }
  }
}

void tb_mixture_base_free(struct tb_mixture_law* p_law) {
  free(p_law->base.v_order);
  free(p_law->base.v_upper);
  free(p_law->base.v_held);
  p_law->base = (struct tb_mixture_base){0};
}

/* those that no mixture covers first, each in order; their number */
static size_t base_order(const struct tb_mixture_law* p_law, size_t* v_order) {
  const struct tb_mixtures* p_mixtures = p_law->p_mixtures;
  const size_t n = p_law->n_coef, n_bare = n - p_mixtures->n_covered;
  size_t n_first = 0, n_last = n_bare;
  memset(v_order, 0, n * sizeof(size_t));
  for (size_t i = 0; i < p_mixtures->n_covered; ++i) {
    v_order[p_mixtures->v_at[i]] = 1;
  }
  size_t* v_covered = v_order + n; /* the marks */
  memcpy(v_covered, v_order, n * sizeof(size_t));
  for (size_t j = 0; j < n; ++j) {
    v_order[v_covered[j] == 1 ? n_last++ : n_first++] = j;
  }
  return n_bare;
}

/* C, the base's part of Z, and what it leaves. */
static enum tb_status
base_hold(struct tb_mixture_law* p_law, size_t n_held, const double* v_held) {
  struct tb_mixture_base* p = &p_law->base;
  const size_t n = p_law->n_coef, n_bare = p->n_bare;
  const double* v_upper = p->v_upper;
  if (n_held == 0) {
    return TB_STATUS_ok;
  }
  p->v_held = malloc(2 * n * n_held * sizeof(double));
  if (p->v_held == NULL) {
    return TB_STATUS_memory;
  }
  p->n_held = n_held;
  p->v_rest = p->v_held + n * n_held;
  memcpy(p->v_held, v_held, n * n_held * sizeof(double));
  for (size_t k = 0; k < n_held; ++k) {
    double* v_out = p->v_rest + k * n;
    for (size_t j = 0; j < n; ++j) {
      v_out[j] = v_held[k * n + tb_mixture_at(p_law, j)];
      for (size_t i = 0; i < j && i < n_bare; ++i) {
        v_out[j] -= v_upper[j * n + i] * v_out[i];
      }
      v_out[j] /= j < n_bare ? v_upper[j * n + j] : 1;
    }
  }
  return TB_STATUS_ok;
}

static enum tb_status base_eliminate(struct tb_mixture_law* p_law) {
  const size_t n = p_law->n_coef;
  struct tb_mixture_base* p = &p_law->base;
  if ((n - p_law->p_mixtures->n_covered) * SHARE_BARE < n) {
    return TB_STATUS_ok;
  }
  p->v_order = malloc(2 * n * sizeof(size_t)); /* and scratch */
  p->v_upper = calloc(n * n, sizeof(double));
  if (p->v_order == NULL || p->v_upper == NULL) {
    return TB_STATUS_memory;
  }
  p->n_bare = base_order(p_law, p->v_order);
  for (size_t j = 0; j < n; ++j) {
    const double* v_column = p_law->v_bend + p->v_order[j] * n;
    for (size_t i = 0; i <= j; ++i) {
      p->v_upper[j * n + i] = v_column[p->v_order[i]];
    }
  }
  if (!tb_chol_upper_part(n, 0, p->n_bare, p->v_upper)) {
    tb_mixture_base_free(p_law);
  }
  return TB_STATUS_ok;
}

enum tb_status tb_mixture_base_make(struct tb_mixture_law* p_law,
                                    size_t n_held,
                                    const double* v_held) {
  enum tb_status status = base_eliminate(p_law);
  if (status == TB_STATUS_ok) {
    status = base_hold(p_law, n_held, v_held);
  }
  if (status != TB_STATUS_ok) {
    tb_mixture_base_free(p_law);
  }
  return status;
}

/* A in its order, of which the first columns are R's; the number of these */
static size_t bend_set(const struct tb_mixture_law* p_law,
                       const struct tb_mixture_given* p_given) {
  const size_t n = p_law->n_coef, n_bare = p_law->base.n_bare;
  const bool has_base = n_bare > 0;
  const double* v_from = has_base ? p_law->base.v_upper : p_law->v_bend;
  memcpy(p_given->v_upper, v_from, n * n * sizeof(double));
  for (size_t j = n_bare; j < n; ++j) {
    p_given->v_upper[j * n + j] +=
        p_given->v_precision[tb_mixture_at(p_law, j)];
  }
  return n_bare;
}

bool tb_mixture_law_set(const struct tb_mixture_law* p_law,
                        const double* v_phi,
                        struct tb_mixture_given* p_given) {
  const size_t n = p_law->n_coef;
  double *v_upper = p_given->v_upper, *v_mean = p_given->v_mean;
  double *v_z = p_given->v_z, *v_part = p_given->v_part;
  tb_mixture_law_scales(p_law, v_phi, p_given);
  tb_mixture_law_gradient(p_law, p_given, v_mean);
  const size_t n_done = bend_set(p_law, p_given);
  if (!tb_chol_upper_part(n, n_done, n, v_upper)) {
    return false;
  }
  for (size_t j = 0; j < n; ++j) {
    v_part[j] = v_mean[tb_mixture_at(p_law, j)];
  }
  tb_upper_solve_transposed(n, v_upper, v_part);
  memcpy(v_z, v_part, n * sizeof(double)); /* for the marginal */
  tb_upper_solve(n, v_upper, v_part);
  for (size_t j = 0; j < n; ++j) {
    const size_t at = tb_mixture_at(p_law, j);
    v_mean[at] = v_part[j] + p_given->v_location[at];
  }
  return isfinite(tb_square_norm(v_mean, n));
}

double tb_mixture_law_marginal(const struct tb_mixture_law* p_law,
                               const double* v_phi,
                               const struct tb_mixture_given* p_given) {
  const size_t n = p_law->n_coef;
  double sum = tb_square_norm(p_given->v_z, n);
  for (size_t j = 0; j < n; ++j) {
    const double precision = p_given->v_precision[j];
    sum -= 2 * log(p_given->v_upper[j * n + j]);
    sum += precision > 0 ? log(precision) : 0;
  }
  return tb_mixtures_log_prior(p_law->p_mixtures, v_phi) + 0.5 * sum;
}

/* v_z := R (beta - m), which is standard normal */
static void whiten(const struct tb_mixture_law* p_law,
                   const struct tb_mixture_given* p_given,
                   const double* v_beta,
                   double* v_z) {
  const size_t n = p_law->n_coef;
  memset(v_z, 0, n * sizeof(double));
  for (size_t j = 0; j < n; ++j) {
    const size_t at = tb_mixture_at(p_law, j);
    const double t = v_beta[at] - p_given->v_mean[at];
    for (size_t i = 0; i <= j; ++i) {
      v_z[i] += p_given->v_upper[j * n + i] * t;
    }
  }
}

/* v_xi := stay v_z + sqrt(1 - stay^2) v_xi */
static void mix(size_t n, double stay, const double* v_z, double* v_xi) {
  const double rest = sqrt(1 - stay * stay);
  for (size_t j = 0; j < n; ++j) {
    v_xi[j] = stay * v_z[j] + rest * v_xi[j];
  }
}

/* v_beta := m + R^-1 xi */
static void unwhiten(const struct tb_mixture_law* p_law,
                     const struct tb_mixture_given* p_given,
                     double* v_xi,
                     double* v_beta) {
  const size_t n = p_law->n_coef;
  tb_upper_solve(n, p_given->v_upper, v_xi);
  for (size_t j = 0; j < n; ++j) {
    const size_t at = tb_mixture_at(p_law, j);
    v_beta[at] = p_given->v_mean[at] + v_xi[j];
  }
}

double tb_mixture_law_draw(const struct tb_mixture_law* p_law,
                           const struct tb_mixture_given* p_given,
                           double stay,
                           const double* v_from,
                           double* v_xi,
                           double* v_beta) {
  const size_t n = p_law->n_coef;
  double before = 0;
  if (v_from != NULL) {
    whiten(p_law, p_given, v_from, p_given->v_z);
    before = tb_square_norm(p_given->v_z, n);
    mix(n, stay, p_given->v_z, v_xi);
  }
  const double after = v_from == NULL ? 0 : tb_square_norm(v_xi, n);
  unwhiten(p_law, p_given, v_xi, v_beta);
  return 0.5 * (after - before);
}

/* v_Z := R^-T C, from what the base has of it */
static void held_set(const struct tb_mixture_law* p_law,
                     const double* v_upper,
                     double* v_Z) {
  const size_t n = p_law->n_coef, n_bare = p_law->base.n_bare;
  memcpy(v_Z, p_law->base.v_rest, n * p_law->base.n_held * sizeof(double));
  for (size_t k = 0; k < p_law->base.n_held; ++k, v_Z += n) {
    for (size_t j = n_bare; j < n; ++j) {
      for (size_t i = n_bare; i < j; ++i) {
        v_Z[j] -= v_upper[j * n + i] * v_Z[i];
      }
      v_Z[j] /= v_upper[j * n + j];
    }
  }
}

/* With beta = m + R^-1 xi, C^T beta = C^T m + Z^T xi is what it was where xi
 * has Z (Z^T Z)^-1 [C^T (beta - m) - Z^T xi] added (conditioning by kriging).
 */
bool tb_mixture_law_draw_held(const struct tb_mixture_law* p_law,
                              const struct tb_mixture_given* p_given,
                              double stay,
                              const double* v_from,
                              double* v_xi,
                              double* v_beta) {
  const size_t n = p_law->n_coef, h = p_law->base.n_held;
  const double* v_held = p_law->base.v_held;
  double* v_Z = p_given->v_hold;
  double *v_upper = v_Z + n * h, *v_away = v_upper + h * h;
  if (stay != 0) {
    whiten(p_law, p_given, v_from, p_given->v_z);
    mix(n, stay, p_given->v_z, v_xi);
  }
  held_set(p_law, p_given->v_upper, v_Z);
  for (size_t k = 0; k < h; ++k) {
    v_away[k] = 0;
    for (size_t j = 0; j < n; ++j) {
      v_away[k] += v_held[k * n + j] * (v_from[j] - p_given->v_mean[j]);
    }
    for (size_t l = 0; l <= k; ++l) {
      v_upper[k * h + l] = tb_row_dot(v_Z + k * n, v_Z + l * n, n);
    }
    v_away[k] -= tb_row_dot(v_Z + k * n, v_xi, n);
  }
  if (!tb_chol_upper(h, v_upper)) {
    return false;
  }
  tb_upper_solve_transposed(h, v_upper, v_away);
  tb_upper_solve(h, v_upper, v_away);
  tb_columns_add(v_Z, n, h, v_away, v_xi);
  unwhiten(p_law, p_given, v_xi, v_beta);
  return true;
}

double tb_mixture_law_prior(const struct tb_mixture_law* p_law,
                            const double* v_beta,
                            const double* v_phi,
                            const struct tb_mixture_given* p_given) {
  double sum = 0;
  for (size_t j = 0; j < p_law->n_coef; ++j) {
    const double precision = p_given->v_precision[j];
    const double t = v_beta[j] - p_given->v_location[j];
    if (precision > 0) {
      sum += log(precision) - precision * t * t;
    }
  }
  return tb_mixtures_log_prior(p_law->p_mixtures, v_phi) + 0.5 * sum;
}
