#include "ffi/unwind.h"

#include "base/poll.h"

#include <setjmp.h>

static void on_jump(void* p_home, Rboolean jump) {
  if (jump) {
    longjmp(*(jmp_buf*)p_home, 1);
  }
}

bool ffi_unwind(struct ffi_jump* p_jump, SEXP (*body)(void*), void* p_data) {
  jmp_buf home;
  const void* p_top = vmaxget();
  if (setjmp(home) == 0) {
    R_UnwindProtect(body, p_data, on_jump, &home, p_jump->token);
    vmaxset(p_top);
    return true;
  }
  vmaxset(p_top);
  return false;
}

SEXP ffi_jump_pointer(struct ffi_jump* p_jump) {
  return R_MakeExternalPtr(p_jump, Rf_install("tall_jump"), R_NilValue);
}

static bool is_pointer(SEXP x, const char* tag) {
  return TYPEOF(x) == EXTPTRSXP && R_ExternalPtrTag(x) == Rf_install(tag);
}

/* The jump of the model below any frames, each of which protects the pointer of
 * its model; NULL where there is none. */
static struct ffi_jump* jump_of(SEXP model) {
  while (is_pointer(model, "tall_model")) {
    model = R_ExternalPtrProtected(model);
  }
  for (; TYPEOF(model) == LISTSXP; model = CDR(model)) {
    if (is_pointer(CAR(model), "tall_jump")) {
      return R_ExternalPtrAddr(CAR(model));
    }
  }
  return NULL;
}

void ffi_continue(SEXP model) {
  struct ffi_jump* p_jump = jump_of(model);
  if (p_jump != NULL && p_jump->waiting != TB_STATUS_ok) {
    p_jump->waiting = TB_STATUS_ok;
    R_ContinueUnwind(p_jump->token);
  }
}

void ffi_continue_interrupt(SEXP model) {
  struct ffi_jump* p_jump = jump_of(model);
  if (p_jump != NULL && p_jump->waiting == TB_STATUS_callback) {
    p_jump->waiting = TB_STATUS_ok;
  }
  ffi_continue(model);
}

static void check_interrupt(void* data) {
  (void)data;
  R_CheckUserInterrupt();
}

bool ffi_is_interrupted(void) {
  return R_ToplevelExec(check_interrupt, NULL) == FALSE;
}

void ffi_poll_begin(struct tb_model* p_model, struct tb_poll* p_poll) {
  p_poll->ask = ffi_is_interrupted;
  atomic_init(&p_poll->is_stopped, false);
  for (; p_model != NULL; p_model = p_model->p_base) {
    p_model->p_poll = p_poll;
  }
}

bool ffi_poll_end(struct tb_model* p_model) {
  const bool was_stopped = atomic_load(&p_model->p_poll->is_stopped);
  for (; p_model != NULL; p_model = p_model->p_base) {
    p_model->p_poll = NULL;
  }
  return was_stopped;
}
