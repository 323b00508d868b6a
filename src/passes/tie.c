/* Alike rows by hash; see passes/tie.h. All loops go along columns, which lie
 * in memory one after the other.
 *
 *   symbol            variable   shape       owner
 *   hash of a row     v_hash     n_row       the call
 *   table of groups   v_slot     2^k >= 2 n_row, group + 1, 0: none   the call
 */
#include "passes/tie.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static void hash_rows(const double* const* v_column,
                      size_t n_column,
                      size_t n_row,
                      uint64_t* v_hash) {
  memset(v_hash, 0, n_row * sizeof(*v_hash));
  for (size_t j = 0; j < n_column; ++j) {
    for (size_t i = 0; i < n_row; ++i) {
      uint64_t word;
      memcpy(&word, &v_column[j][i], sizeof(word));
      v_hash[i] = tb_hash_word(v_hash[i], word);
    }
  }
  for (size_t i = 0; i < n_row; ++i) {
    v_hash[i] = tb_hash_mix(v_hash[i]);
  }
}

/* Groups of equal hashes; their number. */
static size_t group_hashes(const uint64_t* v_hash,
                           size_t n_row,
                           uint32_t* v_slot,
                           size_t mask,
                           uint32_t* v_group,
                           uint32_t* v_first) {
  size_t n_group = 0;
  for (size_t i = 0; i < n_row; ++i) {
    size_t at = (size_t)v_hash[i] & mask;
    while (v_slot[at] != 0 && v_hash[v_first[v_slot[at] - 1]] != v_hash[i]) {
      at = (at + 1) & mask;
    }
    if (v_slot[at] == 0) {
      v_first[n_group] = (uint32_t)i;
      v_slot[at] = (uint32_t)++n_group;
    }
    v_group[i] = v_slot[at] - 1;
  }
  return n_group;
}

/* Rows of one hash that are not alike have groups of their own: one in 2^64 of
 * all pairs. */
static size_t part_unlike(const double* const* v_column,
                          size_t n_column,
                          size_t n_row,
                          uint32_t* v_group,
                          uint32_t* v_first,
                          size_t n_group) {
  for (size_t j = 0; j < n_column; ++j) {
    const double* v_x = v_column[j];
    for (size_t i = 0; i < n_row; ++i) {
      if (memcmp(&v_x[i], &v_x[v_first[v_group[i]]], sizeof(double)) != 0) {
        v_first[n_group] = (uint32_t)i;
        v_group[i] = (uint32_t)n_group++;
      }
    }
  }
  return n_group;
}

enum tb_status tb_tie_rows(const double* const* v_column,
                           size_t n_column,
                           size_t n_row,
                           uint32_t* v_group,
                           uint32_t* v_first,
                           size_t* p_n_group) {
  size_t n_slot = 16;
  while (n_slot < 2 * n_row) {
    n_slot *= 2;
  }
  uint64_t* v_hash = malloc((n_row + 1) * sizeof(*v_hash));
  uint32_t* v_slot = calloc(n_slot, sizeof(*v_slot));
  if (v_hash == NULL || v_slot == NULL) {
    free(v_hash);
    free(v_slot);
    return TB_STATUS_memory;
  }
  hash_rows(v_column, n_column, n_row, v_hash);
  const size_t n_group =
      group_hashes(v_hash, n_row, v_slot, n_slot - 1, v_group, v_first);
  *p_n_group =
      part_unlike(v_column, n_column, n_row, v_group, v_first, n_group);
  free(v_hash);
  free(v_slot);
  return TB_STATUS_ok;
}
