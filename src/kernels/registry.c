#include "kernels/kernel.h"

#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(adam_mcmc)                                                            \
  MEMBER(baoab)                                                                \
  MEMBER(barker)                                                               \
  MEMBER(gibbs)                                                                \
  MEMBER(hmc)                                                                  \
  MEMBER(mala)                                                                 \
  MEMBER(psgld)                                                                \
  MEMBER(sgbd)                                                                 \
  MEMBER(sghmc)                                                                \
  MEMBER(sgld)                                                                 \
  MEMBER(sgnht)                                                                \
  MEMBER(smh)

#define MEMBER(name) extern const struct tb_kernel_type tb_kernel_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_kernel_##name,
const struct tb_kernel_type* const tb_kernel_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_kernel_type* tb_kernel_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_kernel_registry[k] != NULL; ++k) {
    if (strcmp(tb_kernel_registry[k]->name, name) == 0) {
      return tb_kernel_registry[k];
    }
  }
  return NULL;
}
