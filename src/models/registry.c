#include "models/model.h"

#include <string.h>

extern const struct tb_model_type tb_model_bpmf;
extern const struct tb_model_type tb_model_classes;
extern const struct tb_model_type tb_model_density;
extern const struct tb_model_type tb_model_gaussian;
extern const struct tb_model_type tb_model_glm;
extern const struct tb_model_type tb_model_groups;
extern const struct tb_model_type tb_model_lda;
extern const struct tb_model_type tb_model_network;
extern const struct tb_model_type tb_model_ica;
extern const struct tb_model_type tb_model_pmf;
extern const struct tb_model_type tb_model_native;
extern const struct tb_model_type tb_model_sums;

const struct tb_model_type* const tb_model_registry[] = {
    &tb_model_bpmf,
    &tb_model_classes,
    &tb_model_density,
    &tb_model_gaussian,
    &tb_model_glm,
    &tb_model_lda,
    &tb_model_network,
    &tb_model_ica,
    &tb_model_pmf,
    &tb_model_native,
    &tb_model_sums,
    &tb_model_groups,
    NULL,
};

const struct tb_model_type* tb_model_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_model_registry[k] != NULL; ++k) {
    if (strcmp(tb_model_registry[k]->name, name) == 0) {
      return tb_model_registry[k];
    }
  }
  return NULL;
}
