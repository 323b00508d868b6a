/* Draws of a group's effects given the parameters, by rejection: they have the
 * law
 *
 *   log f(v) = sum_i l_i(v) + log N(v; 0, I)
 *
 * itself, tails and all, whatever the nodes of the quadrature. log f is concave
 * where the response is, and so nowhere above a plane that touches it (Gilks &
 * Wild 1992, Applied Statistics 41:337, for one dimension):
 *
 *   log f(w) <= h + g^T (w - t),  h and g value and gradient at t,
 *
 * in w = R^T (v - v^), of the mode v^ and R R^T = -Hessian there. Space is cut
 * into boxes, each under a plane: the bound is a product of exponentials in
 * each of them. A box is drawn by its mass under the bound, a place in it by
 * inversion, and it is taken with probability f / bound. What is not taken
 * tells f and its gradient there, and cuts its box in two; the bound may learn
 * so, since what was not taken says nothing of what will be.
 *
 * At first an axis is cut in three, under planes that touch at 0 and +-sqrt(2),
 * which is best for a normal law: 0.886 of its places are taken.
 *
 * Nothing further than r from the mode is drawn, for which f(v) <= f(v^)
 * exp(-|v - v^|^2 / 2), since the l_i are concave, too: with r^2 = REACH + 2
 * log |R| less than 1e-30 of the mass of a normal law. */
#include "models/groups-one.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { Q = GROUPS_EFFECT, BOXES = 128, TRIES = 100000 };

#define REACH 144.0
#define TOUCH 1.41421356237309504880

/* what touches log f - log f(v^) */
struct plane {
  double v_at[Q]; /* t */
  double height;
  double v_slope[Q];
};

struct box {
  double v_lower[Q], v_upper[Q];
  struct plane plane;
  double mass; /* of the bound, where f(v^) is 1 */
};

struct hull {
  const struct groups* p;
  const struct groups_point* p_point;
  const struct groups_scratch* p_s;
  size_t group;
  const struct groups_mode* p_mode;
  double top; /* log f(v^) */
  size_t n_box;
  struct box* v_box; /* BOXES */
};

/* v := v^ + R^-T w */
static void
effects_at(const struct hull* p_hull, const double* v_w, double* v) {
  const struct groups_mode* p_mode = p_hull->p_mode;
  const size_t q = p_hull->p->n_effect;
  memcpy(v, v_w, q * sizeof(double));
  groups_solve_upper(q, (const double(*)[Q])p_mode->chol, v);
  for (size_t a = 0; a < q; ++a) {
    v[a] += p_mode->v_at[a];
  }
}

/* The plane that touches at v_w; false: there is none. */
static bool
touch(const struct hull* p_hull, const double* v_w, struct plane* p_plane) {
  const size_t q = p_hull->p->n_effect;
  const double(*chol)[Q] = (const double(*)[Q])p_hull->p_mode->chol;
  double v[Q];
  effects_at(p_hull, v_w, v);
  memcpy(p_plane->v_at, v_w, q * sizeof(double));
  p_plane->height = groups_slope(p_hull->p,
                                 p_hull->p_point,
                                 p_hull->p_s,
                                 p_hull->group,
                                 v,
                                 p_plane->v_slope) -
                    p_hull->top;
  bool is_finite = isfinite(p_plane->height);
  for (size_t a = 0; a < q; ++a) {
    for (size_t c = 0; c < a; ++c) {
      p_plane->v_slope[a] -= chol[a][c] * p_plane->v_slope[c];
    }
    p_plane->v_slope[a] /= chol[a][a];
    is_finite = is_finite && isfinite(p_plane->v_slope[a]);
  }
  return is_finite;
}

static double height_at(const struct plane* p, size_t q, const double* v_w) {
  double height = p->height;
  for (size_t a = 0; a < q; ++a) {
    height += p->v_slope[a] * (v_w[a] - p->v_at[a]);
  }
  return height;
}

/* the higher end of an axis */
static double end_of(const struct box* p, size_t a) {
  return p->plane.v_slope[a] > 0 ? p->v_upper[a] : p->v_lower[a];
}

/* log of the box's mass under its plane */
static double log_mass(const struct box* p, size_t q) {
  double v_end[Q], sum = 0;
  for (size_t a = 0; a < q; ++a) {
    const double slope = fabs(p->plane.v_slope[a]);
    const double wide = p->v_upper[a] - p->v_lower[a];
    v_end[a] = end_of(p, a);
    sum += log(slope * wide < 1e-8 ? wide : -expm1(-slope * wide) / slope);
  }
  return sum + height_at(&p->plane, q, v_end);
}

/* The box takes whichever of two planes has less below it. */
static void settle(struct box* p,
                   size_t q,
                   const struct plane* p_one,
                   const struct plane* p_other) {
  p->plane = *p_other;
  const double other = log_mass(p, q);
  p->plane = *p_one;
  const double one = log_mass(p, q);
  if (!(one <= other)) {
    p->plane = *p_other;
  }
  p->mass = exp(fmin(one, other));
}

