#include "models/layers.h"

#include "base/blas.h"
#include "base/clip.h"
#include "base/clones.h"
#include "base/vmath.h"

#include <math.h>
#include <string.h>

/* A tape of this size leaves room in a second-level cache for the packed
 * copies that gemm makes of it. */
enum { TAPE_BYTES = 1 << 18, BLOCK_LEAST = 16, BLOCK_MOST = 512 };

/* Up to so many multiplications OpenBLAS keeps a gemm in one thread, which
 * chains that have threads of their own want; not worth blocks below SOLO_LEAST
 * rows. */
enum { SOLO_PRODUCTS = 1 << 18, SOLO_LEAST = 64 };

/* numbers of a small buffer on the stack */
enum { PART = 256 };

int tb_layers_create(struct tb_layers* p_layers,
                     enum tb_activation activation,
                     const double* v_width,
                     size_t n_width) {
  if (n_width < 2 || n_width > TB_LAYERS_MOST + 1) {
    return 0;
  }
  *p_layers =
      (struct tb_layers){.activation = activation, .n_layer = n_width - 1};
  for (size_t l = 0; l < n_width; ++l) {
    if (!(v_width[l] >= 1) || v_width[l] > 1e9 ||
        v_width[l] != floor(v_width[l])) {
      return 0;
    }
    p_layers->v_width[l] = (size_t)v_width[l];
  }
  size_t largest = 1;
  for (size_t l = 1; l < n_width; ++l) {
    const size_t n_out = p_layers->v_width[l];
    largest = tb_max(largest, n_out * (p_layers->v_width[l - 1] + 1));
    p_layers->n_unit += n_out;
    p_layers->v_offset[l] =
        p_layers->v_offset[l - 1] + n_out * (p_layers->v_width[l - 1] + 1);
  }
  const size_t n_row_bytes =
      (2 * p_layers->n_unit + p_layers->n_layer) * sizeof(double);
  const size_t n_fit = TAPE_BYTES / n_row_bytes / 8 * 8;
  const size_t n_solo = SOLO_PRODUCTS / largest / 8 * 8;
  const size_t n_block = n_solo >= SOLO_LEAST ? tb_min(n_fit, n_solo) : n_fit;
  p_layers->n_block = tb_max(BLOCK_LEAST, tb_min(BLOCK_MOST, n_block));
  return 1;
}

/* ------------------------------------------------------------------- tape */

/* (a_l, 1) for l = 1..L-1 and f, then d_1..d_L */
static size_t act_size(const struct tb_layers* p_layers) {
  return (p_layers->n_unit + p_layers->n_layer - 1) * p_layers->n_block;
}

size_t tb_tape_size(const struct tb_layers* p_layers) {
  return act_size(p_layers) + p_layers->n_unit * p_layers->n_block;
}

struct tb_tape tb_tape_at(const struct tb_layers* p_layers, double* v_memory) {
  return (struct tb_tape){.v_act = v_memory,
                          .v_delta = v_memory + act_size(p_layers)};
}

/* (a_l, 1), 1 <= l; f for l = L */
static double*
act(const struct tb_layers* p_layers, const struct tb_tape* p_tape, size_t l) {
  size_t n_before = 0;
  for (size_t k = 1; k < l; ++k) {
    n_before += p_layers->v_width[k] + 1;
  }
  return p_tape->v_act + n_before * p_tape->n_row;
}

static double* delta(const struct tb_layers* p_layers,
                     const struct tb_tape* p_tape,
                     size_t l) {
  size_t n_before = 0;
  for (size_t k = 1; k < l; ++k) {
    n_before += p_layers->v_width[k];
  }
  return p_tape->v_delta + n_before * p_tape->n_row;
}

double* tb_tape_output(const struct tb_layers* p_layers,
                       const struct tb_tape* p_tape) {
  return act(p_layers, p_tape, p_layers->n_layer);
}

double* tb_tape_error(const struct tb_layers* p_layers,
                      const struct tb_tape* p_tape) {
  return delta(p_layers, p_tape, p_layers->n_layer);
}

