/* The schedules of the library, NULL-terminated. */
#include "schedules/schedule.h"

#include <string.h>

extern const struct tb_schedule_type tb_schedule_constant;
extern const struct tb_schedule_type tb_schedule_cyclical;
extern const struct tb_schedule_type tb_schedule_decay;

const struct tb_schedule_type* const tb_schedule_registry[] =
    {&tb_schedule_constant, &tb_schedule_cyclical, &tb_schedule_decay, NULL};

const struct tb_schedule_type* tb_schedule_find(const char* name) {
  for (size_t i = 0; name != NULL && tb_schedule_registry[i] != NULL; ++i) {
    if (strcmp(tb_schedule_registry[i]->name, name) == 0) {
      return tb_schedule_registry[i];
    }
  }
  return NULL;
}
