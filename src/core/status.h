/* What a core function has to say when it returns. The core never prints,
 * never jumps and never aborts: it hands back one of these and leaves its
 * state valid. R/conditions.R turns them into sentences. */
#ifndef TB_CORE_STATUS_H
#define TB_CORE_STATUS_H

enum tb_status {
  TB_STATUS_ok = 0,
  TB_STATUS_nonfinite = 1,   /* a coordinate of the state is NaN or Inf */
  TB_STATUS_escaped = 2,     /* too many draws far outside the expected region */
  TB_STATUS_callback = 3,    /* an R-level model failed; R holds the error */
  TB_STATUS_memory = 4,      /* an allocation failed */
  TB_STATUS_unsupported = 5, /* the optional slot that is needed is NULL */
  TB_STATUS_argument = 6,    /* a parameter is missing or out of range */
  TB_STATUS_singular = 7     /* a matrix is not positive definite */
};

#endif
