/* Rows of crossed effects, tile by tile: predictors, densities, scores. */
#include "base/clip.h"
#include "models/crossed-inside.h"

#include <string.h>

void crossed_look(const struct crossed_chain* c,
                  size_t first,
                  size_t n,
                  const double* v_eta,
                  double* v_density,
                  double* v_score,
                  double* v_curvature) {
  const struct crossed* p = c->p;
  const struct tb_response_rows rows = {
      .n_row = n,
      .n_predictor = 1,
      .v_eta = v_eta,
      .v_y = p->v_y + first,
      .v_weight = p->v_weight == NULL ? NULL : p->v_weight + first,
      .p_point = &c->point};
  const struct tb_response_out out = {.v_log_density = v_density,
                                      .v_score = v_score,
                                      .v_curvature = v_curvature};
  p->response.type->evaluate(&rows, &out);
}

void crossed_spread(const struct crossed_factor* f,
                    const double* v_level,
                    size_t first,
                    size_t n,
                    const double* v_eta,
                    double* v_out) {
  const int32_t* v_g = f->v_level + first;
  const size_t q = f->n_effect;
  for (size_t a = 0; a < q; ++a) {
    const double* v_z = f->v_column[a] == NULL ? NULL : f->v_column[a] + first;
    const double* v_from = a == 0 ? v_eta : v_out;
    const double* v_of = v_level + a;
    if (v_z == NULL && q == 1) {
      for (size_t i = 0; i < n; ++i) {
        v_out[i] = v_from[i] + v_of[v_g[i]];
      }
    } else if (v_z == NULL) {
      for (size_t i = 0; i < n; ++i) {
        v_out[i] = v_from[i] + v_of[(size_t)v_g[i] * q];
      }
    } else {
      for (size_t i = 0; i < n; ++i) {
        v_out[i] = v_from[i] + v_z[i] * v_of[(size_t)v_g[i] * q];
      }
    }
  }
}

void crossed_add_design(const struct crossed* p,
                        const double* v_beta,
                        size_t first,
                        size_t n,
                        const double* v_eta,
                        double* v_out) {
  double constant = 0;
  for (size_t j = 0; j < p->n_coef; ++j) {
    constant += p->v_column[j] == NULL ? v_beta[j] : 0;
  }
  for (size_t i = 0; i < n; ++i) {
    v_out[i] = v_eta[i] + constant;
  }
  for (size_t j = 0; j < p->n_coef; ++j) {
    const double beta = v_beta[j];
    if (p->v_column[j] == NULL) {
      continue;
    }
    const double* v_x = p->v_column[j] + first;
    for (size_t i = 0; i < n; ++i) {
      v_out[i] += beta * v_x[i];
    }
  }
}

static void look_at_density(const struct crossed_pass* pass,
                            size_t first,
                            size_t n,
                            double* v_sum,
                            double* v_row) {
  const struct crossed_chain* c = pass->c;
  crossed_look(c, first, n, c->v_eta + first, v_row, NULL, NULL);
  v_sum[0] = crossed_sum(n, v_row);
}

double crossed_log_lik(struct crossed_chain* c) {
  return crossed_total(c, look_at_density, NULL);
}

static void set_eta(const struct crossed_pass* pass,
                    size_t first,
                    size_t n,
                    double* v_sum,
                    double* v_row) {
  const struct crossed_chain* c = pass->c;
  const struct crossed* p = c->p;
  double* v_eta = c->v_eta + first;
  (void)v_sum;
  (void)v_row;
  if (p->v_offset == NULL) {
    memset(v_eta, 0, n * sizeof(double));
  } else {
    memcpy(v_eta, p->v_offset + first, n * sizeof(double));
  }
  crossed_add_design(p, c->v_theta, first, n, v_eta, v_eta);
  for (size_t k = 0; k < p->n_factor; ++k) {
    const struct crossed_factor* f = &p->v_factor[k];
    crossed_spread(f, c->v_u + f->at_effect, first, n, v_eta, v_eta);
  }
}

void crossed_refresh(struct crossed_chain* c) {
  const struct crossed_pass pass = {.c = c, .look = set_eta};
  crossed_go(&pass);
  if (!c->p->is_quadratic) {
    c->log_lik = crossed_log_lik(c);
  }
}

struct shift {
  const struct crossed_factor* f;
  const double* v_level;
};

static void shift_eta(const struct crossed_pass* pass,
                      size_t first,
                      size_t n,
                      double* v_sum,
                      double* v_row) {
  const struct shift* shift = pass->p_context;
  double* v_eta = pass->c->v_eta + first;
  (void)v_sum;
  (void)v_row;
  crossed_spread(shift->f, shift->v_level, first, n, v_eta, v_eta);
}

void crossed_shift_eta(struct crossed_chain* c,
                       const struct crossed_factor* f,
                       const double* v_level) {
  const struct shift shift = {f, v_level};
  const struct crossed_pass pass = {.c = c,
                                    .p_context = &shift,
                                    .look = shift_eta};
  crossed_go(&pass);
}
