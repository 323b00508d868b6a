/* Parameters of a family member, as R passed them: named arrays of doubles.
 * One shape for every member of every family, so that a new kernel, scheme,
 * estimator, schedule or model needs no door of its own. Responses, "y", and
 * levels of factors, "level", may be whole numbers instead, which long ones
 * need no copy for.
 *
 * The arrays belong to R and live as long as the call: a member that needs a
 * value later copies it in its `init`. */
#ifndef TB_BASE_PARAM_H
#define TB_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>

struct tb_param {
  const char* name;
  const double* v_value; /* n_value doubles, column-major if a matrix; with
                            n_value 0 the address of something else */
  const int* v_whole;    /* n_value whole numbers in their place, v_value is
                            NULL then; NULL in all but "y" and "level" */
  size_t n_value;
  size_t n_row; /* rows if a matrix, n_value otherwise */
};

struct tb_params {
  const struct tb_param* v_param;
  size_t n_param;
};

/* Value i, of either kind. */
static inline double tb_param_at(const struct tb_param* p_param, size_t i) {
  return p_param->v_whole == NULL ? p_param->v_value[i] : p_param->v_whole[i];
}

/* A matrix without its zeros, column by column: what the parameter "columns" is
 * the address of. Column j has the numbers v_start[j]..v_start[j + 1] - 1. */
struct tb_columns {
  size_t n_row;
  size_t n_col;
  const int* v_start;    /* n_col + 1, from 0 on */
  const int* v_row;      /* rising in each column, below n_row */
  const double* v_value; /* v_start[n_col], some of which may be 0 after all */
};

/* The parameter of that name, or NULL when it was not given. */
const struct tb_param* tb_params_find(const struct tb_params* p_params,
                                      const char* name);

/* The matrix that is "columns", or NULL. */
const struct tb_columns* tb_params_columns(const struct tb_params* p_params);

/* A whole number from 0 to `most`, most <= 2^53; false where it is another. */
bool tb_params_count(const struct tb_params* p_params,
                     const char* name,
                     size_t most,
                     size_t otherwise,
                     size_t* p_count);

/* First value of the parameter, or `otherwise` when it was not given. */
double tb_params_number(const struct tb_params* p_params,
                        const char* name,
                        double otherwise);

#endif
