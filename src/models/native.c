/* A user's model: struct tb_native_type of tallbayes.h, behind the slots that
 * the samplers know. The table may lack optional slots, so each model has a
 * struct tb_model_type of its own, as frames have (models/framed.c).
 *
 *   symbol  variable   shape                   owner
 *   data    v_store    n_array matrices, each  native; row by row, what
 *                      n_row x n_padded        v_array shows of them
 *   y_i,    v_beside   n_data x                native; of the reference of
 *   r_i                (1 + n_scalar)          control variates
 *   -H      v_hessian  n_dim x n_dim           caller
 *
 * The numbers stored of a row stand beside the first array that has one number
 * for each observation, most often the response, so that both come with one
 * line of memory; y_i is missing where there is no such array.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr() */
#endif

#include "models/native.h"

#include "base/clip.h"
#include "base/clones.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/vmath.h"
#include "data/shelf.h"
#include "data/store.h"
#include "models/model.h"
#include "models/rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__) || defined(__APPLE__)
#define HAS_DLADDR
#include <dlfcn.h>
#endif

#if TB_BLOCK != TB_STORE_BLOCK
#error "blocks of users are blocks of the store"
#endif

/* The beginning of a function, to see whether it is still there. */
struct mark {
  const unsigned char* p_code;
  size_t n_byte;
  unsigned char v_byte[16];
};

enum { N_MARK = 8 };

struct native {
  struct tb_model_type type; /* the slots that the user's table has */
  struct tb_native_type user;
  struct mark v_mark[N_MARK]; /* of the user's functions */
  struct tb_native view;      /* what its functions are given */
  struct tb_store* v_store;
  struct tb_array* v_array;
  char* p_names;    /* of the arrays, one after the other */
  double* v_beside; /* NULL: nothing is stored */
  size_t n_beside;  /* numbers a row */
  size_t n_beside_byte;
};

/* ------------------------------------------------------------------- tools */

/* p_private: the store; NULL: one number a row, with others beside it. */
static double
beside(const struct tb_array* p_array, const struct tb_rows* p_rows, size_t k) {
  return p_array->v_value[tb_rows_at(p_rows, k) * p_array->stride];
}

static void tool_dot(const struct tb_array* p_array,
                     const struct tb_batch* p_batch,
                     size_t first,
                     const double* v,
                     double* v_out) {
  const struct tb_store* p_store = p_array->p_private;
  const struct tb_rows rows = tb_batch_block(p_batch, first);
  if (p_store != NULL) {
    p_store->type->dot(p_store, &rows, v, v_out);
    return;
  }
  for (size_t k = 0; k < rows.n_row; ++k) {
    v_out[k] = beside(p_array, &rows, k) * v[0];
  }
}

static void tool_add(const struct tb_array* p_array,
                     const struct tb_batch* p_batch,
                     size_t first,
                     const double* v_u,
                     double* v_sum,
                     double* v_square) {
  const struct tb_store* p_store = p_array->p_private;
  const struct tb_rows rows = tb_batch_block(p_batch, first);
  for (size_t k = 0; p_store == NULL && k < rows.n_row; ++k) {
    const double u = v_u[k] * beside(p_array, &rows, k);
    v_sum[0] += u;
    if (v_square != NULL) {
      v_square[0] += u * u;
    }
  }
  if (p_store == NULL) {
    return;
  }
  if (v_square == NULL) {
    p_store->type->add(p_store, &rows, v_u, v_sum);
  } else {
    p_store->type->add_square(p_store, &rows, v_u, v_sum, v_square);
  }
}

static void tool_take(const double* v_value,
                      size_t stride,
                      size_t n_value,
                      const struct tb_batch* p_batch,
                      size_t first,
                      double* v_out) {
  const struct tb_rows rows = tb_batch_block(p_batch, first);
  for (size_t k = 0; rows.v_index != NULL && k < rows.n_next; ++k) {
    TB_PREFETCH(v_value + rows.v_next[k] * stride);
  }
  for (size_t k = 0; k < rows.n_row; ++k) {
    const double* v_row = v_value + tb_rows_at(&rows, k) * stride;
    for (size_t j = 0; j < n_value; ++j) {
      v_out[k * n_value + j] = v_row[j];
    }
  }
}

#define TOOL(name)                                                             \
  static TB_CLONES void tool_##name(const double* v_x,                         \
                                    double* v_out,                             \
                                    size_t n) {                                \
    tb_v##name(v_x, v_out, n);                                                 \
  }
TOOL(exp)
TOOL(log)
TOOL(logistic)
TOOL(softplus)
TOOL(tanh)
#undef TOOL

