/* The scratch of a chain whose test is factorised, which its surrogate shares.
 */
#ifndef TB_GRADIENTS_FACTORS_SCRATCH_H
#define TB_GRADIENTS_FACTORS_SCRATCH_H

#include "base/clip.h"
#include "chains/chain.h"
#include "passes/expansion.h"

/* rows whose remainders are evaluated together */
enum { TB_N_AHEAD = 64 };

/* A place, as the test sees it. */
struct tb_place {
  double* v_theta; /* n_dim, of which the rest is known */
  double* v_delta; /* n_dim */
  double norm;     /* ||z|| */
};

/* A chain's scratch; followed by five arrays of n_dim. */
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

/* where that lies, and behind it what the surrogate's law is set in */
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

#endif
