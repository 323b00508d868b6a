#include "base/slice.h"

#include <math.h>

enum {
  N_WIDTH = 64, /* the slice is at most so many widths wide */
  N_SHRINK = 200
};

double tb_slice_step(tb_slice_log_density* log_density,
                     const void* p_context,
                     double x,
                     double width,
                     struct tb_rng* p_rng) {
  double level = log_density(p_context, x) + log(tb_rng_unif(p_rng));
  if (isnan(level)) {
    level = -INFINITY; /* from where there is no density to where there is */
  }
  double left = x - width * tb_rng_unif(p_rng), right = left + width;
  /* how the steps are shared out is drawn beforehand: this is what makes a
   * limit reversible */
  size_t n_left = tb_rng_index(p_rng, N_WIDTH);
  size_t n_right = N_WIDTH - 1 - n_left;
  for (; n_left > 0 && log_density(p_context, left) > level; --n_left) {
    left -= width;
  }
  for (; n_right > 0 && log_density(p_context, right) > level; --n_right) {
    right += width;
  }
  for (int k = 0; k < N_SHRINK; ++k) {
    const double to = left + (right - left) * tb_rng_unif(p_rng);
    if (log_density(p_context, to) > level) {
      return to;
    }
    if (to < x) {
      left = to;
    } else {
      right = to;
    }
  }
  return x;
}
