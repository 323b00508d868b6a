/* The normal law of coefficients given their scales. With a log likelihood that
 * is quadratic about c, with gradient g and Hessian -H there, and beta ~ N(mu,
 * 1 / P(phi)) where a mixture covers it,
 *
 *   beta | phi ~ N(m, A^-1),  A = H + P,  m = mu + A^-1 r,  r = g - H (mu - c),
 *
 * mu = c where none covers it, and with beta integrated out, up to a constant,
 *
 *   log p(phi) + (sum log P - log |A| + r^T A^-1 r) / 2.
 *
 * About mu, as r does not depend on phi: nothing cancels where P is large.
 *
 *   symbol  variable     shape  owner
 *   c, g    v_center, v_slope  n_coef          the caller
 *   H       v_bend       n_coef x n_coef       the caller
 *   P, mu   v_precision, v_location  n_coef    given; P is 0 where none covers
 *   R       v_upper      n_coef x n_coef       given: R^T R = A
 *
 * Coefficients that no mixture covers have rows and columns of A that no phi
 * changes. With a base they come first and are eliminated once:
 *
 *   order                v_order  n_coef           the base: bare ones first
 *   R_bb, R_bc, S_cc     v_upper  n_coef x n_coef  the base: of H, S = H_cc -
 *                                                  R_bc^T R_bc
 *
 * so that a phi costs (n_coef - n_bare)^3 / 3 operations and some n_coef^2.
 *
 * Of functionals C^T beta that a draw holds where they are:
 *
 *   C                    v_held   n_coef x n_held  the base
 *   Z = R^-T C           v_rest   n_coef x n_held  the base, in the order: its
 *                                                  bare part, and of the others
 *                                                  C_c less R_bc^T Z_b
 */
#ifndef TB_PRIORS_MIXTURE_LAW_H
#define TB_PRIORS_MIXTURE_LAW_H

#include "base/status.h"
#include "priors/mixture.h"

/* Of none: n_bare 0, v_order and v_upper NULL. */
struct tb_mixture_base {
  size_t n_bare;
  size_t* v_order;
  double* v_upper;
  size_t n_held;
  double* v_held; /* NULL: nothing is held */
  double* v_rest;
};

struct tb_mixture_law {
  size_t n_coef;
  const double* v_center;
  const double* v_slope;
  const double* v_bend;
  const struct tb_mixtures* p_mixtures;
  struct tb_mixture_base base; /* may be of none */
};

/* Makes the base of a law whose H stays, in memory of its own; of none where
 * nearly all are covered, or H_bb is not positive definite, to rounding.
 * v_held: C, n_held of n_coef / 4 at most, of 0 maybe. */
enum tb_status tb_mixture_base_make(struct tb_mixture_law* p_law,
                                    size_t n_held,
                                    const double* v_held);
void tb_mixture_base_free(struct tb_mixture_law* p_law);

/* number j in that order */
static inline size_t tb_mixture_at(const struct tb_mixture_law* p, size_t j) {
  return p->base.v_order == NULL ? j : p->base.v_order[j];
}

/* What is known of it at one phi, in scratch of the caller's. */
struct tb_mixture_given {
  double* v_precision;
  double* v_location;
  double* v_mean;
  double* v_z;     /* n_coef, free */
  double* v_order; /* n_coef, of a slice */
  double* v_upper;
  double* v_part; /* n_coef x n_coef, of a slice */
  double* v_hold; /* n_coef x n_coef, of what is held */
  double* v_work;
};

/* numbers of that scratch, and where each lies */
size_t tb_mixture_given_size(const struct tb_mixtures* p_mixtures,
                             size_t n_coef);
struct tb_mixture_given
tb_mixture_given_at(const struct tb_mixtures* p_mixtures,
                    size_t n_coef,
                    double* v_scratch);

/* P and mu at phi; SETS all of them */
void tb_mixture_law_scales(const struct tb_mixture_law* p_law,
                           const double* v_phi,
                           struct tb_mixture_given* p_given);

/* v_out := r, the gradient at mu, where mu is given; takes v_z */
void tb_mixture_law_gradient(const struct tb_mixture_law* p_law,
                             const struct tb_mixture_given* p_given,
                             double* v_out);

/* Those, R, in the base's order, and m. False where A is not positive definite,
 * to rounding. */
bool tb_mixture_law_set(const struct tb_mixture_law* p_law,
                        const double* v_phi,
                        struct tb_mixture_given* p_given);

/* the marginal density of phi above, where it is set there and nothing has been
 * drawn since */
double tb_mixture_law_marginal(const struct tb_mixture_law* p_law,
                               const double* v_phi,
                               const struct tb_mixture_given* p_given);

/* v_beta := m + stay (v_from - m) + sqrt(1 - stay^2) R^-1 xi, which leaves the
 * law invariant; v_from may be NULL where stay is 0, v_xi is lost. Returns the
 * log density at v_from less that at v_beta (0 where v_from is NULL). */
double tb_mixture_law_draw(const struct tb_mixture_law* p_law,
                           const struct tb_mixture_given* p_given,
                           double stay,
                           const double* v_from,
                           double* v_xi,
                           double* v_beta);

/* The same given C^T beta, which stays what it is at v_from, of a law that has
 * a base, of none maybe; false where these are not independent, to rounding.
 * v_from may be v_beta. */
bool tb_mixture_law_draw_held(const struct tb_mixture_law* p_law,
                              const struct tb_mixture_given* p_given,
                              double stay,
                              const double* v_from,
                              double* v_xi,
                              double* v_beta);

/* Moves v_phi[k] by a slice (base/slice.h) of its density given the others,
 * beta integrated out but for what is held of v_beta, from a first interval of
 * that width: see mixture-slice.c. Takes all of the scratch; stays where A is
 * not positive definite, to rounding. */
void tb_mixture_law_slice(const struct tb_mixture_law* p_law,
                          size_t k,
                          double width,
                          const double* v_beta,
                          double* v_phi,
                          struct tb_mixture_given* p_given,
                          struct tb_rng* p_rng);

/* log p(phi) + log p(beta | phi), where P and mu are those of phi */
double tb_mixture_law_prior(const struct tb_mixture_law* p_law,
                            const double* v_beta,
                            const double* v_phi,
                            const struct tb_mixture_given* p_given);

#endif
