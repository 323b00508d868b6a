/* Slices (Neal 2003, Annals of Statistics 31:705) along one line of a
 * surrogate, drawn at random: stepping out, then shrinking. What a line crosses
 * may be a wall a hundredth as wide as the tail behind it, as of a level
 * without an event, through which no fixed step leads.
 *
 * Its option: the width w, in lengths of the line's direction. It is reversible
 * by itself, the coin always falls on its side. */
#include "proposals/shared.h"

#include <math.h>

enum { N_OUT = 64, N_IN = 200 };

struct line {
  struct tb_chain* p_chain;
  const struct tb_surrogate* p_surrogate;
  struct tb_walk walk;
  double* v_to;  /* scratch */
  double before; /* what the rows it moves say at its origin */
};

/* log pi^ at from + s u, less that at from; *p_more: what of it the law does
 * not say */
static enum tb_status
line_at(const struct line* p, double s, double* p_log, double* p_more) {
  double after = 0;
  const enum tb_status status = tb_surrogate_walk_beyond(p->p_chain,
                                                         p->p_surrogate,
                                                         &p->walk,
                                                         s,
                                                         p->v_to,
                                                         &after);
  *p_more = after - p->before;
  const double law = s * (p->walk.slope - 0.5 * s * p->walk.bend);
  *p_log = isnan(law + *p_more) ? -INFINITY : law + *p_more;
  return status;
}

/* The end of the slice on one side, in steps of the width, `most` at most. */
static enum tb_status
step_out(const struct line* p, double level, double by, int most, double* p_s) {
  enum tb_status status = TB_STATUS_ok;
  for (int k = 0; k < most && status == TB_STATUS_ok; ++k) {
    double log, more;
    status = line_at(p, *p_s, &log, &more);
    if (!(log > level)) {
      break;
    }
    *p_s += by;
  }
  return status;
}

static enum tb_status slice_draw(struct tb_chain* p_chain,
                                 const struct tb_surrogate* p_surrogate,
                                 const double* v_option,
                                 const struct tb_spot* p_from,
                                 struct tb_spot* p_to,
                                 double* v_scratch,
                                 double* p_log) {
  struct tb_rng* p_rng = &p_chain->v_rng[TB_STREAM_noise];
  struct line line = {.p_chain = p_chain,
                      .p_surrogate = p_surrogate,
                      .v_to = p_to->v_theta};
  (void)v_scratch;
  *p_log = -INFINITY; /* stays, where there is no line */
  tb_spot_copy(p_chain, p_from, p_to);
  if (p_surrogate->lines.n_line == 0) {
    return TB_STATUS_ok;
  }
  tb_surrogate_walk(p_chain,
                    p_surrogate,
                    tb_rng_index(p_rng, p_surrogate->lines.n_line),
                    p_from->v_theta,
                    &line.walk);
  enum tb_status status = tb_surrogate_walk_beyond(p_chain,
                                                   p_surrogate,
                                                   &line.walk,
                                                   0,
                                                   p_to->v_theta,
                                                   &line.before);
  const double width = v_option[0];
  const double level = log(tb_rng_unif(p_rng));
  double low = -width * tb_rng_unif(p_rng), high = low + width;
  const int n_low = (int)(N_OUT * tb_rng_unif(p_rng));
  if (status == TB_STATUS_ok) {
    status = step_out(&line, level, -width, n_low, &low);
  }
  if (status == TB_STATUS_ok) {
    status = step_out(&line, level, width, N_OUT - 1 - n_low, &high);
  }
  for (int k = 0; k < N_IN && status == TB_STATUS_ok; ++k) {
    const double s = low + (high - low) * tb_rng_unif(p_rng);
    double log, more;
    status = line_at(&line, s, &log, &more);
    if (log > level) {
      tb_surrogate_walk_to(p_surrogate, &line.walk, s, p_to->v_theta);
      p_to->beyond = p_from->beyond + more;
      *p_log = 0;
      return status;
    }
    *(s < 0 ? &low : &high) = s;
  }
  return status; /* where rounding leaves no slice it stays */
}

const struct tb_proposal_type tb_proposal_slice = {
    .name = "slice",
    .is_possible = tb_proposal_has_width,
    .draw = slice_draw,
};
