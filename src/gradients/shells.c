/* Shells of the factorised test; see gradients/factorised.c. psi depends on R:
 * there are shells of R_k = R, R + 4.5, then twice as much each, R = sqrt(d) +
 * 2.5 where it is not given, made when first needed, and a step uses the
 * smallest that holds both of its ends, with that shell's choice of the rows
 * that are not thinned. Both are symmetric in theta and theta', so nothing is
 * cut off.
 *
 *   symbol     variable   shape   owner
 *   ||x~_i||   v_norm     n_data  factors
 *   psi_i/Psi  v_alias    n_data  shell
 */
#include "gradients/factors-inside.h"

#include "base/clip.h"
#include "base/memory.h"
#include "passes/ahead.h"

#include <math.h>
#include <stdlib.h>

static double shell_radius(const struct tb_factors* p, size_t k) {
  return k == 0 ? p->radius : ldexp(p->radius + 4.5, (int)k - 1);
}

/* phi above which a row is looked at always: that of two draws of the law in
 * the first two, of an end that the shell before did not hold further out */
static double shell_phi(const struct tb_factors* p, size_t k) {
  const double usual = p->phi / 2;
  const double inner = k < 2 ? 0 : shell_radius(p, k - 1);
  return usual + fmax(usual, inner * inner * inner);
}

static void shell_destroy(struct tb_shell* p_shell) {
  if (p_shell != NULL) {
    tb_big_free(p_shell, p_shell->n_byte);
  }
}

/* v_psi := psi_i; those that are not thinned become 0 and are counted. The sum
 * of the others goes to *p_total. */
static size_t shell_bounds(const struct tb_factors* p,
                           size_t k,
                           double* v_psi,
                           bool* v_is_always,
                           double* p_total) {
  const struct tb_cv2* p_cv2 = p->p_cv2;
  const size_t n_data = p_cv2->expansion.p_model->n_data;
  const struct tb_row_bounds bounds = {.p_model = p_cv2->expansion.p_model,
                                       .radius = shell_radius(p, k),
                                       .phi = shell_phi(p, k),
                                       .scale = p_cv2->scale};
  double largest = 0, total = 0;
  size_t n_always = 0;
  tb_row_bounds_at(&bounds,
                   p_cv2->expansion.v_record,
                   p->v_norm,
                   n_data,
                   v_psi,
                   v_is_always);
  /* these are the surrogate's */
  for (size_t k = 0; k < p->surrogate.n_awkward; ++k) {
    v_is_always[p->surrogate.v_awkward[k]] = false;
    v_psi[p->surrogate.v_awkward[k]] = 0;
  }
  for (size_t i = 0; i < n_data; ++i) {
    n_always += v_is_always[i];
    v_psi[i] = v_is_always[i] ? 0 : v_psi[i];
    largest = fmax(largest, v_psi[i]);
  }
  for (size_t i = 0; i < n_data; ++i) {
    if (v_psi[i] > 0) {
      /* tables know nothing smaller; a larger bound is a bound */
      v_psi[i] = fmax(v_psi[i], 1e-200 * largest);
      total += v_psi[i];
    }
  }
  *p_total = total;
  return n_always;
}

static enum tb_status
shell_make(const struct tb_factors* p, size_t k, struct tb_shell** pp_shell) {
  const size_t n_data = p->p_cv2->expansion.p_model->n_data;
  double* v_psi = malloc(n_data * (sizeof(double) + sizeof(bool)));
  if (v_psi == NULL) {
    return TB_STATUS_memory;
  }
  bool* v_is_always = (bool*)(v_psi + n_data);
  struct tb_shell shell = {.radius = shell_radius(p, k)};
  shell.n_always = shell_bounds(p, k, v_psi, v_is_always, &shell.total);
  const size_t n_alias =
      shell.total > 0 ? (n_data + 1) * sizeof(struct tb_alias) : 0;
  const size_t n_self = tb_align(sizeof(shell));
  shell.n_byte = n_self + tb_align(n_alias) + shell.n_always * sizeof(size_t);
  char* p_memory = tb_big_alloc(shell.n_byte);
  enum tb_status status = p_memory == NULL ? TB_STATUS_memory : TB_STATUS_ok;
  if (status == TB_STATUS_ok) {
    shell.v_alias = n_alias == 0 ? NULL : (void*)(p_memory + n_self);
    shell.v_always = (void*)(p_memory + n_self + tb_align(n_alias));
    size_t n = 0;
    for (size_t i = 0; i < n_data; ++i) {
      if (v_is_always[i]) {
        shell.v_always[n++] = i;
      }
    }
    if (shell.v_alias != NULL) {
      status = tb_alias_build(v_psi, n_data, 1, shell.v_alias);
    }
    *pp_shell = (struct tb_shell*)(void*)p_memory;
    **pp_shell = shell;
  }
  if (status != TB_STATUS_ok && p_memory != NULL) {
    tb_big_free(p_memory, shell.n_byte);
  }
  free(v_psi);
  return status;
}

enum tb_status tb_shell_for(struct tb_factors* p,
                            double norm,
                            const struct tb_shell** pp_shell) {
  size_t k = 0;
  while (k < TB_N_SHELL && !(norm <= shell_radius(p, k))) {
    ++k;
  }
  if (k == TB_N_SHELL) {
    *pp_shell = &p->everything;
    return TB_STATUS_ok;
  }
  struct tb_shell* p_shell =
      atomic_load_explicit(&p->v_shell[k], memory_order_acquire);
  if (p_shell == NULL) {
    struct tb_shell* p_new = NULL;
    const enum tb_status status = shell_make(p, k, &p_new);
    if (status != TB_STATUS_ok) {
      return status;
    }
    if (atomic_compare_exchange_strong(&p->v_shell[k], &p_shell, p_new)) {
      p_shell = p_new;
    } else {
      shell_destroy(p_new);
    }
  }
  *pp_shell = p_shell;
  return TB_STATUS_ok;
}

void tb_shells_destroy(struct tb_factors* p) {
  for (size_t k = 0; k < TB_N_SHELL; ++k) {
    shell_destroy(atomic_load(&p->v_shell[k]));
  }
}
