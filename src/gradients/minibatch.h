/* What the minibatch estimators share: draw rows, pass over them once, add the
 * parts that need no rows. */
#ifndef TB_GRADIENTS_MINIBATCH_H
#define TB_GRADIENTS_MINIBATCH_H

#include "gradients/gradient.h"

/* v_gradient = g_0(theta) + s [ v_base + sum_{i in S} c_i a_i ], with a_i =
 * g_i(theta) - reference (p_reference may be NULL, v_base too), s the
 * likelihood scale. The rows come back in p_batch. The chain's v_variance
 * receives s_j^2 when it is there and the minibatch has two rows or more. */
enum tb_status tb_minibatch_estimate(struct tb_chain* p_chain,
                                     const double* v_theta,
                                     const struct tb_reference* p_reference,
                                     const double* v_base,
                                     struct tb_batch* p_batch,
                                     double* v_scalar,
                                     double* v_gradient);

#endif
