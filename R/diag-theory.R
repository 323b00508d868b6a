# Theory of SGLD with control variates: Baker, Fearnhead, Fox & Nemeth (2019),
# section 3.3 and appendix A. Their step size h' is that of theta + h' grad +
# sqrt(2 h') noise, half of ours.

#' Error and cost of SGLD with control variates, in theory
#'
#' For a strongly log-concave posterior: a bound on the Wasserstein distance of
#' a chain to the posterior, and settings that keep it below a given error, with
#' a cost that does not depend on the number of observations.
#'
#' @param convexity,smoothness (positive numbers) The constants \eqn{m \le M} of
#'   the log posterior: its negative Hessian has eigenvalues between them.
#' @param n_dim (whole number) Parameters, \eqn{d}.
#' @param step_size (positive number or `NULL`) Step size \eqn{h} as in
#'   [kernel_sgld()], the variance of the injected noise. `sgldcv_budget()`
#'   chooses one for `NULL`.
#' @param size (whole number) Rows of a minibatch, \eqn{n}.
#' @param iter (whole numbers) Iterations, \eqn{K}.
#' @param start,center (numbers) Mean squared distances to the posterior mean of
#'   the starting point, \eqn{E\|\theta_0 - \bar\theta\|^2}{E||theta_0 -
#'   theta-bar||^2}, and of the reference point of the control variates,
#'   \eqn{E\|\hat\theta - \bar\theta\|^2}{E||theta-hat - theta-bar||^2}.
#' @param error (positive number) The error wanted, \eqn{\epsilon_0}, on a scale
#'   that does not depend on units: \eqn{W_2 \le \epsilon_0 / \sqrt{m}}{W2 <=
#'   epsilon_0 / sqrt(m)}, while posterior standard deviations are at most
#'   \eqn{1/\sqrt{m}}{1 / sqrt(m)}.
#'
#' @details Proposition 1: with \eqn{h' = h / 2 < 2m / (2M^2 + m^2)},
#' \deqn{W_2(\nu_K, \pi) \le (1 - A)^K W_2(\nu_0, \pi) + \frac{C}{A} +
#' \frac{B^2}{C + \sqrt{A} B},}{W2(nu_K, pi) <= (1 - A)^K W2(nu_0, pi) + C/A +
#' B^2 / (C + sqrt(A) B),} \deqn{A = 1 - \sqrt{2 h'^2 M^2 / n + (1 - m h')^2},
#' \quad B^2 = \frac{2 h'^2 M^2}{n} \left[E\|\hat\theta - \bar\theta\|^2 +
#' \frac{d}{m}\right], \quad C = \alpha M \sqrt{h'^3 d},}{A = 1 - sqrt(2 h'^2
#' M^2 / n + (1 - m h')^2), B^2 = 2 h'^2 M^2 / n [E||theta-hat - theta-bar||^2 +
#' d/m], C = alpha M sqrt(h'^3 d),} \eqn{\alpha = 7 \sqrt{2} / 6}, and
#' \eqn{W_2^2(\nu_0, \pi) \le E\|\theta_0 - \bar\theta\|^2 + d/m}{W2^2(nu_0, pi)
#' <= E||theta_0 - theta-bar||^2 + d/m}.
#'
#' Theorem 1 and corollary 1: the error is met with \eqn{R = M / m} and \deqn{h'
#' = \frac{\beta}{m}, \quad \beta = \min\left\{\frac{1}{2R^2 + 1},
#' \frac{\epsilon_0^2}{64 R^2 \alpha^2 d}\right\}, \quad n \ge \frac{64 R^2
#' \beta}{\epsilon_0^2} (m E\|\hat\theta - \bar\theta\|^2 + d), \quad K \ge
#' \frac{1}{\beta} \log\left[\frac{4}{\epsilon_0^2} (m E\|\theta_0 -
#' \bar\theta\|^2 + d)\right].}{h' = beta / m, beta = min{1 / (2R^2 + 1),
#' epsilon_0^2 / (64 R^2 alpha^2 d)}, n >= 64 R^2 beta / epsilon_0^2 (m
#' E||theta-hat - theta-bar||^2 + d), K >= 1 / beta log[4 / epsilon_0^2 (m
#' E||theta_0 - theta-bar||^2 + d)].} A step size of your own must meet both
#' bounds of (10), \eqn{m h' \le n / (2R^2 + n)} and \eqn{m h' \le \epsilon_0^2
#' / (64 R^2 \alpha^2 d)}{m h' <= epsilon_0^2 / (64 R^2 alpha^2 d)}, and that of
#' proposition 1, and needs \eqn{n \ge 64 h' M^2 [E\|\hat\theta -
#' \bar\theta\|^2 + d/m] / \epsilon_0^2}{n >= 64 h' M^2 [E||theta-hat -
#' theta-bar||^2 + d/m] / epsilon_0^2}.
#'
#' Corrections to the paper: its body prints \eqn{2 h^2 M / n} in \eqn{A}, and a
#' maximum where condition (10), \eqn{\beta} (and a minimum in \eqn{C_1}) must
#' have the other, since both bounds are used. Its step size is half of ours.
#'
#' The theory takes \eqn{M \ge \sum_{i \ge 0} L_i}{M >= sum_i L_i} with
#' minibatches drawn in proportion to the Lipschitz constants \eqn{L_i}, and is
#' worst-case: actual errors are far smaller. For uniform minibatches use
#' \eqn{\sqrt{N \sum L_i^2}}{sqrt(N sum L_i^2)} in the place of the sum.
#'
#' @return `sgldcv_bound()`: a data frame with a row for each of `iter`: `bound`
#'   on \eqn{W_2}, and its parts `start`, `discretisation` and `noise`.
#'
#'   `sgldcv_budget()`: a list of `step_size` (ours), `size`, `iter`,
#'   `gradients` (`size` x `iter`), and `limit`, the bound of corollary 1 on
#'   `gradients` for the step size it chooses (`NA` for one of your own).
#' @section Conditions: `tall_error_input` for constants out of range or a step
#' size that is too large, with the largest one possible.
#' @references Baker, Fearnhead, Fox & Nemeth (2019). Control variates for
#' stochastic gradient MCMC. *Statistics and Computing* 29, 599-615.
#' @examples
#' # the cost does not grow with N: m and M do, start and center fall
#' budget <- function(n) {
#'   sgldcv_budget(0.5, n, 2 * n, n_dim = 5, start = 1 / n, center = 1 / n)
#' }
#' budget(1e4)$gradients
#' budget(1e6)$gradients
#'
#' found <- budget(1e4)
#' sgldcv_bound(
#'   1e4, 2e4, n_dim = 5,
#'   step_size = found$step_size,
#'   size = found$size,
#'   iter = found$iter,
#'   start = 1e-4,
#'   center = 1e-4
#' )
#' @name sgldcv
NULL

