/* Multilevel regressions, from inside: what groups*.c share.
 *
 *   eta_i = x_i^T beta + offset_i + z_i^T u_g,  z_i = T z'_i,  u_g = A Lambda
 * v_g,  A = T^-T,  v_g ~ N(0, I)
 *   L_g   = log int prod_{i in g} p(y_i | eta_i, s) N(v; 0, I) dv
 *
 * The group is the datum: "rows" of this model, to all who ask it, are groups.
 * The columns of z' are those of z in one unit, and about their means where
 * these are far from 0: with a covariate in raw units the effects u would be
 * all but collinear, and those of z' are not. Effects that are read are u, and
 * their prior is one of their covariance, A Lambda Lambda^T A^T.
 *
 * theta = (beta, lambda, s): lambda are, see groups-factor.c, the logarithms of
 * the standard deviations of Lambda Lambda^T, then Fisher's z of its canonical
 * partial correlations, row by row; s is there where it is sampled.
 *
 *   symbol     variable      shape                 owner
 *   x_i, z_i   store         n_row x n_col         groups; z_i: columns v_z
 *   T, A       span, back    q x q                 groups; T lower triangular
 *   y_i        v_y           n_row x n_y           groups
 *   w_i        v_weight      n_row                 groups
 *   offset_i   v_offset      n_row                 groups
 *   rows of g  v_first       n_group + 1           groups: they follow each
 *                                                  other
 *   t, log w   v_node, v_log_weight  n_node        groups; Gauss-Hermite, the
 *                                                  weights times e^(t^2)
 */
#ifndef TB_MODELS_GROUPS_INSIDE_H
#define TB_MODELS_GROUPS_INSIDE_H

#include "data/region.h"
#include "data/store.h"
#include "models/model.h"
#include "priors/prior.h"
#include "responses/response.h"

enum {
  GROUPS_EFFECT = 3, /* effects of a group at most, q */
  GROUPS_LAMBDA = 6, /* q (q + 1) / 2 */
  GROUPS_ENTRY = 2048
};

enum groups_sd_kind {
  GROUPS_SD_flat = 0,
  GROUPS_SD_normal = 1,
  GROUPS_SD_student = 2,
  GROUPS_SD_exponential = 3
};

/* the prior of standard deviations and correlations */
struct groups_covariance {
  enum groups_sd_kind kind;
  double df;
  double eta; /* of the LKJ prior */
  double v_scale[GROUPS_EFFECT];
};

struct groups {
  struct tb_response response;
  struct tb_prior prior; /* of beta and s; flat in lambda */
  struct groups_covariance covariance;
  struct tb_store store;
  struct tb_region region; /* in which rows and their arrays lie; none: they are
                              memory of its own */
  size_t n_row;
  size_t n_coef;
  size_t n_effect;                               /* q */
  size_t n_lambda;                               /* m: q, or q (q + 1) / 2 */
  size_t v_a[GROUPS_LAMBDA], v_b[GROUPS_LAMBDA]; /* lambda l is Lambda_ab */
  size_t at[GROUPS_EFFECT][GROUPS_EFFECT];       /* the l of Lambda_ab */
  bool is_correlated;                            /* are there correlations? */
  bool has_aux;
  size_t v_z[GROUPS_EFFECT];
  double span[GROUPS_EFFECT][GROUPS_EFFECT];
  double back[GROUPS_EFFECT][GROUPS_EFFECT];
  size_t* v_first;
  size_t n_most;    /* rows of the largest group */
  double* v_number; /* one block of memory: the three below */
  size_t n_byte;
  double* v_y;
  double* v_weight;   /* NULL: 1 each */
  double* v_offset;   /* NULL: 0 each */
  double* v_constant; /* n_group: of the complete log density; NULL: 0 */
  double* v_spare;    /* n_group: rows without residual that are in none of the
                         rows; NULL: 0 */
  size_t n_node;      /* K */
  size_t n_point;     /* K^q */
  double* v_node;
  double* v_log_weight;
};

/* a place, as all groups see it */
struct groups_point {
  const double* v_theta;
  double v_factor[GROUPS_EFFECT][GROUPS_EFFECT]; /* Lambda */
  /* of Lambda_ab in the lambda of Lambda_ac */
  double slope[GROUPS_EFFECT][GROUPS_EFFECT][GROUPS_EFFECT];
  struct tb_response_point response;
  double spare_density, spare_score; /* of a spare row */
};

/* numbers of a gradient at each node: of beta, of u, of s */
static inline size_t groups_each(const struct groups* p) {
  return p->n_coef + p->n_effect + 1;
}

/* ---- groups-factor.c: Lambda of lambda ---- */

