/* The independent priors of a model's coordinates, each of priors/type.h.
 *
 * One coordinate, the intercept of a regression, may have its prior on a
 * linear functional a^T theta instead: the predictor at the mean of the
 * covariates, as users of rstanarm expect. */
#ifndef TB_PRIORS_PRIOR_H
#define TB_PRIORS_PRIOR_H

#include "base/param.h"
#include "base/status.h"
#include "priors/type.h"

struct tb_prior {
  size_t n_dim;
  double* v_kind;       /* n_dim, places in the registry */
  double* v_location;   /* n_dim */
  double* v_scale;      /* n_dim */
  double* v_functional; /* n_dim: a */
  double* v_precision;  /* n_dim: 1/v, 0 where flat or not quadratic */
  double* v_shape;      /* n_dim, 0 of priors without; one block of memory, at
                           v_kind */
  size_t at;            /* the coordinate whose prior is on a^T theta; n_dim:
                           none */
  int is_normal;        /* every coordinate's own prior is normal, or flat
                           within bounds or without */
  int is_bounded;       /* one of them has bounds */
};

/* From the parameters "prior_kind", "prior_location", "prior_scale" (n_dim
 * each) and, optional, "prior_shape" (n_dim), "prior_at" (counted from 0) and
 * "prior_functional". */
enum tb_status tb_prior_create(struct tb_prior* p_prior,
                               const struct tb_params* p_params,
                               size_t n_dim);
enum tb_status tb_prior_copy(const struct tb_prior* p_prior,
                             struct tb_prior* p_out);
void tb_prior_destroy(struct tb_prior* p_prior);

/* SETS v_gradient; returns the log density, without its constant. */
double tb_prior_gradient(const struct tb_prior* p_prior,
                         const double* v_theta,
                         double* v_gradient);

/* The same with |t| rounded to sqrt(t^2 + round^2) (v_round may be NULL), and
 * -Hessian ADDED to v_hessian (n_dim x n_dim, or NULL). The Laplace
 * curvature counts only where it is rounded. */
double tb_prior_curvature(const struct tb_prior* p_prior,
                          const double* v_theta,
                          const double* v_round,
                          double* v_gradient,
                          double* v_hessian,
                          size_t n_lead);

/* The diagonal of -Hessian, ADDED to v_diagonal (n_dim). */
void tb_prior_diagonal(const struct tb_prior* p_prior,
                       const double* v_theta,
                       double* v_diagonal);

/* A P that is not below 0, for the expansion of the log prior at theta: its
 * -Hessian, 1 / (2 s^2) of laplace(m, s), (n + 1) / (n s^2 + (t - m)^2) of
 * student(m, s); 0 within the bounds of a uniform.
 * SETS v_hessian (n_dim x n_dim); is the log prior nothing but quadratic with
 * it, where it is not 0? */
bool tb_prior_quadratic(const struct tb_prior* p_prior,
                        const double* v_theta,
                        double* v_hessian);

/* Is theta outside the support of the prior? */
bool tb_prior_is_outside(const struct tb_prior* p_prior, const double* v_theta);

/* The largest eigenvalue of -Hessian in the coordinates theta_j / m_j (v_map:
 * m, n_dim; NULL: 1); NaN if a coordinate has no Lipschitz gradient. */
double tb_prior_lipschitz(const struct tb_prior* p_prior, const double* v_map);

#endif