/* ------------------------------------------------------ element by element */

/* Four numbers at a time, or one without vector extensions. */
#ifdef TB_VECTOR
typedef tb_v4d lanes;
#define SELECT(mask, a, b) TB_V_SELECT(mask, a, b)
#define ZERO               TB_V_ALL(0.0)
#else
typedef double lanes;
#define SELECT(mask, a, b) ((mask) ? (a) : (b))
#define ZERO               0.0
#endif
enum { N_LANE = sizeof(lanes) / sizeof(double) };

/* v_out = expression in the lanes x of v_x and y of v_y; the last n % N_LANE
 * numbers go through padded lanes. v_out may be either. */
#define OVER_PAIRS(expression)                                                 \
  size_t k = 0;                                                                \
  for (; k + N_LANE <= n; k += N_LANE) {                                       \
    const lanes x = *(const lanes*)(v_x + k), y = *(const lanes*)(v_y + k);    \
    *(lanes*)(v_out + k) = (expression);                                       \
  }                                                                            \
  if (k < n) {                                                                 \
    lanes x = ZERO, y = ZERO;                                                  \
    memcpy(&x, v_x + k, (n - k) * sizeof(double));                             \
    memcpy(&y, v_y + k, (n - k) * sizeof(double));                             \
    const lanes z = (expression);                                              \
    memcpy(v_out + k, &z, (n - k) * sizeof(double));                           \
  }

static TB_CLONES void
subtract(const double* v_x, const double* v_y, double* v_out, size_t n) {
  OVER_PAIRS(x - y)
}

static TB_CLONES void multiply(const double* v_x,
                               const double* v_y,
                               double scale,
                               double* v_out,
                               size_t n) {
  OVER_PAIRS(scale * x * y)
}

/* max(x, 0); NaN stays */
static TB_CLONES void
rectify(const double* v_x, const double* v_y, double* v_out, size_t n) {
  OVER_PAIRS(SELECT(x <= 0.0, ZERO, y))
}

/* x where the unit is on, y its output */
static TB_CLONES void
relu_slope(const double* v_x, const double* v_y, double* v_out, size_t n) {
  OVER_PAIRS(SELECT(y > 0.0, x, ZERO))
}

/* x phi'(z) from y = phi(z) = tanh(z) */
static TB_CLONES void
tanh_slope(const double* v_x, const double* v_y, double* v_out, size_t n) {
  OVER_PAIRS(x * (1.0 - y * y))
}

/* x phi'(z) from y = exp(-phi(z)) = 1 - phi'(z) */
static TB_CLONES void
softplus_slope(const double* v_x, const double* v_y, double* v_out, size_t n) {
  OVER_PAIRS(x * (1.0 - y))
}

static TB_CLONES void tanh_array(double* v, size_t n) {
  tb_vtanh(v, v, n);
}

static TB_CLONES void softplus_array(double* v, size_t n) {
  tb_vsoftplus(v, v, n);
}

static TB_CLONES void exp_array(double* v, size_t n) {
  tb_vexp(v, v, n);
}

static void activate(enum tb_activation activation, double* v, size_t n) {
  switch (activation) {
  case TB_ACTIVATION_tanh:
    tanh_array(v, n);
    break;
  case TB_ACTIVATION_softplus:
    softplus_array(v, n);
    break;
  default:
    rectify(v, v, v, n);
  }
}

/* v_delta *= phi'(z), from a = phi(z) */
static void times_slope(enum tb_activation activation,
                        const double* v_a,
                        double* v_delta,
                        size_t n) {
  switch (activation) {
  case TB_ACTIVATION_tanh:
    tanh_slope(v_delta, v_a, v_delta, n);
    break;
  case TB_ACTIVATION_softplus:
    for (size_t start = 0; start < n; start += PART) {
      const size_t n_part = tb_min(PART, n - start);
      double v_exp[PART];
      for (size_t k = 0; k < n_part; ++k) {
        v_exp[k] = -v_a[start + k];
      }
      exp_array(v_exp, n_part);
      softplus_slope(v_delta + start, v_exp, v_delta + start, n_part);
    }
    break;
  default:
    relu_slope(v_delta, v_a, v_delta, n);
  }
}

