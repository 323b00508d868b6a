/* Models that users compile against tallbayes.h. */
#ifndef TB_MODELS_NATIVE_H
#define TB_MODELS_NATIVE_H

#include <stdbool.h>
#include <tallbayes.h>

/* What a table must have and has not: the name of the first such slot, or NULL.
 * The version must have been checked: only then there are slots to look at. */
const char* tb_native_missing_slot(const struct tb_native_type* p_type);

/* Is this the address of a table that this package can read? Its version goes
 * to *p_version, 0 where it is no table at all. */
bool tb_native_is_readable(const struct tb_native_type* p_type,
                           unsigned* p_version);

#endif
