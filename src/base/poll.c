#include "base/poll.h"

#include "base/threads.h"

bool tb_poll(struct tb_poll* p) {
  if (p == NULL) {
    return false;
  }
  if (tb_thread() == 0 && !atomic_load(&p->is_stopped) && p->ask()) {
    atomic_store(&p->is_stopped, true);
  }
  return atomic_load(&p->is_stopped);
}
