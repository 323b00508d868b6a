/* Passes over the rows of crossed effects, in threads.
 *
 * Tiles of rows are looked at by whichever thread is free; what their rows add
 * to levels is then added by the thread whose level it is, row after row, and
 * what tiles add to sums over all rows by one, tile after tile. So every sum is
 * made in the order that a single thread makes it in, and draws are the same to
 * the last bit for any number of threads.
 *
 *   symbol       variable   shape                           owner
 *   of rows      v_row      CROSSED_VALUE x CROSSED_TILE,   chain's scratch
 *                           of each tile of a stretch
 *   of tiles     v_sum      n_sum, of each of them          chain's scratch
 */
#include "base/clip.h"
#include "models/crossed-inside.h"

#include <string.h>

enum { TILES_EACH = 16 }; /* of a thread at least */

/* threads that a level's neighbours are shared out among; of eight that lie in
 * a line of the cache, all are one's */
static size_t n_owner_of(size_t n_thread) {
  size_t n = 1;
  while (2 * n <= n_thread) {
    n *= 2;
  }
  return n;
}

/* v_place: which of n rows are of the owner's levels; returns their number */
static size_t choose(const int32_t* v_g,
                     size_t n,
                     size_t owner,
                     size_t n_owner,
                     uint16_t* v_place) {
  size_t m = 0;
  for (size_t i = 0; i < n; ++i) {
    v_place[m] = (uint16_t)i;
    m += (((size_t)v_g[i] >> 3) & (n_owner - 1)) == owner;
  }
  return m;
}

static size_t rows_of_tile(const struct crossed* p, size_t tile) {
  return tb_min(CROSSED_TILE, p->n_row - tile * CROSSED_TILE);
}

/* of the tile at place k of a stretch */
static void look(const struct crossed_pass* pass, size_t tile, size_t k) {
  const struct crossed_chain* c = pass->c;
  if (pass->look != NULL) {
    pass->look(pass,
               tile * CROSSED_TILE,
               rows_of_tile(c->p, tile),
               c->v_sum + k * pass->n_sum,
               c->v_row + k * CROSSED_VALUE * CROSSED_TILE);
  }
}

static void sum_up(const struct crossed_pass* pass, size_t k) {
  const double* v = pass->c->v_sum + k * pass->n_sum;
  for (size_t j = 0; j < pass->n_sum; ++j) {
    pass->v_total[j] += v[j];
  }
}

static void add_owned(const struct crossed_pass* pass,
                      size_t tile,
                      size_t k,
                      size_t owner,
                      size_t n_owner) {
  const struct crossed* p = pass->c->p;
  const size_t first = tile * CROSSED_TILE;
  uint16_t v_place[CROSSED_TILE];
  for (size_t l = pass->from; l < pass->to; ++l) {
    const int32_t* v_g = p->v_factor[l].v_level + first;
    const size_t n =
        choose(v_g, rows_of_tile(p, tile), owner, n_owner, v_place);
    pass->add(pass,
              l,
              first,
              v_place,
              n,
              pass->c->v_row + k * CROSSED_VALUE * CROSSED_TILE);
  }
}

static void go_alone(const struct crossed_pass* pass, size_t n_tile) {
  uint16_t v_place[CROSSED_TILE];
  for (size_t i = 0; i < CROSSED_TILE; ++i) {
    v_place[i] = (uint16_t)i;
  }
  for (size_t tile = 0; tile < n_tile; ++tile) {
    look(pass, tile, 0);
    sum_up(pass, 0);
    for (size_t l = pass->from; l < pass->to; ++l) {
      pass->add(pass,
                l,
                tile * CROSSED_TILE,
                v_place,
                rows_of_tile(pass->c->p, tile),
                pass->c->v_row);
    }
  }
}

static void
go_together(const struct crossed_pass* pass, size_t n_tile, size_t n_thread) {
  const size_t n_owner = pass->to > pass->from ? n_owner_of(n_thread) : 0;
#ifdef _OPENMP
#pragma omp parallel num_threads((int)n_thread)
#endif
  for (size_t start = 0; start < n_tile; start += CROSSED_STRETCH) {
    const size_t n = tb_min(CROSSED_STRETCH, n_tile - start);
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 4)
#endif
    for (size_t k = 0; k < n; ++k) {
      look(pass, start + k, k);
    }
#ifdef _OPENMP
#pragma omp for schedule(static, 1)
#endif
    for (size_t owner = 0; owner <= n_owner; ++owner) {
      for (size_t k = 0; k < n; ++k) {
        if (owner == n_owner) {
          sum_up(pass, k);
        } else {
          add_owned(pass, start + k, k, owner, n_owner);
        }
      }
    }
  }
}

size_t crossed_n_thread(const struct crossed_chain* c, size_t n, size_t each) {
  return tb_max(1, tb_min(c->n_thread, n / each));
}

void crossed_go(const struct crossed_pass* pass) {
  const size_t n_row = pass->c->p->n_row;
  const size_t n_tile = (n_row + CROSSED_TILE - 1) / CROSSED_TILE;
  const size_t n_thread =
      pass->is_alone ? 1 : crossed_n_thread(pass->c, n_tile, TILES_EACH);
  if (pass->n_sum > 0) {
    memset(pass->v_total, 0, pass->n_sum * sizeof(double));
  }
  if (n_thread == 1) {
    go_alone(pass, n_tile);
  } else {
    go_together(pass, n_tile, n_thread);
  }
  pass->c->p_sweep->n_row += pass->n_look * (double)n_row;
}

double crossed_total(struct crossed_chain* c,
                     crossed_look_at* look,
                     const void* p_context) {
  double sum;
  const struct crossed_pass pass = {.c = c,
                                    .n_sum = 1,
                                    .v_total = &sum,
                                    .n_look = 1,
                                    .p_context = p_context,
                                    .look = look};
  crossed_go(&pass);
  return sum;
}
