#include "base/poll.h"

#include <stddef.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static bool is_first_thread(void) {
#ifdef _OPENMP
  return omp_get_thread_num() == 0;
#else
  return true;
#endif
}

bool tb_poll(struct tb_poll* p) {
  if (p == NULL) {
    return false;
  }
  if (is_first_thread() && !atomic_load(&p->is_stopped) && p->ask()) {
    atomic_store(&p->is_stopped, true);
  }
  return atomic_load(&p->is_stopped);
}
