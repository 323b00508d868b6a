/* Multilevel regressions: what a chain lends, and what all groups see of a
 * place; groups-inside.h has the symbols. */
#include "models/groups-inside.h"

#include "base/arena.h"
#include "base/clip.h"

/* ------------------------------------------------------------------ scratch */

static struct groups_scratch lay_out(const struct tb_model* p_model,
                                     struct tb_arena* p_arena,
                                     bool for_hessian) {
  const struct groups* p = p_model->p_self;
  const size_t n_entry = tb_max(GROUPS_ENTRY, p->n_point);
  const size_t n_dim = p_model->n_dim, q = p->n_effect;
  struct groups_scratch s;
  s.v_eta = tb_arena_doubles(p_arena, p->n_most);
  s.v_z = tb_arena_doubles(p_arena, q * p->n_most);
  s.v_block = tb_arena_doubles(p_arena, GROUPS_ENTRY * p->store.n_padded);
  s.v_entry_eta = tb_arena_doubles(p_arena, n_entry);
  s.v_entry_y =
      tb_arena_doubles(p_arena, tb_response_n_y(p->response.type) * n_entry);
  s.v_entry_weight = tb_arena_doubles(p_arena, n_entry);
  s.v_density = tb_arena_doubles(p_arena, n_entry);
  s.v_score = tb_arena_doubles(p_arena, n_entry);
  s.v_curvature = tb_arena_doubles(p_arena, n_entry);
  s.v_aux_score = tb_arena_doubles(p_arena, n_entry);
  s.v_cross = tb_arena_doubles(p_arena, n_entry);
  s.v_aux_curvature = tb_arena_doubles(p_arena, n_entry);
  s.v_sum = tb_arena_doubles(p_arena, GROUPS_SUM * GROUPS_ENTRY);
  s.v_v = tb_arena_doubles(p_arena, q * p->n_point);
  s.v_u = tb_arena_doubles(p_arena, q * p->n_point);
  s.v_pi = tb_arena_doubles(p_arena, p->n_point);
  s.v_coef = tb_arena_doubles(p_arena, GROUPS_SUM * p->n_point);
  s.v_gradient = tb_arena_doubles(p_arena, n_dim);
  s.v_before = tb_arena_doubles(p_arena, n_dim);
  s.v_hessian = tb_arena_doubles(p_arena, for_hessian ? 2 * n_dim * n_dim : 0);
  s.v_each =
      tb_arena_doubles(p_arena, for_hessian ? p->n_point * groups_each(p) : 0);
  return s;
}

size_t groups_scratch_size(const struct tb_model* p_model, bool for_hessian) {
  struct tb_arena arena = {NULL, 0};
  (void)lay_out(p_model, &arena, for_hessian);
  return arena.n_used;
}

struct groups_scratch groups_scratch_at(const struct tb_model* p_model,
                                        void* p_scratch,
                                        bool for_hessian) {
  struct tb_arena arena = {p_scratch, 0};
  return lay_out(p_model, &arena, for_hessian);
}

/* ------------------------------------------------------------------- places */

struct groups_point groups_point_at(const struct groups* p,
                                    const double* v_theta,
                                    bool is_complete) {
  struct groups_point point = {
      .v_theta = v_theta,
      .response =
          tb_response_at(&p->response, v_theta + p->n_coef + p->n_lambda)};
  groups_set_factor(p, &point);
  if (p->v_spare != NULL) {
    const double none = 0;
    const struct tb_response_rows row = {.n_row = 1,
                                         .n_predictor = 1,
                                         .v_eta = &none,
                                         .v_y = &none,
                                         .p_point = &point.response};
    const struct tb_response_out out = {
        .is_complete = is_complete,
        .v_log_density = &point.spare_density,
        .v_aux_score = p->has_aux ? &point.spare_score : NULL};
    p->response.type->evaluate(&row, &out);
  }
  return point;
}