static const struct tb_tools tools = {.dot = tool_dot,
                                      .add = tool_add,
                                      .take = tool_take,
                                      .exp = tool_exp,
                                      .log = tool_log,
                                      .logistic = tool_logistic,
                                      .softplus = tool_softplus,
                                      .tanh = tool_tanh};

/* ------------------------------------------------------------------- slots */

/* A user's function may return anything. */
static enum tb_status known(enum tb_status status) {
  return (unsigned)status <= (unsigned)TB_STATUS_singular ? status
                                                          : TB_STATUS_callback;
}

static size_t native_workspace_size(const struct tb_model* p_model,
                                    size_t n_batch) {
  const struct native* p = p_model->p_self;
  return p->user.scratch_size == NULL ? 0
                                      : p->user.scratch_size(&p->view, n_batch);
}

static enum tb_status native_prior(const struct tb_model* p_model,
                                   const struct tb_workspace* p_work,
                                   const double* v_theta,
                                   double* v_gradient,
                                   double* p_log_prior) {
  const struct native* p = p_model->p_self;
  return known(p->user.prior(&p->view,
                             p_work->p_scratch,
                             v_theta,
                             v_gradient,
                             p_log_prior));
}

static enum tb_status native_gradient(const struct tb_model* p_model,
                                      const struct tb_workspace* p_work,
                                      const double* v_theta,
                                      const struct tb_batch* p_batch,
                                      const struct tb_reference* p_reference,
                                      const struct tb_sums* p_sums) {
  const struct native* p = p_model->p_self;
  return known(p->user.gradient(&p->view,
                                p_work->p_scratch,
                                v_theta,
                                p_batch,
                                p_reference,
                                p_sums));
}

static enum tb_status native_log_lik(const struct tb_model* p_model,
                                     const struct tb_workspace* p_work,
                                     const double* v_theta,
                                     const struct tb_batch* p_batch,
                                     double* v_out) {
  const struct native* p = p_model->p_self;
  return known(
      p->user.log_lik(&p->view, p_work->p_scratch, v_theta, p_batch, v_out));
}

static enum tb_status native_add_scalar(const struct tb_model* p_model,
                                        const struct tb_workspace* p_work,
                                        const struct tb_batch* p_batch,
                                        const double* v_scalar,
                                        double* v_sum) {
  const struct native* p = p_model->p_self;
  return known(p->user.add_scalar(&p->view,
                                  p_work->p_scratch,
                                  p_batch,
                                  v_scalar,
                                  v_sum));
}

static void native_constrain(const struct tb_model* p_model,
                             const double* v_theta,
                             double* v_natural) {
  const struct native* p = p_model->p_self;
  p->user.constrain(&p->view, v_theta, v_natural);
}

static struct tb_reference
native_stored_scalar(const struct tb_model* p_model) {
  const struct native* p = p_model->p_self;
  return (struct tb_reference){.v_scalar =
                                   p->v_beside + p->n_beside - p->user.n_scalar,
                               .stride = p->n_beside};
}

/* Behind the scratch of the user's functions, room for the numbers that they
 * give of a batch, one after the other, or for a Hessian. */
static size_t
native_pass_size(const struct tb_model* p_model, size_t n_row, size_t n_point) {
  const struct native* p = p_model->p_self;
  const size_t n_hessian =
      p->user.curvature == NULL ? 0 : p_model->n_dim * p_model->n_dim;
  (void)n_point;
  return tb_align(native_workspace_size(p_model, n_row)) +
         tb_max(n_row * p->user.n_scalar, n_hessian) * sizeof(double);
}

static double* native_room(const struct tb_model* p_model,
                           const struct tb_workspace* p_work,
                           size_t n_row) {
  char* p_scratch = p_work->p_scratch;
  return (double*)(void*)(p_scratch +
                          tb_align(native_workspace_size(p_model, n_row)));
}

static enum tb_status native_store_scalar(struct tb_model* p_model,
                                          const struct tb_workspace* p_work,
                                          const double* v_theta,
                                          const struct tb_batch* p_batch,
                                          double* v_sum) {
  struct native* p = p_model->p_self;
  const size_t n_scalar = p->user.n_scalar;
  double* v_scalar = native_room(p_model, p_work, p_batch->n_batch);
  double* v_place = p->v_beside + p->n_beside - n_scalar;
  const struct tb_sums sums = {.v_gradient = v_sum, .v_scalar = v_scalar};
  const enum tb_status status =
      native_gradient(p_model, p_work, v_theta, p_batch, NULL, &sums);
  for (size_t k = 0; k < p_batch->n_batch; ++k) {
    memcpy(v_place + tb_batch_row(p_batch, k) * p->n_beside,
           v_scalar + k * n_scalar,
           n_scalar * sizeof(double));
  }
  return status;
}

