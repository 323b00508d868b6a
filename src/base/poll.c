#include "base/poll.h"

#include <stdatomic.h>
#include <stddef.h>

static bool (*poll_ask)(void);
static _Thread_local bool poll_is_mine;
static atomic_bool poll_is_stopped;

void tb_poll_begin(bool (*ask)(void)) {
  poll_ask = ask;
  poll_is_mine = true;
  atomic_store(&poll_is_stopped, false);
}

bool tb_poll_end(void) {
  poll_ask = NULL;
  poll_is_mine = false;
  return atomic_exchange(&poll_is_stopped, false);
}

bool tb_poll(void) {
  if (poll_is_mine && poll_ask != NULL && !atomic_load(&poll_is_stopped) &&
      poll_ask()) {
    atomic_store(&poll_is_stopped, true);
  }
  return atomic_load(&poll_is_stopped);
}
