/* The rows of one group at hand, and the mode of its effects:
 *
 *   log f(v) = sum_i l_i(v) + log N(v; 0, I)
 *
 * by Newton's method. It is concave where the response is, so that halved steps
 * arrive; with -Hessian = R R^T, R lower. */
#include "models/groups-one.h"

#include "base/clip.h"
#include "base/clones.h"

#include <math.h>
#include <string.h>

/* Newton's decrement, squared, before the last step */
#define CLOSE 1e-10

enum { Q = GROUPS_EFFECT };

/* ------------------------------------------------------------------ loading */

static TB_CLONES void load_rows(const struct groups* p,
                                const double* v_theta,
                                const double* v_block,
                                size_t first,
                                size_t at,
                                size_t n,
                                const struct groups_scratch* p_s) {
  const size_t n_padded = p->store.n_padded;
  for (size_t i = 0; i < n; ++i) {
    const double* v_row = v_block + i * n_padded;
    double eta = p->v_offset == NULL ? 0 : p->v_offset[first + i];
    for (size_t j = 0; j < p->n_coef; ++j) {
      eta += v_row[j] * v_theta[j];
    }
    p_s->v_eta[at + i] = eta;
    double v_z[Q];
    for (size_t a = 0; a < p->n_effect; ++a) {
      v_z[a] = v_row[p->v_z[a]];
      for (size_t b = 0; b < a; ++b) {
        v_z[a] -= p->span[a][b] * v_z[b];
      }
      v_z[a] /= p->span[a][a];
      p_s->v_z[a * p->n_most + at + i] = v_z[a];
    }
  }
}

const double* groups_block(const struct groups* p,
                           size_t first,
                           size_t n,
                           double* v_scratch) {
  return p->store.type->block(&p->store, first, n, v_scratch);
}

void groups_load(const struct groups* p,
                 const double* v_theta,
                 size_t group,
                 const struct groups_scratch* p_s) {
  const size_t first = p->v_first[group];
  const size_t n = p->v_first[group + 1] - first;
  for (size_t at = 0; at < n; at += GROUPS_ENTRY) {
    const size_t part = tb_min(GROUPS_ENTRY, n - at);
    load_rows(p,
              v_theta,
              groups_block(p, first + at, part, p_s->v_block),
              first + at,
              at,
              part,
              p_s);
  }
}

/* --------------------------------------------------------------- evaluating */

/* What the response says of rows at..at + n - 1 of the group, at n_node places
 * v_u: into the entries, rows of one place after those of another. */
static TB_CLONES void set_predictors(const struct groups* p,
                                     const struct groups_scratch* p_s,
                                     size_t at,
                                     size_t n,
                                     const double* v_u,
                                     size_t n_node) {
  for (size_t k = 0; k < n_node; ++k) {
    double* v_eta = p_s->v_entry_eta + k * n;
    const double* v_base = p_s->v_eta + at;
    for (size_t a = 0; a < p->n_effect; ++a) {
      const double* v_z = p_s->v_z + a * p->n_most + at;
      const double u = v_u[k * p->n_effect + a];
      const double* v_from = a == 0 ? v_base : v_eta;
      for (size_t i = 0; i < n; ++i) {
        v_eta[i] = v_from[i] + v_z[i] * u;
      }
    }
  }
}

/* n numbers of each column, n_lead apart, once for each node */
static const double* repeated(const double* v,
                              size_t n_column,
                              size_t n_lead,
                              double* v_entry,
                              size_t n,
                              size_t n_node) {
  if (v == NULL || (n_node == 1 && n_column == 1)) {
    return v;
  }
  for (size_t j = 0; j < n_column; ++j) {
    for (size_t k = 0; k < n_node; ++k) {
      memcpy(v_entry + (j * n_node + k) * n,
             v + j * n_lead,
             n * sizeof(double));
    }
  }
  return v_entry;
}

