# How close draws are to a normal posterior that is known.

#' Kullback-Leibler divergence from a normal posterior
#'
#' For a posterior that is known to be normal: the divergence of the normal
#' distribution with the mean and covariance of the draws.
#'
#' @param draws (numeric matrix of draws x variables, draws object of
#'   \pkg{posterior}, or [`tall_fit`][tall_fit]) The draws.
#' @param mean (numeric vector) Mean \eqn{\mu} of the posterior. With names, in
#'   any order.
#' @param covariance (numeric matrix) Its covariance \eqn{\Sigma}.
#'
#' @details With \eqn{m} and \eqn{S} the mean and covariance of the draws in d
#' dimensions, \deqn{KL(N(m, S) \| N(\mu, \Sigma)) = \frac12
#' \left[\mathrm{tr}(\Sigma^{-1} S) + (m - \mu)^T \Sigma^{-1} (m - \mu) - d +
#' \log\frac{|\Sigma|}{|S|}\right].}{ KL(N(m, S) || N(mu, Sigma)) = 1/2
#' [tr(Sigma^-1 S) + (m - mu)' Sigma^-1 (m - mu) - d + log(|Sigma| / |S|)].} Of
#' n independent draws of the posterior it is about \eqn{d (d + 3) / (4 n)}.
#'
#' @return A number.
#' @section Conditions: `tall_error_input` if the shapes do not match, or if
#' there are not more draws than variables.
#' @references
#' Putcha, Nemeth & Fearnhead (2023). Preferential subsampling for stochastic
#' gradient Langevin dynamics. *AISTATS*.
#' @examples
#' model <- model_gaussian(matrix(rnorm(400), 200), covariance = diag(2))
#' fit <- sg_sample(model, kernel_sgld(0.001), seed = 1)
#' kl_gaussian(fit, model$posterior_mean, model$posterior_covariance)
#' @export
kl_gaussian <- function(draws, mean, covariance) {
  moments <- draws_moments(draws)
  d <- length(moments$mean)
  mean <- check_numeric_vector(mean, size = d)
  check_covariance(covariance, d)
  names <- names(moments$mean)
  mean <- mean[variable_order(names, names(mean), d)]
  known <- variable_order(names, colnames(covariance), d)
  root <- chol(unname(covariance[known, known, drop = FALSE]))
  # of few draws it is singular, whatever rounding makes of it
  own <- if (moments$n > d) {
    tryCatch(chol(unname(moments$covariance)), error = function(e) NULL)
  }
  if (is.null(own)) {
    abort_input(
      "{.arg draws} must be more than there are variables and vary in every
       direction: the covariance of {count_noun(moments$n, 'draw')} of
       {count_noun(d, 'variable')} is singular.",
      argument = "draws",
      value = moments$n
    )
  }
  shift <- backsolve(root, moments$mean - mean, transpose = TRUE)
  ratio <- backsolve(root, t(own), transpose = TRUE)
  log_ratio <- sum(log(diag(root))) - sum(log(diag(own)))
  (sum(ratio^2) + sum(shift^2) - d) / 2 + log_ratio
}

# list(n, mean, covariance) of draws on the natural scale.
draws_moments <- function(draws, arg = "draws") {
  check_given(draws, arg = arg)
  if (inherits(draws, "tall_fit")) {
    n <- if (is.null(draws$draws)) {
      sum(draws$chains$draws)
    } else {
      posterior::ndraws(draws$draws)
    }
    return(list(
      n = n,
      mean = coef.tall_fit(draws),
      covariance = vcov.tall_fit(draws)
    ))
  }
  points <- diagnostic_points(draws, arg)
  moments <- stats::cov.wt(points$draws, points$weights / sum(points$weights))
  list(n = nrow(points$draws), mean = moments$center, covariance = moments$cov)
}

# Where each of the d names `wanted` is among `given`; as they come where names
# are others or there are none.
variable_order <- function(wanted, given, d) {
  if (is.null(wanted) || is.null(given) || !setequal(wanted, given)) {
    return(seq_len(d))
  }
  match(wanted, given)
}

#' Bias in standard deviations
#'
#' Errors of posterior means and variances against known ones.
#'
#' @inheritParams kl_gaussian
#' @param mean,sd (numeric vectors) The exact posterior means and standard
#'   deviations.
#' @param divisor (string) What errors of the variance are divided by: the
#'   variance, or the `"sd"` as in the paper, which makes the result depend on
#'   the unit of the variable.
#'
#' @details \eqn{|\bar\theta_j - E \theta_j| / \mathrm{sd}_j}{|mean_j - E
#' theta_j| / sd_j} and \eqn{|\hat v_j - \mathrm{sd}_j^2| /
#' \mathrm{sd}_j^2}{|v_j - sd_j^2| / sd_j^2} (Mauri & Zanella, 2024, eq. 40,
#' where the latter is divided by \eqn{\mathrm{sd}_j}{sd_j}).
#'
#' @return A data frame of `variable`, `mean` and `variance`.
#' @section Conditions:
#' `tall_error_input` if the lengths do not match.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' draws <- cbind(a = rnorm(1000), b = rnorm(1000, 1, 2))
#' standardised_bias(draws, mean = c(0, 1), sd = c(1, 2))
#' @export
standardised_bias <- function(draws, mean, sd, divisor = c("variance", "sd")) {
  moments <- draws_moments(draws)
  d <- length(moments$mean)
  mean <- check_numeric_vector(mean, size = d)
  sd <- check_numeric_vector(sd, size = d, positive = TRUE)
  divisor <- check_choice(divisor, c("variance", "sd"))
  names <- names(moments$mean)
  mean <- unname(mean[variable_order(names, names(mean), d)])
  sd <- unname(sd[variable_order(names, names(sd), d)])
  error <- abs(unname(diag(moments$covariance)) - sd^2)
  data.frame(
    variable = names %||% paste0("x", seq_len(d)),
    mean = abs(unname(moments$mean) - mean) / sd,
    variance = error / if (divisor == "variance") sd^2 else sd
  )
}
