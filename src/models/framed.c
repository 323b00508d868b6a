/* Any model in whitened coordinates: theta = c + M phi (base/frame.h), and the
 * gradient in phi is M^T times that in theta. Costs two products with a
 * triangle of n_dim^2 numbers a call, where a model with a `whiten` of its own
 * pays nothing; second moments, which need every row's gradient in phi, two a
 * row.
 *
 *   symbol  variable    shape  owner
 *   theta   v_theta     n_dim  scratch
 *   theta of the reference, v_reference  n_dim  scratch
 *   g       v_gradient  n_dim  scratch, in theta
 *           v_pulled    n_dim  scratch, in phi
 */
#include "models/framed.h"

#include "base/clip.h"
#include "models/expansion.h"

#include <stdlib.h>
#include <string.h>

struct framed {
  struct tb_model_type type; /* the base's slots where it has them */
  struct tb_model* p_base;
  struct tb_frame frame;
};

struct scratch {
  double* v_theta;
  double* v_reference;
  double* v_gradient;
  double* v_pulled;
  struct tb_workspace work; /* the base's */
};

static struct scratch scratch_at(const struct tb_model* p_model,
                                 const struct tb_workspace* p_work) {
  const size_t n_vector = tb_align(p_model->n_dim * sizeof(double));
  char* p = p_work->p_scratch;
  return (struct scratch){
      .v_theta = (double*)(void*)p,
      .v_reference = (double*)(void*)(p + n_vector),
      .v_gradient = (double*)(void*)(p + 2 * n_vector),
      .v_pulled = (double*)(void*)(p + 3 * n_vector),
      .work = {.p_scratch = p + 4 * n_vector, .p_rng = p_work->p_rng}};
}

static size_t own_size(const struct tb_model* p_model) {
  return 4 * tb_align(p_model->n_dim * sizeof(double));
}

static size_t framed_workspace_size(const struct tb_model* p_model,
                                    size_t n_batch) {
  const struct framed* p = p_model->p_self;
  return own_size(p_model) + tb_model_work_size(p->p_base, n_batch);
}

/* v_out += M^T v_gradient */
static void
add_pulled(const struct framed* p, const struct scratch* p_s, double* v_out) {
  tb_frame_pull_gradient(&p->frame, p_s->v_gradient, p_s->v_pulled);
  for (size_t j = 0; v_out != NULL && j < p->frame.n_dim; ++j) {
    v_out[j] += p_s->v_pulled[j];
  }
}

static enum tb_status framed_prior(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_phi,
                                   double* v_gradient,
                                   double* p_log_prior) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  const enum tb_status status = p->p_base->type->prior(p->p_base,
                                                       &s.work,
                                                       s.v_theta,
                                                       s.v_gradient,
                                                       p_log_prior);
  tb_frame_pull_gradient(&p->frame, s.v_gradient, v_gradient);
  return status;
}

static bool framed_is_outside(const struct tb_model* p_model,
                              const struct tb_workspace* p_work,
                              const double* v_phi) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  return p->p_base->type->is_outside(p->p_base, &s.work, s.v_theta);
}

/* q in phi is q in theta up to a constant */
static double framed_move(const struct tb_model* p_model,
                          const struct tb_workspace* p_work,
                          const double* v_phi,
                          struct tb_rng* p_rng,
                          double* v_to) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  const double log_ratio = p->p_base->type->move(p->p_base,
                                                 &s.work,
                                                 s.v_theta,
                                                 p_rng,
                                                 s.v_reference);
  tb_frame_to_sampler(&p->frame, s.v_reference, v_to);
  return log_ratio;
}

static enum tb_status framed_gibbs(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   double* v_phi) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  const enum tb_status status =
      p->p_base->type->gibbs(p->p_base, &s.work, s.v_theta);
  tb_frame_to_sampler(&p->frame, s.v_theta, v_phi);
  return status;
}

/* The reference with its point in theta. */
static const struct tb_reference*
base_reference(const struct framed* p,
               const struct scratch* p_s,
               const struct tb_reference* p_reference,
               struct tb_reference* p_out) {
  if (p_reference == NULL) {
    return NULL;
  }
  *p_out = *p_reference;
  if (p_reference->v_theta != NULL) {
    tb_frame_to_parameter(&p->frame, p_reference->v_theta, p_s->v_reference);
    p_out->v_theta = p_s->v_reference;
  }
  return p_out;
}

/* One row after the other, for the squares of each gradient in phi. */
static enum tb_status add_row_squares(const struct framed* p,
                                      const struct scratch* p_s,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      double* v_square) {
  const size_t n_dim = p->frame.n_dim;
  const struct tb_sums sums = {.v_gradient = p_s->v_gradient};
  enum tb_status status = TB_STATUS_ok;
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok; ++k) {
    const struct tb_batch one = tb_batch_part(p_batch, k, 1);
    memset(p_s->v_gradient, 0, n_dim * sizeof(double));
    status = p->p_base->type->gradient(p->p_base,
                                       &p_s->work,
                                       p_s->v_theta,
                                       &one,
                                       p_reference,
                                       &sums);
    tb_frame_pull_gradient(&p->frame, p_s->v_gradient, p_s->v_pulled);
    for (size_t j = 0; j < n_dim; ++j) {
      v_square[j] += p_s->v_pulled[j] * p_s->v_pulled[j];
    }
  }
  return status;
}

