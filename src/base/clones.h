/* TB_CLONES in front of a function asks gcc on x86-64 glibc for one copy per
 * instruction set, chosen when the library is loaded. Empty everywhere else
 * and under sanitizers (a resolver runs before their runtime is up, and TSan
 * crashes at start). */
#ifndef TB_BASE_CLONES_H
#define TB_BASE_CLONES_H

#include <limits.h> /* defines __GLIBC__, through features.h */

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                    \
    !defined(__SANITIZE_THREAD__) && !defined(TB_NO_CLONES)
/* Named by feature level, not by model ("arch=haswell" is refused by every
 * other processor with the same instructions). */
#if __GNUC__ >= 12
#define TB_CLONES                                                              \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TB_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#endif
#else
#define TB_CLONES
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TB_PREFETCH(address) __builtin_prefetch((address), 0, 3)
#else
#define TB_PREFETCH(address) ((void)(address))
#endif

#endif