void groups_evaluate(const struct groups* p,
                     const struct groups_point* p_point,
                     const struct groups_scratch* p_s,
                     size_t first,
                     size_t at,
                     size_t n,
                     const double* v_u,
                     size_t n_node,
                     const struct tb_response_out* p_out) {
  set_predictors(p, p_s, at, n, v_u, n_node);
  const struct tb_response_type* type = p->response.type;
  const double* v_y = p->v_y + first + at;
  const double* v_weight =
      p->v_weight == NULL ? NULL : p->v_weight + first + at;
  const struct tb_response_rows rows = {
      .n_row = n * n_node,
      .n_predictor = 1,
      .v_eta = p_s->v_entry_eta,
      .v_y = repeated(v_y,
                      tb_response_n_y(type),
                      p->n_row,
                      p_s->v_entry_y,
                      n,
                      n_node),
      .v_weight = repeated(v_weight, 1, 0, p_s->v_entry_weight, n, n_node),
      .p_point = &p_point->response};
  type->evaluate(&rows, p_out);
}

/* --------------------------------------------------------------------- mode */

/* v_u := Lambda v */
void groups_effects_of(const struct groups* p,
                       const struct groups_point* p_point,
                       const double* v,
                       double* v_u) {
  for (size_t a = 0; a < p->n_effect; ++a) {
    v_u[a] = 0;
    for (size_t b = 0; b <= a; ++b) {
      v_u[a] += p_point->v_factor[a][b] * v[b];
    }
  }
}

/* Sums over rows at u: log density, of z s, and of c z z^T where it is wanted.
 */
struct at_effects {
  double log_density;
  double v_score[Q];
  double curvature[Q][Q];
};

static struct at_effects look_at(const struct groups* p,
                                 const struct groups_point* p_point,
                                 const struct groups_scratch* p_s,
                                 size_t group,
                                 const double* v_u,
                                 bool is_bent) {
  const size_t first = p->v_first[group];
  const size_t n_row = p->v_first[group + 1] - first;
  const struct tb_response_out out = {.v_log_density = p_s->v_density,
                                      .v_score = p_s->v_score,
                                      .v_curvature =
                                          is_bent ? p_s->v_curvature : NULL};
  struct at_effects sums = {.log_density = 0};
  for (size_t at = 0; at < n_row; at += GROUPS_ENTRY) {
    const size_t n = tb_min(GROUPS_ENTRY, n_row - at);
    groups_evaluate(p, p_point, p_s, first, at, n, v_u, 1, &out);
    for (size_t i = 0; i < n; ++i) {
      sums.log_density += p_s->v_density[i];
    }
    for (size_t a = 0; a < p->n_effect; ++a) {
      const double* v_a = p_s->v_z + a * p->n_most + at;
      for (size_t i = 0; i < n; ++i) {
        sums.v_score[a] += v_a[i] * p_s->v_score[i];
      }
      for (size_t b = 0; b <= a && is_bent; ++b) {
        const double* v_b = p_s->v_z + b * p->n_most + at;
        double sum = 0;
        for (size_t i = 0; i < n; ++i) {
          sum += p_s->v_curvature[i] * v_a[i] * v_b[i];
        }
        sums.curvature[a][b] += sum;
        sums.curvature[b][a] = sums.curvature[a][b];
      }
    }
  }
  return sums;
}

/* chol := R with R R^T = I + Lambda^T H Lambda */
static void factorise(const struct groups* p,
                      const struct groups_point* p_point,
                      const double (*curvature)[Q],
                      double (*chol)[Q]) {
  const size_t q = p->n_effect;
  double half[Q][Q], full[Q][Q];
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b < q; ++b) {
      half[a][b] = 0; /* H Lambda */
      for (size_t c = b; c < q; ++c) {
        half[a][b] += curvature[a][c] * p_point->v_factor[c][b];
      }
    }
  }
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      full[a][b] = a == b;
      for (size_t c = a; c < q; ++c) {
        full[a][b] += p_point->v_factor[c][a] * half[c][b];
      }
    }
  }
  for (size_t a = 0; a < q; ++a) {
    for (size_t b = 0; b <= a; ++b) {
      double sum = full[a][b];
      for (size_t c = 0; c < b; ++c) {
        sum -= chol[a][c] * chol[b][c];
      }
      chol[a][b] = a == b ? sqrt(fmax(sum, 1)) : sum / chol[b][b];
    }
  }
}

