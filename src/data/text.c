/* Where records of text end, see text.h. Most files have no quotes, and line
 * feeds alone: these are found by memchr(), many bytes at a time. The others
 * are walked through byte by byte. */
#include "data/text.h"

#include <stdint.h>
#include <string.h>

static bool has_byte(const char* v, size_t n, int byte) {
  return byte != TB_TEXT_none && memchr(v, byte, n) != NULL;
}

static bool is_ascii(const char* v, size_t n) {
  uint64_t seen = 0, word;
  size_t i = 0;
  for (; i + sizeof(word) <= n; i += sizeof(word)) {
    memcpy(&word, v + i, sizeof(word));
    seen |= word;
  }
  for (; i < n; ++i) {
    seen |= (unsigned char)v[i];
  }
  return (seen & UINT64_C(0x8080808080808080)) == 0;
}

bool tb_text_look(const char* v,
                  size_t n,
                  size_t most,
                  const struct tb_text_format* p_format,
                  struct tb_text* p_text) {
  size_t n_record = 0, end = 0;
  while (n_record < most && end < n) {
    const char* p_end = memchr(v + end, '\n', n - end);
    if (p_end == NULL) {
      break;
    }
    if (p_end == v + end) {
      return false;
    }
    ++n_record;
    end = (size_t)(p_end - v) + 1;
  }
  if (n_record == 0 || has_byte(v, end, p_format->quote) ||
      has_byte(v, end, '\r') || has_byte(v, end, 0)) {
    return false;
  }
  *p_text = (struct tb_text){.n_record = n_record,
                             .n_taken = end,
                             .n_byte = end,
                             .is_regular = true,
                             .is_tight = true,
                             .is_ascii = is_ascii(v, end)};
  return true;
}

/* What stands before a byte of a record: a separator, and blanks; a value, or
 * the beginning of one; the beginning of a quoted one; a quote that ends it, or
 * is the first of two for one; that, and blanks. */
enum place {
  PLACE_between,
  PLACE_value,
  PLACE_quoted,
  PLACE_closed,
  PLACE_beyond
};

static bool is_blank(int byte, const struct tb_text_format* p_format) {
  return (byte == ' ' || byte == '\t') && byte != p_format->separator;
}

static enum place
place_after(enum place place, int byte, const struct tb_text_format* p_format) {
  if (place == PLACE_quoted) {
    return byte == p_format->quote ? PLACE_closed : PLACE_quoted;
  }
  if (byte == p_format->quote) {
    return PLACE_quoted;
  }
  if (byte == p_format->separator || byte == '\n') {
    return PLACE_between;
  }
  if (is_blank(byte, p_format)) {
    return place == PLACE_closed ? PLACE_beyond : place;
  }
  return PLACE_value;
}

/* Is a byte outside of quotes where a regular file may have it? */
static bool
is_in_place(enum place place, int byte, const struct tb_text_format* p_format) {
  if (byte == p_format->quote) {
    return place == PLACE_between || place == PLACE_closed;
  }
  return (place != PLACE_closed && place != PLACE_beyond) ||
         place_after(PLACE_beyond, byte, p_format) != PLACE_value;
}

/* The byte at i, a line feed for every line end, of which there is one after
 * the last line, too; or what there is instead of a byte. */
enum { BYTE_skipped = -1, BYTE_unknown = -2 };

static int byte_at(const char* v, size_t n, size_t i, bool is_over) {
  if (i == n) {
    return is_over ? '\n' : BYTE_unknown;
  }
  if (v[i] != '\r') {
    return (unsigned char)v[i];
  }
  if (i + 1 < n) {
    return v[i + 1] == '\n' ? BYTE_skipped : '\n';
  }
  return is_over ? '\n' : BYTE_unknown;
}

/* v_other: of 256 bytes, is one nothing but a part of a value? */
static void find_other(const struct tb_text_format* p_format, bool* v_other) {
  const int v_special[] =
      {0, '\n', '\r', '\t', ' ', p_format->quote, p_format->separator};
  for (int byte = 0; byte < 256; ++byte) {
    v_other[byte] = true;
  }
  for (size_t k = 0; k < sizeof v_special / sizeof *v_special; ++k) {
    if (v_special[k] != TB_TEXT_none) {
      v_other[v_special[k]] = false;
    }
  }
}

struct tb_text tb_text_copy(const char* v,
                            size_t n,
                            size_t most,
                            const struct tb_text_format* p_format,
                            char* v_to) {
  struct tb_text text = {.is_regular = true, .is_tight = true};
  struct tb_text open = text; /* with the record at hand */
  enum place place = PLACE_between;
  bool v_other[256];
  find_other(p_format, v_other);
  for (size_t i = 0; i <= n && text.n_record < most; ++i) {
    if (i < n && v_other[(unsigned char)v[i]]) {
      v_to[open.n_byte++] = v[i];
      if (place != PLACE_quoted) {
        open.is_regular &= place == PLACE_between || place == PLACE_value;
        place = PLACE_value;
      }
      continue;
    }
    const int byte = byte_at(v, n, i, p_format->is_over);
    if (byte == BYTE_unknown) {
      break;
    }
    if (byte == BYTE_skipped) {
      continue;
    }
    const bool is_quoted = place == PLACE_quoted;
    const bool is_end = byte == '\n' && !is_quoted;
    if (!is_end || open.n_byte > text.n_byte) {
      v_to[open.n_byte++] = byte == 0 ? (char)0xff : (char)byte;
    }
    open.has_quotes |= byte == p_format->quote;
    open.is_regular &= is_quoted || is_in_place(place, byte, p_format);
    open.n_open += byte == '\n';
    const bool is_begin = byte == p_format->quote && place == PLACE_between;
    place = place_after(place, byte, p_format);
    open.is_tight &= place != PLACE_beyond &&
                     !(is_begin && i > 0 && is_blank(v[i - 1], p_format));
    if (is_end) {
      open.n_record += open.n_byte > text.n_byte;
      open.n_taken = i < n ? i + 1 : n;
      open.n_open = 0;
      text = open;
    }
  }
  text.n_open = open.n_open;
  text.is_ascii = is_ascii(v_to, text.n_byte);
  return text;
}
