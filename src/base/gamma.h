/* The gamma function of positive numbers: its logarithm, and the derivatives of
 * that. Recurrence up to 10, then Stirling's series (Abramowitz & Stegun 1964,
 * 6.1.40, 6.3.18, 6.4.12); none of them writes where another thread reads, as
 * C's own lgamma() does. */
#ifndef TB_BASE_GAMMA_H
#define TB_BASE_GAMMA_H

double tb_log_gamma(double x);
double tb_digamma(double x);
double tb_trigamma(double x);

/* log x - digamma(x), of which nothing cancels where x is large: 1 / (2x) .. */
double tb_log_less_digamma(double x);

/* x log x - x - log Gamma(x), likewise: (log x - log 2 pi) / 2 .. */
double tb_log_less_gamma(double x);

/* log Gamma(x + n) - log Gamma(x), the rising factorial of whole n >= 0, and
 * its derivatives in x, to their own size however large x is */
double tb_log_rising(double x, double n);
void tb_rising_slopes(double x, double n, double* p_first, double* p_second);

#endif