/* The user's Hessian of a batch has the prior's in it: that of no rows, which
 * is taken out again. A prior with kinks has none to be rounded here. */
static enum tb_status native_curvature(const struct tb_model* p_model,
                                       const struct tb_workspace* p_work,
                                       const double* v_theta,
                                       const struct tb_batch* p_batch,
                                       const struct tb_curvature* p_sums) {
  const struct native* p = p_model->p_self;
  const size_t n_square = p_model->n_dim * p_model->n_dim;
  const struct tb_batch none = {.n_batch = 0, .weight = 1};
  const struct tb_sums sums = {.v_gradient = p_sums->v_gradient,
                               .p_log_lik = p_sums->p_log_lik};
  enum tb_status status = TB_STATUS_ok;
  if (p_sums->with_prior) {
    status = native_prior(p_model,
                          p_work,
                          v_theta,
                          p_sums->v_gradient,
                          p_sums->p_log_lik);
  }
  if (status == TB_STATUS_ok) {
    status = native_gradient(p_model, p_work, v_theta, p_batch, NULL, &sums);
  }
  if (status == TB_STATUS_ok) {
    status = known(p->user.curvature(&p->view,
                                     p_work->p_scratch,
                                     v_theta,
                                     p_batch,
                                     p_sums->v_hessian));
  }
  if (status == TB_STATUS_ok && !p_sums->with_prior) {
    double* v_none = native_room(p_model, p_work, p_batch->n_batch);
    memset(v_none, 0, n_square * sizeof(double));
    status = known(
        p->user.curvature(&p->view, p_work->p_scratch, v_theta, &none, v_none));
    for (size_t k = 0; k < n_square; ++k) {
      p_sums->v_hessian[k] -= v_none[k];
    }
  }
  return status;
}

static size_t native_memory(const struct tb_model* p_model) {
  const struct native* p = p_model->p_self;
  size_t n_byte = p->n_beside_byte;
  for (size_t k = 0; k < p->view.n_array; ++k) {
    const struct tb_store* p_store = &p->v_store[k];
    n_byte += p_store->type == NULL ? 0 : p_store->type->memory(p_store);
  }
  return n_byte;
}

/* -------------------------------------------------------------- the library */

/* The library of a table may be unloaded, or loaded again after it was compiled
 * anew, while its models live. Their pointers then lead nowhere, or into the
 * middle of something else. */
#ifdef HAS_DLADDR
static bool is_mapped(const void* p_code) {
  Dl_info info;
  return dladdr(p_code, &info) != 0;
}

static void mark_set(struct mark* p_mark, void (*function)(void)) {
  enum { PAGE = 4096 };
  const unsigned char* p_code = NULL;
  memcpy(&p_code, &function, sizeof(p_code));
  if (p_code == NULL || !is_mapped(p_code)) {
    return; /* no library's: nothing can be known of it */
  }
  p_mark->p_code = p_code;
  p_mark->n_byte =
      tb_min(sizeof(p_mark->v_byte), PAGE - (uintptr_t)p_code % PAGE);
  memcpy(p_mark->v_byte, p_code, p_mark->n_byte);
}

static bool mark_holds(const struct mark* p_mark) {
  return p_mark->p_code == NULL ||
         (is_mapped(p_mark->p_code) &&
          memcmp(p_mark->p_code, p_mark->v_byte, p_mark->n_byte) == 0);
}
#else
static void mark_set(struct mark* p_mark, void (*function)(void)) {
  (void)p_mark;
  (void)function;
}

static bool mark_holds(const struct mark* p_mark) {
  (void)p_mark;
  return true;
}
#endif

static void marks_set(struct native* p) {
  void (*const v_function[N_MARK])(void) = {
      (void (*)(void))p->user.prior,
      (void (*)(void))p->user.gradient,
      (void (*)(void))p->user.log_lik,
      (void (*)(void))p->user.destroy,
      (void (*)(void))p->user.curvature,
      (void (*)(void))p->user.scratch_size,
      (void (*)(void))p->user.add_scalar,
      (void (*)(void))p->user.constrain};
  for (size_t k = 0; k < N_MARK; ++k) {
    mark_set(&p->v_mark[k], v_function[k]);
  }
}

