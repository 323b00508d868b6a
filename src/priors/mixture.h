/* The priors of a model that are normal scale mixtures, each of
 * priors/mixture-type.h. */
#ifndef TB_PRIORS_MIXTURE_H
#define TB_PRIORS_MIXTURE_H

#include "base/param.h"
#include "base/status.h"
#include "priors/mixture-type.h"

/* ---- one block ---- */

/* log p(phi) + log p(beta | phi), without constants. v_work: n_coef. */
double tb_mixture_log_density(const struct tb_mixture* p_mixture,
                              const double* v_beta,
                              const double* v_phi,
                              double* v_work);

/* ---- all blocks of a model ---- */

struct tb_mixtures {
  size_t n_mixture;           /* 0: the model has none */
  size_t n_covered;           /* coefficients under one */
  size_t n_hyper;             /* of all, in the order of the blocks */
  struct tb_mixture* v_block; /* n_mixture */
  size_t* v_at;               /* n_covered: their coordinates, by block */
  double* v_memory;           /* what the blocks' arrays lie in */
};

/* From the parameters "mixture_kind" and "mixture_size" (n_mixture each: places
 * in the registry and numbers of coefficients), "mixture_argument"
 * (TB_MIXTURE_n_argument x n_mixture), and, block after block, "mixture_at"
 * (counted from 0, below n_coef, each once), "mixture_location",
 * "mixture_scale" and "mixture_shape". None of them: n_mixture is 0. */
enum tb_status tb_mixtures_create(struct tb_mixtures* p_mixtures,
                                  const struct tb_params* p_params,
                                  size_t n_coef);
enum tb_status tb_mixtures_copy(const struct tb_mixtures* p_mixtures,
                                struct tb_mixtures* p_out);
void tb_mixtures_destroy(struct tb_mixtures* p_mixtures);

/* v_beta: the coefficients of the model, or all of theta; v_phi: n_hyper of it;
 * v_work: tb_mixtures_n_work() numbers. */
size_t tb_mixtures_n_work(const struct tb_mixtures* p_mixtures);

double tb_mixtures_log_prior(const struct tb_mixtures* p_mixtures,
                             const double* v_phi);

/* SETS the covered elements of v_precision and v_location (NULL: not wanted),
 * and leaves the others. */
void tb_mixtures_normal(const struct tb_mixtures* p_mixtures,
                        const double* v_phi,
                        double* v_location,
                        double* v_precision,
                        double* v_work);

/* ADDS the gradient in beta to the covered elements of v_gradient_beta, SETS
 * v_gradient_phi (n_hyper), returns log p(phi) + log p(beta | phi). */
double tb_mixtures_gradient(const struct tb_mixtures* p_mixtures,
                            const double* v_beta,
                            const double* v_phi,
                            double* v_gradient_beta,
                            double* v_gradient_phi,
                            double* v_work);

/* The blocks are independent given beta: each moves by its own draw(). */
void tb_mixtures_draw(const struct tb_mixtures* p_mixtures,
                      const double* v_beta,
                      double* v_phi,
                      double* v_work,
                      struct tb_rng* p_rng);

void tb_mixtures_simulate(const struct tb_mixtures* p_mixtures,
                          double* v_phi,
                          struct tb_rng* p_rng);

void tb_mixtures_natural(const struct tb_mixtures* p_mixtures,
                         const double* v_phi,
                         double* v_natural);

#endif
