#include "gradients/gradient.h"

#include <string.h>

extern const struct tb_estimator_type tb_estimator_cv;
extern const struct tb_estimator_type tb_estimator_cv2;
extern const struct tb_estimator_type tb_estimator_full;
extern const struct tb_estimator_type tb_estimator_saga;
extern const struct tb_estimator_type tb_estimator_simple;
extern const struct tb_estimator_type tb_estimator_svrg;

const struct tb_estimator_type* const tb_estimator_registry[] = {
    &tb_estimator_cv,
    &tb_estimator_cv2,
    &tb_estimator_full,
    &tb_estimator_saga,
    &tb_estimator_simple,
    &tb_estimator_svrg,
    NULL,
};

const struct tb_estimator_type* tb_estimator_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_estimator_registry[k] != NULL; ++k) {
    if (strcmp(tb_estimator_registry[k]->name, name) == 0) {
      return tb_estimator_registry[k];
    }
  }
  return NULL;
}
