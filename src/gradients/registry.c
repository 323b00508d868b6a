#include "gradients/gradient.h"

#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(cv)                                                                   \
  MEMBER(cv2)                                                                  \
  MEMBER(full)                                                                 \
  MEMBER(saga)                                                                 \
  MEMBER(simple)                                                               \
  MEMBER(svrg)

#define MEMBER(name) extern const struct tb_estimator_type tb_estimator_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_estimator_##name,
const struct tb_estimator_type* const tb_estimator_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_estimator_type* tb_estimator_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_estimator_registry[k] != NULL; ++k) {
    if (strcmp(tb_estimator_registry[k]->name, name) == 0) {
      return tb_estimator_registry[k];
    }
  }
  return NULL;
}
