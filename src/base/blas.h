/* BLAS and LAPACK through R's own. The one place of the core that looks at
 * R's headers, and only at their prototypes; a standalone build (see
 * tools/core-check) brings its own. Dimensions are checked by the callers: a
 * wrong one would reach R's xerbla, which raises an R error. */
#ifndef TB_BASE_BLAS_H
#define TB_BASE_BLAS_H

#include <stddef.h>

#ifdef TB_STANDALONE
#define TB_FORTRAN(name) name##_
#define TB_FORTRAN_LENGTH1
#define TB_FORTRAN_LENGTH2
#define TB_FORTRAN_LENGTH4
void dsyrk_(const char*,
            const char*,
            const int*,
            const int*,
            const double*,
            const double*,
            const int*,
            const double*,
            double*,
            const int*);
void dgemm_(const char*,
            const char*,
            const int*,
            const int*,
            const int*,
            const double*,
            const double*,
            const int*,
            const double*,
            const int*,
            const double*,
            double*,
            const int*);
void dtrsm_(const char*,
            const char*,
            const char*,
            const char*,
            const int*,
            const int*,
            const double*,
            const double*,
            const int*,
            double*,
            const int*);
#else
#ifndef USE_FC_LEN_T
#define USE_FC_LEN_T
#endif
#include <R_ext/BLAS.h>
#include <Rconfig.h>
#ifndef FCONE
#define FCONE
#endif
#define TB_FORTRAN(name)   F77_CALL(name)
#define TB_FORTRAN_LENGTH1 FCONE
#define TB_FORTRAN_LENGTH2 FCONE FCONE
#define TB_FORTRAN_LENGTH4 FCONE FCONE FCONE FCONE
#endif

/* C (upper, n x n) += scale op(A) op(A)^T, column-major; op(A) is n x k: the
 * matrix for 'N', its transpose for 'T'. */
static inline void tb_syrk(char op,
                           size_t n,
                           size_t k,
                           double scale,
                           const double* v_a,
                           size_t n_lead_a,
                           double* v_c,
                           size_t n_lead_c) {
  const int n_ = (int)n, k_ = (int)k, lda = (int)n_lead_a, ldc = (int)n_lead_c;
  const double one = 1;
  TB_FORTRAN(dsyrk)
  ("U", &op, &n_, &k_, &scale, v_a, &lda, &one, v_c, &ldc TB_FORTRAN_LENGTH2);
}

/* C (m x n) = op(A) op(B) + scale C, column-major; op(A) is m x k, op(B) k x n:
 * the matrix for 'N', its transpose for 'T'. */
static inline void tb_gemm_op(char op_a,
                              char op_b,
                              size_t m,
                              size_t n,
                              size_t k,
                              const double* v_a,
                              size_t n_lead_a,
                              const double* v_b,
                              size_t n_lead_b,
                              double scale,
                              double* v_c,
                              size_t n_lead_c) {
  const int m_ = (int)m, n_ = (int)n, k_ = (int)k, lda = (int)n_lead_a,
            ldb = (int)n_lead_b, ldc = (int)n_lead_c;
  const double one = 1;
  TB_FORTRAN(dgemm)
  (&op_a,
   &op_b,
   &m_,
   &n_,
   &k_,
   &one,
   v_a,
   &lda,
   v_b,
   &ldb,
   &scale,
   v_c,
   &ldc TB_FORTRAN_LENGTH2);
}

/* C (m x n) = op(A) B + scale C */
static inline void tb_gemm_scale(char op,
                                 size_t m,
                                 size_t n,
                                 size_t k,
                                 const double* v_a,
                                 size_t n_lead_a,
                                 const double* v_b,
                                 size_t n_lead_b,
                                 double scale,
                                 double* v_c,
                                 size_t n_lead_c) {
  tb_gemm_op(op,
             'N',
             m,
             n,
             k,
             v_a,
             n_lead_a,
             v_b,
             n_lead_b,
             scale,
             v_c,
             n_lead_c);
}

/* C (m x n) = op(A) B */
static inline void tb_gemm(char op,
                           size_t m,
                           size_t n,
                           size_t k,
                           const double* v_a,
                           size_t n_lead_a,
                           const double* v_b,
                           size_t n_lead_b,
                           double* v_c,
                           size_t n_lead_c) {
  tb_gemm_scale(op, m, n, k, v_a, n_lead_a, v_b, n_lead_b, 0, v_c, n_lead_c);
}

/* B (n x k) := op(T)^{-1} B, column-major; T: the triangle 'L'ower or 'U'pper
 * of an n x n matrix */
static inline void tb_trsm(char triangle,
                           char op,
                           size_t n,
                           size_t k,
                           const double* v_t,
                           size_t n_lead_t,
                           double* v_b,
                           size_t n_lead_b) {
  const int n_ = (int)n, k_ = (int)k, ldt = (int)n_lead_t, ldb = (int)n_lead_b;
  const double one = 1;
  TB_FORTRAN(dtrsm)
  ("L",
   &triangle,
   &op,
   "N",
   &n_,
   &k_,
   &one,
   v_t,
   &ldt,
   v_b,
   &ldb TB_FORTRAN_LENGTH4);
}

#endif
