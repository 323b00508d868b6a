#include "kernels/kernel.h"

#include <string.h>

extern const struct tb_kernel_type tb_kernel_mala;
extern const struct tb_kernel_type tb_kernel_sgbd;
extern const struct tb_kernel_type tb_kernel_sgld;

const struct tb_kernel_type* const tb_kernel_registry[] = {
  &tb_kernel_mala,
  &tb_kernel_sgbd,
  &tb_kernel_sgld,
  NULL,
};

const struct tb_kernel_type* tb_kernel_find(const char* name) {
  for (size_t k = 0; tb_kernel_registry[k] != NULL; ++k) {
    if (strcmp(tb_kernel_registry[k]->name, name) == 0) {
      return tb_kernel_registry[k];
    }
  }
  return NULL;
}
