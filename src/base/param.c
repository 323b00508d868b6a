#include "base/param.h"

#include <math.h>
#include <string.h>

const struct tb_param* tb_params_find(const struct tb_params* p_params,
                                      const char* name) {
  for (size_t i = 0; i < p_params->n_param; ++i) {
    const struct tb_param* p_param = &p_params->v_param[i];
    if (strcmp(p_param->name, name) == 0) {
      return p_param;
    }
  }
  return NULL;
}

const struct tb_columns* tb_params_columns(const struct tb_params* p_params) {
  const struct tb_param* p_param = tb_params_find(p_params, "columns");
  return p_param == NULL
             ? NULL
             : (const struct tb_columns*)(const void*)p_param->v_value;
}

double tb_params_number(const struct tb_params* p_params,
                        const char* name,
                        double otherwise) {
  const struct tb_param* p_param = tb_params_find(p_params, name);
  if (p_param == NULL || p_param->n_value == 0) {
    return otherwise;
  }
  return p_param->v_value[0];
}

bool tb_params_count(const struct tb_params* p_params,
                     const char* name,
                     size_t most,
                     size_t otherwise,
                     size_t* p_count) {
  const double value = tb_params_number(p_params, name, (double)otherwise);
  /* written so that NaN fails */
  if (!(value >= 0 && value <= (double)most && value == floor(value))) {
    return false;
  }
  *p_count = (size_t)value;
  return true;
}
