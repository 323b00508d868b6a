#include "proposals/proposal.h"

/* a line each; nothing else names a member */
#define MEMBERS                                                                \
  MEMBER(independent)                                                          \
  MEMBER(autoregressive)                                                       \
  MEMBER(hmc)                                                                  \
  MEMBER(slice)                                                                \
  MEMBER(scales)                                                               \
  MEMBER(marginal)                                                             \
  MEMBER(block)

#define MEMBER(name) extern const struct tb_proposal_type tb_proposal_##name;
MEMBERS
#undef MEMBER

#define MEMBER(name) &tb_proposal_##name,
const struct tb_proposal_type* const tb_proposal_registry[] = {MEMBERS NULL};
#undef MEMBER

const struct tb_proposal_type* tb_proposal_at_place(double place) {
  const size_t n = sizeof tb_proposal_registry / sizeof *tb_proposal_registry;
  const bool is_place = place >= 0 && place < (double)n;
  return is_place && place == (double)(size_t)place
             ? tb_proposal_registry[(size_t)place]
             : NULL;
}
