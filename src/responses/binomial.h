/* What binomial responses share whatever their link: y is the proportion of
 * successes among w trials, w its weight, with mean mu. */
#ifndef TB_RESPONSES_BINOMIAL_H
#define TB_RESPONSES_BINOMIAL_H

#include "responses/response.h"

size_t tb_binomial_outside(const double* v_y, size_t n, double size);

/* Adds log choose(w, w y) to the log densities, where they are to be complete.
 */
void tb_binomial_complete(const struct tb_response_rows* p_rows,
                          const struct tb_response_out* p_out);

/* mu (1 - mu) / w */
void tb_binomial_variance(const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out);

void tb_binomial_deviance(const double* v_y,
                          const double* v_mean,
                          size_t n_row,
                          const double* v_weight,
                          const struct tb_response_point* p_point,
                          double* v_out);

#endif
