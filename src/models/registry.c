#include "models/model.h"

#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(bpmf)                                                                 \
  MEMBER(classes)                                                              \
  MEMBER(density)                                                              \
  MEMBER(gaussian)                                                             \
  MEMBER(glm)                                                                  \
  MEMBER(lda)                                                                  \
  MEMBER(network)                                                              \
  MEMBER(ica)                                                                  \
  MEMBER(pmf)                                                                  \
  MEMBER(native)                                                               \
  MEMBER(pieces)                                                               \
  MEMBER(sums)                                                                 \
  MEMBER(groups)                                                               \
  MEMBER(crossed)                                                              \
  MEMBER(predictors)

#define MEMBER(name) extern const struct tb_model_type tb_model_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_model_##name,
const struct tb_model_type* const tb_model_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_model_type* tb_model_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_model_registry[k] != NULL; ++k) {
    if (strcmp(tb_model_registry[k]->name, name) == 0) {
      return tb_model_registry[k];
    }
  }
  return NULL;
}
