/* What the files of control variates of order 2 share. */
#ifndef TB_GRADIENTS_CV2_INSIDE_H
#define TB_GRADIENTS_CV2_INSIDE_H

#include "gradients/gradient.h"
#include "passes/expansion.h"

struct tb_factors;

/* How g_0(theta) - s H delta comes about. */
enum tb_cv2_mean {
  TB_CV2_any = 0,       /* from g_0 and H */
  TB_CV2_quadratic = 1, /* g_0(at) - A delta, A = P + s H: a quadratic prior */
  TB_CV2_white = 2      /* and A is the identity */
};

struct tb_cv2 {
  struct tb_expansion expansion;
  double scale; /* s of the likelihood */
  enum tb_cv2_mean mean;
  double* v_prior; /* n_dim: g_0(at) */
  double* v_sum;   /* n_dim: g_0(at) + s G */
  double* v_bend;  /* n_dim x n_dim: A */
  double* v_P;     /* n_dim x n_dim: P */
  double log_prior;
  bool is_quadratic; /* the prior with P, within its bounds */
  const struct tb_mixtures* p_mixtures; /* of hyperparameters; NULL: none */
  char* p_memory;                       /* of these */
  size_t n_byte;
  struct tb_factors* p_factors; /* of the factorised test; NULL: not wanted */
};

/* e_0 of a prior that is not quadratic; cv2-prior.c */
enum tb_status tb_cv2_prior_remainder(struct tb_chain* p_chain,
                                      const double* v_theta,
                                      const double* v_delta,
                                      double* p_e);

static inline const struct tb_cv2* tb_cv2_of(const struct tb_chain* p_chain) {
  return p_chain->p_target->p_estimator->p_self;
}

/* The model whose rows are expanded: the chain's, without hyperparameters. */
static inline const struct tb_model* tb_cv2_rows(const struct tb_chain* p) {
  return tb_cv2_of(p)->expansion.p_model;
}

#endif
