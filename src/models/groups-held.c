#include "models/groups-held.h"

#include "base/clip.h"
#include "base/memory.h"

#include <stdlib.h>

void groups_rows_destroy(struct groups_rows* p) {
  if (p->region.v_byte != NULL) {
    tb_region_close(&p->region);
  } else {
    tb_store_destroy(&p->store);
    tb_big_free(p->v_number, p->n_byte);
    free(p->v_first);
    free(p->v_constant);
    free(p->v_spare);
  }
  free(p->v_there);
  free(p->v_row);
  free(p->v_T);
  *p = (struct groups_rows){.n_group = 0};
}

enum tb_status groups_rows_hash(struct tb_store* p_store) {
  enum { ROWS = 256 };
  double* v_scratch = calloc(ROWS * p_store->n_padded + 1, sizeof(double));
  if (v_scratch == NULL) {
    return TB_STATUS_memory;
  }
  p_store->hash = 0;
  for (size_t start = 0; start < p_store->n_row; start += ROWS) {
    const size_t n = tb_min(ROWS, p_store->n_row - start);
    p_store->hash =
        tb_rows_hash(p_store->hash,
                     p_store->type->block(p_store, start, n, v_scratch),
                     start,
                     n,
                     p_store->n_col,
                     p_store->n_padded);
  }
  free(v_scratch);
  return TB_STATUS_ok;
}
