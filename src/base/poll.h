/* Does somebody wait for a computation to end? Who calls one that may take long
 * lends it a poll, which is asked now and then; what hears that it is time
 * hands back TB_STATUS_interrupted. */
#ifndef TB_BASE_POLL_H
#define TB_BASE_POLL_H

#include <stdatomic.h>
#include <stdbool.h>

struct tb_poll {
  bool (*ask)(void);      /* called by the first of a team of threads alone */
  atomic_bool is_stopped; /* what it said: kept, others are told */
};

/* Is it time to stop? Never, where p is NULL. About 20 times a second is
 * enough. */
bool tb_poll(struct tb_poll* p);

#endif
