/* Responses whose first auxiliary parameter has a predictor of its own, in the
 * coordinate of samplers: s_i = eta_2i, such as log sigma_i of a normal one.
 *
 *   l_i = log p(y_i | eta_1i, e^eta_2i, z)     z: what other parameter there is
 *   dl/deta_2 = dl/ds,  d2l/deta_1 deta_2 = d2l/deta ds,  and so on,
 *
 * so that all there is of them is what the tables of the response, the base,
 * say of one row at a point of its own.
 *
 * Rigby & Stasinopoulos (2005), Generalized additive models for location, scale
 * and shape, JRSS C 54:507.
 *
 *   symbol   variable
 *   z        p_point->v_own[0], coordinate where it is sampled */
#include "responses/response.h"
#include "responses/shared.h"

#include <math.h>

/* By what a deviance is divided that leaves a dispersion out */
enum dispersion { DISPERSION_none, DISPERSION_scale, DISPERSION_aux };

static void predicted_prepare(const double* v_aux,
                              struct tb_response_point* p_point) {
  p_point->v_own[0] = v_aux[0];
}

/* the base's point of a row whose first parameter is `first`: its coordinate,
 * or its natural value */
static struct tb_response_point base_point(const struct tb_response_type* base,
                                           const struct tb_response_point* p,
                                           bool is_coordinate,
                                           double first) {
  struct tb_response_point point = {
      .v_is_sampled = {is_coordinate, p->v_is_sampled[0]},
      .scale = 1};
  const double most = TB_RESPONSE_LARGEST_ETA;
  const double value = is_coordinate ? fmin(fmax(first, -most), most) : first;
  const double v_aux[TB_RESPONSE_MOST_AUX] = {value, p->v_own[0]};
  base->prepare(v_aux, &point);
  return point;
}

/* what the base says of one row */
struct base_row {
  double l, score, curvature;
  double v_aux_score[TB_RESPONSE_MOST_AUX];
  double v_cross[TB_RESPONSE_MOST_AUX];
  double v_bend[TB_RESPONSE_MOST_PAIR]; /* -d2l/ds ds', with all of it */
};

static void look_at_row(const struct tb_response_type* base,
                        const struct tb_response_rows* p_rows,
                        size_t k,
                        const struct tb_response_out* p_out,
                        struct base_row* p) {
  const struct tb_response_point point =
      base_point(base, p_rows->p_point, true, p_rows->v_eta[p_rows->n_row + k]);
  double v_y[TB_RESPONSE_MOST_Y];
  tb_response_columns(p_rows->v_y,
                      p_rows->n_row,
                      k,
                      1,
                      tb_response_n_y(base),
                      v_y);
  const struct tb_response_rows row = {
      .n_row = 1,
      .n_predictor = 1,
      .v_eta = p_rows->v_eta + k,
      .v_y = v_y,
      .v_weight = p_rows->v_weight == NULL ? NULL : p_rows->v_weight + k,
      .p_point = &point};
  const bool slopes = p_out->v_score != NULL || p_out->v_aux_score != NULL;
  const bool bends = p_out->v_curvature != NULL || p_out->v_cross != NULL ||
                     p_out->v_aux_curvature != NULL;
  const struct tb_response_out out = {
      .v_log_density = p_out->v_log_density == NULL ? NULL : &p->l,
      .is_complete = p_out->is_complete,
      .v_score = slopes ? &p->score : NULL,
      .v_curvature = bends ? &p->curvature : NULL,
      .v_aux_score = slopes ? p->v_aux_score : NULL,
      .v_cross = bends ? p->v_cross : NULL,
      .v_aux_curvature = bends ? p->v_bend : NULL};
  base->evaluate(&row, &out);
  p->v_bend[0] += bends ? base->v_aux[0].information : 0;
}

