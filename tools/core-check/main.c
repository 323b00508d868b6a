/* Runs every table of tests; exit status 1 if any failed. An argument keeps
 * the tests whose description contains it. */
#include "check.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char* folder;
  const struct check_case* v_case;
} v_table[] = {
    {"ahead", check_ahead},
    {"arrow", check_arrow},
    {"base", check_base},
    {"crossed", check_crossed},
    {"data", check_data},
    {"diagnostics", check_diagnostics},
    {"factorised", check_factorised},
    {"gradients", check_gradients},
    {"groups", check_groups},
    {"kernels", check_kernels},
    {"kernels", check_metropolis},
    {"models", check_models},
    {"mixtures", check_mixtures},
    {"passes", check_passes},
    {"pieces", check_pieces},
    {"predictors", check_predictors},
    {"priors", check_priors},
    {"proposals", check_proposals},
    {"responses", check_responses},
    {"limits", check_limits},
    {"run", check_run},
    {"scaled", check_scaled},
    {"schedules", check_schedules},
    {"slices", check_slices},
    {"tails", check_tails},
    {"text", check_text},
    {"subsampling", check_subsampling},
};

void check_fail(struct check* p_check,
                const char* file,
                int line,
                const char* format,
                ...) {
  if (++p_check->n_failed > 5) {
    return;
  }
  va_list arguments;
  printf("  %s:%d: ", file, line);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
}

double check_distance(double a, double b) {
  return a == b ? 0 : fabs(a - b); /* equal infinities are close */
}

double
check_chi_square(const double* v_observed, const double* v_expected, size_t n) {
  double x = 0;
  for (size_t k = 0; k < n; ++k) {
    const double difference = v_observed[k] - v_expected[k];
    x += difference * difference / v_expected[k];
  }
  const double df = (double)n - 1;
  return (x - df) / sqrt(2 * df);
}

double check_cells(const double* v_observed,
                   const double* v_expected,
                   size_t n,
                   size_t* p_n) {
  double* v_tells = check_alloc(2 * n, sizeof(double));
  *p_n = 0;
  for (size_t k = 0; k < n; ++k) {
    if (v_expected[k] > 10) {
      v_tells[*p_n] = v_observed[k];
      v_tells[n + *p_n] = v_expected[k];
      *p_n += 1;
    }
  }
  const double x = check_chi_square(v_tells, v_tells + n, *p_n);
  free(v_tells);
  return x;
}

double check_symmetry(const double* v_count, size_t n, size_t* p_n) {
  double x = 0, df = 0;
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < a; ++b) {
      const double there = v_count[a * n + b], back = v_count[b * n + a];
      if (there + back > 20) {
        x += (there - back) * (there - back) / (there + back);
        df += 1;
      }
    }
  }
  *p_n = (size_t)df;
  return df > 0 ? (x - df) / sqrt(2 * df) : 0;
}

size_t check_find(const double* v, size_t n, double u) {
  size_t low = 0, high = n - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (v[middle] < u) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

struct thread {
  pthread_t id;
  void (*run)(void*);
  void* p_context;
};

static void* thread_main(void* p) {
  struct thread* p_thread = p;
  p_thread->run(p_thread->p_context);
  return NULL;
}

bool check_parallel(void (*run)(void*), void** v_context, size_t n) {
  struct thread* v_thread = check_alloc(n, sizeof *v_thread);
  size_t n_started = 0;
  for (; n_started < n; ++n_started) {
    struct thread* p_thread = &v_thread[n_started];
    p_thread->run = run;
    p_thread->p_context = v_context[n_started];
    if (pthread_create(&p_thread->id, NULL, thread_main, p_thread) != 0) {
      break;
    }
  }
  for (size_t k = 0; k < n_started; ++k) {
    pthread_join(v_thread[k].id, NULL);
  }
  free(v_thread);
  return n_started == n;
}

void* check_alloc(size_t n, size_t n_byte) {
  void* p = calloc(n > 0 ? n : 1, n_byte > 0 ? n_byte : 1);
  if (p == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(2);
  }
  return p;
}

int main(int n_argument, char** v_argument) {
  const char* wanted = n_argument > 1 ? v_argument[1] : "";
  size_t n_passed = 0, n_failed = 0;
  for (size_t t = 0; t < sizeof v_table / sizeof v_table[0]; ++t) {
    const struct check_case* p_case = v_table[t].v_case;
    for (; p_case->description != NULL; ++p_case) {
      if (strstr(p_case->description, wanted) == NULL) {
        continue;
      }
      struct check check = {0};
      p_case->run(&check);
      const bool has_passed = check.n_failed == 0;
      printf("%s %s: %s\n",
             has_passed ? "ok  " : "FAIL",
             v_table[t].folder,
             p_case->description);
      fflush(stdout);
      n_passed += has_passed;
      n_failed += !has_passed;
    }
  }
  printf("%zu passed, %zu failed\n", n_passed, n_failed);
  return n_failed > 0 || n_passed == 0;
}
