#include "data/store.h"

#include <string.h>

extern const struct tb_store_type tb_store_dense;
extern const struct tb_store_type tb_store_float;
extern const struct tb_store_type tb_store_sparse;
extern const struct tb_store_type tb_store_mapped;
extern const struct tb_store_type tb_store_mapped_float;

const struct tb_store_type* const tb_store_registry[] = {
    &tb_store_dense,
    &tb_store_float,
    &tb_store_sparse,
    &tb_store_mapped,
    &tb_store_mapped_float,
    NULL,
};

const struct tb_store_type* tb_store_find(const char* name) {
  for (size_t k = 0; name != NULL && tb_store_registry[k] != NULL; ++k) {
    if (strcmp(tb_store_registry[k]->name, name) == 0) {
      return tb_store_registry[k];
    }
  }
  return NULL;
}
