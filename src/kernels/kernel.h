/* The kernel family: how a chain moves. A kernel reads the chain (position,
 * gradient there, its variance), moves v_theta, and asks for the gradient at
 * the new position, so that position and gradient always belong together. */
#ifndef TB_KERNELS_KERNEL_H
#define TB_KERNELS_KERNEL_H

#include "gradients/gradient.h"
#include "kernels/step.h"

/* Counts of steps: beyond 2^53 doubles do not tell whole numbers apart. */
#define TB_STEPS_MOST ((size_t)1 << 53)

enum tb_kernel_flag {
  TB_KERNEL_METROPOLIS = 1u
                         << 0,  /* needs the log posterior with the gradient */
  TB_KERNEL_VARIANCE = 1u << 1, /* needs the minibatch variance s_j^2 */
  TB_KERNEL_CONSTANT_STEP = 1u
                            << 2, /* takes no schedule but the constant one */
  TB_KERNEL_FULL_GRADIENT = 1u << 3, /* a minibatch gradient will not do */
  TB_KERNEL_LOSS = 1u << 4, /* takes the minibatch's estimate of log pi */
  TB_KERNEL_FACTORISED =
      1u << 5, /* takes the factorised test: no minibatches, no log pi */
  TB_KERNEL_SWEEPS = 1u << 6 /* asks the model for sweeps: no gradient at all;
                                its state is the model's */
};

struct tb_kernel_info {
  double step_size;     /* in use now, after adaptation */
  const double* v_step; /* n_dim, where coordinates were adapted one by one */
};

struct tb_kernel_type {
  const char* name;
  const char* citation;
  unsigned flags; /* of the family member with all its options */

  /* Shared by the chains: bytes of what options become, and the parameter with
   * its step sizes, one for all coordinates or one each, which are read before
   * init is called (NULL: there are none). */
  size_t n_self;
  const char* step_sizes;
  /* the options; NULL: there are none */
  enum tb_status (*init)(struct tb_kernel* p_kernel,
                         const struct tb_params* p_params);

  /* What a chain owns: n_state bytes, and then n_array arrays of n_dim numbers,
   * tb_kernel_array(). Plain bytes, without pointers, kept when saved. */
  size_t n_state;
  size_t n_array;
  /* The acceptance that warmup adapts its scale to where the parameter "adapt"
   * (0/1) says so: its state begins with a struct tb_adapt (kernels/adapt.h).
   * 0: it does not adapt. */
  double target;

  /* after theta and its gradient are in place; NULL: nothing to set up */
  enum tb_status (*start)(struct tb_chain* p_chain);

  /* required: one step */
  enum tb_status (*step)(struct tb_chain* p_chain);

  /* Probability that the next proposal of coordinate j is beyond what the
   * kernel tolerates of a gradient with this noise variance; NULL: no such
   * limit. */
  double (*beyond)(const struct tb_chain* p_chain, size_t j, double variance);

  /* A normal companion (for run/bias.c): a chain of n_dim numbers with the law
   * N(0, I) of its own, moved by the noise of the steps of this one. It follows
   * the chain where the posterior is near N(0, I), and asks for nothing but the
   * step just made. NULL, both: there is none. */
  void (*start_normal)(const struct tb_chain* p_chain, double* v_normal);
  void (*step_normal)(const struct tb_chain* p_chain, double* v_normal);

  /* what to report, such as tb_kernel_step_info(); NULL: nothing */
  void (*info)(const struct tb_chain* p_chain, struct tb_kernel_info* p_info);
};

struct tb_kernel {
  const struct tb_kernel_type* type;
  unsigned flags; /* type->flags, and so below; init narrows by the options */
  size_t n_array;
  bool adapts; /* "adapt" */
  struct tb_step step;
  void* p_self;
};

/* kernel.c: the bytes and the making of a kernel from its table, and the bytes
 * of a chain's state */
size_t tb_kernel_self_size(const struct tb_kernel_type* type, size_t n_dim);
enum tb_status tb_kernel_init(struct tb_kernel* p_kernel,
                              size_t n_dim,
                              const struct tb_params* p_params);
size_t tb_kernel_state_size(const struct tb_kernel* p_kernel,
                            const struct tb_model* p_model);
/* `info` of a kernel with step sizes: the first */
void tb_kernel_step_info(const struct tb_chain* p_chain,
                         struct tb_kernel_info* p_info);

/* what a chain's kernel made of its options */
static inline const void* tb_kernel_self(const struct tb_chain* p_chain) {
  return p_chain->p_target->p_kernel->p_self;
}

/* the step size of a coordinate, now */
static inline double tb_kernel_step(const struct tb_chain* p_chain, size_t j) {
  return p_chain->step_scale *
         tb_step_at(&p_chain->p_target->p_kernel->step, j);
}

/* the k-th array of a chain's state; the next one follows */
static inline double* tb_kernel_array(const struct tb_chain* p_chain,
                                      size_t k) {
  const size_t n_state = p_chain->p_target->p_kernel->type->n_state;
  return (double*)((char*)p_chain->p_kernel_state + n_state) +
         k * p_chain->n_dim;
}

/* registry.c */
extern const struct tb_kernel_type* const tb_kernel_registry[];
const struct tb_kernel_type* tb_kernel_find(const char* name);

#endif
