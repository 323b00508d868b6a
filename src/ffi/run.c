/* Doors to a run: make it, advance it by a slice, let it go. The
 * external pointer of a run protects the R objects it writes to or reads. */
#include "ffi/run.h"

#include "base/poll.h"
#include "ffi/model.h"
#include "ffi/unwind.h"
#include "models/sweeps.h"

#include <math.h>
#include <stdlib.h>

static void run_finalize(SEXP ptr) {
  struct ffi_run* p = R_ExternalPtrAddr(ptr);
  if (p != NULL) {
    tb_run_destroy(p->p_run);
    free(p);
    R_ClearExternalPtr(ptr);
  }
}

struct ffi_run* ffi_run(SEXP x) {
  return ffi_pointer(x, "tall_run", "pointer of a run");
}

/* The numbers that sizes of memory and divisions depend on. */
static void check_spec(const struct tb_run_spec* p_spec) {
  const size_t n_dim = p_spec->p_model->n_dim;
  if (p_spec->n_chain == 0) {
    ffi_fault("n_chain");
  }
  if (p_spec->n_every == 0) {
    ffi_fault("n_every");
  }
  if (p_spec->n_bias_every == 0) {
    ffi_fault("n_bias_every");
  }
  if (p_spec->n_bias_block > 1000) {
    ffi_fault("n_bias_block");
  }
  ffi_times(p_spec->n_bias_block, 1 + 3 * n_dim, "n_bias_block");
  if (!(p_spec->likelihood_scale > 0) || !isfinite(p_spec->likelihood_scale)) {
    ffi_fault("likelihood_scale");
  }
  if (!(p_spec->escape >= 0)) {
    ffi_fault("escape");
  }
}

/* A number of bytes that may be infinite: 0 then. */
static size_t parse_bytes(double n_byte) {
  return n_byte > 0 && n_byte < 0x1p62 ? (size_t)n_byte : 0;
}

static struct tb_run_spec parse_spec(struct tb_model* p_model, SEXP spec) {
  SEXP init = ffi_element(spec, "init");
  struct tb_run_spec out = {
      .p_model = p_model,
      .kernel = ffi_member(ffi_element(spec, "kernel")),
      .estimator = ffi_member(ffi_element(spec, "gradient")),
      .scheme = ffi_member(ffi_element(spec, "subsample")),
      .schedule = ffi_member(ffi_element(spec, "schedule")),
      .n_chain = ffi_count(spec, "n_chain"),
      .n_first = ffi_count(spec, "n_first"),
      .n_warmup = ffi_count(spec, "n_warmup"),
      .n_sampling = ffi_count(spec, "n_sampling"),
      .n_every = ffi_count(spec, "n_every"),
      .n_phase = ffi_count(spec, "n_phase"),
      .seed = ffi_count(spec, "seed"),
      .likelihood_scale = ffi_number(spec, "likelihood_scale"),
      .escape = ffi_number(spec, "escape"),
      .n_escape_max = ffi_count(spec, "n_escape_max"),
      .n_bias_block = ffi_count(spec, "n_bias_block"),
      .n_bias_every = ffi_count(spec, "n_bias_every"),
      .is_bias_coupled = ffi_number(spec, "is_bias_coupled") != 0,
      .keeps_moments = ffi_number(spec, "keeps_moments") != 0,
      .keeps_covariance = ffi_number(spec, "keeps_covariance") != 0,
      .n_noise_every = ffi_count(spec, "n_noise_every"),
      .n_byte_most = parse_bytes(ffi_number(spec, "bytes_most"))};
  out.v_bias_map = ffi_doubles(ffi_element(spec, "bias_map"),
                               p_model->n_dim * p_model->n_dim,
                               "bias_map");
  out.v_init =
      ffi_some_doubles(init,
                       ffi_times(out.n_chain, p_model->n_dim, "n_chain"),
                       "init");
  check_spec(&out);
  return out;
}

/* Numbers of effects that there are? */
static void check_effects(const struct tb_model* p_model, SEXP effects) {
  const struct tb_model_sweeps* sweeps = p_model->type->sweeps;
  const double n = sweeps == NULL ? 0 : (double)sweeps->n_effect(p_model);
  const double* v =
      ffi_doubles(effects, (size_t)Rf_xlength(effects), "effects");
  for (R_xlen_t j = 0; j < Rf_xlength(effects); ++j) {
    if (!(v[j] >= 1 && v[j] <= n)) {
      ffi_fault("effects");
    }
  }
}

/* buffers: named list of double vectors or NULL, of n_keep * n_chain * k;
 * `which`: the numbers of the variables kept, NULL for all */
static struct tb_recorder parse_recorder(const struct tb_run_spec* p_spec,
                                         SEXP buffers) {
  const struct tb_model* p_model = p_spec->p_model;
  const size_t n_keep = ffi_count(buffers, "n_keep");
  const size_t n_most =
      (p_spec->n_phase + p_spec->n_sampling) / p_spec->n_every;
  const size_t n = ffi_times(n_keep, p_spec->n_chain, "n_keep");
  SEXP which = ffi_element(buffers, "which");
  const size_t n_which = (size_t)Rf_xlength(which);
  const bool is_all = which == R_NilValue;
  SEXP effects = ffi_element(buffers, "effects");
  const size_t n_effect = (size_t)Rf_xlength(effects);
  if (n_keep > n_most) {
    ffi_fault("n_keep");
  }
  check_effects(p_model, effects);
#define BUFFER(name, k)                                                        \
  ffi_doubles(ffi_element(buffers, name), ffi_times(n, k, name), name)
  return (struct tb_recorder){
      .n_keep = n_keep,
      .v_which = ffi_doubles(which, n_which, "which"),
      .n_which = n_which,
      .v_draw = BUFFER("draw", is_all ? p_model->n_natural : n_which),
      .v_unconstrained =
          BUFFER("unconstrained", is_all ? p_model->n_dim : n_which),
      .v_gradient = BUFFER("gradient", is_all ? p_model->n_dim : n_which),
      .v_size = BUFFER("size", 1),
      .v_weight = BUFFER("weight", 1),
      .v_log_posterior = BUFFER("log_posterior", 1),
      .v_which_effect = ffi_doubles(effects, n_effect, "effects"),
      .n_which_effect = n_effect,
      .v_effect = BUFFER("effect", n_effect)};
#undef BUFFER
}

