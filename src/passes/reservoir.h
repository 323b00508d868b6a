/* A sample of rows that a pass meets one by one, with enough rows of every
 * stratum: bottom-k samples by hashed uniforms (Cohen & Kaplan 2007, PODC;
 * thresholds as in priority sampling, Duffield, Lund & Thorup 2007, JACM).
 *
 * Row i has a uniform u_i, which depends on its number alone. Of each stratum
 * s, t_s is the (k_s + 1)-th smallest u, or 1 where there are no more than k_s
 * rows. Strata overlap: every row is of the stratum of all rows, and of one of
 * each of n_set sets of strata (the levels of a factor), or none. A row stays
 * if u_i < max t_s over its strata; given the other rows' uniforms that has
 * probability max t_s, so sums of the kept rows with weights 1 / max t_s are
 * unbiased. */
#ifndef TB_PASSES_RESERVOIR_H
#define TB_PASSES_RESERVOIR_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The smallest uniforms of a stratum: a heap with the largest on top. */
struct tb_heap {
  double* v_u;
  size_t n, n_room;
};

/* Strata 0 .. n_level - 1 of a set, with room for n_room.
 * v_threshold  t_s (n_room)
 * v_count      rows that were met (n_room)
 * v_heap       (n_room) */
struct tb_strata {
  size_t n_most; /* k_s */
  size_t n_level, n_room;
  double* v_threshold;
  double* v_count;
  struct tb_heap* v_heap;
};

/* v_set: the stratum of all rows, then n_set others; all is its own. */
struct tb_reservoir {
  uint64_t key; /* of the hash, as in base/hash.h */
  size_t n_set;
  struct tb_strata* v_set;
};

/* Codes of a set of strata: row r of the block is in stratum v_code[r] - 1, or,
 * where that is NA or below 1, in none. */
struct tb_codes {
  const int* v_code;
};

/* p: zeroed. At most n_all rows of all and n_stratum of each stratum, and more
 * only as rows stay for another stratum. */
enum tb_status tb_reservoir_create(struct tb_reservoir* p,
                                   uint64_t key,
                                   size_t n_all,
                                   size_t n_stratum,
                                   size_t n_set);
void tb_reservoir_destroy(struct tb_reservoir* p);

/* Meet n rows, of which the first has this number (from 0); those whose v_keep
 * is not 1 (NULL: none) are passed over. v_row (n): the rows, from 0, that stay
 * for now, *p_row of them. Whatever rows come later, no other may stay. */
enum tb_status tb_reservoir_add(struct tb_reservoir* p,
                                uint64_t first,
                                size_t n,
                                const struct tb_codes* v_codes,
                                const int* v_keep,
                                size_t* v_row,
                                size_t* p_row);

/* What another reservoir of the same key, which met other rows, has of a
 * stratum of a set: of `count` rows the n_u smallest uniforms, all or those on
 * its heap. After all of them, weights are those of one that met the rows of
 * both. */
enum tb_status tb_reservoir_merge(struct tb_reservoir* p,
                                  size_t set,
                                  size_t level,
                                  const double* v_u,
                                  size_t n_u,
                                  double count);

/* The weight of a row that was met, numbered from 0: 0 if it does not stay. Its
 * code in set c is v_codes[c].v_code[at]. */
double tb_reservoir_weight(const struct tb_reservoir* p,
                           uint64_t row,
                           const struct tb_codes* v_codes,
                           size_t at);

#endif
