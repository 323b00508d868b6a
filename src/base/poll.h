/* Does somebody wait for a computation to end? What may take long asks now and
 * then, and hands back TB_STATUS_interrupted. */
#ifndef TB_BASE_POLL_H
#define TB_BASE_POLL_H

#include <stdbool.h>

/* From here on to tb_poll_end() this thread asks by `ask`, others are told what
 * it heard. */
void tb_poll_begin(bool (*ask)(void));
/* Was anybody told to stop? */
bool tb_poll_end(void);
/* Is it time to stop? Never, where nobody began. About 20 times a second is
 * enough. */
bool tb_poll(void);

#endif
