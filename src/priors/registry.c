#include "priors/type.h"

#include <math.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(flat)                                                                 \
  MEMBER(normal)                                                               \
  MEMBER(laplace)                                                              \
  MEMBER(log_flat)                                                             \
  MEMBER(log_exponential)                                                      \
  MEMBER(uniform)                                                              \
  MEMBER(student)                                                              \
  MEMBER(log_gamma)

#define MEMBER(name) extern const struct tb_prior_type tb_prior_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_prior_##name,
const struct tb_prior_type* const tb_prior_registry[] = {MEMBERS NULL};
#undef MEMBER

size_t tb_prior_count(void) {
  return sizeof tb_prior_registry / sizeof tb_prior_registry[0] - 1;
}

const struct tb_prior_type* tb_prior_at_place(double place) {
  const bool is_one =
      place >= 0 && place < (double)tb_prior_count() && place == floor(place);
  return is_one ? tb_prior_registry[(size_t)place] : NULL;
}
