#include "kernels/kernel.h"

#include <string.h>

extern const struct tb_kernel_type tb_kernel_adam_mcmc;
extern const struct tb_kernel_type tb_kernel_baoab;
extern const struct tb_kernel_type tb_kernel_barker;
extern const struct tb_kernel_type tb_kernel_hmc;
extern const struct tb_kernel_type tb_kernel_mala;
extern const struct tb_kernel_type tb_kernel_psgld;
extern const struct tb_kernel_type tb_kernel_sgbd;
extern const struct tb_kernel_type tb_kernel_sghmc;
extern const struct tb_kernel_type tb_kernel_sgld;
extern const struct tb_kernel_type tb_kernel_sgnht;
extern const struct tb_kernel_type tb_kernel_smh;

const struct tb_kernel_type* const tb_kernel_registry[] = {
    &tb_kernel_adam_mcmc,
    &tb_kernel_baoab,
    &tb_kernel_barker,
    &tb_kernel_hmc,
    &tb_kernel_mala,
    &tb_kernel_psgld,
    &tb_kernel_sgbd,
    &tb_kernel_sghmc,
    &tb_kernel_sgld,
    &tb_kernel_sgnht,
    &tb_kernel_smh,
    NULL,
};

const struct tb_kernel_type* tb_kernel_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_kernel_registry[k] != NULL; ++k) {
    if (strcmp(tb_kernel_registry[k]->name, name) == 0) {
      return tb_kernel_registry[k];
    }
  }
  return NULL;
}
