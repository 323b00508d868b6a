/* What a topic model offers besides struct tb_model_type. */
#ifndef TB_MODELS_LDA_H
#define TB_MODELS_LDA_H

#include "models/model.h"

/* Mean topic proportions of every document given topics: v_out (n_topic x
 * n_data, column-major) = (E_z n_dk + alpha) / (n_d + n_topic alpha), the mean
 * over n_sweep Gibbs sweeps after n_burn. v_topics: n_topic x n_word,
 * unnormalised. Every document draws from a stream of its own, which the seed
 * and its number decide. */
enum tb_status tb_lda_proportions(const struct tb_model* p_model,
                                  const double* v_topics,
                                  size_t n_burn,
                                  size_t n_sweep,
                                  uint64_t seed,
                                  double* v_out);

size_t tb_lda_n_topic(const struct tb_model* p_model);

#endif
