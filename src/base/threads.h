/* Threads of a parallel region, if there is OpenMP. */
#ifndef TB_BASE_THREADS_H
#define TB_BASE_THREADS_H

#include <stddef.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* which of them this is, from 0 */
static inline size_t tb_thread(void) {
#ifdef _OPENMP
  return (size_t)omp_get_thread_num();
#else
  return 0;
#endif
}

#endif