static void predicted_evaluate(const struct tb_response_type* base,
                               const struct tb_response_rows* p_rows,
                               const struct tb_response_out* p_out) {
  const size_t n = p_rows->n_row;
  for (size_t k = 0; k < n; ++k) {
    struct base_row row;
    look_at_row(base, p_rows, k, p_out, &row);
    if (p_out->v_log_density != NULL) {
      p_out->v_log_density[k] = row.l;
    }
    if (p_out->v_score != NULL) {
      p_out->v_score[k] = row.score;
      p_out->v_score[n + k] = row.v_aux_score[0];
    }
    if (p_out->v_curvature != NULL) {
      p_out->v_curvature[k] = row.curvature;
      p_out->v_curvature[n + k] = row.v_cross[0];
      p_out->v_curvature[2 * n + k] = row.v_bend[0];
    }
    /* of z, the base's second */
    if (p_out->v_aux_score != NULL) {
      p_out->v_aux_score[k] = row.v_aux_score[1];
    }
    if (p_out->v_cross != NULL) {
      p_out->v_cross[k] = row.v_cross[1];
      p_out->v_cross[n + k] = row.v_bend[tb_response_pair(1, 0)];
    }
    if (p_out->v_aux_curvature != NULL) {
      p_out->v_aux_curvature[k] = row.v_bend[tb_response_pair(1, 1)];
    }
  }
}

/* (mean, e^eta_2) */
static void predicted_mean(const struct tb_response_type* base,
                           const double* v_eta,
                           size_t n_row,
                           double* v_out) {
  base->mean(v_eta, n_row, 1, v_out);
  for (size_t k = n_row; k < 2 * n_row; ++k) {
    v_out[k] = exp(v_eta[k]);
  }
}

static void predicted_variance(const struct tb_response_type* base,
                               const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const struct tb_response_point point =
        base_point(base, p_point, false, v_mean[n_row + k]);
    base->variance(v_mean + k,
                   1,
                   v_weight == NULL ? NULL : v_weight + k,
                   &point,
                   v_out + k);
  }
}

/* the second parameter as it is */
static void predicted_deviance(const struct tb_response_type* base,
                               enum dispersion dispersion,
                               const double* v_y,
                               const double* v_mean,
                               size_t n_row,
                               const double* v_weight,
                               const struct tb_response_point* p_point,
                               double* v_out) {
  for (size_t k = 0; k < n_row; ++k) {
    const struct tb_response_point point =
        base_point(base, p_point, false, v_mean[n_row + k]);
    double v_own[TB_RESPONSE_MOST_Y];
    tb_response_columns(v_y, n_row, k, 1, tb_response_n_y(base), v_own);
    base->deviance(v_own,
                   v_mean + k,
                   1,
                   v_weight == NULL ? NULL : v_weight + k,
                   &point,
                   v_out + k);
    v_out[k] *= dispersion == DISPERSION_none    ? 1
                : dispersion == DISPERSION_scale ? point.scale
                                                 : point.aux;
  }
}

/* what is left of a parameter beside the predicted one: of Student responses */
static const struct tb_response_aux student_rest = {.name = "nu",
                                                    .coordinate =
                                                        "log_nu_minus_1",
                                                    .lower = 1};

