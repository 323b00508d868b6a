/* The subsampling schemes of the library, NULL-terminated. */
#include "subsampling/subsample.h"

#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(adaptive)                                                             \
  MEMBER(fixed)                                                                \
  MEMBER(optimal)                                                              \
  MEMBER(uniform)                                                              \
  MEMBER(weighted)

#define MEMBER(name) extern const struct tb_scheme_type tb_scheme_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_scheme_##name,
const struct tb_scheme_type* const tb_scheme_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_scheme_type* tb_scheme_find(const char* name) {
  for (size_t i = 0; name != NULL && tb_scheme_registry[i] != NULL; ++i) {
    if (strcmp(tb_scheme_registry[i]->name, name) == 0) {
      return tb_scheme_registry[i];
    }
  }
  return NULL;
}
