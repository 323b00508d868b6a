#include "data/store.h"

#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(dense)                                                                \
  MEMBER(float)                                                                \
  MEMBER(sparse)                                                               \
  MEMBER(mapped)                                                               \
  MEMBER(mapped_float)

#define MEMBER(name) extern const struct tb_store_type tb_store_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_store_##name,
const struct tb_store_type* const tb_store_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_store_type* tb_store_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_store_registry[k] != NULL; ++k) {
    if (strcmp(tb_store_registry[k]->name, name) == 0) {
      return tb_store_registry[k];
    }
  }
  return NULL;
}