static enum tb_status framed_gradient(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_phi,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      const struct tb_sums* p_sums) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  struct tb_reference reference;
  struct tb_sums sums = *p_sums;
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  p_reference = base_reference(p, &s, p_reference, &reference);
  enum tb_status status = TB_STATUS_ok;
  if (p_sums->v_square != NULL) {
    status = add_row_squares(p, &s, p_batch, p_reference, p_sums->v_square);
    sums.v_square = NULL;
  }
  if (status != TB_STATUS_ok) {
    return status;
  }
  if (p_sums->v_gradient != NULL) {
    memset(s.v_gradient, 0, p_model->n_dim * sizeof(double));
    sums.v_gradient = s.v_gradient;
  }
  status = p->p_base->type->gradient(p->p_base,
                                     &s.work,
                                     s.v_theta,
                                     p_batch,
                                     p_reference,
                                     &sums);
  if (p_sums->v_gradient != NULL) {
    add_pulled(p, &s, p_sums->v_gradient);
  }
  return status;
}

static enum tb_status framed_log_lik(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_phi,
                                     const struct tb_batch* p_batch,
                                     double* v_out) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  return p->p_base->type->log_lik(p->p_base,
                                  &s.work,
                                  s.v_theta,
                                  p_batch,
                                  v_out);
}

static enum tb_status framed_add_scalar(const struct tb_model* p_model,
                                        const struct tb_workspace* p_work,
                                        const struct tb_batch* p_batch,
                                        const double* v_scalar,
                                        double* v_sum) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  memset(s.v_gradient, 0, p_model->n_dim * sizeof(double));
  const enum tb_status status = p->p_base->type->add_scalar(p->p_base,
                                                            &s.work,
                                                            p_batch,
                                                            v_scalar,
                                                            s.v_gradient);
  add_pulled(p, &s, v_sum);
  return status;
}

static size_t
framed_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point) {
  const struct framed* p = p_model->p_self;
  return own_size(p_model) +
         p->p_base->type->pass_size(p->p_base, n_row, n_point);
}

static enum tb_status framed_store_scalar(struct tb_model* p_model,
                                          const struct tb_workspace* p_work,
                                          const double* v_phi,
                                          const struct tb_batch* p_batch,
                                          double* v_sum) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  memset(s.v_gradient, 0, p_model->n_dim * sizeof(double));
  const enum tb_status status = p->p_base->type->store_scalar(p->p_base,
                                                              &s.work,
                                                              s.v_theta,
                                                              p_batch,
                                                              s.v_gradient);
  add_pulled(p, &s, v_sum);
  return status;
}

static struct tb_reference
framed_stored_scalar(const struct tb_model* p_model) {
  const struct framed* p = p_model->p_self;
  return p->p_base->type->stored_scalar(p->p_base);
}

static void framed_constrain(const struct tb_model* p_model,
                             const double* v_theta,
                             double* v_natural) {
  const struct framed* p = p_model->p_self;
  p->p_base->type->constrain(p->p_base, v_theta, v_natural);
}

static size_t framed_memory(const struct tb_model* p_model) {
  const struct framed* p = p_model->p_self;
  return p->p_base->type->memory(p->p_base) + tb_frame_memory(&p->frame);
}

static bool framed_is_usable(const struct tb_model* p_model) {
  const struct framed* p = p_model->p_self;
  return p->p_base->type->is_usable(p->p_base);
}

/* ------------------------------------------------------------- expansions */

/* Those of a base that never rewrites its rows: the records are its own. */
static size_t framed_record_size(const struct tb_model* p_model) {
  const struct framed* p = p_model->p_self;
  return p->p_base->type->expansion->record_size(p->p_base);
}

static enum tb_status framed_expand(const struct tb_model* p_model,
                                    const double* v_at,
                                    const struct tb_batch* p_batch,
                                    void* p_record,
                                    const struct tb_curvature* p_sums,
                                    int n_threads) {
  const struct framed* p = p_model->p_self;
  const size_t n = p_model->n_dim;
  double* v_theta = calloc(3 * n + 2 * n * n, sizeof(double));
  if (v_theta == NULL) {
    return TB_STATUS_memory;
  }
  double *v_gradient = v_theta + n, *v_pulled = v_theta + 2 * n;
  double *v_hessian = v_theta + 3 * n, *v_work = v_hessian + n * n;
  struct tb_curvature sums = *p_sums;
  sums.v_gradient = v_gradient;
  sums.v_hessian = v_hessian;
  tb_frame_to_parameter(&p->frame, v_at, v_theta);
  const enum tb_status status = p->p_base->type->expansion->expand(p->p_base,
                                                                   v_theta,
                                                                   p_batch,
                                                                   p_record,
                                                                   &sums,
                                                                   n_threads);
  tb_frame_pull_gradient(&p->frame, v_gradient, v_pulled);
  tb_frame_pull_hessian(&p->frame, v_hessian, v_work);
  for (size_t j = 0; j < n; ++j) {
    p_sums->v_gradient[j] += v_pulled[j];
  }
  for (size_t j = 0; j < n * n; ++j) {
    p_sums->v_hessian[j] += v_hessian[j];
  }
  free(v_theta);
  return status;
}

