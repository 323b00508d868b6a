/* Models in C or C++ for the samplers of the R package tallbayes.
 *
 *   log pi(theta) = log p(theta) + sum_i log p(y_i | theta) + const
 *   g(theta) = g_0(theta) + sum_i g_i(theta)     (gradients of the LOG
 *   posterior; g_0: the prior and every term that needs no data)
 *
 * A model is a const table of functions, struct tb_native_type. Compile it with
 * R CMD SHLIB (this header is in system.file("include", package =
 * "tallbayes")) or in a package with LinkingTo: tallbayes, and hand its address
 * to R:
 *
 *   #include <R.h>
 *   #include <Rinternals.h>
 *   #include <tallbayes.h>
 *
 *   static const struct tb_native_type my_type = {
 *     .version = TALLBAYES_API_VERSION,
 *     .name = "mine",
 *     .prior = my_prior,
 *     .gradient = my_gradient,
 *     .log_lik = my_log_lik
 *   };
 *
 *   SEXP my_model(void) {
 *     return R_MakeExternalPtr((void*) &my_type, R_NilValue, R_NilValue);
 *   }
 *
 * and in R: model_native(.Call("my_model"), data = list(x = x, y = y), init =
 * c(a = 0, b = 0)). Whole examples are in system.file("examples", package =
 * "tallbayes"); vignette("your-own-model") explains one.
 *
 * Rules for all functions of a table:
 *   - chains run in threads and call them at the same time: write only to
 *     v_ arguments, sums and scratch, never to static memory or to p_self;
 *   - do not call R's API and let no C++ exception out;
 *   - the same arguments must give the same bits, whatever the order of calls;
 *   - a value that does not exist is NaN: the chain is then stopped with a
 *     message. Statuses other than TB_STATUS_ok stop it as well.
 *
 * A leading v_ is the start of an array of doubles, p_ a pointer to one thing,
 * n_ a count. Everything counts from 0. This file needs C99 or C++98. */
#ifndef TALLBAYES_H
#define TALLBAYES_H

#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "tB" and the number of this version. Slots are only ever appended to the
 * table, and the package goes on taking tables of versions before its own. */
#define TALLBAYES_API_VERSION 0x74420001u

/* What a function has to say when it returns. */
enum tb_status {
  TB_STATUS_ok = 0,
  TB_STATUS_nonfinite = 1, /* a coordinate of the state is NaN or Inf */
  TB_STATUS_escaped = 2,   /* too many draws far outside the expected region */
  TB_STATUS_callback = 3,  /* a function of the user's model failed */
  TB_STATUS_memory = 4,    /* an allocation failed */
  TB_STATUS_unsupported = 5, /* the optional slot that is needed is NULL */
  TB_STATUS_argument = 6,    /* a parameter is missing or out of range */
  TB_STATUS_singular = 7,    /* a matrix is not positive definite */
  TB_STATUS_interrupted = 8, /* a function of R was interrupted: not for C */
  TB_STATUS_bound = 9,     /* a bound that a sampler relies on does not hold: an
                              internal error */
  TB_STATUS_exhausted = 10 /* a chain waits for rows that a pass draws ahead:
                              not for C */
};

/* ---- what functions are given ------------------------------------------- */

/* Rows of a minibatch and their multipliers c_i. A full pass is a batch, too.
 */
struct tb_batch {
  size_t n_batch;
  const size_t* v_index;  /* n_batch row numbers; NULL: start, start + 1, ... */
  size_t start;           /* used when v_index is NULL */
  const double* v_weight; /* n_batch multipliers; NULL: all equal `weight` */
  double weight;
  double finite; /* factor of the noise variance: 1 with replacement,
                    1 - n/N without, 0 for all rows */
};

/* The point whose gradients control variates subtract. */
struct tb_reference {
  const double* v_theta;  /* n_dim */
  const double* v_scalar; /* r_i at v_scalar[i * stride], n_scalar numbers;
                             NULL: none stored */
  size_t stride;
};

/* What one pass over rows adds up. A NULL member is not wanted; those given
 * are ADDED to, except v_scalar, which is set.
 * With a_i = g_i(theta), or g_i(theta) - g_i(reference): */
struct tb_sums {
  double* v_gradient; /* n_dim: sum_i c_i a_i */
  double* v_square;   /* n_dim: sum_i (c_i a_ij)^2 */
  double* p_log_lik;  /* sum_i c_i log p(y_i | theta) */
  double* v_scalar; /* n_batch x n_scalar: r_i(theta) of each row of the batch;
                       only asked of models with n_scalar > 0 */
};

struct tb_array;

