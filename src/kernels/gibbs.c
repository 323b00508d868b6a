/* Sweeps of models that move their own chains (models/sweeps.h): the kernel
 * asks for one a step, and keeps what such a chain has besides theta. */
#include "kernels/kernel.h"
#include "models/sweeps.h"

struct gibbs {
  bool is_joint;
};

/* Parameters: "joint", 1: see struct tb_sweep. */
static enum tb_status gibbs_init(struct tb_kernel* p_kernel,
                                 const struct tb_params* p_params) {
  struct gibbs* p_self = p_kernel->p_self;
  p_self->is_joint = tb_params_number(p_params, "joint", 0) != 0;
  return TB_STATUS_ok;
}

static struct tb_sweep sweep_of(struct tb_chain* p_chain) {
  const struct gibbs* p_self = tb_kernel_self(p_chain);
  return (struct tb_sweep){.v_theta = p_chain->v_theta,
                           .p_state = p_chain->p_kernel_state,
                           .p_rng = &p_chain->v_rng[TB_STREAM_model],
                           .is_warmup = p_chain->is_warmup,
                           .is_joint = p_self->is_joint};
}

static void count(struct tb_chain* p_chain, const struct tb_sweep* p_sweep) {
  const double n_data = (double)p_chain->p_target->p_model->n_data;
  p_chain->counts.n_row += p_sweep->n_row;
  p_chain->counts.n_full += p_sweep->n_row / n_data;
  p_chain->counts.n_propose += p_sweep->n_propose;
  p_chain->counts.n_accept += p_sweep->n_accept;
  p_chain->n_batch = p_chain->p_target->p_model->n_data;
}

static enum tb_status gibbs_start(struct tb_chain* p_chain) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  struct tb_sweep sweep = sweep_of(p_chain);
  const enum tb_status status =
      p_model->type->sweeps->start(p_model, &p_chain->work, &sweep);
  count(p_chain, &sweep);
  return status;
}

static enum tb_status gibbs_step(struct tb_chain* p_chain) {
  const struct tb_model* p_model = p_chain->p_target->p_model;
  struct tb_sweep sweep = sweep_of(p_chain);
  const enum tb_status status =
      p_model->type->sweeps->sweep(p_model, &p_chain->work, &sweep);
  count(p_chain, &sweep);
  return status;
}

const struct tb_kernel_type tb_kernel_gibbs = {
    .name = "gibbs",
    .citation = "Papaspiliopoulos, Roberts & Zanella (2020), Biometrika 107:25",
    .n_self = sizeof(struct gibbs),
    .flags = TB_KERNEL_SWEEPS | TB_KERNEL_CONSTANT_STEP,
    .init = gibbs_init,
    .start = gibbs_start,
    .step = gibbs_step,
};
