/* Rows of a group that say the same of its effects become one, whose weight is
 * the sum of theirs: a covariate with few values has few rows in a group, and
 * each costs a density at every node.
 *
 *   the same  x, offset and y are the same: w l(y, eta) adds up
 *   pooled    x and offset are, and y are shares of w trials, of which l takes
 *             the sum: y := sum w y / sum w. In how many ways trials may fall
 *             goes into the constant of the group
 *
 *   symbol   variable  shape            owner
 *   key      v_key     n_key            here: x, offset, y of a row
 *   keys     v_keys    n_most x n_key   here: of the rows that stay of a group
 *   table    v_table   n_slot           here: places in keys, from 1; 0: none
 *   places   v_to      n_most           here: which of these a row becomes */
#include "models/groups-merge.h"

#include "base/clip.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer are not worth another order of sums. */
#define LEAST_SHARE 0.75

struct merger {
  size_t n_key, n_slot;
  double* v_key;
  double* v_keys;
  size_t* v_table;
  size_t* v_to;
  double* v_size; /* n_group: rows that stay */
};

static bool begin(const struct groups_rows* p, bool pools, struct merger* m) {
  size_t n_most = 1;
  for (size_t g = 0; g < p->n_group; ++g) {
    n_most = tb_max(n_most, p->v_first[g + 1] - p->v_first[g]);
  }
  m->n_key = p->store.n_col + (p->v_offset != NULL) + (pools ? 0 : p->n_y);
  for (m->n_slot = 4; m->n_slot < 2 * n_most; m->n_slot *= 2) {
  }
  m->v_key = malloc((p->store.n_padded + m->n_key) * sizeof(double));
  m->v_keys = malloc(n_most * m->n_key * sizeof(double));
  m->v_table = malloc(m->n_slot * sizeof(size_t));
  m->v_to = malloc(n_most * sizeof(size_t));
  m->v_size = malloc(p->n_group * sizeof(double));
  return m->v_key != NULL && m->v_keys != NULL && m->v_table != NULL &&
         m->v_to != NULL && m->v_size != NULL;
}

static void end(struct merger* m) {
  free(m->v_key);
  free(m->v_keys);
  free(m->v_table);
  free(m->v_to);
  free(m->v_size);
}

static void
read_key(const struct groups_rows* p, size_t row, bool pools, double* v_key) {
  const size_t n_col = p->store.n_col;
  size_t at = n_col;
  p->store.type->gather(&p->store, NULL, row, 1, n_col, v_key);
  if (p->v_offset != NULL) {
    v_key[at++] = p->v_offset[row];
  }
  for (size_t j = 0; j < p->n_y && !pools; ++j) {
    v_key[at++] = p->v_y[j * p->store.n_row + row];
  }
  for (size_t j = 0; j < at; ++j) {
    v_key[j] += 0; /* -0 is 0 */
  }
}

/* v_to of the rows of a group; returns how many stay */
static size_t find_same(const struct groups_rows* p,
                        size_t group,
                        bool pools,
                        struct merger* m) {
  const size_t n_byte = m->n_key * sizeof(double);
  size_t n = 0;
  memset(m->v_table, 0, m->n_slot * sizeof(size_t));
  for (size_t i = p->v_first[group]; i < p->v_first[group + 1]; ++i) {
    read_key(p, i, pools, m->v_key);
    size_t slot =
        (size_t)tb_hash_doubles(0, m->v_key, m->n_key) & (m->n_slot - 1);
    while (m->v_table[slot] != 0 &&
           memcmp(m->v_keys + (m->v_table[slot] - 1) * m->n_key,
                  m->v_key,
                  n_byte) != 0) {
      slot = (slot + 1) & (m->n_slot - 1);
    }
    if (m->v_table[slot] == 0) {
      memcpy(m->v_keys + n * m->n_key, m->v_key, n_byte);
      m->v_table[slot] = ++n;
    }
    m->v_to[i - p->v_first[group]] = m->v_table[slot] - 1;
  }
  return n;
}

/* log of the ways that w y of w trials may fall, as responses/binomial.c has it
 */
static double log_ways(double w, double y) {
  return w == 1 ? 0
                : lgamma(w + 1) - lgamma(w * y + 1) - lgamma(w * (1 - y) + 1);
}

