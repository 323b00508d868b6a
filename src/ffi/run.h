/* What is behind the external pointer of a run. */
#ifndef TB_FFI_RUN_H
#define TB_FFI_RUN_H

#include "ffi/args.h"

struct ffi_run {
  struct tb_run* p_run;
  struct tb_recorder recorder;
};

struct ffi_run* ffi_run(SEXP x);

#endif
