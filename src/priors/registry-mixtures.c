#include "priors/mixture-type.h"

#include <math.h>

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(student)                                                              \
  MEMBER(laplace)                                                              \
  MEMBER(ridge)                                                                \
  MEMBER(horseshoe)                                                            \
  MEMBER(r2d2)

#define MEMBER(name) extern const struct tb_mixture_type tb_mixture_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_mixture_##name,
const struct tb_mixture_type* const tb_mixture_registry[] = {MEMBERS NULL};
#undef MEMBER

size_t tb_mixture_count(void) {
  return sizeof tb_mixture_registry / sizeof tb_mixture_registry[0] - 1;
}

const struct tb_mixture_type* tb_mixture_at_place(double place) {
  const bool is_one =
      place >= 0 && place < (double)tb_mixture_count() && place == floor(place);
  return is_one ? tb_mixture_registry[(size_t)place] : NULL;
}
