#include "responses/response.h"

#include <math.h>
#include <string.h>

struct tb_response_point tb_response_at(const struct tb_response* p_response,
                                        const double* v_coordinate) {
  const struct tb_response_type* type = p_response->type;
  struct tb_response_point point = {.scale = 1};
  double v_aux[TB_RESPONSE_MOST_AUX] = {0};
  size_t n_sampled = 0;
  for (size_t k = 0; k < type->n_aux; ++k) {
    point.v_is_sampled[k] = isnan(p_response->v_known[k]);
    v_aux[k] = point.v_is_sampled[k] ? v_coordinate[n_sampled++]
                                     : p_response->v_known[k];
  }
  if (type->prepare != NULL) {
    type->prepare(v_aux, &point);
  }
  return point;
}

size_t tb_response_n_sampled(const struct tb_response* p_response) {
  size_t n_sampled = 0;
  for (size_t k = 0; k < p_response->type->n_aux; ++k) {
    n_sampled += isnan(p_response->v_known[k]) != 0;
  }
  return n_sampled;
}

const struct tb_response_aux*
tb_response_sampled(const struct tb_response* p_response, size_t k) {
  const struct tb_response_type* type = p_response->type;
  for (size_t j = 0; j < type->n_aux; ++j) {
    if (isnan(p_response->v_known[j]) && k-- == 0) {
      return &type->v_aux[j];
    }
  }
  return NULL;
}

size_t tb_response_informations(const struct tb_response_type* type,
                                const struct tb_response_point* p_point,
                                double* v_out) {
  size_t n_sampled = 0;
  for (size_t k = 0; k < type->n_aux; ++k) {
    if (p_point->v_is_sampled[k]) {
      v_out[n_sampled++] = type->v_aux[k].information;
    }
  }
  return n_sampled;
}

void tb_response_natural(const struct tb_response* p_response,
                         const double* v_coordinate,
                         double* v_natural) {
  const size_t n_sampled = tb_response_n_sampled(p_response);
  for (size_t k = 0; k < n_sampled; ++k) {
    v_natural[k] =
        tb_response_sampled(p_response, k)->lower + exp(v_coordinate[k]);
  }
}

bool tb_response_know(struct tb_response* p_response,
                      const double* v_value,
                      size_t n_value) {
  const struct tb_response_type* type = p_response->type;
  if (type == NULL || n_value != type->n_aux) {
    return false;
  }
  for (size_t k = 0; k < n_value; ++k) {
    if (!isnan(v_value[k]) && !(v_value[k] > 0 && isfinite(v_value[k]))) {
      return false;
    }
    p_response->v_known[k] = v_value[k];
  }
  return true;
}

void tb_response_columns(const double* v_from,
                         size_t n_row,
                         size_t first,
                         size_t n,
                         size_t n_column,
                         double* v_to) {
  for (size_t j = 0; j < n_column; ++j) {
    memcpy(v_to + j * n, v_from + j * n_row + first, n * sizeof(double));
  }
}
