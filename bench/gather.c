/* The gather limit: a loop that does nothing but fetch random rows, every cache
 * line of them, from rows laid out as the package lays them out: row-major
 * doubles, padded to 64 bytes where that costs at most 3 %, on huge pages; the
 * response and the stored scalar of a row side by side in an array of their
 * own. */
#ifdef __linux__
#define _GNU_SOURCE
#include <sys/mman.h>
#endif
#include <R.h>
#include <Rinternals.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double* v_row = NULL;
static double* v_obs = NULL;
static uint32_t* v_index = NULL;
static size_t n_data, n_padded;
enum { N_INDEX = 1 << 22, LINE = 8 };

static void* big(size_t n_byte) {
  void* p = NULL;
  if (posix_memalign(&p, (size_t) 2 << 20, n_byte) != 0) {
    Rf_error("out of memory");
  }
#ifdef MADV_HUGEPAGE
  (void) madvise(p, n_byte, MADV_HUGEPAGE);
#endif
  memset(p, 0, n_byte);
  return p;
}

SEXP gather_free(void) {
  free(v_row);
  free(v_obs);
  free(v_index);
  v_row = v_obs = NULL;
  v_index = NULL;
  return R_NilValue;
}

/* n rows of d columns. What is in them does not matter. */
SEXP gather_create(SEXP n, SEXP d) {
  gather_free();
  n_data = (size_t) Rf_asReal(n);
  const size_t n_col = (size_t) Rf_asReal(d);
  const size_t n_line = (n_col + LINE - 1) / LINE * LINE;
  n_padded = (double) (n_line - n_col) <= 0.03 * (double) n_col ? n_line : n_col;
  v_row = big(n_data * n_padded * sizeof(double));
  v_obs = big(n_data * 2 * sizeof(double));
  v_index = big(N_INDEX * sizeof(uint32_t));
  for (size_t i = 0; i < n_data * n_padded; ++i) {
    v_row[i] = 1;
  }
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < N_INDEX; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    v_index[i] = (uint32_t) (((state >> 32) * n_data) >> 32);
  }
  return R_NilValue;
}

/* One line of the row, and of each further line a value: a row that starts in
 * the middle of a line touches one more. */
static double touch(const double* v, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; j += LINE) {
    sum += v[j];
  }
  return sum + v[n - 1];
}

/* Processor seconds for one of n_row rows. ahead: how many rows early they are asked
 * for; with_obs: the responses as well. */
SEXP gather_time(SEXP n_row, SEXP ahead_, SEXP with_obs_) {
  const size_t n = (size_t) Rf_asReal(n_row);
  const size_t ahead = (size_t) Rf_asInteger(ahead_);
  const int with_obs = Rf_asLogical(with_obs_);
  static size_t at = 0;
  volatile double keep = 0;
  double sum = 0;
  struct timespec t0, t1;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
  for (size_t i = 0; i < n; ++i) {
    const size_t next = v_index[(at + i + ahead) % N_INDEX];
    const size_t now = v_index[(at + i) % N_INDEX];
    const double* p = v_row + next * n_padded;
    for (size_t j = 0; j < n_padded; j += LINE) {
      __builtin_prefetch(p + j, 0, 3);
    }
    if (n_padded % LINE != 0) {
      __builtin_prefetch(p + n_padded - 1, 0, 3);
    }
    sum += touch(v_row + now * n_padded, n_padded);
    if (with_obs) {
      __builtin_prefetch(v_obs + 2 * next, 0, 3);
      sum += v_obs[2 * now];
    }
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
  keep = sum;
  (void) keep;
  at = (at + n) % N_INDEX;
  const double seconds = (double) (t1.tv_sec - t0.tv_sec) +
                         1e-9 * (double) (t1.tv_nsec - t0.tv_nsec);
  return Rf_ScalarReal(seconds / (double) n);
}