static bool native_is_usable(const struct tb_model* p_model) {
  const struct native* p = p_model->p_self;
  for (size_t k = 0; k < N_MARK; ++k) {
    if (!mark_holds(&p->v_mark[k])) {
      return false;
    }
  }
  return true;
}

/* ---------------------------------------------------------------- creation */

extern const struct tb_model_type tb_model_native;

static void native_free(struct tb_model* p_model) {
  struct native* p = p_model->p_self;
  p_model->type = &tb_model_native;
  p_model->p_self = NULL;
  for (size_t k = 0; p->v_store != NULL && k < p->view.n_array; ++k) {
    if (p->v_store[k].type != NULL) {
      p->v_store[k].type->destroy(&p->v_store[k]);
    }
  }
  tb_big_free(p->v_beside, p->n_beside_byte);
  free(p->v_store);
  free(p->v_array);
  free(p->p_names);
  free(p);
}

static void native_destroy(struct tb_model* p_model) {
  struct native* p = p_model->p_self;
  if (p == NULL) {
    return;
  }
  if (p->user.destroy != NULL && native_is_usable(p_model)) {
    p->user.destroy(&p->view);
  }
  native_free(p_model);
}

/* One array, column-major as R has it, into a store of rows. */
static enum tb_status array_copy(const struct tb_shelf* p_shelf,
                                 const struct tb_param* p_from,
                                 struct tb_store* p_store,
                                 struct tb_array* p_array) {
  const enum tb_status status = tb_shelf_take(p_shelf, p_from, 0, p_store);
  if (status != TB_STATUS_ok) {
    return status;
  }
  *p_array = (struct tb_array){.n_row = p_store->n_row,
                               .n_col = p_store->n_col,
                               .stride = p_store->n_padded,
                               .v_value = p_store->v_data,
                               .p_tools = &tools,
                               .p_private = p_store};
  /* users see the numbers themselves */
  return p_store->v_data == NULL ? TB_STATUS_unsupported : TB_STATUS_ok;
}

/* One number a row, with room for the numbers that are stored of it. */
static void array_copy_beside(struct native* p,
                              const struct tb_param* p_from,
                              struct tb_array* p_array) {
  for (size_t i = 0; i < p_from->n_row; ++i) {
    p->v_beside[i * p->n_beside] = p_from->v_value[i];
  }
  *p_array = (struct tb_array){.n_row = p_from->n_row,
                               .n_col = 1,
                               .stride = p->n_beside,
                               .v_value = p->v_beside,
                               .p_tools = &tools};
}

/* Number of the array with one number for each observation that the stored ones
 * stand beside; n_array: there is none. */
static size_t host_array(const struct native* p,
                         const struct tb_param* v_from,
                         size_t n_array) {
  const size_t n_data = p->view.n_data;
  for (size_t k = 0; p->user.n_scalar > 0 && k < n_array; ++k) {
    if (v_from[k].n_row == n_data && v_from[k].n_value == n_data) {
      return k;
    }
  }
  return n_array;
}

static enum tb_status beside_create(struct native* p, bool has_host) {
  if (p->user.n_scalar == 0) {
    return TB_STATUS_ok;
  }
  p->n_beside = p->user.n_scalar + has_host;
  p->n_beside_byte = p->view.n_data * p->n_beside * sizeof(double);
  p->v_beside = tb_big_alloc(p->n_beside_byte);
  return p->v_beside == NULL ? TB_STATUS_memory : TB_STATUS_ok;
}

/* All of v_from, with names of their own: R's may go before the model does. */
static enum tb_status arrays_copy(struct native* p,
                                  const struct tb_shelf* p_shelf,
                                  const struct tb_param* v_from,
                                  size_t n_array) {
  size_t n_byte = 1;
  for (size_t k = 0; k < n_array; ++k) {
    n_byte += strlen(v_from[k].name) + 1;
  }
  p->v_store = calloc(n_array, sizeof(*p->v_store));
  p->v_array = calloc(n_array, sizeof(*p->v_array));
  p->p_names = malloc(n_byte);
  if (p->v_store == NULL || p->v_array == NULL || p->p_names == NULL) {
    return TB_STATUS_memory;
  }
  p->view.n_array = n_array;
  p->view.v_array = p->v_array;
  char* p_name = p->p_names;
  const size_t host = host_array(p, v_from, n_array);
  enum tb_status status = beside_create(p, host < n_array);
  for (size_t k = 0; k < n_array && status == TB_STATUS_ok; ++k) {
    const size_t n_name = strlen(v_from[k].name) + 1;
    if (k == host) {
      array_copy_beside(p, &v_from[k], &p->v_array[k]);
    } else {
      status = array_copy(p_shelf, &v_from[k], &p->v_store[k], &p->v_array[k]);
    }
    memcpy(p_name, v_from[k].name, n_name);
    p->v_array[k].name = p_name;
    p_name += n_name;
  }
  return status;
}

