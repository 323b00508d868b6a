/* Doors that ask a run how it stands. */
#include "ffi/run.h"

#include "gradients/gradient.h"
#include "kernels/kernel.h"
#include "models/sweeps.h"

#include <string.h>

/* list(done, total, n_shared): steps made, summed over chains; steps in all;
 * rows that the chains did not take themselves, for what they share */
SEXP ffi_run_progress(SEXP run) {
  const struct ffi_run* p = ffi_run(run);
  const size_t n_chain = tb_run_n_chain(p->p_run);
  double done = 0;
  for (size_t c = 0; c < n_chain; ++c) {
    const struct tb_report report = tb_run_report(p->p_run, c);
    const bool goes_on =
        report.status == TB_STATUS_ok || report.status == TB_STATUS_exhausted;
    done += goes_on ? (double)report.n_step : (double)tb_run_n_total(p->p_run);
  }
  SEXP out = PROTECT(ffi_list(3));
  ffi_add_number(out, "done", done);
  ffi_add_number(out, "total", (double)(tb_run_n_total(p->p_run) * n_chain));
  ffi_add_number(out, "n_shared", tb_run_target(p->p_run)->p_estimator->n_row);
  UNPROTECT(1);
  return out;
}

static SEXP copy_doubles(const double* v, size_t n) {
  if (v == NULL) {
    return R_NilValue;
  }
  SEXP out = Rf_allocVector(REALSXP, (R_xlen_t)n);
  memcpy(REAL(out), v, n * sizeof(double));
  return out;
}

/* Which chains have stopped, and where: list(status, coordinate, value), a
 * number for each chain; a coordinate beyond n_dim is none. */
SEXP ffi_run_status(SEXP run) {
  const struct ffi_run* p = ffi_run(run);
  const size_t n_chain = tb_run_n_chain(p->p_run);
  SEXP out = PROTECT(ffi_list(3));
  double* v_status = ffi_add_vector(out, "status", n_chain);
  double* v_coordinate = ffi_add_vector(out, "coordinate", n_chain);
  double* v_value = ffi_add_vector(out, "value", n_chain);
  for (size_t c = 0; c < n_chain; ++c) {
    const struct tb_report report = tb_run_report(p->p_run, c);
    v_status[c] = (double)report.status;
    v_coordinate[c] = (double)report.coordinate + 1;
    v_value[c] = report.value;
  }
  UNPROTECT(1);
  return out;
}

/* Of a model that sweeps: see moments() of struct tb_model_sweeps. */
static SEXP effect_moments(const struct tb_model* p_model,
                           const struct tb_chain* p_chain) {
  const struct tb_model_sweeps* sweeps = p_model->type->sweeps;
  return sweeps == NULL
             ? R_NilValue
             : copy_doubles(sweeps->moments(p_model, p_chain->p_kernel_state),
                            1 + 4 * sweeps->n_effect(p_model));
}

static SEXP saved_chain(const struct tb_run* p_run, size_t chain) {
  SEXP out = Rf_allocVector(RAWSXP, (R_xlen_t)tb_run_saved_size(p_run));
  tb_run_save(p_run, chain, RAW(out));
  return out;
}

/* How a chain stands, with all that is kept of it. */
static SEXP chain_report(const struct tb_run* p_run, size_t c) {
  const struct tb_target* p_target = tb_run_target(p_run);
  const size_t n_dim = p_target->p_model->n_dim;
  const size_t n_bias = tb_run_n_bias_block(p_run) * (1 + 3 * n_dim);
  const struct tb_report report = tb_run_report(p_run, c);
  const struct tb_chain* p_chain = tb_run_chain(p_run, c);
  const struct tb_counts* p_counts = &p_chain->counts;
  const struct tb_kernel_type* kernel = p_target->p_kernel->type;
  struct tb_kernel_info info = {.step_size = NA_REAL};
  if (kernel->info != NULL) {
    kernel->info(p_chain, &info);
  }
  SEXP out = PROTECT(ffi_list(23));
  ffi_add_number(out, "status", (double)report.status);
  ffi_add_number(out, "coordinate", (double)report.coordinate + 1);
  ffi_add_number(out, "value", report.value);
  ffi_add_number(out, "n_kept", (double)report.n_kept);
  ffi_add_number(out, "n_step", (double)report.n_step);
  ffi_add(out, "theta", copy_doubles(p_chain->v_theta, n_dim));
  ffi_add(out, "saved", saved_chain(p_run, c));
  ffi_add(out, "bias", copy_doubles(tb_run_bias(p_run, c), n_bias));
  ffi_add(out,
          "moments",
          copy_doubles(tb_run_moments(p_run, c), tb_run_n_moments(p_run)));
  ffi_add(out, "noise", copy_doubles(tb_run_noise(p_run, c), 1 + 2 * n_dim));
  ffi_add_number(out, "n_row", p_counts->n_row);
  ffi_add_number(out, "n_full", p_counts->n_full);
  ffi_add_number(out, "n_always", p_counts->n_always);
  ffi_add_number(out, "n_accept", p_counts->n_accept);
  ffi_add_number(out, "n_propose", p_counts->n_propose);
  ffi_add_number(out, "n_outside", p_counts->n_outside);
  ffi_add_number(out, "n_escape", p_counts->n_escape);
  ffi_add_number(out, "step_size", info.step_size);
  ffi_add_number(out, "is_done", (double)report.is_done);
  ffi_add_number(out, "n_nonfinite", p_counts->n_nonfinite);
  ffi_add(out, "steps", copy_doubles(info.v_step, n_dim));
  ffi_add(out,
          "bias_origin",
          copy_doubles(tb_run_bias_origin(p_run, c), n_dim));
  ffi_add(out, "effects", effect_moments(p_target->p_model, p_chain));
  UNPROTECT(1);
  return out;
}

/* A list per chain, see chain_report(). */
SEXP ffi_run_report(SEXP run) {
  const struct ffi_run* p = ffi_run(run);
  const size_t n_chain = tb_run_n_chain(p->p_run);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, (R_xlen_t)n_chain));
  for (size_t c = 0; c < n_chain; ++c) {
    SET_VECTOR_ELT(out, (R_xlen_t)c, chain_report(p->p_run, c));
  }
  UNPROTECT(1);
  return out;
}

/* where the chains are: list(parameter, variable, alive), columns are chains */
SEXP ffi_run_position(SEXP run) {
  const struct ffi_run* p = ffi_run(run);
  const struct tb_model* p_model = tb_run_target(p->p_run)->p_model;
  const size_t n_dim = p_model->n_dim, n_natural = p_model->n_natural;
  const size_t n_chain = tb_run_n_chain(p->p_run);
  SEXP out = PROTECT(ffi_list(3));
  double* v_parameter = ffi_add_matrix(out, "parameter", n_dim, n_chain);
  double* v_variable = ffi_add_matrix(out, "variable", n_natural, n_chain);
  SEXP alive = Rf_allocVector(LGLSXP, (R_xlen_t)n_chain);
  ffi_add(out, "alive", alive);
  for (size_t c = 0; c < n_chain; ++c) {
    tb_run_position(p->p_run,
                    c,
                    v_parameter + c * n_dim,
                    v_variable + c * n_natural);
    LOGICAL(alive)[c] = tb_run_report(p->p_run, c).status == TB_STATUS_ok;
  }
  UNPROTECT(1);
  return out;
}
