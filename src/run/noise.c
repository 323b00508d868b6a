/* An observer: the gradient noise, and what it does to the kernel. */
#include "run/inside.h"

void tb_slot_add_noise(struct tb_slot* p_slot) {
  struct tb_chain* p_chain = &p_slot->chain;
  const struct tb_kernel_type* type = p_chain->p_target->p_kernel->type;
  const size_t n_dim = p_chain->n_dim;
  if (!p_chain->has_variance) {
    return;
  }
  p_slot->v_noise[0] += 1;
  for (size_t j = 0; j < n_dim; ++j) {
    const double variance = p_chain->v_variance[j];
    p_slot->v_noise[1 + j] += variance;
    if (type->beyond != NULL) {
      p_slot->v_noise[1 + n_dim + j] += type->beyond(p_chain, j, variance);
    }
  }
}
