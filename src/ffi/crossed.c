/* A door to what only regressions with several grouping factors have. */
#include "ffi/model.h"

#include "models/crossed-mixing.h"

/* list(first, second, parts, rate, rows): how many rows are kept, where equal
 * ones are one; of each pair of factors that have an effect
 * of the same column the numbers of both, from 1; in how many parts their rows
 * are that share no level; and what a sweep leaves of where it starts from, by
 * so many passes over the rows. */
SEXP ffi_crossed_pairs(SEXP model, SEXP passes) {
  const struct tb_model* p_model = ffi_model(model);
  if (p_model->type != tb_model_find("crossed")) {
    ffi_fault("a model that is not crossed");
  }
  const size_t n = tb_crossed_n_pair(p_model),
               n_step = ffi_as_count(passes, "passes");
  SEXP out = PROTECT(ffi_list(5));
  double* v_first = ffi_add_vector(out, "first", n);
  double* v_second = ffi_add_vector(out, "second", n);
  double* v_part = ffi_add_vector(out, "parts", n);
  double* v_rate = ffi_add_vector(out, "rate", n);
  ffi_add_vector(out, "rows", 1)[0] = (double)tb_crossed_n_row(p_model);
  for (size_t i = 0; i < n; ++i) {
    struct tb_crossed_pair pair;
    const enum tb_status status = tb_crossed_pair_at(p_model, i, n_step, &pair);
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
