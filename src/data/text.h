/* Text files with separators: where their records end. A record ends with its
 * line, or, where that lies within quotes, with a later one; lines without
 * anything are no records. */
#ifndef TB_DATA_TEXT_H
#define TB_DATA_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { TB_TEXT_none = 256 }; /* of `quote`, `separator`: there is none */

struct tb_text_format {
  int quote, separator; /* bytes */
  bool is_over;         /* nothing follows the bytes that there are */
};

/* Whole records, and the bytes that they take. */
struct tb_text {
  size_t n_record;
  size_t n_taken; /* bytes, lines without anything among them */
  size_t n_byte;  /* that were written */
  size_t n_open;  /* line ends of a record that has begun and does not end */
  bool has_quotes;
  bool is_regular; /* quotes stand around whole values, */
  bool is_tight;   /* without blanks outside of them */
  bool is_ascii;
};

/* At most `most` records (1 or more) at the beginning of n bytes, where there
 * is nothing to write anew: they are as they are to be, n_byte = n_taken.
 * false: tb_text_copy() tells. */
bool tb_text_look(const char* v,
                  size_t n,
                  size_t most,
                  const struct tb_text_format* p_format,
                  struct tb_text* p_text);

/* The same written to v_to, n + 1 bytes: every line end is one line feed, lines
 * without anything are left out, and a byte of 0, which is no text, becomes one
 * that is no UTF-8. Without any whole record n_open says what is there. */
struct tb_text tb_text_copy(const char* v,
                            size_t n,
                            size_t most,
                            const struct tb_text_format* p_format,
                            char* v_to);

#endif
