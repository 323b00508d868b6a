/* The factorised test from inside: what factorised.c, shells.c and drawn.c
 * share. */
#ifndef TB_GRADIENTS_FACTORS_INSIDE_H
#define TB_GRADIENTS_FACTORS_INSIDE_H

#include "gradients/cv2-inside.h"
#include "gradients/factors-scratch.h"
#include "gradients/surrogate.h"
#include "subsampling/weighted.h"

#include <stdatomic.h>

/* Further out every row is looked at. */
enum { TB_N_SHELL = 24 };

struct tb_shell {
  double radius;
  double total;             /* Psi of the rows that are thinned */
  size_t n_always;          /* the others */
  size_t* v_always;         /* NULL: all, in order */
  struct tb_alias* v_alias; /* NULL: none is thinned, or they are drawn ahead */
  size_t n_byte;
};

struct tb_drawn;

struct tb_factors {
  const struct tb_cv2* p_cv2;
  struct tb_surrogate surrogate;
  const struct tb_frame* p_ball; /* z = L^T delta: the surrogate's metric, or of
                                    p_drawn */
  struct tb_drawn* p_drawn;      /* rows drawn ahead; NULL: the test draws */
  double radius; /* of the first shell, and E(||z||^3 + ||z'||^3) of two draws
                    of the law */
  double phi;
  double* v_reach;            /* see models/expansion.h; NULL: ||z|| */
  double* v_norm;             /* without p_drawn */
  size_t n_byte;              /* of v_norm and what the surrogate points to */
  bool is_untested;           /* only its surrogate is wanted */
  struct tb_shell everything; /* beyond the last */
  _Atomic(struct tb_shell*) v_shell[TB_N_SHELL]; /* NULL: not made yet */
};

/* ---- shells.c ---- */

/* The smallest that holds `norm`. Chains in threads may make the same one at
 * the same time: the first to be there is kept, and they are all alike. */
enum tb_status tb_shell_for(struct tb_factors* p,
                            double norm,
                            const struct tb_shell** pp_shell);
void tb_shells_destroy(struct tb_factors* p);

/* ---- drawn.c ---- */

/* Rows drawn ahead, by a pass over more rows than the model has. Each chain
 * has a stretch of its own, and uses each draw once. */
struct tb_drawn {
  struct tb_frame ball;  /* z = L^T delta */
  struct tb_shell shell; /* of one radius, with the rows looked at always */
  size_t n_row;
  size_t* v_row;     /* n_row draws, in order */
  double* v_inverse; /* n_row: Psi / psi of each */
};

/* Parameters: those of tb_cv2 that begin with "ahead_". */
enum tb_status tb_drawn_make(const struct tb_cv2* p_cv2,
                             const struct tb_params* p_params,
                             struct tb_drawn** pp_drawn);
void tb_drawn_destroy(struct tb_drawn* p_drawn);

/* numbers of rows, from 0; NULL: there are none */
bool tb_take_rows(const struct tb_param* p_param, size_t n_data, size_t* v_row);

/* Draws that the chain has left. */
size_t tb_drawn_left(const struct tb_chain* p_chain,
                     const struct tb_drawn* p_drawn,
                     const struct tb_factors_scratch* p_scratch);
/* The next n of them, which stay until they are counted as used. */
void tb_drawn_look(const struct tb_chain* p_chain,
                   const struct tb_drawn* p_drawn,
                   size_t n,
                   struct tb_factors_scratch* p_scratch);

#endif
