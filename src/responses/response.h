/* The response family: how one observation depends on its linear predictors.
 *
 *   y_i | eta_i, s ~ response,  l_i = log p(y_i | eta_i, s)
 *
 * with s auxiliary parameters, none, one or two, in the coordinates that
 * samplers move, such as log sigma. A row has one predictor and one number y
 * mostly; a type may have several of both: K predictors, such as those of a
 * mean and of a scale, or one for each class, and columns of y, such as the
 * limits between which it lies. Arrays of rows are columns of n_row numbers,
 * one column after the other. A response is a const table of functions
 * over blocks of rows; who asks dispatches once a block, never once a row. It
 * knows nothing of where rows lie or what eta is made of: models do.
 *
 * A new response: its .c with a table at the end, one line in registry.c, one
 * in Makevars, and an entry beside it, R/response-<name>.R. The conformance
 * tests take it from the registry.
 *
 *   slot         formula                              glm      network
 *   evaluate     l, dl/deta, -d2l/deta2, those in s   required required
 *   bound        sup of -d2l/deta2 over an interval   robust and Lipschitz
 *                                                     weights
 *   third_bound  sup of |d3l/deta3|, s fixed          cubic weights
 *   remainder    -l less its expansion to t^2         exact steps from few rows
 *   mean         E(y)                                 predictions
 *   variance, deviance                                of the mean
 *
 * glm and groups take one predictor; network takes any response. */
#ifndef TB_RESPONSES_RESPONSE_H
#define TB_RESPONSES_RESPONSE_H

#include "base/param.h"

#include <stdbool.h>
#include <stddef.h>

enum tb_response_flag {
  /* a predictor for each class, however many there are */
  TB_RESPONSE_CLASSES = 1u << 0,
  /* weights are precisions: they divide the variance. Otherwise they are
   * counts: a row of weight w is w equal rows or, with a proportion, w
   * trials. */
  TB_RESPONSE_PRECISION = 1u << 1,
  /* the auxiliary parameter does no more than scale the variance: residuals
   * leave it out, as those of generalised linear models do */
  TB_RESPONSE_DISPERSION = 1u << 2
};

/* The most auxiliary parameters of a response, and pairs of them; columns of y;
 * predictors where they are not of classes */
enum {
  TB_RESPONSE_MOST_AUX = 2,
  TB_RESPONSE_MOST_PAIR = 3,
  TB_RESPONSE_MOST_Y = 3,
  TB_RESPONSE_MOST_PREDICTOR = 4
};

/* an auxiliary parameter, above `lower`: natural = lower + e^coordinate */
struct tb_response_aux {
  const char* name;       /* on its natural scale */
  const char* coordinate; /* that samplers move */
  double lower;
  double information; /* see tb_response_out */
};

/* Where the auxiliary parameters are, and what the rows of a pass share there.
 */
struct tb_response_point {
  /* their terms of l_i count, and their derivatives are wanted */
  bool v_is_sampled[TB_RESPONSE_MOST_AUX];
  double scale;    /* of weights that are precisions: 1 / sigma^2 */
  double log_base; /* of each row's l_i, that of an unsampled one left out */
  double log_norm; /* the same with every constant */
  double aux;      /* the first, natural, and its logarithm */
  double log_aux;
  double v_own[4]; /* the response's own */
};

/* a block of rows; columns of n_row numbers */
struct tb_response_rows {
  size_t n_row;
  size_t n_predictor;     /* K, tb_response_n_predictor() */
  const double* v_eta;    /* n_row x K */
  const double* v_y;      /* n_row x tb_response_n_y() */
  const double* v_weight; /* NULL: 1 each */
  const struct tb_response_point* p_point;
};

/* What is asked for of each row, NULL: not. Nothing may overlap the rows. */
struct tb_response_out {
  double* v_log_density;
  bool is_complete;    /* l_i with every constant; otherwise without those of
                          neither eta nor a sampled s */
  double* v_score;     /* dl/deta: n_row x K */
  double* v_curvature; /* -d2l/deta deta', the observed one: n_row x
                          K (K + 1) / 2, see tb_response_pair() */
  /* Only where some s is sampled, a column of n_row for each that is: */
  double* v_aux_score; /* dl/ds */
  double* v_cross;     /* -d2l/deta ds, K columns for each s */
  /* -d2l/ds ds', a column for each pair, see tb_response_pair(); of s with
   * itself less w_i `information`: what it is on average where that is a
   * constant. Sums of the rest keep more digits, and the constant is added
   * once. */
  double* v_aux_curvature;
};

struct tb_response_type {
  const char* name;
  const char* link;
  const char* citation;
  unsigned flags;
  const struct tb_response_aux* v_aux; /* n_aux; NULL: none */
  size_t n_aux;
  size_t n_y;         /* columns of y; 0: one */
  size_t n_predictor; /* K, but of classes; 0: one */

  /* ---- required ---- */

  /* Position of the first row whose y it cannot have, n if there is none.
   * size: trials of each row (y is their proportion), or classes; 0: not
   * known. */
  size_t (*outside)(const double* v_y, size_t n, double size);

  /* SETS what is asked for. */
  void (*evaluate)(const struct tb_response_rows* p_rows,
                   const struct tb_response_out* p_out);