/* Row i joins those that have become row `at`; is it their first? */
static enum tb_status join_row(const struct groups_rows* p,
                               size_t i,
                               bool is_first,
                               bool pools,
                               struct groups_rows* p_out,
                               size_t at) {
  const double w = p->v_weight == NULL ? 1 : p->v_weight[i];
  if (!is_first) {
    p_out->v_weight[at] += w;
    if (pools) {
      p_out->v_y[at] += w * p->v_y[i];
    }
    return TB_STATUS_ok;
  }
  p_out->v_weight[at] = w;
  for (size_t j = 0; j < p->n_y; ++j) {
    p_out->v_y[j * p_out->store.n_row + at] =
        (pools ? w : 1) * p->v_y[j * p->store.n_row + i];
  }
  if (p->v_offset != NULL) {
    p_out->v_offset[at] = p->v_offset[i];
  }
  p->store.type->gather(&p->store, NULL, i, 1, p->store.n_col, p_out->v_row);
  return tb_store_write(&p_out->store, at, 1, p_out->v_row);
}

static enum tb_status join_group(const struct groups_rows* p,
                                 size_t group,
                                 bool pools,
                                 const struct merger* m,
                                 struct groups_rows* p_out) {
  const size_t first = p_out->v_first[group];
  enum tb_status status = TB_STATUS_ok;
  for (size_t i = p->v_first[group];
       i < p->v_first[group + 1] && status == TB_STATUS_ok;
       ++i) {
    const size_t to = m->v_to[i - p->v_first[group]];
    const bool is_first = to == p_out->v_there[group];
    status = join_row(p, i, is_first, pools, p_out, first + to);
    p_out->v_there[group] += is_first;
    if (pools) {
      const double w = p->v_weight == NULL ? 1 : p->v_weight[i];
      p_out->v_constant[group] += log_ways(w, p->v_y[i]);
    }
  }
  for (size_t at = first; pools && at < p_out->v_first[group + 1]; ++at) {
    p_out->v_y[at] = fmin(p_out->v_y[at] / p_out->v_weight[at], 1);
    p_out->v_constant[group] -= log_ways(p_out->v_weight[at], p_out->v_y[at]);
  }
  return status;
}

static enum tb_status join_all(const struct groups_rows* p,
                               bool pools,
                               const char* path,
                               struct merger* m,
                               struct groups_rows* p_out,
                               enum tb_file_fault* p_fault) {
  const struct groups_shape shape = {.type = p->store.type,
                                     .n_col = p->store.n_col,
                                     .n_group = p->n_group,
                                     .v_size = m->v_size,
                                     .n_y = p->n_y,
                                     .has_weights = true,
                                     .has_offset = p->v_offset != NULL,
                                     .has_constant = pools,
                                     .path = path};
  enum tb_status status = groups_rows_begin(p_out, &shape, p_fault);
  for (size_t g = 0; g < p->n_group && status == TB_STATUS_ok; ++g) {
    find_same(p, g, pools, m);
    status = join_group(p, g, pools, m, p_out);
  }
  status = status == TB_STATUS_ok ? groups_rows_end(p_out) : status;
  if (status != TB_STATUS_ok) {
    groups_rows_destroy(p_out);
  }
  return status;
}

enum tb_status groups_rows_merge(struct groups_rows* p,
                                 bool pools,
                                 const char* path,
                                 enum tb_file_fault* p_fault,
                                 bool* p_is_new) {
  *p_fault = TB_FILE_ok;
  *p_is_new = false;
  if (p->folds) {
    return TB_STATUS_ok;
  }
  struct merger m = {.n_key = 0};
  struct groups_rows out;
  enum tb_status status = begin(p, pools, &m) ? TB_STATUS_ok : TB_STATUS_memory;
  double n_left = 0;
  for (size_t g = 0; g < p->n_group && status == TB_STATUS_ok; ++g) {
    m.v_size[g] = (double)find_same(p, g, pools, &m);
    n_left += m.v_size[g];
  }
  if (status == TB_STATUS_ok &&
      n_left <= LEAST_SHARE * (double)p->v_first[p->n_group]) {
    status = join_all(p, pools, path, &m, &out, p_fault);
    if (status == TB_STATUS_ok) {
      groups_rows_destroy(p);
      *p = out;
      *p_is_new = true;
    }
  }
  end(&m);
  return status;
}
