/* Arrow's columnar format, as far as columns of a table become numbers and
 * text:
 *
 *   buffer 0  validity, a bit a value, lowest first; absent: all are there
 *   buffer 1  values; bits of booleans; of text n + 1 offsets into buffer 2
 *   buffer 2  bytes of text
 *
 * An array begins `offset` values into its buffers, and a column again where
 * the table does. Buffers belong to the array, and may be absent where nothing
 * is in them. */
#include "data/arrow.h"

#include <limits.h>
#include <string.h>

/* One letter formats; those of longer names are other types. */
static char letter_of(const struct ArrowSchema* p_schema) {
  const char* format = p_schema->format;
  return format != NULL && format[0] != 0 && format[1] == 0 ? format[0] : 0;
}

static bool is_text(const struct ArrowSchema* p_schema) {
  const char letter = letter_of(p_schema);
  return p_schema->dictionary == NULL && (letter == 'u' || letter == 'U');
}

enum tb_arrow_kind tb_arrow_kind_of(const struct ArrowSchema* p_schema) {
  const char letter = letter_of(p_schema);
  if (p_schema->dictionary != NULL) {
    const bool is_place = letter != 0 && strchr("cCsSiIlL", letter) != NULL;
    return is_place && is_text(p_schema->dictionary) ? TB_ARROW_level
                                                     : TB_ARROW_other;
  }
  switch (letter) {
  case 'n':
    return TB_ARROW_null;
  case 'b':
    return TB_ARROW_flag;
  case 'c':
  case 'C':
  case 's':
  case 'S':
  case 'i':
    return TB_ARROW_whole;
  case 'I':
  case 'l':
  case 'L':
  case 'f':
  case 'g':
    return TB_ARROW_number;
  case 'u':
  case 'U':
    return TB_ARROW_text;
  default:
    return TB_ARROW_other;
  }
}

/* ------------------------------------------------------------------- shapes */

static bool is_sound(const struct ArrowArray* p) {
  return p != NULL && p->length >= 0 && p->offset >= 0 && p->n_buffers >= 0 &&
         p->length <= INT64_MAX - p->offset &&
         (p->n_buffers == 0 || p->buffers != NULL);
}

static const uint8_t* validity_of(const struct ArrowArray* p) {
  return p->n_buffers == 0 || p->null_count == 0 ? NULL : p->buffers[0];
}

static int64_t buffers_of(enum tb_arrow_kind kind) {
  return kind == TB_ARROW_null ? 0 : kind == TB_ARROW_text ? 3 : 2;
}

static bool set_column(const struct ArrowSchema* p_schema,
                       const struct ArrowArray* p_array,
                       struct tb_arrow_column* p_out) {
  const enum tb_arrow_kind kind = tb_arrow_kind_of(p_schema);
  if (!is_sound(p_array) || kind == TB_ARROW_other ||
      p_array->n_buffers != buffers_of(kind) ||
      (p_array->length > 0 && kind != TB_ARROW_null &&
       p_array->buffers[1] == NULL)) {
    return false;
  }
  *p_out = (struct tb_arrow_column){.p_schema = p_schema,
                                    .p_array = p_array,
                                    .n_row = (size_t)p_array->length,
                                    .first = (size_t)p_array->offset,
                                    .v_valid = validity_of(p_array)};
  return true;
}

bool tb_arrow_is_table(const struct ArrowSchema* p_schema,
                       const struct ArrowArray* p_array) {
  return p_schema->format != NULL && strcmp(p_schema->format, "+s") == 0 &&
         is_sound(p_array) && p_array->n_buffers <= 1 &&
         p_schema->n_children >= 0 &&
         p_schema->n_children == p_array->n_children;
}

bool tb_arrow_column_at(const struct ArrowSchema* p_schema,
                        const struct ArrowArray* p_array,
                        size_t j,
                        struct tb_arrow_column* p_out) {
  if (j >= (size_t)p_schema->n_children ||
      !set_column(p_schema->children[j], p_array->children[j], p_out) ||
      p_array->children[j]->length < p_array->offset + p_array->length) {
    return false;
  }
  p_out->n_row = (size_t)p_array->length;
  p_out->first += (size_t)p_array->offset;
  p_out->v_present = validity_of(p_array);
  p_out->first_present = (size_t)p_array->offset;
  return true;
}