/* v_sum[i] += sum over the columns of a (n_row x n_col) times b */
static TB_CLONES void add_products(const double* v_a,
                                   const double* v_b,
                                   size_t n_row,
                                   size_t n_col,
                                   double* v_sum) {
  for (size_t j = 0; j < n_col; ++j) {
    const double* v_left = v_a + j * n_row;
    const double* v_right = v_b + j * n_row;
    size_t i = 0;
    for (; i + N_LANE <= n_row; i += N_LANE) {
      *(lanes*)(v_sum + i) +=
          *(const lanes*)(v_left + i) * *(const lanes*)(v_right + i);
    }
    for (; i < n_row; ++i) {
      v_sum[i] += v_left[i] * v_right[i];
    }
  }
}

/* --------------------------------------------------------- there and back */

/* what enters layer l: (a_{l-1}, 1), the input transposed */
struct entry {
  char op; /* that makes it n_row x (n_{l-1} + 1) */
  const double* v;
  size_t n_lead;
};

static struct entry entry_of(const struct tb_layers* p_layers,
                             const struct tb_tape* p_tape,
                             size_t l) {
  return l == 1
             ? (struct entry){'T', p_tape->v_input, p_tape->n_lead}
             : (struct entry){'N', act(p_layers, p_tape, l - 1), p_tape->n_row};
}

void tb_layers_forward(const struct tb_layers* p_layers,
                       const double* v_theta,
                       struct tb_tape* p_tape) {
  const size_t n_row = p_tape->n_row;
  for (size_t l = 1; l <= p_layers->n_layer; ++l) {
    const size_t n_out = p_layers->v_width[l];
    const struct entry in = entry_of(p_layers, p_tape, l);
    double* v_out = act(p_layers, p_tape, l);
    tb_gemm_op(in.op,
               'T',
               n_row,
               n_out,
               p_layers->v_width[l - 1] + 1,
               in.v,
               in.n_lead,
               v_theta + p_layers->v_offset[l - 1],
               n_out,
               0,
               v_out,
               n_row);
    if (l < p_layers->n_layer) {
      activate(p_layers->activation, v_out, n_row * n_out);
      for (size_t i = 0; i < n_row; ++i) {
        v_out[n_row * n_out + i] = 1;
      }
    }
  }
}

void tb_layers_backward(const struct tb_layers* p_layers,
                        const double* v_theta,
                        struct tb_tape* p_tape) {
  const size_t n_row = p_tape->n_row;
  for (size_t l = p_layers->n_layer; l > 1; --l) {
    const size_t n_out = p_layers->v_width[l], n_in = p_layers->v_width[l - 1];
    double* v_before = delta(p_layers, p_tape, l - 1);
    tb_gemm('N',
            n_row,
            n_in,
            n_out,
            delta(p_layers, p_tape, l),
            n_row,
            v_theta + p_layers->v_offset[l - 1],
            n_out,
            v_before,
            n_row);
    times_slope(p_layers->activation,
                act(p_layers, p_tape, l - 1),
                v_before,
                n_row * n_in);
  }
}

size_t tb_layers_map_scratch(const struct tb_layers* p_layers) {
  return tb_tape_size(p_layers) +
         (p_layers->v_width[0] + 1) * p_layers->n_block;
}

