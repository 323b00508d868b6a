/* The schedules of the library, NULL-terminated. */
#include "schedules/schedule.h"

#include <string.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(constant)                                                             \
  MEMBER(cyclical)                                                             \
  MEMBER(decay)

#define MEMBER(name) extern const struct tb_schedule_type tb_schedule_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_schedule_##name,
const struct tb_schedule_type* const tb_schedule_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_schedule_type* tb_schedule_find(const char* name) {
  for (size_t i = 0; name != NULL && tb_schedule_registry[i] != NULL; ++i) {
    if (strcmp(tb_schedule_registry[i]->name, name) == 0) {
      return tb_schedule_registry[i];
    }
  }
  return NULL;
}
