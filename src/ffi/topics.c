/* Topic proportions of documents, given topics. */
#include "base/poll.h"
#include "ffi/model.h"
#include "ffi/unwind.h"

#include "models/lda.h"

/* model: an lda with the documents; topics: n_topic x n_word. n_topic x n_data
 * proportions, or the status as an integer. */
SEXP ffi_topics_proportions(SEXP model,
                            SEXP topics,
                            SEXP burn,
                            SEXP sweeps,
                            SEXP seed) {
  struct tb_model* p_model = ffi_model(model);
  if (p_model->type != tb_model_find("lda")) {
    ffi_fault("a model that is not lda");
  }
  const double* v_topics = ffi_some_doubles(topics, p_model->n_dim, "topics");
  const size_t n_burn = ffi_as_count(burn, "burn");
  const size_t n_sweep = ffi_as_count(sweeps, "sweeps");
  const uint64_t seed_ = ffi_as_count(seed, "seed");
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP,
                                    (int)tb_lda_n_topic(p_model),
                                    (int)p_model->n_data));
  struct tb_poll poll;
  ffi_poll_begin(p_model, &poll);
  const enum tb_status status =
      tb_lda_proportions(p_model, v_topics, n_burn, n_sweep, seed_, REAL(out));
  ffi_poll_end(p_model);
  UNPROTECT(1);
  return status == TB_STATUS_ok ? out : Rf_ScalarInteger((int)status);
}