void tb_layers_map(const struct tb_layers* p_layers,
                   const double* v_theta,
                   size_t n_lead,
                   size_t n_draw,
                   const double* v_x,
                   size_t n_row,
                   double* v_scratch,
                   double* v_out) {
  const size_t n_in = p_layers->v_width[0];
  const size_t n_out = p_layers->v_width[p_layers->n_layer];
  double* v_input = v_scratch + tb_tape_size(p_layers);
  struct tb_tape tape = tb_tape_at(p_layers, v_scratch);
  tape.v_input = v_input;
  tape.n_lead = n_in + 1;
  for (size_t first = 0; first < n_row; first += tape.n_row) {
    tape.n_row = tb_min(p_layers->n_block, n_row - first);
    for (size_t i = 0; i < tape.n_row; ++i) {
      for (size_t j = 0; j < n_in; ++j) {
        v_input[i * tape.n_lead + j] = v_x[j * n_row + first + i];
      }
      v_input[i * tape.n_lead + n_in] = 1;
    }
    for (size_t draw = 0; draw < n_draw; ++draw) {
      tb_layers_forward(p_layers, v_theta + draw * n_lead, &tape);
      const double* v_f = tb_tape_output(p_layers, &tape);
      for (size_t k = 0; k < n_out; ++k) {
        for (size_t i = 0; i < tape.n_row; ++i) {
          v_out[draw + n_draw * (first + i + n_row * k)] =
              v_f[k * tape.n_row + i];
        }
      }
    }
  }
}

/* ------------------------------------------------------ sums of gradients */

void tb_tape_subtract(const struct tb_layers* p_layers,
                      struct tb_tape* p_tape,
                      struct tb_tape* p_other) {
  const size_t n_row = p_tape->n_row;
  subtract(p_tape->v_delta,
           p_other->v_delta,
           p_tape->v_delta,
           p_layers->n_unit * n_row);
  subtract(p_tape->v_act,
           p_other->v_act,
           p_other->v_act,
           (p_layers->n_unit + p_layers->n_layer - 1) * n_row);
}

/* v_sum (n_l x (n_{l-1} + 1)) += d^T entry */
static void add_outer(const struct tb_layers* p_layers,
                      size_t l,
                      size_t n_row,
                      const double* v_delta,
                      struct entry in,
                      double* v_sum) {
  const size_t n_out = p_layers->v_width[l];
  tb_gemm_op('T',
             in.op,
             n_out,
             p_layers->v_width[l - 1] + 1,
             n_row,
             v_delta,
             n_row,
             in.v,
             in.n_lead,
             1,
             v_sum + p_layers->v_offset[l - 1],
             n_out);
}

void tb_tape_add(const struct tb_layers* p_layers,
                 const struct tb_tape* p_tape,
                 const struct tb_tape* p_other,
                 double* v_sum) {
  for (size_t l = 1; l <= p_layers->n_layer; ++l) {
    add_outer(p_layers,
              l,
              p_tape->n_row,
              delta(p_layers, p_tape, l),
              entry_of(p_layers, p_tape, l),
              v_sum);
    if (p_other != NULL && l > 1) { /* inputs do not differ */
      add_outer(p_layers,
                l,
                p_tape->n_row,
                delta(p_layers, p_other, l),
                entry_of(p_layers, p_other, l),
                v_sum);
    }
  }
}

/* doubles of what enters layer l, and the widest */
static size_t entry_size(const struct tb_layers* p_layers,
                         struct entry in,
                         size_t l,
                         size_t n_row) {
  return in.op == 'T' ? in.n_lead * n_row
                      : (p_layers->v_width[l - 1] + 1) * n_row;
}

static size_t widest(const struct tb_layers* p_layers) {
  size_t n = 0;
  for (size_t l = 0; l <= p_layers->n_layer; ++l) {
    n = tb_max(n, p_layers->v_width[l]);
  }
  return n;
}

/* Inputs come with a leading dimension of their own, up to 8 wider. */
size_t tb_tape_scratch(const struct tb_layers* p_layers) {
  return 2 * (widest(p_layers) + 8) * p_layers->n_block;
}

/* v_square += sum over rows of scale (d d') ((a a'), 1)^T: the squares and
 * products of outer products */
