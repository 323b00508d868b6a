#include "base/gamma.h"

#include <math.h>

#define FROM         10.0 /* Stirling's series is used */
#define HALF_LOG_TAU 0.91893853320467274178

enum { N_FEW = 16 }; /* factors that are taken one by one */

/* what log Gamma is more than (x - 1/2) log x - x + log(2 pi) / 2 */
static double gamma_rest(double x) {
  const double r = 1 / x, q = r * r;
  double sum = 1.0 / 156;
  sum = sum * q - 691.0 / 360360;
  sum = sum * q + 1.0 / 1188;
  sum = sum * q - 1.0 / 1680;
  sum = sum * q + 1.0 / 1260;
  sum = sum * q - 1.0 / 360;
  return r * (sum * q + 1.0 / 12);
}

/* log x - digamma(x) */
static double digamma_rest(double x) {
  const double r = 1 / x, q = r * r;
  double sum = 1.0 / 12;
  sum = sum * q - 691.0 / 32760;
  sum = sum * q + 1.0 / 132;
  sum = sum * q - 1.0 / 240;
  sum = sum * q + 1.0 / 252;
  sum = sum * q - 1.0 / 120;
  return r * (0.5 + r * (sum * q + 1.0 / 12));
}

/* trigamma(x) - 1 / x */
static double trigamma_rest(double x) {
  const double r = 1 / x, q = r * r;
  double sum = 7.0 / 6;
  sum = sum * q - 691.0 / 2730;
  sum = sum * q + 5.0 / 66;
  sum = sum * q - 1.0 / 30;
  sum = sum * q + 1.0 / 42;
  sum = sum * q - 1.0 / 30;
  return q * (0.5 + r * (sum * q + 1.0 / 6));
}

double tb_log_gamma(double x) {
  double log_below = 0, product = 1;
  for (; x < FROM; ++x) {
    product *= x;
  }
  if (product != 1) {
    log_below = log(product);
  }
  return (x - 0.5) * log(x) - x + HALF_LOG_TAU + gamma_rest(x) - log_below;
}

double tb_digamma(double x) {
  double below = 0;
  for (; x < FROM; ++x) {
    below += 1 / x;
  }
  return log(x) - digamma_rest(x) - below;
}

double tb_trigamma(double x) {
  double below = 0;
  for (; x < FROM; ++x) {
    below += 1 / (x * x);
  }
  return 1 / x + trigamma_rest(x) + below;
}

double tb_log_less_digamma(double x) {
  return x < FROM ? log(x) - tb_digamma(x) : digamma_rest(x);
}

double tb_log_less_gamma(double x) {
  return x < FROM ? x * log(x) - x - tb_log_gamma(x)
                  : 0.5 * log(x) - HALF_LOG_TAU - gamma_rest(x);
}

double tb_log_rising(double x, double n) {
  const double n_first = n <= N_FEW ? n : x < FROM ? N_FEW : 0;
  double sum = 0;
  for (double j = 0; j < n_first; ++j) {
    sum += log(x + j);
  }
  x += n_first;
  n -= n_first;
  return n > 0 ? sum + (x - 0.5) * log1p(n / x) + n * log(x + n) - n +
                     gamma_rest(x + n) - gamma_rest(x)
               : sum;
}

void tb_rising_slopes(double x, double n, double* p_first, double* p_second) {
  const double n_first = n <= N_FEW ? n : x < FROM ? N_FEW : 0;
  double first = 0, second = 0;
  for (double j = 0; j < n_first; ++j) {
    const double r = 1 / (x + j);
    first += r;
    second -= r * r;
  }
  x += n_first;
  n -= n_first;
  if (n > 0) {
    first += log1p(n / x) + digamma_rest(x) - digamma_rest(x + n);
    second += trigamma_rest(x + n) - trigamma_rest(x) - n / (x * (x + n));
  }
  *p_first = first;
  *p_second = second;
}
