/* What responses that have little else in common share. */
#ifndef TB_RESPONSES_SHARED_H
#define TB_RESPONSES_SHARED_H

#include "responses/response.h"

/* `prepare` of a positive parameter, the first, that is sampled as its
 * logarithm */
void tb_response_prepare_log(const double* v_aux,
                             struct tb_response_point* p_point);

/* the size of negative binomial counts */
extern const struct tb_response_aux tb_response_size;

/* rows with one predictor: what `deviance` is given, as `evaluate` takes it */
static inline struct tb_response_rows
tb_response_rows_at(const double* v_y,
                    const double* v_eta,
                    size_t n_row,
                    const double* v_weight,
                    const struct tb_response_point* p_point) {
  return (struct tb_response_rows){.n_row = n_row,
                                   .n_predictor = 1,
                                   .v_eta = v_eta,
                                   .v_y = v_y,
                                   .v_weight = v_weight,
                                   .p_point = p_point};
}

/* The largest that those of curvature, |cross| and |aux_curvature| that are
 * asked for are at five points of |eta - eta_i| <= v_reach[i]: stands in for
 * bounds where there is no formula. How s changes is left out. */
void tb_response_widest(const struct tb_response_type* type,
                        const struct tb_response_rows* p_rows,
                        const double* v_reach,
                        const struct tb_response_out* p_out);

/* position of the first that is no count, or not positive; n: there is none */
size_t tb_response_outside_counts(const double* v_y, size_t n, double size);
size_t tb_response_outside_positive(const double* v_y, size_t n, double size);

/* the same of one that is no count above 0 */
size_t tb_response_outside_above(const double* v_y, size_t n, double size);

/* 1 - a / (e^a - 1), a >= 0: where a is small it would cancel, and is its
 * series, with Bernoulli's numbers */
double tb_response_less_share(double a);

/* means eta */
void tb_response_same_mean(const double* v_eta,
                           size_t n_row,
                           size_t n_predictor,
                           double* v_out);

/* means e^eta */
void tb_response_exp_mean(const double* v_eta,
                          size_t n_row,
                          size_t n_predictor,
                          double* v_out);

#endif
