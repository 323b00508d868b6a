/* Multilevel regressions: what is looked at of one group. */
#ifndef TB_MODELS_GROUPS_ONE_H
#define TB_MODELS_GROUPS_ONE_H

#include "models/groups-inside.h"

/* mode of log f, and R of R R^T = -Hessian there or a step before */
struct groups_mode {
  double v_at[GROUPS_EFFECT];
  double chol[GROUPS_EFFECT][GROUPS_EFFECT];
};

/* ---- groups-mode.c ---- */

/* eta and z' of the group's rows into the scratch */
void groups_load(const struct groups* p,
                 const double* v_theta,
                 size_t group,
                 const struct groups_scratch* p_s);

/* n rows of the store, in v_scratch where they do not lie so */
const double*
groups_block(const struct groups* p, size_t first, size_t n, double* v_scratch);

/* What the response says of rows at..at + n - 1 of the loaded group, whose
 * first row is `first`, at n_node effects v_u: rows of one node after those of
 * another. */
void groups_evaluate(const struct groups* p,
                     const struct groups_point* p_point,
                     const struct groups_scratch* p_s,
                     size_t first,
                     size_t at,
                     size_t n,
                     const double* v_u,
                     size_t n_node,
                     const struct tb_response_out* p_out);

/* v_u := Lambda v, the effects of z' */
void groups_effects_of(const struct groups* p,
                       const struct groups_point* p_point,
                       const double* v,
                       double* v_u);

/* v_x := R^-T v_x */
void groups_solve_upper(size_t q,
                        const double (*chol)[GROUPS_EFFECT],
                        double* v_x);

double groups_square(const double* v, size_t q);

/* log f(v), without constants, of the loaded group, and its gradient */
double groups_slope(const struct groups* p,
                    const struct groups_point* p_point,
                    const struct groups_scratch* p_s,
                    size_t group,
                    const double* v,
                    double* v_gradient);

/* of the loaded group */
void groups_find_mode(const struct groups* p,
                      const struct groups_point* p_point,
                      const struct groups_scratch* p_s,
                      size_t group,
                      const double* v_start,
                      struct groups_mode* p_mode);

/* ---- groups-hessian.c ---- */

/* Rows of a part, evaluated at all nodes, into -E_pi of the Hessian, in beta,
 * Lambda and s, one triangle (ADDED), and into the gradients of each node. */
void groups_add_hessian(const struct groups* p,
                        const struct groups_scratch* p_s,
                        const double* v_block,
                        size_t at,
                        size_t n,
                        double* v_hessian);

/* Less the covariance of the gradients, in lambda, both triangles. v_gradient:
 * in beta, Lambda and s. */
void groups_finish_hessian(const struct groups* p,
                           const struct groups_point* p_point,
                           const struct groups_scratch* p_s,
                           const double* v_gradient,
                           double* v_hessian);

/* ---- groups-draw.c ---- */

/* v := a draw given the rows and the point; false: log f is not finite there.
 */
bool groups_draw(const struct groups* p,
                 const struct groups_point* p_point,
                 const struct groups_scratch* p_s,
                 size_t group,
                 struct tb_rng* p_rng,
                 double* v);

#endif
