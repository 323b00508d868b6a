/* Columns that come through Arrow's C data interface, as it is published at
 * https://arrow.apache.org/docs/format/CDataInterface.html: plain numbers,
 * booleans, text and dictionaries of text. What owns the arrays is the
 * caller's: nothing here keeps or releases one. */
#ifndef TB_DATA_ARROW_H
#define TB_DATA_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The layout is the interface; so are the names and the guard, under which
 * other headers declare the same. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif

/* What a column becomes. */
enum tb_arrow_kind {
  TB_ARROW_other = 0, /* nothing here */
  TB_ARROW_null,      /* no value at all */
  TB_ARROW_flag,
  TB_ARROW_whole,  /* every value is an int */
  TB_ARROW_number, /* a double; of 64 bits it may be the nearest one */
  TB_ARROW_text,
  TB_ARROW_level /* a place in a dictionary of text */
};

enum tb_arrow_kind tb_arrow_kind_of(const struct ArrowSchema* p_schema);

/* One column of a table, or the values of its dictionary. */
struct tb_arrow_column {
  const struct ArrowSchema* p_schema;
  const struct ArrowArray* p_array;
  size_t n_row;
  size_t first;             /* of the values, where the rows begin */
  const uint8_t* v_valid;   /* a bit a value, NULL: all are there */
  const uint8_t* v_present; /* a bit a row of the table, likewise */
  size_t first_present;
};

/* Is this a table, a struct array whose parts agree with the schema? */
bool tb_arrow_is_table(const struct ArrowSchema* p_schema,
                       const struct ArrowArray* p_array);

/* Column j of a table; false: its array is not what its type says. */
bool tb_arrow_column_at(const struct ArrowSchema* p_schema,
                        const struct ArrowArray* p_array,
                        size_t j,
                        struct tb_arrow_column* p_out);

/* The values of its dictionary, in the same way. */
bool tb_arrow_dictionary(const struct tb_arrow_column* p,
                         struct tb_arrow_column* p_out);

/* n_row values of kinds flag and whole, or number; `missing` for those that are
 * not there. */
void tb_arrow_wholes(const struct tb_arrow_column* p, int missing, int* v_out);
void tb_arrow_numbers(const struct tb_arrow_column* p,
                      double missing,
                      double* v_out);

/* Places in a dictionary of n_level values, from 1 on; false: one is beyond. */
bool tb_arrow_levels(const struct tb_arrow_column* p,
                     size_t n_level,
                     int missing,
                     int* v_out);

/* The text of row i in UTF-8, n_byte bytes without a 0 after them; NULL: none
 * is there. */
const char*
tb_arrow_text(const struct tb_arrow_column* p, size_t i, size_t* n_byte);

#endif