sgldcv_alpha <- 7 * sqrt(2) / 6

#' @rdname sgldcv
#' @export
sgldcv_bound <- function(
  convexity,
  smoothness,
  n_dim,
  step_size,
  size,
  iter,
  start = 0,
  center = 0
) {
  check_concavity(convexity, smoothness)
  n_dim <- check_count(n_dim)
  size <- check_count(size)
  iter <- check_numeric_vector(iter)
  if (any(iter < 0)) {
    abort_value(iter, which(iter < 0)[[1]], "be at least 0", "iter")
  }
  start <- check_number(start, min = 0)
  center <- check_number(center, min = 0)
  check_number(step_size, positive = TRUE)
  check_step(step_size, largest_step(convexity, smoothness), strict = TRUE)
  h <- step_size / 2
  noise <- 2 * h^2 * smoothness^2 / size
  a <- 1 - sqrt(noise + (1 - convexity * h)^2)
  b <- sqrt(noise * (center + n_dim / convexity))
  c <- sgldcv_alpha * smoothness * sqrt(h^3 * n_dim)
  from_start <- (1 - a)^iter * sqrt(start + n_dim / convexity)
  parts <- data.frame(
    iter = iter,
    bound = from_start + c / a + b^2 / (c + sqrt(a) * b),
    start = from_start,
    discretisation = c / a,
    noise = b^2 / (c + sqrt(a) * b)
  )
  parts
}

#' @rdname sgldcv
#' @export
sgldcv_budget <- function(
  error,
  convexity,
  smoothness,
  n_dim,
  start = 0,
  center = 0,
  step_size = NULL
) {
  check_number(error, positive = TRUE)
  check_concavity(convexity, smoothness)
  n_dim <- check_count(n_dim)
  start <- check_number(start, min = 0)
  center <- check_number(center, min = 0)
  check_number(step_size, positive = TRUE, allow_null = TRUE)
  ratio <- smoothness / convexity
  by_error <- error^2 / (64 * ratio^2 * sgldcv_alpha^2 * n_dim)
  by_ratio <- 1 / (2 * ratio^2 + 1)
  # m h', in our step size 2 m h' / m
  rate <- min(by_ratio, by_error)
  if (!is.null(step_size)) {
    check_step(step_size, 2 * by_error / convexity)
    check_step(step_size, largest_step(convexity, smoothness), strict = TRUE)
    rate <- convexity * step_size / 2
  }
  spread <- convexity * center + n_dim
  least_size <- max(
    1,
    64 * ratio^2 * rate * spread / error^2,
    2 * ratio^2 * rate / (1 - rate)
  )
  log_term <- log(4 / error^2 * (convexity * start + n_dim))
  size <- ceiling(least_size * (1 - 1e-12))
  iter <- max(1, ceiling(log_term / rate))
  limit <- if (is.null(step_size)) {
    (max(0, log_term) / rate + 1) * (64 * ratio^2 * rate * spread / error^2 + 1)
  } else {
    NA_real_
  }
  list(
    step_size = 2 * rate / convexity,
    size = size,
    iter = iter,
    gradients = size * iter,
    limit = limit
  )
}

check_concavity <- function(convexity, smoothness) {
  check_number(convexity, positive = TRUE, arg = "convexity")
  check_number(smoothness, positive = TRUE, arg = "smoothness")
  if (smoothness < convexity) {
    abort_input(
      "{.arg smoothness} must be at least {.arg convexity},
       {format_number(convexity)}, not {format_number(smoothness)}.",
      argument = "smoothness",
      expected = convexity,
      value = smoothness
    )
  }
}

# Proposition 1, in our step size.
largest_step <- function(convexity, smoothness) {
  4 * convexity / (2 * smoothness^2 + convexity^2)
}

check_step <- function(step_size, largest, strict = FALSE) {
  if (if (strict) step_size >= largest else step_size > largest) {
    must <- if (strict) "below" else "at most"
    abort_input(
      "{.arg step_size} must be {must} {format_number(largest)} here, not
       {format_number(step_size)}.",
      argument = "step_size",
      expected = largest,
      value = step_size
    )
  }
}
