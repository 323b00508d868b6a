/* Linear predictors of many rows at many points, and their means: what the
 * methods of a fit ask for. */
#ifndef TB_MODELS_LINK_H
#define TB_MODELS_LINK_H

#include "base/param.h"
#include "responses/response.h"

#include <stddef.h>

/* The means of a response with one predictor at theta x' + offset. A number of
 * v_out is the same whatever else is asked for, and by how many threads. All
 * matrices are column-major and the caller's. */
struct tb_link_product {
  const struct tb_response_type* response; /* NULL: the predictors themselves */
  size_t n_draw, n_row, n_dim;
  const double* v_theta; /* n_draw x n_dim */
  const double* v_x;     /* n_row x n_dim; not looked at where p_rows is */
  const struct tb_columns*
      p_rows;             /* of x', n_dim x n_row: the rows of x without
                             their zeros; NULL: they have them */
  const double* v_offset; /* n_row, or NULL */
  double* v_out;          /* out: n_draw x n_row */
  int n_threads;
};

void tb_link_product(const struct tb_link_product* p_product);

#endif
