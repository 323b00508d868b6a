/* Four or eight doubles at a time through the vector extensions of gcc and
 * clang, which the compiler splits or widens for the machine at hand; TB_VECTOR
 * is not defined elsewhere and the callers' plain loops are used.
 *
 * The types are for loads and stores at any double (aligned(8)) of any memory
 * (may_alias). Helpers take and return vectors through pointers: passed by
 * value their ABI would depend on the instruction set. TB_INLINE helpers are
 * compiled anew inside each TB_CLONES caller, for its instruction set. */
#ifndef TB_BASE_VECTOR_H
#define TB_BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#if (defined(__GNUC__) || defined(__clang__)) && !defined(TB_NO_VECTOR)
#define TB_VECTOR 4
typedef double tb_v4d __attribute__((vector_size(32), aligned(8), may_alias));
typedef double tb_v8d __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t tb_v4i __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t tb_v4u __attribute__((vector_size(32), aligned(8), may_alias));
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TB_INLINE static inline __attribute__((always_inline))
#else
#define TB_INLINE static inline
#endif

#endif
