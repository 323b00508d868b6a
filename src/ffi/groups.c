/* Doors to what only multilevel regressions have: other nodes, and effects of
 * groups given draws. */
#include "ffi/model.h"

#include "models/groups-effects.h"
#include "models/groups-rows.h"

#include <R_ext/Utils.h>

static struct tb_model* groups_of(SEXP model) {
  struct tb_model* p_model = ffi_model(model);
  if (p_model->type != tb_model_find("groups")) {
    ffi_fault("a model that is not groups");
  }
  return p_model;
}

/* nodes: K x 2, see groups_set_nodes(). The status as an integer. */
SEXP ffi_groups_nodes(SEXP model, SEXP nodes) {
  struct tb_model* p_model = groups_of(model);
  const size_t n_node = ffi_columns(nodes, 2, "nodes");
  return ffi_status(groups_set_nodes(p_model, REAL(nodes), n_node));
}

/* theta: n_dim x n_draw. list(mean: q x n_group, square: q^2 x n_group), or the
 * status as an integer. */
SEXP ffi_groups_moments(SEXP model, SEXP theta, SEXP threads) {
  enum { GROUPS = 1024 };
  const struct tb_model* p_model = groups_of(model);
  const size_t n_draw = ffi_columns(theta, p_model->n_dim, "theta");
  const size_t q = groups_n_effect(p_model), n_group = p_model->n_data;
  const int n_threads = ffi_threads(threads);
  SEXP out = PROTECT(ffi_list(2));
  double* v_mean = ffi_add_matrix(out, "mean", q, n_group);
  double* v_square = ffi_add_matrix(out, "square", q * q, n_group);
  enum tb_status status = TB_STATUS_ok;
  for (size_t first = 0; first < n_group && status == TB_STATUS_ok;
       first += GROUPS) {
    const size_t n = n_group - first < GROUPS ? n_group - first : GROUPS;
    status = groups_effect_moments(p_model,
                                   REAL(theta),
                                   n_draw,
                                   first,
                                   n,
                                   n_threads,
                                   v_mean + q * first,
                                   v_square + q * q * first);
    R_CheckUserInterrupt();
  }
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}

/* groups: their numbers from 1. q n_group n_draw numbers, or the status as an
 * integer. */
SEXP ffi_groups_draws(SEXP model,
                      SEXP theta,
                      SEXP groups,
                      SEXP seed,
                      SEXP threads) {
  const struct tb_model* p_model = groups_of(model);
  const size_t n_draw = ffi_columns(theta, p_model->n_dim, "theta");
  const size_t q = groups_n_effect(p_model);
  const size_t* v_group = ffi_rows(groups, p_model->n_data, "groups");
  const size_t n_group = (size_t)Rf_xlength(groups);
  const size_t seed_ = ffi_as_count(seed, "seed");
  const int n_threads = ffi_threads(threads);
  const size_t n_value =
      ffi_times(ffi_times(q, n_group, "groups"), n_draw, "theta");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)n_value));
  const enum tb_status status = groups_effect_draws(p_model,
                                                    REAL(theta),
                                                    n_draw,
                                                    v_group,
                                                    n_group,
                                                    (uint64_t)seed_,
                                                    n_threads,
                                                    REAL(out));
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : ffi_status(status);
}
