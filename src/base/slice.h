/* One step of slice sampling in one dimension, stepping out and shrinking
 * (Neal 2003, Annals of Statistics 31:705, figures 3 and 5): reversible for any
 * density, whatever the width. */
#ifndef TB_BASE_SLICE_H
#define TB_BASE_SLICE_H

#include "base/rng.h"

/* The log density at a coordinate x, up to a constant; NaN counts as no
 * density. */
typedef double tb_slice_log_density(const void* p_context, double x);

/* The next coordinate after x. Each step out is of one width; together they are
 * limited, so that this ends where the density has no integral, too. */
double tb_slice_step(tb_slice_log_density* log_density,
                     const void* p_context,
                     double x,
                     double width,
                     struct tb_rng* p_rng);

#endif
