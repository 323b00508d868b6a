/* Arrow's columns: a table of all kinds, sliced twice, in buffers of no more
 * than the bytes that must be there, so that a sanitizer sees one more. */
#include "check.h"

#include "data/arrow.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROW = 3, FIRST_TABLE = 2, FIRST_COLUMN = 4, N_VALUE = 9 };

static const int MISSING = -99;

/* a block of its own of these bytes */
static void* heap(const void* v, size_t n_byte) {
  void* p = malloc(n_byte);
  if (p == NULL) {
    abort();
  }
  return memcpy(p, v, n_byte);
}

/* One column of a table and what both are made of. Value i of the column is
 * row i - FIRST_TABLE - FIRST_COLUMN. */
struct table {
  struct ArrowSchema schema, column_schema, level_schema;
  struct ArrowArray array, column, level;
  struct ArrowSchema* v_schema[1];
  struct ArrowArray* v_column[1];
  const void* v_table_buffer[1];
  const void* v_buffer[3];
  const void* v_level_buffer[3];
  struct tb_arrow_column view;
};

static bool make_table(struct table* p, const char* format, int64_t n_buffer) {
  p->column_schema.format = format;
  p->v_schema[0] = &p->column_schema;
  p->v_column[0] = &p->column;
  p->schema = (struct ArrowSchema){.format = "+s",
                                   .n_children = 1,
                                   .children = p->v_schema};
  p->column.length = N_VALUE - FIRST_COLUMN;
  p->column.offset = FIRST_COLUMN;
  p->column.null_count = p->v_buffer[0] == NULL ? 0 : -1;
  p->column.n_buffers = n_buffer;
  p->column.buffers = p->v_buffer;
  p->array = (struct ArrowArray){.length = N_ROW,
                                 .null_count = -1,
                                 .offset = FIRST_TABLE,
                                 .n_buffers = 1,
                                 .n_children = 1,
                                 .buffers = p->v_table_buffer,
                                 .children = p->v_column};
  return tb_arrow_is_table(&p->schema, &p->array) &&
         tb_arrow_column_at(&p->schema, &p->array, 0, &p->view);
}

static void free_buffers(struct table* p) {
  free((void*)p->v_table_buffer[0]);
  for (int k = 0; k < 3; ++k) {
    free((void*)p->v_buffer[k]);
    free((void*)p->v_level_buffer[k]);
  }
}

/* row 1 is missing by its own bit, row 2 by the table's */
static void set_validity(struct table* p) {
  const uint8_t v_valid[] = {0x7f, 0xff};
  const uint8_t v_present[] = {0xef};
  p->v_buffer[0] = heap(v_valid, sizeof v_valid);
  p->v_table_buffer[0] = heap(v_present, sizeof v_present);
}

static void numbers(struct check* p_check) {
  const int32_t v_int[N_VALUE] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const double v_double[N_VALUE] = {0, 1, 2, 3, 4, 5, 6, 7, 8.5};
  struct table whole = {0}, number = {0};
  set_validity(&whole);
  whole.v_buffer[1] = heap(v_int, sizeof v_int);
  CHECK(make_table(&whole, "i", 2));
  int v[N_ROW];
  tb_arrow_wholes(&whole.view, MISSING, v);
  CHECK(v[0] == 6 && v[1] == MISSING && v[2] == MISSING);
  free_buffers(&whole);

  number.v_buffer[1] = heap(v_double, sizeof v_double);
  CHECK(make_table(&number, "g", 2));
  double v_number[N_ROW];
  tb_arrow_numbers(&number.view, MISSING, v_number);
  CHECK(v_number[0] == 6 && v_number[1] == 7 && v_number[2] == 8.5);
  /* a column that ends before the table does */
  number.column.length -= 1;
  CHECK(!tb_arrow_column_at(&number.schema, &number.array, 0, &number.view));
  CHECK(!tb_arrow_column_at(&number.schema, &number.array, 1, &number.view));
  free_buffers(&number);
}

