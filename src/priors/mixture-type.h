/* Priors as normal scale mixtures: a family whose members know a block of
 * coefficients and hyperparameters of their own,
 *
 *   beta_j | phi ~ N(m_j, 1 / P_j(phi)),   phi ~ p(phi),
 *
 * which no row of the data sees.
 *
 *   kind       1 / P_j                      hyperparameters (x = e^phi)
 *   student    s_j^2 x_j^2                  x_j^2 ~ inverse gamma(n_j/2, n_j/2)
 *   laplace    s_j^2 x_j^2                  x_j^2 ~ exponential(1/2)
 *   ridge      s_j^2 t^2                    t ~ half Student(n, 0, a), half
 *                                           normal(0, a) where n is infinite,
 *                                           or exponential, mean a
 *   horseshoe  s_j^2 / [1/c^2 + 1/(t x_j)^2]
 *                                           t ~ half Student(n_t, 0, a),
 *                                           c^2/b^2 ~ inv. gamma(n_c/2, n_c/2),
 *                                           x_j ~ half Student(n)
 *   r2d2       s_j^2 R/(1 - R) g_j / sum g  R ~ beta(mean u, (1 - mean) u),
 *                                           g_j ~ gamma(a_j, 1)
 *
 * Student and Laplace are the marginal priors of prior_student(n, m, s) and
 * prior_laplace(m, s). Horseshoe: Piironen & Vehtari (2017), EJS 11:5018, eq.
 * 2.8 to 2.11. R2D2: Zhang, Naughton, Bondell & Reich (2022), JASA 117:862,
 * with g_j / sum g, Dirichlet(a), for its shares; the sum of g is free of beta.
 *
 * phi are coordinates on the whole line, logarithms (of R log R/(1 - R)); every
 * density includes the Jacobian. In theta they follow all other coordinates:
 * (coefficients, parameters of the response, phi), the shared ones of a block
 * first, then one of each coefficient where a member has them.
 *
 * A new member: its .c with a table at the end, one line in
 * registry-mixtures.c, one in Makevars, its constructor in R/prior-mixture.R
 * and its entry in R/prior.R.
 *
 * A table and a mixture are const while chains run. */
#ifndef TB_PRIORS_MIXTURE_TYPE_H
#define TB_PRIORS_MIXTURE_TYPE_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>

enum { TB_MIXTURE_n_argument = 5 };

struct tb_mixture_type;

/* A block of coefficients under one prior. */
struct tb_mixture {
  const struct tb_mixture_type* type;
  size_t n_coef;
  size_t n_hyper;
  const double* v_location; /* n_coef: m */
  const double* v_scale;    /* n_coef: s */
  const double* v_shape;    /* n_coef: n_j of student, a_j of r2d2, else 0 */
  double v_argument[TB_MIXTURE_n_argument]; /* in the order of the member */
};

struct tb_mixture_type {
  const char* name;
  size_t n_shared;   /* leading hyperparameters that all coefficients share */
  bool has_locals;   /* are they followed by one of each coefficient? */
  size_t n_argument; /* how many of v_argument it takes */
  bool has_shape;    /* v_shape, above 0 */

  /* all required */

  /* Are the arguments of a mixture with all other fields set as they must be?
   */
  bool (*is_valid)(const struct tb_mixture* p_mixture);

  /* log p(phi) without its constant, Jacobian included */
  double (*log_prior)(const struct tb_mixture* p_mixture, const double* v_phi);

  /* SETS v_precision (n_coef) to P */
  void (*precision)(const struct tb_mixture* p_mixture,
                    const double* v_phi,
                    double* v_precision);

  /* SETS v_gradient_phi (n_hyper) to the gradient in phi of log p(phi) +
   * log p(beta | phi). */
  void (*gradient)(const struct tb_mixture* p_mixture,
                   const double* v_beta,
                   const double* v_phi,
                   double* v_gradient_phi);

  /* Moves phi by a kernel that is reversible for p(phi | beta), with nothing to
   * tune and no state. v_work: n_hyper + n_coef numbers. */
  void (*draw)(const struct tb_mixture* p_mixture,
               const double* v_beta,
               double* v_phi,
               double* v_work,
               struct tb_rng* p_rng);

  /* SETS v_phi to an independent draw from p(phi). */
  void (*simulate)(const struct tb_mixture* p_mixture,
                   double* v_phi,
                   struct tb_rng* p_rng);

  /* SETS v_natural (n_hyper) to what users see: x, t, c, R and the shares. */
  void (*natural)(const struct tb_mixture* p_mixture,
                  const double* v_phi,
                  double* v_natural);
};

/* registry-mixtures.c: every member, NULL-terminated. Models know theirs by its
 * place, `mixture` in R/prior.R: new ones go to the end. */
extern const struct tb_mixture_type* const tb_mixture_registry[];
size_t tb_mixture_count(void);
/* by its place, which may be any number: NULL where it is none */
const struct tb_mixture_type* tb_mixture_at_place(double place);

#endif