/* Functions that the package lends. They are compiled for the processor at
 * hand; those for arrays work on blocks of up to TB_BLOCK rows of a batch, from
 * its row number `first` on, and have the rows of the next block fetched from
 * memory meanwhile, which is what the time of a minibatch is spent on. */
#define TB_BLOCK 8
struct tb_tools {
  void (*dot)(const struct tb_array* p_array,
              const struct tb_batch* p_batch,
              size_t first,
              const double* v,
              double* v_out);
  void (*add)(const struct tb_array* p_array,
              const struct tb_batch* p_batch,
              size_t first,
              const double* v_u,
              double* v_sum,
              double* v_square);
  void (*take)(const double* v_value,
               size_t stride,
               size_t n_value,
               const struct tb_batch* p_batch,
               size_t first,
               double* v_out);
  /* of n numbers; v_out may be v_x; log: of finite numbers from DBL_MIN on;
   * logistic: 1 / (1 + exp(-x)); softplus: log(1 + exp(x)) */
  void (*exp)(const double* v_x, double* v_out, size_t n);
  void (*log)(const double* v_x, double* v_out, size_t n);
  void (*logistic)(const double* v_x, double* v_out, size_t n);
  void (*softplus)(const double* v_x, double* v_out, size_t n);
  void (*tanh)(const double* v_x, double* v_out, size_t n);
};

/* A matrix or vector that came from R, copied row by row: element (i, j) is
 * v_value[i * stride + j]. stride is n_col or a little more; what is beyond
 * n_col is zero in a matrix, and the package's own in a vector. */
struct tb_array {
  const char* name;
  size_t n_row;
  size_t n_col; /* 1 for a vector */
  size_t stride;
  const double* v_value;
  const struct tb_tools* p_tools;
  const void* p_private; /* the package's */
};

/* A posterior: a table with its data. */
struct tb_native {
  size_t n_data;  /* rows */
  size_t n_dim;   /* parameters */
  size_t n_array; /* arrays of model_native(data = ), then constants */
  const struct tb_array* v_array;
  const struct tb_tools* p_tools;
  void* p_self; /* yours: set it in create(); NULL before */
};

/* ---- the table ---------------------------------------------------------- */

struct tb_native_type {
  unsigned version; /* TALLBAYES_API_VERSION */
  const char* name; /* printed */

  /* ---- required ---- */

  /* g_0: SETS v_gradient (n_dim); ADDS log p(theta) to *p_log_prior if that is
   * not NULL. The Jacobians of transformed parameters belong here. */
  enum tb_status (*prior)(const struct tb_native* p_native,
                          void* p_scratch,
                          const double* v_theta,
                          double* v_gradient,
                          double* p_log_prior);

  /* The pass over rows; see struct tb_sums. p_reference may be NULL. */
  enum tb_status (*gradient)(const struct tb_native* p_native,
                             void* p_scratch,
                             const double* v_theta,
                             const struct tb_batch* p_batch,
                             const struct tb_reference* p_reference,
                             const struct tb_sums* p_sums);

  /* log p(y_i | theta) of each row of the batch, whatever its multiplier, into
   * v_out (n_batch), constants included */
  enum tb_status (*log_lik)(const struct tb_native* p_native,
                            void* p_scratch,
                            const double* v_theta,
                            const struct tb_batch* p_batch,
                            double* v_out);

  /* ---- optional: NULL or 0 where a model needs them not ---- */

  /* Find and check the arrays, prepare what the other functions read, hang it
   * on p_native->p_self. Called once. What is not TB_STATUS_ok makes
   * model_native() fail; destroy() is not called then. */
  enum tb_status (*create)(struct tb_native* p_native);

  /* Free p_self. */
  void (*destroy)(struct tb_native* p_native);

  /* Bytes of scratch that a call with up to n_batch rows needs; p_scratch is
   * aligned as malloc() aligns, and holds anything when a call begins. */
  size_t (*scratch_size)(const struct tb_native* p_native, size_t n_batch);

  /* ADD -Hessian of the log prior, and c_i times that of the log likelihood of
   * each row of the batch (which may be empty), to v_hessian (n_dim x n_dim,
   * both triangles). With it models are sampled without tuning, and rows have
   * weights by their Hessians. */
  enum tb_status (*curvature)(const struct tb_native* p_native,
                              void* p_scratch,
                              const double* v_theta,
                              const struct tb_batch* p_batch,
                              double* v_hessian);

  /* Parameters that are sampled -> those the user sees, as many; names by
   * model_native(variables = ). v_natural is not v_theta. */
  void (*constrain)(const struct tb_native* p_native,
                    const double* v_theta,
                    double* v_natural);