static struct tb_model_type type_of(const struct tb_native_type* p_user) {
  struct tb_model_type type = tb_model_native;
  if (p_user->curvature != NULL) {
    type.curvature = native_curvature;
  }
  if (p_user->constrain != NULL) {
    type.constrain = native_constrain;
  }
  if (p_user->n_scalar > 0) {
    type.flags |= TB_MODEL_SCALAR;
    type.store_scalar = native_store_scalar;
    type.stored_scalar = native_stored_scalar;
    type.add_scalar = native_add_scalar;
  }
  return type;
}

enum { PARAM_table = 0, PARAM_n_dim, PARAM_n_data, PARAM_first_array };

/* Parameters, in this order: "table", the address of a struct tb_native_type;
 * "n_dim"; "n_data"; and the arrays, by the user's names. */
static enum tb_status native_create(struct tb_model* p_model,
                                    const struct tb_params* p_params,
                                    const struct tb_shelf* p_shelf) {
  if (p_params->n_param <= PARAM_first_array) {
    return TB_STATUS_argument;
  }
  const struct tb_param* v_param = p_params->v_param;
  const struct tb_native_type* p_user =
      (const void*)v_param[PARAM_table].v_value;
  const size_t n_dim = (size_t)v_param[PARAM_n_dim].v_value[0];
  const size_t n_data = (size_t)v_param[PARAM_n_data].v_value[0];
  unsigned version;
  if (n_dim == 0 || n_data == 0 || !tb_native_is_readable(p_user, &version) ||
      tb_native_missing_slot(p_user) != NULL) {
    return TB_STATUS_argument;
  }
  struct native* p = calloc(1, sizeof(*p));
  if (p == NULL) {
    return TB_STATUS_memory;
  }
  p_model->p_self = p;
  p->user = *p_user;
  marks_set(p);
  p->type = type_of(p_user);
  p->view =
      (struct tb_native){.n_data = n_data, .n_dim = n_dim, .p_tools = &tools};
  const size_t n_array = p_params->n_param - PARAM_first_array;
  const struct tb_param* v_array = v_param + PARAM_first_array;
  enum tb_status status = arrays_copy(p, p_shelf, v_array, n_array);
  if (status == TB_STATUS_ok && p->user.create != NULL) {
    status = known(p->user.create(&p->view));
  }
  if (status != TB_STATUS_ok) {
    native_free(p_model);
    return status;
  }
  p_model->type = &p->type;
  p_model->n_data = n_data;
  p_model->n_dim = p_model->n_natural = n_dim;
  p_model->n_scalar = p->user.n_scalar;
  p_model->p_frame = NULL;
  p_model->fingerprint = (uint64_t)n_dim;
  for (size_t k = 0; k < n_array; ++k) {
    p_model->fingerprint = tb_hash_doubles(p_model->fingerprint,
                                           v_array[k].v_value,
                                           v_array[k].n_value);
  }
  return TB_STATUS_ok;
}

/* ------------------------------------------------------------------ checks */

bool tb_native_is_readable(const struct tb_native_type* p_type,
                           unsigned* p_version) {
  const unsigned magic = TALLBAYES_API_VERSION >> 16;
  const bool is_table = p_type != NULL && p_type->version >> 16 == magic;
  *p_version = is_table ? p_type->version & 0xffffu : 0;
  return is_table && p_type->version == TALLBAYES_API_VERSION;
}

const char* tb_native_missing_slot(const struct tb_native_type* p_type) {
  return p_type->name == NULL                                 ? "name"
         : p_type->prior == NULL                              ? "prior"
         : p_type->gradient == NULL                           ? "gradient"
         : p_type->log_lik == NULL                            ? "log_lik"
         : p_type->n_scalar > 0 && p_type->add_scalar == NULL ? "add_scalar"
                                                              : NULL;
}

const struct tb_model_type tb_model_native = {
    .name = "native",
    .citation = "tallbayes.h",
    .create = native_create,
    .destroy = native_destroy,
    .prior = native_prior,
    .gradient = native_gradient,
    .workspace_size = native_workspace_size,
    .pass_size = native_pass_size,
    .log_lik = native_log_lik,
    .memory = native_memory,
    .is_usable = native_is_usable,
};
