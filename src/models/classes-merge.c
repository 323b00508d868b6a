/* The same regression from rows of which no two are equal: each stands for all
 * that have its covariates, its class and its offset, with the sum of their
 * weights. A table of few factors has few such rows, however tall it is.
 *
 *   symbol    variable   shape                      owner
 *   r         v_key      n_most x n_key             merger
 *   sum w_i   v_sum      n_most                     merger
 *             v_slot     n_slot, of r's from 1      merger
 *             v_block    CLASSES_BLOCK x n_coef     merger
 *
 * r is (x_i, y_i, offset_i), by its bits; n_key = n_coef + 2. A row is found
 * again by a table of its hash, with linear probing. */
#include "models/classes-inside.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct merger {
  size_t n_key;
  size_t n_most;
  size_t n_found;
  size_t n_slot; /* a power of two, at least twice n_most */
  double* v_key;
  double* v_sum;
  double* v_block;
  double* v_next; /* the key of the row that is looked at */
  size_t* v_slot; /* 0: free */
};

static void merger_destroy(struct merger* p) {
  free(p->v_key);
  free(p->v_sum);
  free(p->v_block);
  free(p->v_next);
  free(p->v_slot);
}

static bool
merger_create(struct merger* p, const struct classes* p_from, size_t n_most) {
  *p = (struct merger){.n_key = p_from->n_coef + 2,
                       .n_most = n_most,
                       .n_slot = 4};
  while (p->n_slot < 2 * n_most) {
    p->n_slot *= 2;
  }
  p->v_key = calloc(n_most * p->n_key, sizeof(double));
  p->v_sum = calloc(n_most, sizeof(double));
  p->v_block = calloc(CLASSES_BLOCK * p_from->n_coef, sizeof(double));
  p->v_next = calloc(p->n_key, sizeof(double));
  p->v_slot = calloc(p->n_slot, sizeof(size_t));
  return p->v_key != NULL && p->v_sum != NULL && p->v_block != NULL &&
         p->v_next != NULL && p->v_slot != NULL;
}

/* Counts the row in v_next; false: there are too many. */
static bool merger_add(struct merger* p, double weight) {
  const size_t n_byte = p->n_key * sizeof(double);
  const uint64_t hash = tb_hash_mix(tb_hash_doubles(0, p->v_next, p->n_key));
  size_t at = (size_t)(hash & (p->n_slot - 1));
  while (p->v_slot[at] != 0) {
    const size_t r = p->v_slot[at] - 1;
    if (memcmp(p->v_key + r * p->n_key, p->v_next, n_byte) == 0) {
      p->v_sum[r] += weight;
      return true;
    }
    at = (at + 1) & (p->n_slot - 1);
  }
  if (p->n_found == p->n_most) {
    return false;
  }
  memcpy(p->v_key + p->n_found * p->n_key, p->v_next, n_byte);
  p->v_sum[p->n_found] = weight;
  p->n_found += 1;
  p->v_slot[at] = p->n_found;
  return true;
}

static bool
merger_look(struct merger* p, const struct classes* p_from, size_t n_data) {
  const size_t n = p_from->n_coef;
  for (size_t first = 0; first < n_data; first += CLASSES_BLOCK) {
    const size_t n_row = tb_min(CLASSES_BLOCK, n_data - first);
    const struct tb_store* p_store = &p_from->store;
    p_store->type->gather(p_store, NULL, first, n_row, n, p->v_block);
    for (size_t k = 0; k < n_row; ++k) {
      const size_t i = first + k;
      memcpy(p->v_next, p->v_block + k * n, n * sizeof(double));
      p->v_next[n] = p_from->v_class[i];
      p->v_next[n + 1] = p_from->v_offset == NULL ? 0 : p_from->v_offset[i];
      if (!merger_add(p, p_from->v_weight == NULL ? 1 : p_from->v_weight[i])) {
        return false;
      }
    }
  }
  return true;
}

