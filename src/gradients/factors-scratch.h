/* The scratch of a chain whose test is factorised, which its surrogate shares.
 */
#ifndef TB_GRADIENTS_FACTORS_SCRATCH_H
#define TB_GRADIENTS_FACTORS_SCRATCH_H

#include "base/clip.h"
#include "chains/chain.h"
#include "passes/expansion.h"
#include "priors/mixture-law.h"

/* rows whose remainders are evaluated together */
enum { TB_N_AHEAD = 64 };

/* A place, as the test sees it. */
struct tb_place {
  double* v_theta; /* n_dim, of which the rest is known */
  double* v_delta; /* n_dim */
  double norm;     /* ||z|| */
};

/* A chain's scratch; followed by five arrays of n_dim, what the surrogate's law
 * is set in, and the predictors of the rows of a line. */
struct tb_factors_scratch {
  bool is_known; /* here: v_theta is that of the last step */
  struct tb_place here, there;
  double* v_z;
  size_t n_used; /* of the chain's own stretch of rows drawn ahead */
  size_t v_row[TB_N_AHEAD];
  double v_inverse[TB_N_AHEAD]; /* Psi / psi_i */
  double v_before[TB_N_AHEAD];
  double v_after[TB_N_AHEAD];
};

/* where that lies */
static inline char* tb_factors_scratch_at(const struct tb_chain* p_chain) {
  return (char*)p_chain->p_estimator_extra +
         tb_align(tb_expansion_scratch_size(p_chain->p_target->p_model));
}
enum { TB_FACTORS_N_ARRAY = 5 };
static inline double* tb_factors_law_at(const struct tb_chain* p_chain) {
  char* p = tb_factors_scratch_at(p_chain) +
            tb_align(sizeof(struct tb_factors_scratch));
  return (double*)(void*)p + TB_FACTORS_N_ARRAY * p_chain->n_dim;
}
/* numbers of it */
static inline size_t tb_factors_law_size(const struct tb_model* p_model) {
  return p_model->p_mixtures == NULL
             ? 0
             : tb_mixture_given_size(p_model->p_mixtures,
                                     p_model->p_rows->n_dim);
}
/* x_i^T delta of the rows of a line at a place: surrogate.c */
static inline double* tb_factors_line_at(const struct tb_chain* p_chain) {
  return tb_factors_law_at(p_chain) +
         tb_factors_law_size(p_chain->p_target->p_model);
}

#endif
