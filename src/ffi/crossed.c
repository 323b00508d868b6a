/* A door to what only regressions with several grouping factors have. */
#include "ffi/model.h"

#include "models/crossed-mixing.h"

static const struct tb_model* crossed_of(SEXP model) {
  const struct tb_model* p_model = ffi_model(model);
  if (p_model->type != tb_model_find("crossed")) {
    ffi_fault("a model that is not crossed");
  }
  return p_model;
}

/* theta and effects: both NULL, where it is not known where chains are */
static struct tb_crossed_place
place_of(const struct tb_model* p_model, SEXP worth, SEXP theta, SEXP effects) {
  struct tb_crossed_place place = {.n_worth = ffi_as_number(worth, "worth")};
  if (theta == R_NilValue) {
    return place;
  }
  if (TYPEOF(theta) != REALSXP || TYPEOF(effects) != REALSXP ||
      (size_t)Rf_xlength(theta) != p_model->n_dim ||
      (size_t)Rf_xlength(effects) != tb_crossed_n_effect(p_model)) {
    ffi_fault("theta or effects");
  }
  place.v_theta = REAL(theta);
  place.v_effect = REAL(effects);
  return place;
}

/* list(first, second, parts, rate, rows): how many rows are kept, where equal
 * ones are one; of each pair of factors that have an effect
 * of the same column the numbers of both, from 1; in how many parts their rows
 * are that share no level; and what a sweep leaves of where it starts from, by
 * so many passes over the rows: where theta and effects are, or, where these
 * are NULL, where the prior of an effect is worth so many rows. */
SEXP ffi_crossed_pairs(SEXP model,
                       SEXP passes,
                       SEXP worth,
                       SEXP theta,
                       SEXP effects) {
  const struct tb_model* p_model = crossed_of(model);
  const size_t n = tb_crossed_n_pair(p_model),
               n_step = ffi_as_count(passes, "passes");
  const struct tb_crossed_place place =
      place_of(p_model, worth, theta, effects);
  SEXP out = PROTECT(ffi_list(5));
  double* v_first = ffi_add_vector(out, "first", n);
  double* v_second = ffi_add_vector(out, "second", n);
  double* v_part = ffi_add_vector(out, "parts", n);
  double* v_rate = ffi_add_vector(out, "rate", n);
  ffi_add_vector(out, "rows", 1)[0] = (double)tb_crossed_n_row(p_model);
  double* v_row = NULL;
  if (place.v_theta != NULL) {
    v_row = (double*)R_alloc(tb_crossed_n_row(p_model), sizeof(double));
    tb_crossed_weigh(p_model, &place, v_row);
  }
  for (size_t i = 0; i < n; ++i) {
    struct tb_crossed_pair pair;
    const enum tb_status status =
        tb_crossed_pair_at(p_model, i, n_step, &place, v_row, &pair);
    if (status != TB_STATUS_ok) {
      UNPROTECT(1);
      return Rf_ScalarInteger((int)status);
    }
    v_first[i] = 1 + (double)pair.v_factor[0];
    v_second[i] = 1 + (double)pair.v_factor[1];
    v_part[i] = (double)pair.n_part;
    v_rate[i] = pair.rate;
  }
  UNPROTECT(1);
  return out;
}

/* Bytes of a chain: what it keeps besides its parameters, and its scratch. */
SEXP ffi_crossed_chain_size(SEXP model) {
  return Rf_ScalarReal((double)tb_crossed_chain_size(crossed_of(model)));
}
