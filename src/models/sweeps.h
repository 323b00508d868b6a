/* Models that move their own chains: posteriors of more numbers than theta, all
 * of which a sweep draws from their laws given the others, or by steps that
 * leave the posterior as it is. Only the kernel that asks for sweeps (gibbs)
 * samples them, and they have no gradient.
 *
 * A chain's state besides theta is plain bytes without pointers, kept when it
 * is saved. */
#ifndef TB_MODELS_SWEEPS_H
#define TB_MODELS_SWEEPS_H

#include "models/model.h"

/* A chain, as a sweep sees it. */
struct tb_sweep {
  double* v_theta; /* n_dim */
  void* p_state;   /* state_size() bytes */
  struct tb_rng* p_rng;
  bool is_warmup;   /* what it tunes may change */
  bool is_joint;    /* are all effects drawn jointly as well, where they can
                       be? */
  double n_row;     /* rows looked at: ADDED to, as those below */
  double n_propose; /* proposals that could be refused */
  double n_accept;
};

struct tb_model_sweeps {
  size_t (*state_size)(const struct tb_model* p_model);
  /* the state where theta is, which may be anywhere within the support */
  enum tb_status (*start)(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          struct tb_sweep* p_sweep);
  enum tb_status (*sweep)(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          struct tb_sweep* p_sweep);
  /* numbers of the state that are drawn as theta is: n_effect of them */
  size_t (*n_effect)(const struct tb_model* p_model);
  const double* (*effects)(const struct tb_model* p_model, const void* p_state);
  /* over the sweeps after warmup: their number, then n_effect means, as many
   * sums of squared deviations, 5 % quantiles and 95 % quantiles */
  const double* (*moments)(const struct tb_model* p_model, const void* p_state);
};

#endif
