/* Rows that stand in memory one after the other, turned into columns.
 *
 * What is slow about it is memory: rows of a minibatch are in random places. So
 * those of the next block are fetched while this one is turned. */
#ifndef TB_FFI_TURN_ROWS_H
#define TB_FFI_TURN_ROWS_H

#include "base/clip.h"
#include "base/clones.h"
#include "models/batch.h"

/* Rows that are turned into columns together: a cache line of each column. */
#define N_TURN 8

/* Bytes that are fetched early, at least. */
#define N_AHEAD 4096

/* Bytes of the first lines of a row that are fetched early. */
#define MAX_FETCH 1024

/* Rows of v_x, a matrix by rows. COLUMN(m): where those of column m go. */
#define TURN_ROWS(type, WANTED, COLUMN)                                        \
  {                                                                            \
    const size_t n = p_batch->n_batch;                                         \
    const size_t n_fetch = tb_min(n_column * sizeof(type), MAX_FETCH);         \
    const size_t ahead = tb_max(N_TURN, N_AHEAD / n_fetch);                    \
    size_t k = 0;                                                              \
    for (; k + N_TURN <= n; k += N_TURN) {                                     \
      const type* v_row[N_TURN];                                               \
      for (size_t r = 0; r < N_TURN; ++r) {                                    \
        const size_t next = tb_min(k + r + ahead, n - 1);                      \
        const char* p =                                                        \
            (const char*)(v_x + tb_batch_row(p_batch, next) * n_column);       \
        for (size_t b = 0; b < n_fetch; b += 64) {                             \
          TB_PREFETCH(p + b);                                                  \
        }                                                                      \
        TB_PREFETCH(p + n_fetch - 1);                                          \
        v_row[r] = v_x + tb_batch_row(p_batch, k + r) * n_column;              \
      }                                                                        \
      for (size_t m = 0; m < n_column; ++m) {                                  \
        if (WANTED(m)) {                                                       \
          type* v = COLUMN(m) + k;                                             \
          const type a = v_row[0][m], b = v_row[1][m], c = v_row[2][m],        \
                     d = v_row[3][m], e = v_row[4][m], f = v_row[5][m],        \
                     g = v_row[6][m], h = v_row[7][m];                         \
          v[0] = a, v[1] = b, v[2] = c, v[3] = d;                              \
          v[4] = e, v[5] = f, v[6] = g, v[7] = h;                              \
        }                                                                      \
      }                                                                        \
    }                                                                          \
    for (; k < n; ++k) {                                                       \
      const type* v_row = v_x + tb_batch_row(p_batch, k) * n_column;           \
      for (size_t m = 0; m < n_column; ++m) {                                  \
        if (WANTED(m)) {                                                       \
          COLUMN(m)[k] = v_row[m];                                             \
        }                                                                      \
      }                                                                        \
    }                                                                          \
  }

#endif