  /* E(y); of classes, their probabilities; with K predictors what the law has
   * in the place of each, E(y) first; where E(y) hangs on auxiliary parameters
   * another function of eta, as the table's file says. n_row x K; v_out may be
   * v_eta. */
  void (*mean)(const double* v_eta,
               size_t n_row,
               size_t n_predictor,
               double* v_out);

  /* ---- required but of classes ---- */

  /* of one observation: of precision w, or the proportion of w trials. v_mean:
   * n_row x K */
  void (*variance)(const double* v_mean,
                   size_t n_row,
                   const double* v_weight,
                   const struct tb_response_point* p_point,
                   double* v_out);

  /* Twice what l_i falls short of the largest it could be; times the dispersion
   * where that is all that an auxiliary parameter is, see
   * TB_RESPONSE_DISPERSION */
  void (*deviance)(const double* v_y,
                   const double* v_mean,
                   size_t n_row,
                   const double* v_weight,
                   const struct tb_response_point* p_point,
                   double* v_out);

  /* ---- optional: NULL where there is none ---- */

  /* What auxiliary parameters make of a point, of which v_is_sampled is set:
   * their coordinates where they are sampled, natural values where they are
   * known. Required with v_aux. */
  void (*prepare)(const double* v_aux, struct tb_response_point* p_point);

  /* These three with one predictor only.
   *
   * Bounds over |eta - eta_i| <= v_reach[i] of what p_out asks for: of the
   * curvature and, for a sampled s, of |cross| and the whole aux_curvature.
   * Infinite where there are none; over an infinite interval, global ones. */
  void (*bound)(const struct tb_response_rows* p_rows,
                const double* v_reach,
                const struct tb_response_out* p_out);

  /* the same of |d3l/deta3|, s fixed */
  void (*third_bound)(const struct tb_response_rows* p_rows,
                      const double* v_reach,
                      double* v_out);

  /* What -l is beyond its second-order expansion, s fixed,
   *   e_i = -[l(eta_i + t_i) - l(eta_i) - l'(eta_i) t_i - l''(eta_i) t_i^2 / 2]
   * SETS v_out. Of a relative error far below 1e-5 of third_bound |t|^3 / 6:
   * what accepts or rejects compares the two. Required with third_bound. */
  void (*remainder)(const struct tb_response_rows* p_rows,
                    const double* v_t,
                    double* v_out);
};

/* A response with what is known of its auxiliary parameters: what models hold.
 */
struct tb_response {
  const struct tb_response_type* type;
  double v_known[TB_RESPONSE_MOST_AUX]; /* natural; NAN: it is sampled */
};

/* column of the pair of predictors, or of sampled parameters, k and l <= k */
static inline size_t tb_response_pair(size_t k, size_t l) {
  return k * (k + 1) / 2 + l;
}

/* columns of y */
static inline size_t tb_response_n_y(const struct tb_response_type* type) {
  return type->n_y == 0 ? 1 : type->n_y;
}

/* K; n_class: of responses that have a predictor for each */
static inline size_t
tb_response_n_predictor(const struct tb_response_type* type, size_t n_class) {
  return type->flags & TB_RESPONSE_CLASSES ? n_class
         : type->n_predictor == 0          ? 1
                                           : type->n_predictor;
}

/* Rows first .. first + n of columns of n_row numbers, n apart in v_to. */
void tb_response_columns(const double* v_from,
                         size_t n_row,
                         size_t first,
                         size_t n,
                         size_t n_column,
                         double* v_to);

/* What is shared at a point. v_coordinate: those of sampled s, in their order.
 */
struct tb_response_point tb_response_at(const struct tb_response* p_response,
                                        const double* v_coordinate);

/* number of sampled auxiliary parameters */
size_t tb_response_n_sampled(const struct tb_response* p_response);

/* the k-th of the sampled ones */
const struct tb_response_aux*
tb_response_sampled(const struct tb_response* p_response, size_t k);
/* information of each sampled parameter of a point, in their order; returns
 * their number */
size_t tb_response_informations(const struct tb_response_type* type,
                                const struct tb_response_point* p_point,
                                double* v_out);

/* coordinates of sampled ones -> natural scale */
void tb_response_natural(const struct tb_response* p_response,
                         const double* v_coordinate,
                         double* v_natural);

/* Known values, one for each (NAN: it is sampled). false: they are none. */
bool tb_response_know(struct tb_response* p_response,
                      const double* v_value,
                      size_t n_value);

/* exp() of more than this is as good as infinite, and still can be added up */
#define TB_RESPONSE_LARGEST_ETA 300.0

static inline double tb_response_weight(const struct tb_response_rows* p_rows,
                                        size_t k) {
  return p_rows->v_weight == NULL ? 1 : p_rows->v_weight[k];
}

/* registry.c: every response of the library, NULL-terminated. Saved fits know
 * theirs by its place: new ones go to the end. */
extern const struct tb_response_type* const tb_response_registry[];
size_t tb_response_count(void);

/* NULL: there is none. link: NULL for the first of that name. */
const struct tb_response_type* tb_response_find(const char* name,
                                                const char* link);

/* by its place, which may be any number: NULL where it is none */
const struct tb_response_type* tb_response_at_place(double place);

/* The response of a model's parameters: "response", its place in the registry,
 * and what is known of its own, "aux". false: there is none such. */
bool tb_response_read(struct tb_response* p_response,
                      const struct tb_params* p_params);

#endif