/* v_factor and slope of a place */
void groups_set_factor(const struct groups* p, struct groups_point* p_point);

/* v (n_lambda, stride apart), a gradient in Lambda, := that in lambda */
void groups_pull(const struct groups* p,
                 const struct groups_point* p_point,
                 double* v,
                 size_t stride);

/* SUBTRACTS from v_hessian (n_lead apart, at lambda's first row and column)
 * what Lambda bends by, for v_gradient (n_lambda), a gradient in Lambda */
void groups_bend(const struct groups* p,
                 const struct groups_point* p_point,
                 const double* v_gradient,
                 double* v_hessian,
                 size_t n_lead);

/* F := A Lambda, the factor of the covariance of u */
void groups_whole_factor(const struct groups* p,
                         const struct groups_point* p_point,
                         double (*factor)[GROUPS_EFFECT]);

/* ---- groups-scratch.c: what a chain lends ---- */

struct groups_point groups_point_at(const struct groups* p,
                                    const double* v_theta,
                                    bool is_complete);

/* columns that a row's sums over nodes are in */
enum { GROUPS_SUM = 1 + GROUPS_EFFECT + GROUPS_LAMBDA };

struct groups_scratch {
  double* v_eta;   /* n_most: x_i^T beta + offset_i */
  double* v_z;     /* q x n_most */
  double* v_block; /* rows of the store */
  /* n_entry each: rows at all nodes, node after node */
  double* v_entry_eta;
  double* v_entry_y; /* n_y x n_entry */
  double* v_entry_weight;
  double* v_density;
  double* v_score;
  double* v_curvature;
  double* v_aux_score;
  double* v_cross;
  double* v_aux_curvature;
  double* v_sum;  /* GROUPS_SUM x n_entry: sums of each row over the nodes */
  double* v_v;    /* q x n_point: nodes */
  double* v_u;    /* q x n_point: Lambda v */
  double* v_pi;   /* n_point: their weights */
  double* v_coef; /* GROUPS_SUM x n_point */
  double* v_gradient; /* n_dim */
  double* v_before;   /* n_dim */
  double* v_hessian;  /* n_dim x n_dim */
  double* v_each;     /* n_point x (n_coef + q + 1): gradients at each node */
};

/* for_hessian: v_hessian and v_each are there, too */
size_t groups_scratch_size(const struct tb_model* p_model, bool for_hessian);
struct groups_scratch groups_scratch_at(const struct tb_model* p_model,
                                        void* p_scratch,
                                        bool for_hessian);

/* ---- groups-look.c ---- */

/* What is asked of a group. NULL: not. */
struct groups_look {
  bool is_complete;      /* the log density with every constant */
  const double* v_start; /* q: where the search for the mode begins; NULL: 0 */
  double* p_log_lik;     /* SET, like all others */
  double* v_gradient;    /* n_dim */
  double* v_hessian;     /* n_dim x n_dim, of -L_g; with the gradient alone */
  double* v_mode;        /* q: mode of v */
  double* v_mean;        /* q: mean of v given the rows */
  double* v_square;      /* q x q: E v v^T */
};

void groups_look(const struct tb_model* p_model,
                 const struct groups_point* p_point,
                 const struct groups_scratch* p_scratch,
                 size_t group,
                 const struct groups_look* p_look);

/* ---- groups-prior.c ---- */

/* ADDS gradient (n_dim) and, unless NULL, -Hessian (n_dim x n_dim) of the log
 * density of lambda, which is returned. */
double groups_covariance_prior(const struct groups* p,
                               const double* v_theta,
                               double* v_gradient,
                               double* v_hessian,
                               size_t n_dim);

/* ---- groups-move.c ---- */

double groups_move(const struct tb_model* p_model,
                   const struct tb_workspace* p_work,
                   const double* v_theta,
                   struct tb_rng* p_rng,
                   double* v_to);

/* ---- groups-second.c ---- */

size_t
groups_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point);
enum tb_status groups_curvature(const struct tb_model* p_model,
                                const struct tb_workspace* p_work,
                                const double* v_theta,
                                const struct tb_batch* p_batch,
                                const struct tb_curvature* p_sums);
void groups_curvature_prior(const struct tb_model* p_model,
                            const struct tb_workspace* p_work,
                            const double* v_theta,
                            const double* v_round,
                            double weight,
                            const struct tb_curvature* p_sums);
enum tb_status groups_weights(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              enum tb_weight_type type,
                              const double* v_theta,
                              const double* v_chol,
                              const struct tb_batch* p_batch,
                              double* v_out);
extern const struct tb_model_expansion groups_expansion;

#endif
