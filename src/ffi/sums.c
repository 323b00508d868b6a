/* Doors to what a Gaussian posterior is drawn from: sums over all rows, and
 * normals that are found again by their place. */
#include "passes/sums.h"
#include "base/hash.h"
#include "ffi/model.h"

/* list(mean (n_coef + 1), sums (n_coef + 1 squared), weight, status), see
 * passes/sums.h */
SEXP ffi_model_product_sums(SEXP model, SEXP n_coef, SEXP n_threads) {
  const struct tb_model* p_model = ffi_model(model);
  const size_t n = ffi_as_count(n_coef, "n_coef");
  const int n_threads_ = ffi_threads(n_threads);
  if (n == 0 || n > p_model->n_dim) {
    ffi_fault("n_coef");
  }
  SEXP out = PROTECT(ffi_list(4));
  double* v_mean = ffi_add_vector(out, "mean", n + 1);
  double* v_sum = ffi_add_matrix(out, "sums", n + 1, n + 1);
  double* v_weight = ffi_add_vector(out, "weight", 1);
  const enum tb_status status =
      tb_model_product_sums(p_model, n, v_mean, v_sum, v_weight, n_threads_);
  ffi_add(out, "status", ffi_status(status));
  UNPROTECT(1);
  return out;
}

/* n standard normals of a block of a chain's draws: the same whatever blocks
 * were drawn before */
SEXP ffi_rng_block(SEXP seed, SEXP chain, SEXP block, SEXP n) {
  const uint64_t seed_ = (uint64_t)ffi_as_count(seed, "seed");
  const uint64_t block_ = (uint64_t)ffi_as_count(block, "block");
  const size_t chain_ = ffi_as_count(chain, "chain");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)ffi_as_count(n, "n")));
  struct tb_rng rng;
  tb_rng_init(&rng, tb_hash_word(seed_, block_), chain_, TB_STREAM_noise);
  tb_rng_fill_norm(&rng, REAL(out), (size_t)Rf_xlength(out));
  UNPROTECT(1);
  return out;
}
