/* Responses that are seen exactly or no more than between limits: numbers, or
 * times to an event. With x = y, or log y of times,
 *
 *   z = (x - eta) e^{c s}    a place and a scale, e^s the shape (c = 1) or the
 *                            standard deviation (c = -1), or
 *   z = eta + (x - u) e^s    the log cumulative hazard, of proportional
 * hazards, u the log of a unit of time
 *
 * and a law of z with density f, F = P(Z <= z) and S = 1 - F, a row says
 *
 *   status 1   seen           log f(z) + c s     (- log y of times)
 *          0   not before y   log S(z)
 *          2   not after y    log F(z)
 *          3   from y to y'   log [S(z) - S(z')]
 *
 * and less log S(z0) where a time is of a row that was seen from y0 on. All of
 * these are functions of one or two places z: their derivatives in (eta, s)
 * follow by the chain rule, in one place for every law.
 *
 *   symbol      variable           shape
 *   y           v_y[i]             n_row x 3, columns of n_row
 *   y' or y0    v_y[n_row + i]     y' of status 3; y0 of others, 0: none
 *   status      v_y[2 n_row + i]
 *   z           place.z, and its derivatives
 *   u           v_own[TB_LIMITS_unit]
 *
 * Kalbfleisch & Prentice (2002), The Statistical Analysis of Failure Time Data,
 * chapters 2 and 3. */
#ifndef TB_RESPONSES_LIMITS_H
#define TB_RESPONSES_LIMITS_H

#include "responses/response.h"

enum { TB_LIMITS_unit = 0 };

enum tb_limits_status {
  TB_LIMITS_right = 0,
  TB_LIMITS_seen = 1,
  TB_LIMITS_left = 2,
  TB_LIMITS_interval = 3
};

struct tb_limits_law;
extern const struct tb_limits_law tb_limits_extreme;  /* S = exp(-e^z) */
extern const struct tb_limits_law tb_limits_normal;   /* S = Phi(-z) */
extern const struct tb_limits_law tb_limits_logistic; /* S = 1 / (1 + e^z) */

struct tb_limits {
  const struct tb_limits_law* law;
  bool is_time;      /* x = log y, and rows may be seen from y0 on */
  bool is_hazard;    /* z = eta + (x - u) e^s */
  bool is_sd;        /* the parameter is a standard deviation: c = -1 */
  bool is_precision; /* weights are precisions: they divide its square */
};

size_t
tb_limits_outside(const struct tb_limits* p, const double* v_y, size_t n);

void tb_limits_evaluate(const struct tb_limits* p,
                        const struct tb_response_rows* p_rows,
                        const struct tb_response_out* p_out);

/* eta of each row; twice what l falls short of its largest there */
void tb_limits_deviance(const struct tb_limits* p,
                        const struct tb_response_rows* p_rows,
                        double* v_out);

#endif
