/* What a generalised linear model keeps of a row's expansion: glm-second.c
 * makes it, glm-remainder.c looks at what is beyond. */
#ifndef TB_MODELS_GLM_RECORD_H
#define TB_MODELS_GLM_RECORD_H

#include "base/clones.h"
#include "models/glm-inside.h"

/* A cache line, or two of several auxiliary parameters: with the row itself all
 * that a step looks at. */
struct glm_record {
  double eta, y, weight;
  double score, curvature;
  double v_aux[]; /* n_aux scores, n_aux crosses, curvatures by pairs */
};

static inline size_t glm_record_size(const struct glm* p_glm) {
  return p_glm->n_aux > 1 ? 128 : 64;
}

static inline struct glm_record*
glm_record_put(const struct glm* p_glm, void* p_record, size_t i) {
  return (struct glm_record*)((char*)p_record + i * glm_record_size(p_glm));
}

static inline const struct glm_record*
glm_record_at(const struct glm* p_glm, const void* p_record, size_t i) {
  return (const struct glm_record*)((const char*)p_record +
                                    i * glm_record_size(p_glm));
}

/* t_i = x_i^T delta of a block, with its records and those of the next fetched
 */
static inline void glm_load_steps(const struct glm* p_glm,
                                  const struct tb_rows* p_rows,
                                  const void* p_record,
                                  const double* v_delta,
                                  double* v_t) {
  p_glm->store.type->dot(&p_glm->store, p_rows, v_delta, v_t);
  for (size_t k = 0; p_rows->v_index != NULL && k < p_rows->n_next; ++k) {
    TB_PREFETCH(glm_record_at(p_glm, p_record, p_rows->v_next[k]));
  }
}

/* ---- glm-remainder.c ---- */

bool glm_has_remainders(const struct tb_model* p_model);
void glm_prefetch(const struct tb_model* p_model,
                  const void* p_record,
                  size_t row);
void glm_remainders(const struct tb_model* p_model,
                    const struct tb_workspace* p_work,
                    const void* p_record,
                    const double* v_at,
                    const double* v_from,
                    const double* v_to,
                    const struct tb_batch* p_batch,
                    double* v_e_from,
                    double* v_e_to);
void glm_remainders_of(const struct tb_model* p_model,
                       const void* p_record,
                       const struct tb_batch* p_batch,
                       const double* v_t,
                       double* v_e);
void glm_steps(const struct tb_model* p_model,
               const struct tb_workspace* p_work,
               const double* v_delta,
               const struct tb_batch* p_batch,
               double* v_t);
enum tb_status glm_norms(const struct tb_model* p_model,
                         const double* v_chol,
                         const struct tb_batch* p_batch,
                         double* v_out);
void glm_third_bounds(const struct tb_model* p_model,
                      const void* p_record,
                      const double* v_norm,
                      size_t n_row,
                      double radius,
                      double* v_out);

#endif