static enum tb_status framed_beyond(const struct tb_model* p_model,
                                    const struct tb_workspace* p_work,
                                    const void* p_record,
                                    const double* v_at,
                                    const double* v_phi,
                                    const struct tb_batch* p_batch,
                                    const struct tb_sums* p_sums) {
  const struct framed* p = p_model->p_self;
  const struct scratch s = scratch_at(p_model, p_work);
  const struct tb_sums sums = {.v_gradient = s.v_gradient};
  const bool has_squares = p_sums->v_square != NULL;
  const size_t n_most = has_squares ? 1 : p_batch->n_batch;
  enum tb_status status = TB_STATUS_ok;
  tb_frame_to_parameter(&p->frame, v_phi, s.v_theta);
  tb_frame_to_parameter(&p->frame, v_at, s.v_reference);
  for (size_t k = 0; k < p_batch->n_batch && status == TB_STATUS_ok;
       k += n_most) {
    /* squares are of each row by itself */
    const struct tb_batch part = tb_batch_part(p_batch, k, n_most);
    memset(s.v_gradient, 0, p_model->n_dim * sizeof(double));
    status = p->p_base->type->expansion->beyond(p->p_base,
                                                &s.work,
                                                p_record,
                                                s.v_reference,
                                                s.v_theta,
                                                &part,
                                                &sums);
    add_pulled(p, &s, p_sums->v_gradient);
    for (size_t j = 0; has_squares && j < p_model->n_dim; ++j) {
      p_sums->v_square[j] += s.v_pulled[j] * s.v_pulled[j];
    }
  }
  return status;
}

static bool framed_has_remainders(const struct tb_model* p_model) {
  (void)p_model;
  return false;
}

static double framed_largest_predictor(const struct tb_model* p_model,
                                       const void* p_record,
                                       size_t n_row) {
  (void)p_model;
  (void)p_record;
  (void)n_row;
  return 0;
}

static const struct tb_model_expansion framed_expansion = {
    .record_size = framed_record_size,
    .expand = framed_expand,
    .largest_predictor = framed_largest_predictor,
    .beyond = framed_beyond,
    .has_remainders = framed_has_remainders,
};

/* -------------------------------------------------------------------- life */

static void framed_destroy(struct tb_model* p_model) {
  struct framed* p = p_model->p_self;
  if (p != NULL) {
    tb_frame_destroy(&p->frame);
    free(p);
  }
  p_model->p_self = NULL;
}

enum tb_status tb_model_frame(struct tb_model* p_base,
                              const double* v_center,
                              const double* v_chol,
                              bool is_diagonal,
                              struct tb_model* p_out) {
  const struct tb_model_type* base = p_base->type;
  if (p_base->p_frame != NULL || (base->flags & TB_MODEL_NOISY)) {
    return TB_STATUS_unsupported;
  }
  struct framed* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  const enum tb_status status =
      tb_frame_create(&p->frame, p_base->n_dim, v_center, v_chol, is_diagonal);
  if (status != TB_STATUS_ok) {
    free(p);
    return status;
  }
  p->p_base = p_base;
#define SLOT(name) .name = base->name == NULL ? NULL : framed_##name
  p->type = (struct tb_model_type){.name = base->name,
                                   .citation = base->citation,
                                   .flags = base->flags,
                                   .destroy = framed_destroy,
                                   .prior = framed_prior,
                                   .gradient = framed_gradient,
                                   .workspace_size = framed_workspace_size,
                                   SLOT(is_outside),
                                   SLOT(gibbs),
                                   SLOT(move),
                                   SLOT(log_lik),
                                   SLOT(pass_size),
                                   SLOT(store_scalar),
                                   SLOT(stored_scalar),
                                   SLOT(add_scalar),
                                   SLOT(constrain),
                                   SLOT(memory),
                                   SLOT(is_usable)};
#undef SLOT
  if (base->whiten == NULL && base->expansion != NULL) {
    p->type.expansion = &framed_expansion;
  }
  *p_out = *p_base;
  p_out->is_even = false; /* not about c */
  p_out->p_rows = NULL;   /* the frame mixes its coordinates */
  p_out->p_mixtures = NULL;
  p_out->type = &p->type;
  p_out->p_frame = &p->frame;
  p_out->p_base = p_base;
  p_out->p_self = p;
  return TB_STATUS_ok;
}
