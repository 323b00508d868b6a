/* Where the stores of a model come from. The door fills a shelf, a model takes
 * its rows from there, and names no type of store. Rows that are in a store
 * already, such as those of a file, stand there as they are. */
#ifndef TB_DATA_SHELF_H
#define TB_DATA_SHELF_H

#include "base/param.h"
#include "data/store.h"

/* rows of a column-major matrix, of which there may be more: columns are n_lead
 * apart */
struct tb_store_matrix {
  const double* v_value;
  size_t n_row;
  size_t n_col;
  size_t n_lead;
};

struct tb_shelf {
  const struct tb_store_type* type; /* of the stores made */
  bool is_read_only;                /* must their rows stay as they are? */
  struct tb_store* p_given;         /* the rows of the matrix "x", or NULL: they
                                       come as a parameter. The model that takes
                                       them owns them, and leaves no type here */
};

/* Rows and columns of p_matrix, or where that is NULL of the rows given; false:
 * there are none. */
bool tb_shelf_shape(const struct tb_shelf* p_shelf,
                    const struct tb_param* p_matrix,
                    size_t* p_row,
                    size_t* p_col);

/* The rows of a matrix, which the parameter holds column-major, with n_ones
 * columns of ones after them; NULL: the rows given, which take no ones. The
 * model owns the store. Where it fails there is nothing to destroy. */
enum tb_status tb_shelf_take(const struct tb_shelf* p_shelf,
                             const struct tb_param* p_matrix,
                             size_t n_ones,
                             struct tb_store* p_store);

/* A store of this type of the rows of a matrix, with n_ones columns of ones
 * after them. Its hash stays 0 where it is not wanted: rows that are looked at
 * once are not recognised again. Where it fails there is nothing to destroy. */
enum tb_status tb_shelf_fill(const struct tb_store_type* p_type,
                             const struct tb_store_matrix* p_matrix,
                             size_t n_ones,
                             bool wants_hash,
                             struct tb_store* p_store);

/* As tb_shelf_take() of a matrix without its zeros, which stays without them:
 * unsupported by stores that keep zeros. */
enum tb_status tb_shelf_turn(const struct tb_shelf* p_shelf,
                             const struct tb_columns* p_columns,
                             struct tb_store* p_store);

#endif