/* the rows of a new store, of the type of the old one */
static enum tb_status merger_store(const struct merger* p,
                                   const struct classes* p_from,
                                   struct tb_store* p_store) {
  const size_t n = p_from->n_coef;
  enum tb_status status =
      tb_store_create(p_store, p_from->store.type, p->n_found, n);
  if (status != TB_STATUS_ok) {
    return status;
  }
  double* v_row = calloc(p_store->n_padded, sizeof(double));
  status = v_row == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  for (size_t r = 0; r < p->n_found && status == TB_STATUS_ok; ++r) {
    memcpy(v_row, p->v_key + r * p->n_key, n * sizeof(double));
    status = tb_store_append(p_store, 1, v_row);
  }
  free(v_row);
  return status;
}

/* room for n numbers at *p_at */
static double* merger_take(double** p_at, size_t n) {
  double* v = *p_at;
  *p_at += n;
  return v;
}

static enum tb_status merger_fill(const struct merger* p,
                                  const struct classes* p_from,
                                  struct classes* p_to) {
  const size_t n = p->n_found, n_coef = p_from->n_coef;
  enum tb_status status = tb_prior_copy(&p_from->prior, &p_to->prior);
  if (status == TB_STATUS_ok) {
    status = merger_store(p, p_from, &p_to->store);
  }
  if (status != TB_STATUS_ok) {
    return status;
  }
  p_to->n_byte = (3 * n + n_coef + p_from->n_class) * sizeof(double);
  p_to->p_memory = tb_big_alloc(p_to->n_byte);
  if (p_to->p_memory == NULL) {
    return TB_STATUS_memory;
  }
  double* v_at = (double*)(void*)p_to->p_memory;
  p_to->v_center = merger_take(&v_at, n_coef);
  memcpy(p_to->v_center, p_from->v_center, n_coef * sizeof(double));
  if (p_from->v_count != NULL) {
    p_to->v_count = merger_take(&v_at, p_from->n_class);
    memcpy(p_to->v_count, p_from->v_count, p_from->n_class * sizeof(double));
  }
  p_to->v_class = merger_take(&v_at, n);
  p_to->v_weight = merger_take(&v_at, n);
  p_to->v_offset = p_from->v_offset == NULL ? NULL : merger_take(&v_at, n);
  for (size_t r = 0; r < n; ++r) {
    const double* v_key = p->v_key + r * p->n_key;
    p_to->v_class[r] = v_key[n_coef];
    p_to->v_weight[r] = p->v_sum[r];
    if (p_to->v_offset != NULL) {
      p_to->v_offset[r] = v_key[n_coef + 1];
    }
  }
  return TB_STATUS_ok;
}

enum tb_status classes_merge(const struct tb_model* p_model,
                             size_t n_most,
                             struct tb_model* p_out) {
  const struct classes* p_from = p_model->p_self;
  struct merger merger;
  if (tb_store_is_sparse(&p_from->store) || n_most == 0) {
    return TB_STATUS_unsupported;
  }
  struct classes* p = calloc(1, sizeof(*p));
  enum tb_status status = TB_STATUS_memory;
  if (merger_create(&merger, p_from, n_most) && p != NULL) {
    status = merger_look(&merger, p_from, p_model->n_data)
                 ? TB_STATUS_ok
                 : TB_STATUS_unsupported;
  }
  if (status != TB_STATUS_ok) {
    free(p);
    merger_destroy(&merger);
    return status;
  }
  *p = (struct classes){.head = p_from->head,
                        .n_class = p_from->n_class,
                        .n_coef = p_from->n_coef,
                        .n_eta = p_from->n_eta,
                        .n_shared = p_from->n_shared,
                        .n_inner = p_from->n_inner,
                        .intercept = p_from->intercept};
  *p_out = *p_model;
  p_out->p_self = p;
  p_out->n_data = merger.n_found;
  status = merger_fill(&merger, p_from, p);
  merger_destroy(&merger);
  if (status != TB_STATUS_ok) {
    classes_destroy(p_out);
  }
  return status;
}
