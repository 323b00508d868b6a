/* Draws of Polya-Gamma(1, z) (Polson, Scott & Windle, 2013), by the alternating
 * series of Devroye (2009). Used by reference-horseshoe.R. */
#include <R.h>
#include <Rinternals.h>
#include <Rmath.h>
#include <math.h>

#define BREAK 0.64

/* n-th coefficient of the series of the density of J*(1, 0) */
static double coefficient(int n, double x) {
  const double k = n + 0.5;
  if (x > BREAK) {
    return M_PI * k * exp(-k * k * M_PI * M_PI * x / 2);
  }
  return M_PI * k * pow(2 / (M_PI * x), 1.5) * exp(-2 * k * k / x);
}

/* inverse Gaussian of mean 1 / z and shape 1, below BREAK */
static double short_inverse_gaussian(double z) {
  if (z < 1 / BREAK) {
    for (;;) {
      double e, f;
      do {
        e = exp_rand();
        f = exp_rand();
      } while (e * e > 2 * f / BREAK);
      const double x = BREAK / ((1 + BREAK * e) * (1 + BREAK * e));
      if (unif_rand() < exp(-z * z * x / 2)) {
        return x;
      }
    }
  }
  const double mean = 1 / z;
  for (;;) {
    double y = norm_rand();
    y *= y;
    double x = mean + mean * mean * y / 2 -
               mean / 2 * sqrt(4 * mean * y + mean * mean * y * y);
    if (unif_rand() > mean / (mean + x)) {
      x = mean * mean / x;
    }
    if (x < BREAK) {
      return x;
    }
  }
}

static double draw(double z) {
  z = fabs(z) / 2;
  const double k = M_PI * M_PI / 8 + z * z / 2;
  const double p = M_PI / (2 * k) * exp(-k * BREAK);
  const double root = 1 / sqrt(BREAK);
  /* distribution function of the inverse Gaussian at BREAK */
  const double q = 2 * exp(-z) *
                   (pnorm(root * (BREAK * z - 1), 0, 1, 1, 0) +
                    exp(2 * z + pnorm(-root * (BREAK * z + 1), 0, 1, 1, 1)));
  for (;;) {
    const double x = unif_rand() < p / (p + q) ? BREAK + exp_rand() / k
                                               : short_inverse_gaussian(z);
    double sum = coefficient(0, x);
    const double y = unif_rand() * sum;
    for (int n = 1;; ++n) {
      if (n % 2) {
        sum -= coefficient(n, x);
        if (y <= sum) {
          return x / 4;
        }
      } else {
        sum += coefficient(n, x);
        if (y > sum) {
          break;
        }
      }
    }
  }
}

SEXP polya_gamma(SEXP z) {
  const int n = length(z);
  SEXP out = PROTECT(allocVector(REALSXP, n));
  GetRNGstate();
  for (int i = 0; i < n; ++i) {
    REAL(out)[i] = draw(REAL(z)[i]);
  }
  PutRNGstate();
  UNPROTECT(1);
  return out;
}
