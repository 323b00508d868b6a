/* What a core function has to say when it returns. The core never prints,
 * never jumps and never aborts: it hands back one of these and leaves its
 * state valid. R/util-conditions.R turns them into sentences. */
#ifndef TB_BASE_STATUS_H
#define TB_BASE_STATUS_H

#include <tallbayes.h> /* enum tb_status */

#endif