  /* Where a few numbers r_i say the whole gradient g_i, such as r_i x_i: how
   * many. Control variates then store them instead of computing them again,
   * and SAGA stores n_scalar numbers a row instead of n_dim. gradient() has to
   * set v_scalar and to read the reference's, and add_scalar() is required. */
  size_t n_scalar;

  /* ADD to v_sum the gradients, whatever their multipliers, that v_scalar
   * (n_batch x n_scalar) says of the rows of the batch. */
  enum tb_status (*add_scalar)(const struct tb_native* p_native,
                               void* p_scratch,
                               const struct tb_batch* p_batch,
                               const double* v_scalar,
                               double* v_sum);
};

/* ---- helpers ------------------------------------------------------------ */

/* row number k of the batch, and its multiplier */
static inline size_t tb_batch_row(const struct tb_batch* p_batch, size_t k) {
  return p_batch->v_index == NULL ? p_batch->start + k : p_batch->v_index[k];
}

static inline double tb_batch_weight(const struct tb_batch* p_batch, size_t k) {
  return p_batch->v_weight == NULL ? p_batch->weight : p_batch->v_weight[k];
}

/* rows of the block that starts at `first`:
 * for (first = 0; first < p_batch->n_batch; first += TB_BLOCK) */
static inline size_t tb_block_size(const struct tb_batch* p_batch,
                                   size_t first) {
  const size_t n_left = p_batch->n_batch - first;
  return n_left < TB_BLOCK ? n_left : TB_BLOCK;
}

/* the array of that name, or NULL */
static inline const struct tb_array*
tb_array_find(const struct tb_native* p_native, const char* name) {
  size_t k;
  for (k = 0; k < p_native->n_array; ++k) {
    if (strcmp(p_native->v_array[k].name, name) == 0) {
      return &p_native->v_array[k];
    }
  }
  return NULL;
}

/* row i */
static inline const double* tb_array_row(const struct tb_array* p_array,
                                         size_t i) {
  return p_array->v_value + i * p_array->stride;
}

/* v_to (stride numbers) := v_from (n_col) and zeros: what dot() takes */
static inline void tb_array_pad(const struct tb_array* p_array,
                                const double* v_from,
                                double* v_to) {
  size_t j;
  for (j = 0; j < p_array->stride; ++j) {
    v_to[j] = j < p_array->n_col ? v_from[j] : 0;
  }
}

/* v_out[k] = x_k^T v for the rows of a block; v: stride numbers, zero beyond
 * n_col; v_out: TB_BLOCK */
static inline void tb_array_dot(const struct tb_array* p_array,
                                const struct tb_batch* p_batch,
                                size_t first,
                                const double* v,
                                double* v_out) {
  p_array->p_tools->dot(p_array, p_batch, first, v, v_out);
}

/* v_sum += sum_k u_k x_k over the rows of a block and, unless NULL, v_square +=
 * sum_k (u_k x_kj)^2; both of stride numbers */
static inline void tb_array_add(const struct tb_array* p_array,
                                const struct tb_batch* p_batch,
                                size_t first,
                                const double* v_u,
                                double* v_sum,
                                double* v_square) {
  p_array->p_tools->add(p_array, p_batch, first, v_u, v_sum, v_square);
}

/* v_out (block x n_col) = the rows of a block: of a vector, its elements */
static inline void tb_array_take(const struct tb_array* p_array,
                                 const struct tb_batch* p_batch,
                                 size_t first,
                                 double* v_out) {
  p_array->p_tools->take(p_array->v_value,
                         p_array->stride,
                         p_array->n_col,
                         p_batch,
                         first,
                         v_out);
}

/* v_out (block x n_scalar) = the r_i that are stored of the rows of a block;
 * p_reference->v_scalar is not NULL */
static inline void tb_reference_take(const struct tb_native* p_native,
                                     const struct tb_reference* p_reference,
                                     size_t n_scalar,
                                     const struct tb_batch* p_batch,
                                     size_t first,
                                     double* v_out) {
  p_native->p_tools->take(p_reference->v_scalar,
                          p_reference->stride,
                          n_scalar,
                          p_batch,
                          first,
                          v_out);
}

/* Count a row: v_a (n_dim) is its a_i, c its multiplier. */
static inline void tb_sums_add(const struct tb_sums* p_sums,
                               size_t n_dim,
                               double c,
                               const double* v_a) {
  size_t j;
  for (j = 0; p_sums->v_gradient != NULL && j < n_dim; ++j) {
    p_sums->v_gradient[j] += c * v_a[j];
  }
  for (j = 0; p_sums->v_square != NULL && j < n_dim; ++j) {
    p_sums->v_square[j] += c * v_a[j] * (c * v_a[j]);
  }
}

#ifdef __cplusplus
}
#endif

#endif
