/* The layers of a fully connected network: what they compute and how errors
 * run back through them, for one block of rows. No data, no likelihood.
 *
 *   z_l = W_l a_{l-1} + b_l,  a_l = phi(z_l) (l < L),  f = z_L;  a_0 = x
 *   d_L = d log p / d f,  d_{l-1} = (W_l^T d_l) phi'(z_{l-1})
 *   gradient of [W_l b_l]:  sum over rows of d_l (a_{l-1}, 1)^T
 *
 * Rumelhart, Hinton & Williams (1986). The parameters of layer l are the
 * matrix [W_l b_l], n_l x (n_{l-1} + 1), column-major: with a 1 after the
 * outputs of every layer one gemm makes z_l and one the gradient of both.
 * Squares of outer products are outer products of squares, so that sums of
 * squared gradients are one more gemm.
 *
 *   symbol     variable      shape                     owner
 *   [W_l b_l]  v_theta       n_l x (n_{l-1} + 1)       caller, layer by layer
 *   (x, 1)     v_input       (n_0 + 1) x n_row         caller, a row contiguous
 *   (a_l, 1)   tape, v_act   n_row x (n_l + 1)         tape, a unit contiguous
 *   d_l        tape, v_delta n_row x n_l               tape
 *
 * Elementwise work on a layer is one loop over a contiguous array. */
#ifndef TB_MODELS_LAYERS_H
#define TB_MODELS_LAYERS_H

#include <stddef.h>

enum tb_activation {
  TB_ACTIVATION_tanh = 0,
  TB_ACTIVATION_relu = 1, /* derivative 0 at 0 */
  TB_ACTIVATION_softplus = 2,
  TB_ACTIVATION_count = 3
};

#define TB_LAYERS_MOST 32

struct tb_layers {
  enum tb_activation activation;
  size_t n_layer;                      /* L, 1..TB_LAYERS_MOST */
  size_t v_width[TB_LAYERS_MOST + 1];  /* n_0 .. n_L */
  size_t v_offset[TB_LAYERS_MOST + 1]; /* where [W_{l+1} b_{l+1}] begins in
                                          theta; the last one: n_weight */
  size_t n_unit;                       /* n_1 + .. + n_L */
  size_t n_block; /* rows at a time: their tape stays in the cache */
};

/* Outputs and errors of one block of rows at one theta. */
struct tb_tape {
  const double* v_input; /* (n_0 + 1) x n_row, the last of a row 1 */
  size_t n_lead;         /* of v_input */
  size_t n_row;          /* at most n_block */
  double* v_act;         /* tape memory: tb_tape_size() doubles */
  double* v_delta;
};

/* widths: n_0, .., n_L as doubles. False if there are too few or too many, or
 * one is not a whole number of at least 1. */
int tb_layers_create(struct tb_layers* p_layers,
                     enum tb_activation activation,
                     const double* v_width,
                     size_t n_width);

static inline size_t tb_layers_n_weight(const struct tb_layers* p_layers) {
  return p_layers->v_offset[p_layers->n_layer];
}

/* doubles of a tape's memory, and the tape over them */
size_t tb_tape_size(const struct tb_layers* p_layers);
struct tb_tape tb_tape_at(const struct tb_layers* p_layers, double* v_memory);

/* f: n_row x n_L; d_L, to be filled in before going backward */
double* tb_tape_output(const struct tb_layers* p_layers,
                       const struct tb_tape* p_tape);
double* tb_tape_error(const struct tb_layers* p_layers,
                      const struct tb_tape* p_tape);

void tb_layers_forward(const struct tb_layers* p_layers,
                       const double* v_theta,
                       struct tb_tape* p_tape);
void tb_layers_backward(const struct tb_layers* p_layers,
                        const double* v_theta,
                        struct tb_tape* p_tape);

/* f at every row of x (n_row x n_0, column-major) and each of n_draw thetas
 * (columns of v_theta, n_lead apart): v_out[draw + n_draw (row + n_row k)] of
 * output k. v_scratch: tb_layers_map_scratch() doubles. */
size_t tb_layers_map_scratch(const struct tb_layers* p_layers);
void tb_layers_map(const struct tb_layers* p_layers,
                   const double* v_theta,
                   size_t n_lead,
                   size_t n_draw,
                   const double* v_x,
                   size_t n_row,
                   double* v_scratch,
                   double* v_out);

/* What follows works on g_i(theta), or with p_other (a tape of the same rows,
 * NULL: none) on g_i(theta) - g_i(other): tb_tape_subtract() first turns the
 * pair of tapes (d, a), (d', a') into (d - d', a), (d', a - a'), because
 *   d a^T - d' a'^T = (d - d') a^T + d' (a - a')^T
 * loses no digits where the two are close. */
void tb_tape_subtract(const struct tb_layers* p_layers,
                      struct tb_tape* p_tape,
                      struct tb_tape* p_other);

/* v_sum (n_weight) += sum over rows */
void tb_tape_add(const struct tb_layers* p_layers,
                 const struct tb_tape* p_tape,
                 const struct tb_tape* p_other,
                 double* v_sum);

/* v_square += sum over rows of squares; v_scratch: tb_tape_scratch() doubles */
size_t tb_tape_scratch(const struct tb_layers* p_layers);
void tb_tape_add_square(const struct tb_layers* p_layers,
                        const struct tb_tape* p_tape,
                        const struct tb_tape* p_other,
                        double* v_scratch,
                        double* v_square);

/* v_norm (n_row) = squared norm of each row; v_scratch as above */
void tb_tape_square_norms(const struct tb_layers* p_layers,
                          const struct tb_tape* p_tape,
                          const struct tb_tape* p_other,
                          double* v_scratch,
                          double* v_norm);

#endif