/* v_x := R^-T v_x */
void groups_solve_upper(size_t q,
                        const double (*chol)[GROUPS_EFFECT],
                        double* v_x) {
  for (size_t a = q; a-- > 0;) {
    for (size_t c = a + 1; c < q; ++c) {
      v_x[a] -= chol[c][a] * v_x[c];
    }
    v_x[a] /= chol[a][a];
  }
}

/* v_out := Lambda^T (sum of z s) - v, the gradient of log f */
static void gradient_of(const struct groups* p,
                        const struct groups_point* p_point,
                        const double* v_score,
                        const double* v,
                        double* v_out) {
  for (size_t b = 0; b < p->n_effect; ++b) {
    v_out[b] = -v[b];
    for (size_t a = b; a < p->n_effect; ++a) {
      v_out[b] += p_point->v_factor[a][b] * v_score[a];
    }
  }
}

/* v_step := Newton's step from v; returns the decrement, squared. */
static double newton_step(const struct groups* p,
                          const struct groups_point* p_point,
                          const struct at_effects* p_here,
                          struct groups_mode* p_mode,
                          double* v_step) {
  const size_t q = p->n_effect;
  double decrement = 0;
  factorise(p, p_point, p_here->curvature, p_mode->chol);
  gradient_of(p, p_point, p_here->v_score, p_mode->v_at, v_step);
  for (size_t b = 0; b < q; ++b) {
    for (size_t c = 0; c < b; ++c) {
      v_step[b] -= p_mode->chol[b][c] * v_step[c];
    }
    v_step[b] /= p_mode->chol[b][b];
    decrement += v_step[b] * v_step[b];
  }
  groups_solve_upper(q, (const double(*)[GROUPS_EFFECT])p_mode->chol, v_step);
  return decrement;
}

double groups_square(const double* v, size_t q) {
  double sum = 0;
  for (size_t a = 0; a < q; ++a) {
    sum += v[a] * v[a];
  }
  return sum;
}

double groups_slope(const struct groups* p,
                    const struct groups_point* p_point,
                    const struct groups_scratch* p_s,
                    size_t group,
                    const double* v,
                    double* v_gradient) {
  double v_u[Q];
  groups_effects_of(p, p_point, v, v_u);
  const struct at_effects here = look_at(p, p_point, p_s, group, v_u, false);
  gradient_of(p, p_point, here.v_score, v, v_gradient);
  return here.log_density - 0.5 * groups_square(v, p->n_effect);
}

/* log f is concave for responses that are: halved steps always arrive. */
void groups_find_mode(const struct groups* p,
                      const struct groups_point* p_point,
                      const struct groups_scratch* p_s,
                      size_t group,
                      const double* v_start,
                      struct groups_mode* p_mode) {
  enum { MOST = 60, HALVINGS = 30 };
  const size_t q = p->n_effect;
  double v_u[Q], v_step[Q];
  for (size_t a = 0; a < q; ++a) {
    p_mode->v_at[a] = v_start == NULL ? 0 : v_start[a];
  }
  groups_effects_of(p, p_point, p_mode->v_at, v_u);
  struct at_effects here = look_at(p, p_point, p_s, group, v_u, true);
  for (size_t k = 0; k < MOST; ++k) {
    const double decrement = newton_step(p, p_point, &here, p_mode, v_step);
    const double before =
        here.log_density - 0.5 * groups_square(p_mode->v_at, q);
    double v_from[Q], share = 1;
    memcpy(v_from, p_mode->v_at, sizeof(v_from));
    for (size_t h = 0; h < HALVINGS; ++h, share *= 0.5) {
      for (size_t a = 0; a < q; ++a) {
        p_mode->v_at[a] = v_from[a] + share * v_step[a];
      }
      if (!(decrement > CLOSE)) {
        return; /* the next place would be no nearer */
      }
      groups_effects_of(p, p_point, p_mode->v_at, v_u);
      here = look_at(p, p_point, p_s, group, v_u, true);
      if (here.log_density - 0.5 * groups_square(p_mode->v_at, q) >=
          before - 1e-9 * (1 + fabs(before))) {
        break;
      }
    }
  }
}