static void flags(struct check* p_check) {
  const uint8_t v_bit[] = {0xbf, 0x01};
  struct table table = {0};
  table.v_buffer[1] = heap(v_bit, sizeof v_bit);
  CHECK(make_table(&table, "b", 2));
  int v[N_ROW];
  tb_arrow_wholes(&table.view, MISSING, v);
  CHECK(v[0] == 0 && v[1] == 1 && v[2] == 1);
  free_buffers(&table);
}

static void text(struct check* p_check) {
  const int32_t v_offset[N_VALUE + 1] = {0, 1, 1, 1, 1, 1, 1, 3, 3, 6};
  struct table table = {0};
  table.v_buffer[1] = heap(v_offset, sizeof v_offset);
  table.v_buffer[2] = heap("xabcde", 6);
  CHECK(make_table(&table, "u", 3));
  size_t n = 0;
  const char* word = tb_arrow_text(&table.view, 0, &n);
  CHECK(n == 2 && memcmp(word, "ab", 2) == 0);
  tb_arrow_text(&table.view, 1, &n);
  CHECK(n == 0);
  word = tb_arrow_text(&table.view, 2, &n);
  CHECK(n == 3 && memcmp(word, "cde", 3) == 0);
  free_buffers(&table);
}

static void levels(struct check* p_check) {
  const int8_t v_place[N_VALUE] = {9, 9, 9, 9, 9, 9, 1, 0, -1};
  const int64_t v_offset[] = {0, 1, 3};
  struct table table = {0};
  set_validity(&table);
  table.v_buffer[1] = heap(v_place, sizeof v_place);
  table.v_level_buffer[1] = heap(v_offset, sizeof v_offset);
  table.v_level_buffer[2] = heap("abb", 3);
  table.level_schema.format = "U";
  table.level = (struct ArrowArray){.length = 2,
                                    .n_buffers = 3,
                                    .buffers = table.v_level_buffer};
  table.column_schema.dictionary = &table.level_schema;
  table.column.dictionary = &table.level;
  CHECK(make_table(&table, "c", 2));
  CHECK(tb_arrow_kind_of(&table.column_schema) == TB_ARROW_level);
  struct tb_arrow_column dictionary;
  CHECK(tb_arrow_dictionary(&table.view, &dictionary));
  CHECK(dictionary.n_row == 2);
  int v[N_ROW];
  CHECK(tb_arrow_levels(&table.view, 2, MISSING, v));
  CHECK(v[0] == 2 && v[1] == MISSING && v[2] == MISSING);
  CHECK(!tb_arrow_levels(&table.view, 1, MISSING, v));
  /* row 2 is there: its place is below 0 */
  table.view.v_present = NULL;
  CHECK(!tb_arrow_levels(&table.view, 2, MISSING, v));
  free_buffers(&table);
}

static void others(struct check* p_check) {
  const char* const v_format[] = {"tdD", "d:10,2", "+l", "z", "e", "vu", ""};
  for (size_t k = 0; k < sizeof v_format / sizeof v_format[0]; ++k) {
    struct table table = {0};
    CHECK(!make_table(&table, v_format[k], 2));
    CHECK(tb_arrow_kind_of(&table.column_schema) == TB_ARROW_other);
  }
  /* no values where there must be some; buffers of another type */
  struct table table = {0};
  CHECK(!make_table(&table, "i", 2));
  CHECK(!make_table(&table, "u", 2));
  CHECK(make_table(&table, "n", 0));
  int v[N_ROW];
  tb_arrow_wholes(&table.view, MISSING, v);
  CHECK(v[0] == MISSING && v[2] == MISSING);
}

const struct check_case check_arrow[] = {
    {"arrow: numbers of slices, and what is missing", numbers},
    {"arrow: bits are flags", flags},
    {"arrow: text lies between its offsets", text},
    {"arrow: places in a dictionary", levels},
    {"arrow: other types, and arrays of none", others},
    {NULL, NULL}};
