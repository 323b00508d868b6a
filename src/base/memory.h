/* Memory for big arrays. */
#ifndef TB_BASE_MEMORY_H
#define TB_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed and aligned, on huge pages where the system has them. */
void* tb_big_alloc(size_t n_byte);
/* The same, not written to yet. */
void* tb_big_room(size_t n_byte);
void tb_big_free(void* p, size_t n_byte);
/* The same advice for memory of others that has not been written to yet. */
void tb_big_advise(void* p, size_t n_byte);

#endif
