/* Seconds of one normal, and of one uniform with it, as the package draws them:
 * the least that a Langevin and a Barker step could cost a coordinate. Compiled
 * with its generator. */
#include "base/rng.c"

#include <R.h>
#include <Rinternals.h>
#include <time.h>

enum { BLOCK = 256 };

SEXP draws_time(SEXP n_blocks, SEXP with_uniform) {
  const long n = (long) Rf_asReal(n_blocks);
  const int n_unif = Rf_asLogical(with_uniform) == TRUE ? BLOCK : 0;
  struct tb_rng rng;
  double v_norm[BLOCK], v_unif[BLOCK] = { 0 }, sum = 0;
  struct timespec start, end;
  tb_rng_init(&rng, 1, 0, TB_STREAM_noise);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (long k = 0; k < n; ++k) {
    tb_rng_fill_norm(&rng, v_norm, BLOCK);
    tb_rng_fill_unif(&rng, v_unif, n_unif);
    sum += v_norm[k % BLOCK] + v_unif[k % BLOCK];
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  const double seconds = (double) (end.tv_sec - start.tv_sec) +
                         1e-9 * (double) (end.tv_nsec - start.tv_nsec);
  return Rf_ScalarReal(sum == 0 ? NA_REAL : seconds / (double) n / BLOCK);
}