/* The table tb_response_<own> of a base and what is predicted. */
#define PREDICTED(own,                                                         \
                  base_,                                                       \
                  name_,                                                       \
                  link_,                                                       \
                  flags_,                                                      \
                  dispersion_,                                                 \
                  aux_,                                                        \
                  n_aux_,                                                      \
                  prepare_,                                                    \
                  n_y_)                                                        \
  extern const struct tb_response_type tb_response_##base_;                    \
  static size_t own##_outside(const double* v_y, size_t n, double size) {      \
    return tb_response_##base_.outside(v_y, n, size);                          \
  }                                                                            \
  static void own##_evaluate(const struct tb_response_rows* p_rows,            \
                             const struct tb_response_out* p_out) {            \
    predicted_evaluate(&tb_response_##base_, p_rows, p_out);                   \
  }                                                                            \
  static void own##_mean(const double* v_eta,                                  \
                         size_t n_row,                                         \
                         size_t n_predictor,                                   \
                         double* v_out) {                                      \
    (void)n_predictor;                                                         \
    predicted_mean(&tb_response_##base_, v_eta, n_row, v_out);                 \
  }                                                                            \
  static void own##_variance(const double* v_mean,                             \
                             size_t n_row,                                     \
                             const double* v_weight,                           \
                             const struct tb_response_point* p_point,          \
                             double* v_out) {                                  \
    predicted_variance(&tb_response_##base_,                                   \
                       v_mean,                                                 \
                       n_row,                                                  \
                       v_weight,                                               \
                       p_point,                                                \
                       v_out);                                                 \
  }                                                                            \
  static void own##_deviance(const double* v_y,                                \
                             const double* v_mean,                             \
                             size_t n_row,                                     \
                             const double* v_weight,                           \
                             const struct tb_response_point* p_point,          \
                             double* v_out) {                                  \
    predicted_deviance(&tb_response_##base_,                                   \
                       dispersion_,                                            \
                       v_y,                                                    \
                       v_mean,                                                 \
                       n_row,                                                  \
                       v_weight,                                               \
                       p_point,                                                \
                       v_out);                                                 \
  }                                                                            \
  extern const struct tb_response_type tb_response_##own;                      \
  const struct tb_response_type tb_response_##own = {                          \
      .name = name_,                                                           \
      .link = link_,                                                           \
      .citation = "Rigby & Stasinopoulos (2005), JRSS C 54:507",               \
      .flags = flags_,                                                         \
      .v_aux = aux_,                                                           \
      .n_aux = n_aux_,                                                         \
      .n_predictor = 2,                                                        \
      .n_y = n_y_,                                                             \
      .outside = own##_outside,                                                \
      .evaluate = own##_evaluate,                                              \
      .mean = own##_mean,                                                      \
      .variance = own##_variance,                                              \
      .deviance = own##_deviance,                                              \
      .prepare = prepare_,                                                     \
  };

PREDICTED(gaussian_sigma,
          gaussian,
          "gaussian_sigma",
          "identity",
          TB_RESPONSE_PRECISION,
          DISPERSION_scale,
          NULL,
          0,
          NULL,
          1)
PREDICTED(student_sigma,
          student,
          "student_sigma",
          "identity",
          TB_RESPONSE_PRECISION,
          DISPERSION_none,
          &student_rest,
          1,
          predicted_prepare,
          1)
PREDICTED(neg_binomial_shape,
          neg_binomial_log,
          "neg_binomial_2_shape",
          "log",
          0,
          DISPERSION_none,
          NULL,
          0,
          NULL,
          1)
PREDICTED(gamma_shape,
          gamma_log,
          "Gamma_shape",
          "log",
          0,
          DISPERSION_aux,
          NULL,
          0,
          NULL,
          1)
PREDICTED(beta_phi,
          beta_logit,
          "beta_phi",
          "logit",
          0,
          DISPERSION_none,
          NULL,
          0,
          NULL,
          1)
/* the tobit model */
PREDICTED(censored_gaussian_sigma,
          censored_gaussian,
          "censored_gaussian_sigma",
          "identity",
          TB_RESPONSE_PRECISION,
          DISPERSION_none,
          NULL,
          0,
          NULL,
          3)
PREDICTED(censored_neg_binomial_shape,
          censored_neg_binomial,
          "censored_neg_binomial_2_shape",
          "log",
          0,
          DISPERSION_none,
          NULL,
          0,
          NULL,
          3)
PREDICTED(censored_student_sigma,
          censored_student,
          "censored_student_sigma",
          "identity",
          TB_RESPONSE_PRECISION,
          DISPERSION_none,
          &student_rest,
          1,
          predicted_prepare,
          3)
