/* Effects of groups given the parameters, which the likelihood integrates out.
 */
#ifndef TB_MODELS_GROUPS_EFFECTS_H
#define TB_MODELS_GROUPS_EFFECTS_H

#include "models/model.h"

size_t groups_n_effect(const struct tb_model* p_model);
size_t groups_n_node(const struct tb_model* p_model);

/* rows that are kept, of those that came */
size_t groups_n_row(const struct tb_model* p_model);

/* Means of u (q x n_group) and of u u^T (q x q x n_group) given the rows, from
 * group `first` on, averaged over n_point columns of v_theta. SET. */
enum tb_status groups_effect_moments(const struct tb_model* p_model,
                                     const double* v_theta,
                                     size_t n_point,
                                     size_t first,
                                     size_t n_group,
                                     int n_threads,
                                     double* v_mean,
                                     double* v_square);

/* A draw of u of each of n_group groups for each column of v_theta: q x n_group
 * x n_point, SET. Those of a group depend on the seed and its number alone.
 * `nonfinite` where the density of one is not finite. */
enum tb_status groups_effect_draws(const struct tb_model* p_model,
                                   const double* v_theta,
                                   size_t n_point,
                                   const size_t* v_group,
                                   size_t n_group,
                                   uint64_t seed,
                                   int n_threads,
                                   double* v_out);

#endif
