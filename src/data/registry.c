/* The stores of the library, NULL-terminated. */
#include "data/store.h"

extern const struct tb_store_type tb_store_dense;

const struct tb_store_type* const tb_store_registry[] = { &tb_store_dense,
                                                          NULL };