/* A status with the bytes that a run would take. */
static SEXP status_with_bytes(enum tb_status status, size_t n_byte) {
  SEXP out = PROTECT(Rf_ScalarInteger(status));
  SEXP bytes = PROTECT(Rf_ScalarReal((double)n_byte));
  Rf_setAttrib(out, Rf_install("bytes"), bytes);
  UNPROTECT(2);
  return out;
}

/* saved: NULL, or a list of one raw vector per chain.
 * Pointer, or the status as an integer, with the bytes wanted as an attribute
 * where there are not so many. */
SEXP ffi_run_create(SEXP model,
                    SEXP spec,
                    SEXP buffers,
                    SEXP saved,
                    SEXP n_threads) {
  struct tb_model* p_model = ffi_model(model);
  struct tb_run_spec parsed = parse_spec(p_model, spec);
  size_t n_byte = 0;
  parsed.p_byte = &n_byte;
  const struct tb_recorder recorder = parse_recorder(&parsed, buffers);
  const int n_threads_ = ffi_threads(n_threads);
  if (saved != R_NilValue && (TYPEOF(saved) != VECSXP ||
                              (size_t)Rf_xlength(saved) != parsed.n_chain)) {
    ffi_fault("saved");
  }
  for (R_xlen_t c = 0; c < Rf_xlength(saved); ++c) {
    if (TYPEOF(VECTOR_ELT(saved, c)) != RAWSXP) {
      ffi_fault("saved");
    }
  }

  SEXP keep = PROTECT(Rf_list2(model, buffers));
  SEXP ptr = PROTECT(R_MakeExternalPtr(NULL, Rf_install("tall_run"), keep));
  R_RegisterCFinalizerEx(ptr, run_finalize, TRUE);

  struct ffi_run* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    UNPROTECT(2);
    return Rf_ScalarInteger(TB_STATUS_memory);
  }
  R_SetExternalPtrAddr(ptr, p);
  p->recorder = recorder;
  struct tb_poll poll;
  ffi_poll_begin(p_model, &poll);
  enum tb_status status = tb_run_create(&parsed, n_threads_, &p->p_run);
  if (status == TB_STATUS_ok && !tb_run_records(p->p_run, &recorder)) {
    status = TB_STATUS_argument;
  }
  for (R_xlen_t c = 0; status == TB_STATUS_ok && c < Rf_xlength(saved); ++c) {
    SEXP bytes = VECTOR_ELT(saved, c);
    status =
        tb_run_load(p->p_run, (size_t)c, RAW(bytes), (size_t)Rf_xlength(bytes));
  }
  if (status == TB_STATUS_ok && saved == R_NilValue) {
    /* a failure here is the chain's, told by ffi_run_report() */
    tb_run_start(p->p_run);
  }
  ffi_poll_end(p_model);
  ffi_continue(model);
  UNPROTECT(2);
  return status == TB_STATUS_ok ? ptr : status_with_bytes(status, n_byte);
}

/* One slice. 0: go on, 1: every chain has finished or failed, 2: interrupted */
SEXP ffi_run_advance(SEXP run, SEXP n_step, SEXP n_threads) {
  struct ffi_run* p = ffi_run(run);
  const size_t n = ffi_as_count(n_step, "n_step");
  const int n_threads_ = ffi_threads(n_threads);
  SEXP model = CAR(R_ExternalPtrProtected(run));
  /* a failure here is the chains', too */
  struct tb_poll poll;
  ffi_poll_begin(ffi_model(model), &poll);
  tb_run_refresh(p->p_run, n_threads_);
  tb_run_advance(p->p_run, n, n_threads_, &p->recorder);
  const bool was_stopped = ffi_poll_end(ffi_model(model));
  /* an error of a user's function has stopped its chain, the others go on */
  ffi_continue_interrupt(model);

  int answer = 1;
  for (size_t c = 0; c < tb_run_n_chain(p->p_run); ++c) {
    const struct tb_report report = tb_run_report(p->p_run, c);
    if (!report.is_done && report.status == TB_STATUS_ok) {
      answer = 0;
    }
  }
  if (was_stopped || ffi_is_interrupted()) {
    answer = 2;
  }
  return Rf_ScalarInteger(answer);
}

/* Another model of the same posterior, and the estimator made of it with the
 * parameters of `gradient`: chains that wait go on. The status. */
SEXP ffi_run_refill(SEXP run, SEXP model, SEXP gradient, SEXP n_threads) {
  struct ffi_run* p = ffi_run(run);
  struct tb_model* p_model = ffi_model(model);
  const struct tb_member member = ffi_member(gradient);
  const int n_threads_ = ffi_threads(n_threads);
  const enum tb_status status =
      tb_run_refill(p->p_run, p_model, &member.params, n_threads_);
  if (status == TB_STATUS_ok) {
    SETCAR(R_ExternalPtrProtected(run), model);
  }
  return ffi_status(status);
}

SEXP ffi_run_destroy(SEXP run) {
  run_finalize(run);
  return R_NilValue;
}
