/* The surrogate of a posterior (surrogate transitions, Liu 2001): its rows'
 * expansions of second order, but for a few awkward rows S that are as they
 * are, and the prior as it is,
 *
 *   pi^(theta) = p(theta) exp(-sum_{i not in S} [U_i less e_i]) prod_{i in S}
 *                exp(-U_i)
 *              = N(theta; m, Sigma) exp(-[e_0(theta) + sum_{i in S} e_i])
 *
 * with the law N(m, Sigma) that all expansions add up to, and e_i what is left
 * of a row beyond its own (gradients/factorised.c). Whatever is reversible for
 * it may propose to the factorised test, which then looks at the other rows:
 *
 *   pi T prod_{i not in S} min(1, exp(-[e_i' - e_i]))
 *     = pi^ T prod_{i not in S} min(exp(-e_i), exp(-e_i')), symmetric.
 *
 * With hyperparameters phi, which follow the coefficients beta in theta,
 *
 *   pi^(beta, phi) = p(phi) p(beta | phi) N(beta; m, Sigma) exp(-[e_0 + sum_S
 *                    e_i]),
 *
 * e_0 of the priors that no mixture has: the test sees beta alone, and phi
 * costs no look at the data. "The law" is then all but the last factor, which
 * is normal given phi; m and Sigma need not be there without phi.
 *
 * This is what proposals may ask; of rows, priors and models they know nothing.
 */
#ifndef TB_GRADIENTS_SURROGATE_H
#define TB_GRADIENTS_SURROGATE_H

#include "base/frame.h"
#include "base/rng.h"
#include "base/status.h"
#include "priors/mixture-law.h"

#include <stdbool.h>
#include <stddef.h>

struct tb_chain;

/* Rows of S at most. */
enum { TB_AWKWARD_MOST = 5000 };

/* N(m, Sigma): z = L^T (theta - c) is N(v_mean, I) with the frame's c and L.
 * With hyperparameters the frame is that of the metric below. */
struct tb_law {
  struct tb_frame frame;
  double* v_mean; /* n_dim */
};

/* Directions u along which it is far from normal, and what is known of each:
 * log pi^ along u has the curvature u^T A u but for the prior and those rows of
 * S that u moves. */
struct tb_lines {
  size_t n_line;
  double* v_line;  /* n_dim x n_line: u */
  double* v_pull;  /* n_dim x n_line: A u */
  double* v_curve; /* n_line: u^T A u */
  double* v_slope; /* n_line: u^T times that of the law */
  size_t* v_first; /* n_line + 1: where the rows of each begin in v_row */
  size_t* v_row;
  double* v_step; /* of each of these: x_i^T u */
};

struct tb_surrogate {
  struct tb_law law;
  struct tb_mixture_law scales; /* with hyperparameters; its mixtures NULL:
                                   there are none */
  const double* v_slope;  /* n_dim: d log of the law at its frame's center */
  struct tb_frame metric; /* coordinates in which it is about round; of zeros:
                             those of the law */
  size_t n_free;          /* of the moves below; 0: all of the metric's */
  double* v_free;         /* n_dim x n_free: D, D^T A D = I */
  double* v_free_pull;    /* n_dim x n_free: A D */
  double* v_free_slope;   /* n_free: D^T times that of the law */
  struct tb_lines lines;
  size_t n_awkward;
  size_t* v_awkward; /* S, in order */
  bool has_prior;    /* e_0: the test does not look at the prior */
};

/* beta; phi are the coordinates after these */
static inline size_t tb_surrogate_n_coef(const struct tb_surrogate* p) {
  return p->law.frame.n_dim;
}
static inline bool tb_surrogate_has_scales(const struct tb_surrogate* p) {
  return p->scales.p_mixtures != NULL;
}

/* ---- moves of beta, phi staying where it is ---- */

/* Moves beta + D w, with w of about unit scale: n numbers w; D is that of the
 * metric, or a part of the coordinates, given the others. */
static inline size_t tb_surrogate_n_free(const struct tb_surrogate* p) {
  return p->n_free > 0 ? p->n_free : p->law.frame.n_dim;
}
/* v_to := v_from + D w */
void tb_surrogate_move(const struct tb_surrogate* p_surrogate,
                       const double* v_from,
                       const double* v_w,
                       double* v_to);
/* v_pulled := D^T g */
void tb_surrogate_pull(const struct tb_surrogate* p_surrogate,
                       const double* v_gradient,
                       double* v_pulled);

/* v_pulled := D^T g of the log of the law N(m, Sigma) alone, without priors
 * that have hyperparameters; n_free > 0. v_delta: n_dim of scratch */
