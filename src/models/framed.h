/* A model in whitened coordinates, for models that cannot rewrite their rows.
 */
#ifndef TB_MODELS_FRAMED_H
#define TB_MODELS_FRAMED_H

#include "models/model.h"

/* Fill p_out with the model of phi = L^T (theta - c) whose data are those of
 * p_base, which must outlive it. v_chol: as tb_frame_create(). */
enum tb_status tb_model_frame(struct tb_model* p_base,
                              const double* v_center,
                              const double* v_chol,
                              bool is_diagonal,
                              struct tb_model* p_out);

#endif
