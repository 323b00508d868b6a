/* The rows of a multilevel regression in a file, those of a group after each
 * other: written in any order, mapped ever after.
 *
 *   head     one struct head: magic number, byte order, version, shape, hash of
 *            the rows, checksum of the head and of all that is behind the rows
 *   rows     from PAGE on: n_row x n_padded doubles, row-major
 *   numbers  n_row x (n_y + weights + offsets): columns
 *   first    n_group + 1 words: where groups begin
 *   constant n_group doubles, where there are any
 *   spare    n_group doubles, likewise
 *
 * Numbers are as the machine that wrote them has them. */
#include "models/groups-file.h"

#include "base/hash.h"

#include <stdint.h>
#include <string.h>

#define MAGIC           "tallgrps"
#define BYTE_ORDER_MARK UINT32_C(0x01020304)
#define VERSION         1
#define PAGE            ((size_t)65536)

enum { WEIGHTS = 1, OFFSETS = 2, FOLDS = 4, CONSTANTS = 8, SPARES = 16 };

struct head {
  char v_magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint64_t n_group;
  uint64_t n_row;
  uint64_t n_col;
  uint64_t n_padded;
  uint64_t n_y;
  uint64_t has; /* of what is above */
  uint64_t hash;
  uint64_t checksum;
};

/* places in the file, in bytes */
struct layout {
  size_t number, n_number, first, constant, spare, end;
};

/* sizes that no file bears out would overflow */
static bool is_sensible(const struct head* p) {
  const uint64_t most = UINT64_C(1) << 47;
  return p->n_group > 0 && p->n_row > 0 && p->n_padded > 0 && p->n_y > 0 &&
         p->n_col <= p->n_padded && p->n_group <= p->n_row &&
         p->n_padded < most && p->n_y < most && p->n_row < most &&
         p->n_row <= most / (p->n_padded + p->n_y + 2) &&
         sizeof(size_t) == sizeof(uint64_t);
}

static struct layout layout_of(const struct head* p) {
  const size_t n_column =
      (size_t)p->n_y + ((p->has & WEIGHTS) != 0) + ((p->has & OFFSETS) != 0);
  struct layout out;
  out.number = PAGE + (size_t)(p->n_row * p->n_padded) * sizeof(double);
  out.n_number = (size_t)p->n_row * n_column;
  out.first = out.number + out.n_number * sizeof(double);
  out.constant = out.first + ((size_t)p->n_group + 1) * sizeof(uint64_t);
  const size_t n_byte = (size_t)p->n_group * sizeof(double);
  out.spare = out.constant + ((p->has & CONSTANTS) != 0 ? n_byte : 0);
  out.end = out.spare + ((p->has & SPARES) != 0 ? n_byte : 0);
  return out;
}

/* p's arrays are those of its region */
static void point_to(struct groups_rows* p, const struct head* p_head) {
  const struct layout at = layout_of(p_head);
  unsigned char* v = p->region.v_byte;
  const size_t n_row = (size_t)p_head->n_row;
  p->n_group = (size_t)p_head->n_group;
  p->n_y = (size_t)p_head->n_y;
  p->folds = (p_head->has & FOLDS) != 0;
  p->v_number = p->v_y = (double*)(v + at.number);
  p->n_byte = at.n_number * sizeof(double);
  const bool has_weights = (p_head->has & WEIGHTS) != 0;
  p->v_weight = has_weights ? p->v_y + n_row * p->n_y : NULL;
  p->v_offset = (p_head->has & OFFSETS) != 0
                    ? p->v_y + n_row * (p->n_y + has_weights)
                    : NULL;
  p->v_first = (size_t*)(v + at.first);
  p->v_constant =
      (p_head->has & CONSTANTS) != 0 ? (double*)(v + at.constant) : NULL;
  p->v_spare = (p_head->has & SPARES) != 0 ? (double*)(v + at.spare) : NULL;
  p->store.v_data = (double*)(v + PAGE);
  p->store.n_byte = n_row * (size_t)p_head->n_padded * sizeof(double);
}

