/* Records of text: examples, and of all short texts that the same comes out
 * wherever they are cut, and by either way. */
#include "check.h"

#include "data/text.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 7 };

static const struct tb_text_format whole = {.quote = '"',
                                            .separator = ',',
                                            .is_over = true};

/* of n bytes alone, so that a sanitizer sees one more */
static struct tb_text copy_of(const char* v,
                              size_t n,
                              size_t most,
                              const struct tb_text_format* p_format,
                              char* v_out) {
  char* v_own = check_alloc(n + 1, 1);
  char* v_to = check_alloc(n + 1, 1);
  memcpy(v_own + 1, v, n);
  const struct tb_text text = tb_text_copy(v_own + 1, n, most, p_format, v_to);
  memcpy(v_out, v_to, text.n_byte);
  struct tb_text plain;
  if (tb_text_look(v_own + 1, n, most, p_format, &plain)) {
    /* it leaves a last line without an end */
    const struct tb_text same =
        tb_text_copy(v_own + 1, n, plain.n_record, p_format, v_to);
    const bool is_same =
        plain.n_record == same.n_record && plain.n_taken == same.n_taken &&
        plain.n_byte == same.n_byte && !same.has_quotes && plain.is_regular &&
        same.is_regular && plain.is_ascii == same.is_ascii &&
        memcmp(v_own + 1, v_to, same.n_byte) == 0;
    if (!is_same) {
      abort();
    }
  }
  free(v_own);
  free(v_to);
  return text;
}

struct example {
  const char *from, *to;
  size_t n_record;
  bool has_quotes, is_regular, is_loose;
};

static void examples(struct check* p_check) {
  const struct example v_example[] = {
      {"1,2\n3,4\n", "1,2\n3,4\n", 2, false, true, false},
      {"1,2\r\n\r\n\n3,4", "1,2\n3,4\n", 2, false, true, false},
      {"1,2\r3,4\r", "1,2\n3,4\n", 2, false, true, false},
      {"\n\n", "", 0, false, true, false},
      {" \na", " \na\n", 2, false, true, false},
      {"a, \"b\"\n", "a, \"b\"\n", 1, true, true, true},
      {"a,\"b\" \n", "a,\"b\" \n", 1, true, true, true},
      {"a,\"b \"\n", "a,\"b \"\n", 1, true, true, false},
      {"1,\"a\n\r\nb\"\n2,3\n", "1,\"a\n\nb\"\n2,3\n", 2, true, true, false},
      {"\"a \"\"b\"\", c\" , \"d\"\n",
       "\"a \"\"b\"\", c\" , \"d\"\n",
       1,
       true,
       true,
       true},
      {"\"\"\n", "\"\"\n", 1, true, true, false},
      {"a \"b\" c\n", "a \"b\" c\n", 1, true, false, false},
      {"\"b\" c\n", "\"b\" c\n", 1, true, false, false},
      {"\"b\" \"c\"\n", "\"b\" \"c\"\n", 1, true, false, false},
      {"1\n2,\"x\n3\n", "1\n", 1, false, true, false},
  };
  for (size_t k = 0; k < sizeof v_example / sizeof *v_example; ++k) {
    const struct example* p = v_example + k;
    char v_to[64];
    const size_t n = strlen(p->from);
    const struct tb_text text = copy_of(p->from, n, 99, &whole, v_to);
    CHECK(text.n_byte == strlen(p->to) &&
          memcmp(v_to, p->to, text.n_byte) == 0);
    CHECK(text.n_record == p->n_record);
    CHECK(text.has_quotes == p->has_quotes);
    CHECK(text.is_regular == p->is_regular);
    CHECK(!p->is_regular || text.is_tight != p->is_loose);
  }
}

static void bytes(struct check* p_check) {
  char v_to[16];
  CHECK(copy_of("a\n\xc3\xa4\n", 5, 1, &whole, v_to).is_ascii);
  CHECK(!copy_of("a\n\xc3\xa4\n", 5, 2, &whole, v_to).is_ascii);
  CHECK(!copy_of("12345678\xc3\n", 10, 2, &whole, v_to).is_ascii);
  struct tb_text text = copy_of("a\0b\nc\n", 6, 9, &whole, v_to);
  CHECK(text.n_record == 2 && !text.is_ascii && v_to[1] == (char)0xff);
  struct tb_text_format part = whole;
  part.is_over = false;
  text = copy_of("1\n\"a\nb\nc", 8, 9, &part, v_to);
  CHECK(text.n_record == 1 && text.n_taken == 2 && text.n_open == 2);
  part.quote = TB_TEXT_none;
  text = copy_of("1\n\"a\nb\nc", 8, 9, &part, v_to);
  CHECK(text.n_record == 3 && text.n_taken == 7 && !text.has_quotes);
}

/* all that is read of n bytes, of which `n_first` are there at first, by `most`
 * records at a time; the bytes that are left are *p_left */
static struct tb_text read_in_parts(const char* v,
                                    size_t n,
                                    size_t n_first,
                                    size_t most,
                                    char* v_to,
                                    size_t* p_left) {
  struct tb_text all = {.is_regular = true};
  size_t at = 0;
  for (int part = 0; part < 2; ++part) {
    struct tb_text_format format = whole;
    format.is_over = part == 1;
    struct tb_text text;
    do {
      const size_t end = part == 0 ? n_first : n;
      text = copy_of(v + at, end - at, most, &format, v_to + all.n_byte);
      at += text.n_taken;
      all.n_record += text.n_record;
      all.n_byte += text.n_byte;
      all.has_quotes |= text.has_quotes;
      all.is_regular &= text.is_regular;
    } while (text.n_record > 0);
  }
  *p_left = n - at;
  return all;
}

static void cuts(struct check* p_check) {
  const char v_letter[] = "a,\"\n\r ";
  enum { N_LETTER = 6 };
  size_t n_text = 1, n_wrong = 0;
  for (size_t n = 1; n <= LONGEST; ++n) {
    n_text *= N_LETTER;
    for (size_t k = 0; k < n_text; k += n < 6 ? 1 : 5) {
      char v[LONGEST], v_one[2 * LONGEST], v_two[2 * LONGEST];
      size_t left_one, left_two;
      for (size_t i = 0, code = k; i < n; ++i, code /= N_LETTER) {
        v[i] = v_letter[code % N_LETTER];
      }
      const struct tb_text one = read_in_parts(v, n, 0, 99, v_one, &left_one);
      const size_t cut = 1 + k % n, most = 1 + k % 2;
      const struct tb_text two =
          read_in_parts(v, n, cut, most, v_two, &left_two);
      n_wrong += one.n_record != two.n_record || one.n_byte != two.n_byte ||
                 left_one != left_two || one.has_quotes != two.has_quotes ||
                 one.is_regular != two.is_regular ||
                 memcmp(v_one, v_two, one.n_byte) != 0;
    }
  }
  CHECK(n_wrong == 0);
}

const struct check_case check_text[] = {
    {"records end with lines, but not within quotes", examples},
    {"bytes that are no text are seen, and records that do not end", bytes},
    {"records are the same wherever they are cut", cuts},
    {NULL, NULL},
};
