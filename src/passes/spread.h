/* A pass: what the pseudo-variance of a gradient estimate is made of. */
#ifndef TB_PASSES_SPREAD_H
#define TB_PASSES_SPREAD_H

#include "passes/expansion.h"

/* Sums over all rows, with a_i = g_i(theta), less g_i(reference) if any, or
 * what is beyond an expansion. */
struct tb_spread {
  double square;   /* sum ||a_i||^2 */
  double weighted; /* sum ||a_i||^2 / p_i */
  double norm;     /* sum ||a_i|| */
  double total;    /* ||sum a_i||^2 */
};

/* One pass over the rows. p_expansion, with the view of
 * v_theta, or NULL. v_probability: p_i, or NULL (`weighted` is then 0);
 * 0 for a row of every minibatch, which counts in neither `weighted` nor
 * `total`. v_scratch: 3 n_dim + TB_CHUNK numbers. */
enum tb_status tb_spread_of(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const struct tb_reference* p_reference,
                            const struct tb_expansion* p_expansion,
                            const struct tb_expansion_view* p_view,
                            const double* v_probability,
                            double* v_scratch,
                            struct tb_spread* p_spread);

#endif