static void add_outer_products(const struct tb_layers* p_layers,
                               size_t l,
                               size_t n_row,
                               const double* v_delta,
                               const double* v_delta2,
                               struct entry in,
                               struct entry in2,
                               double scale,
                               double* v_scratch,
                               double* v_square) {
  const size_t n_out = p_layers->v_width[l];
  const size_t n_in = entry_size(p_layers, in, l, n_row);
  double* v_left = v_scratch;
  double* v_right = v_scratch + (widest(p_layers) + 8) * p_layers->n_block;
  multiply(v_delta, v_delta2, scale, v_left, n_out * n_row);
  multiply(in.v, in2.v, 1, v_right, n_in);
  in.v = v_right;
  add_outer(p_layers, l, n_row, v_left, in, v_square);
}

void tb_tape_add_square(const struct tb_layers* p_layers,
                        const struct tb_tape* p_tape,
                        const struct tb_tape* p_other,
                        double* v_scratch,
                        double* v_square) {
  const size_t n_row = p_tape->n_row;
  for (size_t l = 1; l <= p_layers->n_layer; ++l) {
    const double* v_d = delta(p_layers, p_tape, l);
    const struct entry a = entry_of(p_layers, p_tape, l);
    add_outer_products(p_layers,
                       l,
                       n_row,
                       v_d,
                       v_d,
                       a,
                       a,
                       1,
                       v_scratch,
                       v_square);
    if (p_other != NULL && l > 1) {
      const double* v_d2 = delta(p_layers, p_other, l);
      const struct entry a2 = entry_of(p_layers, p_other, l);
      add_outer_products(p_layers,
                         l,
                         n_row,
                         v_d,
                         v_d2,
                         a,
                         a2,
                         2,
                         v_scratch,
                         v_square);
      add_outer_products(p_layers,
                         l,
                         n_row,
                         v_d2,
                         v_d2,
                         a2,
                         a2,
                         1,
                         v_scratch,
                         v_square);
    }
  }
}

/* v_out (n_row) = a b^T of what enters layer l */
static void entry_products(const struct tb_layers* p_layers,
                           size_t l,
                           size_t n_row,
                           struct entry in,
                           struct entry in2,
                           double* v_out) {
  const size_t n_in = p_layers->v_width[l - 1] + 1;
  memset(v_out, 0, n_row * sizeof(double));
  if (in.op == 'N') {
    add_products(in.v, in2.v, n_row, n_in, v_out);
    return;
  }
  for (size_t i = 0; i < n_row; ++i) {
    for (size_t j = 0; j < n_in; ++j) {
      v_out[i] += in.v[i * in.n_lead + j] * in2.v[i * in2.n_lead + j];
    }
  }
}

/* ||d a^T + d' a'^T||^2 = |d|^2 |a|^2 + 2 (d d') (a a') + |d'|^2 |a'|^2 */
void tb_tape_square_norms(const struct tb_layers* p_layers,
                          const struct tb_tape* p_tape,
                          const struct tb_tape* p_other,
                          double* v_scratch,
                          double* v_norm) {
  const size_t n_row = p_tape->n_row;
  double* v_a = v_scratch;
  double* v_d = v_scratch + n_row;
  memset(v_norm, 0, n_row * sizeof(double));
  for (size_t l = 1; l <= p_layers->n_layer; ++l) {
    const size_t n_term = p_other != NULL && l > 1 ? 3 : 1;
    for (size_t k = 0; k < n_term; ++k) {
      const struct tb_tape* p_left = k < 2 ? p_tape : p_other;
      const struct tb_tape* p_right = k < 1 ? p_tape : p_other;
      entry_products(p_layers,
                     l,
                     n_row,
                     entry_of(p_layers, p_left, l),
                     entry_of(p_layers, p_right, l),
                     v_a);
      memset(v_d, 0, n_row * sizeof(double));
      add_products(delta(p_layers, p_left, l),
                   delta(p_layers, p_right, l),
                   n_row,
                   p_layers->v_width[l],
                   v_d);
      for (size_t i = 0; i < n_row; ++i) {
        v_norm[i] += (k == 1 ? 2 : 1) * v_d[i] * v_a[i];
      }
    }
  }
}
