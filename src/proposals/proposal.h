/* The proposal family: transitions that are reversible for a surrogate
 * (gradients/surrogate.h), for kernels whose test looks at what the surrogate
 * leaves out (kernels/smh.c). A member draws theta' from where the surrogate's
 * chain stands and says the log of
 *
 *   pi^(theta') q(theta | theta') / [pi^(theta) q(theta' | theta)];
 *
 * with a coin of min(1, that) it is reversible for pi^, and so are random
 * mixtures of members whose shares do not depend on theta, and members one
 * after the other in an order that is as likely as the same backwards. (A sweep
 * in one order is not; nor is a number of steps that depends on the state.)
 *
 * A new proposal: its .c with a table at the end, one line in registry.c, one
 * in Makevars, and its entry and constructor in R/kernel-proposals.R. */
#ifndef TB_PROPOSALS_PROPOSAL_H
#define TB_PROPOSALS_PROPOSAL_H

#include "chains/chain.h"
#include "gradients/surrogate.h"

/* Numbers that a member has as options, and arrays of scratch it may take. */
enum { TB_PROPOSAL_N_OPTION = 2, TB_PROPOSAL_N_ARRAY = 4 };

/* A place of the surrogate's chain. */
struct tb_spot {
  double* v_theta; /* n_dim */
  double beyond;   /* tb_surrogate_beyond() there */
};

struct tb_proposal_type {
  const char* name;

  /* Are its options possible? NULL: it has none. */
  bool (*is_possible)(const double* v_option);

  bool moves_scales; /* does it draw hyperparameters, too? */

  size_t n_array; /* of scratch, n_dim each, TB_PROPOSAL_N_ARRAY at most */

  /* required: SETS p_to, and *p_log to the log ratio above; random numbers come
   * from the stream TB_STREAM_noise */
  enum tb_status (*draw)(struct tb_chain* p_chain,
                         const struct tb_surrogate* p_surrogate,
                         const double* v_option,
                         const struct tb_spot* p_from,
                         struct tb_spot* p_to,
                         double* v_scratch,
                         double* p_log);
};

/* registry.c: every proposal of the library, NULL-terminated. Kernels know
 * theirs by its place, `proposal_places` in R/kernel-proposals.R: new ones go
 * to the end. */
extern const struct tb_proposal_type* const tb_proposal_registry[];
/* by its place, which may be any number: NULL where it is none */
const struct tb_proposal_type* tb_proposal_at_place(double place);

#endif