/* At first: cuts of each axis, and planes between them. */
static void begin(struct hull* p_hull, const struct plane* p_flat) {
  const size_t q = p_hull->p->n_effect;
  const struct groups_mode* p_mode = p_hull->p_mode;
  double log_volume = 0, v_reach[Q], v_most[Q];
  size_t n_box = 1;
  for (size_t a = 0; a < q; ++a) {
    log_volume += log(p_mode->chol[a][a]);
    double square = 0;
    for (size_t c = a; c < q; ++c) {
      square += p_mode->chol[c][a] * p_mode->chol[c][a];
    }
    v_most[a] = sqrt(square);
    n_box *= 3;
  }
  for (size_t a = 0; a < q; ++a) {
    v_reach[a] = sqrt(REACH + 2 * log_volume) * v_most[a];
  }
  for (size_t k = 0; k < n_box; ++k) {
    struct box* p = &p_hull->v_box[k];
    struct plane plane;
    double v_w[Q];
    size_t rest = k;
    for (size_t a = 0; a < q; ++a, rest /= 3) {
      const double side = (double)(rest % 3) - 1;
      p->v_lower[a] = side < 0 ? -v_reach[a] : (side - 0.5) * TOUCH;
      p->v_upper[a] = side > 0 ? v_reach[a] : (side + 0.5) * TOUCH;
      v_w[a] = side * TOUCH;
    }
    const bool is_there = k != n_box / 2 && touch(p_hull, v_w, &plane);
    settle(p, q, p_flat, is_there ? &plane : p_flat);
  }
  p_hull->n_box = n_box;
}

/* A box by its mass. */
static struct box* choose(struct hull* p_hull, struct tb_rng* p_rng) {
  double sum = 0;
  for (size_t k = 0; k < p_hull->n_box; ++k) {
    sum += p_hull->v_box[k].mass;
  }
  double left = sum * tb_rng_unif(p_rng);
  size_t k = 0;
  while (k + 1 < p_hull->n_box && left >= p_hull->v_box[k].mass) {
    left -= p_hull->v_box[k++].mass;
  }
  return &p_hull->v_box[k];
}

/* v_w := a place in the box, by the exponentials of its plane */
static void
place(const struct box* p, size_t q, struct tb_rng* p_rng, double* v_w) {
  for (size_t a = 0; a < q; ++a) {
    const double slope = p->plane.v_slope[a];
    const double wide = p->v_upper[a] - p->v_lower[a];
    const double u = tb_rng_unif(p_rng);
    if (fabs(slope) * wide < 1e-8) {
      v_w[a] = p->v_lower[a] + u * wide;
    } else {
      const double below = log1p(u * expm1(-fabs(slope) * wide)) / slope;
      v_w[a] = end_of(p, a) + below;
    }
  }
}

/* Cuts the box in two between its plane's place and that of p_new, along the
 * axis where they differ most. */
static void
cut(struct hull* p_hull, struct box* p_old, const struct plane* p_new) {
  const size_t q = p_hull->p->n_effect;
  const struct plane old = p_old->plane;
  size_t axis = 0;
  double most = -1;
  for (size_t a = 0; a < q; ++a) {
    const double bend = fabs((p_new->v_slope[a] - old.v_slope[a]) *
                             (p_new->v_at[a] - old.v_at[a]));
    if (bend > most) {
      most = bend;
      axis = a;
    }
  }
  double at = 0.5 * (p_new->v_at[axis] + old.v_at[axis]);
  if (!(at > p_old->v_lower[axis] && at < p_old->v_upper[axis])) {
    at = 0.5 * (p_old->v_lower[axis] + p_old->v_upper[axis]);
  }
  struct box* p_added = &p_hull->v_box[p_hull->n_box++];
  *p_added = *p_old;
  p_added->v_lower[axis] = at;
  p_old->v_upper[axis] = at;
  settle(p_old, q, &old, p_new);
  settle(p_added, q, &old, p_new);
}

bool groups_draw(const struct groups* p,
                 const struct groups_point* p_point,
                 const struct groups_scratch* p_s,
                 size_t group,
                 struct tb_rng* p_rng,
                 double* v) {
  const size_t q = p->n_effect;
  struct groups_mode mode;
  struct box v_box[BOXES];
  groups_load(p, p_point->v_theta, group, p_s);
  groups_find_mode(p, p_point, p_s, group, NULL, &mode);
  struct hull hull = {.p = p,
                      .p_point = p_point,
                      .p_s = p_s,
                      .group = group,
                      .p_mode = &mode,
                      .v_box = v_box};
  struct plane flat;
  const double v_mode[Q] = {0};
  if (!touch(&hull, v_mode, &flat)) {
    return false;
  }
  hull.top = flat.height;
  flat.height = 0;
  begin(&hull, &flat);
  for (size_t k = 0; k < TRIES; ++k) {
    double v_w[Q];
    struct plane here;
    struct box* p_box = choose(&hull, p_rng);
    place(p_box, q, p_rng, v_w);
    const double bound = height_at(&p_box->plane, q, v_w);
    const bool is_there = touch(&hull, v_w, &here);
    if (is_there && log(tb_rng_unif(p_rng)) < here.height - bound) {
      effects_at(&hull, v_w, v);
      return true;
    }
    if (is_there && hull.n_box < BOXES) {
      cut(&hull, p_box, &here);
    }
  }
  return false;
}