bool tb_arrow_dictionary(const struct tb_arrow_column* p,
                         struct tb_arrow_column* p_out) {
  return p->p_schema->dictionary != NULL &&
         set_column(p->p_schema->dictionary, p->p_array->dictionary, p_out);
}

/* ------------------------------------------------------------------- values */

static bool bit_at(const uint8_t* v, size_t i) {
  return v[i / 8] >> (i % 8) & 1;
}

static bool is_there(const struct tb_arrow_column* p, size_t i) {
  return (p->v_valid == NULL || bit_at(p->v_valid, p->first + i)) &&
         (p->v_present == NULL || bit_at(p->v_present, p->first_present + i));
}

/* The least of 32 bits is R's missing value, whether it is there or not. */
#define FILL(type)                                                             \
  do {                                                                         \
    const type* v = (const type*)p->p_array->buffers[1] + p->first;            \
    for (size_t i = 0; i < p->n_row; ++i) {                                    \
      v_out[i] = is_there(p, i) ? FILLED(v[i]) : missing;                      \
    }                                                                          \
  } while (0)

void tb_arrow_wholes(const struct tb_arrow_column* p, int missing, int* v_out) {
#define FILLED(x) (x)
  if (p->n_row == 0) {
    return;
  }
  switch (letter_of(p->p_schema)) {
  case 'b':
    for (size_t i = 0; i < p->n_row; ++i) {
      v_out[i] = is_there(p, i) ? bit_at(p->p_array->buffers[1], p->first + i)
                                : missing;
    }
    return;
  case 'c':
    FILL(int8_t);
    return;
  case 'C':
    FILL(uint8_t);
    return;
  case 's':
    FILL(int16_t);
    return;
  case 'S':
    FILL(uint16_t);
    return;
  case 'i':
    FILL(int32_t);
    return;
  default:
    for (size_t i = 0; i < p->n_row; ++i) {
      v_out[i] = missing;
    }
  }
#undef FILLED
}

void tb_arrow_numbers(const struct tb_arrow_column* p,
                      double missing,
                      double* v_out) {
#define FILLED(x) ((double)(x))
  if (p->n_row == 0) {
    return;
  }
  switch (letter_of(p->p_schema)) {
  case 'I':
    FILL(uint32_t);
    return;
  case 'l':
    FILL(int64_t);
    return;
  case 'L':
    FILL(uint64_t);
    return;
  case 'f':
    FILL(float);
    return;
  default:
    FILL(double);
  }
#undef FILLED
}

static uint64_t place_at(const struct tb_arrow_column* p, size_t i) {
  const void* v = p->p_array->buffers[1];
  const size_t at = p->first + i;
  switch (letter_of(p->p_schema)) {
  case 'c':
    return (uint64_t)((const int8_t*)v)[at];
  case 'C':
    return ((const uint8_t*)v)[at];
  case 's':
    return (uint64_t)((const int16_t*)v)[at];
  case 'S':
    return ((const uint16_t*)v)[at];
  case 'i':
    return (uint64_t)((const int32_t*)v)[at];
  case 'I':
    return ((const uint32_t*)v)[at];
  default:
    return ((const uint64_t*)v)[at];
  }
}

bool tb_arrow_levels(const struct tb_arrow_column* p,
                     size_t n_level,
                     int missing,
                     int* v_out) {
  for (size_t i = 0; i < p->n_row; ++i) {
    v_out[i] = missing;
    if (is_there(p, i)) {
      /* one below 0 is a large one */
      const uint64_t place = place_at(p, i);
      if (place >= n_level || place >= INT_MAX) {
        return false;
      }
      v_out[i] = (int)place + 1;
    }
  }
  return true;
}

const char*
tb_arrow_text(const struct tb_arrow_column* p, size_t i, size_t* n_byte) {
  if (!is_there(p, i)) {
    return NULL;
  }
  const void* v_offset = p->p_array->buffers[1];
  const char* v_byte = p->p_array->buffers[2];
  const size_t at = p->first + i;
  const bool is_large = letter_of(p->p_schema) == 'U';
  const int64_t from = is_large ? ((const int64_t*)v_offset)[at]
                                : ((const int32_t*)v_offset)[at];
  const int64_t to = is_large ? ((const int64_t*)v_offset)[at + 1]
                              : ((const int32_t*)v_offset)[at + 1];
  *n_byte = to > from ? (size_t)(to - from) : 0;
  return *n_byte == 0 ? "" : v_byte + from;
}
