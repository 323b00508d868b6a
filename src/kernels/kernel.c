#include "kernels/kernel.h"

#include "base/arena.h"
#include "models/sweeps.h"

size_t tb_kernel_self_size(const struct tb_kernel_type* type, size_t n_dim) {
  return tb_align(type->n_self) +
         (type->step_sizes == NULL ? 0 : n_dim * sizeof(double));
}

enum tb_status tb_kernel_init(struct tb_kernel* p_kernel,
                              size_t n_dim,
                              const struct tb_params* p_params) {
  const struct tb_kernel_type* type = p_kernel->type;
  enum tb_status status = TB_STATUS_ok;
  p_kernel->flags = type->flags;
  p_kernel->n_array = type->n_array;
  p_kernel->adapts =
      type->target > 0 && tb_params_number(p_params, "adapt", 0) != 0;
  if (type->step_sizes != NULL) {
    char* p_sizes = (char*)p_kernel->p_self + tb_align(type->n_self);
    status = tb_step_read(&p_kernel->step,
                          p_params,
                          type->step_sizes,
                          n_dim,
                          (double*)p_sizes);
  }
  return status == TB_STATUS_ok && type->init != NULL
             ? type->init(p_kernel, p_params)
             : status;
}

size_t tb_kernel_state_size(const struct tb_kernel* p_kernel,
                            const struct tb_model* p_model) {
  return p_kernel->flags & TB_KERNEL_SWEEPS
             ? p_model->type->sweeps->state_size(p_model)
             : p_kernel->type->n_state +
                   p_kernel->n_array * p_model->n_dim * sizeof(double);
}

void tb_kernel_step_info(const struct tb_chain* p_chain,
                         struct tb_kernel_info* p_info) {
  p_info->step_size = tb_kernel_step(p_chain, 0);
}
