#include "passes/pass.h"

#include "base/clip.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>

/* Parts for each thread to choose from before sums are added. */
#define N_EACH 4

static size_t own_size(const struct tb_pass* p_pass) {
  return tb_align(p_pass->n_own * sizeof(double));
}

static size_t work_size(const struct tb_pass* p_pass) {
  const struct tb_model* p_model = p_pass->p_model;
  const struct tb_model_type* type = p_model->type;
  const size_t n_row = p_pass->n_part_row;
  const size_t n_byte = type->pass_size != NULL
                            ? type->pass_size(p_model, n_row, p_pass->n_point)
                            : tb_model_work_size(p_model, n_row);
  return tb_align(n_byte) + own_size(p_pass);
}

enum tb_status tb_pass_begin(struct tb_pass* p_pass) {
  if (p_pass->p_model->type->flags & TB_MODEL_MAIN_THREAD) {
    p_pass->n_threads = 1;
  }
  const size_t n_thread = (size_t)p_pass->n_threads;
  p_pass->n_flight = n_thread == 1 ? 1 : N_EACH * n_thread;
  p_pass->n_work = work_size(p_pass);
  p_pass->p_memory =
      calloc(1,
             n_thread * p_pass->n_work +
                 p_pass->n_flight *
                     (p_pass->n_sum * sizeof(double) + sizeof(enum tb_status)) +
                 1);
  return p_pass->p_memory == NULL ? TB_STATUS_memory : TB_STATUS_ok;
}

static enum tb_status one_part(const struct tb_pass* p_pass,
                               const struct tb_batch* p_batch,
                               size_t number,
                               double* v_sum) {
  char* p_scratch = p_pass->p_memory + tb_thread() * p_pass->n_work;
  char* p_own = p_scratch + p_pass->n_work - own_size(p_pass);
  const size_t first = number * p_pass->n_part_row;
  const struct tb_part part = {
      .batch = tb_batch_part(p_batch, first, p_pass->n_part_row),
      .first = first,
      .work = {.p_scratch = p_scratch},
      .v_own = (double*)(void*)p_own,
      .v_sum = v_sum};
  return p_pass->part(p_pass->p_what, &part);
}

enum tb_status tb_pass_over(const struct tb_pass* p_pass,
                            const struct tb_batch* p_batch,
                            double* v_total) {
  const size_t n_sum = p_pass->n_sum, n_row = p_pass->n_part_row;
  const size_t n_part = tb_max(1, (p_batch->n_batch + n_row - 1) / n_row);
  double* v_sums = (double*)(void*)(p_pass->p_memory +
                                    (size_t)p_pass->n_threads * p_pass->n_work);
  enum tb_status* v_status =
      (enum tb_status*)(void*)(v_sums + p_pass->n_flight * n_sum);
  enum tb_status status = TB_STATUS_ok;
  for (size_t first = 0; first < n_part && status == TB_STATUS_ok;
       first += p_pass->n_flight) {
    const size_t n_now = tb_min(p_pass->n_flight, n_part - first);
    memset(v_sums, 0, n_now * n_sum * sizeof(double));
#ifdef _OPENMP
#pragma omp parallel for num_threads(p_pass->n_threads)                        \
    schedule(dynamic, 1) if (p_pass->n_threads > 1 && n_now > 1)
#endif
    for (size_t p = 0; p < n_now; ++p) {
      v_status[p] = one_part(p_pass, p_batch, first + p, v_sums + p * n_sum);
    }
    for (size_t p = 0; p < n_now && status == TB_STATUS_ok; ++p) {
      status = v_status[p];
      for (size_t k = 0; k < n_sum && status == TB_STATUS_ok; ++k) {
        v_total[k] += v_sums[p * n_sum + k];
      }
    }
  }
  return status;
}

void tb_pass_end(struct tb_pass* p_pass) {
  free(p_pass->p_memory);
  p_pass->p_memory = NULL;
}