enum tb_file_fault groups_file_create(const char* path,
                                      const struct groups_shape* p_shape,
                                      size_t n_row,
                                      struct groups_rows* p) {
  struct tb_store store = {.type = tb_store_find("dense"),
                           .n_row = n_row,
                           .n_col = p_shape->n_col,
                           .n_filled = n_row,
                           .is_writable = true};
  size_t n_byte;
  if (!tb_store_size(&store, sizeof(double), &n_byte)) {
    return TB_FILE_memory;
  }
  const bool folds = p_shape->folds;
  const struct head head = {.n_group = p_shape->n_group,
                            .n_row = n_row,
                            .n_col = store.n_col,
                            .n_padded = store.n_padded,
                            .n_y = p_shape->n_y,
                            .has =
                                (p_shape->has_weights && !folds ? WEIGHTS : 0) |
                                (p_shape->has_offset && !folds ? OFFSETS : 0) |
                                (folds ? FOLDS | CONSTANTS | SPARES : 0) |
                                (p_shape->has_constant ? CONSTANTS : 0)};
  if (!is_sensible(&head)) {
    return TB_FILE_unsupported;
  }
  const enum tb_file_fault fault =
      tb_region_create(path, layout_of(&head).end, &p->region);
  if (fault == TB_FILE_ok) {
    p->store = store;
    point_to(p, &head);
  }
  return fault;
}

static uint64_t checksum_of(struct head head, const unsigned char* v_byte) {
  const struct layout at = layout_of(&head);
  head.checksum = 0;
  const uint64_t sum = tb_hash_bytes(0, &head, sizeof(head));
  return tb_hash_doubles(sum,
                         (const double*)(v_byte + at.number),
                         (at.end - at.number) / sizeof(double));
}

void groups_file_finish(struct groups_rows* p) {
  struct head head = {.byte_order = BYTE_ORDER_MARK,
                      .version = VERSION,
                      .n_group = p->n_group,
                      .n_row = p->store.n_row,
                      .n_col = p->store.n_col,
                      .n_padded = p->store.n_padded,
                      .n_y = p->n_y,
                      .has = (p->v_weight != NULL ? WEIGHTS : 0) |
                             (p->v_offset != NULL ? OFFSETS : 0) |
                             (p->folds ? FOLDS : 0) |
                             (p->v_constant != NULL ? CONSTANTS : 0) |
                             (p->v_spare != NULL ? SPARES : 0),
                      .hash = p->store.hash};
  memcpy(head.v_magic, MAGIC, sizeof(head.v_magic));
  head.checksum = checksum_of(head, p->region.v_byte);
  memcpy(p->region.v_byte, &head, sizeof(head));
  p->store.is_writable = false;
  tb_region_release(&p->region);
}

static enum tb_file_fault check_head(const struct groups_rows* p,
                                     const struct head* p_head) {
  if (p->region.n_byte < PAGE ||
      memcmp(p_head->v_magic, MAGIC, sizeof(p_head->v_magic)) != 0) {
    return TB_FILE_foreign;
  }
  if (p_head->byte_order != BYTE_ORDER_MARK) {
    return TB_FILE_byte_order;
  }
  if (p_head->version != VERSION) {
    return TB_FILE_version;
  }
  if (!is_sensible(p_head)) {
    return TB_FILE_damaged;
  }
  return p->region.n_byte < layout_of(p_head).end ? TB_FILE_truncated
                                                  : TB_FILE_ok;
}

/* Groups lie within the rows, and all is what was written. */
static bool is_whole(struct groups_rows* p, const struct head* p_head) {
  if (checksum_of(*p_head, p->region.v_byte) != p_head->checksum ||
      p->v_first[0] != 0 || p->v_first[p->n_group] != p->store.n_row) {
    return false;
  }
  for (size_t g = 0; g < p->n_group; ++g) {
    if (p->v_first[g + 1] <= p->v_first[g]) {
      return false;
    }
  }
  return groups_rows_hash(&p->store) == TB_STATUS_ok &&
         p->store.hash == p_head->hash;
}

enum tb_file_fault groups_file_open(const char* path, struct groups_rows* p) {
  struct head head = {.n_row = 0};
  *p = (struct groups_rows){.n_group = 0};
  enum tb_file_fault fault = tb_region_open(path, &p->region);
  if (fault != TB_FILE_ok) {
    return fault;
  }
  if (p->region.n_byte >= sizeof(head)) {
    memcpy(&head, p->region.v_byte, sizeof(head));
  }
  fault = check_head(p, &head);
  if (fault == TB_FILE_ok) {
    p->store = (struct tb_store){.type = tb_store_find("dense"),
                                 .n_row = (size_t)head.n_row,
                                 .n_col = (size_t)head.n_col,
                                 .n_padded = (size_t)head.n_padded,
                                 .n_filled = (size_t)head.n_row};
    point_to(p, &head);
    fault = is_whole(p, &head) ? TB_FILE_ok : TB_FILE_altered;
  }
  if (fault != TB_FILE_ok) {
    groups_rows_destroy(p);
  }
  return fault;
}
