/* The harness: a test file is a table of {description, function}; a function
 * states what must hold through CHECK and CHECK_CLOSE. */
#ifndef TB_CHECK_H
#define TB_CHECK_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>

struct check {
  size_t n_failed; /* statements of this test that did not hold */
};

struct check_case {
  const char* description;
  void (*run)(struct check* p_check);
};

/* Tables, one per file, ended by a NULL description. */
extern const struct check_case check_ahead[];
extern const struct check_case check_arrow[];
extern const struct check_case check_base[];
extern const struct check_case check_crossed[];
extern const struct check_case check_data[];
extern const struct check_case check_diagnostics[];
extern const struct check_case check_factorised[];
extern const struct check_case check_gradients[];
extern const struct check_case check_groups[];
extern const struct check_case check_kernels[];
extern const struct check_case check_limits[];
extern const struct check_case check_metropolis[];
extern const struct check_case check_mixtures[];
extern const struct check_case check_models[];
extern const struct check_case check_passes[];
extern const struct check_case check_pieces[];
extern const struct check_case check_predictors[];
extern const struct check_case check_priors[];
extern const struct check_case check_proposals[];
extern const struct check_case check_responses[];
extern const struct check_case check_run[];
extern const struct check_case check_scaled[];
extern const struct check_case check_schedules[];
extern const struct check_case check_slices[];
extern const struct check_case check_tails[];
extern const struct check_case check_text[];
extern const struct check_case check_subsampling[];

/* Report a statement that does not hold (the first few of a test). */
void check_fail(struct check* p_check,
                const char* file,
                int line,
                const char* format,
                ...);

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      check_fail(p_check, __FILE__, __LINE__, "%s", #condition);               \
    }                                                                          \
  } while (0)

/* |a - b| <= tolerance; NaN fails */
#define CHECK_CLOSE(a, b, tolerance)                                           \
  do {                                                                         \
    const double a_ = (a), b_ = (b), tolerance_ = (tolerance);                 \
    if (!(check_distance(a_, b_) <= tolerance_)) {                             \
      check_fail(p_check,                                                      \
                 __FILE__,                                                     \
                 __LINE__,                                                     \
                 "%s = %.17g, expected %.17g +- %.3g",                         \
                 #a,                                                           \
                 a_,                                                           \
                 b_,                                                           \
                 tolerance_);                                                  \
    }                                                                          \
  } while (0)

double check_distance(double a, double b);

/* (X - df) / sqrt(2 df) of Pearson's X: about standard normal, so that 5 is
 * beyond chance */
double
check_chi_square(const double* v_observed, const double* v_expected, size_t n);

/* The same of those cells alone that are expected often enough to tell; *p_n:
 * how many. */
double check_cells(const double* v_observed,
                   const double* v_expected,
                   size_t n,
                   size_t* p_n);
/* Are counts of steps from a cell to another, n x n, as those the other way
 * round? A number as that of check_chi_square(), 0 where no pair tells; *p_n:
 * how many pairs do. */
double check_symmetry(const double* v_count, size_t n, size_t* p_n);

/* the first of n ascending numbers that is u or more, else the last: a draw,
 * where they are a distribution and u is uniform */
size_t check_find(const double* v, size_t n, double u);

/* A step in one dimension (test-slices.c). */
struct check_line {
  double (*log_density)(const void* p_context, double x);
  double (*step)(const void* p_context, double x, struct tb_rng* p_rng);
  const void* p_context;
  double low, high; /* all of it, but for rounding */
};
/* Is it reversible for the density? Returns the share of steps that ends in
 * another eighth. */
double check_line_step(struct check* p_check,
                       const struct check_line* p_line,
                       size_t n_step,
                       size_t stream);

/* Call run(v_context[k]) for k = 0..n-1 at the same time, one thread each. */
bool check_parallel(void (*run)(void*), void** v_context, size_t n);

/* calloc that ends the program when there is no memory */
void* check_alloc(size_t n, size_t n_byte);

#endif
