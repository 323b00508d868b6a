/* Where the stores of a model come from. The door fills a shelf, a model takes
 * its rows from there, and names no type of store. */
#ifndef TB_DATA_SHELF_H
#define TB_DATA_SHELF_H

#include "base/param.h"
#include "data/store.h"

struct tb_shelf {
  const struct tb_store_type* type; /* of the stores made */
  bool is_read_only;                /* must their rows stay as they are? */
};

/* The rows of a matrix, which the parameter holds column-major, with n_ones
 * columns of ones after them; the model owns the store. Where it fails there is
 * nothing to destroy. */
enum tb_status tb_shelf_take(const struct tb_shelf* p_shelf,
                             const struct tb_param* p_matrix,
                             size_t n_ones,
                             struct tb_store* p_store);

#endif
