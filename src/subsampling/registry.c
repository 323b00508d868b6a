/* The subsampling schemes of the library, NULL-terminated. */
#include "subsampling/subsample.h"

#include <string.h>

extern const struct tb_scheme_type tb_scheme_adaptive;
extern const struct tb_scheme_type tb_scheme_fixed;
extern const struct tb_scheme_type tb_scheme_optimal;
extern const struct tb_scheme_type tb_scheme_uniform;
extern const struct tb_scheme_type tb_scheme_weighted;

const struct tb_scheme_type* const tb_scheme_registry[] = {&tb_scheme_adaptive,
                                                           &tb_scheme_fixed,
                                                           &tb_scheme_optimal,
                                                           &tb_scheme_uniform,
                                                           &tb_scheme_weighted,
                                                           NULL};

const struct tb_scheme_type* tb_scheme_find(const char* name) {
  for (size_t i = 0; name != NULL && tb_scheme_registry[i] != NULL; ++i) {
    if (strcmp(tb_scheme_registry[i]->name, name) == 0) {
      return tb_scheme_registry[i];
    }
  }
  return NULL;
}