void tb_surrogate_pull_law(const struct tb_surrogate* p_surrogate,
                           const double* v_theta,
                           double* v_delta,
                           double* v_pulled);

/* ---- along a line ---- */

/* Theta + s u, u that of line k, as the chain looks at it: one line at a time.
 */
struct tb_walk {
  size_t k;
  const double* v_theta;
  double slope; /* d log of the law along it at s = 0 */
  double bend;  /* minus its second */
};

/* SETS *p_walk, to a line through v_theta, which stays where it is. */
void tb_surrogate_walk(struct tb_chain* p_chain,
                       const struct tb_surrogate* p_surrogate,
                       size_t k,
                       const double* v_theta,
                       struct tb_walk* p_walk);
/* v_to := theta + s u, of the coefficients */
void tb_surrogate_walk_to(const struct tb_surrogate* p_surrogate,
                          const struct tb_walk* p_walk,
                          double s,
                          double* v_to);
/* As tb_surrogate_beyond() below, at theta + s u, of the prior and those rows
 * of S alone that the line moves; v_to: n_dim of scratch, with phi as it is */
enum tb_status tb_surrogate_walk_beyond(struct tb_chain* p_chain,
                                        const struct tb_surrogate* p_surrogate,
                                        const struct tb_walk* p_walk,
                                        double s,
                                        double* v_to,
                                        double* p_log);

/* Is it the law? */
static inline bool tb_surrogate_is_normal(const struct tb_surrogate* p) {
  return p->n_awkward == 0 && !p->has_prior;
}

/* the coordinates of the metric */
static inline const struct tb_frame*
tb_surrogate_frame(const struct tb_surrogate* p) {
  return p->metric.v_center != NULL ? &p->metric : &p->law.frame;
}

/* z of a proposal that leaves the law invariant: m + stay (z - m) + sqrt(1 -
 * stay^2) xi; v_z: n_dim of scratch, v_xi comes in as normals and is lost. Of a
 * law given phi: stays at v_from where rounding leaves it no factor. */
void tb_surrogate_draw(struct tb_chain* p_chain,
                       const struct tb_surrogate* p_surrogate,
                       double stay,
                       const double* v_from,
                       double* v_xi,
                       double* v_z,
                       double* v_theta);

/* ---- phi ---- */

/* phi given beta, in place, by draws that are reversible for its law */
void tb_surrogate_draw_scales(struct tb_chain* p_chain,
                              const struct tb_surrogate* p_surrogate,
                              double* v_theta);

/* Number k of phi, in place, by a slice of its density under the law given the
 * others, beta integrated out but for what is held. */
void tb_surrogate_slice_scale(struct tb_chain* p_chain,
                              const struct tb_surrogate* p_surrogate,
                              size_t k,
                              double width,
                              double* v_theta);

/* log density of phi under the law, beta integrated out; -INFINITY where there
 * is none */
double tb_surrogate_marginal(struct tb_chain* p_chain,
                             const struct tb_surrogate* p_surrogate,
                             const double* v_theta);
/* beta of the law given the phi that was asked for last, which must have had a
 * density, and what is held; v_xi as above; false where that is not to be had,
 * to rounding */
bool tb_surrogate_draw_given(struct tb_chain* p_chain,
                             const struct tb_surrogate* p_surrogate,
                             double* v_xi,
                             double* v_theta);

/* ---- densities ---- */

/* log of the law's density, without its constant; v_z: n_dim of scratch */
double tb_surrogate_law(struct tb_chain* p_chain,
                        const struct tb_surrogate* p_surrogate,
                        const double* v_theta,
                        double* v_z);

/* tb_surrogate_beyond() of one that is not its law */
enum tb_status tb_surrogate_look(struct tb_chain* p_chain,
                                 const struct tb_surrogate* p_surrogate,
                                 const double* v_theta,
                                 double* p_log);
/* *p_log := log pi^ less log of the law: -[e_0 + sum_S e_i]; -INFINITY outside
 * the support of a prior that it has */
static inline enum tb_status
tb_surrogate_beyond(struct tb_chain* p_chain,
                    const struct tb_surrogate* p_surrogate,
                    const double* v_theta,
                    double* p_log) {
  *p_log = 0;
  return tb_surrogate_is_normal(p_surrogate)
             ? TB_STATUS_ok
             : tb_surrogate_look(p_chain, p_surrogate, v_theta, p_log);
}

/* v_gradient := that of log pi^ in beta */
enum tb_status tb_surrogate_gradient(struct tb_chain* p_chain,
                                     const struct tb_surrogate* p_surrogate,
                                     const double* v_theta,
                                     double* v_gradient);

#endif
