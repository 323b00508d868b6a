/* Norms of vectors. */
#ifndef TB_CORE_NORM_H
#define TB_CORE_NORM_H

#include <stddef.h>

/* ||v||^2, vectorised; not finite where an element is not. */
double tb_square_norm(const double* v, size_t n);

#endif
