#include "core/norm.h"

#include "core/clones.h"

TB_CLONES
double tb_square_norm(const double* v, size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    s0 += v[j] * v[j];
    s1 += v[j + 1] * v[j + 1];
    s2 += v[j + 2] * v[j + 2];
    s3 += v[j + 3] * v[j + 3];
  }
  for (; j < n; ++j) {
    s0 += v[j] * v[j];
  }
  return (s0 + s1) + (s2 + s3);
}
